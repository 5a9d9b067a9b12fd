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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

func interceptors(names ...string) []core.EvictionInterceptor {
	var interceptors []core.EvictionInterceptor
	for _, name := range names {
		interceptors = append(interceptors, core.EvictionInterceptor{Name: name})
	}
	return interceptors
}

// numbered returns that many interceptors with different names.
func numbered(count int) []core.EvictionInterceptor {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("number-%d.example.com", i))
	}
	return interceptors(names...)
}

func interceptedBy(interceptors []core.EvictionInterceptor) podtest.Tweak {
	return func(pod *core.Pod) { pod.Spec.EvictionInterceptors = interceptors }
}

func TestValidateEvictionInterceptors(t *testing.T) {
	path := field.NewPath("spec", "evictionInterceptors")
	name := func(i int) *field.Path { return path.Index(i).Child("name") }
	inSchedulingGroup := func(pod *core.Pod) {
		pod.Spec.SchedulingGroup = &core.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	}
	// 253 characters, in labels of 63 at most.
	longest := strings.Repeat(strings.Repeat("x", 62)+".", 3) + strings.Repeat("x", 60) + ".ab" + "c"

	tests := map[string]struct {
		pod  *core.Pod
		want field.ErrorList
	}{
		"none":                              {pod: podtest.MakePod("web")},
		"none, in a scheduling group":       {pod: podtest.MakePod("web", inSchedulingGroup)},
		"one":                               {pod: podtest.MakePod("web", interceptedBy(interceptors("migrate.example.com")))},
		"as many as may be":                 {pod: podtest.MakePod("web", interceptedBy(numbered(15)))},
		"the longest name":                  {pod: podtest.MakePod("web", interceptedBy(interceptors(longest)))},
		"the reserved domain of others":     {pod: podtest.MakePod("web", interceptedBy(interceptors("k8s.io.example.com")))},
		"a domain that only looks the same": {pod: podtest.MakePod("web", interceptedBy(interceptors("migrate.notk8s.io")))},
		"all of the project": {pod: podtest.MakePod("web", interceptedBy(interceptors(
			"daemonset.apps.k8s.io", "deployment.apps.k8s.io", "horizontalpodautoscaler.autoscaling.k8s.io",
			"kubelet.k8s.io", "replicaset.apps.k8s.io", "statefulset.apps.k8s.io")))},
		"one too many": {
			pod:  podtest.MakePod("web", interceptedBy(numbered(16))),
			want: field.ErrorList{field.TooMany(path, 16, 15)},
		},
		"together with a scheduling group": {
			pod: podtest.MakePod("web", interceptedBy(interceptors("migrate.example.com")), inSchedulingGroup),
			want: field.ErrorList{field.Forbidden(path,
				"may not be set together with schedulingGroup: pods of a scheduling group are not evicted one by one")},
		},
		"twice the same": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("a.example.com", "b.example.com", "a.example.com"))),
			want: field.ErrorList{field.Duplicate(name(2), "a.example.com")},
		},
		"twice the same invalid one": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("a", "a"))),
			want: field.ErrorList{field.Invalid(name(0), "a", "at least two segments"), field.Duplicate(name(1), "a")},
		},
		"no name": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors(""))),
			want: field.ErrorList{field.Required(name(0), "")},
		},
		"no domain": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("migrate"))),
			want: field.ErrorList{field.Invalid(name(0), "migrate", "at least two segments")},
		},
		"upper case": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("Migrate.example.com"))),
			want: field.ErrorList{field.Invalid(name(0), "Migrate.example.com", "a lowercase RFC 1123 subdomain")},
		},
		"a name that is too long": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors(longest+"x"))),
			want: field.ErrorList{field.Invalid(name(0), longest+"x", "no more than 253")},
		},
		"the built-in one": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("imperative-eviction.k8s.io"))),
			want: field.ErrorList{field.Invalid(name(0), "imperative-eviction.k8s.io", "is added to every eviction request by Kubernetes: leave it out")},
		},
		"the built-in one, in absolute form": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("imperative-eviction.k8s.io."))),
			want: field.ErrorList{field.Invalid(name(0), "imperative-eviction.k8s.io.", "may not end with a dot")},
		},
		"the reserved domain itself": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("k8s.io"))),
			want: field.ErrorList{field.Invalid(name(0), "k8s.io", "names that end in .k8s.io are reserved")},
		},
		"a reserved name": {
			pod: podtest.MakePod("web", interceptedBy(interceptors("a.example.com", "migrate.k8s.io"))),
			want: field.ErrorList{field.Invalid(name(1), "migrate.k8s.io",
				"names that end in .k8s.io are reserved: use a domain of your own, or one of daemonset.apps.k8s.io, deployment.apps.k8s.io")},
		},
	}
	matcher := field.ErrorMatcher{}.ByType().ByField().ByValue().ByDetailSubstring()
	for testName, test := range tests {
		t.Run(testName, func(t *testing.T) {
			matcher.Test(t, test.want, validateEvictionInterceptors(&test.pod.Spec, path))
		})
	}
}

