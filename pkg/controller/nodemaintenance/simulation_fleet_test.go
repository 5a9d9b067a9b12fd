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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/utils/ptr"
)

// happenInFleet simulates a random event of a fleet.
func (s *simulation) happenInFleet() {
	switch s.random.IntN(9) {
	case 0:
		s.createRandomLimit()
	case 1:
		s.changeRandomLimit()
	case 2:
		s.changeRandomRollout()
	case 3, 4:
		s.completeRandomNode()
	case 5:
		s.changeNode(reboot)
	case 6:
		s.changeNode(setReady(s.random.IntN(2) == 0))
	case 7:
		s.clock.Step(decision.RebootSettled / 2)
	case 8:
		// The maintenance may be seen before the budget.
		s.createRandomLimit()
		s.createRandomMaintenance()
	}
}

func (s *simulation) limits() []coordinationv1alpha1.NodeMaintenanceBudget {
	list, err := s.client.CoordinationV1alpha1().NodeMaintenanceBudgets().List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("listing budgets: %v", err)
	}
	return list.Items
}

func (s *simulation) createRandomLimit() {
	if len(s.limits()) > 0 {
		return
	}
	s.createLimit("b", s.random.IntN(3), func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
		b.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = simulatedLabels[s.random.IntN(len(simulatedLabels))]
	})
}

func (s *simulation) changeRandomLimit() {
	for _, b := range s.limits() {
		if s.random.IntN(2) == 0 {
			s.deleteLimit(b.Name)
			continue
		}
		s.changeLimit(b.Name, func(spec *coordinationv1alpha1.NodeMaintenanceBudgetSpec) {
			spec.MaxUnavailable.IntVal = s.random.Int32N(4)
		})
	}
}

// changeRandomRollout pauses a rollout or resumes it, or lets it have more nodes.
func (s *simulation) changeRandomRollout() {
	all := s.cluster().maintenances
	if len(all) == 0 {
		return
	}
	if m := all[s.random.IntN(len(all))]; m.Spec.Rollout != nil {
		s.change(m.Name, func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Spec.Rollout.Paused = !m.Spec.Rollout.Paused
			m.Spec.Rollout.MaxConcurrent.IntVal += s.random.Int32N(2)
		})
	}
}

// completeRandomNode says that the work of a maintenance on a node is done, in whatever phase it is.
func (s *simulation) completeRandomNode() {
	if all := s.cluster().maintenances; len(all) > 0 {
		s.setDone(all[s.random.IntN(len(all))].Name, simulatedNodes[s.random.IntN(len(simulatedNodes))])
	}
}

// mayCordon reports whether the maintenance may cordon a node: one that needs an admission has it. A
// node that another client has uncordoned may be cordoned again because of the stage Cordon, while the
// stage Drain begins.
func (s *simulation) mayCordon(o *progress.Spec, node *v1.Node) bool {
	if !o.Claims() {
		return o.Waits() && o.HasCordoned(node)
	}
	live, err := s.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", node.Name)
	if err != nil || live.(*v1.Node).UID != node.UID {
		return true // The node has just vanished.
	}
	admission := maintenance.AdmissionOf(live.(*v1.Node), o.UID)
	return o.Stage == stageCordon || admission != nil && admission.DoneTime == nil ||
		o.Rollout == nil && (s.progress.Limits.DrainedBefore(o, node) || s.progress.Limits.DrainedBefore(o, live.(*v1.Node)) || !s.wasLimited(o, node, live.(*v1.Node)))
}

// isReservation reports whether the status differs from the stored one only in what is pending: such a
// write repeats what was decided before.
func (s *simulation) isReservation(m *coordinationv1alpha1.NodeMaintenance) bool {
	stored, err := s.tracker.Get(maintenances, "", m.Name)
	if err != nil {
		return false // The write will fail.
	}
	status := stored.(*coordinationv1alpha1.NodeMaintenance).Status.DeepCopy()
	unchanged := apiequality.Semantic.DeepEqual(status, &m.Status)
	status.RolloutStatus = m.Status.RolloutStatus
	return !unchanged && apiequality.Semantic.DeepEqual(status, &m.Status)
}

