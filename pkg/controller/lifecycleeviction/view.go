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

package lifecycleeviction

import (
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/ptr"
)

const (
	// heartbeatDeadline is for how long a responder may be silent. kube-apiserver lets nobody be interrupted before,
	// less allowedSkew.
	heartbeatDeadline = 20 * time.Minute
	allowedSkew       = 30 * time.Second

	// lastReport is for how long an active responder may report that it has completed after the pod is gone.
	lastReport = 5 * time.Second

	// patience is for how long the Eviction of a pod that only the last responder has to do with has no status.
	patience = 2 * time.Second

	// maxMessageLength is how many bytes the API allows in the message of a responder.
	maxMessageLength = 4000

	// maxExpected is how far ahead an expected completion may be, with room for another clock: the API allows ten years.
	maxExpected = 9 * 365 * 24 * time.Hour

	// maxRequesters is how many requesters the API allows in a status.
	maxRequesters = 100
)

// outcome is how an eviction ends, as the conditions say it.
type outcome struct {
	evicted, failed metav1.ConditionStatus
	evictedReason   lifecyclev1alpha1.EvictionConditionReason
	failedReason    lifecyclev1alpha1.EvictionConditionReason
	message         string
}

// awaiting is an eviction that goes on.
var awaiting = outcome{
	metav1.ConditionFalse, metav1.ConditionFalse,
	lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction, lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction, "",
}

func awaitingAs(message string) outcome {
	o := awaiting
	o.message = message
	return o
}

func evictedAs(reason lifecyclev1alpha1.EvictionConditionReason, message string) outcome {
	return outcome{metav1.ConditionTrue, metav1.ConditionFalse, reason, lifecyclev1alpha1.EvictionConditionReasonSucceeded, message}
}

func failedAs(reason lifecyclev1alpha1.EvictionConditionReason, message string) outcome {
	return outcome{metav1.ConditionFalse, metav1.ConditionTrue, lifecyclev1alpha1.EvictionConditionReasonEvictionFailed, reason, message}
}

// canceledAs is the end of an eviction that nobody requests any more. The text begins with that of 1.38.
func canceledAs(message string) outcome {
	return failedAs(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, "No active requesters with eviction intent. "+message)
}

func isCanceled(o outcome) bool {
	return o.failedReason == lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters
}

func (o *outcome) isFinal() bool {
	return o.evicted == metav1.ConditionTrue || o.failed == metav1.ConditionTrue
}

// outcomeOf returns how the eviction of a request ends, or that it goes on.
func outcomeOf(request *coordinationv1alpha1.EvictionRequest) outcome {
	final := evictionrequest.FinalCondition(request.Status.Conditions)
	switch {
	case final == nil && allProcessed(&request.Status):
		return failedAs(lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder, "All responders have completed without evicting the target. "+lastMessage(&request.Status))
	case final == nil:
		return awaiting
	case final.Type == string(coordinationv1alpha1.EvictionRequestConditionEvicted) && final.Reason == coordinationv1alpha1.EvictionRequestReasonPodTerminal:
		return evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodTerminal, final.Message)
	case final.Type == string(coordinationv1alpha1.EvictionRequestConditionEvicted):
		return evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, final.Message)
	case final.Reason == coordinationv1alpha1.EvictionRequestReasonValidationFailed:
		return failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, final.Message)
	}
	return canceledAs(final.Message)
}

// lastMessage returns what the last interceptor says, which evicts pods through the API.
func lastMessage(status *coordinationv1alpha1.EvictionRequestStatus) string {
	if entry := evictionrequest.InterceptorStatusOf(status, coordinationv1alpha1.EvictionInterceptorImperative); entry != nil {
		return entry.Message
	}
	return ""
}

func allProcessed(status *coordinationv1alpha1.EvictionRequestStatus) bool {
	return len(status.TargetInterceptors) > 0 && len(status.ProcessedInterceptors) == len(status.TargetInterceptors)
}

