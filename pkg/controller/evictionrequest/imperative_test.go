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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retrying is the entry of the built-in interceptor after a number of refusals.
func retrying(retries int32, started, heartbeat time.Duration) coordinationv1alpha1.InterceptorStatus {
	entry := alive(builtIn, started, heartbeat)
	entry.Retries = retries
	return entry
}

func refusedOtherwise(since time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return condition(blocked, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, "no", since)
}

func TestNextImperativeStep(t *testing.T) {
	builtInActive := having(targets(), active(builtIn, 0))
	refusedOnce := having(targets(), active(builtIn, 0), reporting(retrying(1, 0, 0)), blockedByBudget(0))

	tests := map[string]struct {
		after      time.Duration
		request    *coordinationv1alpha1.EvictionRequest
		pod        *v1.Pod
		podChanged bool
		want       imperativeStep
		nextSync   time.Duration
	}{
		"evicts when it is active": {
			request: newRequest(builtInActive), pod: newPod(), want: stepEvict,
		},
		"waits while another interceptor is active": {
			request: newRequest(having(targets(first), active(first, 0))), pod: newPod(), want: stepWait,
		},
		"waits until the request is initialized": {
			request: newRequest(), pod: newPod(), want: stepWait,
		},
		"waits when it is active without a status entry": {
			request: newRequest(having(active(builtIn, 0))), pod: newPod(), want: stepWait,
		},
		"waits when it is processed": {
			request: newRequest(having(targets(), processed(builtIn))), pod: newPod(), want: stepWait,
		},
		"waits once it has completed": {
			request: newRequest(having(targets(), active(builtIn, 0), reporting(done(builtIn, 0)))), pod: newPod(), want: stepWait,
		},
		"waits when the request is finished": {
			request: newRequest(having(targets(), active(builtIn, 0), condition(canceled, metav1.ConditionTrue, "Reason", "", 0))),
			pod:     newPod(), want: stepWait,
		},
		"does not evict without requesters": {
			request: newRequest(withoutRequesters, builtInActive), pod: newPod(), want: stepWait,
		},
		"does not evict for a request that is being deleted": {
			request: newRequest(beingDeleted, builtInActive), pod: newPod(), want: stepWait,
		},
		"evicts without requesters when cancellation is forbidden": {
			request: newRequest(withoutRequesters, builtInActive, cancellationForbidden), pod: newPod(), want: stepEvict,
		},
		"waits when the pod is terminal": {
			request: newRequest(builtInActive), pod: newPod(inPhase(v1.PodSucceeded)), want: stepWait,
		},
		"declines mirror pods": {
			request: newRequest(builtInActive), pod: newPod(mirrored), want: stepDecline,
		},
		"declines pods of a DaemonSet": {
			request: newRequest(builtInActive), pod: newPod(ownedBy("DaemonSet", true)), want: stepDecline,
		},
		"waits one more second before the first retry": {
			after: 59 * time.Second, request: newRequest(refusedOnce), pod: newPod(), want: stepAwaitBudget, nextSync: time.Second,
		},
		"retries a minute after the first refusal": {
			after: 60 * time.Second, request: newRequest(refusedOnce), pod: newPod(), want: stepEvict,
		},
		"a change of the pod does not help where a budget blocks": {
			after: time.Second, request: newRequest(refusedOnce), pod: newPod(), podChanged: true, want: stepAwaitBudget, nextSync: 59 * time.Second,
		},
		"an exhausted budget is irrelevant where something else refuses": {
			after:   time.Second,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(retrying(3, 0, 0)), refusedOtherwise(0))),
			pod:     newPod(), want: stepWait, nextSync: 4*time.Minute - time.Second,
		},
		"a change of the pod triggers an early attempt where something else refuses": {
			after:   time.Second,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(retrying(3, 0, 0)), refusedOtherwise(0))),
			pod:     newPod(), podChanged: true, want: stepEvict,
		},
		"waits for the retry when it is no longer blocked": {
			after: time.Second,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(retrying(1, 0, 0)),
				condition(blocked, metav1.ConditionFalse, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "", 0))),
			pod:  newPod(),
			want: stepWait, nextSync: 59 * time.Second,
		},
		"waits twice as long after the second refusal": {
			after:   time.Minute,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(retrying(2, 0, 0)), blockedByBudget(0))),
			pod:     newPod(), want: stepAwaitBudget, nextSync: time.Minute,
		},
		"a pod that terminates is given time to end": {
			after:   9 * time.Second,
			request: newRequest(builtInActive), pod: newPod(terminatingSince(0)), want: stepWait, nextSync: time.Second,
		},
		"a pod that terminates for long is reported": {
			after:   10 * time.Second,
			request: newRequest(builtInActive), pod: newPod(terminatingSince(0)), want: stepReportTermination,
		},
		"a pod without a grace period terminates since its deletionTimestamp": {
			after:   9 * time.Second,
			request: newRequest(builtInActive),
			pod:     newPod(func(pod *v1.Pod) { pod.DeletionTimestamp = at(0) }), want: stepWait, nextSync: time.Second,
		},
		"a blocked pod that terminates is reported at once": {
			request: newRequest(refusedOnce), pod: newPod(terminatingSince(0)), want: stepReportTermination,
		},
		"a pod that terminates is reported once": {
			after:   time.Hour,
			request: newRequest(having(targets(), active(builtIn, 0), reporting(alive(builtIn, 0, 0)))),
			pod:     newPod(terminatingSince(0)), want: stepWait,
		},
		"a terminating mirror pod is reported and not declined": {
			after:   10 * time.Second,
			request: newRequest(builtInActive), pod: newPod(mirrored, terminatingSince(0)), want: stepReportTermination,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, nextSync := nextImperativeStep(start.Add(test.after), test.request, test.pod, test.podChanged)
			if got != test.want {
				t.Errorf("got step %d, want %d", got, test.want)
			}
			if nextSync != test.nextSync {
				t.Errorf("next sync after %s, want %s", nextSync, test.nextSync)
			}
		})
	}
}

