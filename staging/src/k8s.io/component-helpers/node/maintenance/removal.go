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
	"slices"

	v1 "k8s.io/api/core/v1"
)

// removalTaints are on nodes that somebody is about to remove: the cluster autoscaler, Karpenter (two releases of
// its API), a cloud provider that ends a machine, or aws-node-termination-handler. Taints that only announce that
// this may happen are not among them: such nodes may stay for long.
var removalTaints = []string{
	"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
	"cloud.google.com/impending-node-termination",
	"aws-node-termination-handler/spot-itn", "aws-node-termination-handler/asg-lifecycle-termination",
}

// IsBeingRemoved reports whether others remove the node: it is not available any more, and a maintenance that
// begins with it would do work that is lost.
func IsBeingRemoved(node *v1.Node) bool {
	return node.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, isRemovalTaint)
}

func isRemovalTaint(taint v1.Taint) bool { return slices.Contains(removalTaints, taint.Key) }

func isOutOfServiceTaint(taint v1.Taint) bool { return taint.Key == v1.TaintNodeOutOfService }

// IsDisrupted reports whether the node does not run its pods, or will not for long: it is not Ready, others remove
// it, or an administrator has said that it is out of service.
func IsDisrupted(node *v1.Node) bool {
	return !IsReady(node) || IsBeingRemoved(node) || slices.ContainsFunc(node.Spec.Taints, isOutOfServiceTaint)
}

// IsAvailable reports whether the node is schedulable and not disrupted.
func IsAvailable(node *v1.Node) bool { return !node.Spec.Unschedulable && !IsDisrupted(node) }

// IsTaken reports whether a maintenance has begun with the node, and has not given it back: also one
// that began before there was a budget, or without the need for one.
func IsTaken(node *v1.Node) bool {
	status := node.Status.MaintenanceStatus
	return status != nil && (len(status.DrainTargets) > 0 || slices.ContainsFunc(status.Admissions, isOpenAdmission))
}

func isOpenAdmission(a v1.MaintenanceAdmission) bool { return a.DoneTime == nil }

// WhyUnavailable returns why budgets count the node as unavailable, for people to read: who has to act first. It is
// empty if the node is available and not taken.
func WhyUnavailable(node *v1.Node) (reasons []string) {
	if node.DeletionTimestamp != nil {
		reasons = append(reasons, "being deleted")
	}
	for _, taint := range node.Spec.Taints {
		if isRemovalTaint(taint) || isOutOfServiceTaint(taint) {
			reasons = append(reasons, "taint "+taint.Key)
		}
	}
	if IsTaken(node) {
		taken := len(reasons)
		for _, a := range Admissions(node) {
			if isOpenAdmission(a) {
				reasons = append(reasons, "in maintenance "+a.MaintenanceName)
			}
		}
		if len(reasons) == taken {
			reasons = append(reasons, "being drained") // Without an admission, as for a shutdown.
		}
	}
	if !IsReady(node) {
		reasons = append(reasons, "not Ready")
	}
	if node.Spec.Unschedulable && !IsTaken(node) { // A maintenance cordons its nodes.
		reasons = append(reasons, "unschedulable")
	}
	return reasons
}
