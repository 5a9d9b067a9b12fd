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
	"fmt"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"slices"
	"time"
)

// nodeSync is a sync of a node, or a write to it.
type nodeSync struct {
	*decision.Decision
	// published is whether the status of the node says what was decided.
	published bool
	// writing is whether a worker may be writing the node, because of an earlier decision.
	writing bool
}

// decideLocked is decide while no other worker decides on the node.
func (c *Controller) decideLocked(name string) (*nodeSync, error) {
	c.deciding.LockKey(name)
	defer c.unlock(name)
	return c.decide(name)
}

func (c *Controller) unlock(node string) {
	utilruntime.HandleError(c.deciding.UnlockKey(node)) // It never fails: the node is locked.
}

// decide counts the pods of a node and records what is decided on it. It returns nil if there is
// nothing to do before the next event or delayed sync. The caller has locked the node: otherwise an
// older count could replace a newer one.
func (c *Controller) decide(name string) (*nodeSync, error) {
	if !c.writer.IsCurrentNode(name) {
		// The event of our last write need not enqueue this node: the pod that was written about
		// may be gone by then.
		c.nodeQueue.AddAfter(name, c.pacer.AfterStale(pace.NodeCache, name))
		return nil, nil
	}
	now := c.clock.Now()
	node, err := c.nodeLister.Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the node: %w", err)
	}
	if apierrors.IsNotFound(err) {
		node = nil
	}
	specs, revision := c.progress.Selecting(node)
	quiet := c.dropRequests(name, specs)
	deselected, others := c.progress.Deselect(name, specs, revision)
	c.enqueueNodes(others)
	c.enqueueMaintenances(deselected)
	facts, err := c.readFacts(name, node, specs, now)
	if err != nil {
		return nil, err
	}
	facts.Revision, facts.Quiet = revision, quiet
	if node == nil {
		c.forgetNode(name, facts)
		return nil, nil
	}
	c.noteDeselected(node, specs, deselected, now)
	facts.AwaitsFinalizers = progress.AwaitsFinalizers(node, specs)
	facts.Memories = c.remember(node, now)
	s := &nodeSync{Decision: decision.Decide(facts)}
	c.recheck(s)
	c.failures.Keep(name, s.Wanted)
	if s.ForgetOwnCordon() {
		c.ownCordons.Delete(name)
	}
	if !facts.Ready {
		// No decision is possible before all nodes are counted. In particular no cordon: if the
		// node was deselected before its status was written, the cordon would stay.
		return nil, nil
	}
	c.recordDecisions(s)
	return s, nil
}

// dropRequests drops the requests that wait to be written for pods of a node that no maintenance
// drains. It reports whether the node is quiet: no such request is being written, and the cache
// has all that were written. On a quiet node that is not drained, no further request can appear,
// so withdrawals are decided on all of them.
func (c *Controller) dropRequests(name string, specs []progress.Spec) (quiet bool) {
	running := !progress.IsDraining(specs) && c.requests.DropRequests(name)
	// This order matters: a write that has just ended is among the unseen ones.
	if len(c.writer.Unseen(name)) > 0 {
		c.nodeQueue.AddAfter(name, c.pacer.AfterStale(pace.NodeCache, name))
		return false
	}
	c.pacer.Current(pace.NodeCache, name)
	return !running
}

// forgetNode withdraws the requests for the pods of a node that is gone, and forgets the node.
func (c *Controller) forgetNode(name string, facts *decision.Facts) {
	facts.Failures = c.failures.Of(name)
	withdrawals := facts.Withdrawals()
	c.failures.Keep(name, write.KeysOf(write.Withdrawal, withdrawals))
	c.recordDelays(name, facts.FailedWithdrawals(withdrawals), facts.Revision)
	c.setWrites(name, facts.WithdrawalWrites(name))
	if len(withdrawals) > 0 || !facts.Quiet {
		return
	}
	c.writer.ForgetNode(name)
	c.pacer.ForgetNode(name)
	c.nodeMemories.forget(name)
	c.confirm.Forget(name)
	c.enqueueMaintenances(c.progress.Release(name, facts.Revision))
}

