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

package progress

import (
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

// Verdict is what the maintenances that drain a node do with one of its pods.
type Verdict struct {
	// Action is that of the most cautious policy: a pod that is evicted for one maintenance is gone for all.
	Action coordinationv1alpha1.NodeMaintenancePodAction
	// KeptBy names the maintenances that skip the pod, by rank, and Wanted is whether another one does not:
	// then it is left for that one.
	KeptBy []string
	Wanted bool
	// Unstopped is why nobody would stop the pod, which all maintenances keep then; empty if somebody does.
	Unstopped string
}

// Pod is a pod that is left on its node, and what happens to it.
type Pod struct {
	*v1.Pod
	Verdict
}

// IsKeptBy reports whether the maintenance skips the pod.
func (v *Verdict) IsKeptBy(maintenance string) bool { return slices.Contains(v.KeptBy, maintenance) }

// IsKeptByNeighbors reports whether the pod stays although it is to leave for a maintenance.
func (v *Verdict) IsKeptByNeighbors() bool { return v.Wanted && len(v.KeptBy) > 0 }

// Unstopped is why a pod stays that only its own controller could stop.
type Unstopped struct {
	// PodType says whose pod it is, and Why what is off there.
	PodType v1.PodType
	Why     string
}

// UnstoppedPods counts the pods of several nodes that nobody stops.
type UnstoppedPods map[Unstopped]*UnstoppedGroup

// UnstoppedGroup are pods that stay for the same reason.
type UnstoppedGroup struct {
	// Pods counts them, and Nodes names their nodes.
	Pods  int
	Nodes []string
}

// add adds the pods of a node.
func (u UnstoppedPods) add(node string, pods map[Unstopped]int) {
	for key, count := range pods {
		if u[key] == nil {
			u[key] = &UnstoppedGroup{}
		}
		u[key].Pods += count
		u[key].Nodes = append(u[key].Nodes, node)
	}
}

// Count returns how many pods there are.
func (u UnstoppedPods) Count() int {
	total := 0
	for _, group := range u {
		total += group.Pods
	}
	return total
}
