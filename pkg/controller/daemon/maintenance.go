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
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/util/evictioninterceptor"
	"k8s.io/utils/lru"
)

// This file is what the DaemonSet controller knows of node maintenances (KEP-4212), and
// interceptor.go what it does about them.
//
// A node is closed to a DaemonSet while the pod that it would get is within the drain
// targets of the node. Only the end of the maintenance opens it again: targets never step
// back before. While a node is closed:
//
//   - No pod is created there. One that is outside the targets still is, also where it was
//     deleted in mid-drain. What decides is the pod of the template, and the one that was
//     deleted there before: admission may have changed it, so that the targets take it, and
//     another would be deleted in the same way, without end.
//   - A pod that waits to be scheduled there is deleted. Nobody asks for it, since it is on no
//     node yet, and it would start after the drain.
//   - A pod that runs there leaves by its EvictionRequest and by nothing else, unless it
//     would have to go without a maintenance too: it does not tolerate the node any more,
//     has ended, or is one too many.
//   - A rolling update passes the node over. It neither deletes the pod there, which would
//     not come back, nor starts another beside it, and counts neither for maxUnavailable nor
//     for maxSurge. When the maintenance is over, the pod comes back in the new version, and
//     one that has never left is then updated like any other.
//   - The node counts in the status as long as a pod runs there that is not terminating.
//     After that it is not desired any more. So nothing is missing or misscheduled during
//     a maintenance, and waiting for a rollout does not wait for the end of it.

// interceptedPodControl creates pods that name this controller as an interceptor. It adds the
// name to them, and not to the template of the DaemonSet, whose hash stays as it is. Where the
// name cannot be added, the eviction request controller still takes this controller for an
// interceptor of all pods of DaemonSets.
type interceptedPodControl struct {
	controller.PodControlInterface
	creator *evictioninterceptor.Creator
}

// CreatePods creates a pod for a DaemonSet.
func (c interceptedPodControl) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error {
	create := func(template *v1.PodTemplateSpec) error {
		return c.PodControlInterface.CreatePods(ctx, namespace, template, object, controllerRef)
	}
	return c.creator.Create(controllerRef.UID, template, create, coordinationv1alpha1.EvictionInterceptorDaemonSet)
}

// sameDaemonSetTargets tells whether the same pods of DaemonSets are drained from the
// node before and after a change. The counters beside the targets change all the time.
func sameDaemonSetTargets(old, node *v1.Node) bool {
	return !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareDaemonSet) ||
		apiequality.Semantic.DeepEqual(daemonSetEntries(old), daemonSetEntries(node))
}

// daemonSetEntries returns those of the drain targets of a node that are for pods of
// DaemonSets.
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

// daemonSetTargets returns the drain targets of a node for pods of DaemonSets. What is
// unreadable counts as nothing: the API server validates it.
func daemonSetTargets(node *v1.Node) maintenance.Targets {
	targets, err := maintenance.NewTargets(daemonSetEntries(node))
	if err != nil {
		return maintenance.Targets{}
	}
	return targets
}

// nodeShouldRunDaemonPod is NodeShouldRunDaemonPod for a cluster with node maintenances: a
// node that is closed gets no pod, and keeps the one it has.
func (dsc *DaemonSetsController) nodeShouldRunDaemonPod(logger klog.Logger, node *v1.Node, ds *apps.DaemonSet) (shouldRun, shouldContinueRunning bool) {
	shouldRun, shouldContinueRunning = NodeShouldRunDaemonPod(logger, node, ds)
	return shouldRun && !dsc.isClosed(node, ds), shouldContinueRunning
}

