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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
)

// blockedCluster is a simulation in which nothing happens by chance, with the given number of ready pods
// that wait under the budget "web", which requires many more.
func blockedCluster(t *testing.T, pods int) *sim {
	t.Helper()
	s := newSimulation(t, 1)
	s.chaos = false
	budget := newBudget("web")
	budget.UID, budget.Spec.MinAvailable.IntVal = "budget", int32(10*pods)
	s.store(budget)
	for range pods {
		s.addWaiting()
	}
	return s
}

// addWaiting adds a pod that is to be evicted.
func (s *sim) addWaiting() *v1.Pod {
	pod := s.createPod("web", true)
	s.request(pod)
	return pod
}

// requireHealthy changes how many pods the budget "web" requires.
func (s *sim) requireHealthy(pods int) {
	budget := s.budgets["web"].DeepCopy()
	budget.Spec.MinAvailable.IntVal = int32(pods)
	budget.Generation++
	s.store(budget)
}

// costs returns how many evictions are tried, and how many statuses written, while the time passes.
func (s *sim) costs(duration time.Duration) (evictions, writes int) {
	calls, before := s.calls, s.writes
	s.pass(duration)
	return s.calls - calls - (s.writes - before), s.writes - before
}

func (s *sim) expectCosts(what string, duration time.Duration, evictions, writes int) {
	s.t.Helper()
	if e, w := s.costs(duration); e != evictions || w != writes {
		s.t.Errorf("%s: %d evictions are tried and %d statuses written, want %d and %d", what, e, w, evictions, writes)
	}
}

// countBlocked returns how many requests say that the budget "web" blocks them.
func (s *sim) countBlocked() (blocked int) {
	for _, request := range s.requests {
		if reportOf(request, newBudget("web")) == reportBudget {
			blocked++
		}
	}
	return blocked
}

// However many pods wait, the API server is asked about one of them.
func TestOneProbeForAll(t *testing.T) {
	const pods = 200
	s := blockedCluster(t, pods)
	// Each request is initialized, and says once why it waits.
	s.expectCosts("the first minute", time.Minute-time.Second, 1, 2*pods)
	if got := s.countBlocked(); got != pods {
		t.Errorf("%d requests say what they wait for, want %d", got, pods)
	}
	for _, step := range []struct {
		what             string
		after            time.Duration
		evictions, count int
	}{
		{"after a minute", 2 * time.Second, 1, 1},
		{"before two more", 2*time.Minute - 4*time.Second, 0, 0},
		{"after two more", 4 * time.Second, 1, 1},
		{"until 15 minutes after the fourth probe", 4*time.Minute + 8*time.Minute, 2, 2},
		{"the next hour", time.Hour, 4, 4},
	} {
		s.expectCosts(step.what, step.after, step.evictions, step.count)
	}
	// The budget allows evictions: each is tried once, and nothing else is written about them.
	s.requireHealthy(pods - 1)
	calls, writes := s.calls, s.writes
	s.settle()
	if writes = s.writes - writes; s.calls-calls-writes != pods || writes > 2*pods {
		t.Errorf("%d evictions are tried and %d statuses written, want %d and at most %d", s.calls-calls-writes, writes, pods, 2*pods)
	}
	s.check("soon", func(*eviction) bool { return false })
}

// TestBudgetIsReplacedAgainAndAgain: who owns the pods replaces their budget by one with another name, each second. The
// requests say the name at once when it has changed, and then once a minute.
func TestBudgetIsReplacedAgainAndAgain(t *testing.T) {
	const pods, times = 50, 120
	s := blockedCluster(t, pods)
	s.pass(time.Minute)
	budget, writes := s.budgets["web"], s.writes
	for n := range times {
		next := budget.DeepCopy()
		next.Name = fmt.Sprintf("web-%d", n)
		next.UID = types.UID(next.Name)
		s.erase(budget)
		s.store(next)
		s.pass(time.Second)
		budget = next
	}
	// Each of them is asked about once, and that is recorded.
	if got, most := s.writes-writes, 3*pods+times; got > most {
		t.Errorf("%d statuses written in two minutes, want at most %d", got, most)
	}
	s.pass(3 * time.Minute)
	for _, request := range s.requests {
		if reportOf(request, budget) != reportBudget {
			t.Errorf("request %s does not say which budget it waits for: %v", request.Name, request.Status.Conditions)
		}
	}
}

