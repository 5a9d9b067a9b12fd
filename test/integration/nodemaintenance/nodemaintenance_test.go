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

	"k8s.io/kubernetes/test/integration/framework"
)

// TestNodeMaintenance uses one API server for all tests. Each test has its own nodes and
// controllers.
func TestNodeMaintenance(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	for _, test := range stageTests {
		t.Run("stages: "+test.name, func(t *testing.T) { test.run(newCluster(t, config)) })
	}
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"stages: an announced maintenance changes no pod and no spec", testIdleTouchesNothing},
		{"stages: the finalizer is written first", testFinalizerFirst},
		{"stages: the last maintenance that claims a node uncordons it", testLastUncordons},
		{"stages: a node that is cordoned manually stays cordoned", testManualCordon},

		{"two maintenances wait for each other's nodes", testTwoIntersecting},
		{"a waiting maintenance advances when the one that limits it completes", testCompletionOfHolder},
		{"a new maintenance is fast-forwarded", testFastForward},
		{"three maintenances, each shares a node with each", testThreeIntersecting},

		{"canceled during the drain", testCancelInMidDrain},
		{"the requester is added to the request of another client, then removed", testForeignRequestJoined},
		{"a request that the controller creates", testOwnRequest},
		{"a request that arrives after the end", testRequestAfterEnd},

		{"nodes are added during a drain", testNodeJoins},
		{"nodes are removed during a drain", testNodeLeaves},
		{"a node is deleted and created again", testNodeVanishes},
		{"nodes are cordoned by others", testCordonOfOthers},
		{"no node is selected", testNoNodes},

		{"pod types in order, no interceptor stops the pods", testPodTypes},
		{"the interceptor of a DaemonSet pod never reports", testSilentDaemonSet},
		{"terminal pods", testTerminalPods},
		{"pods are created during a drain", testLatePods},
		{"a pod in a scheduling group", testSchedulingGroup},

		{"blocked by a budget", testBudget},
		{"waiting for an interceptor that reports", testInterceptorAtWork},
		{"blocked by a pod that does not terminate", testStuckTerminating},

		{"deleted while no controller runs", testDeletedWhileDown},
		{"a node is uncordoned repeatedly", testTugOfWar},
		{"drain targets are written before evictions are requested", testNodeSaysFirst},
		{"steady state", testSteadyState},
		{"the status of requests is refused", testRefusedStatus},
		{"no permission to request evictions in one namespace", testPermissionDenied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}
