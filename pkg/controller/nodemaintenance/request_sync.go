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
	"k8s.io/component-helpers/node/maintenance"
)

// writeRequests makes the writes that are due, until the queue shuts down. They are made
// outside of the syncs of nodes, because an admission webhook of a tenant may take its time.
func (c *Controller) writeRequests(ctx context.Context) {
	for {
		w, ok := c.requests.get()
		if !ok {
			return
		}
		if write := c.nextWrite(w); write != nil {
			c.wroteRequest(ctx, w, write(ctx))
		}
		c.endWrite(w)
	}
}

// endWrite has the node looked at: everything that follows from a write, or its failure, is
// decided there.
func (c *Controller) endWrite(w requestWrite) {
	c.requests.done(w)
	c.nodes.AddAfter(w.node, staleInterval)
}

// nextWrite returns the write that was decided on when the node was looked at last, or nil if
// it is not wanted any more: the caches and the ledger may be further since.
func (c *Controller) nextWrite(w requestWrite) func(context.Context) error {
	pod, err := c.podLister.Pods(w.namespace).Get(w.pod)
	if err != nil || pod.UID != w.uid || pod.Spec.NodeName != w.node || !maintenance.IsLeft(pod) {
		return nil
	}
	node, err := c.nodeLister.Get(w.node)
	if err != nil {
		node = nil // A lister of a cache has no errors but that there is none.
	}
	draining := c.drainedFor(node)
	c.requests.decided(w, draining)
	facts := c.lookAtPod(pod, nil, c.clock.Now())
	switch {
	case w.withdraw && len(draining) == 0 && facts.isWithdrawal():
		return func(ctx context.Context) error { return c.writer.withdraw(ctx, pod, facts.request) }
	case !w.withdraw && len(draining) > 0 && !c.isCordonRefused(node) && facts.isRequest(storedTargets(node)):
		return func(ctx context.Context) error { return c.writer.request(ctx, pod) }
	}
	return nil
}

// drainedFor returns the maintenances that drain the node now; none for one that is gone.
func (c *Controller) drainedFor(node *v1.Node) []string {
	names := []string{}
	orders, _ := c.ledger.selecting(node)
	for i := range orders {
		if orders[i].drains() {
			names = append(names, orders[i].name)
		}
	}
	return names
}

// wroteRequest notes the outcome of a write. One that has failed is tried again later.
func (c *Controller) wroteRequest(ctx context.Context, w requestWrite, err error) {
	uid := w.uid
	if w.withdraw {
		uid = withdrawalOf(uid)
	}
	switch {
	case err == nil:
		c.failures.succeeded(w.node, uid)
		return
	case ctx.Err() != nil:
		return // The controller stops.
	}
	c.failures.failed(w.node, uid, err, c.clock.Now())
	pod, missing := c.podLister.Pods(w.namespace).Get(w.pod)
	if missing != nil {
		return
	}
	if !w.withdraw {
		c.events.requestFailed(pod, err)
		return
	}
	if node, missing := c.nodeLister.Get(w.node); missing == nil {
		c.events.withdrawalFailed(node, pod, err)
	}
}
