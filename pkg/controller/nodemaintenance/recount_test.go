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
	"cmp"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// cluster has the objects of the API server, grouped by node.
type cluster struct {
	nodes        []v1.Node
	maintenances []coordinationv1alpha1.NodeMaintenance
	limits       []coordinationv1alpha1.NodeMaintenanceBudget
	// pods are those that are left on each node, requested those with a request of this
	// controller, and active those with any request, even one without requesters.
	pods              map[string][]*v1.Pod
	requested, active sets.Set[types.UID]
}

func (f *fixture) cluster() *cluster {
	f.t.Helper()
	nodes, err := f.client.CoreV1().Nodes().List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing nodes: %v", err)
	}
	maintenances, err := f.client.CoordinationV1alpha1().NodeMaintenances().List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing maintenances: %v", err)
	}
	pods, err := f.client.CoreV1().Pods("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing pods: %v", err)
	}
	list, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing requests: %v", err)
	}
	limits, err := f.client.CoordinationV1alpha1().NodeMaintenanceBudgets().List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing budgets of nodes: %v", err)
	}
	c := &cluster{limits: limits.Items, nodes: nodes.Items, maintenances: maintenances.Items, pods: map[string][]*v1.Pod{}, requested: sets.New[types.UID](), active: sets.New[types.UID]()}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			c.pods[pod.Spec.NodeName] = append(c.pods[pod.Spec.NodeName], pod)
		}
	}
	for i := range list.Items {
		c.active.Insert(types.UID(list.Items[i].Name))
		if requests.IsRequested(&list.Items[i]) {
			c.requested.Insert(types.UID(list.Items[i].Name))
		}
	}
	return c
}

// selects reports whether the maintenance selects the node, without the code under test.
func selects(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	selector, err := nodeaffinity.NewNodeSelector(m.Spec.NodeSelector)
	return err == nil && selector.Match(node)
}

// in returns the names of the maintenances in these stages that select the node.
func (c *cluster) in(node *v1.Node, stages ...coordinationv1alpha1.NodeMaintenanceStage) []string {
	return c.that(node, func(m *coordinationv1alpha1.NodeMaintenance) bool { return slices.Contains(stages, m.Spec.Stage) })
}

