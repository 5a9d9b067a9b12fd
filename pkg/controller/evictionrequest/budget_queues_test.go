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
	"k8s.io/klog/v2/ktesting"
)

var plenty = room{healthy: true, unhealthy: true}

// waitingFor places requests of increasing age: the first is the oldest.
func waitingFor(budget types.NamespacedName, names ...string) *budgetQueues {
	queues := newBudgetQueues(1)
	for i, name := range names {
		request := keys(name)[0]
		queues.place(request, []types.NamespacedName{budget}, &candidate{request: request, created: at(time.Duration(i) * time.Second).Time, healthy: true, dueAt: at(time.Hour).Time})
	}
	return queues
}

// drained takes requests until there is none, and gives each back at once.
func drained(queues *budgetQueues, budget types.NamespacedName, now time.Time, room room) []string {
	var names []string
	for {
		request, found, _ := queues.next(budget, "1", now, room)
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
	queues := newBudgetQueues(1)
	place(queues, "youngest", 3*time.Second)
	place(queues, "b", 2*time.Second)
	place(queues, "oldest", time.Second)
	place(queues, "a", 2*time.Second)
	place(queues, "b", 2*time.Second) // Once more is no second place.
	if diff := cmp.Diff([]string{"oldest", "a", "b", "youngest"}, drained(queues, web, start, plenty)); diff != "" {
		t.Errorf("unexpected order (-want, +got):\n%s", diff)
	}
	// They come and go in any order.
	for i := range 100 {
		place(queues, fmt.Sprintf("%03d", i*37%100), time.Duration(i*37%100)*time.Second)
		if i%3 == 0 {
			queues.place(keys(fmt.Sprintf("%03d", i*37%100))[0], named("web"), nil)
		}
	}
	got := drained(queues, web, start, plenty)
	if !slices.IsSorted(got) || len(got) != 66 {
		t.Errorf("got %d requests in the order %v", len(got), got)
	}
	// A request whose place another of its name takes.
	place(queues, "again", 2*time.Second)
	place(queues, "between", 3*time.Second)
	place(queues, "again", 4*time.Second)
	if diff := cmp.Diff([]string{"between", "again"}, drained(queues, web, start, plenty)); diff != "" {
		t.Errorf("unexpected order (-want, +got):\n%s", diff)
	}
}

func TestBudgetQueueNext(t *testing.T) {
	web := named("web")[0]
	sick := func(queues *budgetQueues) {
		queues.place(keys("b")[0], named("web"), &candidate{request: keys("b")[0], created: at(time.Second).Time, dueAt: at(2 * time.Hour).Time})
	}
	tests := map[string]struct {
		prepare func(*budgetQueues)
		after   time.Duration
		room    room
		want    []string
		wait    time.Duration
	}{
		"no room":                      {wait: time.Hour},
		"room for all":                 {room: plenty, want: []string{"a", "b", "c"}},
		"room for unhealthy pods":      {prepare: sick, room: room{unhealthy: true}, want: []string{"b"}, wait: time.Hour},
		"room for healthy pods":        {prepare: sick, room: room{healthy: true}, want: []string{"a", "c"}, wait: 2 * time.Hour},
		"a second before they are due": {after: time.Hour - time.Second, wait: time.Second},
		"they are due":                 {after: time.Hour, want: []string{"a", "b", "c"}},
		"a pause":                      {prepare: func(q *budgetQueues) { q.pause(web, at(time.Minute).Time, "") }, room: plenty, wait: time.Minute},
		"after a pause":                {prepare: func(q *budgetQueues) { q.pause(web, at(time.Minute).Time, "") }, after: time.Minute, room: plenty, want: []string{"a", "b", "c"}},
		"a pause of this version":      {prepare: func(q *budgetQueues) { q.pause(web, at(time.Minute).Time, "1") }, room: plenty, wait: time.Minute},
		"a pause of another version":   {prepare: func(q *budgetQueues) { q.pause(web, at(time.Minute).Time, "0") }, room: plenty, want: []string{"a", "b", "c"}},
		"one that does not wait":       {prepare: func(q *budgetQueues) { q.place(keys("b")[0], named("web"), nil) }, room: plenty, want: []string{"a", "c"}},
		"one that is gone":             {prepare: func(q *budgetQueues) { q.forget(keys("a")[0]) }, room: plenty, want: []string{"b", "c"}},
		"one with two budgets":         {prepare: func(q *budgetQueues) { q.place(keys("b")[0], named("web", "all"), &candidate{request: keys("b")[0]}) }, room: plenty, want: []string{"a", "c"}},
		"one of another budget":        {prepare: func(q *budgetQueues) { q.place(keys("b")[0], named("all"), &candidate{request: keys("b")[0]}) }, room: plenty, want: []string{"a", "c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			queues := waitingFor(web, "a", "b", "c")
			if test.prepare != nil {
				test.prepare(queues)
			}
			now := start.Add(test.after)
			if diff := cmp.Diff(test.want, drained(queues, web, now, test.room)); diff != "" {
				t.Errorf("unexpected requests (-want, +got):\n%s", diff)
			}
			if _, _, wait := queues.next(web, "1", now, test.room); wait != test.wait {
				t.Errorf("waits %s, want %s", wait, test.wait)
			}
		})
	}
}

// What is taken is not handed out again, and news of it is not lost.
func TestBudgetQueueTaken(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b")
	a, found, _ := queues.next(web, "1", start, plenty)
	if !found || a.Name != "a" {
		t.Fatalf("took %v", a)
	}
	if b, found, _ := queues.next(web, "1", start, plenty); found {
		t.Errorf("took %s while one is in flight", b)
	}
	if got := queues.used(web, "1"); got != 1 {
		t.Errorf("%d used while one is in flight, want 1", got)
	}
	if !queues.place(a, named("web"), &candidate{request: a}) {
		t.Error("placed a request that is taken")
	}
	if !queues.done(web, a) {
		t.Error("the news is lost")
	}
	if queues.done(web, a) || queues.place(a, named("web"), nil) {
		t.Error("is still taken")
	}
	b, _, _ := queues.next(web, "1", start, plenty)
	if again := queues.done(web, b); again || b.Name != "b" {
		t.Errorf("took %s, with news %t", b, again)
	}
}

// More than one may be in flight where that is the parameter.
func TestBudgetQueueInFlight(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b", "c")
	queues.perBudget = 2
	for range 2 {
		if _, found, _ := queues.next(web, "1", start, plenty); !found {
			t.Fatal("took too few")
		}
	}
	if _, found, _ := queues.next(web, "1", start, plenty); found {
		t.Error("took too many")
	}
}

// A request that is forgotten during its call still occupies its budget.
func TestBudgetQueueForgetsDuringTheCall(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a")
	a, _, _ := queues.next(web, "1", start, plenty)
	queues.forget(a)
	b := keys("b")[0]
	queues.place(b, named("web"), &candidate{request: b, healthy: true})
	if got, found, _ := queues.next(web, "1", start, plenty); found {
		t.Errorf("took %s while one is in flight", got)
	}
	queues.done(web, a)
	if got, found, _ := queues.next(web, "1", start, plenty); !found || got != b {
		t.Errorf("took %s, want %s", got, b)
	}
}

func TestBudgetQueueSpent(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a")
	if got := queues.used(web, "1") + queues.used(named("other")[0], "1"); got != 0 {
		t.Errorf("used %d before any eviction", got)
	}
	queues.spend(web, "1")
	queues.spend(web, "1")
	if got := queues.used(web, "1"); got != 2 {
		t.Errorf("used %d, want 2", got)
	}
	if got := queues.used(web, "2"); got != 0 {
		t.Errorf("used %d of another version, want 0", got)
	}
	queues.spend(web, "2")
	if got := queues.used(web, "2"); got != 1 {
		t.Errorf("used %d of another version, want 1", got)
	}
	if _, found, _ := queues.next(web, "2", start, plenty); !found {
		t.Error("took none")
	}
	if got := queues.used(web, "2"); got != 2 {
		t.Errorf("used %d while one is in flight, want 2", got)
	}
}

// The queue of a budget ends with the last request, and not before.
func TestBudgetQueuesForget(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b")
	queues.place(keys("c")[0], named("web", "all"), nil)
	if diff := cmp.Diff(keys("a", "b", "c"), slices.SortedFunc(slices.Values(queues.relatedTo(web)), func(a, b types.NamespacedName) int { return cmpStrings(a.Name, b.Name) })); diff != "" {
		t.Errorf("unexpected relations (-want, +got):\n%s", diff)
	}
	if !queues.has(web) || queues.has(named("all")[0]) || queues.has(named("none")[0]) {
		t.Error("does not know who waits for which budget")
	}
	a, _, _ := queues.next(web, "1", start, plenty)
	for _, name := range []string{"a", "b", "c"} {
		queues.forget(keys(name)[0])
	}
	queues.forget(keys("unknown")[0])
	if queues.has(web) || len(queues.relatedTo(web)) > 0 {
		t.Error("somebody waits still")
	}
	queues.done(web, a)
	if len(queues.queues)+len(queues.budgets)+len(queues.taken) > 0 {
		t.Errorf("remembers %d budgets, %d requests, %d in flight", len(queues.queues), len(queues.budgets), len(queues.taken))
	}
}

func cmpStrings(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// pair returns a request whose eviction is due, and its pod.
func pair(name string, created time.Duration, changes ...func(*v1.Pod)) (*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	pod := newPod(changes...)
	pod.Name, pod.UID = "pod-"+name, types.UID(name)
	request := newRequest(its(), func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.CreationTimestamp = name, *at(created)
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: name}
	})
	return request, pod
}

