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

package describe

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// newDescribedBudget returns a budget of a pool that was created an hour ago.
func newDescribedBudget(limit *intstr.IntOrString, changes ...func(*coordinationv1alpha1.NodeMaintenanceBudget)) *coordinationv1alpha1.NodeMaintenanceBudget {
	budget := &coordinationv1alpha1.NodeMaintenanceBudget{ObjectMeta: metav1.ObjectMeta{Name: "workers", Generation: 1, CreationTimestamp: metav1.Time{Time: time.Now().Add(-time.Hour)}}}
	budget.Spec.MaxUnavailable = limit
	budget.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"workers"}}},
	}}}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

// described sets the status, and the condition Open.
func described(status coordinationv1alpha1.NodeMaintenanceBudgetStatus, open metav1.ConditionStatus, reason, message string) func(*coordinationv1alpha1.NodeMaintenanceBudget) {
	return func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
		status.ObservedGeneration = 1
		status.Conditions = []metav1.Condition{{Type: "Open", Status: open, LastTransitionTime: metav1.Time{Time: time.Now().Add(-time.Minute)}, Reason: reason, Message: message}}
		b.Status = status
	}
}

// describedBudgets returns budgets in each state, by the name of their golden file.
func describedBudgets() map[string]*coordinationv1alpha1.NodeMaintenanceBudget {
	type budget = coordinationv1alpha1.NodeMaintenanceBudget
	type status = coordinationv1alpha1.NodeMaintenanceBudgetStatus
	now := time.Now()
	percent, number := ptr.To(intstr.FromString("10%")), ptr.To(intstr.FromInt32(2))
	nights := func(b *budget) {
		b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{
			{Schedule: "0 2 * * 6", TimeZone: "Europe/Berlin", DurationSeconds: 14400}, {Schedule: "@daily", TimeZone: "Etc/UTC", DurationSeconds: 5400},
		}
	}
	zones := func(b *budget) {
		b.Labels = map[string]string{"team": "platform"}
		b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "topology.kubernetes.io/zone", MaxDomains: 1}
	}
	pending := func(count int) []coordinationv1alpha1.NodeMaintenancePendingAdmission {
		var list []coordinationv1alpha1.NodeMaintenancePendingAdmission
		for i := range count {
			list = append(list, coordinationv1alpha1.NodeMaintenancePendingAdmission{NodeName: fmt.Sprint("node-", i), Time: metav1.Time{Time: now.Add(-2 * time.Second)}})
		}
		return list
	}
	stale := newDescribedBudget(number, described(status{ExpectedNodes: 30, UnavailableNodes: 2}, metav1.ConditionTrue, "Open", ""))
	stale.Generation = 2

	// Its texts must not imitate lines of kubectl, or control the terminal.
	const forged = "a\nEvents:\t<none>\x1b[2K"
	hostile := newDescribedBudget(ptr.To(intstr.FromString(forged)), described(status{ActiveDomains: []string{forged}, PendingAdmissions: []coordinationv1alpha1.NodeMaintenancePendingAdmission{{NodeName: forged, Time: metav1.Time{Time: now}}}}, forged, forged, forged))
	hostile.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: forged}
	hostile.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: forged, TimeZone: forged}}
	hostile.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{forged}

	return map[string]*budget{
		"new":     newDescribedBudget(percent, zones),
		"open":    newDescribedBudget(percent, zones, described(status{ExpectedNodes: 35, UnavailableNodes: 2, AdmissionsAllowed: 1, ActiveDomains: []string{"eu-1a", "eu-1b"}, PendingAdmissions: pending(1)}, metav1.ConditionTrue, "Open", "Maintenances may begin.")),
		"closed":  newDescribedBudget(number, nights, described(status{ExpectedNodes: 35, NextWindowTime: &metav1.Time{Time: now.Add(3 * time.Hour)}}, metav1.ConditionFalse, "OutsideWindows", "No window is open.")),
		"frozen":  newDescribedBudget(ptr.To(intstr.FromString("0%")), described(status{ExpectedNodes: 35}, metav1.ConditionFalse, "Frozen", "spec.maxUnavailable is 0.")),
		"small":   newDescribedBudget(percent, described(status{ExpectedNodes: 5, PendingAdmissions: pending(12)}, metav1.ConditionTrue, "Open", "")),
		"stale":   stale,
		"full":    newDescribedBudget(number, described(status{ExpectedNodes: 20, UnavailableNodes: 12}, metav1.ConditionTrue, "Open", "Maintenances may begin.")),
		"bare":    {ObjectMeta: metav1.ObjectMeta{Name: "workers", CreationTimestamp: metav1.Time{Time: now}}},
		"hostile": hostile,
	}
}

