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

package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// newBudget returns a valid budget with the given changes.
func newBudget(changes ...func(*coordination.NodeMaintenanceBudget)) *coordination.NodeMaintenanceBudget {
	value := intstr.FromString("10%")
	budget := &coordination.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", ResourceVersion: "1", Generation: 3},
		Spec: coordination.NodeMaintenanceBudgetSpec{
			NodeSelector:   &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{labelled("pool", core.NodeSelectorOpIn, "old")}},
			MaxUnavailable: &value,
		},
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

// limiting changes the spec.
func limiting(change func(*coordination.NodeMaintenanceBudgetSpec)) func(*coordination.NodeMaintenanceBudget) {
	return func(b *coordination.NodeMaintenanceBudget) { change(&b.Spec) }
}

func maxUnavailable(value intstr.IntOrString) func(*coordination.NodeMaintenanceBudget) {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) { s.MaxUnavailable = &value })
}

func budgetOf(terms ...core.NodeSelectorTerm) func(*coordination.NodeMaintenanceBudget) {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) {
		s.NodeSelector = &core.NodeSelector{NodeSelectorTerms: terms}
	})
}

func domains(key string, most int32) func(*coordination.NodeMaintenanceBudget) {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) {
		s.Topology = &coordination.NodeMaintenanceTopology{Key: key, MaxDomains: most}
	})
}

// window adds a window of an hour.
func window(schedule, timeZone string) func(*coordination.NodeMaintenanceBudget) {
	return limiting(func(s *coordination.NodeMaintenanceBudgetSpec) {
		s.Windows = append(s.Windows, coordination.NodeMaintenanceWindow{Schedule: schedule, TimeZone: timeZone, DurationSeconds: 3600})
	})
}

