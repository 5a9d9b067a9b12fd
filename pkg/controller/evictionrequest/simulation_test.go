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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/utils/simulation"
	testingclock "k8s.io/utils/clock/testing"
)

// TestSimulation runs the controller through random histories: pods, budgets and requests are
// created, changed and deleted; caches are stale; calls fail, or other changes happen while they
// are in flight; the controller restarts; evictors call pods/eviction again and again, join requests
// of others, and give up. Then the changes stop, except those that follow from evictions, and the
// calls of some evictors. The checks are: each pod that may be evicted is evicted, soon and without an
// event; no budget has more evictions in flight than allowed; one that allows nothing is asked at most
// every ten seconds; what a request says about its budget is written once; no write fails because of
// another one of the controller; the callers of pods/eviction are
// withdrawn when their calls have expired, and not before; and no state remains in memory at the end.
func TestSimulation(t *testing.T) {
	simulation.Run(t, 100, simulate)
}

func simulate(t *testing.T, seed uint64) {
	s := newSimulation(t, seed)
	for range 30 + s.rand.IntN(120) {
		s.disturb()
		s.call()
		s.progress(s.rand.IntN(6))
	}
	s.calm()
	// Shorter than any safety interval: a pod that is evicted later missed its event.
	s.pass(15 * time.Second)
	s.check("soon", func(e *eviction) bool { return s.isDelayed(e) })
	// All delays have passed.
	s.pass(2*maxRetryDelay + 2*safetyInterval)
	s.check("late", func(*eviction) bool { return false })
	s.checkCallsExpired()
	clear(s.evictors)
	s.checkIdle()
	s.checkNoEntries()
}

// sim simulates an API server, with the PodDisruptionBudgets of the pods/eviction subresource, the
// disruption controller, a controller that replaces pods, and kubelets.
type sim struct {
	*fixture
	t    *testing.T
	rand *rand.Rand
	ctx  context.Context

	version  int
	requests map[string]*coordinationv1alpha1.EvictionRequest
	pods     map[string]*v1.Pod
	budgets  map[string]*policyv1.PodDisruptionBudget
	// events are queued by kind of object until they reach the caches.
	events map[string][]func()
	// refusing are pods whose eviction a webhook refuses.
	refusing map[types.UID]bool
	// evictors are the callers of pods/eviction, by pod.
	evictors map[types.UID]*evictor

	decisions *simQueue[types.NamespacedName]
	evictions *simQueue[evictionItem]
	// inFlight counts evictions by budget, according to the caches.
	inFlight map[string]int
	depth    int
	chaos    bool
	// calls counts the writes and the evictions, writes only the former.
	calls, writes int
	// probes are the last evictions that the cached budget did not allow, by budget.
	probes map[string]probed
	// tried are the pods whose evictions were tried since their requests were written.
	tried map[types.UID]bool
	// own are the versions of requests that the controller has written.
	own     map[string]string
	history []string
}

func newSimulation(t *testing.T, seed uint64) *sim {
	s := &sim{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), ctx: klog.NewContext(context.Background(), logr.Discard()),
		requests: map[string]*coordinationv1alpha1.EvictionRequest{}, pods: map[string]*v1.Pod{}, budgets: map[string]*policyv1.PodDisruptionBudget{},
		events: map[string][]func(){}, refusing: map[types.UID]bool{}, evictors: map[types.UID]*evictor{}, inFlight: map[string]int{}, chaos: true,
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("history: %v", s.history)
		}
	})
	client := fake.NewClientset()
	client.PrependReactor("*", "*", s.react)
	s.start(client, testingclock.NewFakeClock(start))
	return s
}

