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

package deployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// surgeFixture is a Deployment controller that surges, without workers: the test decides when to
// sync a Deployment. Its caches follow a fake API server. It runs in a synctest bubble, where time
// only advances while all goroutines are blocked.
type surgeFixture struct {
	t      *testing.T
	ctx    context.Context
	client *fake.Clientset
	caches informers.SharedInformerFactory
	dc     *DeploymentController
	events *record.FakeRecorder
	// intercepts is true once the interceptor has been started.
	intercepts bool

	lock sync.Mutex
	// woken are the UIDs of the enqueued Deployments, without duplicates, sorted.
	woken []string
	// written are the ReplicaSets that the controller has written, without their status.
	surgeWrites []*apps.ReplicaSet
	// refuse is the error returned for writes of ReplicaSets, or nil.
	refuse error
	// unseen hides the writes from the caches.
	unseen  bool
	version int
}

// withSurger runs a test with a controller whose caches have synced.
func withSurger(t *testing.T, objects []runtime.Object, test func(*testing.T, *surgeFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &surgeFixture{t: t, client: fake.NewClientset(objects...), events: record.NewFakeRecorder(100), version: 100}
		f.client.PrependReactor("update", "replicasets", f.write)
		f.client.PrependReactor("create", "replicasets", func(action core.Action) (bool, runtime.Object, error) {
			rs := action.(core.CreateAction).GetObject().(*apps.ReplicaSet)
			f.lock.Lock()
			defer f.lock.Unlock()
			f.version++
			rs.UID, rs.ResourceVersion = types.UID(rs.Name+"-uid"), strconv.Itoa(f.version)
			return false, nil, nil // The tracker creates it.
		})
		f.caches = informers.NewSharedInformerFactory(f.client, 0)
		f.newController()
		for _, object := range objects {
			f.sawAsReported(object)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		f.ctx = ctx
		defer func() {
			if !f.intercepts {
				f.endQueue()
			}
			cancel()
			f.dc.queue.ShutDown()
			f.caches.Shutdown()
		}()
		f.caches.StartWithContext(ctx)
		synctest.Wait()
		f.forgetWoken()
		test(t, f)
	})
}

// endQueue shuts down the queue of an interceptor that was never run. Run does that otherwise.
func (f *surgeFixture) endQueue() {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := f.dc.surger.interceptor.Run(ctx); err != nil {
		f.t.Error(err)
	}
}

func (f *surgeFixture) newController() {
	deployments, replicaSets := f.caches.Apps().V1().Deployments(), f.caches.Apps().V1().ReplicaSets()
	pods, requests := f.caches.Core().V1().Pods(), f.caches.Coordination().V1alpha1().EvictionRequests()
	if err := controller.AddPodControllerIndexer(pods.Informer()); err != nil {
		f.t.Fatal(err)
	}
	f.dc = &DeploymentController{
		client: f.client, eventRecorder: f.events, rsControl: controller.RealRSControl{KubeClient: f.client, Recorder: f.events},
		dLister: deployments.Lister(), rsLister: replicaSets.Lister(), podLister: pods.Lister(), podIndexer: pods.Informer().GetIndexer(),
		dListerSynced: deployments.Informer().HasSynced, rsListerSynced: replicaSets.Informer().HasSynced, podListerSynced: pods.Informer().HasSynced,
		queue:             workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		enqueueDeployment: f.wake,
	}
	if err := f.dc.SurgeForEvictions(SurgeInformers{
		Requests: requests, Deployments: deployments, ReplicaSets: replicaSets, Pods: pods,
		Nodes: f.caches.Core().V1().Nodes(), Budgets: f.caches.Policy().V1().PodDisruptionBudgets(),
	}, f.client, f.client); err != nil {
		f.t.Fatal(err)
	}
}

// write handles the update of a ReplicaSet like the API server.
func (f *surgeFixture) write(action core.Action) (bool, runtime.Object, error) {
	rs := action.(core.UpdateAction).GetObject().(*apps.ReplicaSet).DeepCopy()
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.refuse != nil {
		return true, nil, f.refuse
	}
	stored := f.stored(rs.Name)
	if rs.ResourceVersion != stored.ResourceVersion || rs.UID != stored.UID {
		return true, nil, apierrors.NewConflict(apps.Resource("replicasets"), rs.Name, fmt.Errorf("version %s of %s is written, stored is %s of %s", rs.ResourceVersion, rs.UID, stored.ResourceVersion, stored.UID))
	}
	f.version++
	rs.ResourceVersion = strconv.Itoa(f.version)
	rs.Status = apps.ReplicaSetStatus{}
	f.surgeWrites = append(f.surgeWrites, rs.DeepCopy())
	rs.Status = stored.Status
	if f.unseen {
		return true, rs, nil
	}
	return true, rs.DeepCopy(), f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("replicasets"), rs, rs.Namespace)
}

