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

package system

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The responders of some apps, of which one acts before the interceptor of the app, and one after it.
const (
	earlyResponder = "responder.example.com/early"
	lateResponder  = "responder.example.com/late"
)

func respondersOf(app string) []v1.EvictionResponder {
	early, late := v1.EvictionResponder{Name: earlyResponder, Priority: ptr.To[int32](20000)}, v1.EvictionResponder{Name: lateResponder, Priority: ptr.To[int32](5000)}
	switch app {
	case "app-0":
		return []v1.EvictionResponder{late, early}
	case "app-1":
		return []v1.EvictionResponder{late}
	}
	return nil
}

// respond reports as the responder that is Active: the start, and in one of the next rounds the end.
func (a *actor) respond(ctx context.Context) {
	if !a.test.opensDoor {
		return
	}
	evictions := a.client().LifecycleV1alpha1().Evictions(a.namespace)
	list, err := evictions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		eviction := &list.Items[i]
		for j := range eviction.Status.Responders {
			report := &eviction.Status.Responders[j]
			isActive := slices.ContainsFunc(eviction.Status.TargetResponders, func(t lifecyclev1alpha1.TargetResponder) bool {
				return t.Name == report.Name && t.State == lifecyclev1alpha1.ResponderStateActive
			})
			if !isActive || report.Name == lifecyclev1alpha1.EvictionResponderImperativeEviction || report.CompletionTime != nil || a.oneOf(3) == 0 {
				continue
			}
			now := metav1.Now().Rfc3339Copy()
			if report.HeartbeatTime != nil {
				report.CompletionTime = &now
			} else {
				report.ExpectedCompletionTime = ptr.To(metav1.NewTime(now.Add(time.Minute)))
			}
			report.HeartbeatTime, report.Message = &now, ptr.To(fmt.Sprintf("round %d", a.acts))
			_, _ = evictions.UpdateStatus(ctx, eviction, metav1.UpdateOptions{})
		}
	}
}

// requestLifecycle requests evictions by lifecycle.k8s.io, withdraws, and deletes the objects of that group, Evictions too,
// and makes some by hand.
func (a *actor) requestLifecycle(ctx context.Context) {
	if !a.test.opensDoor {
		return
	}
	pod := a.anyPod(ctx)
	if pod == nil {
		return
	}
	requests, evictions := a.client().LifecycleV1alpha1().EvictionRequests(a.namespace), a.client().LifecycleV1alpha1().Evictions(a.namespace)
	list, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	uid := pod.UID
	if a.oneOf(10) == 0 {
		uid = types.UID(fmt.Sprintf("none-%d", a.oneOf(3)))
	}
	switch what := a.oneOf(8); {
	case what < 4 || len(list.Items) == 0:
		_, _ = requests.Create(ctx, &lifecyclev1alpha1.EvictionRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "request-"},
			Spec: lifecyclev1alpha1.EvictionRequestSpec{
				Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: uid}},
				Requester: fmt.Sprintf("requester.example.com/%d", a.oneOf(3)), Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
			},
		}, metav1.CreateOptions{})
	case what < 6:
		request := &list.Items[a.oneOf(len(list.Items))]
		intents := []lifecyclev1alpha1.EvictionRequestIntent{lifecyclev1alpha1.EvictionRequestIntentEviction, lifecyclev1alpha1.EvictionRequestIntentWithdrawn}
		request.Spec.Intent = intents[a.oneOf(2)]
		_, _ = requests.Update(ctx, request, metav1.UpdateOptions{})
	case what == 6:
		_ = requests.Delete(ctx, list.Items[a.oneOf(len(list.Items))].Name, metav1.DeleteOptions{})
	case a.oneOf(3) == 0:
		_, _ = evictions.Create(ctx, &lifecyclev1alpha1.Eviction{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "by-hand-"},
			Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod.Name, UID: uid}}},
		}, metav1.CreateOptions{})
	default:
		if found, err := evictions.List(ctx, metav1.ListOptions{}); err == nil && len(found.Items) > 0 {
			_ = evictions.Delete(ctx, found.Items[a.oneOf(len(found.Items))].Name, metav1.DeleteOptions{})
		}
	}
}
