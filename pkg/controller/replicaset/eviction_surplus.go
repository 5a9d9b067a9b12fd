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

package replicaset

import (
	"context"
	"fmt"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// surplusRecheck is how soon a ReplicaSet is synced again after a pod was not created or not deleted. Usually
// the Deployment scales it down, or the cache has what it lacked, long before.
const surplusRecheck = 5 * time.Second

// refusalRecheck is how soon a ReplicaSet is synced again that lacks pods for which an eviction waits, or could not
// delete a replaced one. A quota or a webhook may have refused that a moment ago: the controller then waits twice as
// long after each refusal, up to 17 minutes, and no event says that it would be accepted now.
const refusalRecheck = 30 * time.Second

// confirmTimeout limits the reading of a ReplicaSet. The worker that waits for it syncs no other one.
const confirmTimeout = 15 * time.Second

// surplus returns how many pods to delete, and among which: by how many they exceed the replicas of the
// ReplicaSet. It is negative if pods are missing, and zero while the cache is known to be behind. While a picker is
// asked, it returns the pods that go whatever the answer is, and how many these are.
//
// An extra replica exists for a pod that should leave. When that pod has left, by an eviction or
// otherwise, its replacement exists or is being created. Until the Deployment removes the extra
// replica a moment later, no pod is created for it.
func (rsc *ReplicaSetController) surplus(ctx context.Context, activePods []*v1.Pod, rs *apps.ReplicaSet) (diff int, among []*v1.Pod, err error) {
	diff = len(activePods) - int(*rs.Spec.Replicas)
	if diff > 0 && rsc.evictions != nil {
		confirmed, err := rsc.confirmLeaving(ctx, rs, activePods)
		if err != nil {
			return 0, nil, err
		}
		if !confirmed {
			rsc.recheckAfter(rs, surplusRecheck)
			return 0, activePods, nil
		}
		if deploymentutil.DeleteFailureOf(rs) != nil && hasLeaving(rs, activePods) {
			rsc.recheckAfter(rs, refusalRecheck)
		}
	}
	goAnyway, waits := rsc.waitsForPicker(ctx, rs, activePods, diff)
	switch {
	case len(goAnyway) > 0:
		return len(goAnyway), goAnyway, nil
	case waits:
		return 0, activePods, waitError(rs)
	case rsc.evictions == nil || diff >= 0:
		return diff, activePods, nil
	}
	unneeded := rsc.unneededReplicas(ctx, activePods, rs)
	if unneeded == 0 {
		if rsc.evictionsWait(rs, activePods) {
			rsc.recheckAfter(rs, refusalRecheck)
		}
		return diff, activePods, nil
	}
	rsc.recheckAfter(rs, surplusRecheck)
	return min(diff+unneeded, 0), activePods, nil
}

// evictionsWait reports whether an eviction waits for the pods of a ReplicaSet: there are extra replicas, or a pod
// waits for its turn. During a rollout, pods of one ReplicaSet of a Deployment wait for those of another one.
func (rsc *ReplicaSetController) evictionsWait(rs *apps.ReplicaSet, activePods []*v1.Pod) bool {
	if hasExtraReplicas(rs) || slices.ContainsFunc(activePods, rsc.evictions.isRequested) {
		return true
	}
	return slices.ContainsFunc(rsc.relatedTo(rs), func(related *apps.ReplicaSet) bool {
		if related.UID == rs.UID || related.Status.Replicas == 0 {
			return false
		}
		if hasExtraReplicas(related) {
			return true
		}
		pods, err := controller.FilterPodsByOwner(rsc.podIndexer, &related.ObjectMeta, rsc.Kind, false)
		return err == nil && slices.ContainsFunc(pods, rsc.evictions.isRequested)
	})
}

func hasExtraReplicas(rs *apps.ReplicaSet) bool {
	_, surges := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]
	return surges
}

// relatedTo returns the ReplicaSets with the same controller, of which it is one.
func (rsc *ReplicaSetController) relatedTo(rs *apps.ReplicaSet) []*apps.ReplicaSet {
	if metav1.GetControllerOfNoCopy(rs) == nil {
		return []*apps.ReplicaSet{rs}
	}
	return rsc.getReplicaSetsWithSameController(klog.Background(), rs)
}

