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
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	daemonSet = coordinationv1alpha1.EvictionInterceptorDaemonSet
	kubelet   = coordinationv1alpha1.EvictionInterceptorKubelet
)

var unresponsive = is(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive)

func withLabels(labels map[string]string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Labels = labels }
}

func withAnnotation(key, value string) func(*v1.Pod) {
	return func(pod *v1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

func controlledByDaemonSet(pod *v1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "5f0c2a52-0000-4000-8000-000000000001", Controller: ptr.To(true)},
	}
}

// testLabelsFollowThePod has a pod whose labels change while its request is active.
func testLabelsFollowThePod(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("labeled", withLabels(map[string]string{"app": "web", "tier": "front"}), withInterceptors(first)))
	request := newRequest(pod)
	request.Labels = map[string]string{"app": "other", "team": "a"}
	c.createRequest(request)

	expectLabels := func(what string, want map[string]string) {
		t.Helper()
		c.awaitRequest(pod, what, func(request *coordinationv1alpha1.EvictionRequest) bool { return cmp.Equal(want, request.Labels) })
	}
	active := c.awaitRequest(pod, "the first interceptor to be active", active(first))
	if diff := cmp.Diff(map[string]string{"app": "web", "tier": "front", "team": "a"}, active.Labels); diff != "" {
		t.Errorf("labels when the first interceptor is active (-want +got):\n%s", diff)
	}
	if active.Generation != 1 {
		t.Errorf("the labels changed the generation to %d", active.Generation)
	}
	c.patchPod(pod, `{"metadata":{"labels":{"tier":"back"}}}`)
	expectLabels("the new label", map[string]string{"app": "web", "tier": "back", "team": "a"})
}

func (c *cluster) patchPod(pod *v1.Pod, patch string) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Pods(c.namespace).Patch(c.t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("patching pod %s: %v", pod.Name, err)
	}
}

// expectRequestGone waits until no request with that UID exists.
func (c *cluster) expectRequestGone(request *coordinationv1alpha1.EvictionRequest, step func()) {
	c.t.Helper()
	c.Eventually("the deletion of the request", func(ctx context.Context) (bool, string) {
		step()
		current, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, request.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && current.UID != request.UID) {
			return true, ""
		}
		return false, fmt.Sprintf("it exists, or: %v", err)
	})
}

// testFinishedRequestIsCollected uses a fake clock: the request is kept for an hour and then
// deleted.
func testFinishedRequestIsCollected(t *testing.T, c *cluster) {
	now := testingclock.NewFakeClock(time.Now().Truncate(time.Second))
	c.startController(now)
	pod := c.createPod(newPod("short"))
	c.join(pod, drainer)
	request := c.awaitRequest(pod, "the end of the request", evicted)

	// Another request shows that the controller has synced the first one a minute before the TTL
	// ends.
	now.Step(59 * time.Minute)
	other := c.createPod(newPod("other"))
	c.join(other, drainer)
	c.awaitRequest(other, "the end of another request", evicted)
	c.awaitRequest(pod, "the request before the TTL ends", evicted)

	now.Step(time.Minute)
	c.expectRequestGone(request, func() { now.Step(time.Second) })
}

// testRequesterAddedAfterCancellation requests the eviction of a pod again after its request was
// canceled.
func testRequesterAddedAfterCancellation(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("changed-my-mind", withInterceptors(first)))
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.leave(pod, drainer)
	request := c.awaitRequest(pod, "the cancellation", canceled)

	c.join(pod, drainer)
	c.expectRequestGone(request, func() {})
	c.join(pod, drainer)
	again := c.awaitRequest(pod, "the first interceptor to be active in the new request", active(first))
	if again.UID == request.UID {
		t.Errorf("the canceled request was not replaced")
	}
	c.expectUntouched(pod)
}

// testForeignFinalizer deletes a request that has a finalizer.
func testForeignFinalizer(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("kept", withInterceptors(first)))
	c.createRequest(newRequest(pod, func(request *coordinationv1alpha1.EvictionRequest) {
		request.Finalizers = []string{"example.com/keep"}
	}))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	if err := requests.Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the request: %v", err)
	}
	request := c.awaitRequest(pod, "the cancellation", canceled)
	if got, want := describe(request), "active= processed=first Canceled=NoRequesters"; got != want {
		t.Errorf("the request ended as %q, want %q", got, want)
	}
	c.expectUntouched(pod)
	if _, err := requests.Patch(t.Context(), request.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("removing the finalizer: %v", err)
	}
	c.expectRequestGone(request, func() {})
}

// testDefaultInterceptors has pods that name no interceptors and cannot be evicted by the eviction
// API.
func testDefaultInterceptors(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	for name, test := range map[string]struct {
		option      func(*v1.Pod)
		interceptor string
		declines    string
	}{
		"agent":  {controlledByDaemonSet, daemonSet, "Not evicted: the DaemonSet would recreate the pod on the same node."},
		"static": {withAnnotation(v1.MirrorPodAnnotationKey, "hash"), kubelet, "Not evicted: the pod is the mirror of a static pod, which only the kubelet can stop."},
	} {
		pod := c.createPod(newPod(name, test.option))
		c.join(pod, drainer)
		c.awaitRequest(pod, test.interceptor+" to be active", active(test.interceptor))
		c.report(pod, completed(test.interceptor, metav1.Now()))
		request := c.awaitRequest(pod, "all interceptors to be processed", func(request *coordinationv1alpha1.EvictionRequest) bool {
			return len(request.Status.ProcessedInterceptors) == 2
		})
		if got := request.Status.Interceptors[1].Message; got != test.declines {
			t.Errorf("the message of the built-in interceptor for pod %[2]s is %[1]q, want %[3]q", got, name, test.declines)
		}
		c.expectUntouched(pod)
	}
}

