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
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// fieldManager marks in managedFields the stages that a user has set.
const fieldManager = "kubectl-maintenance"

// stages in their order.
var stages = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
	coordinationv1alpha1.NodeMaintenanceStageComplete,
}

// startStages are the values of --stage: "complete" is a command of its own.
var startStages = []string{
	string(coordinationv1alpha1.NodeMaintenanceStageIdle),
	string(coordinationv1alpha1.NodeMaintenanceStageCordon),
	string(coordinationv1alpha1.NodeMaintenanceStageDrain),
}

// parseStage reads --stage, in any case of letters.
func parseStage(text string) (coordinationv1alpha1.NodeMaintenanceStage, error) {
	for _, stage := range startStages {
		if strings.EqualFold(stage, text) {
			return coordinationv1alpha1.NodeMaintenanceStage(stage), nil
		}
	}
	if strings.EqualFold(text, string(coordinationv1alpha1.NodeMaintenanceStageComplete)) {
		return "", fmt.Errorf("--stage=%q: use \"kubectl maintenance complete\"", text)
	}
	return "", fmt.Errorf("--stage=%q: must be one of %s", text, strings.Join(startStages, ", "))
}

// moveTo moves a maintenance to a later stage and returns it as it was before. It does not write if
// the maintenance already is in that stage, or in a dry run by the client.
//
// The patch has the resource version that was checked. The controller may write the status at any
// time, so it is retried after a conflict.
func moveTo(ctx context.Context, client kubernetes.Interface, name string, stage coordinationv1alpha1.NodeMaintenanceStage, dryRun cmdutil.DryRunStrategy) (before *coordinationv1alpha1.NodeMaintenance, err error) {
	options := metav1.PatchOptions{FieldManager: fieldManager, DryRun: serverDryRun(dryRun)}
	maintenances := client.CoordinationV1alpha1().NodeMaintenances()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		nm, err := maintenances.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before = nm
		if nm.Spec.Stage == stage && (nm.DeletionTimestamp == nil || stage == coordinationv1alpha1.NodeMaintenanceStageComplete) {
			return nil // What is completed and deleted as well releases its nodes all the same.
		}
		if err := validateMove(nm, stage); err != nil || dryRun == cmdutil.DryRunClient {
			return err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": nm.UID, "resourceVersion": nm.ResourceVersion},
			"spec":     map[string]any{"stage": stage},
		})
		if err != nil {
			return err
		}
		_, err = maintenances.Patch(ctx, name, types.MergePatchType, patch, options)
		return err
	})
	return before, err
}

// serverDryRun is the field DryRun of the options of a write.
func serverDryRun(strategy cmdutil.DryRunStrategy) []string {
	if strategy == cmdutil.DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func validateMove(nm *coordinationv1alpha1.NodeMaintenance, stage coordinationv1alpha1.NodeMaintenanceStage) error {
	switch {
	case nm.DeletionTimestamp != nil && stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		return fmt.Errorf("NodeMaintenance %q is being deleted, which releases its nodes: there is nothing to complete", nm.Name)
	case nm.DeletionTimestamp != nil:
		return fmt.Errorf("NodeMaintenance %q is being deleted: start another one", nm.Name)
	}
	// A stage that this kubectl does not know is left to the server.
	if slices.Index(stages, nm.Spec.Stage) > slices.Index(stages, stage) {
		if nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete {
			return fmt.Errorf("NodeMaintenance %q is in stage Complete and cannot return to %s: start another one; to use its name again, delete it first: kubectl delete nm %s", nm.Name, stage, nm.Name)
		}
		return fmt.Errorf("NodeMaintenance %q is in stage %s and cannot return to %s: complete or cancel it and start another one", nm.Name, nm.Spec.Stage, stage)
	}
	return nil
}
