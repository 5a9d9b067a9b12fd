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

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

func TestAllNodesResults(t *testing.T) {
	at := func(seconds int, user, verb, resource, subresource string) auditv1.Event {
		return event(user, manager, verb, resource, subresource, 200, time.Duration(seconds)*time.Second)
	}
	c := &cluster{opts: options{scaleNodes: 2}}
	all := requests{
		at(1, maintenanceUser, "patch", "nodes", ""),
		at(3, maintenanceUser, "update", "nodemaintenances", "status"),
		at(2, maintenanceUser, "patch", "nodes", "status"),
		at(5, maintenanceUser, "create", "events", ""),
		at(6, maintenanceUser, "get", "nodes", ""),
		at(7, evictionUser, "patch", "nodes", ""),
	}
	want := map[string]float64{"last status written after": 3, "requests": 2.5}
	if diff := cmp.Diff(want, values(c.allNodesResults(received, all))); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	want = map[string]float64{"last status written after": 0, "requests": 0}
	if diff := cmp.Diff(want, values(c.allNodesResults(received, nil))); diff != "" {
		t.Errorf("results without requests (-want +got):\n%s", diff)
	}
}

// TestSteadyMaintenance verifies that all nodes have the same number of maintenances of each stage.
func TestSteadyMaintenance(t *testing.T) {
	selected := map[string]map[coordinationv1alpha1.NodeMaintenanceStage]int{}
	for i := range maintenances {
		m := steadyMaintenance(i)
		selector, err := nodeaffinity.NewNodeSelector(m.Spec.NodeSelector)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 2 * racks {
			node := newNode(n)
			if selector.Match(node) {
				if selected[node.Name] == nil {
					selected[node.Name] = map[coordinationv1alpha1.NodeMaintenanceStage]int{}
				}
				selected[node.Name][m.Spec.Stage]++
			}
		}
	}
	want := map[coordinationv1alpha1.NodeMaintenanceStage]int{
		coordinationv1alpha1.NodeMaintenanceStageIdle: 2, coordinationv1alpha1.NodeMaintenanceStageCordon: 2, coordinationv1alpha1.NodeMaintenanceStageDrain: 2,
	}
	if len(selected) != 2*racks {
		t.Errorf("%d nodes are selected, want %d", len(selected), 2*racks)
	}
	for node, stages := range selected {
		if diff := cmp.Diff(want, stages); diff != "" {
			t.Errorf("maintenances of %s (-want +got):\n%s", node, diff)
		}
	}
}

// TestNewNode verifies that nodes are selected by the maintenance of all nodes, and are healthy.
func TestNewNode(t *testing.T) {
	node := newNode(57)
	if !labels.SelectorFromSet(labels.Set{allLabel: "true", rackLabel: "rack-7", v1.LabelHostname: "node-57"}).Matches(labels.Set(node.Labels)) {
		t.Errorf("labels = %v", node.Labels)
	}
	if len(node.Status.Conditions) != 4 {
		t.Errorf("conditions = %v, want those of a kubelet", node.Status.Conditions)
	}
	for _, condition := range node.Status.Conditions {
		if (condition.Type == v1.NodeReady) != (condition.Status == v1.ConditionTrue) {
			t.Errorf("condition %s is %s", condition.Type, condition.Status)
		}
	}
}

func TestIsSettled(t *testing.T) {
	drained := metav1.Condition{Type: string(coordinationv1alpha1.NodeMaintenanceConditionDrained), Status: metav1.ConditionTrue}
	notDrained := drained
	notDrained.Status = metav1.ConditionFalse
	const idle, drain = coordinationv1alpha1.NodeMaintenanceStageIdle, coordinationv1alpha1.NodeMaintenanceStageDrain
	for name, tc := range map[string]struct {
		stage    coordinationv1alpha1.NodeMaintenanceStage
		observed int64
		selected int32
		drained  []metav1.Condition
		want     bool
	}{
		"idle and observed":         {idle, 2, 1, nil, true},
		"idle and not observed yet": {idle, 1, 1, nil, false},
		"idle without nodes":        {idle, 2, 0, nil, false},
		"drained":                   {drain, 2, 1, []metav1.Condition{drained}, true},
		"drained, older generation": {drain, 1, 1, []metav1.Condition{drained}, false},
		"draining":                  {drain, 2, 1, []metav1.Condition{notDrained}, false},
		"drain observed":            {drain, 2, 1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaintenance("m", tc.stage, allLabel, "true")
			m.Generation = 2
			m.Status = coordinationv1alpha1.NodeMaintenanceStatus{ObservedGeneration: tc.observed, SelectedNodes: tc.selected, Conditions: tc.drained}
			if got := isSettled(m); got != tc.want {
				t.Errorf("isSettled = %v, want %v", got, tc.want)
			}
		})
	}
}
