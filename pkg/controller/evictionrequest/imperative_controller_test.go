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
		lookAgain time.Duration
		err       error
	}{
		"a request that is gone":                     {objects: []runtime.Object{newPod()}},
		"a pod that is gone":                         {objects: []runtime.Object{newRequest(its())}},
		"a pod that has the name of the target only": {objects: []runtime.Object{newRequest(its()), newPod(podUIDIs(otherUID))}},
		"somebody else's turn": {
			objects: []runtime.Object{newRequest(having(targets(first), active(first, 0))), newPod()},
		},
		"a success is not written":          {objects: []runtime.Object{newRequest(its()), newPod()}, evictions: 1},
		"a pod that is gone is not written": {objects: []runtime.Object{newRequest(its()), newPod()}, answer: notFound(podName), evictions: 1},
		"no answer is an error": {
			objects: []runtime.Object{newRequest(its()), newPod()}, answer: errUnreachable, evictions: 1, err: errUnreachable,
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
			err: violation(""),
		},
		"a refusal while no budget is known is retried, not written": {
			objects: []runtime.Object{newRequest(its()), newPod(), newBudget("db", selecting("db"))}, answer: violation(""), evictions: 1,
			err: violation(""),
		},
		"a blocked pod waits": {
			objects:   []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(), newBudget("web")},
			lookAgain: time.Minute,
		},
		"a blocked pod goes when its budget has room": {
			objects:   []runtime.Object{newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0))), newPod(), newBudget("web", allowing(1))},
			evictions: 1,
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
			objects:   []runtime.Object{newRequest(its()), newPod(terminatingSince(0))},
			lookAgain: 10 * time.Second,
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
			_, ctx := ktesting.NewTestContext(t)
			err := f.imperative.syncRequest(ctx, requestKeyOfPod)
			if test.err == nil && err != nil || test.err != nil && (err == nil || err.Error() != "evicting pod web-0: "+test.err.Error()) {
				t.Errorf("got error %v, want %v", err, test.err)
			}
			if len(f.Controller.imperative.evicted.uids) > 0 != (test.answer == nil && test.evictions > 0) {
				t.Errorf("remembers %v as evicted", f.imperative.evicted.uids)
			}
			if len(f.evicted) != test.evictions {
				t.Errorf("tried %d evictions, want %d", len(f.evicted), test.evictions)
			}
			if got := f.evictions.after[requestKeyOfPod]; got != test.lookAgain {
				t.Errorf("looks again after %s, want %s", got, test.lookAgain)
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
			_, ctx := ktesting.NewTestContext(t)
			if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
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
	_, ctx := ktesting.NewTestContext(t)
	for range 3 {
		if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
	}
	if diff := cmp.Diff([]*v1.Pod{newPod()}, f.evicted); diff != "" {
		t.Errorf("unexpected evictions (-want, +got):\n%s", diff)
	}
	f.expectWrites(t)
}

// A success is remembered for that instance only: its successor is another pod.
func TestEvictPodAgainForSuccessor(t *testing.T) {
	f := newFixture(t, newRequest(its()), newPod())
	_, ctx := ktesting.NewTestContext(t)
	if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	next := newRequest(its(), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.Spec.Target.Pod.UID = string(otherUID), string(otherUID)
	})
	successor := newPod(podUIDIs(otherUID))
	f.cached(t, next)
	f.cached(t, successor)
	if err := f.imperative.syncRequest(ctx, types.NamespacedName{Namespace: namespace, Name: string(otherUID)}); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
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
			_, ctx := ktesting.NewTestContext(t)
			sync := func() {
				t.Helper()
				if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
					t.Fatalf("unexpected error: %v", err)
				}
			}
			sync()
			f.evictErr = nil
			f.clock.Step(test.lookAgain - time.Second)
			f.cached(t, newRequest(its(reporting(retrying(0, 0, 0)), blockedByBudget(0))))
			f.cached(t, newBudget("web", allowing(1))) // Not even this counts.
			sync()
			if len(f.evicted) != 1 || f.evictions.after[requestKeyOfPod] != time.Second {
				t.Errorf("tried %d times and looks again after %s, want once and a second", len(f.evicted), f.evictions.after[requestKeyOfPod])
			}
			f.clock.Step(time.Second)
			sync()
			if len(f.evicted) != 2 {
				t.Errorf("tried %d times, want twice", len(f.evicted))
			}
			f.deliversEnd(t, newRequest())
			work(ctx, f.decisions, f.syncRequest)
			if len(f.imperative.retryAfter.times) > 0 {
				t.Error("remembers a pod whose request is gone")
			}
		})
	}
}

func delayedViolation(seconds int32) error {
	err := violation("")
	err.ErrStatus.Details.RetryAfterSeconds = seconds
	return err
}

// While an eviction under a budget is in flight, the next one waits for its turn and
// for nothing else.
func TestEvictionsArePacedPerBudget(t *testing.T) {
	waiting := newPod(podUIDIs(otherUID), func(pod *v1.Pod) { pod.Name = "web-2" })
	request := newRequest(its(), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name = string(otherUID)
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: "web-2", UID: string(otherUID)}
	})
	f := newFixture(t, request, waiting, newBudget("web", allowing(2)))
	budget := types.NamespacedName{Namespace: namespace, Name: "web"}
	f.imperative.pacer.enter(budget, named("a"))
	_, ctx := ktesting.NewTestContext(t)
	key := types.NamespacedName{Namespace: namespace, Name: string(otherUID)}
	if err := f.imperative.syncRequest(ctx, key); err != nil || len(f.evicted) != 0 {
		t.Fatalf("evicted %d pods, %v, while another one is in flight", len(f.evicted), err)
	}
	f.imperative.pacer.leave(budget)
	f.expectQueued(t, nil, []types.NamespacedName{key})
	if err := f.imperative.syncRequest(ctx, key); err != nil || len(f.evicted) != 1 {
		t.Fatalf("evicted %d pods, %v, when it was its turn", len(f.evicted), err)
	}
	// It has left, too: nobody would come in any more.
	if len(f.imperative.pacer.budgets) != 0 {
		t.Error("its eviction still counts as in flight")
	}
}

// A request that was woken and does not evict any more gives its place to the next.
func TestEvictionPassesItsPlaceOn(t *testing.T) {
	f := newFixture(t, newRequest(its())) // Its pod is gone.
	budget, next := named("web"), named("next")
	f.imperative.pacer.enter(budget, named("a"))
	f.imperative.pacer.enter(budget, requestKeyOfPod)
	f.imperative.pacer.enter(budget, next)
	f.imperative.pacer.leave(budget)
	f.expectQueued(t, nil, []types.NamespacedName{requestKeyOfPod})
	_, ctx := ktesting.NewTestContext(t)
	if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	f.expectQueued(t, nil, []types.NamespacedName{next})
}

// No event will come to forget a pod whose request is deleted during the call.
func TestEvictionOutlivesItsRequest(t *testing.T) {
	f := newFixture(t, newRequest(its()), newPod())
	f.imperative.evict = func(context.Context, *v1.Pod, *metav1.Preconditions) error {
		f.deliversEnd(t, newRequest(its()))
		return nil
	}
	_, ctx := ktesting.NewTestContext(t)
	if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if f.imperative.evicted.has(podUID) {
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
