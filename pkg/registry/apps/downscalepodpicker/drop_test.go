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

package downscalepodpicker

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

type recordedWarnings []string

func (w *recordedWarnings) AddWarning(_, text string) { *w = append(*w, text) }

// With the gate off, no object gets a picker, and those that have one keep it.
func TestDropDisabled(t *testing.T) {
	old := &core.DownscalePodPicker{HTTP: &core.HTTPDownscalePodPicker{Host: "a", Port: intstr.FromInt32(1)}}
	changed := &core.DownscalePodPicker{HTTP: &core.HTTPDownscalePodPicker{Host: "b", Port: intstr.FromInt32(1)}}
	for name, test := range map[string]struct {
		enabled              bool
		picker, stored, want *core.DownscalePodPicker
	}{
		"on: none":     {enabled: true},
		"on: created":  {enabled: true, picker: old, want: old},
		"on: changed":  {enabled: true, picker: changed, stored: old, want: changed},
		"on: removed":  {enabled: true, stored: old},
		"off: none":    {},
		"off: created": {picker: old},
		"off: changed": {picker: changed, stored: old, want: changed},
		"off: removed": {stored: old},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, test.enabled)
			warnings := &recordedWarnings{}
			if got := DropDisabled(warning.WithWarningRecorder(t.Context(), warnings), test.picker, test.stored); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if dropped := test.picker != nil && test.want == nil; dropped != (len(*warnings) == 1) {
				t.Errorf("unexpected warnings: %q", *warnings)
			}
		})
	}
}

// Who replaces a Deployment by one without the picker may not know the field.
func TestReplacementWithoutThePicker(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, true)
	stored := &core.DownscalePodPicker{HTTP: &core.HTTPDownscalePodPicker{Host: "a", Port: intstr.FromInt32(1)}}
	for name, test := range map[string]struct {
		info           genericapirequest.RequestInfo
		picker, stored *core.DownscalePodPicker
		want           int
	}{
		"a Deployment is replaced":                  {genericapirequest.RequestInfo{Verb: "update", Resource: "deployments"}, nil, stored, 1},
		"with the picker":                           {genericapirequest.RequestInfo{Verb: "update", Resource: "deployments"}, stored, stored, 0},
		"it had none":                               {genericapirequest.RequestInfo{Verb: "update", Resource: "deployments"}, nil, nil, 0},
		"a patch removes it":                        {genericapirequest.RequestInfo{Verb: "patch", Resource: "deployments"}, nil, stored, 0},
		"the Deployment removes it of a ReplicaSet": {genericapirequest.RequestInfo{Verb: "update", Resource: "replicasets"}, nil, stored, 0},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := &recordedWarnings{}
			ctx := genericapirequest.WithRequestInfo(warning.WithWarningRecorder(t.Context(), warnings), &test.info)
			if got := DropDisabled(ctx, test.picker, test.stored); got != test.picker || len(*warnings) != test.want {
				t.Errorf("got %+v and the warnings %q, want %d", got, *warnings, test.want)
			}
		})
	}
}
