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
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/klog/v2/ktesting"
)

var allAllowed = poddisruptionbudget.Allowance{Healthy: true, Unhealthy: true}

// waitingFor returns queues with requests that wait for the budget, the oldest first.
func waitingFor(budget types.NamespacedName, names ...string) *budgetQueues {
	queues := newBudgetQueues()
	for i, name := range names {
		request := keys(name)[0]
		queues.place(request, []types.NamespacedName{budget}, &candidate{request: request, created: at(time.Duration(i) * time.Second).Time, healthy: true, dueAt: at(time.Hour).Time})
	}
	return queues
}

// takeAll takes and returns requests until there are no more.
func takeAll(queues *budgetQueues, budget types.NamespacedName, now time.Time, allowance poddisruptionbudget.Allowance) []string {
	var names []string
	for {
		request, found, _ := queues.next(budget, "1", now, allowance)
		if !found {
			return names
		}
		names = append(names, request.Name)
		queues.done(budget, request)
	}
}

func TestBudgetQueueIsSortedByAge(t *testing.T) {
	web := named("web")[0]
	place := func(queues *budgetQueues, name string, created time.Duration) {
		request := keys(name)[0]
		queues.place(request, named("web"), &candidate{request: request, created: at(created).Time, healthy: true, dueAt: at(time.Hour).Time})
	}
	queues := newBudgetQueues()
	place(queues, "youngest", 3*time.Second)
	place(queues, "b", 2*time.Second)
	place(queues, "oldest", time.Second)
	place(queues, "a", 2*time.Second)
	place(queues, "b", 2*time.Second) // Placing it again does not add it twice.
	if diff := cmp.Diff([]string{"oldest", "a", "b", "youngest"}, takeAll(queues, web, start, allAllowed)); diff != "" {
		t.Errorf("unexpected order (-want, +got):\n%s", diff)
	}
	// Requests are added and removed in any order.
	for i := range 100 {
		place(queues, fmt.Sprintf("%03d", i*37%100), time.Duration(i*37%100)*time.Second)
		if i%3 == 0 {
			queues.place(keys(fmt.Sprintf("%03d", i*37%100))[0], named("web"), nil)
		}
	}
	got := takeAll(queues, web, start, allAllowed)
	if !slices.IsSorted(got) || len(got) != 66 {
		t.Errorf("got %d requests in the order %v", len(got), got)
	}
	// A request is replaced by another one of the same name.
	place(queues, "again", 2*time.Second)
	place(queues, "between", 3*time.Second)
	place(queues, "again", 4*time.Second)
	if diff := cmp.Diff([]string{"between", "again"}, takeAll(queues, web, start, allAllowed)); diff != "" {
		t.Errorf("unexpected order (-want, +got):\n%s", diff)
	}
}

