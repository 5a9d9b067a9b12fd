/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package evictionrequest

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// TestAnnotationKeys: whoever writes many annotations does not fill the managed fields that an apply makes of them.
func TestAnnotationKeys(t *testing.T) {
	many := func(number int) option {
		return func(request *coordination.EvictionRequest) {
			request.Annotations = map[string]string{}
			for i := range number {
				request.Annotations[fmt.Sprintf("%07d", i)] = ""
			}
		}
	}
	for name, test := range map[string]struct {
		old, request *coordination.EvictionRequest
		refused      bool
	}{
		"created with many":        {request: newRequest(many(2048))},
		"created with too many":    {request: newRequest(many(2049)), refused: true},
		"one more":                 {old: newRequest(many(2048)), request: newRequest(many(2049)), refused: true},
		"too many stored":          {old: newRequest(many(5000)), request: newRequest(many(5000))},
		"too many stored, reduced": {old: newRequest(many(5000)), request: newRequest(many(4999))},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, operation := newRequesterPlugin(t, newPod(podUID, nil)), admission.Update
			if test.old == nil {
				operation = admission.Create
			}
			err := plugin.Validate(t.Context(), attributes(operation, owner, "", test.request, test.old), nil)
			const says = "metadata.annotations: Invalid value: keys must have at most 32768 bytes together, with 9 more for each, and have 32784: "
			if test.refused && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says)) || !test.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAnnotationsSize: who fills the annotations leaves kube-apiserver room for its own.
func TestAnnotationsSize(t *testing.T) {
	annotated := func(key string, bytes int) option {
		return func(request *coordination.EvictionRequest) {
			if request.Annotations == nil {
				request.Annotations = map[string]string{}
			}
			request.Annotations[key] = strings.Repeat("x", bytes-len(key))
		}
	}
	const key, ofCalls, withdrawnBy, most = "example.com/a", "coordination.k8s.io/eviction-call", "coordination.k8s.io/eviction-withdrawn-by", 64 * 1024
	full := annotated(key, most)
	for name, test := range map[string]struct {
		old, request *coordination.EvictionRequest
		refused      bool
	}{
		"created with many":        {request: newRequest(full)},
		"created with too many":    {request: newRequest(annotated(key, most+1)), refused: true},
		"one more":                 {old: newRequest(full), request: newRequest(full, annotated("b", 2)), refused: true},
		"one of kube-apiserver":    {old: newRequest(full), request: newRequest(full, annotated(withdrawnBy, 4096))},
		"all of kube-apiserver":    {old: newRequest(full), request: newRequest(full, annotated(ofCalls+"-time", 100), annotated(ofCalls+"-cordon", 100), annotated(ofCalls+"s-repeat", 100), annotated(ofCalls+"-grace-period-seconds", 100))},
		"too many stored":          {old: newRequest(annotated(key, most+10)), request: newRequest(annotated(key, most+10))},
		"too many stored, reduced": {old: newRequest(annotated(key, most+10)), request: newRequest(annotated(key, most+9))},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, operation := newRequesterPlugin(t, newPod(podUID, nil)), admission.Update
			if test.old == nil {
				operation = admission.Create
			}
			err := plugin.Validate(t.Context(), attributes(operation, owner, "", test.request, test.old), nil)
			const says = "metadata.annotations: Too long: may not be more than 65536 bytes"
			if test.refused && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says)) || !test.refused && err != nil {
				t.Errorf("got error %v", err)
			}
		})
	}
}
