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
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

var (
	requestsGVR = coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests")
	podsGVR     = v1.SchemeGroupVersion.WithResource("pods")
	budgetsGVR  = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
)

// outcome is the part of the final state that must not depend on the order of events. The number of
// refusals may.
type outcome struct {
	Canceled, Evicted, Blocked string // the reason of the condition when it is True
	Active, Processed          []string
	EvictedPods                []types.UID
	StoredEntries              int // entries that are still kept in memory
}

// scenario is a sequence of actions whose events reach the controller in every possible order.
type scenario struct {
	objects []runtime.Object
	// actions happen in this order, each as soon as it is possible or at any time later.
	actions []userAction
	want    outcome
}

// userAction changes the cluster once it is possible.
type userAction struct {
	possible func(*fakeCluster) bool
	act      func(*fakeCluster)
}

func TestEveryOrderEndsInTheSameState(t *testing.T) {
	initialized := func(w *fakeCluster) bool { return isInitialized(&w.request().Status) }
	always := func(*fakeCluster) bool { return true }
	opens := userAction{possible: always, act: func(w *fakeCluster) {
		w.changeBudget(func(budget *policyv1.PodDisruptionBudget) { budget.Status.DisruptionsAllowed++ })
	}}
	dies := userAction{possible: func(w *fakeCluster) bool { return w.pod().DeletionTimestamp != nil }, act: (*fakeCluster).removePod}
	replaced := userAction{possible: initialized, act: (*fakeCluster).replacePod}
	leaves := userAction{possible: initialized, act: func(w *fakeCluster) { w.changeRequest(withoutRequesters) }}
	completes := userAction{
		possible: func(w *fakeCluster) bool { return activeInterceptor(&w.request().Status) == first },
		act: func(w *fakeCluster) {
			w.changeRequest(func(request *coordinationv1alpha1.EvictionRequest) { reporting(done(first, 0))(&request.Status) })
		},
	}
	restarts := userAction{possible: always, act: (*fakeCluster).restart}

	byEviction := outcome{Evicted: "PodDeleted", Processed: []string{builtIn}, EvictedPods: []types.UID{podUID}}
	afterInterceptor := outcome{Evicted: "PodDeleted", Processed: []string{first, builtIn}, EvictedPods: []types.UID{podUID}}
	scenarios := map[string]scenario{
		"a budget allows the eviction late": {
			objects: []runtime.Object{newRequest(), newPod(), newBudget("web")},
			actions: []userAction{opens, dies},
			want:    byEviction,
		},
		"the controller restarts": {
			objects: []runtime.Object{newRequest(), newPod(), newBudget("web", allowing(1))},
			actions: []userAction{restarts, dies},
			want:    byEviction,
		},
		"an interceptor completes, then the pod is evicted": {
			objects: []runtime.Object{newRequest(), newPod(interceptedBy(first))},
			actions: []userAction{completes, dies},
			want:    afterInterceptor,
		},
		"another pod takes the name of the target": {
			objects: []runtime.Object{newRequest(), newPod(interceptedBy(first))},
			actions: []userAction{replaced},
			want:    outcome{Evicted: "PodDeleted", Processed: []string{first}},
		},
		"the last requester leaves while a budget blocks": {
			objects: []runtime.Object{newRequest(), newPod(), newBudget("web")},
			actions: []userAction{leaves},
			want:    outcome{Canceled: "NoRequesters", Processed: []string{builtIn}},
		},
	}
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			orders := inEveryOrder(func(choose func(options int) int) {
				w := newFakeCluster(t, scenario)
				w.play(choose)
				if diff := cmp.Diff(scenario.want, w.outcome()); diff != "" && !t.Failed() {
					t.Errorf("unexpected outcome of %v (-want, +got):\n%s", w.history, diff)
				}
			})
			if orders < 10 {
				t.Errorf("ran only %d orders", orders)
			}
			t.Logf("ran %d orders", orders)
		})
	}
}

