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
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"
)

// deletedUnseen is what an informer delivers when it missed a deletion.
func deletedUnseen(obj any) cache.DeletedFinalStateUnknown {
	return cache.DeletedFinalStateUnknown{Key: "prod/some", Obj: obj}
}

// expectQueued compares what is in both queues, and empties them.
func (f *fixture) expectQueued(t testing.TB, decisions, evictions []types.NamespacedName) {
	t.Helper()
	if diff := cmp.Diff(decisions, f.decisions.taken()); diff != "" {
		t.Errorf("unexpected queue of decisions (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(evictions, f.evictions.taken()); diff != "" {
		t.Errorf("unexpected queue of evictions (-want, +got):\n%s", diff)
	}
}

func TestRequestEvents(t *testing.T) {
	it := []types.NamespacedName{requestKeyOfPod}
	finished := newRequest(having(targets(), active(builtIn, 0), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0)))
	tests := map[string]struct {
		request              *coordinationv1alpha1.EvictionRequest
		decisions, evictions []types.NamespacedName
	}{
		"a new request": {request: newRequest(), decisions: it},
		"a request with another active interceptor": {request: newRequest(having(targets(first), active(first, 0))), decisions: it},
		"a request for the built-in interceptor":    {request: newRequest(its()), decisions: it, evictions: it},
		"a finished request":                        {request: finished, decisions: it},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.requests.handler.OnAdd(test.request, false)
			f.expectQueued(t, test.decisions, test.evictions)
			// Only the new state counts.
			f.requests.handler.OnUpdate(newRequest(its()), test.request)
			f.expectQueued(t, test.decisions, test.evictions)
			f.requests.handler.OnUpdate(finished, test.request)
			f.expectQueued(t, test.decisions, test.evictions)
		})
	}
}

// What is remembered of a pod must not outlive its request, or memory would leak.
func TestRequestsAreForgotten(t *testing.T) {
	finished := newRequest(having(targets(), condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0)))
	tests := map[string]struct {
		event    func(cache.ResourceEventHandler)
		finished bool
		kept     bool
	}{
		"when they finish":              {event: func(h cache.ResourceEventHandler) { h.OnUpdate(newRequest(), finished) }, finished: true},
		"when they are deleted":         {event: func(h cache.ResourceEventHandler) { h.OnDelete(newRequest()) }},
		"when their deletion is missed": {event: func(h cache.ResourceEventHandler) { h.OnDelete(deletedUnseen(newRequest())) }},
		"not while they go on":          {event: func(h cache.ResourceEventHandler) { h.OnUpdate(newRequest(), newRequest()) }, kept: true},
		"not when another object is deleted": {
			event: func(h cache.ResourceEventHandler) { h.OnDelete(newPod()); h.OnDelete(deletedUnseen(newPod())) }, kept: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newPod())
			for _, uid := range []types.UID{podUID, otherUID} {
				f.seen.add(uid)
				f.imperative.evicted.add(uid)
				f.imperative.retryAfter.set(uid, start)
			}
			if test.finished {
				f.cached(t, finished)
			} else if test.kept {
				f.cached(t, newRequest())
			}
			test.event(f.requests.handler)
			_, ctx := ktesting.NewTestContext(t)
			work(ctx, f.decisions, f.syncRequest)
			if f.seen.has(podUID) != test.kept || f.imperative.evicted.has(podUID) != test.kept || len(f.imperative.retryAfter.times) == 2 != test.kept {
				t.Errorf("remembers the pod %t, its eviction %t, and %d times, want %t",
					f.seen.has(podUID), f.imperative.evicted.has(podUID), len(f.imperative.retryAfter.times), test.kept)
			}
			if !f.seen.has(otherUID) || !f.imperative.evicted.has(otherUID) || len(f.imperative.retryAfter.times) == 0 {
				t.Error("another pod was forgotten")
			}
		})
	}
}