// testRegisteredByAnnotation registers interceptors for a running pod. They come after those that
// the author of the pod has named, at any priority.
func testRegisteredByAnnotation(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("running", withInterceptors(first)))
	const prefix = "interceptor.evictionrequest.coordination.k8s.io/priority_"
	c.patchPod(pod, `{"metadata":{"annotations":{"`+prefix+`early.example.com":"20000/backup","`+prefix+`late.example.com":"1"}}}`)
	c.join(pod, drainer)
	request := c.awaitRequest(pod, "the interceptor that the pod names to be active", active(first))
	var got []string
	for _, target := range request.Status.TargetInterceptors {
		got = append(got, target.Name)
	}
	if diff := cmp.Diff([]string{first, "early.example.com", "late.example.com", imperative}, got); diff != "" {
		t.Errorf("interceptors of the request (-want +got):\n%s", diff)
	}
	// A later registration does not affect this request.
	c.patchPod(pod, `{"metadata":{"annotations":{"`+prefix+`sneaky.example.com":"30000"}}}`)
	joined := c.join(pod, scaler)
	request = c.awaitRequest(pod, "a sync of the request", observed(joined.Generation))
	if len(request.Status.TargetInterceptors) != 4 {
		t.Errorf("the interceptors have changed to %v", request.Status.TargetInterceptors)
	}
}

// testUnresponsiveInterceptor uses a fake clock for the controller and the API server.
func testUnresponsiveInterceptor(t *testing.T, c *cluster) {
	now := testingclock.NewFakeClock(time.Now().Truncate(time.Second))
	c.startController(now)
	pod := c.createPod(newPod("quiet", withInterceptors(first)))
	c.join(pod, drainer)
	activation := c.awaitRequest(pod, "the first interceptor to be active", active(first)).Status.ActivationTime
	request := c.awaitRequest(pod, "the condition InterceptorUnresponsive", func(request *coordinationv1alpha1.EvictionRequest) bool {
		reached := unresponsive(request)
		if !reached {
			now.Step(time.Second)
		}
		return reached
	})
	condition := meta.FindStatusCondition(request.Status.Conditions, "InterceptorUnresponsive")
	if got := condition.LastTransitionTime.Sub(activation.Time); got < time.Minute {
		t.Errorf("the interceptor became unresponsive after %v, want at least a minute", got)
	}
	c.expectCondition(request, metav1.Condition{
		Type: "InterceptorUnresponsive", Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: "HeartbeatOverdue",
		Message: "Interceptor first.example.com has sent no heartbeat since it was activated at " + activation.UTC().Format(time.RFC3339) + ".",
	})
	c.report(pod, started(first, metav1.Time{Time: now.Now()}))
	c.awaitRequest(pod, "the condition to be cleared", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return !unresponsive(request)
	})
	if request := c.awaitRequest(pod, "the first interceptor to stay active", active(first)); describe(request) != "active=first processed= first=started" {
		t.Errorf("after the report, the request is %q", describe(request))
	}
}

// testForbiddenCancellation removes the last requester after the cancellation was forbidden.
func testForbiddenCancellation(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("migrating", withInterceptors(first)))
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.patchStatus(pod, `{"status":{"evictionRequestCancellationPolicy":"Forbid"}}`)

	left := c.leave(pod, drainer)
	request := c.awaitRequest(pod, "a sync of the request", observed(left.Generation))
	if got, want := describe(request), "active=first processed="; got != want {
		t.Errorf("without requesters, the request is %q, want %q", got, want)
	}
	// The policy still applies after the interceptor that has set it.
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
}

func (c *cluster) patchStatus(pod *v1.Pod, patch string) {
	c.t.Helper()
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).
		Patch(c.t.Context(), string(pod.UID), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatalf("patching the status of the request for pod %s: %v", pod.Name, err)
	}
}

// testEvents checks the events of the request and the pod.
func testEvents(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("told", withInterceptors(first)), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.deleteBudget("guard")
	c.awaitRequest(pod, "the end of the request", evicted)

	c.expectEvents("EvictionRequest", string(pod.UID), "InterceptorActivated", "InterceptorCompleted", "EvictionBlocked", "Evicted")
	c.expectEvents("Pod", pod.Name, "EvictionBlocked")

	// One without interceptors that nothing blocks has none.
	plain := c.createPod(newPod("plain"))
	c.join(plain, drainer)
	c.awaitRequest(plain, "the end of the request", evicted)
	// Events are sent in their order: this one comes after those of the other pod would.
	last := c.createRunningPod(newPod("last"), v1.ConditionTrue)
	c.createBudget("guard", last, 1, policyv1.IfHealthyBudget)
	c.join(last, drainer)
	c.expectEvents("Pod", last.Name, "EvictionBlocked")
	c.expectEvents("EvictionRequest", string(plain.UID))
	c.expectEvents("Pod", plain.Name)
}

// expectEvents waits until the object has events with exactly these reasons.
func (c *cluster) expectEvents(kind, name string, reasons ...string) {
	c.t.Helper()
	want := sets.New(reasons...)
	selector := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.String()
	c.Eventually(fmt.Sprintf("events %v about %s %s", reasons, kind, name), func(ctx context.Context) (bool, string) {
		events, err := c.client.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return false, err.Error()
		}
		got := sets.New[string]()
		for _, event := range events.Items {
			got.Insert(event.Reason)
		}
		return want.Equal(got), fmt.Sprint(sets.List(got))
	})
}
