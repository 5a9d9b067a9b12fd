/*
Copyright The Kubernetes Authors.

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
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	registry "k8s.io/kubernetes/pkg/registry/coordination/nodemaintenancebudget"
	"k8s.io/kubernetes/test/declarative_validation/coordination/internal/declared"
	"k8s.io/kubernetes/test/declarative_validation/meta"
	"k8s.io/utils/ptr"
)

const resource = "nodemaintenancebudgets"

// change changes a budget.
type change func(*coordination.NodeMaintenanceBudget)

// newBudget returns a valid stored budget with the given changes.
func newBudget(changes ...change) *coordination.NodeMaintenanceBudget {
	budget := &coordination.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", ResourceVersion: "1"},
		Spec: coordination.NodeMaintenanceBudgetSpec{
			NodeSelector: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{{Key: "pool", Operator: core.NodeSelectorOpExists}},
			}}},
			MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

// limiting changes the spec.
func limiting(change func(*coordination.NodeMaintenanceBudgetSpec)) change {
	return func(b *coordination.NodeMaintenanceBudget) { change(&b.Spec) }
}

func domains(key string, most int32) change {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) {
		s.Topology = &coordination.NodeMaintenanceTopology{Key: key, MaxDomains: most}
	})
}

func open(windows ...coordination.NodeMaintenanceWindow) change {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.Windows = windows })
}

// nightly is a window of this length.
func nightly(seconds int32) coordination.NodeMaintenanceWindow {
	return coordination.NodeMaintenanceWindow{Schedule: "0 2 * * *", TimeZone: "Etc/UTC", DurationSeconds: seconds}
}

func nights(count int) []coordination.NodeMaintenanceWindow {
	var windows []coordination.NodeMaintenanceWindow
	for i := range count {
		windows = append(windows, nightly(int32(3600+i)))
	}
	return windows
}

// having changes the status.
func having(change func(*coordination.NodeMaintenanceBudgetStatus)) change {
	return func(b *coordination.NodeMaintenanceBudget) { change(&b.Status) }
}

func admitting(node, maintenance string) change {
	return having(func(s *coordination.NodeMaintenanceBudgetStatus) {
		s.PendingAdmissions = append(s.PendingAdmissions, coordination.NodeMaintenancePendingAdmission{
			NodeName: node, MaintenanceUID: types.UID(maintenance), Time: metav1.Unix(1, 0),
		})
	})
}

// full has so many items in each list of the status, and a resourceVersion of this length.
func full(domains, admissions, conditions, version int) change {
	return func(b *coordination.NodeMaintenanceBudget) {
		b.Status.ActiveDomains = declared.Numbered(domains)
		for _, node := range declared.Numbered(admissions) {
			admitting(node, "1")(b)
		}
		b.Status.Conditions = declared.Conditions(declared.Numbered(conditions)...)
		b.Status.AdmissionResourceVersion = strings.Repeat("1", version)
	}
}

func TestObjectMeta(t *testing.T) {
	for _, version := range apiVersions {
		t.Run(version, func(t *testing.T) {
			create, update := declared.Context(version, "create", resource, ""), declared.Context(version, "update", resource, "")
			meta.RunObjectMetaTestCases(t, create, newBudget(), registry.Strategy, meta.WithStringentFinalizerValidation())
			meta.RunObjectMetaUpdateTestCases(t, update, newBudget(), registry.Strategy, meta.WithStringentFinalizerValidation())
		})
	}
}

// The rules of the spec are the same for a new budget and for one that is changed.
func TestSpec(t *testing.T) {
	spec := field.NewPath("spec")
	topology, window := spec.Child("topology"), spec.Child("windows").Index(0)
	for name, test := range map[string]struct {
		change change
		want   field.ErrorList
	}{
		"no selector": {
			change: limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.NodeSelector = nil }),
			want:   field.ErrorList{declared.Missing(spec.Child("nodeSelector"))},
		},
		"no maximum": {
			change: limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.MaxUnavailable = nil }),
			want:   field.ErrorList{declared.Missing(spec.Child("maxUnavailable"))},
		},
		"a topology of nothing": {
			change: domains("", 0),
			want:   field.ErrorList{declared.Missing(topology.Child("key")), declared.Missing(topology.Child("maxDomains"))},
		},
		"less than no domain":        {change: domains("rack", -1), want: field.ErrorList{declared.TooSmall(topology.Child("maxDomains"))}},
		"the longest label":          {change: domains(strings.Repeat("x", 253)+"/"+strings.Repeat("x", 63), 1)},
		"a label that is too long":   {change: domains(strings.Repeat("x", 318), 1), want: field.ErrorList{declared.TooLong(topology.Child("key"), 317)}},
		"the most windows":           {change: open(nights(20)...)},
		"one window too many":        {change: open(nights(21)...), want: field.ErrorList{declared.TooMany(spec.Child("windows"), 20)}},
		"the shortest window":        {change: open(nightly(60))},
		"a window that is too short": {change: open(nightly(59)), want: field.ErrorList{declared.TooSmall(window.Child("durationSeconds"))}},
		"the longest window":         {change: open(nightly(31536000))},
		"a window that is too long":  {change: open(nightly(31536001)), want: field.ErrorList{declared.TooLarge(window.Child("durationSeconds"))}},
		"a window of nothing": {
			change: open(coordination.NodeMaintenanceWindow{}),
			want: field.ErrorList{
				declared.Missing(window.Child("schedule")), declared.Missing(window.Child("timeZone")), declared.Missing(window.Child("durationSeconds")),
			},
		},
		"words of a window that are too long": {
			change: open(coordination.NodeMaintenanceWindow{Schedule: "0 2 * * 6" + strings.Repeat(" ", 248), TimeZone: strings.Repeat("x", 65), DurationSeconds: 60}),
			want:   field.ErrorList{declared.TooLong(window.Child("schedule"), 256), declared.TooLong(window.Child("timeZone"), 64)},
		},
	} {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				budget := newBudget(test.change)
				apitesting.VerifyValidationEquivalence(t, declared.Context(version, "create", resource, ""), budget, registry.Strategy, test.want)
				apitesting.VerifyUpdateValidationEquivalence(t, declared.Context(version, "update", resource, ""), budget, newBudget(), registry.Strategy, test.want)
			})
		}
	}
}

func TestStatus(t *testing.T) {
	status := field.NewPath("status")
	admissions := status.Child("pendingAdmissions")
	first := admissions.Index(0)
	for name, test := range map[string]struct {
		changes []change
		want    field.ErrorList
	}{
		"the most of all": {changes: []change{full(10, 100, 100, 128)}},
		"too much of all": {
			changes: []change{full(11, 101, 101, 129)},
			want: field.ErrorList{
				declared.TooMany(status.Child("activeDomains"), 10), declared.TooMany(admissions, 100), declared.TooMany(status.Child("conditions"), 100),
				declared.TooLong(status.Child("admissionResourceVersion"), 128),
			},
		},
		"a node is admitted for two maintenances": {changes: []change{admitting("n", "1"), admitting("n", "2")}},
		"a node is admitted twice for one":        {changes: []change{admitting("n", "1"), admitting("n", "1")}, want: field.ErrorList{field.Duplicate(admissions.Index(1), nil)}},
		"an admission of nothing": {
			changes: []change{admitting("", "")},
			want:    field.ErrorList{declared.Missing(first.Child("nodeName")), declared.Missing(first.Child("maintenanceUID"))},
		},
		"the longest names": {changes: []change{admitting(strings.Repeat("x", 253), strings.Repeat("x", 64))}},
		"names that are too long": {
			changes: []change{admitting(strings.Repeat("x", 254), strings.Repeat("x", 65))},
			want:    field.ErrorList{declared.TooLong(first.Child("nodeName"), 253), declared.TooLong(first.Child("maintenanceUID"), 64)},
		},
	} {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				declared.VerifyStatus(t, version, resource, newBudget(test.changes...), newBudget(), registry.StatusStrategy, test.want)
			})
		}
	}
}

func TestConditions(t *testing.T) {
	conditionsOf := func(b *coordination.NodeMaintenanceBudget) *[]metav1.Condition { return &b.Status.Conditions }
	for _, version := range apiVersions {
		declared.RunConditions(t, version, resource, newBudget(), registry.StatusStrategy, conditionsOf)
	}
}
