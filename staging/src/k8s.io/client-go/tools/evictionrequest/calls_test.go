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
	"errors"
	"fmt"
	"slices"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestIsRequestedByCalls(t *testing.T) {
	for name, test := range map[string]struct {
		requesters, others []string
		want               bool
	}{
		"nobody":          {},
		"others":          {requesters: []string{"drain.example.com"}, others: []string{"drain.example.com"}},
		"callers":         {requesters: []string{"eviction.k8s.io"}, want: true},
		"callers, others": {requesters: []string{"a.example.com", "eviction.k8s.io", "b.example.com"}, others: []string{"a.example.com", "b.example.com"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := &coordinationv1alpha1.EvictionRequest{}
			for _, requester := range test.requesters {
				request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: requester})
			}
			if got := IsRequestedByCalls(request); got != test.want {
				t.Errorf("got %t", got)
			}
			others := []string{}
			for _, requester := range RequestersWithoutCalls(request) {
				others = append(others, requester.Name)
			}
			if !slices.Equal(others, test.others) {
				t.Errorf("others are %v, want %v", others, test.others)
			}
			if len(request.Spec.Requesters) != len(test.requesters) {
				t.Error("the request has changed")
			}
		})
	}
}

// What the annotations say counts only together, and only while there are callers: anybody may have written them before.
func TestAreEvictionCallsRepeated(t *testing.T) {
	const cordon, repeat = "coordination.k8s.io/eviction-call-cordon", "coordination.k8s.io/eviction-calls-repeat"
	for name, test := range map[string]struct {
		requester   string
		annotations map[string]string
		want        bool
	}{
		"a drain":               {requester: "eviction.k8s.io", annotations: map[string]string{cordon: "a/5", repeat: "true"}, want: true},
		"without callers":       {requester: "drain.example.com", annotations: map[string]string{cordon: "a/5", repeat: "true"}},
		"on a schedulable node": {requester: "eviction.k8s.io", annotations: map[string]string{repeat: "true"}},
		"called once":           {requester: "eviction.k8s.io", annotations: map[string]string{cordon: "a/5"}},
		"another value":         {requester: "eviction.k8s.io", annotations: map[string]string{cordon: "a/5", repeat: "yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := &coordinationv1alpha1.EvictionRequest{}
			request.Annotations, request.Spec.Requesters = test.annotations, []coordinationv1alpha1.Requester{{Name: test.requester}}
			if got := AreEvictionCallsRepeated(request); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestRequestedByCall(t *testing.T) {
	answer := func(change func(*metav1.StatusDetails)) error {
		err := apierrors.NewTooManyRequests("Eviction triggered evacuation", 0)
		err.ErrStatus.Details = &metav1.StatusDetails{
			Group: "coordination.k8s.io", Kind: "evictionrequests", Name: "pod-uid", UID: "request-uid",
			Causes: []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionInterceptedCause}},
		}
		change(err.ErrStatus.Details)
		return fmt.Errorf("evicting: %w", err)
	}
	for name, test := range map[string]struct {
		answer error
		want   bool
	}{
		"no error":              {},
		"another error":         {answer: errors.New("no connection")},
		"a budget":              {answer: apierrors.NewTooManyRequests("no", 0)},
		"requested":             {answer: answer(func(*metav1.StatusDetails) {}), want: true},
		"refused":               {answer: answer(func(d *metav1.StatusDetails) { *d = metav1.StatusDetails{Causes: d.Causes} })},
		"without cause":         {answer: answer(func(d *metav1.StatusDetails) { d.Causes = nil })},
		"without UID":           {answer: answer(func(d *metav1.StatusDetails) { d.UID = "" })},
		"of another kind":       {answer: answer(func(d *metav1.StatusDetails) { d.Kind = "pods" })},
		"of another group":      {answer: answer(func(d *metav1.StatusDetails) { d.Group = "lifecycle.k8s.io" })},
		"an error without body": {answer: &apierrors.StatusError{}},
	} {
		t.Run(name, func(t *testing.T) {
			name, uid, requested := RequestedByCall(test.answer)
			if requested != test.want {
				t.Errorf("requested is %t, want %t", requested, test.want)
			}
			if test.want && (name != "pod-uid" || uid != "request-uid") || !test.want && (name != "" || uid != "") {
				t.Errorf("got the request %q with UID %q", name, uid)
			}
		})
	}
}

func TestEvictionCallCordon(t *testing.T) {
	node := func(uid types.UID, version string, unschedulable bool) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: uid, ResourceVersion: version}, Spec: v1.NodeSpec{Unschedulable: unschedulable}}
	}
	if got := EvictionCallCordon(node("a", "5", false)); got != "" {
		t.Errorf("a schedulable node is noted as %q", got)
	}
	request := &coordinationv1alpha1.EvictionRequest{}
	if WasEvictionCallCordoned(request, node("", "", true)) || IsUncordonedSinceEvictionCall(request, node("", "6", false)) {
		t.Error("a request without calls was called on a cordoned node")
	}
	request.Annotations = map[string]string{"coordination.k8s.io/eviction-call-cordon": EvictionCallCordon(node("a", "5", true))}
	for _, test := range []struct {
		node                 *v1.Node
		cordoned, uncordoned bool
	}{
		{node: node("a", "5", true), cordoned: true},
		{node: node("a", "6", true), cordoned: true},
		{node: node("a", "6", false), cordoned: true, uncordoned: true},
		{node: node("a", "10", false), cordoned: true, uncordoned: true},
		{node: node("a", "4", false), cordoned: true},
		{node: node("b", "6", false)},
	} {
		if got := WasEvictionCallCordoned(request, test.node); got != test.cordoned {
			t.Errorf("%s: cordoned is %t", test.node.ResourceVersion, got)
		}
		if got := IsUncordonedSinceEvictionCall(request, test.node); got != test.uncordoned {
			t.Errorf("%s: uncordoned is %t", test.node.ResourceVersion, got)
		}
	}
}
