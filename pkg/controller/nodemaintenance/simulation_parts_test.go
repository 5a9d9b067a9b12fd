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
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	testsimulation "k8s.io/kubernetes/test/utils/simulation"
	"k8s.io/utils/ptr"
)

// partsSimulation is a cluster with maintenances that leave pods alone, wait for their end, and stop
// waiting.
type partsSimulation struct {
	*simulation
	// checked is whether writes are checked when they are decided: they are stored later.
	checked bool
	// escalations has the last escalation of each node and maintenance.
	escalations map[string]v1.MaintenanceEscalation
	// kept has, by pod, when this controller has last known of a policy that keeps it.
	kept map[types.UID]time.Time
}

var (
	partsNodes = []string{"p1", "p2", "p3"}
	podActions = []coordinationv1alpha1.NodeMaintenancePodAction{
		coordinationv1alpha1.NodeMaintenancePodDrain, coordinationv1alpha1.NodeMaintenancePodWaitCompleted, coordinationv1alpha1.NodeMaintenancePodSkip,
	}
	actions = []v1.MaintenanceEscalation{"", skipInterceptors, ignoreBudgets, forceDelete}
)

// TestSimulationOfParts checks, for maintenances that overlap, that the most cautious policy of all
// decides about a pod, and the most patient escalation, by the clock of the API server, whatever the leader has for
// one; that a pod is given notice which was kept before; that the node says what an escalation does before it does it; and that in the end all pods are gone that may be.
func TestSimulationOfParts(t *testing.T) {
	testsimulation.Run(t, simulations/4, func(t *testing.T, seed uint64) {
		s := &partsSimulation{
			simulation:  &simulation{fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 2)), fleet: true},
			escalations: map[string]v1.MaintenanceEscalation{},
		}
		s.terminateGracefully()
		s.client.PrependReactor("*", "*", s.checkStored)
		s.restart()
		for _, name := range partsNodes {
			s.createReadyNode(name, map[string]string{"a": "", "b": ""})
		}
		s.checked = true
		for range 150 {
			s.happen()
		}
		s.finish()
	})
}

func (s *partsSimulation) restart() {
	for len(s.running) > 0 {
		s.endRequest(0, []outcome{late, timedOut}[s.random.IntN(2)])
	}
	s.fixture.restart()
	s.kept = map[types.UID]time.Time{}
	if err := s.namespaces.Add(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "batch"}}}); err != nil {
		s.t.Fatal(err)
	}
}

// happen simulates a random event, then updates some caches and makes some steps.
func (s *partsSimulation) happen() {
	node := partsNodes[s.random.IntN(len(partsNodes))]
	switch s.random.IntN(17) {
	case 16:
		s.relabelRandomPod()
	case 0, 1:
		s.createMaintenanceOfParts()
	case 2:
		s.changeEscalation()
	case 3:
		if all := s.cluster().maintenances; len(all) > 0 && s.random.IntN(3) == 0 {
			s.deleteMaintenance(all[s.random.IntN(len(all))].Name)
		}
	case 4, 5, 6:
		s.createPodOfParts(node)
	case 7:
		s.endTerminating()
	case 8, 9:
		s.interceptRandomPod()
	case 10:
		taints := []func(*v1.Node){addTaint(v1.TaintNodeOutOfService), removeTaint(v1.TaintNodeOutOfService)}
		s.changeNamed(node, removeTaint(v1.TaintNodeOutOfService), taints[s.random.IntN(2)], setReady(s.random.IntN(2) == 0))
	case 11:
		if s.random.IntN(3) == 0 {
			// The next leader runs on a machine with another clock.
			s.skew = []time.Duration{0, 2 * time.Hour, -2 * time.Hour, time.Minute}[s.random.IntN(4)]
			s.restart()
		}
	default:
		s.clock.Step([]time.Duration{time.Second, 10 * time.Second, time.Minute}[s.random.IntN(3)])
	}
	s.clock.Step(pace.SummaryDelay)
	for _, queue := range s.queues() {
		queue.release()
	}
	s.deliverSome(s.random)
	s.nodeQueue.shuffle(s.random)
	for range s.random.IntN(8) {
		s.stepRandomRequest()
		s.stepSyncs()
		s.checkNodes()
	}
}