// start starts a new controller without any state.
func (s *sim) start(client *fake.Clientset, clock *testingclock.FakeClock) {
	s.fixture = newFixtureFor(s.t, client, clock)
	s.Controller.writer.recorder = discardedEvents{}
	s.decisions, s.evictions = newSimQueue[types.NamespacedName](clock, s.rand), newSimQueue[evictionItem](clock, s.rand)
	s.Controller.queue, s.imperative.queue, s.imperative.evict = s.decisions, s.evictions, s.evictPod
	s.Controller.pods = func(_ context.Context, _, name string) (*v1.Pod, error) {
		if pod := s.pods[name]; pod != nil {
			return pod.DeepCopy(), nil
		}
		return nil, notFound(name)
	}
	s.imperative.pods = s.Controller.pods
	s.events, s.probes, s.tried, s.own = map[string][]func(){}, map[string]probed{}, map[types.UID]bool{}, map[string]string{}
	var objects []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(s.requests)) {
		objects = append(objects, s.requests[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		objects = append(objects, s.pods[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(s.budgets)) {
		objects = append(objects, s.budgets[name].DeepCopy())
	}
	for _, object := range objects {
		s.addToCache(s.t, object)
	}
	for _, object := range objects {
		s.informerOf(s.t, object).handler.OnAdd(object, true)
	}
}

// probed is the last eviction that a cached budget did not allow.
type probed struct {
	queue   *budgetQueue
	at      time.Time
	allowed bool
}

// checkProbe checks the time of such an eviction. A budget for which no request has waited since is
// asked at once.
func (s *sim) checkProbe(budget *policyv1.PodDisruptionBudget) {
	queue, now := s.imperative.waiting.queues[keyOf(budget)], s.clock.Now()
	least := budgetProbeInterval
	last := s.probes[budget.Name]
	if last.allowed {
		least = contentionPause
	}
	if since := now.Sub(last.at); queue != nil && last.queue == queue && since < least {
		s.t.Errorf("budget %s, which allows nothing, is asked again after %s", budget.Name, since)
	}
	s.probes[budget.Name] = probed{queue: queue, at: now}
}

// checkStatus checks a status that replaces another one.
func (s *sim) checkStatus(before, after *coordinationv1alpha1.EvictionRequest) {
	refusals := func(request *coordinationv1alpha1.EvictionRequest) int32 {
		entry := evictionrequesttools.InterceptorStatusOf(&request.Status, builtIn)
		if entry == nil {
			return 0
		}
		return entry.Retries
	}
	for _, budget := range s.budgets {
		if reportOf(before, budget) == reportBudget && reportOf(after, budget) == reportBudget && refusals(after) > refusals(before) && !s.tried[types.UID(after.Name)] {
			s.t.Errorf("that budget %s blocks %s is written again", budget.Name, after.Name)
		}
	}
	delete(s.tried, types.UID(after.Name))
}

type discardedEvents struct{}

func (discardedEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func (s *sim) record(format string, args ...any) {
	s.history = append(s.history, s.clock.Now().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...)+"\n")
}

// store writes an object and queues its event.
func (s *sim) store(object runtime.Object) {
	s.version++
	object.(metav1.Object).SetResourceVersion(strconv.Itoa(s.version))
	kind := ""
	switch object := object.(type) {
	case *coordinationv1alpha1.EvictionRequest:
		kind, s.requests[object.Name] = "request", object
	case *v1.Pod:
		kind, s.pods[object.Name] = "pod", object
	case *policyv1.PodDisruptionBudget:
		kind, s.budgets[object.Name] = "budget", object
	}
	seen := object.DeepCopyObject()
	s.events[kind] = append(s.events[kind], func() { s.sendUpdate(s.t, seen) })
}

// erase deletes an object and queues its event.
func (s *sim) erase(object runtime.Object) {
	kind := ""
	switch object := object.(type) {
	case *coordinationv1alpha1.EvictionRequest:
		kind = "request"
		delete(s.requests, object.Name)
	case *v1.Pod:
		kind = "pod"
		delete(s.pods, object.Name)
	case *policyv1.PodDisruptionBudget:
		kind = "budget"
		delete(s.budgets, object.Name)
	}
	// Like any write, a deletion has a new version. The cache would otherwise seem to get older.
	s.version++
	deleted := object.DeepCopyObject()
	deleted.(metav1.Object).SetResourceVersion(strconv.Itoa(s.version))
	s.events[kind] = append(s.events[kind], func() { s.sendDelete(s.t, deleted) })
}

// deliver delivers the next event of a random kind to the caches.
func (s *sim) deliver() bool {
	kinds := slices.Sorted(maps.Keys(s.events))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return len(s.events[kind]) == 0 })
	if len(kinds) == 0 {
		return false
	}
	kind := kinds[s.rand.IntN(len(kinds))]
	event := s.events[kind][0]
	s.events[kind] = s.events[kind][1:]
	event()
	return true
}

// progress runs random steps: deliver an event, sync a request, or evict.
func (s *sim) progress(steps int) {
	for range steps {
		switch s.rand.IntN(3) {
		case 0:
			s.deliver()
		case 1:
			s.work()
		case 2:
			s.evictSome()
		}
	}
}

func (s *sim) work() bool {
	key, found := s.decisions.take()
	if !found {
		return false
	}
	err, paced := s.syncRequest(s.ctx, key), (*waitError)(nil)
	switch { // As workOnce.
	case errors.As(err, &paced):
		s.decisions.AddAfter(key, paced.wait)
	case err != nil:
		s.decisions.AddRateLimited(key)
	default:
		s.decisions.Forget(key)
	}
	s.decisions.Done(key)
	return true
}

func (s *sim) evictSome() bool {
	item, found := s.evictions.take()
	if !found {
		return false
	}
	s.imperative.sync(s.ctx, item)
	s.evictions.Done(item)
	return true
}

// settle runs all steps that need no time to pass.
func (s *sim) settle() {
	for round := 0; ; round++ {
		if round > 100000 {
			s.t.Fatal("the simulation does not settle")
		}
		s.respond()
		s.call()
		if !s.deliver() && !s.work() && !s.evictSome() {
			return
		}
	}
}

// pass advances the clock, from one due item of the queues to the next.
func (s *sim) pass(duration time.Duration) {
	for end := s.clock.Now().Add(duration); ; {
		s.settle()
		next := end
		for _, queue := range []interface{ nextDue() (time.Time, bool) }{s.decisions, s.evictions} {
			if due, found := queue.nextDue(); found && due.Before(next) {
				next = due
			}
		}
		if due := s.sweeper.last.Add(sweepInterval); due.Before(next) {
			next = due
		}
		for _, e := range s.evictors {
			if e.next.Before(next) {
				next = e.next
			}
		}
		if !next.Before(end) {
			s.clock.SetTime(end)
			s.settle()
			return
		}
		if next.After(s.clock.Now()) {
			s.clock.SetTime(next)
		}
		if s.clock.Since(s.sweeper.last) >= sweepInterval {
			s.sweepOnce(s.clock.Now())
		}
	}
}

// calm stops the random changes. Some evictors give up.
func (s *sim) calm() {
	s.chaos = false
	for _, uid := range slices.Sorted(maps.Keys(s.evictors)) {
		if s.rand.IntN(2) == 0 {
			s.giveUp(uid)
		}
	}
	s.settle()
}

// respond simulates the other components after an eviction: pods terminate, budgets are updated.
func (s *sim) respond() {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if pod := s.pods[name]; pod.DeletionTimestamp != nil {
			s.replacePod(pod)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.budgets)) {
		s.countBudget(s.budgets[name])
	}
}

