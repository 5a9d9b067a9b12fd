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

package podpicker_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
)

// The resources of the simulated API server, which are also the order of its caches.
const (
	deployments = "deployments"
	replicaSets = "replicasets"
	pods        = "pods"
	requests    = "evictionrequests"
	budgets     = "poddisruptionbudgets"
	nodes       = "nodes"
)

// owner is a controller. Each has caches of its own.
type owner string

const (
	deploymentController owner = "deployment-controller"
	replicaSetController owner = "replicaset-controller"
)

// laggingCache is a watch of one resource by one controller, whose events wait until the simulation
// delivers them.
type laggingCache struct {
	owner    owner
	resource string
	watch    *watch.FakeWatcher
	pending  []watch.Event
}

// running is a controller that runs.
type running struct {
	factory informers.SharedInformerFactory
	stop    func()
}

// client returns the client of a controller.
func (s *sim) client(of owner) *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		object, err := s.serve(of, action)
		if object != nil {
			object = object.DeepCopyObject()
		}
		return true, object, err
	})
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		c := &laggingCache{owner: of, resource: action.GetResource().Resource, watch: watch.NewFakeWithChanSize(1, false)}
		s.caches = append(s.caches, c)
		return true, c.watch, nil
	})
	return client
}

// start starts a controller without any state, whose caches are current.
func (s *sim) start(of owner) {
	ctx, cancel := context.WithCancel(klog.NewContext(s.t.Context(), klog.Logger{}))
	client := s.client(of)
	factory := informers.NewSharedInformerFactory(client, 0)
	deploymentInformer, rsInformer, podInformer := factory.Apps().V1().Deployments(), factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	requestInformer := factory.Coordination().V1alpha1().EvictionRequests()
	var run []func()
	switch of {
	case deploymentController:
		dc, err := deployment.NewDeploymentController(ctx, deploymentInformer, rsInformer, podInformer, client)
		if err == nil {
			err = dc.SurgeForEvictions(deployment.SurgeInformers{
				Requests: requestInformer, Deployments: deploymentInformer, ReplicaSets: rsInformer, Pods: podInformer,
				Nodes: factory.Core().V1().Nodes(), Budgets: factory.Policy().V1().PodDisruptionBudgets(),
			}, client, client)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		run = append(run, func() { dc.Run(ctx, 1) }, func() {
			<-ctx.Done() // The simulation plays the interceptor, which only has to shut down.
			_ = dc.InterceptEvictions(ctx)
		})
	case replicaSetController:
		rsc := replicaset.NewReplicaSetController(ctx, rsInformer, podInformer, client, replicaset.BurstReplicas)
		intercept, err := rsc.InterceptEvictions(client, client, deploymentInformer, requestInformer, factory.Policy().V1().PodDisruptionBudgets())
		if err == nil {
			err = rsc.AskPickers(client, rsInformer, s.addresses(), 20)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		run = append(run, func() {
			// The controller does not wait for requests, which may never be served. What it asks before it
			// knows them is not simulated.
			cache.WaitForCacheSync(ctx.Done(), requestInformer.Informer().HasSynced)
			rsc.Run(ctx, 1)
		}, func() { <-ctx.Done(); intercept(ctx) })
	}
	done := make(chan struct{})
	for _, work := range run {
		go func() { work(); done <- struct{}{} }()
	}
	s.lock.Lock()
	s.controllers[of] = &running{factory: factory, stop: func() {
		cancel()
		for range run {
			<-done
		}
		factory.Shutdown()
	}}
	s.lock.Unlock()
	factory.StartWithContext(ctx)
	synctest.Wait()
}

// restart restarts a controller: what it has not seen, it reads.
func (s *sim) restart(of owner) {
	s.note("the %s restarts", of)
	s.stop(of)
	s.moved = time.Now()
	s.start(of)
	s.observe()
}

func (s *sim) stop(of owner) {
	s.controllers[of].stop()
	synctest.Wait()
	s.lock.Lock()
	defer s.lock.Unlock()
	s.caches = slices.DeleteFunc(s.caches, func(c *laggingCache) bool { return c.owner == of })
	if of == replicaSetController {
		clear(s.scaleDowns)
		clear(s.gone)
		clear(s.batches)
	}
}

// addresses allows the pickers by address, and dials the simulated ones.
func (s *sim) addresses() *podpicker.Addresses {
	allowed, err := podpicker.ParseRanges([]string{pickerRange})
	if err != nil {
		s.t.Fatal(err)
	}
	return &podpicker.Addresses{Allowed: allowed, Dial: s.dial}
}

// serve answers a request. The lock is held.
func (s *sim) serve(of owner, action clienttesting.Action) (runtime.Object, error) {
	resource := action.GetResource().Resource
	switch a := action.(type) {
	case clienttesting.ListActionImpl:
		return s.list(resource), nil
	case clienttesting.GetActionImpl:
		if object := s.get(resource, a.Name); object != nil {
			return object, nil
		}
		return nil, apierrors.NewNotFound(a.Resource.GroupResource(), a.Name)
	case clienttesting.CreateActionImpl:
		return s.create(a.Object)
	case clienttesting.UpdateActionImpl:
		return s.update(of, a.Object, a.Subresource)
	case clienttesting.DeleteActionImpl:
		return nil, s.delete(of, resource, a.Name)
	case clienttesting.PatchActionImpl:
		if resource == "events" {
			return &v1.Event{}, nil
		}
	}
	s.t.Errorf("unexpected call %v", action)
	return nil, fmt.Errorf("unexpected call")
}

func (s *sim) get(resource, name string) runtime.Object {
	switch {
	case resource == "services" && name == pickerService:
		return &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80}}}}
	case resource == pods && name == pickerPod:
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: pickerPodAddress}}}}
	}
	return s.objects[resource][name]
}

