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
)

func TestComputeStatus(t *testing.T) {
	const (
		noRequesters     = coordinationv1alpha1.EvictionRequestReasonNoRequesters
		validationFailed = coordinationv1alpha1.EvictionRequestReasonValidationFailed
		podDeleted       = coordinationv1alpha1.EvictionRequestReasonPodDeleted
		podTerminal      = coordinationv1alpha1.EvictionRequestReasonPodTerminal
		lastLeft         = "The last requester was removed from spec.requesters."
		wasDeleted       = "Target Pod web-0 was deleted."
		isGrouped        = "Target Pod web-0 references a SchedulingGroup whose pods are not evicted individually."
	)
	const (
		overdue = coordinationv1alpha1.EvictionRequestReasonHeartbeatOverdue
		inTime  = coordinationv1alpha1.EvictionRequestReasonHeartbeatInTime
	)
	silent := func(since time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
		return condition(unresponsive, metav1.ConditionTrue, overdue,
			"Interceptor first.example.com has sent no heartbeat since it was activated at 2026-05-04T10:00:00Z.", since)
	}
	notStarted := func(name string, since time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
		return condition(unresponsive, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonNotStarted, "Interceptor "+name+
			" has not started since it was activated at 2026-05-04T10:00:00Z. It acts only during a NodeMaintenance of the node, and stays active, because no other interceptor can stop the pod.", since)
	}
	ended := func(name string, offset time.Duration, message string) coordinationv1alpha1.InterceptorStatus {
		entry := done(name, offset)
		entry.Message = message
		return entry
	}
	intercepted := having(targets(first, second), active(first, 0))

	tests := map[string]struct {
		after    time.Duration
		request  *coordinationv1alpha1.EvictionRequest
		pod      *v1.Pod
		want     *coordinationv1alpha1.EvictionRequestStatus
		nextSync time.Duration

		noTimeoutBefore time.Duration
	}{
		"a new request is initialized and its first interceptor activated": {
			after:    3 * time.Second,
			request:  newRequest(deadlineOf(600)),
			pod:      newPod(interceptedBy(first, second)),
			want:     newStatus(targets(first, second), active(first, 3*time.Second)),
			nextSync: time.Minute,
		},
		"a request that nobody wants any more waits for a pod that terminates, and nothing is wrong with it": {
			after:   time.Hour,
			request: newRequest(withoutRequesters, having(targets(first), active(first, 0), blockedByBudget(0))),
			pod:     newPod(terminatingSince(0)),
			want: newStatus(targets(first), active(first, 0), condition(coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionFalse,
				coordinationv1alpha1.EvictionRequestReasonNotBlocked, "The request has no requesters any more, and the pod is leaving.", time.Hour)),
		},
		"so does a request that was not initialized": {
			request: newRequest(withoutRequesters),
			pod:     newPod(terminatingSince(0)),
			want:    newStatus(),
		},
		"the built-in interceptor, which has no deadline, is activated for a pod without interceptors": {
			request: newRequest(),
			pod:     newPod(),
			want:    newStatus(targets(), active(builtIn, 0)),
		},
		"a new request whose pod is missing is canceled": {
			request: newRequest(),
			want:    newStatus(condition(canceled, metav1.ConditionTrue, validationFailed, "Target Pod web-0 was not found.", 0)),
		},
		"a new request whose pod is terminal is evicted": {
			request: newRequest(),
			pod:     newPod(inPhase(v1.PodSucceeded)),
			want:    newStatus(condition(evicted, metav1.ConditionTrue, podTerminal, "Target Pod web-0 finished with phase Succeeded.", 0)),
		},
		"a new request for a pod of a scheduling group is canceled": {
			request: newRequest(),
			pod:     newPod(inSchedulingGroup),
			want:    newStatus(condition(canceled, metav1.ConditionTrue, validationFailed, isGrouped, 0)),
		},
		"a new request without requesters is canceled": {
			request: newRequest(withoutRequesters),
			pod:     newPod(),
			want:    newStatus(condition(canceled, metav1.ConditionTrue, noRequesters, lastLeft, 0)),
		},
		"an interceptor stays active until its deadline": {
			after:    599 * time.Second,
			request:  newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), silent(60*time.Second))),
			pod:      newPod(),
			want:     newStatus(targets(first, second), active(first, 0), silent(60*time.Second)),
			nextSync: time.Second,
		},
		"an interceptor without a heartbeat times out at its deadline": {
			after:   600 * time.Second,
			request: newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), silent(60*time.Second))),
			pod:     newPod(),
			want: newStatus(targets(first, second), processed(first), active(second, 600*time.Second),
				condition(unresponsive, metav1.ConditionFalse, inTime, "No interceptor is overdue.", 600*time.Second)),
			nextSync: time.Minute,
		},
		"an interceptor may take a minute for its first report": {
			after:    59 * time.Second,
			request:  newRequest(deadlineOf(600), intercepted),
			pod:      newPod(),
			want:     newStatus(targets(first, second), active(first, 0)),
			nextSync: time.Second,
		},
		"an interceptor that has not reported after a minute is unresponsive": {
			after:    60 * time.Second,
			request:  newRequest(deadlineOf(600), intercepted),
			pod:      newPod(),
			want:     newStatus(targets(first, second), active(first, 0), silent(60*time.Second)),
			nextSync: 9 * time.Minute,
		},
		"a report clears the condition": {
			after:   70 * time.Second,
			request: newRequest(deadlineOf(600), having(targets(first), active(first, 0), reporting(alive(first, 65*time.Second, 65*time.Second)), silent(60*time.Second))),
			pod:     newPod(),
			want: newStatus(targets(first), active(first, 0), reporting(alive(first, 65*time.Second, 65*time.Second)),
				condition(unresponsive, metav1.ConditionFalse, inTime, "No interceptor is overdue.", 70*time.Second)),
			nextSync: 5*time.Minute - 5*time.Second,
		},
		"an interceptor that has reported before is unresponsive after five minutes": {
			after:   6 * time.Minute,
			request: newRequest(having(targets(first), active(first, 0), reporting(alive(first, 0, time.Minute)))),
			pod:     newPod(),
			want: newStatus(targets(first), active(first, 0), reporting(alive(first, 0, time.Minute)),
				condition(unresponsive, metav1.ConditionTrue, overdue, "Interceptor first.example.com sent its last heartbeat at 2026-05-04T10:01:00Z.", 6*time.Minute)),
			nextSync: 15 * time.Minute,
		},
		"with a short deadline it is unresponsive after three quarters of that": {
			after:    89 * time.Second,
			request:  newRequest(deadlineOf(120), having(targets(first), active(first, 0), reporting(alive(first, 0, 0)))),
			pod:      newPod(),
			want:     newStatus(targets(first), active(first, 0), reporting(alive(first, 0, 0))),
			nextSync: time.Second,
		},
		"a finished request has no unresponsive interceptor": {
			after:   2 * time.Minute,
			request: newRequest(withoutRequesters, having(targets(first), active(first, 0), silent(60*time.Second))),
			pod:     newPod(),
			want: newStatus(targets(first), processed(first), activatedLast(0),
				condition(unresponsive, metav1.ConditionFalse, inTime, "The request is finished.", 2*time.Minute),
				condition(canceled, metav1.ConditionTrue, noRequesters, lastLeft, 2*time.Minute)),
		},
		"a heartbeat extends the deadline": {
			after:    600 * time.Second,
			request:  newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), reporting(alive(first, 0, 301*time.Second)))),
			pod:      newPod(),
			want:     newStatus(targets(first, second), active(first, 0), reporting(alive(first, 0, 301*time.Second))),
			nextSync: time.Second,
		},
		"the next interceptor is activated when the active one completes": {
			after:    5 * time.Second,
			request:  newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), reporting(done(first, 4*time.Second)))),
			pod:      newPod(),
			want:     newStatus(targets(first, second), processed(first), active(second, 5*time.Second), reporting(done(first, 4*time.Second))),
			nextSync: time.Minute,
		},
		"an inactive interceptor that completes changes nothing": {
			request:  newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), reporting(done(second, 0)))),
			pod:      newPod(),
			want:     newStatus(targets(first, second), active(first, 0), reporting(done(second, 0))),
			nextSync: time.Minute,
		},
		"the built-in interceptor comes last and has no deadline": {
			after:   600 * time.Second,
			request: newRequest(deadlineOf(600), having(targets(first, second), processed(first), active(second, 0))),
			pod:     newPod(),
			want:    newStatus(targets(first, second), processed(first, second), active(builtIn, 600*time.Second)),
		},
		"the built-in interceptor never times out": {
			after:   1000 * time.Hour,
			request: newRequest(having(targets(), active(builtIn, 0))),
			pod:     newPod(),
			want:    newStatus(targets(), active(builtIn, 0)),
		},
		"no other interceptor is activated when one has completed and the pod terminates": {
			after:   time.Hour,
			request: newRequest(having(targets(first, second), active(first, 0), reporting(done(first, 0)))),
			pod:     newPod(terminatingSince(0)),
			want:    newStatus(targets(first, second), active(first, 0), reporting(done(first, 0))),
		},
		"the only interceptor that can stop the pod has no deadline": {
			after:   24 * time.Hour,
			request: newRequest(deadlineOf(600), having(targets(daemonSet), active(daemonSet, 0), notStarted(daemonSet, 60*time.Second))),
			pod:     newPod(ownedBy("DaemonSet", true)),
			want:    newStatus(targets(daemonSet), active(daemonSet, 0), notStarted(daemonSet, 60*time.Second)),
		},
		"the only interceptor that can stop the pod has no deadline at any position": {
			after:   24 * time.Hour,
			request: newRequest(deadlineOf(600), having(targets(daemonSet, second), active(daemonSet, 0), notStarted(daemonSet, 60*time.Second))),
			pod:     newPod(ownedBy("DaemonSet", true)),
			want:    newStatus(targets(daemonSet, second), active(daemonSet, 0), notStarted(daemonSet, 60*time.Second)),
		},
		"the DaemonSet interceptor has a deadline on other pods": {
			after:    600 * time.Second,
			request:  newRequest(deadlineOf(600), having(targets(daemonSet, second), active(daemonSet, 0))),
			pod:      newPod(),
			want:     newStatus(targets(daemonSet, second), processed(daemonSet), active(second, 600*time.Second)),
			nextSync: time.Minute,
		},
		"interceptors before it have a deadline": {
			after:    600 * time.Second,
			request:  newRequest(deadlineOf(600), having(targets(first, daemonSet), active(first, 0))),
			pod:      newPod(ownedBy("DaemonSet", true)),
			want:     newStatus(targets(first, daemonSet), processed(first), active(daemonSet, 600*time.Second)),
			nextSync: time.Minute,
		},
		"an interceptor that waits for a maintenance has not started": {
			after:   60 * time.Second,
			request: newRequest(having(targets(daemonSet), active(daemonSet, 0))),
			pod:     newPod(ownedBy("DaemonSet", true)),
			want:    newStatus(targets(daemonSet), active(daemonSet, 0), notStarted(daemonSet, 60*time.Second)),
		},
		"an interceptor that has started and waits is overdue": {
			after:   7 * time.Minute,
			request: newRequest(having(targets(daemonSet), active(daemonSet, 0), reporting(alive(daemonSet, 2*time.Minute, 2*time.Minute)))),
			pod:     newPod(ownedBy("DaemonSet", true)),
			want: newStatus(targets(daemonSet), active(daemonSet, 0), reporting(alive(daemonSet, 2*time.Minute, 2*time.Minute)),
				condition(unresponsive, metav1.ConditionTrue, overdue, "Interceptor daemonset.apps.k8s.io sent its last heartbeat at 2026-05-04T10:02:00Z.", 7*time.Minute)),
		},
		"no interceptor times out right after an outage": {
			after:           time.Hour,
			noTimeoutBefore: time.Hour + time.Second,
			request:         newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), silent(60*time.Second))),
			pod:             newPod(),
			want:            newStatus(targets(first, second), active(first, 0), silent(60*time.Second)),
			nextSync:        time.Second,
		},
		"an interceptor times out some time after an outage": {
			after:           time.Hour,
			noTimeoutBefore: time.Hour,
			request:         newRequest(deadlineOf(600), having(targets(first, second), active(first, 0))),
			pod:             newPod(),
			want:            newStatus(targets(first, second), processed(first), active(second, time.Hour)),
			nextSync:        time.Minute,
		},
		"the deadline applies if the outage was long ago": {
			after:           599 * time.Second,
			noTimeoutBefore: time.Second,
			request:         newRequest(deadlineOf(600), having(targets(first, second), active(first, 0), silent(60*time.Second))),
			pod:             newPod(),
			want:            newStatus(targets(first, second), active(first, 0), silent(60*time.Second)),
			nextSync:        time.Second,
		},
		"a completed interceptor is processed at once, also after an outage": {
			after:           time.Second,
			noTimeoutBefore: time.Hour,
			request:         newRequest(having(targets(first, second), active(first, 0), reporting(done(first, 0)))),
			pod:             newPod(),
			want:            newStatus(targets(first, second), processed(first), active(second, time.Second), reporting(done(first, 0))),
			nextSync:        time.Minute,
		},
		"no interceptor is activated after the last one has completed": {
			after:   time.Second,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(done(builtIn, 0)))),
			pod:     newPod(),
			want:    newStatus(targets(), processed(builtIn), activatedLast(0), reporting(done(builtIn, 0))),
		},
		"a request without an active interceptor does not change": {
			after:   1000 * time.Hour,
			request: newRequest(having(targets(), processed(builtIn), activatedLast(0), reporting(done(builtIn, 0)))),
			pod:     newPod(),
			want:    newStatus(targets(), processed(builtIn), activatedLast(0), reporting(done(builtIn, 0))),
		},
		"a new generation is observed without another change": {
			request: newRequest(generation(2), having(targets(), active(builtIn, 0))),
			pod:     newPod(),
			want: newStatus(targets(), active(builtIn, 0), func(status *coordinationv1alpha1.EvictionRequestStatus) {
				status.ObservedGeneration = 2
			}),
		},
		"the request is evicted when its pod is gone": {
			after:   time.Minute,
			request: newRequest(intercepted),
			want: newStatus(targets(first, second), processed(first), activatedLast(0),
				condition(evicted, metav1.ConditionTrue, podDeleted, wasDeleted, time.Minute)),
		},
		"the built-in interceptor completes when its pod is gone": {
			after:   time.Minute,
			request: newRequest(having(targets(first), processed(first), active(builtIn, 0))),
			want: newStatus(targets(first), processed(first, builtIn), activatedLast(0), reporting(ended(builtIn, time.Minute, wasDeleted)),
				condition(evicted, metav1.ConditionTrue, podDeleted, wasDeleted, time.Minute)),
		},
		"a blocked request is no longer blocked when its pod is gone": {
			after:   time.Minute,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(alive(builtIn, 0, 0)), blockedByBudget(0))),
			want: newStatus(targets(), processed(builtIn), activatedLast(0),
				reporting(coordinationv1alpha1.InterceptorStatus{Name: builtIn, StartTime: at(0), HeartbeatTime: at(time.Minute), CompletionTime: at(time.Minute), Message: wasDeleted}),
				condition(blocked, metav1.ConditionFalse, coordinationv1alpha1.EvictionRequestReasonNotBlocked, "The request is finished.", time.Minute),
				condition(evicted, metav1.ConditionTrue, podDeleted, wasDeleted, time.Minute)),
		},
		"a deleted pod takes precedence over missing requesters": {
			request: newRequest(withoutRequesters, intercepted),
			want: newStatus(targets(first, second), processed(first), activatedLast(0),
				condition(evicted, metav1.ConditionTrue, podDeleted, wasDeleted, 0)),
		},
		"a pod that has failed is evicted": {
			request: newRequest(intercepted),
			pod:     newPod(inPhase(v1.PodFailed)),
			want: newStatus(targets(first, second), processed(first), activatedLast(0),
				condition(evicted, metav1.ConditionTrue, podTerminal, "Target Pod web-0 finished with phase Failed.", 0)),
		},
		"a terminal pod takes precedence over missing requesters": {
			request: newRequest(withoutRequesters, intercepted),
			pod:     newPod(inPhase(v1.PodFailed), inSchedulingGroup),
			want: newStatus(targets(first, second), processed(first), activatedLast(0),
				condition(evicted, metav1.ConditionTrue, podTerminal, "Target Pod web-0 finished with phase Failed.", 0)),
		},
		"the last requester leaves": {
			request: newRequest(withoutRequesters, intercepted),
			pod:     newPod(),
			want: newStatus(targets(first, second), processed(first), activatedLast(0),
				condition(canceled, metav1.ConditionTrue, noRequesters, lastLeft, 0)),
		},
		"a request that is being deleted is canceled": {
			request: newRequest(beingDeleted, intercepted),
			pod:     newPod(),
			want: newStatus(targets(first, second), processed(first), activatedLast(0),
				condition(canceled, metav1.ConditionTrue, noRequesters, "The request is being deleted.", 0)),
		},
		"a request that cannot be canceled continues without requesters": {
			after:    600 * time.Second,
			request:  newRequest(withoutRequesters, beingDeleted, deadlineOf(600), intercepted, cancellationForbidden),
			pod:      newPod(),
			want:     newRequest(having(targets(first, second), processed(first), active(second, 600*time.Second)), cancellationForbidden).Status.DeepCopy(),
			nextSync: time.Minute,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			unchanged := test.request.DeepCopy()
			got, nextSync := computeStatus(start.Add(test.after), start.Add(test.noTimeoutBefore), test.request, test.pod)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected status (-want, +got):\n%s", diff)
			}
			if nextSync != test.nextSync {
				t.Errorf("next sync after %s, want %s", nextSync, test.nextSync)
			}
			if diff := cmp.Diff(unchanged, test.request); diff != "" {
				t.Errorf("the request, which is in a shared cache, was changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// The status of a finished request does not change with its pod and its requesters, except for the
// observedGeneration.
func TestComputeStatusLeavesFinishedRequestsAlone(t *testing.T) {
	pods := map[string]*v1.Pod{"running": newPod(), "gone": nil, "failed": newPod(inPhase(v1.PodFailed))}
	for _, conditionType := range []coordinationv1alpha1.EvictionRequestConditionType{canceled, evicted} {
		for name, pod := range pods {
			t.Run(string(conditionType)+" with the pod "+name, func(t *testing.T) {
				request := newRequest(generation(7), withoutRequesters,
					having(targets(first), active(first, 0), condition(conditionType, metav1.ConditionTrue, "Reason", "", 0)))
				got, nextSync := computeStatus(start.Add(1000*time.Hour), time.Time{}, request, pod)
				want := request.Status.DeepCopy()
				want.ObservedGeneration = 7
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("unexpected status (-want, +got):\n%s", diff)
				}
				if nextSync != 0 {
					t.Errorf("next sync after %s, want never", nextSync)
				}
			})
		}
	}
}

// A request without a target, which validation prevents, must not cause a panic.
func TestTargetName(t *testing.T) {
	if got := targetName(newRequest()); got != podName {
		t.Errorf("got %q, want %q", got, podName)
	}
	if got := targetName(&coordinationv1alpha1.EvictionRequest{}); got != "" {
		t.Errorf("got %q for a request without a target", got)
	}
}

func TestActiveInterceptor(t *testing.T) {
	if got := activeInterceptor(newStatus(targets(first))); got != "" {
		t.Errorf("got %q, want none", got)
	}
	if got := activeInterceptor(newStatus(targets(first), active(first, 0))); got != first {
		t.Errorf("got %q, want %q", got, first)
	}
}
