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

package describe

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/ptr"
)

// describedTextWidth leaves room for the titles, the longest of which has 21 columns, on a line of
// 80.
const describedTextWidth = 58

// EvictionRequestDescriber describes the progress of an EvictionRequest and what it waits for.
type EvictionRequestDescriber struct {
	client clientset.Interface
}

// Describe describes one EvictionRequest, in the order of its progress.
func (d *EvictionRequestDescriber) Describe(namespace, name string, settings DescriberSettings) (string, error) {
	request, err := d.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(context.TODO(), name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var events *corev1.EventList
	if settings.ShowEvents {
		// As for every other kind, the object is shown without events if the user may not list
		// them.
		events, _ = searchEvents(d.client.CoreV1(), request, settings.ChunkSize)
	}
	return describeEvictionRequest(time.Now(), request, d.targetPod(request), events)
}

// targetPod returns the target of the request, or nil if it cannot be read.
func (d *EvictionRequestDescriber) targetPod(request *coordinationv1alpha1.EvictionRequest) *corev1.Pod {
	target := request.Spec.Target.Pod
	if target == nil {
		return nil
	}
	pod, err := d.client.CoreV1().Pods(request.Namespace).Get(context.TODO(), target.Name, metav1.GetOptions{})
	if err != nil || string(pod.UID) != target.UID {
		return nil
	}
	return pod
}

func describeEvictionRequest(now time.Time, request *coordinationv1alpha1.EvictionRequest, pod *corev1.Pod, events *corev1.EventList) (string, error) {
	return tabbedString(func(out io.Writer) error {
		w := newPlainWriter(out)
		describeEvictionRequestSpec(w, now, request)
		describeEvictionRequestState(w, now, request, pod)
		describeInterceptors(w, now, request)
		describeMetaConditions(w, now, request.Status.Conditions)
		describePlainEvents(events, w)
		return nil
	})
}

// describeEvictionRequestSpec prints the target and the requesters.
func describeEvictionRequestSpec(w PrefixWriter, now time.Time, request *coordinationv1alpha1.EvictionRequest) {
	w.Write(LEVEL_0, "Name:\t%s\n", plaintext.Line(request.Name))
	w.Write(LEVEL_0, "Namespace:\t%s\n", plaintext.Line(request.Namespace))
	printLabelsMultiline(w, "Labels", plainLabels(request.Labels))
	printAnnotationsMultiline(w, "Annotations", request.Annotations)
	w.Write(LEVEL_0, "Created:\t%s\n", timeAndAge(now, request.CreationTimestamp))
	if request.DeletionTimestamp != nil {
		w.Write(LEVEL_0, "Deleted:\t%s\n", timeAndAge(now, *request.DeletionTimestamp))
	}
	if pod := request.Spec.Target.Pod; pod != nil {
		w.Write(LEVEL_0, "Target Pod:\t%s\n", plaintext.Line(pod.Name))
		w.Write(LEVEL_0, "Target UID:\t%s\n", plaintext.Line(pod.UID))
	}
	var requesters []string
	for _, requester := range request.Spec.Requesters {
		requesters = append(requesters, requester.Name)
	}
	printNamesMultiline(w, "Requesters", requesters)
	if seconds := request.Spec.HeartbeatDeadlineSeconds; seconds != nil {
		w.Write(LEVEL_0, "Heartbeat Deadline:\t%s\n", duration.HumanDuration(time.Duration(*seconds)*time.Second))
	}
	policy := string(coordinationv1alpha1.EvictionRequestCancellationPolicyAllow)
	if request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
		policy = "Forbid (continues without requesters)"
	}
	w.Write(LEVEL_0, "Cancellation Policy:\t%s\n", policy)
}

// describeEvictionRequestState prints what the request waits for, or how it ended.
func describeEvictionRequestState(w PrefixWriter, now time.Time, request *coordinationv1alpha1.EvictionRequest, pod *corev1.Pod) {
	state := evictionrequest.StateOf(request)
	w.Write(LEVEL_0, "State:\t%s\n", state)
	condition := evictionrequest.FinalCondition(request.Status.Conditions)
	if condition == nil {
		printTextMultiline(w, LEVEL_0, "Waits For", waitsFor(now, request, pod, state))
		return
	}
	w.Write(LEVEL_0, "Finished:\t%s\n", timeAndAge(now, condition.LastTransitionTime))
	w.Write(LEVEL_0, "Took:\t%s\n", duration.HumanDuration(condition.LastTransitionTime.Sub(request.CreationTimestamp.Time)))
	printTextMultiline(w, LEVEL_0, "Result", condition.Message)
}

