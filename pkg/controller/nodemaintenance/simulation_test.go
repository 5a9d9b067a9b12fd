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
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"

	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	testsimulation "k8s.io/kubernetes/test/utils/simulation"
)

const (
	// simulations is the number of fixed seeds and of random seeds in a test run: see
	// k8s.io/kubernetes/test/utils/simulation.
	simulations = 20

	// simulatedSteps is the number of random events in each simulation.
	simulatedSteps = 120
)

var (
	simulatedNodes  = []string{"n0", "n1", "n2", "n3"}
	simulatedLabels = []string{"a", "b", "c"}
	simulatedApps   = []string{"db", "web"}
	// Webhooks may hang in all but the first of these namespaces.
	simulatedNamespaces = []string{"default", "fast", "slow"}
)

// simulation is a cluster with random events: changes by administrators and owners of pods, caches
// that lag behind, restarts of the controller. The invariants are checked at each write of the
// controller.
type simulation struct {
	*fixture
	random *rand.Rand
	// targets are the last targets of each node with a maintenance status.
	targets map[string]maintenance.Targets
	// refused are the writes that the API server currently refuses, see refusable.
	refused sets.Set[string]
	// syncing is whether writes come from the controller, not from the test.
	syncing bool
	// mayInterleave is whether other things may happen while a write of a node is in flight, which
	// inFlight says.
	mayInterleave, inFlight bool
	// outdated is whether other things happened while a write of the current step was in flight: what
	// follows from it was decided before them.
	outdated bool
	// fleet is whether there are budgets and rollouts.
	fleet bool
	// limitLag is how far the cache of budgets lags behind, in events on average.
	limitLag int
	// known has, by the UIDs of maintenances, the generations of the budgets that were there when they
	// came to the stage Drain.
	known map[types.UID]map[types.UID]int64
}

// refusable are writes that webhooks, quotas and policies may refuse.
var refusable = []string{"patch evictionrequests", "patch nodes", "patch nodes/status", "patch nodemaintenances"}

// TestSimulation checks that the targets of a node never step back, and are within what its
// maintenances allow; that the eviction of a pod is requested only if the targets of its node
// include it; that a maintenance is Drained only if no pod is left; that a node is uncordoned only
// if no maintenance claims it; and that the indexes of the progress.Store match a scan. After the
// last event, it checks that all statuses match a recount and those of a restarted controller, that
// an eviction is requested until all nodes are drained, and that all nodes are released at the end.
func TestSimulation(t *testing.T) {
	testsimulation.Run(t, simulations, func(t *testing.T, seed uint64) { simulate(t, seed, false) },
		1493448308696230737, 3948092882101458076, 454797197512305669, 3742685597276535156, 274025845521808979, 2043130476710385783, 20676952276036617, 2711173939707823565)
}

// TestSimulationOfFleets is TestSimulation with budgets, rollouts, and nodes that reboot, break and are
// given back. It also checks that an admission is stored before the cordon, also without a rollout if
// there was a budget before the stage Drain, that no rollout has more nodes than it may have, and at
// the end that no taint is left.
func TestSimulationOfFleets(t *testing.T) {
	testsimulation.Run(t, simulations, func(t *testing.T, seed uint64) { simulate(t, seed, true) },
		1714756546947919322, 3585492685598302672, 2148568359786199135)
}

func simulate(t *testing.T, seed uint64, fleet bool) {
	s := &simulation{
		fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 1)),
		targets: map[string]maintenance.Targets{}, refused: sets.New[string](), fleet: fleet, known: map[types.UID]map[types.UID]int64{},
	}
	s.hung, s.limitLag = sets.New[string](), 1+s.random.IntN(20)
	s.client.PrependReactor("*", "*", s.check)
	s.restart()
	for _, name := range simulatedNodes {
		s.createSimulatedNode(name)
	}
	for range simulatedSteps {
		s.happen()
	}
	s.finish()
}

func (s *simulation) createSimulatedNode(name string) {
	if s.fleet {
		s.createReadyNode(name, s.randomLabels())
	} else {
		s.createNode(name, s.randomLabels())
	}
}

func (s *simulation) randomLabels() map[string]string {
	labels := map[string]string{}
	for _, label := range simulatedLabels {
		if s.random.IntN(2) == 0 {
			labels[label] = ""
		}
	}
	return labels
}