// isClosed reports whether a pod of the DaemonSet would be within the drain targets of the
// node.
func (dsc *DaemonSetsController) isClosed(node *v1.Node, ds *apps.DaemonSet) bool {
	if dsc.priorityClassLister == nil {
		return false
	}
	targets := daemonSetTargets(node)
	if targets.IsEmpty() {
		dsc.admitted.forget(ds, node.Name)
		return false
	}
	if pod := dsc.admitted.of(ds, node.Name); pod != nil && targets.Take(pod) {
		return true
	}
	priority, known := dsc.templatePriority(&ds.Spec.Template)
	if !known {
		// The API server will not have the pod in any case, and its error tells why.
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

// withoutPendingPods splits the pods of a node into those that stay for now, and the names of
// those to delete: where the node is closed, pods that are meant for it and not bound to it.
// The scheduler may bind one at the same moment. The maintenance would delete it then.
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

// isUnbound reports whether a pod is not bound to its node yet, and not deleted either.
func isUnbound(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
}

// isVacated tells whether the node is closed, and has no pod left that stays for now.
func (dsc *DaemonSetsController) isVacated(node *v1.Node, ds *apps.DaemonSet, pods []*v1.Pod) bool {
	stays := func(pod *v1.Pod) bool {
		return pod.DeletionTimestamp == nil && maintenance.IsLeft(pod) && !isUnbound(pod)
	}
	return !slices.ContainsFunc(pods, stays) && dsc.isClosed(node, ds)
}

// isRollingOut tells whether some pod is not up to date. A node that opens may be the one
// that the rolling update has passed over, and nothing else would wake it.
func (dsc *DaemonSetsController) isRollingOut(ds *apps.DaemonSet) bool {
	return dsc.priorityClassLister != nil && ds.Spec.UpdateStrategy.Type == apps.RollingUpdateDaemonSetStrategyType && ds.Status.UpdatedNumberScheduled < ds.Status.DesiredNumberScheduled
}

// templatePriority returns the priority that the API server will give a pod of the
// template, and whether that can be said.
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
	// There may be several, after a race. Admission takes the lowest.
	lowest := slices.MinFunc(classes, func(a, b *schedulingv1.PriorityClass) int { return int(a.Value) - int(b.Value) })
	return lowest.Value, true
}

// changesInterception tells whether a change of a pod can make a difference to whether it
// is within the drain targets of its node, other than a change of the targets.
func changesInterception(old, pod *v1.Pod) bool {
	return old.Spec.NodeName != pod.Spec.NodeName ||
		!maps.Equal(old.Labels, pod.Labels) ||
		maintenance.PodTypeOf(old) != maintenance.PodTypeOf(pod)
}

// maxAdmittedPods bounds what is remembered. It is far more than the pods that a maintenance
// would delete again and again; one that is forgotten is deleted once more.
const maxAdmittedPods = 10000

// admittedPods remembers the pods that were deleted for a maintenance, as they were after
// admission: what a webhook makes of a pod cannot be seen in its template. The memory is lost
// with the process, which then learns it again by one deletion.
type admittedPods struct {
	lock sync.Mutex
	pods *lru.Cache
}

// placeOfPod is where a DaemonSet has at most one pod.
type placeOfPod struct {
	daemonSet types.UID
	node      string
}

// admittedPod is a pod that was made from a generation of the DaemonSet.
type admittedPod struct {
	generation int64
	pod        *v1.Pod
}

// remember keeps what the drain targets of a node look at.
func (a *admittedPods) remember(ds *apps.DaemonSet, pod *v1.Pod) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.pods == nil {
		a.pods = lru.New(maxAdmittedPods)
	}
	a.pods.Add(placeOfPod{ds.UID, pod.Spec.NodeName}, admittedPod{
		generation: ds.Generation,
		pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, OwnerReferences: pod.OwnerReferences},
			Spec:       v1.PodSpec{Priority: pod.Spec.Priority},
		},
	})
}

// of returns the pod that was deleted from the node, or nil. One that may have been made from
// another template does not count: it says nothing of the next one.
func (a *admittedPods) of(ds *apps.DaemonSet, node string) *v1.Pod {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.pods == nil {
		return nil
	}
	value, found := a.pods.Get(placeOfPod{ds.UID, node})
	if !found || value.(admittedPod).generation != ds.Generation {
		return nil
	}
	return value.(admittedPod).pod
}

// forget is called where nothing is drained: at the next maintenance, webhooks may be others.
func (a *admittedPods) forget(ds *apps.DaemonSet, node string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.pods != nil {
		a.pods.Remove(placeOfPod{ds.UID, node})
	}
}
