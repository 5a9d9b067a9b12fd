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

// Package schedulerverdict reads why kube-scheduler finds no node for a pod: whether it is something that cannot end while a
// node is drained.
package schedulerverdict

import (
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// What kube-scheduler says of nodes that a pod cannot run on. It has no other form than the message of the condition
// PodScheduled, and does not name the pods that are in the way.
const (
	reasonCordoned    = "node(s) were unschedulable"
	reasonTainted     = "node(s) had untolerated taint"
	reasonAffinity    = "node(s) didn't match Pod's node affinity/selector"
	reasonOncePod     = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	reasonVolumeNodes = "node(s) didn't match PersistentVolume's node affinity"
	// reasonVolumeConflict is what schedulers before 1.34 say instead of reasonVolumeNodes.
	reasonVolumeConflict = "node(s) had volume node affinity conflict"
	// These are what it says of all other nodes if a plugin, which is named in brackets, knows which ones may do.
	reasonNoVolumePlugin   = "node(s) didn't satisfy plugin(s) [VolumeBinding]"
	reasonNoAffinityPlugin = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
	reasonSpread           = "node(s) didn't match pod topology spread constraints"
)

var (
	// neutralReasons are those of nodes that are not for the pod, whatever runs on them, such as those that are drained.
	neutralReasons = []string{reasonCordoned, reasonTainted, reasonAffinity, reasonNoAffinityPlugin}
	// volumeReasons do not end while the pod runs: its claim is in use, or its volume is on the node that is drained.
	volumeReasons = []string{reasonOncePod, reasonVolumeNodes, reasonVolumeConflict, reasonNoVolumePlugin}

	// reasonOfNodes is one reason, with the number of nodes.
	reasonOfNodes = regexp.MustCompile(`^\d+ (.+)$`)
)

// schedulerReasons returns what kube-scheduler says of the nodes, or nothing if it says something else.
func schedulerReasons(pod *v1.Pod) []string {
	_, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	if scheduled == nil || scheduled.Status != v1.ConditionFalse || scheduled.Reason != v1.PodReasonUnschedulable {
		return nil
	}
	_, text, found := strings.Cut(scheduled.Message, " nodes are available: ")
	if !found {
		return nil
	}
	text, _, _ = strings.Cut(text, ". ") // What follows is about preemption.
	var reasons []string
	for _, part := range strings.Split(strings.TrimSuffix(text, "."), ", ") {
		match := reasonOfNodes.FindStringSubmatch(part)
		if match == nil {
			return nil
		}
		reasons = append(reasons, match[1])
	}
	return reasons
}

// Verdict is what kube-scheduler says of a pod, if it names nothing that may end by itself, such as a lack of resources.
// Otherwise, it is the zero Verdict.
type Verdict struct {
	// Nodes is true if nodes are not for the pod, Volumes if its volumes keep it from nodes, and Spread if its
	// topologySpreadConstraints do.
	Nodes, Volumes, Spread bool
}

// Of returns the verdict on a pod.
func Of(pod *v1.Pod) Verdict {
	var verdict Verdict
	for _, reason := range schedulerReasons(pod) {
		begins := func(known string) bool { return strings.HasPrefix(reason, known) }
		switch {
		case slices.ContainsFunc(neutralReasons, begins):
			verdict.Nodes = true
		case slices.ContainsFunc(volumeReasons, begins):
			verdict.Volumes = true
		case begins(reasonSpread):
			verdict.Spread = true
		default:
			return Verdict{}
		}
	}
	return verdict
}
