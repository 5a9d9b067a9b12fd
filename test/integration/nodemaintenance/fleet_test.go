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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

func startFleetServer(t *testing.T, etcd *storagebackend.Config, gateOn bool) *rest.Config {
	t.Helper()
	return testcluster.StartAPIServer(t, etcd, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:         true,
		features.DeclarativeNodeMaintenance: true,
		features.NodeMaintenanceBudgets:     gateOn,
	})
}

// TestFleet uses one API server for all tests.
func TestFleet(t *testing.T) {
	config := startFleetServer(t, framework.SharedEtcd(), true)
	for name, run := range map[string]func(*testing.T, *cluster){
		"budgets that are refused":             testBudgetsRefused,
		"rollouts that are refused":            testRolloutsRefused,
		"two budgets, with the real role":      testTwoBudgets,
		"a pool that is cordoned at once":      testCordonThenDrain,
		"the annotation of done needs rights":  testDoneNeedsRights,
		"server-side apply":                    testFleetApply,
		"it ends while no controller runs":     testEndWhileDown,
		"statuses that cannot be written hang": testHungStatuses,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, config)
			t.Cleanup(c.removeLimits)
			run(t, c)
		})
	}
}

func (c *cluster) removeLimits() {
	ctx := context.WithoutCancel(c.t.Context())
	if err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.t.Errorf("removing budgets: %v", err)
	}
}

// createFleetNode creates a node of the pool a, without the taint with which nodes begin, and which
// another controller removes.
func (c *cluster) createFleetNode(name string) {
	c.t.Helper()
	c.createNode(name, "pool=a")
	c.patchNode(name, `{"spec":{"taints":null}}`)
}

// newLimit returns a budget of the nodes with the label pool.
func newLimit(name, pool string, maxUnavailable intstr.IntOrString) *coordinationv1alpha1.NodeMaintenanceBudget {
	return &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1alpha1.NodeMaintenanceBudgetSpec{NodeSelector: nodesLabeled("pool", pool), MaxUnavailable: &maxUnavailable},
	}
}

func (c *cluster) createLimit(b *coordinationv1alpha1.NodeMaintenanceBudget) {
	c.t.Helper()
	if _, err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Create(c.t.Context(), b, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating budget %s: %v", b.Name, err)
	}
}

// newRollout returns a maintenance in the stage Drain of the nodes with the label pool.
func newRollout(name, pool string, rollout coordinationv1alpha1.NodeMaintenanceRollout) *coordinationv1alpha1.NodeMaintenance {
	m := newMaintenance(name, stageDrain, nodesLabeled("pool", pool), planOf()...)
	m.Spec.Rollout = &rollout
	return m
}

func atOnce(nodes int) coordinationv1alpha1.NodeMaintenanceRollout {
	return coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(nodes))}
}