// replacePod deletes a pod and creates a ready one in its place.
func (s *sim) replacePod(pod *v1.Pod) {
	s.erase(pod)
	delete(s.refusing, pod.UID)
	s.createPod(pod.Labels["app"], true)
}

func (s *sim) createPod(app string, ready bool) *v1.Pod {
	name := fmt.Sprintf("pod-%d", s.version)
	pod := newPod(podUIDIs(types.UID("uid-"+name)), podLabels(map[string]string{"app": app}))
	pod.Name = name
	if !ready {
		notReady(pod)
	}
	s.store(pod)
	return pod
}

// countBudget simulates the disruption controller.
func (s *sim) countBudget(budget *policyv1.PodDisruptionBudget) {
	counted := budget.DeepCopy()
	healthy, expected := 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		pod := s.pods[name]
		if !selects(budget, pod) || pod.Status.Phase != v1.PodRunning {
			continue
		}
		expected++
		_, disrupted := counted.Status.DisruptedPods[name]
		if pod.DeletionTimestamp != nil {
			delete(counted.Status.DisruptedPods, name)
		} else if isReady(pod) && !disrupted {
			healthy++
		}
	}
	for name := range counted.Status.DisruptedPods {
		if s.pods[name] == nil {
			delete(counted.Status.DisruptedPods, name)
		}
	}
	status := &counted.Status
	status.ExpectedPods, status.CurrentHealthy = int32(expected), int32(healthy)
	status.DesiredHealthy = budget.Spec.MinAvailable.IntVal
	status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	status.ObservedGeneration = counted.Generation
	if before, after := fmt.Sprint(budget.Status), fmt.Sprint(*status); before != after {
		s.store(counted)
	}
}

func isReady(pod *v1.Pod) bool { return pod.Status.Conditions[0].Status == v1.ConditionTrue }

