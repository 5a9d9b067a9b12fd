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

package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// maxReplacements is how often a call replaces a request that others cancel again at the same time.
const maxReplacements = 3

// Create creates a request. One for the same pod that was canceled because nobody wanted it any more is as
// good as absent, and so is every finished one that is being deleted: finalizers on it must not keep others from
// requesting the eviction, and everybody can set some who may delete the pod. The controllers that have set them see
// the deletion. The same holds for one that says that the pod was evicted, if that runs. A dry run shows the new request,
// and removes nothing.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	createValidation = r.drains.afterCreate(once(createValidation))
	for replaced := 0; ; replaced++ {
		// An attempt changes the object.
		created, err := r.Store.Create(ctx, obj.DeepCopyObject(), createValidation, options)
		if !apierrors.IsAlreadyExists(err) || replaced == maxReplacements {
			return created, err
		}
		// Admission has allowed the new request, or the error would be another one.
		request := obj.(*coordination.EvictionRequest)
		stored, getErr := r.Store.Get(ctx, request.Name, &metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr):
			continue
		case getErr != nil:
			return nil, getErr
		}
		old := stored.(*coordination.EvictionRequest)
		superseded, readErr := r.isSuperseded(ctx, old)
		switch {
		case readErr != nil:
			return nil, readErr
		case !superseded || !isForSamePod(request, old):
			return nil, err
		case dryrun.IsDryRun(options.DryRun):
			fresh := request.DeepCopy()
			return fresh, r.complete(ctx, fresh)
		}
		if err := r.removeSuperseded(ctx, old); err != nil {
			return nil, err
		}
	}
}

// errAskedAgain ends an update of a superseded request, which is to be a new one.
var errAskedAgain = errors.New("the request is over, and is requested again")

// Update updates metadata and spec. An apply to a request that is as good as absent, as for Create, asks again, if it
// makes a complete request of its own: the pod has one name for its requests, so
// the new one takes the place of the former one, as it does when the controller removes that first.
// Clients that do not apply cannot mean another object than the one they have read; they create the new
// one. A dry run shows the new request, and removes nothing.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	updateValidation = r.drains.afterUpdate(updateValidation)
	if !forceAllowCreate {
		return r.Store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	}
	createValidation = r.drains.afterCreate(once(createValidation))
	for replaced := 0; ; replaced++ {
		var superseded *coordination.EvictionRequest
		var next runtime.Object
		unlessAskedAgain := &askedAgain{objInfo, func(ctx context.Context, old *coordination.EvictionRequest) error {
			if is, err := r.isSuperseded(ctx, old); err != nil || !is {
				return err
			}
			// First, because it may have other values than the former one, which would be a conflict. And what is
			// left of that is not removed for a request that cannot be created.
			fresh, err := objInfo.UpdatedObject(ctx, &coordination.EvictionRequest{})
			if err != nil || !r.isComplete(ctx, fresh, old) {
				return nil //nolint:nilerror // It is an update like any other.
			}
			if old.DeletionTimestamp != nil && releases(ctx, objInfo, old) {
				return nil
			}
			if err := createValidation(ctx, fresh); err != nil {
				return err
			}
			superseded, next = old.DeepCopy(), fresh
			return errAskedAgain
		}}
		updated, created, err := r.Store.Update(ctx, name, unlessAskedAgain, createValidation, updateValidation, forceAllowCreate, options)
		switch {
		case !errors.Is(err, errAskedAgain):
			return updated, created, err
		case dryrun.IsDryRun(options.DryRun):
			return next, true, nil
		case replaced == maxReplacements:
			return nil, false, apierrors.NewConflict(coordination.Resource("evictionrequests"), name,
				errors.New("the request is over again and again: read it, and try again"))
		}
		if err := r.removeSuperseded(ctx, superseded); err != nil {
			return nil, false, err
		}
	}
}

// once returns a validation that has passed when it has passed once: another attempt is about the same
// object, and admission may count it, as quotas do.
func once(validation rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	passed := false
	return func(ctx context.Context, obj runtime.Object) error {
		if passed || validation == nil {
			return nil
		}
		err := validation(ctx, obj)
		passed = err == nil
		return err
	}
}