func (s *partsSimulation) createMaintenanceOfParts() {
	name := fmt.Sprintf("m%d", s.random.IntN(3))
	if _, err := s.client.CoordinationV1alpha1().NodeMaintenances().Get(s.ctx, name, metav1.GetOptions{}); err == nil {
		return
	}
	s.createMaintenance(name, stageDrain, []string{"a", "b"}[s.random.IntN(2)], maintenance.StandardPlan()...)
	s.change(name, func(m *coordinationv1alpha1.NodeMaintenance) {
		for range s.random.IntN(3) {
			m.Spec.PodPolicies = append(m.Spec.PodPolicies, coordinationv1alpha1.NodeMaintenancePodPolicy{
				Action: podActions[s.random.IntN(3)], PodSelector: s.randomApp(), NamespaceSelector: s.randomTeam(),
			})
		}
		if s.random.IntN(4) > 0 {
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: manual}
			m.Spec.Escalation = s.randomEscalation()
		}
	})
}

func (s *partsSimulation) randomEscalation() []coordinationv1alpha1.NodeMaintenanceEscalationStep {
	var steps []coordinationv1alpha1.NodeMaintenanceEscalationStep
	for range s.random.IntN(4) {
		steps = append(steps, coordinationv1alpha1.NodeMaintenanceEscalationStep{
			AfterSeconds: 1 + s.random.Int32N(300), Action: actions[1+s.random.IntN(3)], PodSelector: s.randomApp(), NamespaceSelector: s.randomTeam(),
		})
	}
	slices.SortFunc(steps, func(a, b coordinationv1alpha1.NodeMaintenanceEscalationStep) int {
		return int(a.AfterSeconds - b.AfterSeconds)
	})
	return steps
}

func (s *partsSimulation) randomApp() *metav1.LabelSelector {
	if s.random.IntN(2) == 0 {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": simulatedApps[s.random.IntN(2)]}}
}

func (s *partsSimulation) randomTeam() *metav1.LabelSelector {
	if s.random.IntN(4) > 0 {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"team": "batch"}}
}

func (s *partsSimulation) changeEscalation() {
	all := s.cluster().maintenances
	if len(all) == 0 {
		return
	}
	if m := all[s.random.IntN(len(all))]; m.Spec.Rollout != nil && m.DeletionTimestamp == nil {
		s.change(m.Name, func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Spec.Escalation = s.randomEscalation()
			m.Generation++
		})
	}
}

func (s *partsSimulation) createPodOfParts(node string) {
	option := []func(*v1.Pod){ofApp("db"), ofApp("web"), ofApp("other"), daemon, mirror}[s.random.IntN(5)]
	s.createPods(1, node, s.random.Int32N(2), option, withGrace([]int64{0, 30, 3600}[s.random.IntN(3)]), func(pod *v1.Pod) {
		pod.Namespace = []string{"default", "unknown"}[s.random.IntN(2)]
	})
}