// blockedPair is the same for an eviction that a budget has refused.
func blockedPair(name string, created time.Duration, changes ...func(*v1.Pod)) (*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	request, pod := pair(name, created, changes...)
	its(reporting(retrying(1, 0, 0)), blockedByBudget(0))(request)
	return request, pod
}

// holding puts a request and its pod into the caches and has the request take its place.
func (f *fixture) holding(t *testing.T) func(*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	return func(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) {
		t.Helper()
		f.cached(t, pod)
		f.cached(t, request)
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

// blockedFixture has four pods that wait for the budget "web", and others that do not.
func blockedFixture(t *testing.T, budget *policyv1.PodDisruptionBudget) *fixture {
	t.Helper()
	f := newFixture(t, budget)
	f.holding(t)(blockedPair("youngest", 3*time.Second))
	f.holding(t)(blockedPair("b", 2*time.Second))
	f.holding(t)(blockedPair("oldest", time.Second))
	f.holding(t)(blockedPair("a", 2*time.Second))
	refused, pod := blockedPair("refused-otherwise", 0)
	refused.Status.Conditions[0].Reason = coordinationv1alpha1.EvictionRequestReasonEvictionRefused
	f.holding(t)(refused, pod)
	replaced, successor := blockedPair("replaced", 0)
	successor.UID = otherUID
	f.holding(t)(replaced, successor)
	f.evicts(t)
	f.expectEvicted(t)
	return f
}

// As many go as there is room for, the oldest first, without a call too many.
func TestBudgetFreesPods(t *testing.T) {
	newer := func(budget *policyv1.PodDisruptionBudget) {
		budget.Generation, budget.Status.ObservedGeneration, budget.ResourceVersion = 2, 2, "2"
	}
	tests := map[string]struct {
		update *policyv1.PodDisruptionBudget
		want   []string
	}{
		"room for one":                {update: newBudget("web", allowing(1), withVersion("2")), want: []string{"oldest"}},
		"room for three":              {update: newBudget("web", allowing(3), withVersion("2")), want: []string{"oldest", "a", "b"}},
		"room for more than wait":     {update: newBudget("web", allowing(9), withVersion("2")), want: []string{"oldest", "a", "b", "youngest"}},
		"room for other pods":         {update: newBudget("db", selecting("none"), allowing(9), withVersion("2"))},
		"its selector lets pods go":   {update: newBudget("web", selecting("none"), newer), want: []string{"a", "b", "oldest", "youngest"}},
		"its selector becomes broken": {update: newBudget("web", selectingInvalidly, newer), want: []string{"a", "b", "oldest", "youngest"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := blockedFixture(t, newBudget("web"))
			f.delivers(t, test.update)
			f.evicts(t)
			if len(test.want) > 0 && test.want[0] == "a" { // Each for itself: in any order.
				slices.SortFunc(f.evicted, func(a, b *v1.Pod) int { return cmpStrings(string(a.UID), string(b.UID)) })
			}
			f.expectEvicted(t, test.want...)
		})
	}
	t.Run("it is deleted", func(t *testing.T) {
		f := blockedFixture(t, newBudget("web"))
		f.deliversEnd(t, newBudget("web"))
		f.evicts(t)
		if len(f.evicted) != 4 {
			t.Errorf("evicted %d pods, want 4", len(f.evicted))
		}
	})
}

// The way to free a pod that crashes is to lower what the budget wants; the pod itself may
// become unhealthy; or it gets labels that no budget selects.
func TestOtherWaysToFreePods(t *testing.T) {
	tests := map[string]func(t *testing.T, f *fixture){
		"fewer have to be healthy": func(t *testing.T, f *fixture) {
			f.delivers(t, newBudget("web", healthy(2, 2), withVersion("2")))
		},
		"more are healthy": func(t *testing.T, f *fixture) {
			f.delivers(t, newBudget("web", healthy(3, 3), withVersion("2")))
		},
		"the policy changes": func(t *testing.T, f *fixture) {
			f.delivers(t, newBudget("web", healthy(2, 3), evictingUnhealthy(policyv1.AlwaysAllow), withVersion("2"), func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 }))
		},
		"it loses its labels": func(t *testing.T, f *fixture) {
			_, pod := blockedPair("sick", 0, notReady, podLabels(nil))
			f.delivers(t, pod)
		},
		"it does not run any more": func(t *testing.T, f *fixture) {
			_, pod := blockedPair("sick", 0, notReady, inPhase(v1.PodPending))
			f.delivers(t, pod)
		},
	}
	for name, free := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBudget("web", healthy(2, 3)))
			f.holding(t)(blockedPair("older", -time.Second))
			f.holding(t)(blockedPair("sick", 0, notReady))
			f.evicts(t)
			f.expectEvicted(t)
			free(t, f)
			f.evicts(t)
			f.expectEvicted(t, "sick")
		})
	}
	t.Run("it becomes unhealthy", func(t *testing.T) {
		f := newFixture(t, newBudget("web"))
		f.holding(t)(blockedPair("sick", 0))
		f.evicts(t)
		f.expectEvicted(t)
		_, pod := blockedPair("sick", 0, notReady)
		f.delivers(t, pod)
		f.evicts(t)
		f.expectEvicted(t, "sick")
	})
	t.Run("what refused it may not refuse it changed", func(t *testing.T) {
		f := newFixture(t)
		request, pod := pair("refused", 0)
		its(reporting(retrying(3, 0, 0)), refusedOtherwise(0))(request)
		f.holding(t)(request, pod)
		f.evicts(t)
		f.expectEvicted(t)
		_, changed := pair("refused", 0, notReady)
		f.delivers(t, changed)
		f.evicts(t)
		f.expectEvicted(t, "refused")
		// The change counts once.
		f.evictErr = errUnreachable
		f.imperative.evicted.remove("refused")
		f.syncsEviction(t, keyOf(request))
		f.expectEvicted(t)
	})
}

