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

func withPolicies(policies ...coordination.NodeMaintenancePodPolicy) func(*coordination.NodeMaintenance) {
	return func(m *coordination.NodeMaintenance) { m.Spec.PodPolicies = policies }
}

// skip returns a policy that skips pods with these labels and resources. A nil selector selects all.
func skip(pods *metav1.LabelSelector, resources ...core.ResourceName) coordination.NodeMaintenancePodPolicy {
	return coordination.NodeMaintenancePodPolicy{Action: coordination.NodeMaintenancePodSkip, PodSelector: pods, ResourceNames: resources}
}

func TestValidatePodPolicies(t *testing.T) {
	path := field.NewPath("spec", "podPolicies")
	db := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	invalid := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not valid"}}
	large := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := range 11 {
		large.MatchLabels[fmt.Sprint("label-", i)] = ""
	}
	ofNamespaces := func(selector *metav1.LabelSelector) coordination.NodeMaintenancePodPolicy {
		return coordination.NodeMaintenancePodPolicy{Action: coordination.NodeMaintenancePodWaitCompleted, NamespaceSelector: selector}
	}
	notLast := func(i, follow int) field.ErrorList {
		return field.ErrorList{field.Invalid(path.Index(i), nil, fmt.Sprintf("must be the last one, because it matches all pods, so that those after it match none: "+
			"move it to the end, or give it a podSelector, namespaceSelector or resourceNames (%d follow)", follow))}
	}
	const aResource = "must be the name of a resource, such as cpu or nvidia.com/gpu: "
	for name, test := range map[string]struct {
		policies []coordination.NodeMaintenancePodPolicy
		want     field.ErrorList
	}{
		"none":                         {},
		"each condition":               {policies: []coordination.NodeMaintenancePodPolicy{skip(db), ofNamespaces(db), skip(nil, "nvidia.com/gpu", "memory"), skip(nil)}},
		"an empty selector":            {policies: []coordination.NodeMaintenancePodPolicy{skip(&metav1.LabelSelector{})}},
		"all pods, and others":         {policies: []coordination.NodeMaintenancePodPolicy{skip(db), skip(nil), skip(db), skip(nil)}, want: notLast(1, 2)},
		"invalid labels of pods":       {policies: []coordination.NodeMaintenancePodPolicy{skip(invalid)}, want: field.ErrorList{field.Invalid(path.Index(0).Child("podSelector", "matchLabels"), nil, "a valid label must be")}},
		"invalid labels of namespaces": {policies: []coordination.NodeMaintenancePodPolicy{ofNamespaces(invalid)}, want: field.ErrorList{field.Invalid(path.Index(0).Child("namespaceSelector", "matchLabels"), nil, "a valid label must be")}},
		"many labels of pods":          {policies: []coordination.NodeMaintenancePodPolicy{skip(large)}, want: field.ErrorList{field.TooMany(path.Index(0).Child("podSelector"), 11, 10)}},
		"many labels of namespaces":    {policies: []coordination.NodeMaintenancePodPolicy{ofNamespaces(large)}, want: field.ErrorList{field.TooMany(path.Index(0).Child("namespaceSelector"), 11, 10)}},
		"a resource twice":             {policies: []coordination.NodeMaintenancePodPolicy{skip(nil, "cpu", "cpu")}, want: field.ErrorList{field.Duplicate(path.Index(0).Child("resourceNames").Index(1), nil)}},
		"no resource":                  {policies: []coordination.NodeMaintenancePodPolicy{skip(nil, "a gpu")}, want: field.ErrorList{field.Invalid(path.Index(0).Child("resourceNames").Index(0), nil, aResource)}},
	} {
		t.Run(name, func(t *testing.T) {
			maintenance := newMaintenance(withPolicies(test.policies...))
			matcher.Test(t, test.want, ValidateNodeMaintenanceCreate(maintenance))
			// Stored ones are immutable, and not validated again.
			matcher.Test(t, nil, ValidateNodeMaintenanceUpdate(maintenance, maintenance.DeepCopy()))
		})
	}
}

func TestPoliciesAreImmutable(t *testing.T) {
	forbidden := func(name string) field.ErrorList {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", name), "is immutable: create another NodeMaintenance, which may select the same nodes, and complete this one")}
	}
	volumes := func(m *coordination.NodeMaintenance) {
		m.Spec.DrainedWhen = &coordination.NodeMaintenanceDrainedWhen{Volumes: coordination.NodeMaintenanceVolumesDetached}
	}
	for name, test := range map[string]struct {
		old, maintenance *coordination.NodeMaintenance
		want             field.ErrorList
	}{
		"no policy is an empty list": {old: newMaintenance(), maintenance: newMaintenance(withPolicies([]coordination.NodeMaintenancePodPolicy{}...))},
		"policies added":             {old: newMaintenance(), maintenance: newMaintenance(withPolicies(skip(nil))), want: forbidden("podPolicies")},
		"policies removed":           {old: newMaintenance(withPolicies(skip(nil))), maintenance: newMaintenance(), want: forbidden("podPolicies")},
		"volumes added":              {old: newMaintenance(), maintenance: newMaintenance(volumes), want: forbidden("drainedWhen")},
		"volumes removed":            {old: newMaintenance(volumes), maintenance: newMaintenance(), want: forbidden("drainedWhen")},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceUpdate(test.maintenance, test.old))
		})
	}
}
