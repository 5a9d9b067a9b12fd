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

// TestNodeMaintenance has one API server for all tests. Each is alone with its nodes
// and has controllers of its own.
func TestNodeMaintenance(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	for _, test := range stageTests {
		t.Run("stages: "+test.name, func(t *testing.T) { test.run(newCluster(t, config)) })
	}
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"stages: an announced maintenance touches nothing", testIdleTouchesNothing},
		{"stages: the finalizer comes first", testFinalizerFirst},
		{"stages: the last one who holds a node uncordons it", testLastUncordons},
		{"stages: a node that is cordoned by hand later stays cordoned", testManualCordon},

		{"two maintenances wait for each other's nodes", testTwoIntersecting},
		{"the others advance when the one that holds them back completes", testCompletionOfHolder},
		{"a newcomer is fast-forwarded", testFastForward},
		{"three maintenances in a ring", testThreeIntersecting},

		{"canceled in mid-drain", testCancelInMidDrain},
		{"the request of another client is joined and left", testForeignRequestJoined},
		{"an own request", testOwnRequest},

		{"nodes join in mid-drain", testNodeJoins},
		{"nodes leave in mid-drain", testNodeLeaves},
		{"a node vanishes and comes back", testNodeVanishes},
		{"no node is selected", testNoNodes},

		{"types of pods in order, without handlers", testPodTypes},
		{"pods of DaemonSets without reports", testSilentDaemonSet},
		{"pods that have ended", testTerminalPods},
		{"pods that come late", testLatePods},
		{"a pod in a scheduling group", testSchedulingGroup},

		{"blocked by a budget", testBudget},
		{"blocked by an interceptor at work", testInterceptorAtWork},
		{"blocked by a pod that is stuck", testStuckTerminating},

		{"deleted while no controller runs", testDeletedWhileDown},
		{"a node is uncordoned repeatedly", testTugOfWar},
		{"a node says first which pods leave it", testNodeSaysFirst},
		{"steady state", testSteadyState},
		{"no right to ask in one namespace", testPermissionDenied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}