// describedBudgetNodes returns nodes of the pool, and one of another pool. Many or two of them are unavailable.
func describedBudgetNodes(many bool) (nodes []runtime.Object) {
	node := func(name string, change func(*corev1.Node)) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "workers"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		change(n)
		nodes = append(nodes, n)
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	node("a-maintained", func(n *corev1.Node) {
		n.Spec.Unschedulable, n.Status.MaintenanceStatus = true, &corev1.MaintenanceStatus{Admissions: []corev1.MaintenanceAdmission{{MaintenanceName: "kernel"}}}
	})
	node("available", func(*corev1.Node) {})
	node("database", func(n *corev1.Node) { n.Labels, n.Spec.Unschedulable = nil, true })
	node("left-behind", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} })
	if many {
		node("down", func(n *corev1.Node) { n.Status.Conditions, n.DeletionTimestamp = nil, &metav1.Time{Time: time.Now()} })
		for i := range 9 {
			node(fmt.Sprintf("cordoned-%d", i), cordoned)
		}
	}
	return nodes
}

func TestDescribeNodeMaintenanceBudget(t *testing.T) {
	// In the synctest bubble, the time stays at the start of the year 2000.
	synctest.Test(t, func(t *testing.T) {
		for name, budget := range describedBudgets() {
			objects := []runtime.Object{budget}
			if name == "open" {
				events := maintenanceEvents(time.Now(), budget.Name).(*corev1.EventList)
				events.Items[0].InvolvedObject.Kind = "NodeMaintenanceBudget"
				objects = append(objects, events)
			}
			if name == "stale" || name == "full" {
				objects = append(objects, describedBudgetNodes(name == "full")...)
			}
			before := budget.DeepCopy()
			output, err := (&NodeMaintenanceBudgetDescriber{fake.NewClientset(objects...)}).Describe("", budget.Name, DescriberSettings{ShowEvents: name != "new"})
			if err != nil {
				t.Fatal(err)
			}
			compareWithGolden(t, filepath.Join("nodemaintenancebudget", name+".txt"), output)
			if diff := cmp.Diff(before, budget); diff != "" {
				t.Errorf("%s was changed (-before, +after):\n%s", name, diff)
			}
			for _, line := range strings.Split(output, "\n") {
				if len(line) > 80 && name != "hostile" {
					t.Errorf("%s: %d columns: %s", name, len(line), line)
				}
			}
		}
	})
}

func TestDescribeNodeMaintenanceBudgetNotFound(t *testing.T) {
	if output, err := (&NodeMaintenanceBudgetDescriber{fake.NewClientset()}).Describe("", "workers", DescriberSettings{}); err == nil {
		t.Errorf("no error, but\n%s", output)
	}
}

func TestNodeMaintenanceBudgetDescriberIsRegistered(t *testing.T) {
	describer, found := DescriberFor(schema.GroupKind{Group: "coordination.k8s.io", Kind: "NodeMaintenanceBudget"}, &rest.Config{})
	if _, ok := describer.(*NodeMaintenanceBudgetDescriber); !found || !ok {
		t.Errorf("got %T", describer)
	}
}