// setOutcome writes the conditions.
func setOutcome(conditions *[]metav1.Condition, o outcome, generation int64, now time.Time) {
	for _, c := range []struct {
		conditionType lifecyclev1alpha1.EvictionConditionType
		status        metav1.ConditionStatus
		reason        lifecyclev1alpha1.EvictionConditionReason
	}{
		{lifecyclev1alpha1.EvictionConditionTargetEvicted, o.evicted, o.evictedReason},
		{lifecyclev1alpha1.EvictionConditionFailed, o.failed, o.failedReason},
	} {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: string(c.conditionType), Status: c.status, Reason: string(c.reason), Message: o.message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}

// nextStatus returns what the status of an Eviction becomes by one write, and how long to wait for another one that no
// event causes; zero if there is none. The last one of several steps is reached by several writes: kube-apiserver lets
// only one responder at a time go on.
//
// A responder stays Active until the next one begins, also if it has completed: the interceptors and controllers in
// between are not among the responders.
func nextStatus(eviction *lifecyclev1alpha1.Eviction, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, now time.Time) (*lifecyclev1alpha1.EvictionStatus, time.Duration) {
	status := eviction.Status.DeepCopy()
	status.ObservedGeneration = ptr.To(eviction.Generation)
	end, after := outcomeOf(request), time.Duration(0)
	active, progress := activeOf(status), progressOf(&request.Status)
	switch {
	case len(status.TargetResponders) == 0:
		if wait := briefly(request, progress, now); !end.isFinal() && wait > 0 {
			return eviction.Status.DeepCopy(), wait
		}
		if begin(status, respondersOf(pod), progress, now) {
			if end.isFinal() {
				complete(status, end, lastWords(eviction, request, pod, end), now)
			}
			end = awaiting // If it has ended, the next write says so.
		}
	case active == nil: // It has ended.
	case end.isFinal() && complete(status, end, lastWords(eviction, request, pod, end), now):
		end = awaiting
	case !isCanceled(end) && end.isFinal() && moves(status, active, progress, now):
		end = awaiting // The last responder has acted since the last write.
	case end.isFinal():
		if after = endsIn(status, active, request, end, now); after > 0 {
			end = awaiting
			break
		}
		active.State = finalState(status, active, end)
	default:
		after = advance(status, active, progress, now)
	}
	showImperative(status, request, pod, now)
	setOutcome(&status.Conditions, end, eviction.Generation, now)
	return status, after
}

// showImperative has the last responder, which is the engine, say how far it is. Nothing is written for a heartbeat alone:
// the engine is never taken for silent. The texts are those of 1.38, whose controller reads the number of attempts from
// them.
func showImperative(status *lifecyclev1alpha1.EvictionStatus, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, now time.Time) {
	entry := evictionrequest.InterceptorStatusOf(&request.Status, coordinationv1alpha1.EvictionInterceptorImperative)
	active := activeOf(status)
	if active == nil || active.Name != lifecyclev1alpha1.EvictionResponderImperativeEviction || entry == nil || pod == nil {
		return
	}
	report := reportOf(status, active.Name)
	message, expected := ptr.Deref(report.Message, ""), report.ExpectedCompletionTime
	blocked := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
	switch {
	case report.CompletionTime != nil:
		return
	case pod.DeletionTimestamp != nil:
		message = fmt.Sprintf("%q pod has been marked for deletion and is being terminated gracefully", pod.Name)
		if pod.DeletionTimestamp.Before(ptr.To(metav1.NewTime(now.Add(maxExpected)))) && (expected == nil || !expected.Equal(pod.DeletionTimestamp) && pod.DeletionTimestamp.After(now)) {
			expected = ptr.To(latest(*pod.DeletionTimestamp, now))
		}
	case blocked != nil && blocked.Status == metav1.ConditionTrue && entry.Retries > 0:
		message = fmt.Sprintf("%q pod deletion via the /eviction subresource failed (attempts=%d): %s", pod.Name, entry.Retries, blocked.Message)
	}
	if message == ptr.Deref(report.Message, "") && expected.Equal(report.ExpectedCompletionTime) {
		return
	}
	report.Message, report.ExpectedCompletionTime, report.HeartbeatTime = ptr.To(truncated(message)), expected, ptr.To(metav1.NewTime(now))
}

func latest(t metav1.Time, now time.Time) metav1.Time {
	if t.After(now) {
		return t
	}
	return metav1.NewTime(now)
}

// truncated returns what fits into the message of a responder.
func truncated(message string) string { return plaintext.Truncate(message, maxMessageLength) }

// briefly returns for how long nothing is written about a pod that nobody but the last responder has to do with:
// usually, it is gone by then, which saves a write.
func briefly(request *coordinationv1alpha1.EvictionRequest, p progress, now time.Time) time.Duration {
	if p.active != coordinationv1alpha1.EvictionInterceptorImperative || len(p.processed) > 0 || request.Status.ActivationTime == nil {
		return 0
	}
	// The clock of the server may be ahead.
	return min(request.Status.ActivationTime.Add(patience).Sub(now), patience)
}

// complete records that the last responder has completed, with the pod evicted or not, and reports whether it has not been
// recorded yet.
func complete(status *lifecyclev1alpha1.EvictionStatus, end outcome, message string, now time.Time) bool {
	active := activeOf(status)
	if active == nil || active.Name != lifecyclev1alpha1.EvictionResponderImperativeEviction {
		return false
	}
	report := reportOf(status, active.Name)
	if report.CompletionTime != nil || end.evicted != metav1.ConditionTrue && end.failedReason != lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder {
		return false
	}
	present := ptr.To(metav1.NewTime(now))
	report.CompletionTime, report.ExpectedCompletionTime, report.HeartbeatTime, report.Message = present, present, present, ptr.To(truncated(message))
	return true
}

// lastWords returns what the last responder says when it completes.
func lastWords(eviction *lifecyclev1alpha1.Eviction, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod, end outcome) string {
	name := eviction.Spec.Target.Pod.Name
	switch {
	case end.evicted != metav1.ConditionTrue:
		return lastMessage(&request.Status)
	case pod == nil:
		return fmt.Sprintf("%q pod has been deleted and fully terminated", name)
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("%q pod has been deleted and fully terminated (pod phase=%q)", name, pod.Status.Phase)
	}
	return fmt.Sprintf("%q pod has been fully terminated (pod phase=%q)", name, pod.Status.Phase)
}

// progress says which interceptors have acted, and which one does.
type progress struct {
	active    string
	processed map[string]bool
}

func progressOf(status *coordinationv1alpha1.EvictionRequestStatus) progress {
	p := progress{processed: map[string]bool{}}
	for _, name := range status.ProcessedInterceptors {
		p.processed[name] = true
	}
	if len(status.ActiveInterceptors) > 0 {
		p.active = status.ActiveInterceptors[0]
	}
	if p.processed[coordinationv1alpha1.EvictionInterceptorImperative] && evictionrequest.IsFinished(status.Conditions) {
		// It is processed with the end, which is shown as its own.
		p.active = coordinationv1alpha1.EvictionInterceptorImperative
		delete(p.processed, p.active)
	}
	return p
}

// hasBegun reports whether the turn of a responder has begun.
func (p *progress) hasBegun(responder string) bool {
	name := interceptorOf(responder)
	return p.active == name || p.processed[name]
}

// begin lists the responders that have not acted yet when the turn of the first one has begun, and reports whether it
// has. Those that have acted were in an Eviction that somebody has deleted.
func begin(status *lifecyclev1alpha1.EvictionStatus, targets []lifecyclev1alpha1.TargetResponder, p progress, now time.Time) bool {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t lifecyclev1alpha1.TargetResponder) bool { return p.processed[interceptorOf(t.Name)] })
	if len(targets) == 0 || !p.hasBegun(targets[0].Name) {
		return false
	}
	for i, target := range targets {
		target.State = lifecyclev1alpha1.ResponderStateInactive
		responder := lifecyclev1alpha1.ResponderStatus{Name: target.Name}
		if i == 0 {
			target.State, responder.StartTime = lifecyclev1alpha1.ResponderStateActive, ptr.To(metav1.NewTime(now))
		}
		status.TargetResponders = append(status.TargetResponders, target)
		status.Responders = append(status.Responders, responder)
	}
	return true
}

