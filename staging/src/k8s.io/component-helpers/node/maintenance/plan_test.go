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
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func defaultPods(priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodPriority: priority, PodType: v1.PodTypeDefault}
}

func daemonPods(priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodPriority: priority, PodType: v1.PodTypeDaemonSet}
}

func staticPods(priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodPriority: priority, PodType: v1.PodTypeStatic}
}

func ofApp(app string, entry v1.DrainPlanEntry) v1.DrainPlanEntry {
	entry.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	return entry
}

func pod(priority int32, app string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: app, Labels: map[string]string{"app": app}},
		Spec:       v1.PodSpec{Priority: ptr.To(priority)},
	}
}

func daemonPod(priority int32) *v1.Pod {
	p := pod(priority, "daemon")
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: ptr.To(true)}}
	return p
}

func staticPod(priority int32) *v1.Pod {
	p := pod(priority, "static")
	p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	return p
}

func mustPlan(t *testing.T, entries ...v1.DrainPlanEntry) *Plan {
	t.Helper()
	plan, err := NewPlan(entries)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func mustTargets(t *testing.T, entries ...v1.DrainPlanEntry) Targets {
	t.Helper()
	targets, err := NewTargets(entries)
	if err != nil {
		t.Fatal(err)
	}
	return targets
}

// kepProgression is the plan of the KEP's section on pod types and label selectors.
var kepProgression = []v1.DrainPlanEntry{
	defaultPods(1000), ofApp("postgres", defaultPods(2000)), defaultPods(2147483647),
	daemonPods(1000), daemonPods(2147483647), staticPods(2147483647),
}

func TestTargetsAtFollowTheKEP(t *testing.T) {
	plan := mustPlan(t, kepProgression...)
	const all = 2147483647
	want := [][]v1.DrainPlanEntry{
		{defaultPods(1000), ofApp("postgres", defaultPods(1000))},
		{defaultPods(1000), ofApp("postgres", defaultPods(2000))},
		{defaultPods(all), ofApp("postgres", defaultPods(all))},
		{defaultPods(all), ofApp("postgres", defaultPods(all)), daemonPods(1000)},
		{defaultPods(all), ofApp("postgres", defaultPods(all)), daemonPods(all)},
		{defaultPods(all), ofApp("postgres", defaultPods(all)), daemonPods(all), staticPods(all)},
	}
	for position := range want {
		if diff := cmp.Diff(want[position], plan.TargetsAt(position).Entries()); diff != "" {
			t.Errorf("position %d (-want, +got):\n%s", position, diff)
		}
	}
	if diff := cmp.Diff(want[5], plan.TargetsAt(99).Entries()); diff != "" {
		t.Errorf("past the end (-want, +got):\n%s", diff)
	}
	if targets := plan.TargetsAt(-1); !targets.IsEmpty() {
		t.Errorf("before the start: %v", targets.Entries())
	}
}

func TestEntryFor(t *testing.T) {
	plan := mustPlan(t, kepProgression...)
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		want int
	}{
		{"low priority", pod(1000, "web"), 0},
		{"low priority, also selected later", pod(7, "postgres"), 0},
		{"selected", pod(1001, "postgres"), 1},
		{"not selected", pod(1001, "web"), 2},
		{"selected, but too high", pod(2001, "postgres"), 2},
		{"no priority", &v1.Pod{}, 0},
		{"daemon set", daemonPod(1000), 3},
		{"daemon set, high", daemonPod(1001), 4},
		{"static", staticPod(-5), 5},
	} {
		if got := plan.EntryFor(tc.pod); got != tc.want {
			t.Errorf("%s: entry %d, want %d", tc.name, got, tc.want)
		}
	}
	if got := mustPlan(t, defaultPods(10)).EntryFor(pod(11, "web")); got != 1 {
		t.Errorf("a pod that no entry takes: entry %d, want 1", got)
	}
}