// inEveryOrder calls run once for every sequence of choices, and returns the number of sequences.
func inEveryOrder(run func(choose func(options int) int)) int {
	var choices, options []int
	for runs := 1; ; runs++ {
		step := 0
		run(func(n int) int {
			if step == len(choices) {
				choices, options = append(choices, 0), append(options, n)
			}
			step++
			return choices[step-1]
		})
		last := len(choices) - 1
		for last >= 0 && choices[last]+1 == options[last] {
			last--
		}
		if last < 0 {
			return runs
		}
		choices, options = choices[:last+1], options[:last+1]
		choices[last]++
	}
}

// fakeCluster is an API server whose events are queued by kind of object until they are delivered
// to the controller: caches are stale, and by different amounts.
type fakeCluster struct {
	*fixture
	t           *testing.T
	ctx         context.Context
	tracker     clienttesting.ObjectTracker
	actions     []userAction
	undelivered map[schema.GroupVersionResource][]func()
	successful  []types.UID
	history     []string
}

func newFakeCluster(t *testing.T, scenario scenario) *fakeCluster {
	w := &fakeCluster{
		t: t, ctx: klog.NewContext(context.Background(), logr.Discard()), actions: scenario.actions,
		undelivered: map[schema.GroupVersionResource][]func(){},
		// The tracker of the fake client also tracks field managers, which is 20 times slower.
		tracker: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
	}
	client := fake.NewClientset()
	client.PrependReactor("*", "*", clienttesting.ObjectReaction(w.tracker))
	client.PrependReactor("update", "evictionrequests", w.updateRequest)
	w.fixture = newFixtureFor(t, client, testingclock.NewFakeClock(start))
	w.imperative.evict = w.evictPod
	for _, object := range scenario.objects {
		object = object.DeepCopyObject()
		if err := w.tracker.Add(object); err != nil {
			t.Fatalf("adding %T: %v", object, err)
		}
		w.announce(w.resourceOf(object), object)
	}
	return w
}

// play runs the steps in the chosen order until there are no more steps.
func (w *fakeCluster) play(choose func(options int) int) {
	for {
		var names []string
		var steps []func()
		for _, resource := range []schema.GroupVersionResource{requestsGVR, podsGVR, budgetsGVR} {
			if len(w.undelivered[resource]) > 0 {
				names, steps = append(names, resource.Resource), append(steps, func() { w.deliverNext(resource) })
			}
		}
		if len(w.actions) > 0 && w.actions[0].possible(w) {
			names, steps = append(names, "action"), append(steps, w.nextAction)
		}
		if len(steps) == 0 {
			return
		}
		chosen := choose(len(steps))
		w.history = append(w.history, names[chosen])
		if len(w.history) > 100 {
			w.t.Fatalf("not finished after %v", w.history)
		}
		steps[chosen]()
		w.work()
	}
}

func (w *fakeCluster) deliverNext(resource schema.GroupVersionResource) {
	deliver := w.undelivered[resource][0]
	w.undelivered[resource] = w.undelivered[resource][1:]
	deliver()
}

func (w *fakeCluster) nextAction() {
	action := w.actions[0]
	w.actions = w.actions[1:]
	action.act(w)
}

// work runs the workers until their queues are empty. The clock advances for retries that are due
// soon.
func (w *fakeCluster) work() {
	w.decisions.keys, w.decisions.limited = append(w.decisions.keys, w.decisions.limited...), nil
	for item, delay := range w.evictions.after {
		if delay < 10*time.Second {
			w.clock.Step(w.evictions.waits(item))
			w.evictions.Add(item)
		}
	}
	for len(w.decisions.keys)+len(w.evictions.keys) > 0 {
		w.Controller.work(w.ctx)
		w.imperative.work(w.ctx)
	}
	if status := w.request().Status; len(status.ActiveInterceptors) > 1 || len(status.ActiveInterceptors)+len(status.ProcessedInterceptors) > len(status.TargetInterceptors) {
		w.t.Fatalf("impossible status after %v: %+v", w.history, status)
	}
}

