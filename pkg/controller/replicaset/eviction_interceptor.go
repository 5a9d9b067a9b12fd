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

package replicaset

import (
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

// evictionHandler takes the turns of replicaset.apps.k8s.io: it evicts the pod once and within its
// budgets. It never deletes a pod.
//
// If the eviction fails, it is left to the next interceptors. The last of them retries with
// increasing delays for as long as necessary. Retrying here as well would delay the interceptors
// in between.
type evictionHandler struct {
	podLister corelisters.PodLister
	budgets   *poddisruptionbudget.Index
	evict     podeviction.Evictor
	// read reads a pod that may have been evicted.
	read podeviction.Reader
}

// readInterval is the interval of attempts to read a pod while the API server does not respond.
const readInterval = 5 * time.Second

// maxReadTime limits these attempts. The API server may answer all calls but the read of this pod,
// and the turn has a place that other pods of its namespace need.
const maxReadTime = 5 * time.Minute

func (h evictionHandler) handle(ctx context.Context, turn *evictionrequest.Turn) error {
	message, err := h.evictTarget(ctx, turn.Request())
	if err != nil {
		return err
	}
	// The message is written together with the completion. SetMessage could cost an extra write
	// before that.
	return evictionrequest.Decline(message)
}

// evictTarget makes one attempt and returns a message about the outcome. An error means that the
// controller is stopping or that no attempt was possible.
func (h evictionHandler) evictTarget(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) (message string, err error) {
	target := request.Spec.Target.Pod
	pod, err := h.podLister.Pods(request.Namespace).Get(target.Name)
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != target.UID {
		return "The pod is gone.", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading pod %s: %w", target.Name, err)
	}
	if reason := reasonNotToEvict(pod); reason != "" {
		return reason, nil
	}
	budgets := h.budgets.For(pod)
	err = h.evict(ctx, request, coordinationv1alpha1.EvictionInterceptorReplicaSet, pod)
	outcome, detail := podeviction.Classify(err, budgets)
	if outcome != podeviction.Budget && podeviction.MayHaveEvicted(err) {
		leaving, known, readErr := h.isLeaving(ctx, pod)
		switch {
		case readErr != nil:
			return "", fmt.Errorf("reading pod %s, which may have been evicted: %w", pod.Name, readErr)
		case leaving:
			return "Evicted the pod.", nil
		case !known:
			return "The outcome of the eviction is unknown: " + err.Error(), nil
		}
	}
	switch outcome {
	case podeviction.Evicted:
		return "Evicted the pod.", nil
	case podeviction.Gone:
		return "The pod is gone.", nil
	case podeviction.Retry:
		if ctx.Err() != nil {
			return "", fmt.Errorf("evicting pod %s: %w", pod.Name, err)
		}
		detail = err.Error() // Classify has no detail for retriable errors.
	}
	return "Not evicted: " + detail, nil
}

// isLeaving reads whether the pod was evicted by an attempt whose outcome is unknown. It reads until
// the API server answers, because the next interceptor would evict the pod again. known is false if
// the API server refuses to answer, or does not answer in time.
func (h evictionHandler) isLeaving(ctx context.Context, pod *v1.Pod) (leaving, known bool, err error) {
	err = wait.PollUntilContextTimeout(ctx, readInterval, maxReadTime, true, func(ctx context.Context) (bool, error) {
		leaving, err = podeviction.IsLeaving(ctx, h.read, pod)
		known = err == nil
		return known || !podeviction.MayHaveEvicted(err) && !apierrors.IsTooManyRequests(err), nil
	})
	if ctx.Err() == nil {
		err = nil
	}
	return leaving, known, err
}

// reasonNotToEvict returns why the pod is not evicted, or "".
func reasonNotToEvict(pod *v1.Pod) string {
	switch ref := metav1.GetControllerOfNoCopy(pod); {
	case pod.DeletionTimestamp != nil:
		return "The pod is terminating."
	case podutil.IsPodPhaseTerminal(pod.Status.Phase):
		return "The pod has finished."
	case ref == nil || !isAppsKind(ref, "ReplicaSet"):
		// The author of the pod has listed an interceptor that does not apply to it.
		return "Not evicted: no ReplicaSet controls the pod."
	}
	return ""
}
