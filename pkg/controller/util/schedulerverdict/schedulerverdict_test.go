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

package schedulerverdict

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestOf verifies what is read from messages of kube-scheduler. What it says about preemption does not count.
func TestOf(t *testing.T) {
	const (
		cordoned   = "1 node(s) were unschedulable"
		preemption = ". no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
	)
	for message, want := range map[string]Verdict{
		"0/3 nodes are available: " + cordoned + ", 2 node(s) didn't match Pod's node affinity/selector" + preemption:                                              {Nodes: true},
		"0/3 nodes are available: " + cordoned + ", 2 node(s) had untolerated taint {key: value}.":                                                                 {Nodes: true},
		"0/3 nodes are available: " + cordoned + ", 2 node(s) didn't match PersistentVolume's node affinity" + preemption:                                          {Nodes: true, Volumes: true},
		"0/3 nodes are available: " + cordoned + ", 2 node(s) had volume node affinity conflict.":                                                                  {Nodes: true, Volumes: true},
		"0/3 nodes are available: 3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod" + preemption: {Volumes: true},
		"0/3 nodes are available: " + cordoned + ", 2 node(s) didn't match pod topology spread constraints (missing required label)" + preemption:                  {Nodes: true, Spread: true},
		"0/3 nodes are available: " + cordoned + ", 2 Insufficient cpu" + preemption:                                                                               {},
		"0/3 nodes are available: 1 Insufficient cpu, " + "2 node(s) didn't match Pod's node affinity/selector" + preemption:                                       {},
		"0/3 nodes are available: something else.": {},
		"running PreBind plugin: timed out":        {},
	} {
		condition := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message}
		pod := &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{condition}}}
		if got := Of(pod); got != want {
			t.Errorf("%q: got %+v, want %+v", message, got, want)
		}
		for name, change := range map[string]func(*v1.PodCondition){
			"scheduled":      func(c *v1.PodCondition) { c.Status = v1.ConditionTrue },
			"another reason": func(c *v1.PodCondition) { c.Reason = v1.PodReasonSchedulingGated },
			"another type":   func(c *v1.PodCondition) { c.Type = v1.PodReady },
		} {
			changed := condition
			change(&changed)
			pod.Status.Conditions = []v1.PodCondition{changed}
			if got := Of(pod); got != (Verdict{}) {
				t.Errorf("%s, %q: got %+v", name, message, got)
			}
		}
	}
}
