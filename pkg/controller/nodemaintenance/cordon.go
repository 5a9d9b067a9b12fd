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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// cordonWrite is a write of spec.unschedulable that a node needs.
type cordonWrite struct {
	write.Key
	// again is whether another client has uncordoned the node.
	again bool
}

// neededCordon returns the write that the node needs, and after which delay: it is unschedulable
// while a maintenance claims it, and schedulable once when the last claim ends. A node that was never
// claimed stays as it is: nil.
func (c *Controller) neededCordon(s *nodeSync) (needed *cordonWrite, wait time.Duration) {
	node := s.node
	switch {
	case s.view.Claimed() && !node.Spec.Unschedulable:
		// A node that could not be cordoned yet was not uncordoned by another client.
		needed = &cordonWrite{write.Cordon.Of(node.UID), maintenance.IsClaimed(node) && !c.hasUncordoned(node) && !s.view.CordonRefused}
	case c.mustUncordon(node, s.view):
		needed = &cordonWrite{Key: write.Uncordon.Of(node.UID)}
	default:
		return nil, 0
	}
	wait = c.failures.Wait(node.Name, needed.Key, s.now)
	if needed.again {
		wait = max(wait, c.pacer.AfterRevert(pace.RevertedCordon, node.Name, s.now))
	}
	return needed, max(wait, c.reclaimWait(node, s.view, s.now))
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

// reclaimWait returns the delay before a node may be claimed again that others select and deselect again and again; 0
// if it is claimed already, or not to be.
func (c *Controller) reclaimWait(node *v1.Node, view *status.View, now time.Time) time.Duration {
	if !view.Claimed() || node.Spec.Unschedulable || maintenance.IsClaimed(node) && !c.hasUncordoned(node) {
		return 0
	}
	return c.pacer.AfterRevert(pace.RevertedSelection, node.Name, now)
}

// noteUncordoned records that a node is schedulable: now, and not when it is released, because
// withdrawals may take long.
func (c *Controller) noteUncordoned(s *nodeSync) {
	if s.writing {
		return // The write may cordon it.
	}
	if !s.node.Spec.Unschedulable && (c.hasUncordoned(s.node) || !maintenance.IsClaimed(s.node)) {
		c.progress.Uncordoned(s.node.Name, s.facts.revision)
	}
}

// reconcileCordon cordons or uncordons the node, if that is due. A write, or its failure, gives the
// node a new view.
func (c *Controller) reconcileCordon(ctx context.Context, s *nodeSync) (err error) {
	needed, wait := c.neededCordon(s)
	switch {
	case needed == nil:
		return nil
	case wait > 0:
		c.nodes.AddAfter(s.node.Name, wait)
		return nil
	case needed.Kind == write.Uncordon:
		err = c.uncordon(ctx, s, needed)
	default:
		err = c.cordon(ctx, s, needed)
	}
	// The written node has the latest targets, and may be newer than the cache. Its counts may be
	// outdated, so that only a sync records them.
	s.view = c.computeView(s)
	c.noteUncordoned(s)
	c.nodes.Add(s.node.Name)
	return err
}

// cordon makes the node unschedulable. If another client keeps uncordoning it, this emits an event
// and slows down.
func (c *Controller) cordon(ctx context.Context, s *nodeSync, key *cordonWrite) error {
	node := s.node
	written, err := c.writeCordon(ctx, node, key)
	if err != nil {
		return c.cordonFailed(ctx, node, key.Key, err)
	}
	s.node = written
	c.ownCordons.Store(node.Name, ownCordon{node.UID, true})
	c.enqueueAfterWrite(node)
	c.failures.Succeeded(node.Name, key.Key)
	if !key.again {
		c.events.Cordoned(node, s.view.Claiming)
		return nil
	}
	metrics.CountContestedCordon()
	if c.pacer.Rewrote(pace.RevertedCordon, node.Name, c.earlierSince(node.Name, write.Cordon, ""), s.now) {
		c.events.Contested(node, s.view.Claiming)
	}
	return nil
}

// writeCordon writes that the node is unschedulable, and returns it as it is then.
func (c *Controller) writeCordon(ctx context.Context, node *v1.Node, key *cordonWrite) (*v1.Node, error) {
	if !key.again && write.HasTaint(node) {
		// In one write, because every node of a rollout that has waited comes here.
		written, err := c.writer.CordonPlanned(ctx, node)
		if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return written, err
		}
		// What refuses the change of a taint must not keep the node from being cordoned.
		klog.FromContext(ctx).V(2).Info("Will cordon the node without removing its taint", "node", klog.KObj(node), "err", err)
	}
	return c.writer.Cordon(ctx, node)
}

// uncordon makes the node schedulable, unless another client has cordoned it.
func (c *Controller) uncordon(ctx context.Context, s *nodeSync, write *cordonWrite) error {
	node := s.node
	if err := c.confirmRelease(ctx, node, s.specs); err != nil {
		return c.cordonFailed(ctx, node, write.Key, err)
	}
	written, manager, err := c.writer.Uncordon(ctx, node, c.cordonedBefore)
	if err != nil {
		return c.cordonFailed(ctx, node, write.Key, err)
	}
	if manager != "" {
		c.leaveCordoned(s, write, manager)
		return nil
	}
	s.node = written
	c.failures.Succeeded(node.Name, write.Key)
	c.ownCordons.Store(node.Name, ownCordon{node.UID, false})
	c.events.Uncordoned(node)
	return nil
}

