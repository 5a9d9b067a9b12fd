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

package internalversion

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubernetes/pkg/apis/coordination"
	internalprinters "k8s.io/kubernetes/pkg/printers"
	"k8s.io/utils/ptr"
)

// window returns one that opens every day at this time of the synctest bubble, which begins at midnight.
func window(schedule string, hours int32) coordination.NodeMaintenanceWindow {
	return coordination.NodeMaintenanceWindow{Schedule: schedule, TimeZone: "Etc/UTC", DurationSeconds: hours * 3600}
}

// openBecause returns the condition Open, with this status.
func openBecause(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Open", Status: status, Reason: reason}}
}

// nodeMaintenanceBudgets returns budgets in every state, printed at now.
func nodeMaintenanceBudgets(now time.Time) []coordination.NodeMaintenanceBudget {
	in := func(hours time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(hours * time.Hour)} }
	number, percent := ptr.To(intstr.FromInt32(2)), ptr.To(intstr.FromString("10%"))
	zones := func(most int32) *coordination.NodeMaintenanceTopology {
		return &coordination.NodeMaintenanceTopology{Key: "topology.kubernetes.io/zone", MaxDomains: most}
	}
	counted := coordination.NodeMaintenanceBudgetStatus{ObservedGeneration: 1, ExpectedNodes: 5000, UnavailableNodes: 480, AdmissionsAllowed: 20, Conditions: openBecause("True", "Open")}
	with := func(change func(*coordination.NodeMaintenanceBudgetStatus)) coordination.NodeMaintenanceBudgetStatus {
		status := *counted.DeepCopy()
		change(&status)
		return status
	}
	closed := func(next *metav1.Time) coordination.NodeMaintenanceBudgetStatus {
		return with(func(s *coordination.NodeMaintenanceBudgetStatus) {
			s.AdmissionsAllowed, s.NextWindowTime, s.Conditions = 0, next, openBecause("False", "OutsideWindows")
		})
	}
	active := func(domains ...string) coordination.NodeMaintenanceBudgetStatus {
		return with(func(s *coordination.NodeMaintenanceBudgetStatus) { s.ActiveDomains = domains })
	}
	frozen := with(func(s *coordination.NodeMaintenanceBudgetStatus) {
		s.AdmissionsAllowed, s.Conditions = 0, openBecause("False", "Frozen")
	})
	night, later := []coordination.NodeMaintenanceWindow{window("0 3 * * *", 4)}, []coordination.NodeMaintenanceWindow{window("0 0 * * *", 2), window("0 2 * * *", 4), window("30 5 * * 1", 1), window("@weekly", 24), window("@monthly", 48)}
	type spec = coordination.NodeMaintenanceBudgetSpec
	budgets := []coordination.NodeMaintenanceBudget{
		{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: spec{MaxUnavailable: percent, Windows: night}},
		{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: spec{MaxUnavailable: percent}, Status: counted},
		{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}, Spec: spec{MaxUnavailable: ptr.To(intstr.FromInt32(0)), Windows: night}, Status: frozen},
		{ObjectMeta: metav1.ObjectMeta{Name: "nights"}, Spec: spec{MaxUnavailable: number, Windows: night}, Status: closed(in(3))},
		{ObjectMeta: metav1.ObjectMeta{Name: "now"}, Spec: spec{MaxUnavailable: number, Windows: later}, Status: with(func(s *coordination.NodeMaintenanceBudgetStatus) { s.NextWindowTime = in(2) })},
		{ObjectMeta: metav1.ObjectMeta{Name: "always"}, Spec: spec{MaxUnavailable: number, Windows: []coordination.NodeMaintenanceWindow{window("@hourly", 2)}}, Status: counted},
		{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: spec{MaxUnavailable: number, Windows: night}, Status: closed(in(-1))},
		{ObjectMeta: metav1.ObjectMeta{Name: "never"}, Spec: spec{MaxUnavailable: number, Windows: []coordination.NodeMaintenanceWindow{{Schedule: "0 2 * * *", TimeZone: "Mars/Olympus", DurationSeconds: 60}}}, Status: closed(nil)},
		{ObjectMeta: metav1.ObjectMeta{Name: "unknown"}, Spec: spec{MaxUnavailable: number}, Status: with(func(s *coordination.NodeMaintenanceBudgetStatus) { s.Conditions = nil })},
		{ObjectMeta: metav1.ObjectMeta{Name: "zone"}, Spec: spec{MaxUnavailable: number, Topology: zones(1)}, Status: active("eu-1a")},
		{ObjectMeta: metav1.ObjectMeta{Name: "no-zone"}, Spec: spec{MaxUnavailable: number, Topology: zones(2)}, Status: counted},
		{ObjectMeta: metav1.ObjectMeta{Name: "zones"}, Spec: spec{MaxUnavailable: number, Topology: zones(9)}, Status: active("eu-1a", "eu-1b", "eu-1c", "eu-2a")},
		{ObjectMeta: metav1.ObjectMeta{Name: "racks"}, Spec: spec{MaxUnavailable: number, Topology: zones(20)}, Status: active(strings.Split("abcdefghij", "")...)},
		{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}},
	}
	for i := range budgets {
		budgets[i].CreationTimestamp = metav1.Time{Time: now.Add(-time.Duration(i) * time.Hour)}
	}
	return budgets
}

// printedBudgets is what kubectl prints of the table that the API server sends.
func printedBudgets(t *testing.T, budgets []coordination.NodeMaintenanceBudget, wide bool) string {
	t.Helper()
	generator := internalprinters.NewTableGenerator().With(addNodeMaintenanceBudgetHandlers)
	table, err := generator.GenerateTable(&coordination.NodeMaintenanceBudgetList{Items: budgets}, internalprinters.GenerateOptions{Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, &output); err != nil {
		t.Fatal(err)
	}
	return trimLines(output.String())
}

// TestPrintNodeMaintenanceBudgets compares the output of "kubectl get nmb" and "-o wide".
func TestPrintNodeMaintenanceBudgets(t *testing.T) {
	for file, wide := range map[string]bool{"nodemaintenancebudgets.txt": false, "nodemaintenancebudgets-wide.txt": true} {
		t.Run(file, func(t *testing.T) {
			// In the synctest bubble, it is midnight at the start of the year 2000.
			synctest.Test(t, func(t *testing.T) {
				output := printedBudgets(t, nodeMaintenanceBudgets(time.Now()), wide)
				compareWithGolden(t, file, output)
				for _, line := range strings.Split(output, "\n") {
					if !wide && len(line) > 100 {
						t.Errorf("%d columns: %s", len(line), line)
					}
				}
			})
		})
	}
}
