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

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

func (d *maintenanceDemo) rack(ctx context.Context) ([]v1.Node, error) {
	nodes, err := d.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: demoLabel + "=maintenance"})
	if err != nil {
		return nil, err
	}
	return nodes.Items, nil
}

func (d *maintenanceDemo) maintenance(ctx context.Context) (*coordinationv1alpha1.NodeMaintenance, error) {
	return d.client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, maintenanceName, metav1.GetOptions{})
}

// pods returns the ready pods of an application, on the rack and elsewhere.
func (d *maintenanceDemo) pods(ctx context.Context, app string) (onRack, elsewhere []v1.Pod, err error) {
	pods, err := d.client.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, nil, err
	}
	for _, pod := range pods.Items {
		switch {
		case !podutil.IsPodReady(&pod):
		case slices.Contains(rackNodes, pod.Spec.NodeName):
			onRack = append(onRack, pod)
		default:
			elsewhere = append(elsewhere, pod)
		}
	}
	return onRack, elsewhere, nil
}

// requests returns the eviction requests for pods whose names begin like this.
func (d *maintenanceDemo) requests(ctx context.Context, prefix string) ([]coordinationv1alpha1.EvictionRequest, error) {
	requests, err := d.client.CoordinationV1alpha1().EvictionRequests(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(requests.Items, func(request coordinationv1alpha1.EvictionRequest) bool {
		return !strings.HasPrefix(request.Spec.Target.Pod.Name, prefix)
	}), nil
}

func (d *maintenanceDemo) nodesSchedulable() check {
	return check{"the three nodes take pods", func(ctx context.Context) error {
		nodes, err := d.rack(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if !takesPods(&node) {
				return fmt.Errorf("%s: conditions %v, unschedulable %t, taints %v", node.Name, node.Status.Conditions, node.Spec.Unschedulable, node.Spec.Taints)
			}
		}
		return wantCount("nodes", len(nodes), len(rackNodes))
	}}
}

func (d *maintenanceDemo) onRack(want map[string]int) check {
	return check{"all pods are on the rack", func(ctx context.Context) error {
		for app, count := range want {
			onRack, _, err := d.pods(ctx, app)
			if err != nil {
				return err
			}
			if err := wantCount("ready pods of "+app+" on the rack", len(onRack), count); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (d *maintenanceDemo) shopIsOpen() check {
	return check{"the Service of shop has an endpoint", func(ctx context.Context) error {
		open, err := d.hasEndpoint(ctx)
		if err == nil && !open {
			err = errors.New("it has none that is ready")
		}
		return err
	}}
}

func (d *maintenanceDemo) budgetAllowsNone() check {
	return check{"the budget of api lets none of its pods go", func(ctx context.Context) error {
		budget, err := d.client.PolicyV1().PodDisruptionBudgets(d.namespace).Get(ctx, "api", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if budget.Status.CurrentHealthy != 2 || budget.Status.DisruptionsAllowed != 0 {
			return fmt.Errorf("it has counted %d pods and allows %d to go", budget.Status.CurrentHealthy, budget.Status.DisruptionsAllowed)
		}
		return nil
	}}
}

func (d *maintenanceDemo) nothingChanged() check {
	return check{"it has changed nothing", func(ctx context.Context) error {
		if _, err := d.maintenance(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for NodeMaintenance %s, which must not be there, got: %v", maintenanceName, err)
		}
		requests, err := d.requests(ctx, "")
		if err != nil {
			return err
		}
		if err := wantCount("eviction requests", len(requests), 0); err != nil {
			return err
		}
		return d.nodesSchedulable().unmet(ctx)
	}}
}

func (d *maintenanceDemo) cordoned() check {
	return check{"the three nodes are cordoned", func(ctx context.Context) error {
		nodes, err := d.rack(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if !node.Spec.Unschedulable {
				return fmt.Errorf("%s is schedulable", node.Name)
			}
		}
		return nil
	}}
}

func (d *maintenanceDemo) movedAway(app string, count int) check {
	return check{fmt.Sprintf("%s is off the rack and ready elsewhere: %[2]d of %[2]d", app, count), func(ctx context.Context) error {
		onRack, elsewhere, err := d.pods(ctx, app)
		if err != nil {
			return err
		}
		if err := wantCount("ready pods of "+app+" on the rack", len(onRack), 0); err != nil {
			return err
		}
		return wantCount("ready pods of "+app+" elsewhere", len(elsewhere), count)
	}}
}

func (d *maintenanceDemo) migrating() check {
	return check{"it is the interceptor's turn for db, and it says an ETA", func(ctx context.Context) error {
		requests, err := d.requests(ctx, "db-")
		if err != nil {
			return err
		}
		for i := range requests {
			report := evictionrequest.ActiveInterceptor(&requests[i])
			if report == nil || report.Name != migratorName || report.ExpectedFinishTime == nil {
				return fmt.Errorf("%s: reported by the active interceptor: %v", requests[i].Spec.Target.Pod.Name, report)
			}
		}
		return wantCount("eviction requests of db", len(requests), 2)
	}}
}

func (d *maintenanceDemo) migrated() check {
	return check{"db has left after the interceptor was done, not before", func(ctx context.Context) error {
		requests, err := d.requests(ctx, "db-")
		if err != nil {
			return err
		}
		for i := range requests {
			done := slices.ContainsFunc(requests[i].Status.Interceptors, func(report coordinationv1alpha1.InterceptorStatus) bool {
				return report.Name == migratorName && report.CompletionTime != nil
			})
			if !done || state(&requests[i]) != string(evictionrequest.StateEvicted) {
				return fmt.Errorf("%s: state %s, interceptor is done: %t", requests[i].Spec.Target.Pod.Name, state(&requests[i]), done)
			}
		}
		return wantCount("eviction requests of db", len(requests), 2)
	}}
}

func (d *maintenanceDemo) heldByBudget() check {
	return check{"api is held by its budget, and the maintenance says so", func(ctx context.Context) error {
		if err := d.onRack(map[string]int{"api": 2}).unmet(ctx); err != nil {
			return err
		}
		nm, err := d.maintenance(ctx)
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(nm.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
		if condition == nil || condition.Reason != coordinationv1alpha1.NodeMaintenanceReasonBlocked ||
			!strings.Contains(condition.Message, "PodDisruptionBudget "+d.namespace+"/api") {
			return fmt.Errorf("its condition Drained is %v", condition)
		}
		return wantCount("blocked pods", int(nm.Status.DrainStatus.BlockedPods), 2)
	}}
}

func (d *maintenanceDemo) notAsked(app string) check {
	return check{app + " was not asked yet: its turn comes after all these", func(ctx context.Context) error {
		requests, err := d.requests(ctx, app+"-")
		if err != nil {
			return err
		}
		if err := wantCount("eviction requests of "+app, len(requests), 0); err != nil {
			return err
		}
		onRack, _, err := d.pods(ctx, app)
		if err != nil {
			return err
		}
		return wantCount("ready pods of "+app+" on the rack", len(onRack), 1)
	}}
}

func (d *maintenanceDemo) drained() check {
	return check{"the maintenance says that the nodes are drained", func(ctx context.Context) error {
		nm, err := d.maintenance(ctx)
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(nm.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)) {
			return fmt.Errorf("its conditions are %v", nm.Status.Conditions)
		}
		return wantCount("drained nodes", int(nm.Status.DrainStatus.DrainedNodes), len(rackNodes))
	}}
}

func (d *maintenanceDemo) completed() check {
	return check{"the maintenance is over, and stays as a record", func(ctx context.Context) error {
		nm, err := d.maintenance(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(nm.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) {
			return fmt.Errorf("it has the finalizers %v", nm.Finalizers)
		}
		nodes, err := d.rack(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if node.Status.MaintenanceStatus != nil {
				return fmt.Errorf("%s has a maintenance status", node.Name)
			}
		}
		return nil
	}}
}

func wantCount(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%d %s, want %d", got, what, want)
	}
	return nil
}
