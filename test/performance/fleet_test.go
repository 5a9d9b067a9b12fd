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

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Each node is reported once as drained and once as given back, however often it is seen.
func TestFleetWatch(t *testing.T) {
	w := newFleetWatch("m", 10)
	now := ptr.To(metav1.Now())
	for _, step := range []struct {
		name           string
		admission      v1.MaintenanceAdmission
		unschedulable  bool
		drained, given int
	}{
		{"admitted", v1.MaintenanceAdmission{MaintenanceUID: "m"}, true, 0, 0},
		{"drained for another", v1.MaintenanceAdmission{MaintenanceUID: "other", DrainedTime: now}, true, 0, 0},
		{"drained", v1.MaintenanceAdmission{MaintenanceUID: "m", DrainedTime: now}, true, 1, 0},
		{"annotated", v1.MaintenanceAdmission{MaintenanceUID: "m", DrainedTime: now}, true, 1, 0},
		{"done", v1.MaintenanceAdmission{MaintenanceUID: "m", DrainedTime: now, DoneTime: now}, true, 1, 0},
		{"given back", v1.MaintenanceAdmission{MaintenanceUID: "m", DrainedTime: now, DoneTime: now}, false, 1, 1},
		{"released", v1.MaintenanceAdmission{MaintenanceUID: "m", DrainedTime: now, DoneTime: now}, false, 1, 1},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Unschedulable: step.unschedulable}}
		node.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{step.admission}}
		w.see(node)
		if len(w.drained) != step.drained || len(w.given) != step.given {
			t.Errorf("%s: %d times drained, %d times given back, not %d and %d", step.name, len(w.drained), len(w.given), step.drained, step.given)
		}
	}
}