func (f *surgeFixture) stored(name string) *apps.ReplicaSet {
	obj, err := f.client.Tracker().Get(apps.SchemeGroupVersion.WithResource("replicasets"), metav1.NamespaceDefault, name)
	if err != nil {
		f.t.Errorf("reading ReplicaSet %s: %v", name, err)
		return &apps.ReplicaSet{}
	}
	return obj.(*apps.ReplicaSet)
}

func (f *surgeFixture) refuseWrites(err error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.refuse = err
}

// writes returns the writes since the last call.
func (f *surgeFixture) writes() []*apps.ReplicaSet {
	f.lock.Lock()
	defer f.lock.Unlock()
	surgeWrites := f.surgeWrites
	f.surgeWrites = nil
	return surgeWrites
}

func (f *surgeFixture) wake(d *apps.Deployment) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if uid := string(d.UID); !slices.Contains(f.woken, uid) {
		f.woken = append(f.woken, uid)
		slices.Sort(f.woken)
	}
}

// forgetWoken returns the Deployments enqueued since the last call.
func (f *surgeFixture) forgetWoken() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	woken := f.woken
	f.woken = nil
	return woken
}

// recorded returns the events since the last call.
func (f *surgeFixture) recorded() []string {
	var events []string
	for len(f.events.Events) > 0 {
		events = append(events, <-f.events.Events)
	}
	return events
}

// looksAgainAfter reports whether the Deployment is requeued after d, and not earlier.
func (f *surgeFixture) looksAgainAfter(d time.Duration) bool {
	time.Sleep(d - time.Millisecond)
	synctest.Wait()
	before := f.dc.queue.Len()
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return before == 0 && f.dc.queue.Len() == 1
}

