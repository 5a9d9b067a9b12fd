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
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/ptr"
)

const (
	skipInterceptors = v1.MaintenanceEscalationSkipInterceptors
	ignoreBudgets    = v1.MaintenanceEscalationIgnoreBudgets
	forceDelete      = v1.MaintenanceEscalationForceDelete
)

// TestEscalation uses one API server for all tests.
func TestEscalation(t *testing.T) {
	config := startFleetServer(t, framework.SharedEtcd(), true)
	for name, run := range map[string]func(*testing.T, *cluster){
		"interceptors and budgets":          testEscalationActs,
		"nodes out of service":              testEscalationForces,
		"what is refused":                   testEscalationsRefused,
		"the verb escalate":                 testEscalationNeedsRight,
		"who may have interceptors skipped": testSkippingNeedsRight,
	} {
		t.Run(name, func(t *testing.T) { run(t, newCluster(t, config)) })
	}
}

func escalateAfter(seconds int32, action v1.MaintenanceEscalation) coordinationv1alpha1.NodeMaintenanceEscalationStep {
	return coordinationv1alpha1.NodeMaintenanceEscalationStep{AfterSeconds: seconds, Action: action}
}

// forPods limits a step to pods with the label.
func forPods(step coordinationv1alpha1.NodeMaintenanceEscalationStep, label string) coordinationv1alpha1.NodeMaintenanceEscalationStep {
	step.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}
	return step
}

// newEscalation returns a rollout over the pool a that stops waiting.
func newEscalation(name string, steps ...coordinationv1alpha1.NodeMaintenanceEscalationStep) *coordinationv1alpha1.NodeMaintenance {
	m := newRollout(name, "a", atOnce(10))
	m.Spec.Escalation = steps
	return m
}

func gracePeriod(seconds int64) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// createFrozenBudget creates a budget that allows no disruption of pods with the label, as the disruption
// controller leaves it.
func (c *cluster) createFrozenBudget(label string) {
	c.t.Helper()
	budgets := c.client.PolicyV1().PodDisruptionBudgets(c.namespace)
	budget, err := budgets.Create(c.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: label},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating budget %s: %v", label, err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1}
	if _, err := budgets.UpdateStatus(c.t.Context(), budget, metav1.UpdateOptions{}); err != nil {
		c.t.Fatalf("writing the status of budget %s: %v", label, err)
	}
}

func (c *cluster) pod(name string) *v1.Pod {
	c.t.Helper()
	pod, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading pod %s: %v", name, err)
	}
	return pod
}

// awaitEscalation waits for the escalation that a node has for a maintenance.
func (c *cluster) awaitEscalation(node, name string, want v1.MaintenanceEscalation) {
	c.t.Helper()
	uid := c.maintenance(name).UID
	c.eventually(fmt.Sprintf("node %s to escalate to %q", node, want), func(context.Context) (bool, string) {
		admission := maintenance.AdmissionOf(c.node(node), uid)
		return admission != nil && admission.Escalation == want, fmt.Sprintf("%+v", admission)
	})
}

// testEscalationActs drains a pod whose interceptor hangs, and one whose budget allows nothing, with the
// permissions of the real roles.
func testEscalationActs(t *testing.T, c *cluster) {
	c.createFleetNode("n1")
	hangs := c.createPod(newPod("hangs", "n1", withInterceptor(stubborn), withInterceptor("other.example.com")))
	c.createFrozenBudget("frozen")
	c.planPodInState(newPod("frozen", "n1", withLabel("frozen", "yes"), gracePeriod(20)), "ready")
	c.createPod(newPod("patient", "n1", withInterceptor(stubborn), withLabel("patient", "yes")))
	c.startQuick()
	hanging := escalateAfter(60, skipInterceptors)
	hanging.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pod": "hangs"}}
	c.createMaintenance(newEscalation("m", hanging, forPods(escalateAfter(36000, ignoreBudgets), "frozen")))
	c.await("the requests", states{"request/frozen": "Blocked by [nodemaintenance.k8s.io]", "request/patient": asked})
	c.await("the pod that hangs to be evicted", states{"pod/hangs": "gone", "pod/frozen": "here", "pod/patient": "here"})
	status := c.request(hangs).Status
	if want := []string{stubborn, "other.example.com", coordinationv1alpha1.EvictionInterceptorImperative}; !slices.Equal(want, status.ProcessedInterceptors) {
		c.eventually("the request to end", func(context.Context) (bool, string) {
			status = c.request(hangs).Status
			return slices.Equal(want, status.ProcessedInterceptors), fmt.Sprint(status.ProcessedInterceptors)
		})
	}
	skipped := meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped))
	if skipped == nil || skipped.Status != metav1.ConditionTrue || skipped.Reason != "MaintenanceEscalation" || !strings.Contains(skipped.Message, "spec.escalation of NodeMaintenance m, 1m") {
		t.Errorf("unexpected condition %+v", skipped)
	}
	c.awaitEvent("InterceptorSkipped", "hangs")
	c.clock.Step(10 * time.Hour)
	c.awaitEscalation("n1", "m", ignoreBudgets)
	c.await("the pod that a budget holds to end", states{"pod/frozen": "terminating", "pod/patient": "here"})
	pod := c.pod("frozen")
	if grace := ptr.Deref(pod.DeletionGracePeriodSeconds, -1); grace != 20 {
		t.Errorf("the pod has %d seconds to end, not its own 20", grace)
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool { return condition.Type == v1.DisruptionTarget })
	if i < 0 || pod.Status.Conditions[i].Status != v1.ConditionTrue || pod.Status.Conditions[i].Reason != maintenance.PodReasonDeletionByNodeMaintenance {
		t.Errorf("unexpected conditions of the pod: %+v", pod.Status.Conditions)
	}
	for _, name := range []string{"hangs", "frozen", "m"} {
		c.awaitEvent("MaintenanceEscalated", name)
	}
	c.eventually("the escalated pods in the status", func(context.Context) (bool, string) {
		drain := c.maintenance("m").Status.DrainStatus
		return drain.EscalatedPods == 1, fmt.Sprintf("%+v", drain)
	})
	c.deletePods([]*v1.Pod{pod, c.pod("patient")})
	c.awaitFleet("the end of the drain", map[string]string{"n1": "cordoned m:drained"})
}

