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
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/util/evictioninterceptor"
)

const (
	// clockSkew is how far the clocks of those who write a status, and that of the API
	// server, may be apart.
	clockSkew = 10 * time.Second

	// MinHeartbeatInterval bounds how often an interceptor may say that it is at work:
	// every heartbeat is a write that all watchers see.
	MinHeartbeatInterval = 60 * time.Second

	// defaultHeartbeatDeadline is the default of spec.heartbeatDeadlineSeconds, for
	// requests that were stored without it.
	defaultHeartbeatDeadline = 1200 * time.Second

	// maxForeignConditions is how many conditions others than the eviction request
	// controller may add.
	maxForeignConditions = 100

	imperativeInterceptor = coordinationv1alpha1.EvictionInterceptorImperative
)

var (
	statusPath = field.NewPath("status")

	// ownConditions are those that the eviction request controller writes. The declared
	// bound of status.conditions has room for them beside maxForeignConditions others.
	ownConditions = sets.New(
		string(coordination.EvictionRequestConditionBlocked),
		string(coordination.EvictionRequestConditionCanceled),
		string(coordination.EvictionRequestConditionEvicted),
		string(coordination.EvictionRequestConditionInterceptorUnresponsive),
	)
	// finalConditions end a request when one of them is True.
	finalConditions = []string{string(coordination.EvictionRequestConditionCanceled), string(coordination.EvictionRequestConditionEvicted)}
)

// ValidateEvictionRequestStatusUpdate checks a change of the status at the time now.
// Whoever may write a status may write all of it, by mistake or on purpose, so every
// step is checked, whoever takes it: of an eviction (KEP-4563, Eviction Request
// Controller) and of the report of an interceptor (InterceptorStatus).
//
// Each rule judges what the update changes, never what the object had before: a
// stored object that breaks a rule can still be finished.
func ValidateEvictionRequestStatusUpdate(request, oldRequest *coordination.EvictionRequest, now time.Time) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&request.ObjectMeta, &oldRequest.ObjectMeta, field.NewPath("metadata"))
	update := newStatusUpdate(request, oldRequest, now)
	for _, validate := range []func() field.ErrorList{
		update.validateObservedGeneration,
		update.validateConditions,
		update.validateFinalConditions,
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

// statusUpdate is a change of the status of one request.
type statusUpdate struct {
	request     *coordination.EvictionRequest
	old, status *coordination.EvictionRequestStatus

	// activated and deactivated are the names that come into and go from
	// activeInterceptors: at most one each, except where the declared rules refuse the
	// update.
	activated, deactivated []string

	// processed is what processedInterceptors has to be after the update.
	processed []string

	// now is in whole seconds, as all times in the API are: a time that is written as
	// 12:00:10 and arrives at 12:00:20.9 is 10 seconds old for everyone who reads it.
	now time.Time
}

func newStatusUpdate(request, oldRequest *coordination.EvictionRequest, now time.Time) *statusUpdate {
	old, status := &oldRequest.Status, &request.Status
	deactivated := without(old.ActiveInterceptors, status.ActiveInterceptors)
	return &statusUpdate{
		request: request, old: old, status: status,
		activated:   without(status.ActiveInterceptors, old.ActiveInterceptors),
		deactivated: deactivated,
		processed:   slices.Concat(old.ProcessedInterceptors, deactivated),
		now:         now.Truncate(time.Second),
	}
}

// without returns the names that others lacks.
func without(names, others []string) []string {
	var rest []string
	for _, name := range names {
		if !slices.Contains(others, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// isFinished tells whether one of the final conditions is True.
func isFinished(status *coordination.EvictionRequestStatus) bool {
	return slices.ContainsFunc(finalConditions, func(conditionType string) bool {
		return meta.IsStatusConditionTrue(status.Conditions, conditionType)
	})
}

func (u *statusUpdate) validateObservedGeneration() field.ErrorList {
	old, observed := u.old.ObservedGeneration, u.status.ObservedGeneration
	fldPath := statusPath.Child("observedGeneration")
	switch {
	case observed < old:
		return field.ErrorList{field.Invalid(fldPath, observed, fmt.Sprintf("must not decrease: it is %d already", old))}
	case observed > old && observed > u.request.Generation:
		return field.ErrorList{field.Invalid(fldPath, observed, fmt.Sprintf("must not be greater than metadata.generation, which is %d", u.request.Generation))}
	}
	return nil
}

// validateConditions checks the form of every condition that changes, and that those of
// others leave room for those that end the request. That each type stands there once is
// declared.
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
		}
	}
	return errs
}

// foreignConditions counts the conditions that are not the controller's.
func foreignConditions(status *coordination.EvictionRequestStatus) int {
	foreign := 0
	for _, condition := range status.Conditions {
		if !ownConditions.Has(condition.Type) {
			foreign++
		}
	}
	return foreign
}

// validateFinalConditions holds on to the end of a request: who was told that a pod is
// evicted, or stays, must not have to ask again.
func (u *statusUpdate) validateFinalConditions() field.ErrorList {
	fldPath := statusPath.Child("conditions")
	finished := isFinished(u.old)
	var errs field.ErrorList
	allTrue := true
	for _, conditionType := range finalConditions {
		old, condition := meta.FindStatusCondition(u.old.Conditions, conditionType), meta.FindStatusCondition(u.status.Conditions, conditionType)
		if finished && !apiequality.Semantic.DeepEqual(old, condition) {
			errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("%s must stay as it is, because the request is finished: create a new request to evict the pod after all", conditionType)))
		}
		allTrue = allTrue && condition != nil && condition.Status == metav1.ConditionTrue
	}
	if allTrue && !finished {
		errs = append(errs, field.Forbidden(fldPath, "must not have both Canceled and Evicted with status True: a request ends one way only"))
	}
	return errs
}