// surge runs surgeForEvictions for the Deployment web as its sync does, and returns the ReplicaSets
// with which the sync would continue, sorted by name.
func (f *surgeFixture) surge() ([]*apps.ReplicaSet, error) {
	f.t.Helper()
	synctest.Wait() // Wait for the caches.
	d, err := f.dc.dLister.Deployments(metav1.NamespaceDefault).Get("web")
	if err != nil {
		f.t.Fatal(err)
	}
	var rsList []*apps.ReplicaSet
	for _, obj := range f.caches.Apps().V1().ReplicaSets().Informer().GetStore().List() {
		if rs := obj.(*apps.ReplicaSet); metav1.IsControlledBy(rs, d) {
			rsList = append(rsList, rs)
		}
	}
	slices.SortFunc(rsList, func(a, b *apps.ReplicaSet) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	views, err := f.dc.surgeForEvictions(f.ctx, d.DeepCopy(), rsList)
	synctest.Wait()
	return views, err
}

// intercept runs the interceptor until stop is called or the test ends.
func (f *surgeFixture) intercept() (stop func()) {
	f.intercepts = true
	ctx, cancel := context.WithCancel(f.ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.dc.InterceptEvictions(ctx); err != nil {
			f.t.Errorf("InterceptEvictions: %v", err)
		}
	})
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

// restart creates a new controller on the same caches. The old one must have been stopped.
func (f *surgeFixture) restart() {
	f.dc.queue.ShutDown()
	f.newController()
	f.intercepts = false
}

// sawAsReported lets the controller have seen since when a pod is not ready: the clocks agree.
func (f *surgeFixture) sawAsReported(obj runtime.Object) {
	if pod, ok := obj.(*v1.Pod); ok {
		f.dc.surger.unready.Saw(pod, unreadyAsReported(pod))
	}
}

// unreadyAsReported returns since when a pod that is not ready is so by the clocks of its node and of the API server.
func unreadyAsReported(pod *v1.Pod) time.Time {
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil {
		return laterOf(pod.CreationTimestamp.Time, ready.LastTransitionTime.Time)
	}
	return pod.CreationTimestamp.Time
}

// put creates or replaces an object, and waits until the caches have it.
func (f *surgeFixture) put(obj runtime.Object) {
	f.t.Helper()
	f.sawAsReported(obj)
	resource, accessor := f.resourceOf(obj)
	// A new UID is a new object.
	if existing, err := f.client.Tracker().Get(resource, accessor.GetNamespace(), accessor.GetName()); err != nil {
		if err := f.client.Tracker().Create(resource, obj, accessor.GetNamespace()); err != nil {
			f.t.Fatal(err)
		}
	} else if before, err := meta.Accessor(existing); err != nil || before.GetUID() != accessor.GetUID() {
		f.remove(obj)
		f.put(obj)
	} else if err := f.client.Tracker().Update(resource, obj, accessor.GetNamespace()); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
}

func (f *surgeFixture) remove(obj runtime.Object) {
	f.t.Helper()
	resource, accessor := f.resourceOf(obj)
	if err := f.client.Tracker().Delete(resource, accessor.GetNamespace(), accessor.GetName()); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
}

func (f *surgeFixture) resourceOf(obj runtime.Object) (schema.GroupVersionResource, metav1.Object) {
	f.t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		f.t.Fatal(err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		f.t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return resource, accessor
}

// request returns the current request of a pod.
func (f *surgeFixture) request(uid string) *coordinationv1alpha1.EvictionRequest {
	f.t.Helper()
	request, err := f.client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceDefault).Get(f.ctx, uid, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return request
}

// changeRequest writes to the request of a pod as another client.
func (f *surgeFixture) changeRequest(uid string, change func(*coordinationv1alpha1.EvictionRequest)) {
	f.t.Helper()
	request := f.request(uid)
	change(request)
	f.put(request)
}

// entry returns what the Deployment controller has reported for a pod.
func (f *surgeFixture) entry(uid string) coordinationv1alpha1.InterceptorStatus {
	f.t.Helper()
	synctest.Wait()
	return f.request(uid).Status.Interceptors[0]
}

// turnOver is the number and the total duration of the turns with one outcome.
type turnOver struct {
	Turns   uint64
	Seconds float64
}

// turnsOver returns the current values of the metric by outcome.
func turnsOver(t *testing.T) map[metrics.Outcome]turnOver {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[metrics.Outcome]turnOver{}
	for _, family := range families {
		if family.GetName() != "deployment_controller_eviction_surge_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			counted[metrics.Outcome(metric.GetLabel()[0].GetValue())] = turnOver{metric.GetHistogram().GetSampleCount(), metric.GetHistogram().GetSampleSum()}
		}
	}
	return counted
}

// turnsOverSince returns the outcomes whose values have changed since before, and by how much.
func turnsOverSince(t *testing.T, before map[metrics.Outcome]turnOver) map[metrics.Outcome]turnOver {
	t.Helper()
	counted := map[metrics.Outcome]turnOver{}
	for outcome, now := range turnsOver(t) {
		if now != before[outcome] {
			counted[outcome] = turnOver{now.Turns - before[outcome].Turns, now.Seconds - before[outcome].Seconds}
		}
	}
	return counted
}

// surgesStarted returns the number of extra replicas counted so far.
func surgesStarted(t *testing.T) int {
	t.Helper()
	return metricValue(t, "deployment_controller_eviction_surges_started_total")
}

// surgeReplicas is the current number of replicas of surges in the metrics.
func surgeReplicas(t *testing.T) int {
	t.Helper()
	return metricValue(t, "deployment_controller_eviction_surge_replicas")
}

// metricValue returns the value of a counter or gauge without labels.
func metricValue(t *testing.T, name string) int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			series := family.GetMetric()[0]
			return int(series.GetCounter().GetValue() + series.GetGauge().GetValue()) // It is one of both.
		}
	}
	t.Fatalf("the metric %s is missing", name)
	return 0
}

// bubbleBegins is the time at which every bubble starts.
var bubbleBegins = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// web is a Deployment with one replica and a maxSurge of one.
func web(changes ...func(*apps.Deployment)) *apps.Deployment {
	d := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault, UID: "web-uid"},
		Spec: apps.DeploymentSpec{
			Replicas:                ptr.To(int32(1)),
			Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:                webTemplate(),
			ProgressDeadlineSeconds: ptr.To(int32(300)),
			Strategy: apps.DeploymentStrategy{
				Type:          apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))},
			},
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func webTemplate() v1.PodTemplateSpec {
	return v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "web:1"}}},
	}
}