// happen simulates a random event, then updates some caches and syncs some keys.
func (s *simulation) happen() {
	if s.fleet && s.random.IntN(3) == 0 {
		s.happenInFleet()
	}
	switch s.random.IntN(20) {
	case 0:
		s.createRandomMaintenance()
	case 1:
		s.changeRandomMaintenance()
	case 2, 3:
		s.createRandomPod()
	case 4, 5, 6:
		s.endRandomPod()
	case 7:
		s.relabelRandomNode()
	case 8:
		s.replaceRandomNode()
	case 9:
		s.uncordonRandomNode()
	case 10:
		if s.random.IntN(4) == 0 && !s.inFlight {
			s.restart()
		}
	case 11:
		s.clock.Step(pace.StatusInterval)
	case 12:
		s.selectOtherNodes()
	case 13:
		// A write is refused until this event occurs again.
		if write := refusable[s.random.IntN(len(refusable))]; s.refused.Has(write) {
			s.refused.Delete(write)
		} else {
			s.refused.Insert(write)
		}
	case 14:
		// A webhook hangs until this event occurs again. Its requests may or may not be stored.
		if namespace := simulatedNamespaces[1+s.random.IntN(2)]; s.hung.Has(namespace) {
			s.hung.Delete(namespace)
		} else {
			s.hung.Insert(namespace)
		}
	case 15:
		if s.random.IntN(2) == 0 && !s.inFlight {
			s.run(settleHorizon)
			// A node may have been released and claimed again, which resets its targets.
			clear(s.targets)
			s.checkOthers()
		}
	}
	s.clock.Step(pace.SummaryDelay)
	s.nodeQueue.release()
	s.maintenanceQueue.release()
	if s.fleet {
		s.admissionQueue.release()
		if s.random.IntN(s.limitLag) == 0 {
			s.deliverLimits()
		}
	}
	s.deliverSome(s.random)
	s.nodeQueue.shuffle(s.random)
	s.mayInterleave = !s.inFlight
	for range s.random.IntN(6) {
		if !s.step() {
			break
		}
	}
	s.mayInterleave = false
}

// simulatedWorkers is the number of workers for requests: at most one for each namespace.
const simulatedWorkers = requests.NamespaceShare

// restart replaces the controller by a new one. Running writes of the old one may still be stored.
func (s *simulation) restart() {
	for len(s.running) > 0 {
		s.endRequest(0, []outcome{late, timedOut}[s.random.IntN(2)])
	}
	s.fixture.restart()
	s.writer.Client = &slowNodes{Interface: s.client, patch: s.patchNode}
	s.admissions.admitter.Parallel, s.admitting = 1, false
	s.requests.Limit(simulatedWorkers, simulatedWorkers/requests.NamespaceShare)
}

// stepRequests begins a write, or ends a random one.
func (s *simulation) stepRequests() {
	switch n := len(s.running); {
	case n > 0 && s.random.IntN(2) == 0:
		i := s.random.IntN(n)
		how := answered
		if s.hung.Has(s.running[i].Namespace) {
			how = []outcome{late, timedOut}[s.random.IntN(2)]
		}
		s.endRequest(i, how)
	default:
		s.beginRequest()
	}
}

// checkOthers checks that webhooks that hang delay no requests in other namespaces.
func (s *simulation) checkOthers() {
	if s.refused.HasAny("patch evictionrequests", "patch nodes", "patch nodes/status") {
		return
	}
	c := s.cluster()
	for i := range c.nodes {
		node := &c.nodes[i]
		if len(c.drains(node)) == 0 {
			continue
		}
		for _, pod := range c.pods[node.Name] {
			if !s.hung.Has(pod.Namespace) && progress.StoredTargets(node).Take(pod) && !c.requested.Has(pod.UID) {
				s.t.Errorf("pod %s/%s of node %s has no request while webhooks hang in the namespaces %v; running: %+v", pod.Namespace, pod.Name, node.Name, sets.List(s.hung), s.running)
			}
		}
	}
}