// relabelRandomPod has the owner of a pod change what policies and steps select.
func (s *partsSimulation) relabelRandomPod() {
	pods, err := s.client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		return
	}
	pod := &pods.Items[s.random.IntN(len(pods.Items))]
	pod.Labels = map[string]string{"app": []string{"db", "web", "other"}[s.random.IntN(3)]}
	if _, err := s.client.CoreV1().Pods(pod.Namespace).Update(s.ctx, pod, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// endTerminating has the kubelets end the pods that are deleted, and reports whether there were any.
func (s *partsSimulation) endTerminating() (found bool) {
	pods, err := s.client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp != nil {
			found = true
			if err := s.tracker.Delete(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return found
}

func (s *partsSimulation) interceptRandomPod() {
	requests, err := s.client.CoordinationV1alpha1().EvictionRequests("").List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(requests.Items) == 0 {
		return
	}
	request := &requests.Items[s.random.IntN(len(requests.Items))]
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, UID: types.UID(request.Name)}}
	s.intercept(pod, []string{"slow.example.com", coordinationv1alpha1.EvictionInterceptorImperative}[s.random.IntN(2)])
}

// stepRandomRequest begins a write, which is checked as it was decided, or ends a random one.
func (s *partsSimulation) stepRandomRequest() {
	if n := len(s.running); n > 0 && s.random.IntN(2) == 0 {
		s.endRequest(s.random.IntN(n), []outcome{answered, answered, late, timedOut}[s.random.IntN(4)])
	} else if s.beginRequest() {
		s.checkDecided(&s.running[len(s.running)-1])
	}
}

// checkDecided checks a write as it was decided, with what the caches have.
func (s *partsSimulation) checkDecided(w *heldWrite) {
	pod, err := s.podLister.Pods(w.Namespace).Get(w.Pod)
	if w.write == nil || w.Withdraw || err != nil {
		return
	}
	node, err := s.nodeLister.Get(w.Node)
	if err != nil {
		s.t.Errorf("a write for pod %s, whose node is gone", w.Pod)
		return
	}
	caution, patience := 0, len(actions)
	specs, _ := s.progress.Selecting(node)
	for i := range specs {
		if !specs[i].Drains() {
			continue
		}
		m, err := s.maintenanceLister.Get(specs[i].Name)
		if err != nil || m.UID != specs[i].UID || m.Generation != specs[i].Generation {
			return // The controller has not seen the change yet.
		}
		caution = max(caution, s.cautionOn(m, pod, s.cachedPods(w.Node)))
		patience = min(patience, s.patience(m, pod, node))
	}
	switch act := slices.Index(actions, w.Act); {
	case act == 0 && caution > 0:
		s.t.Errorf("requested the eviction of pod %s, although a policy says %s", pod.Name, podActions[caution])
	case act > 0 && (caution == 2 || maintenance.PodTypeOf(pod) == v1.PodTypeStatic):
		s.t.Errorf("%s of pod %s, which has to stay", w.Act, pod.Name)
	case act > patience || patience == len(actions):
		s.t.Errorf("%s of pod %s at %v, but its maintenances have only come to %q: %+v", w.Act, pod.Name, s.clock.Now(), actions[patience%len(actions)], node.Status.MaintenanceStatus)
	case act > 0 && s.lacksNotice(pod, node, specs, w.Act):
		s.t.Errorf("%s of pod %s at %v, which was kept until %v", w.Act, pod.Name, s.clock.Now(), s.kept[pod.UID])
	case act > 1 && !progress.StoredTargets(node).Take(pod):
		s.t.Errorf("%s of pod %s, which is not within the targets %s", w.Act, pod.Name, progress.StoredTargets(node))
	}
}

// maxCorrection is more than the clock of a controller is behind or ahead.
const maxCorrection = 15 * time.Second

// lacksNotice reports whether an action begins too early with a pod that was kept.
func (s *partsSimulation) lacksNotice(pod *v1.Pod, node *v1.Node, specs []progress.Spec, act v1.MaintenanceEscalation) bool {
	since, kept := s.kept[pod.UID]
	possible := maintenance.EscalationsFor(node)
	at := slices.Index(possible, act)
	if !kept || at < 0 {
		return false
	}
	notice := time.Duration(0)
	for i := range specs {
		if specs[i].Drains() {
			after, _ := specs[i].Escalation.After(pod, possible[:at+1], func() (labels.Set, bool) { return s.namespaceLabels(pod.Namespace) })
			notice = max(notice, min(after, decision.EscalationGrace))
		}
	}
	return s.clock.Since(since) < notice-maxCorrection
}

// noteKept notes which pods of a node the controller knows to be kept. When nobody escalates, it forgets that.
func (s *partsSimulation) noteKept(node string) {
	found := s.holdUps.nodes[node]
	for _, pod := range s.cachedPods(node) {
		switch {
		case found == nil:
			delete(s.kept, pod.UID)
		case found.kept.Has(pod.UID):
			s.kept[pod.UID] = s.clock.Now()
		}
	}
}

// matchesPod reports whether selectors of a policy or a step match. unknown is the answer for a
// namespace whose labels are not known.
func matchesPod(pod *v1.Pod, pods, namespaces *metav1.LabelSelector, unknown bool) bool {
	if pods != nil && !labels.SelectorFromSet(pods.MatchLabels).Matches(labels.Set(pod.Labels)) {
		return false
	}
	return namespaces == nil || pod.Namespace == "default" || unknown
}

// caution is the index of what a maintenance does with a pod, without the code under test.
func (s *partsSimulation) caution(m *coordinationv1alpha1.NodeMaintenance, pod *v1.Pod) int {
	for _, policy := range m.Spec.PodPolicies {
		if matchesPod(pod, policy.PodSelector, policy.NamespaceSelector, policy.Action != coordinationv1alpha1.NodeMaintenancePodDrain) {
			return slices.Index(podActions, policy.Action)
		}
	}
	return 0
}

// cautionOn is caution with what the pods on the same node mean for those that serve them.
func (s *partsSimulation) cautionOn(m *coordinationv1alpha1.NodeMaintenance, pod *v1.Pod, neighbors []*v1.Pod) int {
	skips := func(other *v1.Pod) bool {
		return maintenance.PodTypeOf(other) == v1.PodTypeDefault && maintenance.IsLeft(other) && s.caution(m, other) == 2
	}
	if maintenance.PodTypeOf(pod) != v1.PodTypeDefault && slices.ContainsFunc(neighbors, skips) {
		return 2
	}
	return s.caution(m, pod)
}

// cachedPods returns the pods of a node that the controller knows.
func (s *partsSimulation) cachedPods(node string) []*v1.Pod {
	var pods []*v1.Pod
	for _, object := range s.podInformer.GetIndexer().List() {
		if pod := object.(*v1.Pod); pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

// patience is the index of the strongest action to which a maintenance has come for a pod, by its clock
// and by what the node says.
func (s *partsSimulation) patience(m *coordinationv1alpha1.NodeMaintenance, pod *v1.Pod, node *v1.Node) int {
	a := maintenance.AdmissionOf(node, m.UID)
	if a == nil {
		return 0
	}
	now := s.clock.Now()
	if a.WaitingTime != nil {
		now = a.WaitingTime.Time
	}
	outOfService := !maintenance.IsReady(node) && slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeOutOfService })
	strongest := 0
	for _, step := range m.Spec.Escalation {
		due := a.AdmittedTime.Add(time.Duration(step.AfterSeconds+a.WaitedSeconds) * time.Second)
		if step.Action == ignoreBudgets {
			due = due.Add(-time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second)
		}
		if now.Before(due) || step.Action == forceDelete && !outOfService ||
			!matchesPod(pod, step.PodSelector, step.NamespaceSelector, false) {
			continue
		}
		strongest = max(strongest, slices.Index(actions, step.Action))
	}
	return min(strongest, slices.Index(actions, a.Escalation))
}

// checkStored checks what is done to pods when it is stored. The client is locked.
func (s *partsSimulation) checkStored(action clienttesting.Action) (bool, runtime.Object, error) {
	del, ok := action.(clienttesting.DeleteActionImpl)
	if !ok || del.Resource.Resource != "pods" {
		return false, nil, nil
	}
	at := slices.IndexFunc(s.running, func(w heldWrite) bool { return w.Pod == del.Name && w.Act != "" })
	if at < 0 {
		s.t.Errorf("pod %s was deleted, and no escalation has decided it", del.Name)
		return false, nil, nil
	}
	w := &s.running[at]
	if !s.checked {
		s.checkDecided(w)
	}
	if forced := ptr.Deref(del.DeleteOptions.GracePeriodSeconds, -1) == 0; forced != (w.Act == forceDelete) || *del.DeleteOptions.Preconditions.UID != w.UID {
		s.t.Errorf("%s of pod %s with the options %+v", w.Act, del.Name, del.DeleteOptions)
	}
	return false, nil, nil
}

// checkNodes checks what nodes say about escalations.
func (s *partsSimulation) checkNodes() {
	for _, name := range partsNodes {
		s.noteKept(name)
		for _, a := range maintenance.Admissions(s.node(name)) {
			key := name + "/" + string(a.MaintenanceUID)
			if slices.Index(actions, a.Escalation) < slices.Index(actions, s.escalations[key]) {
				s.t.Errorf("the escalation of node %s for %s was %s, and is %q", name, a.MaintenanceName, s.escalations[key], a.Escalation)
			}
			s.escalations[key] = a.Escalation
			if waited := time.Duration(a.WaitedSeconds) * time.Second; waited < 0 || waited > s.clock.Since(a.AdmittedTime.Time) {
				s.t.Errorf("node %s has waited for %v since %v, at %v", name, waited, a.AdmittedTime, s.clock.Now())
			}
		}
	}
}

// finish has all maintenances stop waiting, and checks that only pods are left that have to stay; then
// that all nodes are released.
func (s *partsSimulation) finish() {
	for len(s.running) > 0 {
		s.endRequest(0, answered)
	}
	s.checked = false
	for _, m := range s.cluster().maintenances {
		switch {
		case m.DeletionTimestamp != nil:
		case m.Spec.Rollout == nil:
			s.deleteMaintenance(m.Name)
		default:
			s.change(m.Name, func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.Escalation = []coordinationv1alpha1.NodeMaintenanceEscalationStep{after(60, ignoreBudgets)}
				m.Generation++
			})
		}
	}
	s.run(10 * time.Minute)
	for s.endTerminating() {
		s.run(time.Minute)
	}
	s.checkLeft()
	before := s.statuses()
	s.restart()
	s.run(time.Minute)
	if diff := cmp.Diff(before, s.statuses()); diff != "" {
		s.t.Errorf("a restarted controller writes other statuses (-before, +after):\n%s", diff)
	}
	for _, m := range s.cluster().maintenances {
		s.deleteMaintenance(m.Name)
	}
	s.run(2 * progress.UnknownAdmission)
	for _, name := range partsNodes {
		if node := s.node(name); node.Status.MaintenanceStatus != nil || node.Spec.Unschedulable {
			s.t.Errorf("node %s was not released: %+v", name, node.Status)
		}
	}
}

