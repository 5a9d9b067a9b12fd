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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// wantsTaint reports whether the node should get no new pods because it comes next. One that is
// claimed gets none anyway.
func wantsTaint(view *status.View) bool {
	return view.Waits && !view.Claimed() && !view.KeepsCordon
}

// neededTaint reports whether the taint has to be added, removed, or corrected.
func neededTaint(s *nodeSync) bool {
	if !wantsTaint(s.view) {
		return write.HasTaint(s.node)
	}
	return !slices.ContainsFunc(s.node.Spec.Taints, func(t v1.Taint) bool {
		return write.IsPlannedTaint(t) && t.Effect == v1.TaintEffectPreferNoSchedule && t.Value == ""
	})
}

// queueTaint queues the node if its taint has to be written now. What follows does not wait for it.
func (c *Controller) queueTaint(s *nodeSync) bool {
	if wantsTaint(s.view) {
		c.pacer.Forget(pace.RevertedUntaint, s.node.Name)
	} else {
		c.pacer.Forget(pace.RevertedTaint, s.node.Name)
	}
	if !neededTaint(s) {
		return true
	}
	if wait := c.taintWait(s); wait > 0 {
		c.nodes.AddAfter(s.node.Name, wait)
	} else {
		c.writes.Add(s.node.Name)
	}
	return true
}

// taintWait returns the delay before the next attempt to write the taint. If another client keeps removing,
// changing or adding it, it has the pace of contested cordons.
func (c *Controller) taintWait(s *nodeSync) time.Duration {
	return max(c.failures.Wait(s.node.Name, write.Taint.Of(s.node.UID), s.now), c.pacer.AfterRevert(revertedTaint(s), s.node.Name, s.now))
}

// revertedTaint is what others do if the taint is not as it has to be now.
func revertedTaint(s *nodeSync) pace.Kind {
	if wantsTaint(s.view) {
		return pace.RevertedTaint
	}
	return pace.RevertedUntaint
}

// reconcileTaint adds or removes the taint, if that is due. Nothing else waits for one that is refused.
func (c *Controller) reconcileTaint(ctx context.Context, s *nodeSync) error {
	if !neededTaint(s) {
		return nil
	}
	if wait := c.taintWait(s); wait > 0 {
		c.nodes.AddAfter(s.node.Name, wait)
		return nil
	}
	written, err := c.writer.SetTaint(ctx, s.node, wantsTaint(s.view))
	if err != nil {
		return c.taintFailed(ctx, s.node, err)
	}
	c.failures.Succeeded(s.node.Name, write.Taint.Of(s.node.UID))
	if c.pacer.Rewrote(revertedTaint(s), s.node.Name, c.earlierSince(s.node.Name, write.Taint, ""), s.now) {
		c.events.TaintContested(written, wantsTaint(s.view))
	}
	s.node = written
	c.enqueueAfterWrite(written)
	return nil
}

// taintFailed records that the taint could not be written, like cordonFailed.
func (c *Controller) taintFailed(ctx context.Context, node *v1.Node, err error) error {
	if ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	if c.failures.Failed(node.Name, write.Taint.Of(node.UID), err, c.earlierSince(node.Name, write.Taint, ""), c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Failed to write the taint of the node, will retry", "node", klog.KObj(node))
	}
	c.events.TaintFailed(node, err)
	// At once, to publish the blocker.
	c.nodes.Add(node.Name)
	return nil
}

// taintBlocker returns what keeps the taint of a node that is to be released, or nil.
func (c *Controller) taintBlocker(s *nodeSync) *maintenance.Hold {
	if wantsTaint(s.view) || !write.HasTaint(s.node) {
		return nil
	}
	if failed, _ := c.failures.Get(s.node.Name, write.Taint.Of(s.node.UID)); failed.Blocks() {
		return ptr.To(maintenance.FailedCordon(s.node.Name, failed.Message, failed.Since))
	}
	if undone, is := c.pacer.Contested(pace.RevertedUntaint, s.node.Name, true, s.now); is {
		return ptr.To(maintenance.FailedCordon(s.node.Name, taintContested, undone.Since))
	}
	return nil
}
