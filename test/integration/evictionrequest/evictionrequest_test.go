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

package evictionrequest

import (
	"testing"

	"k8s.io/kubernetes/test/integration/framework"
)

// TestEvictionRequest uses one API server for all tests. Each test has its own namespace and
// controller.
func TestEvictionRequest(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"request and pod are stored and read back", testServed},
		{"invalid requests are rejected", testRejectedRequests},
		{"invalid updates of a request are rejected", testRejectedUpdates},
		{"invalid pods are rejected", testRejectedPods},
		{"interceptors are registered by annotation", testRegistration},
		{"second request for a pod is rejected", testSecondRequest},
		{"invalid writes of a status are rejected", testInvalidStatusWrites},
		{"valid writes of a status are accepted", testValidStatusWrites},

		{"two interceptors then imperative eviction", testWalk},
		{"restart between all states", testRestartBetweenStates},
		{"silent interceptor times out at the deadline", testSilentInterceptor},

		{"concurrent writers lose nothing", testConcurrentWriters},

		{"blocked until the budget is deleted", testBudgetDeleted},
		{"blocked until the budget is relaxed", testBudgetRelaxed},
		{"many pods are blocked by one budget", testExhaustedBudget},
		{"blocked by two budgets until one is deleted", testTwoBudgets},
		{"unhealthy pod with AlwaysAllow is evicted despite its budget", testUnhealthyPodAlwaysAllowed},
		{"unhealthy pod is blocked until the policy is AlwaysAllow", testUnhealthyPodReleased},

		{"canceled when the last of two requesters leaves", testLastRequesterLeaves},
		{"canceled while blocked", testBlockedRequestCanceled},
		{"evicted when another client deletes the pod", testPodDeletedByAnotherClient},
		{"evicted when the pod was deleted without a running controller", testPodDeletedWithoutController},
		{"evicted when the pod has succeeded", testPodTerminal},
		{"not evicted while the pod terminates", testPodTerminating},
		{"canceled when the pod is missing", testPodMissing},
		{"refused when the pod has another UID", testPodOfAnotherUID},
		{"canceled when the pod is in a scheduling group", testPodInSchedulingGroup},
		{"pod replaced under the same name", testPodReplaced},
		{"pod replaced under the same name without a running controller", testPodReplacedWithoutController},

		{"labels of the pod are copied", testLabelsFollowThePod},
		{"finished request is collected", testFinishedRequestIsCollected},
		{"requester is added to a canceled request", testRequesterAddedAfterCancellation},
		{"request with a foreign finalizer is canceled when it is deleted", testForeignFinalizer},
		{"default interceptors by kind of pod", testDefaultInterceptors},
		{"interceptors registered by annotation", testRegisteredByAnnotation},
		{"silent interceptor is unresponsive after a minute", testUnresponsiveInterceptor},
		{"forbidden cancellation", testForbiddenCancellation},
		{"events on request and pod", testEvents},
		{"cost of a pod without interceptors", testCost},

		{"the controller's role grants what it needs and no more", testControllerRole},
		{"user roles read and write requests but no status", testUserRoles},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}