// noteDeselected records that a claim ends because a maintenance that goes on does not select the node any more. Labels
// that others change again and again would otherwise have the node cordoned and uncordoned as often, and evictions
// requested and withdrawn, so that interceptors begin anew.
func (c *Controller) noteDeselected(node *v1.Node, specs []progress.Spec, deselected []string, now time.Time) {
	goesOn := func(name string) bool {
		m, err := c.maintenanceLister.Get(name)
		return err == nil && m.DeletionTimestamp == nil && m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageIdle && m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete
	}
	ended := slices.DeleteFunc(slices.Clone(deselected), func(name string) bool { return !goesOn(name) })
	stays := slices.ContainsFunc(specs, func(o progress.Spec) bool { return o.Claims() })
	if len(ended) == 0 || stays || !maintenance.IsClaimed(node) && !c.isOwnCordon(node) {
		return
	}
	if c.pacer.Rewrote(pace.RevertedSelection, node.Name, c.earlierSince(node.Name, write.Cordon, ""), now) {
		c.events.SelectionContested(node, ended)
	}
}

// decideAgain decides again when spec.unschedulable was written, or could not be. The written node has the latest targets, and
// may be newer than the cache. Its counts may be outdated, so that only a sync records them.
func (c *Controller) decideAgain(s *nodeSync) {
	s.Limited, s.Memories = c.progress.Limits.Selects(s.Node), c.remember(s.Node, s.Now)
	s.Decision = decision.Decide(s.Facts)
	c.recheck(s)
}

// recheck has a node decided on again when something is due for which no event comes.
func (c *Controller) recheck(s *nodeSync) {
	if s.Rechecks {
		c.nodeQueue.AddAfter(s.Node.Name, s.RecheckAfter)
	}
}

// recordDecisions records for each maintenance of the node what was decided there.
func (c *Controller) recordDecisions(s *nodeSync) {
	for _, outcome := range s.Outcomes() {
		joined := c.progress.Decide(s.Node.Name, outcome.Maintenance, outcome.Decision)
		if joined && outcome.Outrun {
			c.reportFastForward(outcome.Maintenance, s.Node, progress.StoredTargets(s.Node))
		}
	}
	for i := range s.Specs {
		c.progress.SetFailed(s.Node.Name, s.Node.UID, s.Specs[i].Name, decision.HasFailed(s.View.Admissions, s.Specs[i].UID))
		// Delayed, because many nodes change at the same time.
		c.maintenanceQueue.AddAfter(s.Specs[i].Name, pace.SummaryDelay)
	}
	c.recordDelays(s.Node.Name, s.ReleaseBlockers(), s.Revision)
	if s.View.Waits {
		c.admissions.changed()
	}
}

// reportFastForward emits an event for a maintenance whose new node was drained further already
// than the maintenance allows.
func (c *Controller) reportFastForward(name string, node *v1.Node, floor maintenance.Targets) {
	if m, err := c.maintenanceLister.Get(name); err == nil {
		c.events.FastForwarded(m, node, floor)
	}
}

// recordDelays records what delays the release of the node for the maintenances that wait for it:
// those in Complete, and those that do not select it any more. The node need not exist.
func (c *Controller) recordDelays(node string, blockers []maintenance.Blocker, revision int) {
	for _, name := range c.progress.Delayed(node, maintenance.GroupBlockers(blockers), revision) {
		c.maintenanceQueue.AddAfter(name, pace.SummaryDelay)
	}
}

// setWrites makes these writes, of which there is at most one for a pod, the ones that wait for the
// node. One that has failed is left out until its next attempt is due, and delays no other.
func (c *Controller) setWrites(node string, writes []requests.Write) {
	now, unseen := c.clock.Now(), c.writer.Unseen(node)
	var due []requests.Write
	for _, w := range writes {
		wait := c.failures.Wait(node, w.Key(), now)
		if w.Key().Kind == write.Request {
			wait = max(wait, c.contests.Wait(node, w.UID, now))
		}
		if wait > 0 {
			c.nodeQueue.AddAfter(node, wait)
		} else if !unseen.Has(w.UID) {
			due = append(due, w)
		}
	}
	c.requests.Set(node, c.flowOf(node), due)
}