// waitsFor says which component must act next, and until when.
func waitsFor(now time.Time, request *coordinationv1alpha1.EvictionRequest, pod *corev1.Pod, state evictionrequest.State) string {
	const controller = "evictionrequest-controller, "
	status := &request.Status
	mayBeCanceled := status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
	active := evictionrequest.ActiveInterceptor(request)
	deadline, limited := evictionrequest.ActiveDeadline(request, pod)
	switch {
	case mayBeCanceled && (len(request.Spec.Requesters) == 0 || request.DeletionTimestamp != nil):
		return controller + "which cancels the request: it has no requesters left"
	case len(status.TargetInterceptors) == 0:
		return controller + "which has not processed the request yet"
	case len(status.ActiveInterceptors) == 0:
		return "the termination of the pod: all interceptors have acted"
	case active == nil:
		return status.ActiveInterceptors[0] + ", which has no entry to report in"
	case active.CompletionTime != nil:
		return controller + "which activates the next interceptor: " + active.Name + " has completed"
	case limited && !now.Before(deadline):
		return controller + "which activates the next interceptor: " + active.Name + " has timed out"
	case limited:
		return fmt.Sprintf("%s, %s, times out in %s", active.Name, lastSign(now, status, active), duration.HumanDuration(deadline.Sub(now)))
	case active.Name != coordinationv1alpha1.EvictionInterceptorImperative:
		return fmt.Sprintf("%s, %s; it has no deadline: only it can stop the pod", active.Name, lastSign(now, status, active))
	case state == evictionrequest.StateBlocked:
		condition := meta.FindStatusCondition(status.Conditions, string(state))
		return fmt.Sprintf("%s, refused %s, which retries: %s", active.Name, times(active.Retries), condition.Message)
	}
	return active.Name + ", which evicts the pod"
}

// lastSign says when the active interceptor last reported.
func lastSign(now time.Time, status *coordinationv1alpha1.EvictionRequestStatus, active *coordinationv1alpha1.InterceptorStatus) string {
	switch {
	case active.HeartbeatTime != nil:
		return fmt.Sprintf("last heartbeat %s ago", elapsed(now, *active.HeartbeatTime))
	case status.ActivationTime != nil:
		return fmt.Sprintf("activated %s ago, no heartbeat yet", elapsed(now, *status.ActivationTime))
	}
	return "no heartbeat yet"
}

func times(count int32) string {
	if count == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", count)
}

// describeInterceptors lists the interceptors in the order in which they act.
func describeInterceptors(w PrefixWriter, now time.Time, request *coordinationv1alpha1.EvictionRequest) {
	if len(request.Status.Interceptors) == 0 {
		w.Write(LEVEL_0, "Interceptors:\t<none>\n")
		return
	}
	w.Write(LEVEL_0, "Interceptors:\n")
	for i := range request.Status.Interceptors {
		describeInterceptor(w, now, request, &request.Status.Interceptors[i])
	}
}

func describeInterceptor(w PrefixWriter, now time.Time, request *coordinationv1alpha1.EvictionRequest, entry *coordinationv1alpha1.InterceptorStatus) {
	w.Write(LEVEL_1, "%s:\n", plaintext.Line(entry.Name))
	w.Write(LEVEL_2, "State:\t%s\n", interceptorState(request, entry))
	isActive := slices.Contains(request.Status.ActiveInterceptors, entry.Name)
	if activated := request.Status.ActivationTime; isActive && activated != nil {
		w.Write(LEVEL_2, "Activated:\t%s\n", timeAndAge(now, *activated))
	}
	if entry.StartTime != nil {
		w.Write(LEVEL_2, "Started:\t%s\n", timeAndAge(now, *entry.StartTime))
	}
	if entry.HeartbeatTime != nil {
		w.Write(LEVEL_2, "Last Heartbeat:\t%s\n", timeAndAge(now, *entry.HeartbeatTime))
	}
	// The estimate is obsolete when the interceptor is no longer active.
	if entry.ExpectedFinishTime != nil && entry.CompletionTime == nil && isActive {
		w.Write(LEVEL_2, "ETA:\t%s\n", timeAndRemainder(now, *entry.ExpectedFinishTime))
	}
	if entry.CompletionTime != nil {
		w.Write(LEVEL_2, "Completed:\t%s\n", timeAndAge(now, *entry.CompletionTime))
	}
	if entry.Retries > 0 {
		w.Write(LEVEL_2, "Retries:\t%d\n", entry.Retries)
	}
	if entry.Message != "" {
		printTextMultiline(w, LEVEL_2, "Message", entry.Message)
	}
}

