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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

const (
	idle     = coordination.NodeMaintenanceStageIdle
	cordon   = coordination.NodeMaintenanceStageCordon
	drain    = coordination.NodeMaintenanceStageDrain
	complete = coordination.NodeMaintenanceStageComplete
)

// newMaintenance returns a valid maintenance with the given changes.
func newMaintenance(changes ...func(*coordination.NodeMaintenance)) *coordination.NodeMaintenance {
	maintenance := &coordination.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "upgrade", ResourceVersion: "1", Generation: 3},
		Spec: coordination.NodeMaintenanceSpec{
			NodeSelector: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{{Key: "pool", Operator: core.NodeSelectorOpIn, Values: []string{"old"}}},
			}}},
			Stage: idle,
		},
	}
	for _, change := range changes {
		change(maintenance)
	}
	return maintenance
}

func inStage(stage coordination.NodeMaintenanceStage) func(*coordination.NodeMaintenance) {
	return func(m *coordination.NodeMaintenance) { m.Spec.Stage = stage }
}

func selecting(terms ...core.NodeSelectorTerm) func(*coordination.NodeMaintenance) {
	return func(m *coordination.NodeMaintenance) {
		m.Spec.NodeSelector = &core.NodeSelector{NodeSelectorTerms: terms}
	}
}

func onNode(operator core.NodeSelectorOperator, key string, names ...string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchFields: []core.NodeSelectorRequirement{{Key: key, Operator: operator, Values: names}}}
}

func labelled(key string, operator core.NodeSelectorOperator, values ...string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func withPlan(plan ...core.DrainPlanEntry) func(*coordination.NodeMaintenance) {
	return func(m *coordination.NodeMaintenance) { m.Spec.DrainPlan = plan }
}

func beingDeleted(m *coordination.NodeMaintenance) {
	m.DeletionTimestamp = at(0)
	m.Finalizers = []string{coordination.NodeMaintenanceFinalizer}
}

func TestValidateNodeMaintenanceCreate(t *testing.T) {
	selectorPath := field.NewPath("spec", "nodeSelector")
	terms := selectorPath.Child("nodeSelectorTerms")
	tests := map[string]struct {
		maintenance *coordination.NodeMaintenance
		want        field.ErrorList
	}{
		"valid":                  {maintenance: newMaintenance()},
		"idle":                   {maintenance: newMaintenance(inStage(idle))},
		"created in Cordon":      {maintenance: newMaintenance(inStage(cordon))},
		"created in Drain":       {maintenance: newMaintenance(inStage(drain))},
		"created in Complete":    {maintenance: newMaintenance(inStage(complete))},
		"a node by name":         {maintenance: newMaintenance(selecting(onNode(core.NodeSelectorOpIn, "metadata.name", "node-1")))},
		"all nodes but one":      {maintenance: newMaintenance(selecting(onNode(core.NodeSelectorOpNotIn, "metadata.name", "node-1")))},
		"several nodes":          {maintenance: newMaintenance(selecting(onNode(core.NodeSelectorOpIn, "metadata.name", "node-1"), onNode(core.NodeSelectorOpIn, "metadata.name", "node-2")))},
		"a term that is empty":   {maintenance: newMaintenance(selecting(core.NodeSelectorTerm{}))},
		"a finalizer and a plan": {maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Finalizers = []string{coordination.NodeMaintenanceFinalizer} }, withPlan(defaultPods(1)))},
		"left to declarative validation: no selector": {
			maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Spec.NodeSelector = nil }),
		},
		"left to declarative validation: an unknown stage": {maintenance: newMaintenance(inStage("Pause"))},
		"left to declarative validation: no stage":         {maintenance: newMaintenance(inStage(""))},
		"no term": {
			maintenance: newMaintenance(selecting()),
			want:        field.ErrorList{field.Required(terms, "must have at least one node selector term")},
		},
		"an unknown operator": {
			maintenance: newMaintenance(selecting(labelled("pool", "Like", "old"))),
			want:        field.ErrorList{field.Invalid(terms.Index(0).Child("matchExpressions").Index(0).Child("operator"), nil, "not a valid selector operator")},
		},
		"an invalid value": {
			maintenance: newMaintenance(selecting(labelled("pool", core.NodeSelectorOpIn, "not valid"))),
			want:        field.ErrorList{field.Invalid(terms.Index(0).Child("matchExpressions").Index(0).Child("values").Index(0), nil, "a valid label must be")},
		},
		"a field that cannot be selected by": {
			maintenance: newMaintenance(selecting(onNode(core.NodeSelectorOpIn, "spec.unschedulable", "true"))),
			want:        field.ErrorList{field.Invalid(terms.Index(0).Child("matchFields").Index(0).Child("key"), nil, "not a valid field selector key")},
		},
		"two names at once": {
			maintenance: newMaintenance(selecting(onNode(core.NodeSelectorOpIn, "metadata.name", "node-1", "node-2"))),
			want:        field.ErrorList{field.Required(terms.Index(0).Child("matchFields").Index(0).Child("values"), "must be only one value")},
		},
		"a name that no node can have": {
			maintenance: newMaintenance(selecting(labelled("a", core.NodeSelectorOpExists), onNode(core.NodeSelectorOpIn, "metadata.name", "Node_1"))),
			want:        field.ErrorList{field.Invalid(terms.Index(1).Child("matchFields").Index(0).Child("values").Index(0), nil, "a lowercase RFC 1123 subdomain")},
		},
		"a namespace": {
			maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Namespace = "prod" }),
			want:        field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), "not allowed on this type")},
		},
		"an invalid name": {
			maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Name = "Upgrade_1" }),
			want:        field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "a lowercase RFC 1123 subdomain")},
		},
		"an invalid plan": {
			maintenance: newMaintenance(withPlan(defaultPods(2), defaultPods(1))),
			want:        field.ErrorList{field.Invalid(field.NewPath("spec", "drainPlan").Index(1), nil, "must come before spec.drainPlan[0]")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceCreate(test.maintenance))
		})
	}
}