// A controller that starts finds what the requests say. It asks when they say that it is time, and once.
func TestRestartWithBlockedPods(t *testing.T) {
	s := blockedCluster(t, 50)
	s.pass(30 * time.Second)
	s.start(s.client, s.clock)
	s.expectCosts("after the restart", 29*time.Second, 0, 0)
	s.expectCosts("a minute after the first probe", 2*time.Second, 1, 1)
	s.expectCosts("the next minute", time.Minute-4*time.Second, 0, 0)

	// One that has not recorded the refusal everywhere asks once, and goes on.
	s.pass(20 * time.Second)
	late := s.addWaiting()
	s.start(s.client, s.clock)
	s.expectCosts("a restart with a pod that is new", 29*time.Second, 1, 3)
	if got := reportOf(s.requests[string(late.UID)], newBudget("web")); got != reportBudget {
		t.Errorf("the request of the new pod reports %d", got)
	}
}

// A pod that joins the others gets the verdict if that is young, and a new one otherwise.
func TestLaterPodsGetTheVerdict(t *testing.T) {
	s := blockedCluster(t, 5)
	s.pass(30 * time.Second)
	s.addWaiting()
	s.expectCosts("half a minute later", time.Second, 0, 2)
	s.pass(16 * time.Minute) // The last probe was at 15 minutes, and the next is due 8 minutes later.
	late := s.addWaiting()
	s.expectCosts("with an old verdict", time.Second, 1, 3)
	entry := s.requests[string(late.UID)].Status.Interceptors[0]
	if now := s.clock.Now(); entry.HeartbeatTime == nil || now.Sub(entry.HeartbeatTime.Time) > time.Second {
		t.Errorf("the time of the report is %v, and it is %v now", entry.HeartbeatTime, now)
	}
}

// webFixture has pods that wait for the budget "web", the oldest first. Evictions are answered by
// answer, and writes arrive in the cache at once.
func webFixture(t *testing.T, budget *policyv1.PodDisruptionBudget, answer func(pod *v1.Pod) error, names ...string) *fixture {
	t.Helper()
	f := newFixture(t, budget)
	f.imperative.evict = func(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		f.evicted = append(f.evicted, pod)
		return answer(pod)
	}
	f.writesArrive(t)
	for i, name := range names {
		f.enqueue(t)(pair(name, time.Duration(i)*time.Second))
	}
	f.runEvictions(t)
	return f
}

// writesArrive stores the statuses that are written in the cache.
func (f *fixture) writesArrive(t *testing.T) {
	f.client.PrependReactor("update", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		written := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.EvictionRequest)
		f.sendUpdate(t, written)
		return true, written, nil
	})
}

// later runs what is due after the given time.
func (f *fixture) later(t *testing.T, delay time.Duration) {
	t.Helper()
	f.clock.Step(delay)
	for item := range f.evictions.after {
		if item.budget.Name != "" {
			f.evictions.Add(item)
		}
	}
	clear(f.evictions.after)
	f.runEvictions(t)
}

// reports returns what the requests of these names say about the budget "web".
func (f *fixture) reports(t *testing.T, names ...string) (reports []report) {
	t.Helper()
	for _, key := range keys(names...) {
		request, err := f.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, reportOf(request, newBudget("web")))
	}
	return reports
}

func (f *fixture) expectReports(t *testing.T, want []report, names ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.reports(t, names...)); diff != "" {
		t.Errorf("unexpected reports (-want, +got):\n%s", diff)
	}
}

func refusing(*v1.Pod) error { return violation("it needs 3 and has 3") }

