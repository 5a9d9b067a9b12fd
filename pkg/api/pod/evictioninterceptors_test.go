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

package pod

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

func TestDropDisabledEvictionInterceptors(t *testing.T) {
	some := []api.EvictionInterceptor{{Name: "migrate.example.com"}}
	others := []api.EvictionInterceptor{{Name: "other.example.com"}}
	with := func(interceptors []api.EvictionInterceptor) *api.Pod {
		return &api.Pod{Spec: api.PodSpec{EvictionInterceptors: interceptors, NodeName: "node"}}
	}
	tests := map[string]struct {
		old    *api.Pod
		pod    *api.Pod
		kept   bool // with the gate off
		always []api.EvictionInterceptor
	}{
		"created with some":            {pod: with(some), always: some},
		"created without":              {pod: with(nil)},
		"had none, gets some":          {old: with(nil), pod: with(some), always: some},
		"had an empty list, gets some": {old: with([]api.EvictionInterceptor{}), pod: with(some), always: some},
		"has some, keeps them":         {old: with(some), pod: with(some), kept: true, always: some},
		"has some, gets others":        {old: with(others), pod: with(some), kept: true, always: some},
		"has some, loses them":         {old: with(some), pod: with(nil), kept: true},
	}
	for name, test := range tests {
		for _, enabled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, gate on %t", name, enabled), func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, enabled)
				want := with(nil)
				if enabled || test.kept {
					want = with(test.always)
				}
				oldBefore := test.old.DeepCopy()

				pod := test.pod.DeepCopy()
				DropDisabledPodFields(pod, test.old)
				if diff := cmp.Diff(want, pod); diff != "" {
					t.Errorf("unexpected pod (-want, +got):\n%s", diff)
				}
				template := &api.PodTemplateSpec{Spec: *test.pod.Spec.DeepCopy()}
				var oldTemplate *api.PodTemplateSpec
				if test.old != nil {
					oldTemplate = &api.PodTemplateSpec{Spec: test.old.Spec}
				}
				DropDisabledTemplateFields(template, oldTemplate)
				if diff := cmp.Diff(&api.PodTemplateSpec{Spec: want.Spec}, template); diff != "" {
					t.Errorf("unexpected template (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(oldBefore, test.old); diff != "" {
					t.Errorf("the stored pod was changed (-before, +after):\n%s", diff)
				}
			})
		}
	}
}

// What an update leaves alone is told from what it changes by the stored annotations,
// of pods and of pod templates.
func TestValidationOptionsHoldStoredAnnotations(t *testing.T) {
	spec, annotations := &api.PodSpec{}, map[string]string{"example.com/a": "b"}
	stored := &metav1.ObjectMeta{Annotations: annotations}
	if diff := cmp.Diff(annotations, GetValidationOptionsFromPodSpecAndMeta(spec, spec, &metav1.ObjectMeta{}, stored).StoredAnnotations); diff != "" {
		t.Errorf("update of a pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(annotations, GetValidationOptionsFromPodTemplate(&api.PodTemplateSpec{}, &api.PodTemplateSpec{ObjectMeta: *stored}).StoredAnnotations); diff != "" {
		t.Errorf("update of a template (-want +got):\n%s", diff)
	}
	if got := GetValidationOptionsFromPodSpecAndMeta(spec, nil, stored, nil).StoredAnnotations; got != nil {
		t.Errorf("creation of a pod: %v", got)
	}
}

// warnings records what clients are told.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// TestKeepEvictionInterceptors: a client with other types omits the list when it replaces a pod.
func TestKeepEvictionInterceptors(t *testing.T) {
	some, others := []api.EvictionInterceptor{{Name: "migrate.example.com"}, {Name: "wait.example.com"}}, []api.EvictionInterceptor{{Name: "other.example.com"}}
	for name, test := range map[string]struct {
		old, update, want []api.EvictionInterceptor
		warns             bool
	}{
		"omitted":           {old: some, want: some, warns: true},
		"emptied":           {old: some, update: []api.EvictionInterceptor{}, want: some, warns: true},
		"sent":              {old: some, update: some, want: some},
		"changed":           {old: some, update: others, want: others}, // Validation rejects it.
		"none":              {},
		"none, and added":   {update: some, want: some},
		"an empty list":     {old: []api.EvictionInterceptor{}},
		"none, an empty is": {update: []api.EvictionInterceptor{}, want: []api.EvictionInterceptor{}},
	} {
		for _, enabled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, gate on %t", name, enabled), func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, enabled)
				recorder := &warnings{}
				pod, old := &api.Pod{Spec: api.PodSpec{EvictionInterceptors: test.update}}, &api.Pod{Spec: api.PodSpec{EvictionInterceptors: test.old}}
				KeepEvictionInterceptors(warning.WithWarningRecorder(t.Context(), recorder), pod, old)
				if diff := cmp.Diff(test.want, pod.Spec.EvictionInterceptors); diff != "" {
					t.Errorf("unexpected list (-want, +got):\n%s", diff)
				}
				if (len(recorder.texts) > 0) != test.warns {
					t.Errorf("warnings %q", recorder.texts)
				}
			})
		}
	}
}