func TestBudgetQueueNext(t *testing.T) {
	web := named("web")[0]
	sick := func(queues *budgetQueues) {
		queues.place(keys("b")[0], named("web"), &candidate{request: keys("b")[0], created: at(time.Second).Time, dueAt: at(2 * time.Hour).Time})
	}
	tests := map[string]struct {
		prepare   func(*budgetQueues)
		after     time.Duration
		allowance poddisruptionbudget.Allowance
		want      []string
		wait      time.Duration
	}{
		"nothing allowed":                   {},
		"all allowed":                       {allowance: allAllowed, want: []string{"a", "b", "c"}},
		"unhealthy pods allowed":            {prepare: sick, allowance: poddisruptionbudget.Allowance{Unhealthy: true}, want: []string{"b"}},
		"healthy pods allowed":              {prepare: sick, allowance: poddisruptionbudget.Allowance{Healthy: true}, want: []string{"a", "c"}},
		"pods that are not ready are first": {prepare: sick, allowance: allAllowed, want: []string{"b", "a", "c"}},
		"no attempt without an allowance, whatever the back-off":   {after: 3 * time.Hour},
		"the evictions that the cache lacks do not count for ever": {prepare: func(q *budgetQueues) { q.spend(web, "1", at(time.Second).Time) }, wait: quietPeriod + time.Second},
		"a pause":                        {prepare: func(q *budgetQueues) { q.pause(web, at(time.Minute).Time) }, allowance: allAllowed, wait: time.Minute},
		"after a pause":                  {prepare: func(q *budgetQueues) { q.pause(web, at(time.Minute).Time) }, after: time.Minute, allowance: allAllowed, want: []string{"a", "b", "c"}},
		"a pause of this version":        {prepare: func(q *budgetQueues) { q.contend(web, "1", start) }, allowance: allAllowed, wait: contentionPause},
		"a pause of another version":     {prepare: func(q *budgetQueues) { q.contend(web, "0", start) }, allowance: allAllowed, want: []string{"a", "b", "c"}},
		"one request does not wait":      {prepare: func(q *budgetQueues) { q.place(keys("b")[0], named("web"), nil) }, allowance: allAllowed, want: []string{"a", "c"}},
		"one request is forgotten":       {prepare: func(q *budgetQueues) { q.forget(keys("a")[0]) }, allowance: allAllowed, want: []string{"b", "c"}},
		"one request has two budgets":    {prepare: func(q *budgetQueues) { q.place(keys("b")[0], named("web", "all"), &candidate{request: keys("b")[0]}) }, allowance: allAllowed, want: []string{"a", "c"}},
		"one request has another budget": {prepare: func(q *budgetQueues) { q.place(keys("b")[0], named("all"), &candidate{request: keys("b")[0]}) }, allowance: allAllowed, want: []string{"a", "c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			queues := waitingFor(web, "a", "b", "c")
			if test.prepare != nil {
				test.prepare(queues)
			}
			now := start.Add(test.after)
			if diff := cmp.Diff(test.want, takeAll(queues, web, now, test.allowance)); diff != "" {
				t.Errorf("unexpected requests (-want, +got):\n%s", diff)
			}
			if _, _, wait := queues.next(web, "1", now, test.allowance); wait != test.wait {
				t.Errorf("waits %s, want %s", wait, test.wait)
			}
		})
	}
}

// A taken request is not taken twice, and a change of it in the meantime is reported.
func TestBudgetQueueTaken(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b")
	queues.queues[web].pace.limit = 1
	a, found, _ := queues.next(web, "1", start, allAllowed)
	if !found || a.Name != "a" {
		t.Fatalf("took %v", a)
	}
	if b, found, _ := queues.next(web, "1", start, allAllowed); found {
		t.Errorf("took %s while one is in flight", b)
	}
	if got := queues.used(web, "1", start); got != 1 {
		t.Errorf("%d used while one is in flight, want 1", got)
	}
	if !queues.place(a, named("web"), &candidate{request: a}) {
		t.Error("placed a request that is taken")
	}
	if !queues.done(web, a) {
		t.Error("done did not report the change")
	}
	if queues.done(web, a) || queues.place(a, named("web"), nil) {
		t.Error("the request is still taken")
	}
	b, _, _ := queues.next(web, "1", start, allAllowed)
	if again := queues.done(web, b); again || b.Name != "b" {
		t.Errorf("took %s, changed %t", b, again)
	}
}

// As many requests of a budget may be in flight as its pace allows.
func TestBudgetQueueInFlight(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b", "c", "d")
	queues.queues[web].pace.limit = 3
	for range 3 {
		if _, found, _ := queues.next(web, "1", start, allAllowed); !found {
			t.Fatal("took too few")
		}
	}
	if _, found, _ := queues.next(web, "1", start, allAllowed); found {
		t.Error("took too many")
	}
}

// A request that is forgotten during its eviction call still counts as in flight.
func TestBudgetQueueForgetsDuringTheCall(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a")
	queues.queues[web].pace.limit = 1
	a, _, _ := queues.next(web, "1", start, allAllowed)
	queues.forget(a)
	b := keys("b")[0]
	queues.place(b, named("web"), &candidate{request: b, healthy: true})
	if got, found, _ := queues.next(web, "1", start, allAllowed); found {
		t.Errorf("took %s while one is in flight", got)
	}
	queues.done(web, a)
	if got, found, _ := queues.next(web, "1", start, allAllowed); !found || got != b {
		t.Errorf("took %s, want %s", got, b)
	}
}

