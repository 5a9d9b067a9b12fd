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
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/coordination/schedule"
	"k8s.io/kubernetes/pkg/printers"
)

const (
	// maxWindowsShown and maxDomainsShown limit the width of columns.
	maxWindowsShown, maxDomainsShown = 3, 3

	// maxActiveDomains is how many domains a status lists. There may be more.
	maxActiveDomains = 10
)

func addNodeMaintenanceBudgetHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Max-Unavailable", Type: "string", Description: "How many of the nodes may be unavailable when a maintenance begins with another one."},
		{Name: "Nodes", Type: "string", Description: "The number of selected nodes."},
		{Name: "Unavailable", Type: "string", Description: "The number of these nodes that are not Ready, unschedulable, admitted, out of service, or being removed by others."},
		{Name: "Allowed", Type: "string", Description: "With how many more nodes that are available a maintenance may begin now."},
		{Name: "Open", Type: "string", Description: "Whether maintenances may begin with nodes now, or when the next window opens."},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Domains", Type: "string", Priority: 1, Description: "In how many domains, such as zones, nodes are admitted, of how many, and in which."},
		{Name: "Next-Window", Type: "string", Priority: 1, Description: "When the next window opens, also if one is open now."},
		{Name: "Windows", Type: "string", Priority: 1, Description: "When the windows open, and for how long."},
	}
	// TableHandler logs its errors itself.
	_ = h.TableHandler(columns, printNodeMaintenanceBudget)
	_ = h.TableHandler(columns, printNodeMaintenanceBudgetList)
}

func printNodeMaintenanceBudgetList(list *coordination.NodeMaintenanceBudgetList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	return printEach(list.Items, printNodeMaintenanceBudget, options)
}

func printNodeMaintenanceBudget(budget *coordination.NodeMaintenanceBudget, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	limit, nodes, unavailable, allowed := noValue, noValue, noValue, noValue
	if budget.Spec.MaxUnavailable != nil {
		limit = budget.Spec.MaxUnavailable.String()
	}
	status := &budget.Status
	if status.ObservedGeneration > 0 {
		nodes, unavailable, allowed = fmt.Sprint(status.ExpectedNodes), fmt.Sprint(status.UnavailableNodes), fmt.Sprint(status.AdmissionsAllowed)
	}
	row := metav1.TableRow{
		Object: runtime.RawExtension{Object: budget},
		Cells:  []any{budget.Name, limit, nodes, unavailable, allowed, openCell(budget, time.Now()), translateTimestampSince(budget.CreationTimestamp)},
	}
	if options.Wide {
		row.Cells = append(row.Cells, domainsCell(budget), nextWindowCell(budget.Status.NextWindowTime, time.Now()), windowsCell(budget.Spec.Windows))
	}
	row.Cells = plainCells(row.Cells)
	return []metav1.TableRow{row}, nil
}

// openCell says whether maintenances may begin with nodes, as the controller sees it, and until when or
// from when on.
func openCell(budget *coordination.NodeMaintenanceBudget, now time.Time) string {
	open := meta.FindStatusCondition(budget.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceBudgetConditionOpen))
	next := budget.Status.NextWindowTime
	switch {
	case open == nil:
		return noValue
	case open.Status == metav1.ConditionTrue:
		if left := openFor(budget.Spec.Windows, now); left > 0 {
			return fmt.Sprintf("Yes (%s left)", duration.HumanDuration(left))
		}
		return "Yes"
	case open.Reason == coordinationv1alpha1.NodeMaintenanceBudgetReasonFrozen:
		return "Frozen"
	case next != nil && next.After(now):
		return "opens in " + duration.HumanDuration(next.Sub(now))
	}
	return "No"
}

// openFor returns for how long at least one of the windows stays open. It is zero if none is open, or
// if that does not end soon.
func openFor(windows []coordination.NodeMaintenanceWindow, now time.Time) time.Duration {
	var parsed []*schedule.Window
	for _, window := range windows {
		// What this server does not understand, such as an unknown time zone, is not shown.
		if w, err := schedule.NewWindow(window.Schedule, window.TimeZone, time.Duration(window.DurationSeconds)*time.Second); err == nil {
			parsed = append(parsed, w)
		}
	}
	return schedule.OpenFor(parsed, now)
}

// domainsCell says in how many domains nodes are admitted, of how many, and in which.
func domainsCell(budget *coordination.NodeMaintenanceBudget) string {
	if budget.Spec.Topology == nil {
		return noValue
	}
	active, more := budget.Status.ActiveDomains, ""
	if len(active) == maxActiveDomains {
		more = "+"
	}
	cell := fmt.Sprintf("%d%s/%d", len(active), more, budget.Spec.Topology.MaxDomains)
	if len(active) == 0 {
		return cell
	}
	return cell + " (" + joinFirst(active, maxDomainsShown) + ")"
}

// nextWindowCell says when the next window opens.
func nextWindowCell(next *metav1.Time, now time.Time) string {
	if next == nil || !next.After(now) {
		return noValue
	}
	return "in " + duration.HumanDuration(next.Sub(now))
}

// windowsCell lists the first windows.
func windowsCell(windows []coordination.NodeMaintenanceWindow) string {
	var cells []string
	for _, window := range windows {
		cells = append(cells, fmt.Sprintf("%s %s (%s)", window.Schedule, window.TimeZone, duration.HumanDuration(time.Duration(window.DurationSeconds)*time.Second)))
	}
	return orNoValue(joinFirst(cells, maxWindowsShown))
}

// joinFirst lists the first texts and counts the others.
func joinFirst(texts []string, limit int) string {
	if len(texts) <= limit {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:limit], ", "), len(texts)-limit)
}