// The refusal of one pod is recorded for all; only its own is worth an event.
func TestVerdictIsRecorded(t *testing.T) {
	f := webFixture(t, newBudget("web"), refusing, "a", "b", "c")
	f.expectEvicted(t, "a")
	f.expectReports(t, []report{reportBudget, reportBudget, reportBudget}, "a", "b", "c")
	for _, status := range f.writes(t) {
		want := "PodDisruptionBudget web: " + violation("").Error() + " it needs 3 and has 3."
		if got := status.Conditions[0].Message; got != want {
			t.Errorf("got message %q, want %q", got, want)
		}
		if got := status.Interceptors[0]; got.Retries != 1 || got.Message != "Eviction refused (attempt 1): "+want || !got.HeartbeatTime.Time.Equal(start) {
			t.Errorf("unexpected report %v", got)
		}
	}
	for _, event := range f.events {
		if event.Regarding != "Pod pod-a" && event.Related != "Pod pod-a" {
			t.Errorf("unexpected event %v", event)
		}
	}
	if len(f.events) != 2 {
		t.Errorf("%d events, want 2", len(f.events))
	}
}

// What uses up the budget for a moment is nothing to record, and nothing to ask about. If its next version does not
// come, the evictions no longer count.
func TestBudgetThatIsUsedUp(t *testing.T) {
	f := webFixture(t, newBudget("web", allowing(1)), func(*v1.Pod) error { return nil }, "a", "b")
	f.expectEvicted(t, "a")
	f.later(t, quietPeriod-time.Second)
	f.expectEvicted(t)
	f.expectWrites(t)
	f.later(t, time.Second)
	f.expectEvicted(t, "b")
}

// While a budget lets pods go, the others are neither asked about nor recorded.
func TestBudgetThatMoves(t *testing.T) {
	f := webFixture(t, newBudget("web", allowing(1)), func(*v1.Pod) error { return nil }, "a", "b", "c")
	f.expectEvicted(t, "a")
	f.imperative.evict = func(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		f.evicted = append(f.evicted, pod)
		return violation("")
	}
	f.sendUpdate(t, newBudget("web", withVersion("2")))
	f.runEvictions(t)
	f.later(t, quietPeriod-time.Second)
	f.expectEvicted(t)
	f.expectWrites(t)
	f.later(t, time.Second)
	f.expectEvicted(t, "b")
	f.expectReports(t, []report{reportBudget, reportBudget}, "b", "c")
}

// A pod that is not ready leaves first, although another one is older: its eviction takes away no
// healthy pod, and that of a ready one would take away the one that lets the others go.
func TestPodsThatAreNotReadyAreFirst(t *testing.T) {
	// maxUnavailable is 67 % of three pods, one of which is ready.
	budget := func(pods int32, version string) *policyv1.PodDisruptionBudget {
		return newBudget("web", healthy(1, 0), allowing(1), withVersion(version), func(budget *policyv1.PodDisruptionBudget) { budget.Status.ExpectedPods = pods })
	}
	f := newFixture(t, budget(3, "1"))
	f.enqueue(t)(pair("ready", 0))
	f.enqueue(t)(pair("sick", time.Second, notReady))
	f.enqueue(t)(pair("sick-too", 2*time.Second, notReady))
	f.runEvictions(t)
	f.expectEvicted(t, "sick")
	f.sendUpdate(t, budget(2, "2"))
	f.runEvictions(t)
	f.expectEvicted(t, "sick-too")
	f.sendUpdate(t, budget(1, "3"))
	f.runEvictions(t)
	f.expectEvicted(t, "ready")
}

// A webhook or an error says nothing about the budget: another pod is asked about, but not at once.
func TestProbeWithoutAVerdict(t *testing.T) {
	for name, answer := range map[string]error{
		"a webhook": apierrors.NewForbidden(podResource, "pod-a", errUnreachable),
		"an error":  errUnreachable,
	} {
		t.Run(name, func(t *testing.T) {
			f := webFixture(t, newBudget("web"), func(pod *v1.Pod) error {
				if pod.Name == "pod-a" {
					return answer
				}
				return violation("")
			}, "a", "b", "c")
			f.expectEvicted(t, "a")
			f.later(t, budgetProbeInterval-time.Second)
			f.expectEvicted(t)
			f.expectReports(t, []report{reportNone, reportNone}, "b", "c")
			f.later(t, time.Second)
			f.expectEvicted(t, "b")
			f.expectReports(t, []report{reportBudget, reportBudget}, "b", "c")
		})
	}
}

