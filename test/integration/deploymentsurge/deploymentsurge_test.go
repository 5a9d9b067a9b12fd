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

package deploymentsurge

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/integration/framework"
)

type surgeTest struct {
	name string
	run  func(*testing.T, *cluster)
}

// TestDeploymentSurge uses one API server for all tests. Each has its own namespace, in which it
// runs the controllers of Deployments and ReplicaSets.
func TestDeploymentSurge(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd())
	startSharedControllers(t, config)
	tests := []surgeTest{
		{"the example of the KEP, step by step", testPodSurgeExample},

		{"an interceptor is registered in the template", testRegisteredInTemplate},
		{"the pods are in a PodGroup", testInPodGroup},

		{"ten pods at once, two extra", testMany(intstr.FromInt32(2), 2)},
		{"ten pods at once, a quarter extra", testMany(intstr.FromString("25%"), 3)},
		{"one of two replacements is available", testSomeAvailable},

		{"given up within a budget, and available late", testGivenUpWithinBudget},
		{"given up without a budget", testGivenUpWithoutBudget},

		{"canceled before the replacement is available", testCanceledBeforeAvailable},
		{"canceled when the replacement is available", testCanceledWhenAvailable},
		{"canceled while the pod is leaving", testCanceledWhileLeaving},
		{"withdrawn during the deletion of the pod", testWithdrawnDuringDeletion},
		{"one of two canceled", testOneOfTwoCanceled},

		{"a broken pod is requested", testBrokenRequested},
		{"a broken pod beside the requested one", testBrokenBeside},
		{"two of three pods are unready, and requested", testUnreadyRequested(1)},
		{"all pods are unready, and requested", testUnreadyRequested(0)},

		{"a rollout starts in mid-surge", testRolloutInMidSurge},
		{"an old pod is requested during a rollout", testRequestDuringRollout(false)},
		{"a new pod is requested during a rollout", testRequestDuringRollout(true)},
		{"paused in mid-surge", testPausedInMidSurge},
		{"paused with a changed template", testPausedWithChangedTemplate},

		{"an autoscaler scales up in mid-surge", testAutoscaling},
		{"scaled down in mid-surge", testScaleDown(2)},
		{"scaled to 0 in mid-surge", testScaleDown(0)},
		{"strategy changed to Recreate in mid-surge", testStrategy(`{"type":"Recreate","rollingUpdate":null}`, "Deployment app does not surge: its strategy is Recreate.")},
		{"maxSurge changed to 0 in mid-surge", testStrategy(`{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}`, "Released: Deployment app allows the eviction of the pod.")},
		{"deleted in mid-surge", testDeleted(metav1.DeletePropagationBackground)},
		{"deleted in mid-surge, pods first", testDeleted(metav1.DeletePropagationForeground)},
		{"deleted in mid-surge without its ReplicaSet", testOrphaned},
		{"deleted in mid-surge, and recreated", testHandOver},
		{"the pod is deleted by another client", testPodDeletedByAnotherClient},

		{"hostile: annotation on the Deployment", testHostileDeployment},
		{"hostile: annotation removed again and again", testRecordRemoved},

		{"gate off in mid-surge", testGateOffInMidSurge},
		{"gate off when the replacement is available", testGateOffWhenSurged},
		{"pods from before the gate was on", testCreatedBeforeGate},

		{"a node with a single replica is drained", testNodeDrain(1)},
		{"a node with three replicas is drained", testNodeDrain(3)},
		{"a drain is canceled in mid-surge", testDrainCanceled},

		{"a Deployment with a picker", testPickerInSurge},
	}
	for _, test := range budgetTests {
		tests = append(tests, surgeTest{"budget with " + test.name, testBudget(test.spec, test.before, test.surging, test.surged)})
	}
	for _, test := range hostileTests {
		tests = append(tests, surgeTest{"hostile: " + test.name, testHostile(test.value)})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, newCluster(t, config))
		})
	}
}