func TestDeclineReason(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"a plain pod":                        {pod: newPod()},
		"a pod of a ReplicaSet":              {pod: newPod(ownedBy("ReplicaSet", true))},
		"a pod of a StatefulSet":             {pod: newPod(ownedBy("StatefulSet", true))},
		"a pod that a DaemonSet merely owns": {pod: newPod(ownedBy("DaemonSet", false))},
		"a pod of another group's DaemonSet": {pod: newPod(ownedBy("DaemonSet", true), func(pod *v1.Pod) {
			pod.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
		}), want: "Not evicted: the DaemonSet would recreate the pod on the same node."},
		"a pod of a DaemonSet": {
			pod:  newPod(ownedBy("ReplicaSet", false), ownedBy("DaemonSet", true)),
			want: "Not evicted: the DaemonSet would recreate the pod on the same node.",
		},
		"a mirror pod": {
			pod:  newPod(mirrored),
			want: "Not evicted: the pod is the mirror of a static pod, which only the kubelet can stop.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := declineReason(test.pod); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRetryDelay(t *testing.T) {
	for retries, want := range map[int32]time.Duration{
		0: time.Minute, // A report without a refusal, such as of a termination.
		1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 4: 8 * time.Minute,
		5: 15 * time.Minute, 6: 15 * time.Minute,
		1 << 30: 15 * time.Minute, // Doubling this often would overflow.
	} {
		if got := retryDelay(retries); got != want {
			t.Errorf("after %d refusals: got %s, want %s", retries, got, want)
		}
	}
}

// The record functions change the status of the built-in interceptor at start + 1 minute.
func TestRecord(t *testing.T) {
	const (
		minute    = time.Minute
		notBefore = minute + time.Second
		refused   = "Eviction refused (attempt 1): PodDisruptionBudget web: no disruptions allowed"
		again     = "Eviction refused (attempt 5): PodDisruptionBudget web: no disruptions allowed"
	)
	reason := coordinationv1alpha1.EvictionRequestReasonDisruptionBudget
	refuse := func(status *coordinationv1alpha1.EvictionRequestStatus) {
		recordRefusal(start.Add(minute), status, reason, "PodDisruptionBudget web: no disruptions allowed")
	}
	terminate := func(status *coordinationv1alpha1.EvictionRequestStatus) {
		recordTermination(start.Add(minute), status)
	}
	complete := func(status *coordinationv1alpha1.EvictionRequestStatus) {
		completeImperative(start.Add(minute), status, "It is over.")
	}
	withMessage := func(entry coordinationv1alpha1.InterceptorStatus, message string) func(*coordinationv1alpha1.EvictionRequestStatus) {
		entry.Message = message
		return reporting(entry)
	}

	tests := map[string]struct {
		status *coordinationv1alpha1.EvictionRequestStatus
		record func(*coordinationv1alpha1.EvictionRequestStatus)
		want   *coordinationv1alpha1.EvictionRequestStatus
	}{
		"the first refusal": {
			status: newStatus(targets(first), active(builtIn, 0)),
			record: refuse,
			want:   newStatus(targets(first), active(builtIn, 0), withMessage(retrying(1, minute, minute), refused), blockedByBudget(minute)),
		},
		"another refusal, a minute after the last heartbeat": {
			status: newStatus(targets(), active(builtIn, 0), reporting(retrying(4, -time.Hour, 0)), blockedByBudget(0)),
			record: refuse,
			want:   newStatus(targets(), active(builtIn, 0), withMessage(retrying(5, -time.Hour, minute), again), blockedByBudget(0)),
		},
		"another refusal, less than a minute after the last heartbeat": {
			status: newStatus(targets(), active(builtIn, 0), reporting(retrying(4, -time.Hour, time.Second)), blockedByBudget(0)),
			record: refuse,
			want:   newStatus(targets(), active(builtIn, 0), withMessage(retrying(5, -time.Hour, time.Second), again), blockedByBudget(0)),
		},
		"a termination that nothing had blocked": {
			status: newStatus(targets(), active(builtIn, 0)),
			record: terminate,
			want:   newStatus(targets(), active(builtIn, 0), withMessage(alive(builtIn, minute, minute), "The pod is terminating.")),
		},
		"a termination that was blocked": {
			status: newStatus(targets(), active(builtIn, 0), reporting(retrying(4, 0, 0)), blockedByBudget(0)),
			record: terminate,
			want: newStatus(targets(), active(builtIn, 0), withMessage(retrying(4, 0, minute), "The pod is terminating."),
				condition(blocked, metav1.ConditionFalse, coordinationv1alpha1.EvictionRequestReasonNotBlocked, "The pod is terminating.", minute)),
		},
		"a decline": {
			status: newStatus(targets(), active(builtIn, 0)),
			record: func(status *coordinationv1alpha1.EvictionRequestStatus) {
				recordDecline(start.Add(minute), status, "Not this one.")
			},
			want: newStatus(targets(), active(builtIn, 0), withMessage(done(builtIn, minute), "Not this one.")),
		},
		"a completion less than a minute after the last heartbeat": {
			status: newStatus(targets(), active(builtIn, 0), reporting(alive(builtIn, 0, time.Second))),
			record: complete,
			want: newStatus(targets(), active(builtIn, 0), reporting(coordinationv1alpha1.InterceptorStatus{
				Name: builtIn, StartTime: at(0), HeartbeatTime: at(time.Second), CompletionTime: at(minute), Message: "It is over."})),
		},
		"a completion is recorded once": {
			status: newStatus(targets(), active(builtIn, 0), reporting(done(builtIn, -notBefore))),
			record: complete,
			want:   newStatus(targets(), active(builtIn, 0), reporting(done(builtIn, -notBefore))),
		},
		"a completion without an entry": {
			status: newStatus(active(builtIn, 0)),
			record: complete,
			want:   newStatus(active(builtIn, 0)),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.record(test.status)
			if diff := cmp.Diff(test.want, test.status); diff != "" {
				t.Errorf("unexpected status (-want, +got):\n%s", diff)
			}
		})
	}
}