// expectInvalid checks that an error names a field and says all of the texts.
func expectInvalid(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want an invalid object", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

func testBudgetsRefused(t *testing.T, c *cluster) {
	type spec = coordinationv1alpha1.NodeMaintenanceBudgetSpec
	window := func(schedule, zone string) []coordinationv1alpha1.NodeMaintenanceWindow {
		return []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: schedule, TimeZone: zone, DurationSeconds: 3600}}
	}
	for name, test := range map[string]struct {
		change func(*spec)
		want   []string
	}{
		"no selector":       {func(s *spec) { s.NodeSelector = nil }, []string{"spec.nodeSelector", "Required"}},
		"no maximum":        {func(s *spec) { s.MaxUnavailable = nil }, []string{"spec.maxUnavailable", "Required"}},
		"a negative number": {func(s *spec) { s.MaxUnavailable.IntVal = -1 }, []string{"spec.maxUnavailable", "-1", "at least 0", `"10%"`}},
		"no percentage":     {func(s *spec) { s.MaxUnavailable = ptr.To(intstr.FromString("many")) }, []string{"spec.maxUnavailable", `"many"`, `"10%"`}},
		"more than all":     {func(s *spec) { s.MaxUnavailable = ptr.To(intstr.FromString("101%")) }, []string{"spec.maxUnavailable", `"101%"`, "100%"}},
		"no key": {func(s *spec) {
			s.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{MaxDomains: 1}
		}, []string{"spec.topology.key", "Required"}},
		"a key that is none": {func(s *spec) {
			s.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "a zone", MaxDomains: 1}
		}, []string{"spec.topology.key", `"a zone"`, "topology.kubernetes.io/zone"}},
		"no domain": {func(s *spec) {
			s.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone"}
		}, []string{"spec.topology.maxDomains", "Required"}},
		"a schedule that is none":   {func(s *spec) { s.Windows = window("at night", "UTC") }, []string{"spec.windows[0].schedule", `"at night"`}},
		"an hour that is none":      {func(s *spec) { s.Windows = window("0 25 * * *", "UTC") }, []string{"spec.windows[0].schedule", `"0 25 * * *"`}},
		"a window that never opens": {func(s *spec) { s.Windows = window("0 0 31 2 *", "UTC") }, []string{"spec.windows[0].schedule", `"0 0 31 2 *"`}},
		"a time zone in a schedule": {func(s *spec) { s.Windows = window("TZ=UTC 0 2 * * *", "UTC") }, []string{"spec.windows[0].schedule", "timeZone"}},
		"a selector with 101 terms": {func(s *spec) {
			s.NodeSelector.NodeSelectorTerms = slices.Repeat(s.NodeSelector.NodeSelectorTerms[:1], 101)
		}, []string{"spec.nodeSelector.nodeSelectorTerms", "100 terms", "101"}},
		"an unknown time zone":      {func(s *spec) { s.Windows = window("0 2 * * *", "Mars/Olympus") }, []string{"spec.windows[0].timeZone", `"Mars/Olympus"`}},
		"the time zone of a server": {func(s *spec) { s.Windows = window("0 2 * * *", "Local") }, []string{"spec.windows[0].timeZone", `"Local"`}},
		"a window without a length": {func(s *spec) {
			s.Windows = window("0 2 * * *", "UTC")
			s.Windows[0].DurationSeconds = 0
		}, []string{"spec.windows[0].durationSeconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimit("refused", "a", intstr.FromInt(1))
			test.change(&b.Spec)
			_, err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Create(t.Context(), b, metav1.CreateOptions{})
			expectInvalid(t, err, test.want...)
		})
	}
	accepted := newLimit("accepted", "a", intstr.FromString("0%"))
	accepted.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: 1}
	accepted.Spec.Windows = window("0 2 * * 6", "Europe/Berlin")
	c.createLimit(accepted)
	patch := []byte(`{"spec":{"windows":[{"schedule":"0 2 * * 8","durationSeconds":60}]}}`)
	_, err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Patch(t.Context(), "accepted", types.MergePatchType, patch, metav1.PatchOptions{})
	expectInvalid(t, err, "spec.windows[0].schedule", `"0 2 * * 8"`)
}

