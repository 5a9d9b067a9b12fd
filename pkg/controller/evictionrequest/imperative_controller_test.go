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
	"k8s.io/klog/v2/ktesting"
)

var podResource = schema.GroupResource{Resource: "pods"}

// violation is the answer of the pods/eviction subresource while a budget has no room.
func violation(cause string) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return err
}

// twoBudgets is its answer where two budgets select the pod; it comes in the body of
// a successful response.
func twoBudgets() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	}}
}

// budgetNotFound is its answer where the budget is deleted during the call.
func budgetNotFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "web")
}

// negativeBudget is its answer where the status of the budget makes no sense.
func negativeBudget() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, "web", errors.New("pdb disruptions allowed is negative"))
}

// its is what a request needs for the built-in interceptor to act.
func its(words ...func(*coordinationv1alpha1.EvictionRequestStatus)) func(*coordinationv1alpha1.EvictionRequest) {
	return having(append([]func(*coordinationv1alpha1.EvictionRequestStatus){targets(), active(builtIn, 0)}, words...)...)
}

func refusalStatus(retries int32, reason, detail string) *coordinationv1alpha1.EvictionRequestStatus {
	entry := retrying(retries, 0, 0)
	entry.Message = fmt.Sprintf("Could not evict a pod due to failing eviction requests, number of retries: %d: %s", retries, detail)
	return newStatus(targets(), active(builtIn, 0), reporting(entry), condition(blocked, metav1.ConditionTrue, reason, detail, 0))
}

func TestImperativeSyncRequest(t *testing.T) {
	const violated = "PodDisruptionBudget web: Cannot evict pod as it would violate the pod's disruption budget."
	const tooMany = "PodDisruptionBudgets all, web select this pod, and the API server evicts no pod that more than one budget selects: " +
		"change the selectors so that one of them does."
	declined := done(builtIn, 0)
	declined.Message = "Not evicted: a mirror pod only shows a static pod of the kubelet."
	terminating := alive(builtIn, 0, 0)
	terminating.Message = "The pod is terminating."

	tests := map[string]struct {
		objects   []runtime.Object
		answer    error
		evictions int
		want      []*coordinationv1alpha1.EvictionRequestStatus
		// nextSync is safetyInterval where it is zero.
		nextSync time.Duration
		never    bool
	}{
		"a request that is gone":                     {objects: []runtime.Object{newPod()}, never: true},
		"a pod that is gone":                         {objects: []runtime.Object{newRequest(its())}},
		"a pod that has the name of the target only": {objects: []runtime.Object{newRequest(its()), newPod(podUIDIs(otherUID))}},
		"somebody else's turn": {
			objects: []runtime.Object{newRequest(having(targets(first), active(first, 0))), newPod()}, never: true,
		},
		"a finished request": {
			objects: []runtime.Object{newRequest(its(condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0))), newPod()}, never: true,
		},
		"a success is not written":          {objects: []runtime.Object{newRequest(its()), newPod()}, evictions: 1},
		"a pod that is gone is not written": {objects: []runtime.Object{newRequest(its()), newPod()}, answer: notFound(podName), evictions: 1},
		"no answer is an error": {
			objects: []runtime.Object{newRequest(its()), newPod()}, answer: errUnreachable, evictions: 1, nextSync: time.Second,
		},
		"a budget that vanishes during the call says nothing of the pod": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("web")}, answer: budgetNotFound(), evictions: 1, nextSync: time.Second,
		},
		"a budget whose status makes no sense": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("web", allowing(-1))}, answer: negativeBudget(), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "DisruptionBudget", "PodDisruptionBudget web: "+negativeBudget().Error())},
		},
		"a webhook that refuses with 429": {
			objects: []runtime.Object{newRequest(its()), newPod()}, answer: apierrors.NewTooManyRequestsError("migrating"), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "EvictionRefused", apierrors.NewTooManyRequestsError("migrating").Error())},
		},
		"a refusal of the budget is written": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("web")}, answer: violation(""), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "DisruptionBudget", violated)},
		},
		"another refusal is written": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("web")}, answer: twoBudgets(), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "EvictionRefused", twoBudgets().Error())},
		},
		"a refusal for two budgets is one of the budgets": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("web"), newBudget("all", allowing(1))}, answer: twoBudgets(), evictions: 1,
			want: []*coordinationv1alpha1.EvictionRequestStatus{refusalStatus(1, "DisruptionBudget", tooMany)},
		},
		// Contention: the API server is busy with other evictions, which is no state of this one.
		"a refusal while the budget has room is retried, not written": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("web", allowing(1))}, answer: violation(""), evictions: 1,
			nextSync: time.Second,
		},
		"a refusal while no budget is known is retried, not written": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("db", selecting("db"))}, answer: violation(""), evictions: 1,
			nextSync: time.Second,
		},
		"a blocked pod waits": {
			objects:  []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(), newBudget("web")},
			nextSync: time.Minute,
		},
		"a blocked pod that a webhook refuses waits for itself": {
			objects:  []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), refusedOtherwise(0))), newPod(), newBudget("web", allowing(1))},
			nextSync: time.Minute,
		},
		"a blocked pod that does not run asks no budget": {
			objects:   []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(inPhase(v1.PodPending)), newBudget("web")},
			evictions: 1,
		},
		"a pod with two budgets waits for room in neither": {
			objects: []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(),
				newBudget("web", allowing(1)), newBudget("all", allowing(1))},
			nextSync: time.Minute,
		},
		"an unhealthy pod goes when its budget does not need it": {
			objects:   []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(notReady), newBudget("web")},
			evictions: 1, nextSync: time.Minute,
		},
		"an unhealthy pod stays while its budget lacks healthy ones": {
			objects:  []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(notReady), newBudget("web", healthy(2, 3))},
			nextSync: time.Minute,
		},
		"a blocked pod goes when its budget has room": {
			objects:   []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(), newBudget("web", allowing(1))},
			evictions: 1, nextSync: time.Minute,
		},
		"a blocked pod goes when its last budget is gone": {
			objects:   []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod()},
			evictions: 1,
		},
		"a mirror pod is declined": {
			objects: []runtime.Object{newRequest(its()), newPod(mirrored)},
			want:    []*coordinationv1alpha1.EvictionRequestStatus{newStatus(targets(), active(builtIn, 0), reporting(declined))},
		},
		"a termination is reported after a while": {
			objects:  []runtime.Object{newRequest(its()), newPod(terminatingSince(0))},
			nextSync: 10 * time.Second,
		},
		"a long termination is reported": {
			objects: []runtime.Object{newRequest(its()), newPod(terminatingSince(-10 * time.Second))},
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
			f.syncsEviction(t, requestKeyOfPod)
			if len(f.imperative.evicted.times) > 0 != (test.answer == nil && test.evictions > 0) {
				t.Errorf("remembers %v as evicted", f.imperative.evicted.times)
			}
			if len(f.evicted) != test.evictions {
				t.Errorf("tried %d evictions, want %d", len(f.evicted), test.evictions)
			}
			nextSync := test.nextSync
			if nextSync == 0 && !test.never {
				nextSync = safetyInterval
			}
			if got := f.evictions.after[itemOf(requestKeyOfPod)]; got != nextSync {
				t.Errorf("the next sync is after %s, want %s", got, nextSync)
			}
			f.expectWrites(t, test.want...)
			if unchanged != nil {
				f.expectCacheUntouched(t, unchanged)
			}
		})
	}
}

