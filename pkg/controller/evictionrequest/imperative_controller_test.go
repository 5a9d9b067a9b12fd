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
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
)

var podResource = schema.GroupResource{Resource: "pods"}

// violation is the response of the pods/eviction subresource if a budget allows no disruption.
func violation(cause string) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return err
}

// twoBudgets is the response if two budgets select the pod. It is sent in the body of a successful
// response.
func twoBudgets() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	}}
}

// budgetNotFound is the response if the budget is deleted during the call.
func budgetNotFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "web")
}

// notRequested is the response if the request does not want the eviction any more.
func notRequested() error {
	err := apierrors.NewConflict(evictionRequestResource, string(podUID), errors.New("it is canceled"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionNotRequestedCause}}
	return err
}

// negativeBudget is the response if the status of the budget is invalid.
func negativeBudget() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, "web", errors.New("pdb disruptions allowed is negative"))
}

// imperativeActive is a request option: the built-in interceptor is active.
func imperativeActive(changes ...func(*coordinationv1alpha1.EvictionRequestStatus)) func(*coordinationv1alpha1.EvictionRequest) {
	return having(append([]func(*coordinationv1alpha1.EvictionRequestStatus){targets(), active(builtIn, 0)}, changes...)...)
}

func refusalStatus(retries int32, reason, detail string) *coordinationv1alpha1.EvictionRequestStatus {
	entry := retrying(retries, 0, 0)
	entry.Message = fmt.Sprintf("Eviction refused (attempt %d): %s", retries, detail)
	return newStatus(targets(), active(builtIn, 0), reporting(entry), condition(blocked, metav1.ConditionTrue, reason, detail, 0))
}

