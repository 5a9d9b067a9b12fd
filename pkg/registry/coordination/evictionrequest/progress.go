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

package evictionrequest

import (
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

const (
	reconciling = string(coordination.EvictionRequestConditionReconciling)
	stalled     = string(coordination.EvictionRequestConditionStalled)
)

// The reasons of Reconciling are the states that kubectl prints.
const (
	reasonPending      = string(evictionrequesttools.StatePending)
	reasonIntercepting = string(evictionrequesttools.StateIntercepting)
	reasonEvicting     = string(evictionrequesttools.StateEvicting)
	reasonBlocked      = string(evictionrequesttools.StateBlocked)
)

// stampProgress sets the conditions Reconciling and Stalled, by which tools that know nothing of evictions see
// whether a request goes on: an unfinished request has exactly one of them, a finished one has neither, so that it
// needs no more memory. They follow from the rest of the status, and are set with each write of it. So they cost no
// write of their own, and a controller of another version cannot leave them behind. What clients send for them is
// replaced by what is stored, and their times are those of the server.
func stampProgress(status, old *coordination.EvictionRequestStatus, now time.Time) {
	conditionType, reason, message := progressOf(status)
	for _, known := range []string{reconciling, stalled} {
		keepStored(status, old, known)
		if known != conditionType {
			meta.RemoveStatusCondition(&status.Conditions, known)
		}
	}
	if conditionType == "" {
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, ObservedGeneration: status.ObservedGeneration,
		LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)}, Reason: reason, Message: message,
	})
}

// keepStored gives the status the stored condition of that type, in the place where the client has it.
func keepStored(status, old *coordination.EvictionRequestStatus, conditionType string) {
	stored := meta.FindStatusCondition(old.Conditions, conditionType)
	sent := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
	switch {
	case stored == nil:
		meta.RemoveStatusCondition(&status.Conditions, conditionType)
	case sent < 0:
		status.Conditions = append(status.Conditions, *stored)
	default:
		status.Conditions[sent] = *stored
	}
}

// progressOf returns the type, the reason and the message of the condition that an unfinished request has; no type if
// it is finished.
//
// A PodDisruptionBudget that does not allow an eviction now is no failure: the controller waits for it. A refusal for
// another reason is repeated as well, but nothing says that it ends.
func progressOf(status *coordination.EvictionRequestStatus) (conditionType, reason, message string) {
	blocked := meta.FindStatusCondition(status.Conditions, string(coordination.EvictionRequestConditionBlocked))
	isBlocked := blocked != nil && blocked.Status == metav1.ConditionTrue
	switch {
	case evictionrequesttools.IsFinished(status.Conditions):
		return "", "", ""
	case isBlocked && blocked.Reason == coordination.EvictionRequestReasonEvictionRefused:
		return stalled, blocked.Reason, "The API server refuses the eviction: see the condition Blocked."
	case isBlocked:
		return reconciling, reasonBlocked, "The eviction waits for a PodDisruptionBudget: see the condition Blocked."
	case len(status.TargetInterceptors) > 0 && len(status.ProcessedInterceptors) == len(status.TargetInterceptors):
		return stalled, coordination.EvictionRequestReasonNoInterceptorLeft, "All interceptors have acted, and the pod is still there."
	case len(status.ActiveInterceptors) == 0:
		return reconciling, reasonPending, "The controller has not acted on the request yet."
	case status.ActiveInterceptors[0] == coordinationv1alpha1.EvictionInterceptorImperative:
		return reconciling, reasonEvicting, "The pod has not left yet."
	}
	return reconciling, reasonIntercepting, fmt.Sprintf("Interceptor %s is active.", status.ActiveInterceptors[0])
}
