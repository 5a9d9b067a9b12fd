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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/utils/ptr"
)

// syncNode reads one node and its pods, decides, and writes: first whether the node
// takes pods, then which pods leave it, then the requests that they do. A node without
// a maintenance that never had one is left alone.
func (c *Controller) syncNode(ctx context.Context, name string) error {
	if !c.writer.isCurrentNode(name) {
		// The event that brings our last write need not bring this node: the pod that it was
		// about may have gone since.
		c.nodes.AddAfter(name, c.staleNodes.wait(name))
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
	quiet := c.stopAsking(name, orders)
	left, others := c.ledger.leave(name, orders, observed)
	c.enqueueNodes(others)
	c.enqueueMaintenances(left)
	facts, err := c.look(name, orders, now)
	if err != nil {
		return err
	}
	facts.observed, facts.quiet = observed, quiet
	if node == nil {
		c.forgetNode(name, facts)
		return nil
	}
	facts.waits = waitsForClaims(node, orders)
	return c.writeNode(ctx, node, orders, facts, now)
}

// stopAsking has no pod of the node asked any more that no maintenance drains. It reports
// whether the cache has all requests that were written for pods of the node, and on such a
// node no other can come: what is decided then is decided on all of them.
func (c *Controller) stopAsking(name string, orders []order) (quiet bool) {
	running := !isDraining(orders) && c.requests.stopAsking(name)
	// Not before: a write that was running a moment ago is among these.
	if len(c.writer.unseen.of(name)) > 0 {
		c.nodes.AddAfter(name, c.staleNodes.wait(name))
		return false
	}
	c.staleNodes.reset(name)
	return !running
}

// isDraining reports whether one of the maintenances drains the node.
func isDraining(orders []order) bool {
	return slices.ContainsFunc(orders, func(o order) bool { return o.drains() })
}

// forgetNode withdraws from the pods that are left of a node that is gone, and forgets it.
func (c *Controller) forgetNode(name string, facts *nodeFacts) {
	withdrawals := facts.withdrawals()
	c.failures.keep(name, withdrawalsOf(withdrawals))
	c.recordDelays(name, c.failedWithdrawals(name, facts), facts.observed)
	c.setWrites(name, withdrawals, true)
	if len(withdrawals) > 0 || !facts.quiet {
		return
	}
	c.writer.forgetNode(name)
	c.nodeWrites.forget(name)
	c.contests.forget(name)
	c.ownCordons.Delete(name)
	c.enqueueMaintenances(c.ledger.release(name, facts.observed))
}

// writeNode brings a node in line with what was decided. What is left to do when it
// returns without an error is in the queue, or brought by an event.
func (c *Controller) writeNode(ctx context.Context, node *v1.Node, orders []order, facts *nodeFacts, now time.Time) error {
	view := c.view(node, orders, facts)
	c.failures.keep(node.Name, c.attempted(node, view, facts))
	c.forgetOwnCordon(node, view)
	if !facts.ready {
		// A cordon whose node is not selected any more before its status was written would stay.
		return nil
	}
	c.recordNode(node, orders, facts, view)
	node, changed, err := c.syncCordon(ctx, node, view, now)
	if changed {
		// The node as it is now, not as it was read, says what was granted before.
		view = c.view(node, orders, facts)
		c.recordNode(node, orders, facts, view)
	}
	draining := len(view.draining) > 0
	settled := false
	if err == nil && (draining || facts.quiet && !c.isToUncordon(node, view)) {
		// While the node cannot be made schedulable, its status remembers that it has to be. And
		// the targets stay there as long as somebody may act on them.
		settled, err = c.syncNodeStatus(ctx, node, view, now)
	}
	if !node.Spec.Unschedulable && (c.hasUncordoned(node) || node.Status.MaintenanceStatus == nil) {
		// Who cordons it from now on is somebody else, however long withdrawals take.
		c.ledger.uncordon(node.Name, facts.observed)
	}
	withdrawals := facts.withdrawals()
	switch {
	case !draining:
		c.setWrites(node.Name, withdrawals, true)
	case err != nil:
	case view.cordonRefused:
		c.setWrites(node.Name, nil, false)
	default:
		// Not before the node itself says which pods leave it.
		c.setWrites(node.Name, facts.requests(storedTargets(node)), false)
	}
	if err != nil {
		return err
	}
	if settled && (draining || len(withdrawals) == 0) {
		// Those that are completed have nothing to do with what others still want.
		c.enqueueMaintenances(c.ledger.release(node.Name, facts.observed))
	}
	return nil
}

// nodeFacts is what was found on a node.
type nodeFacts struct {
	recount
	// observed is how far the ledger was.
	observed int
	// quiet is whether the requests of the pods are known: see stopAsking.
	quiet bool
	// waits is whether the drain does not begin yet: see waitsForClaims.
	waits bool
	pods  []podFacts
}

// podFacts is a pod that is left on a node, with its unfinished request, if it has one.
type podFacts struct {
	*v1.Pod
	request *coordinationv1alpha1.EvictionRequest
	// over is whether asking is of no use: a request for the pod was given up for good, or
	// says that the pod is gone, which the cache of pods does not know yet.
	over bool
	// obstacle is a request that is being deleted, and kept by finalizers: the pod cannot be
	// asked before it has gone, and the event of its deletion says when.
	obstacle *coordinationv1alpha1.EvictionRequest
	hold     maintenance.Hold
	held     bool
}

// look finds the pods of a node and what keeps them there.
func (c *Controller) look(name string, orders []order, now time.Time) (*nodeFacts, error) {
	objects, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, name)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the node: %w", err)
	}
	facts, budgets := &nodeFacts{}, newBudgetFinder(c.budgetLister, c.budgetSelectors)
	var pods []*v1.Pod
	for _, object := range objects {
		pod := object.(*v1.Pod)
		if !maintenance.IsLeft(pod) {
			continue
		}
		pods = append(pods, pod)
		facts.pods = append(facts.pods, c.lookAtPod(pod, budgets.of, now))
	}
	facts.recount = c.ledger.countPods(name, orders, pods)
	c.enqueueNodes(facts.others)
	return facts, nil
}