// checkLeft checks that every pod that is left on a drained node is static, or skipped, and that those
// maintenances are Drained for which none is left that they do not skip themselves.
func (s *partsSimulation) checkLeft() {
	c, left := s.cluster(), sets.New[string]()
	for i := range c.nodes {
		node := &c.nodes[i]
		draining := c.drains(node)
		for _, pod := range c.pods[node.Name] {
			stays := len(draining) == 0 || maintenance.PodTypeOf(pod) == v1.PodTypeStatic
			for j := range c.maintenances {
				m := &c.maintenances[j]
				if !slices.Contains(draining, m.Name) {
					continue
				}
				skipped := s.cautionOn(m, pod, c.pods[node.Name]) == 2
				stays = stays || skipped
				if !skipped {
					left.Insert(m.Name)
				}
			}
			if !stays {
				s.t.Errorf("pod %s is left on node %s, which is drained by %s: %+v", pod.Name, node.Name, strings.Join(draining, ", "), node.Status.MaintenanceStatus)
			}
		}
	}
	for i := range c.maintenances {
		m := &c.maintenances[i]
		if m.DeletionTimestamp == nil && status.IsDrained(&m.Status) == left.Has(m.Name) {
			s.t.Errorf("%s is Drained: %t, although pods are left for it: %t", m.Name, status.IsDrained(&m.Status), left.Has(m.Name))
		}
	}
}