func (w *fakeCluster) outcome() outcome {
	status := w.request().Status
	reason := func(conditionType coordinationv1alpha1.EvictionRequestConditionType) string {
		condition := meta.FindStatusCondition(status.Conditions, string(conditionType))
		if condition == nil || condition.Status != metav1.ConditionTrue {
			return ""
		}
		return condition.Reason
	}
	return outcome{
		Canceled: reason(canceled), Evicted: reason(evicted), Blocked: reason(blocked),
		Active: status.ActiveInterceptors, Processed: status.ProcessedInterceptors,
		EvictedPods: w.successful, StoredEntries: w.storedEntries(),
	}
}

// storedEntries counts the entries that are kept in memory. Pods that may have been evicted are
// kept as long as they exist.
func (f *fixture) storedEntries() int {
	i := f.imperative
	uncertain := i.uncertain.uids.Clone()
	for _, pod := range f.pods.GetStore().List() {
		uncertain.Delete(pod.(*v1.Pod).UID)
	}
	return f.seen.uids.Len() + len(f.calls.last) + len(i.evicted.times) + len(i.retryAfter.times) + len(i.recordAfter.times) + len(i.failing.times) + len(f.marked.times) + i.changed.uids.Len() + uncertain.Len() +
		len(i.waiting.queues) + len(i.waiting.budgets) + len(i.waiting.taken) + len(f.outages.refused) + len(f.writer.pending.pending)
}

// announce queues the event of a change.
func (w *fakeCluster) announce(resource schema.GroupVersionResource, object runtime.Object) {
	object = object.DeepCopyObject()
	w.undelivered[resource] = append(w.undelivered[resource], func() { w.sendUpdate(w.t, object) })
}

func (w *fakeCluster) resourceOf(object runtime.Object) schema.GroupVersionResource {
	switch object.(type) {
	case *coordinationv1alpha1.EvictionRequest:
		return requestsGVR
	case *v1.Pod:
		return podsGVR
	}
	return budgetsGVR
}

func (w *fakeCluster) get(resource schema.GroupVersionResource, name string) runtime.Object {
	object, err := w.tracker.Get(resource, namespace, name)
	if err != nil {
		w.t.Fatalf("reading %s after %v: %v", name, w.history, err)
	}
	return object.DeepCopyObject()
}

func (w *fakeCluster) request() *coordinationv1alpha1.EvictionRequest {
	return w.get(requestsGVR, string(podUID)).(*coordinationv1alpha1.EvictionRequest)
}

// pod returns the pod, or an empty one if there is none.
func (w *fakeCluster) pod() *v1.Pod {
	object, err := w.tracker.Get(podsGVR, namespace, podName)
	if apierrors.IsNotFound(err) {
		return &v1.Pod{}
	}
	return object.(*v1.Pod).DeepCopy()
}

// budget returns the budget, or nil if there is none.
func (w *fakeCluster) budget() *policyv1.PodDisruptionBudget {
	object, err := w.tracker.Get(budgetsGVR, namespace, "web")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return object.(*policyv1.PodDisruptionBudget).DeepCopy()
}

func (w *fakeCluster) store(object metav1.Object) {
	version, _ := strconv.Atoi(object.GetResourceVersion())
	object.SetResourceVersion(strconv.Itoa(version + 1))
	stored := object.(runtime.Object)
	if err := w.tracker.Update(w.resourceOf(stored), stored, namespace); err != nil {
		w.t.Fatalf("storing %T: %v", object, err)
	}
	w.announce(w.resourceOf(stored), stored)
}

// updateRequest simulates a status update of the API server: it compares the resource versions.
func (w *fakeCluster) updateRequest(action clienttesting.Action) (bool, runtime.Object, error) {
	updated := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.EvictionRequest).DeepCopy()
	if updated.ResourceVersion != w.request().ResourceVersion {
		return true, nil, apierrors.NewConflict(evictionRequestResource, updated.Name, errUnreachable)
	}
	w.store(updated)
	return true, updated, nil
}

func (w *fakeCluster) changeRequest(change func(*coordinationv1alpha1.EvictionRequest)) {
	request := w.request()
	change(request)
	w.store(request)
}

func (w *fakeCluster) changeBudget(change func(*policyv1.PodDisruptionBudget)) {
	budget := w.budget()
	change(budget)
	w.store(budget)
}

