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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
)

func entry(podType core.PodType, priority int32) core.DrainPlanEntry {
	return core.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func ofApp(app string, entry core.DrainPlanEntry) core.DrainPlanEntry {
	entry.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	return entry
}

// standardPlan is the plan of a maintenance that is created without one.
func standardPlan() []core.DrainPlanEntry {
	var plan []core.DrainPlanEntry
	for _, podType := range []core.PodType{core.PodTypeDefault, core.PodTypeDaemonSet, core.PodTypeStatic} {
		for _, priority := range []int32{1000000000, 2000000000, 2000001000, 2147483647} {
			plan = append(plan, entry(podType, priority))
		}
	}
	return plan
}

// ascending returns a plan of the given length without standard entries.
func ascending(length int) []core.DrainPlanEntry {
	var plan []core.DrainPlanEntry
	for i := range length {
		plan = append(plan, entry(core.PodTypeDefault, int32(i)))
	}
	return plan
}

func TestCompletePlan(t *testing.T) {
	standard := standardPlan()
	first, db := entry(core.PodTypeDefault, 1000), ofApp("db", entry(core.PodTypeDaemonSet, 2000000000))
	everyPod := entry(core.PodTypeDefault, 1000000000)
	everyPod.PodSelector = &metav1.LabelSelector{}
	unknownOperator := entry(core.PodTypeDefault, 1)
	unknownOperator.PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	inWeb := first
	inWeb.PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "In", Values: []string{"web"}}}}
	tests := map[string]struct {
		plan, want []core.DrainPlanEntry
		wantErr    string
	}{
		"none":                       {want: standard},
		"empty":                      {plan: []core.DrainPlanEntry{}, want: standard},
		"the standard plan":          {plan: standard, want: standard},
		"entries among the others":   {plan: []core.DrainPlanEntry{first, db}, want: concat(one(first), standard[:5], one(db), standard[5:])},
		"with a standard one":        {plan: []core.DrainPlanEntry{first, standard[2]}, want: concat(one(first), standard)},
		"an empty selector":          {plan: one(everyPod), want: concat(one(everyPod), standard[1:])},
		"two selectors, one level":   {plan: []core.DrainPlanEntry{ofApp("b", first), ofApp("a", first)}, want: concat([]core.DrainPlanEntry{ofApp("b", first), ofApp("a", first)}, standard)},
		"as long as possible":        {plan: ascending(88), want: concat(ascending(88), standard)},
		"too long with the standard": {plan: ascending(89), want: ascending(89), wantErr: `spec.drainPlan: Invalid value: 89: must have at most 100 entries, but 12 added standard entries make it 101: merge or remove at least 1 of the given entries`},

		// Invalid plans stay unchanged, so that validation reports the indexes of the user.
		"too long":                     {plan: ascending(101), want: ascending(101)},
		"priorities descend":           {plan: []core.DrainPlanEntry{entry("Default", 2), entry("Default", 1)}, want: []core.DrainPlanEntry{entry("Default", 2), entry("Default", 1)}},
		"types out of order":           {plan: []core.DrainPlanEntry{db, first}, want: []core.DrainPlanEntry{db, first}},
		"selector too late":            {plan: []core.DrainPlanEntry{first, ofApp("db", first)}, want: []core.DrainPlanEntry{first, ofApp("db", first)}},
		"duplicates":                   {plan: []core.DrainPlanEntry{first, first}, want: []core.DrainPlanEntry{first, first}},
		"duplicates, but not in a row": {plan: []core.DrainPlanEntry{ofApp("a", first), ofApp("b", first), ofApp("a", first)}, want: []core.DrainPlanEntry{ofApp("a", first), ofApp("b", first), ofApp("a", first)}},
		"equivalent selectors":         {plan: []core.DrainPlanEntry{ofApp("web", first), inWeb}, want: []core.DrainPlanEntry{ofApp("web", first), inWeb}},
		"unknown type":                 {plan: one(entry("Other", 1)), want: one(entry("Other", 1))},
		"no type":                      {plan: one(entry("", 1)), want: one(entry("", 1))},
		"invalid selector":             {plan: one(unknownOperator), want: one(unknownOperator)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin := newPlugin(t, nil, newRights())
			maintenance, want := newMaintenance(withPlan(test.plan...)), newMaintenance(withPlan(test.want...))
			err := plugin.Admit(t.Context(), attributes(admission.Create, userNamed(guest), "", maintenance, nil), nil)
			if test.wantErr == "" && err != nil || test.wantErr != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("error %v, must be %q", err, test.wantErr)
			}
			if diff := cmp.Diff(want, maintenance); diff != "" {
				t.Errorf("maintenance (-want +got):\n%s", diff)
			}
			// Webhooks can cause a second call of the plugin.
			if err := plugin.Admit(t.Context(), attributes(admission.Create, userNamed(guest), "", maintenance, nil), nil); test.wantErr == "" && err != nil {
				t.Errorf("second time: %v", err)
			}
			if diff := cmp.Diff(want, maintenance); diff != "" {
				t.Errorf("maintenance, second time (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestorePlan(t *testing.T) {
	standard, first := standardPlan(), entry(core.PodTypeDefault, 1000)
	custom := concat(one(first), standard)
	tests := map[string]struct{ stored, plan, want []core.DrainPlanEntry }{
		"unchanged":                          {stored: custom, plan: custom, want: custom},
		"as the user gave it":                {stored: custom, plan: one(first), want: custom},
		"none, and none was given":           {stored: standard, plan: nil, want: standard},
		"empty, and none was given":          {stored: standard, plan: []core.DrainPlanEntry{}, want: standard},
		"a part of the standard plan":        {stored: standard, plan: standard[3:5], want: standard},
		"none, but one was given":            {stored: custom, plan: nil, want: nil},
		"another one":                        {stored: custom, plan: one(entry(core.PodTypeDefault, 7)), want: one(entry(core.PodTypeDefault, 7))},
		"one more":                           {stored: standard, plan: one(first), want: one(first)},
		"out of order":                       {stored: custom, plan: concat(standard[:1], one(first)), want: concat(standard[:1], one(first))},
		"stored without the standard, as is": {stored: one(first), plan: one(first), want: one(first)},
		"stored empty, as is":                {stored: nil, plan: nil, want: nil},
		"stored without the standard, none":  {stored: one(first), plan: nil, want: nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin := newPlugin(t, nil, newRights())
			maintenance, want := newMaintenance(withPlan(test.plan...)), newMaintenance(withPlan(test.want...))
			old := newMaintenance(withPlan(test.stored...))
			update := attributes(admission.Update, userNamed(guest), "", maintenance, old)
			for _, time := range []string{"first", "second"} {
				if err := plugin.Admit(t.Context(), update, nil); err != nil {
					t.Errorf("%s time: %v", time, err)
				}
				if diff := cmp.Diff(want, maintenance); diff != "" {
					t.Errorf("maintenance, %s time (-want +got):\n%s", time, diff)
				}
				if diff := cmp.Diff(newMaintenance(withPlan(test.stored...)), old); diff != "" {
					t.Errorf("old maintenance (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// An update of the status must not complete or restore the plan.
func TestNoPlanForTheStatus(t *testing.T) {
	plugin := newPlugin(t, nil, newRights())
	maintenance := newMaintenance()
	if err := plugin.Admit(t.Context(), attributes(admission.Update, userNamed(guest), "status", maintenance, newMaintenance(withPlan(standardPlan()...))), nil); err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	if diff := cmp.Diff(newMaintenance(), maintenance); diff != "" {
		t.Errorf("maintenance (-want +got):\n%s", diff)
	}
}

func one(entry core.DrainPlanEntry) []core.DrainPlanEntry { return []core.DrainPlanEntry{entry} }

func concat(plans ...[]core.DrainPlanEntry) []core.DrainPlanEntry {
	var all []core.DrainPlanEntry
	for _, plan := range plans {
		all = append(all, plan...)
	}
	return all
}