func TestBudgetQueueSpent(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a")
	if got := queues.used(web, "1", start) + queues.used(named("other")[0], "1", start); got != 0 {
		t.Errorf("used %d before any eviction", got)
	}
	queues.spend(web, "1", start)
	queues.spend(web, "1", start)
	if got := queues.used(web, "1", start); got != 2 {
		t.Errorf("used %d, want 2", got)
	}
	if got := queues.used(web, "2", start); got != 0 {
		t.Errorf("used %d of another version, want 0", got)
	}
	queues.spend(web, "2", start)
	if got := queues.used(web, "2", start); got != 1 {
		t.Errorf("used %d of another version, want 1", got)
	}
	if _, found, _ := queues.next(web, "2", start, allAllowed); !found {
		t.Error("took none")
	}
	if got := queues.used(web, "2", start); got != 2 {
		t.Errorf("used %d while one is in flight, want 2", got)
	}
}

// The queue of a budget is dropped with its last request, and not earlier.
func TestBudgetQueuesForget(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b")
	queues.place(keys("c")[0], named("web", "all"), nil)
	if diff := cmp.Diff(keys("a", "b", "c"), slices.SortedFunc(slices.Values(queues.relatedTo(web)), func(a, b types.NamespacedName) int { return cmpStrings(a.Name, b.Name) })); diff != "" {
		t.Errorf("unexpected related requests (-want, +got):\n%s", diff)
	}
	if !queues.has(web) || queues.has(named("all")[0]) || queues.has(named("none")[0]) {
		t.Error("has reports the wrong budgets")
	}
	a, _, _ := queues.next(web, "1", start, allAllowed)
	for _, name := range []string{"a", "b", "c"} {
		queues.forget(keys(name)[0])
	}
	queues.forget(keys("unknown")[0])
	if queues.has(web) || len(queues.relatedTo(web)) > 0 {
		t.Error("a request still waits")
	}
	queues.done(web, a)
	if len(queues.queues)+len(queues.budgets)+len(queues.taken) > 0 {
		t.Errorf("still has %d budgets, %d requests, %d in flight", len(queues.queues), len(queues.budgets), len(queues.taken))
	}
}

func cmpStrings(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// pair returns a pod and a request for it for which the built-in interceptor is active.
func pair(name string, created time.Duration, changes ...func(*v1.Pod)) (*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	pod := newPod(changes...)
	pod.Name, pod.UID = "pod-"+name, types.UID(name)
	request := newRequest(imperativeActive(), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.CreationTimestamp = name, *at(created)
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: name}
	})
	return request, pod
}

// blockedPair is pair for an eviction that a budget has refused.
func blockedPair(name string, created time.Duration, changes ...func(*v1.Pod)) (*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	request, pod := pair(name, created, changes...)
	imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0))(request)
	return request, pod
}

// enqueue adds a request and its pod to the caches and enqueues the request.
func (f *fixture) enqueue(t *testing.T) func(*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	return func(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) {
		t.Helper()
		f.addToCache(t, pod)
		f.addToCache(t, request)
		f.imperative.queue.Add(itemOf(keyOf(request)))
	}
}

func (f *fixture) expectEvicted(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, pod := range f.evicted {
		got = append(got, string(pod.UID))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected evictions (-want, +got):\n%s", diff)
	}
	f.evicted = nil
}

