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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// life is an eviction as this controller writes it, and what it then says to others of
// what keeps the pod.
type life struct {
	pod     *v1.Pod
	request *coordinationv1alpha1.EvictionRequest
	seen    []string
}

func newLife(changes ...func(*v1.Pod)) *life {
	return &life{pod: newPod(changes...), request: newRequest(deadlineOf(1200))}
}

// passes lets the controller look at the request at a time after its creation.
func (l *life) passes(offset time.Duration) {
	status, _ := computeStatus(at(offset).Time, time.Time{}, l.request, l.pod)
	l.request.Status = *status
	l.look(offset)
}

// ends lets the controller notice that the pod is gone; others may still see it.
func (l *life) ends(offset time.Duration) {
	status, _ := computeStatus(at(offset).Time, time.Time{}, l.request, nil)
	l.request.Status, l.pod.DeletionTimestamp = *status, nil
	l.look(offset)
}

// acts lets somebody write to the status.
func (l *life) acts(offset time.Duration, write func(*coordinationv1alpha1.EvictionRequestStatus)) {
	write(&l.request.Status)
	l.look(offset)
}

func (l *life) look(offset time.Duration) {
	budgets := func(*v1.Pod) []*policyv1.PodDisruptionBudget {
		return []*policyv1.PodDisruptionBudget{newBudget("web")}
	}
	hold, held := maintenance.HoldOf(l.pod, l.request, budgets, at(offset).Time)
	if !held {
		l.seen = append(l.seen, fmt.Sprintf("%v: free", offset))
		return
	}
	text := fmt.Sprintf("%v: %s", offset, hold.Cause)
	if hold.Name != "" {
		text += " " + hold.Name
	}
	l.seen = append(l.seen, text)
}

// TestHolds checks that what component-helpers reads from a request is what this
// controller has meant.
func TestHolds(t *testing.T) {
	for _, tc := range []struct {
		name string
		tell func() *life
		want []string
	}{
		{
			name: "interceptor, budget, termination",
			tell: func() *life {
				l := newLife(interceptedBy(first))
				l.look(0)
				l.passes(0)
				l.passes(61 * time.Second)
				l.acts(70*time.Second, reporting(alive(first, 70*time.Second, 70*time.Second)))
				l.passes(71 * time.Second)
				l.acts(2*time.Minute, reporting(done(first, 2*time.Minute)))
				l.passes(2 * time.Minute)
				l.acts(3*time.Minute, func(status *coordinationv1alpha1.EvictionRequestStatus) {
					recordRefusal(at(3*time.Minute).Time, status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, "a webhook refuses")
				})
				l.acts(4*time.Minute, func(status *coordinationv1alpha1.EvictionRequestStatus) {
					recordRefusal(at(4*time.Minute).Time, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "no room")
				})
				terminatingSince(5 * time.Minute)(l.pod)
				l.passes(5 * time.Minute)
				l.passes(6 * time.Minute)
				l.ends(7 * time.Minute)
				return l
			},
			want: []string{
				"0s: Evicting",
				"0s: Interceptor first.example.com",
				"1m1s: InterceptorUnresponsive first.example.com",
				"1m10s: InterceptorUnresponsive first.example.com",
				"1m11s: Interceptor first.example.com",
				"2m0s: Interceptor first.example.com",
				"2m0s: Evicting",
				"3m0s: EvictionRefused",
				"4m0s: DisruptionBudget prod/web",
				"5m0s: Terminating",
				"6m0s: StuckTerminating",
				"7m0s: free",
			},
		},
		{
			name: "DaemonSet pod that nobody handles",
			tell: func() *life {
				l := newLife(ownedBy("DaemonSet", true))
				l.passes(0)
				l.passes(2 * time.Minute)
				// Nobody behind it could end the pod: it has no deadline.
				l.passes(20 * time.Minute)
				l.passes(24 * time.Hour)
				return l
			},
			want: []string{
				"0s: Interceptor daemonset.apps.k8s.io",
				"2m0s: InterceptorUnresponsive daemonset.apps.k8s.io",
				"20m0s: InterceptorUnresponsive daemonset.apps.k8s.io",
				"24h0m0s: InterceptorUnresponsive daemonset.apps.k8s.io",
			},
		},
		{
			name: "called off",
			tell: func() *life {
				l := newLife()
				l.passes(0)
				l.acts(time.Minute, func(status *coordinationv1alpha1.EvictionRequestStatus) {
					recordRefusal(at(time.Minute).Time, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "no room")
				})
				withoutRequesters(l.request)
				l.passes(2 * time.Minute)
				return l
			},
			want: []string{"0s: Evicting", "1m0s: DisruptionBudget prod/web", "2m0s: free"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.tell().seen); diff != "" {
				t.Errorf("holds (-want, +got):\n%s", diff)
			}
		})
	}
}