// Both the entry and the condition are truncated to the limits of the API. Otherwise, the status
// could not be written.
func TestRecordRefusalTruncates(t *testing.T) {
	status := newStatus(targets(), active(builtIn, 0))
	recordRefusal(start, status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, strings.Repeat("x", maxMessageLength+1))
	if got := len(status.Interceptors[0].Message); got != maxMessageLength {
		t.Errorf("the report has %d bytes, want %d", got, maxMessageLength)
	}
	if got := len(status.Conditions[0].Message); got != maxMessageLength {
		t.Errorf("the condition has %d bytes, want %d", got, maxMessageLength)
	}
}

func TestIsBlocked(t *testing.T) {
	budget, refusal := coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, coordinationv1alpha1.EvictionRequestReasonEvictionRefused
	tests := map[string]struct {
		status          *coordinationv1alpha1.EvictionRequestStatus
		blocked, budget bool
	}{
		"never":            {status: newStatus()},
		"by a budget":      {status: newStatus(blockedByBudget(0)), blocked: true, budget: true},
		"by a refusal":     {status: newStatus(refusedOtherwise(0)), blocked: true},
		"not any more":     {status: newStatus(condition(blocked, metav1.ConditionFalse, budget, "", 0))},
		"of another type":  {status: newStatus(condition(canceled, metav1.ConditionTrue, budget, "", 0))},
		"unknown":          {status: newStatus(condition(blocked, metav1.ConditionUnknown, budget, "", 0))},
		"refused long ago": {status: newStatus(condition(blocked, metav1.ConditionFalse, refusal, "", 0))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isBlocked(test.status); got != test.blocked {
				t.Errorf("blocked: got %t, want %t", got, test.blocked)
			}
			if got := isBlockedBy(test.status, budget); got != test.budget {
				t.Errorf("blocked by a budget: got %t, want %t", got, test.budget)
			}
		})
	}
}