func selects(budget *policyv1.PodDisruptionBudget, pod *v1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// disturb makes one random change.
func (s *sim) disturb() {
	apps := []string{"web", "db", "log"}
	app := apps[s.rand.IntN(len(apps))]
	name := []string{"a", "b", "c"}[s.rand.IntN(3)]
	pod, request, budget := pick(s.rand, s.pods), pick(s.rand, s.requests), s.budgets[name]
	switch choice := s.rand.IntN(26); {
	case choice < 4:
		s.createPod(app, s.rand.IntN(4) > 0)
	case choice < 8 && pod != nil:
		s.request(pod)
	case choice == 8 && budget == nil:
		created := newBudget(name, selecting(app))
		created.UID = types.UID(fmt.Sprint("budget-", s.version))
		created.Spec.MinAvailable.IntVal = int32(s.rand.IntN(4))
		created.Status = policyv1.PodDisruptionBudgetStatus{}
		s.record("budget %s of %s, %d", name, app, created.Spec.MinAvailable.IntVal)
		s.store(created)
	case choice == 9 && budget != nil:
		s.record("no budget %s", name)
		s.erase(budget)
	case choice < 12 && budget != nil:
		s.changeBudget(budget.DeepCopy(), app)
	case choice == 12 && pod != nil && pod.DeletionTimestamp == nil:
		changed := pod.DeepCopy()
		changed.Status.Conditions[0].Status = map[bool]v1.ConditionStatus{true: v1.ConditionFalse, false: v1.ConditionTrue}[isReady(pod)]
		delete(s.refusing, pod.UID)
		s.record("%s ready %t", pod.Name, isReady(changed))
		s.store(changed)
	case choice == 13 && pod != nil && pod.DeletionTimestamp == nil:
		changed := pod.DeepCopy()
		changed.Labels = map[string]string{"app": app}
		delete(s.refusing, pod.UID)
		s.record("%s is of %s", pod.Name, app)
		s.store(changed)
	case choice == 14 && request != nil:
		changed := request.DeepCopy()
		changed.Spec.Requesters = nil
		if s.rand.IntN(2) == 0 {
			changed.Spec.Requesters = slices.DeleteFunc(slices.Clone(request.Spec.Requesters), func(r coordinationv1alpha1.Requester) bool {
				return r.Name != coordinationv1alpha1.EvictionRequesterEvictions
			})
		}
		changed.Generation++
		s.record("%s is withdrawn, except for %v", request.Name, changed.Spec.Requesters)
		s.store(changed)
	case choice == 15 && pod != nil:
		s.refusing[pod.UID] = true
		s.record("%s is refused", pod.Name)
	case choice == 16:
		s.respond()
	case choice == 17 && s.rand.IntN(3) == 0:
		s.record("restart")
		s.start(s.client, s.clock)
	case choice < 21 && pod != nil:
		interval := []time.Duration{5 * time.Second, 20 * time.Second, 10 * time.Minute}[s.rand.IntN(3)]
		s.record("%s is evicted every %v", pod.Name, interval)
		s.evictors[pod.UID] = &evictor{pod: pod.Name, interval: interval, next: s.clock.Now()}
	case choice == 21 && len(s.evictors) > 0:
		uids := slices.Sorted(maps.Keys(s.evictors))
		s.giveUp(uids[s.rand.IntN(len(uids))])
	case choice == 22:
		s.clock.Step(time.Duration(s.rand.IntN(10)) * time.Minute)
	case choice == 23 && request != nil:
		s.skip(request.DeepCopy())
	default:
		s.clock.Step(time.Duration(s.rand.IntN(90)) * time.Second)
	}
}

// evictor calls pods/eviction for a pod that has interceptors.
type evictor struct {
	pod        string
	interval   time.Duration
	next, last time.Time
}

func (s *sim) giveUp(uid types.UID) {
	s.record("%s is evicted no longer", s.evictors[uid].pod)
	delete(s.evictors, uid)
}

// call makes the calls that are due. It simulates the admission plugin InterceptedEviction.
func (s *sim) call() {
	for _, uid := range slices.Sorted(maps.Keys(s.evictors)) {
		e, now := s.evictors[uid], s.clock.Now()
		if now.Before(e.next) {
			continue
		}
		pod, request := s.pods[e.pod], s.requests[string(uid)]
		if pod == nil || pod.UID != uid || pod.DeletionTimestamp != nil {
			delete(s.evictors, uid)
			continue
		}
		e.next, e.last = now.Add(e.interval), now
		if request != nil && evictionrequesttools.IsFinished(request.Status.Conditions) {
			s.erase(request)
			request = nil
		}
		var called *coordinationv1alpha1.EvictionRequest
		if request == nil {
			called = s.newRequest(pod)
			called.Spec.Requesters = nil
		} else if recorded, known := evictionrequesttools.EvictionCallTime(request); known && now.Sub(recorded) < time.Minute && evictionrequesttools.IsRequestedByCalls(request) {
			continue
		} else {
			called = request.DeepCopy()
		}
		if !evictionrequesttools.IsRequestedByCalls(called) {
			called.Spec.Requesters = append(called.Spec.Requesters, coordinationv1alpha1.Requester{Name: coordinationv1alpha1.EvictionRequesterEvictions})
			called.Generation++
		}
		called.Annotations = map[string]string{coordinationv1alpha1.EvictionCallTimeAnnotation: now.UTC().Format(time.RFC3339)}
		s.record("call for %s", pod.Name)
		s.store(called)
	}
}

// checkWithdrawal checks a patch by which the controller withdraws the callers of pods/eviction.
func (s *sim) checkWithdrawal(request, patch *coordinationv1alpha1.EvictionRequest) {
	s.t.Helper()
	if called, known := evictionrequesttools.EvictionCallTime(request); known && s.clock.Now().Sub(called) < callTTL {
		s.t.Errorf("the callers of %s are withdrawn %v after a call", request.Name, s.clock.Now().Sub(called))
	}
	left := evictionrequesttools.RequestersWithoutCalls(request)
	if !slices.EqualFunc(left, patch.Spec.Requesters, func(a, b coordinationv1alpha1.Requester) bool { return a.Name == b.Name }) {
		s.t.Errorf("the withdrawal of the callers of %s leaves the requesters %v of %v", request.Name, patch.Spec.Requesters, request.Spec.Requesters)
	}
	if e := s.evictors[types.UID(request.Name)]; e != nil && s.clock.Now().Sub(e.last) < callTTL-time.Minute {
		s.t.Errorf("the callers of %s are withdrawn %v after a call that was not recorded", request.Name, s.clock.Now().Sub(e.last))
	}
}

// checkCallsExpired fails if a request still waits for callers that have given up long ago.
func (s *sim) checkCallsExpired() {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.requests)) {
		request := s.requests[name]
		if evictionrequesttools.IsFinished(request.Status.Conditions) || !evictionrequesttools.IsRequestedByCalls(request) {
			continue
		}
		called, _ := evictionrequesttools.EvictionCallTime(request)
		if age := s.clock.Now().Sub(called); age > 2*callTTL {
			s.t.Errorf("the last call for %s was %v ago, and the callers are not withdrawn", name, age)
		}
	}
}