// withReplicas sets the number of replicas and maxSurge.
func withReplicas(replicas, maxSurge int32) func(*apps.Deployment) {
	return func(d *apps.Deployment) {
		d.Spec.Replicas = ptr.To(replicas)
		d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(maxSurge))
	}
}

// web1 is the ReplicaSet of web, without a surge.
func web1(changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: metav1.NamespaceDefault, UID: "web-1-uid", ResourceVersion: "10", Labels: webTemplate().Labels,
			Annotations:     map[string]string{deploymentutil.DesiredReplicasAnnotation: "1", deploymentutil.MaxReplicasAnnotation: "2"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web(), controllerKind)},
		},
		Spec:   apps.ReplicaSetSpec{Replicas: ptr.To(int32(1)), Selector: web().Spec.Selector, Template: webTemplate()},
		Status: apps.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
	}
	for _, change := range changes {
		change(rs)
	}
	return rs
}

// sized sets the number of replicas, all of them available, and the annotations of the Deployment.
func sized(replicas, desired, maxReplicas int32) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) {
		rs.Spec.Replicas = ptr.To(replicas)
		deploymentutil.SetReplicasAnnotations(rs, desired, maxReplicas)
		rs.Status = apps.ReplicaSetStatus{Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	}
}

// annotated sets the annotation of a surge.
func annotated(surge string) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.Annotations[deploymentutil.EvictionSurgeAnnotation] = surge }
}

// orphaned is a ReplicaSet that has lost its Deployment.
func orphaned(rs *apps.ReplicaSet) { rs.OwnerReferences = nil }

// webPod is a pod of web-1 that has been ready for an hour.
func webPod(name string, changes ...func(*v1.Pod)) *v1.Pod {
	longAgo := metav1.NewTime(bubbleBegins.Add(-time.Hour))
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID(name + "-uid"), Labels: webTemplate().Labels, CreationTimestamp: longAgo,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web1(), apps.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: longAgo}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// starting is a new pod that is not ready.
func starting(p *v1.Pod) {
	p.CreationTimestamp = metav1.NewTime(bubbleBegins)
	p.Status = v1.PodStatus{Phase: v1.PodPending}
}

func unready(p *v1.Pod) {
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.NewTime(bubbleBegins)}}
}

func terminating(p *v1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(bubbleBegins)) }

func ended(p *v1.Pod) { p.Status.Phase = v1.PodFailed }

// alone is a pod without a controller.
func alone(p *v1.Pod) { p.OwnerReferences = nil }

// asks is the request for a pod of that name. The Deployment is the active interceptor.
func asks(pod string, changes ...func(*coordinationv1alpha1.EvictionRequest)) *coordinationv1alpha1.EvictionRequest {
	uid := pod + "-uid"
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: metav1.NamespaceDefault, UID: types.UID("request-" + uid)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod, UID: uid}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drainer.example.com"}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			ActiveInterceptors: []string{coordinationv1alpha1.EvictionInterceptorDeployment},
			ActivationTime:     ptr.To(metav1.NewTime(bubbleBegins)),
			Interceptors: []coordinationv1alpha1.InterceptorStatus{
				{Name: coordinationv1alpha1.EvictionInterceptorDeployment}, {Name: coordinationv1alpha1.EvictionInterceptorReplicaSet},
			},
		},
	}
	for _, change := range changes {
		change(request)
	}
	return request
}

// nobodyWants removes the requesters. The request is not canceled yet.
func nobodyWants(request *coordinationv1alpha1.EvictionRequest) { request.Spec.Requesters = nil }

// notYet makes another interceptor active, before the Deployment.
func notYet(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.ActiveInterceptors = []string{"other.example.com"}
}

// passed makes the next interceptor active, after the Deployment.
func passed(request *coordinationv1alpha1.EvictionRequest) {
	passedTo(coordinationv1alpha1.EvictionInterceptorReplicaSet)(request)
}

// passedTo makes this interceptor active, after the Deployment.
func passedTo(interceptor string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.ActiveInterceptors = []string{interceptor}
		request.Status.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
		if evictionrequest.ActiveInterceptor(request) == nil {
			request.Status.Interceptors = append(request.Status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: interceptor})
		}
	}
}

// holding sets a condition that ends the request.
func holding(condition coordinationv1alpha1.EvictionRequestConditionType) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{Type: string(condition), Status: metav1.ConditionTrue, Reason: "Tested"})
	}
}
