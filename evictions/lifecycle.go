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
package evictions

import (
	"context"
	"fmt"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleapply "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	lifecycleinformers "k8s.io/client-go/informers/lifecycle/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// lifecycleRules are those of Kubernetes 1.37, which has no limit for bytes.
var lifecycleRules = Rules{MaxClockSkew: 30 * time.Second, MaxMessageLength: 4000, MaxMessageBytes: 4 * 4000}

// lifecycleHeartbeatDeadline is that of Kubernetes 1.37. No field says it.
const lifecycleHeartbeatDeadline = 20 * time.Minute

// Lifecycle returns the API lifecycle.k8s.io/v1alpha1 of Kubernetes 1.37, for responders of pods (spec.evictionResponders).
// The responder needs permission to list and watch evictions, to get and patch evictions/status, and to intercept
// evictioninterceptors of coordination.k8s.io with its name.
func Lifecycle(client kubernetes.Interface) API { return lifecycleAPI{client} }

type lifecycleAPI struct{ client kubernetes.Interface }

func (a lifecycleAPI) Rules() Rules { return lifecycleRules }

// Informer watches the Evictions that have the responder in their labels, as all have from their creation.
func (a lifecycleAPI) Informer(responder, namespace, labelSelector string) cache.SharedIndexInformer {
	selector := fmt.Sprintf("%s in (%s, %s)", responder, lifecyclev1alpha1.EvictionParticipantRoleResponder, lifecyclev1alpha1.EvictionParticipantRoleRequesterResponder)
	if labelSelector != "" {
		selector += "," + labelSelector
	}
	return lifecycleinformers.NewFilteredEvictionInformer(a.client, namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = selector })
}

func (a lifecycleAPI) Get(ctx context.Context, namespace, name, responder string) (*Request, error) {
	return a.read(a.client.LifecycleV1alpha1().Evictions(namespace).Get(ctx, name, metav1.GetOptions{}))(responder)
}

// Write applies the entry of the responder. Force is set because the controller has created the entry. The start is the
// controller's.
func (a lifecycleAPI) Write(ctx context.Context, request *Request, responder string, report Report, _ bool) (*Request, error) {
	entry := lifecycleapply.ResponderStatus().WithName(responder)
	entry.HeartbeatTime, entry.ExpectedCompletionTime, entry.CompletionTime = Stored(report.Heartbeat), Stored(report.ExpectedCompletion), Stored(report.Completion)
	if report.Message != "" {
		entry.WithMessage(report.Message)
	}
	patch := lifecycleapply.Eviction(request.Name, request.Namespace).WithUID(request.UID).
		WithStatus(lifecycleapply.EvictionStatus().WithResponders(entry))
	return a.read(a.client.LifecycleV1alpha1().Evictions(request.Namespace).
		ApplyStatus(ctx, patch, metav1.ApplyOptions{FieldManager: FieldManager(responder), Force: true}))(responder)
}

func (a lifecycleAPI) read(eviction *lifecyclev1alpha1.Eviction, err error) func(responder string) (*Request, error) {
	return func(responder string) (*Request, error) {
		if err != nil {
			return nil, err
		}
		return a.Read(eviction, responder), nil
	}
}

func (a lifecycleAPI) Read(obj any, responder string) *Request {
	eviction := obj.(*lifecyclev1alpha1.Eviction)
	request := &Request{
		Namespace: eviction.Namespace, Name: eviction.Name, UID: eviction.UID,
		Ended:             endOfEviction(eviction, responder),
		HeartbeatDeadline: lifecycleHeartbeatDeadline,
		Object:            eviction,
	}
	if pod := eviction.Spec.Target.Pod; pod != nil {
		request.Pod = Pod{Name: pod.Name, UID: pod.UID}
	}
	for _, entry := range eviction.Status.Responders {
		if entry.Name != responder {
			continue
		}
		request.ActiveSince = TimeOf(entry.StartTime)
		request.Report = Report{
			Start: TimeOf(entry.StartTime), Heartbeat: TimeOf(entry.HeartbeatTime),
			ExpectedCompletion: TimeOf(entry.ExpectedCompletionTime), Completion: TimeOf(entry.CompletionTime),
		}
		if entry.Message != nil {
			request.Report.Message = *entry.Message
		}
	}
	return request
}

// endOfEviction returns nil if the responder is Active, and otherwise why it is not.
func endOfEviction(eviction *lifecyclev1alpha1.Eviction, responder string) error {
	if meta.IsStatusConditionTrue(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted)) {
		return ErrEvicted
	}
	failed := meta.FindStatusCondition(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed))
	if failed != nil && failed.Status == metav1.ConditionTrue {
		return fmt.Errorf("%w: %s", ErrCanceled, failed.Reason)
	}
	for _, target := range eviction.Status.TargetResponders {
		if target.Name != responder {
			continue
		}
		switch target.State {
		case lifecyclev1alpha1.ResponderStateActive:
			return nil
		case lifecyclev1alpha1.ResponderStateCanceled:
			return ErrCanceled
		}
		return fmt.Errorf("%w: it is %s", ErrTurnLost, target.State)
	}
	return ErrTurnLost
}

// TimeOf returns the time of a field, or the zero time if it is not set.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Stored returns the value of a field for a time, or nil for the zero time.
func Stored(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
