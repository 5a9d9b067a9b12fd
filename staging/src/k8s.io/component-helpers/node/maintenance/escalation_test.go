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
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

const (
	skipInterceptors = v1.MaintenanceEscalationSkipInterceptors
	ignoreBudgets    = v1.MaintenanceEscalationIgnoreBudgets
	forceDelete      = v1.MaintenanceEscalationForceDelete
)

type escalationSpec = []coordinationv1alpha1.NodeMaintenanceEscalationStep

func escalate(after int32, action v1.MaintenanceEscalation) coordinationv1alpha1.NodeMaintenanceEscalationStep {
	return coordinationv1alpha1.NodeMaintenanceEscalationStep{AfterSeconds: after, Action: action}
}

// selecting limits a step to pods, or to namespaces, with a label.
func selecting(step coordinationv1alpha1.NodeMaintenanceEscalationStep, pods, namespaces string) coordinationv1alpha1.NodeMaintenanceEscalationStep {
	if pods != "" {
		step.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pods}}
	}
	if namespaces != "" {
		step.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": namespaces}}
	}
	return step
}

func TestEscalatesTo(t *testing.T) {
	ordered := []v1.MaintenanceEscalation{skipInterceptors, ignoreBudgets, forceDelete}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := EscalatesTo(a, b); got != (i >= j) {
				t.Errorf("%s escalates to %s: %t", a, b, got)
			}
		}
		if EscalatesTo("PowerOff", a) || EscalatesTo("", a) {
			t.Errorf("an unknown action, or none, escalates to %s", a)
		}
	}
}

func TestEscalationsFor(t *testing.T) {
	tainted := func(keys ...string) *v1.Node {
		node := &v1.Node{}
		for _, key := range keys {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoExecute})
		}
		return node
	}
	ready := func(node *v1.Node) *v1.Node {
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		return node
	}
	for name, test := range map[string]struct {
		node *v1.Node
		want []v1.MaintenanceEscalation
	}{
		"a node":                     {tainted(), []v1.MaintenanceEscalation{ignoreBudgets, skipInterceptors}},
		"a node that does not react": {tainted(v1.TaintNodeUnreachable), []v1.MaintenanceEscalation{ignoreBudgets, skipInterceptors}},
		"a node that is Ready":       {ready(tainted(v1.TaintNodeOutOfService)), []v1.MaintenanceEscalation{ignoreBudgets, skipInterceptors}},
		"a node out of service":      {tainted(v1.TaintNodeUnreachable, v1.TaintNodeOutOfService), []v1.MaintenanceEscalation{forceDelete, ignoreBudgets, skipInterceptors}},
	} {
		if diff := cmp.Diff(test.want, EscalationsFor(test.node)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", name, diff)
		}
	}
}

