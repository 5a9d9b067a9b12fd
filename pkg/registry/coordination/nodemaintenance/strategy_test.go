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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationapiv1alpha1 "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/utils/kstatus"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	// Registers the versions of the API group, whose declarative validation is tested here.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// requestContext returns the context of a request to an endpoint.
func requestContext(verb, subresource string) context.Context {
	return genericapirequest.WithRequestInfo(context.Background(), &genericapirequest.RequestInfo{
		APIPrefix: "apis", APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1",
		Resource: "nodemaintenances", Subresource: subresource, Name: "upgrade", IsResourceRequest: true, Verb: verb,
	})
}

// change changes a maintenance.
type change func(*coordination.NodeMaintenance)

// newMaintenance returns a valid stored maintenance with the given changes.
func newMaintenance(changes ...change) *coordination.NodeMaintenance {
	maintenance := &coordination.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "upgrade", ResourceVersion: "1", Generation: 3},
		Spec: coordination.NodeMaintenanceSpec{
			NodeSelector: nodesOf("old"),
			Stage:        coordination.NodeMaintenanceStageCordon,
			DrainPlan:    plan(2),
		},
	}
	for _, change := range changes {
		change(maintenance)
	}
	return maintenance
}

func nodesOf(pool string) *core.NodeSelector {
	return &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
		MatchExpressions: []core.NodeSelectorRequirement{{Key: "pool", Operator: core.NodeSelectorOpIn, Values: []string{pool}}},
	}}}
}

// plan returns a valid plan of the given length.
func plan(length int) []core.DrainPlanEntry {
	var plan []core.DrainPlanEntry
	for i := range length {
		plan = append(plan, core.DrainPlanEntry{PodType: core.PodTypeDefault, PodPriority: int32(i)})
	}
	return plan
}

func selecting(selector *core.NodeSelector) change {
	return func(m *coordination.NodeMaintenance) { m.Spec.NodeSelector = selector }
}

func inStage(stage coordination.NodeMaintenanceStage) change {
	return func(m *coordination.NodeMaintenance) { m.Spec.Stage = stage }
}

func withPlan(plan []core.DrainPlanEntry) change {
	return func(m *coordination.NodeMaintenance) { m.Spec.DrainPlan = plan }
}

func because(reason string) change {
	return func(m *coordination.NodeMaintenance) { m.Spec.Reason = reason }
}

// having changes the status.
func having(change func(*coordination.NodeMaintenanceStatus)) change {
	return func(m *coordination.NodeMaintenance) { change(&m.Status) }
}

func observed(generation int64) change {
	return having(func(s *coordination.NodeMaintenanceStatus) { s.ObservedGeneration = generation })
}

func started(stages ...coordination.NodeMaintenanceStage) change {
	return having(func(s *coordination.NodeMaintenanceStatus) {
		for _, stage := range stages {
			s.StageStatuses = append(s.StageStatuses, coordination.StageStatus{Name: stage})
		}
	})
}

func TestStrategyBasics(t *testing.T) {
	if Strategy.NamespaceScoped() {
		t.Error("maintenances must not be namespaced: nodes are not")
	}
	if Strategy.AllowCreateOnUpdate(t.Context()) {
		t.Error("an update must not create a maintenance")
	}
	if !Strategy.AllowUnconditionalUpdate(t.Context()) {
		t.Error("an update without a resourceVersion must be allowed: kubectl replace sends none")
	}
	maintenance := newMaintenance()
	Strategy.Canonicalize(maintenance)
	if diff := cmp.Diff(newMaintenance(), maintenance); diff != "" {
		t.Errorf("the canonical form differs (-want, +got):\n%s", diff)
	}
	if warnings := append(Strategy.WarningsOnCreate(context.Background(), maintenance), Strategy.WarningsOnUpdate(context.Background(), maintenance, maintenance)...); len(warnings) > 0 {
		t.Errorf("unexpected warnings: %v", warnings)
	}
}

// notObserved is what the status of a maintenance says that was created at createdAt.
func notObserved(m *coordination.NodeMaintenance) {
	m.Status.Conditions = []metav1.Condition{{
		Type: "Reconciling", Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: "NotObserved", Message: "The node maintenance controller has not acted on it yet.",
		LastTransitionTime: metav1.Time{Time: createdAt},
	}}
}