// evictPod simulates an eviction of the API server.
func (w *fakeCluster) evictPod(_ context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
	current := w.pod()
	switch budget := w.budget(); {
	case current.UID == "":
		return notFound(pod.Name)
	case current.UID != pod.UID:
		return apierrors.NewConflict(podResource, pod.Name, errUnreachable)
	case current.DeletionTimestamp != nil:
		w.t.Errorf("evicted a terminating pod again, after %v", w.history)
	case budget != nil && budget.Status.DisruptionsAllowed == 0:
		return violation("")
	case budget != nil:
		w.changeBudget(func(budget *policyv1.PodDisruptionBudget) { budget.Status.DisruptionsAllowed-- })
	}
	w.successful = append(w.successful, current.UID)
	terminatingSince(0)(current)
	w.store(current)
	return nil
}

func (w *fakeCluster) removePod() {
	pod := w.pod()
	if err := w.tracker.Delete(podsGVR, namespace, podName); err != nil {
		w.t.Fatalf("deleting the pod: %v", err)
	}
	w.undelivered[podsGVR] = append(w.undelivered[podsGVR], func() { w.sendDelete(w.t, pod) })
}

// replacePod removes the pod and creates another one of the same name. The informer relists in
// between, so it sees only that the UID has changed.
func (w *fakeCluster) replacePod() {
	if err := w.tracker.Delete(podsGVR, namespace, podName); err != nil {
		w.t.Fatalf("deleting the pod: %v", err)
	}
	successor := newPod(podUIDIs(otherUID))
	if err := w.tracker.Add(successor); err != nil {
		w.t.Fatalf("adding the successor: %v", err)
	}
	w.announce(podsGVR, successor)
}

// restart starts a new controller, which reads everything from the API server.
func (w *fakeCluster) restart() {
	w.fixture = newFixtureFor(w.t, w.client, w.clock)
	w.imperative.evict = w.evictPod
	w.undelivered = map[schema.GroupVersionResource][]func(){}
	objects := []runtime.Object{w.request()}
	if pod := w.pod(); pod.UID != "" {
		objects = append(objects, pod)
	}
	if budget := w.budget(); budget != nil {
		objects = append(objects, budget)
	}
	// The caches are filled before the workers start.
	for _, object := range objects {
		w.addToCache(w.t, object)
	}
	for _, object := range objects {
		w.informerOf(w.t, object).handler.OnAdd(object, true)
	}
}

// The whole controller, with its own queues and informers, evicts a pod whose first interceptor
// never reports.
func TestRun(t *testing.T) {
	client := fake.NewClientset(newRequest(deadlineOf(600)), newPod(interceptedBy(first)))
	watching := countWatches(client)
	fakeClock := testingclock.NewFakeClock(start)
	factory := informers.NewSharedInformerFactory(client, 0)
	evictions := make(chan types.UID, 100)
	evict := func(ctx context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		evictions <- pod.UID
		return client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
	}
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	controller, err := newController(ctx, factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Pods(),
		factory.Core().V1().Nodes(), factory.Policy().V1().PodDisruptionBudgets(), client, client, evict, ttl, fakeClock)
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	factory.Start(ctx.Done())
	// The fake keeps no history: a change before the watch starts would be lost.
	for range 4 {
		receive(t, "a watch to begin", watching)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx, 2, 2)
	}()

	var request *coordinationv1alpha1.EvictionRequest
	waitFor(ctx, t, "the eviction", func() bool {
		fakeClock.Step(time.Minute) // The interceptor stays silent.
		request, err = client.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, string(podUID), metav1.GetOptions{})
		return err == nil && evictionrequesttools.IsFinished(request.Status.Conditions)
	})
	if diff := cmp.Diff([]string{first, builtIn}, request.Status.ProcessedInterceptors); diff != "" {
		t.Errorf("unexpected processed interceptors (-want, +got):\n%s", diff)
	}
	if uid := receive(t, "the eviction", evictions); uid != podUID || len(evictions) > 0 {
		t.Errorf("evicted %s, and %d more", uid, len(evictions))
	}
	stop()
	receive(t, "the controller to end", ended)
	if !controller.queue.ShuttingDown() || !controller.imperative.queue.ShuttingDown() {
		t.Error("a queue still runs after the controller has ended")
	}
}

