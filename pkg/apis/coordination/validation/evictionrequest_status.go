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

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

const (
	// maxForeignConditions is the maximum number of conditions that are not written by the controllers
	// of evictions.
	maxForeignConditions = 100

	// maxInterceptorConditions is the maximum number of conditions of one interceptor, and
	// maxInterceptorConditionMessage the maximum length of their messages in bytes. With the longest
	// messages of 15 interceptors, the request is still small enough for etcd: the controller must be able
	// to add its own.
	maxInterceptorConditions       = 6
	maxInterceptorConditionMessage = 1024

	imperativeInterceptor = coordinationv1alpha1.EvictionInterceptorImperative
)

var (
	statusPath = field.NewPath("status")

	// ownConditions are the conditions that controllers and kube-apiserver write. The declared
	// maximum of status.conditions allows them in addition to maxForeignConditions others.
	ownConditions = sets.New(
		string(coordination.EvictionRequestConditionBlocked),
		string(coordination.EvictionRequestConditionCanceled),
		string(coordination.EvictionRequestConditionEvicted),
		string(coordination.EvictionRequestConditionInterceptorsSkipped),
		string(coordination.EvictionRequestConditionInterceptorUnresponsive),
		string(coordination.EvictionRequestConditionReconciling),
		string(coordination.EvictionRequestConditionStalled),
	)
	// finalConditions finish a request when one of them is True.
	finalConditions = []string{string(coordination.EvictionRequestConditionCanceled), string(coordination.EvictionRequestConditionEvicted)}
)

// ValidateEvictionRequestStatusUpdate validates an update of the status at the time now. RBAC
// allows a writer of the status to write all of it, by mistake or on purpose. So each step of an
// eviction (KEP-4563, Eviction Request Controller) and of the report of an interceptor
// (InterceptorStatus) is validated for all writers.
//
// Each rule validates only what the update changes: a stored object that breaks a rule can still be
// finished.
func ValidateEvictionRequestStatusUpdate(request, oldRequest *coordination.EvictionRequest, now time.Time) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&request.ObjectMeta, &oldRequest.ObjectMeta, field.NewPath("metadata"))
	update := newStatusUpdate(request, oldRequest, now)
	for _, validate := range []func() field.ErrorList{
		update.validateObservedGeneration,
		update.validateConditions,
		update.validateFinalConditions,
		update.validateSkipped,
		update.validateTargetInterceptors,
		update.validateActiveInterceptors,
		update.validateProcessedInterceptors,
		update.validateActivationTime,
		update.validateCancellationPolicy,
		update.validateInterceptors,
	} {
		errs = append(errs, validate()...)
	}
	return errs
}

// statusUpdate is an update of the status of one request.
type statusUpdate struct {
	request     *coordination.EvictionRequest
	old, status *coordination.EvictionRequestStatus

	// activated and deactivated are the names that are added to and removed from
	// activeInterceptors: at most one each, unless declarative validation rejects the update.
	activated, deactivated []string

	// processed is the required value of processedInterceptors after the update.
	processed []string

	// now is in whole seconds, like all times in the API: a time that is written as 12:00:10 and
	// arrives at 12:00:20.9 is 10 seconds old for all readers.
	now time.Time
}

// isUntouched reports whether a status is the one with which the API server creates the request of a pod
// that has no other interceptor than the built-in one.
func isUntouched(status *coordination.EvictionRequestStatus) bool {
	return slices.Equal(status.TargetInterceptors, []coordination.Interceptor{{Name: imperativeInterceptor}}) &&
		slices.Equal(status.ActiveInterceptors, []string{imperativeInterceptor}) && len(status.ProcessedInterceptors) == 0 &&
		slices.Equal(status.Interceptors, []coordination.InterceptorStatus{{Name: imperativeInterceptor}}) &&
		!slices.ContainsFunc(status.Conditions, isOfOthers) && status.EvictionRequestCancellationPolicy == ""
}

// isOfOthers reports whether the API server does not set the condition by itself.
func isOfOthers(condition metav1.Condition) bool {
	return condition.Type != string(coordination.EvictionRequestConditionReconciling) && condition.Type != string(coordination.EvictionRequestConditionStalled)
}