// Pods that a webhook refuses are tried by themselves, when their own back-off is over, and never more
// than six a minute.
func TestPodsThatAWebhookRefusesUnderABudget(t *testing.T) {
	s := blockedCluster(t, 100)
	for uid := range s.pods {
		s.refusing[s.pods[uid].UID] = true
	}
	s.settle()
	for range 30 {
		if evictions, writes := s.costs(time.Minute); evictions > 6 || writes > 6 {
			t.Fatalf("%d evictions are tried in a minute, and %d statuses written", evictions, writes)
		}
	}
	clear(s.refusing)
	s.requireHealthy(0)
	s.pass(2 * maxRetryDelay)
	s.check("late", func(*eviction) bool { return false })
}

// A probe lasts as long as the webhooks of its pod. The others do not wait for it.
func TestEvictionDuringAProbe(t *testing.T) {
	f := newFixture(t, newBudget("web"))
	f.imperative.evict = func(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		f.evicted = append(f.evicted, pod)
		if pod.Name == "pod-a" {
			f.sendUpdate(t, newBudget("web", allowing(1), withVersion("2")))
			f.runEvictions(t)
			return violation("")
		}
		return nil
	}
	f.enqueue(t)(pair("a", 0))
	f.enqueue(t)(pair("b", time.Second))
	f.enqueue(t)(pair("c", 2*time.Second))
	f.runEvictions(t)
	f.expectEvicted(t, "a", "b")
}

// The cache is late: the API server allows what the cached budget does not. It is asked about the next
// pod soon, and until it refuses.
func TestProbeThatSucceeds(t *testing.T) {
	allowed := 2
	f := webFixture(t, newBudget("web"), func(*v1.Pod) error {
		if allowed--; allowed >= 0 {
			return nil
		}
		return violation("")
	}, "a", "b", "c", "d")
	f.expectEvicted(t, "a")
	f.later(t, contentionPause)
	f.expectEvicted(t, "b")
	f.later(t, contentionPause)
	f.expectEvicted(t, "c")
	f.later(t, time.Minute-time.Second)
	f.expectEvicted(t)
}

// A budget whose spec has changed is not asked about before the disruption controller had time to count,
// and what was said about the old one no longer holds.
func TestSpecChanges(t *testing.T) {
	f := webFixture(t, newBudget("web"), refusing, "a")
	f.expectEvicted(t, "a")
	f.later(t, 30*time.Second)
	changed := newBudget("web", withVersion("2"), func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 2 })
	f.sendUpdate(t, changed)
	f.enqueue(t)(pair("b", time.Second))
	f.runEvictions(t)
	f.later(t, quietPeriod-time.Second)
	f.expectEvicted(t)
	f.expectReports(t, []report{reportNone}, "b")
	f.later(t, time.Second)
	f.expectEvicted(t, "a")
	f.expectReports(t, []report{reportBudget}, "b")
	// A verdict about an old spec does not count.
	f.imperative.waiting.notice(newBudget("web", func(budget *policyv1.PodDisruptionBudget) { budget.Generation = 3 }), f.clock.Now())
	f.imperative.waiting.refused(changed, "old")
	if got := f.imperative.waiting.queues[named("web")[0]].verdict.refusals; got != 0 {
		t.Errorf("%d refusals of a budget that has changed", got)
	}
}

// A pod whose refusal cannot be recorded is evicted all the same.
func TestRefusalCannotBeRecorded(t *testing.T) {
	f := newFixture(t, newBudget("web"))
	f.evictErr = violation("")
	writes := 0
	f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		if writes++; writes > 50 {
			t.Fatal("the same writes are tried again and again")
		}
		return true, nil, errors.New("refused by a webhook")
	})
	for i, name := range []string{"a", "b", "c"} {
		f.enqueue(t)(pair(name, time.Duration(i)*time.Second))
	}
	f.runEvictions(t)
	if writes != 3 {
		t.Errorf("%d attempts to write, want one for each request", writes)
	}
	f.later(t, firstRetryDelay)
	if writes != 5 { // The first request, whose eviction was tried, has a timer of its own.
		t.Errorf("%d attempts to write after a second, want 5", writes)
	}
	f.expectEvicted(t, "a")
	f.evictErr = nil
	f.sendUpdate(t, newBudget("web", allowing(2), withVersion("2")))
	f.runEvictions(t)
	f.expectEvicted(t, "b", "c")
}