// lookAtPod finds what keeps a pod. budgets returns those that select it, and may be nil: their
// names are missing then.
func (c *Controller) lookAtPod(pod *v1.Pod, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) podFacts {
	facts := podFacts{Pod: pod}
	request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	switch {
	case err != nil:
		request = nil // A lister of a cache has no errors but that there is none.
	case evictionrequest.IsFinished(request.Status.Conditions):
		facts.over = isRefused(request) || evictionrequest.StateOf(request) == evictionrequest.StateEvicted
	default:
		facts.request = request
	}
	if request != nil && request.DeletionTimestamp != nil && !facts.over {
		facts.obstacle = request
	}
	facts.hold, facts.held = maintenance.HoldOf(pod, request, budgets, now)
	switch {
	case facts.held:
		c.explain(&facts.hold)
	case facts.request == nil && facts.obstacle != nil:
		facts.hold, facts.held = maintenance.FailedRequest(pod, obstacleMessage(facts.obstacle), facts.obstacle.DeletionTimestamp.Time), true
	case facts.request == nil && !facts.over:
		if failed, ok := c.failures.get(pod.Spec.NodeName, pod.UID); ok && failed.blocks() {
			facts.hold, facts.held = maintenance.FailedRequest(pod, failed.message, failed.since), true
		}
	}
	return facts
}

// explain says of a pod whose interceptor this process would run, but does not, that there is
// nothing to wait for.
func (c *Controller) explain(hold *maintenance.Hold) {
	name := hold.Name
	if hold.Cause == maintenance.HoldUnhandled && hold.Name == string(v1.PodTypeDaemonSet) {
		name = coordinationv1alpha1.EvictionInterceptorDaemonSet
	}
	why, disabled := c.disabled[name]
	if !disabled || hold.Heartbeat != nil {
		return
	}
	switch hold.Cause {
	case maintenance.HoldInterceptor, maintenance.HoldInterceptorUnresponsive:
		hold.Cause, hold.Message = maintenance.HoldInterceptorUnresponsive, why
	case maintenance.HoldUnhandled:
		hold.Message = why
	}
}

