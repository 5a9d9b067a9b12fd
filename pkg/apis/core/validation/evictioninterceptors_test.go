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
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
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
		"domain-prefixed keys, as in Kubernetes 1.37": {pod: podtest.MakePod("web", interceptedBy(interceptors(
			"example.com/migrate", "storage/v1.Backup_x", "notkubernetes.io/x", "migrate.example.com")))},
		"the longest key": {pod: podtest.MakePod("web", interceptedBy(interceptors(longest+"/"+strings.Repeat("n", 63))))},
		"a key that is too long": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("example.com/"+strings.Repeat("n", 64)))),
			want: field.ErrorList{field.Invalid(name(0), "example.com/"+strings.Repeat("n", 64), "63")},
		},
		"two slashes": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("example.com/a/b"))),
			want: field.ErrorList{field.Invalid(name(0), "example.com/a/b", "")},
		},
		"a key without a domain": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("/migrate"))),
			want: field.ErrorList{field.Invalid(name(0), "/migrate", "")},
		},
		"a key without a name": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("example.com/"))),
			want: field.ErrorList{field.Invalid(name(0), "example.com/", "name part must be non-empty"), field.Invalid(name(0), "example.com/", "name part must consist of")},
		},
		"a key in the reserved domain": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("imperative-eviction.k8s.io/evictor"))),
			want: field.ErrorList{field.Invalid(name(0), "imperative-eviction.k8s.io/evictor", "names that end in .k8s.io are reserved")},
		},
		"a key of a name of the project": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("kubelet.k8s.io/x"))),
			want: field.ErrorList{field.Invalid(name(0), "kubelet.k8s.io/x", "names that end in .k8s.io are reserved")},
		},
		"a key in the other reserved domain": {
			pod:  podtest.MakePod("web", interceptedBy(interceptors("kubernetes.io/x", "a.kubernetes.io/x"))),
			want: field.ErrorList{field.Invalid(name(0), "kubernetes.io/x", "names in the domain kubernetes.io are reserved"), field.Invalid(name(1), "a.kubernetes.io/x", "names in the domain kubernetes.io are reserved")},
		},
		"one too many": {
			pod:  podtest.MakePod("web", interceptedBy(numbered(16))),
			want: field.ErrorList{field.TooMany(path, 16, 15)},
		},
		"together with a scheduling group": {pod: podtest.MakePod("web", interceptedBy(interceptors("migrate.example.com")), inSchedulingGroup)},
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
			want: field.ErrorList{field.Invalid(name(0), "imperative-eviction.k8s.io", "is reserved, because every EvictionRequest has it: remove it")},
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
				"names that end in .k8s.io are reserved: use your own domain, or one of daemonset.apps.k8s.io, deployment.apps.k8s.io")},
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

const registrationPrefix = "interceptor.evictionrequest.coordination.k8s.io/priority_"

// registered returns the annotations that register each name with its value.
func registered(values map[string]string) map[string]string {
	annotations := map[string]string{"example.com/note": "any text"}
	for name, value := range values {
		annotations[registrationPrefix+name] = value
	}
	return annotations
}

// manyRegistered registers numbered names, from one number up to before another.
func manyRegistered(from, to int) map[string]string {
	values := map[string]string{}
	for i := from; i < to; i++ {
		values[fmt.Sprintf("number-%02d.example.com", i)] = "1"
	}
	return registered(values)
}

func enableEvictionRequests(t *testing.T, enabled bool) {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, enabled)
}