func (s *sim) list(resource string) runtime.Object {
	version := metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}
	switch resource {
	case deployments:
		return &apps.DeploymentList{ListMeta: version, Items: all[*apps.Deployment](s, resource)}
	case replicaSets:
		return &apps.ReplicaSetList{ListMeta: version, Items: all[*apps.ReplicaSet](s, resource)}
	case pods:
		return &v1.PodList{ListMeta: version, Items: all[*v1.Pod](s, resource)}
	case requests:
		return &coordinationv1alpha1.EvictionRequestList{ListMeta: version, Items: all[*coordinationv1alpha1.EvictionRequest](s, resource)}
	case budgets:
		return &policyv1.PodDisruptionBudgetList{ListMeta: version}
	case nodes:
		return &v1.NodeList{ListMeta: version}
	case "endpointslices":
		return &discoveryv1.EndpointSliceList{Items: []discoveryv1.EndpointSlice{{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: pickerService}},
			Ports:      []discoveryv1.EndpointPort{{Port: ptr.To[int32](8080)}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{pickerPodAddress}, TargetRef: &v1.ObjectReference{Kind: "Pod", Name: pickerPod}}},
		}}}
	}
	s.t.Errorf("list of %s", resource)
	return nil
}

// all returns the objects of a resource by name.
func all[P interface {
	*T
	runtime.Object
}, T any](s *sim, resource string) (list []T) {
	for _, name := range slices.Sorted(maps.Keys(s.objects[resource])) {
		list = append(list, *s.objects[resource][name].DeepCopyObject().(P))
	}
	return list
}

// store stores an object under a new version, and sends its event to the caches.
func (s *sim) store(resource string, object runtime.Object) {
	accessor := access(object)
	s.version++
	accessor.SetResourceVersion(strconv.Itoa(s.version))
	event := watch.Added
	if s.objects[resource][accessor.GetName()] != nil {
		event = watch.Modified
	}
	s.objects[resource][accessor.GetName()] = object
	s.send(resource, event, object)
}

func (s *sim) send(resource string, event watch.EventType, object runtime.Object) {
	for _, c := range s.caches {
		if c.resource == resource {
			c.pending = append(c.pending, watch.Event{Type: event, Object: object.DeepCopyObject()})
		}
	}
}

func (s *sim) remove(resource, name string) {
	object := s.objects[resource][name]
	if object == nil {
		return
	}
	delete(s.objects[resource], name)
	object = object.DeepCopyObject()
	s.version++
	access(object).SetResourceVersion(strconv.Itoa(s.version))
	s.send(resource, watch.Deleted, object)
}

func access(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return accessor
}

func (s *sim) create(object runtime.Object) (runtime.Object, error) {
	switch object := object.DeepCopyObject().(type) {
	case *v1.Event:
		if object.Source.Component == "replicaset-controller-pod-picker" {
			s.note("event of %s: %s: %s", object.InvolvedObject.Name, object.Reason, object.Message)
		}
		return object, nil
	case *apps.ReplicaSet:
		if s.objects[replicaSets][object.Name] != nil {
			return nil, apierrors.NewAlreadyExists(apps.Resource(replicaSets), object.Name)
		}
		s.checkNewTemplate(object)
		object.UID, object.Generation, object.CreationTimestamp = types.UID(fmt.Sprint("uid-", s.version)), 1, metav1.Now()
		if s.dropsPickers {
			object.Spec.DownscalePodPicker = nil
		}
		s.store(replicaSets, object)
		s.note("ReplicaSet %s is created with %d replicas", object.Name, *object.Spec.Replicas)
		return object, nil
	case *v1.Pod:
		s.names++
		object.Name, object.Namespace = fmt.Sprintf("%s%04d", object.GenerateName, s.names), metav1.NamespaceDefault
		object.UID, object.Status.Phase = types.UID("uid-"+object.Name), v1.PodPending
		object.CreationTimestamp = s.uniqueTime()
		s.store(pods, object)
		s.note("pod %s is created", object.Name)
		return object, nil
	}
	return nil, fmt.Errorf("unexpected %T", object)
}