// cordonedBefore says who has cordoned a node, if that was somebody before its maintenance, and the managed fields do
// not say any more who it was: the taint that each cordon causes has a time. Otherwise it is "".
func (c *Controller) cordonedBefore(node *v1.Node) string {
	since := c.mayBeCordonedSince(node)
	isOlder := func(taint v1.Taint) bool {
		return taint.Key == v1.TaintNodeUnschedulable && taint.TimeAdded != nil && taint.TimeAdded.Time.Before(since.Add(-maintenance.MaxClockDifference))
	}
	if !since.IsZero() && slices.ContainsFunc(node.Spec.Taints, isOlder) {
		return "a client before its maintenance"
	}
	return ""
}

// mayBeCordonedSince returns since when this controller may have cordoned a node that is released; zero if that is not
// known. A node that waits for its admission after the stage Cordon stays cordoned, and is claimed anew.
func (c *Controller) mayBeCordonedSince(node *v1.Node) time.Time {
	since := maintenance.ClaimedSince(node, c.clock.Now())
	for _, name := range c.progress.Concerning(node.Name) {
		m, err := c.maintenanceLister.Get(name)
		if err != nil || progress.CordonedUntil(&m.Status) == nil {
			continue
		}
		if begun := progress.StartOf(&m.Status, coordinationv1alpha1.NodeMaintenanceStageCordon); since.IsZero() || begun.Time.Before(since) {
			since = begun.Time
		}
	}
	return since
}

// leaveCordoned records that the node is released as it is: somebody has cordoned it before or during its
// maintenance, and wants it to stay so.
func (c *Controller) leaveCordoned(s *nodeSync, write *cordonWrite, manager string) {
	c.failures.Succeeded(s.node.Name, write.Key)
	c.ownCordons.Store(s.node.Name, ownCordon{s.node.UID, false})
	c.progress.Uncordoned(s.node.Name, s.facts.revision)
	c.events.LeftCordoned(s.node, manager)
}

// cordonFailed records that the node cannot be cordoned or uncordoned, which is retried later. It
// returns errors that say nothing about that: the node has changed or is gone, or the controller
// stops. The log gets the error once. What the cache does not have yet is no blocker before that has
// gone on for a while.
func (c *Controller) cordonFailed(ctx context.Context, node *v1.Node, key write.Key, err error) error {
	if ctx.Err() != nil || isOutdated(err) && !write.IsUnseen(err) {
		return err
	}
	if c.failures.Failed(node.Name, key, err, c.earlierSince(node.Name, key.Kind, ""), c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Failed to cordon or uncordon the node, will retry", "node", klog.KObj(node))
	}
	if failed, _ := c.failures.Get(node.Name, key); !write.IsUnseen(err) || failed.Blocks() {
		c.events.CordonFailed(node, err)
	}
	c.nodes.AddAfter(node.Name, c.failures.Wait(node.Name, key, c.clock.Now()))
	return nil
}

// isCordonRefused reports whether the node could not be cordoned.
func (c *Controller) isCordonRefused(node *v1.Node) bool {
	_, failed := c.failures.Get(node.Name, write.Cordon.Of(node.UID))
	return failed && !node.Spec.Unschedulable
}

// mustUncordon reports whether the node has to be made schedulable.
func (c *Controller) mustUncordon(node *v1.Node, view *status.View) bool {
	return !view.Claimed() && !view.KeepsCordon && c.isOwnCordon(node)
}

// isOwnCordon reports whether the node may be unschedulable because of this controller: the status of
// the node says that it is or was claimed, or a maintenance that completes may have cordoned it.
// After this controller has uncordoned it, or has left it cordoned, only another client can have done
// that. Who has, the API server says when the node is released: see Uncordon of the writer.
func (c *Controller) isOwnCordon(node *v1.Node) bool {
	if own, written := c.ownCordon(node); written {
		return node.Spec.Unschedulable && own.unschedulable
	}
	return node.Spec.Unschedulable && (maintenance.IsClaimed(node) || c.progress.IsCordoned(node.Name))
}

// ownCordon is the value that was last written to spec.unschedulable of a node.
type ownCordon struct {
	uid           types.UID
	unschedulable bool
}

// ownCordon returns what was written, and false if the status of the node says the same already.
func (c *Controller) ownCordon(node *v1.Node) (ownCordon, bool) {
	found, ok := c.ownCordons.Load(node.Name)
	if !ok || found.(ownCordon).uid != node.UID {
		return ownCordon{}, false
	}
	return found.(ownCordon), true
}

// hasUncordoned reports whether the node was made schedulable, and its status is not cleared yet.
func (c *Controller) hasUncordoned(node *v1.Node) bool {
	own, written := c.ownCordon(node)
	return written && !own.unschedulable
}

// forgetOwnCordon forgets the last write of spec.unschedulable if it is not needed any more: the
// status of the node says the same, another client has uncordoned the node, or a maintenance
// claims a node again that was uncordoned.
func (c *Controller) forgetOwnCordon(s *nodeSync) {
	own, written := c.ownCordon(s.node)
	if !written {
		return
	}
	published := own.unschedulable == maintenance.IsClaimed(s.node)
	reverted := own.unschedulable && !s.node.Spec.Unschedulable
	claimedAgain := !own.unschedulable && s.view.Claimed() && c.reclaimWait(s.node, s.view, s.now) == 0
	if published || reverted || claimedAgain {
		c.ownCordons.Delete(s.node.Name)
	}
}
