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

package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/utils/ptr"
)

// MarkRenewal is after what time the mark of a pod is renewed before its deletion is attempted again: what is left of
// the two minutes for which a mark stays is longer than a call may take.
const MarkRenewal = 30 * time.Second

// deletionTimeout bounds the wait for the deletion of a pod, as that for an eviction: more than webhooks may take.
const deletionTimeout = 35 * time.Second

// Escalate does an act of an escalation to the pod. request is the EvictionRequest that the cache
// has. confirm returns an error if the act is not due any more.
func (w *Writer) Escalate(ctx context.Context, pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, action v1.MaintenanceEscalation, message string, confirm func(context.Context) error) error {
	var err error
	switch action {
	case v1.MaintenanceEscalationSkipInterceptors:
		err = w.skipInterceptors(ctx, pod, request, message)
	case v1.MaintenanceEscalationForceDelete:
		err = w.deletePod(ctx, pod, ptr.To[int64](0), message, confirm)
	default:
		err = w.deletePod(ctx, pod, nil, message, confirm)
	}
	if err != nil {
		return err
	}
	metrics.CountEscalation(action)
	return nil
}

// skipInterceptors marks the request, so that its remaining interceptors are passed over.
func (w *Writer) skipInterceptors(ctx context.Context, pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, message string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": request.UID},
		"status":   map[string]any{"conditions": []metav1.Condition{skippedCondition(request, message, w.clock.Now())}},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	written, err := w.RequestClient.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		Patch(ctx, request.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if err != nil {
		return fmt.Errorf("passing over the interceptors of the EvictionRequest: %w", err)
	}
	version := written.ResourceVersion
	w.unseen.wrote(pod, func() bool { return w.hasRequestsOf(version) })
	return nil
}

// deletePod deletes the pod, with its own grace period if none is given. The condition comes first,
// as for every disruption, so that the owner of the pod can tell it from a failure. It is a mark, too: the
// evictionrequest-controller does not say of a marked pod that it stays. So the act is confirmed after it: who
// withdraws the request meanwhile has either ended the maintenance before that, or finds the mark.
func (w *Writer) deletePod(ctx context.Context, pod *v1.Pod, gracePeriod *int64, message string, confirm func(context.Context) error) error {
	err := w.announceDeletion(ctx, pod, message)
	if err == nil {
		if err := confirm(ctx); err != nil {
			return err // The disruption controller takes the mark back.
		}
		ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
		defer cancel()
		err = w.RequestClient.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: gracePeriod, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the pod, as spec.escalation says: %w", err)
	}
	w.unseen.wrote(pod, func() bool { return w.hasDeleted(pod, gracePeriod) })
	return nil
}

// announceDeletion adds the condition DisruptionTarget, or renews that of an earlier attempt. The disruption controller
// takes it back if the pod does not terminate within two minutes, which must not happen while the deletion is in
// flight.
func (w *Writer) announceDeletion(ctx context.Context, pod *v1.Pod, message string) error {
	if maintenance.IsEscalated(pod, nil) && (pod.DeletionTimestamp != nil || w.isFresh(pod)) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now()),
			Reason: maintenance.PodReasonDeletionByNodeMaintenance, Message: message,
		}}},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	_, err = w.RequestClient.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	return err
}

// isFresh reports whether the mark of the pod, as the cache has it, counts for as long as a deletion may take that is
// sent now. An older one may be taken back already: the cache may be behind.
func (w *Writer) isFresh(pod *v1.Pod) bool {
	_, mark := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget)
	age := w.clock.Now().Sub(mark.LastTransitionTime.Time)
	return age >= 0 && age < MarkRenewal
}

// hasDeleted reports whether the cache of pods has the deletion.
func (w *Writer) hasDeleted(pod *v1.Pod, gracePeriod *int64) bool {
	object, found, err := w.pods.GetByKey(pod.Namespace + "/" + pod.Name)
	if err != nil || !found {
		return true
	}
	cached := object.(*v1.Pod)
	return cached.UID != pod.UID || cached.DeletionTimestamp != nil && (gracePeriod == nil || ptr.Deref(cached.DeletionGracePeriodSeconds, -1) == *gracePeriod)
}

// skippedCondition is the condition of a request whose interceptors are passed over.
func skippedCondition(request *coordinationv1alpha1.EvictionRequest, message string, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped), Status: metav1.ConditionTrue,
		ObservedGeneration: request.Generation, LastTransitionTime: metav1.NewTime(now),
		Reason: coordinationv1alpha1.EvictionRequestReasonMaintenanceEscalation, Message: message,
	}
}
