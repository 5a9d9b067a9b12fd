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

// Package admittedpod connects admission, which decides about the pod that has a name when it looks,
// with the eviction storage, which ends the pod that has the name later: after it has waited for
// budgets, that may be another pod, or the pod may have changed.
package admittedpod

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

type contextKey struct{}

// admitted is in the context of an eviction.
type admitted struct {
	// checks is empty if admission does not mind which pod is evicted.
	checks []func(*api.Pod) error
	// required is nil if the storage evicts the pod whatever has become of it.
	required func(*api.Pod) error
	// confirm is nil if the eviction is wanted until the end.
	confirm func(context.Context) error
	// mark is the message of the condition DisruptionTarget that the eviction adds, if it has to be
	// confirmed. No other eviction adds the same.
	mark string
	// isChecked is whether a pod was checked, and before is the condition that it had before the mark, or
	// nil.
	isChecked bool
	before    *api.PodCondition
}

// of returns what is in the context of an eviction that may be refused, or nil.
func of(ctx context.Context) *admitted {
	a, ok := ctx.Value(contextKey{}).(*admitted)
	if !ok || len(a.checks) == 0 && a.confirm == nil {
		return nil
	}
	return a
}

// NewContext returns the context with which the storage asks admission about an eviction.
func NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &admitted{})
}

// AddCheck is called by admission for an eviction that it admits. check returns an error if it would
// not have admitted the eviction of that pod. It may be called several times.
func AddCheck(ctx context.Context, check func(*api.Pod) error) {
	if a, ok := ctx.Value(contextKey{}).(*admitted); ok {
		a.checks = append(a.checks, check)
	}
}

// SetConfirm is called for an eviction that may stop being wanted. confirm returns an error if it is
// not wanted any more. The storage calls it when it has marked the pod with the condition
// DisruptionTarget and this message, before it deletes the pod.
func SetConfirm(ctx context.Context, mark string, confirm func(context.Context) error) {
	if a, ok := ctx.Value(contextKey{}).(*admitted); ok {
		a.mark, a.confirm = mark, confirm
	}
}

// Require is called by the storage for what it has found out about the pod, and must be so until the pod is deleted.
// required returns an error if it is not so any more. It takes the place of what was required before.
func Require(ctx context.Context, required func(*api.Pod) error) {
	if a, ok := ctx.Value(contextKey{}).(*admitted); ok {
		a.required = required
	}
}

// Check returns an error if admission has not admitted the eviction of this pod, or the pod is not as the storage
// requires. The storage calls it with what is stored, in the transaction that begins the eviction.
//
// A pod that is removed at this moment counts as gone: the transaction would not be written, but turned
// into a deletion by name, which can meet the successor of the pod.
func Check(ctx context.Context, pod *api.Pod) error {
	a := of(ctx)
	switch {
	case a == nil:
		return nil
	case isRemoved(pod):
		return apierrors.NewNotFound(api.Resource("pods"), pod.Name)
	}
	a.isChecked = true
	// After a conflict it may be the own mark, or that of another eviction.
	if !a.hasMark(pod) {
		_, condition := podutil.GetPodCondition(&pod.Status, api.DisruptionTarget)
		a.before = condition.DeepCopy()
	}
	for _, check := range a.checks {
		if err := check(pod); err != nil {
			return err
		}
	}
	return a.require(pod)
}

// require returns an error if the pod is not as the storage requires.
func (a *admitted) require(pod *api.Pod) error {
	if a.required == nil {
		return nil
	}
	return a.required(pod)
}

// isRemoved reports whether a deletion of the pod has begun for which nothing has to be awaited.
func isRemoved(pod *api.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 && len(pod.Finalizers) == 0
}

// Mark completes the condition that an eviction adds to the pod.
func Mark(ctx context.Context, pod *api.Pod) {
	a := of(ctx)
	if a == nil || a.confirm == nil {
		return
	}
	if _, condition := podutil.GetPodCondition(&pod.Status, api.DisruptionTarget); condition != nil {
		condition.Message, condition.LastTransitionTime = a.mark, metav1.Now()
	}
}

// Pin returns the options with which the storage deletes the pod that was checked and marked, and no
// other one, or why it must not.
func Pin(ctx context.Context, options *metav1.DeleteOptions, checked runtime.Object) (*metav1.DeleteOptions, error) {
	a := of(ctx)
	if a == nil {
		return options, nil
	}
	if a.confirm != nil {
		if err := a.confirm(ctx); err != nil {
			return nil, err
		}
	}
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	uid := checked.(*api.Pod).UID
	options.Preconditions.UID = &uid
	return options, nil
}

// Validation returns what the storage validates in the transaction that deletes the pod: that it has the
// mark of the eviction. So of several evictions, one deletes the pod, and whoever looks for the mark
// finds it until then. Others may write to the pod, as far as the storage requires nothing else.
func Validation(ctx context.Context) rest.ValidateObjectFunc {
	a := of(ctx)
	if a == nil || a.confirm == nil {
		return rest.ValidateAllObjectFunc
	}
	return func(_ context.Context, stored runtime.Object) error {
		pod := stored.(*api.Pod)
		if a.isChecked && !a.hasMark(pod) { // A dry run marks nothing.
			return apierrors.NewConflict(api.Resource("pods"), pod.Name, errors.New("its condition DisruptionTarget was changed while it was evicted"))
		}
		return a.require(pod)
	}
}

// Deleted returns what becomes of an eviction when the storage has deleted the pod, or has not: a pod that
// terminates already is not validated. If another eviction has marked and deleted it in between, that was
// the one, and this one is refused if admission minds.
func Deleted(ctx context.Context, deleted runtime.Object, err error) error {
	a := of(ctx)
	if err != nil || a == nil || a.confirm == nil || !a.isChecked {
		return err
	}
	pod, isPod := deleted.(*api.Pod)
	if !isPod || a.hasMark(pod) {
		return nil
	}
	for _, check := range a.checks {
		if err := check(pod); err != nil {
			return err
		}
	}
	return nil
}

// MayRepeat reports whether an eviction may mark the pod once more after a conflict.
func MayRepeat(ctx context.Context) bool {
	a := of(ctx)
	return a != nil && a.confirm != nil
}

// Unmark returns the pod with the condition that it had before the eviction, or false if the mark is not
// that of this eviction any more.
func Unmark(ctx context.Context, pod *api.Pod) (*api.Pod, bool) {
	a := of(ctx)
	if a == nil || a.confirm == nil || !a.hasMark(pod) {
		return nil, false
	}
	pod = pod.DeepCopy()
	i, _ := podutil.GetPodCondition(&pod.Status, api.DisruptionTarget)
	if a.before != nil {
		pod.Status.Conditions[i] = *a.before
	} else {
		pod.Status.Conditions = slices.Delete(pod.Status.Conditions, i, i+1)
	}
	return pod, true
}

func (a *admitted) hasMark(pod *api.Pod) bool {
	_, condition := podutil.GetPodCondition(&pod.Status, api.DisruptionTarget)
	return condition != nil && condition.Status == api.ConditionTrue && condition.Message == a.mark
}
