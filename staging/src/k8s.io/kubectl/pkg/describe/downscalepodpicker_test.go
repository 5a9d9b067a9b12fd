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

package describe

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// Deployments and ReplicaSets show their picker, and no value of a header.
func TestDescribeDownscalePodPicker(t *testing.T) {
	newPicker := func(headers ...corev1.HTTPDownscalePodPickerHeader) *corev1.DownscalePodPicker {
		return &corev1.DownscalePodPicker{
			HTTP: &corev1.HTTPDownscalePodPicker{
				Host: "picker.shop.svc", Port: intstr.FromString("http"), Path: "/pick", Scheme: corev1.URISchemeHTTPS, HTTPHeaders: headers,
			},
			MaxRetries: ptr.To[int32](2), TimeoutSeconds: ptr.To[int32](5),
		}
	}
	from := func(optional *bool) *corev1.HTTPDownscalePodPickerHeaderSource {
		return &corev1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "value", Optional: optional,
		}}
	}
	for name, test := range map[string]struct {
		picker *corev1.DownscalePodPicker
		want   []string
		none   []string
	}{
		"none": {none: []string{"Downscale Pod Picker"}},
		"a protocol of a later version": {
			picker: &corev1.DownscalePodPicker{}, want: []string{"Downscale Pod Picker:   <unknown protocol>\n"},
		},
		"without headers": {
			picker: newPicker(), none: []string{"Header:", "CA Bundle"},
			want: []string{"Downscale Pod Picker:   https://picker.shop.svc:http/pick, at most 3 attempts of 5s, 15.6s in all\n"},
		},
		"one attempt, with certificates": {
			picker: &corev1.DownscalePodPicker{
				HTTP:       &corev1.HTTPDownscalePodPicker{Host: "192.0.2.1", Port: intstr.FromInt32(443), Path: "/", Scheme: corev1.URISchemeHTTPS, CABundle: []byte("PEM")},
				MaxRetries: ptr.To[int32](0), TimeoutSeconds: ptr.To[int32](1),
			},
			want: []string{"Downscale Pod Picker:   https://192.0.2.1:443/, at most 1 attempt of 1s, 1s in all\n", "CA Bundle:  3 bytes\n"},
		},
		"an IPv6 address, and no defaults": {
			picker: &corev1.DownscalePodPicker{HTTP: &corev1.HTTPDownscalePodPicker{Host: "fd00::1", Port: intstr.FromInt32(80), Path: "/", Scheme: corev1.URISchemeHTTP}},
			want:   []string{"Downscale Pod Picker:   http://[fd00::1]:80/\n"},
		},
		"one default": {
			picker: &corev1.DownscalePodPicker{HTTP: newPicker().HTTP, MaxRetries: ptr.To[int32](2)}, want: []string{"Downscale Pod Picker:   https://picker.shop.svc:http/pick\n"},
		},
		"with headers": {
			picker: newPicker(
				corev1.HTTPDownscalePodPickerHeader{Name: "Authorization", Value: "s3cr3t"},
				corev1.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: from(nil)},
				corev1.HTTPDownscalePodPickerHeader{Name: "X-Other", ValueFrom: from(ptr.To(true))},
				corev1.HTTPDownscalePodPickerHeader{Name: "X-Last", ValueFrom: from(ptr.To(false))},
			),
			want: []string{"Header:  Authorization\n", "Header:  X-Token from the key value of Secret token\n", "Header:  X-Other from the key value of Secret token, if it exists\n", "Header:  X-Last from the key value of Secret token\n"},
			none: []string{"s3cr3t"},
		},
	} {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		meta := metav1.ObjectMeta{Name: "web", Namespace: "shop"}
		client := fake.NewClientset(
			&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: selector, DownscalePodPicker: test.picker}},
			&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Selector: selector, DownscalePodPicker: test.picker}},
		)
		for kind, describer := range map[string]ResourceDescriber{"Deployment": &DeploymentDescriber{client}, "ReplicaSet": &ReplicaSetDescriber{client}} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				output, err := describer.Describe("shop", "web", DescriberSettings{})
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range test.want {
					if !strings.Contains(squeeze(output), squeeze(want)) {
						t.Errorf("no %q in:\n%s", want, output)
					}
				}
				for _, none := range test.none {
					if strings.Contains(output, none) {
						t.Errorf("%q in:\n%s", none, output)
					}
				}
			})
		}
	}
}

// squeeze makes one space of several: the width of columns depends on other lines.
func squeeze(text string) string {
	for strings.Contains(text, "  ") {
		text = strings.ReplaceAll(text, "  ", " ")
	}
	return text
}