// activeOf returns the responder that is Active, or nil.
func activeOf(status *lifecyclev1alpha1.EvictionStatus) *lifecyclev1alpha1.TargetResponder {
	for i := range status.TargetResponders {
		if status.TargetResponders[i].State == lifecyclev1alpha1.ResponderStateActive {
			return &status.TargetResponders[i]
		}
	}
	return nil
}

// reportOf returns what a responder reports, or nil.
func reportOf(status *lifecyclev1alpha1.EvictionStatus, name string) *lifecyclev1alpha1.ResponderStatus {
	for i := range status.Responders {
		if status.Responders[i].Name == name {
			return &status.Responders[i]
		}
	}
	return nil
}

// advance makes the next responder Active when its turn has begun. It returns when that is possible, if not now.
func advance(status *lifecyclev1alpha1.EvictionStatus, active *lifecyclev1alpha1.TargetResponder, p progress, now time.Time) time.Duration {
	next := nextOf(status, active)
	if next == nil || !p.hasBegun(next.Name) {
		return 0
	}
	report := reportOf(status, active.Name)
	active.State = lifecyclev1alpha1.ResponderStateCompleted
	if report.CompletionTime == nil {
		if wait := lastSign(report).Add(heartbeatDeadline - allowedSkew).Sub(now); wait > 0 {
			active.State = lifecyclev1alpha1.ResponderStateActive
			return wait
		}
		active.State = lifecyclev1alpha1.ResponderStateInterrupted
	}
	next.State = lifecyclev1alpha1.ResponderStateActive
	reportOf(status, next.Name).StartTime = ptr.To(metav1.NewTime(now))
	return 0
}

