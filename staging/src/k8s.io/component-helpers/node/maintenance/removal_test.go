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
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsBeingRemoved(t *testing.T) {
	tainted := func(key string) v1.Node {
		return v1.Node{Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "team"}, {Key: key, Effect: v1.TaintEffectNoSchedule}}}}
	}
	for name, test := range map[string]struct {
		node v1.Node
		want bool
	}{
		"plain":                       {v1.Node{}, false},
		"deleted":                     {v1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, true},
		"by the cluster autoscaler":   {tainted("ToBeDeletedByClusterAutoscaler"), true},
		"by Karpenter":                {tainted("karpenter.sh/disrupted"), true},
		"by an older Karpenter":       {tainted("karpenter.sh/disruption"), true},
		"a spot instance of AWS":      {tainted("aws-node-termination-handler/spot-itn"), true},
		"by an autoscaling group":     {tainted("aws-node-termination-handler/asg-lifecycle-termination"), true},
		"an instance of Google":       {tainted("cloud.google.com/impending-node-termination"), true},
		"maybe, some day":             {tainted("aws-node-termination-handler/rebalance-recommendation"), false},
		"a candidate for removal":     {tainted("DeletionCandidateOfClusterAutoscaler"), false},
		"cordoned":                    {tainted(v1.TaintNodeUnschedulable), false},
		"out of service, not deleted": {tainted(v1.TaintNodeOutOfService), false},
	} {
		if got := IsBeingRemoved(&test.node); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A cordoned node is not available, but it runs its pods; one that others remove, or that is out of service, will
// not for long.
func TestAvailability(t *testing.T) {
	ready := func(status v1.ConditionStatus, taints ...string) *v1.Node {
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}}}
		for _, key := range taints {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key})
		}
		return node
	}
	cordoned := ready(v1.ConditionTrue, v1.TaintNodeUnschedulable)
	cordoned.Spec.Unschedulable = true
	for name, test := range map[string]struct {
		node                 *v1.Node
		available, disrupted bool
	}{
		"ready":              {ready(v1.ConditionTrue, "team"), true, false},
		"not ready":          {ready(v1.ConditionUnknown), false, true},
		"without conditions": {&v1.Node{}, false, true},
		"cordoned":           {cordoned, false, false},
		"being removed":      {ready(v1.ConditionTrue, "karpenter.sh/disrupted"), false, true},
		"out of service":     {ready(v1.ConditionTrue, v1.TaintNodeOutOfService), false, true},
	} {
		if available, disrupted := IsAvailable(test.node), IsDisrupted(test.node); available != test.available || disrupted != test.disrupted {
			t.Errorf("%s: available %t, disrupted %t", name, available, disrupted)
		}
		if got := len(WhyUnavailable(test.node)) == 0; got != test.available {
			t.Errorf("%s: unavailable because of %q, but available: %t", name, WhyUnavailable(test.node), test.available)
		}
	}
}

// A budget counts a node for each reason, and every reason is named.
func TestWhyUnavailable(t *testing.T) {
	now := metav1.Unix(1, 0)
	admitted := func(admissions ...v1.MaintenanceAdmission) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Status.MaintenanceStatus, n.Spec.Unschedulable = &v1.MaintenanceStatus{Admissions: admissions}, true
		}
	}
	for name, test := range map[string]struct {
		change func(*v1.Node)
		want   string
	}{
		"available": {func(*v1.Node) {}, ""},
		"cordoned":  {func(n *v1.Node) { n.Spec.Unschedulable = true }, "unschedulable"},
		"not Ready": {func(n *v1.Node) { n.Status.Conditions = nil }, "not Ready"},
		"left by an autoscaler, and deleted": {func(n *v1.Node) {
			n.DeletionTimestamp, n.Spec.Taints = &now, []v1.Taint{{Key: "team"}, {Key: "karpenter.sh/disrupted"}}
		}, "being deleted, taint karpenter.sh/disrupted"},
		"out of service": {func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeOutOfService}} }, "taint " + v1.TaintNodeOutOfService},
		"in two maintenances": {
			admitted(v1.MaintenanceAdmission{MaintenanceName: "old", DoneTime: &now}, v1.MaintenanceAdmission{MaintenanceName: "a"}, v1.MaintenanceAdmission{MaintenanceName: "b"}),
			"in maintenance a, in maintenance b",
		},
		"given back, and cordoned": {admitted(v1.MaintenanceAdmission{MaintenanceName: "old", DoneTime: &now}), "unschedulable"},
		"shut down": {func(n *v1.Node) {
			n.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{{}}}
		}, "being drained"},
	} {
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
		test.change(node)
		if got := strings.Join(WhyUnavailable(node), ", "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if counts := !IsAvailable(node) || IsTaken(node); counts != (test.want != "") {
			t.Errorf("%s: budgets count it: %t", name, counts)
		}
	}
}