// askedAgain calls a function with the stored request, and updates it if that returns no error.
type askedAgain struct {
	rest.UpdatedObjectInfo
	unless func(ctx context.Context, old *coordination.EvictionRequest) error
}

func (a *askedAgain) UpdatedObject(ctx context.Context, stored runtime.Object) (runtime.Object, error) {
	if old, isRequest := stored.(*coordination.EvictionRequest); isRequest && old.UID != "" {
		if err := a.unless(ctx, old); err != nil {
			return nil, err
		}
	}
	return a.UpdatedObjectInfo.UpdatedObject(ctx, stored)
}

// releases reports whether an apply to a request that is being deleted removes finalizers: those who have set some write
// to it as well.
func releases(ctx context.Context, objInfo rest.UpdatedObjectInfo, old *coordination.EvictionRequest) bool {
	updated, err := objInfo.UpdatedObject(ctx, old.DeepCopy())
	if err != nil {
		return false
	}
	request, isRequest := updated.(*coordination.EvictionRequest)
	return isRequest && !slices.Equal(request.Finalizers, old.Finalizers)
}

// isComplete reports whether what an apply makes of nothing is a request for the same pod, and completes it. One that
// names the UID of the former request is about that.
func (r *REST) isComplete(ctx context.Context, obj runtime.Object, old *coordination.EvictionRequest) bool {
	fresh, isRequest := obj.(*coordination.EvictionRequest)
	if !isRequest || fresh.UID != "" || !isForSamePod(fresh, old) {
		return false
	}
	return r.complete(ctx, fresh) == nil // One needs requesters.
}

// complete makes of a request what the store would store.
func (r *REST) complete(ctx context.Context, fresh *coordination.EvictionRequest) error {
	rest.FillObjectMetaSystemFields(fresh)
	return rest.BeforeCreate(r.CreateStrategy, ctx, fresh)
}

// isForSamePod reports whether two requests have the same target. Admission has allowed the eviction of
// the pod with the name in the new one.
func isForSamePod(a, b *coordination.EvictionRequest) bool {
	return apiequality.Semantic.DeepEqual(a.Spec.Target, b.Spec.Target)
}

// isSuperseded reports whether a new request may replace this one, which is finished: nothing is lost with it, and no
// finalizers keep it, or it is deleted but for these. One that has evicted its pod is what is known of that; it is
// superseded only if the pod, which is read after it, runs all the same.
func (r *REST) isSuperseded(ctx context.Context, request *coordination.EvictionRequest) (bool, error) {
	final, isDeleted := evictionrequesttools.FinalCondition(request.Status.Conditions), request.DeletionTimestamp != nil
	switch {
	case final == nil, !isDeleted && len(request.Finalizers) > 0, request.Spec.Target.Pod == nil:
		return false, nil
	case final.Type == string(coordination.EvictionRequestConditionEvicted):
		pod, err := r.targets.get(ctx, request.Spec.Target.Pod.Name)
		if err != nil {
			return false, apierrors.NewInternalError(fmt.Errorf("reading pod %q, which was evicted according to its request: %w", request.Spec.Target.Pod.Name, err))
		}
		return evictionrequesttools.StillRuns(pod, types.UID(request.Spec.Target.Pod.UID)), nil
	}
	return isDeleted || final.Reason == coordination.EvictionRequestReasonNoRequesters, nil
}

// removeSuperseded removes a request that is superseded, unless it has changed. Admission is not asked, as
// when etcd removes it: the request is finished.
func (r *REST) removeSuperseded(ctx context.Context, superseded *coordination.EvictionRequest) error {
	var err error
	if superseded.DeletionTimestamp == nil {
		_, _, err = r.Store.Delete(ctx, superseded.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &superseded.UID, ResourceVersion: &superseded.ResourceVersion},
		})
	} else {
		// The last finalizer that goes ends the deletion.
		released := superseded.DeepCopy()
		released.Finalizers = nil
		_, _, err = r.Store.Update(ctx, superseded.Name, rest.DefaultUpdatedObjectInfo(released), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // Whatever it is now, the next attempt sees it.
	}
	return err
}
