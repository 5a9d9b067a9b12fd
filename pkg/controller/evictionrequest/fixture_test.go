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
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	ref "k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	testingclock "k8s.io/utils/clock/testing"
)

// fixture is a controller whose events, queues, clock and API calls are controlled by the test:
// nothing runs in the background.
type fixture struct {
	*Controller
	client *fake.Clientset
	clock  *testingclock.FakeClock

	requests, pods, budgets, nodes *handledInformer
	decisions                      *recordedQueue[types.NamespacedName]
	evictions                      *recordedQueue[evictionItem]

	// events are the recorded events.
	events []recordedEvent

	// evicted are the pods that the controller tried to evict; evictErr is the response.
	evicted []*v1.Pod
	// callers are the requests and the interceptors for which they were evicted.
	callers  []string
	evictErr error
	// livePods reads pods from the API server.
	livePods podeviction.Reader
}

// newFixture returns a fixture whose API server and caches contain the objects.
func newFixture(t testing.TB, objects ...runtime.Object) *fixture {
	t.Helper()
	f := newFixtureFor(t, fake.NewClientset(objects...), testingclock.NewFakeClock(start))
	for _, object := range objects {
		f.addToCache(t, object)
	}
	return f
}

// newFixtureFor returns a fixture with empty caches.
func newFixtureFor(t testing.TB, client *fake.Clientset, clock *testingclock.FakeClock) *fixture {
	t.Helper()
	f := &fixture{client: client, clock: clock, decisions: newRecordedQueue[types.NamespacedName](), evictions: newRecordedQueue[evictionItem]()}
	factory := informers.NewSharedInformerFactory(f.client, 0)
	requests := factory.Coordination().V1alpha1().EvictionRequests()
	pods, budgets := factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets()
	f.requests = &handledInformer{SharedIndexInformer: requests.Informer()}
	f.pods = &handledInformer{SharedIndexInformer: pods.Informer()}
	f.budgets = &handledInformer{SharedIndexInformer: budgets.Informer()}
	nodes := factory.Core().V1().Nodes()
	f.nodes = &handledInformer{SharedIndexInformer: nodes.Informer()}

	_, ctx := ktesting.NewTestContext(t)
	controller, err := newController(ctx,
		handledRequests{requests, f.requests}, handledPods{pods, f.pods}, handledNodes{nodes, f.nodes}, handledBudgets{budgets, f.budgets},
		f.client, f.client, f.evictPod, ttl, f.clock)
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	controller.writer.recorder = f
	f.Controller = controller
	// By default the caches are up to date.
	f.livePods = controller.imperative.pods
	controller.imperative.pods = func(_ context.Context, namespace, name string) (*v1.Pod, error) {
		return controller.podLister.Pods(namespace).Get(name)
	}
	// The real queues run in the background and would hide the calls.
	controller.queue.ShutDown()
	controller.imperative.queue.ShutDown()
	controller.queue, controller.imperative.queue = f.decisions, f.evictions
	return f
}

// recordedEvent is an event with the kinds and names of its objects.
type recordedEvent struct {
	Regarding, Related, Type, Reason, Note string
}

// Eventf implements events.EventRecorder.
func (f *fixture) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	f.events = append(f.events, recordedEvent{f.kindOf(regarding), f.kindOf(related), eventType, reason, fmt.Sprintf(note, args...)})
}

func (f *fixture) kindOf(object runtime.Object) string {
	reference, err := ref.GetReference(scheme.Scheme, object)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(reference.Kind + " " + reference.Name + " " + reference.FieldPath)
}

func (f *fixture) evictPod(_ context.Context, request *coordinationv1alpha1.EvictionRequest, interceptor string, pod *v1.Pod) error {
	f.callers = append(f.callers, string(request.UID)+" "+interceptor)
	f.evicted = append(f.evicted, pod)
	return f.evictErr
}

