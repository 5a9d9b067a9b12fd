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
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
)

// deletedUnseen is what an informer delivers if it missed a deletion.
func deletedUnseen(obj any) cache.DeletedFinalStateUnknown {
	return cache.DeletedFinalStateUnknown{Key: "prod/some", Obj: obj}
}

// expectQueued compares the contents of both queues and empties them.
func (f *fixture) expectQueued(t testing.TB, decisions []types.NamespacedName, evictions []evictionItem) {
	t.Helper()
	if diff := cmp.Diff(decisions, f.decisions.taken()); diff != "" {
		t.Errorf("unexpected queue of requests (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(evictions, f.evictions.taken(), cmp.AllowUnexported(evictionItem{})); diff != "" {
		t.Errorf("unexpected queue of evictions (-want, +got):\n%s", diff)
	}
}

func TestRequestEvents(t *testing.T) {
	it := []types.NamespacedName{requestKeyOfPod}
	finished := newRequest(having(targets(), active(builtIn, 0), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0)))
	tests := map[string]struct {
		request   *coordinationv1alpha1.EvictionRequest
		decisions []types.NamespacedName
		evictions []evictionItem
	}{
		"a new request": {request: newRequest(), decisions: it},
		"a request with another active interceptor": {request: newRequest(having(targets(first), active(first, 0))), decisions: it},
		"a request for the built-in interceptor":    {request: newRequest(imperativeActive()), decisions: it, evictions: items(it...)},
		"a finished request":                        {request: finished, decisions: it},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.requests.handler.OnAdd(test.request, false)
			f.expectQueued(t, test.decisions, test.evictions)
			// Only the new state of the object is relevant.
			f.requests.handler.OnUpdate(newRequest(imperativeActive()), test.request)
			f.expectQueued(t, test.decisions, test.evictions)
			f.requests.handler.OnUpdate(finished, test.request)
			f.expectQueued(t, test.decisions, test.evictions)
		})
	}
}

// What kube-apiserver has written with a new request is measured like a write of the controller, once, and
// is no event.
func TestCreatedRequestsAreMeasured(t *testing.T) {
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		initial bool
		want    uint64
	}{
		"created":                                {request: newRequest(imperativeActive()), want: 1},
		"found by a controller that has started": {request: newRequest(imperativeActive()), initial: true},
		"left to the controller":                 {request: newRequest()},
		"finished when it is first seen":         {request: newRequest(having(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0)))},
		"blocked when it is first seen":          {request: newRequest(imperativeActive(), having(condition(blocked, metav1.ConditionTrue, "EvictionRefused", "No.", 0)))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			before := measuredRequests(t)
			f.requests.handler.OnAdd(test.request, test.initial)
			f.requests.handler.OnUpdate(test.request, test.request)
			if got := measuredRequests(t) - before; got != test.want {
				t.Errorf("measured %d requests, want %d", got, test.want)
			}
			if lines := eventLines(f); len(lines) > 0 {
				t.Errorf("unexpected events %q", lines)
			}
		})
	}
}

