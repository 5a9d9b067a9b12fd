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

package maintenance

import (
	"cmp"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// What pods wait for is found in the pods and their requests, where that is possible:
// these are newer than the status of the maintenance. Some blockers only the controller
// knows, because nothing was stored: what the API server has refused.

// isPublishedOnly reports whether a blocker is known to the controller alone. Causes that
// this kubectl does not know are taken from it too.
func isPublishedOnly(cause coordinationv1alpha1.DrainBlockerCause) bool {
	switch known := maintenance.HoldCause(cause); {
	case known.OfNode(), known == maintenance.HoldRequestFailed:
		return true
	}
	return !slices.Contains(maintenance.HoldCauses(), maintenance.HoldCause(cause))
}

// addPublished adds the blockers that only the controller knows, and what it says of pods
// that nothing handles, such as that a feature gate is off.
func (v *view) addPublished(nm *coordinationv1alpha1.NodeMaintenance, s *snapshot) {
	if !publishesBlockers(nm) {
		return
	}
	drain := &nm.Status.DrainStatus
	for i := range drain.Blockers {
		published := &drain.Blockers[i]
		if isPublishedOnly(published.Cause) {
			v.Blockers = append(v.Blockers, publishedView(published))
			v.markNodes(published, s)
			// The count of the controller has them already.
			if published.Cause == coordinationv1alpha1.DrainBlockerRequestFailed && v.NodesNotRead == 0 && s.countsPods() && s.readable("nodes") {
				v.PodsBlocked += int(published.PodCount)
			}
			continue
		}
		for j := range v.Blockers {
			if b := &v.Blockers[j]; b.key() == blockerKey(maintenance.HoldCause(published.Cause), published.Name) && unhandledText(b) != "" {
				b.Says = plaintext.Line(published.Message)
			}
		}
	}
	slices.SortStableFunc(v.Blockers, func(a, b blockerView) int {
		return cmp.Or(cmp.Compare(blockedRank(&a), blockedRank(&b)), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Name, b.Name))
	})
}

// publishesBlockers reports whether the blockers in the status are those of the stage: a cordon
// that is refused and a drain have some, and a completion that is kept from its end. Before the
// controller has seen that stage, they are of the one that is over.
func publishesBlockers(nm *coordinationv1alpha1.NodeMaintenance) bool {
	switch nm.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageCordon, coordinationv1alpha1.NodeMaintenanceStageDrain:
		return true
	case coordinationv1alpha1.NodeMaintenanceStageComplete:
		return nm.Status.ObservedGeneration == nm.Generation
	}
	return false
}

// markNodes notes the nodes that a blocker names, or whose pods it names.
func (v *view) markNodes(published *coordinationv1alpha1.DrainBlocker, s *snapshot) {
	for i := range v.Nodes {
		node := &v.Nodes[i]
		named := published.Object != nil && published.Object.Kind == "Node" && published.Object.Name == node.Name
		node.stuck = node.stuck || named || slices.ContainsFunc(s.pods[node.Name], func(pod *corev1.Pod) bool {
			return slices.Contains(published.Pods, coordinationv1alpha1.DrainBlockerPod{Namespace: pod.Namespace, Name: pod.Name})
		})
	}
}

func blockedRank(b *blockerView) int {
	if b.Blocked {
		return 0
	}
	return 1
}

func publishedView(published *coordinationv1alpha1.DrainBlocker) blockerView {
	cause := maintenance.HoldCause(published.Cause)
	b := blockerView{
		Cause: cause, Name: published.Name, Blocked: cause.Blocked(), Pods: int(published.PodCount), Nodes: int(published.NodeCount),
		First: []string{}, Since: published.SinceTime, ETA: published.ExpectedFinishTime, Says: plaintext.Line(published.Message),
	}
	for _, pod := range published.Pods {
		b.First = append(b.First, pod.Namespace+"/"+pod.Name)
	}
	if object := published.Object; object != nil {
		b.Object = object.Kind + " " + object.Name
	}
	return b
}

// heldNames names the first of what is held: pods or, where there are none, nodes.
func heldNames(b *blockerView, n int) string {
	switch {
	case len(b.First) > 0:
		return firstPods(b, n)
	case b.Object != "":
		return listPods([]string{b.Object}, b.Nodes)
	}
	return ""
}
