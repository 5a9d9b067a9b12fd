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
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
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
	needed, wait := c.neededCordon(s)
	cordons := needed != nil && needed.Kind == write.Cordon && wait <= 0
	if cordons && c.areUnserved(ctx) {
		klog.FromContext(ctx).V(2).Info("Not cordoning the node, because kube-apiserver does not serve NodeMaintenances", "node", klog.KObj(s.node))
		c.nodes.AddAfter(name, unservedInterval)
		return nil
	}
	if cordons || claims(s.node, s.view) {
		// Once for both: who has cordoned a node, if only maybe, has to record that.
		if err := c.confirmClaims(ctx, s.specs); cordons && err != nil {
			return c.cordonFailed(ctx, s.node, needed.Key, err)
		} else if err != nil {
			return c.statusFailed(ctx, s.node, err)
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
	facts.revision, facts.quiet = revision, quiet
	if node == nil {
		c.forgetNode(name, facts)
		return nil, nil
	}
	c.noteDeselected(node, specs, deselected, now)
	facts.awaitsFinalizers = progress.AwaitsFinalizers(node, specs)
	s := &nodeSync{node: node, specs: specs, facts: facts, now: now}
	s.view = c.computeView(s)
	c.failures.Keep(node.Name, c.wantedWrites(s))
	c.forgetOwnCordon(s)
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
func (c *Controller) forgetNode(name string, facts *nodeFacts) {
	withdrawals := facts.withdrawals()
	c.failures.Keep(name, write.KeysOf(write.Withdrawal, withdrawals))
	c.recordDelays(name, c.failedWithdrawals(name, withdrawals), facts.revision)
	c.setWrites(name, writesFor(name, withdrawals, true))
	if len(withdrawals) > 0 || !facts.quiet {
		return
	}
	c.writer.ForgetNode(name)
	c.pacer.ForgetNode(name)
	c.nodeMemories.forget(name)
	c.enqueueMaintenances(c.progress.Release(name, facts.revision))
}

// nodeSync is what was decided on a node.
type nodeSync struct {
	// node is what the API server had when it was read, or when it was last cordoned.
	node  *v1.Node
	specs []progress.Spec
	facts *nodeFacts
	view  *status.View
	now   time.Time
	// published is whether the status of the node says what was decided. See neededStatus.
	published bool
	// writing is whether a worker may be writing the node, because of an earlier decision.
	writing bool
}

// withdraw queues the withdrawals of requests on a node that no maintenance drains.
func (c *Controller) withdraw(s *nodeSync) bool {
	if !s.view.Drains() {
		c.setWrites(s.node.Name, writesFor(s.node.Name, s.facts.withdrawals(), true))
	}
	return true
}

// queueCordon queues the node if it has to be cordoned or uncordoned now, and reports whether the
// next phase may follow.
func (c *Controller) queueCordon(s *nodeSync) bool {
	needed, wait := c.neededCordon(s)
	switch {
	case needed == nil:
		c.noteUncordoned(s)
	case wait > 0:
		c.nodes.AddAfter(s.node.Name, wait)
	default:
		c.writes.Add(s.node.Name)
		return false
	}
	return true
}

// neededStatus returns the status that has to be written, and after which delay; nil if the node has
// it already. Until the node is schedulable, its status remembers that it has to be. The targets stay
// as long as a request that follows from them may be written.
func (c *Controller) neededStatus(s *nodeSync) (needed *status.Node, wait time.Duration) {
	if !s.view.Drains() && (!s.facts.quiet || c.mustUncordon(s.node, s.view)) {
		return nil, 0
	}
	node, write := s.node, write.Status.Of(s.node.UID)
	needed = &status.Node{Maintenance: status.ComputeNode(s.view), Conditions: status.ComputeNodeConditions(s.view, node.Status.Conditions, s.now)}
	if status.IsStored(node, needed.Maintenance, needed.Conditions) {
		s.published = true
		if c.failures.Succeeded(node.Name, write) {
			// Its blocker has to be removed.
			c.nodes.Add(node.Name)
		}
		return nil, 0
	}
	interval := pace.StatusInterval
	if s.view.Rolls && status.DiffersInProgress(node, needed) {
		interval = pace.ProgressInterval
	}
	wait = max(c.pacer.AfterWrite(pace.NodeStatus, node.Name, s.now, interval), c.failures.Wait(node.Name, write, s.now))
	if c.isRestoration(node, needed) {
		wait = max(wait, c.pacer.AfterRevert(pace.RevertedConditions, node.Name, s.now))
	}
	if c.writer.IsStatusUndone(node) {
		wait = max(wait, c.pacer.AfterRevert(pace.RevertedStatus, node.Name, s.now))
	}
	// Nothing says that a node is claimed before it may be.
	return needed, max(wait, c.reclaimWait(s.node, s.view, s.now))
}

// writtenConditions are the conditions that were last written to a node.
type writtenConditions struct {
	uid        types.UID
	conditions []v1.NodeCondition
}

// isRestoration reports whether a status only has to be written because another client has changed the conditions
// that were last written. The cache has that write.
func (c *Controller) isRestoration(node *v1.Node, needed *status.Node) bool {
	found, written := c.ownConditions.Load(node.Name)
	if !written || found.(writtenConditions).uid != node.UID || !apiequality.Semantic.DeepEqual(node.Status.MaintenanceStatus, needed.Maintenance) {
		return false
	}
	return slices.EqualFunc(found.(writtenConditions).conditions, needed.Conditions, func(a, b v1.NodeCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
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
		c.noteRewrite(s.node, s.now)
	}
	if c.isRestoration(s.node, needed) && c.pacer.Rewrote(pace.RevertedConditions, s.node.Name, c.earlierSince(s.node.Name, write.Status, ""), s.now) {
		c.events.StatusContested(s.node, "the conditions that maintenances have on the node")
	}
	c.ownConditions.Store(s.node.Name, writtenConditions{s.node.UID, needed.Conditions})
}

// queueStatus queues the node if its status has to be written, at most once per pace.StatusInterval. What
// follows does not wait for it. Counts of pods alone, which change with every pod, are less urgent.
func (c *Controller) queueStatus(s *nodeSync) bool {
	needed, wait := c.neededStatus(s)
	switch {
	case needed == nil:
	case wait > 0:
		c.nodes.AddAfter(s.node.Name, wait)
	case status.DiffersInCounts(s.node, needed):
		c.refreshes.Add(s.node.Name)
	default:
		c.writes.Add(s.node.Name)
	}
	return true
}

// publishStatus writes the status of the node, if it is due.
func (c *Controller) publishStatus(ctx context.Context, s *nodeSync) error {
	needed, wait := c.neededStatus(s)
	if needed == nil {
		return nil
	}
	node := s.node
	if wait > 0 {
		c.nodes.AddAfter(node.Name, wait)
		return nil
	}
	if withdraws(node, s.view) || forgets(node, s.view.Admissions) {
		if err := c.confirmRelease(ctx, node, s.specs); err != nil {
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
	c.pacer.Wrote(pace.NodeStatus, node.Name, s.now)
	c.noteConditions(s, needed, undone)
	c.enqueueAfterWrite(node)
	c.events.NodeChanged(node, needed.Conditions)
	c.events.AdmissionsChanged(node, needed.Maintenance, func(admission *v1.MaintenanceAdmission) string { return c.notBackReason(s, admission) })
	return nil
}

// withdraws reports whether the stored status of a node says that it is claimed, or drained further, and the next one
// does not.
func withdraws(node *v1.Node, view *status.View) bool {
	return maintenance.IsClaimed(node) && !view.Claimed() || !view.Targets.Reaches(progress.StoredTargets(node))
}

// claims reports whether the next status of a node says that it is claimed, or that a maintenance has begun with it, and the
// stored one does not.
func claims(node *v1.Node, view *status.View) bool {
	return !maintenance.IsClaimed(node) && view.Claimed() ||
		slices.ContainsFunc(view.Admissions, func(next v1.MaintenanceAdmission) bool { return maintenance.AdmissionOf(node, next.MaintenanceUID) == nil })
}

// forgets reports whether the next admissions of a node lack one that is stored and not over: its maintenance has begun
// with the node.
func forgets(node *v1.Node, next []v1.MaintenanceAdmission) bool {
	return slices.ContainsFunc(maintenance.Admissions(node), func(stored v1.MaintenanceAdmission) bool {
		return stored.DoneTime == nil && !slices.ContainsFunc(next, func(a v1.MaintenanceAdmission) bool { return a.MaintenanceUID == stored.MaintenanceUID })
	})
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
	case !s.view.Drains():
	case s.view.CordonRefused:
		c.setWrites(s.node.Name, nil)
	default:
		// A pod that is acted on needs no request any more: there is one write for it at a time.
		acts := s.facts.actWrites(s.node, s.specs)
		writes := append(acts, writesFor(s.node.Name, s.facts.requests(progress.StoredTargets(s.node)), false)...)
		c.setWrites(s.node.Name, append(writes, writesFor(s.node.Name, s.facts.unneeded, true)...))
	}
	return true
}

// release records that the maintenances that do not claim the node any more have nothing left to
// do there. Requests on a node that is still drained do not concern them: another maintenance
// wants these, but for those of pods that all others skip. A write that is in flight may be a cordon:
// if its response is lost when nothing is left to release, nobody knows whose cordon it is.
func (c *Controller) release(s *nodeSync) bool {
	if s.writing {
		c.nodes.AddAfter(s.node.Name, pace.StaleInterval)
		return false
	}
	if write.HasTaint(s.node) && !wantsTaint(s.view) {
		return false // The next sync follows the write.
	}
	if s.published && len(s.facts.unneeded) == 0 && (s.view.Drains() || len(s.facts.withdrawals()) == 0) {
		c.enqueueMaintenances(c.progress.Release(s.node.Name, s.facts.revision))
	}
	return true
}

// recordDecisions records for each maintenance of the node what was decided there.
func (c *Controller) recordDecisions(s *nodeSync) {
	node, view := s.node, s.view
	if s.facts.nextEscalation > 0 {
		c.nodes.AddAfter(node.Name, s.facts.nextEscalation)
	}
	for i := range view.PodBlockers {
		if recheckAt := view.PodBlockers[i].RecheckAt; !recheckAt.IsZero() {
			c.nodes.AddAfter(node.Name, recheckAt.Sub(c.clock.Now()))
		}
	}
	groups, floor := view.GroupBlockers(view.PodBlockers, ""), progress.StoredTargets(node)
	for _, p := range s.facts.Participants {
		limiting := progress.LimitedBy(p, s.facts.Participants, view.Targets)
		_, detaching := view.VolumeBlockers[p.Name]
		decision := progress.Decision{
			Targets: view.Targets, LimitedBy: limiting, LimitedByOlder: progress.OlderThan(p, s.facts.Participants, limiting),
			Pending: view.Pending, Active: view.Active, Blocked: view.Blocked,
			Draining: view.State.Draining, Cordoned: view.State.Cordoned, Blockers: groups,
			Detaching: detaching, Settling: view.State.Settling, Staying: s.facts.skipped[p.Name], Unstopped: s.facts.unstopped, Escalated: view.Escalated,
		}
		own, blockers := s.facts.leftFor(p.Name), view.PodBlockers
		if own != s.facts {
			// What it keeps itself is neither left nor blocked for it.
			decision.Pending, decision.Active = own.countRequests()
			blockers, decision.Blocked = own.podBlockers(view.Targets)
		}
		if own != s.facts || detaching {
			decision.Blockers = view.GroupBlockers(blockers, p.Name)
		}
		joined := c.progress.Decide(node.Name, p.Name, decision)
		if joined && !p.Allowed.Reaches(floor) {
			c.reportFastForward(p.Name, node, floor)
		}
	}
	for i := range s.specs {
		if o := &s.specs[i]; o.Claims() && !o.Drains() {
			// What blocks pods does not concern it.
			c.progress.Decide(node.Name, o.Name, progress.Decision{Cordoned: node.Spec.Unschedulable, Blockers: view.GroupBlockers(nil, "")})
		}
		c.progress.SetFailed(node.Name, node.UID, s.specs[i].Name, hasFailed(view.Admissions, s.specs[i].UID))
		// Delayed, because many nodes change at the same time.
		c.maintenances.AddAfter(s.specs[i].Name, pace.SummaryDelay)
	}
	c.recordDelays(node.Name, c.releaseBlockers(s), s.facts.revision)
	if view.Waits {
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

// releaseBlockers returns what delays the release of the node.
func (c *Controller) releaseBlockers(s *nodeSync) []maintenance.Hold {
	var blockers []maintenance.Hold
	if s.view.Drains() {
		blockers = c.failedWithdrawals(s.node.Name, s.facts.unneeded)
	} else {
		blockers = c.failedWithdrawals(s.node.Name, s.facts.withdrawals())
	}
	if s.view.StatusBlocker != nil {
		blockers = append(blockers, *s.view.StatusBlocker)
	}
	if s.view.CordonBlocker != nil && c.mustUncordon(s.node, s.view) {
		blockers = append(blockers, *s.view.CordonBlocker)
	}
	if blocker := c.taintBlocker(s); blocker != nil {
		blockers = append(blockers, *blocker)
	}
	return blockers
}

// failedWithdrawals returns a blocker for each pod whose eviction is still requested because the
// withdrawal fails.
func (c *Controller) failedWithdrawals(node string, pods []*v1.Pod) []maintenance.Hold {
	var blockers []maintenance.Hold
	for _, pod := range pods {
		if failed, ok := c.failures.Get(node, write.Withdrawal.Of(pod.UID)); ok && failed.Blocks() {
			blockers = append(blockers, maintenance.FailedRequest(pod, failed.Message, failed.Since))
		}
	}
	return blockers
}

// wantedWrites returns the writes for the node that are still wanted. The failures of others do
// not matter any more.
func (c *Controller) wantedWrites(s *nodeSync) sets.Set[write.Key] {
	var wanted sets.Set[write.Key]
	switch uid := s.node.UID; {
	case c.mustUncordon(s.node, s.view):
		wanted = sets.New(write.Uncordon.Of(uid))
	case s.view.Claimed() && !s.node.Spec.Unschedulable:
		wanted = sets.New(write.Status.Of(uid), write.Cordon.Of(uid))
	default:
		wanted = sets.New(write.Status.Of(uid))
	}
	if neededTaint(s) {
		wanted.Insert(write.Taint.Of(s.node.UID))
	}
	if s.view.Waits {
		wanted.Insert(write.Admission.Of(s.node.UID))
	}
	if s.view.Drains() {
		return wanted.Union(write.KeysOf(write.Request, s.facts.requests(s.view.Targets))).
			Union(write.KeysOf(write.Escalation, s.facts.acts(s.node, s.specs))).Union(write.KeysOf(write.Withdrawal, s.facts.unneeded))
	}
	return wanted.Union(write.KeysOf(write.Withdrawal, s.facts.withdrawals()))
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

// writesFor returns the requests or withdrawals for these pods of a node.
func writesFor(node string, pods []*v1.Pod, withdraw bool) []requests.Write {
	var writes []requests.Write
	for _, pod := range pods {
		writes = append(writes, requests.Write{Namespace: pod.Namespace, Pod: pod.Name, Node: node, UID: pod.UID, Withdraw: withdraw})
	}
	return writes
}
