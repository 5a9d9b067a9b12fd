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
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// surplusRecheck is how soon a ReplicaSet is synced again that has left out a pod. Usually its
// Deployment makes it smaller long before.
const surplusRecheck = 5 * time.Second

// surplus returns how many of these pods are more than the ReplicaSet should have, or less
// than nothing where pods are missing.
//
// A pod that is extra is there for one that is asked to leave. When that has gone, by an
// eviction or in another way, its replacement is there, or on its way. The Deployment takes
// the extra replica back a moment later, so that no pod is created in between for nothing.
func (rsc *ReplicaSetController) surplus(ctx context.Context, activePods []*v1.Pod, rs *apps.ReplicaSet) int {
	diff := len(activePods) - int(*rs.Spec.Replicas)
	if rsc.evictions == nil || diff >= 0 {
		return diff
	}
	needless := rsc.needlessReplicas(ctx, activePods, rs)
	if needless == 0 {
		return diff
	}
	if key, err := controller.KeyFunc(rs); err == nil {
		rsc.queue.AddAfter(key, surplusRecheck)
	}
	return min(diff+needless, 0)
}

// needlessReplicas returns how many replicas are extra although no pod is to leave for them.
func (rsc *ReplicaSetController) needlessReplicas(ctx context.Context, activePods []*v1.Pod, rs *apps.ReplicaSet) int {
	if _, recorded := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; !recorded || !rsc.evictions.requestsSynced() {
		return 0
	}
	surge := rsc.surgeOf(ctx, rs)
	needless := int(surge.Surge)
	for _, pod := range activePods {
		if rsc.evictions.isRequested(pod) {
			needless--
		}
	}
	return max(needless, 0)
}

// surgeOf returns the surge of a ReplicaSet, which is at most what its Deployment has beyond its
// size. An annotation that cannot be read has no effect: the Deployment controller, which writes
// it, says what is wrong.
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
		return nil // It is gone, and another one may have its name.
	}
	return deployment
}