func (s *simulation) createRandomMaintenance() {
	name := fmt.Sprintf("m%d", s.random.IntN(4))
	if _, err := s.client.CoordinationV1alpha1().NodeMaintenances().Get(s.ctx, name, metav1.GetOptions{}); err == nil {
		return
	}
	var plan []v1.DrainPlanEntry
	for range s.random.IntN(4) {
		entry := entry([]v1.PodType{v1.PodTypeDefault, v1.PodTypeDefault, v1.PodTypeDaemonSet, v1.PodTypeStatic}[s.random.IntN(4)], s.random.Int32N(5))
		if s.random.IntN(2) == 0 {
			entry.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": simulatedApps[s.random.IntN(2)]}}
		}
		plan = append(plan, entry)
	}
	slices.SortStableFunc(plan, maintenance.CompareEntries)
	stage := []coordinationv1alpha1.NodeMaintenanceStage{stageIdle, stageCordon, stageDrain, stageDrain}[s.random.IntN(4)]
	s.createMaintenance(name, stage, simulatedLabels[s.random.IntN(3)], maintenance.CompletePlan(plan)...)
	if s.fleet && s.random.IntN(3) > 0 {
		rollout := atOnce(1 + s.random.IntN(2))
		rollout.CompleteNodes = []coordinationv1alpha1.NodeCompletionPolicy{manual, rebooted}[s.random.IntN(2)]
		s.change(name, func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
	}
}

func (s *simulation) changeRandomMaintenance() {
	list, err := s.client.CoordinationV1alpha1().NodeMaintenances().List(s.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return
	}
	m := list.Items[s.random.IntN(len(list.Items))]
	order := []coordinationv1alpha1.NodeMaintenanceStage{stageIdle, stageCordon, stageDrain, stageComplete}
	switch at := slices.Index(order, m.Spec.Stage); {
	case s.random.IntN(3) == 0:
		s.deleteMaintenance(m.Name)
	case at < len(order)-1:
		s.setStage(m.Name, order[at+1+s.random.IntN(len(order)-at-1)])
	}
}

// selectOtherNodes changes the selector of a maintenance.
func (s *simulation) selectOtherNodes() {
	list, err := s.client.CoordinationV1alpha1().NodeMaintenances().List(s.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return
	}
	s.change(list.Items[s.random.IntN(len(list.Items))].Name, func(m *coordinationv1alpha1.NodeMaintenance) {
		terms := []v1.NodeSelectorTerm{s.randomTerm()}
		if s.random.IntN(2) == 0 {
			terms = append(terms, s.randomTerm())
		}
		m.Spec.NodeSelector.NodeSelectorTerms = terms
	})
}

// randomTerm selects nodes by a label, by its value, by their names, or by both.
func (s *simulation) randomTerm() v1.NodeSelectorTerm {
	label := v1.NodeSelectorRequirement{Key: simulatedLabels[s.random.IntN(len(simulatedLabels))], Operator: v1.NodeSelectorOpExists}
	name := termFor(0, simulatedNodes[s.random.IntN(len(simulatedNodes))])
	switch s.random.IntN(4) {
	case 0:
		return name
	case 1:
		name.MatchExpressions = []v1.NodeSelectorRequirement{label}
		return name
	case 2:
		label.Operator, label.Values = v1.NodeSelectorOpIn, []string{"", "other"}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{label}}
}

func (s *simulation) createRandomPod() {
	option := []func(*v1.Pod){ofApp("db"), ofApp("web"), ofApp("other"), daemon, mirror}[s.random.IntN(5)]
	s.createPods(1, simulatedNodes[s.random.IntN(len(simulatedNodes))], s.random.Int32N(6), option, func(pod *v1.Pod) {
		pod.Namespace = simulatedNamespaces[s.random.IntN(len(simulatedNamespaces))]
	})
}

// endRandomPod deletes a random pod, with or without a request, or sets it to Succeeded.
func (s *simulation) endRandomPod() {
	list, err := s.client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return
	}
	pod := &list.Items[s.random.IntN(len(list.Items))]
	if s.random.IntN(4) == 0 {
		pod.Status.Phase = v1.PodSucceeded
		if _, err := s.client.CoreV1().Pods(pod.Namespace).Update(s.ctx, pod, metav1.UpdateOptions{}); err != nil {
			s.t.Fatalf("ending a pod: %v", err)
		}
		return
	}
	s.deletePods(pod)
}

func (s *simulation) changeNode(change func(*v1.Node)) {
	node := s.node(simulatedNodes[s.random.IntN(len(simulatedNodes))])
	change(node)
	if _, err := s.client.CoreV1().Nodes().Update(s.ctx, node, metav1.UpdateOptions{}); err != nil {
		s.t.Fatalf("changing a node: %v", err)
	}
}

func (s *simulation) relabelRandomNode() {
	s.changeNode(func(node *v1.Node) { node.Labels = s.randomLabels() })
}