// measuredRequests returns for how many requests the number of interceptors was observed.
func measuredRequests(t *testing.T) uint64 {
	t.Helper()
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "evictionrequest_controller_pod_interceptors" {
			return family.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return 0
}

// Stored state of a request must not outlive the request: that would leak memory.
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
		"not while they are active":     {event: func(h cache.ResourceEventHandler) { h.OnUpdate(newRequest(), newRequest()) }, kept: true},
		"not when another object is deleted": {
			event: func(h cache.ResourceEventHandler) { h.OnDelete(newPod()); h.OnDelete(deletedUnseen(newPod())) }, kept: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newPod())
			for _, uid := range []types.UID{podUID, otherUID} {
				f.seen.add(uid)
				f.calls.last[uid] = callSeen{at: start}
				f.imperative.evicted.set(uid, start)
				f.imperative.retryAfter.set(uid, start)
				f.imperative.changed.add(uid)
				f.imperative.waiting.place(types.NamespacedName{Namespace: namespace, Name: string(uid)}, named("web"), nil)
				f.imperative.backoff.When(types.NamespacedName{Namespace: namespace, Name: string(uid)})
			}
			if test.finished {
				f.addToCache(t, finished)
			} else if test.kept {
				f.addToCache(t, newRequest(calledAt(0)))
			}
			test.event(f.requests.handler)
			_, ctx := ktesting.NewTestContext(t)
			f.Controller.work(ctx)
			want := 7 // Six of each pod, and the queue of the budget.
			if test.kept {
				want = 13
			}
			if got := f.storedEntries(); got != want {
				t.Errorf("%d entries in memory, want %d", got, want)
			}
			if got := f.imperative.backoff.NumRequeues(requestKeyOfPod); (got == 1) != test.kept {
				t.Errorf("%d failures of the request in memory", got)
			}
			if other := (types.NamespacedName{Namespace: namespace, Name: string(otherUID)}); f.imperative.backoff.NumRequeues(other) != 1 || !f.seen.has(otherUID) {
				t.Error("the state of another pod was removed")
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
		// changes is whether the next attempt to evict the pod is made earlier.
		changes bool
		// gone is whether it is certain without a call that the pod is gone.
		gone bool
	}{
		"the pod is added":                   {event: add(newPod()), queued: true},
		"another pod of its name is added":   {event: add(newPod(podUIDIs(otherUID)))},
		"an irrelevant change":               {event: update(newPod(), newPod(heartbeat))},
		"its phase changes":                  {event: update(newPod(), newPod(inPhase(v1.PodFailed))), queued: true, changes: true},
		"it begins to terminate":             {event: update(newPod(), newPod(terminatingSince(0))), queued: true, changes: true},
		"its grace period changes":           {event: update(newPod(terminatingSince(0)), newPod(terminatingSince(1)))},
		"it becomes unhealthy":               {event: update(newPod(), newPod(notReady)), queued: true, changes: true},
		"it becomes healthy":                 {event: update(newPod(notReady), newPod()), queued: true, changes: true},
		"its labels change":                  {event: update(newPod(), newPod(podLabels(map[string]string{"app": "db"}))), queued: true, changes: true},
		"it loses a label":                   {event: update(newPod(), newPod(podLabels(nil))), queued: true, changes: true},
		"it is deleted":                      {event: remove(newPod()), queued: true, gone: true},
		"its deletion was missed":            {event: remove(deletedUnseen(newPod())), queued: true, gone: true},
		"another pod of its name is deleted": {event: remove(newPod(podUIDIs(otherUID)))},
		"something else is deleted":          {event: remove(newBudget("web"))},
		"something else was deleted unseen":  {event: remove(deletedUnseen(newBudget("web")))},
		"its successor takes its name":       {event: update(newPod(), newPod(podUIDIs(otherUID))), queued: true, gone: true},
		"it takes the name of another pod":   {event: update(newPod(podUIDIs(otherUID)), newPod()), queued: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(imperativeActive()))
			test.event(f.pods.handler)
			if test.queued {
				f.expectQueued(t, it, items(it...))
			} else {
				f.expectQueued(t, nil, nil)
			}
			if f.imperative.changed.has(podUID) != test.changes {
				t.Errorf("change of the pod stored: %t", !test.changes)
			}
			if f.seen.has(podUID) != test.gone {
				t.Errorf("stored that the pod was in the cache: %t", !test.gone)
			}
		})
	}
}

// Most pods have no request: their events must be cheap and store nothing.
func TestPodEventsWithoutRequest(t *testing.T) {
	f := newFixture(t)
	f.pods.handler.OnAdd(newPod(), false)
	f.pods.handler.OnUpdate(newPod(), newPod(inPhase(v1.PodFailed)))
	f.pods.handler.OnDelete(newPod())
	f.expectQueued(t, nil, nil)
	if entries := f.storedEntries(); entries != 0 {
		t.Errorf("%d entries in memory", entries)
	}
}

// A pod may be deleted after its request was canceled.
func TestPodOfFinishedRequestIsDeleted(t *testing.T) {
	f := newFixture(t, newRequest(having(condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0))))
	f.pods.handler.OnDelete(newPod())
	f.expectQueued(t, []types.NamespacedName{requestKeyOfPod}, nil)
	if entries := f.storedEntries(); entries != 0 {
		t.Errorf("%d entries in memory", entries)
	}
}

func keys(names ...string) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, name := range names {
		keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return keys
}

// named is keys for the names of budgets.
func named(names ...string) []types.NamespacedName { return keys(names...) }