func (s *sim) request(pod *v1.Pod) {
	if s.requests[string(pod.UID)] != nil {
		return
	}
	s.record("request %s", pod.Name)
	s.store(s.newRequest(pod))
}

func (s *sim) newRequest(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	request := newRequest(requestLabels(maps.Clone(pod.Labels)))
	request.Name, request.UID = string(pod.UID), types.UID(fmt.Sprintf("request-%d-%s", s.version, pod.Name))
	request.CreationTimestamp = metav1.Time{Time: s.clock.Now()}
	request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}
	return request
}

// skip has the interceptors of a request passed over, at any time of its life.
func (s *sim) skip(request *coordinationv1alpha1.EvictionRequest) {
	if meta.IsStatusConditionTrue(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped)) {
		return // It stays so.
	}
	s.record("the interceptors of %s are skipped", request.Name)
	skipped(&request.Status)
	s.store(request)
}

func (s *sim) changeBudget(budget *policyv1.PodDisruptionBudget, app string) {
	switch s.rand.IntN(3) {
	case 0:
		budget.Spec.MinAvailable.IntVal = int32(s.rand.IntN(4))
	case 1:
		selecting(app)(budget)
	case 2:
		evictingUnhealthy([]policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}[s.rand.IntN(2)])(budget)
	}
	budget.Generation++
	s.record("budget %s changes: %v", budget.Name, budget.Spec)
	s.store(budget)
}

func pick[T any](rand *rand.Rand, objects map[string]T) (picked T) {
	if len(objects) == 0 {
		return picked
	}
	names := slices.Sorted(maps.Keys(objects))
	return objects[names[rand.IntN(len(names))]]
}