// view sums up what the status of the node says.
func (c *Controller) view(node *v1.Node, orders []order, facts *nodeFacts) *nodeView {
	view, claimed := &nodeView{}, false
	for i := range orders {
		o := &orders[i]
		if o.plans() {
			view.planning = append(view.planning, o.name)
		}
		claimed = claimed || o.claims()
		if o.holdsNode() {
			view.holding = append(view.holding, o.name)
		}
		if o.drains() {
			view.draining = append(view.draining, o.name)
		}
	}
	view.keepsCordon = claimed && len(view.holding) == 0 && c.isOwnCordon(node)
	view.cordonRefused = c.isCordonRefused(node)
	toUncordon, write := c.isToUncordon(node, view), node.UID
	if toUncordon {
		write = uncordonOf(node.UID)
	}
	if failed, _ := c.failures.get(node.Name, write); failed.blocks() && (view.cordonRefused || toUncordon) {
		view.cordonHold = ptr.To(maintenance.FailedCordon(node.Name, failed.message, failed.since))
	}
	if failed, _ := c.failures.get(node.Name, statusOf(node.UID)); failed.blocks() && !toUncordon {
		view.statusHold = ptr.To(maintenance.FailedNodeStatus(node.Name, failed.message, failed.since))
	}
	if len(view.draining) == 0 || len(facts.members) == 0 {
		return view
	}
	view.targets = nodeTargets(facts.members, storedTargets(node), facts.anyTaken)
	if view.cordonRefused || facts.waits {
		// No pod is asked to leave a node that takes new ones, or whose drain does not begin yet.
		view.targets = storedTargets(node)
	}
	view.state.left, view.state.cordoned = len(facts.pods) > 0, node.Spec.Unschedulable
	for _, pod := range facts.pods {
		if pod.request != nil {
			view.active++
		} else {
			view.pending++
		}
	}
	view.addPodHolds(facts)
	view.state.draining = facts.anyTaken(view.targets)
	view.state.limitedBy = limiters(eldest(facts.members), facts.members, view.targets)
	if !view.cordonRefused {
		view.state.waitingFor = c.ledger.blamedBy(holders(facts.members, view.targets))
	}
	return view
}

// isCordonRefused reports whether the API server has refused to cordon the node.
func (c *Controller) isCordonRefused(node *v1.Node) bool {
	_, failed := c.failures.get(node.Name, node.UID)
	return failed && !node.Spec.Unschedulable
}

// isOwnCordon reports whether the node is unschedulable and has to become schedulable when no
// maintenance holds it: one has held it, or one that completes says so. After it was made
// schedulable, who cordons it is somebody else.
func (c *Controller) isOwnCordon(node *v1.Node) bool {
	if own, written := c.ownCordon(node); written {
		return node.Spec.Unschedulable && own.unschedulable
	}
	return node.Spec.Unschedulable && (node.Status.MaintenanceStatus != nil || c.ledger.isCordoned(node.Name))
}

// ownCordon is what was last written to spec.unschedulable of a node.
type ownCordon struct {
	uid           types.UID
	unschedulable bool
}

// ownCordon returns what was written, and false where the status of the node says it.
func (c *Controller) ownCordon(node *v1.Node) (ownCordon, bool) {
	found, ok := c.ownCordons.Load(node.Name)
	if !ok || found.(ownCordon).uid != node.UID {
		return ownCordon{}, false
	}
	return found.(ownCordon), true
}

// hasUncordoned reports whether the node was made schedulable, and its status has yet to say so.
func (c *Controller) hasUncordoned(node *v1.Node) bool {
	own, written := c.ownCordon(node)
	return written && !own.unschedulable
}

