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

package downscalepodpicker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/apis/apps"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

const (
	namespace = "shop"
	// author may get the Secrets token and other, guest none.
	author, guest = "author", "guest"
	// partly is allowed by one authorizer, while another fails.
	partly = "partly"
)

type rights struct{ err error }

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	want := authorizer.AttributesRecord{
		User: a.GetUser(), Verb: "get", Namespace: namespace, APIVersion: "v1", Resource: "secrets", Name: a.GetName(), ResourceRequest: true,
	}
	if a.GetUser().GetName() == author && cmp.Equal(want, a) && (a.GetName() == "token" || a.GetName() == "other") {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetUser().GetName() == partly {
		return authorizer.DecisionAllow, "", errors.New("another authorizer is out of order")
	}
	return authorizer.DecisionNoOpinion, "", r.err
}

func newPicker(secrets ...string) *api.DownscalePodPicker {
	http := &api.HTTPDownscalePodPicker{
		Host: "picker.shop.svc", Port: intstr.FromInt32(80), Path: "/", Scheme: api.URISchemeHTTP,
		HTTPHeaders: []api.HTTPDownscalePodPickerHeader{{Name: "X-Plain", Value: "a"}},
	}
	for _, secret := range secrets {
		http.HTTPHeaders = append(http.HTTPHeaders, api.HTTPDownscalePodPickerHeader{Name: "X-" + secret, ValueFrom: &api.HTTPDownscalePodPickerHeaderSource{
			SecretKeyRef: &api.SecretKeySelector{LocalObjectReference: api.LocalObjectReference{Name: secret}, Key: "value"},
		}})
	}
	return &api.DownscalePodPicker{HTTP: http, MaxRetries: ptr.To[int32](3), TimeoutSeconds: ptr.To[int32](1)}
}

func at(path string, picker *api.DownscalePodPicker) *api.DownscalePodPicker {
	picker.HTTP.Path = path
	return picker
}

func newDeployment(picker *api.DownscalePodPicker) *apps.Deployment {
	return &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: apps.DeploymentSpec{DownscalePodPicker: picker}}
}

// newReplicaSet returns a ReplicaSet of the Deployment with this UID, or of none.
func newReplicaSet(picker *api.DownscalePodPicker, owner types.UID, changes ...func(*metav1.OwnerReference)) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1"}, Spec: apps.ReplicaSetSpec{DownscalePodPicker: picker}}
	if owner != "" {
		ref := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: owner, Controller: ptr.To(true)}
		for _, change := range changes {
			change(&ref)
		}
		rs.OwnerReferences = []metav1.OwnerReference{ref}
	}
	return rs
}

// stored is the Deployment in the API server, with the picker of newPicker(secrets...).
func stored(uid types.UID, secrets ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: uid}}
	if secrets == nil {
		return d
	}
	http := &corev1.HTTPDownscalePodPicker{
		Host: "picker.shop.svc", Port: intstr.FromInt32(80), Path: "/", Scheme: corev1.URISchemeHTTP,
		HTTPHeaders: []corev1.HTTPDownscalePodPickerHeader{{Name: "X-Plain", Value: "a"}},
	}
	for _, secret := range secrets {
		http.HTTPHeaders = append(http.HTTPHeaders, corev1.HTTPDownscalePodPickerHeader{Name: "X-" + secret, ValueFrom: &corev1.HTTPDownscalePodPickerHeaderSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "value"},
		}})
	}
	d.Spec.DownscalePodPicker = &corev1.DownscalePodPicker{HTTP: http, MaxRetries: ptr.To[int32](3), TimeoutSeconds: ptr.To[int32](1)}
	return d
}

