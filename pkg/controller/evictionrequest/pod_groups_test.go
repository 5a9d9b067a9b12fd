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
	"slices"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/scheduling/podgroup"
	"k8s.io/kubernetes/test/utils/ktesting"
	"k8s.io/utils/ptr"
)

// TestPodsOfGroups: pods of a group that may be disrupted independently are like any others.
func TestPodsOfGroups(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "batch"}
	composite := func(name, parent string, mode *schedulingv1alpha3.CompositeDisruptionMode) runtime.Object {
		group := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: schedulingv1alpha3.CompositePodGroupSpec{DisruptionMode: mode}}
		if parent != "" {
			group.Spec.ParentCompositePodGroupName = &parent
		}
		return group
	}
	allAbove := &schedulingv1alpha3.CompositeDisruptionMode{All: &schedulingv1alpha3.AllCompositeDisruptionMode{}}
	child := &schedulingv1beta1.PodGroup{ObjectMeta: meta, Spec: schedulingv1beta1.PodGroupSpec{ParentCompositePodGroupName: ptr.To("job")}}
	beta := func(mode *schedulingv1beta1.DisruptionMode) *schedulingv1beta1.PodGroup {
		return &schedulingv1beta1.PodGroup{ObjectMeta: meta, Spec: schedulingv1beta1.PodGroupSpec{DisruptionMode: mode}}
	}
	for name, test := range map[string]struct {
		group   runtime.Object
		above   []runtime.Object
		err     map[string]error
		want    podgroup.Mode
		wantErr string
	}{
		"no mode":                   {group: beta(nil), want: podgroup.Single},
		"a mode of a later release": {group: beta(&schedulingv1beta1.DisruptionMode{}), want: podgroup.Unknown},
		"single":                    {group: beta(&schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}), want: podgroup.Single},
		"all":                       {group: beta(&schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}), want: podgroup.All},
		"no such group":             {want: podgroup.Unknown},
		"it cannot be read":         {group: beta(nil), err: map[string]error{"podgroups": errUnreachable}, wantErr: "reading PodGroup batch"},
		"all ancestors are single":  {group: child, above: []runtime.Object{composite("job", "run", nil), composite("run", "", nil)}, want: podgroup.Single},
		"an ancestor is all":        {group: child, above: []runtime.Object{composite("job", "run", nil), composite("run", "", allAbove)}, want: podgroup.All},
		"no such parent":            {group: child, want: podgroup.Unknown},
		"the parent cannot be read": {group: child, err: map[string]error{"compositepodgroups": errUnreachable}, wantErr: "reading CompositePodGroup job"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if test.group != nil {
				objects = append(objects, test.group)
			}
			client := fake.NewClientset(append(objects, test.above...)...)
			client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				err := test.err[action.GetResource().Resource]
				return err != nil, nil, err
			})
			if got, err := newGroupReader(client)(t.Context(), namespace, "batch"); got != test.want || (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got mode %d and error %v, want %d", got, err, test.want)
			}
			pod := newPod()
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("batch")}
			f := newFixture(t, newRequest(), pod)
			f.Controller.groups = newGroupReader(client)
			_, ctx := ktesting.NewTestContext(t)
			err := f.syncRequest(ctx, requestKeyOfPod)
			status := f.writes(t)
			switch {
			case test.wantErr != "":
				if err == nil || len(status) > 0 {
					t.Errorf("got error %v and %v", err, status)
				}
			case err != nil || len(status) != 1:
				t.Fatalf("got error %v and %v", err, status)
			case test.want == podgroup.Single && !slices.Equal(status[0].ActiveInterceptors, []string{builtIn}),
				test.want != podgroup.Single && (len(status[0].ActiveInterceptors) > 0 || status[0].Conditions[0].Type != string(canceled)):
				t.Errorf("got %v", status)
			}
			if pod.Spec.SchedulingGroup == nil {
				t.Error("the cached pod has lost its group")
			}
		})
	}
}

// A group without a name is not known, so that its pods are not evicted on their own.
func TestGroupWithoutAName(t *testing.T) {
	pod := newPod()
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{}
	for name, request := range map[string]*coordinationv1alpha1.EvictionRequest{"new": newRequest(), "decided": newRequest(imperativeActive())} {
		f := newFixture(t, request, pod)
		if got, err := f.asIndividual(t.Context(), request, pod); err != nil || got.Spec.SchedulingGroup == nil {
			t.Errorf("%s: got %v, error %v, want that it keeps its group", name, got, err)
		}
	}
}

// The group is read once: what was decided stays.
func TestGroupIsReadOnce(t *testing.T) {
	pod := newPod()
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("batch")}
	f := newFixture(t, newRequest(imperativeActive()), pod)
	client := fake.NewClientset()
	f.Controller.groups = newGroupReader(client)
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err != nil || len(client.Actions()) > 0 || len(f.writes(t)) > 0 {
		t.Errorf("error %v, reads %v, writes %v", err, client.Actions(), f.writes(t))
	}
}