// The rules hold wherever a pod is described.
func TestEvictionInterceptorsAreValidatedOnPodsAndTemplates(t *testing.T) {
	pod := podtest.MakePod("web", interceptedBy(interceptors("migrate.k8s.io")))
	template := &core.PodTemplate{ObjectMeta: pod.ObjectMeta, Template: core.PodTemplateSpec{Spec: pod.Spec}}
	reserved := func(path *field.Path) field.ErrorList {
		return field.ErrorList{field.Invalid(path.Child("spec", "evictionInterceptors").Index(0).Child("name"), "migrate.k8s.io", "")}
	}
	matcher := field.ErrorMatcher{}.ByType().ByField().ByValue()

	t.Run("pod", func(t *testing.T) {
		matcher.Test(t, field.ErrorList{field.Invalid(field.NewPath("spec", "evictionInterceptors").Index(0).Child("name"), "migrate.k8s.io", "")},
			ValidatePodCreate(pod, PodValidationOptions{}))
	})
	t.Run("template", func(t *testing.T) {
		matcher.Test(t, reserved(field.NewPath("template")), ValidatePodTemplate(template, PodValidationOptions{}))
	})
	t.Run("template that changes", func(t *testing.T) {
		old := template.DeepCopy()
		old.ResourceVersion = "1"
		old.Template.Spec.EvictionInterceptors = nil
		changed := template.DeepCopy()
		changed.ResourceVersion = "1"
		matcher.Test(t, reserved(field.NewPath("template")), ValidatePodTemplateUpdate(changed, old, PodValidationOptions{}))
		changed.Template.Spec.EvictionInterceptors = interceptors("migrate.example.com")
		matcher.Test(t, nil, ValidatePodTemplateUpdate(changed, old, PodValidationOptions{}))
	})
}

// An eviction request copies the list when it begins: it must be the same for ever.
func TestEvictionInterceptorsOfPodsAreImmutable(t *testing.T) {
	const a, b = "a.example.com", "b.example.com"
	tests := map[string]struct {
		old, changed []core.EvictionInterceptor
		forbidden    bool
	}{
		"unchanged":     {old: interceptors(a, b), changed: interceptors(a, b)},
		"still without": {},
		"added":         {changed: interceptors(a), forbidden: true},
		"one more":      {old: interceptors(a), changed: interceptors(a, b), forbidden: true},
		"one less":      {old: interceptors(a, b), changed: interceptors(a), forbidden: true},
		"removed":       {old: interceptors(a), forbidden: true},
		"reordered":     {old: interceptors(a, b), changed: interceptors(b, a), forbidden: true},
		"renamed":       {old: interceptors(a), changed: interceptors(b), forbidden: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := podtest.MakePod("web", interceptedBy(test.old), podtest.SetResourceVersion("1"))
			changed := podtest.MakePod("web", interceptedBy(test.changed), podtest.SetResourceVersion("1"))
			var want field.ErrorList
			if test.forbidden {
				want = field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than")}
			}
			field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring().Test(t, want, ValidatePodUpdate(changed, old, PodValidationOptions{}))
		})
	}
}