// react simulates the API server for the controller's writes.
func (s *sim) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetResource().Resource != "evictionrequests" {
		return true, nil, fmt.Errorf("unexpected %v", action)
	}
	s.calls++
	if s.chaos && s.rand.IntN(8) == 0 {
		return true, nil, apierrors.NewInternalError(errUnreachable)
	}
	conflict := apierrors.NewConflict(evictionRequestResource, "", errUnreachable)
	switch action := action.(type) {
	case clienttesting.UpdateAction:
		updated := action.GetObject().(*coordinationv1alpha1.EvictionRequest)
		current := s.requests[updated.Name]
		if current == nil {
			return true, nil, apierrors.NewNotFound(evictionRequestResource, updated.Name)
		}
		if current.ResourceVersion != updated.ResourceVersion {
			if current.ResourceVersion == s.own[current.Name] {
				s.t.Errorf("the status of %s is written over version %s, which this controller has replaced", current.Name, updated.ResourceVersion)
			}
			return true, nil, conflict
		}
		return true, s.storeStatus(current, updated), nil
	case clienttesting.PatchAction:
		current := s.requests[action.GetName()]
		if current == nil {
			return true, nil, apierrors.NewNotFound(evictionRequestResource, action.GetName())
		}
		if action.GetPatchType() == types.JSONPatchType {
			written, err := s.patch(current, action.GetPatch())
			return true, written, err
		}
		var patch coordinationv1alpha1.EvictionRequest
		if err := json.Unmarshal(action.GetPatch(), &patch); err != nil {
			return true, nil, err
		}
		if patch.UID != current.UID || patch.ResourceVersion != "" && patch.ResourceVersion != current.ResourceVersion {
			return true, nil, conflict
		}
		written := current.DeepCopy()
		maps.Copy(written.Labels, patch.Labels)
		s.writes++
		s.store(written)
		s.own[written.Name] = written.ResourceVersion
		return true, written.DeepCopy(), nil
	case clienttesting.DeleteAction:
		current, wanted := s.requests[action.GetName()], action.GetDeleteOptions().Preconditions
		if current == nil {
			return true, nil, apierrors.NewNotFound(evictionRequestResource, action.GetName())
		}
		if current.UID != *wanted.UID || current.ResourceVersion != *wanted.ResourceVersion {
			return true, nil, conflict
		}
		s.erase(current)
		return true, nil, nil
	case clienttesting.GetAction:
		if current := s.requests[action.GetName()]; current != nil {
			return true, current.DeepCopy(), nil
		}
		return true, nil, apierrors.NewNotFound(evictionRequestResource, action.GetName())
	}
	return true, nil, fmt.Errorf("unexpected %v", action)
}

// storeStatus stores the status of a request that the controller has written, and returns the request as it is then.
func (s *sim) storeStatus(current, updated *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.EvictionRequest {
	s.writes++
	s.checkStatus(current, updated)
	written := current.DeepCopy()
	written.Status = *updated.Status.DeepCopy()
	if pod := s.pods[targetName(written)]; isWithdrawn(&written.Status) &&
		pod != nil && string(pod.UID) == written.Name && pod.DeletionTimestamp != nil {
		s.t.Errorf("request %s is canceled, but its pod %s terminates", written.Name, pod.Name)
	}
	s.store(written)
	s.own[written.Name] = written.ResourceVersion
	return written.DeepCopy()
}

// patch stores what a JSON patch makes of a request, if its tests succeed: so the controller withdraws calls, and writes the
// status after several conflicts in succession.
func (s *sim) patch(current *coordinationv1alpha1.EvictionRequest, patch []byte) (*coordinationv1alpha1.EvictionRequest, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, apierrors.NewInvalid(coordinationv1alpha1.SchemeGroupVersion.WithKind("EvictionRequest").GroupKind(), current.Name, nil)
	}
	updated := &coordinationv1alpha1.EvictionRequest{}
	if err := json.Unmarshal(after, updated); err != nil {
		return nil, err
	}
	if apiequality.Semantic.DeepEqual(updated.Spec, current.Spec) {
		return s.storeStatus(current, updated), nil
	}
	s.checkWithdrawal(current, updated)
	s.record("the callers of %s are withdrawn", current.Name)
	updated.Generation++
	s.writes++
	s.store(updated)
	s.own[updated.Name] = updated.ResourceVersion
	return updated.DeepCopy(), nil
}

