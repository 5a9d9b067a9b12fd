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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

const (
	rebooted = coordinationv1alpha1.NodeCompletionRebooted
	manual   = coordinationv1alpha1.NodeCompletionManual
)

// newFleet returns a fixture with nodes that are Ready, have the label a, and run a pod each.
func newFleet(t testing.TB, nodes ...string) *fixture {
	t.Helper()
	f := newFixture(t)
	for _, name := range nodes {
		f.createReadyNode(name, map[string]string{"a": ""})
		f.createPods(1, name, 0)
	}
	return f
}

func (f *fixture) createReadyNode(name string, labels map[string]string) {
	f.t.Helper()
	f.createNode(name, labels)
	f.changeNamed(name, func(node *v1.Node) {
		node.Status.NodeInfo.BootID = "boot-1"
		setReady(true)(node)
	})
}

// changeNamed changes the spec, the metadata or the status of a node, as another client does.
func (f *fixture) changeNamed(name string, changes ...func(*v1.Node)) {
	f.t.Helper()
	node := f.node(name)
	for _, change := range changes {
		change(node)
	}
	if _, err := f.client.CoreV1().Nodes().Update(f.ctx, node, metav1.UpdateOptions{}); err != nil {
		f.t.Fatalf("changing a node: %v", err)
	}
}

func setReady(ready bool) func(*v1.Node) {
	return func(node *v1.Node) {
		status := v1.ConditionFalse
		if ready {
			status = v1.ConditionTrue
		}
		at := slices.IndexFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady })
		if at < 0 {
			node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: v1.NodeReady})
			at = len(node.Status.Conditions) - 1
		}
		node.Status.Conditions[at].Status = status
	}
}

func (f *fixture) deleteNode(name string) {
	f.t.Helper()
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatalf("deleting a node: %v", err)
	}
}

func reboot(node *v1.Node) { node.Status.NodeInfo.BootID += "+1" }

func cordonByHand(node *v1.Node) { node.Spec.Unschedulable = true }

func addTaint(key string) func(*v1.Node) {
	return func(node *v1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoSchedule})
	}
}

func removeTaint(key string) func(*v1.Node) {
	return func(node *v1.Node) {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
	}
}

// setDone says that the work of a maintenance on nodes is done.
func (f *fixture) setDone(name string, nodes ...string) {
	f.t.Helper()
	uid := string(f.maintenance(name).UID)
	for _, node := range nodes {
		f.changeNamed(node, func(node *v1.Node) {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, coordinationv1alpha1.NodeDoneAnnotation, uid)
		})
	}
}

// createRollout creates a maintenance in the stage Drain that selects the nodes with the label a.
func (f *fixture) createRollout(name string, rollout coordinationv1alpha1.NodeMaintenanceRollout) {
	f.t.Helper()
	f.createMaintenance(name, stageDrain, "a", maintenance.StandardPlan()...)
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout = &rollout })
}

// acknowledge says of failed nodes that they are known.
func (f *fixture) acknowledge(name string, nodes ...types.UID) {
	f.t.Helper()
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Rollout.AcknowledgedNodeUIDs = nodes })
}

// atOnce is a rollout of so many nodes at the same time.
func atOnce(nodes int) coordinationv1alpha1.NodeMaintenanceRollout {
	return coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(nodes)), CompleteNodes: manual}
}

// createLimit creates a budget for the nodes with the label a.
func (f *fixture) createLimit(name string, maxUnavailable int, changes ...func(*coordinationv1alpha1.NodeMaintenanceBudget)) {
	f.t.Helper()
	b := &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: f.newUID(), Generation: 1},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt(maxUnavailable)),
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpExists}},
			}}},
		},
	}
	for _, change := range changes {
		change(b)
	}
	if _, err := f.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Create(f.ctx, b, metav1.CreateOptions{}); err != nil {
		f.t.Fatalf("creating a budget: %v", err)
	}
}

func (f *fixture) deleteLimit(name string) {
	f.t.Helper()
	if err := f.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatalf("deleting a budget: %v", err)
	}
}

func (f *fixture) limit(name string) *coordinationv1alpha1.NodeMaintenanceBudget {
	f.t.Helper()
	b, err := f.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatalf("reading a budget: %v", err)
	}
	return b
}

func (f *fixture) changeLimit(name string, change func(*coordinationv1alpha1.NodeMaintenanceBudgetSpec)) {
	f.t.Helper()
	b := f.limit(name)
	b.Generation++
	change(&b.Spec)
	if _, err := f.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Update(f.ctx, b, metav1.UpdateOptions{}); err != nil {
		f.t.Fatalf("changing a budget: %v", err)
	}
}

// createDaemonSet creates a DaemonSet for all nodes, which only this process of the controller knows.
func (f *fixture) createDaemonSet() *appsv1.DaemonSet {
	f.t.Helper()
	labels := map[string]string{"app": "d"}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d", UID: f.newUID()},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	if err := f.daemonSets.Add(ds); err != nil {
		f.t.Fatalf("adding a DaemonSet to the cache: %v", err)
	}
	return ds
}

// daemonOf makes a pod one of the DaemonSet.
func daemonOf(ds *appsv1.DaemonSet, ready bool) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: ptr.To(true)}}
		if ready {
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}
	}
}