func testRolloutsRefused(t *testing.T, c *cluster) {
	type rollout = coordinationv1alpha1.NodeMaintenanceRollout
	for name, test := range map[string]struct {
		rollout rollout
		want    []string
	}{
		"none at a time":     {atOnce(0), []string{"spec.rollout.maxConcurrent", "0", "at least 1"}},
		"no percentage":      {rollout{MaxConcurrent: ptr.To(intstr.FromString("0%"))}, []string{"spec.rollout.maxConcurrent", `"0%"`, "1% to 100%"}},
		"an unknown policy":  {rollout{CompleteNodes: "Later"}, []string{"spec.rollout.completeNodes", `"Later"`, "Manual", "Rebooted"}},
		"no time":            {rollout{ReturnTimeoutSeconds: ptr.To[int32](0)}, []string{"spec.rollout.returnTimeoutSeconds", "greater than or equal to 1"}},
		"more than a week":   {rollout{ReturnTimeoutSeconds: ptr.To[int32](604801)}, []string{"spec.rollout.returnTimeoutSeconds", "less than or equal to 604800"}},
		"fewer than no node": {rollout{MaxFailedNodes: ptr.To[int32](-1)}, []string{"spec.rollout.maxFailedNodes", "greater than or equal to 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Create(t.Context(), newRollout("refused", "a", test.rollout), metav1.CreateOptions{})
			expectInvalid(t, err, test.want...)
		})
	}
	created := c.createMaintenance(newRollout("m", "a", rollout{}))
	want := rollout{CompleteNodes: "Manual", ReturnTimeoutSeconds: ptr.To[int32](1800), MaxFailedNodes: ptr.To[int32](0)}
	if diff := cmp.Diff(&want, created.Spec.Rollout); diff != "" {
		t.Errorf("defaults (-want, +got):\n%s", diff)
	}
	c.createMaintenance(newMaintenance("plain", stageDrain, nodesLabeled("pool", "a"), planOf()...))
	for name, test := range map[string]struct {
		maintenance, patch string
		// want is empty for a change that is allowed.
		want []string
	}{
		"removed":         {"m", `{"spec":{"rollout":null}}`, []string{"spec.rollout", "must not be removed", "maxConcurrent"}},
		"added":           {"plain", `{"spec":{"rollout":{"maxConcurrent":1}}}`, []string{"spec.rollout", "must not be added", "another NodeMaintenance"}},
		"another policy":  {"m", `{"spec":{"rollout":{"completeNodes":"Rebooted"}}}`, []string{"spec.rollout.completeNodes", "Rebooted", "keep Manual"}},
		"none at a time":  {"m", `{"spec":{"rollout":{"maxConcurrent":0}}}`, []string{"spec.rollout.maxConcurrent"}},
		"what may change": {"m", `{"spec":{"rollout":{"maxConcurrent":"50%","paused":true,"maxFailedNodes":3,"returnTimeoutSeconds":60}}}`, nil},
	} {
		t.Run("changed: "+name, func(t *testing.T) {
			_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Patch(t.Context(), test.maintenance, types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
			if len(test.want) > 0 {
				expectInvalid(t, err, test.want...)
			} else if err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// fleet describes the nodes: cordoned, and how far maintenances are.
func (c *cluster) fleet(ctx context.Context) map[string]string {
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	nodes := map[string]string{}
	for i := range list.Items {
		node := &list.Items[i]
		var words []string
		if slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == coordinationv1alpha1.NodePlannedTaint }) {
			words = append(words, "planned")
		}
		if node.Spec.Unschedulable {
			words = append(words, "cordoned")
		}
		for _, a := range maintenance.Admissions(node) {
			state := "admitted"
			switch {
			case a.DoneTime != nil:
				state = "done"
			case a.DrainedTime != nil:
				state = "drained"
			}
			words = append(words, a.MaintenanceName+":"+state)
		}
		nodes[node.Name] = strings.Join(words, " ")
	}
	return nodes
}

func (c *cluster) awaitFleet(what string, want map[string]string) {
	c.t.Helper()
	c.eventually(what, func(ctx context.Context) (bool, string) {
		diff := cmp.Diff(want, c.fleet(ctx))
		return diff == "", diff
	})
}

// awaitUnavailable waits until a budget counts so many nodes, and has nothing pending.
func (c *cluster) awaitUnavailable(name string, unavailable, allowed int32) {
	c.t.Helper()
	c.eventually("the status of budget "+name, func(ctx context.Context) (bool, string) {
		b, err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return b.Status.UnavailableNodes == unavailable && b.Status.AdmissionsAllowed == allowed && len(b.Status.PendingAdmissions) == 0, fmt.Sprintf("%+v", b.Status)
	})
}

func (c *cluster) setDone(name, node string) {
	c.t.Helper()
	c.patchNode(node, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, coordinationv1alpha1.NodeDoneAnnotation, c.maintenance(name).UID))
}

// testTwoBudgets has nodes in two budgets: the lower one decides. The controller has no more rights
// than in a cluster.
func testTwoBudgets(_ *testing.T, c *cluster) {
	for _, name := range []string{"n1", "n2", "n3"} {
		c.createFleetNode(name)
		c.createPod(newPod("pod-"+name, name))
	}
	c.createLimit(newLimit("low", "a", intstr.FromInt(1)))
	c.createLimit(newLimit("high", "a", intstr.FromString("70%")))
	c.startQuick()
	c.createMaintenance(newRollout("m", "a", atOnce(3)))
	c.awaitFleet("the first node", map[string]string{"n1": "cordoned m:drained", "n2": "planned", "n3": "planned"})
	c.awaitUnavailable("low", 1, 0)
	c.awaitUnavailable("high", 1, 1)
	c.expect("only the pod of the first node has left", states{"pod/pod-n1": "gone", "pod/pod-n2": "here", "pod/pod-n3": "here"})
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitBudget, Budget: "low", NodeCount: 2})
	c.setDone("m", "n1")
	c.awaitFleet("the second node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained", "n3": "planned"})
	c.deleteLimit("low")
	c.awaitFleet("the third node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained", "n3": "cordoned m:drained"})
	c.awaitUnavailable("high", 2, 0)
	c.awaitEvent("NodeAdmitted", "n3")
	c.awaitEvent("NodeGivenBack", "n1")
	c.setStage("m", stageComplete)
	c.awaitFleet("the end", map[string]string{"n1": "", "n2": "", "n3": ""})
	c.awaitUnavailable("high", 0, 2)
}

