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
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// checkIndexes compares the indexes of the ledger with what a scan of it comes to.
func (f *fixture) checkIndexes() {
	f.t.Helper()
	l := f.ledger
	byNode, bySelector := index[string]{}, index[nodeKey]{}
	for name, a := range l.maintenances {
		for node := range a.all() {
			byNode.set(node, name, true)
		}
		for key := range a.selector.keys() {
			bySelector.set(key, name, true)
		}
	}
	if diff := cmp.Diff(byNode, l.byNode); diff != "" {
		f.t.Errorf("index by node (-scan, +index):\n%s", diff)
	}
	if diff := cmp.Diff(bySelector, l.bySelector, cmp.AllowUnexported(nodeKey{})); diff != "" {
		f.t.Errorf("index by selector (-scan, +index):\n%s", diff)
	}
	for _, node := range f.listNodes() {
		var want, got []string
		for name, a := range l.maintenances {
			if a.selector.matches(node) {
				want = append(want, name)
			}
		}
		orders, _ := l.selecting(node)
		for _, o := range orders {
			got = append(got, o.name)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			f.t.Errorf("who selects node %s (-scan, +index):\n%s", node.Name, diff)
		}
	}
}

// benchmarkedNodes is how many nodes Kubernetes supports in one cluster.
const benchmarkedNodes = 5000

// filledLedger returns a ledger with that many maintenances in the stage Drain, which have the
// nodes among themselves, each selected by its name, and all counted.
func filledLedger(b *testing.B, maintenances int) (*ledger, []*v1.Node) {
	b.Helper()
	l := newLedger()
	nodes := make([]*v1.Node, benchmarkedNodes)
	terms := make([][]v1.NodeSelectorTerm, maintenances)
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		nodes[i] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelOSStable: "linux", v1.LabelTopologyZone: "z", v1.LabelTopologyRegion: "r",
		}}}
		terms[i%maintenances] = append(terms[i%maintenances], termFor(i, name))
	}
	for i := range maintenances {
		o, err := newOrder(&coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("m-%d", i), UID: types.UID(fmt.Sprintf("u-%d", i)), Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer},
			},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{
				Stage: stageDrain, DrainPlan: maintenance.StandardPlan(), NodeSelector: &v1.NodeSelector{NodeSelectorTerms: terms[i]},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		// Listing all nodes for each of them is not what is measured.
		l.observe(o, 0, func() []*v1.Node {
			if maintenances == 1 {
				return nodes
			}
			return nodes[i : i+1]
		})
	}
	for _, node := range nodes {
		orders, _ := l.selecting(node)
		l.countPods(node.Name, orders, nil)
	}
	return l, nodes
}

// termFor names a node, every other one by its label, as kubectl and people do.
func termFor(i int, name string) v1.NodeSelectorTerm {
	if i%2 == 0 {
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
}

// What an event costs under the lock of the ledger, and what the look at a node costs besides.
func BenchmarkLedger(b *testing.B) {
	for _, maintenances := range []int{1, benchmarkedNodes} {
		l, nodes := filledLedger(b, maintenances)
		name := func(what string) string {
			return fmt.Sprintf("%s/%d maintenances of %d nodes", what, maintenances, benchmarkedNodes/maintenances)
		}
		b.Run(name("event of a pod"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !l.isDraining(nodes[i%benchmarkedNodes].Name) {
					b.Fatal("not draining")
				}
			}
		})
		b.Run(name("event of a node without maintenance"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if l.isDraining("other") {
					b.Fatal("draining")
				}
			}
		})
		b.Run(name("look at a node"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				node := nodes[i%benchmarkedNodes]
				orders, observed := l.selecting(node)
				if len(orders) != 1 {
					b.Fatalf("selected by %d", len(orders))
				}
				l.leave(node.Name, orders, observed)
				l.isUnreleased(node.Name)
				l.release(node.Name, observed)
			}
		})
	}
}