func TestImperativeSyncRequest(t *testing.T) {
	const violated = "PodDisruptionBudget web: Cannot evict pod as it would violate the pod's disruption budget."
	const tooMany = "PodDisruptionBudgets all, web select this pod, and the API server does not evict a pod with more than one PodDisruptionBudget: " +
		"change their selectors so that only one selects the pod."
	declined := done(builtIn, 0)
	declined.Message = "Not evicted: the pod is the mirror of a static pod, which only the kubelet can stop."
	terminating := alive(builtIn, 0, 0)
	terminating.Message = "The pod is terminating."

	tests := map[string]struct {
		objects   []runtime.Object
		answer    error
		evictions int
		want      []*coordinationv1alpha1.EvictionRequestStatus
		// nextSync is when the request is synced again without an event, before a sweep enqueues it.
		nextSync time.Duration
	}{
		"a request that is gone":                     {objects: []runtime.Object{newPod()}},
		"a pod that is gone":                         {objects: []runtime.Object{newRequest(imperativeActive())}, nextSync: safetyInterval},
		"a pod that has the name of the target only": {objects: []runtime.Object{newRequest(imperativeActive()), newPod(podUIDIs(otherUID))}, nextSync: safetyInterval},
		"another active interceptor": {
			objects: []runtime.Object{newRequest(having(targets(first), active(first, 0))), newPod()},
		},
		"a finished request": {
			objects: []runtime.Object{newRequest(imperativeActive(condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0))), newPod()},
		},
		"a success is not written":          {objects: []runtime.Object{newRequest(imperativeActive()), newPod()}, evictions: 1},
		"a pod that is gone is not written": {objects: []runtime.Object{newRequest(imperativeActive()), newPod()}, answer: notFound(podName), evictions: 1},
		"no answer is an error": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod()}, answer: errUnreachable, evictions: 1, nextSync: time.Second,
		},
		"a budget that is deleted during the call says nothing about the pod": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("web")}, answer: budgetNotFound(), evictions: 1, nextSync: time.Second,
		},
		"a budget with an invalid status": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("web", allowing(-1))}, answer: negativeBudget(), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "DisruptionBudget", "PodDisruptionBudget web: "+negativeBudget().Error())},
		},
		"a webhook that refuses with 429": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod()}, answer: apierrors.NewTooManyRequestsError("migrating"), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "EvictionRefused", apierrors.NewTooManyRequestsError("migrating").Error())},
		},
		"a refusal by the budget is written": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("web")}, answer: violation(""), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "DisruptionBudget", violated)},
		},
		"another refusal is written": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("web")}, answer: twoBudgets(), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "EvictionRefused", twoBudgets().Error())},
		},
		"a refusal for two budgets counts as a refusal by a budget": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("web"), newBudget("all", allowing(1))}, answer: twoBudgets(), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "DisruptionBudget", tooMany)},
		},
		// Contention: the API server processes other evictions under the budget, which is not a
		// state of this request.
		"a refusal while the cached budget allows it is retried, not written": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("web", allowing(1))}, answer: violation(""), evictions: 1,
			nextSync: time.Second,
		},
		"a refusal without a cached budget is retried, not written": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(), newBudget("db", selecting("db"))}, answer: violation(""), evictions: 1,
			nextSync: time.Second,
		},
		"a blocked pod waits": {
			objects: []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(), newBudget("web")},
		},
		"a pod that a webhook refuses does not wait for the budget": {
			objects:  []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), refusedOtherwise(0))), newPod(), newBudget("web", allowing(1))},
			nextSync: time.Minute,
		},
		"a blocked pod that does not run needs no budget": {
			objects:   []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(inPhase(v1.PodPending)), newBudget("web")},
			evictions: 1,
		},
		"a pod with two budgets waits for neither": {
			objects: []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(),
				newBudget("web", allowing(1)), newBudget("all", allowing(1))},
			nextSync: time.Minute,
		},
		"an unhealthy pod is evicted while enough others are healthy": {
			objects:   []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(notReady), newBudget("web")},
			evictions: 1,
		},
		"an unhealthy pod waits while others are missing": {
			objects: []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(notReady), newBudget("web", healthy(2, 3))},
		},
		"a blocked pod is evicted when its budget allows it": {
			objects:   []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(), newBudget("web", allowing(1))},
			evictions: 1,
		},
		"a blocked pod is evicted when its last budget is deleted": {
			objects:   []runtime.Object{newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod()},
			evictions: 1,
		},
		"a mirror pod is declined": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(mirrored)},
			want:    []*coordinationv1alpha1.EvictionRequestStatus{newStatus(targets(), active(builtIn, 0), reporting(declined))},
		},
		"a termination is reported after a while": {
			objects:  []runtime.Object{newRequest(imperativeActive()), newPod(terminatingSince(0))},
			nextSync: 10 * time.Second,
		},
		"a long termination is reported": {
			objects: []runtime.Object{newRequest(imperativeActive()), newPod(terminatingSince(-10 * time.Second))},
			want:    []*coordinationv1alpha1.EvictionRequestStatus{newStatus(targets(), active(builtIn, 0), reporting(terminating))},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.objects...)
			f.evictErr = test.answer
			var unchanged *coordinationv1alpha1.EvictionRequest
			if request, ok := test.objects[0].(*coordinationv1alpha1.EvictionRequest); ok {
				unchanged = request.DeepCopy()
			}
			f.syncEviction(t, requestKeyOfPod)
			if len(f.imperative.evicted.times) > 0 != (test.answer == nil && test.evictions > 0) {
				t.Errorf("stored as evicted: %v", f.imperative.evicted.times)
			}
			if len(f.evicted) != test.evictions {
				t.Errorf("tried %d evictions, want %d", len(f.evicted), test.evictions)
			}
			if got := f.evictions.after[itemOf(requestKeyOfPod)]; got != test.nextSync {
				t.Errorf("the next sync is after %s, want %s", got, test.nextSync)
			}
			f.expectWrites(t, test.want...)
			if unchanged != nil {
				f.expectCacheUntouched(t, unchanged)
			}
		})
	}
}

// The API server is told for which request the pod is evicted.
func TestEvictionForRequest(t *testing.T) {
	request := newRequest(imperativeActive())
	f := newFixture(t, request, newPod())
	f.syncEviction(t, requestKeyOfPod)
	if diff := cmp.Diff([]string{string(request.UID) + " imperative-eviction.k8s.io"}, f.callers); diff != "" {
		t.Errorf("unexpected calls (-want, +got):\n%s", diff)
	}
}