// addToCache adds an object to the cache of its informer, without an event.
func (f *fixture) addToCache(t testing.TB, object runtime.Object) {
	t.Helper()
	if err := f.informerOf(t, object).GetIndexer().Add(object); err != nil {
		t.Fatalf("caching %T: %v", object, err)
	}
}

// sendUpdate adds or updates an object in the cache of its informer, with the event.
func (f *fixture) sendUpdate(t testing.TB, object runtime.Object) {
	t.Helper()
	informer := f.informerOf(t, object)
	old, known, err := informer.GetIndexer().Get(object)
	if err != nil {
		t.Fatalf("reading the cache of %T: %v", object, err)
	}
	f.addToCache(t, object)
	if known {
		informer.handler.OnUpdate(old, object)
	} else {
		informer.handler.OnAdd(object, false)
	}
}

// sendDelete removes an object from the cache of its informer, with the event.
func (f *fixture) sendDelete(t testing.TB, object runtime.Object) {
	t.Helper()
	informer := f.informerOf(t, object)
	if err := informer.GetIndexer().Delete(object); err != nil {
		t.Fatalf("removing %T from the cache: %v", object, err)
	}
	informer.handler.OnDelete(object)
}

func (f *fixture) informerOf(t testing.TB, object runtime.Object) *handledInformer {
	t.Helper()
	switch object.(type) {
	case *coordinationv1alpha1.EvictionRequest:
		return f.requests
	case *v1.Pod:
		return f.pods
	case *v1.Node:
		return f.nodes
	case *policyv1.PodDisruptionBudget:
		return f.budgets
	}
	t.Fatalf("no informer for %T", object)
	return nil
}

// writes returns the statuses that were written, in order.
func (f *fixture) writes(t testing.TB) []coordinationv1alpha1.EvictionRequestStatus {
	t.Helper()
	var statuses []coordinationv1alpha1.EvictionRequestStatus
	for _, action := range f.client.Actions() {
		if !action.Matches("update", "evictionrequests") {
			continue
		}
		if action.GetSubresource() != "status" {
			t.Errorf("wrote to %q of a request, want its status only", action.GetSubresource())
		}
		update := action.(interface{ GetObject() runtime.Object })
		statuses = append(statuses, update.GetObject().(*coordinationv1alpha1.EvictionRequest).Status)
	}
	return statuses
}

// expectWrites compares the written statuses.
func (f *fixture) expectWrites(t testing.TB, want ...*coordinationv1alpha1.EvictionRequestStatus) {
	t.Helper()
	var expected []coordinationv1alpha1.EvictionRequestStatus
	for _, status := range want {
		expected = append(expected, *status)
	}
	if diff := cmp.Diff(expected, f.writes(t)); diff != "" {
		t.Errorf("unexpected status writes (-want, +got):\n%s", diff)
	}
}

// expectCacheUntouched fails if the cached object differs from the given one.
func (f *fixture) expectCacheUntouched(t testing.TB, before *coordinationv1alpha1.EvictionRequest) {
	t.Helper()
	addToCache, err := f.requestLister.EvictionRequests(before.Namespace).Get(before.Name)
	if err != nil {
		t.Fatalf("reading the cached request: %v", err)
	}
	if diff := cmp.Diff(before, addToCache); diff != "" {
		t.Errorf("the cached request was changed (-before, +after):\n%s", diff)
	}
}

// handledInformer stores the handler that is added to it, so that a test can send the events
// itself.
type handledInformer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
	// watchFailed is the handler for errors of the watch.
	watchFailed cache.WatchErrorHandlerWithContext
	transform   cache.TransformFunc
}

func (i *handledInformer) SetTransform(transform cache.TransformFunc) error {
	i.transform = transform
	return nil
}

func (i *handledInformer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	i.watchFailed = handler
	return nil
}

func (i *handledInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = handler
	return nil, nil
}