func TestValidateNodeMaintenanceUpdate(t *testing.T) {
	planPath, terms := field.NewPath("spec", "drainPlan"), field.NewPath("spec", "nodeSelector", "nodeSelectorTerms")
	invalidSelector := selecting(labelled("pool", "Like", "old"))
	tests := map[string]struct {
		old, maintenance *coordination.NodeMaintenance
		want             field.ErrorList
	}{
		"unchanged":                         {old: newMaintenance(), maintenance: newMaintenance()},
		"other nodes":                       {old: newMaintenance(), maintenance: newMaintenance(selecting(onNode(core.NodeSelectorOpIn, "metadata.name", "node-1")))},
		"another reason":                    {old: newMaintenance(), maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Spec.Reason = "firmware" })},
		"an empty plan is no plan":          {old: newMaintenance(withPlan()), maintenance: newMaintenance(withPlan([]core.DrainPlanEntry{}...))},
		"a stored selector that is invalid": {old: newMaintenance(invalidSelector), maintenance: newMaintenance(invalidSelector, inStage(complete))},
		"a stored plan that is invalid":     {old: newMaintenance(withPlan(defaultPods(2), defaultPods(1))), maintenance: newMaintenance(withPlan(defaultPods(2), defaultPods(1)), inStage(complete))},
		"left to declarative validation: the selector is removed": {
			old: newMaintenance(), maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Spec.NodeSelector = nil }),
		},
		"an invalid selector": {
			old: newMaintenance(), maintenance: newMaintenance(invalidSelector),
			want: field.ErrorList{field.Invalid(terms.Index(0).Child("matchExpressions").Index(0).Child("operator"), nil, "not a valid selector operator")},
		},
		"a plan is added": {
			old: newMaintenance(), maintenance: newMaintenance(withPlan(defaultPods(1))),
			want: field.ErrorList{field.Invalid(planPath, nil, `is immutable: keep "" or create another NodeMaintenance with this plan`)},
		},
		"the plan is removed": {
			old: newMaintenance(withPlan(defaultPods(1), ofApp("db", defaultPods(2)))), maintenance: newMaintenance(),
			want: field.ErrorList{field.Invalid(planPath, nil, `is immutable: keep "Default<=1, Default<=2{app=db}"`)},
		},
		"another priority": {
			old: newMaintenance(withPlan(defaultPods(1))), maintenance: newMaintenance(withPlan(defaultPods(2))),
			want: field.ErrorList{field.Invalid(planPath, nil, "is immutable")},
		},
		"another plan while it is deleted": {
			old: newMaintenance(beingDeleted, withPlan(defaultPods(1))), maintenance: newMaintenance(beingDeleted, inStage(complete)),
			want: field.ErrorList{field.Invalid(planPath, nil, "is immutable")},
		},
		"another name": {
			old: newMaintenance(), maintenance: newMaintenance(func(m *coordination.NodeMaintenance) { m.Name = "other" }),
			want: field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "field is immutable")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceUpdate(test.maintenance, test.old))
		})
	}
}

// All transitions, with and without a deletionTimestamp.
func TestStageTransitions(t *testing.T) {
	forward := map[coordination.NodeMaintenanceStage][]coordination.NodeMaintenanceStage{
		idle:     {idle, cordon, drain, complete},
		cordon:   {cordon, drain, complete},
		drain:    {drain, complete},
		complete: {complete},
	}
	for old, allowed := range forward {
		for _, stage := range []coordination.NodeMaintenanceStage{idle, cordon, drain, complete} {
			want := field.ErrorList{field.Invalid(field.NewPath("spec", "stage"), nil, "must not go back from "+string(old)+": the order is Idle, Cordon, Drain, Complete; create another NodeMaintenance to start again")}
			for _, one := range allowed {
				if one == stage {
					want = nil
				}
			}
			t.Run(string(old)+" to "+string(stage), func(t *testing.T) {
				matcher.Test(t, want, ValidateNodeMaintenanceUpdate(newMaintenance(inStage(stage)), newMaintenance(inStage(old))))
			})
			t.Run(string(old)+" to "+string(stage)+" while it is deleted", func(t *testing.T) {
				matcher.Test(t, want, ValidateNodeMaintenanceUpdate(newMaintenance(beingDeleted, inStage(stage)), newMaintenance(beingDeleted, inStage(old))))
			})
		}
		t.Run(string(old)+" to a stage that is left to declarative validation", func(t *testing.T) {
			matcher.Test(t, nil, ValidateNodeMaintenanceUpdate(newMaintenance(inStage("Pause")), newMaintenance(inStage(old))))
		})
	}
	t.Run("from a stage of another server", func(t *testing.T) {
		matcher.Test(t, nil, ValidateNodeMaintenanceUpdate(newMaintenance(inStage(complete)), newMaintenance(inStage("Pause"))))
	})
}
