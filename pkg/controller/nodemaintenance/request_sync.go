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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// writeRequests makes the writes of the queue until it shuts down. They are no part of the syncs of
// nodes, because an admission webhook of a tenant may be slow.
func (c *Controller) writeRequests(ctx context.Context) {
	for {
		w, ok := c.requests.Get()
		if !ok {
			return
		}
		if write := c.nextWrite(w); write != nil {
			c.recordOutcome(ctx, w, write(ctx))
		}
		c.endWrite(w)
	}
}

// endWrite enqueues the node: what follows from a write or its failure is decided in its sync.
func (c *Controller) endWrite(w requests.Write) {
	c.requests.Done(w)
	c.nodeQueue.AddAfter(w.Node, pace.StaleInterval)
}

// nextWrite returns the write that the last sync of the node has decided on, or nil if it is not
// wanted any more: since then the pod, the node or the maintenances may have changed.
func (c *Controller) nextWrite(w requests.Write) func(context.Context) error {
	pod, err := c.podLister.Pods(w.Namespace).Get(w.Pod)
	if err != nil || pod.UID != w.UID || pod.Spec.NodeName != w.Node || !maintenance.IsLeft(pod) {
		return nil
	}
	node, err := c.nodeLister.Get(w.Node)
	if err != nil {
		node = nil // The only error of the lister of a cache is NotFound.
	}
	if _, writing := c.writing.Load(w.Node); writing && !w.Withdraw {
		// It may clear the targets that the cache has. It began before this write, or it waits for it:
		// see neededStatus. The sync of the node, which follows, decides again.
		return nil
	}
	specs, _ := c.progress.Selecting(node)
	draining := decision.DrainingNames(specs)
	c.requests.Decided(w, draining)
	verdict, err := c.verdictOn(pod, specs)
	if err != nil {
		return nil // It has just ended.
	}
	facts := c.readPod(pod, verdict, nil, c.clock.Now())
	switch {
	case w.Withdraw && (len(draining) == 0 || !verdict.Wanted) && facts.NeedsWithdrawal():
		return func(ctx context.Context) error {
			if node != nil {
				if err := c.confirm.Release(ctx, node, specs); err != nil {
					return err
				}
			}
			return c.writer.Withdraw(ctx, pod, facts.Request)
		}
	case w.Act != "" && len(verdict.KeptBy) == 0:
		return c.act(w, &facts, node, specs)
	case !w.Withdraw && w.Act == "" && len(draining) > 0 && verdict.Action == coordinationv1alpha1.NodeMaintenancePodDrain && !c.isCordonRefused(node) && facts.NeedsRequest(progress.StoredTargets(node)):
		return func(ctx context.Context) error {
			if c.contests.Count(w.Node, w.UID, c.clock.Now()) > 0 {
				c.contests.Withdrawn(w.Node, w.UID, c.withdrawnBy(pod))
			}
			if err := c.confirm.Drain(ctx, pod, node, specs); err != nil {
				return err
			}
			return c.writer.Request(ctx, pod)
		}
	}
	return nil
}

// withdrawnBy returns the user who has withdrawn the request for the pod, or "" if it is gone.
func (c *Controller) withdrawnBy(pod *v1.Pod) string {
	request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err != nil {
		return "" // The only error of a lister of a cache is NotFound.
	}
	return request.Annotations[coordinationv1alpha1.EvictionWithdrawnByAnnotation]
}

// recordOutcome records whether a write has succeeded. One that has failed is retried later.
func (c *Controller) recordOutcome(ctx context.Context, w requests.Write, err error) {
	switch {
	case err == nil:
		c.failures.Succeeded(w.Node, w.Key())
		switch w.Key().Kind {
		case write.Request:
			c.contests.Wrote(w.Node, w.UID, c.earlierSince(w.Node, write.Request, w.Namespace), c.clock.Now())
		case write.Withdrawal:
			c.contests.Withdrew(w.Node, w.UID)
		}
		return
	case ctx.Err() != nil:
		return // The controller stops.
	}
	c.failures.Failed(w.Node, w.Key(), err, c.earlierSince(w.Node, w.Key().Kind, w.Namespace), c.clock.Now())
	if failed, _ := c.failures.Get(w.Node, w.Key()); write.IsOutdated(err) && (w.Act != "" || !failed.Blocks()) {
		return // The decision is old, and nobody has refused anything. If that goes on, a blocker says so.
	}
	pod, missing := c.podLister.Pods(w.Namespace).Get(w.Pod)
	if missing != nil {
		return
	}
	switch {
	case w.Act != "":
		c.events.EscalationFailed(pod, err)
		return
	case !w.Withdraw:
		c.events.RequestFailed(pod, err)
		return
	}
	if node, missing := c.nodeLister.Get(w.Node); missing == nil {
		c.events.WithdrawalFailed(node, pod, err)
	}
}
