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
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
)

// syncNode reads one node and its pods, decides, and writes: first whether the node
// takes pods, then which pods leave it, then the requests that they do. A node without
// a maintenance that never had one is left alone.
func (c *Controller) syncNode(ctx context.Context, name string) error {
	if !c.writer.isCurrentNode(name) {
		// The event that brings our last write need not bring this node: the pod that it was
		// about may have gone since.
		c.nodes.AddAfter(name, staleInterval)
		return nil
	}
	now := c.clock.Now()
	node, err := c.nodeLister.Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the node: %w", err)
	}
	if apierrors.IsNotFound(err) {
		node = nil
	}
	orders, observed := c.ledger.selecting(node)
	left, others := c.ledger.leave(name, orders)
	c.enqueueNodes(others)
	c.enqueueMaintenances(left)
	facts, err := c.look(name, orders, now)
	if err != nil {
		return err
	}
	if node == nil {
		if err := c.withdraw(ctx, facts.withdrawals()); err != nil {
			return err
		}
		c.writer.forgetNode(name)
		c.nodeWrites.forget(name)
		c.contests.forget(name)
		c.enqueueMaintenances(c.ledger.release(name, observed))
		return nil
	}
	facts.observed = observed
	return c.writeNode(ctx, node, orders, facts, now)
}

// writeNode brings a node in line with what was decided. What is left to do when it
// returns without an error is in the queue, or brought by an event.
func (c *Controller) writeNode(ctx context.Context, node *v1.Node, orders []order, facts *nodeFacts, now time.Time) error {
	view := c.view(node, orders, facts)
	if view.claimed && len(view.holding) == 0 {
		return nil // Not given back just to be taken again.
	}
	if facts.ready {
		c.recordNode(node, orders, facts, view)
	}
	written, err := c.syncCordon(ctx, node, view, now)
	if err != nil {
		c.events.cordonFailed(node, err)
		return err
	}
	if !facts.ready {
		return nil
	}
	if written != node {
		// The node as it is now, not as it was read, says what was granted before.
		node, view = written, c.view(written, orders, facts)
		c.recordNode(node, orders, facts, view)
	}
	settled, err := c.syncNodeStatus(ctx, node, view, now)
	if err != nil {
		return err
	}
	if len(view.draining) == 0 {
		if err := c.withdraw(ctx, facts.withdrawals()); err != nil {
			return err
		}
	}
	if settled {
		// Those that are completed have nothing to do with what others still want.
		c.enqueueMaintenances(c.ledger.release(node.Name, facts.observed))
	}
	if len(view.draining) > 0 && sameTargets(node, view.targets) {
		// Not before the node itself says which pods leave it.
		return c.request(ctx, node, facts.requests(view.targets))
	}
	return nil
}

// nodeFacts is what was found on a node.
type nodeFacts struct {
	recount
	// observed is how far the ledger was.
	observed int
	pods     []podFacts
}

// podFacts is a pod that is left on a node, with its unfinished request, if it has one.
type podFacts struct {
	*v1.Pod
	request *coordinationv1alpha1.EvictionRequest
	// over is whether asking is of no use: a request for the pod was given up for good, or
	// says that the pod is gone, which the cache of pods does not know yet.
	over bool
	hold maintenance.Hold
	held bool
}

// look finds the pods of a node and what keeps them there.
func (c *Controller) look(name string, orders []order, now time.Time) (*nodeFacts, error) {
	objects, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, name)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the node: %w", err)
	}
	facts := &nodeFacts{}
	var pods []*v1.Pod
	for _, object := range objects {
		pod := object.(*v1.Pod)
		if !maintenance.IsLeft(pod) {
			continue
		}
		pods = append(pods, pod)
		facts.pods = append(facts.pods, c.lookAtPod(pod, now))
	}
	facts.recount = c.ledger.countPods(name, orders, pods)
	c.enqueueNodes(facts.others)
	return facts, nil
}

