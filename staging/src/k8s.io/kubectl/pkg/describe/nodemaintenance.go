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

package describe

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	maintenancehelpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// maxDescribedValues bounds the values of a requirement that are printed: a node selector may name
// every node of a cluster.
const maxDescribedValues = 10

// NodeMaintenanceDescriber describes the progress and the blockers of a NodeMaintenance.
type NodeMaintenanceDescriber struct {
	client clientset.Interface
}

// Describe describes one NodeMaintenance: first its spec, then its progress.
func (d *NodeMaintenanceDescriber) Describe(_, name string, settings DescriberSettings) (string, error) {
	maintenance, err := d.client.CoordinationV1alpha1().NodeMaintenances().Get(context.TODO(), name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var events *corev1.EventList
	if settings.ShowEvents {
		// As for every other kind, the object is shown without events if the user may not list
		// them.
		events, _ = searchEvents(d.client.CoreV1(), maintenance, settings.ChunkSize)
	}
	return describeNodeMaintenance(time.Now(), maintenance, nodesUnderWay(d.client, maintenance), events)
}

func describeNodeMaintenance(now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance, underWay []admittedNode, events *corev1.EventList) (string, error) {
	return tabbedString(func(out io.Writer) error {
		w := newPlainWriter(out)
		describeNodeMaintenanceSpec(w, now, maintenance)
		describeRollout(w, now, maintenance, underWay)
		describeNodeMaintenanceProgress(w, now, maintenance)
		describeMetaConditions(w, now, conditionsBelow(maintenance))
		describePlainEvents(events, w)
		return nil
	})
}

// describeNodeMaintenanceSpec prints which nodes are selected, the stage and the drain plan.
func describeNodeMaintenanceSpec(w PrefixWriter, now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance) {
	w.Write(LEVEL_0, "Name:\t%s\n", plaintext.Line(maintenance.Name))
	printLabelsMultiline(w, "Labels", plainLabels(maintenance.Labels))
	printAnnotationsMultiline(w, "Annotations", maintenance.Annotations)
	w.Write(LEVEL_0, "Created:\t%s\n", timeAndAge(now, maintenance.CreationTimestamp))
	if maintenance.DeletionTimestamp != nil {
		w.Write(LEVEL_0, "Deleted:\t%s, releasing nodes\n", timeAndAge(now, *maintenance.DeletionTimestamp))
	}
	reason := maintenance.Spec.Reason
	if reason == "" {
		reason = "<none>"
	}
	printTextMultiline(w, LEVEL_0, "Reason", reason)
	printTextMultiline(w, LEVEL_0, "Node Selector", formatNodeSelector(maintenance.Spec.NodeSelector))
	describeStages(w, now, maintenance)
	if len(maintenance.Spec.DrainPlan) == 0 {
		w.Write(LEVEL_0, "Drain Plan:\t<none>\n")
	} else {
		w.Write(LEVEL_0, "Drain Plan:\n")
		printDrainEntries(w, "", maintenance.Spec.DrainPlan)
	}
	describePodPolicies(w, &maintenance.Spec)
	describeEscalation(w, maintenance.Spec.Escalation)
}

func describeStages(w PrefixWriter, now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance) {
	stage := maintenance.Spec.Stage
	notice := ""
	if stage != coordinationv1alpha1.NodeMaintenanceStageIdle && !hasStarted(maintenance, stage) {
		notice = " (not started yet)"
	}
	w.Write(LEVEL_0, "Stage:\t%s%s\n", plaintext.Line(string(stage)), notice)
	if len(maintenance.Status.StageStatuses) == 0 {
		return
	}
	w.Write(LEVEL_0, "Started:\n")
	for _, status := range maintenance.Status.StageStatuses {
		started := "<unknown>"
		if status.StartTimestamp != nil {
			started = timeAndAge(now, *status.StartTimestamp)
		}
		w.Write(LEVEL_1, "%s:\t%s\n", plaintext.Line(string(status.Name)), started)
	}
}

func hasStarted(maintenance *coordinationv1alpha1.NodeMaintenance, stage coordinationv1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(maintenance.Status.StageStatuses, func(status coordinationv1alpha1.StageStatus) bool { return status.Name == stage })
}

// describeNodeMaintenanceProgress prints the counters and the blockers.
func describeNodeMaintenanceProgress(w PrefixWriter, now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance) {
	drain := maintenance.Status.DrainStatus
	if maintenance.Status.ObservedGeneration == 0 && maintenance.Status.SelectedNodes == 0 {
		w.Write(LEVEL_0, "Nodes:\tnot counted yet\n")
	} else if !hasStarted(maintenance, coordinationv1alpha1.NodeMaintenanceStageDrain) {
		w.Write(LEVEL_0, "Nodes:\t%d selected\n", maintenance.Status.SelectedNodes)
	} else {
		if drain.DrainPlanPosition != nil {
			printTextMultiline(w, LEVEL_0, "Plan Entry", formatPosition(maintenance.Spec.DrainPlan, int(*drain.DrainPlanPosition)))
		}
		if len(drain.ReachedDrainTargets) > 0 {
			w.Write(LEVEL_0, "Reached On All Nodes:\n")
			printDrainEntries(w, "", drain.ReachedDrainTargets)
		}
		w.Write(LEVEL_0, "Nodes:\t%d/%d drained\n", drain.DrainedNodes, maintenance.Status.SelectedNodes)
		w.Write(LEVEL_0, "Pods:\t%s, %d blocked%s%s\n", formatPodCounts(drain.PodsPendingEvictionRequest, drain.ActiveEvictionRequests), drain.BlockedPods, formatSkipped(drain.SkippedPods), formatEscalated(drain.EscalatedPods))
		if drain.DrainMessage != "" {
			printTextMultiline(w, LEVEL_0, "Message", drain.DrainMessage)
		}
	}
	switch blockers := describedBlockers(now, maintenance); {
	case len(blockers) > 0:
		printTextMultiline(w, LEVEL_0, blockersTitle, strings.Join(blockers, "\n"))
	case saysWhyNot(drainedCondition(maintenance.Status.Conditions)):
		printTextMultiline(w, LEVEL_0, notDrainedTitle, drainedCondition(maintenance.Status.Conditions).Message)
	}
}

// Titles of what the message of the condition Drained would repeat.
const (
	blockersTitle   = "Blockers"
	notDrainedTitle = "Not Drained"
)

// describedBlockers returns the blockers of the stage: after a move to another stage, none until
// the controller has observed it.
func describedBlockers(now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance) []string {
	if maintenance.Status.ObservedGeneration != maintenance.Generation {
		return nil
	}
	drain := &maintenance.Status.DrainStatus
	var texts []string
	for i := range drain.Blockers {
		texts = append(texts, formatBlocker(now, &drain.Blockers[i]))
	}
	// The status lists a limited number of them.
	if more := int(drain.BlockerCount) - len(texts); more > 0 && len(texts) > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return texts
}

// formatBlocker returns the message of a blocker with its times and the first of its pods or nodes.
// "!" marks one that needs an intervention.
func formatBlocker(now time.Time, blocker *coordinationv1alpha1.DrainBlocker) string {
	text := plaintext.Line(blocker.Message)
	if maintenancehelpers.BlockerCause(blocker.Cause).Blocked() {
		text = "! " + text
	}
	var times []string
	if blocker.SinceTime != nil {
		times = append(times, "for "+elapsed(now, *blocker.SinceTime))
	}
	if blocker.ExpectedFinishTime != nil {
		times = append(times, "ETA "+timeAndRemainder(now, *blocker.ExpectedFinishTime))
	}
	if len(times) > 0 {
		text += " (" + strings.Join(times, ", ") + ")"
	}
	var names []string
	total := int(blocker.PodCount)
	for _, pod := range blocker.Pods {
		names = append(names, plaintext.Line(pod.Namespace+"/"+pod.Name))
	}
	if object := blocker.Object; total == 0 && object != nil && object.Kind == "Node" {
		total, names = int(blocker.NodeCount), []string{plaintext.Line(object.Name)}
	}
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	if more := total - len(names); more > 0 && len(names) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func drainedCondition(conditions []metav1.Condition) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// saysWhyNot reports whether the condition has a message that is too long for a table: it names
// blockers.
func saysWhyNot(condition *metav1.Condition) bool {
	return condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
}

// conditionsBelow returns the conditions for the table, without the messages that are printed above
// it.
func conditionsBelow(maintenance *coordinationv1alpha1.NodeMaintenance) []metav1.Condition {
	conditions := slices.Clone(maintenance.Status.Conditions)
	if condition := drainedCondition(conditions); saysWhyNot(condition) {
		title := notDrainedTitle
		if len(describedBlockers(time.Time{}, maintenance)) > 0 {
			title = blockersTitle
		}
		condition.Message = fmt.Sprintf("See %q.", title)
	}
	halted := meta.FindStatusCondition(conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted))
	if halted != nil && halted.Status == metav1.ConditionTrue && hasRollout(maintenance) {
		halted.Message = fmt.Sprintf("See %q.", rolloutTitle)
	}
	switch stalled := meta.FindStatusCondition(conditions, string(coordinationv1alpha1.NodeMaintenanceConditionStalled)); {
	case stalled == nil || stalled.Status != metav1.ConditionTrue:
	case stalled.Reason == coordinationv1alpha1.NodeMaintenanceReasonFailedNodes && hasRollout(maintenance):
		stalled.Message = fmt.Sprintf("See %q.", rolloutTitle)
	case len(describedBlockers(time.Time{}, maintenance)) > 0:
		stalled.Message = fmt.Sprintf("See %q.", blockersTitle)
	}
	return conditions
}

// formatPodCounts uses the words of the columns of "kubectl get nodemaintenances".
func formatPodCounts(pending, active int32) string {
	return fmt.Sprintf("%d pending, %d evicting", pending, active)
}

// formatPosition returns which entry of the plan is executed.
func formatPosition(plan []corev1.DrainPlanEntry, position int) string {
	if position >= len(plan) {
		return fmt.Sprintf("all %d done", len(plan))
	}
	entry := plan[position]
	return fmt.Sprintf("%d of %d: %s up to %s", position+1, len(plan), entry.PodType, formatPriority(entry))
}

// printDrainEntries prints a line for each pod type, with the priorities in order.
func printDrainEntries(w PrefixWriter, titleSuffix string, entries []corev1.DrainPlanEntry) {
	var podTypes []corev1.PodType
	priorities := map[corev1.PodType][]string{}
	for _, entry := range entries {
		if !slices.Contains(podTypes, entry.PodType) {
			podTypes = append(podTypes, entry.PodType)
		}
		priorities[entry.PodType] = append(priorities[entry.PodType], formatPriority(entry))
	}
	for _, podType := range podTypes {
		printTextMultiline(w, LEVEL_1, plaintext.Line(string(podType))+titleSuffix, "up to "+strings.Join(priorities[podType], ", "))
	}
}

func formatPriority(entry corev1.DrainPlanEntry) string {
	if entry.PodSelector == nil {
		return fmt.Sprint(entry.PodPriority)
	}
	return fmt.Sprintf("%d (%s)", entry.PodPriority, metav1.FormatLabelSelector(entry.PodSelector))
}

// formatNodeSelector returns a line for each term: any of them selects a node. Terms that only name
// a node share a line.
func formatNodeSelector(selector *corev1.NodeSelector) string {
	if selector == nil || len(selector.NodeSelectorTerms) == 0 {
		return "<none>"
	}
	var named corev1.NodeSelectorRequirement
	var terms []string
	for _, term := range selector.NodeSelectorTerms {
		if name, ok := onlyName(term); ok {
			named.Key, named.Operator = name.Key, name.Operator
			named.Values = append(named.Values, name.Values...)
			continue
		}
		terms = append(terms, formatNodeSelectorTerm(term))
	}
	if len(named.Values) > 0 {
		terms = slices.Insert(terms, 0, formatRequirement(named))
	}
	return strings.Join(terms, "\nor ")
}

func onlyName(term corev1.NodeSelectorTerm) (corev1.NodeSelectorRequirement, bool) {
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 || term.MatchFields[0].Operator != corev1.NodeSelectorOpIn {
		return corev1.NodeSelectorRequirement{}, false
	}
	return term.MatchFields[0], term.MatchFields[0].Key == metav1.ObjectNameField
}

func formatNodeSelectorTerm(term corev1.NodeSelectorTerm) string {
	var requirements []string
	for _, requirement := range slices.Concat(term.MatchExpressions, term.MatchFields) {
		requirements = append(requirements, formatRequirement(requirement))
	}
	if len(requirements) == 0 {
		return "<nothing>"
	}
	return strings.Join(requirements, " and ")
}

func formatRequirement(requirement corev1.NodeSelectorRequirement) string {
	text := requirement.Key + " " + strings.ToLower(string(requirement.Operator))
	values := requirement.Values
	if len(values) == 0 {
		return text
	}
	more := ""
	if len(values) > maxDescribedValues {
		more = fmt.Sprintf(" and %d more", len(values)-maxDescribedValues)
		values = values[:maxDescribedValues]
	}
	return fmt.Sprintf("%s [%s%s]", text, strings.Join(values, ", "), more)
}

// printMaintenanceStatus prints the progress of the drain of a node. For a node without
// maintenances, it prints nothing: the output is that of upstream.
func printMaintenanceStatus(w PrefixWriter, leases *LeaseDescriber, node *corev1.Node) {
	status := node.Status.MaintenanceStatus
	if status == nil {
		return
	}
	now := time.Now()
	w.Write(LEVEL_0, "Maintenance:\n")
	printAdmissions(w, now, status.Admissions)
	switch {
	case status.Unclaimed && !slices.ContainsFunc(status.Admissions, func(a corev1.MaintenanceAdmission) bool { return a.DoneTime == nil }):
		w.Write(LEVEL_1, "Drain:\tover\n")
		return
	case len(status.DrainTargets) == 0 && status.DrainMessage == "":
		w.Write(LEVEL_1, "Drain:\tnot started\n")
		return
	}
	if status.DrainMessage != "" {
		printTextMultiline(w, LEVEL_1, "Drain", status.DrainMessage)
	}
	w.Write(LEVEL_1, "Pods:\t%s, %d blocked\n", formatPodCounts(status.PodsPendingEvictionRequest, status.ActiveEvictionRequests), status.BlockedPods)
	if status.EmptiedTime != nil && leases != nil {
		printTextMultiline(w, LEVEL_1, "Volumes", fmt.Sprintf("the last pod left %s ago, attached: %s", elapsed(now, *status.EmptiedTime), attachedVolumes(leases.client, node.Name)))
	}
	printDrainEntries(w, " Targets", status.DrainTargets)
}
