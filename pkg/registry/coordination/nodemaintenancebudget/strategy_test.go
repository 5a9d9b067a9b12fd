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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	// Registers the versions of the API group, whose declarative validation is tested here.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// requestContext returns the context of a request to an endpoint.
func requestContext(verb, subresource string) context.Context {
	return genericapirequest.WithRequestInfo(context.Background(), &genericapirequest.RequestInfo{
		APIPrefix: "apis", APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1",
		Resource: "nodemaintenancebudgets", Subresource: subresource, Name: "workers", IsResourceRequest: true, Verb: verb,
	})
}

// change changes a budget.
type change func(*coordination.NodeMaintenanceBudget)

// newBudget returns a valid stored budget with the given changes.
func newBudget(changes ...change) *coordination.NodeMaintenanceBudget {
	budget := &coordination.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", ResourceVersion: "1", Generation: 3},
		Spec:       coordination.NodeMaintenanceBudgetSpec{NodeSelector: nodesOf("old"), MaxUnavailable: ptr.To(intstr.FromString("10%"))},
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

func nodesOf(pool string) *core.NodeSelector {
	return &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
		MatchExpressions: []core.NodeSelectorRequirement{{Key: "pool", Operator: core.NodeSelectorOpIn, Values: []string{pool}}},
	}}}
}

// limiting changes the spec.
func limiting(change func(*coordination.NodeMaintenanceBudgetSpec)) change {
	return func(b *coordination.NodeMaintenanceBudget) { change(&b.Spec) }
}

func selecting(selector *core.NodeSelector) change {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.NodeSelector = selector })
}

func maxUnavailable(value *intstr.IntOrString) change {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.MaxUnavailable = value })
}

func domains(key string, most int32) change {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) {
		s.Topology = &coordination.NodeMaintenanceTopology{Key: key, MaxDomains: most}
	})
}

func windows(windows ...coordination.NodeMaintenanceWindow) change {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.Windows = windows })
}

// night is a window of this length.
func night(seconds int32) coordination.NodeMaintenanceWindow {
	return coordination.NodeMaintenanceWindow{Schedule: "0 2 * * 6", TimeZone: "Etc/UTC", DurationSeconds: seconds}
}

// nights are windows that differ.
func nights(count int) []coordination.NodeMaintenanceWindow {
	var list []coordination.NodeMaintenanceWindow
	for i := range count {
		list = append(list, night(int32(3600+i)))
	}
	return list
}

// having changes the status.
func having(change func(*coordination.NodeMaintenanceBudgetStatus)) change {
	return func(b *coordination.NodeMaintenanceBudget) { change(&b.Status) }
}

func observed(generation int64) change {
	return having(func(s *coordination.NodeMaintenanceBudgetStatus) { s.ObservedGeneration = generation })
}

func TestStrategyBasics(t *testing.T) {
	if Strategy.NamespaceScoped() {
		t.Error("budgets must not be namespaced: nodes are not")
	}
	if Strategy.AllowCreateOnUpdate(t.Context()) {
		t.Error("an update must not create a budget")
	}
	if !Strategy.AllowUnconditionalUpdate(t.Context()) {
		t.Error("an update without a resourceVersion must be allowed: kubectl replace sends none")
	}
	budget := newBudget()
	Strategy.Canonicalize(budget)
	if diff := cmp.Diff(newBudget(), budget); diff != "" {
		t.Errorf("the canonical form differs (-want, +got):\n%s", diff)
	}
	if warnings := append(Strategy.WarningsOnCreate(context.Background(), budget), Strategy.WarningsOnUpdate(context.Background(), budget, budget)...); len(warnings) > 0 {
		t.Errorf("unexpected warnings: %v", warnings)
	}
}

func TestPrepareForCreate(t *testing.T) {
	budget := newBudget(observed(3))
	Strategy.PrepareForCreate(context.Background(), budget)
	want := newBudget(func(b *coordination.NodeMaintenanceBudget) { b.Generation = 1 })
	if diff := cmp.Diff(want, budget); diff != "" {
		t.Errorf("unexpected budget (-want, +got):\n%s", diff)
	}
}