func (c *Controller) lookAtPod(pod *v1.Pod, now time.Time) podFacts {
	facts := podFacts{Pod: pod}
	request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	if err == nil {
		facts.hold, facts.held = maintenance.HoldOf(pod, request, c.budgetsOf, now)
		if isFinished(request) {
			facts.over = isRefused(request) || evictionrequest.StateOf(request) == evictionrequest.StateEvicted
		} else {
			facts.request = request
		}
		return facts
	}
	facts.hold, facts.held = maintenance.HoldOf(pod, nil, c.budgetsOf, now)
	return facts
}

// budgetsOf returns the budgets that select the pod; none on an error, which only says
// that there are none.
func (c *Controller) budgetsOf(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	budgets, _ := c.budgetLister.GetPodPodDisruptionBudgets(pod) //nolint:errcheck // See above.
	return budgets
}

// view sums up what the status of the node says.
func (c *Controller) view(node *v1.Node, orders []order, facts *nodeFacts) *nodeView {
	view := &nodeView{}
	for i := range orders {
		o := &orders[i]
		if o.plans() {
			view.planning = append(view.planning, o.name)
		}
		if o.claims() {
			view.claimed = true
		}
		if o.holdsNode() {
			view.holding = append(view.holding, o.name)
		}
		if o.drains() {
			view.draining = append(view.draining, o.name)
		}
	}
	if len(view.draining) == 0 || len(facts.members) == 0 {
		return view
	}
	view.targets = nodeTargets(facts.members, storedTargets(node), facts.anyTaken)
	view.state.left = len(facts.pods) > 0
	for _, pod := range facts.pods {
		if pod.request != nil {
			view.active++
		} else {
			view.pending++
		}
	}
	view.state.draining = facts.anyTaken(view.targets)
	view.state.limitedBy = limiters(eldest(facts.members), facts.members, view.targets)
	view.state.waitingFor = c.ledger.blamedBy(holders(facts.members, view.targets))
	return view
}

// storedTargets are the targets that the node has in the cache: the floor under the next
// ones. What is unreadable counts as nothing: the API server validates it.
func storedTargets(node *v1.Node) maintenance.Targets {
	if node.Status.MaintenanceStatus == nil {
		return maintenance.Targets{}
	}
	targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
	if err != nil {
		return maintenance.Targets{}
	}
	return targets
}

func sameTargets(node *v1.Node, targets maintenance.Targets) bool {
	return storedTargets(node).String() == targets.String()
}

// recordNode tells the ledger what the node means for each of its maintenances.
func (c *Controller) recordNode(node *v1.Node, orders []order, facts *nodeFacts, view *nodeView) {
	var holds []maintenance.Hold
	blocked := 0
	for _, pod := range facts.pods {
		if !pod.held || len(view.draining) == 0 {
			continue
		}
		holds = append(holds, pod.hold)
		if pod.hold.Cause.Blocked() {
			blocked++
		}
		if !pod.hold.RecheckAt.IsZero() {
			c.nodes.AddAfter(node.Name, pod.hold.RecheckAt.Sub(c.clock.Now()))
		}
	}
	groups, floor := maintenance.GroupHolds(holds), storedTargets(node)
	for _, m := range facts.members {
		limited := limiters(m, facts.members, view.targets)
		joined, others := c.ledger.record(node.Name, m.name, nodeCount{
			targets: view.targets, limitedBy: limited, limitedByElders: elders(m, facts.members, limited),
			pending: view.pending, active: view.active, blocked: blocked,
			draining: view.state.draining, holds: groups,
		})
		c.enqueueNodes(others)
		if joined && !m.grant.Reaches(floor) {
			c.fastForwarded(m.name, node, floor)
		}
	}
	for i := range orders {
		// Many nodes have something to say at the same time.
		c.maintenances.AddAfter(orders[i].name, lookInterval)
	}
}

// fastForwarded tells of a newcomer that finds a node further than it would have it.
func (c *Controller) fastForwarded(name string, node *v1.Node, floor maintenance.Targets) {
	if m, err := c.maintenanceLister.Get(name); err == nil {
		c.events.fastForwarded(m, node, floor)
	}
}

