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

package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

func TestTimesOfNodeConditions(t *testing.T) {
	view := &View{Planning: []string{"m"}}
	first := ComputeNodeConditions(view, nil, start)
	later := start.Add(time.Hour)
	for i, c := range ComputeNodeConditions(view, first, later) {
		if c != first[i] {
			t.Errorf("unchanged: %+v", c)
		}
	}
	view.Planning = []string{"m", "n"}
	if c := ComputeNodeConditions(view, first, later)[0]; !c.LastHeartbeatTime.Time.Equal(later) || !c.LastTransitionTime.Time.Equal(start) {
		t.Errorf("another message: %+v", c)
	}
	view.Planning, view.Claiming = nil, []string{"m"}
	if c := ComputeNodeConditions(view, first, later)[0]; c.Status != v1.ConditionFalse || !c.LastHeartbeatTime.Time.Equal(later) || !c.LastTransitionTime.Time.Equal(later) {
		t.Errorf("another status: %+v", c)
	}
	view = &View{Claiming: []string{"m"}, Draining: []string{"m"}}
	view.State.Left = true
	first = ComputeNodeConditions(view, nil, start)
	view.State.Left, view.State.Detaching = false, true
	if c := ComputeNodeConditions(view, first, later)[2]; c.Reason != ReasonVolumesAttached || !c.LastHeartbeatTime.Time.Equal(later) || !c.LastTransitionTime.Time.Equal(start) {
		t.Errorf("another reason: %+v", c)
	}
}

// TestOwnConditions has conditions that this controller cannot have written.
func TestOwnConditions(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		since  metav1.Time
		own    bool
	}{
		"own":              {ReasonInProgress, metav1.NewTime(start.Add(-time.Hour)), true},
		"of a clock ahead": {ReasonPodsLeft, metav1.NewTime(start.Add(maintenance.MaxClockDifference)), true},
		"in the future":    {ReasonInProgress, metav1.NewTime(start.Add(maintenance.MaxClockDifference + time.Second)), false},
		"another reason":   {"FirmwareUpgrade", metav1.NewTime(start.Add(-time.Hour)), false},
		"without a time":   {ReasonInProgress, metav1.Time{}, false},
	} {
		if got := IsOwnCondition(&v1.NodeCondition{Reason: test.reason, LastTransitionTime: test.since}, start); got != test.own {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
