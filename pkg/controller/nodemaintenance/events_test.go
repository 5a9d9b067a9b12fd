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
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
)

// The event StageStarted has the number of nodes only if the status is of this generation. A drain
// starts before its nodes are counted: the status then has 0, or the number of an older selector.
func TestStageStartedCounts(t *testing.T) {
	for observed, want := range map[int64]string{
		1: "Normal StageStarted Started the stage Drain", 2: "Normal StageStarted Started the stage Drain on 3 nodes",
	} {
		recorder := events.NewFakeRecorder(1)
		m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 2}}
		newEventWriter(recorder, clock.RealClock{}).maintenanceChanged(m, &coordinationv1alpha1.NodeMaintenanceStatus{
			ObservedGeneration: observed, SelectedNodes: 3,
			StageStatuses: []coordinationv1alpha1.StageStatus{{Name: coordinationv1alpha1.NodeMaintenanceStageDrain}},
		})
		if got := <-recorder.Events; got != want {
			t.Errorf("observed %d: %q, want %q", observed, got, want)
		}
	}
}