// A pod that has two budgets, or none, neither takes a turn of a budget nor waits for one.
func TestPodsOfTwoBudgets(t *testing.T) {
	f := newFixture(t, newBudget("web"), newBudget("all", selecting("db")))
	both := func(pod *v1.Pod) { pod.Labels = map[string]string{"app": "both"} }
	in := func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "both"}}}}
	}
	f.cached(t, newBudget("web", in))
	f.cached(t, newBudget("all", in))
	f.cached(t, newBudget("all", func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "both"}}
	}))
	f.holding(t)(blockedPair("double", 0, both))
	f.holding(t)(blockedPair("single", time.Second))
	f.evicts(t)
	f.expectEvicted(t)
	f.delivers(t, newBudget("web", in, allowing(1), withVersion("2")))
	f.evicts(t)
	f.expectEvicted(t, "single")
	// With the second budget gone it is one of the first's.
	f.delivers(t, newBudget("web", in, allowing(1), withVersion("3")))
	f.deliversEnd(t, newBudget("all"))
	f.evicts(t)
	f.expectEvicted(t, "double")
}

// One pod that is refused again and again keeps nobody else.
func TestRefusedPodKeepsNobody(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		// pause is how long the others wait.
		pause time.Duration
	}{
		"by a webhook":           {answer: apierrors.NewForbidden(podResource, "pod-a", errUnreachable)},
		"without an answer":      {answer: errUnreachable},
		"by the budget, in vain": {answer: violation(""), pause: time.Second},
		"by overload":            {answer: apierrors.NewTooManyRequests("busy", 7), pause: 7 * time.Second},
		"as if it was gone":      {answer: notFound("pod-a")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBudget("web", allowing(5)))
			f.imperative.evict = func(_ context.Context, pod *v1.Pod, _ *metav1.Preconditions) error {
				f.evicted = append(f.evicted, pod)
				if pod.UID == "a" {
					return test.answer
				}
				return nil
			}
			for i, name := range []string{"a", "b", "c"} {
				f.holding(t)(pair(name, time.Duration(i)*time.Second))
			}
			f.evicts(t)
			if test.pause > 0 {
				f.expectEvicted(t, "a")
				if got := f.evictions.waits(budgetItem("web")); got != test.pause {
					t.Errorf("the next eviction is tried after %s, want %s", got, test.pause)
				}
				f.clock.Step(test.pause)
				f.evictions.Add(budgetItem("web"))
				f.evicts(t)
				f.expectEvicted(t, "b", "c")
			} else {
				f.expectEvicted(t, "a", "b", "c")
			}
		})
	}
}