func TestCompletePlan(t *testing.T) {
	standard := StandardPlan()
	if len(standard) != 12 {
		t.Fatalf("%d standard entries", len(standard))
	}
	for _, tc := range []struct {
		name       string
		plan, want []v1.DrainPlanEntry
	}{
		{"empty", nil, standard},
		{"complete", standard, standard},
		{"one entry of the user, first", []v1.DrainPlanEntry{defaultPods(5)}, append([]v1.DrainPlanEntry{defaultPods(5)}, standard...)},
		{
			"entries in each type",
			[]v1.DrainPlanEntry{defaultPods(5), ofApp("db", defaultPods(2000000000)), daemonPods(2147483647), staticPods(7)},
			[]v1.DrainPlanEntry{
				defaultPods(5), defaultPods(1000000000), ofApp("db", defaultPods(2000000000)), defaultPods(2000000000), defaultPods(2000001000), defaultPods(2147483647),
				daemonPods(1000000000), daemonPods(2000000000), daemonPods(2000001000), daemonPods(2147483647),
				staticPods(7), staticPods(1000000000), staticPods(2000000000), staticPods(2000001000), staticPods(2147483647),
			},
		},
		{
			"an empty selector is no selector",
			[]v1.DrainPlanEntry{{PodSelector: &metav1.LabelSelector{}, PodPriority: 1000000000, PodType: v1.PodTypeDefault}},
			append([]v1.DrainPlanEntry{{PodSelector: &metav1.LabelSelector{}, PodPriority: 1000000000, PodType: v1.PodTypeDefault}}, standard[1:]...),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := append([]v1.DrainPlanEntry{}, tc.plan...)
			if diff := cmp.Diff(tc.want, CompletePlan(tc.plan)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, append([]v1.DrainPlanEntry{}, tc.plan...)); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
}

func TestInvalidSelector(t *testing.T) {
	entry := defaultPods(1)
	entry.PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	if _, err := NewPlan([]v1.DrainPlanEntry{entry}); err == nil {
		t.Error("no error for a plan")
	}
	if _, err := NewTargets([]v1.DrainPlanEntry{entry}); err == nil {
		t.Error("no error for targets")
	}
}

// TestSelectorKey finds selectors that select the same pods, however they are written.
func TestSelectorKey(t *testing.T) {
	label := func(labels map[string]string, expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: expressions}
	}
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	web := map[string]string{"app": "web"}
	in := expression("app", metav1.LabelSelectorOpIn, "web")
	for _, tc := range []struct {
		name     string
		selector *metav1.LabelSelector
		want     string
	}{
		{"none", nil, ""},
		{"no requirement", label(nil), ""},
		{"a label", label(web), "app=web"},
		{"an expression of one value", label(nil, in), "app=web"},
		{"the same twice", label(web, in, in), "app=web"},
		{"one label", label(nil, expression("app", metav1.LabelSelectorOpExists), in), "app,app=web"},
		{"one label, in another order", label(nil, in, expression("app", metav1.LabelSelectorOpExists)), "app,app=web"},
		{"a value twice", label(nil, expression("app", metav1.LabelSelectorOpIn, "web", "web")), "app=web"},
		{"not, twice", label(nil, expression("app", metav1.LabelSelectorOpNotIn, "web", "web")), "app notin (web)"},
		{"several values, one twice", label(nil, expression("app", metav1.LabelSelectorOpIn, "web", "db", "web")), "app in (db,web)"},
		{"several values", label(nil, expression("app", metav1.LabelSelectorOpIn, "web", "db")), "app in (db,web)"},
		{"not", label(nil, expression("app", metav1.LabelSelectorOpNotIn, "web")), "app notin (web)"},
		{"in another order", label(nil, expression("b", metav1.LabelSelectorOpExists), in), "app=web,b"},
	} {
		if got := SelectorKey(tc.selector); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	targets := []v1.DrainPlanEntry{{PodType: v1.PodTypeDefault, PodPriority: 5, PodSelector: label(web)}}
	same := []v1.DrainPlanEntry{{PodType: v1.PodTypeDefault, PodPriority: 5, PodSelector: label(nil, in)}}
	if EntryKeyOf(targets[0]) != EntryKeyOf(same[0]) {
		t.Error("entries that differ in writing only count as different")
	}
}