// A request that is not what the cache says is not blocked: nothing is reported, and the pod is evicted
// soon if the request wants it all the same.
func TestEvictionThatIsNotRequested(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = notRequested()
	for range 20 {
		f.syncEviction(t, requestKeyOfPod)
	}
	if len(f.evicted) != 20 {
		t.Errorf("%d attempts, want 20", len(f.evicted))
	}
	f.expectWrites(t)
	if got := f.evictions.after[itemOf(requestKeyOfPod)]; got <= 0 || got > maxContentionDelay {
		t.Errorf("the next attempt is after %s, want at most %s", got, maxContentionDelay)
	}
	f.evictErr = nil
	f.syncEviction(t, requestKeyOfPod)
	if len(f.imperative.evicted.times) != 1 {
		t.Error("the pod is not stored as evicted")
	}
}

// A request that the API server goes on to refuse, such as because nobody withdraws a drain that has ended, says so.
func TestEvictionThatIsNotRequestedForLong(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = notRequested()
	f.syncEviction(t, requestKeyOfPod)
	f.clock.Step(failureTolerance - time.Second)
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t)
	f.clock.Step(time.Second)
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t, newStatus(targets(), active(builtIn, 0),
		condition(blocked, metav1.ConditionTrue, "EvictionRefused", "Each attempt for 30s has failed, the last one: "+f.evictErr.Error(), failureTolerance)))
	if got := f.evictions.after[itemOf(requestKeyOfPod)]; got <= 0 || got > maxContentionDelay {
		t.Errorf("the next attempt is after %s, want at most %s", got, maxContentionDelay)
	}
}

// What has blocked an eviction is written to the request as it is after the call, which may have taken seconds.
func TestRequestChangesDuringTheEviction(t *testing.T) {
	for name, evictErr := range map[string]error{
		"conflicts":     apierrors.NewConflict(podResource, podName, errUnreachable),
		"not requested": notRequested(),
		"refused":       apierrors.NewForbidden(podResource, podName, errUnreachable),
	} {
		f := newFixture(t, newRequest(imperativeActive()), newPod())
		f.imperative.failing.set(podUID, f.clock.Now().Add(-failureTolerance))
		f.imperative.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
			f.addToCache(t, newRequest(imperativeActive(), func(request *coordinationv1alpha1.EvictionRequest) { request.ResourceVersion = "later" }))
			return evictErr
		}
		f.syncEviction(t, requestKeyOfPod)
		var written []string
		for _, action := range f.client.Actions() {
			if update, ok := action.(clienttesting.UpdateAction); ok {
				written = append(written, update.GetObject().(*coordinationv1alpha1.EvictionRequest).ResourceVersion)
			}
		}
		if !slices.Equal(written, []string{"later"}) {
			t.Errorf("%s: wrote to the versions %q of the request", name, written)
		}
	}
}

// Conflicts are not counted on for the next request of the pod.
func TestConflictsEndWithTheRequest(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = notRequested()
	f.syncEviction(t, requestKeyOfPod)
	f.sendDelete(t, newRequest(imperativeActive()))
	f.syncEviction(t, requestKeyOfPod)
	f.sendUpdate(t, newRequest(imperativeActive()))
	f.clock.Step(failureTolerance)
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t)
}

// Who writes to a pod all the time cannot keep it.
func TestEvictionWithConflicts(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = apierrors.NewConflict(podResource, podName, errUnreachable)
	for range 20 {
		f.syncEviction(t, requestKeyOfPod)
	}
	if got := f.evictions.after[itemOf(requestKeyOfPod)]; got <= 0 || got > maxConflictDelay {
		t.Errorf("the next attempt after 20 conflicts is after %s, want at most %s", got, maxConflictDelay)
	}
}

// A pod with two budgets is tried once. When one of them has gone, it is evicted.
func TestTwoBudgetsAreTriedOnce(t *testing.T) {
	request := newRequest(imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0)))
	f := newFixture(t, request, newPod(), newBudget("web", allowing(1)), newBudget("all", allowing(1)))
	f.evictErr = twoBudgets()
	for range 10 {
		f.clock.Step(20 * time.Minute)
		f.syncEviction(t, requestKeyOfPod)
	}
	if len(f.evicted) > 0 {
		t.Errorf("tried %d times", len(f.evicted))
	}
	f.evictErr = nil
	f.sendDelete(t, newBudget("all", allowing(1)))
	f.syncEviction(t, requestKeyOfPod)
	f.runEvictions(t)
	if len(f.evicted) != 1 {
		t.Errorf("evicted %d times once one budget is left", len(f.evicted))
	}
}

