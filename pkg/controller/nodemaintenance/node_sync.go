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
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// syncNode counts the pods of one node, decides on it, and queues the writes that follow. It makes
// no API call: how far the maintenances are does not wait for writes. A node that no maintenance
// selects or has selected stays as it is.
func (c *Controller) syncNode(_ context.Context, name string) error {
	c.deciding.LockKey(name)
	defer c.unlock(name)
	// Read before the decision: a write that begins later is decided on what this sync knows.
	_, writing := c.writing.Load(name)
	s, err := c.decide(name)
	if s == nil || err != nil {
		return err
	}
	s.writing = writing
	// Each phase waits until the one before is stored.
	for _, phase := range []func(*nodeSync) (done bool){
		// Pods that may stay depend on no other write: they do not wait for a cordon or status
		// that fails.
		c.withdraw,
		// A node that takes new pods cannot be drained.
		c.queueCordon,
		// Pods are not moved to nodes that come next.
		c.queueTaint,
		// The targets are decided on the cordoned node. The status also remembers that the node has
		// to be uncordoned, so that it is cleared after that.
		c.queueStatus,
		// Only pods that the stored targets include are requested to be evicted: interceptors and
		// a controller that takes over rely on it.
		c.request,
		// A maintenance may complete when nothing of it is left on the node.
		c.release,
	} {
		if !phase(s) {
			break
		}
	}
	return nil
}

// writeNode decides on a node again, and makes the writes to the node itself that are due. The next
// sync decides what follows from them.
func (c *Controller) writeNode(ctx context.Context, name string) error {
	if _, running := c.writing.LoadOrStore(name, nil); running {
		c.nodes.AddAfter(name, pace.StaleInterval)
		return nil
	}
	defer c.writing.Delete(name)
	s, err := c.decideLocked(name)
	if s == nil || err != nil {
		return err
	}
	needed, wait := s.NeededCordon()
	cordons := needed != nil && needed.Kind == write.Cordon && wait <= 0
	if cordons && c.areUnserved(ctx) {
		klog.FromContext(ctx).V(2).Info("Not cordoning the node, because kube-apiserver does not serve NodeMaintenances", "node", klog.KObj(s.Node))
		c.nodes.AddAfter(name, unservedInterval)
		return nil
	}
	if cordons || s.Takes() {
		// Once for both: who has cordoned a node, if only maybe, has to record that.
		if err := c.confirmClaims(ctx, s.Specs); cordons && err != nil {
			return c.cordonFailed(ctx, s.Node, needed.Key, err)
		} else if err != nil {
			return c.statusFailed(ctx, s.Node, err)
		}
	}
	if err := c.reconcileCordon(ctx, s); err != nil {
		return err
	}
	// A taint that fails keeps nothing else from being written.
	taintErr := c.reconcileTaint(ctx, s)
	return errors.Join(taintErr, c.publishStatus(ctx, s))
}

// refreshNode is writeNode where only counts are outdated: at most one write per pace.RefreshInterval.
func (c *Controller) refreshNode(ctx context.Context, name string) error {
	err := c.writeNode(ctx, name)
	select {
	case <-c.clock.After(pace.RefreshInterval):
	case <-ctx.Done():
	}
	return err
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
		c.nodes.AddAfter(name, c.pacer.AfterStale(pace.NodeCache, name))
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
	facts.Failures = c.failures.Of(name)
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
		c.nodes.AddAfter(name, c.pacer.AfterStale(pace.NodeCache, name))
		return false
	}
	c.pacer.Current(pace.NodeCache, name)
	return !running
}

// forgetNode withdraws the requests for the pods of a node that is gone, and forgets the node.
func (c *Controller) forgetNode(name string, facts *decision.Facts) {
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
	c.enqueueMaintenances(c.progress.Release(name, facts.Revision))
}

// nodeSync is a sync of a node, or a write to it.
type nodeSync struct {
	*decision.Decision
	// published is whether the status of the node says what was decided.
	published bool
	// writing is whether a worker may be writing the node, because of an earlier decision.
	writing bool
}