func (s *simulation) uncordonRandomNode() {
	s.changeNode(func(node *v1.Node) { node.Spec.Unschedulable = false })
}

// replaceRandomNode deletes a node and creates another one with the same name.
func (s *simulation) replaceRandomNode() {
	name := simulatedNodes[s.random.IntN(len(simulatedNodes))]
	if err := s.client.CoreV1().Nodes().Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatalf("deleting a node: %v", err)
	}
	delete(s.targets, name)
	if s.random.IntN(2) == 0 {
		s.deliverNodes()
		s.step()
	}
	s.createSimulatedNode(name)
}

// check is called before each write.
func (s *simulation) check(action clienttesting.Action) (bool, runtime.Object, error) {
	s.noteDrain(action)
	write := strings.TrimSuffix(action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/")
	if s.syncing && s.refused.Has(write) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "x", errors.New("denied by a webhook"))
	}
	switch {
	case action.Matches("patch", "evictionrequests"):
		s.checkRequest(action.(clienttesting.PatchAction))
	case action.Matches("update", "nodemaintenances") && action.GetSubresource() == "status":
		s.checkMaintenance(action.(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.NodeMaintenance))
	}
	return false, nil, nil
}

// patchNode checks a patch of a node, when the controller makes it. Before it is stored, other workers
// go on, and so does the rest of the cluster.
func (s *simulation) patchNode(name, subresource, patch string, write func() (*v1.Node, error)) (*v1.Node, error) {
	s.checkNode(name, subresource, patch)
	if !s.mayInterleave || s.random.IntN(3) > 0 {
		return write()
	}
	s.inFlight, s.syncing = true, false
	for range 1 + s.random.IntN(3) {
		s.happen()
	}
	s.inFlight, s.syncing, s.mayInterleave, s.outdated = false, true, true, true
	return write()
}

// checkNode checks a patch of a node.
func (s *simulation) checkNode(name, subresource, patch string) {
	cached, err := s.nodeLister.Get(name)
	if err != nil {
		// It has vanished while an earlier write to it was in flight. The UID protects the next one.
		if !strings.Contains(patch, `"uid":"`) {
			s.t.Errorf("wrote to the node %s, which is not in the cache: %s", name, patch)
		}
		return
	}
	switch {
	case s.outdated:
	case subresource == "status":
		s.checkTargets(cached)
	default:
		s.checkCordon(cached, patch)
	}
}

// checkCordon checks that a node is uncordoned only if no maintenance in the cache claims it.
func (s *simulation) checkCordon(node *v1.Node, patch string) {
	specs, _ := s.progress.Selecting(node)
	for _, o := range specs {
		if o.Claims() && strings.Contains(patch, `"unschedulable":false`) {
			s.t.Errorf("uncordoned node %s, which %s claims", node.Name, o.Name)
		}
	}
	if strings.Contains(patch, `"unschedulable":true`) && !slices.ContainsFunc(specs, func(o progress.Spec) bool { return s.mayCordon(&o, node) }) {
		s.t.Errorf("cordoned node %s, which no maintenance may claim: %v", node.Name, specs)
	}
}

// checkTargets checks the targets in the progress.Store before they are written. They must be within
// what all maintenances allow and what the node had before. If these include no pod that is left,
// they may also be within what one of the maintenances allows.
func (s *simulation) checkTargets(node *v1.Node) {
	specs, _ := s.progress.Selecting(node)
	var allowed []maintenance.Targets
	var targets maintenance.Targets
	for _, o := range specs {
		position, remaining, decided, counted := s.progress.Inspect(o.Name, node.Name)
		if !counted || !o.Drains() {
			continue
		}
		if maintenance.AdmissionOf(node, o.UID) != nil {
			position = o.Plan.Len() - 1 // It follows the plan at its own pace.
		}
		allowed = append(allowed, o.Plan.TargetsAt(progress.AllowedPosition(position, remaining)))
		targets = decided
	}
	if len(allowed) == 0 {
		return
	}
	// A cordon in the same sync may have returned a node that is further than in the cache.
	live, err := s.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", node.Name)
	if err != nil {
		return
	}
	least := maintenance.LeastPowerful(allowed...).RaisedTo(progress.StoredTargets(node)).RaisedTo(progress.StoredTargets(live.(*v1.Node)))
	stuck := !slices.ContainsFunc(s.podInformer.GetIndexer().List(), func(object any) bool {
		pod := object.(*v1.Pod)
		return pod.Spec.NodeName == node.Name && maintenance.IsLeft(pod) && least.Take(pod)
	})
	within := func(one maintenance.Targets) bool { return one.RaisedTo(least).Reaches(targets) }
	if !least.Reaches(targets) && !(stuck && slices.ContainsFunc(allowed, within)) {
		s.t.Errorf("targets %s of node %s are beyond %s, the least of %v", targets, node.Name, least, allowed)
	}
}