// evictPod handles the eviction call of the controller. Other changes happen before it returns.
func (s *sim) evictPod(_ context.Context, request *coordinationv1alpha1.EvictionRequest, interceptor string, pod *v1.Pod) (err error) {
	s.calls++
	s.tried[pod.UID] = true
	if known := poddisruptionbudget.Applicable(pod, s.imperative.budgetIndex.For(pod)); len(known) == 1 {
		budget := known[0].Name
		s.inFlight[budget]++
		defer func() { s.inFlight[budget]-- }()
		if s.inFlight[budget] > maxEvictionsPerBudget {
			s.t.Errorf("%d evictions under budget %s are in flight", s.inFlight[budget], budget)
		}
		if !poddisruptionbudget.AllowanceOf(known[0], 0).Allows(podutil.IsPodReady(pod)) {
			s.checkProbe(known[0])
			defer func() {
				last := s.probes[budget]
				last.at, last.allowed = s.clock.Now(), err == nil
				s.probes[budget] = last
			}()
		}
	}
	if s.chaos && s.depth < 3 {
		s.depth++
		s.progress(s.rand.IntN(8))
		s.depth--
		switch s.rand.IntN(16) {
		case 0:
			return errUnreachable
		case 1:
			return apierrors.NewTooManyRequests("busy", s.rand.IntN(10)+1)
		case 2:
			return budgetNotFound()
		case 3:
			_ = s.evict(request, interceptor, pod)
			return errUnreachable // The eviction succeeded, and the response was lost.
		}
	}
	err = s.evict(request, interceptor, pod)
	s.record("evict %s: %v", pod.Name, err)
	return err
}

// evict simulates the pods/eviction subresource, which evicts for a request that wants it at the moment.
func (s *sim) evict(request *coordinationv1alpha1.EvictionRequest, interceptor string, seen *v1.Pod) error {
	pod, stored := s.pods[seen.Name], s.requests[string(seen.UID)]
	switch {
	case pod == nil:
		return notFound(seen.Name)
	case stored == nil || stored.UID != request.UID || evictionrequesttools.IsFinished(stored.Status.Conditions) ||
		!evictionrequesttools.IsWanted(stored) || activeInterceptor(&stored.Status) != interceptor:
		return notRequested()
	case seen.UID != pod.UID:
		return apierrors.NewConflict(podResource, pod.Name, errUnreachable)
	case pod.DeletionTimestamp != nil:
		return nil
	case s.refusing[pod.UID]:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errUnreachable)
	}
	budgets := s.budgetsOf(pod)
	if len(budgets) > 1 {
		return twoBudgets()
	}
	if len(budgets) == 1 {
		budget := budgets[0].DeepCopy()
		always := budget.Spec.UnhealthyPodEvictionPolicy != nil && *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
		enough := budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
		if isReady(pod) || !always && !enough {
			if budget.Status.ObservedGeneration < budget.Generation {
				return delayedViolation(10)
			}
			if budget.Status.DisruptionsAllowed == 0 {
				return violation("no disruptions allowed")
			}
			budget.Status.DisruptionsAllowed--
			if budget.Status.DisruptedPods == nil {
				budget.Status.DisruptedPods = map[string]metav1.Time{}
			}
			budget.Status.DisruptedPods[pod.Name] = metav1.Time{}
			s.store(budget)
		}
	}
	deleted := pod.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: s.clock.Now().Add(30 * time.Second)}
	s.store(deleted)
	return nil
}

func (s *sim) budgetsOf(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	var budgets []*policyv1.PodDisruptionBudget
	for _, name := range slices.Sorted(maps.Keys(s.budgets)) {
		if selects(s.budgets[name], pod) {
			budgets = append(budgets, s.budgets[name])
		}
	}
	return budgets
}

// isDelayed reports whether a request may still wait for a retry: it was refused by something that
// sends no event when it stops refusing, or its calls have failed.
func (s *sim) isDelayed(e *eviction) bool {
	return isBlockedBy(&e.request.Status, coordinationv1alpha1.EvictionRequestReasonEvictionRefused) ||
		s.imperative.backoff.NumRequeues(e.key()) > 2 || s.decisions.limiter.NumRequeues(e.key()) > 2 ||
		s.imperative.retryAfter.remaining(e.pod.UID, s.clock.Now().Add(-15*time.Second)) > 0
}