// forgetOwnCordon forgets a cordon that the status of the node tells of, or that somebody else has
// taken back, and the end of one whose status is cleared, or that a maintenance holds again.
func (c *Controller) forgetOwnCordon(node *v1.Node, view *nodeView) {
	own, written := c.ownCordon(node)
	marked := node.Status.MaintenanceStatus != nil
	if written && (own.unschedulable == marked || own.unschedulable && !node.Spec.Unschedulable || !own.unschedulable && len(view.holding) > 0) {
		c.ownCordons.Delete(node.Name)
	}
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

// recordNode tells the ledger what the node means for each of its maintenances.
func (c *Controller) recordNode(node *v1.Node, orders []order, facts *nodeFacts, view *nodeView) {
	holds := slices.Clip(view.podHolds)
	for i := range holds {
		if !holds[i].RecheckAt.IsZero() {
			c.nodes.AddAfter(node.Name, holds[i].RecheckAt.Sub(c.clock.Now()))
		}
	}
	for _, hold := range []*maintenance.Hold{view.cordonHold, view.statusHold} {
		if hold != nil {
			holds = append(holds, *hold)
		}
	}
	groups, floor := maintenance.GroupHolds(holds), storedTargets(node)
	for _, m := range facts.members {
		limited := limiters(m, facts.members, view.targets)
		joined, others := c.ledger.record(node.Name, m.name, nodeRecord{
			targets: view.targets, limitedBy: limited, limitedByElders: elders(m, facts.members, limited),
			pending: view.pending, active: view.active, blocked: view.blocked,
			draining: view.state.draining, cordoned: view.state.cordoned, holds: groups,
		})
		c.enqueueNodes(others)
		if joined && !m.grant.Reaches(floor) {
			c.fastForwarded(m.name, node, floor)
		}
	}
	for i := range orders {
		if orders[i].holdsNode() && !orders[i].drains() {
			// Of pods it wants nothing.
			nodeGroups := slices.DeleteFunc(slices.Clone(groups), func(g maintenance.HoldGroup) bool { return !g.Cause.OfNode() })
			c.ledger.record(node.Name, orders[i].name, nodeRecord{cordoned: node.Spec.Unschedulable, holds: nodeGroups})
		}
		// Many nodes have something to say at the same time.
		c.maintenances.AddAfter(orders[i].name, lookInterval)
	}
	c.recordDelays(node.Name, c.delays(node, facts, view), facts.observed)
}

// recordDelays tells those maintenances that wait for the node to be given back what keeps it: those
// in Complete, and those that hold others and do not select it any more. It need not exist.
func (c *Controller) recordDelays(node string, holds []maintenance.Hold, observed int) {
	for _, name := range c.ledger.delay(node, maintenance.GroupHolds(holds), observed) {
		c.maintenances.AddAfter(name, lookInterval)
	}
}

// delays returns what keeps the node from being given back.
func (c *Controller) delays(node *v1.Node, facts *nodeFacts, view *nodeView) []maintenance.Hold {
	var holds []maintenance.Hold
	if len(view.draining) == 0 {
		holds = c.failedWithdrawals(node.Name, facts)
	}
	if view.statusHold != nil {
		holds = append(holds, *view.statusHold)
	}
	if view.cordonHold != nil && c.isToUncordon(node, view) {
		holds = append(holds, *view.cordonHold)
	}
	return holds
}

// failedWithdrawals returns the pods that are still asked to leave, because the API server refuses
// to let the controller withdraw.
func (c *Controller) failedWithdrawals(node string, facts *nodeFacts) []maintenance.Hold {
	var holds []maintenance.Hold
	for _, pod := range facts.withdrawals() {
		if failed, ok := c.failures.get(node, withdrawalOf(pod.UID)); ok && failed.blocks() {
			holds = append(holds, maintenance.FailedRequest(pod, failed.message, failed.since))
		}
	}
	return holds
}

// fastForwarded tells of a newcomer that finds a node further than it would have it.
func (c *Controller) fastForwarded(name string, node *v1.Node, floor maintenance.Targets) {
	if m, err := c.maintenanceLister.Get(name); err == nil {
		c.events.fastForwarded(m, node, floor)
	}
}

// syncCordon makes the node unschedulable while a maintenance holds it, and schedulable
// once when the last one is over. A node that none ever held is left as it is. It returns
// the node as it is then, and whether a write, or its failure, has changed what is known of it.
func (c *Controller) syncCordon(ctx context.Context, node *v1.Node, view *nodeView, now time.Time) (latest *v1.Node, changed bool, err error) {
	switch {
	case len(view.holding) > 0 && !node.Spec.Unschedulable:
		return c.cordon(ctx, node, view, now)
	case c.isToUncordon(node, view):
		return c.uncordon(ctx, node, now)
	}
	return node, false, nil
}

// isToUncordon reports whether the node has to be made schedulable.
func (c *Controller) isToUncordon(node *v1.Node, view *nodeView) bool {
	return len(view.holding) == 0 && !view.keepsCordon && c.isOwnCordon(node)
}

// uncordon makes the node schedulable.
func (c *Controller) uncordon(ctx context.Context, node *v1.Node, now time.Time) (latest *v1.Node, changed bool, err error) {
	if wait := c.failures.wait(node.Name, uncordonOf(node.UID), now); wait > 0 {
		c.nodes.AddAfter(node.Name, wait)
		return node, false, nil
	}
	written, err := c.writer.setUnschedulable(ctx, node, false)
	if err != nil {
		return node, true, c.cordonFailed(ctx, node, uncordonOf(node.UID), err)
	}
	c.failures.succeeded(node.Name, uncordonOf(node.UID))
	c.contests.forget(node.Name)
	c.ownCordons.Store(node.Name, ownCordon{node.UID, false})
	c.events.uncordoned(node)
	return written, true, nil
}

// cordon makes the node unschedulable. Where somebody makes it schedulable again and
// again, this ends in an event and a pause instead of a race.
func (c *Controller) cordon(ctx context.Context, node *v1.Node, view *nodeView, now time.Time) (latest *v1.Node, changed bool, err error) {
	// A node that could not be cordoned yet is not contested.
	again := node.Status.MaintenanceStatus != nil && !view.cordonRefused
	wait := c.failures.wait(node.Name, node.UID, now)
	if again {
		wait = max(wait, c.contests.wait(node.Name, now))
	}
	if wait > 0 {
		c.nodes.AddAfter(node.Name, wait)
		return node, false, nil
	}
	written, err := c.writer.setUnschedulable(ctx, node, true)
	if err != nil {
		return node, true, c.cordonFailed(ctx, node, node.UID, err)
	}
	c.ownCordons.Store(node.Name, ownCordon{node.UID, true})
	c.lookAgain(node)
	c.failures.succeeded(node.Name, node.UID)
	if !again {
		c.events.cordoned(node, view.holding)
		return written, true, nil
	}
	metrics.CountContestedCordon()
	if c.contests.wrote(node.Name, now) {
		c.events.contested(node, view.holding)
	}
	return written, true, nil
}

// lookAgain has the node looked at when the cache has what was just written. Where somebody
// reverts a write at once, and the watch was away, the cache goes from the state before to an
// equal one, and no event tells.
func (c *Controller) lookAgain(node *v1.Node) { c.nodes.AddAfter(node.Name, staleInterval) }

// cordonFailed notes that the node cannot be cordoned or uncordoned, which is tried again later. It
// returns the error where it says nothing about that: the node has changed or gone, or the
// controller stops. The log has it once.
func (c *Controller) cordonFailed(ctx context.Context, node *v1.Node, write types.UID, err error) error {
	if ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	if c.failures.failed(node.Name, write, err, c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Could not cordon or uncordon the node, will retry", "node", klog.KObj(node))
	}
	c.events.cordonFailed(node, err)
	c.nodes.AddAfter(node.Name, c.failures.wait(node.Name, write, c.clock.Now()))
	return nil
}

// statusFailed is cordonFailed for the status of the node. That what it was decided on has changed
// is a failure where it does so each time.
func (c *Controller) statusFailed(ctx context.Context, node *v1.Node, err error) error {
	if ctx.Err() != nil || apierrors.IsNotFound(err) {
		return err
	}
	if c.failures.failed(node.Name, statusOf(node.UID), err, c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Could not write the status of the node, will retry", "node", klog.KObj(node))
	}
	if failed, _ := c.failures.get(node.Name, statusOf(node.UID)); apierrors.IsConflict(err) && !failed.blocks() {
		return err
	}
	c.events.statusFailed(node, err)
	// At once, for those that have to tell.
	c.nodes.Add(node.Name)
	return nil
}

// syncNodeStatus writes the status if it has changed, at most once in a while, and tells
// whether the node had it already.
func (c *Controller) syncNodeStatus(ctx context.Context, node *v1.Node, view *nodeView, now time.Time) (settled bool, err error) {
	status := computeMaintenanceStatus(view)
	conditions := computeConditions(view, node.Status.Conditions, now)
	if sameNodeStatus(node, status, conditions) {
		if c.failures.succeeded(node.Name, statusOf(node.UID)) {
			// For those that were told of it.
			c.nodes.Add(node.Name)
		}
		return true, nil
	}
	if wait := max(c.nodeWrites.wait(node.Name, now), c.failures.wait(node.Name, statusOf(node.UID), now)); wait > 0 {
		c.nodes.AddAfter(node.Name, wait)
		return false, nil
	}
	if err := c.writer.setNodeStatus(ctx, node, status, conditions); err != nil {
		return false, c.statusFailed(ctx, node, err)
	}
	c.failures.succeeded(node.Name, statusOf(node.UID))
	c.nodeWrites.wrote(node.Name, now)
	c.lookAgain(node)
	c.events.nodeChanged(node, conditions)
	return false, nil
}

// anyTaken tells whether the targets take one of the pods.
func (f *nodeFacts) anyTaken(targets maintenance.Targets) bool {
	return slices.ContainsFunc(f.pods, func(pod podFacts) bool { return targets.Take(pod.Pod) })
}

// requests returns the pods that have to be asked to leave.
func (f *nodeFacts) requests(targets maintenance.Targets) []*v1.Pod {
	return f.podsThat(func(pod *podFacts) bool { return pod.isRequest(targets) })
}

// withdrawals returns the pods from whose requests this controller has to withdraw.
func (f *nodeFacts) withdrawals() []*v1.Pod { return f.podsThat((*podFacts).isWithdrawal) }

func (f *nodeFacts) podsThat(holds func(*podFacts) bool) []*v1.Pod {
	var pods []*v1.Pod
	for i := range f.pods {
		if holds(&f.pods[i]) {
			pods = append(pods, f.pods[i].Pod)
		}
	}
	return pods
}

// isRequest reports whether the pod has to be asked to leave, with these targets of its node.
func (p *podFacts) isRequest(targets maintenance.Targets) bool {
	return !p.over && p.obstacle == nil && !isAsked(p.request) && targets.Take(p.Pod)
}

// isWithdrawal reports whether this controller has to withdraw from the request where no
// maintenance drains the node. What cannot be called off any more is left alone.
func (p *podFacts) isWithdrawal() bool {
	return isAsked(p.request) && p.request.Status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}

// attempted returns the objects of the node for which a write may have failed that is still
// wanted: the node itself, its status, pods that are to be asked to leave, and withdrawals.
func (c *Controller) attempted(node *v1.Node, view *nodeView, facts *nodeFacts) sets.Set[types.UID] {
	uids := sets.New(statusOf(node.UID))
	if c.isToUncordon(node, view) {
		uids = sets.New(uncordonOf(node.UID))
	} else if len(view.holding) > 0 && !node.Spec.Unschedulable {
		uids.Insert(node.UID)
	}
	if len(view.draining) == 0 {
		return uids.Union(withdrawalsOf(facts.withdrawals()))
	}
	for _, pod := range facts.pods {
		if pod.isRequest(view.targets) {
			uids.Insert(pod.UID)
		}
	}
	return uids
}

// setWrites makes these the pods of the node that wait to be asked to leave, or for the
// withdrawal of that. One that fails keeps none of the others waiting, and is tried again later.
func (c *Controller) setWrites(node string, pods []*v1.Pod, withdraw bool) {
	now, unseen := c.clock.Now(), c.writer.unseen.of(node)
	var due []requestWrite
	for _, pod := range pods {
		uid := pod.UID
		if withdraw {
			uid = withdrawalOf(uid)
		}
		if wait := c.failures.wait(node, uid, now); wait > 0 {
			c.nodes.AddAfter(node, wait)
		} else if !unseen.Has(pod.UID) {
			due = append(due, requestWrite{namespace: pod.Namespace, pod: pod.Name, node: node, uid: pod.UID, withdraw: withdraw})
		}
	}
	c.requests.set(node, due)
}