// checkRequest checks that an eviction is requested only if the node's targets include the pod.
func (s *simulation) checkRequest(action clienttesting.PatchAction) {
	pods, err := s.tracker.List(v1.SchemeGroupVersion.WithResource("pods"), v1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		s.t.Errorf("listing pods: %v", err)
		return
	}
	for _, pod := range pods.(*v1.PodList).Items {
		if string(pod.UID) != action.GetName() || !strings.Contains(string(action.GetPatch()), `"requesters":[`) {
			continue
		}
		s.checkCause(pod.UID)
		object, err := s.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", pod.Spec.NodeName)
		if err != nil {
			return // The node has just vanished.
		}
		// If the node was replaced since, the request is based on the targets of the old one.
		if node := object.(*v1.Node); s.decidedOn(pod.UID) == node.UID && !progress.StoredTargets(node).Take(&pod) {
			s.t.Errorf("requested the eviction of pod %s from node %s, whose targets are only %s", pod.Name, node.Name, progress.StoredTargets(node))
		}
	}
}

// decidedOn returns the UID of the cached node for which the eviction of the pod was decided.
func (s *simulation) decidedOn(pod types.UID) types.UID {
	at := slices.IndexFunc(s.running, func(w heldWrite) bool { return w.UID == pod })
	if at < 0 {
		return ""
	}
	return s.running[at].nodeUID
}

// checkCause checks that no eviction is requested after the last maintenance that caused it is
// completed.
func (s *simulation) checkCause(pod types.UID) {
	at := slices.IndexFunc(s.running, func(w heldWrite) bool { return w.UID == pod })
	if at < 0 {
		return
	}
	list, err := s.tracker.List(maintenances, maintenances.GroupVersion().WithKind("NodeMaintenance"), "")
	if err != nil {
		s.t.Errorf("listing maintenances: %v", err)
		return
	}
	for _, m := range list.(*coordinationv1alpha1.NodeMaintenanceList).Items {
		if slices.Contains(s.running[at].causes, m.UID) && len(m.Finalizers) > 0 {
			return
		}
	}
	s.t.Errorf("requested the eviction of pod %s/%s after its maintenances were completed", s.running[at].Namespace, s.running[at].Pod)
}

// checkMaintenance checks that a maintenance is Drained only if no pod in the cache is left on its
// nodes.
func (s *simulation) checkMaintenance(m *coordinationv1alpha1.NodeMaintenance) {
	if m.Spec.Stage != stageDrain || !status.IsDrained(&m.Status) || s.isReservation(m) {
		return
	}
	o, err := progress.NewSpec(m)
	if err != nil {
		s.t.Errorf("reading %s: %v", m.Name, err)
		return
	}
	selected := 0
	for _, node := range s.listNodes() {
		if !o.Selector.Matches(node) {
			continue
		}
		selected++
		if a := maintenance.AdmissionOf(node, m.UID); a != nil && a.ReturningTime != nil || progress.IsMarkedDone(node, m.UID) {
			continue // New pods may be there.
		}
		if s.progress.Limits.PhaseOn(&o, node) == progress.PhaseDone {
			continue // It was done before its admission: nothing is drained.
		}
		for _, object := range s.podInformer.GetIndexer().List() {
			// Pods that came after the last sync of the node are found by the next one. It is queued,
			// or waits until the cache has the last write of the node.
			_, delayed := s.nodeQueue.later[node.Name]
			due := slices.Contains(s.nodeQueue.keys, node.Name) || !s.writer.IsCurrentNode(node.Name) || s.fleet && delayed
			if pod := object.(*v1.Pod); pod.Spec.NodeName == node.Name && maintenance.IsLeft(pod) && !due {
				s.t.Errorf("%s is Drained, but pod %s is left on node %s", m.Name, pod.Name, node.Name)
			}
		}
	}
	if selected == 0 && len(s.nodeQueue.keys) == 0 {
		s.t.Errorf("%s is Drained, but has no nodes", m.Name)
	}
}

