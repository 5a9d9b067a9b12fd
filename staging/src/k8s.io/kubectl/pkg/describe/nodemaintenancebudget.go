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
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientset "k8s.io/client-go/kubernetes"
	maintenancehelpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// NodeMaintenanceBudgetDescriber describes how many nodes a NodeMaintenanceBudget allows, and when.
type NodeMaintenanceBudgetDescriber struct {
	client clientset.Interface
}

// Describe describes one NodeMaintenanceBudget: first its spec, then what it allows now.
func (d *NodeMaintenanceBudgetDescriber) Describe(_, name string, settings DescriberSettings) (string, error) {
	budget, err := d.client.CoordinationV1alpha1().NodeMaintenanceBudgets().Get(context.TODO(), name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var events *corev1.EventList
	if settings.ShowEvents {
		// As for every other kind, the object is shown without events if the user may not list
		// them.
		events, _ = searchEvents(d.client.CoreV1(), budget, settings.ChunkSize)
	}
	return describeNodeMaintenanceBudget(time.Now(), budget, unavailableNodes(d.client, budget), events)
}

func describeNodeMaintenanceBudget(now time.Time, budget *coordinationv1alpha1.NodeMaintenanceBudget, unavailable []*corev1.Node, events *corev1.EventList) (string, error) {
	return tabbedString(func(out io.Writer) error {
		w := newPlainWriter(out)
		describeNodeMaintenanceBudgetSpec(w, now, budget)
		describeNodeMaintenanceBudgetStatus(w, now, budget, unavailable)
		describeMetaConditions(w, now, budget.Status.Conditions)
		describePlainEvents(events, w)
		return nil
	})
}

// describeNodeMaintenanceBudgetSpec prints which nodes are selected, and the limits.
func describeNodeMaintenanceBudgetSpec(w PrefixWriter, now time.Time, budget *coordinationv1alpha1.NodeMaintenanceBudget) {
	w.Write(LEVEL_0, "Name:\t%s\n", plaintext.Line(budget.Name))
	printLabelsMultiline(w, "Labels", plainLabels(budget.Labels))
	printAnnotationsMultiline(w, "Annotations", budget.Annotations)
	w.Write(LEVEL_0, "Created:\t%s\n", timeAndAge(now, budget.CreationTimestamp))
	printTextMultiline(w, LEVEL_0, "Node Selector", formatNodeSelector(budget.Spec.NodeSelector))
	printTextMultiline(w, LEVEL_0, "Max Unavailable", formatMaxUnavailable(budget))
	topology := "<none>"
	if t := budget.Spec.Topology; t != nil {
		topology = fmt.Sprintf("nodes of at most %d %s at once", t.MaxDomains, t.Key)
	}
	printTextMultiline(w, LEVEL_0, "Topology", topology)
	windows := []string{"<none>, always open"}
	if len(budget.Spec.Windows) > 0 {
		windows = nil
	}
	for _, window := range budget.Spec.Windows {
		windows = append(windows, plaintext.Line(fmt.Sprintf("%s in %s, open for %s", window.Schedule, window.TimeZone,
			duration.HumanDuration(time.Duration(window.DurationSeconds)*time.Second))))
	}
	printTextMultiline(w, LEVEL_0, "Windows", strings.Join(windows, "\n"))
}

// describeNodeMaintenanceBudgetStatus prints how many nodes are unavailable, and what is allowed now.
func describeNodeMaintenanceBudgetStatus(w PrefixWriter, now time.Time, budget *coordinationv1alpha1.NodeMaintenanceBudget, unavailable []*corev1.Node) {
	status := &budget.Status
	if status.NextWindowTime != nil {
		w.Write(LEVEL_0, "Next Window:\t%s\n", timeAndRemainder(now, *status.NextWindowTime))
	}
	if status.ObservedGeneration == 0 {
		w.Write(LEVEL_0, "Nodes:\tnot counted yet\n")
	} else {
		notice := ""
		if status.ObservedGeneration != budget.Generation {
			notice = " (of an older spec)"
		}
		w.Write(LEVEL_0, "Nodes:\t%d selected, %d unavailable%s\n", status.ExpectedNodes, status.UnavailableNodes, notice)
		printUnavailable(w, unavailable)
		printTextMultiline(w, LEVEL_0, "Allowed", formatAllowed(budget))
	}
	if len(status.ActiveDomains) > 0 {
		printTextMultiline(w, LEVEL_0, "Active Domains", strings.Join(plaintext.Lines(status.ActiveDomains), ", "))
	}
	printPendingAdmissions(w, LEVEL_0, now, status.PendingAdmissions)
}

// unavailableNodes returns the nodes that use up the budget: first those that others remove, which look available in
// lists of nodes, last those of maintenances, which name them. Like events, they are left out if the user may not list
// nodes.
func unavailableNodes(client clientset.Interface, budget *coordinationv1alpha1.NodeMaintenanceBudget) []*corev1.Node {
	if budget.Spec.NodeSelector == nil || budget.Status.UnavailableNodes == 0 {
		return nil
	}
	matcher, err := maintenancehelpers.NewNodeMatcher(budget.Spec.NodeSelector)
	if err != nil {
		return nil
	}
	// From the cache of the API server: there may be thousands.
	nodes, err := client.CoreV1().Nodes().List(context.TODO(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	var unavailable []*corev1.Node
	for i := range nodes.Items {
		if node := &nodes.Items[i]; matcher.Matches(node) && len(maintenancehelpers.WhyUnavailable(node)) > 0 {
			unavailable = append(unavailable, node)
		}
	}
	rank := func(node *corev1.Node) int {
		switch {
		case maintenancehelpers.IsTaken(node):
			return 2
		case maintenancehelpers.IsBeingRemoved(node):
			return 0
		}
		return 1
	}
	slices.SortFunc(unavailable, func(a, b *corev1.Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Name, b.Name))
	})
	return unavailable
}

// printUnavailable prints why the first nodes are unavailable.
func printUnavailable(w PrefixWriter, unavailable []*corev1.Node) {
	var texts []string
	for _, node := range unavailable[:min(len(unavailable), maxDescribedValues)] {
		texts = append(texts, plaintext.Line(fmt.Sprintf("%s: %s", node.Name, strings.Join(maintenancehelpers.WhyUnavailable(node), ", "))))
	}
	if more := len(unavailable) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	if len(texts) > 0 {
		printTextMultiline(w, LEVEL_0, "Unavailable", strings.Join(texts, "\n"))
	}
}

// formatAllowed returns with which nodes maintenances may begin. Whether most nodes are down is in the message of the
// condition, which is not for programs to read.
func formatAllowed(budget *coordinationv1alpha1.NodeMaintenanceBudget) string {
	status, within := &budget.Status, ""
	text := fmt.Sprintf("%d more now", status.AdmissionsAllowed)
	if !meta.IsStatusConditionTrue(status.Conditions, string(coordinationv1alpha1.NodeMaintenanceBudgetConditionOpen)) {
		return text
	}
	if budget.Spec.Topology != nil {
		within = " within the topology"
	}
	return fmt.Sprintf("%s, and any%s that have not been Ready for five minutes, unless most nodes are not Ready", text, within)
}

// formatMaxUnavailable returns the limit in words.
func formatMaxUnavailable(budget *coordinationv1alpha1.NodeMaintenanceBudget) string {
	value := budget.Spec.MaxUnavailable
	switch {
	case value == nil:
		return "<none>"
	case isFreeze(value):
		return value.String() + ", a freeze: no maintenance begins with any node"
	}
	return formatNodeLimit(value, budget.Status.ExpectedNodes)
}

func isFreeze(value *intstr.IntOrString) bool {
	number, err := intstr.GetScaledValueFromIntOrPercent(value, 100, false)
	return err == nil && number == 0
}

// formatNodeLimit returns a number of nodes, or a percentage and how many of the nodes that is: it
// rounds down, to at least 1.
func formatNodeLimit(value *intstr.IntOrString, nodes int32) string {
	number, err := intstr.GetScaledValueFromIntOrPercent(value, int(nodes), false)
	if value.Type == intstr.Int || err != nil || nodes == 0 {
		return value.String()
	}
	return fmt.Sprintf("%s, which is %d of %d", value.String(), max(number, 1), nodes)
}

// maxDescribedAdmissions bounds the admissions that are printed. All of them are usually written within
// a second.
const maxDescribedAdmissions = 10

// printPendingAdmissions lists the nodes whose admission is being written, and since when.
func printPendingAdmissions(w PrefixWriter, level int, now time.Time, pending []coordinationv1alpha1.NodeMaintenancePendingAdmission) {
	if len(pending) == 0 {
		return
	}
	var nodes []string
	for _, p := range pending[:min(len(pending), maxDescribedAdmissions)] {
		nodes = append(nodes, fmt.Sprintf("%s (for %s)", plaintext.Line(p.NodeName), elapsed(now, p.Time)))
	}
	text := strings.Join(nodes, ", ")
	if more := len(pending) - len(nodes); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	printTextMultiline(w, level, "Being Admitted", text)
}
