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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// queueTaint queues the node if its taint has to be written now. What follows does not wait for it.
func (c *Controller) queueTaint(s *nodeSync) bool {
	if s.WantsTaint() {
		c.pacer.Forget(pace.RevertedUntaint, s.Node.Name)
	} else {
		c.pacer.Forget(pace.RevertedTaint, s.Node.Name)
	}
	if !s.NeedsTaint() {
		return true
	}
	if wait := s.TaintWait(); wait > 0 {
		c.nodeQueue.AddAfter(s.Node.Name, wait)
	} else {
		c.writeQueue.Add(s.Node.Name)
	}
	return true
}

// reconcileTaint adds or removes the taint, if that is due. Nothing else waits for one that is refused.
func (c *Controller) reconcileTaint(ctx context.Context, s *nodeSync) error {
	if !s.NeedsTaint() {
		return nil
	}
	if wait := s.TaintWait(); wait > 0 {
		c.nodeQueue.AddAfter(s.Node.Name, wait)
		return nil
	}
	written, err := c.writer.SetTaint(ctx, s.Node, s.WantsTaint())
	if err != nil {
		return c.taintFailed(ctx, s.Node, err)
	}
	c.failures.Succeeded(s.Node.Name, write.Taint.Of(s.Node.UID))
	if c.pacer.Rewrote(s.RevertedTaint(), s.Node.Name, c.earlierSince(s.Node.Name, write.Taint, ""), s.Now) {
		c.events.TaintContested(written, s.WantsTaint())
	}
	s.Node = written
	s.Memories = c.remember(written, s.Now)
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
	c.nodeQueue.Add(node.Name)
	return nil
}