// noteDrain records the budgets that are there when a maintenance comes to the stage Drain.
func (s *simulation) noteDrain(action clienttesting.Action) {
	write, ok := action.(interface{ GetObject() runtime.Object })
	if !ok {
		return
	}
	m, ok := write.GetObject().(*coordinationv1alpha1.NodeMaintenance)
	if !ok || m.Spec.Stage != stageDrain || s.known[m.UID] != nil {
		return
	}
	s.known[m.UID] = map[types.UID]int64{}
	for _, b := range s.storedLimits() {
		s.known[m.UID][b.UID] = b.Generation
	}
}

// wasLimited reports whether a budget selects the node that was there when the maintenance came to the
// stage Drain, and has not changed since.
func (s *simulation) wasLimited(o *progress.Spec, versions ...*v1.Node) bool {
	return slices.ContainsFunc(s.storedLimits(), func(b coordinationv1alpha1.NodeMaintenanceBudget) bool {
		selector, err := maintenance.NewNodeMatcher(b.Spec.NodeSelector)
		return err == nil && s.known[o.UID][b.UID] == b.Generation && !slices.ContainsFunc(versions, func(n *v1.Node) bool { return !selector.Matches(n) })
	})
}

// storedLimits returns the budgets without the checks of API calls.
func (s *simulation) storedLimits() []coordinationv1alpha1.NodeMaintenanceBudget {
	list, err := s.tracker.List(coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenancebudgets"), coordinationv1alpha1.SchemeGroupVersion.WithKind("NodeMaintenanceBudget"), "")
	if err != nil {
		s.t.Fatalf("listing budgets: %v", err)
	}
	return list.(*coordinationv1alpha1.NodeMaintenanceBudgetList).Items
}

// checkRollouts checks that no rollout has more nodes than it may have.
func (s *simulation) checkRollouts() {
	c := s.cluster()
	for i := range c.maintenances {
		m := &c.maintenances[i]
		if m.Spec.Rollout == nil {
			continue
		}
		var names []string
		for j := range c.nodes {
			if a := maintenance.AdmissionOf(&c.nodes[j], m.UID); a != nil && a.DoneTime == nil && a.FailedTime == nil {
				names = append(names, c.nodes[j].Name)
			}
		}
		if len(names) > m.Spec.Rollout.MaxConcurrent.IntValue() {
			s.t.Errorf("%s has the nodes %v, but maxConcurrent %s", m.Name, names, m.Spec.Rollout.MaxConcurrent)
		}
	}
}

// mendFleet ends everything for which nodes may wait without an end.
func (s *simulation) mendFleet() {
	for _, b := range s.limits() {
		s.deleteLimit(b.Name)
	}
	for _, m := range s.cluster().maintenances {
		if m.Spec.Rollout != nil {
			s.change(m.Name, func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.Rollout.Paused, m.Spec.Rollout.MaxFailedNodes = false, ptr.To[int32](100)
			})
		}
	}
	for _, name := range simulatedNodes {
		s.changeNamed(name, setReady(true))
	}
	s.run(10 * time.Minute) // What was reserved and not written counts for a while.
}

// giveBackDrained completes the nodes of rollouts that are drained, and reports whether there were
// any.
func (s *simulation) giveBackDrained() bool {
	c, found := s.cluster(), false
	for i := range c.nodes {
		node := &c.nodes[i]
		for _, a := range maintenance.Admissions(node) {
			if a.DrainedTime == nil || a.DoneTime != nil {
				continue
			}
			for j := range c.maintenances {
				if m := &c.maintenances[j]; m.UID == a.MaintenanceUID && m.Spec.Rollout != nil && m.Spec.Stage == stageDrain {
					s.setDone(m.Name, node.Name)
					found = true
				}
			}
		}
	}
	return found
}
