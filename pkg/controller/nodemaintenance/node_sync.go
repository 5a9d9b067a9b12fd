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
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
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
		c.nodeQueue.AddAfter(name, pace.StaleInterval)
		return nil
	}
	defer c.writing.Delete(name)
	s, err := c.decideLocked(name)
	if s == nil || err != nil {
		return err
	}
	needed, wait := s.NeededCordon()
	cordons := needed != nil && needed.Kind == write.Cordon && wait <= 0
	if cordons && c.confirm.AreUnserved(ctx) {
		klog.FromContext(ctx).V(2).Info("Not cordoning the node, because kube-apiserver does not serve NodeMaintenances", "node", klog.KObj(s.Node))
		c.nodeQueue.AddAfter(name, unservedInterval)
		return nil
	}
	if cordons || s.Takes() {
		// Once for both: who has cordoned a node, if only maybe, has to record that.
		if err := c.confirm.Claims(ctx, s.Node, s.Specs); cordons && err != nil {
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

// unservedInterval is how soon a node is looked at again that is not cordoned because kube-apiserver does not serve
// NodeMaintenances.
const unservedInterval = 10 * time.Second

// refreshNode is writeNode where only counts are outdated: at most one write per pace.RefreshInterval.
func (c *Controller) refreshNode(ctx context.Context, name string) error {
	err := c.writeNode(ctx, name)
	select {
	case <-c.clock.After(pace.RefreshInterval):
	case <-ctx.Done():
	}
	return err
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
		c.nodeQueue.AddAfter(s.Node.Name, wait)
	default:
		c.writeQueue.Add(s.Node.Name)
		return false
	}
	return true
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
// do there. A write that is in flight may be a cordon: if its response is lost when nothing is left to
// release, nobody knows whose cordon it is.
func (c *Controller) release(s *nodeSync) bool {
	if s.writing {
		c.nodeQueue.AddAfter(s.Node.Name, pace.StaleInterval)
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