// testCordonThenDrain cordons a pool before it is drained: the budget still allows so many nodes at a
// time, of those that run pods.
func testCordonThenDrain(_ *testing.T, c *cluster) {
	want := map[string]string{}
	for i := range 10 {
		name := fmt.Sprintf("n%d", i)
		c.createFleetNode(name)
		c.createPod(newPod("pod-"+name, name))
		want[name] = "cordoned"
	}
	c.createLimit(newLimit("pool", "a", intstr.FromInt(2)))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageCordon, nodesLabeled("pool", "a"), planOf()...))
	c.awaitFleet("the cordons", want)
	c.awaitUnavailable("pool", 10, 0)
	c.setStage("m", stageDrain)
	want["n0"], want["n1"] = "cordoned m:drained", "cordoned m:drained"
	c.awaitFleet("the first nodes", want)
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitBudget, Budget: "pool", NodeCount: 8})
	c.expect("only the pods of the first nodes have left", states{"pod/pod-n0": "gone", "pod/pod-n1": "gone", "pod/pod-n2": "here", "pod/pod-n9": "here"})
	c.setDone("m", "n1")
	want["n1"], want["n2"] = "m:done", "cordoned m:drained"
	c.awaitFleet("the next node", want)
	c.awaitUnavailable("pool", 9, 0)
}

func (c *cluster) deleteLimit(name string) {
	c.t.Helper()
	if err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatalf("deleting budget %s: %v", name, err)
	}
}

func (c *cluster) awaitWait(name string, want coordinationv1alpha1.NodeMaintenanceWait) {
	c.t.Helper()
	c.eventually(name+" to wait", func(context.Context) (bool, string) {
		status := c.maintenance(name).Status.RolloutStatus
		// What nodes wait for may be newer than how many they are.
		return status != nil && status.WaitingNodes == want.NodeCount && cmp.Equal(status.WaitingFor, []coordinationv1alpha1.NodeMaintenanceWait{want}), fmt.Sprintf("%+v", status)
	})
}

