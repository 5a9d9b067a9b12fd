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

package nodemaintenance

import (
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/utils/ptr"
)

// nodeView is what the status of a node is computed from.
type nodeView struct {
	// planning, claiming and draining name the maintenances in the stage Idle, in Cordon or Drain,
	// and in Drain.
	planning, claiming, draining []string
	// keepsCordon is whether the node is unschedulable because of an earlier claim, and stays so
	// because a maintenance that awaits its finalizer will claim it, or because it waits for its
	// admission after the stage Cordon.
	keepsCordon bool
	// waits is whether a maintenance waits until it may begin with the node.
	waits bool
	// rolls is whether a maintenance that had to be admitted claims the node.
	rolls bool
	// admissions are how far the maintenances are that were admitted to the node.
	admissions []v1.MaintenanceAdmission
	// cordonRefused is whether the node could not be cordoned, and cordonBlocker says why, or why
	// it cannot be uncordoned.
	cordonRefused bool
	cordonBlocker *maintenance.Hold
	// returnBlockers say which pods keep coming back to a node that is empty at the moment.
	returnBlockers []maintenance.Hold
	// statusBlocker says why the status of the node cannot be written.
	statusBlocker *maintenance.Hold
	// volumeBlockers say which volumes keep a node without pods from being drained, by the names of the maintenances
	// that wait for them.
	volumeBlockers  map[string]maintenance.Hold
	targets         maintenance.Targets
	state           progress.DrainState
	pending, active int
	// initialPods is how many pods were left at most since the drain began, as it is stored.
	initialPods int32
	// podBlockers delay the eviction of pods, and blocked counts the pods that need an
	// intervention. Both are empty unless a maintenance drains the node.
	podBlockers []maintenance.Hold
	blocked     int
	// escalation is the strongest action that is due for a pod, and escalated counts the pods that are
	// left although one was taken.
	escalation v1.MaintenanceEscalation
	escalated  int
	// emptiedTime is since when no pod is left, if the node has to wait for its volumes.
	emptiedTime *metav1.Time
}

func (v *nodeView) claimed() bool { return len(v.claiming) > 0 }

func (v *nodeView) drains() bool { return len(v.draining) > 0 }

// computeView computes the view of the node as it is now.
func (c *Controller) computeView(s *nodeSync) *nodeView {
	view, awaitsFinalizer, hasCordoned := &nodeView{}, false, false
	limited := c.progress.Limits.Selects(s.node)
	for i := range s.specs {
		o := &s.specs[i]
		if o.Plans() {
			view.planning = append(view.planning, o.Name)
		}
		if o.Claims() {
			view.claiming = append(view.claiming, o.Name)
			view.rolls = view.rolls || o.Rollout != nil || limited
		}
		if o.Drains() {
			view.draining = append(view.draining, o.Name)
		}
		awaitsFinalizer = awaitsFinalizer || o.AwaitsFinalizer()
		view.waits = view.waits || o.Waits()
		hasCordoned = hasCordoned || o.Waits() && o.HasCordoned(s.node)
	}
	view.keepsCordon = (awaitsFinalizer || hasCordoned) && !view.claimed() && c.isOwnCordon(s.node)
	c.addNodeBlockers(view, s.node, s.now)
	c.addContests(view, s)
	if view.drains() && len(s.facts.Participants) > 0 {
		c.addDrain(view, s)
		c.addVolumes(s, view)
	}
	view.admissions = c.computeAdmissions(s, view)
	return view
}

// addNodeBlockers adds the failed writes to the node itself.
func (c *Controller) addNodeBlockers(view *nodeView, node *v1.Node, now time.Time) {
	view.cordonRefused = c.isCordonRefused(node) || c.reclaimWait(node, view, now) > 0
	mustUncordon, write := c.mustUncordon(node, view), writeKey{writeCordon, node.UID}
	if mustUncordon {
		write.kind = writeUncordon
	}
	if failed, _ := c.failures.get(node.Name, write); failed.blocks() && (view.cordonRefused || mustUncordon) {
		view.cordonBlocker = ptr.To(maintenance.FailedCordon(node.Name, failed.message, failed.since))
	}
	// The status is not written before the node is schedulable.
	if failed, _ := c.failures.get(node.Name, writeKey{writeStatus, node.UID}); failed.blocks() && !mustUncordon {
		view.statusBlocker = ptr.To(maintenance.FailedNodeStatus(node.Name, failed.message, failed.since))
	}
}

// addContests adds what other clients keep undoing on the node: as long as they do, the maintenance does not end.
func (c *Controller) addContests(view *nodeView, s *nodeSync) {
	node := s.node
	if undone, is := c.pacer.Contested(pace.RevertedCordon, node.Name, !node.Spec.Unschedulable, s.now); is && view.claimed() && view.cordonBlocker == nil {
		c.nodes.AddAfter(node.Name, max(undone.Over.Sub(s.now), pace.RevertSlack))
		view.cordonBlocker = ptr.To(maintenance.FailedCordon(node.Name, cordonContested, undone.Since))
	}
	if wait := c.reclaimWait(node, view, s.now); wait > 0 && view.cordonBlocker == nil {
		undone, _ := c.pacer.Contested(pace.RevertedSelection, node.Name, true, s.now)
		view.cordonBlocker = ptr.To(maintenance.FailedCordon(node.Name, selectionContested, undone.Since))
	}
	if undone, is := c.pacer.Contested(pace.RevertedStatus, node.Name, false, s.now); is && view.statusBlocker == nil {
		c.nodes.AddAfter(node.Name, undone.Over.Sub(s.now))
		view.statusBlocker = ptr.To(maintenance.FailedNodeStatus(node.Name, statusContested, undone.Since))
	}
	if undone, is := c.pacer.Contested(pace.RevertedConditions, node.Name, false, s.now); is && view.statusBlocker == nil {
		c.nodes.AddAfter(node.Name, undone.Over.Sub(s.now))
		view.statusBlocker = ptr.To(maintenance.FailedNodeStatus(node.Name, conditionsContested, undone.Since))
	}
}

