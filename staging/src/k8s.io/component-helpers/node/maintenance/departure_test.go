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

package maintenance

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// havingConditions returns a node with conditions, which others may have written.
func havingConditions(conditions ...v1.NodeCondition) *v1.Node {
	return &v1.Node{Status: v1.NodeStatus{Conditions: conditions}}
}

// TestDepartureOf verifies that what leaves sooner counts, whatever the order of the conditions.
func TestDepartureOf(t *testing.T) {
	is := func(conditionType v1.NodeConditionType) v1.NodeCondition {
		return v1.NodeCondition{Type: conditionType, Status: v1.ConditionTrue}
	}
	removed := havingConditions(is(v1.NodeReady), is(v1.NodeMaintenancePlanned))
	removed.Spec.Taints = []v1.Taint{{Key: "karpenter.sh/disrupted"}}
	for name, test := range map[string]struct {
		node *v1.Node
		want Departure
	}{
		"nothing":               {havingConditions(is(v1.NodeReady)), NotDeparting},
		"planned":               {havingConditions(is(v1.NodeMaintenancePlanned)), DeparturePlanned},
		"not planned":           {havingConditions(v1.NodeCondition{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionUnknown}), NotDeparting},
		"planned, and in work":  {havingConditions(is(v1.NodeMaintenancePlanned), is(v1.NodeMaintenanceInProgress)), Departing},
		"in work, and planned":  {havingConditions(is(v1.NodeDrainInProgress), is(v1.NodeMaintenancePlanned)), Departing},
		"it shuts down":         {havingConditions(is(v1.NodeGracefulNodeShutdownInProgress)), Departing},
		"others remove it":      {removed, Departing},
		"nothing is known here": {&v1.Node{}, NotDeparting},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DepartureOf(test.node); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// TestClaimedSince verifies that only what maintenances of this project say counts: what others write may be older.
func TestClaimedSince(t *testing.T) {
	since := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	now := since.Add(time.Hour)
	claimed := func(status v1.ConditionStatus, reason string) *v1.Node {
		return havingConditions(v1.NodeCondition{Type: v1.NodeMaintenanceInProgress, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)})
	}
	for name, test := range map[string]struct {
		node      *v1.Node
		now, want time.Time
	}{
		"claimed":               {claimed(v1.ConditionTrue, ReasonInProgress), now, since},
		"not claimed any more":  {claimed(v1.ConditionFalse, "NoMaintenanceInProgress"), now, time.Time{}},
		"not claimed, it says":  {claimed(v1.ConditionFalse, ReasonInProgress), now, time.Time{}},
		"maybe claimed":         {claimed(v1.ConditionUnknown, ReasonInProgress), now, time.Time{}},
		"another condition":     {havingConditions(v1.NodeCondition{Type: v1.NodeDrainInProgress, Status: v1.ConditionTrue, Reason: ReasonInProgress, LastTransitionTime: metav1.NewTime(since)}), now, time.Time{}},
		"by another client":     {claimed(v1.ConditionTrue, "FirmwareUpgrade"), now, time.Time{}},
		"by a clock ahead":      {claimed(v1.ConditionTrue, ReasonInProgress), since.Add(-MaxClockDifference), since},
		"in the future":         {claimed(v1.ConditionTrue, ReasonInProgress), since.Add(-MaxClockDifference - time.Second), time.Time{}},
		"nothing is known here": {&v1.Node{}, now, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ClaimedSince(test.node, test.now); !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