// countWatches returns a channel that receives a value for each watch that starts.
func countWatches(client *fake.Clientset) <-chan struct{} {
	watching := make(chan struct{}, 100)
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if action, ok := action.(clienttesting.WatchActionImpl); ok {
			options = action.ListOptions
		}
		watcher, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace(), options)
		watching <- struct{}{}
		return true, watcher, err
	})
	return watching
}

// receive receives from the channel, or fails the test after a timeout.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case received := <-from:
		return received
	case <-time.After(wait.ForeverTestTimeout):
		t.Fatalf("waited %v for %s", wait.ForeverTestTimeout, what)
		panic("unreachable")
	}
}

func waitFor(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, wait.ForeverTestTimeout, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// A controller that stops before its caches are synced must not process requests.
func TestRunStopsWithoutCaches(t *testing.T) {
	f := newFixture(t, newRequest(), newPod())
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	stop()
	f.queue, f.limitWorkers = newQueue(f.clock, f.owners.of)
	f.imperative.queue, f.imperative.limitWorkers = newEvictionQueue(f.clock, f.imperative.ownerOf)
	f.queue.Add(requestKeyOfPod)
	f.Run(ctx, 1, 1)
	f.expectWrites(t)
	if !f.queue.ShuttingDown() || !f.imperative.queue.ShuttingDown() {
		t.Error("a queue still runs after the controller has ended")
	}
}

// The controller waits for every informer that it reads from.
func TestControllerWaitsForItsCaches(t *testing.T) {
	f := newFixture(t)
	if got := len(f.cachesSynced); got != 4 {
		t.Fatalf("waits for %d caches, want 4", got)
	}
	for i, synced := range f.cachesSynced {
		if synced() {
			t.Errorf("cache %d is synced before its informer runs", i)
		}
	}
}

// countingServer accepts every eviction and counts the requests.
type countingServer struct{ requests []string }

func (s *countingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

// client returns a client of the server, which runs until the test ends.
func (s *countingServer) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	return client
}

func TestNewEvictsThroughItsEvictionClient(t *testing.T) {
	server, evictionServer := &countingServer{}, &countingServer{}
	client, evictionClient := server.client(t), evictionServer.client(t)
	factory := informers.NewSharedInformerFactory(client, 0)
	_, ctx := ktesting.NewTestContext(t)
	controller, err := New(ctx, factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Pods(),
		factory.Core().V1().Nodes(), factory.Policy().V1().PodDisruptionBudgets(), client, evictionClient, client, ttl)
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	defer controller.queue.ShutDown()
	defer controller.imperative.queue.ShutDown()
	// All parts share one clock, so that they all use the measured offset.
	if local, corrected := controller.clock.(*serverclock.Clock); !corrected || local.WithTicker != (clock.RealClock{}) ||
		controller.imperative.clock != controller.clock || controller.writer.clock != local {
		t.Errorf("the clocks are %v and %v, want one that corrects the real one", controller.clock, controller.imperative.clock)
	}
	if err := controller.imperative.evict(ctx, newRequest(), coordinationv1alpha1.EvictionInterceptorImperative, newPod()); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if len(server.requests) != 0 || len(evictionServer.requests) != 1 {
		t.Errorf("sent %v through client, %v through evictionClient", server.requests, evictionServer.requests)
	}
}

// brokenRequests is an informer that accepts no event handlers.
type brokenRequests struct {
	coordinationinformers.EvictionRequestInformer
	informer *handledInformer
}

func (b brokenRequests) Informer() cache.SharedIndexInformer { return brokenInformer{b.informer} }

func TestNewReportsBrokenInformers(t *testing.T) {
	f := newFixture(t)
	factory := informers.NewSharedInformerFactory(f.client, 0)
	requests := brokenRequests{factory.Coordination().V1alpha1().EvictionRequests(), f.requests}
	_, ctx := ktesting.NewTestContext(t)
	if _, err := New(ctx, requests, factory.Core().V1().Pods(), factory.Core().V1().Nodes(), factory.Policy().V1().PodDisruptionBudgets(), f.client, f.client, f.client, ttl); err == nil {
		t.Error("got no error")
	}
}

func TestWork(t *testing.T) {
	good, bad := newRequest(version("1")), newRequest(version("1"), func(request *coordinationv1alpha1.EvictionRequest) { request.Name = string(otherUID) })
	bad.Spec.Target.Pod.UID = bad.Name
	badKey := types.NamespacedName{Namespace: namespace, Name: bad.Name}
	f := newFixture(t, good, bad)
	f.Controller.pods = func(context.Context, string, string) (*v1.Pod, error) { return newPod(), nil }
	f.client.PrependReactor("update", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.EvictionRequest).Name
		return name == bad.Name, nil, errUnreachable
	})
	f.decisions.Add(badKey)
	f.decisions.Add(requestKeyOfPod)
	f.Controller.work(klog.NewContext(context.Background(), logr.Discard()))
	for what, got := range map[string][2][]types.NamespacedName{
		"retried with a delay": {f.decisions.limited, {badKey}},
		"forgotten":            {f.decisions.forgotten, {requestKeyOfPod}},
		"done":                 {f.decisions.finished, {badKey, requestKeyOfPod}},
	} {
		if diff := cmp.Diff(got[1], got[0]); diff != "" {
			t.Errorf("unexpected keys %s (-want, +got):\n%s", what, diff)
		}
	}
	if got := f.outages.noTimeoutBefore(requestKeyOfPod); !got.IsZero() {
		t.Errorf("no timeouts before %s after a write to another request failed", got)
	}
}