func TestPodEvents(t *testing.T) {
	it := []types.NamespacedName{requestKeyOfPod}
	add := func(pod *v1.Pod) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnAdd(pod, true) }
	}
	update := func(old, pod *v1.Pod) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnUpdate(old, pod) }
	}
	remove := func(obj any) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnDelete(obj) }
	}
	heartbeat := func(pod *v1.Pod) { pod.Status.Message, pod.ResourceVersion = "new", "2" }

	tests := map[string]struct {
		event  func(cache.ResourceEventHandler)
		queued bool
	}{
		"the pod is seen":                    {event: add(newPod()), queued: true},
		"another pod of its name is seen":    {event: add(newPod(podUIDIs(otherUID)))},
		"a change without consequence":       {event: update(newPod(), newPod(heartbeat))},
		"its phase changes":                  {event: update(newPod(), newPod(inPhase(v1.PodFailed))), queued: true},
		"it begins to terminate":             {event: update(newPod(), newPod(terminatingSince(0))), queued: true},
		"its grace period changes":           {event: update(newPod(terminatingSince(0)), newPod(terminatingSince(1)))},
		"it becomes unhealthy":               {event: update(newPod(), newPod(notReady)), queued: true},
		"it becomes healthy":                 {event: update(newPod(notReady), newPod()), queued: true},
		"its labels change":                  {event: update(newPod(), newPod(podLabels(map[string]string{"app": "db"}))), queued: true},
		"it loses a label":                   {event: update(newPod(), newPod(podLabels(nil))), queued: true},
		"it is deleted":                      {event: remove(newPod()), queued: true},
		"its deletion was missed":            {event: remove(deletedUnseen(newPod())), queued: true},
		"another pod of its name is deleted": {event: remove(newPod(podUIDIs(otherUID)))},
		"something else is deleted":          {event: remove(newBudget("web"))},
		"something else was deleted unseen":  {event: remove(deletedUnseen(newBudget("web")))},
		"its successor takes its name":       {event: update(newPod(), newPod(podUIDIs(otherUID))), queued: true},
		"it takes the name of another pod":   {event: update(newPod(podUIDIs(otherUID)), newPod()), queued: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(its()))
			test.event(f.pods.handler)
			var want []types.NamespacedName
			if test.queued {
				want = it
			}
			f.expectQueued(t, want, want)
		})
	}
}

// Most pods have no request: their events must cost and leave nothing.
func TestPodEventsWithoutRequest(t *testing.T) {
	f := newFixture(t)
	f.pods.handler.OnAdd(newPod(), false)
	f.pods.handler.OnUpdate(newPod(), newPod(inPhase(v1.PodFailed)))
	f.pods.handler.OnDelete(newPod())
	f.expectQueued(t, nil, nil)
}

// A pod may be deleted after its request has finished otherwise.
func TestPodOfFinishedRequestIsDeleted(t *testing.T) {
	f := newFixture(t, newRequest(having(condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0))))
	f.pods.handler.OnDelete(newPod())
	f.expectQueued(t, []types.NamespacedName{requestKeyOfPod}, nil)
}

// blockedRequest returns a request that waits for a budget, and its pod.
func blockedRequest(name string, created time.Duration, changes ...func(*v1.Pod)) (*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	pod := newPod(changes...)
	pod.Name, pod.UID = "pod-"+name, types.UID(name)
	request := newRequest(its(reporting(retrying(1, 0, 0)), blockedByBudget(0)), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.CreationTimestamp = name, *at(created)
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: name}
	})
	return request, pod
}

