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
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/coordination/validation"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy is the strategy of the main endpoint: it updates metadata and spec, and ignores the
// status.
type strategy struct {
	rest.DeclarativeValidation
	names.NameGenerator
}

// statusStrategy is the strategy of the status endpoint: it updates only the status.
type statusStrategy struct {
	*strategy

	// Clock is the clock of the server, from which the times of new maintenances are. A test may replace it.
	Clock clock.PassiveClock
}

var (
	// Strategy applies to creation, update and deletion of NodeMaintenances.
	Strategy = &strategy{rest.DeclarativeValidation{Scheme: legacyscheme.Scheme}, names.SimpleNameGenerator}

	// StatusStrategy applies to updates of their status.
	StatusStrategy = &statusStrategy{strategy: Strategy, Clock: clock.RealClock{}}
)

func (*strategy) NamespaceScoped() bool { return false }

// GetResetFields returns the fields that this endpoint ignores, so that no field manager owns them
// after an apply to this endpoint.
func (*strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		"coordination.k8s.io/v1alpha1": fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

func (*strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	maintenance := obj.(*coordination.NodeMaintenance)
	maintenance.Generation = 1
	maintenance.Status = initialStatus(maintenance.Generation, StatusStrategy.Clock.Now())
	dropDisabledFields(ctx, maintenance, nil)
}

// initialStatus says that the controller has not acted yet. A tool that follows kstatus would take an object without
// any condition for one with which all is done.
func initialStatus(generation int64, now time.Time) coordination.NodeMaintenanceStatus {
	return coordination.NodeMaintenanceStatus{Conditions: []metav1.Condition{{
		Type: string(coordinationv1alpha1.NodeMaintenanceConditionReconciling), Status: metav1.ConditionTrue,
		ObservedGeneration: generation, LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)},
		Reason: coordinationv1alpha1.NodeMaintenanceReasonNotObserved, Message: "The node maintenance controller has not acted on it yet.",
	}}}
}

func (*strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNodeMaintenanceCreate(obj.(*coordination.NodeMaintenance))
}

func (*strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string { return nil }

func (*strategy) Canonicalize(obj runtime.Object) {}

func (*strategy) AllowCreateOnUpdate(ctx context.Context) bool { return false }

func (*strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	maintenance, oldMaintenance := obj.(*coordination.NodeMaintenance), old.(*coordination.NodeMaintenance)
	maintenance.Status = oldMaintenance.Status
	dropDisabledFields(ctx, maintenance, oldMaintenance)
	if !apiequality.Semantic.DeepEqual(oldMaintenance.Spec, maintenance.Spec) {
		maintenance.Generation = oldMaintenance.Generation + 1
	}
}

func (*strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNodeMaintenanceUpdate(obj.(*coordination.NodeMaintenance), old.(*coordination.NodeMaintenance))
}

func (*strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string { return nil }

// AllowUnconditionalUpdate returns true, as for most kinds: stages never go back, and the controller adds its
// finalizer again that a manifest lacks which replaces the object.
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

func (*statusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	maintenance, oldMaintenance := obj.(*coordination.NodeMaintenance), old.(*coordination.NodeMaintenance)
	maintenance.Spec = oldMaintenance.Spec
	dropDisabledStatus(maintenance, oldMaintenance)
	metav1.ResetObjectMetaForStatus(&maintenance.ObjectMeta, &oldMaintenance.ObjectMeta)
}

func (*statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNodeMaintenanceStatusUpdate(obj.(*coordination.NodeMaintenance), old.(*coordination.NodeMaintenance))
}

// dropDisabledFields drops the fields whose gate is off, unless the stored object has them. The
// controller needs to watch more for them, which it only may behind the gate. old is nil on creation.
// The author is warned: what is left drains more than was asked for.
func dropDisabledFields(ctx context.Context, maintenance, old *coordination.NodeMaintenance) {
	if utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) {
		return
	}
	warn := func(name, effect string) {
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.%s was dropped, because the feature gate %s is off: %s; "+
			"turn the gate on and create another NodeMaintenance, or select fewer nodes", name, features.NodeMaintenanceBudgets, effect))
	}
	if maintenance.Spec.Rollout != nil && (old == nil || old.Spec.Rollout == nil) {
		maintenance.Spec.Rollout = nil
		warn("rollout", "the stage Drain drains all selected nodes at once")
	}
	if len(maintenance.Spec.PodPolicies) > 0 && (old == nil || len(old.Spec.PodPolicies) == 0) {
		maintenance.Spec.PodPolicies = nil
		warn("podPolicies", "the stage Drain drains all pods")
	}
	if maintenance.Spec.DrainedWhen != nil && (old == nil || old.Spec.DrainedWhen == nil) {
		maintenance.Spec.DrainedWhen = nil
		warn("drainedWhen", "a node without pods is drained, whatever is attached to it")
	}
	if len(maintenance.Spec.Escalation) > 0 && (old == nil || len(old.Spec.Escalation) == 0) {
		maintenance.Spec.Escalation = nil
		warn("escalation", "the drain waits for interceptors and PodDisruptionBudgets without an end")
	}
}

// dropDisabledStatus drops what the status says about fields whose gate is off. What is stored has a
// status with the gate off, too: for example, that the nodes of a rollout wait for the gate.
func dropDisabledStatus(maintenance, old *coordination.NodeMaintenance) {
	if utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) {
		return
	}
	if old.Spec.Rollout == nil && old.Status.RolloutStatus == nil {
		maintenance.Status.RolloutStatus = nil
	}
	if len(old.Spec.PodPolicies) == 0 && old.Status.DrainStatus.SkippedPods == 0 {
		maintenance.Status.DrainStatus.SkippedPods = 0
	}
	if len(old.Spec.Escalation) == 0 && old.Status.DrainStatus.EscalatedPods == 0 {
		maintenance.Status.DrainStatus.EscalatedPods = 0
	}
}
