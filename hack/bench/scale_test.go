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

func TestMetricValue(t *testing.T) {
	const text = "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total_more 7\nprocess_cpu_seconds_total 12.34\nbroken x\n"
	got, err := metricValue(text, "process_cpu_seconds_total")
	if err != nil || got != 12.34 {
		t.Errorf("metricValue = %v, %v; want 12.34", got, err)
	}
	for _, name := range []string{"process", "broken", "missing"} {
		if got, err := metricValue(text, name); err == nil {
			t.Errorf("metricValue of %q = %v, want an error", name, got)
		}
	}
}

func TestNewSteadyResult(t *testing.T) {
	counted := tally{Requests: map[string]int{"patch nodes/status": 3, "list nodes": 5}}
	got := newSteadyResult(30*time.Second, 5000, 0.4, counted)
	want := steadyResult{Seconds: 30, Heartbeats: 5000, CPUSeconds: 0.8, Writes: 6, Counts: counted.Requests}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("newSteadyResult (-want +got):\n%s", diff)
	}
}

func TestNewAllNodesResult(t *testing.T) {
	at := func(event auditv1.Event, seconds int) auditv1.Event {
		event.StageTimestamp = metav1.NewMicroTime(received.Add(time.Duration(seconds) * time.Second))
		return event
	}
	by := func(user, verb, resource, subresource string) auditv1.Event {
		return answered(user, manager, verb, resource, subresource, 200, 0)
	}
	got := newAllNodesResult(2, 1, received, []auditv1.Event{
		at(by(maintenanceControllerUser, "patch", "nodes", ""), 1),
		at(by(maintenanceControllerUser, "update", "nodemaintenances", "status"), 3),
		at(by(maintenanceControllerUser, "patch", "nodes", "status"), 2),
		at(by(maintenanceControllerUser, "create", "events", ""), 5),
		at(by(maintenanceControllerUser, "get", "nodes", ""), 6),
		at(by(controllerUser, "patch", "nodes", ""), 7),
	})
	want := allNodesResult{
		Pods: 1, SettledSeconds: 3, RequestsPerNode: 2.5,
		Counts: map[string]int{"patch nodes": 1, "update nodemaintenances/status": 1, "patch nodes/status": 1, "create events": 1, "get nodes": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("newAllNodesResult (-want +got):\n%s", diff)
	}
}

// Every node is to have maintenances of every stage, and no more of them than others.
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

// All nodes have the label of the maintenance of all nodes, and their kubelets are well.
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
		"idle and observed":           {idle, 2, 1, nil, true},
		"idle and not observed yet":   {idle, 1, 1, nil, false},
		"idle without nodes":          {idle, 2, 0, nil, false},
		"drained":                     {drain, 2, 1, []metav1.Condition{drained}, true},
		"drained, but something else": {drain, 1, 1, []metav1.Condition{drained}, false},
		"draining":                    {drain, 2, 1, []metav1.Condition{notDrained}, false},
		"drain observed":              {drain, 2, 1, nil, false},
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