// validateTargetInterceptors lets the list be written once. It holds the interceptors
// of the pod, so their names are checked alike.
func (u *statusUpdate) validateTargetInterceptors() field.ErrorList {
	old, targets := u.old.TargetInterceptors, u.status.TargetInterceptors
	fldPath := statusPath.Child("targetInterceptors")
	switch {
	case slices.Equal(old, targets):
		return nil
	case len(old) > 0:
		return field.ErrorList{field.Invalid(fldPath, targetNames(targets), fmt.Sprintf("is immutable once set: leave it as %q", targetNames(old)))}
	case isFinished(u.old):
		return field.ErrorList{field.Invalid(fldPath, targetNames(targets), "must stay empty, because the request is finished")}
	}
	var errs field.ErrorList
	for i, target := range targets {
		namePath := fldPath.Index(i).Child("name")
		isLast := i == len(targets)-1
		switch {
		case len(target.Name) == 0:
			// Reported by the declared rules.
		case isLast && target.Name != imperativeInterceptor:
			errs = append(errs, field.Invalid(namePath, target.Name, fmt.Sprintf("the last must be %s: append it", imperativeInterceptor)))
		case !isLast && target.Name == imperativeInterceptor:
			errs = append(errs, field.Invalid(namePath, target.Name, "must be the last: move it to the end"))
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

// validateActiveInterceptors checks that turns are given in order, and that nobody
// loses one that is not over.
func (u *statusUpdate) validateActiveInterceptors() field.ErrorList {
	fldPath := statusPath.Child("activeInterceptors")
	active := u.status.ActiveInterceptors
	switch {
	case len(active) > 1:
		return nil // Reported by the declared rules.
	case isFinished(u.status):
		if len(active) > 0 && (len(u.activated) > 0 || !isFinished(u.old)) {
			return field.ErrorList{field.Invalid(fldPath, active, "must be empty, because the request is finished: Canceled or Evicted is True")}
		}
		return nil
	}
	for _, name := range u.deactivated {
		if err := u.validateTurnIsOver(name, fldPath); err != nil {
			return field.ErrorList{err}
		}
	}
	if len(u.activated) == 0 && len(u.deactivated) == 0 {
		return nil
	}
	// The interceptors that had their turn are those that stand before the next one.
	next := u.status.TargetInterceptors[min(len(u.processed), len(u.status.TargetInterceptors)):]
	switch {
	case len(next) == 0 && len(active) > 0:
		return field.ErrorList{field.Invalid(fldPath, active, "must be empty: nobody in targetInterceptors is left")}
	case len(next) > 0 && !slices.Equal(active, []string{next[0].Name}):
		return field.ErrorList{field.Invalid(fldPath, active, fmt.Sprintf("must be %q, the next of targetInterceptors", next[0].Name))}
	}
	return nil
}

// validateTurnIsOver checks that the interceptor has completed, in this update at the
// latest, or has been silent for so long that another one may take over.
func (u *statusUpdate) validateTurnIsOver(name string, fldPath *field.Path) *field.Error {
	entry := findEntry(u.status.Interceptors, name)
	if entry != nil && entry.CompletionTime != nil {
		return nil
	}
	if name == imperativeInterceptor {
		// Nobody could take over from it. It retries for as long as it takes.
		return field.Invalid(fldPath, u.status.ActiveInterceptors, fmt.Sprintf("%s keeps its turn until it completes: set its completionTime first", name))
	}
	takeover := u.deadline(entry).Add(-clockSkew)
	if u.now.Before(takeover) {
		return field.Invalid(fldPath, u.status.ActiveInterceptors, fmt.Sprintf("%s keeps its turn until it completes, or stays silent until %s; the server's time is %s",
			name, format(takeover), format(u.now)))
	}
	return nil
}

// deadline returns when the active interceptor, which has that entry or none, loses
// its turn if it stays silent.
func (u *statusUpdate) deadline(entry *coordination.InterceptorStatus) time.Time {
	lastSign := u.request.CreationTimestamp.Time
	if u.old.ActivationTime != nil {
		lastSign = u.old.ActivationTime.Time
	}
	if entry != nil && entry.HeartbeatTime != nil && entry.HeartbeatTime.After(lastSign) {
		lastSign = entry.HeartbeatTime.Time
	}
	patience := defaultHeartbeatDeadline
	if seconds := u.request.Spec.HeartbeatDeadlineSeconds; seconds != nil {
		patience = time.Duration(*seconds) * time.Second
	}
	return lastSign.Add(patience)
}

// validateProcessedInterceptors checks that the list grows by the one whose turn ends,
// and not otherwise. It starts empty, so it is always the first part of
// targetInterceptors.
func (u *statusUpdate) validateProcessedInterceptors() field.ErrorList {
	if slices.Equal(u.processed, u.status.ProcessedInterceptors) {
		return nil
	}
	return field.ErrorList{field.Invalid(statusPath.Child("processedInterceptors"), u.status.ProcessedInterceptors,
		fmt.Sprintf("must be %q: only the interceptor that stops being active is appended", u.processed))}
}

// validateActivationTime checks that the time goes with the name: nobody's deadline is
// put off, and nobody's turn starts in the past.
func (u *statusUpdate) validateActivationTime() field.ErrorList {
	old, activated := u.old.ActivationTime, u.status.ActivationTime
	fldPath := statusPath.Child("activationTime")
	switch {
	case len(u.activated) == 0 && old.Equal(activated):
		return nil
	case len(u.activated) == 0:
		return field.ErrorList{field.Invalid(fldPath, formatOptional(activated), fmt.Sprintf("must change only when activeInterceptors gets a new name: leave it as %q", formatOptional(old)))}
	case activated == nil:
		return field.ErrorList{field.Required(fldPath, fmt.Sprintf("must be set when activeInterceptors gets a new name; the server's time is %s", format(u.now)))}
	}
	return validatePresent(*activated, u.now, fldPath)
}

// validateCancellationPolicy leaves the policy to the interceptor that is active: it
// alone knows whether its work can be undone. Forbid is final, for others as for the one
// that has set it: what cannot be undone once cannot be undone later, and the status does
// not say whose work that was. Which values there are is declared.
func (u *statusUpdate) validateCancellationPolicy() field.ErrorList {
	old, policy := u.old.EvictionRequestCancellationPolicy, u.status.EvictionRequestCancellationPolicy
	fldPath := statusPath.Child("evictionRequestCancellationPolicy")
	switch {
	case old == policy:
		return nil
	case isFinished(u.status):
		return field.ErrorList{field.Invalid(fldPath, policy, fmt.Sprintf("must stay %q, because the request is finished", old))}
	case old == coordination.EvictionRequestCancellationPolicyForbid:
		return field.ErrorList{field.Invalid(fldPath, policy, fmt.Sprintf("must stay %q, which is final: who has applied it goes on applying it", old))}
	case len(u.old.ActiveInterceptors) == 0:
		return field.ErrorList{field.Invalid(fldPath, policy, fmt.Sprintf("must stay %q while no interceptor is active: it is the active interceptor that sets it", old))}
	}
	return nil
}