// A pod that a webhook refuses, and that changes all the time, is not tried all the time.
func TestRefusedPodThatFlaps(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = apierrors.NewForbidden(podResource, podName, errors.New("not now"))
	for second := range 600 {
		f.clock.Step(time.Second)
		ready := v1.ConditionTrue
		if second%2 == 0 {
			ready = v1.ConditionFalse
		}
		pod := newPod()
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready}}
		f.sendUpdate(t, pod)
		f.syncEviction(t, requestKeyOfPod)
		if writes := f.writes(t); len(writes) > 0 {
			f.sendUpdate(t, newRequest(func(request *coordinationv1alpha1.EvictionRequest) { request.Status = writes[len(writes)-1] }))
			f.client.ClearActions()
		}
	}
	// At 1, 6, 16, 36 seconds, and then once a minute.
	if got := len(f.evicted); got < 12 || got > 14 {
		t.Errorf("tried %d times in ten minutes", got)
	}
}

// Conflicts that go on are shown, once, and do not slow the attempts down.
func TestLastingConflictsAreShown(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = apierrors.NewConflict(podResource, podName, errUnreachable)
	f.syncEviction(t, requestKeyOfPod)
	f.clock.Step(failureTolerance - time.Second)
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t)
	f.clock.Step(time.Second)
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t, newStatus(targets(), active(builtIn, 0),
		condition(blocked, metav1.ConditionTrue, "EvictionRefused", "Each attempt for 30s has failed, the last one: "+f.evictErr.Error(), failureTolerance)))
	f.client.ClearActions()
	if got := f.evictions.after[itemOf(requestKeyOfPod)]; got <= 0 || got > maxConflictDelay {
		t.Errorf("the next attempt is after %s, want at most %s", got, maxConflictDelay)
	}
	request := newRequest(imperativeActive(condition(blocked, metav1.ConditionTrue, "EvictionRefused", "", failureTolerance)))
	f.sendUpdate(t, request)
	f.clock.Step(time.Minute)
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t)
	// One that ends otherwise begins anew.
	f.evictErr = errUnreachable
	f.syncEviction(t, requestKeyOfPod)
	if len(f.imperative.failing.times) > 0 {
		t.Error("the conflicts count on after another response")
	}
}

// A webhook that hangs, or refuses with a status that API servers have for other reasons, is shown like one that forbids.
func TestLastingFailuresAreShown(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, retryAfter int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: "admission webhook \"w\" denied the request: not now",
			Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter}}}
	}
	for name, test := range map[string]struct {
		err  error
		took time.Duration
	}{
		"hangs":             {apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0), failureTolerance},
		"not found":         {status(404, metav1.StatusReasonNotFound, 0), 0},
		"unavailable":       {status(503, metav1.StatusReasonServiceUnavailable, 0), 0},
		"gateway":           {status(504, metav1.StatusReasonTimeout, 0), 0},
		"too many requests": {status(429, metav1.StatusReasonTooManyRequests, 5), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(imperativeActive()), newPod())
			f.imperative.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
				f.clock.Step(test.took)
				return test.err
			}
			f.syncEviction(t, requestKeyOfPod)
			if test.took == 0 {
				f.expectWrites(t)
				f.clock.Step(failureTolerance)
				for range 2 { // One that may have succeeded reads the pod first.
					if len(f.writes(t)) == 0 {
						f.syncEviction(t, requestKeyOfPod)
					}
				}
			}
			f.expectWrites(t, newStatus(targets(), active(builtIn, 0),
				condition(blocked, metav1.ConditionTrue, "EvictionRefused", "Each attempt for 30s has failed, the last one: "+test.err.Error(), failureTolerance)))
		})
	}
}

// What an intermediary or an overloaded server answers is about all pods.
func TestFailuresOfAllPodsAreNotShown(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = apierrors.NewGenericServerResponse(503, "post", podResource, podName, "no backend", 0, true)
	for range 5 {
		f.syncEviction(t, requestKeyOfPod)
		f.clock.Step(failureTolerance)
	}
	f.expectWrites(t)
}

