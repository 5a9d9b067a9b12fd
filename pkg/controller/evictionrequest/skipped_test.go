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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
)

const skippedMessage = "spec.escalation of NodeMaintenance kernel, 1h0m0s after it began with node n1"

// skipped is what the nodemaintenance-controller writes when the interceptors are to be passed over.
var skipped = condition(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped, metav1.ConditionTrue,
	coordinationv1alpha1.EvictionRequestReasonMaintenanceEscalation, skippedMessage, time.Second)

func TestComputeStatusSkips(t *testing.T) {
	const now = 5 * time.Second
	ofDaemonSet := ownedBy("DaemonSet", true)
	tests := map[string]struct {
		before, want []func(*coordinationv1alpha1.EvictionRequestStatus)
		pod          *v1.Pod
		request      func(*coordinationv1alpha1.EvictionRequest)
		nextSync     time.Duration
	}{
		"one that has not reported, and those after it": {
			before: statusOf(targets(first, second), active(first, 0), skipped),
			want:   statusOf(targets(first, second), processed(first, second), active(builtIn, now), skipped),
		},
		"one that is in the middle of its work": {
			before: statusOf(targets(first, second), active(first, 0), reporting(alive(first, time.Second, 4*time.Second)), skipped),
			want:   statusOf(targets(first, second), processed(first, second), active(builtIn, now), reporting(alive(first, time.Second, 4*time.Second)), skipped),
		},
		"one that cannot be canceled": {
			request: cancellationForbidden,
			before:  statusOf(targets(first), active(first, 0), skipped),
			want:    statusOf(targets(first), processed(first), active(builtIn, now), skipped),
		},
		"one after another that has completed": {
			before: statusOf(targets(first, second), active(first, 0), reporting(done(first, 0)), skipped),
			want:   statusOf(targets(first, second), processed(first, second), active(builtIn, now), reporting(done(first, 0)), skipped),
		},
		"not the built-in one": {
			before: statusOf(targets(first), processed(first), active(builtIn, 0), skipped),
			want:   statusOf(targets(first), processed(first), active(builtIn, 0), skipped),
		},
		"nothing after the built-in one has completed": {
			before: statusOf(targets(), processed(builtIn), activatedLast(0), skipped),
			want:   statusOf(targets(), processed(builtIn), activatedLast(0), skipped),
		},
		"not the only one that can stop the pod": {
			pod:      newPod(ofDaemonSet),
			before:   statusOf(targets(daemonSet), active(daemonSet, 0), skipped),
			want:     statusOf(targets(daemonSet), active(daemonSet, 0), skipped),
			nextSync: 55 * time.Second,
		},
		"up to the only one that can stop the pod": {
			pod:      newPod(ofDaemonSet),
			before:   statusOf(targets(first, daemonSet, second), active(first, 0), skipped),
			want:     statusOf(targets(first, daemonSet, second), processed(first), active(daemonSet, now), skipped),
			nextSync: time.Minute,
		},
		"those after the only one that can stop the pod, which has completed": {
			pod:    newPod(ofDaemonSet),
			before: statusOf(targets(daemonSet, second), active(daemonSet, 0), reporting(done(daemonSet, 0)), skipped),
			want:   statusOf(targets(daemonSet, second), processed(daemonSet, second), active(builtIn, now), reporting(done(daemonSet, 0)), skipped),
		},
		"the interceptor of DaemonSets on other pods": {
			before: statusOf(targets(daemonSet), active(daemonSet, 0), skipped),
			want:   statusOf(targets(daemonSet), processed(daemonSet), active(builtIn, now), skipped),
		},
		"none while the pod terminates": {
			pod:      newPod(terminatingSince(0)),
			before:   statusOf(targets(first), active(first, 0), skipped),
			want:     statusOf(targets(first), active(first, 0), skipped),
			nextSync: 55 * time.Second,
		},
		"none while the condition is not True": {
			before: statusOf(targets(first), active(first, 0), condition(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped,
				metav1.ConditionFalse, "NotYet", "", 0)),
			want: statusOf(targets(first), active(first, 0), condition(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped,
				metav1.ConditionFalse, "NotYet", "", 0)),
			nextSync: 55 * time.Second,
		},
		"none of a request that is canceled at the same time": {
			request: withoutRequesters,
			before:  statusOf(targets(first), active(first, 0), skipped),
			want: statusOf(targets(first), processed(first), activatedLast(0), skipped, condition(canceled, metav1.ConditionTrue,
				coordinationv1alpha1.EvictionRequestReasonNoRequesters, "The last requester was removed from spec.requesters.", now)),
		},
		"none before they are recorded": {
			pod:      newPod(interceptedBy(first)),
			before:   statusOf(skipped),
			want:     statusOf(skipped, targets(first), active(first, now)),
			nextSync: time.Minute,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod, request, want := test.pod, newRequest(having(test.before...)), newStatus(test.want...)
			if pod == nil {
				pod = newPod()
			}
			if test.request != nil {
				test.request(request)
				want.EvictionRequestCancellationPolicy = request.Status.EvictionRequestCancellationPolicy
			}
			unchanged := request.DeepCopy()
			got, nextSync := computeStatus(start.Add(now), time.Time{}, request, pod)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected status (-want, +got):\n%s", diff)
			}
			if nextSync != test.nextSync {
				t.Errorf("next sync after %s, want %s", nextSync, test.nextSync)
			}
			if diff := cmp.Diff(unchanged, request); diff != "" {
				t.Errorf("the request, which is in a shared cache, was changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// statusOf lists changes of a status.
func statusOf(changes ...func(*coordinationv1alpha1.EvictionRequestStatus)) []func(*coordinationv1alpha1.EvictionRequestStatus) {
	return changes
}

// TestSkippedIsReported checks the events and the metric: each interceptor that is passed over is named
// with the reason, and one that completed or timed out before is not called skipped.
func TestSkippedIsReported(t *testing.T) {
	warning := func(name string) []string {
		text := ": Warning InterceptorSkipped: Passed over interceptor " + name + ": " + skippedMessage
		return []string{"EvictionRequest" + text, "Pod" + text}
	}
	activated := "EvictionRequest: Normal InterceptorActivated: Activated interceptor imperative-eviction.k8s.io."
	lastActivated := change{kind: changeActivated, interceptor: builtIn}
	tests := map[string]struct {
		before []func(*coordinationv1alpha1.EvictionRequestStatus)
		want   []change
		events []string
	}{
		"two": {
			before: statusOf(targets(first, second), active(first, 0), skipped),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "skipped"},
				{kind: changeProcessed, interceptor: second, outcome: "skipped"}, lastActivated},
			events: append(append(warning(first), warning(second)...), activated),
		},
		"one, and one has completed": {
			before: statusOf(targets(first, second), active(first, 0), reporting(done(first, 0)), skipped),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "completed"},
				{kind: changeProcessed, interceptor: second, outcome: "skipped"}, lastActivated},
			events: append(append([]string{"EvictionRequest: Normal InterceptorCompleted: Interceptor first.example.com completed."}, warning(second)...), activated),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			metrics.Register()
			legacyregistry.Reset()
			f := newFixture(t)
			request := newRequest(having(test.before...))
			status, _ := computeStatus(start.Add(time.Second), time.Time{}, request, newPod())
			got := computeChanges(&request.Status, status)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(change{})); diff != "" {
				t.Errorf("unexpected changes (-want, +got):\n%s", diff)
			}
			recordEvents(f, request, got)
			if diff := cmp.Diff(test.events, eventLines(f)); diff != "" {
				t.Errorf("unexpected events (-want, +got):\n%s", diff)
			}
			measure(request, status, got, start)
			counted := 0
			for _, c := range test.want {
				if c.outcome == "skipped" {
					counted++
				}
			}
			if count := countSkipped(t); count != counted {
				t.Errorf("the metric has counted %d interceptors as skipped, not %d", count, counted)
			}
		})
	}
}

// countSkipped returns how many interceptors the metric has counted as skipped.
func countSkipped(t *testing.T) int {
	t.Helper()
	count := 0
	for _, name := range []string{first, second} {
		values, err := testutil.GetCounterValuesFromGatherer(legacyregistry.DefaultGatherer,
			"evictionrequest_controller_processed_interceptors_total", map[string]string{"interceptor": name}, "outcome")
		if err != nil {
			t.Fatal(err)
		}
		count += int(values["skipped"])
	}
	return count
}
