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
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// computeView computes the view of the node as it is now.
func (c *Controller) computeView(s *nodeSync) *status.View {
	view, awaitsFinalizer, hasCordoned := &status.View{}, false, false
	limited := c.progress.Limits.Selects(s.node)
	for i := range s.specs {
		o := &s.specs[i]
		if o.Plans() {
			view.Planning = append(view.Planning, o.Name)
		}
		if o.Claims() {
			view.Claiming = append(view.Claiming, o.Name)
			view.Rolls = view.Rolls || o.Rollout != nil || limited
		}
		if o.Drains() {
			view.Draining = append(view.Draining, o.Name)
		}
		awaitsFinalizer = awaitsFinalizer || o.AwaitsFinalizer()
		view.Waits = view.Waits || o.Waits()
		hasCordoned = hasCordoned || o.Waits() && o.HasCordoned(s.node)
	}
	view.KeepsCordon = (awaitsFinalizer || hasCordoned) && !view.Claimed() && c.isOwnCordon(s.node)
	c.addNodeBlockers(view, s.node, s.now)
	c.addContests(view, s)
	if view.Drains() && len(s.facts.Participants) > 0 {
		c.addDrain(view, s)
		c.addVolumes(s, view)
	}
	view.Admissions = c.computeAdmissions(s, view)
	return view
}

// addNodeBlockers adds the failed writes to the node itself.
func (c *Controller) addNodeBlockers(view *status.View, node *v1.Node, now time.Time) {
	view.CordonRefused = c.isCordonRefused(node) || c.reclaimWait(node, view, now) > 0
	mustUncordon, key := c.mustUncordon(node, view), write.Cordon.Of(node.UID)
	if mustUncordon {
		key.Kind = write.Uncordon
	}
	if failed, _ := c.failures.Get(node.Name, key); failed.Blocks() && (view.CordonRefused || mustUncordon) {
		view.CordonBlocker = ptr.To(maintenance.FailedCordon(node.Name, failed.Message, failed.Since))
	}
	// The status is not written before the node is schedulable.
	if failed, _ := c.failures.Get(node.Name, write.Status.Of(node.UID)); failed.Blocks() && !mustUncordon {
		view.StatusBlocker = ptr.To(maintenance.FailedNodeStatus(node.Name, failed.Message, failed.Since))
	}
}

// addContests adds what other clients keep undoing on the node: as long as they do, the maintenance does not end.
func (c *Controller) addContests(view *status.View, s *nodeSync) {
	node := s.node
	if undone, is := c.pacer.Contested(pace.RevertedCordon, node.Name, !node.Spec.Unschedulable, s.now); is && view.Claimed() && view.CordonBlocker == nil {
		c.nodes.AddAfter(node.Name, max(undone.Over.Sub(s.now), pace.RevertSlack))
		view.CordonBlocker = ptr.To(maintenance.FailedCordon(node.Name, cordonContested, undone.Since))
	}
	if wait := c.reclaimWait(node, view, s.now); wait > 0 && view.CordonBlocker == nil {
		undone, _ := c.pacer.Contested(pace.RevertedSelection, node.Name, true, s.now)
		view.CordonBlocker = ptr.To(maintenance.FailedCordon(node.Name, selectionContested, undone.Since))
	}
	if undone, is := c.pacer.Contested(pace.RevertedStatus, node.Name, false, s.now); is && view.StatusBlocker == nil {
		c.nodes.AddAfter(node.Name, undone.Over.Sub(s.now))
		view.StatusBlocker = ptr.To(maintenance.FailedNodeStatus(node.Name, statusContested, undone.Since))
	}
	if undone, is := c.pacer.Contested(pace.RevertedConditions, node.Name, false, s.now); is && view.StatusBlocker == nil {
		c.nodes.AddAfter(node.Name, undone.Over.Sub(s.now))
		view.StatusBlocker = ptr.To(maintenance.FailedNodeStatus(node.Name, conditionsContested, undone.Since))
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
func (c *Controller) addDrain(view *status.View, s *nodeSync) {
	node, facts := s.node, s.facts
	view.Targets = progress.NodeTargets(facts.Participants, progress.StoredTargets(node), facts.anyTaken)
	if view.CordonRefused || facts.awaitsFinalizers {
		// No further eviction is requested on a node that takes new pods, or whose drain may not
		// start yet.
		view.Targets = progress.StoredTargets(node)
	}
	s.addEscalation(view)
	view.State.Left, view.State.Cordoned = len(facts.pods) > 0, node.Spec.Unschedulable
	view.Pending, view.Active = facts.countRequests()
	if stored := node.Status.MaintenanceStatus; stored != nil {
		view.InitialPods = stored.InitialPods
	}
	view.PodBlockers, view.Blocked = facts.podBlockers(view.Targets)
	if wait := c.returns.Settles(node.Name, s.now); wait > 0 {
		view.State.Settling, view.ReturnBlockers = true, c.returns.Unsettled(node.Name, s.now)
		c.nodes.AddAfter(node.Name, wait)
	}
	view.State.Draining = facts.anyTaken(view.Targets)
	view.State.LimitedBy = progress.LimitedBy(progress.Oldest(facts.Participants), facts.Participants, view.Targets)
	if !view.CordonRefused {
		view.State.WaitingFor = c.progress.WaitingOn(progress.Satisfied(facts.Participants, view.Targets))
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