// blockedRequests are, oldest first: oldest, a, b (of one age), youngest. The others
// wait for no budget that selects app=web.
func blockedRequests() []runtime.Object {
	var objects []runtime.Object
	add := func(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) {
		objects = append(objects, request, pod)
	}
	add(blockedRequest("youngest", 3*time.Second))
	add(blockedRequest("b", 2*time.Second))
	add(blockedRequest("oldest", time.Second))
	add(blockedRequest("a", 2*time.Second))
	add(blockedRequest("unselected", 0, podLabels(map[string]string{"app": "db"})))

	refused, refusedPod := blockedRequest("refused-otherwise", 0)
	refused.Status.Conditions[0].Reason = coordinationv1alpha1.EvictionRequestReasonEvictionRefused
	add(refused, refusedPod)
	free, freePod := blockedRequest("not-blocked-any-more", 0)
	free.Status.Conditions[0].Status = metav1.ConditionFalse
	add(free, freePod)
	replaced, successor := blockedRequest("replaced", 0)
	successor.UID = otherUID
	add(replaced, successor)
	podless, _ := blockedRequest("podless", 0)
	return append(objects, podless)
}

func keys(names ...string) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, name := range names {
		keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return keys
}

func TestBudgetEvents(t *testing.T) {
	update := func(old, budget *policyv1.PodDisruptionBudget) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnUpdate(old, budget) }
	}
	remove := func(obj any) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnDelete(obj) }
	}
	newer := func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 }
	labelled := func(budget *policyv1.PodDisruptionBudget) { budget.Labels = map[string]string{"new": "label"} }
	elsewhere := func(budget *policyv1.PodDisruptionBudget) { budget.Namespace = "test" }
	counted := func(budget *policyv1.PodDisruptionBudget) { budget.Status.ObservedGeneration = 2 }
	full := newBudget("web")

	tests := map[string]struct {
		event func(cache.ResourceEventHandler)
		want  []types.NamespacedName
	}{
		"a new budget can only hinder":               {event: func(h cache.ResourceEventHandler) { h.OnAdd(newBudget("web", allowing(9)), false) }},
		"room for none":                              {event: update(newBudget("web", allowing(1)), full)},
		"room for one":                               {event: update(full, newBudget("web", allowing(1))), want: keys("oldest")},
		"room for three":                             {event: update(full, newBudget("web", allowing(3))), want: keys("oldest", "a", "b")},
		"room for as many as wait":                   {event: update(full, newBudget("web", allowing(4))), want: keys("oldest", "a", "b", "youngest")},
		"room for more than wait":                    {event: update(full, newBudget("web", allowing(9))), want: keys("oldest", "a", "b", "youngest")},
		"no change of its status":                    {event: update(newBudget("web", allowing(1)), newBudget("web", allowing(1), labelled))},
		"a change of its status that leaves no room": {event: update(full, newBudget("web", counted))},
		"health changed, which helps unhealthy pods": {event: update(full, newBudget("web", healthy(2, 3))), want: keys("oldest", "a", "b", "youngest")},
		"health changed, and there is room for one":  {event: update(full, newBudget("web", healthy(4, 3), allowing(1))), want: keys("oldest")},
		"room in another namespace":                  {event: update(newBudget("web", elsewhere), newBudget("web", elsewhere, allowing(9)))},
		"room for other pods":                        {event: update(newBudget("db", selecting("none")), newBudget("db", selecting("none"), allowing(9)))},
		"its selector lets pods go":                  {event: update(full, newBudget("web", selecting("none"), newer)), want: keys("oldest", "a", "b", "youngest")},
		"its selector takes pods in":                 {event: update(newBudget("web", selecting("none")), newBudget("web", newer))},
		"its selector takes pods in and has room":    {event: update(newBudget("web", selecting("none")), newBudget("web", newer, allowing(1))), want: keys("oldest")},
		"its selector was invalid":                   {event: update(newBudget("web", selectingInvalidly), newBudget("web", selectingInvalidly, allowing(9)))},
		"it is deleted":                              {event: remove(full), want: keys("oldest", "a", "b", "youngest")},
		"its deletion was missed":                    {event: remove(deletedUnseen(full)), want: keys("oldest", "a", "b", "youngest")},
		"another budget is deleted":                  {event: remove(newBudget("db", selecting("none")))},
		"something else is deleted":                  {event: remove(newPod())},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, blockedRequests()...)
			test.event(f.budgets.handler)
			f.expectQueued(t, nil, test.want)
		})
	}
}