func TestValidateEvictionInterceptorAnnotations(t *testing.T) {
	const a, b, c = "a.example.com", "b.example.com", "c.example.com"
	path := field.NewPath("metadata", "annotations")
	invalid := func(name, value, detail string) *field.Error {
		return field.Invalid(path.Key(registrationPrefix+name), value, detail)
	}
	inSchedulingGroup := func(pod *core.Pod) {
		pod.Spec.SchedulingGroup = &core.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	}
	const tooMany = "more than 15 interceptors"

	tests := map[string]struct {
		stored, annotations map[string]string
		tweak               podtest.Tweak
		gateOff             bool
		want                field.ErrorList
	}{
		"valid ones":                        {annotations: registered(map[string]string{a: "0", b: "100000/first", "deployment.apps.k8s.io": "10000/controller"})},
		"without the gate, nothing matters": {annotations: registered(map[string]string{"k8s.io": "-1"}), gateOff: true},
		"the value is checked": {
			annotations: registered(map[string]string{a: "-1", b: "100001", c: "9999/controller"}),
			want:        field.ErrorList{invalid(a, "-1", "from 0 to 100000"), invalid(b, "100001", "from 0 to 100000"), invalid(c, "9999/controller", "requires the priority 10000")},
		},
		"the name is checked": {
			annotations: registered(map[string]string{"x.k8s.io": "1", "imperative-eviction.k8s.io": "1"}),
			want: field.ErrorList{
				invalid("x.k8s.io", "x.k8s.io", "names that end in .k8s.io are reserved"),
				invalid("imperative-eviction.k8s.io", "imperative-eviction.k8s.io", "remove it"),
			},
		},
		"in a scheduling group": {
			annotations: registered(map[string]string{a: "1", b: "x"}), tweak: inSchedulingGroup,
			want: field.ErrorList{invalid(b, "x", "an integer from")},
		},
		"two controllers": {
			annotations: registered(map[string]string{a: "10000/controller", b: "10000/controller"}),
			want:        field.ErrorList{invalid(b, "10000/controller", a+" already has the role controller")},
		},
		"a controller that joins one": {
			stored:      registered(map[string]string{b: "10000/controller"}),
			annotations: registered(map[string]string{a: "10000/controller", b: "10000/controller"}),
			want:        field.ErrorList{invalid(a, "10000/controller", b+" already has the role controller")},
		},
		"a controller that takes the place of one": {
			stored:      registered(map[string]string{b: "10000/controller"}),
			annotations: registered(map[string]string{a: "10000/controller", b: "9000"}),
		},
		"as many as may be":               {annotations: manyRegistered(0, 15)},
		"one too many":                    {annotations: manyRegistered(0, 16), want: field.ErrorList{invalid("number-15.example.com", "1", tooMany)}},
		"three too many":                  {annotations: manyRegistered(0, 18), want: field.ErrorList{invalid("number-15.example.com", "1", tooMany), invalid("number-16.example.com", "1", tooMany), invalid("number-17.example.com", "1", tooMany)}},
		"as many, with those of the spec": {annotations: manyRegistered(20, 25), tweak: interceptedBy(numbered(10))},
		"one too many, with those of the spec": {
			annotations: manyRegistered(20, 26), tweak: interceptedBy(numbered(10)),
			want: field.ErrorList{invalid("number-25.example.com", "1", tooMany)},
		},
		"a name in both counts once": {
			annotations: registered(map[string]string{"number-0.example.com": "1"}), tweak: interceptedBy(numbered(15)),
		},
		"one more than the spec holds": {
			annotations: registered(map[string]string{a: "1"}), tweak: interceptedBy(numbered(15)),
			want: field.ErrorList{invalid(a, "1", tooMany)},
		},

		"an update checks what it adds": {
			stored:      registered(map[string]string{a: "1"}),
			annotations: registered(map[string]string{a: "1", b: "x"}),
			want:        field.ErrorList{invalid(b, "x", "an integer from")},
		},
		"an update checks what it changes": {
			stored:      registered(map[string]string{a: "1"}),
			annotations: registered(map[string]string{a: "x"}),
			want:        field.ErrorList{invalid(a, "x", "an integer from")},
		},
		"an update leaves invalid ones alone": {
			stored:      registered(map[string]string{a: "-1", b: "x", "k8s.io": "1", "y.example.com": "10000/controller", "z.example.com": "10000/controller"}),
			annotations: registered(map[string]string{a: "-1", b: "x", "k8s.io": "1", "y.example.com": "10000/controller", "z.example.com": "10000/controller", c: "1"}),
		},
		"an update removes invalid ones": {
			stored:      registered(map[string]string{a: "-1", b: "x"}),
			annotations: registered(map[string]string{b: "x"}),
		},
		"an update keeps too many":          {stored: manyRegistered(0, 18), annotations: manyRegistered(0, 18)},
		"an update removes one of too many": {stored: manyRegistered(0, 18), annotations: manyRegistered(0, 17)},
		"an update changes one of too many": {
			stored:      manyRegistered(0, 17),
			annotations: overlaid(manyRegistered(0, 17), registered(map[string]string{"number-16.example.com": "2"})),
		},
		"an update adds the last one": {stored: manyRegistered(0, 14), annotations: manyRegistered(0, 15)},
		"an update adds one too many": {
			stored: manyRegistered(1, 16), annotations: manyRegistered(0, 16),
			want: field.ErrorList{invalid("number-00.example.com", "1", tooMany)},
		},
		"an update adds one too many and changes another": {
			stored:      manyRegistered(1, 16),
			annotations: overlaid(manyRegistered(0, 16), registered(map[string]string{"number-15.example.com": "2"})),
			want:        field.ErrorList{invalid("number-00.example.com", "1", tooMany)},
		},
		"an update replaces one": {stored: manyRegistered(0, 15), annotations: manyRegistered(1, 16)},
	}
	matcher := field.ErrorMatcher{}.ByType().ByField().ByValue().ByDetailSubstring()
	for testName, test := range tests {
		t.Run(testName, func(t *testing.T) {
			enableEvictionRequests(t, !test.gateOff)
			pod := podtest.MakePod("web", podtest.SetAnnotations(test.annotations))
			if test.tweak != nil {
				test.tweak(pod)
			}
			matcher.Test(t, test.want, validateEvictionInterceptorAnnotations(pod.Annotations, &pod.Spec, path, PodValidationOptions{StoredAnnotations: test.stored}))
		})
	}
}