// An event of a budget enqueues its tasks if it may allow an eviction. The waiting requests are
// enqueued only if the selector may have changed.
func TestBudgetEvents(t *testing.T) {
	update := func(old, budget *policyv1.PodDisruptionBudget) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnUpdate(old, budget) }
	}
	remove := func(obj any) func(cache.ResourceEventHandler) {
		return func(h cache.ResourceEventHandler) { h.OnDelete(obj) }
	}
	newer := func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 }
	another := func(budget *policyv1.PodDisruptionBudget) { budget.UID = "another" }
	labelled := func(budget *policyv1.PodDisruptionBudget) { budget.Labels = map[string]string{"new": "label"} }
	elsewhere := func(budget *policyv1.PodDisruptionBudget) { budget.Namespace = "test" }
	counted := func(budget *policyv1.PodDisruptionBudget) { budget.Status.ObservedGeneration = 2 }
	confirmed := func(budget *policyv1.PodDisruptionBudget) {
		budget.Status.DisruptedPods = map[string]metav1.Time{"web-9": {}}
	}
	full := newBudget("web")
	second := budgetItem("web")
	second.slot = 1
	enqueued := []evictionItem{budgetItem("web"), second, probeItem("web"), recordItem("web")}
	placed := items(keys("single", "double")...)

	tests := map[string]struct {
		event func(cache.ResourceEventHandler)
		want  []evictionItem
	}{
		"it is added":                  {event: func(h cache.ResourceEventHandler) { h.OnAdd(full, false) }, want: placed},
		"allows one":                   {event: update(full, newBudget("web", allowing(1))), want: enqueued},
		"allows none":                  {event: update(newBudget("web", allowing(1)), full), want: enqueued},
		"no change of its status":      {event: update(newBudget("web", allowing(1)), newBudget("web", allowing(1), labelled))},
		"its status is up to date":     {event: update(full, newBudget("web", counted)), want: enqueued},
		"evictions are confirmed":      {event: update(newBudget("web", confirmed), full), want: enqueued},
		"fewer pods are healthy":       {event: update(full, newBudget("web", healthy(2, 3))), want: enqueued},
		"fewer pods must be healthy":   {event: update(full, newBudget("web", healthy(3, 2))), want: enqueued},
		"allowed in another namespace": {event: update(newBudget("web", elsewhere), newBudget("web", elsewhere, allowing(9)))},
		"allowed by another budget":    {event: update(newBudget("db"), newBudget("db", allowing(9)))},
		"its spec changes":             {event: update(full, newBudget("web", newer)), want: append(slices.Clone(placed), enqueued...)},
		"another one takes its name":   {event: update(full, newBudget("web", another)), want: placed},
		"it is deleted":                {event: remove(full), want: placed},
		"its deletion was missed":      {event: remove(deletedUnseen(full)), want: placed},
		"another budget is deleted":    {event: remove(newBudget("db"))},
		"something else is deleted":    {event: remove(newPod())},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			single, double := keys("single")[0], keys("double")[0]
			f.imperative.waiting.place(single, named("web"), &candidate{request: single})
			f.imperative.waiting.place(double, named("web", "spare"), nil)
			test.event(f.budgets.handler)
			got := f.evictions.taken()
			less := func(a, b evictionItem) bool { return fmt.Sprint(a) < fmt.Sprint(b) }
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(evictionItem{}), cmpopts.SortSlices(less)); diff != "" {
				t.Errorf("unexpected queue of evictions (-want, +got):\n%s", diff)
			}
			f.expectQueued(t, nil, nil)
		})
	}
}

// A budget without waiting requests enqueues nothing: its status changes with each of its pods.
func TestBudgetEventsWithoutWaiting(t *testing.T) {
	f := newFixture(t)
	f.budgets.handler.OnAdd(newBudget("web"), false)
	f.budgets.handler.OnUpdate(newBudget("web"), newBudget("web", allowing(1)))
	f.budgets.handler.OnDelete(newBudget("web"))
	f.expectQueued(t, nil, nil)
}

func TestAddEventHandlersErrors(t *testing.T) {
	broken := func(informer *handledInformer) cache.SharedIndexInformer { return brokenInformer{informer} }
	tests := map[string]struct {
		handlers func(*fixture) (requests, pods, nodes, budgets cache.SharedIndexInformer)
		want     string
	}{
		"requests": {
			handlers: func(f *fixture) (_, _, _, _ cache.SharedIndexInformer) {
				return broken(f.requests), f.pods, f.nodes, f.budgets
			},
			want: "watching eviction requests: broken",
		},
		"pods": {
			handlers: func(f *fixture) (_, _, _, _ cache.SharedIndexInformer) {
				return f.requests, broken(f.pods), f.nodes, f.budgets
			},
			want: "watching pods: broken",
		},
		"nodes": {
			handlers: func(f *fixture) (_, _, _, _ cache.SharedIndexInformer) {
				return f.requests, f.pods, broken(f.nodes), f.budgets
			},
			want: "watching nodes: broken",
		},
		"budgets": {
			handlers: func(f *fixture) (_, _, _, _ cache.SharedIndexInformer) {
				return f.requests, f.pods, f.nodes, broken(f.budgets)
			},
			want: "watching pod disruption budgets: broken",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			logger, _ := ktesting.NewTestContext(t)
			requests, pods, nodes, budgets := test.handlers(f)
			err := f.addEventHandlers(logger, requests, pods, nodes, budgets)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want one that begins with %q", err, test.want)
			}
		})
	}
}

// brokenInformer accepts no handler.
type brokenInformer struct{ *handledInformer }

func (brokenInformer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, errors.New("broken")
}
