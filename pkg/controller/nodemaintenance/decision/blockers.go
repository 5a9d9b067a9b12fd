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

package decision

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// addNodeBlockers adds the failed writes to the node itself.
func (d *Decision) addNodeBlockers() {
	d.View.CordonRefused = d.isCordonRefused() || d.reclaimWait() > 0
	mustUncordon, key := d.mustUncordon(), write.Cordon.Of(d.Node.UID)
	if mustUncordon {
		key.Kind = write.Uncordon
	}
	if failed := d.Failures[key]; failed.Blocks() && (d.View.CordonRefused || mustUncordon) {
		d.View.CordonBlocker = ptr.To(maintenance.FailedCordon(d.Node.Name, failed.Message, failed.Since))
	}
	// The status is not written before the node is schedulable.
	if failed := d.Failures[write.Status.Of(d.Node.UID)]; failed.Blocks() && !mustUncordon {
		d.View.StatusBlocker = ptr.To(maintenance.FailedNodeStatus(d.Node.Name, failed.Message, failed.Since))
	}
}

// addContests adds what other clients keep undoing on the node: as long as they do, the maintenance does not end.
func (d *Decision) addContests() {
	view, name := d.View, d.Node.Name
	if undone, is := d.Reverts.Contested(pace.RevertedCordon, !d.Node.Spec.Unschedulable); is && view.Claimed() && view.CordonBlocker == nil {
		d.recheck(max(undone.Over.Sub(d.Now), pace.RevertSlack))
		view.CordonBlocker = ptr.To(maintenance.FailedCordon(name, cordonContested, undone.Since))
	}
	if wait := d.reclaimWait(); wait > 0 && view.CordonBlocker == nil {
		undone, _ := d.Reverts.Contested(pace.RevertedSelection, true)
		view.CordonBlocker = ptr.To(maintenance.FailedCordon(name, selectionContested, undone.Since))
	}
	if undone, is := d.Reverts.Contested(pace.RevertedStatus, false); is && view.StatusBlocker == nil {
		d.recheck(undone.Over.Sub(d.Now))
		view.StatusBlocker = ptr.To(maintenance.FailedNodeStatus(name, statusContested, undone.Since))
	}
	if undone, is := d.Reverts.Contested(pace.RevertedConditions, false); is && view.StatusBlocker == nil {
		d.recheck(undone.Over.Sub(d.Now))
		view.StatusBlocker = ptr.To(maintenance.FailedNodeStatus(name, conditionsContested, undone.Since))
	}
}

// What blockers say of contests.
const (
	cordonContested     = "another client makes it schedulable again and again, and it is cordoned at most once a minute: the audit log has by whom"
	selectionContested  = "another client changes again and again whether spec.nodeSelector selects it, such as by a label, and it is claimed at most once a minute: the audit log has by whom"
	statusContested     = "another client changes status.maintenanceStatus again and again, and it is restored at most once a minute: the audit log has by whom"
	conditionsContested = "another client changes the conditions of the maintenance again and again, and they are restored at most once a minute: the audit log has by whom"
)

// ReleaseBlockers returns what delays the release of the node.
func (d *Decision) ReleaseBlockers() []maintenance.Blocker {
	var blockers []maintenance.Blocker
	if d.View.Drains() {
		blockers = d.FailedWithdrawals(d.Unneeded)
	} else {
		blockers = d.FailedWithdrawals(d.Withdrawals())
	}
	if d.View.StatusBlocker != nil {
		blockers = append(blockers, *d.View.StatusBlocker)
	}
	if d.View.CordonBlocker != nil && d.mustUncordon() {
		blockers = append(blockers, *d.View.CordonBlocker)
	}
	if blocker := d.taintBlocker(); blocker != nil {
		blockers = append(blockers, *blocker)
	}
	return blockers
}

// FailedWithdrawals returns a blocker for each pod whose eviction is still requested because the
// withdrawal fails.
func (f *Facts) FailedWithdrawals(pods []*v1.Pod) []maintenance.Blocker {
	var blockers []maintenance.Blocker
	for _, pod := range pods {
		if failed := f.Failures[write.Withdrawal.Of(pod.UID)]; failed.Blocks() {
			blockers = append(blockers, maintenance.FailedRequest(pod, failed.Message, failed.Since))
		}
	}
	return blockers
}