// testDoneNeedsRights has the annotation set by who may change nodes, but not maintain them.
func testDoneNeedsRights(t *testing.T, c *cluster) {
	c.createFleetNode("n1")
	user := "labeler@" + c.namespace
	c.bind(user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch", "create"}})
	client := c.ClientOf(user)
	annotate := func(value string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, coordinationv1alpha1.NodeDoneAnnotation, value)
		_, err := client.CoreV1().Nodes().Patch(t.Context(), "n1", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	c.eventually("the permissions", func(ctx context.Context) (bool, string) {
		_, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	expectDenied := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `requires the verb "delete" on it`) || !strings.Contains(err.Error(), coordinationv1alpha1.NodeDoneAnnotation) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	expectDenied("a patch", annotate(`"uid"`))
	applied := coreapply.Node("n1").WithAnnotations(map[string]string{coordinationv1alpha1.NodeDoneAnnotation: "uid"})
	_, err := client.CoreV1().Nodes().Apply(t.Context(), applied, metav1.ApplyOptions{FieldManager: "test"})
	expectDenied("server-side apply", err)
	_, err = client.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n2", Annotations: map[string]string{coordinationv1alpha1.NodeDoneAnnotation: "uid"},
	}}, metav1.CreateOptions{})
	expectDenied("a creation", err)
	c.patchNode("n1", fmt.Sprintf(`{"metadata":{"annotations":{%q:"uid"}}}`, coordinationv1alpha1.NodeDoneAnnotation))
	if err := annotate(`null`); err != nil {
		t.Errorf("removing the annotation: %v", err)
	}
}

// bind grants a user these permissions.
func (c *cluster) bind(user string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	ctx := c.t.Context()
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating a role: %v", err)
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding a role: %v", err)
	}
}

// testFleetApply has two managers share a rollout and a budget.
func testFleetApply(t *testing.T, c *cluster) {
	ctx := t.Context()
	maintenances, limits := c.client.CoordinationV1alpha1().NodeMaintenances(), c.client.CoordinationV1alpha1().NodeMaintenanceBudgets()
	selector := coreapply.NodeSelector().WithNodeSelectorTerms(coreapply.NodeSelectorTerm().WithMatchExpressions(
		coreapply.NodeSelectorRequirement().WithKey("pool").WithOperator(v1.NodeSelectorOpExists)))
	rollout := func(nodes int) *coordinationapply.NodeMaintenanceApplyConfiguration {
		return coordinationapply.NodeMaintenance("m").WithSpec(coordinationapply.NodeMaintenanceSpec().
			WithStage(stageIdle).WithNodeSelector(selector).
			WithRollout(coordinationapply.NodeMaintenanceRollout().WithMaxConcurrent(intstr.FromInt(nodes))))
	}
	pause := coordinationapply.NodeMaintenance("m").WithSpec(coordinationapply.NodeMaintenanceSpec().
		WithRollout(coordinationapply.NodeMaintenanceRollout().WithPaused(true)))
	limit := func(nodes int) *coordinationapply.NodeMaintenanceBudgetApplyConfiguration {
		return coordinationapply.NodeMaintenanceBudget("b").WithSpec(coordinationapply.NodeMaintenanceBudgetSpec().
			WithNodeSelector(selector).WithMaxUnavailable(intstr.FromInt(nodes)))
	}
	by := func(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
	for range 2 { // The second time changes nothing.
		if _, err := maintenances.Apply(ctx, rollout(2), by("gitops")); err != nil {
			t.Fatal(err)
		}
		if _, err := limits.Apply(ctx, limit(2), by("gitops")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := maintenances.Apply(ctx, pause, by("oncall")); err != nil {
		t.Fatal(err)
	}
	m, err := maintenances.Apply(ctx, rollout(3), by("gitops"))
	if err != nil {
		t.Fatal(err)
	}
	if !m.Spec.Rollout.Paused || m.Spec.Rollout.MaxConcurrent.IntValue() != 3 || m.Generation != 3 {
		t.Errorf("generation %d, rollout %+v", m.Generation, m.Spec.Rollout)
	}
	if _, err := maintenances.Apply(ctx, rollout(4), by("other")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "spec.rollout.maxConcurrent") {
		t.Errorf("another manager of a field: %v", err)
	}
	if _, err := limits.Apply(ctx, limit(0), by("other")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "spec.maxUnavailable") {
		t.Errorf("another manager of a field: %v", err)
	}
	status := coordinationapply.NodeMaintenanceBudget("b").WithStatus(coordinationapply.NodeMaintenanceBudgetStatus().WithExpectedNodes(3).WithUnavailableNodes(1).WithAdmissionsAllowed(1))
	b, err := limits.ApplyStatus(ctx, status, by("status"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = limits.Apply(ctx, limit(2), by("gitops")); err != nil || b.Status.ExpectedNodes != 3 || b.Generation != 1 {
		t.Errorf("the budget after another apply: %+v, %v", b, err)
	}
}

// TestFleetGate disables the gate of budgets in the API server and the controllers, in the middle of
// a rollout, and enables it again, with one etcd. The subtests depend on each other.
func TestFleetGate(t *testing.T) {
	etcd := framework.SharedEtcd()
	const namespace = "fleet-gate"
	begun := map[string]string{"n1": "cordoned m:drained", "n2": "planned"}
	var kept *v1.MaintenanceStatus
	t.Run("on", func(t *testing.T) {
		c := withNamespace(t, startFleetServer(t, etcd, true), namespace)
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating the namespace: %v", err)
		}
		c.createFleetNode("n1")
		c.createFleetNode("n2")
		c.createLimit(newLimit("b", "a", intstr.FromInt(1)))
		stop, _ := c.startQuick()
		c.createMaintenance(newRollout("m", "a", atOnce(2)))
		c.awaitFleet("the first node", begun)
		stop()
		kept = c.node("n1").Status.MaintenanceStatus
	})
	t.Run("off", func(t *testing.T) {
		c := withNamespace(t, startFleetServer(t, etcd, false), namespace)
		if _, err := c.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("budgets are served: %v", err)
		}
		c.expectRolloutDropped(kept)
		c.startQuick()
		c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitDisabled, NodeCount: 1})
		c.awaitFleet("nothing to begin", begun)
		c.setDone("m", "n1")
		c.awaitFleet("what was begun to end", map[string]string{"n1": "m:done", "n2": "planned"})
	})
	t.Run("on again", func(t *testing.T) {
		c := withNamespace(t, startFleetServer(t, etcd, true), namespace)
		t.Cleanup(c.removeAll)
		t.Cleanup(c.removeLimits)
		c.startQuick()
		c.awaitFleet("the second node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained"})
		c.deleteMaintenance("m")
		c.awaitFleet("the end", map[string]string{"n1": "", "n2": ""})
	})
}