var createdAt = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// atCreation sets the clock of the server.
func atCreation(t *testing.T) {
	before := StatusStrategy.Clock
	t.Cleanup(func() { StatusStrategy.Clock = before })
	StatusStrategy.Clock = testingclock.NewFakePassiveClock(createdAt.Add(time.Millisecond))
}

func TestPrepareForCreate(t *testing.T) {
	atCreation(t)
	maintenance := newMaintenance(observed(3), started(coordination.NodeMaintenanceStageDrain))
	Strategy.PrepareForCreate(context.Background(), maintenance)
	want := newMaintenance(func(m *coordination.NodeMaintenance) { m.Generation = 1 }, notObserved)
	if diff := cmp.Diff(want, maintenance); diff != "" {
		t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
	}
}

// TestCreatedIsInProgress keeps a new maintenance, from which hack/interop computes what tools of GitOps make of it.
func TestCreatedIsInProgress(t *testing.T) {
	atCreation(t)
	maintenance := newMaintenance()
	maintenance.ResourceVersion = ""
	Strategy.PrepareForCreate(context.Background(), maintenance)
	versioned := &coordinationv1alpha1.NodeMaintenance{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1alpha1", Kind: "NodeMaintenance"}}
	if err := coordinationapiv1alpha1.Convert_coordination_NodeMaintenance_To_v1alpha1_NodeMaintenance(maintenance, versioned, nil); err != nil {
		t.Fatal(err)
	}
	kstatus.Check(t, "../../../../hack/interop/testdata/kstatus", "nodemaintenances-created.json", map[string]kstatus.Case{"created": {Want: "InProgress", Object: versioned}})
}

func TestPrepareForUpdate(t *testing.T) {
	next := func(m *coordination.NodeMaintenance) { m.Generation = 4 }
	labelled := func(m *coordination.NodeMaintenance) { m.Labels = map[string]string{"team": "infra"} }
	finalized := func(m *coordination.NodeMaintenance) { m.Finalizers = []string{coordination.NodeMaintenanceFinalizer} }
	drain := inStage(coordination.NodeMaintenanceStageDrain)
	tests := map[string]struct{ changed, want *coordination.NodeMaintenance }{
		"nothing":                                    {changed: newMaintenance(), want: newMaintenance(observed(3))},
		"labels do not change the generation":        {changed: newMaintenance(labelled), want: newMaintenance(labelled, observed(3))},
		"a finalizer does not change the generation": {changed: newMaintenance(finalized), want: newMaintenance(finalized, observed(3))},
		"a stage changes the generation":             {changed: newMaintenance(drain), want: newMaintenance(drain, next, observed(3))},
		"other nodes change the generation":          {changed: newMaintenance(selecting(nodesOf("new"))), want: newMaintenance(selecting(nodesOf("new")), next, observed(3))},
		"a reason changes the generation":            {changed: newMaintenance(because("firmware")), want: newMaintenance(because("firmware"), next, observed(3))},
		"the status is ignored":                      {changed: newMaintenance(observed(2), started(coordination.NodeMaintenanceStageDrain)), want: newMaintenance(observed(3))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := newMaintenance(observed(3))
			Strategy.PrepareForUpdate(context.Background(), test.changed, old)
			if diff := cmp.Diff(test.want, test.changed); diff != "" {
				t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(newMaintenance(observed(3)), old); diff != "" {
				t.Errorf("the stored maintenance was changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// An empty plan is equal to no plan.
func TestPrepareForUpdateWithoutPlan(t *testing.T) {
	changed := newMaintenance(withPlan([]core.DrainPlanEntry{}))
	Strategy.PrepareForUpdate(context.Background(), changed, newMaintenance(withPlan(nil)))
	if changed.Generation != 3 {
		t.Errorf("the generation is %d, want 3 as before", changed.Generation)
	}
}

// The status endpoint updates the status and managedFields.
func TestPrepareForStatusUpdate(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "a.example.com", Subresource: "status"}}
	changed := newMaintenance(inStage(coordination.NodeMaintenanceStageComplete), selecting(nodesOf("new")), withPlan(nil), because("other"), observed(3),
		func(m *coordination.NodeMaintenance) {
			m.Generation = 9
			m.Labels = map[string]string{"team": "other"}
			m.Annotations = map[string]string{"a": "other"}
			m.Finalizers = []string{"example.com/other"}
			m.OwnerReferences = []metav1.OwnerReference{{Name: "other"}}
			m.ManagedFields = managed
		})
	StatusStrategy.PrepareForUpdate(context.Background(), changed, newMaintenance())
	want := newMaintenance(observed(3), func(m *coordination.NodeMaintenance) { m.ManagedFields = managed })
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
	}
}

// rollingOut sets a rollout with this limit, as defaulting leaves it.
func rollingOut(maxConcurrent int32) change {
	return func(m *coordination.NodeMaintenance) {
		m.Spec.Rollout = &coordination.NodeMaintenanceRollout{
			MaxConcurrent: ptr.To(intstr.FromInt32(maxConcurrent)), CompleteNodes: coordination.NodeCompletionManual,
			ReturnTimeoutSeconds: ptr.To[int32](1800), MaxFailedNodes: ptr.To[int32](0),
		}
	}
}

func waiting(nodes int32) change {
	return having(func(s *coordination.NodeMaintenanceStatus) {
		s.RolloutStatus = &coordination.NodeMaintenanceRolloutStatus{WaitingNodes: nodes}
	})
}

// warnings records the warnings of a request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func withBudgetGate(t *testing.T, enabled bool) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true, features.NodeMaintenanceBudgets: enabled,
	})
}

func skipping(m *coordination.NodeMaintenance) {
	m.Spec.PodPolicies = []coordination.NodeMaintenancePodPolicy{{Action: coordination.NodeMaintenancePodSkip}}
}

func waitingForVolumes(m *coordination.NodeMaintenance) {
	m.Spec.DrainedWhen = &coordination.NodeMaintenanceDrainedWhen{Volumes: coordination.NodeMaintenanceVolumesDetached, TimeoutSeconds: ptr.To[int32](600)}
}

func skipped(pods int32) change {
	return having(func(s *coordination.NodeMaintenanceStatus) { s.DrainStatus.SkippedPods = pods })
}

func escalating(seconds ...int32) change {
	return func(m *coordination.NodeMaintenance) {
		for _, after := range seconds {
			m.Spec.Escalation = append(m.Spec.Escalation, coordination.NodeMaintenanceEscalationStep{AfterSeconds: after, Action: core.MaintenanceEscalationIgnoreBudgets})
		}
	}
}

func escalated(pods int32) change {
	return having(func(s *coordination.NodeMaintenanceStatus) { s.DrainStatus.EscalatedPods = pods })
}

// What was stored while the gate was on stays: it keeps nodes and pods from being drained. The author
// of what is dropped is warned.
func TestDropDisabledFields(t *testing.T) {
	atCreation(t)
	create := func(ctx context.Context, m, _ *coordination.NodeMaintenance) { Strategy.PrepareForCreate(ctx, m) }
	update := func(ctx context.Context, m, old *coordination.NodeMaintenance) {
		Strategy.PrepareForUpdate(ctx, m, old)
	}
	updateStatus := func(ctx context.Context, m, old *coordination.NodeMaintenance) {
		StatusStrategy.PrepareForUpdate(ctx, m, old)
	}
	first := func(m *coordination.NodeMaintenance) { m.Generation = 1; notObserved(m) }
	next := func(m *coordination.NodeMaintenance) { m.Generation = 4 }
	as := func(changes ...change) []change { return changes }
	const (
		rolloutWarning    = "spec.rollout was dropped, because the feature gate NodeMaintenanceBudgets is off: the stage Drain drains all selected nodes at once"
		policiesWarning   = "spec.podPolicies was dropped, because the feature gate NodeMaintenanceBudgets is off: the stage Drain drains all pods"
		volumesWarning    = "spec.drainedWhen was dropped, because the feature gate NodeMaintenanceBudgets is off: a node without pods is drained, whatever is attached to it"
		escalationWarning = "spec.escalation was dropped, because the feature gate NodeMaintenanceBudgets is off: the drain waits for interceptors and PodDisruptionBudgets without an end"
	)
	for name, test := range map[string]struct {
		prepare         func(ctx context.Context, m, old *coordination.NodeMaintenance)
		old, sent       []change
		wantOff, wantOn []change
		warnings        []string
	}{
		"created with it":            {prepare: create, sent: as(rollingOut(5), waiting(3)), wantOff: as(first), wantOn: as(first, rollingOut(5)), warnings: []string{rolloutWarning}},
		"added":                      {prepare: update, sent: as(rollingOut(5)), wantOn: as(rollingOut(5), next), warnings: []string{rolloutWarning}},
		"kept":                       {prepare: update, old: as(rollingOut(5)), sent: as(rollingOut(5)), wantOff: as(rollingOut(5)), wantOn: as(rollingOut(5))},
		"changed":                    {prepare: update, old: as(rollingOut(5)), sent: as(rollingOut(6)), wantOff: as(rollingOut(6), next), wantOn: as(rollingOut(6), next)},
		"removed":                    {prepare: update, old: as(rollingOut(5)), wantOff: as(next), wantOn: as(next)},
		"a status":                   {prepare: updateStatus, sent: as(waiting(3)), wantOn: as(waiting(3))},
		"a status of a rollout":      {prepare: updateStatus, old: as(rollingOut(5)), sent: as(rollingOut(5), waiting(3)), wantOff: as(rollingOut(5), waiting(3)), wantOn: as(rollingOut(5), waiting(3))},
		"a status that changes":      {prepare: updateStatus, old: as(waiting(3)), sent: as(waiting(2)), wantOff: as(waiting(2)), wantOn: as(waiting(2))},
		"a status that is removed":   {prepare: updateStatus, old: as(waiting(3))},
		"a status, main endpoint":    {prepare: update, old: as(waiting(3)), sent: as(waiting(2)), wantOff: as(waiting(3)), wantOn: as(waiting(3))},
		"a rollout, status endpoint": {prepare: updateStatus, sent: as(rollingOut(5))},
		"created with all": {
			prepare: create, sent: as(rollingOut(5), skipping, waitingForVolumes), wantOff: as(first), wantOn: as(first, rollingOut(5), skipping, waitingForVolumes),
			warnings: []string{rolloutWarning, policiesWarning, volumesWarning},
		},
		"policies added, which validation refuses": {
			prepare: update, old: as(rollingOut(5)), sent: as(rollingOut(5), skipping, waitingForVolumes), wantOff: as(rollingOut(5)), wantOn: as(rollingOut(5), skipping, waitingForVolumes, next),
			warnings: []string{policiesWarning, volumesWarning},
		},
		"policies kept": {
			prepare: update, old: as(skipping, waitingForVolumes), sent: as(skipping, waitingForVolumes, because("kernel")),
			wantOff: as(skipping, waitingForVolumes, because("kernel"), next), wantOn: as(skipping, waitingForVolumes, because("kernel"), next),
		},
		"created with an escalation": {
			prepare: create, sent: as(rollingOut(5), escalating(60)), wantOff: as(first), wantOn: as(first, rollingOut(5), escalating(60)),
			warnings: []string{rolloutWarning, escalationWarning},
		},
		"escalation added":              {prepare: update, old: as(rollingOut(5)), sent: as(rollingOut(5), escalating(60)), wantOff: as(rollingOut(5)), wantOn: as(rollingOut(5), escalating(60), next), warnings: []string{escalationWarning}},
		"escalation kept":               {prepare: update, old: as(rollingOut(5), escalating(60)), sent: as(rollingOut(5), escalating(60)), wantOff: as(rollingOut(5), escalating(60)), wantOn: as(rollingOut(5), escalating(60))},
		"escalation changed":            {prepare: update, old: as(rollingOut(5), escalating(60)), sent: as(rollingOut(5), escalating(90, 120)), wantOff: as(rollingOut(5), escalating(90, 120), next), wantOn: as(rollingOut(5), escalating(90, 120), next)},
		"escalation removed":            {prepare: update, old: as(rollingOut(5), escalating(60)), sent: as(rollingOut(5)), wantOff: as(rollingOut(5), next), wantOn: as(rollingOut(5), next)},
		"escalation, status endpoint":   {prepare: updateStatus, old: as(rollingOut(5)), sent: as(rollingOut(5), escalating(60)), wantOff: as(rollingOut(5)), wantOn: as(rollingOut(5))},
		"escalated pods":                {prepare: updateStatus, sent: as(escalated(3)), wantOn: as(escalated(3))},
		"escalated pods, of escalation": {prepare: updateStatus, old: as(escalating(60)), sent: as(escalating(60), escalated(3)), wantOff: as(escalating(60), escalated(3)), wantOn: as(escalating(60), escalated(3))},
		"escalated pods that change":    {prepare: updateStatus, old: as(escalated(3)), sent: as(escalated(2)), wantOff: as(escalated(2)), wantOn: as(escalated(2))},
		"skipped pods":                  {prepare: updateStatus, sent: as(skipped(3)), wantOn: as(skipped(3))},
		"skipped pods of a policy":      {prepare: updateStatus, old: as(skipping), sent: as(skipping, skipped(3)), wantOff: as(skipping, skipped(3)), wantOn: as(skipping, skipped(3))},
		"skipped pods that change":      {prepare: updateStatus, old: as(skipped(3)), sent: as(skipped(2)), wantOff: as(skipped(2)), wantOn: as(skipped(2))},
		"a rollout without skipped":     {prepare: updateStatus, old: as(rollingOut(5)), sent: as(rollingOut(5), waiting(3), skipped(3)), wantOff: as(rollingOut(5), waiting(3)), wantOn: as(rollingOut(5), waiting(3), skipped(3))},
	} {
		for enabled, want := range map[bool][]change{false: test.wantOff, true: test.wantOn} {
			t.Run(fmt.Sprintf("%s, gate %t", name, enabled), func(t *testing.T) {
				withBudgetGate(t, enabled)
				maintenance, old := newMaintenance(test.sent...), newMaintenance(test.old...)
				var got, wantWarnings warnings
				for _, what := range test.warnings {
					if !enabled {
						wantWarnings = append(wantWarnings, what+"; turn the gate on and create another NodeMaintenance, or select fewer nodes")
					}
				}
				test.prepare(warning.WithWarningRecorder(t.Context(), &got), maintenance, old)
				if diff := cmp.Diff(wantWarnings, got); diff != "" {
					t.Errorf("unexpected warnings (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(newMaintenance(want...), maintenance); diff != "" {
					t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(newMaintenance(test.old...), old); diff != "" {
					t.Errorf("the stored maintenance was changed (-before, +after):\n%s", diff)
				}
			})
		}
	}
}

func TestResetFields(t *testing.T) {
	tests := map[string]struct {
		got  map[fieldpath.APIVersion]*fieldpath.Set
		want *fieldpath.Set
	}{
		"main endpoint":   {got: Strategy.GetResetFields(), want: fieldpath.NewSet(fieldpath.MakePathOrDie("status"))},
		"status endpoint": {got: StatusStrategy.GetResetFields(), want: fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if set := test.got["coordination.k8s.io/v1alpha1"]; len(test.got) != 1 || set == nil || !set.Equals(test.want) {
				t.Errorf("got %v, want %v for v1alpha1 only", test.got, test.want)
			}
		})
	}
}

// The tests of the declared rules are in test/declarative_validation; the package validation has
// more of the handwritten ones.
func TestValidateCreate(t *testing.T) {
	spec := field.NewPath("spec")
	tests := map[string]struct {
		maintenance *coordination.NodeMaintenance
		want        field.ErrorList
	}{
		"valid":                    {maintenance: newMaintenance()},
		"all there is":             {maintenance: newMaintenance(rollingOut(5), skipping, waitingForVolumes, escalating(60))},
		"a selector without terms": {maintenance: newMaintenance(selecting(&core.NodeSelector{})), want: field.ErrorList{field.Required(spec.Child("nodeSelector", "nodeSelectorTerms"), "").MarkFromImperative()}},
		"a rollout of no node":     {maintenance: newMaintenance(rollingOut(0)), want: field.ErrorList{field.Invalid(spec.Child("rollout", "maxConcurrent"), nil, "").MarkFromImperative()}},
		"an escalation without a rollout": {
			maintenance: newMaintenance(escalating(60)), want: field.ErrorList{field.Forbidden(spec.Child("escalation"), "").MarkFromImperative()},
		},
		"a duplicate entry": {
			maintenance: newMaintenance(withPlan(append(plan(1), plan(1)...))), want: field.ErrorList{field.Duplicate(spec.Child("drainPlan").Index(1), nil).MarkFromImperative()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyValidationEquivalence(t, requestContext("create", ""), test.maintenance, Strategy, test.want)
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	spec := field.NewPath("spec")
	handWritten := func(path *field.Path) field.ErrorList {
		return field.ErrorList{field.Invalid(path, nil, "").MarkFromImperative()}
	}
	tests := map[string]struct {
		changed *coordination.NodeMaintenance
		want    field.ErrorList
	}{
		"unchanged":                {changed: newMaintenance()},
		"the next stage":           {changed: newMaintenance(inStage(coordination.NodeMaintenanceStageDrain))},
		"a stage is skipped":       {changed: newMaintenance(inStage(coordination.NodeMaintenanceStageComplete))},
		"other nodes":              {changed: newMaintenance(selecting(nodesOf("new")))},
		"back":                     {changed: newMaintenance(inStage(coordination.NodeMaintenanceStageIdle)), want: handWritten(spec.Child("stage"))},
		"another plan":             {changed: newMaintenance(withPlan(plan(3))), want: handWritten(spec.Child("drainPlan"))},
		"a rollout is added":       {changed: newMaintenance(rollingOut(1)), want: field.ErrorList{field.Forbidden(spec.Child("rollout"), "").MarkFromImperative()}},
		"no plan":                  {changed: newMaintenance(withPlan(nil)), want: handWritten(spec.Child("drainPlan"))},
		"a selector without terms": {changed: newMaintenance(selecting(&core.NodeSelector{})), want: field.ErrorList{field.Required(spec.Child("nodeSelector", "nodeSelectorTerms"), "").MarkFromImperative()}},
		"another name": {
			changed: newMaintenance(func(m *coordination.NodeMaintenance) { m.Name = "other" }), want: handWritten(field.NewPath("metadata", "name")),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", ""), test.changed, newMaintenance(), Strategy, test.want)
		})
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	status := field.NewPath("status")
	handWritten := func(err *field.Error) field.ErrorList { return field.ErrorList{err.MarkFromImperative()} }
	negative := func(path *field.Path) field.ErrorList {
		return handWritten(field.Invalid(path, nil, "").WithOrigin("minimum"))
	}
	position := func(position int32) change {
		return having(func(s *coordination.NodeMaintenanceStatus) { s.DrainStatus.DrainPlanPosition = ptr.To(position) })
	}
	condition := func(conditionType string) change {
		return having(func(s *coordination.NodeMaintenanceStatus) {
			s.Conditions = []metav1.Condition{{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Reason", LastTransitionTime: metav1.Now()}}
		})
	}
	selected := having(func(s *coordination.NodeMaintenanceStatus) { s.SelectedNodes = -1 })
	waits := having(func(s *coordination.NodeMaintenanceStatus) {
		s.RolloutStatus = &coordination.NodeMaintenanceRolloutStatus{WaitingFor: []coordination.NodeMaintenanceWait{{Reason: "Budget", NodeCount: -1}}}
	})
	idle := started(coordination.NodeMaintenanceStageIdle)
	tests := map[string]struct {
		old, changed *coordination.NodeMaintenance
		want         field.ErrorList
	}{
		"unchanged":                            {old: newMaintenance(), changed: newMaintenance()},
		"a stage is removed":                   {old: newMaintenance(idle), changed: newMaintenance(), want: handWritten(field.Forbidden(status.Child("stageStatuses"), ""))},
		"a position":                           {old: newMaintenance(position(0)), changed: newMaintenance(position(1))},
		"a lower position":                     {old: newMaintenance(position(1)), changed: newMaintenance(position(0)), want: handWritten(field.Invalid(status.Child("drainStatus", "drainPlanPosition"), nil, ""))},
		"a negative number of nodes":           {old: newMaintenance(), changed: newMaintenance(selected), want: negative(status.Child("selectedNodes"))},
		"a negative number of nodes that wait": {old: newMaintenance(), changed: newMaintenance(waits), want: negative(status.Child("rolloutStatus", "waitingFor").Index(0).Child("nodeCount"))},
		"a condition with an invalid type":     {old: newMaintenance(), changed: newMaintenance(condition("not valid")), want: handWritten(field.Invalid(status.Child("conditions").Index(0).Child("type"), nil, "").WithOrigin("format=k8s-label-key"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", "status"), test.changed, test.old, StatusStrategy, test.want)
		})
	}
}
