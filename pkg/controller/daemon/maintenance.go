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
	"maps"
	"slices"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/util/evictioninterceptor"
)

// This file is what the DaemonSet controller knows of node maintenances (KEP-4212), and
// interceptor.go what it does about them.
//
// A node is closed to a DaemonSet while the pod that it would get is within the drain
// targets of the node. Only the end of the maintenance opens it again: targets never step
// back before. While a node is closed:
//
//   - No pod is created there. One that is outside the targets still is, also where it was
//     deleted in mid-drain.
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

// addEvictionInterceptor makes this controller an interceptor of the pods that are
// created from the template, which must be a copy: the template of the DaemonSet, and so
// its hash, stay as they are. Where it cannot be added, the eviction request controller
// still takes it for an interceptor of all pods of DaemonSets.
func addEvictionInterceptor(template *v1.PodTemplateSpec) {
	if utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareDaemonSet) {
		evictioninterceptor.AddTo(template, coordinationv1alpha1.EvictionInterceptorDaemonSet)
	}
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

// isClosed tells whether a pod of the DaemonSet would be within the drain targets of the
// node.
func (dsc *DaemonSetsController) isClosed(node *v1.Node, ds *apps.DaemonSet) bool {
	if dsc.priorityClassLister == nil {
		return false
	}
	targets := daemonSetTargets(node)
	if targets.IsEmpty() {
		return false
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

// isVacated tells whether the node is closed, and has no pod left that stays for now.
func (dsc *DaemonSetsController) isVacated(node *v1.Node, ds *apps.DaemonSet, pods []*v1.Pod) bool {
	stays := func(pod *v1.Pod) bool { return pod.DeletionTimestamp == nil && maintenance.IsLeft(pod) }
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
