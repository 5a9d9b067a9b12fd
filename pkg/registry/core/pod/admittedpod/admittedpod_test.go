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
	AddCheck(ctx, func(*api.Pod) error { return err })
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
			pinned, unmark, err := Pin(test.ctx, options, pod)
			if diff := cmp.Diff(&test.want, pinned); diff != "" || unmark || err != nil {
				t.Errorf("error %v, unmark %t, unexpected options (-want, +got):\n%s", err, unmark, diff)
			}
			// The caller may try again, when another pod has the name.
			if diff := cmp.Diff(&test.options, options); diff != "" {
				t.Errorf("the options of the caller have changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// What confirms an eviction is asked after the pod was marked. The mark is taken back if the eviction
// has added it.
func TestPinOfUnwantedEviction(t *testing.T) {
	errUnwanted := errors.New("the request is canceled")
	with := func(status api.ConditionStatus) *api.Pod {
		marked := pod.DeepCopy()
		marked.ResourceVersion = "8"
		marked.Status.Conditions = []api.PodCondition{{Type: api.DisruptionTarget, Status: status}}
		return marked
	}
	for name, test := range map[string]struct {
		// before is the pod when the eviction began.
		before  *api.Pod
		confirm error
		unmark  bool
	}{
		"wanted":                       {before: pod},
		"not wanted":                   {before: pod, confirm: errUnwanted, unmark: true},
		"not wanted, marked before":    {before: with(api.ConditionTrue), confirm: errUnwanted},
		"not wanted, was marked once":  {before: with(api.ConditionFalse), confirm: errUnwanted, unmark: true},
		"wanted, and marked by others": {before: with(api.ConditionTrue)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := NewContext(t.Context())
			SetConfirm(ctx, func(context.Context) error { return test.confirm })
			if err := Check(ctx, test.before); err != nil {
				t.Fatalf("the check does not ask whether it is wanted, and got error %v", err)
			}
			pinned, unmark, err := Pin(ctx, &metav1.DeleteOptions{}, with(api.ConditionTrue))
			if !errors.Is(err, test.confirm) || unmark != test.unmark {
				t.Errorf("error %v, unmark %t, want error %v, unmark %t", err, unmark, test.confirm, test.unmark)
			}
			if isPinned := pinned != nil && *pinned.Preconditions.UID == podUID && *pinned.Preconditions.ResourceVersion == "8"; isPinned != (test.confirm == nil) {
				t.Errorf("pinned: %t", isPinned)
			}
			if got := IsPinnedVersion(ctx); got != (test.confirm == nil) {
				t.Errorf("the version is pinned: %t", got)
			}
		})
	}
	ctx := NewContext(t.Context())
	SetConfirm(ctx, func(context.Context) error { return nil })
	own := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To("7")}}
	if pinned, _, err := Pin(ctx, own, with(api.ConditionTrue)); err != nil || *pinned.Preconditions.ResourceVersion != "7" || IsPinnedVersion(ctx) {
		t.Errorf("error %v, options %v, want the version of the caller", err, pinned)
	}
	SetConfirm(t.Context(), func(context.Context) error { return errUnwanted })
	if _, _, err := Pin(t.Context(), &metav1.DeleteOptions{}, pod); err != nil {
		t.Errorf("not an eviction, and got error %v", err)
	}
}