// moves is advance, and reports whether the next responder has become Active.
func moves(status *lifecyclev1alpha1.EvictionStatus, active *lifecyclev1alpha1.TargetResponder, p progress, now time.Time) bool {
	advance(status, active, p, now)
	return active.State != lifecyclev1alpha1.ResponderStateActive
}

// lastSign returns when the responder has last shown that it works.
func lastSign(report *lifecyclev1alpha1.ResponderStatus) time.Time {
	if report.HeartbeatTime != nil {
		return report.HeartbeatTime.Time
	}
	return ptr.Deref(report.StartTime, metav1.Time{}).Time
}

// nextOf returns the responder after another one, or nil.
func nextOf(status *lifecyclev1alpha1.EvictionStatus, active *lifecyclev1alpha1.TargetResponder) *lifecyclev1alpha1.TargetResponder {
	sorted := slices.Clone(status.TargetResponders)
	sortResponders(sorted)
	at := slices.IndexFunc(sorted, func(t lifecyclev1alpha1.TargetResponder) bool { return t.Name == active.Name }) + 1
	if at == len(sorted) {
		return nil
	}
	for i := range status.TargetResponders {
		if status.TargetResponders[i].Name == sorted[at].Name {
			return &status.TargetResponders[i]
		}
	}
	return nil
}

// endsIn returns for how long the end is not written yet, because the active responder may still report that it has
// completed: whatever it does may be what has ended the pod.
func endsIn(status *lifecyclev1alpha1.EvictionStatus, active *lifecyclev1alpha1.TargetResponder, request *coordinationv1alpha1.EvictionRequest, end outcome, now time.Time) time.Duration {
	if end.evicted != metav1.ConditionTrue || reportOf(status, active.Name).CompletionTime != nil {
		return 0
	}
	final := evictionrequest.FinalCondition(request.Status.Conditions)
	// The clock of the server may be ahead.
	return min(final.LastTransitionTime.Add(lastReport).Sub(now), lastReport)
}

// finalState returns the state of the active responder when the eviction ends.
func finalState(status *lifecyclev1alpha1.EvictionStatus, active *lifecyclev1alpha1.TargetResponder, end outcome) lifecyclev1alpha1.ResponderStateType {
	switch {
	case reportOf(status, active.Name).CompletionTime != nil:
		return lifecyclev1alpha1.ResponderStateCompleted
	case isCanceled(end):
		return lifecyclev1alpha1.ResponderStateCanceled
	}
	return lifecyclev1alpha1.ResponderStateInterrupted
}