// decideAgain decides again when spec.unschedulable was written, or could not be. The written node has the latest targets, and
// may be newer than the cache. Its counts may be outdated, so that only a sync records them.
func (c *Controller) decideAgain(s *nodeSync) {
	s.Memories = c.remember(s.Node, s.Now)
	s.Decision = decision.Decide(s.Facts)
	c.recheck(s)
}

// recheck has a node decided on again when something is due for which no event comes.
func (c *Controller) recheck(s *nodeSync) {
	if s.Rechecks {
		c.nodes.AddAfter(s.Node.Name, s.RecheckAfter)
	}
}

// withdraw queues the withdrawals of requests on a node that no maintenance drains.
func (c *Controller) withdraw(s *nodeSync) bool {
	if !s.View.Drains() {
		c.setWrites(s.Node.Name, s.WithdrawalWrites(s.Node.Name))
	}
	return true
}

// queueCordon queues the node if it has to be cordoned or uncordoned now, and reports whether the
// next phase may follow.
func (c *Controller) queueCordon(s *nodeSync) bool {
	needed, wait := s.NeededCordon()
	switch {
	case needed == nil:
		c.noteUncordoned(s)
	case wait > 0:
		c.nodes.AddAfter(s.Node.Name, wait)
	default:
		c.writes.Add(s.Node.Name)
		return false
	}
	return true
}

// dueStatus returns the status that has to be written, and after which delay; nil if there is none.
func (c *Controller) dueStatus(s *nodeSync) (due *status.Node, wait time.Duration) {
	needed := s.NeededStatus()
	switch {
	case needed == nil:
		return nil, 0
	case needed.Stored:
		s.published = true
		if c.failures.Succeeded(s.Node.Name, write.Status.Of(s.Node.UID)) {
			// Its blocker has to be removed.
			c.nodes.Add(s.Node.Name)
		}
		return nil, 0
	}
	return &needed.Node, max(needed.Wait, c.pacer.AfterWrite(pace.NodeStatus, s.Node.Name, s.Now, needed.Interval))
}

// noteRewrite records that status.maintenanceStatus was written because another client has changed it, and reports that
// others keep doing so.
func (c *Controller) noteRewrite(node *v1.Node, now time.Time) {
	if c.pacer.Rewrote(pace.RevertedStatus, node.Name, c.earlierSince(node.Name, write.Status, ""), now) {
		c.events.StatusContested(node, "status.maintenanceStatus")
	}
}

// noteConditions records which conditions were written, and reports that others keep changing them, or the rest of the
// status, which is undone if they have before this write.
func (c *Controller) noteConditions(s *nodeSync, needed *status.Node, undone bool) {
	if undone {
		c.noteRewrite(s.Node, s.Now)
	}
	if s.IsRestoration(needed) && c.pacer.Rewrote(pace.RevertedConditions, s.Node.Name, c.earlierSince(s.Node.Name, write.Status, ""), s.Now) {
		c.events.StatusContested(s.Node, "the conditions that maintenances have on the node")
	}
	c.ownConditions.Store(s.Node.Name, &decision.WrittenConditions{s.Node.UID, needed.Conditions})
}

// queueStatus queues the node if its status has to be written, at most once per pace.StatusInterval. What
// follows does not wait for it. Counts of pods alone, which change with every pod, are less urgent.
func (c *Controller) queueStatus(s *nodeSync) bool {
	needed, wait := c.dueStatus(s)
	switch {
	case needed == nil:
	case wait > 0:
		c.nodes.AddAfter(s.Node.Name, wait)
	case status.DiffersInCounts(s.Node, needed):
		c.refreshes.Add(s.Node.Name)
	default:
		c.writes.Add(s.Node.Name)
	}
	return true
}

