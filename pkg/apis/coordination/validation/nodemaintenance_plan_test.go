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
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/core"
)

func podsOf(podType core.PodType, priority int32) core.DrainPlanEntry {
	return core.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func defaultPods(priority int32) core.DrainPlanEntry { return podsOf(core.PodTypeDefault, priority) }
func daemonPods(priority int32) core.DrainPlanEntry  { return podsOf(core.PodTypeDaemonSet, priority) }
func staticPods(priority int32) core.DrainPlanEntry  { return podsOf(core.PodTypeStatic, priority) }

func matching(selector metav1.LabelSelector, entry core.DrainPlanEntry) core.DrainPlanEntry {
	entry.PodSelector = &selector
	return entry
}

func ofApp(app string, entry core.DrainPlanEntry) core.DrainPlanEntry {
	return matching(metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, entry)
}

func requiring(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func ascending(count int) []core.DrainPlanEntry {
	var plan []core.DrainPlanEntry
	for i := range count {
		plan = append(plan, defaultPods(int32(i)))
	}
	return plan
}

func TestValidateDrainPlan(t *testing.T) {
	plan := field.NewPath("spec", "drainPlan")
	before := func(index int, value, detail string) *field.Error {
		return field.Invalid(plan.Index(index), value, detail)
	}
	duplicate := func(index int, value, other string) *field.Error {
		err := field.Duplicate(plan.Index(index), value)
		err.Detail = "selects the same pods as spec.drainPlan" + other + ": remove one of them"
		return err
	}
	const all = 2147483647
	tests := map[string]struct {
		plan []core.DrainPlanEntry
		want field.ErrorList
	}{
		"none":  {},
		"empty": {plan: []core.DrainPlanEntry{}},
		"the progression of the KEP": {plan: []core.DrainPlanEntry{
			defaultPods(1000), ofApp("postgres", defaultPods(2000)), defaultPods(all), daemonPods(1000), daemonPods(all), staticPods(all)}},
		"negative priorities":                            {plan: []core.DrainPlanEntry{defaultPods(-2147483648), defaultPods(-1), defaultPods(0)}},
		"a selector before all at equal priority":        {plan: []core.DrainPlanEntry{ofApp("db", defaultPods(1)), defaultPods(1)}},
		"selectors at equal priority, either order":      {plan: []core.DrainPlanEntry{ofApp("db", defaultPods(1)), ofApp("a", defaultPods(1)), ofApp("c", defaultPods(1))}},
		"the same selector at another priority":          {plan: []core.DrainPlanEntry{ofApp("db", defaultPods(1)), ofApp("db", defaultPods(2))}},
		"the same selector for another type":             {plan: []core.DrainPlanEntry{ofApp("db", defaultPods(1)), ofApp("db", staticPods(1))}},
		"a type left out":                                {plan: []core.DrainPlanEntry{defaultPods(9), staticPods(1)}},
		"the maximum number of entries":                  {plan: ascending(100)},
		"left to declarative validation: one entry more": {plan: append(ascending(100), defaultPods(0))},
		"priorities descend":                             {plan: []core.DrainPlanEntry{defaultPods(10), defaultPods(5)}, want: field.ErrorList{before(1, "Default<=5", `must come before spec.drainPlan[0], "Default<=10", because priorities must not decrease within a pod type`)}},
		"types descend":                                  {plan: []core.DrainPlanEntry{daemonPods(1), defaultPods(10)}, want: field.ErrorList{before(1, "Default<=10", `must come before spec.drainPlan[0], "DaemonSet<=1", because pod types must be in the order Default, DaemonSet, Static`)}},
		"static pods before those of daemon sets":        {plan: []core.DrainPlanEntry{staticPods(1), daemonPods(1)}, want: field.ErrorList{before(1, "DaemonSet<=1", "because pod types must be in the order")}},
		"all before a selector":                          {plan: []core.DrainPlanEntry{defaultPods(1), ofApp("db", defaultPods(1))}, want: field.ErrorList{before(1, "Default<=1{app=db}", `must come before spec.drainPlan[0], "Default<=1", because entries with a podSelector must come first at the same priority`)}},
		"an empty selector before a selector":            {plan: []core.DrainPlanEntry{matching(metav1.LabelSelector{}, defaultPods(1)), ofApp("db", defaultPods(1))}, want: field.ErrorList{before(1, "Default<=1{app=db}", "must come before spec.drainPlan[0]")}},
		"not only after the previous one":                {plan: []core.DrainPlanEntry{defaultPods(1), defaultPods(9), defaultPods(5), defaultPods(7)}, want: field.ErrorList{before(2, "Default<=5", "must come before spec.drainPlan[1]"), before(3, "Default<=7", "must come before spec.drainPlan[1]")}},
		"a duplicate":                                    {plan: []core.DrainPlanEntry{defaultPods(1), defaultPods(1)}, want: field.ErrorList{duplicate(1, "Default<=1", "[0]")}},
		"a duplicate selector, not adjacent":             {plan: []core.DrainPlanEntry{ofApp("db", daemonPods(1)), ofApp("web", daemonPods(1)), ofApp("db", daemonPods(1))}, want: field.ErrorList{duplicate(2, "DaemonSet<=1{app=db}", "[0]")}},
		"a label, and an expression with its value":      {plan: []core.DrainPlanEntry{ofApp("web", defaultPods(1)), matching(requiring("app", "In", "web"), defaultPods(1))}, want: field.ErrorList{duplicate(1, "Default<=1{app=web}", "[0]")}},
		"a value twice":                                  {plan: []core.DrainPlanEntry{matching(requiring("app", "In", "web", "web"), defaultPods(1)), ofApp("web", defaultPods(1))}, want: field.ErrorList{duplicate(1, "Default<=1{app=web}", "[0]")}},
		"a value twice that is not wanted":               {plan: []core.DrainPlanEntry{matching(requiring("app", "NotIn", "web", "web"), defaultPods(1)), matching(requiring("app", "NotIn", "web"), defaultPods(1))}, want: field.ErrorList{duplicate(1, "Default<=1{app notin (web)}", "[0]")}},
		"an empty selector is none":                      {plan: []core.DrainPlanEntry{matching(metav1.LabelSelector{}, staticPods(1)), staticPods(1)}, want: field.ErrorList{duplicate(1, "Static<=1", "[0]")}},
		"the order of requirements does not matter":      {plan: []core.DrainPlanEntry{matching(metav1.LabelSelector{MatchExpressions: append(requiring("a", "Exists").MatchExpressions, requiring("b", "Exists").MatchExpressions...)}, defaultPods(1)), matching(metav1.LabelSelector{MatchExpressions: append(requiring("b", "Exists").MatchExpressions, requiring("a", "Exists").MatchExpressions...)}, defaultPods(1))}, want: field.ErrorList{duplicate(1, "Default<=1{a,b}", "[0]")}},
		"the order of values does not matter":            {plan: []core.DrainPlanEntry{matching(requiring("a", "In", "x", "y"), defaultPods(1)), matching(requiring("a", "In", "y", "x"), defaultPods(1))}, want: field.ErrorList{duplicate(1, "Default<=1{a in (x,y)}", "[0]")}},
		"an unknown type":                                {plan: []core.DrainPlanEntry{podsOf("Job", 1)}, want: field.ErrorList{field.NotSupported(plan.Index(0).Child("podType"), core.PodType("Job"), []core.PodType{"Default", "DaemonSet", "Static"})}},
		"no type":                                        {plan: []core.DrainPlanEntry{defaultPods(1), podsOf("", 1)}, want: field.ErrorList{field.Required(plan.Index(1).Child("podType"), `must be one of ["Default" "DaemonSet" "Static"]`)}},
		"an operator that a selector does not have":      {plan: []core.DrainPlanEntry{matching(requiring("a", "Like", "x"), defaultPods(1))}, want: field.ErrorList{field.Invalid(plan.Index(0).Child("podSelector", "matchExpressions").Index(0).Child("operator"), metav1.LabelSelectorOperator("Like"), "not a valid selector operator")}},
		"an invalid label":                               {plan: []core.DrainPlanEntry{ofApp("not valid", defaultPods(1))}, want: field.ErrorList{field.Invalid(plan.Index(0).Child("podSelector", "matchLabels"), "not valid", "a valid label must be")}},
		"an invalid entry has no order":                  {plan: []core.DrainPlanEntry{staticPods(9), podsOf("Job", 1), staticPods(10)}, want: field.ErrorList{field.NotSupported(plan.Index(1).Child("podType"), core.PodType("Job"), []core.PodType{"Default", "DaemonSet", "Static"})}},
		"an entry after an invalid one has": {plan: []core.DrainPlanEntry{staticPods(9), podsOf("Job", 1), staticPods(8)}, want: field.ErrorList{
			field.NotSupported(plan.Index(1).Child("podType"), core.PodType("Job"), []core.PodType{"Default", "DaemonSet", "Static"}), before(2, "Static<=8", "must come before spec.drainPlan[0]")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			matcher.ByValue().Test(t, test.want, validateDrainPlan(test.plan, plan))
		})
	}
}

func TestDescribePlan(t *testing.T) {
	if got, want := describePlan(ascending(20)[18:]), "Default<=18, Default<=19"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := describePlan(ascending(21))[len(describePlan(ascending(20))):], ", and 1 more"; got != want {
		t.Errorf("the plan ends in %q, want %q", got, want)
	}
	broken := matching(requiring("a", "Like", "x"), defaultPods(1))
	if got, want := describePlan([]core.DrainPlanEntry{broken}), "Default<=1{<error>}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The admission plugin completes plans: a valid plan stays valid.
func TestCompletedPlanIsValid(t *testing.T) {
	versioned := func(entry core.DrainPlanEntry) v1.DrainPlanEntry {
		return v1.DrainPlanEntry{PodSelector: entry.PodSelector, PodPriority: entry.PodPriority, PodType: v1.PodType(entry.PodType)}
	}
	var standard []core.DrainPlanEntry
	for _, entry := range maintenance.CompletePlan([]v1.DrainPlanEntry{versioned(ofApp("db", daemonPods(2000000000))), versioned(staticPods(7))}) {
		standard = append(standard, core.DrainPlanEntry{PodSelector: entry.PodSelector, PodPriority: entry.PodPriority, PodType: core.PodType(entry.PodType)})
	}
	if len(standard) != 14 {
		t.Errorf("the completed plan has %d entries, want 14", len(standard))
	}
	matcher.Test(t, nil, validateDrainPlan(standard, field.NewPath("spec", "drainPlan")))
}