// observeTargets checks that the targets of nodes never step back.
func (s *simulation) observeTargets() {
	for _, name := range simulatedNodes {
		node, err := s.client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
		if err != nil || node.Status.MaintenanceStatus == nil || len(node.Status.MaintenanceStatus.DrainTargets) == 0 {
			delete(s.targets, name)
			continue
		}
		targets := progress.StoredTargets(node)
		if before, ok := s.targets[name]; ok && !targets.Reaches(before) {
			s.t.Errorf("the targets of node %s stepped back from %s to %s", name, before, targets)
		}
		s.targets[name] = targets
	}
}

func (s *simulation) step() bool {
	s.outdated = false
	s.syncing = true
	s.stepRequests()
	worked := s.fixture.stepSyncs()
	s.syncing = false
	s.observeTargets()
	if err := s.progress.CheckIndexes(s.listNodes()); err != nil {
		s.t.Error(err)
	}
	if s.fleet {
		s.checkRollouts()
	}
	return worked
}

// rest runs the controller without other events until nothing is left to do, and checks the result
// with a recount.
func (s *simulation) rest() {
	s.settle()
	s.recount()
}

// finish ends all refusals and hangs, and checks that all nodes are drained, then released.
func (s *simulation) finish() {
	s.refused.Clear()
	s.hung.Clear()
	if s.fleet {
		s.mendFleet()
	}
	s.rest()
	s.expectNothingNew()
	for s.endRequestedPods() || s.fleet && s.giveBackDrained() {
		s.rest()
	}
	s.expectNothingNew()
	list, err := s.client.CoordinationV1alpha1().NodeMaintenances().List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("listing maintenances: %v", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		skips := m.Status.RolloutStatus != nil && m.Status.RolloutStatus.SkippedNodes > 0
		if m.Spec.Stage == stageDrain && status.IsDrained(&m.Status) == skips && m.Status.SelectedNodes > 0 {
			s.t.Errorf("%s is not drained: %+v", m.Name, m.Status)
		}
		s.deleteMaintenance(m.Name)
	}
	s.rest()
	s.run(2 * progress.UnknownAdmission) // An admission may have been written when its maintenance was over.
	for _, name := range simulatedNodes {
		if node := s.node(name); node.Status.MaintenanceStatus != nil || len(status.OwnConditions(node.Status.Conditions)) > 0 || write.HasTaint(node) {
			s.t.Errorf("node %s was not released: %+v", name, node.Status)
		}
	}
	if list, err := s.client.CoordinationV1alpha1().NodeMaintenances().List(s.ctx, metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		s.t.Errorf("maintenances are left: %v %v", list, err)
	}
	s.expectNothingNew()
}

// expectNothingNew checks that a restarted controller writes the same statuses as the one before.
// Before it has counted the pods of all nodes, messages may differ.
func (s *simulation) expectNothingNew() {
	s.run(pace.RevertPause + pace.RevertSlack) // Then it is known that nobody undoes anything any more.
	before := s.statuses()
	s.restart()
	s.settle()
	if diff := cmp.Diff(before, s.statuses()); diff != "" {
		s.t.Errorf("a restarted controller writes other statuses (-before, +after):\n%s", diff)
	}
}

// statuses returns everything that the controller has written, by object.
func (s *simulation) statuses() map[string]any {
	c := s.cluster()
	statuses := map[string]any{"requested": sets.List(c.requested)}
	for i := range c.nodes {
		node := &c.nodes[i]
		statuses["node "+node.Name] = []any{node.Spec.Unschedulable, node.Spec.Taints, node.Status.MaintenanceStatus, status.OwnConditions(node.Status.Conditions)}
	}
	for i := range c.maintenances {
		m := &c.maintenances[i]
		statuses["maintenance "+m.Name] = []any{m.Finalizers, m.Spec.Stage, m.Status}
	}
	return statuses
}

// endRequestedPods ends the pods whose eviction is requested, and reports whether there were any.
func (f *fixture) endRequestedPods() bool {
	list, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing requests: %v", err)
	}
	ended := false
	for i := range list.Items {
		if !requests.IsRequested(&list.Items[i]) {
			continue
		}
		name := list.Items[i].Spec.Target.Pod.Name
		err := f.client.CoreV1().Pods(list.Items[i].Namespace).Delete(f.ctx, name, metav1.DeleteOptions{})
		ended = ended || err == nil
	}
	return ended
}