// A pod that is not ready costs its budget nothing. If the API server refuses it all the same because it changes all the
// time, that is shown, and no other pod of the budget waits.
func TestLastingConflictsOfUnreadyPod(t *testing.T) {
	budget := newBudget("web", healthy(3, 3))
	f := newFixture(t, newRequest(imperativeActive()), newPod(notReady), budget)
	changed := violation("The disruption budget web is still being processed by the server.")
	changed.ErrStatus.Details.RetryAfterSeconds = 10
	f.evictErr = changed
	for range 3 {
		f.syncEviction(t, requestKeyOfPod)
		f.expectWrites(t)
		if pause := f.imperative.waiting.queues[keyOf(budget)].pause(f.clock.Now(), budget.ResourceVersion); pause > 0 {
			t.Errorf("other pods under the budget wait for %s", pause)
		}
		if got := f.evictions.after[itemOf(requestKeyOfPod)]; got != 10*time.Second {
			t.Errorf("the next attempt is after %s, want the delay that the API server has asked for", got)
		}
		f.clock.Step(10 * time.Second)
	}
	f.syncEviction(t, requestKeyOfPod)
	f.expectWrites(t, newStatus(targets(), active(builtIn, 0),
		condition(blocked, metav1.ConditionTrue, "EvictionRefused", "Each attempt for 30s has failed, the last one: "+changed.Error(), 30*time.Second)))
	// A budget that is being processed is about all of its pods.
	f = newFixture(t, newRequest(imperativeActive()), newPod(), newBudget("web", allowing(1)))
	f.evictErr = changed
	f.syncEviction(t, requestKeyOfPod)
	if pause := f.imperative.waiting.queues[keyOf(budget)].pause(f.clock.Now(), budget.ResourceVersion); pause == 0 {
		t.Error("other pods under the budget do not wait")
	}
}

// The cache may have an old state of an evicted pod for a while, and the request is synced in the
// meantime.
func TestEvictPodOnce(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	for range 3 {
		f.syncEviction(t, requestKeyOfPod)
	}
	if diff := cmp.Diff([]*v1.Pod{newPod()}, f.evicted); diff != "" {
		t.Errorf("unexpected evictions (-want, +got):\n%s", diff)
	}
	f.expectWrites(t)
	// The pod should have terminated long ago: the eviction had no effect or was undone.
	f.clock.Step(safetyInterval)
	f.syncEviction(t, requestKeyOfPod)
	if len(f.evicted) != 2 {
		t.Errorf("tried %d evictions of a pod that does not terminate, want 2", len(f.evicted))
	}
}

// An API server that fails after it has evicted a pod does not respond, and interrupts the watch as
// well: the pod is read before another attempt. An error response shows that it was not evicted.
func TestPodIsReadAfterAnUnansweredEviction(t *testing.T) {
	terminating := terminatingPod()
	for name, test := range map[string]struct {
		err   error
		pod   *v1.Pod
		again bool
		read  bool
	}{
		"terminating":        {err: errUnreachable, pod: terminating, read: true},
		"gone":               {err: errUnreachable, read: true},
		"replaced":           {err: errUnreachable, pod: newPod(podUIDIs("successor")), read: true},
		"still running":      {err: errUnreachable, pod: newPod(), again: true, read: true},
		"API server timeout": {err: apierrors.NewTimeoutError("slow", 1), pod: terminating, read: true},
		"storage timeout":    {err: apierrors.NewServerTimeout(podResource, "create", 1), pod: terminating, read: true},
		"API server starts":  {err: apierrors.NewServiceUnavailable("starting"), pod: terminating, read: true},
		"storage response":   {err: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError}}, pod: terminating, read: true},
		"502 of a proxy":     {err: foreign(http.StatusBadGateway), pod: terminating, read: true},
		"504 of a proxy":     {err: foreign(http.StatusGatewayTimeout), pod: terminating, read: true},
		"precondition":       {err: apierrors.NewConflict(podResource, "pod", errUnreachable), pod: terminating, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(imperativeActive()), newPod())
			var reads int
			f.imperative.pods = func(context.Context, string, string) (*v1.Pod, error) {
				reads++
				if test.pod == nil {
					return nil, apierrors.NewNotFound(podResource, "pod")
				}
				return test.pod, nil
			}
			f.evictErr = test.err
			f.syncEviction(t, requestKeyOfPod)
			f.evictErr = nil
			f.clock.Step(maxRetryAfter)
			f.syncEviction(t, requestKeyOfPod)
			if test.pod == terminating {
				f.syncEviction(t, requestKeyOfPod) // It is not read again either.
			}
			if want := 1 + count(test.again); len(f.evicted) != want || reads != count(test.read) {
				t.Errorf("tried %d evictions and read the pod %d times, want %d and %d", len(f.evicted), reads, want, count(test.read))
			}
		})
	}
}