type handledRequests struct {
	coordinationinformers.EvictionRequestInformer
	informer *handledInformer
}

func (h handledRequests) Informer() cache.SharedIndexInformer { return h.informer }

type handledPods struct {
	coreinformers.PodInformer
	informer *handledInformer
}

func (h handledPods) Informer() cache.SharedIndexInformer { return h.informer }

type handledNodes struct {
	coreinformers.NodeInformer
	informer *handledInformer
}

func (h handledNodes) Informer() cache.SharedIndexInformer { return h.informer }

type handledBudgets struct {
	policyinformers.PodDisruptionBudgetInformer
	informer *handledInformer
}

func (h handledBudgets) Informer() cache.SharedIndexInformer { return h.informer }

// recordedQueue is a queue without a clock: it records the added items and their delays. Methods
// that the controller does not use are missing and would panic.
type recordedQueue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	keys []T
	// after is the shortest delay of each key, without the jitter of safetyDelay.
	after     map[T]time.Duration
	limited   []T
	forgotten []T
	finished  []T
}

func newRecordedQueue[T comparable]() *recordedQueue[T] {
	return &recordedQueue[T]{after: map[T]time.Duration{}}
}

func (q *recordedQueue[T]) Add(key T) {
	for _, waiting := range q.keys {
		if waiting == key {
			return // Like the real queue.
		}
	}
	q.keys = append(q.keys, key)
}

func (q *recordedQueue[T]) AddAfter(key T, delay time.Duration) {
	if delay >= safetyInterval && delay <= safetyInterval*6/5 {
		delay = safetyInterval
	}
	if known, found := q.after[key]; !found || delay < known {
		q.after[key] = delay
	}
}

func (q *recordedQueue[T]) AddRateLimited(key T) { q.limited = append(q.limited, key) }

func (q *recordedQueue[T]) Forget(key T) { q.forgotten = append(q.forgotten, key) }

func (q *recordedQueue[T]) Done(key T) { q.finished = append(q.finished, key) }

// Get reports a shutdown when the queue is empty, so that the worker returns.
func (q *recordedQueue[T]) Get() (key T, shutdown bool) {
	if len(q.keys) == 0 {
		return key, true
	}
	key = q.keys[0]
	q.keys = q.keys[1:]
	return key, false
}

// taken empties the queue and returns its items.
func (q *recordedQueue[T]) taken() []T {
	keys := q.keys
	q.keys = nil
	return keys
}

// waits returns and removes the delay of a key.
func (q *recordedQueue[T]) waits(key T) time.Duration {
	delay := q.after[key]
	delete(q.after, key)
	return delay
}

// items returns the eviction items of requests.
func items(requests ...types.NamespacedName) []evictionItem {
	var items []evictionItem
	for _, request := range requests {
		items = append(items, itemOf(request))
	}
	return items
}

// budgetItem returns the eviction item of a budget.
func budgetItem(name string) evictionItem {
	return evictionItem{budget: types.NamespacedName{Namespace: namespace, Name: name}}
}

// probeItem and recordItem return the items of the other tasks for a budget.
func probeItem(name string) evictionItem {
	return evictionItem{budget: types.NamespacedName{Namespace: namespace, Name: name}, task: taskProbe}
}

func recordItem(name string) evictionItem {
	return evictionItem{budget: types.NamespacedName{Namespace: namespace, Name: name}, task: taskRecord}
}

// runEvictions processes all items of the eviction queue that are due.
func (f *fixture) runEvictions(t testing.TB) {
	t.Helper()
	f.imperative.work(klog.NewContext(context.Background(), logr.Discard()))
}

// syncEviction processes a request, and the eviction that follows from it, if any.
func (f *fixture) syncEviction(t testing.TB, request types.NamespacedName) {
	t.Helper()
	f.evictions.Add(itemOf(request))
	f.runEvictions(t)
}

var evictionRequestResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "evictionrequests"}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
}
