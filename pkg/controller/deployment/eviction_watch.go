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

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
)

// watch enqueues Deployments on changes that affect a surge and that do not show in the status of a
// ReplicaSet, which the controller watches anyway.
func (s *surger) watch(requests coordinationinformers.EvictionRequestInformer, deployments appsinformers.DeploymentInformer, replicaSets appsinformers.ReplicaSetInformer, pods coreinformers.PodInformer) error {
	if _, err := requests.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { s.requestChanged(nil, obj) },
		UpdateFunc: func(old, new any) {
			s.requestChanged(old.(*coordinationv1alpha1.EvictionRequest), new)
		},
		DeleteFunc: func(obj any) { s.requestChanged(nil, obj) },
	}); err != nil {
		return fmt.Errorf("watching eviction requests: %w", err)
	}
	if _, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(obj any) {
			if d, err := tombstone.Object[*apps.Deployment](obj); err == nil {
				s.forget(d)
			}
		},
	}); err != nil {
		return fmt.Errorf("watching deployments: %w", err)
	}
	if _, err := replicaSets.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			if before, after := old.(*apps.ReplicaSet), new.(*apps.ReplicaSet); !sameController(before, after) {
				s.replicaSetLost(before)
			}
		},
		DeleteFunc: func(obj any) {
			if rs, err := tombstone.Object[*apps.ReplicaSet](obj); err == nil {
				s.replicaSetLost(rs)
			}
		},
	}); err != nil {
		return fmt.Errorf("watching replica sets: %w", err)
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			s.unready.Saw(obj.(*v1.Pod), s.clock.Now())
			s.podChanged(nil, obj)
		},
		UpdateFunc: func(old, new any) {
			s.unready.Saw(new.(*v1.Pod), s.clock.Now())
			s.podChanged(old.(*v1.Pod), new)
		},
		DeleteFunc: func(obj any) {
			if pod, err := tombstone.Object[*v1.Pod](obj); err == nil {
				s.unready.Forget(pod.UID)
			}
			s.podChanged(nil, obj)
		},
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// requestChanged enqueues the Deployment of the pod if the turn of the request has changed, or whether anybody wants
// the eviction.
func (s *surger) requestChanged(old *coordinationv1alpha1.EvictionRequest, obj any) {
	request, err := tombstone.Object[*coordinationv1alpha1.EvictionRequest](obj)
	if err != nil || request.Spec.Target.Pod == nil {
		return
	}
	deleted := old == nil
	if !deleted && turnIn(old) == turnIn(request) && evictionrequest.IsWanted(old) == evictionrequest.IsWanted(request) || deleted && turnIn(request) == notAsked {
		return
	}
	target := request.Spec.Target.Pod
	if d, _ := s.deploymentOf(context.TODO(), request.Namespace, target.Name, types.UID(target.UID)); d != nil {
		s.dc.enqueueDeployment(d)
	}
}

// podChanged enqueues the Deployment of a pod that became ready or unready, finished, began to
// terminate, or changed its owner, if the pod or its ReplicaSet is part of a surge.
func (s *surger) podChanged(old *v1.Pod, obj any) {
	pod, err := tombstone.Object[*v1.Pod](obj)
	if err != nil {
		return
	}
	if old != nil && podutil.IsPodReady(old) == podutil.IsPodReady(pod) && old.Status.Phase == pod.Status.Phase &&
		(old.DeletionTimestamp == nil) == (pod.DeletionTimestamp == nil) && sameController(old, pod) {
		return
	}
	s.lock.Lock()
	m := s.openTurns[pod.UID]
	s.lock.Unlock()
	if m != nil {
		m.wakeUp()
		return
	}
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return
	}
	rs, err := s.dc.rsLister.ReplicaSets(pod.Namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID || rs.Annotations[deploymentutil.EvictionSurgeAnnotation] == "" {
		return
	}
	if ref := metav1.GetControllerOf(rs); ref != nil {
		if d := s.dc.resolveControllerRef(rs.Namespace, ref); d != nil {
			s.dc.enqueueDeployment(d)
		}
	}
}

