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
	"slices"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/pod/admittedpod"
	"k8s.io/kubernetes/pkg/registry/core/pod/evictionfence"
)

// fencedBy has the storage refuse evictions that their EvictionRequests do not want.
func (r *EvictionREST) fencedBy(fence *evictionfence.Fence) *EvictionREST {
	r.fence = fence
	return r
}

// isPassingConflict reports whether the error is a conflict that may pass at the next try.
func isPassingConflict(err error) bool {
	return errors.IsConflict(err) && !evictionfence.IsRefusal(err)
}

// maxDeletions is how often an eviction marks and deletes a pod that others write to at the same time.
// There are a few milliseconds in between.
const maxDeletions = 10

// markAndDelete is addConditionAndDeletePod, again if others have written to the pod in between.
func (r *EvictionREST) markAndDelete(ctx context.Context, name string, validation rest.ValidateObjectFunc, options *metav1.DeleteOptions) error {
	for deletions := 1; ; deletions++ {
		err := addConditionAndDeletePod(r, ctx, name, validation, options)
		if err == nil || !isPassingConflict(err) || !admittedpod.IsPinnedVersion(ctx) || deletions == maxDeletions {
			return err
		}
	}
}

// pin returns the options with which the pod that was marked is deleted. If the eviction is not wanted
// any more, it takes the mark back, and returns an error.
func (r *EvictionREST) pin(ctx context.Context, options *metav1.DeleteOptions, marked runtime.Object) (*metav1.DeleteOptions, error) {
	pinned, unmark, err := admittedpod.Pin(ctx, options, marked)
	if unmark {
		r.unmark(ctx, marked.(*api.Pod))
	}
	return pinned, err
}

// unmark removes the condition that an eviction has added. If that fails, the disruption controller
// clears the condition after two minutes.
func (r *EvictionREST) unmark(ctx context.Context, pod *api.Pod) {
	remove := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		latest := stored.DeepCopyObject().(*api.Pod)
		if latest.UID == pod.UID && latest.DeletionTimestamp == nil {
			latest.Status.Conditions = slices.DeleteFunc(latest.Status.Conditions, isMark)
		}
		return latest, nil
	}
	_, _, err := r.store.Update(ctx, pod.Name, rest.DefaultUpdatedObjectInfo(nil, remove), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil && !errors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Failed to remove the condition DisruptionTarget from a pod that is not evicted", "pod", klog.KObj(pod))
	}
}

// isMark reports whether the condition is the one that an eviction adds.
func isMark(condition api.PodCondition) bool {
	return condition.Type == api.DisruptionTarget && condition.Reason == "EvictionByEvictionAPI"
}