func TestIndexBlockedByBudget(t *testing.T) {
	tests := map[string]struct {
		obj  any
		want []string
	}{
		"a request that waits for a budget": {obj: newRequest(its(blockedByBudget(0))), want: []string{namespace}},
		"a request that is not blocked":     {obj: newRequest(its())},
		"a request that was refused":        {obj: newRequest(its(refusedOtherwise(0)))},
		"something else":                    {obj: newPod()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := indexBlockedByBudget(test.obj)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected index values (-want, +got):\n%s", diff)
			}
		})
	}
}

// An index that is missing wakes nobody, but must not crash the informer.
func TestEnqueueBlockedWithoutIndex(t *testing.T) {
	f := newFixture(t, blockedRequests()...)
	logger, _ := ktesting.NewTestContext(t)
	plain := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	f.enqueueBlocked(logger, plain, newBudget("web"), noLimit)
	f.expectQueued(t, nil, nil)
}

func TestAddEventHandlersErrors(t *testing.T) {
	broken := func(informer *handledInformer) cache.SharedIndexInformer { return brokenInformer{informer} }
	tests := map[string]struct {
		handlers func(*fixture) (requests, pods, budgets cache.SharedIndexInformer)
		want     string
	}{
		"requests": {
			handlers: func(f *fixture) (_, _, _ cache.SharedIndexInformer) { return broken(f.requests), f.pods, f.budgets },
			want:     "watching eviction requests: broken",
		},
		"pods": {
			handlers: func(f *fixture) (_, _, _ cache.SharedIndexInformer) {
				return unindexed{f.requests}, broken(f.pods), f.budgets
			},
			want: "watching pods: broken",
		},
		"budgets": {
			handlers: func(f *fixture) (_, _, _ cache.SharedIndexInformer) {
				return unindexed{f.requests}, f.pods, broken(f.budgets)
			},
			want: "watching pod disruption budgets: broken",
		},
		"the index": {
			// The fixture has added it already.
			handlers: func(f *fixture) (_, _, _ cache.SharedIndexInformer) { return f.requests, f.pods, f.budgets },
			want:     "indexing eviction requests: indexer conflict",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			logger, _ := ktesting.NewTestContext(t)
			requests, pods, budgets := test.handlers(f)
			err := f.addEventHandlers(logger, requests, pods, budgets)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want one that begins with %q", err, test.want)
			}
		})
	}
}

// unindexed is an informer without the index, which it accepts.
type unindexed struct{ *handledInformer }

func (unindexed) AddIndexers(cache.Indexers) error { return nil }

// brokenInformer accepts no handler.
type brokenInformer struct{ *handledInformer }

func (brokenInformer) AddIndexers(cache.Indexers) error { return nil }

func (brokenInformer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, errors.New("broken")
}

func TestDeletedObject(t *testing.T) {
	pod := newPod()
	tests := map[string]struct {
		obj  any
		want *v1.Pod
		err  string
	}{
		"an object":                 {obj: pod, want: pod},
		"an object of a missed end": {obj: deletedUnseen(pod), want: pod},
		"another object":            {obj: newBudget("web"), err: "unexpected object of type *v1.PodDisruptionBudget in a delete event"},
		"nothing":                   {err: "unexpected object of type <nil> in a delete event"},
		"nothing of a missed end":   {obj: deletedUnseen(nil), err: "unexpected object of type <nil> in a delete event"},
		"a pointer to a missed end": {obj: &cache.DeletedFinalStateUnknown{Obj: pod}, err: "unexpected object of type *cache.DeletedFinalStateUnknown in a delete event"},
		"a missed end of another":   {obj: deletedUnseen(newBudget("web")), err: "unexpected object of type *v1.PodDisruptionBudget in a delete event"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := deletedObject[*v1.Pod](test.obj)
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if (err == nil && test.err != "") || (err != nil && err.Error() != test.err) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
		})
	}
}