func TestValidateNodeMaintenanceBudgetSpec(t *testing.T) {
	spec := field.NewPath("spec")
	terms, topologyKey, windows := spec.Child("nodeSelector", "nodeSelectorTerms"), spec.Child("topology", "key"), spec.Child("windows")
	invalid := field.ErrorList{field.Invalid(spec.Child("maxUnavailable"), nil,
		`must be a number of nodes, at least 0, or a percentage of them from 0% to 100%, such as 2 or "10%"`)}
	longDomain := strings.Repeat(strings.Repeat("d", 62)+".", 4) + "d"
	badKey := field.ErrorList{field.Invalid(topologyKey, nil, "must be the name of a label, such as topology.kubernetes.io/zone: ")}
	schedule := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(windows.Index(0).Child("schedule"), nil, detail)}
	}
	for name, test := range map[string]struct {
		budget *coordination.NodeMaintenanceBudget
		want   field.ErrorList
	}{
		"valid":                {budget: newBudget(domains("topology.kubernetes.io/zone", 1), window("0 2 * * 6", "Europe/Berlin"), window("@daily", ""))},
		"a freeze":             {budget: newBudget(maxUnavailable(intstr.FromInt32(0)))},
		"a freeze, in percent": {budget: newBudget(maxUnavailable(intstr.FromString("0%")))},
		"no limit":             {budget: newBudget(maxUnavailable(intstr.FromString("100%")))},
		"a label of one word":  {budget: newBudget(domains("rack", 1))},
		"the longest label":    {budget: newBudget(domains(longDomain+"/"+strings.Repeat("x", 63), 1))},
		"a label that declarative validation finds too long": {budget: newBudget(domains(longDomain+"/"+strings.Repeat("x", 64), 1))},
		"left to declarative validation": {budget: newBudget(domains("", 0), window("", "UTC"), limiting(func(s *coordination.NodeMaintenanceBudgetSpec) {
			s.NodeSelector, s.MaxUnavailable = nil, nil
			s.Windows[0].DurationSeconds = 0
		}))},

		"less than none":                {budget: newBudget(maxUnavailable(intstr.FromInt32(-1))), want: invalid},
		"more than all":                 {budget: newBudget(maxUnavailable(intstr.FromString("101%"))), want: invalid},
		"more than a number of 32 bits": {budget: newBudget(maxUnavailable(intstr.FromString("4294967297%"))), want: invalid},
		"more than a number of 64 bits": {budget: newBudget(maxUnavailable(intstr.FromString("99999999999999999999%"))), want: invalid},
		"a number in a string":          {budget: newBudget(maxUnavailable(intstr.FromString("0"))), want: invalid},
		"words":                         {budget: newBudget(maxUnavailable(intstr.FromString("none"))), want: invalid},

		"no term":             {budget: newBudget(budgetOf()), want: field.ErrorList{field.Required(terms, "must have at least one node selector term")}},
		"an unknown operator": {budget: newBudget(budgetOf(labelled("pool", "Like", "old"))), want: field.ErrorList{field.Invalid(terms.Index(0).Child("matchExpressions").Index(0).Child("operator"), nil, "not a valid selector operator")}},

		"a label with two slashes":       {budget: newBudget(domains("topology.kubernetes.io/zone/a", 1)), want: badKey},
		"a label as long as the longest": {budget: newBudget(domains(strings.Repeat("x", 317), 1)), want: badKey},
		"a label with a blank":           {budget: newBudget(domains("my zone", 1)), want: badKey},
		"only a domain":                  {budget: newBudget(domains("topology.kubernetes.io/", 1)), want: slices.Concat(badKey, badKey)},

		"a date that never occurs":    {budget: newBudget(window("0 0 31 2 *", "UTC")), want: schedule("must occur: there is no such date within five years")},
		"a time zone in the schedule": {budget: newBudget(window("TZ=UTC 0 0 * * *", "")), want: schedule("must not name a time zone: use timeZone")},
		"a relative schedule":         {budget: newBudget(window("@every 1h", "")), want: schedule("must not be relative: name minutes, hours and days")},
		"words for a schedule":        {budget: newBudget(window("at night", "")), want: schedule("must have five fields, for minute, hour, day of the month, month, and day of the week")},
		"the second window": {
			budget: newBudget(window("@daily", ""), window("0 2 * * 8", "Europe/Bonn")),
			want: field.ErrorList{
				field.Invalid(windows.Index(1).Child("schedule"), nil, "must have five fields"),
				field.Invalid(windows.Index(1).Child("timeZone"), nil, "must be a name of the time zone database, such as Europe/Berlin"),
			},
		},
		"the time zone of the server": {budget: newBudget(window("@daily", "Local")), want: field.ErrorList{field.Invalid(windows.Index(0).Child("timeZone"), nil, "must not be Local")}},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceBudgetCreate(test.budget))
			old := newBudget(domains("rack", 7), maxUnavailable(intstr.FromInt32(7)), budgetOf(labelled("rack", core.NodeSelectorOpExists)))
			matcher.Test(t, test.want, ValidateNodeMaintenanceBudgetUpdate(test.budget, old))
			matcher.Test(t, nil, ValidateNodeMaintenanceBudgetUpdate(test.budget, test.budget.DeepCopy()))
		})
	}
}

// What does not change is not validated again: it may have been valid when it was stored.
func TestValidateNodeMaintenanceBudgetUpdate(t *testing.T) {
	gone := window("@daily", "Europe/Bonn")
	for name, test := range map[string]struct {
		old, budget *coordination.NodeMaintenanceBudget
		want        field.ErrorList
	}{
		"a freeze beside a time zone that has gone":     {old: newBudget(gone), budget: newBudget(gone, maxUnavailable(intstr.FromInt32(0)))},
		"another window before one whose zone has gone": {old: newBudget(gone), budget: newBudget(window("@weekly", ""), gone)},
		"more domains of a label that is invalid":       {old: newBudget(domains("my zone", 1)), budget: newBudget(domains("my zone", 2))},
		"topology and windows are removed":              {old: newBudget(domains("my zone", 1), gone), budget: newBudget()},
		"another schedule in a time zone that has gone": {old: newBudget(gone), budget: newBudget(window("@weekly", "Europe/Bonn")), want: field.ErrorList{field.Invalid(field.NewPath("spec", "windows").Index(0).Child("timeZone"), nil, "")}},
		"another name": {old: newBudget(), budget: newBudget(func(b *coordination.NodeMaintenanceBudget) { b.Name = "other" }), want: field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "field is immutable")}},
		"other nodes, and nothing else is validated again": {old: newBudget(gone, domains("my zone", 1), maxUnavailable(intstr.FromInt32(-1))), budget: newBudget(gone, domains("my zone", 1), maxUnavailable(intstr.FromInt32(-1)), budgetOf(labelled("a", core.NodeSelectorOpExists)))},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceBudgetUpdate(test.budget, test.old))
		})
	}
}

func TestValidateNodeMaintenanceBudgetMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*coordination.NodeMaintenanceBudget)
		want   field.ErrorList
	}{
		"a namespace":     {func(b *coordination.NodeMaintenanceBudget) { b.Namespace = "prod" }, field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), "not allowed on this type")}},
		"an invalid name": {func(b *coordination.NodeMaintenanceBudget) { b.Name = "Workers_1" }, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "a lowercase RFC 1123 subdomain")}},
		"no name":         {func(b *coordination.NodeMaintenanceBudget) { b.Name = "" }, field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")}},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceBudgetCreate(newBudget(test.change)))
		})
	}
}

func TestValidateNodeMaintenanceBudgetStatusUpdate(t *testing.T) {
	path := field.NewPath("status")
	type change = func(*coordination.NodeMaintenanceBudgetStatus)
	const detail = "must be greater than or equal to 0"
	counters := func(expected, unavailable, allowed int32) change {
		return func(s *coordination.NodeMaintenanceBudgetStatus) {
			s.ExpectedNodes, s.UnavailableNodes, s.AdmissionsAllowed = expected, unavailable, allowed
		}
	}
	observed := func(generation int64) change {
		return func(s *coordination.NodeMaintenanceBudgetStatus) { s.ObservedGeneration = generation }
	}
	open := func(reason, message string) change {
		return func(s *coordination.NodeMaintenanceBudgetStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Open", Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: *at(0)})
		}
	}
	as := func(changes ...change) []change { return changes }
	noReason := field.ErrorList{field.Required(path.Child("conditions").Index(0).Child("reason"), "")}
	for name, test := range map[string]struct {
		old, changed []change
		want         field.ErrorList
	}{
		"nothing":          {},
		"the first update": {changed: as(counters(9, 2, 1), observed(3), open("Open", "1 node may begin."))},
		"counters negative": {changed: as(counters(-1, -2, -3)), want: field.ErrorList{
			field.Invalid(path.Child("expectedNodes"), nil, detail), field.Invalid(path.Child("unavailableNodes"), nil, detail), field.Invalid(path.Child("admissionsAllowed"), nil, detail),
		}},
		"counters negative, already stored": {old: as(counters(-1, -2, -3)), changed: as(counters(-1, -2, 0))},
		"a future generation":               {old: as(observed(2)), changed: as(observed(4)), want: field.ErrorList{field.Invalid(path.Child("observedGeneration"), nil, "must not be less than the current value, 2, or greater than metadata.generation, 3")}},
		"an earlier generation":             {old: as(observed(2)), changed: as(observed(1)), want: field.ErrorList{field.Invalid(path.Child("observedGeneration"), nil, "must not be less than the current value, 2")}},
		"a generation, already stored":      {old: as(observed(4)), changed: as(observed(4), counters(1, 1, 1))},
		"a condition without reason":        {changed: as(open("", "")), want: noReason},
		"a reason is removed":               {old: as(open("Open", "")), changed: as(open("", "")), want: noReason},
		"no reason, already stored":         {old: as(open("", "")), changed: as(open("", ""), counters(1, 1, 1))},
		"a message that is too long":        {changed: as(open("Open", strings.Repeat("x", 32769))), want: field.ErrorList{field.TooLong(path.Child("conditions").Index(0).Child("message"), "", 32768)}},
	} {
		t.Run(name, func(t *testing.T) {
			status := func(changes []change) *coordination.NodeMaintenanceBudget {
				budget := newBudget(maxUnavailable(intstr.FromInt32(-1))) // The spec is not validated.
				for _, change := range changes {
					change(&budget.Status)
				}
				return budget
			}
			matcher.Test(t, test.want, ValidateNodeMaintenanceBudgetStatusUpdate(status(test.changed), status(test.old)))
		})
	}
}

