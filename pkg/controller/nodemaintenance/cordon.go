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
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// noteUncordoned records that a node is schedulable: now, and not when it is released, because
// withdrawals may take long.
func (c *Controller) noteUncordoned(s *nodeSync) {
	if s.writing {
		return // The write may cordon it.
	}
	if s.IsReleased() {
		c.progress.Uncordoned(s.Node.Name, s.Revision)
	}
}

// reconcileCordon cordons or uncordons the node, if that is due. After a write, or its failure,
// it is decided on again.
func (c *Controller) reconcileCordon(ctx context.Context, s *nodeSync) (err error) {
	needed, wait := s.NeededCordon()
	switch {
	case needed == nil:
		return nil
	case wait > 0:
		c.nodeQueue.AddAfter(s.Node.Name, wait)
		return nil
	case needed.Kind == write.Uncordon:
		err = c.uncordon(ctx, s, needed)
	default:
		err = c.cordon(ctx, s, needed)
	}
	c.decideAgain(s)
	c.noteUncordoned(s)
	c.nodeQueue.Add(s.Node.Name)
	return err
}

// cordon makes the node unschedulable. If another client keeps uncordoning it, this emits an event
// and slows down.
func (c *Controller) cordon(ctx context.Context, s *nodeSync, key *decision.CordonWrite) error {
	node := s.Node
	written, err := c.writeCordon(ctx, node, key)
	if err != nil {
		return c.cordonFailed(ctx, node, key.Key, err)
	}
	s.Node = written
	c.ownCordons.Store(node.Name, decision.OwnCordon{UID: node.UID, Unschedulable: true})
	c.enqueueAfterWrite(node)
	c.failures.Succeeded(node.Name, key.Key)
	if !key.Again {
		c.events.Cordoned(node, s.View.Claiming)
		return nil
	}
	metrics.CountContestedCordon()
	if c.pacer.Rewrote(pace.RevertedCordon, node.Name, c.earlierSince(node.Name, write.Cordon, ""), s.Now) {
		c.events.Contested(node, s.View.Claiming)
	}
	return nil
}

// writeCordon writes that the node is unschedulable, and returns it as it is then.
func (c *Controller) writeCordon(ctx context.Context, node *v1.Node, key *decision.CordonWrite) (*v1.Node, error) {
	if !key.Again && write.HasTaint(node) {
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
func (c *Controller) uncordon(ctx context.Context, s *nodeSync, write *decision.CordonWrite) error {
	node := s.Node
	if err := c.confirm.Release(ctx, node, s.Specs); err != nil {
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
	s.Node = written
	c.failures.Succeeded(node.Name, write.Key)
	c.ownCordons.Store(node.Name, decision.OwnCordon{UID: node.UID, Unschedulable: false})
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
func (c *Controller) leaveCordoned(s *nodeSync, write *decision.CordonWrite, manager string) {
	c.failures.Succeeded(s.Node.Name, write.Key)
	c.ownCordons.Store(s.Node.Name, decision.OwnCordon{UID: s.Node.UID, Unschedulable: false})
	c.progress.Uncordoned(s.Node.Name, s.Revision)
	c.events.LeftCordoned(s.Node, manager)
}

// cordonFailed records that the node cannot be cordoned or uncordoned, which is retried later. It
// returns errors that say nothing about that: the node has changed or is gone, or the controller
// stops. The log gets the error once. What the cache does not have yet is no blocker before that has
// gone on for a while.
func (c *Controller) cordonFailed(ctx context.Context, node *v1.Node, key write.Key, err error) error {
	if ctx.Err() != nil || write.IsOutdated(err) && !write.IsUnseen(err) {
		return err
	}
	if c.failures.Failed(node.Name, key, err, c.earlierSince(node.Name, key.Kind, ""), c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Failed to cordon or uncordon the node, will retry", "node", klog.KObj(node))
	}
	if failed, _ := c.failures.Get(node.Name, key); !write.IsUnseen(err) || failed.Blocks() {
		c.events.CordonFailed(node, err)
	}
	c.nodeQueue.AddAfter(node.Name, c.failures.Wait(node.Name, key, c.clock.Now()))
	return nil
}