// blockedFixture has four pods that wait for the budget "web", and two requests that do not.
func blockedFixture(t *testing.T, budget *policyv1.PodDisruptionBudget) *fixture {
	t.Helper()
	f := newFixture(t, budget)
	f.enqueue(t)(blockedPair("youngest", 3*time.Second))
	f.enqueue(t)(blockedPair("b", 2*time.Second))
	f.enqueue(t)(blockedPair("oldest", time.Second))
	f.enqueue(t)(blockedPair("a", 2*time.Second))
	refused, pod := blockedPair("refused-otherwise", 0)
	refused.Status.Conditions[0].Reason = coordinationv1alpha1.EvictionRequestReasonEvictionRefused
	f.enqueue(t)(refused, pod)
	replaced, successor := blockedPair("replaced", 0)
	successor.UID = otherUID
	f.enqueue(t)(replaced, successor)
	f.runEvictions(t)
	f.expectEvicted(t)
	return f
}

// As many pods are evicted as the budget allows, the oldest first, with no superfluous call.
func TestBudgetAllowsEvictions(t *testing.T) {
	newer := func(budget *policyv1.PodDisruptionBudget) {
		budget.Generation, budget.Status.ObservedGeneration, budget.ResourceVersion = 2, 2, "2"
	}
	tests := map[string]struct {
		update *policyv1.PodDisruptionBudget
		want   []string
	}{
		"allows one":                 {update: newBudget("web", allowing(1), withVersion("2")), want: []string{"oldest"}},
		"allows three":               {update: newBudget("web", allowing(3), withVersion("2")), want: []string{"oldest", "a", "b"}},
		"allows more than wait":      {update: newBudget("web", allowing(9), withVersion("2")), want: []string{"oldest", "a", "b", "youngest"}},
		"another budget allows pods": {update: newBudget("db", selecting("none"), allowing(9), withVersion("2"))},
		"no longer selects the pods": {update: newBudget("web", selecting("none"), newer), want: []string{"a", "b", "oldest", "youngest"}},
		"selector becomes invalid":   {update: newBudget("web", selectingInvalidly, newer), want: []string{"a", "b", "oldest", "youngest"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := blockedFixture(t, newBudget("web"))
			f.sendUpdate(t, test.update)
			f.runEvictions(t)
			if len(test.want) > 0 && test.want[0] == "a" { // Independent evictions: in any order.
				slices.SortFunc(f.evicted, func(a, b *v1.Pod) int { return cmpStrings(string(a.UID), string(b.UID)) })
			}
			f.expectEvicted(t, test.want...)
		})
	}
	t.Run("it is deleted", func(t *testing.T) {
		f := blockedFixture(t, newBudget("web"))
		f.sendDelete(t, newBudget("web"))
		f.runEvictions(t)
		if len(f.evicted) != 4 {
			t.Errorf("evicted %d pods, want 4", len(f.evicted))
		}
	})
}

// A blocked pod can also be evicted when the budget requires fewer healthy pods, when more pods are
// healthy, when the pod itself becomes unhealthy, or when no budget selects it.
func TestOtherWaysToUnblockPods(t *testing.T) {
	tests := map[string]func(t *testing.T, f *fixture){
		"fewer pods must be healthy": func(t *testing.T, f *fixture) {
			f.sendUpdate(t, newBudget("web", healthy(2, 2), withVersion("2")))
		},
		"more pods are healthy": func(t *testing.T, f *fixture) {
			f.sendUpdate(t, newBudget("web", healthy(3, 3), withVersion("2")))
		},
		"the policy changes": func(t *testing.T, f *fixture) {
			f.sendUpdate(t, newBudget("web", healthy(2, 3), evictingUnhealthy(policyv1.AlwaysAllow), withVersion("2"), func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 }))
		},
		"it loses its labels": func(t *testing.T, f *fixture) {
			_, pod := blockedPair("sick", 0, notReady, podLabels(nil))
			f.sendUpdate(t, pod)
		},
		"it no longer runs": func(t *testing.T, f *fixture) {
			_, pod := blockedPair("sick", 0, notReady, inPhase(v1.PodPending))
			f.sendUpdate(t, pod)
		},
	}
	for name, free := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBudget("web", healthy(2, 3)))
			f.enqueue(t)(blockedPair("older", -time.Second))
			f.enqueue(t)(blockedPair("sick", 0, notReady))
			f.runEvictions(t)
			f.expectEvicted(t)
			free(t, f)
			f.runEvictions(t)
			f.expectEvicted(t, "sick")
		})
	}
	t.Run("it becomes unhealthy", func(t *testing.T) {
		f := newFixture(t, newBudget("web"))
		f.enqueue(t)(blockedPair("sick", 0))
		f.runEvictions(t)
		f.expectEvicted(t)
		_, pod := blockedPair("sick", 0, notReady)
		f.sendUpdate(t, pod)
		f.runEvictions(t)
		f.expectEvicted(t, "sick")
	})
	t.Run("it was refused by a webhook and changes", func(t *testing.T) {
		f := newFixture(t)
		request, pod := pair("refused", 0)
		imperativeActive(reporting(retrying(3, 0, 0)), refusedOtherwise(0))(request)
		f.enqueue(t)(request, pod)
		f.runEvictions(t)
		f.expectEvicted(t)
		_, changed := pair("refused", 0, notReady)
		f.sendUpdate(t, changed)
		f.runEvictions(t)
		f.expectEvicted(t, "refused")
		// A change triggers one attempt only.
		f.evictErr = errUnreachable
		f.imperative.evicted.remove("refused")
		f.syncEviction(t, keyOf(request))
		f.expectEvicted(t)
	})
}