// that returns the names of the maintenances that select the node and match.
func (c *cluster) that(node *v1.Node, match func(*coordinationv1alpha1.NodeMaintenance) bool) []string {
	var names []string
	for i := range c.maintenances {
		if m := &c.maintenances[i]; selects(m, node) && match(m) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// drains returns the maintenances that drain the node now, claims those that keep it cordoned, and
// plans those that will.
func (c *cluster) drains(node *v1.Node) []string {
	return c.that(node, func(m *coordinationv1alpha1.NodeMaintenance) bool { return c.phase(m, node) == progress.PhaseAdmitted })
}

func (c *cluster) claims(node *v1.Node) []string {
	return c.that(node, func(m *coordinationv1alpha1.NodeMaintenance) bool {
		phase := c.phase(m, node)
		return m.Spec.Stage == stageCordon || phase == progress.PhaseAdmitted || phase == progress.PhaseReturning
	})
}

func (c *cluster) plans(node *v1.Node) []string {
	return c.that(node, func(m *coordinationv1alpha1.NodeMaintenance) bool {
		return m.Spec.Stage == stageIdle || c.phase(m, node) == progress.PhaseWaiting
	})
}

// phase returns how far a maintenance in the stage Drain is with the node; -1 for others. A node that
// is drained already does not begin to wait.
func (c *cluster) phase(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) progress.Phase {
	if m.Spec.Stage != stageDrain {
		return -1
	}
	status := node.Status.MaintenanceStatus
	if status != nil {
		for i := range status.Admissions {
			switch a := &status.Admissions[i]; {
			case a.MaintenanceUID != m.UID:
			case a.DoneTime != nil:
				return progress.PhaseDone
			case a.ReturningTime != nil:
				return progress.PhaseReturning
			default:
				return progress.PhaseAdmitted
			}
		}
	}
	limited := slices.ContainsFunc(c.limits, func(b coordinationv1alpha1.NodeMaintenanceBudget) bool {
		selector, err := nodeaffinity.NewNodeSelector(b.Spec.NodeSelector)
		return err == nil && selector.Match(node)
	})
	if m.Spec.Rollout != nil || limited && (status == nil || len(status.DrainTargets) == 0) {
		return progress.PhaseWaiting
	}
	return progress.PhaseAdmitted
}

// recount computes the statuses of nodes and maintenances from the API objects alone, as expected
// when nothing is left to do, and compares them with the actual ones.
func (f *fixture) recount() {
	f.t.Helper()
	c := f.cluster()
	for i := range c.nodes {
		f.recountNode(c, &c.nodes[i])
	}
	for i := range c.maintenances {
		f.recountMaintenance(c, &c.maintenances[i])
	}
	if want := f.drainsSomewhere(c); want && c.requested.Len() == 0 {
		f.t.Errorf("no eviction is requested, although drains are not finished")
	}
}

// drainsSomewhere reports whether a pod is left on a node that is drained.
func (f *fixture) drainsSomewhere(c *cluster) bool {
	return slices.ContainsFunc(c.nodes, func(node v1.Node) bool { return len(c.drains(&node)) > 0 && len(c.pods[node.Name]) > 0 })
}

func (f *fixture) recountNode(c *cluster, node *v1.Node) {
	f.t.Helper()
	claiming, draining, planning := c.claims(node), c.drains(node), c.plans(node)
	waits := len(planning) > len(c.in(node, stageIdle))
	var want *v1.MaintenanceStatus
	if len(claiming) > 0 {
		want = &v1.MaintenanceStatus{}
		if !node.Spec.Unschedulable {
			f.t.Errorf("node %s is not cordoned for %v", node.Name, claiming)
		}
	}
	got := node.Status.MaintenanceStatus
	if waits && len(claiming) == 0 && maintenance.IsClaimed(node) && node.Spec.Unschedulable {
		want = &v1.MaintenanceStatus{} // It was cordoned by the stage Cordon.
	}
	if got != nil && len(got.Admissions) > 0 {
		if want == nil {
			want = &v1.MaintenanceStatus{Unclaimed: true}
		}
		want.Admissions = got.Admissions
	}
	if wantTaint := waits && (want == nil || want.Unclaimed); wantTaint != write.HasTaint(node) {
		f.t.Errorf("node %s, which waits %t, has the taints %v", node.Name, waits, node.Spec.Taints)
	}
	targets := maintenance.Targets{}
	if len(draining) > 0 {
		// Targets depend on the history: see checkTargets. Everything else follows from them.
		targets = progress.StoredTargets(node)
		want.DrainTargets = targets.Entries()
		if got != nil {
			want.DrainMessage = got.DrainMessage
		}
	}
	for _, pod := range c.pods[node.Name] {
		requested := c.requested.Has(pod.UID)
		if len(draining) > 0 && c.active.Has(pod.UID) {
			want.ActiveEvictionRequests++
		} else if len(draining) > 0 {
			want.PodsPendingEvictionRequest++
		}
		if requested != (len(draining) > 0 && targets.Take(pod)) && (len(draining) == 0 || !requested) {
			f.t.Errorf("pod %s of node %s, whose targets are %s: requested %t", pod.Name, node.Name, targets, requested)
		}
	}
	if len(draining) > 0 && got != nil {
		// So does the number of pods that the drain has begun with.
		if left := want.ActiveEvictionRequests + want.PodsPendingEvictionRequest; got.InitialPods < left {
			f.t.Errorf("node %s has %d pods left, but began with %d", node.Name, left, got.InitialPods)
		}
		want.InitialPods = got.InitialPods
	}
	if diff := gocmp.Diff(want, node.Status.MaintenanceStatus); diff != "" {
		f.t.Errorf("status of node %s (-recount, +got):\n%s", node.Name, diff)
	}
	left := len(c.pods[node.Name]) > 0
	if (node.Status.MaintenanceStatus != nil && node.Status.MaintenanceStatus.DrainMessage == status.MessageDrained) != (len(draining) > 0 && !left) {
		f.t.Errorf("node %s has %d pods and the status %+v", node.Name, len(c.pods[node.Name]), node.Status.MaintenanceStatus)
	}
	wantConditions := map[v1.NodeConditionType]bool{}
	if len(planning)+len(claiming) > 0 {
		wantConditions = map[v1.NodeConditionType]bool{
			v1.NodeMaintenancePlanned: len(planning) > 0, v1.NodeMaintenanceInProgress: len(claiming) > 0,
			v1.NodeDrainInProgress: len(draining) > 0 && left, v1.NodeDrained: len(draining) > 0 && !left,
		}
	}
	gotConditions := map[v1.NodeConditionType]bool{}
	for _, condition := range status.OwnConditions(node.Status.Conditions) {
		gotConditions[condition.Type] = condition.Status == v1.ConditionTrue
	}
	if diff := gocmp.Diff(wantConditions, gotConditions); diff != "" {
		f.t.Errorf("conditions of node %s (-recount, +got):\n%s", node.Name, diff)
	}
}

func (f *fixture) recountMaintenance(c *cluster, m *coordinationv1alpha1.NodeMaintenance) {
	f.t.Helper()
	over := m.Spec.Stage == stageComplete && len(m.Finalizers) == 0
	if (m.Spec.Stage == stageCordon || m.Spec.Stage == stageDrain) != (len(m.Finalizers) > 0) {
		f.t.Errorf("%s in the stage %s has finalizers %v", m.Name, m.Spec.Stage, m.Finalizers)
	}
	if m.Status.ObservedGeneration != m.Generation && !over {
		f.t.Errorf("%s: generation %d, observed %d", m.Name, m.Generation, m.Status.ObservedGeneration)
	}
	if m.Spec.Stage != stageDrain {
		return
	}
	plan, err := maintenance.NewPlan(m.Spec.DrainPlan)
	if err != nil {
		f.t.Fatal(err)
	}
	got := m.Status.DrainStatus
	want := coordinationv1alpha1.DrainStatus{DrainMessage: got.DrainMessage, DrainPlanPosition: got.DrainPlanPosition}
	var reached []maintenance.Targets
	nodes, waiting, given, skipped, first := int32(0), int32(0), int32(0), int32(0), plan.Len()-1
	var uids []types.UID
	for i := range c.nodes {
		node := &c.nodes[i]
		if !slices.Contains(c.in(node, stageDrain), m.Name) {
			continue
		}
		nodes++
		switch c.phase(m, node) {
		case progress.PhaseWaiting:
			waiting++
			continue
		case progress.PhaseDone:
			given++
			if wasDrained(m, node) {
				want.DrainedNodes++
			} else {
				skipped++
			}
			continue
		case progress.PhaseReturning:
			// Its pods come back.
			reached = append(reached, maintenance.Targets{})
			if !wasDrained(m, node) {
				skipped++
			} else if node.Spec.Unschedulable {
				want.DrainedNodes++
			}
			continue
		}
		reached = append(reached, progress.StoredTargets(node))
		if len(c.pods[node.Name]) == 0 {
			want.DrainedNodes++
		}
		for _, pod := range c.pods[node.Name] {
			first = min(first, plan.EntryFor(pod))
			if c.active.Has(pod.UID) {
				want.ActiveEvictionRequests++
				uids = append(uids, pod.UID)
			} else {
				want.PodsPendingEvictionRequest++
			}
		}
	}
	want.ReachedDrainTargets = maintenance.LeastPowerful(reached...).Entries()
	want.Blockers, want.BlockerCount = got.Blockers, int32(len(got.Blockers))
	if diff := gocmp.Diff(want, got); diff != "" {
		f.t.Errorf("status of %s (-recount, +got):\n%s", m.Name, diff)
	}
	blocked := int32(0)
	for _, blocker := range got.Blockers {
		blocked += blocker.PodCount
	}
	if blocked != int32(len(uids)) {
		f.t.Errorf("%s: %d pods have requests, blockers count %d pods: %+v", m.Name, len(uids), blocked, got.Blockers)
	}
	if position := got.DrainPlanPosition; nodes > waiting+given && m.Spec.Rollout == nil && (position == nil || int(*position) < first) {
		f.t.Errorf("%s: the first pod left matches entry %d, but the status is %+v", m.Name, first, got)
	}
	drained := status.FindDrained(&m.Status)
	if m.Status.SelectedNodes != nodes || drained == nil || drained.ObservedGeneration != m.Generation ||
		(drained.Status == metav1.ConditionTrue) != (nodes > 0 && want.DrainedNodes == nodes) {
		f.t.Errorf("%s with %d nodes, %d of them drained: status %+v", m.Name, nodes, want.DrainedNodes, m.Status)
	}
	if status := m.Status.RolloutStatus; skipped > 0 && (status == nil || status.SkippedNodes != skipped) {
		f.t.Errorf("%s with %d skipped nodes: status %+v", m.Name, skipped, status)
	}
	if (got.DrainMessage == status.MessageDrained) != (cmp.Compare(nodes, 0) > 0 && want.DrainedNodes == nodes) {
		f.t.Errorf("%s with %d nodes, %d of them drained: message %q", m.Name, nodes, want.DrainedNodes, got.DrainMessage)
	}
}

// wasDrained reports whether the node has been drained for the maintenance.
func wasDrained(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	admission := maintenance.AdmissionOf(node, m.UID)
	return admission != nil && admission.DrainedTime != nil
}
