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
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// responding adds a responder with a priority.
func (p podStory) responding(name string, priority int32) podStory {
	p.Spec.EvictionResponders = append(p.Spec.EvictionResponders, corev1.EvictionResponder{Name: name, Priority: ptr.To(priority)})
	return p
}

const (
	early = "example.com/early"
	late  = "example.com/late"
)

// respondingNode has pods whose responders act before, between and after others.
func respondingNode() []any {
	replaced := newPod("web-0", "node-1", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet).responding(late, 5000).responding(early, 20000)
	// Its request is older than the gate.
	asked := newPod("old-0", "node-1", migrate).asked()
	asked = asked.responding(early, 20000)
	return []any{
		newNode("node-1"), newDeployment("web"), replaced, asked,
		newPod("db-0", "node-1", migrate).ownedBy("StatefulSet").responding(late, 5000).responding(early, 20000),
		newPod("proxy-x", "node-1").ownedBy("DaemonSet").responding(late, 5000),
	}
}

func TestPlanOfResponders(t *testing.T) {
	for name, support := range map[string]responderSupport{"responders": respondersIfGate, "responders-not-served": respondersNotServed, "responders-unknown": respondersUnknown} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(respondingNode()...)
			s.responders = support
			golden(t, "plan/"+name, renderPlan(mustPlan(t, s, "", maintenance.StandardPlan(), "node-1"), defaultWidth, testNow))
		})
	}
	s := snapshotOf(respondingNode()...)
	s.responders = respondersIfGate
	p := mustPlan(t, s, "", maintenance.StandardPlan(), "node-1")
	for name, want := range map[string]podPlan{
		"web-0": {
			Interceptors: []string{early, late, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet, coordinationv1alpha1.EvictionInterceptorImperative},
		},
		"db-0":    {Interceptors: []string{early, migrate, late, coordinationv1alpha1.EvictionInterceptorImperative}},
		"old-0":   {Interceptors: []string{migrate, coordinationv1alpha1.EvictionInterceptorImperative}, IdleResponders: []string{early}},
		"proxy-x": {Interceptors: []string{late, coordinationv1alpha1.EvictionInterceptorDaemonSet, coordinationv1alpha1.EvictionInterceptorImperative}},
	} {
		got := podOf(p, name)
		if diff := cmp.Diff(want, podPlan{Interceptors: got.Interceptors, IdleResponders: got.IdleResponders}); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", name, diff)
		}
	}
	// A request has room for 16, with the last one.
	crowded := newPod("full-0", "node-1", migrate).responding(late, 5000).responding(early, 20000)
	for i := range evictioninterceptor.MaxOnPod - 2 {
		crowded.Spec.EvictionInterceptors = append(crowded.Spec.EvictionInterceptors, corev1.EvictionInterceptor{Name: fmt.Sprintf("i%d.example.com", i)})
	}
	full := snapshotOf(newNode("node-1"), crowded)
	full.responders = respondersIfGate
	if got := podOf(mustPlan(t, full, "", maintenance.StandardPlan(), "node-1"), "full-0"); len(got.IdleResponders) != 1 || got.IdleResponders[0] != late {
		t.Errorf("without room: %v", got.IdleResponders)
	}
	if p.Summary.Intercepted != 4 || p.Summary.IdleResponders != 1 {
		t.Errorf("unexpected summary: %+v", p.Summary)
	}
}

// TestPlanAsksForResponders verifies that only pods with responders cost a request, and what its answers mean.
func TestPlanAsksForResponders(t *testing.T) {
	const idle, ifGate = "does not act: responder example.com/save", "If the feature gate LifecycleEvictions is off"
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		pod        podStory
		served     bool
		err        error
		out, lacks string
		failure    string
	}{
		"no responders": {pod: newPod("a-0", "node-1"), served: true, out: "Summary: 1 pod", lacks: "responders"},
		"served":        {pod: newPod("a-0", "node-1").responding("example.com/save", 5000), served: true, out: ifGate, lacks: idle},
		"not served":    {pod: newPod("a-0", "node-1").responding("example.com/save", 5000), out: idle, lacks: ifGate},
		"may not ask":   {pod: newPod("a-0", "node-1").responding("example.com/save", 5000), err: forbidden, out: "which you may not ask it", lacks: idle},
		"does not answer": {pod: newPod("a-0", "node-1").responding("example.com/save", 5000), err: apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get", schema.GroupResource{}, "", "", 0, false),
			failure: "asking the server whether it serves lifecycle.k8s.io/v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"), tc.pod)
			version := lifecyclev1alpha1.SchemeGroupVersion.String()
			if tc.served {
				s.Resources = append(s.Resources, &metav1.APIResourceList{GroupVersion: version})
			}
			const others = 2 // Which of our resources are served is asked before, for NodeMaintenances and for budgets.
			asks := 0
			s.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
				asks++
				return asks > others && tc.err != nil, nil, tc.err
			})
			out := strings.Join(strings.Fields(s.run(t, "plan", "node-1")), " ")
			contains(t, out, tc.out)
			contains(t, s.failure, tc.failure)
			if tc.lacks != "" && strings.Contains(out, tc.lacks) {
				t.Errorf("says %q:\n%s", tc.lacks, out)
			}
			if want := others + min(1, len(tc.pod.Spec.EvictionResponders)); asks != want {
				t.Errorf("asked %d times what is served, want %d", asks, want)
			}
			if writes := s.writes(); len(writes) > 0 {
				t.Errorf("wrote: %v", writes)
			}
		})
	}
}
