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
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestShutdownName(t *testing.T) {
	long := strings.Repeat("n", 63) + "." + strings.Repeat("o", 63) + "." + strings.Repeat("p", 63) + "." + strings.Repeat("q", 61)
	if len(long) != validation.DNS1123SubdomainMaxLength {
		t.Fatalf("the longest name of a node has %d characters, not %d", len(long), validation.DNS1123SubdomainMaxLength)
	}
	for _, node := range []string{"worker-1", "10.0.0.7", long[:235], long[:236], long} {
		got := ShutdownName(node)
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
			t.Errorf("the name %q for node %q is invalid: %v", got, node, problems)
		}
		if isReadable := got == "graceful-shutdown-"+node; isReadable != (len(node) <= 235) {
			t.Errorf("the name for a node with %d characters is %q", len(node), got)
		}
		if !IsShutdownName(got) || IsShutdownName(node) {
			t.Errorf("the name %q is not told from the others", got)
		}
		if !SelectsOnly(ShutdownSelector(node), node) {
			t.Errorf("the selector of node %q selects others", node)
		}
	}
	if a, b := ShutdownName(long), ShutdownName(long[:252]+"z"); a == b || len(a) != len("graceful-shutdown-")+64 {
		t.Errorf("two nodes with long names have the names %q and %q", a, b)
	}
}

// TestTerminatesPods verifies that only a kubelet says so, and not for ever: one that does not know the condition leaves
// it as it was.
func TestTerminatesPods(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status v1.ConditionStatus
		reason string
		// ready is how much newer the condition Ready is; negative if there is none.
		ready time.Duration
		want  bool
	}{
		"terminates":                 {v1.ConditionTrue, ShutdownTerminatingReason, 0, true},
		"terminates, a moment later": {v1.ConditionTrue, ShutdownTerminatingReason, time.Minute, true},
		"left by another kubelet":    {v1.ConditionTrue, ShutdownTerminatingReason, time.Minute + time.Second, false},
		"without Ready":              {v1.ConditionTrue, ShutdownTerminatingReason, -1, true},
		"is drained":                 {v1.ConditionTrue, ShutdownReason, 0, false},
		"of an administrator":        {v1.ConditionTrue, "Shutdown", 0, false},
		"over":                       {v1.ConditionFalse, ShutdownTerminatingReason, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{
				Type: v1.NodeGracefulNodeShutdownInProgress, Status: test.status, Reason: test.reason, LastHeartbeatTime: metav1.NewTime(now),
			}}}}
			if test.ready >= 0 {
				node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: v1.NodeReady, LastHeartbeatTime: metav1.NewTime(now.Add(test.ready))})
			}
			if got := TerminatesPods(node); got != test.want {
				t.Errorf("TerminatesPods = %t, want %t", got, test.want)
			}
		})
	}
	if TerminatesPods(&v1.Node{}) {
		t.Error("a node without conditions terminates pods")
	}
}
