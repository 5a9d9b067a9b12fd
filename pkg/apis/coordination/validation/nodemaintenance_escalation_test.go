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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

type escalationSteps = []coordination.NodeMaintenanceEscalationStep

func escalatingAfter(seconds int32, action core.MaintenanceEscalation) coordination.NodeMaintenanceEscalationStep {
	return coordination.NodeMaintenanceEscalationStep{AfterSeconds: seconds, Action: action}
}

// escalating sets an escalation, and a rollout, which it needs.
func escalating(steps ...coordination.NodeMaintenanceEscalationStep) func(*coordination.NodeMaintenance) {
	return func(m *coordination.NodeMaintenance) {
		m.Spec.Rollout, m.Spec.Escalation = &coordination.NodeMaintenanceRollout{}, steps
	}
}

func withoutRollout(m *coordination.NodeMaintenance) { m.Spec.Rollout = nil }

func TestValidateEscalation(t *testing.T) {
	const skip, ignore, force = core.MaintenanceEscalationSkipInterceptors, core.MaintenanceEscalationIgnoreBudgets, core.MaintenanceEscalationForceDelete
	path := field.NewPath("spec", "escalation")
	db := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	invalid := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not valid"}}
	large := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := range 11 {
		large.MatchLabels[fmt.Sprint("label-", i)] = ""
	}
	ofPods := func(selector *metav1.LabelSelector) coordination.NodeMaintenanceEscalationStep {
		return coordination.NodeMaintenanceEscalationStep{AfterSeconds: 60, Action: ignore, PodSelector: selector}
	}
	ofNamespaces := func(selector *metav1.LabelSelector) coordination.NodeMaintenanceEscalationStep {
		return coordination.NodeMaintenanceEscalationStep{AfterSeconds: 60, Action: ignore, NamespaceSelector: selector}
	}
	for name, test := range map[string]struct {
		steps escalationSteps
		alone bool
		want  field.ErrorList
		// update is what an update says instead.
		update field.ErrorList
	}{
		"none":                     {},
		"none, without a rollout":  {alone: true},
		"empty, without a rollout": {steps: escalationSteps{}, alone: true},
		"all actions":              {steps: escalationSteps{escalatingAfter(60, skip), escalatingAfter(120, ignore), escalatingAfter(180, force)}},
		"all at once":              {steps: escalationSteps{escalatingAfter(60, force), escalatingAfter(60, skip), escalatingAfter(60, ignore)}},
		"pods and namespaces":      {steps: escalationSteps{ofPods(db), ofNamespaces(db), ofPods(&metav1.LabelSelector{})}},
		"without a rollout": {steps: escalationSteps{escalatingAfter(60, skip)}, alone: true,
			want: field.ErrorList{field.Forbidden(path, "needs spec.rollout, because the clock of a node begins with its admission: set spec.rollout, which limits nothing if it is {}")},
			// A rollout must not be added.
			update: field.ErrorList{field.Forbidden(path, "needs spec.rollout, because the clock of a node begins with its admission: create another NodeMaintenance with both, and complete this one")}},
		"not sorted": {steps: escalationSteps{escalatingAfter(60, skip), escalatingAfter(59, ignore), escalatingAfter(60, force)},
			want: field.ErrorList{field.Invalid(path.Index(1).Child("afterSeconds"), nil, "must not be less than that of the step before, 60: sort the steps by afterSeconds")}},
		"an unknown action":            {steps: escalationSteps{escalatingAfter(60, "PowerOff")}, want: field.ErrorList{field.NotSupported(path.Index(0).Child("action"), "PowerOff", []core.MaintenanceEscalation{skip, ignore, force})}},
		"another case":                 {steps: escalationSteps{escalatingAfter(60, "forceDelete")}, want: field.ErrorList{field.NotSupported(path.Index(0).Child("action"), "forceDelete", []core.MaintenanceEscalation{skip, ignore, force})}},
		"no action, left to others":    {steps: escalationSteps{escalatingAfter(60, "")}},
		"invalid labels of pods":       {steps: escalationSteps{ofPods(invalid)}, want: field.ErrorList{field.Invalid(path.Index(0).Child("podSelector", "matchLabels"), nil, "a valid label must be")}},
		"invalid labels of namespaces": {steps: escalationSteps{ofNamespaces(invalid)}, want: field.ErrorList{field.Invalid(path.Index(0).Child("namespaceSelector", "matchLabels"), nil, "a valid label must be")}},
		"many labels of pods":          {steps: escalationSteps{ofPods(large)}, want: field.ErrorList{field.TooMany(path.Index(0).Child("podSelector"), 11, 10)}},
		"many labels of namespaces":    {steps: escalationSteps{ofNamespaces(large)}, want: field.ErrorList{field.TooMany(path.Index(0).Child("namespaceSelector"), 11, 10)}},
	} {
		t.Run(name, func(t *testing.T) {
			maintenance, old := newMaintenance(escalating(test.steps...)), newMaintenance(escalating())
			if test.alone {
				withoutRollout(maintenance)
				withoutRollout(old)
			}
			matcher.Test(t, test.want, ValidateNodeMaintenanceCreate(maintenance))
			// It may be added, and what is stored is not validated again.
			if test.update == nil {
				test.update = test.want
			}
			matcher.Test(t, test.update, ValidateNodeMaintenanceUpdate(maintenance, old))
			matcher.Test(t, nil, ValidateNodeMaintenanceUpdate(maintenance, maintenance.DeepCopy()))
			// It may always be removed.
			matcher.Test(t, nil, ValidateNodeMaintenanceUpdate(old, maintenance))
		})
	}
}