// A queue with another clock would wait in real time.
func TestQueuesWaitOnTheirClock(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	queue, _ := newQueue(fakeClock, func(types.NamespacedName) fairshare.Owner { return fairshare.Owner{} })
	evictions, _ := newEvictionQueue(fakeClock, func(evictionItem) fairshare.Owner { return fairshare.Owner{} })
	defer queue.ShutDown()
	defer evictions.ShutDown()
	queue.AddAfter(requestKeyOfPod, 20*time.Minute)
	evictions.AddAfter(itemOf(requestKeyOfPod), 20*time.Minute)
	waitFor(context.Background(), t, "the keys", func() bool {
		fakeClock.Step(20 * time.Minute)
		return queue.Len() == 1 && evictions.Len() == 1
	})
}

// A failing request must not delay the first retry of another one, and the delay has a maximum.
func TestRetriesDelayOnlyThemselves(t *testing.T) {
	f := newFixture(t)
	// The limiter of the queue itself is not accessible.
	decisions := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetryDelay, maxDecisionRetryDelay)
	for name, test := range map[string]struct {
		limiter workqueue.TypedRateLimiter[types.NamespacedName]
		longest time.Duration
	}{
		"decisions": {decisions, 5 * time.Minute},
		"evictions": {f.imperative.backoff, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 5000 {
				if got := test.limiter.When(types.NamespacedName{Name: fmt.Sprint(i)}); got != time.Second {
					t.Fatalf("the first retry of request %d waits %s, want a second", i, got)
				}
			}
			if got := test.limiter.When(types.NamespacedName{Name: "0"}); got != 2*time.Second {
				t.Errorf("the second retry waits %s, want 2 seconds", got)
			}
			for range 100 {
				test.limiter.When(types.NamespacedName{Name: "0"})
			}
			if got := test.limiter.When(types.NamespacedName{Name: "0"}); got != test.longest {
				t.Errorf("the last retry waits %s, want %s", got, test.longest)
			}
		})
	}
}

// The real queue of requests retries thousands of failed requests after a second.
func TestRequestsAreRetriedSoon(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	queue, _ := newQueue(fakeClock, func(types.NamespacedName) fairshare.Owner { return fairshare.Owner{} })
	defer queue.ShutDown()
	for i := range 5000 {
		queue.AddRateLimited(types.NamespacedName{Name: fmt.Sprint(i)})
	}
	waitFor(context.Background(), t, "the queue to wait", func() bool { return fakeClock.HasWaiters() })
	waitFor(context.Background(), t, "all keys within a second", func() bool {
		if fakeClock.Now().Equal(start) {
			fakeClock.Step(time.Second)
		}
		return queue.Len() == 5000
	})
}