func newStatusUpdate(request, oldRequest *coordination.EvictionRequest, now time.Time) *statusUpdate {
	old, status := &oldRequest.Status, &request.Status
	if isUntouched(old) && len(status.TargetInterceptors) > 0 && !slices.Equal(status.TargetInterceptors, old.TargetInterceptors) {
		// The API server has left nothing to do to a controller that does it all the same, such as one
		// that knows of other interceptors.
		old = &coordination.EvictionRequestStatus{ObservedGeneration: old.ObservedGeneration}
	}
	deactivated := without(old.ActiveInterceptors, status.ActiveInterceptors)
	processed := slices.Concat(old.ProcessedInterceptors, deactivated)
	return &statusUpdate{
		request: request, old: old, status: status,
		activated:   without(status.ActiveInterceptors, old.ActiveInterceptors),
		deactivated: deactivated,
		processed:   append(processed, passedOver(status, old, len(processed))...),
		now:         now.Truncate(time.Second),
	}
}

// passedOver returns the interceptors between the processed ones and the active one, if they are
// skipped.
func passedOver(status, old *coordination.EvictionRequestStatus, processed int) []string {
	if !isSkipped(old) || len(status.ActiveInterceptors) != 1 {
		return nil
	}
	names := targetNames(status.TargetInterceptors)
	return names[min(processed, len(names)):max(slices.Index(names, status.ActiveInterceptors[0]), min(processed, len(names)))]
}

func isSkipped(status *coordination.EvictionRequestStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, string(coordination.EvictionRequestConditionInterceptorsSkipped))
}

// without returns the names that are not in others.
func without(names, others []string) []string {
	var rest []string
	for _, name := range names {
		if !slices.Contains(others, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

func (u *statusUpdate) validateObservedGeneration() field.ErrorList {
	old, observed := u.old.ObservedGeneration, u.status.ObservedGeneration
	fldPath := statusPath.Child("observedGeneration")
	switch {
	case observed < old:
		return field.ErrorList{field.Invalid(fldPath, observed, fmt.Sprintf("must not be less than the current value, %d", old))}
	case observed > old && observed > u.request.Generation:
		return field.ErrorList{field.Invalid(fldPath, observed, fmt.Sprintf("must not be greater than metadata.generation, which is %d", u.request.Generation))}
	}
	return nil
}

// validateConditions validates each condition that changes, and limits the conditions of others so
// that the final ones can always be added. Declarative validation ensures that types are unique.
func (u *statusUpdate) validateConditions() field.ErrorList {
	var errs field.ErrorList
	if foreign := foreignConditions(u.status); foreign > maxForeignConditions && foreign > foreignConditions(u.old) {
		errs = append(errs, field.Forbidden(statusPath.Child("conditions"), fmt.Sprintf(
			"must not have more than %d conditions besides %s: remove others first", maxForeignConditions, strings.Join(sets.List(ownConditions), ", "))))
	}
	for i, condition := range u.status.Conditions {
		old := meta.FindStatusCondition(u.old.Conditions, condition.Type)
		if !apiequality.Semantic.DeepEqual(old, &condition) {
			errs = append(errs, metav1validation.ValidateCondition(condition, statusPath.Child("conditions").Index(i))...)
			errs = append(errs, u.validateInterceptorCondition(condition, statusPath.Child("conditions").Index(i))...)
		}
	}
	return errs
}

// validateInterceptorCondition limits the conditions that interceptors set: see
// k8s.io/api/coordination/v1alpha1.EvictionInterceptVerb.
func (u *statusUpdate) validateInterceptorCondition(condition metav1.Condition, fldPath *field.Path) field.ErrorList {
	targets := targetNames(u.status.TargetInterceptors)
	owner := evictioninterceptor.ConditionOwner(condition.Type, targets)
	if owner == "" {
		return nil
	}
	var errs field.ErrorList
	if len(condition.Message) > maxInterceptorConditionMessage {
		errs = append(errs, field.TooLong(fldPath.Child("message"), condition.Message, maxInterceptorConditionMessage))
	}
	if count := conditionsOf(owner, u.status, targets); count > maxInterceptorConditions && count > conditionsOf(owner, u.old, targets) {
		errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("%s must not have more than %d conditions: remove others first", owner, maxInterceptorConditions)))
	}
	return errs
}

// conditionsOf counts the conditions of one of the interceptors.
func conditionsOf(interceptor string, status *coordination.EvictionRequestStatus, targets []string) int {
	count := 0
	for _, condition := range status.Conditions {
		if evictioninterceptor.ConditionOwner(condition.Type, targets) == interceptor {
			count++
		}
	}
	return count
}

// foreignConditions counts the conditions that the controller does not write.
func foreignConditions(status *coordination.EvictionRequestStatus) int {
	foreign := 0
	for _, condition := range status.Conditions {
		if !ownConditions.Has(condition.Type) {
			foreign++
		}
	}
	return foreign
}

// validateFinalConditions validates that a finished request stays finished: a client that has seen
// the result must not need to check again.
func (u *statusUpdate) validateFinalConditions() field.ErrorList {
	fldPath := statusPath.Child("conditions")
	finished := evictionrequest.IsFinished(u.old.Conditions)
	var errs field.ErrorList
	allTrue := true
	for _, conditionType := range finalConditions {
		old, condition := meta.FindStatusCondition(u.old.Conditions, conditionType), meta.FindStatusCondition(u.status.Conditions, conditionType)
		if finished && !apiequality.Semantic.DeepEqual(old, condition) {
			errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("%s is immutable after the request is finished: delete the request and create a new one to evict the pod", conditionType)))
		}
		allTrue = allTrue && condition != nil && condition.Status == metav1.ConditionTrue
	}
	if allTrue && !finished {
		errs = append(errs, field.Forbidden(fldPath, "must not have both Canceled and Evicted with status True: set only one of them"))
	}
	return errs
}

