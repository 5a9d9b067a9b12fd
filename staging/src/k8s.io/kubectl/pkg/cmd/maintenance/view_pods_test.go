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

package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// lists returns how often each resource was listed.
func (s *server) lists() map[string]int {
	lists := map[string]int{}
	for _, action := range s.Actions() {
		if action.GetVerb() == "list" {
			lists[action.GetResource().Resource]++
		}
	}
	return lists
}

// TestPodsAreReadInPages covers plans of so many nodes that all pods are listed. Pods of other
// nodes are not kept.
func TestPodsAreReadInPages(t *testing.T) {
	s := newServer(t)
	pages := [][]corev1.Pod{{*newPod("a", "node-1").Pod, *newPod("b", "other").Pod}, {*newPod("c", "node-2").Pod}}
	pages[0][0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	asked := 0
	s.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		if options.Limit == 0 || options.Continue != []string{"", "1"}[asked] {
			t.Errorf("request %d: limit %d, continue %q", asked, options.Limit, options.Continue)
		}
		page := &corev1.PodList{Items: pages[asked]}
		if asked++; asked < len(pages) {
			page.Continue = fmt.Sprint(asked)
		}
		return true, page, nil
	})
	read := &podSnapshot{}
	if err := read.readPods(t.Context(), s, sets.New("node-1", "node-2"), []string{""}); err != nil {
		t.Fatal(err)
	}
	if asked != 2 || len(read.pods) != 2 || len(read.pods["node-1"]) != 1 || len(read.pods["node-2"]) != 1 || read.pods["node-1"][0].ManagedFields != nil {
		t.Errorf("%d requests, %v", asked, read.pods)
	}
}

// Pods of a PodGroup are evicted like others, unless the group says that it is disrupted as a whole.
func TestPodsOfGroups(t *testing.T) {
	group := func(name string, mode *schedulingv1beta1.DisruptionMode) *schedulingv1beta1.PodGroup {
		return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: schedulingv1beta1.PodGroupSpec{DisruptionMode: mode}}
	}
	child := func(name, parent string) *schedulingv1beta1.PodGroup {
		child := group(name, nil)
		child.Spec.ParentCompositePodGroupName = &parent
		return child
	}
	composite := func(namespace, name string, mode *schedulingv1alpha3.CompositeDisruptionMode) *schedulingv1alpha3.CompositePodGroup {
		return &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: schedulingv1alpha3.CompositePodGroupSpec{DisruptionMode: mode}}
	}
	all := &schedulingv1alpha3.CompositeDisruptionMode{All: &schedulingv1alpha3.AllCompositeDisruptionMode{}}
	alone := []runtime.Object{group("default", nil), group("single", &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}),
		group("all", &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}})}
	below := append([]runtime.Object{child("below-single", "single"), child("below-all", "all"), child("below-missing", "missing"),
		composite("shop", "single", nil), composite("shop", "all", all), composite("other", "missing", nil)}, alone...)
	for _, tc := range []struct {
		objects    []runtime.Object
		grouped    map[string]bool
		unreadable string
		reads      int
	}{
		{objects: alone, grouped: map[string]bool{"": false, "default": false, "single": false, "all": true, "missing": true}, reads: 4},
		{objects: below, grouped: map[string]bool{"default": false, "all": true, "below-single": false, "below-all": true, "below-missing": true}, reads: 10},
		{objects: below, grouped: map[string]bool{"default": false, "all": true, "below-single": true, "below-all": true}, unreadable: "compositepodgroups", reads: 8},
		{objects: below, grouped: map[string]bool{"default": true, "below-single": true}, unreadable: "podgroups", reads: 2},
	} {
		client := fake.NewClientset(tc.objects...)
		client.PrependReactor("list", cmp.Or(tc.unreadable, "none"), func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
		})
		for name, want := range tc.grouped {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
			if name != "" {
				pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
			}
			s := &podSnapshot{}
			s.readGroups(t.Context(), client, []*corev1.Pod{pod})
			if got := slices.Contains(s.notesOf(pod), noteSchedulingGroup); got != want {
				t.Errorf("group %q without %q: grouped: %t, want %t", name, tc.unreadable, got, want)
			}
		}
		if len(client.Actions()) != tc.reads {
			t.Errorf("%d reads, want %d: none for a pod without a group, and none of parents that no group has", len(client.Actions()), tc.reads)
		}
	}
}
