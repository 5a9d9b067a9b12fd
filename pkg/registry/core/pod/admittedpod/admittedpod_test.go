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
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/pod"
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
// What the storage has found out about the pod is asked when the pod is marked, and when it is deleted, also in a dry
// run, which marks nothing.
func TestRequire(t *testing.T) {
	ready := errors.New("the pod is ready")
	for name, want := range map[string]error{"as it was": nil, "not any more": ready} {
		t.Run(name, func(t *testing.T) {
			ctx := NewContext(t.Context())
			SetConfirm(ctx, "mark", func(context.Context) error { return nil })
			Require(ctx, func(*api.Pod) error { return errors.New("replaced by the next requirement") })
			Require(ctx, func(*api.Pod) error { return want })
			if got := Validation(ctx)(ctx, pod); !errors.Is(got, want) {
				t.Errorf("a dry run: got error %v, want %v", got, want)
			}
			if got := Check(ctx, pod); !errors.Is(got, want) {
				t.Errorf("when it is marked: got error %v, want %v", got, want)
			}
			marked := pod.DeepCopy()
			marked.Status.Conditions = []api.PodCondition{{Type: api.DisruptionTarget, Status: api.ConditionTrue, Message: "mark"}}
			if got := Validation(ctx)(ctx, marked); !errors.Is(got, want) {
				t.Errorf("when it is deleted: got error %v, want %v", got, want)
			}
		})
	}
	Require(t.Context(), func(*api.Pod) error { return ready })
	if err := Check(t.Context(), pod); err != nil {
		t.Errorf("not an eviction, and got error %v", err)
	}
}

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
			pinned, err := Pin(test.ctx, options, pod)
			if diff := cmp.Diff(&test.want, pinned); diff != "" || err != nil {
				t.Errorf("error %v, unexpected options (-want, +got):\n%s", err, diff)
			}
			// The caller may try again, when another pod has the name.
			if diff := cmp.Diff(&test.options, options); diff != "" {
				t.Errorf("the options of the caller have changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// What confirms an eviction is asked after the pod was marked.
func TestPinOfUnwantedEviction(t *testing.T) {
	errUnwanted := errors.New("the request is canceled")
	for name, want := range map[string]error{"wanted": nil, "not wanted": errUnwanted} {
		t.Run(name, func(t *testing.T) {
			ctx := NewContext(t.Context())
			SetConfirm(ctx, "mark", func(context.Context) error { return want })
			if err := Check(ctx, pod); err != nil {
				t.Fatalf("the check does not ask whether it is wanted, and got error %v", err)
			}
			pinned, err := Pin(ctx, &metav1.DeleteOptions{}, pod)
			if !errors.Is(err, want) {
				t.Errorf("got error %v, want %v", err, want)
			}
			if want == nil && *pinned.Preconditions.UID != podUID {
				t.Errorf("got options %v, want the UID", pinned)
			}
		})
	}
	SetConfirm(t.Context(), "mark", func(context.Context) error { return errUnwanted })
	if _, err := Pin(t.Context(), &metav1.DeleteOptions{}, pod); err != nil {
		t.Errorf("not an eviction, and got error %v", err)
	}
}

func conditions(of *api.Pod) []api.PodCondition { return of.Status.Conditions }

// The mark of an eviction is its own: the pod is deleted only with it, whatever else others write, and
// it is taken back only if it is still there.
func TestMark(t *testing.T) {
	long := metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	ready := api.PodCondition{Type: api.PodReady, Status: api.ConditionTrue}
	target := func(status api.ConditionStatus, message string) api.PodCondition {
		return api.PodCondition{Type: api.DisruptionTarget, Status: status, Reason: "EvictionByEvictionAPI", Message: message, LastTransitionTime: long}
	}
	with := func(conditions ...api.PodCondition) *api.Pod {
		changed := pod.DeepCopy()
		changed.Status.Conditions = conditions
		return changed
	}
	for name, test := range map[string]struct {
		before, after *api.Pod
		// marked is the pod with the condition that upstream adds.
		marked *api.Pod
	}{
		"a pod":                         {before: with(ready), marked: with(ready, target(api.ConditionTrue, "Eviction API: evicting"))},
		"marked before":                 {before: with(target(api.ConditionTrue, "of another")), marked: with(target(api.ConditionTrue, "Eviction API: evicting"))},
		"marked once, and not any more": {before: with(target(api.ConditionFalse, ""), ready), marked: with(target(api.ConditionTrue, "Eviction API: evicting"), ready)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := NewContext(t.Context())
			SetConfirm(ctx, "mark", func(context.Context) error { return nil })
			if err := Check(ctx, test.before); err != nil {
				t.Fatal(err)
			}
			marked := test.marked.DeepCopy()
			Mark(ctx, marked)
			_, mark := podutil.GetPodCondition(&marked.Status, api.DisruptionTarget)
			if mark.Message != "mark" || time.Since(mark.LastTransitionTime.Time) > time.Minute {
				t.Errorf("the mark is %v, want that of now", mark)
			}
			// The eviction may have to mark the pod again: what was before is not its own mark.
			if err := Check(ctx, marked); err != nil {
				t.Fatal(err)
			}
			written := marked.DeepCopy()
			written.Labels, written.ResourceVersion = map[string]string{"touched": "yes"}, "9"
			if err := Validation(ctx)(ctx, written); err != nil {
				t.Errorf("others have written to the pod, and got error %v", err)
			}
			if err := Validation(ctx)(ctx, test.marked); !apierrors.IsConflict(err) {
				t.Errorf("another eviction has marked the pod, and got error %v", err)
			}
			if err := Validation(ctx)(ctx, test.before); !apierrors.IsConflict(err) {
				t.Errorf("the mark was cleared, and got error %v", err)
			}
			restored, ok := Unmark(ctx, written)
			if diff := cmp.Diff(conditions(test.before), conditions(restored)); !ok || diff != "" {
				t.Errorf("the mark was taken back: %t (-before, +after):\n%s", ok, diff)
			}
			if _, ok := Unmark(ctx, test.marked); ok {
				t.Error("the mark of another eviction was taken back")
			}
			// Another eviction has replaced the mark, and this one marks the pod again.
			if err := Check(ctx, test.marked); err != nil {
				t.Fatal(err)
			}
			restored, ok = Unmark(ctx, written)
			if diff := cmp.Diff(conditions(test.marked), conditions(restored)); !ok || diff != "" {
				t.Errorf("the mark of the other eviction is back: %t (-want, +got):\n%s", ok, diff)
			}
		})
	}
	plain := NewContext(t.Context())
	unchanged := with(target(api.ConditionTrue, "Eviction API: evicting"))
	Mark(plain, unchanged)
	if message := conditions(unchanged)[0].Message; message != "Eviction API: evicting" || Validation(plain)(plain, pod) != nil || MayRepeat(plain) {
		t.Errorf("an eviction for no request has the mark %q, or may be refused", message)
	}
}
