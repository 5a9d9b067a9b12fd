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

package system

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

func expectCount(tCtx ktesting.TContext, what string, got, want int) {
	tCtx.Helper()
	if got != want {
		tCtx.Fatalf("%d %s, want %d", got, what, want)
	}
}

// expectSchedulable fails unless the rack has the wanted nodes, and all are ready and schedulable.
func expectSchedulable(tCtx ktesting.TContext, want int) {
	tCtx.Helper()
	nodes := listRack(tCtx)
	for _, node := range nodes {
		if !nodeutil.IsNodeReady(&node) || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
			tCtx.Fatalf("%s: conditions %v, unschedulable %t, taints %v", node.Name, node.Status.Conditions, node.Spec.Unschedulable, node.Spec.Taints)
		}
	}
	expectCount(tCtx, "nodes", len(nodes), want)
}

func rackIsSchedulable() fact {
	return fact{"the three nodes are schedulable", func(tCtx ktesting.TContext) { expectSchedulable(tCtx, len(rackNodes)) }}
}

func rackIsCordoned() fact {
	return fact{"the three nodes are cordoned", func(tCtx ktesting.TContext) {
		for _, node := range listRack(tCtx) {
			if !node.Spec.Unschedulable {
				tCtx.Fatalf("%s is schedulable", node.Name)
			}
		}
	}}
}

// expectReadyPods fails unless an app has these numbers of ready pods on the rack and elsewhere.
func expectReadyPods(tCtx ktesting.TContext, app string, onRack, elsewhere int) {
	tCtx.Helper()
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + app})
	tCtx.ExpectNoError(err)
	there, total := 0, 0
	for _, pod := range pods.Items {
		if !podutil.IsPodReady(&pod) {
			continue
		}
		total++
		if slices.Contains(rackNodes, pod.Spec.NodeName) {
			there++
		}
	}
	expectCount(tCtx, "ready pods of "+app+" on the rack", there, onRack)
	expectCount(tCtx, "ready pods of "+app+" elsewhere", total-there, elsewhere)
}

func onRack(want map[string]int) fact {
	return fact{"all pods are on the rack", func(tCtx ktesting.TContext) {
		for app, count := range want {
			expectReadyPods(tCtx, app, count, 0)
		}
	}}
}

func movedAway(app string, count int) fact {
	return fact{fmt.Sprintf("%s has left the rack and is ready elsewhere: %[2]d of %[2]d", app, count), func(tCtx ktesting.TContext) {
		expectReadyPods(tCtx, app, 0, count)
	}}
}

func shopIsOpen() fact {
	return fact{"the Service of shop has an endpoint", func(tCtx ktesting.TContext) {
		expectCount(tCtx, "ready endpoints", countEndpoints(tCtx, shop), 1)
	}}
}

func budgetAllowsNone() fact {
	return fact{"the budget of api allows no disruption", func(tCtx ktesting.TContext) {
		budget, err := tCtx.Client().PolicyV1().PodDisruptionBudgets(tCtx.Namespace()).Get(tCtx, "api", metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		expectCount(tCtx, "healthy pods", int(budget.Status.CurrentHealthy), 2)
		expectCount(tCtx, "allowed disruptions", int(budget.Status.DisruptionsAllowed), 0)
	}}
}

func nothingChanged() fact {
	return fact{"it has changed nothing", func(tCtx ktesting.TContext) {
		_, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, maintenanceName, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			tCtx.Fatalf("reading NodeMaintenance %s: %v, must be not found", maintenanceName, err)
		}
		expectCount(tCtx, "eviction requests", len(listRequests(tCtx, "")), 0)
		expectSchedulable(tCtx, len(rackNodes))
	}}
}

// expectMigration fails unless both requests for the pods of db pass a check.
func expectMigration(tCtx ktesting.TContext, check func(request *coordinationv1alpha1.EvictionRequest) bool) {
	tCtx.Helper()
	requests := listRequests(tCtx, "db-")
	for i := range requests {
		if !check(&requests[i]) {
			tCtx.Fatalf("the status of the request for %s is %+v", requests[i].Spec.Target.Pod.Name, requests[i].Status)
		}
	}
	expectCount(tCtx, "eviction requests of db", len(requests), 2)
}

func migrating() fact {
	return fact{"the interceptor of db is active, and reports an ETA", func(tCtx ktesting.TContext) {
		expectMigration(tCtx, func(request *coordinationv1alpha1.EvictionRequest) bool {
			report := evictionrequest.ActiveInterceptor(request)
			return report != nil && report.Name == migrator && report.ExpectedFinishTime != nil
		})
	}}
}

func migrated() fact {
	return fact{"db was evicted after the interceptor had completed, not before", func(tCtx ktesting.TContext) {
		expectMigration(tCtx, func(request *coordinationv1alpha1.EvictionRequest) bool {
			return interceptorStatus(request, migrator).CompletionTime != nil && evictionrequest.StateOf(request) == evictionrequest.StateEvicted
		})
	}}
}

func blockedByBudget() fact {
	return fact{"api is blocked by its budget, and the maintenance reports it", func(tCtx ktesting.TContext) {
		expectReadyPods(tCtx, "api", 2, 0)
		maintenance := getMaintenance(tCtx)
		condition := meta.FindStatusCondition(maintenance.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
		if condition == nil || condition.Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked ||
			!strings.Contains(condition.Message, "PodDisruptionBudget "+tCtx.Namespace()+"/api") {
			tCtx.Fatalf("its condition Drained is %v", condition)
		}
		expectCount(tCtx, "blocked pods", int(maintenance.Status.DrainStatus.BlockedPods), 1) // The other one waits until it has left.
	}}
}

func notRequested(app string) fact {
	return fact{"the eviction of " + app + " is not requested yet: it follows all of these", func(tCtx ktesting.TContext) {
		expectCount(tCtx, "eviction requests of "+app, len(listRequests(tCtx, app+"-")), 0)
		expectReadyPods(tCtx, app, 1, 0)
	}}
}

func drainedRack() fact {
	return fact{"the maintenance reports that the nodes are drained", func(tCtx ktesting.TContext) {
		maintenance := getMaintenance(tCtx)
		if !meta.IsStatusConditionTrue(maintenance.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)) {
			tCtx.Fatalf("its conditions are %v", maintenance.Status.Conditions)
		}
		expectCount(tCtx, "drained nodes", int(maintenance.Status.DrainStatus.DrainedNodes), len(rackNodes))
	}}
}

func completed() fact {
	return fact{"the maintenance is complete, and stays as a record", func(tCtx ktesting.TContext) {
		if finalizers := getMaintenance(tCtx).Finalizers; slices.Contains(finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) {
			tCtx.Fatalf("it has the finalizers %v", finalizers)
		}
		for _, node := range listRack(tCtx) {
			if node.Status.MaintenanceStatus != nil {
				tCtx.Fatalf("%s has a maintenance status", node.Name)
			}
		}
	}}
}
