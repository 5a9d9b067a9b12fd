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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
)

// The reasons of the events that this controller emits, on the request and on its pod.
const (
	// eventInterceptorActivated: it is an interceptor's turn.
	eventInterceptorActivated = "InterceptorActivated"
	// eventInterceptorCompleted: an interceptor has ended its turn.
	eventInterceptorCompleted = "InterceptorCompleted"
	// eventInterceptorTimedOut: an interceptor has lost its turn by silence.
	eventInterceptorTimedOut = "InterceptorTimedOut"
	// eventInterceptorUnresponsive: the report of the active interceptor is overdue.
	eventInterceptorUnresponsive = "InterceptorUnresponsive"
	// eventEvictionBlocked: something keeps the API server from evicting the pod.
	eventEvictionBlocked = "EvictionBlocked"
	// eventEvicted: the pod is gone.
	eventEvicted = "Evicted"
	// eventEvictionCanceled: nobody wants the pod gone any more.
	eventEvictionCanceled = "EvictionCanceled"
)

// maxNoteLength is the bound of the note of an event, in bytes.
const maxNoteLength = 1024

// event is what is said of a change.
type event struct {
	eventType, reason, action, note string
	// once says it on the request alone, with the pod as the related object: the pod is
	// gone and nobody looks at it any more, or all goes well. A drain has many of them.
	once bool
}

// describeChange returns the event for a change, if it is worth one. The undisturbed
// eviction of a pod without interceptors is told by its end alone.
func describeChange(c change, status *coordinationv1alpha1.EvictionRequestStatus) (event, bool) {
	switch c.kind {
	case changeActivated:
		if len(status.TargetInterceptors) == 1 {
			return event{}, false
		}
		return event{v1.EventTypeNormal, eventInterceptorActivated, "Activate",
			fmt.Sprintf("It is the turn of interceptor %s.", c.interceptor), true}, true
	case changeProcessed:
		switch c.outcome {
		case outcomeCompleted:
			return event{v1.EventTypeNormal, eventInterceptorCompleted, "Complete",
				fmt.Sprintf("Interceptor %s has completed.", c.interceptor), true}, true
		case outcomeTimedOut:
			return event{v1.EventTypeWarning, eventInterceptorTimedOut, "Complete",
				fmt.Sprintf("Interceptor %s was silent for too long and has lost its turn.", c.interceptor), false}, true
		}
	case changeUnresponsive:
		return event{v1.EventTypeWarning, eventInterceptorUnresponsive, "Intercept", c.message, false}, true
	case changeBlocked:
		return event{v1.EventTypeWarning, eventEvictionBlocked, "Evict", c.message, false}, true
	case changeEvicted:
		return event{v1.EventTypeNormal, eventEvicted, "Evict", c.message, true}, true
	case changeCanceled:
		// Where the pod does not exist, only the request is left to tell of it.
		return event{v1.EventTypeNormal, eventEvictionCanceled, "Cancel", c.message,
			c.reason == coordinationv1alpha1.EvictionRequestReasonValidationFailed}, true
	}
	return event{}, false
}

// recordEvents tells people of the changes of a request.
func recordEvents(recorder events.EventRecorder, request *coordinationv1alpha1.EvictionRequest, changes []change) {
	pod := &v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: request.Namespace, Name: targetName(request), UID: types.UID(request.Name)}
	for _, c := range changes {
		said, worth := describeChange(c, &request.Status)
		if !worth {
			continue
		}
		note := truncate(said.note, maxNoteLength)
		recorder.Eventf(request, pod, said.eventType, said.reason, said.action, "%s", note)
		if !said.once {
			recorder.Eventf(pod, request, said.eventType, said.reason, said.action, "%s", note)
		}
	}
}
