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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubernetes/pkg/controller/util/revertpace"
)

// The reasons of the events that this controller records for the request and for its pod.
const (
	// eventInterceptorActivated: an interceptor became active.
	eventInterceptorActivated = "InterceptorActivated"
	// eventInterceptorCompleted: an interceptor completed.
	eventInterceptorCompleted = "InterceptorCompleted"
	// eventInterceptorTimedOut: an interceptor sent no heartbeat before its deadline.
	eventInterceptorTimedOut = "InterceptorTimedOut"
	// eventInterceptorSkipped: an interceptor was passed over.
	eventInterceptorSkipped = "InterceptorSkipped"
	// eventInterceptorUnresponsive: the report of the active interceptor is overdue.
	eventInterceptorUnresponsive = "InterceptorUnresponsive"
	// eventEvictionBlocked: the API server refuses to evict the pod.
	eventEvictionBlocked = "EvictionBlocked"
	// eventEvicted: the pod is gone.
	eventEvicted = "Evicted"
	// eventEvictionCanceled: the eviction was canceled.
	eventEvictionCanceled = "EvictionCanceled"
	// eventEvictionCallsExpired: whoever called pods/eviction for the pod has given up.
	eventEvictionCallsExpired = "EvictionCallsExpired"
	// eventNodeUncordoned: whoever drained the node by such calls has given up.
	eventNodeUncordoned = "NodeUncordoned"
	// eventLabelsContested: the labels of the request, or of its pod, are changed again and again.
	eventLabelsContested = "LabelsContested"
	// eventRequestWriteFailed: the API server refuses the status of the request.
	eventRequestWriteFailed = "RequestWriteFailed"
)

// maxNoteLength is the maximum length of the note of an event, in bytes.
const maxNoteLength = 1024

// event is the event for a change.
type event struct {
	eventType, reason, action, note string
	// requestOnly records the event for the request alone, with the pod as the related object. It
	// is set if the pod is gone, or if nothing is wrong: a drain records many such events.
	requestOnly bool
}

// describeChange returns the event for a change, if there is one.
func describeChange(c change, status *coordinationv1alpha1.EvictionRequestStatus) (event, bool) {
	switch c.kind {
	case changeActivated:
		if isPlain(status) {
			return event{}, false
		}
		return event{v1.EventTypeNormal, eventInterceptorActivated, "Activate",
			fmt.Sprintf("Activated interceptor %s.", c.interceptor), true}, true
	case changeProcessed:
		switch c.outcome {
		case outcomeCompleted:
			return event{v1.EventTypeNormal, eventInterceptorCompleted, "Complete",
				fmt.Sprintf("Interceptor %s completed.", c.interceptor), true}, true
		case outcomeTimedOut:
			return event{v1.EventTypeWarning, eventInterceptorTimedOut, "Complete",
				fmt.Sprintf("Deactivated interceptor %s: it sent no heartbeat before its deadline.", c.interceptor), false}, true
		case outcomeSkipped:
			skipped := meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped))
			return event{v1.EventTypeWarning, eventInterceptorSkipped, "Complete",
				fmt.Sprintf("Passed over interceptor %s: %s", c.interceptor, skipped.Message), false}, true
		}
	case changeUnresponsive:
		return event{v1.EventTypeWarning, eventInterceptorUnresponsive, "Intercept", c.message, false}, true
	case changeBlocked:
		return event{v1.EventTypeWarning, eventEvictionBlocked, "Evict", c.message, false}, true
	case changeEvicted:
		if isPlain(status) {
			return event{}, false
		}
		return event{v1.EventTypeNormal, eventEvicted, "Evict", c.message, true}, true
	case changeCanceled:
		// If the target was not found, there is no pod to record an event for.
		return event{v1.EventTypeNormal, eventEvictionCanceled, "Cancel", c.message,
			c.reason == coordinationv1alpha1.EvictionRequestReasonValidationFailed}, true
	case changeCallsExpired:
		return event{v1.EventTypeNormal, eventEvictionCallsExpired, "Withdraw",
			fmt.Sprintf("Withdrew requester %s: pods/eviction was not called for %s.", coordinationv1alpha1.EvictionRequesterEvictions, c.message), true}, true
	case changeNodeUncordoned:
		return event{v1.EventTypeNormal, eventNodeUncordoned, "Withdraw",
			fmt.Sprintf("Withdrew requester %s: node %s was cordoned when pods/eviction was called, and is schedulable again.", coordinationv1alpha1.EvictionRequesterEvictions, c.message), true}, true
	case changeLabelsContested:
		return event{v1.EventTypeWarning, eventLabelsContested, "CopyLabels",
			fmt.Sprintf("Copied the labels of the pod %d times within %s, because other clients change those of the request or of the pod again and again; copying them ever more slowly, at most once a minute.", revertpace.Limit, revertpace.Window), true}, true
	case changeStatusFailed:
		return event{v1.EventTypeWarning, eventRequestWriteFailed, "Write",
			"The status of the request cannot be written: " + c.message, false}, true
	}
	return event{}, false
}

// isPlain reports whether nothing but the built-in interceptor had to do with the request, and nothing
// has held it up: that it goes as planned is not worth an event, which is a write for each pod of a drain.
func isPlain(status *coordinationv1alpha1.EvictionRequestStatus) bool {
	return len(status.TargetInterceptors) == 1 &&
		meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked)) == nil
}

// recordEvents records the events for the changes of a request.
func recordEvents(recorder events.EventRecorder, request *coordinationv1alpha1.EvictionRequest, changes []change) {
	// References without a resourceVersion, so that the recorder counts an event that repeats.
	regarding := &v1.ObjectReference{
		APIVersion: coordinationv1alpha1.SchemeGroupVersion.String(), Kind: "EvictionRequest",
		Namespace: request.Namespace, Name: request.Name, UID: request.UID,
	}
	pod := &v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: request.Namespace, Name: targetName(request), UID: types.UID(request.Name)}
	for _, c := range changes {
		described, found := describeChange(c, &request.Status)
		if !found {
			continue
		}
		note := plaintext.Truncate(described.note, maxNoteLength)
		part := regarding
		if c.interceptor != "" {
			// The recorder counts events that differ in their notes only: the next interceptor would be
			// a repetition of the one before.
			part = regarding.DeepCopy()
			part.FieldPath = fmt.Sprintf("status.interceptors{%s}", c.interceptor)
		}
		recorder.Eventf(part, pod, described.eventType, described.reason, described.action, "%s", note)
		if !described.requestOnly {
			recorder.Eventf(pod, part, described.eventType, described.reason, described.action, "%s", note)
		}
	}
}