// publishStatus writes the status of the node, if it is due.
func (c *Controller) publishStatus(ctx context.Context, s *nodeSync) error {
	needed, wait := c.dueStatus(s)
	if needed == nil {
		return nil
	}
	node := s.Node
	if wait > 0 {
		c.nodes.AddAfter(node.Name, wait)
		return nil
	}
	if s.TakesBack() {
		if err := c.confirmRelease(ctx, node, s.Specs); err != nil {
			return c.statusFailed(ctx, node, err)
		}
	}
	if status.CompletesDrain(node.Status.Conditions, needed.Conditions) {
		if err := c.confirmEmpty(ctx, node); err != nil {
			return c.statusFailed(ctx, node, err)
		}
	}
	undone := c.writer.IsStatusUndone(node)
	if err := c.forgiveUnrecorded(s, c.writer.SetNodeStatus(ctx, node, needed.Maintenance, needed.Conditions)); err != nil {
		return c.statusFailed(ctx, node, err)
	}
	c.failures.Succeeded(node.Name, write.Status.Of(node.UID))
	c.pacer.Wrote(pace.NodeStatus, node.Name, s.Now)
	c.noteConditions(s, needed, undone)
	c.enqueueAfterWrite(node)
	c.events.NodeChanged(node, needed.Conditions)
	c.events.AdmissionsChanged(node, needed.Maintenance, func(admission *v1.MaintenanceAdmission) string { return s.NotBackReason(admission) })
	return nil
}

// enqueueAfterWrite reconciles the node when the cache has what was just written. If another
// client reverts a write at once while the watch is interrupted, the cache only sees the same
// state as before, and no event enqueues the node.
func (c *Controller) enqueueAfterWrite(node *v1.Node) {
	c.nodes.AddAfter(node.Name, pace.StaleInterval)
}

// statusFailed records that the status of the node could not be written, like cordonFailed. A
// conflict, which means that the decision is outdated, counts once it has happened repeatedly.
func (c *Controller) statusFailed(ctx context.Context, node *v1.Node, err error) error {
	if ctx.Err() != nil || apierrors.IsNotFound(err) {
		return err
	}
	write := write.Status.Of(node.UID)
	if c.failures.Failed(node.Name, write, err, c.earlierSince(node.Name, write.Kind, ""), c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Failed to write the status of the node, will retry", "node", klog.KObj(node))
	}
	if failed, _ := c.failures.Get(node.Name, write); apierrors.IsConflict(err) && !failed.Blocks() {
		return err
	}
	c.events.StatusFailed(node, err)
	// At once, to publish the blocker.
	c.nodes.Add(node.Name)
	return nil
}

// request queues the requests for the pods that the stored targets of the node include, and what
// escalations do to pods.
func (c *Controller) request(s *nodeSync) bool {
	switch {
	case !s.View.Drains():
	case s.View.CordonRefused:
		c.setWrites(s.Node.Name, nil)
	default:
		c.setWrites(s.Node.Name, s.PodWrites())
	}
	return true
}

// release records that the maintenances that do not claim the node any more have nothing left to
// do there. A write that is in flight may be a cordon: if its response is lost when nothing is left to release, nobody knows whose cordon it is.
func (c *Controller) release(s *nodeSync) bool {
	if s.writing {
		c.nodes.AddAfter(s.Node.Name, pace.StaleInterval)
		return false
	}
	if write.HasTaint(s.Node) && !s.WantsTaint() {
		return false // The next sync follows the write.
	}
	if s.published && s.IsOver() {
		c.enqueueMaintenances(c.progress.Release(s.Node.Name, s.Revision))
	}
	return true
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
		c.maintenances.AddAfter(s.Specs[i].Name, pace.SummaryDelay)
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
func (c *Controller) recordDelays(node string, blockers []maintenance.Hold, revision int) {
	for _, name := range c.progress.Delayed(node, maintenance.GroupHolds(blockers), revision) {
		c.maintenances.AddAfter(name, pace.SummaryDelay)
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
			c.nodes.AddAfter(node, wait)
		} else if !unseen.Has(w.UID) {
			due = append(due, w)
		}
	}
	c.requests.Set(node, c.flowOf(node), due)
}
