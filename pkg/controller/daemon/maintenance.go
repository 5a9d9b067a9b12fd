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

package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/lru"
)

// This file decides how the DaemonSet controller handles nodes under maintenance (KEP-4212).
// interceptor.go terminates the pods.
//
// A node is closed to a DaemonSet while its pod would be within the drain targets of the node. It
// stays closed until the end of the maintenance, because targets never shrink before. It is also closed while
// its kubelet says that it terminates pods, because the machine shuts down: without a maintenance, or because a drain
// is not possible or has taken too long. The kubelet would reject the pod, and the next one. While a node
// is closed:
//
//   - No pod is created there. A pod outside the targets is still created, also if it was deleted
//     during the drain. This is decided by the pod of the template, and by the pod that was deleted
//     there before: if admission changes the pod so that the targets match it, every new pod would
//     be deleted again.
//   - A pod that waits to be scheduled there is deleted. It has no eviction request, because it is
//     not bound to the node yet, and it would start after the drain.
//   - A pod that runs there leaves only by its EvictionRequest, unless it would be deleted without
//     a maintenance too: it does not tolerate the node, has finished, or is surplus.
//   - A rolling update skips the node. It neither deletes the pod there, which would not be
//     recreated, nor starts another beside it, and the node counts neither for maxUnavailable nor
//     for maxSurge. After the maintenance, the pod is created in the new version, and a pod that
//     never left is then updated like any other.
//   - The node counts in the status as long as it has a running pod that is not terminating. After
//     that, no pod is desired there. So no pod is missing or misscheduled during a maintenance, and
//     a client that waits for a rollout does not wait for the maintenance.

// interceptedPodControl adds this controller to the eviction interceptors of new pods. It does not
// change the template of the DaemonSet, whose hash stays the same. If the interceptor cannot be
// added, the eviction request controller still treats this controller as an interceptor of all pods
// of DaemonSets.
type interceptedPodControl struct {
	controller.PodControlInterface
	creator *evictioninterceptor.Creator
}

// CreatePods creates a pod of a DaemonSet.
func (c interceptedPodControl) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error {
	create := func(template *v1.PodTemplateSpec) error {
		return c.PodControlInterface.CreatePods(ctx, namespace, template, object, controllerRef)
	}
	return c.creator.Create(controllerRef.UID, template, create, nil, coordinationv1alpha1.EvictionInterceptorDaemonSet)
}

// opensAlike reports whether a change of the node leaves unchanged whether it is closed. The other conditions of a
// node, and the counters in its maintenance status, change all the time.
func opensAlike(old, node *v1.Node) bool {
	return !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareDaemonSet) ||
		sameDaemonSetTargets(old, node) && maintenance.TerminatesPods(old) == maintenance.TerminatesPods(node)
}

// sameDaemonSetTargets reports whether a change of the node leaves the drain targets for pods of
// DaemonSets unchanged.
func sameDaemonSetTargets(old, node *v1.Node) bool {
	return apiequality.Semantic.DeepEqual(daemonSetEntries(old), daemonSetEntries(node))
}

// daemonSetEntries returns the drain targets of a node that concern pods of DaemonSets.
func daemonSetEntries(node *v1.Node) []v1.DrainPlanEntry {
	if node.Status.MaintenanceStatus == nil {
		return nil
	}
	var entries []v1.DrainPlanEntry
	for _, entry := range node.Status.MaintenanceStatus.DrainTargets {
		if entry.PodType == v1.PodTypeDaemonSet {
			entries = append(entries, entry)
		}
	}
	return entries
}

// daemonSetTargets returns the drain targets of a node for pods of DaemonSets. Invalid targets,
// which the API server rejects, count as none.
func daemonSetTargets(node *v1.Node) maintenance.Targets {
	targets, err := maintenance.NewTargets(daemonSetEntries(node))
	if err != nil {
		return maintenance.Targets{}
	}
	return targets
}

// nodeShouldRunDaemonPod is the function of the same name with node maintenances: a closed node
// gets no pod, and keeps the one it has.
func (dsc *DaemonSetsController) nodeShouldRunDaemonPod(logger klog.Logger, node *v1.Node, ds *apps.DaemonSet, tolerations []v1.Toleration, affinity nodeaffinity.RequiredNodeAffinity) (shouldRun, shouldContinueRunning bool) {
	shouldRun, shouldContinueRunning = nodeShouldRunDaemonPod(logger, node, ds, tolerations, affinity)
	return shouldRun && !dsc.isClosed(node, ds), shouldContinueRunning
}

// isClosed reports whether a pod of the DaemonSet would be within the drain targets of the node, or would be
// rejected by the kubelet of a machine that shuts down.
func (dsc *DaemonSetsController) isClosed(node *v1.Node, ds *apps.DaemonSet) bool {
	if dsc.priorityClassLister == nil {
		return false
	}
	if maintenance.TerminatesPods(node) {
		return true
	}
	targets := daemonSetTargets(node)
	if targets.IsEmpty() {
		dsc.admitted.forget(ds, node.Name)
		return false
	}
	if pod := dsc.admitted.get(ds, node.Name); pod != nil && targets.Take(pod) {
		return true
	}
	priority, known := dsc.templatePriority(&ds.Spec.Template)
	if !known {
		// The API server will reject the pod anyway, with an error that says why.
		return false
	}
	return targets.Take(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels:          ds.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, controllerKind)},
		},
		Spec: v1.PodSpec{Priority: &priority},
	})
}

