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
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
)

const (
	// maxBlockers is how many blockers a status lists. The API limits them.
	maxBlockers = 20

	// maxBlockerText bounds the name and the message of a blocker. The API limits them.
	maxBlockerText = 1024
)

// Blockers returns the groups as the status of a maintenance lists them, in the same order, and
// the number of all groups. If there are too many, each cause keeps at least its first group: a
// frequent cause must not hide a rare one.
func Blockers(groups []HoldGroup) (blockers []coordinationv1alpha1.DrainBlocker, total int32) {
	listed := make([]bool, len(groups))
	room := maxBlockers
	seen := map[HoldCause]bool{}
	for i := range groups {
		if !seen[groups[i].Cause] && room > 0 {
			seen[groups[i].Cause], listed[i] = true, true
			room--
		}
	}
	for i := range groups {
		if !listed[i] && room > 0 {
			listed[i] = true
			room--
		}
	}
	for i := range groups {
		if listed[i] {
			blockers = append(blockers, groups[i].blocker())
		}
	}
	return blockers, int32(len(groups))
}

func (g *HoldGroup) blocker() coordinationv1alpha1.DrainBlocker {
	blocker := coordinationv1alpha1.DrainBlocker{
		Cause:     coordinationv1alpha1.DrainBlockerCause(g.Cause),
		Name:      Printable(g.Name, maxBlockerText),
		Object:    g.object(),
		PodCount:  int32(g.Pods),
		NodeCount: int32(g.Nodes),
		Message:   Printable(g.message(), maxBlockerText),
		SinceTime: g.Since.DeepCopy(), ExpectedFinishTime: g.ETA.DeepCopy(),
	}
	if g.Cause.OfNode() {
		return blocker
	}
	for _, pod := range g.First {
		blocker.Pods = append(blocker.Pods, coordinationv1alpha1.DrainBlockerPod{Namespace: pod.Namespace, Name: pod.Name})
	}
	return blocker
}

// object returns the object that an administrator has to inspect; nil if it is not a single one.
func (g *HoldGroup) object() *coordinationv1alpha1.DrainBlockerObject {
	switch g.Cause {
	case HoldDisruptionBudget:
		// The names of several budgets are joined by separators.
		namespace, name, found := strings.Cut(g.Name, "/")
		if found && !strings.Contains(g.Name, nameSeparator) {
			return &coordinationv1alpha1.DrainBlockerObject{APIGroup: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: namespace, Name: name}
		}
	case HoldKeptByMaintenance:
		if !strings.Contains(g.Name, nameSeparator) {
			return &coordinationv1alpha1.DrainBlockerObject{APIGroup: coordinationv1alpha1.GroupName, Kind: "NodeMaintenance", Name: g.Name}
		}
	case HoldRequestFailed:
		return &coordinationv1alpha1.DrainBlockerObject{Kind: "Namespace", Name: g.Name}
	case HoldCordonFailed, HoldNodeStatusFailed, HoldVolumesAttached:
		return &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: g.First[0].Name}
	}
	return nil
}
