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

package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/utils/ptr"
)

const (
	// maxFailedShown and maxWaitsShown limit the lists in the status, as the API does.
	maxFailedShown = 10
	maxWaitsShown  = 10
)

// setRollout computes how far the nodes of a drain are. A maintenance without a rollout, of which no
// node has waited, has no such status.
func setRollout(status *coordinationv1alpha1.NodeMaintenanceStatus, m *coordinationv1alpha1.NodeMaintenance, sums *progress.Summary, now time.Time) {
	if m.Spec.Rollout == nil && status.RolloutStatus == nil && sums.Waiting+sums.Done == 0 {
		return
	}
	rollout := ptr.Deref(status.RolloutStatus, coordinationv1alpha1.NodeMaintenanceRolloutStatus{})
	rollout.WaitingNodes, rollout.DoneNodes, rollout.SkippedNodes = int32(sums.Waiting), int32(sums.Done), int32(sums.SkippedNodes)
	rollout.AdmittedNodes = int32(sums.Nodes - sums.Waiting - sums.Done)
	rollout.FailedNodes, rollout.Failed = int32(len(sums.Failed)), slices.Sorted(maps.Keys(sums.Failed))
	rollout.Failed = rollout.Failed[:min(len(rollout.Failed), maxFailedShown)]
	rollout.WaitingFor = waitingFor(sums)
	status.RolloutStatus = &rollout
	if m.Spec.Rollout == nil {
		return
	}
	condition := haltedCondition(m.Spec.Rollout, sums.Failed)
	condition.ObservedGeneration, condition.LastTransitionTime = m.Generation, metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
}

// waitingFor lists what nodes wait for, most nodes first.
func waitingFor(sums *progress.Summary) []coordinationv1alpha1.NodeMaintenanceWait {
	if sums.Waiting == 0 {
		return nil // What is known may be older.
	}
	var waits []coordinationv1alpha1.NodeMaintenanceWait
	for wait, nodes := range sums.Waits {
		waits = append(waits, progress.ListedWait(wait, nodes))
	}
	sortWaits(waits)
	return waits[:min(len(waits), maxWaitsShown)]
}

// sortWaits sorts by the number of nodes, most first.
func sortWaits(waits []coordinationv1alpha1.NodeMaintenanceWait) {
	slices.SortFunc(waits, func(a, b coordinationv1alpha1.NodeMaintenanceWait) int {
		return cmp.Or(cmp.Compare(b.NodeCount, a.NodeCount), strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Budget, b.Budget))
	})
}

// haltedCondition returns the condition Halted.
func haltedCondition(limits *coordinationv1alpha1.NodeMaintenanceRollout, failed map[string]types.UID) metav1.Condition {
	condition := metav1.Condition{
		Type: string(coordinationv1alpha1.NodeMaintenanceConditionHalted), Status: metav1.ConditionFalse,
		Reason: coordinationv1alpha1.NodeMaintenanceReasonNotHalted,
	}
	var unknown, acknowledged []string
	for node, uid := range failed {
		if slices.Contains(limits.AcknowledgedNodeUIDs, uid) {
			acknowledged = append(acknowledged, node)
		} else {
			unknown = append(unknown, node)
		}
	}
	var sentences []string
	if len(unknown) > 0 {
		sentences = append(sentences, fmt.Sprintf("%s did not come back in time: %s.", Count(len(unknown), "node"), JoinNames(unknown)))
	}
	if len(acknowledged) > 0 {
		sentences = append(sentences, fmt.Sprintf("%s acknowledged: %s.", Count(len(acknowledged), "failed node"), JoinNames(acknowledged)))
	}
	condition.Message = strings.Join(sentences, " ")
	if !rollout.IsHalted(limits, sets.New(slices.Collect(maps.Values(failed))...)) {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, coordinationv1alpha1.NodeMaintenanceReasonFailedNodes
	condition.Message += fmt.Sprintf(" spec.rollout.maxFailedNodes is %d: no further node is drained until they are back or acknowledged, or the number is raised.", ptr.Deref(limits.MaxFailedNodes, 0))
	return condition
}

// waitSentence says what nodes wait for; empty if none waits.
func waitSentence(sums *progress.Summary) string {
	if sums.Waiting == 0 {
		return ""
	}
	sentences := []string{fmt.Sprintf("%d of %s waiting.", sums.Waiting, Count(sums.Nodes, "node"))}
	for _, wait := range waitingFor(sums) {
		sentences = append(sentences, maintenance.WaitSentence(&wait))
	}
	return strings.Join(sentences, " ")
}
