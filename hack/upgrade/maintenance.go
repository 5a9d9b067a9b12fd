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
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/hack/controlplane"
)

// rack is the node and its maintenance.
const rack = "rack"

// startMaintenance drains a node, and is not done: its pod waits for an interceptor.
func (t *upgradeTest) startMaintenance(ctx context.Context) (string, error) {
	if _, err := t.Client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: rack}}, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("creating the node: %w", err)
	}
	pod := controlplane.NewPod("racked", controlplane.Interceptor)
	pod.Spec.NodeName = rack
	pod, err := t.CreateReadyPod(ctx, pod)
	if err != nil {
		return "", err
	}
	t.pods["racked"] = pod
	maintenance := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: rack},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage: coordinationv1alpha1.NodeMaintenanceStageDrain,
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{rack}}},
			}}},
		},
	}
	if _, err := t.Client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, maintenance, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("creating the maintenance: %w", err)
	}
	return t.expectDraining(ctx)
}

// expectDraining waits until the node and its pod are under maintenance.
func (t *upgradeTest) expectDraining(ctx context.Context) (string, error) {
	if err := controlplane.Poll(ctx, "the node to be drained", func(ctx context.Context) (bool, error) {
		node, err := t.Client.CoreV1().Nodes().Get(ctx, rack, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status := node.Status.MaintenanceStatus
		return node.Spec.Unschedulable && status != nil && len(status.DrainTargets) > 0 && status.ActiveEvictionRequests == 1, nil
	}); err != nil {
		return "", err
	}
	if _, err := t.AwaitRequest(ctx, t.pods["racked"], "the turn of the interceptor", controlplane.IsActive(controlplane.Interceptor)); err != nil {
		return "", err
	}
	return "the node is unschedulable, its status has drain targets, its pod was asked to leave.", nil
}

// useNodeUnderBase gives the node back by hand: the base knows of no maintenance.
func (t *upgradeTest) useNodeUnderBase(ctx context.Context) (string, error) {
	if _, err := t.Client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("listing NodeMaintenances under the base: %v, must be not found", err)
	}
	node, err := t.Client.CoreV1().Nodes().Get(ctx, rack, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the node: %w", err)
	}
	if !node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		return "", fmt.Errorf("under the base the node has unschedulable %t and maintenance status %v, must be true and none", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
	}
	uncordon := []byte(`{"spec":{"unschedulable":null},"metadata":{"labels":{"written-by":"base"}}}`)
	if _, err := t.Client.CoreV1().Nodes().Patch(ctx, rack, types.MergePatchType, uncordon, metav1.PatchOptions{}); err != nil {
		return "", fmt.Errorf("uncordoning the node: %w", err)
	}
	return "the node was still unschedulable, and takes an uncordon and a label; its maintenance is not served.", nil
}

// finishMaintenance deletes the maintenance, which gives node and pod back.
func (t *upgradeTest) finishMaintenance(ctx context.Context) (string, error) {
	if err := t.Client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, rack, metav1.DeleteOptions{}); err != nil {
		return "", fmt.Errorf("deleting the maintenance: %w", err)
	}
	if err := controlplane.Poll(ctx, "the maintenance to be completed and gone", func(ctx context.Context) (bool, error) {
		_, err := t.Client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, rack, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		return true, nil
	}); err != nil {
		return "", err
	}
	node, err := t.Client.CoreV1().Nodes().Get(ctx, rack, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the node: %w", err)
	}
	if node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		return "", fmt.Errorf("after the maintenance the node has unschedulable %t and maintenance status %v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
	}
	if _, err := t.AwaitRequest(ctx, t.pods["racked"], "the request to be canceled", controlplane.IsTrue(coordinationv1alpha1.EvictionRequestConditionCanceled)); err != nil {
		return "", err
	}
	if err := t.ExpectStays(ctx, t.pods["racked"], 0); err != nil {
		return "", err
	}
	return "the node is schedulable, the request for its pod canceled, the maintenance gone.", nil
}