func TestEscalationAfter(t *testing.T) {
	all := []v1.MaintenanceEscalation{forceDelete, ignoreBudgets, skipInterceptors}
	pod := func(app string, grace *int64) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: v1.PodSpec{TerminationGracePeriodSeconds: grace}}
	}
	web := pod("web", ptr.To[int64](10))
	never := time.Duration(-1)
	for name, test := range map[string]struct {
		steps    escalationSpec
		pod      *v1.Pod
		actions  []v1.MaintenanceEscalation
		unlisted bool
		want     time.Duration
	}{
		"no step":                              {want: never},
		"interceptors":                         {steps: escalationSpec{escalate(60, skipInterceptors)}, want: time.Minute},
		"force":                                {steps: escalationSpec{escalate(60, forceDelete)}, want: time.Minute},
		"budgets, with the grace period":       {steps: escalationSpec{escalate(60, ignoreBudgets)}, want: 50 * time.Second},
		"budgets, without one":                 {steps: escalationSpec{escalate(60, ignoreBudgets)}, pod: pod("web", nil), want: 30 * time.Second},
		"budgets, with none":                   {steps: escalationSpec{escalate(60, ignoreBudgets)}, pod: pod("web", ptr.To[int64](0)), want: time.Minute},
		"budgets, with a negative one":         {steps: escalationSpec{escalate(60, ignoreBudgets)}, pod: pod("web", ptr.To[int64](-5)), want: time.Minute},
		"budgets, with a longer one":           {steps: escalationSpec{escalate(60, ignoreBudgets)}, pod: pod("web", ptr.To[int64](3600))},
		"budgets, with the longest there is":   {steps: escalationSpec{escalate(60, ignoreBudgets)}, pod: pod("web", ptr.To[int64](math.MaxInt64))},
		"budgets, with one that overflows":     {steps: escalationSpec{escalate(60, ignoreBudgets)}, pod: pod("web", ptr.To[int64](13835058055))},
		"the earliest of all":                  {steps: escalationSpec{escalate(60, skipInterceptors), escalate(65, ignoreBudgets)}, want: 55 * time.Second},
		"the earliest of some":                 {steps: escalationSpec{escalate(60, skipInterceptors), escalate(90, ignoreBudgets)}, actions: all[:2], want: 80 * time.Second},
		"an action that is not possible":       {steps: escalationSpec{escalate(60, forceDelete)}, actions: all[1:], want: never},
		"an action that is not known":          {steps: escalationSpec{escalate(60, "PowerOff"), escalate(90, skipInterceptors)}, want: 90 * time.Second},
		"the first that selects the pod":       {steps: escalationSpec{selecting(escalate(60, skipInterceptors), "db", ""), selecting(escalate(90, skipInterceptors), "web", "")}, want: 90 * time.Second},
		"none that selects the pod":            {steps: escalationSpec{selecting(escalate(60, skipInterceptors), "db", "")}, want: never},
		"the namespace":                        {steps: escalationSpec{selecting(escalate(60, skipInterceptors), "web", "batch")}, want: time.Minute},
		"another namespace":                    {steps: escalationSpec{selecting(escalate(60, skipInterceptors), "web", "prod")}, want: never},
		"a namespace that is not known":        {steps: escalationSpec{selecting(escalate(60, skipInterceptors), "", "batch"), escalate(90, skipInterceptors)}, unlisted: true, want: 90 * time.Second},
		"all namespaces, though none is known": {steps: escalationSpec{{AfterSeconds: 60, Action: skipInterceptors, NamespaceSelector: &metav1.LabelSelector{}}}, unlisted: true, want: time.Minute},
		"a namespace without a label, not known": {
			steps: escalationSpec{{AfterSeconds: 60, Action: skipInterceptors, NamespaceSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "owner", Operator: metav1.LabelSelectorOpDoesNotExist}},
			}}}, unlisted: true, want: never,
		},
	} {
		t.Run(name, func(t *testing.T) {
			escalation, err := NewEscalation(test.steps)
			if err != nil {
				t.Fatal(err)
			}
			if test.pod == nil {
				test.pod = web
			}
			if test.actions == nil {
				test.actions = all
			}
			got, found := escalation.After(test.pod, test.actions, func() (labels.Set, bool) { return labels.Set{"team": "batch"}, !test.unlisted })
			if !found {
				got = never
			}
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestNewEscalation(t *testing.T) {
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	for want, steps := range map[string]escalationSpec{
		"escalation[1].podSelector: ":       {escalate(60, skipInterceptors), {Action: skipInterceptors, PodSelector: invalid}},
		"escalation[0].namespaceSelector: ": {{Action: skipInterceptors, NamespaceSelector: invalid}},
	} {
		if _, err := NewEscalation(steps); err == nil || err.Error()[:len(want)] != want {
			t.Errorf("got %v, want %s...", err, want)
		}
	}
	var none *Escalation
	if _, found := none.After(&v1.Pod{}, []v1.MaintenanceEscalation{skipInterceptors}, nil); found || !none.IsEmpty() {
		t.Error("nil is an escalation")
	}
	for name, test := range map[string]struct {
		steps escalationSpec
		empty bool
	}{
		"none":            {empty: true},
		"only an unknown": {steps: escalationSpec{escalate(60, "PowerOff")}, empty: true},
		"one of pods":     {steps: escalationSpec{selecting(escalate(60, skipInterceptors), "web", "")}},
		"of namespaces":   {steps: escalationSpec{escalate(60, skipInterceptors), selecting(escalate(60, skipInterceptors), "", "batch")}},
	} {
		escalation, err := NewEscalation(test.steps)
		if err != nil || escalation.IsEmpty() != test.empty {
			t.Errorf("%s: error %v, empty %t", name, err, escalation.IsEmpty())
		}
	}
}

func TestEscalationClock(t *testing.T) {
	admitted := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: admitted.Add(time.Duration(minutes) * time.Minute)}
	}
	for name, test := range map[string]struct {
		now     int
		waiting *metav1.Time
		waited  int32
		want    string
	}{
		"at the admission":                {now: 0, want: "0s true"},
		"later":                           {now: 10, want: "10m0s true"},
		"after a wait":                    {now: 10, waited: 120, want: "8m0s true"},
		"in a wait":                       {now: 10, waiting: at(3), want: "3m0s false"},
		"in a second wait":                {now: 10, waiting: at(5), waited: 120, want: "3m0s false"},
		"before the admission":            {now: -60, want: "0s true"},
		"in a wait that is in the future": {now: 2, waiting: at(60), want: "2m0s false"},
		"before the admission and a wait": {now: -60, waiting: at(3), want: "0s false"},
		"waited for longer than since":    {now: 1, waited: 120, want: "0s true"},
		"waited for ever":                 {now: 1, waited: math.MaxInt32, want: "0s true"},
	} {
		admission := &v1.MaintenanceAdmission{AdmittedTime: *at(0), WaitingTime: test.waiting, WaitedSeconds: test.waited}
		elapsed, running := EscalationClock(admission, at(test.now).Time)
		if got := fmt.Sprint(elapsed, " ", running); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestIsEscalated(t *testing.T) {
	request := func(status metav1.ConditionStatus) *coordinationv1alpha1.EvictionRequest {
		return &coordinationv1alpha1.EvictionRequest{Status: coordinationv1alpha1.EvictionRequestStatus{Conditions: []metav1.Condition{{Type: "InterceptorsSkipped", Status: status}}}}
	}
	pod := func(reason string, status v1.ConditionStatus) *v1.Pod {
		return &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: status, Reason: reason}}}}
	}
	for name, test := range map[string]struct {
		pod     *v1.Pod
		request *coordinationv1alpha1.EvictionRequest
		want    bool
	}{
		"nothing":               {pod: &v1.Pod{}},
		"a request":             {pod: &v1.Pod{}, request: &coordinationv1alpha1.EvictionRequest{}},
		"passed over":           {pod: &v1.Pod{}, request: request(metav1.ConditionTrue), want: true},
		"not passed over":       {pod: &v1.Pod{}, request: request(metav1.ConditionFalse)},
		"deleted":               {pod: pod(PodReasonDeletionByNodeMaintenance, v1.ConditionTrue), want: true},
		"not deleted":           {pod: pod(PodReasonDeletionByNodeMaintenance, v1.ConditionFalse)},
		"deleted by the others": {pod: pod(v1.PodReasonTerminationByKubelet, v1.ConditionTrue)},
	} {
		if got := IsEscalated(test.pod, test.request); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