// describeNode says what a node looks like: whether it is planned, tainted and cordoned, and how far
// the maintenances are that were admitted.
func describeNode(node *v1.Node) string {
	var words []string
	planned := func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeMaintenancePlanned && c.Status == v1.ConditionTrue
	}
	if slices.ContainsFunc(node.Status.Conditions, planned) {
		words = append(words, "planned")
	}
	if slices.Contains(node.Spec.Taints, v1.Taint{Key: coordinationv1alpha1.NodePlannedTaint, Effect: v1.TaintEffectPreferNoSchedule}) {
		words = append(words, "tainted")
	}
	if node.Spec.Unschedulable {
		words = append(words, "cordoned")
	}
	if status := node.Status.MaintenanceStatus; status != nil && !status.Unclaimed {
		words = append(words, "claimed")
	}
	for _, admission := range maintenance.Admissions(node) {
		words = append(words, admission.MaintenanceName+":"+describeAdmission(&admission))
	}
	return strings.Join(words, " ")
}

func describeAdmission(a *v1.MaintenanceAdmission) string {
	switch {
	case a.DoneTime != nil:
		return "done"
	case a.FailedTime != nil:
		return "failed"
	case a.ReturningTime != nil:
		return "returning"
	case a.DrainedTime != nil:
		return "drained"
	}
	return "admitted"
}

// These are what describeNode says of a node of the maintenance m.
const (
	waiting   = "planned tainted"
	admitted  = "cordoned claimed m:admitted"
	drained   = "cordoned claimed m:drained"
	returning = "cordoned claimed m:returning"
	failed    = "cordoned claimed m:failed"
	done      = "m:done"
	untouched = ""
)

func (f *fixture) describeNodes() map[string]string {
	f.t.Helper()
	described := map[string]string{}
	nodes := f.cluster().nodes
	for i := range nodes {
		described[nodes[i].Name] = describeNode(&nodes[i])
	}
	return described
}

func (f *fixture) expectNodes(when string, want map[string]string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.describeNodes()); diff != "" {
		f.t.Errorf("%s: nodes (-want, +got):\n%s", when, diff)
	}
}

func (f *fixture) expectNode(when, name, want string) {
	f.t.Helper()
	if got := describeNode(f.node(name)); got != want {
		f.t.Errorf("%s: node %s is %q, not %q", when, name, got, want)
	}
}

// expectWaits checks for what the nodes of a maintenance wait.
func (f *fixture) expectWaits(when, name string, want ...coordinationv1alpha1.NodeMaintenanceWait) {
	f.t.Helper()
	var got []coordinationv1alpha1.NodeMaintenanceWait
	if status := f.maintenance(name).Status.RolloutStatus; status != nil {
		got = status.WaitingFor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("%s: %s waits for (-want, +got):\n%s", when, name, diff)
	}
}

// waitFor is a cause for which so many nodes wait.
func waitFor(reason coordinationv1alpha1.NodeMaintenanceWaitReason, budget string, nodes int32) coordinationv1alpha1.NodeMaintenanceWait {
	return coordinationv1alpha1.NodeMaintenanceWait{Reason: reason, Budget: budget, NodeCount: nodes}
}

// conditionOf returns "status reason: message" of a condition of a maintenance, or nothing.
func (f *fixture) conditionOf(name string, conditionType coordinationv1alpha1.NodeMaintenanceConditionType) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.maintenance(name).Status.Conditions, string(conditionType))
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// drainNodes runs the controller until the pods are gone whose eviction it requests.
func (f *fixture) drainNodes() {
	f.t.Helper()
	for range 100 {
		f.run(5 * time.Second)
		if !f.endRequestedPods() {
			return
		}
	}
	f.t.Fatal("evictions are still requested")
}

// requestedPods returns how many of the pods that are left the controller wants to be evicted.
func (f *fixture) requestedPods() int {
	f.t.Helper()
	c, requested := f.cluster(), 0
	for _, pods := range c.pods {
		for _, pod := range pods {
			if c.requested.Has(pod.UID) {
				requested++
			}
		}
	}
	return requested
}

// watchNodes calls check for each write of the controller or another client to a node, with the node
// before it.
func (f *fixture) watchNodes(check func(before *v1.Node, patch string)) {
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		object, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", patch.GetName())
		if err == nil {
			check(object.(*v1.Node), string(patch.GetPatch()))
		} else if !apierrors.IsNotFound(err) {
			f.t.Errorf("reading a node: %v", err)
		}
		return false, nil, nil
	})
}

// countLists counts the reads of all objects of a resource.
func (f *fixture) countLists(resource string) *int {
	count := 0
	f.client.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		count++
		return false, nil, nil
	})
	return &count
}

// limitAdmitted checks at each write to a node that no more nodes are admitted and not given back.
func (f *fixture) limitAdmitted(most int) {
	f.watchNodes(func(*v1.Node, string) {
		list, err := f.tracker.List(v1.SchemeGroupVersion.WithResource("nodes"), v1.SchemeGroupVersion.WithKind("Node"), "")
		if err != nil {
			f.t.Errorf("listing nodes: %v", err)
			return
		}
		var names []string
		for i := range list.(*v1.NodeList).Items {
			node := &list.(*v1.NodeList).Items[i]
			if slices.ContainsFunc(maintenance.Admissions(node), func(a v1.MaintenanceAdmission) bool { return a.DoneTime == nil }) {
				names = append(names, node.Name)
			}
		}
		if len(names) > most {
			f.t.Errorf("%d nodes are admitted: %v", len(names), names)
		}
	})
}

// isByController reports whether the controller makes a write, not the test.
func isByController(action clienttesting.Action) bool {
	switch action := action.(type) {
	case clienttesting.UpdateActionImpl:
		return action.UpdateOptions.FieldManager != ""
	case clienttesting.PatchActionImpl:
		return action.PatchOptions.FieldManager != ""
	}
	return false
}