// syncCordon makes the node unschedulable while a maintenance holds it, and schedulable
// once when the last one is over. A node that none ever held is left as it is. It returns
// the node as it is then.
func (c *Controller) syncCordon(ctx context.Context, node *v1.Node, view *nodeView, now time.Time) (*v1.Node, error) {
	held := len(view.holding) > 0
	switch {
	case held && !node.Spec.Unschedulable:
		return c.cordon(ctx, node, view, now)
	case !held && node.Spec.Unschedulable && (node.Status.MaintenanceStatus != nil || c.ledger.isUnreleased(node.Name)):
		written, err := c.writer.setUnschedulable(ctx, node, false)
		if err != nil {
			return nil, err
		}
		c.contests.forget(node.Name)
		c.events.uncordoned(node)
		return written, nil
	}
	return node, nil
}

// cordon makes the node unschedulable. Where somebody makes it schedulable again and
// again, this ends in an event and a pause instead of a race.
func (c *Controller) cordon(ctx context.Context, node *v1.Node, view *nodeView, now time.Time) (*v1.Node, error) {
	again := node.Status.MaintenanceStatus != nil
	if again {
		if wait := c.contests.wait(node.Name, now); wait > 0 {
			c.nodes.AddAfter(node.Name, wait)
			return node, nil
		}
	}
	written, err := c.writer.setUnschedulable(ctx, node, true)
	if err != nil {
		return nil, err
	}
	if !again {
		c.events.cordoned(node, view.holding)
		return written, nil
	}
	metrics.CountContestedCordon()
	if c.contests.wrote(node.Name, now) {
		c.events.contested(node, view.holding)
	}
	return written, nil
}

// syncNodeStatus writes the status if it has changed, at most once in a while, and tells
// whether the node had it already.
func (c *Controller) syncNodeStatus(ctx context.Context, node *v1.Node, view *nodeView, now time.Time) (settled bool, err error) {
	status := computeMaintenanceStatus(view)
	conditions := computeConditions(view, node.Status.Conditions, now)
	if sameNodeStatus(node, status, conditions) {
		return true, nil
	}
	if wait := c.nodeWrites.wait(node.Name, now); wait > 0 {
		c.nodes.AddAfter(node.Name, wait)
		return false, nil
	}
	if err := c.writer.setNodeStatus(ctx, node, status, conditions); err != nil {
		return false, err
	}
	c.nodeWrites.wrote(node.Name, now)
	c.events.nodeChanged(node, conditions)
	return false, nil
}

// anyTaken tells whether the targets take one of the pods.
func (f *nodeFacts) anyTaken(targets maintenance.Targets) bool {
	return slices.ContainsFunc(f.pods, func(pod podFacts) bool { return targets.Take(pod.Pod) })
}

// requests returns the pods that have to be asked to leave.
func (f *nodeFacts) requests(targets maintenance.Targets) []*v1.Pod {
	var pods []*v1.Pod
	for _, pod := range f.pods {
		if !pod.over && !isAsked(pod.request) && targets.Take(pod.Pod) {
			pods = append(pods, pod.Pod)
		}
	}
	return pods
}

// withdrawals returns the requests from which this controller has to withdraw. What
// cannot be called off any more is left alone.
func (f *nodeFacts) withdrawals() []*coordinationv1alpha1.EvictionRequest {
	var requests []*coordinationv1alpha1.EvictionRequest
	for _, pod := range f.pods {
		if isAsked(pod.request) && pod.request.Status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
			requests = append(requests, pod.request)
		}
	}
	return requests
}

// request asks the pods to leave. One that cannot be asked keeps none of the others
// from being asked.
func (c *Controller) request(ctx context.Context, node *v1.Node, pods []*v1.Pod) error {
	return inParallel(ctx, pods, func(ctx context.Context, pod *v1.Pod) error {
		err := c.writer.request(ctx, node, pod)
		if err != nil && ctx.Err() == nil {
			c.events.requestFailed(pod, err)
		}
		return err
	})
}

func (c *Controller) withdraw(ctx context.Context, requests []*coordinationv1alpha1.EvictionRequest) error {
	return inParallel(ctx, requests, c.writer.withdraw)
}
