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
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
)

const (
	// maxBlockers is how many blockers a status lists. The API limits them.
	maxBlockers = 20

	// maxBlockerText bounds the name and the message of a blocker. The API limits them.
	maxBlockerText = 1024
)

// ListedBlockers returns the groups as the status of a maintenance lists them, in the same order, and
// the number of all groups. If there are too many, each cause keeps at least its first group: a
// frequent cause must not hide a rare one.
func ListedBlockers(groups []BlockerGroup) (blockers []coordinationv1alpha1.DrainBlocker, total int32) {
	listed := make([]bool, len(groups))
	room := maxBlockers
	seen := map[BlockerCause]bool{}
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

func (g *BlockerGroup) blocker() coordinationv1alpha1.DrainBlocker {
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