// The API server knows a newer version of the budget. Until the cache has it, one call a
// second is enough, and with it, nothing waits any more.
func TestContentionEndsWithTheNewBudget(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(5), withVersion("1")))
	f.evictErr = violation("")
	for i := range 10 {
		f.holding(t)(pair(fmt.Sprint(i), time.Duration(i)*time.Second))
	}
	f.evicts(t)
	f.expectEvicted(t, "0")
	f.expectWrites(t)
	f.evictErr = nil
	f.delivers(t, newBudget("web", allowing(1), withVersion("2")))
	f.evicts(t)
	f.expectEvicted(t, "1")
}

// A request that is refused so for long is tried within a minute still.
func TestContentionDelayIsBounded(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(5)))
	f.evictErr = violation("")
	request, pod := pair("a", 0)
	var delays []time.Duration
	f.holding(t)(request, pod)
	for range 8 {
		f.evicts(t)
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

// What changes while a call is in flight is heeded after it.
func TestNewsDuringTheCall(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(1)))
	request, pod := pair("a", 0)
	f.imperative.evict = func(_ context.Context, pod *v1.Pod, _ *metav1.Preconditions) error {
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
	f.holding(t)(request, pod)
	f.evicts(t)
	f.expectEvicted(t, "a", "a")
}

