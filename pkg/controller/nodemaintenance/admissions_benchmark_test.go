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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

const (
	admittedNodes        = 5000
	admittedBudgets      = 50
	admittedMaintenances = 200
)

// waitingFleet returns a fixture with 5,000 nodes and 200 rollouts over all of them, which wait because 50
// budgets allow nothing more. Every tenth node is given back by each rollout already.
func waitingFleet(b *testing.B) *fixture {
	b.Helper()
	f := newFixture(b)
	now := metav1.NewTime(f.clock.Now())
	var maintenances []*coordinationv1alpha1.NodeMaintenance
	for i := range admittedMaintenances {
		rollout := atOnce(100)
		rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{}
		m := &coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("m-%03d", i), UID: types.UID(fmt.Sprintf("u-%03d", i)), Generation: 1, CreationTimestamp: now,
				Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer},
			},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{
				Stage: stageDrain, DrainPlan: maintenance.StandardPlan(), Rollout: &rollout,
				NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchExpressions: []v1.NodeSelectorRequirement{{Key: "a", Operator: v1.NodeSelectorOpExists}},
				}}},
			},
		}
		maintenances = append(maintenances, m)
		if err := f.maintenanceInformer.GetIndexer().Add(m); err != nil {
			b.Fatal(err)
		}
	}
	for i := range admittedNodes {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{"a": "", v1.LabelHostname: fmt.Sprint(i)}}}
		setReady(true)(node)
		node.Status.MaintenanceStatus = &v1.MaintenanceStatus{Unclaimed: true}
		for j, m := range maintenances {
			if (i+j)%10 == 0 {
				node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, v1.MaintenanceAdmission{
					MaintenanceName: m.Name, MaintenanceUID: m.UID, AdmittedTime: now, DrainedTime: &now, DoneTime: &now,
				})
			}
		}
		if err := f.nodeInformer.GetIndexer().Add(node); err != nil {
			b.Fatal(err)
		}
	}
	for i := range admittedBudgets {
		f.createLimit(fmt.Sprintf("b-%02d", i), 0)
	}
	f.deliverLimits()
	for _, m := range maintenances {
		o, err := progress.NewSpec(m)
		if err != nil {
			b.Fatal(err)
		}
		f.progress.Observe(o, 0, f.listNodes)
	}
	for range 3 { // Until the statuses of the budgets are written, and cached.
		if err := f.syncAdmissions(f.ctx, admissionsKey); err != nil {
			b.Fatal(err)
		}
		f.deliverLimits()
	}
	return f
}

// BenchmarkSyncAdmissions measures one decision on admissions, with what is read for it.
func BenchmarkSyncAdmissions(b *testing.B) {
	f := waitingFleet(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.syncAdmissions(f.ctx, admissionsKey); err != nil {
			b.Fatal(err)
		}
	}
}