// forget is called for a deleted Deployment.
func (s *surger) forget(d *apps.Deployment) {
	s.surgeWrites.Clear(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, d.UID)
	s.rolloutWrites.Clear(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, d.UID)
	s.lock.Lock()
	delete(s.progress, d.UID)
	delete(s.uncertainWrites, d.UID)
	delete(s.written, d.UID)
	delete(s.releases, d.UID)
	for node, deployments := range s.misplaced {
		if deployments.Delete(d.UID); deployments.Len() == 0 {
			delete(s.misplaced, node)
		}
	}
	s.lock.Unlock()
	s.wake(d.UID)
}

// replicaSetLost is called for a ReplicaSet that was deleted or released by its Deployment.
func (s *surger) replicaSetLost(rs *apps.ReplicaSet) {
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		s.wake(ref.UID)
	}
}

// nodeHandler wakes up the Deployments with pods on a node that maintenances claim from now on, or no more.
func (s *surger) nodeHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			before, after, now := old.(*v1.Node), new.(*v1.Node), s.clock.Now()
			if !maintenance.ClaimedSince(before, now).Equal(maintenance.ClaimedSince(after, now)) {
				s.claimChanged(after.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if node, err := tombstone.Object[*v1.Node](obj); err == nil {
				s.claimChanged(node.Name)
			}
		},
	}
}

// noteMisplaced records that a Deployment has a pod that came to the node while maintenances claimed it.
func (s *surger) noteMisplaced(node string, deployment types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.misplaced[node] == nil {
		s.misplaced[node] = sets.New[types.UID]()
	}
	s.misplaced[node].Insert(deployment)
}

// claimChanged is called for a node that maintenances have claimed or released.
func (s *surger) claimChanged(node string) {
	s.lock.Lock()
	deployments := s.misplaced[node]
	delete(s.misplaced, node)
	s.lock.Unlock()
	for deployment := range deployments {
		s.wake(deployment)
	}
}

// wake makes the open turns of a Deployment look up the owner of their pod again: pods can outlive
// the Deployment and the ReplicaSet that created them.
func (s *surger) wake(deployment types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, m := range s.openTurns {
		if m.deployment == deployment {
			m.wakeUp()
		}
	}
}

func (m *openTurn) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // A wake-up is already pending.
	}
}

// deploymentOf returns the Deployment of a pod, or nil if it has none. known is false while the pod
// is not in the cache: it may be gone, or may not have arrived yet.
func (s *surger) deploymentOf(ctx context.Context, namespace, name string, uid types.UID) (d *apps.Deployment, known bool) {
	pod, err := s.dc.podLister.Pods(namespace).Get(name)
	if err != nil || pod.UID != uid {
		return nil, false
	}
	return s.dc.getDeploymentForPod(klog.FromContext(ctx), pod), true
}

// turnIn returns how a request concerns the Deployment of its pod. The request may be nil.
func turnIn(request *coordinationv1alpha1.EvictionRequest) turn {
	if request == nil || evictionrequest.IsFinished(request.Status.Conditions) {
		return notAsked
	}
	const own = coordinationv1alpha1.EvictionInterceptorDeployment
	if slices.Contains(request.Status.ProcessedInterceptors, own) {
		evictors := []string{coordinationv1alpha1.EvictionInterceptorReplicaSet, coordinationv1alpha1.EvictionInterceptorImperative}
		if others := request.Status.ActiveInterceptors; len(others) > 0 && !slices.Contains(evictors, others[0]) {
			return passedOn
		}
		return evicting
	}
	switch active := evictionrequest.ActiveInterceptor(request); {
	case active == nil || active.Name != own:
		return notAsked
	case active.CompletionTime != nil:
		return passedOn // The next active interceptor is not known yet.
	}
	return ourTurn
}

func sameController(a, b metav1.Object) bool {
	left, right := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return left == nil && right == nil || left != nil && right != nil && left.UID == right.UID
}
