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

package rollout

import (
	"fmt"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	benchmarkedNodes        = 5000
	benchmarkedBudgets      = 50
	benchmarkedMaintenances = 200
)

// benchmarkedNode returns one of the nodes: they are in three zones, and in as many pools as there are budgets.
func benchmarkedNode(i int) *v1.Node {
	n := readyNode(fmt.Sprintf("node-%04d", i), map[string]string{
		"pool": fmt.Sprint("pool-", i%benchmarkedBudgets), "zone": fmt.Sprint("zone-", i%3), "rack": fmt.Sprint("rack-", i%125),
		v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64", v1.LabelHostname: fmt.Sprintf("node-%04d", i),
	})
	n.UID, n.CreationTimestamp, n.ResourceVersion = types.UID(n.Name), metav1.NewTime(decidedAt.Add(-time.Hour)), "40"
	return n
}

// benchmarkedBudget returns one of the budgets: of a pool, or of all nodes.
func benchmarkedBudget(i int, ofAll bool, topology string) *coordinationv1alpha1.NodeMaintenanceBudget {
	requirement := v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpIn, Values: []string{fmt.Sprint("pool-", i)}}
	if ofAll {
		requirement = v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists}
	}
	b := budgetFor(fmt.Sprintf("budget-%02d", i), requirement)
	b.UID, b.ResourceVersion = types.UID(b.Name), "30"
	b.Spec.MaxUnavailable = ptr.To(intstr.FromString("10%"))
	if topology != "" {
		b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: topology, MaxDomains: 1}
	}
	return b
}

// benchmarkedFleet returns an admitter of 5,000 nodes and 50 budgets, with 200 maintenances of all nodes.
func benchmarkedFleet(tb testing.TB, ofAll bool, topology string, change func(i int, n *v1.Node)) (*Admitter, []Maintenance) {
	tb.Helper()
	store := &recordingStore{version: "50"}
	a := NewAdmitter(store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
	a.Parallel = 1 // The store is not for more.
	var nodes []*v1.Node
	var names []string
	for i := range benchmarkedNodes {
		n := benchmarkedNode(i)
		change(i, n)
		nodes, names = append(nodes, n), append(names, n.Name)
	}
	for i := range benchmarkedBudgets {
		b := benchmarkedBudget(i, ofAll, topology)
		if err := a.SetBudget(b); err != nil {
			tb.Fatal(err)
		}
		store.stored = append(store.stored, *b)
	}
	a.SetNodes(nodes)
	var maintenances []Maintenance
	for i := range benchmarkedMaintenances {
		m := waitingFor(fmt.Sprintf("m-%03d", i), names...)
		m.CreationTimestamp = metav1.NewTime(decidedAt)
		m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(100))}
		maintenances = append(maintenances, m)
	}
	return a, maintenances
}

// BenchmarkSync measures one decision on 5,000 nodes that wait for 200 maintenances within 50 budgets: of a pool
// each, or each of all nodes.
func BenchmarkSync(b *testing.B) {
	available := func(int, *v1.Node) {}
	usedUp := func(i int, n *v1.Node) { n.Spec.Unschedulable = i/benchmarkedBudgets%10 == 0 }
	someDown := func(i int, n *v1.Node) {
		usedUp(i, n)
		if i/benchmarkedBudgets%10 == 1 {
			down(n)
		}
	}
	for _, budgets := range []struct {
		name     string
		ofAll    bool
		topology string
	}{
		{"50 budgets of a pool each", false, ""}, {"50 budgets of all nodes", true, ""},
		{"50 budgets of all nodes, by zone", true, "zone"}, {"50 budgets of all nodes, by rack", true, "rack"},
	} {
		for _, nodes := range []struct {
			name   string
			change func(int, *v1.Node)
		}{{"there is room", available}, {"there is none", usedUp}, {"some are down", someDown}} {
			b.Run(budgets.name+"/"+nodes.name, func(b *testing.B) {
				a, maintenances := benchmarkedFleet(b, budgets.ofAll, budgets.topology, nodes.change)
				b.ReportAllocs()
				for b.Loop() {
					clear(a.wroteAt)
					if _, _, err := a.Sync(b.Context(), maintenances, decidedAt); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSetNodes measures how a fleet follows a list of 5,000 nodes, each of which has a new heartbeat.
func BenchmarkSetNodes(b *testing.B) {
	a, _ := benchmarkedFleet(b, true, "zone", func(int, *v1.Node) {})
	var lists [2][]*v1.Node
	for i := range lists {
		for j := range benchmarkedNodes {
			lists[i] = append(lists[i], benchmarkedNode(j))
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		a.SetNodes(lists[i%2])
	}
}