// What blockers say of contests.
const (
	cordonContested     = "another client makes it schedulable again and again, and it is cordoned at most once a minute: the audit log has by whom"
	selectionContested  = "another client changes again and again whether spec.nodeSelector selects it, such as by a label, and it is claimed at most once a minute: the audit log has by whom"
	taintContested      = "another client adds the taint " + coordinationv1alpha1.NodePlannedTaint + " again and again, and it is removed at most once a minute: the audit log has by whom"
	statusContested     = "another client changes status.maintenanceStatus again and again, and it is restored at most once a minute: the audit log has by whom"
	conditionsContested = "another client changes the conditions of the maintenance again and again, and they are restored at most once a minute: the audit log has by whom"
)

// addDrain adds the targets and the state of the drain.
func (c *Controller) addDrain(view *nodeView, s *nodeSync) {
	node, facts := s.node, s.facts
	view.targets = progress.NodeTargets(facts.Participants, progress.StoredTargets(node), facts.anyTaken)
	if view.cordonRefused || facts.awaitsFinalizers {
		// No further eviction is requested on a node that takes new pods, or whose drain may not
		// start yet.
		view.targets = progress.StoredTargets(node)
	}
	s.addEscalation(view)
	view.state.Left, view.state.Cordoned = len(facts.pods) > 0, node.Spec.Unschedulable
	view.pending, view.active = facts.countRequests()
	if stored := node.Status.MaintenanceStatus; stored != nil {
		view.initialPods = stored.InitialPods
	}
	view.podBlockers, view.blocked = facts.podBlockers(view.targets)
	if wait := c.returns.settles(node.Name, s.now); wait > 0 {
		view.state.Settling, view.returnBlockers = true, c.returns.unsettled(node.Name, s.now)
		c.nodes.AddAfter(node.Name, wait)
	}
	view.state.Draining = facts.anyTaken(view.targets)
	view.state.LimitedBy = progress.LimitedBy(progress.Oldest(facts.Participants), facts.Participants, view.targets)
	if !view.cordonRefused {
		view.state.WaitingFor = c.progress.WaitingOn(progress.Satisfied(facts.Participants, view.targets))
	}
}

// countRequests counts the pods without an unfinished request, and those with one.
func (f *nodeFacts) countRequests() (pending, active int) {
	for i := range f.pods {
		if f.pods[i].request != nil {
			active++
		} else {
			pending++
		}
	}
	return pending, active
}

// podBlockers returns what delays the eviction of pods, and counts those that need an intervention.
func (f *nodeFacts) podBlockers(targets maintenance.Targets) (blockers []maintenance.Hold, blocked int) {
	for i := range f.pods {
		pod := &f.pods[i]
		// A request that failed does not matter for a pod that is no longer a target.
		unwanted := pod.blocker.Cause == maintenance.HoldRequestFailed && !targets.Take(pod.Pod)
		if !pod.blocked || unwanted {
			continue
		}
		blockers = append(blockers, pod.blocker)
		if pod.blocker.Cause.Blocked() {
			blocked++
		}
	}
	return blockers, blocked
}

// leftFor returns the facts without the pods that the maintenance itself keeps.
func (f *nodeFacts) leftFor(maintenance string) *nodeFacts {
	if f.skipped[maintenance] == 0 {
		return f
	}
	left := *f
	left.pods = slices.DeleteFunc(slices.Clone(f.pods), func(pod podFacts) bool { return pod.IsKeptBy(maintenance) })
	return &left
}

// isDrainedFor reports whether the node is drained for a maintenance, for which pods are left or not.
func (v *nodeView) isDrainedFor(maintenance string, left bool) bool {
	state := v.state
	_, state.Detaching = v.volumeBlockers[maintenance]
	return state.IsDrainedBut(left)
}

// groupBlockers groups what delays the eviction of pods, with what delays the writes to the node, and the
// volumes for which the maintenance waits; none without a name.
func (v *nodeView) groupBlockers(ofPods []maintenance.Hold, maintenanceName string) []maintenance.HoldGroup {
	blockers := append(slices.Clip(ofPods), v.returnBlockers...)
	for _, blocker := range []*maintenance.Hold{v.cordonBlocker, v.statusBlocker} {
		if blocker != nil {
			blockers = append(blockers, *blocker)
		}
	}
	if blocker, waits := v.volumeBlockers[maintenanceName]; waits {
		blockers = append(blockers, blocker)
	}
	return maintenance.GroupHolds(blockers)
}