// validateSkipped validates that interceptors that were skipped stay so: one that would be active
// again does not expect it.
func (u *statusUpdate) validateSkipped() field.ErrorList {
	if !isSkipped(u.old) || isSkipped(u.status) {
		return nil
	}
	return field.ErrorList{field.Forbidden(statusPath.Child("conditions"), fmt.Sprintf(
		"%s must stay True: keep it, or cancel the request and create a new one", coordination.EvictionRequestConditionInterceptorsSkipped))}
}

// validateTargetInterceptors validates that the list is written once. It contains the interceptors
// of the pod, so their names have the same validation.
func (u *statusUpdate) validateTargetInterceptors() field.ErrorList {
	old, targets := u.old.TargetInterceptors, u.status.TargetInterceptors
	fldPath := statusPath.Child("targetInterceptors")
	switch {
	case slices.Equal(old, targets):
		return nil
	case len(old) > 0:
		return field.ErrorList{field.Invalid(fldPath, targetNames(targets), fmt.Sprintf("is immutable once set: keep %q", targetNames(old)))}
	case evictionrequest.IsFinished(u.old.Conditions):
		return field.ErrorList{field.Invalid(fldPath, targetNames(targets), "must stay empty, because the request is finished")}
	}
	var errs field.ErrorList
	for i, target := range targets {
		namePath := fldPath.Index(i).Child("name")
		isLast := i == len(targets)-1
		switch {
		case len(target.Name) == 0:
			// Reported by declarative validation.
		case isLast && target.Name != imperativeInterceptor:
			errs = append(errs, field.Invalid(namePath, target.Name, fmt.Sprintf("the last interceptor must be %s: append it", imperativeInterceptor)))
		case !isLast && target.Name == imperativeInterceptor:
			errs = append(errs, field.Invalid(namePath, target.Name, "must be the last interceptor: move it to the end"))
		case !isLast:
			errs = append(errs, evictioninterceptor.ValidateName(target.Name, namePath)...)
		}
	}
	return errs
}

func targetNames(targets []coordination.Interceptor) []string {
	names := make([]string, 0, len(targets))
	for _, target := range targets {
		names = append(names, target.Name)
	}
	return names
}

// validateActiveInterceptors validates that interceptors are activated in order, and that none is
// deactivated before it has completed or timed out.
func (u *statusUpdate) validateActiveInterceptors() field.ErrorList {
	fldPath := statusPath.Child("activeInterceptors")
	active := u.status.ActiveInterceptors
	switch {
	case len(active) > 1:
		return nil // Reported by declarative validation.
	case evictionrequest.IsFinished(u.status.Conditions):
		if len(active) > 0 && (len(u.activated) > 0 || !evictionrequest.IsFinished(u.old.Conditions)) {
			return field.ErrorList{field.Invalid(fldPath, active, "must be empty, because the request is finished: Canceled or Evicted is True")}
		}
		return nil
	}
	for _, name := range u.deactivated {
		if err := u.validateDeactivated(name, fldPath); err != nil {
			return field.ErrorList{err}
		}
	}
	if len(u.activated) == 0 && len(u.deactivated) == 0 {
		return nil
	}
	// The processed interceptors are those before the next one.
	next := u.status.TargetInterceptors[min(len(u.processed), len(u.status.TargetInterceptors)):]
	switch {
	case len(next) == 0 && len(active) > 0:
		return field.ErrorList{field.Invalid(fldPath, active, "must be empty, because all targetInterceptors are processed")}
	case len(next) > 0 && !slices.Equal(active, []string{next[0].Name}):
		return field.ErrorList{field.Invalid(fldPath, active, fmt.Sprintf("must be %q, the next interceptor of targetInterceptors", next[0].Name))}
	}
	return nil
}