// requestCreated has the ReplicaSets synced within refusalRecheck whose missing pods the requested one may have to wait
// for. The delay that refusals have caused is older than the request.
func (rsc *ReplicaSetController) requestCreated(request *coordinationv1alpha1.EvictionRequest) {
	target := request.Spec.Target.Pod
	if target == nil {
		return
	}
	pod, err := rsc.podLister.Pods(request.Namespace).Get(target.Name)
	if err != nil || string(pod.UID) != target.UID {
		return
	}
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return
	}
	owner := rsc.resolveControllerRef(pod.Namespace, ref)
	if owner == nil {
		return
	}
	for _, rs := range rsc.relatedTo(owner) {
		if rs.Status.Replicas < *rs.Spec.Replicas {
			rsc.recheckAfter(rs, refusalRecheck)
		}
	}
}

// recheckAfter has a ReplicaSet synced again also if no event says that it has changed.
func (rsc *ReplicaSetController) recheckAfter(rs *apps.ReplicaSet, after time.Duration) {
	if key, err := controller.KeyFunc(rs); err == nil {
		rsc.queue.AddAfter(key, after)
	}
}

// confirmLeaving reports whether the API server agrees with the cache about the pods that the Deployment has marked as
// leaving. A process that was suspended goes on with an old cache: their eviction may have been canceled meanwhile,
// which says that they stay. Nothing is read if none of them is left.
func (rsc *ReplicaSetController) confirmLeaving(ctx context.Context, rs *apps.ReplicaSet, activePods []*v1.Pod) (bool, error) {
	if !hasLeaving(rs, activePods) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	stored, err := rsc.evictions.client.AppsV1().ReplicaSets(rs.Namespace).Get(ctx, rs.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading which pods are leaving: %w", err)
	}
	const record = deploymentutil.EvictionSurgeAnnotation
	return stored.UID == rs.UID && stored.Generation == rs.Generation && stored.Annotations[record] == rs.Annotations[record], nil
}

// hasLeaving reports whether the Deployment has marked any of the pods as leaving.
func hasLeaving(rs *apps.ReplicaSet, pods []*v1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return deploymentutil.IsLeaving(rs, pod.UID) })
}

// unneededReplicas returns the number of extra replicas without a pod that should leave.
func (rsc *ReplicaSetController) unneededReplicas(ctx context.Context, activePods []*v1.Pod, rs *apps.ReplicaSet) int {
	if _, recorded := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; !recorded || !rsc.evictions.requestsSynced() {
		return 0
	}
	surge := rsc.surgeOf(ctx, rs)
	unneeded := int(surge.Surge)
	for _, pod := range activePods {
		if rsc.evictions.isRequested(pod) {
			unneeded--
		}
	}
	return max(unneeded, 0)
}

// surgeOf returns the surge of a ReplicaSet, limited to the replicas that its Deployment has beyond
// its size. An invalid annotation has no effect. The Deployment controller, which writes it,
// reports the error.
func (rsc *ReplicaSetController) surgeOf(ctx context.Context, rs *apps.ReplicaSet) deploymentutil.EvictionSurge {
	beyond := 0
	if deployment := deploymentOf(rsc.evictions.deploymentLister, rs); deployment != nil {
		beyond = deploymentutil.ReplicasBeyond(deployment, rsc.getReplicaSetsWithSameController(klog.FromContext(ctx), rs))
	}
	surge, _ := deploymentutil.EvictionSurgeOf(rs, beyond)
	return surge
}

// deploymentOf returns the Deployment that controls a ReplicaSet, or nil.
func deploymentOf(lister appslisters.DeploymentLister, rs *apps.ReplicaSet) *apps.Deployment {
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil || !isAppsKind(ref, "Deployment") {
		return nil
	}
	deployment, err := lister.Deployments(rs.Namespace).Get(ref.Name)
	if err != nil || deployment.UID != ref.UID {
		return nil // Deleted, and possibly recreated.
	}
	return deployment
}