// Upstream accepts any value for Gt and Lt, and a selector with one that is no number matches nothing.
func TestComparedValues(t *testing.T) {
	for _, operator := range []core.NodeSelectorOperator{core.NodeSelectorOpGt, core.NodeSelectorOpLt} {
		for value, valid := range map[string]bool{"5": true, "v5": false, "5.5": false, "99999999999999999999": false} {
			budget := newBudget(func(b *coordination.NodeMaintenanceBudget) {
				b.Spec.NodeSelector = &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{MatchExpressions: []core.NodeSelectorRequirement{
					{Key: "generation", Operator: operator, Values: []string{value}},
				}}}}
			})
			var want field.ErrorList
			if !valid {
				want = field.ErrorList{field.Invalid(field.NewPath("spec", "nodeSelector", "nodeSelectorTerms").Index(0).Child("matchExpressions").Index(0).Child("values").Index(0),
					value, "must be an integer for the operator "+string(operator))}
			}
			matcher.Test(t, want, ValidateNodeMaintenanceBudgetCreate(budget))
		}
	}
}

// What has to be matched with every node is limited when the selector is set. A stored one stays valid.
func TestBudgetSelectorSize(t *testing.T) {
	terms := field.NewPath("spec", "nodeSelector", "nodeSelectorTerms")
	repeat := func(count int, term core.NodeSelectorTerm) []core.NodeSelectorTerm {
		return slices.Repeat([]core.NodeSelectorTerm{term}, count)
	}
	exists := labelled("pool", core.NodeSelectorOpExists)
	withValues := func(count int) core.NodeSelectorTerm {
		values := make([]string, count)
		for i := range values {
			values[i] = fmt.Sprintf("v%d", i)
		}
		return labelled("pool", core.NodeSelectorOpIn, values...)
	}
	withRequirements := core.NodeSelectorTerm{MatchExpressions: slices.Repeat(exists.MatchExpressions, 501)}
	notNamed := core.NodeSelectorTerm{MatchFields: slices.Repeat([]core.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: core.NodeSelectorOpNotIn, Values: []string{"n"}},
	}, 1001)}
	named := core.NodeSelectorTerm{
		MatchFields:      []core.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: core.NodeSelectorOpIn, Values: []string{"n"}}},
		MatchExpressions: slices.Repeat(exists.MatchExpressions, 2),
	}
	for name, test := range map[string]struct {
		terms []core.NodeSelectorTerm
		want  string
	}{
		"100 terms":           {repeat(100, exists), ""},
		"101 terms":           {repeat(101, exists), "must not have more than 100 terms that name no node, but has 101"},
		"5000 named nodes":    {repeat(5000, named), ""},
		"1002 requirements":   {repeat(2, withRequirements), "must not have more than 1000 requirements in terms that name no node, but has 1002"},
		"fields of a node":    {repeat(1, notNamed), "must not have more than 1000 requirements in terms that name no node, but has 1001"},
		"10000 values":        {repeat(2, withValues(5000)), ""},
		"more values":         {repeat(2, withValues(5001)), "must not have more than 10000 values in terms that name no node, but has 10002"},
		"all but named nodes": {append(repeat(100, exists), named), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want field.ErrorList
			if test.want != "" {
				want = field.ErrorList{field.Forbidden(terms, test.want)}
			}
			b := newBudget(budgetOf(test.terms...))
			field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring().Test(t, want, ValidateNodeMaintenanceBudgetCreate(b))
			if errs := ValidateNodeMaintenanceBudgetUpdate(b, b); len(errs) > 0 {
				t.Errorf("a stored budget is rejected: %v", errs)
			}
		})
	}
}
