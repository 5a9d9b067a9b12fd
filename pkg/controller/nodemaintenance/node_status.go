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
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"slices"
	"time"
)

// queueStatus queues the node if its status has to be written, at most once per pace.StatusInterval. What
// follows does not wait for it. Counts of pods alone, which change with every pod, are less urgent.
func (c *Controller) queueStatus(s *nodeSync) bool {
	needed, wait := c.dueStatus(s)
	switch {
	case needed == nil:
	case wait > 0:
		c.nodeQueue.AddAfter(s.Node.Name, wait)
	case status.DiffersInCounts(s.Node, needed):
		c.refreshQueue.Add(s.Node.Name)
	default:
		c.writeQueue.Add(s.Node.Name)
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
			c.nodeQueue.Add(s.Node.Name)
		}
		return nil, 0
	}
	return &needed.Node, max(needed.Wait, c.pacer.AfterWrite(pace.NodeStatus, s.Node.Name, s.Now, needed.Interval))
}

// publishStatus writes the status of the node, if it is due.
func (c *Controller) publishStatus(ctx context.Context, s *nodeSync) error {
	needed, wait := c.dueStatus(s)
	if needed == nil {
		return nil
	}
	node := s.Node
	if wait > 0 {
		c.nodeQueue.AddAfter(node.Name, wait)
		return nil
	}
	if s.TakesBack() {
		if err := c.confirm.Release(ctx, node, s.Specs); err != nil {
			return c.statusFailed(ctx, node, err)
		}
	}
	if status.CompletesDrain(node.Status.Conditions, needed.Conditions) {
		if err := c.confirm.Empty(ctx, node); err != nil {
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
	c.events.AdmissionsChanged(node, needed.Maintenance, s.NotBackReason)
	return nil
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
	c.ownConditions.Store(s.Node.Name, &decision.WrittenConditions{UID: s.Node.UID, Conditions: needed.Conditions})
}

// noteRewrite records that status.maintenanceStatus was written because another client has changed it, and reports that
// others keep doing so.
func (c *Controller) noteRewrite(node *v1.Node, now time.Time) {
	if c.pacer.Rewrote(pace.RevertedStatus, node.Name, c.earlierSince(node.Name, write.Status, ""), now) {
		c.events.StatusContested(node, "status.maintenanceStatus")
	}
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
	c.nodeQueue.Add(node.Name)
	return nil
}

// unrecordedInterval is for how long nothing is recorded of a maintenance that needs no admission, after
// an API server has dropped it.
const unrecordedInterval = 5 * time.Minute

// forgiveUnrecorded returns the error of a write of the status of a node, but nil if an API server has only
// dropped admissions that were not needed: its gate is off, and it knows no budgets.
func (c *Controller) forgiveUnrecorded(s *nodeSync, err error) error {
	var dropped *write.UnrecordedError
	if !errors.As(err, &dropped) {
		return err
	}
	unneeded := func(uid types.UID) bool {
		return slices.ContainsFunc(s.Specs, func(o progress.Spec) bool {
			return o.UID == uid && o.Rollout == nil && maintenance.AdmissionOf(s.Node, o.UID) == nil && !c.progress.Limits.Selects(s.Node)
		})
	}
	for uid := range dropped.UIDs {
		if !unneeded(uid) {
			return err
		}
	}
	c.unrecorded.Store(s.Node.Name, s.Now.Add(unrecordedInterval))
	return nil
}