// While it cannot be read whether the pod was evicted, it is not evicted again.
func TestUnreadablePodIsNotEvictedAgain(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.evictErr = errUnreachable
	f.syncEviction(t, requestKeyOfPod)
	f.evictErr = nil
	f.imperative.pods = func(context.Context, string, string) (*v1.Pod, error) { return nil, errUnreachable }
	f.clock.Step(maxRetryAfter)
	f.evictions.waits(itemOf(requestKeyOfPod))
	f.syncEviction(t, requestKeyOfPod)
	if len(f.evicted) != 1 {
		t.Errorf("tried %d evictions of a pod that may be terminating, want 1", len(f.evicted))
	}
	if got := f.evictions.waits(itemOf(requestKeyOfPod)); got == 0 || got > maxRetryAfter {
		t.Errorf("reads it again after %s, want a short delay", got)
	}
	f.imperative.pods = f.livePods
	f.clock.Step(maxRetryAfter)
	f.syncEviction(t, requestKeyOfPod)
	if len(f.evicted) != 2 {
		t.Errorf("tried %d evictions, want 2", len(f.evicted))
	}
}

// Which pods may have been evicted is stored until they are deleted, whatever happens to their
// requests.
func TestUncertainPodsAreForgotten(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *fixture){
		"deleted":  func(t *testing.T, f *fixture) { f.sendDelete(t, newPod()) },
		"replaced": func(t *testing.T, f *fixture) { f.sendUpdate(t, newPod(podUIDIs(otherUID))) },
		"deleted during the call": func(t *testing.T, f *fixture) {
			f.sendDelete(t, newPod())
			f.imperative.addUncertain(newPod())
		},
		"replaced during the call": func(t *testing.T, f *fixture) {
			f.sendUpdate(t, newPod(podUIDIs(otherUID)))
			f.imperative.addUncertain(newPod())
		},
	} {
		f := newFixture(t, newRequest(imperativeActive()), newPod())
		f.imperative.addUncertain(newPod())
		f.imperative.forget(requestKeyOfPod)
		if !f.imperative.uncertain.has(podUID) {
			t.Errorf("%s: forgotten with the request", name)
		}
		if end(t, f); f.imperative.uncertain.has(podUID) {
			t.Errorf("%s: the pod is still stored", name)
		}
	}
}

// A refusal because of several budgets is a server error that says what happened: the pod is not read.
func TestRefusalOfSeveralBudgetsIsCertain(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod(), newBudget("web", allowing(1)), newBudget("web-2", allowing(1)))
	f.evictErr = twoBudgets()
	f.syncEviction(t, requestKeyOfPod)
	if len(f.evicted) != 1 || f.imperative.uncertain.has(podUID) {
		t.Errorf("%d attempts, uncertain: %t", len(f.evicted), f.imperative.uncertain.has(podUID))
	}
}

// A pod may be in the cache for a long time after its eviction: the watch is interrupted, or the
// list of all pods fails in a large cluster.
func TestEvictedPodInAnOldCache(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod(), newBudget("web", allowing(1)))
	f.liveIs(terminatingPod())
	f.syncEviction(t, requestKeyOfPod)
	for range 3 {
		f.clock.Step(safetyInterval + time.Second)
		f.syncEviction(t, requestKeyOfPod)
	}
	if len(f.evicted) != 1 {
		t.Errorf("tried %d evictions of a pod that terminates, want 1", len(f.evicted))
	}
}

// The requester leaves and comes back while the outcome of the attempt is unknown.
func TestPodIsReadForTheNextRequest(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod(), newBudget("web", allowing(1)))
	f.liveIs(terminatingPod())
	f.evictErr = errUnreachable
	f.syncEviction(t, requestKeyOfPod)
	f.evictErr = nil
	f.sendDelete(t, newRequest(imperativeActive()))
	f.syncEviction(t, requestKeyOfPod)
	f.sendUpdate(t, newRequest(imperativeActive()))
	f.clock.Step(maxRetryAfter)
	f.syncEviction(t, requestKeyOfPod)
	if len(f.evicted) != 1 {
		t.Errorf("tried %d evictions of a pod that terminates, want 1", len(f.evicted))
	}
}

