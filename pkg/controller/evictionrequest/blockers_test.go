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

// evictionRun is an eviction as this controller writes it, with the blockers that component-helpers
// derives from it.
type evictionRun struct {
	pod     *v1.Pod
	request *coordinationv1alpha1.EvictionRequest
	seen    []string
}

func newEvictionRun(changes ...func(*v1.Pod)) *evictionRun {
	return &evictionRun{pod: newPod(changes...), request: newRequest(deadlineOf(1200))}
}

// sync syncs the request at a time after its creation.
func (l *evictionRun) sync(offset time.Duration) {
	status, _ := computeStatus(at(offset).Time, time.Time{}, l.request, l.pod)
	l.request.Status = *status
	l.observe(offset)
}

// podGone syncs the request after the pod is gone. Others may still have the pod in their cache.
func (l *evictionRun) podGone(offset time.Duration) {
	status, _ := computeStatus(at(offset).Time, time.Time{}, l.request, nil)
	l.request.Status, l.pod.DeletionTimestamp = *status, nil
	l.observe(offset)
}

// write lets another client write to the status.
func (l *evictionRun) write(offset time.Duration, write func(*coordinationv1alpha1.EvictionRequestStatus)) {
	write(&l.request.Status)
	l.observe(offset)
}

func (l *evictionRun) observe(offset time.Duration) {
	budgets := func(*v1.Pod) []*policyv1.PodDisruptionBudget {
		return []*policyv1.PodDisruptionBudget{newBudget("web")}
	}
	blocker, held := maintenance.BlockerOf(l.pod, l.request, budgets, at(offset).Time)
	if !held {
		l.seen = append(l.seen, fmt.Sprintf("%v: free", offset))
		return
	}
	text := fmt.Sprintf("%v: %s", offset, blocker.Cause)
	if blocker.Name != "" {
		text += " " + blocker.Name
	}
	l.seen = append(l.seen, text)
}

// TestBlockers checks that component-helpers derives the right blockers from the requests that this
// controller writes.
func TestBlockers(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func() *evictionRun
		want []string
	}{
		{
			name: "interceptor, budget, termination",
			run: func() *evictionRun {
				l := newEvictionRun(interceptedBy(first))
				l.observe(0)
				l.sync(0)
				l.sync(61 * time.Second)
				l.write(70*time.Second, reporting(alive(first, 70*time.Second, 70*time.Second)))
				l.sync(71 * time.Second)
				l.write(2*time.Minute, reporting(done(first, 2*time.Minute)))
				l.sync(2 * time.Minute)
				l.write(3*time.Minute, func(status *coordinationv1alpha1.EvictionRequestStatus) {
					recordRefusal(at(3*time.Minute).Time, status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, "a webhook refuses")
				})
				l.write(4*time.Minute, func(status *coordinationv1alpha1.EvictionRequestStatus) {
					recordRefusal(at(4*time.Minute).Time, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "no disruptions allowed")
				})
				terminatingSince(5 * time.Minute)(l.pod)
				l.sync(5 * time.Minute)
				l.sync(6 * time.Minute)
				l.podGone(7 * time.Minute)
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
			name: "DaemonSet pod without an interceptor that acts",
			run: func() *evictionRun {
				l := newEvictionRun(ownedBy("DaemonSet", true))
				l.sync(0)
				l.sync(2 * time.Minute)
				// No other interceptor could stop the pod, so there is no deadline.
				l.sync(20 * time.Minute)
				l.sync(24 * time.Hour)
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
			name: "canceled",
			run: func() *evictionRun {
				l := newEvictionRun()
				l.sync(0)
				l.write(time.Minute, func(status *coordinationv1alpha1.EvictionRequestStatus) {
					recordRefusal(at(time.Minute).Time, status, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "no disruptions allowed")
				})
				withoutRequesters(l.request)
				l.sync(2 * time.Minute)
				return l
			},
			want: []string{"0s: Evicting", "1m0s: DisruptionBudget prod/web", "2m0s: free"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.run().seen); diff != "" {
				t.Errorf("blockers (-want, +got):\n%s", diff)
			}
		})
	}
}
