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
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	maintenancehelpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// rolloutTitle is the title of what the message of the condition Halted would repeat.
const rolloutTitle = "Rollout"

// hasRollout reports whether the nodes of a maintenance are admitted one by one.
func hasRollout(maintenance *coordinationv1alpha1.NodeMaintenance) bool {
	return maintenance.Spec.Rollout != nil || maintenance.Status.RolloutStatus != nil
}

// describeRollout prints the limits of a rollout, what its nodes wait for, and what to type next. For a
// maintenance of which no node has to be admitted, it prints nothing.
func describeRollout(w PrefixWriter, now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance, underWay []admittedNode) {
	if !hasRollout(maintenance) {
		return
	}
	w.Write(LEVEL_0, rolloutTitle+":\n")
	describeRolloutLimits(w, maintenance)
	status := maintenance.Status.RolloutStatus
	if status == nil {
		return
	}
	w.Write(LEVEL_1, "Nodes:\t%d waiting, %d admitted, %d done, %d failed\n", status.WaitingNodes, status.AdmittedNodes, status.DoneNodes, status.FailedNodes)
	var waits []string
	for i := range status.WaitingFor {
		waits = append(waits, formatWait(now, &status.WaitingFor[i]))
	}
	if len(waits) > 0 {
		printTextMultiline(w, LEVEL_1, "Waiting", strings.Join(waits, "\n"))
	}
	if len(status.Failed) > 0 {
		failed := strings.Join(plaintext.Lines(status.Failed), ", ")
		if more := int(status.FailedNodes) - len(status.Failed); more > 0 {
			failed += fmt.Sprintf(" and %d more", more)
		}
		printTextMultiline(w, LEVEL_1, "Failed", failed)
	}
	printUnderWay(w, now, maintenance, underWay)
	printPendingAdmissions(w, LEVEL_1, now, status.PendingAdmissions)
	describeNextSteps(w, maintenance)
}

// describeRolloutLimits prints the spec of a rollout.
func describeRolloutLimits(w PrefixWriter, maintenance *coordinationv1alpha1.NodeMaintenance) {
	rollout := maintenance.Spec.Rollout
	if rollout == nil {
		w.Write(LEVEL_1, "At Once:\tas many as the NodeMaintenanceBudgets allow\n")
		return
	}
	paused := ""
	if rollout.Paused {
		paused = " (paused)"
	}
	limit := "as many as the NodeMaintenanceBudgets allow"
	if rollout.MaxConcurrent != nil {
		limit = formatNodeLimit(rollout.MaxConcurrent, maintenance.Status.SelectedNodes)
	}
	printTextMultiline(w, LEVEL_1, "At Once", limit+paused)
	if rollout.MaxFailedNodes != nil {
		besides := ""
		if acknowledged := len(rollout.AcknowledgedNodeUIDs); acknowledged > 0 {
			besides = fmt.Sprintf(", besides %d acknowledged", acknowledged)
		}
		w.Write(LEVEL_1, "May Fail:\t%d at once%s\n", *rollout.MaxFailedNodes, besides)
	}
	done := "after \"kubectl maintenance complete\""
	if rollout.CompleteNodes == coordinationv1alpha1.NodeCompletionRebooted {
		done = "after a reboot"
	}
	if rollout.ReturnTimeoutSeconds != nil {
		done += ", back within " + duration.HumanDuration(time.Duration(*rollout.ReturnTimeoutSeconds)*time.Second)
	}
	printTextMultiline(w, LEVEL_1, "Node Is Done", done)
	if settle := rollout.Settle; settle != nil {
		printTextMultiline(w, LEVEL_1, "Settles", fmt.Sprintf("when replacements are %s%s", settle.Replacements, atMost(settle.TimeoutSeconds)))
	}
}

// atMost says for how long something is waited for.
func atMost(seconds *int32) string {
	if seconds == nil {
		return ""
	}
	return ", or after " + duration.HumanDuration(time.Duration(*seconds)*time.Second)
}

// formatWait returns what nodes wait for, and until when, if that is known.
func formatWait(now time.Time, wait *coordinationv1alpha1.NodeMaintenanceWait) string {
	formatTime := func(at metav1.Time) string { return timeAndRemainder(now, at) }
	return plaintext.Line(maintenancehelpers.WaitText(wait, formatTime))
}

