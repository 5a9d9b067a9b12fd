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
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
)

// changeKind is a kind of change of a request that is reported by an event or a metric.
type changeKind int

const (
	changeInitialized changeKind = iota
	changeActivated
	changeProcessed
	changeUnresponsive
	changeBlocked
	changeEvicted
	changeCanceled
	changeCallsExpired
	changeNodeUncordoned
	changeLabelsContested
	changeStatusFailed
)

// change is one change of a request. Events and metrics are derived from it.
type change struct {
	kind changeKind
	// interceptor is the interceptor that was activated or processed, or is silent.
	interceptor string
	// outcome is how a processed interceptor ended.
	outcome string
	// reason and message come from the condition that became True; the message of a status that could not be written
	// is the answer of the API server.
	reason, message string
}

// The outcomes of a processed interceptor.
const (
	// outcomeCompleted: it set its completionTime.
	outcomeCompleted = "completed"
	// outcomeTimedOut: it sent no heartbeat before its deadline.
	outcomeTimedOut = metrics.OutcomeTimedOut
	// outcomeSkipped: it was passed over.
	outcomeSkipped = "skipped"
	// outcomePodGone: the pod was removed while it was active.
	outcomePodGone = "evicted"
	// outcomeCanceled: the request was canceled while it was active.
	outcomeCanceled = "canceled"
)

// computeChanges returns the changes between two statuses, in the order in which they happened.
func computeChanges(old, updated *coordinationv1alpha1.EvictionRequestStatus) []change {
	var changes []change
	if !isInitialized(old) && isInitialized(updated) {
		changes = append(changes, change{kind: changeInitialized})
	}
	for _, name := range updated.ProcessedInterceptors[min(len(old.ProcessedInterceptors), len(updated.ProcessedInterceptors)):] {
		changes = append(changes, change{kind: changeProcessed, interceptor: name, outcome: turnOutcome(name, old, updated)})
	}
	if active := activeInterceptor(updated); active != "" && active != activeInterceptor(old) {
		changes = append(changes, change{kind: changeActivated, interceptor: active})
	}
	for _, watched := range []struct {
		conditionType coordinationv1alpha1.EvictionRequestConditionType
		kind          changeKind
	}{
		{coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, changeUnresponsive},
		{coordinationv1alpha1.EvictionRequestConditionBlocked, changeBlocked},
		{coordinationv1alpha1.EvictionRequestConditionEvicted, changeEvicted},
		{coordinationv1alpha1.EvictionRequestConditionCanceled, changeCanceled},
	} {
		if condition := newlyTrue(watched.conditionType, old, updated); condition != nil {
			found := change{kind: watched.kind, reason: condition.Reason, message: condition.Message}
			if watched.kind == changeUnresponsive {
				found.interceptor = activeInterceptor(updated)
			}
			changes = append(changes, found)
		}
	}
	return changes
}

// turnOutcome returns how an interceptor ended. An interceptor that completed did so in an earlier
// write of its own. The exception is the built-in one, which ends with the request.
func turnOutcome(name string, old, updated *coordinationv1alpha1.EvictionRequestStatus) string {
	entry := evictionrequesttools.InterceptorStatusOf(old, name)
	switch {
	case entry != nil && entry.CompletionTime != nil:
		return outcomeCompleted
	case meta.IsStatusConditionTrue(updated.Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)):
		return outcomePodGone
	case meta.IsStatusConditionTrue(updated.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled)):
		return outcomeCanceled
	}
	if meta.IsStatusConditionTrue(updated.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped)) {
		return outcomeSkipped
	}
	return outcomeTimedOut
}

// newlyTrue returns the condition if it has become True, or if its reason has changed while it was
// True.
func newlyTrue(conditionType coordinationv1alpha1.EvictionRequestConditionType, old, updated *coordinationv1alpha1.EvictionRequestStatus) *metav1.Condition {
	condition := meta.FindStatusCondition(updated.Conditions, string(conditionType))
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	before := meta.FindStatusCondition(old.Conditions, string(conditionType))
	if before != nil && before.Status == metav1.ConditionTrue && before.Reason == condition.Reason {
		return nil
	}
	return condition
}
