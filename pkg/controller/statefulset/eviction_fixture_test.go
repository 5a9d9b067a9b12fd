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

package statefulset

import (
	"fmt"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2/ktesting"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	ownInterceptor        = "statefulset.apps.k8s.io"
	imperativeInterceptor = "imperative-eviction.k8s.io"
	pacedKey              = "default/web"
)

// pacingEpoch is when the tests start.
var pacingEpoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// pacedSet returns a StatefulSet with rolling updates.
func pacedSet(replicas int32, options ...func(*apps.StatefulSet)) *apps.StatefulSet {
	set := &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web", UID: "set"},
		Spec: apps.StatefulSetSpec{
			Replicas: &replicas,
			UpdateStrategy: apps.StatefulSetUpdateStrategy{
				Type:          apps.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &apps.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)},
			},
		},
	}
	for _, option := range options {
		option(set)
	}
	return set
}

// pacedPod returns a pod of that set that has been available for an hour.
func pacedPod(ordinal int, options ...func(*v1.Pod)) *v1.Pod {
	name := fmt.Sprintf("web-%d", ordinal)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pacedSet(1), controllerKind)},
		},
		Status: v1.PodStatus{
			Phase:      v1.PodRunning,
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(pacingEpoch.Add(-time.Hour))}},
		},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

// unready makes it a pod that is starting.
func unready(pod *v1.Pod) { startingSince(pacingEpoch)(pod) }

func startingSince(at time.Time) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(at)
		unreadySince(at)(pod)
	}
}

func unreadySince(at time.Time) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.NewTime(at)}}
	}
}

// broken makes it a pod that was ready until 30 seconds ago.
func broken(pod *v1.Pod) { unreadySince(pacingEpoch.Add(-30 * time.Second))(pod) }

// slow makes it a pod that has been starting for 30 seconds.
func slow(pod *v1.Pod) { startingSince(pacingEpoch.Add(-30 * time.Second))(pod) }

func next(pod *v1.Pod) { pod.UID = "next" }

func terminating(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: pacingEpoch} }

func inPhase(phase v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status = v1.PodStatus{Phase: phase} }
}

func readySince(ago time.Duration) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(pacingEpoch.Add(-ago)) }
}

// pacedRequest returns a request for the pod with the StatefulSet as the active interceptor.
func pacedRequest(pod *v1.Pod, options ...func(*coordinationv1alpha1.EvictionRequest)) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: string(pod.UID), UID: "request-" + pod.UID},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drainer.example.com"}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: "first.example.com"}, {Name: ownInterceptor}, {Name: imperativeInterceptor}},
			ActiveInterceptors: []string{ownInterceptor},
			ActivationTime:     &metav1.Time{Time: pacingEpoch},
			Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: "first.example.com"}, {Name: ownInterceptor}, {Name: imperativeInterceptor}},
		},
	}
	for _, option := range options {
		option(request)
	}
	return request
}

func completedAt(at time.Time) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Interceptors[1].CompletionTime = &metav1.Time{Time: at}
	}
}

func activeIs(name string, processed ...string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.ActiveInterceptors, request.Status.ProcessedInterceptors = []string{name}, processed
	}
}