// uniqueTime returns a time of about now, so that no two pods are of the same age.
func (s *sim) uniqueTime() metav1.Time {
	s.names++
	return metav1.NewTime(time.Now().Add(-time.Duration(s.names) * time.Microsecond))
}

func (s *sim) update(of owner, object runtime.Object, subresource string) (runtime.Object, error) {
	switch updated := object.DeepCopyObject().(type) {
	case *apps.ReplicaSet:
		stored, _ := s.objects[replicaSets][updated.Name].(*apps.ReplicaSet)
		if stored == nil || stored.ResourceVersion != updated.ResourceVersion {
			return nil, apierrors.NewConflict(apps.Resource(replicaSets), updated.Name, fmt.Errorf("it has changed"))
		}
		if subresource == "status" {
			updated.Spec, updated.ObjectMeta = stored.Spec, *stored.ObjectMeta.DeepCopy()
			s.store(replicaSets, updated)
			return updated, nil
		}
		if s.refuses && s.chance(2) {
			s.note("a write of ReplicaSet %s is refused", updated.Name)
			return nil, apierrors.NewForbidden(apps.Resource(replicaSets), updated.Name, fmt.Errorf("refused"))
		}
		if s.dropsPickers {
			updated.Spec.DownscalePodPicker = stored.Spec.DownscalePodPicker
		}
		if !apiequality.Semantic.DeepEqual(updated.Spec, stored.Spec) {
			updated.Generation++
		}
		updated.Status = stored.Status
		s.store(replicaSets, updated)
		s.note("ReplicaSet %s has %d replicas, picker %s", updated.Name, *updated.Spec.Replicas, pathOf(updated.Spec.DownscalePodPicker))
		return updated, nil
	case *apps.Deployment:
		stored, _ := s.objects[deployments][updated.Name].(*apps.Deployment)
		if stored == nil || stored.ResourceVersion != updated.ResourceVersion {
			return nil, apierrors.NewConflict(apps.Resource(deployments), updated.Name, fmt.Errorf("it has changed"))
		}
		updated.Spec = stored.Spec
		s.store(deployments, updated)
		return updated, nil
	}
	s.t.Errorf("the %s updates a %T", of, object)
	return nil, fmt.Errorf("unexpected update")
}

func pathOf(picker *v1.DownscalePodPicker) string {
	if picker == nil {
		return "none"
	}
	return picker.HTTP.Host + picker.HTTP.Path
}

func (s *sim) delete(of owner, resource, name string) error {
	if resource == replicaSets {
		s.note("ReplicaSet %s is deleted", name)
		s.remove(replicaSets, name)
		return nil
	}
	if resource != pods || of != replicaSetController {
		s.t.Errorf("the %s deletes %s %s", of, resource, name)
		return nil
	}
	s.checkDeletion(name)
	stored, _ := s.objects[pods][name].(*v1.Pod)
	switch {
	case stored == nil:
		return apierrors.NewNotFound(v1.Resource(pods), name)
	case s.failing[name]:
		s.note("the deletion of %s fails", name)
		return apierrors.NewInternalError(fmt.Errorf("no deletion"))
	}
	s.note("%s is deleted", name)
	s.terminate(stored)
	s.deleted[name] = true
	return nil
}

func (s *sim) terminate(pod *v1.Pod) {
	if pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = ptr.To(metav1.Now())
		s.store(pods, pod)
	}
}

// kubelet starts pods and ends those that terminate.
func (s *sim) kubelet() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.objects[pods])) {
		pod := s.objects[pods][name].(*v1.Pod).DeepCopy()
		switch {
		case !s.settling && s.chance(3):
		case pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodFailed:
			s.remove(pods, name)
		case pod.Spec.NodeName == "":
			pod.Spec.NodeName = fmt.Sprint("node-", s.random.IntN(3))
			s.store(pods, pod)
		case pod.Status.Phase == v1.PodPending:
			pod.Status.Phase = v1.PodRunning
			setReady(pod, v1.ConditionTrue, s.uniqueTime())
			s.store(pods, pod)
		}
	}
}

func setReady(pod *v1.Pod, status v1.ConditionStatus, at metav1.Time) {
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: at}}
}

// deliver delivers the next event of one cache, chosen at random.
func (s *sim) deliver() bool {
	s.lock.Lock()
	waiting := slices.DeleteFunc(slices.Clone(s.caches), func(c *laggingCache) bool { return len(c.pending) == 0 })
	if len(waiting) == 0 {
		s.lock.Unlock()
		return false
	}
	// The order of the caches is that in which goroutines have started them.
	slices.SortFunc(waiting, func(a, b *laggingCache) int {
		return cmp.Or(strings.Compare(string(a.owner), string(b.owner)), strings.Compare(a.resource, b.resource))
	})
	s.step++
	c := waiting[s.random.IntN(len(waiting))]
	event := c.pending[0]
	c.pending = c.pending[1:]
	if c.owner == replicaSetController {
		s.moved = time.Now()
	}
	s.lock.Unlock()
	c.watch.Action(event.Type, event.Object)
	synctest.Wait()
	s.observe()
	return true
}