// The pod has to be as it was seen, unless that could cost a budget.
func TestEvictionPreconditions(t *testing.T) {
	uid, version := podUID, "7"
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		want   *metav1.Preconditions
	}{
		"no budget": {budget: newBudget("db", selecting("db")), want: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}},
		"a budget":  {budget: newBudget("web", allowing(1)), want: &metav1.Preconditions{UID: &uid}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(its()), newPod(func(pod *v1.Pod) { pod.ResourceVersion = version }), test.budget)
			f.syncsEviction(t, requestKeyOfPod)
			if diff := cmp.Diff([]*metav1.Preconditions{test.want}, f.preconditions); diff != "" {
				t.Errorf("unexpected preconditions (-want, +got):\n%s", diff)
			}
		})
	}
}

// The cache may show an evicted pod as it was for a while, and the request is looked
// at again meanwhile. The time of a refusal and the identity of the pod must be right.
func TestEvictPodOnce(t *testing.T) {
	f := newFixture(t, newRequest(its()), newPod())
	for range 3 {
		f.syncsEviction(t, requestKeyOfPod)
	}
	if diff := cmp.Diff([]*v1.Pod{newPod()}, f.evicted); diff != "" {
		t.Errorf("unexpected evictions (-want, +got):\n%s", diff)
	}
	f.expectWrites(t)
	// What should have happened long ago has not: the success was none, or was undone.
	f.clock.Step(safetyInterval)
	f.syncsEviction(t, requestKeyOfPod)
	if len(f.evicted) != 2 {
		t.Errorf("tried %d evictions of a pod that does not terminate, want 2", len(f.evicted))
	}
}

// A success is remembered for that instance only: its successor is another pod.
func TestEvictPodAgainForSuccessor(t *testing.T) {
	f := newFixture(t, newRequest(its()), newPod())
	f.syncsEviction(t, requestKeyOfPod)
	next := newRequest(its(), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.Spec.Target.Pod.UID = string(otherUID), string(otherUID)
	})
	successor := newPod(podUIDIs(otherUID))
	f.cached(t, next)
	f.cached(t, successor)
	f.syncsEviction(t, types.NamespacedName{Namespace: namespace, Name: string(otherUID)})
	if diff := cmp.Diff([]*v1.Pod{newPod(), successor}, f.evicted); diff != "" {
		t.Errorf("unexpected evictions (-want, +got):\n%s", diff)
	}
}