func TestWarningsForDroppedEvictionInterceptors(t *testing.T) {
	template := func(names ...string) *api.PodTemplateSpec {
		template := &api.PodTemplateSpec{}
		for _, name := range names {
			template.Spec.EvictionInterceptors = append(template.Spec.EvictionInterceptors, api.EvictionInterceptor{Name: name})
		}
		return template
	}
	path := field.NewPath("template")
	for name, test := range map[string]struct {
		old, template *api.PodTemplateSpec
		want          []string
	}{
		"dropped": {old: template("a.example.com", "b.example.com"), template: template(), want: []string{
			"template.spec.evictionInterceptors: the update removes the interceptors a.example.com, b.example.com, and new pods have none of them: if that is not intended, " +
				"the client does not know the field; annotations of the template, which register interceptors as well, are kept by all clients"}},
		"reduced":      {old: template("a.example.com", "b.example.com"), template: template("a.example.com")},
		"kept":         {old: template("a.example.com"), template: template("a.example.com")},
		"never had":    {old: template(), template: template()},
		"created":      {template: template()},
		"created with": {template: template("a.example.com")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, GetWarningsForPodTemplate(t.Context(), path, test.template, test.old)); diff != "" {
				t.Errorf("unexpected warnings (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestWarningsForCrowdedEvictionInterceptors: without this warning, the controllers would leave their names out silently.
func TestWarningsForCrowdedEvictionInterceptors(t *testing.T) {
	named := func(inSpec, byAnnotation int) *api.PodTemplateSpec {
		template := &api.PodTemplateSpec{}
		for i := range inSpec {
			template.Spec.EvictionInterceptors = append(template.Spec.EvictionInterceptors, api.EvictionInterceptor{Name: fmt.Sprintf("i%d.example.com", i)})
		}
		template.Annotations = map[string]string{}
		for i := range byAnnotation {
			template.Annotations[fmt.Sprintf("interceptor.evictionrequest.coordination.k8s.io/priority_a%d.example.com", i)] = "1"
		}
		return template
	}
	const text = "template.spec.evictionInterceptors: with %d interceptors, new pods have no room for those of the controllers of %s, because a pod has at most 15: " +
		"they are neither replaced before their eviction nor evicted one after another; name at most 13"
	for name, test := range map[string]struct {
		template *api.PodTemplateSpec
		disabled bool
		want     []string
	}{
		"none":           {template: named(0, 0)},
		"room for two":   {template: named(13, 0)},
		"room for one":   {template: named(14, 0), want: []string{fmt.Sprintf(text, 14, "Deployments")}},
		"no room":        {template: named(15, 0), want: []string{fmt.Sprintf(text, 15, "Deployments and StatefulSets")}},
		"by annotations": {template: named(10, 5), want: []string{fmt.Sprintf(text, 15, "Deployments and StatefulSets")}},
		"gate off":       {template: named(15, 0), disabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, !test.disabled)
			if diff := cmp.Diff(test.want, GetWarningsForPodTemplate(t.Context(), field.NewPath("template"), test.template, nil)); diff != "" {
				t.Errorf("unexpected warnings (-want, +got):\n%s", diff)
			}
		})
	}
}