// A picker that sends the values of Secrets somewhere may be set only by who can get them. The feature
// gate is off in this test: it does not matter.
func TestSecretsOfPickers(t *testing.T) {
	const admitted = ""
	byJob := func(ref *metav1.OwnerReference) { ref.Kind = "Job" }
	byOther := func(ref *metav1.OwnerReference) { ref.APIVersion = "example.com/v1" }
	byNone := func(ref *metav1.OwnerReference) { ref.Controller = nil }
	for name, test := range map[string]struct {
		user        string
		object, old runtime.Object
		subresource string
		// deployment is the stored one, which may be unreadable.
		deployment *appsv1.Deployment
		unreadable error
		rights     rights
		want       string
	}{
		"no picker":                            {user: guest, object: newDeployment(nil)},
		"another kind":                         {user: guest, object: &apps.StatefulSet{}},
		"no Secret":                            {user: guest, object: newDeployment(newPicker())},
		"no protocol":                          {user: guest, object: newDeployment(&api.DownscalePodPicker{})},
		"created by the author":                {user: author, object: newDeployment(newPicker("token", "other"))},
		"created by a guest":                   {user: guest, object: newDeployment(newPicker("token", "other")), want: `Secrets ["other" "token"], which user "guest" may not get in namespace "shop"`},
		"one of two":                           {user: author, object: newDeployment(newPicker("token", "admin")), want: `Secrets ["admin"]`},
		"a ReplicaSet of its own by a guest":   {user: guest, object: newReplicaSet(newPicker("token"), ""), want: `Secrets ["token"]`},
		"a ReplicaSet of its own":              {user: author, object: newReplicaSet(newPicker("token"), "")},
		"nothing changed":                      {user: guest, object: newDeployment(newPicker("token")), old: newDeployment(newPicker("token"))},
		"the path changed by a guest":          {user: guest, object: newDeployment(at("/b", newPicker("token"))), old: newDeployment(newPicker("token")), want: `Secrets ["token"]`},
		"the path changed by the author":       {user: author, object: newDeployment(at("/b", newPicker("token"))), old: newDeployment(newPicker("token"))},
		"the Secret removed by a guest":        {user: guest, object: newDeployment(newPicker()), old: newDeployment(newPicker("token"))},
		"the picker removed by a guest":        {user: guest, object: newDeployment(nil), old: newDeployment(newPicker("token"))},
		"added by a guest":                     {user: guest, object: newDeployment(newPicker("token")), old: newDeployment(nil), want: `Secrets ["token"]`},
		"a subresource":                        {user: guest, object: newDeployment(newPicker("token")), old: newDeployment(nil), subresource: "status"},
		"one of two authorizers fails":         {user: partly, object: newDeployment(newPicker("token"))},
		"the authorizer fails":                 {user: guest, object: newDeployment(newPicker("token")), rights: rights{err: errors.New("out of order")}, want: "out of order"},
		"passed on":                            {user: guest, object: newReplicaSet(newPicker("token"), "d"), deployment: stored("d", "token")},
		"passed on to an older one":            {user: guest, object: newReplicaSet(newPicker("token"), "d"), old: newReplicaSet(nil, "d"), deployment: stored("d", "token")},
		"another picker than its Deployment":   {user: guest, object: newReplicaSet(at("/b", newPicker("token")), "d"), deployment: stored("d", "token"), want: `Secrets ["token"]`},
		"more Secrets than its Deployment":     {user: guest, object: newReplicaSet(newPicker("token", "other"), "d"), deployment: stored("d", "token"), want: `Secrets ["other" "token"]`},
		"its Deployment has no picker":         {user: guest, object: newReplicaSet(newPicker("token"), "d"), deployment: stored("d"), want: `Secrets ["token"]`},
		"its Deployment is gone":               {user: guest, object: newReplicaSet(newPicker("token"), "d"), want: `Secrets ["token"]`},
		"another Deployment has the name":      {user: guest, object: newReplicaSet(newPicker("token"), "d"), deployment: stored("d2", "token"), want: `Secrets ["token"]`},
		"its Deployment does not control it":   {user: guest, object: newReplicaSet(newPicker("token"), "d", byNone), deployment: stored("d", "token"), want: `Secrets ["token"]`},
		"a Job of that name":                   {user: guest, object: newReplicaSet(newPicker("token"), "d", byJob), deployment: stored("d", "token"), want: `Secrets ["token"]`},
		"a Deployment of another group":        {user: guest, object: newReplicaSet(newPicker("token"), "d", byOther), deployment: stored("d", "token"), want: `Secrets ["token"]`},
		"the Deployment cannot be read":        {user: guest, object: newReplicaSet(newPicker("token"), "d"), deployment: stored("d", "token"), unreadable: errors.New("etcd is unavailable"), want: "etcd is unavailable"},
		"a Deployment does not inherit itself": {user: guest, object: newDeployment(newPicker("token")), deployment: stored("d", "token"), want: `Secrets ["token"]`},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if test.deployment != nil {
				client = fake.NewClientset(test.deployment)
			}
			if test.unreadable != nil {
				client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.unreadable })
			}
			plugin := NewPlugin()
			plugin.SetAuthorizer(authorizer.AuthorizerFunc(test.rights.Authorize))
			if err := plugin.ValidateInitialization(); err == nil {
				t.Error("initialized without a client")
			}
			plugin.SetExternalKubeClientSet(client)
			if err := plugin.ValidateInitialization(); err != nil {
				t.Fatal(err)
			}
			operation := admission.Create
			if test.old != nil {
				operation = admission.Update
			}
			attributes := admission.NewAttributesRecord(test.object, test.old, schema.GroupVersionKind{}, namespace, "web", schema.GroupVersionResource{}, test.subresource, operation, nil, false, &user.DefaultInfo{Name: test.user})
			err := plugin.Validate(t.Context(), attributes, nil)
			switch {
			case test.want == admitted:
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q", err, test.want)
			case test.unreadable == nil && !apierrors.IsForbidden(err):
				t.Errorf("the status is not 403: %v", err)
			}
		})
	}
}

// Only writes that can set a picker are checked.
func TestHandledOperations(t *testing.T) {
	plugin := NewPlugin()
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false} {
		if got := plugin.Handles(operation); got != want {
			t.Errorf("handles %s: %t, want %t", operation, got, want)
		}
	}
}

// Without an authorizer, the plugin does not start.
func TestInitialization(t *testing.T) {
	plugin := NewPlugin()
	plugin.SetExternalKubeClientSet(fake.NewClientset())
	if err := plugin.ValidateInitialization(); err == nil {
		t.Error("initialized without an authorizer")
	}
}