// The read may take half a minute. A request that ends in the meantime is not acted on.
func TestRequestEndsWhileThePodIsRead(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *fixture){
		"deleted": func(t *testing.T, f *fixture) { f.sendDelete(t, newRequest(imperativeActive())) },
		"canceled": func(t *testing.T, f *fixture) {
			f.sendUpdate(t, newRequest(imperativeActive(condition(canceled, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonNoRequesters, "", 0))))
		},
		"no requesters":   func(t *testing.T, f *fixture) { f.sendUpdate(t, newRequest(imperativeActive(), withoutRequesters)) },
		"pod terminates":  func(t *testing.T, f *fixture) { f.sendUpdate(t, terminatingPod()) },
		"pod has failed":  func(t *testing.T, f *fixture) { f.sendUpdate(t, newPod(inPhase(v1.PodFailed))) },
		"nothing happens": func(*testing.T, *fixture) {},
	} {
		for kind, objects := range map[string][]runtime.Object{"no budget": nil, "a budget": {newBudget("web", allowing(1))}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				f := newFixture(t, append([]runtime.Object{newRequest(imperativeActive()), newPod()}, objects...)...)
				f.evictErr = errUnreachable
				f.syncEviction(t, requestKeyOfPod)
				f.evictErr = nil
				f.imperative.pods = func(context.Context, string, string) (*v1.Pod, error) {
					end(t, f)
					return newPod(), nil
				}
				f.clock.Step(maxRetryAfter)
				f.syncEviction(t, requestKeyOfPod)
				f.syncEviction(t, requestKeyOfPod)
				if want := 1 + count(name == "nothing happens"); len(f.evicted) != want {
					t.Errorf("tried %d evictions, want %d", len(f.evicted), want)
				}
			})
		}
	}
}

func terminatingPod() *v1.Pod {
	pod := newPod()
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(start))
	return pod
}

// liveIs sets the pod that the API server returns, whatever is in the cache.
func (f *fixture) liveIs(pod *v1.Pod) {
	f.imperative.pods = func(context.Context, string, string) (*v1.Pod, error) { return pod, nil }
}

// foreign returns the error for a response of an intermediary.
func foreign(code int) error {
	return apierrors.NewGenericServerResponse(code, http.MethodPost, podResource, podName, "upstream connect error", 0, true)
}

func count(happens bool) int {
	if happens {
		return 1
	}
	return 0
}

// A success is stored by UID: the successor is another pod.
func TestEvictPodAgainForSuccessor(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.syncEviction(t, requestKeyOfPod)
	next := newRequest(imperativeActive(), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.Spec.Target.Pod.UID = string(otherUID), string(otherUID)
	})
	successor := newPod(podUIDIs(otherUID))
	f.addToCache(t, next)
	f.addToCache(t, successor)
	f.syncEviction(t, types.NamespacedName{Namespace: namespace, Name: string(otherUID)})
	if diff := cmp.Diff([]*v1.Pod{newPod(), successor}, f.evicted); diff != "" {
		t.Errorf("unexpected evictions (-want, +got):\n%s", diff)
	}
}

