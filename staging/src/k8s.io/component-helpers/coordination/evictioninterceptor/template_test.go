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
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestAddTo(t *testing.T) {
	const (
		user       = "user.example.com"
		deployment = "deployment.apps.k8s.io"
		replicaSet = "replicaset.apps.k8s.io"
	)
	inGroup := &v1.PodSchedulingGroup{PodGroupName: ptr.To("training")}
	tests := map[string]struct {
		spec        []string
		annotations map[string]string
		group       *v1.PodSchedulingGroup
		names       []string
		want        []string
		wantAll     bool
	}{
		"to an empty template": {
			names: []string{deployment, replicaSet},
			want:  []string{deployment, replicaSet}, wantAll: true,
		},
		"interceptors of the author are first": {
			spec: []string{user}, names: []string{deployment, replicaSet},
			want: []string{user, deployment, replicaSet}, wantAll: true,
		},
		"no names": {
			spec: []string{user}, want: []string{user}, wantAll: true,
		},
		"a name given twice": {
			names: []string{deployment, deployment}, want: []string{deployment}, wantAll: true,
		},
		"the author has the first name": {
			spec: []string{deployment, user}, names: []string{deployment, replicaSet},
			want: []string{deployment, user, replicaSet}, wantAll: true,
		},
		"the author has the second name": {
			spec: []string{replicaSet}, names: []string{deployment, replicaSet},
			want: []string{replicaSet, deployment}, wantAll: true,
		},
		"the author has both, in another order": {
			spec: []string{replicaSet, deployment}, names: []string{deployment, replicaSet},
			want: []string{replicaSet, deployment}, wantAll: true,
		},
		"an annotation does not move a controller": {
			annotations: annotated(map[string]string{deployment: "10000/controller"}), names: []string{deployment, replicaSet},
			want: []string{deployment, replicaSet}, wantAll: true,
		},
		"an annotation does not move a controller at any priority": {
			annotations: annotated(map[string]string{replicaSet: "20000", user: "15000"}), names: []string{deployment, replicaSet},
			want: []string{user, deployment, replicaSet}, wantAll: true,
		},
		"higher priorities are first, in order": {
			spec: []string{user}, annotations: annotated(map[string]string{
				"b.example.com": "20000", "a.example.com": "20000", "last.example.com": "10001/copies-data", "first.example.com": "100000",
			}), names: []string{deployment, replicaSet},
			want: []string{user, "first.example.com", "a.example.com", "b.example.com", "last.example.com", deployment, replicaSet}, wantAll: true,
		},
		"other registrations are not added": {
			annotations: annotated(map[string]string{"same.example.com": "10000", "own.example.com": "10000/controller", "lower.example.com": "0"}),
			names:       []string{deployment, replicaSet},
			want:        []string{deployment, replicaSet}, wantAll: true,
		},
		"invalid registrations are not added": {
			annotations: annotated(map[string]string{"a.example.com": "100001", "b.example.com": "20000/", "short": "20000", "x.k8s.io": "20000"}),
			names:       []string{deployment, replicaSet},
			want:        []string{deployment, replicaSet}, wantAll: true,
		},
		"the built-in one is not added": {
			annotations: annotated(map[string]string{builtIn: "20000"}), names: []string{deployment},
			want: []string{deployment}, wantAll: true,
		},
		"a name in both keeps its position in the spec": {
			spec: []string{"a.example.com", user}, annotations: annotated(map[string]string{user: "20000", "b.example.com": "15000"}),
			names: []string{deployment},
			want:  []string{"a.example.com", user, "b.example.com", deployment}, wantAll: true,
		},
		"a controller in the spec stays there": {
			spec: []string{deployment}, annotations: annotated(map[string]string{user: "20000"}), names: []string{deployment, replicaSet},
			want: []string{deployment, user, replicaSet}, wantAll: true,
		},
		"nothing is added if no controller is missing": {
			spec: []string{deployment, replicaSet}, annotations: annotated(map[string]string{user: "20000"}), names: []string{deployment, replicaSet},
			want: []string{deployment, replicaSet}, wantAll: true,
		},
		"room for two in the spec": {
			spec: numbered("spec", 13), names: []string{deployment, replicaSet},
			want: append(numbered("spec", 13), deployment, replicaSet), wantAll: true,
		},
		"room for one in the spec": {
			spec: numbered("spec", 14), names: []string{deployment, replicaSet},
			want: numbered("spec", 14),
		},
		"room for one, and one name is present": {
			spec: append(numbered("spec", 13), replicaSet), names: []string{deployment, replicaSet},
			want: append(numbered("spec", 13), replicaSet, deployment), wantAll: true,
		},
		"no room, and both names are present": {
			spec: append(numbered("spec", 13), replicaSet, deployment), names: []string{deployment, replicaSet},
			want: append(numbered("spec", 13), replicaSet, deployment), wantAll: true,
		},
		"room for two with annotations": {
			spec: []string{user}, annotations: descending(100, numbered("r", 12)), names: []string{deployment, replicaSet},
			want: []string{user, deployment, replicaSet}, wantAll: true,
		},
		"room for one with annotations": {
			spec: []string{user}, annotations: descending(100, numbered("r", 13)), names: []string{deployment, replicaSet},
			want: []string{user},
		},
		"a name in the spec and by annotation counts once": {
			spec: numbered("r", 12), annotations: descending(100, numbered("r", 13)), names: []string{deployment, replicaSet},
			want: append(numbered("r", 12), deployment, replicaSet), wantAll: true,
		},
		"a registered controller counts once": {
			annotations: descending(100, append(numbered("r", 13), deployment)), names: []string{deployment, replicaSet},
			want: []string{deployment, replicaSet}, wantAll: true,
		},
		"room for two, with registrations added": {
			annotations: descending(20000, numbered("r", 13)), names: []string{deployment, replicaSet},
			want: append(numbered("r", 13), deployment, replicaSet), wantAll: true,
		},
		"no room for all, so no registrations are added": {
			spec: []string{user}, annotations: descending(20000, numbered("r", 13)), names: []string{deployment, replicaSet},
			want: []string{user},
		},
		"invalid annotations count": {
			annotations: descending(-1, numbered("r", 14)), names: []string{deployment, replicaSet},
		},
		"too many already": {
			spec: numbered("spec", 16), names: []string{deployment}, want: numbered("spec", 16),
		},
		"a scheduling group": {
			group: inGroup, names: []string{deployment, replicaSet},
			want: []string{deployment, replicaSet}, wantAll: true,
		},
		"a scheduling group and registered names": {
			group: inGroup, annotations: annotated(map[string]string{user: "20000", deployment: "20000"}), names: []string{deployment},
			want: []string{user, deployment}, wantAll: true,
		},
		"a scheduling group and both names": {
			spec: []string{deployment, replicaSet}, group: inGroup, names: []string{deployment, replicaSet},
			want: []string{deployment, replicaSet}, wantAll: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			newTemplate := func(interceptors []string) *v1.PodTemplateSpec {
				return &v1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations},
					Spec: v1.PodSpec{
						NodeName: "node", SchedulingGroup: test.group, EvictionInterceptors: interceptorsNamed(interceptors),
					},
				}
			}
			// Annotations are a map with a random iteration order.
			for range 20 {
				template := newTemplate(test.spec)
				if all := AddTo(template, test.names...); all != test.wantAll {
					t.Fatalf("AddTo() = %v, want %v", all, test.wantAll)
				}
				if diff := cmp.Diff(newTemplate(test.want), template); diff != "" {
					t.Fatalf("unexpected template (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A shallow copy of a template shares the list with the original, including its spare capacity.
func TestAddToKeepsSharedLists(t *testing.T) {
	list := interceptorsNamed(numbered("spec", 3))
	original := v1.PodTemplateSpec{Spec: v1.PodSpec{EvictionInterceptors: list[:1]}}
	first, second := original, original
	AddTo(&first, "first.example.com")
	AddTo(&second, "second.example.com")
	if diff := cmp.Diff(interceptorsNamed(numbered("spec", 3)), list); diff != "" {
		t.Errorf("the list behind the original changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(interceptorsNamed([]string{"spec-00.example.com", "first.example.com"}), first.Spec.EvictionInterceptors); diff != "" {
		t.Errorf("the first copy changed with the second (-want +got):\n%s", diff)
	}
}

func interceptorsNamed(names []string) []v1.EvictionInterceptor {
	var interceptors []v1.EvictionInterceptor
	for _, name := range names {
		interceptors = append(interceptors, v1.EvictionInterceptor{Name: name})
	}
	return interceptors
}

// Interceptors that precede the controllers in the template also precede them in the request.
func TestOrderOfCreatedPods(t *testing.T) {
	const user, saver, deployment, replicaSet = "user.example.com", "saver.example.com", "deployment.apps.k8s.io", "replicaset.apps.k8s.io"
	template := &v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotated(map[string]string{saver: "20000", replicaSet: "10000/controller", "later.example.com": "1"})},
		Spec:       v1.PodSpec{EvictionInterceptors: interceptorsNamed([]string{user})},
	}
	AddTo(template, deployment, replicaSet)
	var names []string
	for _, interceptor := range template.Spec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	// A client that can write the status of the running pod registers an interceptor, which comes
	// after the controllers.
	template.Annotations[prefix+"hostile.example.com"] = "100000"
	want := []string{user, saver, deployment, replicaSet, "hostile.example.com", "later.example.com", builtIn}
	if diff := cmp.Diff(want, TargetNames(names, template.Annotations, nil)); diff != "" {
		t.Errorf("unexpected order (-want +got):\n%s", diff)
	}
}