// A pod that changes during a call that refuses it may go by then: it is tried again. A change
// of a pod that is not to be evicted now is of no consequence, and not remembered.
func TestPodChangesDuringTheCall(t *testing.T) {
	f := newFixture(t, newRequest(having(targets(), active(builtIn, 0))), newPod())
	f.imperative.evict = func(context.Context, *v1.Pod, *metav1.Preconditions) error {
		f.delivers(t, newPod(notReady))
		return apierrors.NewForbidden(podResource, podName, errUnreachable)
	}
	_, ctx := ktesting.NewTestContext(t)
	if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if !f.imperative.changed.has(podUID) {
		t.Error("the change is forgotten")
	}
	f.imperative.changed.remove(podUID)
	f.cached(t, newRequest(having(targets(first), active(first, 0))))
	f.delivers(t, newPod())
	if f.imperative.changed.has(podUID) {
		t.Error("remembers the change though it is the turn of another interceptor")
	}
}

// A budget that goes between two reads of its cache would be missed otherwise.
func TestPlacedWhileABudgetGoes(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(1)), newBudget("spare", allowing(1)))
	request, pod := blockedPair("a", 0)
	f.cached(t, request)
	f.cached(t, pod)
	e, err := f.imperative.read(keyOf(request))
	if err != nil || e == nil {
		t.Fatalf("read %v, %v", e, err)
	}
	f.deliversEnd(t, newBudget("spare")) // Its event finds nobody.
	f.expectQueued(t, nil, nil)
	step, wait := f.imperative.nextStep(f.clock.Now(), e)
	f.imperative.place(f.clock.Now(), e, step, wait)
	f.evicts(t)
	f.expectEvicted(t, "a")
}