func endedAs(condition coordinationv1alpha1.EvictionRequestConditionType, at time.Time) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Conditions = []metav1.Condition{{Type: string(condition), Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

// pacing is a pacer on caches that tests fill. It runs no goroutines.
type pacing struct {
	t        *testing.T
	clock    *testingclock.FakeClock
	client   *fake.Clientset
	factory  informers.SharedInformerFactory
	pacer    *evictionPacer
	recorder *record.FakeRecorder
	// said has the last message reported for each pod.
	said map[types.UID]string
	// sets is the queue of the controller.
	sets delayedQueue
}

// delayedQueue records what is added to it with a delay.
type delayedQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	delayed []string
}

func (q *delayedQueue) AddAfter(key string, after time.Duration) {
	q.delayed = append(q.delayed, fmt.Sprintf("%s after %v", key, after))
}

func newPacing(t *testing.T, objects ...runtime.Object) *pacing {
	t.Helper()
	client := fake.NewClientset()
	p := &pacing{
		t: t, clock: testingclock.NewFakeClock(pacingEpoch), client: client, factory: informers.NewSharedInformerFactory(client, 0),
		recorder: record.NewFakeRecorder(100), said: map[types.UID]string{},
	}
	if err := controller.AddPodControllerIndexer(p.factory.Core().V1().Pods().Informer()); err != nil {
		t.Fatalf("indexing pods: %v", err)
	}
	p.restart()
	for _, object := range objects {
		p.store(object)
	}
	return p
}

// restart replaces the pacer by one that has only the caches.
func (p *pacing) restart() {
	p.t.Helper()
	pods, statefulSets, requests := p.factory.Core().V1().Pods(), p.factory.Apps().V1().StatefulSets(), p.factory.Coordination().V1alpha1().EvictionRequests()
	ssc := &StatefulSetController{podIndexer: pods.Informer().GetIndexer(), podLister: pods.Lister(), setLister: statefulSets.Lister(), queue: &p.sets}
	if p.pacer != nil {
		p.pacer.queue.ShutDown()
		p.pacer = copyOfPacer(p.pacer)
		p.pacer.ssc = ssc
		for _, pod := range pods.Informer().GetIndexer().List() {
			p.pacer.unready.Saw(pod.(*v1.Pod), p.clock.Now())
		}
		return
	}
	pacer, err := newEvictionPacer(ssc, p.client, requests, p.factory.Policy().V1().PodDisruptionBudgets(), placesOf(p.factory.Core().V1()), p.clock)
	if err != nil {
		p.t.Fatalf("creating the pacer: %v", err)
	}
	pacer.recorder = p.recorder
	p.pacer = pacer
	p.t.Cleanup(func() { p.pacer.queue.ShutDown() })
}

// copyOfPacer returns a pacer with the caches of another one, but without its state.
func copyOfPacer(old *evictionPacer) *evictionPacer {
	return &evictionPacer{
		client: old.client, live: old.live, places: old.places, budgets: old.budgets, requestLister: old.requestLister, requests: old.requests, recorder: old.recorder, clock: old.clock,
		queue: newEvictionQueue(old.clock), turns: map[string]map[types.UID]*evictionTurn{}, results: map[string]map[types.UID]*evictionResult{},
		broken: map[string]sets.Set[types.UID]{}, createFailures: map[string]createFailure{},
	}
}

func (p *pacing) indexerOf(object runtime.Object) cache.Indexer {
	p.t.Helper()
	switch object.(type) {
	case *v1.Pod:
		return p.factory.Core().V1().Pods().Informer().GetIndexer()
	case *v1.Node:
		return p.factory.Core().V1().Nodes().Informer().GetIndexer()
	case *v1.PersistentVolumeClaim:
		return p.factory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer()
	case *v1.PersistentVolume:
		return p.factory.Core().V1().PersistentVolumes().Informer().GetIndexer()
	case *apps.StatefulSet:
		return p.factory.Apps().V1().StatefulSets().Informer().GetIndexer()
	case *coordinationv1alpha1.EvictionRequest:
		return p.factory.Coordination().V1alpha1().EvictionRequests().Informer().GetIndexer()
	case *policy.PodDisruptionBudget:
		return p.factory.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer()
	}
	p.t.Fatalf("no cache for %T", object)
	return nil
}

func (p *pacing) store(object runtime.Object) {
	p.t.Helper()
	if pod, ok := object.(*v1.Pod); ok {
		p.pacer.unready.Saw(pod, unreadyAsReported(pod)) // The clocks agree, and the pacer has seen it at once.
	}
	if err := p.indexerOf(object).Add(object); err != nil {
		p.t.Fatalf("caching %T: %v", object, err)
	}
}

// unreadyAsReported returns since when a pod that is not ready is so by the clocks of its node and of the API server.
func unreadyAsReported(pod *v1.Pod) time.Time {
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil {
		return laterOf(pod.CreationTimestamp.Time, ready.LastTransitionTime.Time)
	}
	return pod.CreationTimestamp.Time
}

// unreadyIn is what a pacer has seen whose clock agrees with those of the nodes.
func unreadyIn(pods ...*v1.Pod) *evictionturn.Unready {
	var unready evictionturn.Unready
	for _, pod := range pods {
		unready.Saw(pod, unreadyAsReported(pod))
	}
	return &unready
}

func (p *pacing) remove(object runtime.Object) {
	p.t.Helper()
	if err := p.indexerOf(object).Delete(object); err != nil {
		p.t.Fatalf("removing %T: %v", object, err)
	}
}

// begin begins the turn of a request as the library does.
func (p *pacing) begin(request *coordinationv1alpha1.EvictionRequest) *evictionTurn {
	uid := types.UID(request.Name)
	turn := newEvictionTurn(request, p.clock.Now(), func(message string, _ time.Time) { p.said[uid] = message })
	p.pacer.begin(turn)
	return turn
}

func (p *pacing) sync() {
	p.t.Helper()
	_, ctx := ktesting.NewTestContext(p.t)
	if err := p.pacer.sync(ctx, pacedKey); err != nil {
		p.t.Fatalf("syncing: %v", err)
	}
}

// overWith returns the final message of a turn, or "" if it is open.
func overWith(turn *evictionTurn) string {
	select {
	case message := <-turn.done:
		return message
	default:
		return ""
	}
}
