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

package write

import (
	"context"
	"errors"
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// ErrTooLate says that what an admission was based on is too old.
var ErrTooLate = errors.New("the reservation, or the list of budgets, is too old: it is decided again")

// SetBudgetStatus writes the status of a budget, with its resourceVersion as a precondition.
func (w *Writer) SetBudgetStatus(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenanceBudget) error {
	written, err := w.Client.CoordinationV1alpha1().NodeMaintenanceBudgets().UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return err
	}
	w.budgets.WroteAt(types.NamespacedName{Name: changed.Name}, changed.UID, BudgetResource, written.ResourceVersion)
	return nil
}

// ReplaceStatus is SetStatus for who has to know of a conflict.
func (w *Writer) ReplaceStatus(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenance) error {
	written, err := w.Client.CoordinationV1alpha1().NodeMaintenances().UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return err
	}
	w.Maintenances.WroteAt(types.NamespacedName{Name: changed.Name}, changed.UID, MaintenanceResource, written.ResourceVersion)
	return nil
}

// Admit adds admissions to the status of a node. After a conflict it is repeated on the latest
// version, unless the node has changed in what the decision was based on. Each attempt is made only in
// time: timeouts do not count while a process is suspended, and its reservation may be over since.
func (w *Writer) Admit(ctx context.Context, node *v1.Node, added []v1.MaintenanceAdmission, inTime func() bool) error {
	decided := node
	for range MaxStatusConflicts {
		if !inTime() {
			return ErrTooLate
		}
		desired := node.Status.MaintenanceStatus.DeepCopy()
		if desired == nil {
			desired = &v1.MaintenanceStatus{Unclaimed: true}
		}
		desired.Admissions = append(desired.Admissions, added...)
		err := w.patchNodeStatus(ctx, node, desired, status.OwnConditions(node.Status.Conditions))
		if !apierrors.IsConflict(err) {
			return err
		}
		latest, getErr := w.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if getErr != nil {
			return fmt.Errorf("reading the node after a conflict: %w", getErr)
		}
		if NeedsDecision(decided, latest) || ChangesAdmission(decided, latest) {
			return err
		}
		node = latest
	}
	// This is no conflict that a retry resolves, but a failure to report.
	return fmt.Errorf("other clients write node %s so often that %d attempts in a row to admit it failed", node.Name, MaxStatusConflicts)
}

// HasStored returns an error if an API server has dropped one of the admissions of a node. Nothing may
// begin without them, so it is tried again: another API server may answer.
func HasStored(written *v1.Node, added []v1.MaintenanceAdmission) error {
	dropped := sets.New[types.UID]()
	for i := range added {
		if maintenance.AdmissionOf(written, added[i].MaintenanceUID) == nil {
			dropped.Insert(added[i].MaintenanceUID)
		}
	}
	if dropped.Len() == 0 {
		return nil
	}
	return &UnrecordedError{written.Name, dropped}
}

// UnrecordedError says that an API server has dropped the admissions of maintenances.
type UnrecordedError struct {
	node string
	// UIDs are those of the maintenances.
	UIDs sets.Set[types.UID]
}

// Error says what to enable.
func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("an API server has not stored status.maintenanceStatus.admissions of node %s: "+
		"enable the feature gate NodeMaintenanceBudgets in every kube-apiserver", e.node)
}