// If the API server contradicts the cache again and again, it is asked less often.
func TestContentionPauseGrows(t *testing.T) {
	web := named("web")[0]
	queues := waitingFor(web, "a", "b")
	now := start
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		queues.contend(web, "1", now)
		queues.contend(web, "1", now) // Two evictions were in flight.
		_, _, wait := queues.next(web, "1", now, allAllowed)
		if wait != want*time.Second {
			t.Errorf("pauses for %s, want %s", wait, want*time.Second)
		}
		now = now.Add(wait)
	}
	queues.contend(web, "2", now)
	if _, _, wait := queues.next(web, "2", now, allAllowed); wait != time.Second {
		t.Errorf("pauses for %s under a new version, want a second", wait)
	}
	queues.moved(web, "2", now, false)
	now = now.Add(time.Second)
	queues.contend(web, "2", now)
	if _, _, wait := queues.next(web, "2", now, allAllowed); wait != time.Second {
		t.Errorf("pauses for %s after an eviction, want a second", wait)
	}
}

func TestReportOf(t *testing.T) {
	both := condition(blocked, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "PodDisruptionBudgets all, web select this pod", 0)
	for name, test := range map[string]struct {
		change func(*coordinationv1alpha1.EvictionRequestStatus)
		want   report
	}{
		"nothing":                    {func(*coordinationv1alpha1.EvictionRequestStatus) {}, reportNone},
		"the budget":                 {blockedByBudget(0), reportBudget},
		"two budgets":                {both, reportNone},
		"another budget":             {condition(blocked, metav1.ConditionTrue, "DisruptionBudget", "PodDisruptionBudget web-2: no", 0), reportNone},
		"a webhook":                  {refusedOtherwise(0), reportOther},
		"the budget, some time ago":  {condition(blocked, metav1.ConditionFalse, "DisruptionBudget", "PodDisruptionBudget web: no", 0), reportNone},
		"a webhook, some time ago":   {condition(blocked, metav1.ConditionFalse, "NotBlocked", "", 0), reportNone},
		"something unlike a refusal": {condition(blocked, metav1.ConditionTrue, "DisruptionBudget", "", 0), reportNone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reportOf(newRequest(imperativeActive(test.change)), newBudget("web")); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// A probe or a record in flight keeps what is known about the budget, and no other one is sent.
func TestTakenForAProbe(t *testing.T) {
	web, none := named("web")[0], poddisruptionbudget.Allowance{}
	queues := waitingFor(web, "a", "b")
	a, found, _ := queues.probe(web, "1", start, none)
	if !found || a.Name != "a" {
		t.Fatalf("took %v", a)
	}
	if got, found, _ := queues.probe(web, "1", start, none); found {
		t.Errorf("took %s while a probe is in flight", got)
	}
	if got := queues.used(web, "1", start); got != 0 {
		t.Errorf("%d used, want 0", got)
	}
	if !queues.place(a, named("web"), &candidate{request: a}) {
		t.Error("placed a request that is taken")
	}
	for _, name := range []string{"a", "b"} {
		queues.forget(keys(name)[0])
	}
	if queues.queues[web] == nil {
		t.Error("the queue was dropped during a probe")
	}
	if !queues.probed(web, a) || len(queues.queues)+len(queues.taken) > 0 {
		t.Errorf("the change was lost, or something remains: %v", fmt.Sprint(queues.queues, queues.taken))
	}
	var unknown types.NamespacedName
	if _, _, found, _ := queues.unrecorded(unknown, start, none); found {
		t.Error("took a request of an unknown budget")
	}
}