// The API server says when it wants to be asked again; until then, nothing but time
// makes another attempt.
func TestEvictionObeysRetryAfter(t *testing.T) {
	tests := map[string]struct {
		answer    error
		budget    *policyv1.PodDisruptionBudget
		lookAgain time.Duration
	}{
		"an overloaded API server":         {answer: apierrors.NewTooManyRequests("busy", 7), lookAgain: 7 * time.Second},
		"a budget that is not counted yet": {answer: delayedViolation(10), budget: newBudget("web", allowing(1)), lookAgain: 10 * time.Second},
		"a budget that has no room":        {answer: delayedViolation(90), budget: newBudget("web"), lookAgain: 90 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{newRequest(its()), newPod()}
			if test.budget != nil {
				objects = append(objects, test.budget)
			}
			f := newFixture(t, objects...)
			f.evictErr = test.answer
			f.syncsEviction(t, requestKeyOfPod)
			f.evictErr = nil
			f.clock.Step(test.lookAgain - time.Second)
			f.cached(t, newRequest(its(reporting(retrying(0, 0, 0)), blockedByBudget(0))))
			f.delivers(t, newBudget("web", allowing(1), withVersion("2"))) // Not even this counts.
			f.evictions.waits(itemOf(requestKeyOfPod))
			f.syncsEviction(t, requestKeyOfPod)
			if got := f.evictions.waits(itemOf(requestKeyOfPod)); len(f.evicted) != 1 || got != time.Second {
				t.Errorf("tried %d times and again after %s, want once and a second", len(f.evicted), got)
			}
			f.clock.Step(time.Second)
			f.syncsEviction(t, requestKeyOfPod)
			if len(f.evicted) != 2 {
				t.Errorf("tried %d times, want twice", len(f.evicted))
			}
			f.deliversEnd(t, newRequest())
			_, ctx := ktesting.NewTestContext(t)
			f.Controller.work(ctx)
			if got := f.remembered(); got > 0 {
				t.Errorf("remembers %d things of a request that is gone", got)
			}
		})
	}
}

func delayedViolation(seconds int32) error {
	err := violation("")
	err.ErrStatus.Details.RetryAfterSeconds = seconds
	return err
}

// No event will come to forget a pod whose request is deleted during the call.
func TestEvictionOutlivesItsRequest(t *testing.T) {
	f := newFixture(t, newRequest(its()), newPod())
	f.imperative.evict = func(context.Context, *v1.Pod, *metav1.Preconditions) error {
		f.deliversEnd(t, newRequest(its()))
		return nil
	}
	f.syncsEviction(t, requestKeyOfPod)
	if len(f.imperative.evicted.times) > 0 {
		t.Error("remembers the pod for ever")
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
			f := newFixture(t, newRequest(its()), newPod())
			test.breaks(f)
			_, ctx := ktesting.NewTestContext(t)
			err := f.imperative.syncRequest(ctx, requestKeyOfPod)
			if err == nil || err.Error() != test.want || !errors.Is(err, errUnreachable) {
				t.Errorf("got error %v, want %q that wraps its cause", err, test.want)
			}
		})
	}
}

// TestRetryAfterIsBounded has answers that name a time at which no eviction should be tried
// again: an honest one is kept, and none leads to a loop or to silence. Others under the same
// budget do not wait for it.
func TestRetryAfterIsBounded(t *testing.T) {
	for seconds, want := range map[int]time.Duration{0: time.Second, 7: 7 * time.Second, 86400: 2 * time.Minute, math.MaxInt32: 2 * time.Minute} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			f := newFixture(t, newRequest(its()), newPod())
			f.evictErr = apierrors.NewServerTimeout(podResource, "create", seconds)
			f.syncsEviction(t, requestKeyOfPod)
			if got := f.evictions.waits(itemOf(requestKeyOfPod)); got != want {
				t.Errorf("tries again after %s, want %s", got, want)
			}
		})
	}
	f := newFixture(t, newBudget("web", allowing(5)))
	f.imperative.evict = func(_ context.Context, pod *v1.Pod, _ *metav1.Preconditions) error {
		f.evicted = append(f.evicted, pod)
		if pod.UID == "a" {
			return apierrors.NewTooManyRequests("migrating", 86400)
		}
		return nil
	}
	for i, name := range []string{"a", "b", "c"} {
		f.holding(t)(pair(name, time.Duration(i)*time.Second))
	}
	f.evicts(t)
	f.clock.Step(maxOverloadPause)
	f.evictions.Add(budgetItem("web"))
	f.evicts(t)
	if len(f.evicted) != 3 {
		t.Errorf("tried to evict %d pods, want all 3", len(f.evicted))
	}
}