// validateDeactivated validates that the interceptor has completed, at the latest in this update,
// has timed out, or is skipped.
func (u *statusUpdate) validateDeactivated(name string, fldPath *field.Path) *field.Error {
	entry := coordination.InterceptorStatusOf(u.status, name)
	if entry != nil && entry.CompletionTime != nil || isSkipped(u.old) && name != imperativeInterceptor {
		return nil
	}
	if name == imperativeInterceptor {
		// No other interceptor can replace it. It retries without a limit.
		return field.Invalid(fldPath, u.status.ActiveInterceptors, fmt.Sprintf("%s must stay active until it completes: set its completionTime first", name))
	}
	earliest := u.deadline(entry).Add(-evictionrequest.MaxClockSkew)
	if u.now.Before(earliest) {
		return field.Invalid(fldPath, u.status.ActiveInterceptors, fmt.Sprintf("%s must stay active until it completes, or until %s if it sends no heartbeat; the server's time is %s",
			name, format(earliest), format(u.now)))
	}
	return nil
}

// deadline returns when the active interceptor with that entry, or with none, times out.
func (u *statusUpdate) deadline(entry *coordination.InterceptorStatus) time.Time {
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: u.request.ObjectMeta}
	request.Spec.HeartbeatDeadlineSeconds = u.request.Spec.HeartbeatDeadlineSeconds
	request.Status.ActivationTime = u.old.ActivationTime
	if entry != nil {
		request.Status.ActiveInterceptors = []string{entry.Name}
		request.Status.Interceptors = []coordinationv1alpha1.InterceptorStatus{{Name: entry.Name, HeartbeatTime: entry.HeartbeatTime}}
	}
	return evictionrequest.LastSignOfLife(request).Add(evictionrequest.HeartbeatDeadline(request))
}

// validateProcessedInterceptors validates that only deactivated interceptors are appended. The list
// starts empty, so it is always a prefix of targetInterceptors.
func (u *statusUpdate) validateProcessedInterceptors() field.ErrorList {
	if slices.Equal(u.processed, u.status.ProcessedInterceptors) {
		return nil
	}
	return field.ErrorList{field.Invalid(statusPath.Child("processedInterceptors"), u.status.ProcessedInterceptors,
		fmt.Sprintf("must be %q: append only the interceptor that is removed from activeInterceptors", u.processed))}
}

// validateActivationTime validates that the time changes together with the active interceptor: a
// deadline cannot be extended, and an activation cannot be in the past.
func (u *statusUpdate) validateActivationTime() field.ErrorList {
	old, activated := u.old.ActivationTime, u.status.ActivationTime
	fldPath := statusPath.Child("activationTime")
	switch {
	case len(u.activated) == 0 && old.Equal(activated):
		return nil
	case len(u.activated) == 0:
		return field.ErrorList{field.Invalid(fldPath, formatOptional(activated), fmt.Sprintf("must change only when a name is added to activeInterceptors: keep %q", formatOptional(old)))}
	case activated == nil:
		return field.ErrorList{field.Required(fldPath, fmt.Sprintf("must be set when a name is added to activeInterceptors; the server's time is %s", format(u.now)))}
	}
	return validatePresent(*activated, u.now, fldPath)
}

// validateCancellationPolicy validates that the policy changes only while an interceptor is active:
// only that interceptor knows whether its work can be undone. Forbid is final for all interceptors:
// work that cannot be undone once can never be undone, and the status does not contain whose work
// it was. Declarative validation checks the value.
func (u *statusUpdate) validateCancellationPolicy() field.ErrorList {
	old, policy := u.old.EvictionRequestCancellationPolicy, u.status.EvictionRequestCancellationPolicy
	fldPath := statusPath.Child("evictionRequestCancellationPolicy")
	switch {
	case old == policy:
		return nil
	case evictionrequest.IsFinished(u.status.Conditions):
		return field.ErrorList{field.Invalid(fldPath, policy, fmt.Sprintf("must stay %q, because the request is finished", old))}
	case old == coordination.EvictionRequestCancellationPolicyForbid:
		return field.ErrorList{field.Invalid(fldPath, policy, fmt.Sprintf("must stay %q, which is final: keep applying it", old))}
	case len(u.old.ActiveInterceptors) == 0:
		return field.ErrorList{field.Invalid(fldPath, policy, fmt.Sprintf("must stay %q while no interceptor is active: only the active interceptor may set it", old))}
	}
	return nil
}