func TestPrepareForUpdate(t *testing.T) {
	next := func(b *coordination.NodeMaintenanceBudget) { b.Generation = 4 }
	labelled := func(b *coordination.NodeMaintenanceBudget) { b.Labels = map[string]string{"team": "infra"} }
	freeze := maxUnavailable(ptr.To(intstr.FromInt32(0)))
	noWindows := windows([]coordination.NodeMaintenanceWindow{}...)
	for name, test := range map[string]struct {
		changed, want *coordination.NodeMaintenanceBudget
	}{
		"nothing":                             {changed: newBudget(), want: newBudget(observed(3))},
		"labels do not change the generation": {changed: newBudget(labelled), want: newBudget(labelled, observed(3))},
		"a freeze changes the generation":     {changed: newBudget(freeze), want: newBudget(freeze, next, observed(3))},
		"other nodes change the generation":   {changed: newBudget(selecting(nodesOf("new"))), want: newBudget(selecting(nodesOf("new")), next, observed(3))},
		"a window changes the generation":     {changed: newBudget(windows(night(60))), want: newBudget(windows(night(60)), next, observed(3))},
		"an empty list of windows does not":   {changed: newBudget(noWindows), want: newBudget(noWindows, observed(3))},
		"domains change the generation":       {changed: newBudget(domains("rack", 1)), want: newBudget(domains("rack", 1), next, observed(3))},
		"the status is ignored":               {changed: newBudget(observed(2)), want: newBudget(observed(3))},
	} {
		t.Run(name, func(t *testing.T) {
			old := newBudget(observed(3))
			Strategy.PrepareForUpdate(context.Background(), test.changed, old)
			if diff := cmp.Diff(test.want, test.changed); diff != "" {
				t.Errorf("unexpected budget (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(newBudget(observed(3)), old); diff != "" {
				t.Errorf("the stored budget was changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// The status endpoint updates the status and managedFields.
func TestPrepareForStatusUpdate(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "a.example.com", Subresource: "status"}}
	changed := newBudget(selecting(nodesOf("new")), maxUnavailable(nil), domains("rack", 1), windows(night(60)), observed(3),
		func(b *coordination.NodeMaintenanceBudget) {
			b.Generation = 9
			b.Labels = map[string]string{"team": "other"}
			b.Annotations = map[string]string{"a": "other"}
			b.Finalizers = []string{"example.com/other"}
			b.OwnerReferences = []metav1.OwnerReference{{Name: "other"}}
			b.ManagedFields = managed
		})
	StatusStrategy.PrepareForUpdate(context.Background(), changed, newBudget())
	want := newBudget(observed(3), func(b *coordination.NodeMaintenanceBudget) { b.ManagedFields = managed })
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("unexpected budget (-want, +got):\n%s", diff)
	}
}

func TestResetFields(t *testing.T) {
	for name, test := range map[string]struct {
		got  map[fieldpath.APIVersion]*fieldpath.Set
		want *fieldpath.Set
	}{
		"main endpoint":   {got: Strategy.GetResetFields(), want: fieldpath.NewSet(fieldpath.MakePathOrDie("status"))},
		"status endpoint": {got: StatusStrategy.GetResetFields(), want: fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))},
	} {
		t.Run(name, func(t *testing.T) {
			if set := test.got["coordination.k8s.io/v1alpha1"]; len(test.got) != 1 || set == nil || !set.Equals(test.want) {
				t.Errorf("got %v, want %v for v1alpha1 only", test.got, test.want)
			}
		})
	}
}

// The handwritten rules, and where they leave an error to the declared ones. The tests of those are
// in test/declarative_validation; the package validation has more of the handwritten ones.
func TestValidate(t *testing.T) {
	spec := field.NewPath("spec")
	window, topology := spec.Child("windows").Index(0), spec.Child("topology")
	as := func(changes ...change) []change { return changes }
	never := coordination.NodeMaintenanceWindow{Schedule: "never", TimeZone: "UTC", DurationSeconds: 60}
	for name, test := range map[string]struct {
		changes []change
		want    field.ErrorList
	}{
		"valid":                    {},
		"a selector without terms": {changes: as(selecting(&core.NodeSelector{})), want: field.ErrorList{field.Required(spec.Child("nodeSelector", "nodeSelectorTerms"), "").MarkFromImperative()}},
		"words for a maximum":      {changes: as(maxUnavailable(ptr.To(intstr.FromString("some")))), want: field.ErrorList{field.Invalid(spec.Child("maxUnavailable"), nil, "").MarkFromImperative()}},
		"an invalid label":         {changes: as(domains("my rack", 1)), want: field.ErrorList{field.Invalid(topology.Child("key"), nil, "").WithOrigin("format=k8s-label-key").MarkFromImperative()}},
		"the last one is invalid":  {changes: as(windows(append(nights(19), never)...)), want: field.ErrorList{field.Invalid(spec.Child("windows").Index(19).Child("schedule"), nil, "").MarkFromImperative()}},
		"the longest words, which are invalid": {
			changes: as(windows(coordination.NodeMaintenanceWindow{Schedule: strings.Repeat("x", 256), TimeZone: strings.Repeat("x", 64), DurationSeconds: 60})),
			want: field.ErrorList{
				field.Invalid(window.Child("schedule"), nil, "").MarkFromImperative(), field.Invalid(window.Child("timeZone"), nil, "").MarkFromImperative(),
			},
		},
		"one too many, which is invalid": {changes: as(windows(append(nights(20), never)...)), want: field.ErrorList{field.TooMany(spec.Child("windows"), 21, 20).WithOrigin("maxItems")}},
	} {
		t.Run(name, func(t *testing.T) {
			budget := newBudget(test.changes...)
			apitesting.VerifyValidationEquivalence(t, requestContext("create", ""), budget, Strategy, test.want)
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", ""), budget, newBudget(), Strategy, test.want)
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		changed *coordination.NodeMaintenanceBudget
		want    field.ErrorList
	}{
		"everything":   {changed: newBudget(selecting(nodesOf("new")), maxUnavailable(ptr.To(intstr.FromInt32(0))), domains("rack", 1), windows(night(60)))},
		"another name": {changed: newBudget(func(b *coordination.NodeMaintenanceBudget) { b.Name = "other" }), want: field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "").MarkFromImperative()}},
	} {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", ""), test.changed, newBudget(), Strategy, test.want)
		})
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	status := field.NewPath("status")
	for name, test := range map[string]struct {
		changed *coordination.NodeMaintenanceBudget
		want    field.ErrorList
	}{
		"unchanged":           {changed: newBudget()},
		"a negative number":   {changed: newBudget(having(func(s *coordination.NodeMaintenanceBudgetStatus) { s.AdmissionsAllowed = -1 })), want: field.ErrorList{field.Invalid(status.Child("admissionsAllowed"), nil, "").WithOrigin("minimum").MarkFromImperative()}},
		"the generation":      {changed: newBudget(observed(3))},
		"a future generation": {changed: newBudget(observed(4)), want: field.ErrorList{field.Invalid(status.Child("observedGeneration"), nil, "").MarkFromImperative()}},
	} {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", "status"), test.changed, newBudget(), StatusStrategy, test.want)
		})
	}
}
