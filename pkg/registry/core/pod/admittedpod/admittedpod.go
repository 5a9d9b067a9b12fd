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
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

type contextKey struct{}

// admitted is in the context of an eviction.
type admitted struct {
	// check is nil if admission does not mind which pod is evicted.
	check func(*api.Pod) error
}

// NewContext returns the context with which the storage asks admission about an eviction.
func NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &admitted{})
}

// SetCheck is called by admission for an eviction that it admits. check returns an error if it would
// not have admitted the eviction of that pod. It may be called several times.
func SetCheck(ctx context.Context, check func(*api.Pod) error) {
	if a, ok := ctx.Value(contextKey{}).(*admitted); ok {
		a.check = check
	}
}

// Check returns an error if admission has not admitted the eviction of this pod. The storage calls it
// with what is stored, in the transaction that begins the eviction.
//
// A pod that is removed at this moment counts as gone: the transaction would not be written, but turned
// into a deletion by name, which can meet the successor of the pod.
func Check(ctx context.Context, pod *api.Pod) error {
	a, ok := ctx.Value(contextKey{}).(*admitted)
	if !ok || a.check == nil {
		return nil
	}
	if isRemoved(pod) {
		return apierrors.NewNotFound(api.Resource("pods"), pod.Name)
	}
	return a.check(pod)
}

// isRemoved reports whether a deletion of the pod has begun for which nothing has to be awaited.
func isRemoved(pod *api.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) == 0 && len(pod.Finalizers) == 0
}

// Pin returns the options with which the storage deletes the pod that was checked, and no other one.
func Pin(ctx context.Context, options *metav1.DeleteOptions, checked runtime.Object) *metav1.DeleteOptions {
	a, ok := ctx.Value(contextKey{}).(*admitted)
	if !ok || a.check == nil {
		return options
	}
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	uid := checked.(*api.Pod).UID
	options.Preconditions.UID = &uid
	return options
}
