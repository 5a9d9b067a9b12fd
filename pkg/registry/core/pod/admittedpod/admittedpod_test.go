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

package admittedpod

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

// What happens with the result is in the tests of the eviction storage, and what admission checks in
// those of InterceptedEviction.

const podUID = types.UID("6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91")

var pod = &api.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: podUID}}

func checked(ctx context.Context, err error) context.Context {
	SetCheck(ctx, func(*api.Pod) error { return err })
	return ctx
}

func TestCheck(t *testing.T) {
	other := errors.New("another pod")
	for name, test := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"not an eviction":                  {ctx: checked(t.Context(), other)},
		"admission does not mind":          {ctx: NewContext(t.Context())},
		"the pod that was admitted":        {ctx: checked(NewContext(t.Context()), nil)},
		"another pod":                      {ctx: checked(NewContext(t.Context()), other), want: other},
		"another pod, in a nested context": {ctx: context.WithoutCancel(checked(NewContext(t.Context()), other)), want: other},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Check(test.ctx, pod); !errors.Is(got, test.want) {
				t.Errorf("got error %v, want %v", got, test.want)
			}
		})
	}
}

// A pod that is removed at this moment is gone, whatever admission says.
func TestCheckOfRemovedPod(t *testing.T) {
	leaving := func(period *int64, finalizers ...string) *api.Pod {
		leaving := pod.DeepCopy()
		leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds, leaving.Finalizers = ptr.To(metav1.Now()), period, finalizers
		return leaving
	}
	for name, test := range map[string]struct {
		pod  *api.Pod
		gone bool
	}{
		"it runs":                {pod: pod},
		"it terminates":          {pod: leaving(ptr.To[int64](30))},
		"it is removed":          {pod: leaving(ptr.To[int64](0)), gone: true},
		"it is removed at once":  {pod: leaving(nil), gone: true},
		"a finalizer retains it": {pod: leaving(ptr.To[int64](0), "example.com/logs")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(checked(NewContext(t.Context()), nil), test.pod); apierrors.IsNotFound(err) != test.gone || (err != nil) != test.gone {
				t.Errorf("got error %v, want that the pod is gone: %v", err, test.gone)
			}
		})
	}
	if err := Check(NewContext(t.Context()), leaving(nil)); err != nil {
		t.Errorf("admission does not mind, and got error %v", err)
	}
}

func TestPin(t *testing.T) {
	admits := func(ctx context.Context) context.Context { return checked(ctx, nil) }
	grace := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)}
	withPreconditions := func(p metav1.Preconditions) metav1.DeleteOptions {
		options := grace
		options.Preconditions = &p
		return options
	}
	for name, test := range map[string]struct {
		ctx           context.Context
		options, want metav1.DeleteOptions
	}{
		"not an eviction":         {ctx: admits(t.Context()), options: grace, want: grace},
		"admission does not mind": {ctx: NewContext(t.Context()), options: grace, want: grace},
		"no preconditions":        {ctx: admits(NewContext(t.Context())), options: grace, want: withPreconditions(metav1.Preconditions{UID: ptr.To(podUID)})},
		"an empty UID": {
			ctx: admits(NewContext(t.Context())), options: withPreconditions(metav1.Preconditions{UID: ptr.To(types.UID(""))}),
			want: withPreconditions(metav1.Preconditions{UID: ptr.To(podUID)}),
		},
		"a version": {
			ctx: admits(NewContext(t.Context())), options: withPreconditions(metav1.Preconditions{ResourceVersion: ptr.To("7")}),
			want: withPreconditions(metav1.Preconditions{UID: ptr.To(podUID), ResourceVersion: ptr.To("7")}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := test.options.DeepCopy()
			if diff := cmp.Diff(&test.want, Pin(test.ctx, options, pod)); diff != "" {
				t.Errorf("unexpected options (-want, +got):\n%s", diff)
			}
			// The caller may try again, when another pod has the name.
			if diff := cmp.Diff(&test.options, options); diff != "" {
				t.Errorf("the options of the caller have changed (-before, +after):\n%s", diff)
			}
		})
	}
}