// testEscalationForces removes pods from a node that is out of service, and from no other.
func testEscalationForces(t *testing.T, c *cluster) {
	for _, node := range []string{"n1", "n2"} {
		c.createFleetNode(node)
		c.createPod(newPod("pod-"+node, node, withInterceptor(stubborn), gracePeriod(30)))
	}
	outOfService := fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"effect":"NoExecute"}]}}`, v1.TaintNodeOutOfService)
	c.patchNode("n1", outOfService) // It is Ready: somebody has made a mistake.
	c.patchNode("n2", outOfService)
	c.setReady("n2", v1.ConditionFalse)
	c.startQuick()
	c.createMaintenance(newEscalation("m", escalateAfter(60, forceDelete)))
	c.await("the pod of the node that is out of service to go", states{"pod/pod-n2": "gone"})
	c.clock.Step(time.Minute)
	c.awaitFleet("the other node", map[string]string{"n1": "cordoned m:admitted", "n2": "cordoned m:drained"})
	c.expect("the other pod to stay", states{"pod/pod-n1": "here"})
	if admission := maintenance.AdmissionOf(c.node("n1"), c.maintenance("m").UID); admission.Escalation != "" {
		t.Errorf("the node that may run its pod has the escalation %s", admission.Escalation)
	}
	c.setReady("n1", v1.ConditionUnknown)
	c.await("the other pod to go", states{"pod/pod-n1": "gone"})
	c.awaitEscalation("n1", "m", forceDelete)
}

func testEscalationsRefused(t *testing.T, c *cluster) {
	unsorted := newEscalation("refused", escalateAfter(60, skipInterceptors), escalateAfter(59, ignoreBudgets))
	alone := newEscalation("refused", escalateAfter(60, skipInterceptors))
	alone.Spec.Rollout = nil
	many := newEscalation("refused", slices.Repeat([]coordinationv1alpha1.NodeMaintenanceEscalationStep{escalateAfter(60, skipInterceptors)}, 11)...)
	labels := escalateAfter(60, skipInterceptors)
	labels.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}
	for name, test := range map[string]struct {
		m    *coordinationv1alpha1.NodeMaintenance
		want []string
	}{
		"a bad order":       {unsorted, []string{"spec.escalation[1].afterSeconds", "59", "60", "sort the steps"}},
		"without a rollout": {alone, []string{"spec.escalation", "spec.rollout", "{}"}},
		"an unknown action": {newEscalation("refused", escalateAfter(60, "PowerOff")), []string{"spec.escalation[0].action", `"PowerOff"`, "SkipInterceptors", "IgnoreBudgets", "ForceDelete"}},
		"no action":         {newEscalation("refused", escalateAfter(60, "")), []string{"spec.escalation[0].action", "Required"}},
		"at once":           {newEscalation("refused", escalateAfter(-1, skipInterceptors)), []string{"spec.escalation[0].afterSeconds", "-1", "greater than or equal to 1"}},
		"too late":          {newEscalation("refused", escalateAfter(31536001, skipInterceptors)), []string{"spec.escalation[0].afterSeconds", "less than or equal to 31536000"}},
		"too many":          {many, []string{"spec.escalation", "10"}},
		"invalid labels":    {newEscalation("refused", labels), []string{"spec.escalation[0].namespaceSelector", "a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Create(t.Context(), test.m, metav1.CreateOptions{})
			expectInvalid(t, err, test.want...)
		})
	}
	c.createMaintenance(newEscalation("accepted", escalateAfter(60, skipInterceptors)))
	patch := []byte(`{"spec":{"escalation":[{"afterSeconds":60,"action":"PowerOff"}]}}`)
	_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Patch(t.Context(), "accepted", types.MergePatchType, patch, metav1.PatchOptions{})
	expectInvalid(t, err, "spec.escalation[0].action", "PowerOff")
}

// testEscalationNeedsRight has users who may maintain all nodes, of whom one may escalate one maintenance.
func testEscalationNeedsRight(t *testing.T, c *cluster) {
	c.createFleetNode("n1")
	may, mayNot := "escalator@"+c.namespace, "maintainer@"+c.namespace
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"nodemaintenances"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}},
	}
	c.bind(mayNot, rules...)
	c.bind(may, append(rules, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"nodemaintenances"}, ResourceNames: []string{"m"}, Verbs: []string{"escalate"}})...)
	maintenancesOf := func(user string) coordinationclient.NodeMaintenanceInterface {
		client := c.ClientOf(user).CoordinationV1alpha1().NodeMaintenances()
		c.eventually("the permissions of "+user, func(ctx context.Context) (bool, string) {
			_, err := client.Get(ctx, "m", metav1.GetOptions{})
			return err == nil || apierrors.IsNotFound(err), fmt.Sprint(err)
		})
		return client
	}
	escalator, maintainer := maintenancesOf(may), maintenancesOf(mayNot)
	refused := func(what string, err error, step string) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot set spec.escalation"+step) || !strings.Contains(err.Error(), `the verb "escalate" on the resource "nodemaintenances"`) {
			t.Errorf("%s: got %v, want a refusal of step %s", what, err, step)
		}
	}
	set := func(client coordinationclient.NodeMaintenanceInterface, patch string) error {
		_, err := client.Patch(t.Context(), "m", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	steps := func(texts ...string) string {
		return fmt.Sprintf(`{"spec":{"escalation":[%s]}}`, strings.Join(texts, ","))
	}
	const skip60, skip90, ignore90 = `{"afterSeconds":60,"action":"SkipInterceptors"}`, `{"afterSeconds":90,"action":"SkipInterceptors"}`, `{"afterSeconds":90,"action":"IgnoreBudgets"}`
	m := newEscalation("m", escalateAfter(60, skipInterceptors))
	m.Spec.Stage = stageIdle
	_, err := maintainer.Create(t.Context(), m, metav1.CreateOptions{})
	refused("a creation", err, "[0]")
	other := m.DeepCopy()
	other.Name = "other"
	_, err = escalator.Create(t.Context(), other, metav1.CreateOptions{})
	refused("a creation with another name", err, "[0]")
	if _, err = escalator.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused("a step added", set(maintainer, steps(skip60, ignore90)), "[1]")
	for what, patch := range map[string]string{
		"earlier":       steps(`{"afterSeconds":59,"action":"SkipInterceptors"}`),
		"stronger":      steps(`{"afterSeconds":60,"action":"ForceDelete"}`),
		"further nodes": `{"spec":{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"pool","operator":"In","values":["a","b"]}]}]}}}`,
	} {
		refused(what, set(maintainer, patch), "[0]")
	}
	for _, change := range []struct{ what, patch string }{
		{"begun", `{"spec":{"stage":"Drain"}}`}, {"postponed", steps(skip90)}, {"removed", `{"spec":{"escalation":null}}`},
	} {
		if err := set(maintainer, change.patch); err != nil {
			t.Errorf("%s: %v", change.what, err)
		}
	}
	refused("set again", set(maintainer, steps(skip90)), "[0]")
	if err := set(escalator, steps(skip60, ignore90)); err != nil {
		t.Errorf("set again, by who may: %v", err)
	}
}

// testSkippingNeedsRight has an interceptor, and a user with all rights in the namespace but those of
// controllers, pass over interceptors.
func testSkippingNeedsRight(t *testing.T, c *cluster) {
	c.createFleetNode("n1")
	pod := c.createPod(newPod("pod", "n1", withInterceptor(stubborn)))
	c.startEvictionController()
	c.ApplyRequesters(pod, scaler, scaler)
	const intercepting = "Intercepting by [" + scaler + "]"
	c.await("the interceptor", states{"request/pod": intercepting})
	patch := []byte(`{"status":{"conditions":[{"type":"InterceptorsSkipped","status":"True","reason":"Mine","message":"","lastTransitionTime":"2026-05-04T10:00:00Z"}]}}`)
	rule := func(resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	for user, rules := range map[string][]rbacv1.PolicyRule{
		"interceptor": {rule("evictionrequests", nil, "get"), rule("evictionrequests/status", nil, "patch"), rule("evictioninterceptors", []string{stubborn}, "intercept")},
		"editor":      {rule("evictionrequests", nil, "*"), rule("evictionrequests/status", nil, "get", "patch", "update"), rule("nodemaintenances", nil, "escalate")},
	} {
		user += "@" + c.namespace
		c.bind(user, rules...)
		requests := c.ClientOf(user).CoordinationV1alpha1().EvictionRequests(c.namespace)
		c.eventually("the permissions of "+user, func(ctx context.Context) (bool, string) {
			_, err := requests.Get(ctx, string(pod.UID), metav1.GetOptions{})
			return err == nil, fmt.Sprint(err)
		})
		_, err := requests.Patch(t.Context(), string(pod.UID), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `the verb "escalate" on the resource "evictionrequests/status"`) {
			t.Errorf("%s: got %v", user, err)
		}
	}
	c.expect("nothing to have happened", states{"request/pod": intercepting, "pod/pod": "here"})
	if _, err := c.ClientOf(maintenanceUser).CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(t.Context(), string(pod.UID), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("the controller: %v", err)
	}
	c.await("the interceptor to be passed over", states{"pod/pod": "gone"})
}

// TestEscalationGate disables the gate in the API server and the controllers, while a drain escalates.
// The subtests depend on each other.
func TestEscalationGate(t *testing.T) {
	etcd := framework.SharedEtcd()
	const namespace = "escalation-gate"
	var kept *coordinationv1alpha1.NodeMaintenance
	var admission *v1.MaintenanceAdmission
	t.Run("on", func(t *testing.T) {
		c := withNamespace(t, startFleetServer(t, etcd, true), namespace)
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating the namespace: %v", err)
		}
		c.createFleetNode("n1")
		c.createPod(newPod("first", "n1", withInterceptor(stubborn), withLabel("first", "yes")))
		c.createPod(newPod("second", "n1", withInterceptor(stubborn)))
		stop, _ := c.startQuick()
		c.createMaintenance(newEscalation("m", forPods(escalateAfter(60, ignoreBudgets), "first"), escalateAfter(7200, ignoreBudgets)))
		c.await("the first step", states{"pod/first": "gone", "pod/second": "here"})
		stop()
		kept, admission = c.maintenance("m"), maintenance.AdmissionOf(c.node("n1"), c.maintenance("m").UID)
		if admission.Escalation != ignoreBudgets || admission.EscalationTime == nil {
			t.Errorf("unexpected admission %+v", admission)
		}
	})
	t.Run("off", func(t *testing.T) {
		c := withNamespace(t, startFleetServer(t, etcd, false), namespace)
		if diff := cmp.Diff(kept.Spec.Escalation, c.maintenance("m").Spec.Escalation); diff != "" {
			t.Errorf("what is stored (-want, +got):\n%s", diff)
		}
		if created := c.createMaintenance(newEscalation("dropped", escalateAfter(60, skipInterceptors))); created.Spec.Escalation != nil {
			t.Errorf("a new maintenance has the escalation %+v", created.Spec.Escalation)
		}
		c.deleteMaintenance("dropped")
		c.clock.Step(2 * time.Hour)
		stop, writes := c.startQuick()
		c.createFleetNode("n2")
		c.await("another node to be seen", states{"request/second": asked, "pod/second": "here"})
		stop()
		if writes.count("DELETE pods/second") > 0 || writes.count("PATCH pods/second/status") > 0 {
			t.Errorf("the controller acts on the pod: %q", writes.all())
		}
		if diff := cmp.Diff(admission, maintenance.AdmissionOf(c.node("n1"), kept.UID)); diff != "" {
			t.Errorf("the admission of the node (-want, +got):\n%s", diff)
		}
	})
	t.Run("on again", func(t *testing.T) {
		c := withNamespace(t, startFleetServer(t, etcd, true), namespace)
		t.Cleanup(c.removeAll)
		c.clock.Step(2 * time.Hour)
		c.startQuick()
		c.await("the second step", states{"pod/second": "gone"})
	})
}

// setReady writes whether a node is Ready, as its kubelet or the node lifecycle controller does.
func (c *cluster) setReady(name string, status v1.ConditionStatus) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, v1.NodeReady, status)
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatalf("patching the status of node %s: %v", name, err)
	}
}