// withoutPendingPods splits the pods for a node into those that stay for now and the names of those
// to delete: if the node is closed, the pods that are not bound to it yet. The scheduler may bind
// one concurrently. The maintenance deletes it then.
func (dsc *DaemonSetsController) withoutPendingPods(node *v1.Node, ds *apps.DaemonSet, pods []*v1.Pod) (stay []*v1.Pod, names []string) {
	if !slices.ContainsFunc(pods, isUnbound) || !dsc.isClosed(node, ds) {
		return pods, nil
	}
	for _, pod := range pods {
		if isUnbound(pod) {
			names = append(names, pod.Name)
		} else {
			stay = append(stay, pod)
		}
	}
	return stay, names
}

// isUnbound reports whether a pod is neither bound to its node nor terminating.
func isUnbound(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
}

// isVacated reports whether the node is closed and has no pod that stays for now.
func (dsc *DaemonSetsController) isVacated(node *v1.Node, ds *apps.DaemonSet, pods []*v1.Pod) bool {
	stays := func(pod *v1.Pod) bool {
		return pod.DeletionTimestamp == nil && maintenance.IsLeft(pod) && !isUnbound(pod)
	}
	return !slices.ContainsFunc(pods, stays) && dsc.isClosed(node, ds)
}

// isRollingOut reports whether some pods are not up to date. The rolling update may have skipped a
// node that opens now, and no other event would enqueue the DaemonSet.
func (dsc *DaemonSetsController) isRollingOut(ds *apps.DaemonSet) bool {
	return dsc.priorityClassLister != nil && ds.Spec.UpdateStrategy.Type == apps.RollingUpdateDaemonSetStrategyType && ds.Status.UpdatedNumberScheduled < ds.Status.DesiredNumberScheduled
}

// templatePriority returns the priority that the API server will assign to a pod of the template.
// known is false if the priority class is missing.
func (dsc *DaemonSetsController) templatePriority(template *v1.PodTemplateSpec) (priority int32, known bool) {
	if name := template.Spec.PriorityClassName; name != "" {
		class, err := dsc.priorityClassLister.Get(name)
		if err != nil {
			return 0, false
		}
		return class.Value, true
	}
	classes, err := dsc.priorityClassLister.List(labels.Everything())
	if err != nil {
		return 0, false
	}
	classes = slices.DeleteFunc(classes, func(class *schedulingv1.PriorityClass) bool { return !class.GlobalDefault })
	if len(classes) == 0 {
		return scheduling.DefaultPriorityWhenNoDefaultClassExists, true
	}
	// After a race there may be several defaults. Admission uses the lowest.
	lowest := slices.MinFunc(classes, func(a, b *schedulingv1.PriorityClass) int { return int(a.Value) - int(b.Value) })
	return lowest.Value, true
}

// changesInterception reports whether a change of a pod can affect whether it is within the drain
// targets of its node.
func changesInterception(old, pod *v1.Pod) bool {
	return old.Spec.NodeName != pod.Spec.NodeName ||
		!maps.Equal(old.Labels, pod.Labels) ||
		maintenance.PodTypeOf(old) != maintenance.PodTypeOf(pod)
}

// maxAdmittedPods limits the size of the cache. It is far more than the number of pods that a
// maintenance would delete repeatedly. A pod that is evicted from the cache is deleted once more.
const maxAdmittedPods = 10000

// admittedPods caches the pods that were deleted for a maintenance, as they were after admission:
// the template does not show what webhooks change in a pod. A restart loses the cache, which costs
// one more deletion for each of these pods.
type admittedPods struct {
	lock sync.Mutex
	pods *lru.Cache
}

// podPlace is where a DaemonSet has at most one pod.
type podPlace struct {
	daemonSet types.UID
	node      string
}

// admittedPod is a pod created from a generation of the DaemonSet.
type admittedPod struct {
	generation int64
	pod        *v1.Pod
}

// remember adds a pod, reduced to the fields that drain targets match.
func (a *admittedPods) remember(ds *apps.DaemonSet, pod *v1.Pod) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.pods == nil {
		a.pods = lru.New(maxAdmittedPods)
	}
	a.pods.Add(podPlace{ds.UID, pod.Spec.NodeName}, admittedPod{
		generation: ds.Generation,
		pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, OwnerReferences: pod.OwnerReferences},
			Spec:       v1.PodSpec{Priority: pod.Spec.Priority},
		},
	})
}

// get returns the pod that was deleted from the node, or nil. A pod of another generation is
// ignored: the next pod may differ.
func (a *admittedPods) get(ds *apps.DaemonSet, node string) *v1.Pod {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.pods == nil {
		return nil
	}
	value, found := a.pods.Get(podPlace{ds.UID, node})
	if !found || value.(admittedPod).generation != ds.Generation {
		return nil
	}
	return value.(admittedPod).pod
}

// forget removes the pod once its node is not drained: webhooks may differ at the next maintenance.
func (a *admittedPods) forget(ds *apps.DaemonSet, node string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.pods != nil {
		a.pods.Remove(podPlace{ds.UID, node})
	}
}