// expectRolloutDropped checks that new objects do not get the fields of the gate while it is off, and
// that stored ones keep them.
func (c *cluster) expectRolloutDropped(kept *v1.MaintenanceStatus) {
	c.t.Helper()
	ctx := c.t.Context()
	if created := c.createMaintenance(newRollout("new", "other", atOnce(1))); created.Spec.Rollout != nil {
		c.t.Errorf("a new maintenance has the rollout %+v", created.Spec.Rollout)
	}
	c.deleteMaintenance("new")
	m, err := c.client.CoordinationV1alpha1().NodeMaintenances().Patch(ctx, "m", types.MergePatchType, []byte(`{"spec":{"reason":"changed"}}`), metav1.PatchOptions{})
	if err != nil || m.Spec.Rollout == nil {
		c.t.Errorf("the stored maintenance: %+v, %v", m, err)
	}
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"x"}]}}`)
	node, err := c.client.CoreV1().Nodes().Patch(ctx, "n1", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		c.t.Fatalf("writing a condition: %v", err)
	}
	if diff := cmp.Diff(kept, node.Status.MaintenanceStatus); diff != "" {
		c.t.Errorf("the stored status of a node (-before, +now):\n%s", diff)
	}
	created, err := c.client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: v1.NodeStatus{MaintenanceStatus: kept}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating a node: %v", err)
	}
	if len(maintenance.Admissions(created)) > 0 {
		c.t.Errorf("a new node has the admissions %+v", created.Status.MaintenanceStatus)
	}
	c.deleteNode("new")
}
