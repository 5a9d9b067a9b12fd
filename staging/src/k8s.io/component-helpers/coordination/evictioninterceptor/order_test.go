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

package evictioninterceptor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	builtIn   = "imperative-eviction.k8s.io"
	daemonSet = "daemonset.apps.k8s.io"
	kubelet   = "kubelet.k8s.io"
)

// annotated returns the annotations that register each name with its value.
func annotated(values map[string]string) map[string]string {
	annotations := map[string]string{"example.com/note": "1"}
	for name, value := range values {
		annotations[prefix+name] = value
	}
	return annotations
}

// numbered returns count different names.
func numbered(kind string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%02d.example.com", kind, i))
	}
	return names
}

// falling registers the names with descending priorities, starting with the highest.
func descending(highest int, names []string) map[string]string {
	values := map[string]string{}
	for i, name := range names {
		values[name] = fmt.Sprint(highest - i)
	}
	return annotated(values)
}

func TestTargetNames(t *testing.T) {
	const a, b, c, d = "a.example.com", "b.example.com", "c.example.com", "d.example.com"
	tests := map[string]struct {
		spec        []string
		annotations map[string]string
		defaults    []string
		want        []string
	}{
		"no names":      {want: []string{builtIn}},
		"the spec only": {spec: []string{b, a}, want: []string{b, a, builtIn}},
		"spec, registered, default": {
			spec:        []string{b},
			annotations: annotated(map[string]string{c: "10001", a: "10000", d: "0/fallback"}),
			defaults:    []string{daemonSet},
			want:        []string{b, c, a, d, daemonSet, builtIn},
		},
		"the highest first, but none before the spec": {
			spec:        []string{"spec.example.com"},
			annotations: annotated(map[string]string{a: "9998", b: "9999", c: "10002", d: "100000"}),
			want:        []string{"spec.example.com", d, c, b, a, builtIn},
		},
		"compared as numbers": {annotations: annotated(map[string]string{a: "9", b: "10"}), want: []string{b, a, builtIn}},
		"ties by name":        {annotations: annotated(map[string]string{b: "7", c: "7", a: "7"}), want: []string{a, b, c, builtIn}},
		"a name in both keeps its position in the spec": {
			spec:        []string{a, b},
			annotations: annotated(map[string]string{b: "100000", c: "1"}),
			want:        []string{a, b, c, builtIn},
		},
		"a registered default keeps its priority": {
			spec:        []string{a},
			annotations: annotated(map[string]string{daemonSet: "20000"}),
			defaults:    []string{daemonSet, kubelet},
			want:        []string{a, daemonSet, kubelet, builtIn},
		},
		"registered before a default that the spec names last": {
			spec:        []string{a, daemonSet},
			annotations: annotated(map[string]string{c: "5", b: "6"}),
			defaults:    []string{daemonSet},
			want:        []string{a, b, c, daemonSet, builtIn},
		},
		"registered before two of them": {
			spec:        []string{daemonSet, kubelet},
			annotations: annotated(map[string]string{c: "5"}),
			defaults:    []string{daemonSet, kubelet},
			want:        []string{c, daemonSet, kubelet, builtIn},
		},
		"registered after one that is no default of the pod": {
			spec:        []string{a, daemonSet},
			annotations: annotated(map[string]string{c: "5"}),
			want:        []string{a, daemonSet, c, builtIn},
		},
		"a default in the spec stays there": {spec: []string{kubelet, a}, defaults: []string{kubelet}, want: []string{kubelet, a, builtIn}},
		"the built-in one is last, whoever names it": {
			spec:        []string{builtIn, a},
			annotations: annotated(map[string]string{builtIn: "100000"}),
			defaults:    []string{builtIn, kubelet},
			want:        []string{a, kubelet, builtIn},
		},
		"invalid annotations are ignored": {
			annotations: annotated(map[string]string{a: "100001", b: "1/", "short": "1", "x.k8s.io": "1", c: "1", d: "9999/controller", "": "1"}),
			want:        []string{c, builtIn},
		},
		"one controller": {
			annotations: annotated(map[string]string{a: "10000", b: "10000/controller", c: "10000/controller", d: "5"}),
			want:        []string{a, b, d, builtIn},
		},
		"a spec with duplicates": {spec: []string{a, b, a}, want: []string{a, b, builtIn}},
		"a full spec": {
			spec: numbered("spec", 15), want: append(numbered("spec", 15), builtIn),
		},
		"nothing is added to a full spec": {
			spec:        numbered("spec", 15),
			annotations: annotated(map[string]string{a: "100000", kubelet: "100000"}),
			defaults:    []string{kubelet},
			want:        append(numbered("spec", 15), builtIn),
		},
		"a spec that is too long":           {spec: numbered("spec", 16), want: append(numbered("spec", 15), builtIn)},
		"the maximum number of annotations": {annotations: descending(100, numbered("r", 15)), want: append(numbered("r", 15), builtIn)},
		"the lowest priority of too many is dropped": {
			annotations: descending(100, numbered("r", 16)), want: append(numbered("r", 15), builtIn),
		},
		"annotations do not displace the spec": {
			spec:        []string{a, b},
			annotations: descending(100000, numbered("r", 40)),
			want:        slices.Concat([]string{a, b}, numbered("r", 13), []string{builtIn}),
		},
		"annotations do not displace a default": {
			spec:        []string{a},
			annotations: descending(100, numbered("r", 15)),
			defaults:    []string{daemonSet},
			want:        slices.Concat([]string{a}, numbered("r", 13), []string{daemonSet, builtIn}),
		},
		"a registered default counts once": {
			annotations: descending(100, append(numbered("r", 14), kubelet, "z.example.com")),
			defaults:    []string{kubelet},
			want:        append(numbered("r", 14), kubelet, builtIn),
		},
		"the last of two defaults is dropped for the spec": {
			spec: numbered("spec", 14), defaults: []string{daemonSet, kubelet},
			want: append(numbered("spec", 14), daemonSet, builtIn),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, defaults := slices.Clone(test.spec), slices.Clone(test.defaults)
			// Annotations are a map with a random iteration order.
			for range 20 {
				if diff := cmp.Diff(test.want, TargetNames(test.spec, test.annotations, test.defaults)); diff != "" {
					t.Fatalf("unexpected order (-want +got):\n%s", diff)
				}
			}
			if !slices.Equal(spec, test.spec) || !slices.Equal(defaults, test.defaults) {
				t.Errorf("the arguments became %v and %v", test.spec, test.defaults)
			}
		})
	}
}