// interceptorState returns whether an interceptor is waiting, active or finished, and how it ended.
func interceptorState(request *coordinationv1alpha1.EvictionRequest, entry *coordinationv1alpha1.InterceptorStatus) string {
	status := &request.Status
	finished := evictionrequest.IsFinished(status.Conditions)
	turn := slices.Index(status.ProcessedInterceptors, entry.Name)
	switch {
	case entry.CompletionTime != nil:
		return "Completed"
	case slices.Contains(status.ActiveInterceptors, entry.Name):
		overdue := meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive))
		switch {
		case overdue == nil || overdue.Status != metav1.ConditionTrue:
			return "Active"
		case overdue.Reason == coordinationv1alpha1.EvictionRequestReasonNotStarted:
			return "Active, not started"
		}
		return "Active, overdue"
	case turn < 0 && finished:
		return "Skipped"
	case turn < 0:
		return "Waiting"
	case turn == len(status.ProcessedInterceptors)-1 && finished:
		// It was active when the request ended: it did not time out.
		return "Stopped"
	}
	return "Timed out"
}

func describeMetaConditions(w PrefixWriter, now time.Time, conditions []metav1.Condition) {
	if len(conditions) == 0 {
		w.Write(LEVEL_0, "Conditions:\t<none>\n")
		return
	}
	w.Write(LEVEL_0, "Conditions:\n  Type\tStatus\tSince\tReason\tMessage\n")
	w.Write(LEVEL_1, "----\t------\t-----\t------\t-------\n")
	for _, c := range conditions {
		w.Write(LEVEL_1, "%s\t%s\t%s\t%s\t%s\n", plaintext.Line(c.Type), plaintext.Line(string(c.Status)), elapsed(now, c.LastTransitionTime), plaintext.Line(c.Reason), plaintext.Line(c.Message))
	}
}

// printEvictionInterceptors lists the interceptors of a pod. For a pod without interceptors, it
// prints nothing: the output is that of upstream.
func printEvictionInterceptors(w PrefixWriter, title string, interceptors []corev1.EvictionInterceptor) {
	if len(interceptors) == 0 {
		return
	}
	var names []string
	for _, interceptor := range interceptors {
		names = append(names, interceptor.Name)
	}
	printNamesMultiline(w, title, names)
}

// printEvictionResponders does the same with the responders of a pod, which are ordered by their priorities.
func printEvictionResponders(w PrefixWriter, title string, responders []corev1.EvictionResponder) {
	if len(responders) == 0 {
		return
	}
	sorted := slices.SortedStableFunc(slices.Values(responders), func(a, b corev1.EvictionResponder) int {
		return evictioninterceptor.CompareResponders(a.Name, a.Priority, b.Name, b.Priority)
	})
	var names []string
	for _, responder := range sorted {
		names = append(names, fmt.Sprintf("%s (priority %d)", responder.Name, ptr.Deref(responder.Priority, 0)))
	}
	printNamesMultiline(w, title, names)
}

func printNamesMultiline(w PrefixWriter, title string, names []string) {
	if len(names) == 0 {
		names = []string{"<none>"}
	}
	w.Write(LEVEL_0, "%s:\t%s\n", title, strings.Join(plaintext.Lines(names), "\n\t"))
}

// printTextMultiline wraps a text of another client. It indents every line, so that none can
// imitate a line of kubectl.
func printTextMultiline(w PrefixWriter, level int, title, text string) {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		// A tab or form feed would move the columns.
		line = plaintext.Line(line)
		lines = append(lines, strings.Split(wordwrap.WrapString(line, describedTextWidth), "\n")...)
	}
	w.Write(level, "%s:\t%s\n", title, lines[0])
	for _, line := range lines[1:] {
		w.Write(level, "\t%s\n", line)
	}
}

func timeAndAge(now time.Time, at metav1.Time) string {
	return fmt.Sprintf("%s (%s ago)", at.Format(time.RFC1123Z), elapsed(now, at))
}

func timeAndRemainder(now time.Time, at metav1.Time) string {
	if remainder := at.Sub(now); remainder >= 0 {
		return fmt.Sprintf("%s (in %s)", at.Format(time.RFC1123Z), duration.HumanDuration(remainder))
	}
	return fmt.Sprintf("%s (overdue by %s)", at.Format(time.RFC1123Z), elapsed(now, at))
}

// elapsed is never negative: the clock of the writer of the time may be ahead.
func elapsed(now time.Time, at metav1.Time) string {
	return duration.HumanDuration(max(0, now.Sub(at.Time)))
}