// A pod with two budgets, or none, does not block the queue of a budget and does not wait in one.
func TestPodsOfTwoBudgets(t *testing.T) {
	f := newFixture(t, newBudget("web"), newBudget("all", selecting("db")))
	both := func(pod *v1.Pod) { pod.Labels = map[string]string{"app": "both"} }
	in := func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "both"}}}}
	}
	f.addToCache(t, newBudget("web", in))
	f.addToCache(t, newBudget("all", in))
	f.addToCache(t, newBudget("all", func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "both"}}
	}))
	f.enqueue(t)(blockedPair("double", 0, both))
	f.enqueue(t)(blockedPair("single", time.Second))
	f.runEvictions(t)
	f.expectEvicted(t)
	f.sendUpdate(t, newBudget("web", in, allowing(1), withVersion("2")))
	f.runEvictions(t)
	f.expectEvicted(t, "single")
	// Without the second budget, the pod waits in the queue of the first.
	f.sendUpdate(t, newBudget("web", in, allowing(1), withVersion("3")))
	f.sendDelete(t, newBudget("all"))
	f.runEvictions(t)
	f.expectEvicted(t, "double")
}

// A pod with many budgets takes no more memory than one with two, and is evicted when one is left, in
// whatever order the others go.
func TestPodsOfManyBudgets(t *testing.T) {
	for name, order := range map[string]func(a, b string) int{
		"the first go first": cmpStrings,
		"the last go first":  func(a, b string) int { return cmpStrings(b, a) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var names []string
			for i := range 50 {
				names = append(names, fmt.Sprintf("b-%02d", i))
				f.addToCache(t, newBudget(names[i], allowing(1)))
			}
			request, pod := blockedPair("pod", 0)
			f.enqueue(t)(request, pod)
			f.runEvictions(t)
			if got := len(f.imperative.waiting.budgets[keyOf(request)]); got != 2 || len(f.imperative.waiting.queues) != 2 {
				t.Errorf("%d budgets of the pod and %d queues are recorded, want 2", got, len(f.imperative.waiting.queues))
			}
			slices.SortFunc(names, order)
			for _, name := range names[:len(names)-1] {
				f.runEvictions(t)
				f.expectEvicted(t)
				f.sendDelete(t, newBudget(name, allowing(1)))
			}
			f.runEvictions(t)
			f.expectEvicted(t, "pod")
		})
	}
}