// overlaid returns the annotations with other ones in their place or beside them.
func overlaid(annotations, others map[string]string) map[string]string {
	maps.Copy(annotations, others)
	return annotations
}

// The rules hold wherever the annotations of a pod are written.
func TestEvictionInterceptorAnnotationsAreValidatedOnPodsAndTemplates(t *testing.T) {
	enableEvictionRequests(t, true)
	withAnnotation := podtest.SetAnnotations(registered(map[string]string{"a.example.com": "x"}))
	pod := podtest.MakePod("web", withAnnotation, podtest.SetResourceVersion("1"))
	old := podtest.MakePod("web", podtest.SetResourceVersion("1"))
	template := &core.PodTemplate{ObjectMeta: old.ObjectMeta, Template: core.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}}
	const key = "annotations[" + registrationPrefix + "a.example.com]"

	for name, test := range map[string]struct {
		errs      field.ErrorList
		wantField string
	}{
		"pod":                   {ValidatePodCreate(pod, PodValidationOptions{}), "metadata." + key},
		"pod that changes":      {ValidatePodUpdate(pod, old, PodValidationOptions{}), "metadata." + key},
		"status of a pod":       {ValidatePodStatusUpdate(pod, old, PodValidationOptions{}), "metadata." + key},
		"ephemeral containers":  {ValidatePodEphemeralContainersUpdate(pod, old, PodValidationOptions{}), "metadata." + key},
		"template":              {ValidatePodTemplate(template, PodValidationOptions{}), "template." + key},
		"unchanged in a pod":    {ValidatePodUpdate(pod, pod, PodValidationOptions{StoredAnnotations: pod.Annotations}), ""},
		"unchanged in a status": {ValidatePodStatusUpdate(pod, pod, PodValidationOptions{StoredAnnotations: pod.Annotations}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.wantField == "" && len(test.errs) > 0 {
				t.Errorf("unexpected errors: %v", test.errs)
			}
			for _, err := range test.errs {
				if err.Field != test.wantField {
					t.Errorf("unexpected error: %v", err)
				}
			}
			if test.wantField != "" && len(test.errs) == 0 {
				t.Errorf("no error about %s", test.wantField)
			}
		})
	}
}
