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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

type contextKey struct{}

// admitted is in the context of an eviction.
type admitted struct {
	// checks is empty if admission does not mind which pod is evicted.
	checks []func(*api.Pod) error
	// confirm is nil if the eviction is wanted until the end.
	confirm func(context.Context) error
	// marked is whether the pod had the condition DisruptionTarget before the eviction.
	marked bool
	// versioned is whether Pin has pinned the version of the pod, which the caller did not.
	versioned bool
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
// DisruptionTarget, before it deletes it.
func SetConfirm(ctx context.Context, confirm func(context.Context) error) {
	if a, ok := ctx.Value(contextKey{}).(*admitted); ok {
		a.confirm = confirm
	}
}

// Check returns an error if admission has not admitted the eviction of this pod. The storage calls it
// with what is stored, in the transaction that begins the eviction.
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
	_, condition := podutil.GetPodCondition(&pod.Status, api.DisruptionTarget)
	a.marked = condition != nil && condition.Status == api.ConditionTrue
	for _, check := range a.checks {
		if err := check(pod); err != nil {
			return err
		}
	}
	return nil
}

// isRemoved reports whether a deletion of the pod has begun for which nothing has to be awaited.
func isRemoved(pod *api.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 && len(pod.Finalizers) == 0
}

// Pin returns the options with which the storage deletes the pod that was checked and marked, and no
// other one, or why it must not. unmark is whether the mark is to be taken back then, because the pod
// did not have it before. If the eviction had to be confirmed, the pod is deleted as it was marked: so
// the mark is there until then, and of several evictions, one deletes the pod.
func Pin(ctx context.Context, options *metav1.DeleteOptions, checked runtime.Object) (pinned *metav1.DeleteOptions, unmark bool, err error) {
	a := of(ctx)
	if a == nil {
		return options, false, nil
	}
	if a.confirm != nil {
		if err := a.confirm(ctx); err != nil {
			return nil, !a.marked, err
		}
	}
	pinned = options.DeepCopy()
	if pinned.Preconditions == nil {
		pinned.Preconditions = &metav1.Preconditions{}
	}
	pod := checked.(*api.Pod)
	pinned.Preconditions.UID = &pod.UID
	if a.confirm != nil && ptr.Deref(pinned.Preconditions.ResourceVersion, "") == "" {
		pinned.Preconditions.ResourceVersion = &pod.ResourceVersion
		a.versioned = true
	}
	return pinned, false, nil
}

// IsPinnedVersion reports whether a conflict may come from the version that Pin has pinned, so that the
// storage can check, mark and delete the pod once more.
func IsPinnedVersion(ctx context.Context) bool {
	a := of(ctx)
	return a != nil && a.versioned
}