// A pod that is refused repeatedly does not delay the others.
func TestRefusedPodDoesNotDelayOthers(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		// pause is how long the others wait.
		pause time.Duration
	}{
		"by a webhook":            {answer: apierrors.NewForbidden(podResource, "pod-a", errUnreachable)},
		"without an answer":       {answer: errUnreachable},
		"by a newer budget":       {answer: violation(""), pause: time.Second},
		"by an overloaded server": {answer: apierrors.NewTooManyRequests("busy", 7), pause: 7 * time.Second},
		"because it is gone":      {answer: notFound("pod-a")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBudget("web", allowing(5)))
			f.imperative.evict = func(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
				f.evicted = append(f.evicted, pod)
				if pod.UID == "a" {
					return test.answer
				}
				return nil
			}
			for i, name := range []string{"a", "b", "c"} {
				f.enqueue(t)(pair(name, time.Duration(i)*time.Second))
			}
			f.runEvictions(t)
			if test.pause > 0 {
				f.expectEvicted(t, "a")
				if got := f.evictions.waits(budgetItem("web")); got != test.pause {
					t.Errorf("the next eviction is tried after %s, want %s", got, test.pause)
				}
				f.clock.Step(test.pause)
				f.evictions.Add(budgetItem("web"))
				f.runEvictions(t)
				f.expectEvicted(t, "b", "c")
			} else {
				f.expectEvicted(t, "a", "b", "c")
			}
		})
	}
}

// The API server has a newer version of the budget than the cache. One call a second is made until
// the cache has it; then evictions continue immediately.
func TestContentionEndsWithTheNewBudget(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(5), withVersion("1")))
	f.evictErr = violation("")
	for i := range 10 {
		f.enqueue(t)(pair(fmt.Sprint(i), time.Duration(i)*time.Second))
	}
	f.runEvictions(t)
	f.expectEvicted(t, "0")
	f.expectWrites(t)
	f.evictErr = nil
	f.sendUpdate(t, newBudget("web", allowing(1), withVersion("2")))
	f.runEvictions(t)
	f.expectEvicted(t, "1")
}

// A request that is refused like this for a long time is still retried every minute.
func TestContentionDelayIsBounded(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(5)))
	f.evictErr = violation("")
	request, pod := pair("a", 0)
	var delays []time.Duration
	f.enqueue(t)(request, pod)
	for range 8 {
		f.runEvictions(t)
		delay := f.evictions.waits(itemOf(keyOf(request)))
		delays = append(delays, delay)
		f.clock.Step(delay)
		f.evictions.Add(itemOf(keyOf(request)))
	}
	second := time.Second
	if diff := cmp.Diff([]time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 60 * second, 60 * second}, delays); diff != "" {
		t.Errorf("unexpected delays (-want, +got):\n%s", diff)
	}
}

// A change during a call is processed after the call.
func TestChangeDuringTheCall(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(1)))
	request, pod := pair("a", 0)
	f.imperative.evict = func(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		f.evicted = append(f.evicted, pod)
		if len(f.evicted) == 1 {
			f.imperative.sync(context.Background(), itemOf(keyOf(request)))
			if len(f.evicted) != 1 {
				t.Error("evicted a pod twice at the same time")
			}
			return errUnreachable
		}
		return nil
	}
	f.enqueue(t)(request, pod)
	f.runEvictions(t)
	f.expectEvicted(t, "a", "a")
}

// A pod that changes while a call refuses it is retried: the change may have removed the reason. A
// change of a pod for which another interceptor is active is not stored.
func TestPodChangesDuringTheCall(t *testing.T) {
	f := newFixture(t, newRequest(having(targets(), active(builtIn, 0))), newPod())
	f.imperative.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
		f.sendUpdate(t, newPod(notReady))
		return apierrors.NewForbidden(podResource, podName, errUnreachable)
	}
	_, ctx := ktesting.NewTestContext(t)
	if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if !f.imperative.changed.has(podUID) {
		t.Error("the change was lost")
	}
	f.imperative.changed.remove(podUID)
	f.addToCache(t, newRequest(having(targets(first), active(first, 0))))
	f.sendUpdate(t, newPod())
	if f.imperative.changed.has(podUID) {
		t.Error("stored the change although another interceptor is active")
	}
}

