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
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

var (
	errInvalid     = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil)
	errForbidden   = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("admission webhook \"names.example.com\" denied the request"))
	errQuota       = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota"))
	errUnavailable = apierrors.NewServiceUnavailable("starting")
)

func errTerminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause}}
	return err
}

// attempts returns the answers in order, and records the number of names of each pod.
type attempts struct {
	answers []error
	names   []int
}

func (a *attempts) create(template *v1.PodTemplateSpec) error {
	a.names = append(a.names, len(template.Spec.EvictionInterceptors))
	if len(a.names) > len(a.answers) {
		return nil
	}
	return a.answers[len(a.names)-1]
}

func TestCreate(t *testing.T) {
	const name = "deployment.apps.k8s.io"
	terminating := errTerminating()
	tests := map[string]struct {
		spec      []string
		answers   []error
		wantNames []int
		wantErr   error
	}{
		"created":                                 {wantNames: []int{1}},
		"the names are invalid":                   {answers: []error{errInvalid}, wantNames: []int{1, 0}},
		"a webhook forbids the names":             {answers: []error{errForbidden}, wantNames: []int{1, 0}},
		"the quota is full":                       {answers: []error{errQuota, errForbidden}, wantNames: []int{1, 0}, wantErr: errQuota},
		"a policy refuses":                        {answers: []error{errInvalid, errQuota}, wantNames: []int{1, 0}, wantErr: errInvalid},
		"forbidden, and then unavailable":         {answers: []error{errQuota, errUnavailable}, wantNames: []int{1, 0}, wantErr: errQuota},
		"unavailable":                             {answers: []error{errUnavailable}, wantNames: []int{1}, wantErr: errUnavailable},
		"the namespace terminates":                {answers: []error{terminating}, wantNames: []int{1}, wantErr: terminating},
		"the author has named it":                 {spec: []string{name}, answers: []error{errForbidden}, wantNames: []int{1}, wantErr: errForbidden},
		"interceptors of the author are kept":     {spec: []string{"user.example.com"}, answers: []error{errForbidden}, wantNames: []int{2, 1}},
		"cannot be added":                         {spec: numbered("i", MaxOnPod), wantNames: []int{MaxOnPod}},
		"cannot be added, and the pod is refused": {spec: numbered("i", MaxOnPod), answers: []error{errForbidden}, wantNames: []int{MaxOnPod}, wantErr: errForbidden},
	}
	for testName, test := range tests {
		t.Run(testName, func(t *testing.T) {
			template := &v1.PodTemplateSpec{Spec: v1.PodSpec{EvictionInterceptors: interceptorsNamed(test.spec)}}
			before := template.DeepCopy()
			a := &attempts{answers: test.answers}
			creator := NewCreator(testingclock.NewFakePassiveClock(time.Now()))
			if err := creator.Create("owner", template, a.create, nil, name); err != test.wantErr {
				t.Errorf("got error %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.wantNames, a.names); diff != "" {
				t.Errorf("number of names of the created pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template changed (-want +got):\n%s", diff)
			}
		})
	}
}

// A quota that is full for an hour must not cost twice the calls for an hour.
func TestCreateDoesNotRetryForever(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	creator := NewCreator(clock)
	calls := func(owner types.UID, answers ...error) int {
		a := &attempts{answers: answers}
		_ = creator.Create(owner, &v1.PodTemplateSpec{}, a.create, nil, "deployment.apps.k8s.io")
		return len(a.names)
	}
	if got := calls("full", errQuota, errQuota); got != 2 {
		t.Errorf("the first pod is tried %d times, want 2", got)
	}
	for range 10 {
		if got := calls("full", errQuota, errQuota); got != 1 {
			t.Errorf("the next pod is tried %d times, want 1", got)
		}
	}
	if got := calls("other", errForbidden); got != 2 {
		t.Errorf("a pod of another owner is tried %d times, want 2", got)
	}
	if got := calls("other", errForbidden); got != 2 {
		t.Errorf("the next one, whose names are refused, is tried %d times, want 2", got)
	}
	clock.SetTime(clock.Now().Add(refusalTTL))
	if got := calls("full", errQuota, errQuota); got != 2 {
		t.Errorf("a minute later a pod is tried %d times, want 2", got)
	}
	clock.SetTime(clock.Now().Add(refusalTTL))
	calls("another", errQuota, errQuota)
	if got := len(creator.refused); got != 1 {
		t.Errorf("%d owners are stored, want only those of the last minute", got)
	}
}

// Who creates pods without the names of controllers says so.
func TestCreateSaysWhatIsLeftOut(t *testing.T) {
	named := func(count int) *v1.PodTemplateSpec {
		template := &v1.PodTemplateSpec{}
		for i := range count {
			template.Spec.EvictionInterceptors = append(template.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: fmt.Sprintf("i%d.example.com", i)})
		}
		return template
	}
	registered := named(13)
	registered.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + "annotated.example.com": "1"}
	grouped := named(14)
	grouped.Spec.SchedulingGroup = &v1.PodSchedulingGroup{}
	for name, test := range map[string]struct {
		template *v1.PodTemplateSpec
		answers  []error
		want     []string
	}{
		"room":                       {template: named(13)},
		"no room":                    {template: named(14), want: []string{"the pod template names 14 interceptors, and a pod has at most 15"}},
		"no room, by annotation":     {template: registered, want: []string{"the pod template names 14 interceptors, and a pod has at most 15"}},
		"no room, and not created":   {template: named(14), answers: []error{errUnavailable}},
		"refused":                    {template: named(0), answers: []error{errForbidden}, want: []string{"the API server refuses them: " + errForbidden.Error()}},
		"refused, also without them": {template: named(0), answers: []error{errQuota, errQuota}},
		"in a scheduling group":      {template: grouped, want: []string{"the pod template names 14 interceptors, and a pod has at most 15"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attempts{answers: test.answers}
			var got []string
			creator := NewCreator(testingclock.NewFakePassiveClock(time.Now()))
			_ = creator.Create("owner", test.template, a.create, func(reason string) { got = append(got, reason) }, "deployment.apps.k8s.io", "replicaset.apps.k8s.io")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}
