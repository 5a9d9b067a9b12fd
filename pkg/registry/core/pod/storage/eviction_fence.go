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
	goerrors "errors"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/pod"
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

// maxDeletions is how often an eviction marks a pod, if others change the mark before it is deleted.
const maxDeletions = 10

// unmarkTimeout limits the time in which the mark of an eviction is taken back.
const unmarkTimeout = 10 * time.Second

// markAndDelete is addConditionAndDeletePod, for a pod that is evicted with the options that the caller wants. If no
// budget has counted the pod, options has its version, so that it is not deleted once one counts it. Who writes to
// the pod all the time could keep it so: for a request, it is asked at each reading instead whether that is still so,
// and repeated if others have changed the mark in between.
func (r *EvictionREST) markAndDelete(ctx context.Context, pod *api.Pod, wanted, options *metav1.DeleteOptions) error {
	if !admittedpod.MayRepeat(ctx) {
		return addConditionAndDeletePod(r, ctx, pod.Name, rest.ValidateAllObjectFunc, options)
	}
	asJudged := true
	admittedpod.Require(ctx, func(current *api.Pod) error {
		if asJudged = resourceVersionIsUnset(options) || staysUncounted(pod, current); !asJudged {
			return errors.NewConflict(api.Resource("pods"), pod.Name, goerrors.New("its readiness or phase has changed while it was evicted"))
		}
		return nil
	})
	for deletions := 1; ; deletions++ {
		err := addConditionAndDeletePod(r, ctx, pod.Name, rest.ValidateAllObjectFunc, wanted)
		switch {
		case err != nil && !asJudged:
			r.unmark(ctx, pod)
			return err
		case err == nil, !isPassingConflict(err), !resourceVersionIsUnset(wanted), deletions == maxDeletions:
			return err
		}
	}
}

// staysUncounted reports whether no budget counts the pod, as when it was judged: because of its phase, or because it
// is not ready.
func staysUncounted(judged, current *api.Pod) bool {
	return canIgnorePDB(current) || !canIgnorePDB(judged) && !podutil.IsPodReady(current)
}

// pin returns the options with which the pod that was marked is deleted. If the eviction is not wanted
// any more, it takes the mark back, and returns an error.
func (r *EvictionREST) pin(ctx context.Context, options *metav1.DeleteOptions, marked runtime.Object) (*metav1.DeleteOptions, error) {
	pinned, err := admittedpod.Pin(ctx, options, marked)
	if err != nil {
		r.unmark(ctx, marked.(*api.Pod))
	}
	return pinned, err
}

// unmark gives the pod the condition back that it had before the eviction, unless another one has marked it
// since. If that fails, the disruption controller clears the condition after two minutes.
func (r *EvictionREST) unmark(ctx context.Context, pod *api.Pod) {
	// The client may have gone away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkTimeout)
	defer cancel()
	restore := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		latest := stored.(*api.Pod)
		// A write to a pod that is being removed would be turned into a deletion by name.
		if restored, ok := admittedpod.Unmark(ctx, latest); ok && latest.UID == pod.UID && latest.DeletionTimestamp == nil {
			return restored, nil
		}
		return nil, errors.NewNotFound(api.Resource("pods"), pod.Name)
	}
	_, _, err := r.store.Update(ctx, pod.Name, rest.DefaultUpdatedObjectInfo(nil, restore), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil && !errors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Failed to remove the condition DisruptionTarget from a pod that is not evicted", "pod", klog.KObj(pod))
	}
}