// A budget may be deleted after the pod's budgets were read and before the request is placed.
func TestPlacedWhileABudgetIsDeleted(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(1)), newBudget("spare", allowing(1)))
	request, pod := blockedPair("a", 0)
	f.addToCache(t, request)
	f.addToCache(t, pod)
	e, err := f.imperative.read(keyOf(request))
	if err != nil || e == nil {
		t.Fatalf("read %v, %v", e, err)
	}
	f.sendDelete(t, newBudget("spare")) // Its event finds no request.
	f.expectQueued(t, nil, nil)
	step, _ := f.imperative.nextStep(f.clock.Now(), e)
	f.imperative.place(f.clock.Now(), e, step)
	f.runEvictions(t)
	f.expectEvicted(t, "a")
}

// Unhealthy pods that a budget does not count use up no disruption.
func TestUnhealthyPodsUseNoDisruption(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(1)))
	f.enqueue(t)(pair("sick", 0, notReady))
	f.enqueue(t)(pair("sick-too", time.Second, notReady))
	f.enqueue(t)(pair("well", 2*time.Second))
	f.enqueue(t)(pair("too-many", 3*time.Second))
	f.runEvictions(t)
	f.expectEvicted(t, "sick", "sick-too", "well")
}

// A pod that another budget selects now is not evicted under the first one.
func TestPodMovesToAnotherBudget(t *testing.T) {
	f := newFixture(t, newBudget("web"), newBudget("db", selecting("db")))
	f.writesArrive(t)
	f.enqueue(t)(blockedPair("a", 0))
	f.runEvictions(t)
	_, pod := blockedPair("a", 0, podLabels(map[string]string{"app": "db"}))
	f.addToCache(t, pod) // Its event is delivered later.
	f.evictErr = violation("")
	f.sendUpdate(t, newBudget("web", allowing(1), withVersion("2")))
	f.runEvictions(t)
	f.expectEvicted(t, "a") // The API server is asked about the other budget.
	f.evictErr = nil
	f.sendUpdate(t, newBudget("db", selecting("db"), allowing(1), withVersion("2")))
	f.runEvictions(t)
	f.expectEvicted(t, "a")
}

// A pod that became ready is not evicted by an allowance for unhealthy pods.
func TestPodBecomesReady(t *testing.T) {
	f := newFixture(t, newBudget("web", healthy(2, 3)))
	f.enqueue(t)(blockedPair("a", 0, notReady))
	f.runEvictions(t)
	_, pod := blockedPair("a", 0)
	f.addToCache(t, pod) // Its event is delivered later.
	f.sendUpdate(t, newBudget("web", healthy(3, 3), withVersion("2")))
	f.runEvictions(t)
	f.expectEvicted(t)
	f.sendUpdate(t, newBudget("web", healthy(4, 3), allowing(1), withVersion("3")))
	f.runEvictions(t)
	f.expectEvicted(t, "a")
}

// A response about the pod resets the backoff.
func TestResponseResetsBackoff(t *testing.T) {
	for name, answer := range map[string]error{"refused": twoBudgets(), "gone": notFound(podName), "evicted": nil} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(imperativeActive()), newPod())
			f.evictErr = errUnreachable
			f.syncEviction(t, requestKeyOfPod)
			if got := f.imperative.backoff.NumRequeues(requestKeyOfPod); got != 1 {
				t.Fatalf("%d failures, want 1", got)
			}
			f.evictErr = answer
			f.syncEviction(t, requestKeyOfPod)
			if got := f.imperative.backoff.NumRequeues(requestKeyOfPod); got != 0 {
				t.Errorf("%d failures after a response, want 0", got)
			}
		})
	}
}

// The cost of an event of one budget depends on its own requests only.
func BenchmarkBudgetEvent(b *testing.B) {
	queues := newBudgetQueues()
	for i := range 150000 {
		request := keys(fmt.Sprintf("request-%06d", i))[0]
		queues.place(request, named(fmt.Sprintf("budget-%d", i/100)), &candidate{request: request, created: at(time.Duration(i)).Time, dueAt: at(time.Hour).Time})
	}
	for b.Loop() {
		queues.next(named("budget-7")[0], "1", start, poddisruptionbudget.Allowance{})
	}
}
