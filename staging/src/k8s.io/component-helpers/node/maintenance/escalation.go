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

package maintenance

import (
	"fmt"
	"math"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
)

// PodReasonDeletionByNodeMaintenance is the reason of the condition DisruptionTarget of a pod that
// was deleted because of spec.escalation of NodeMaintenances.
const PodReasonDeletionByNodeMaintenance = "DeletionByNodeMaintenance"

// defaultGracePeriod is the grace period of a pod that names none. The API has the same default.
const defaultGracePeriod = 30 * time.Second

// escalations are all actions of an escalation, the weakest first.
var escalations = []v1.MaintenanceEscalation{
	v1.MaintenanceEscalationSkipInterceptors,
	v1.MaintenanceEscalationIgnoreBudgets,
	v1.MaintenanceEscalationForceDelete,
}

// EscalatesTo reports whether an escalation is an action, or a stronger one.
func EscalatesTo(escalation, action v1.MaintenanceEscalation) bool {
	return slices.Index(escalations, escalation) >= slices.Index(escalations, action)
}

// IsOutOfService reports whether an administrator has said that a node runs no pods, and its kubelet
// does not contradict. The garbage collector of pods has the same conditions.
func IsOutOfService(node *v1.Node) bool {
	return !IsReady(node) && slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == v1.TaintNodeOutOfService })
}

// EscalationsFor returns the actions that are possible on a node, the strongest first: pods are
// removed from the API only if it is certain that the node does not run them.
func EscalationsFor(node *v1.Node) []v1.MaintenanceEscalation {
	possible := slices.Clone(escalations)
	if !IsOutOfService(node) {
		possible = possible[:len(possible)-1]
	}
	slices.Reverse(possible)
	return possible
}

// Escalation is the parsed spec.escalation of a NodeMaintenance.
type Escalation struct {
	steps []escalationStep
}

type escalationStep struct {
	after      time.Duration
	action     v1.MaintenanceEscalation
	pods       labels.Selector
	namespaces labels.Selector
}

// NewEscalation parses steps.
func NewEscalation(steps []coordinationv1alpha1.NodeMaintenanceEscalationStep) (*Escalation, error) {
	parsed := &Escalation{}
	for i := range steps {
		step := &steps[i]
		pods, err := selectorOrAll(step.PodSelector)
		if err != nil {
			return nil, fmt.Errorf("escalation[%d].podSelector: %w", i, err)
		}
		namespaces, err := selectorOrAll(step.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("escalation[%d].namespaceSelector: %w", i, err)
		}
		if !slices.Contains(escalations, step.Action) {
			continue // A newer API server may know more.
		}
		parsed.steps = append(parsed.steps, escalationStep{time.Duration(step.AfterSeconds) * time.Second, step.Action, pods, namespaces})
	}
	return parsed, nil
}

// IsEmpty reports whether there is no step.
func (e *Escalation) IsEmpty() bool { return e == nil || len(e.steps) == 0 }

// After returns how long after the admission of its node a pod comes to one of the actions, and false
// if it never does. namespace returns the labels of its namespace, and false if they are not known:
// then steps that select namespaces do not match.
func (e *Escalation) After(pod *v1.Pod, actions []v1.MaintenanceEscalation, namespace func() (labels.Set, bool)) (after time.Duration, found bool) {
	if e == nil {
		return 0, false
	}
	for i := range e.steps {
		step := &e.steps[i]
		if !slices.Contains(actions, step.action) || !step.matches(pod, namespace) {
			continue
		}
		if at := step.begins(pod); !found || at < after {
			after, found = at, true
		}
	}
	return after, found
}

// begins returns when the step begins with a pod, so that its grace period is over in time.
func (s *escalationStep) begins(pod *v1.Pod) time.Duration {
	if s.action != v1.MaintenanceEscalationIgnoreBudgets {
		return s.after
	}
	return max(s.after-gracePeriodOf(pod), 0)
}

func (s *escalationStep) matches(pod *v1.Pod, namespace func() (labels.Set, bool)) bool {
	if !s.pods.Matches(labels.Set(pod.Labels)) {
		return false
	}
	if s.namespaces.Empty() {
		return true
	}
	set, known := namespace()
	return known && s.namespaces.Matches(set)
}

// longestGracePeriod is longer than any escalation. The API does not limit grace periods, and a longer
// one might overflow: then its pod would never be acted on.
const longestGracePeriod = math.MaxInt32 * time.Second

func gracePeriodOf(pod *v1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(min(max(*seconds, 0), int64(longestGracePeriod/time.Second))) * time.Second
	}
	return defaultGracePeriod
}

// EscalationClock returns what the clock of spec.escalation shows for a node: how long ago it was
// admitted, without the time for which it has waited for other maintenances. running is whether it
// does not wait now.
func EscalationClock(admission *v1.MaintenanceAdmission, now time.Time) (elapsed time.Duration, running bool) {
	// A clock that was ahead may have set a time in the future.
	if admission.WaitingTime != nil && admission.WaitingTime.Time.Before(now) {
		now = admission.WaitingTime.Time
	}
	elapsed = now.Sub(admission.AdmittedTime.Time) - time.Duration(admission.WaitedSeconds)*time.Second
	return max(elapsed, 0), admission.WaitingTime == nil
}

// IsSkipped reports whether the interceptors of a request are passed over. request may be nil.
func IsSkipped(request *coordinationv1alpha1.EvictionRequest) bool {
	return request != nil && meta.IsStatusConditionTrue(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped))
}

// IsEscalated reports whether an escalation has acted on a pod. request is its EvictionRequest, or
// nil.
func IsEscalated(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest) bool {
	return IsSkipped(request) || slices.ContainsFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool {
		return condition.Type == v1.DisruptionTarget && condition.Status == v1.ConditionTrue && condition.Reason == PodReasonDeletionByNodeMaintenance
	})
}