// step is a hint, with the command to type.
type step struct{ when, command string }

// describeNextSteps prints how an administrator can let a rollout go on. Commands are not wrapped, so
// that they can be copied.
func describeNextSteps(w PrefixWriter, maintenance *coordinationv1alpha1.NodeMaintenance) {
	title := "Next:"
	for _, step := range nextSteps(maintenance) {
		w.Write(LEVEL_1, "%s\t%s\n", title, step.when)
		if step.command != "" {
			w.Write(LEVEL_1, "\t  %s\n", plaintext.Line(step.command))
		}
		title = ""
	}
}

// nextSteps returns what would let the rollout go on. Budgets that are merely used up do that by
// themselves.
func nextSteps(maintenance *coordinationv1alpha1.NodeMaintenance) []step {
	status, rollout := maintenance.Status.RolloutStatus, maintenance.Spec.Rollout
	if maintenance.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain || maintenance.DeletionTimestamp != nil {
		return nil
	}
	var steps []step
	resume := "kubectl maintenance resume " + maintenance.Name
	for _, wait := range status.WaitingFor {
		if maintenancehelpers.IsNeverOpen(&wait) {
			steps = append(steps, step{"to have budgets open together, change their spec.windows:", "kubectl edit nodemaintenancebudget " + wait.Budget})
		}
		switch wait.Reason {
		case coordinationv1alpha1.NodeMaintenanceWaitPaused:
			steps = append(steps, step{"to begin with further nodes:", resume})
		case coordinationv1alpha1.NodeMaintenanceWaitHalted:
			steps = append(steps, step{"repair the failed nodes, or go on without them:", resume})
		case coordinationv1alpha1.NodeMaintenanceWaitFrozen:
			steps = append(steps, step{"to end the freeze, raise spec.maxUnavailable:", "kubectl edit nodemaintenancebudget " + wait.Budget})
		case coordinationv1alpha1.NodeMaintenanceWaitDisabled:
			steps = append(steps, step{"turn the feature gate on in kube-controller-manager", ""})
		}
	}
	if rollout != nil && rollout.CompleteNodes == coordinationv1alpha1.NodeCompletionManual && status.AdmittedNodes > 0 {
		steps = append(steps, step{"when the work on drained nodes is done:", "kubectl maintenance complete " + maintenance.Name + " NODE..."})
	}
	return steps
}

// printAdmissions prints how far the maintenances of a node are that had to be admitted.
func printAdmissions(w PrefixWriter, now time.Time, admissions []corev1.MaintenanceAdmission) {
	var texts []string
	for i := range admissions {
		texts = append(texts, plaintext.Line(fmt.Sprintf("%s: %s", admissions[i].MaintenanceName, formatAdmission(now, &admissions[i]))))
	}
	if len(texts) > 0 {
		printTextMultiline(w, LEVEL_1, "Admissions", strings.Join(texts, "\n"))
	}
}

// formatAdmission returns the last thing that has happened.
func formatAdmission(now time.Time, admission *corev1.MaintenanceAdmission) string {
	switch {
	case admission.DoneTime != nil:
		return fmt.Sprintf("given back %s ago", elapsed(now, *admission.DoneTime))
	case admission.FailedTime != nil:
		return fmt.Sprintf("has not come back in time, late by %s", elapsed(now, *admission.FailedTime))
	case admission.ReturningTime != nil:
		return fmt.Sprintf("done %s ago, not healthy yet", elapsed(now, *admission.ReturningTime))
	case admission.DrainedTime != nil:
		return fmt.Sprintf("drained %s ago", elapsed(now, *admission.DrainedTime))
	}
	return fmt.Sprintf("admitted %s ago%s", elapsed(now, admission.AdmittedTime), formatEscalation(now, admission))
}

// formatEscalation returns what the escalation has come to on a node that is drained; empty if to
// nothing.
func formatEscalation(now time.Time, admission *corev1.MaintenanceAdmission) string {
	text := ""
	if admission.Escalation != "" {
		text = fmt.Sprintf(", %s", admission.Escalation)
		if admission.EscalationTime != nil {
			text += fmt.Sprintf(" for %s", elapsed(now, *admission.EscalationTime))
		}
	}
	if admission.WaitingTime != nil {
		text += fmt.Sprintf(", waits for other maintenances for %s", elapsed(now, *admission.WaitingTime))
	}
	return text
}