// check fails if a pod still exists that may be evicted.
func (s *sim) check(when string, excused func(*eviction) bool) {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.requests)) {
		request := s.requests[name]
		pod := s.pods[targetName(request)]
		if pod == nil || evictionrequesttools.IsFinished(request.Status.Conditions) {
			if pod == nil && !evictionrequesttools.IsFinished(request.Status.Conditions) {
				s.t.Errorf("%s: the request for pod %s is not finished although the pod is gone", when, targetName(request))
			}
			continue
		}
		e := &eviction{request: request, pod: pod, budgets: s.budgetsOf(pod)}
		if !s.refusing[pod.UID] && evictionrequesttools.IsWanted(request) && poddisruptionbudget.AllowEviction(pod, podutil.IsPodReady(pod), e.budgets) && !excused(e) {
			s.t.Errorf("%s: pod %s (ready %t) is not evicted although the budgets allow it: %+v, budgets %+v", when, pod.Name, isReady(pod), request.Status, e.budgets)
		}
		if !evictionrequesttools.IsWanted(request) && pod.DeletionTimestamp == nil {
			s.t.Errorf("%s: request %s is not canceled although it has no requesters", when, name)
		}
	}
}

// checkIdle fails if calls are made although nothing changes, except the retries of blocked
// requests and their status writes.
func (s *sim) checkIdle() {
	s.t.Helper()
	open := 0
	for _, request := range s.requests {
		if evictionrequesttools.IsFinished(request.Status.Conditions) {
			s.erase(request) // The TTL is tested elsewhere.
		} else {
			open++
		}
	}
	s.settle()
	before := s.calls
	s.pass(time.Hour)
	if calls, most := s.calls-before, open*2*5; calls > most {
		s.t.Errorf("%d calls in an idle hour with %d open requests, want at most %d", calls, open, most)
	}
}

// checkNoEntries fails if state remains in memory after all requests are deleted.
func (s *sim) checkNoEntries() {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.requests)) {
		s.erase(s.requests[name])
	}
	s.settle()
	s.pass(2 * safetyInterval)
	if got := s.storedEntries(); got > 0 {
		s.t.Errorf("%d entries in memory after all requests are deleted", got)
	}
}

// simQueue is a queue without a background goroutine. Like the real one, it never hands out a key
// to two workers. It hands them out in random order: that of the controller's maps is not the same
// whenever a seed is repeated.
type simQueue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	clock   *testingclock.FakeClock
	rand    *rand.Rand
	limiter workqueue.TypedRateLimiter[T]

	ready   []T
	working map[T]bool // The value is whether it was added again.
	delayed map[T]time.Time
}

func newSimQueue[T comparable](clock *testingclock.FakeClock, rand *rand.Rand) *simQueue[T] {
	return &simQueue[T]{
		clock: clock, rand: rand, limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetryDelay, maxDecisionRetryDelay),
		working: map[T]bool{}, delayed: map[T]time.Time{},
	}
}

func (q *simQueue[T]) Add(key T) {
	if _, working := q.working[key]; working {
		q.working[key] = true
	} else if !slices.Contains(q.ready, key) {
		q.ready = append(q.ready, key)
	}
}

func (q *simQueue[T]) AddAfter(key T, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	if delay >= safetyInterval && delay <= safetyInterval*6/5 {
		delay = safetyInterval // The jitter does not depend on the seed.
	}
	due := q.clock.Now().Add(delay)
	if known, found := q.delayed[key]; !found || due.Before(known) {
		q.delayed[key] = due
	}
}

func (q *simQueue[T]) AddRateLimited(key T) { q.AddAfter(key, q.limiter.When(key)) }

func (q *simQueue[T]) Forget(key T) { q.limiter.Forget(key) }

func (q *simQueue[T]) take() (key T, found bool) {
	for key, at := range q.delayed {
		if !at.After(q.clock.Now()) {
			delete(q.delayed, key)
			q.Add(key)
		}
	}
	if len(q.ready) == 0 {
		return key, false
	}
	slices.SortFunc(q.ready, func(a, b T) int { return cmpStrings(fmt.Sprint(a), fmt.Sprint(b)) })
	index := q.rand.IntN(len(q.ready))
	key = q.ready[index]
	q.ready = slices.Delete(q.ready, index, index+1)
	q.working[key] = false
	return key, true
}

func (q *simQueue[T]) Done(key T) {
	again := q.working[key]
	delete(q.working, key)
	if again {
		q.Add(key)
	}
}

func (q *simQueue[T]) nextDue() (next time.Time, found bool) {
	for _, at := range q.delayed {
		if !found || at.Before(next) {
			next, found = at, true
		}
	}
	return next, found
}
