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

package v1_test

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	v1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	"k8s.io/utils/ptr"
)

// A picker has its defaults in each version that has the field, and what is set stays.
func TestDefaultsOfDownscalePodPicker(t *testing.T) {
	full := v1.DownscalePodPicker{
		HTTP:       &v1.HTTPDownscalePodPicker{Host: "a", Path: "/pick", Scheme: v1.URISchemeHTTPS},
		MaxRetries: ptr.To[int32](0), TimeoutSeconds: ptr.To[int32](30),
	}
	withScheme := func(scheme v1.URIScheme) *v1.DownscalePodPicker {
		picker := full.DeepCopy()
		picker.HTTP.Scheme = scheme
		return picker
	}
	for name, test := range map[string]struct{ picker, want *v1.DownscalePodPicker }{
		"none": {},
		"a host": {
			picker: &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: "a"}},
			want:   &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: "a", Path: "/", Scheme: v1.URISchemeHTTP}, MaxRetries: ptr.To[int32](3), TimeoutSeconds: ptr.To[int32](1)},
		},
		"no protocol": {
			picker: &v1.DownscalePodPicker{}, want: &v1.DownscalePodPicker{MaxRetries: ptr.To[int32](3), TimeoutSeconds: ptr.To[int32](1)},
		},
		"all":                 {picker: &full, want: &full},
		"https as in the KEP": {picker: withScheme("https"), want: withScheme(v1.URISchemeHTTPS)},
		"http":                {picker: withScheme("http"), want: withScheme(v1.URISchemeHTTP)},
		"another one":         {picker: withScheme("Https"), want: withScheme("Https")}, // Validation refuses it.
	} {
		deployment, replicaSet := &appsv1.Deployment{}, &appsv1.ReplicaSet{}
		beta1, beta2 := &appsv1beta1.Deployment{}, &appsv1beta2.Deployment{}
		replicaSetBeta2, extension, replicaSetExtension := &appsv1beta2.ReplicaSet{}, &extensionsv1beta1.Deployment{}, &extensionsv1beta1.ReplicaSet{}
		for object, field := range map[runtime.Object]**v1.DownscalePodPicker{
			deployment: &deployment.Spec.DownscalePodPicker, replicaSet: &replicaSet.Spec.DownscalePodPicker,
			beta1: &beta1.Spec.DownscalePodPicker, beta2: &beta2.Spec.DownscalePodPicker, replicaSetBeta2: &replicaSetBeta2.Spec.DownscalePodPicker,
			extension: &extension.Spec.DownscalePodPicker, replicaSetExtension: &replicaSetExtension.Spec.DownscalePodPicker,
		} {
			*field = test.picker.DeepCopy()
			legacyscheme.Scheme.Default(object)
			if !reflect.DeepEqual(*field, test.want) {
				t.Errorf("%s of a %T: %+v, want %+v", name, object, *field, test.want)
			}
		}
	}
}
