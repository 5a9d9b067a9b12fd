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

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

// TestEscalate checks what an admission says of its escalation: the strongest action so far, and for how
// long the clock has stood still, which is while pods are left of which none may leave.
func TestEscalate(t *testing.T) {
	now := time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)
	ago := func(seconds int) *metav1.Time {
		return ptr.To(metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second)))
	}
	left, leaving := progress.DrainState{Left: true}, progress.DrainState{Left: true, Draining: true}
	for name, test := range map[string]struct {
		before v1.MaintenanceAdmission
		view   status.View
		// finalizers is whether the maintenance waits until it has its finalizer.
		finalizers bool
		want       v1.MaintenanceAdmission
	}{
		"nothing":          {v1.MaintenanceAdmission{}, status.View{State: leaving}, false, v1.MaintenanceAdmission{}},
		"the first action": {v1.MaintenanceAdmission{}, status.View{State: leaving, Escalation: v1.MaintenanceEscalationSkipInterceptors}, false, v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationSkipInterceptors, EscalationTime: ago(0)}},
		"a stronger one": {v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationSkipInterceptors, EscalationTime: ago(9)}, status.View{State: leaving, Escalation: v1.MaintenanceEscalationIgnoreBudgets}, false,
			v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationIgnoreBudgets, EscalationTime: ago(0)}},
		"the same": {v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationIgnoreBudgets, EscalationTime: ago(9)}, status.View{State: leaving, Escalation: v1.MaintenanceEscalationIgnoreBudgets}, false,
			v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationIgnoreBudgets, EscalationTime: ago(9)}},
		"a weaker one": {v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationIgnoreBudgets, EscalationTime: ago(9)}, status.View{State: leaving, Escalation: v1.MaintenanceEscalationSkipInterceptors}, false,
			v1.MaintenanceAdmission{Escalation: v1.MaintenanceEscalationIgnoreBudgets, EscalationTime: ago(9)}},
		"it begins to wait":           {v1.MaintenanceAdmission{WaitedSeconds: 5}, status.View{State: left}, false, v1.MaintenanceAdmission{WaitedSeconds: 5, WaitingTime: ago(0)}},
		"it waits":                    {v1.MaintenanceAdmission{WaitingTime: ago(7)}, status.View{State: left}, false, v1.MaintenanceAdmission{WaitingTime: ago(7)}},
		"it has waited":               {v1.MaintenanceAdmission{WaitingTime: ago(7)}, status.View{State: leaving}, false, v1.MaintenanceAdmission{WaitedSeconds: 7}},
		"it has waited twice":         {v1.MaintenanceAdmission{WaitingTime: ago(7), WaitedSeconds: 5}, status.View{State: leaving}, false, v1.MaintenanceAdmission{WaitedSeconds: 12}},
		"the clock was set back":      {v1.MaintenanceAdmission{WaitingTime: ago(-7), WaitedSeconds: 5}, status.View{State: leaving}, false, v1.MaintenanceAdmission{WaitedSeconds: 5}},
		"no pod is left":              {v1.MaintenanceAdmission{WaitingTime: ago(7)}, status.View{}, false, v1.MaintenanceAdmission{WaitedSeconds: 7}},
		"the node cannot be cordoned": {v1.MaintenanceAdmission{}, status.View{State: left, CordonRefused: true}, false, v1.MaintenanceAdmission{}},
		"without its finalizer":       {v1.MaintenanceAdmission{}, status.View{State: left}, true, v1.MaintenanceAdmission{}},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := maintenance.NewEscalation([]coordinationv1alpha1.NodeMaintenanceEscalationStep{{AfterSeconds: 60, Action: v1.MaintenanceEscalationIgnoreBudgets}})
			if err != nil {
				t.Fatal(err)
			}
			o := progress.Spec{Name: "m", Effective: true, Stage: coordinationv1alpha1.NodeMaintenanceStageDrain, Escalation: parsed}
			facts := &Facts{Now: now, AwaitsFinalizers: test.finalizers}
			if test.view.State.Left {
				facts.Pods = podsOf(0)
			}
			test.view.Draining = []string{"m"}
			got := test.before
			d := &Decision{Facts: facts, View: &test.view}
			d.recordEscalation(&o, &got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("admission (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestNotice verifies that notice is given since a protection has ended, of at most what the escalation waits, and none
// if the clock was set back since.
func TestNotice(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now, actions := begun.Add(time.Hour), []v1.MaintenanceEscalation{v1.MaintenanceEscalationIgnoreBudgets}
	for name, test := range map[string]struct {
		ended       time.Time
		after, want time.Duration
	}{
		"nothing has ended":      {after: time.Hour},
		"just now":               {ended: now, after: time.Hour, want: EscalationGrace},
		"a minute ago":           {ended: now.Add(-time.Minute), after: time.Hour, want: EscalationGrace - time.Minute},
		"it comes to it sooner":  {ended: now, after: time.Second, want: time.Second},
		"long ago":               {ended: now.Add(-EscalationGrace - time.Second), after: time.Hour},
		"the clock was set back": {ended: now.Add(time.Hour), after: time.Hour},
	} {
		e := &Escalations{Now: now, Begun: begun}
		if got := e.withNotice(&v1.MaintenanceAdmission{}, actions, test.after, 0, test.ended); got != test.want {
			t.Errorf("%s: waits %s, want %s", name, got, test.want)
		}
	}
}

func podsOf(priorities ...int32) []Pod {
	var pods []Pod
	for _, priority := range priorities {
		pods = append(pods, Pod{Pod: &v1.Pod{Spec: v1.PodSpec{Priority: &priority}}, Verdict: progress.Verdict{Wanted: true}})
	}
	return pods
}