// Unhealthy pods that a budget does not need use up nothing of its room.
func TestUnhealthyPodsSpendNothing(t *testing.T) {
	f := newFixture(t, newBudget("web", allowing(1)))
	f.holding(t)(pair("sick", 0, notReady))
	f.holding(t)(pair("sick-too", time.Second, notReady))
	f.holding(t)(pair("well", 2*time.Second))
	f.holding(t)(pair("too-many", 3*time.Second))
	f.evicts(t)
	f.expectEvicted(t, "sick", "sick-too", "well")
}

// A pod that belongs to another budget by now is not evicted for the room of the first.
func TestPodOfAnotherBudgetByNow(t *testing.T) {
	f := newFixture(t, newBudget("web"), newBudget("db", selecting("db")))
	f.holding(t)(blockedPair("a", 0))
	f.evicts(t)
	_, pod := blockedPair("a", 0, podLabels(map[string]string{"app": "db"}))
	f.cached(t, pod) // Its event is still to come.
	f.delivers(t, newBudget("web", allowing(1), withVersion("2")))
	f.evicts(t)
	f.expectEvicted(t)
	f.delivers(t, newBudget("db", selecting("db"), allowing(1), withVersion("2")))
	f.evicts(t)
	f.expectEvicted(t, "a")
}

// A pod that is ready by now is not evicted for the room that unhealthy ones have.
func TestPodThatIsReadyByNow(t *testing.T) {
	f := newFixture(t, newBudget("web", healthy(2, 3)))
	f.holding(t)(blockedPair("a", 0, notReady))
	f.evicts(t)
	_, pod := blockedPair("a", 0)
	f.cached(t, pod) // Its event is still to come.
	f.delivers(t, newBudget("web", healthy(3, 3), withVersion("2")))
	f.evicts(t)
	f.expectEvicted(t)
	f.delivers(t, newBudget("web", healthy(4, 3), allowing(1), withVersion("3")))
	f.evicts(t)
	f.expectEvicted(t, "a")
}

// An answer about the pod ends the series of failures before it.
func TestAnswerEndsFailures(t *testing.T) {
	for name, answer := range map[string]error{"refused": twoBudgets(), "gone": notFound(podName), "evicted": nil} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(its()), newPod())
			f.evictErr = errUnreachable
			f.syncsEviction(t, requestKeyOfPod)
			if got := f.imperative.backoff.NumRequeues(requestKeyOfPod); got != 1 {
				t.Fatalf("%d failures, want 1", got)
			}
			f.evictErr = answer
			f.syncsEviction(t, requestKeyOfPod)
			if got := f.imperative.backoff.NumRequeues(requestKeyOfPod); got != 0 {
				t.Errorf("%d failures after an answer, want 0", got)
			}
		})
	}
}

// Events of one budget cost what waits for it, not all that waits.
func BenchmarkBudgetEvent(b *testing.B) {
	queues := newBudgetQueues(1)
	for i := range 150000 {
		request := keys(fmt.Sprintf("request-%06d", i))[0]
		queues.place(request, named(fmt.Sprintf("budget-%d", i/100)), &candidate{request: request, created: at(time.Duration(i)).Time, dueAt: at(time.Hour).Time})
	}
	for b.Loop() {
		queues.next(named("budget-7")[0], "1", start, room{})
	}
}
