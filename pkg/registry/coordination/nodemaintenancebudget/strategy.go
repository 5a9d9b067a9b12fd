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

package nodemaintenancebudget

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/coordination/validation"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type strategy struct {
	rest.DeclarativeValidation
	names.NameGenerator
}

type statusStrategy struct {
	*strategy
}

var (
	// Strategy applies to creation, update and deletion of NodeMaintenanceBudgets.
	Strategy = &strategy{rest.DeclarativeValidation{Scheme: legacyscheme.Scheme}, names.SimpleNameGenerator}

	// StatusStrategy applies to updates of their status.
	StatusStrategy = &statusStrategy{Strategy}
)

// NamespaceScoped returns false: nodes have no namespace.
func (*strategy) NamespaceScoped() bool { return false }

// GetResetFields returns the fields that the main endpoint ignores.
func (*strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		"coordination.k8s.io/v1alpha1": fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate clears the status.
func (*strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	budget := obj.(*coordination.NodeMaintenanceBudget)
	budget.Status = coordination.NodeMaintenanceBudgetStatus{}
	budget.Generation = 1
}

// Validate validates a new object.
func (*strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNodeMaintenanceBudgetCreate(obj.(*coordination.NodeMaintenanceBudget))
}

// WarningsOnCreate returns none.
func (*strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string { return nil }

// Canonicalize changes nothing.
func (*strategy) Canonicalize(obj runtime.Object) {}

// AllowCreateOnUpdate returns false: an update that comes after a deletion must fail.
func (*strategy) AllowCreateOnUpdate(ctx context.Context) bool { return false }

// PrepareForUpdate keeps the status, and counts generations of the spec.
func (*strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	budget, oldBudget := obj.(*coordination.NodeMaintenanceBudget), old.(*coordination.NodeMaintenanceBudget)
	budget.Status = oldBudget.Status
	if !apiequality.Semantic.DeepEqual(oldBudget.Spec, budget.Spec) {
		budget.Generation = oldBudget.Generation + 1
	}
}

// ValidateUpdate validates an update of metadata and spec.
func (*strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNodeMaintenanceBudgetUpdate(obj.(*coordination.NodeMaintenanceBudget), old.(*coordination.NodeMaintenanceBudget))
}

// WarningsOnUpdate returns none.
func (*strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string { return nil }

// AllowUnconditionalUpdate returns true, as for all kinds that people edit.
func (*strategy) AllowUnconditionalUpdate(ctx context.Context) bool { return true }

// GetResetFields returns the fields that the status endpoint ignores.
func (*statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		"coordination.k8s.io/v1alpha1": fieldpath.NewSet(
			fieldpath.MakePathOrDie("metadata"),
			fieldpath.MakePathOrDie("spec"),
		),
	}
}

// PrepareForUpdate keeps metadata and spec.
func (*statusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	budget, oldBudget := obj.(*coordination.NodeMaintenanceBudget), old.(*coordination.NodeMaintenanceBudget)
	budget.Spec = oldBudget.Spec
	metav1.ResetObjectMetaForStatus(&budget.ObjectMeta, &oldBudget.ObjectMeta)
}

// ValidateUpdate validates an update of the status.
func (*statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNodeMaintenanceBudgetStatusUpdate(obj.(*coordination.NodeMaintenanceBudget), old.(*coordination.NodeMaintenanceBudget))
}