// The response has a retry delay. Until then, no event triggers another attempt.
func TestEvictionRespectsRetryAfter(t *testing.T) {
	tests := map[string]struct {
		answer   error
		budget   *policyv1.PodDisruptionBudget
		nextSync time.Duration
	}{
		"an overloaded API server":                 {answer: apierrors.NewTooManyRequests("busy", 7), nextSync: 7 * time.Second},
		"a budget that is not counted yet":         {answer: delayedViolation(10), budget: newBudget("web", allowing(1)), nextSync: 10 * time.Second},
		"a budget that has no disruptions allowed": {answer: delayedViolation(90), budget: newBudget("web"), nextSync: 90 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{newRequest(imperativeActive()), newPod()}
			if test.budget != nil {
				objects = append(objects, test.budget)
			}
			f := newFixture(t, objects...)
			f.evictErr = test.answer
			f.syncEviction(t, requestKeyOfPod)
			f.evictErr = nil
			f.clock.Step(test.nextSync - time.Second)
			f.addToCache(t, newRequest(imperativeActive(reporting(retrying(0, 0, 0)), blockedByBudget(0))))
			f.sendUpdate(t, newBudget("web", allowing(1), withVersion("2"))) // Even this does not trigger an attempt.
			f.evictions.waits(itemOf(requestKeyOfPod))
			f.syncEviction(t, requestKeyOfPod)
			if got := f.evictions.waits(itemOf(requestKeyOfPod)); len(f.evicted) != 1 || got != time.Second {
				t.Errorf("tried %d times and again after %s, want once and a second", len(f.evicted), got)
			}
			f.clock.Step(time.Second)
			f.syncEviction(t, requestKeyOfPod)
			if len(f.evicted) != 2 {
				t.Errorf("tried %d times, want twice", len(f.evicted))
			}
			f.sendDelete(t, newRequest())
			_, ctx := ktesting.NewTestContext(t)
			f.Controller.work(ctx)
			if got := f.storedEntries(); got > 0 {
				t.Errorf("%d entries in memory for a deleted request", got)
			}
		})
	}
}

func delayedViolation(seconds int32) error {
	err := violation("")
	err.ErrStatus.Details.RetryAfterSeconds = seconds
	return err
}

// If a request is deleted during the call, no event removes the state of its pod.
func TestEvictionOutlivesItsRequest(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive()), newPod())
	f.imperative.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
		f.sendDelete(t, newRequest(imperativeActive()))
		return nil
	}
	f.syncEviction(t, requestKeyOfPod)
	if len(f.imperative.evicted.times) > 0 {
		t.Error("the pod is stored forever")
	}
}

func TestImperativeSyncRequestErrors(t *testing.T) {
	tests := map[string]struct {
		breaks func(*fixture)
		want   string
	}{
		"reading the request": {
			breaks: func(f *fixture) { f.imperative.requestLister = brokenRequestLister{} },
			want:   "reading the request: unreachable",
		},
		"reading the pod": {
			breaks: func(f *fixture) { f.imperative.podLister = brokenPodLister{} },
			want:   "reading pod web-0: unreachable",
		},
		"writing the status": {
			breaks: func(f *fixture) {
				f.evictErr = twoBudgets()
				f.client.PrependReactor("update", "evictionrequests", answering(errUnreachable))
			},
			want: "writing the status: unreachable",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(imperativeActive()), newPod())
			test.breaks(f)
			_, ctx := ktesting.NewTestContext(t)
			err := f.imperative.syncRequest(ctx, requestKeyOfPod)
			if err == nil || err.Error() != test.want || !errors.Is(err, errUnreachable) {
				t.Errorf("got error %v, want %q that wraps its cause", err, test.want)
			}
		})
	}
}

// TestRetryAfterIsBounded has responses with different retry delays: a sensible one is used, and
// none leads to a busy loop or to an endless wait. Other pods under the same budget do not wait for
// it.
func TestRetryAfterIsBounded(t *testing.T) {
	for seconds, want := range map[int]time.Duration{0: time.Second, 7: 7 * time.Second, 86400: 2 * time.Minute, math.MaxInt32: 2 * time.Minute} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			f := newFixture(t, newRequest(imperativeActive()), newPod())
			f.evictErr = apierrors.NewServerTimeout(podResource, "create", seconds)
			f.syncEviction(t, requestKeyOfPod)
			if got := f.evictions.waits(itemOf(requestKeyOfPod)); got != want {
				t.Errorf("tries again after %s, want %s", got, want)
			}
		})
	}
	f := newFixture(t, newBudget("web", allowing(5)))
	f.imperative.evict = func(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		f.evicted = append(f.evicted, pod)
		if pod.UID == "a" {
			return apierrors.NewTooManyRequests("migrating", 86400)
		}
		return nil
	}
	for i, name := range []string{"a", "b", "c"} {
		f.enqueue(t)(pair(name, time.Duration(i)*time.Second))
	}
	f.runEvictions(t)
	f.clock.Step(maxOverloadPause)
	f.evictions.Add(budgetItem("web"))
	f.runEvictions(t)
	if len(f.evicted) != 3 {
		t.Errorf("tried to evict %d pods, want all 3", len(f.evicted))
	}
}
