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
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// TestLibrary tests the client library with a real API server and our controller.
func TestLibrary(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"two requesters request and withdraw", testLibraryRequest},
		{"the first requester sets the deadline", testLibraryDeadline},
		{"labels are kept and do not conflict", testLibraryLabels},
		{"requesting again after a cancellation", testLibraryRequestAfterCancellation},
		{"requesting again while the request is deleted", testLibraryDeletionInFlight},
		{"requesting again although finalizers keep a canceled request", testLibraryCanceledWithFinalizer},
		{"a pod with many labels, and a status that others write beside", testLibraryHostileMetadata},
		{"requesting an evicted pod", testLibraryAlreadyEvicted},
		{"requesting a pod that cannot be evicted", testLibraryCannotBeEvicted},
		{"requesting without permission", testLibraryForbidden},
		{"withdrawing creates nothing", testLibraryWithdrawNothing},
		{"withdrawing an entry with another owner", testLibraryWithdrawForeign},

		{"an interceptor from start to completion", testLibraryTurn},
		{"a request is canceled during a turn", testLibraryCanceled},
		{"an interceptor restarts during a turn", testLibraryRestart},
		{"an interceptor forbids the cancellation", testLibraryForbid},
		{"requesters, interceptor and controller write concurrently", testLibraryConcurrent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}

func (c *cluster) requester(name string, options evictionrequest.RequesterOptions) *evictionrequest.Requester {
	c.t.Helper()
	requester, err := evictionrequest.NewRequester(c.client, name, options)
	if err != nil {
		c.t.Fatalf("creating requester %s: %v", name, err)
	}
	return requester
}

// testLibraryCanceledWithFinalizer: another deadline is no conflict with a request that a new one replaces.
func testLibraryCanceledWithFinalizer(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("kept", withInterceptors(first)), v1.ConditionTrue)
	c.createRequest(newRequest(pod, func(request *coordinationv1alpha1.EvictionRequest) { request.Finalizers = []string{"example.com/keep"} }))
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	if _, err := requests.Patch(t.Context(), string(pod.UID), types.MergePatchType, []byte(`{"spec":{"requesters":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	old := c.awaitRequest(pod, "the cancellation", canceled)
	if err := requests.Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	maintenance := c.requester("nm.example.com", evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: 1800})
	request := c.request(maintenance, pod, evictionrequest.Created)
	if request.UID == old.UID || *request.Spec.HeartbeatDeadlineSeconds != 1800 || len(request.Finalizers) > 0 {
		t.Errorf("the request is %s with the deadline %d", describe(request), *request.Spec.HeartbeatDeadlineSeconds)
	}
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	// A tool that has set a longer deadline applies it again.
	tool := c.createRunningPod(newPod("tool", withInterceptors(first)), v1.ConditionTrue)
	longest := c.requester("tool.example.com", evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: 21600})
	c.request(longest, tool, evictionrequest.Created)
	if got := *c.request(maintenance, tool, evictionrequest.Joined).Spec.HeartbeatDeadlineSeconds; got != 1800 {
		t.Errorf("the deadline of both is %d, want the smaller", got)
	}
	if got := *c.request(longest, tool, evictionrequest.Joined).Spec.HeartbeatDeadlineSeconds; got != 1800 {
		t.Errorf("the deadline is %d again", got)
	}
}

// testLibraryHostileMetadata: neither a pod with too many labels, nor one whose request is written all the time, is kept.
func testLibraryHostileMetadata(t *testing.T, c *cluster) {
	pod := newPod("labelled")
	pod.Labels = map[string]string{}
	for i := range 4000 {
		pod.Labels[fmt.Sprintf("%063d", i)] = strings.Repeat("x", 63)
	}
	pod = c.createRunningPod(pod, v1.ConditionTrue)
	c.startController(clock.RealClock{})
	c.request(c.requester("drain.example.com", evictionrequest.RequesterOptions{}), pod, evictionrequest.Created)
	c.awaitRequest(pod, "the eviction", evicted)

	// Who may delete the pod may fill its request, but not beyond what etcd takes.
	other := c.createRunningPod(newPod("filled", withInterceptors(first)), v1.ConditionTrue)
	c.request(c.requester("drain.example.com", evictionrequest.RequesterOptions{}), other, evictionrequest.Created)
	c.awaitRequest(other, "the first interceptor to be active", active(first))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": pod.Labels, "managedFields": []any{map[string]any{}}}})
	if err != nil {
		t.Fatal(err)
	}
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	if _, err := requests.Patch(t.Context(), string(other.UID), types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("filling the request: %v, want Invalid", err)
	}

	// Nor may it keep the controller from writing.
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = requests.Patch(ctx, string(other.UID), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"w%d":"%d"}}}`, writer, i), metav1.PatchOptions{}) // Some fail at the end.
			}
		})
	}
	defer writers.Wait()
	defer stop()
	c.report(other, completed(first, metav1.Now()))
	c.awaitRequest(other, "the end although others write all the time", evicted)
}

// request calls Request of the library, and fails unless it has the expected outcome.
func (c *cluster) request(requester *evictionrequest.Requester, pod *v1.Pod, want evictionrequest.Outcome) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), pollTimeout)
	defer cancel()
	result, err := requester.Request(ctx, pod)
	if err != nil {
		c.t.Fatalf("Request: %v", err)
	}
	if result.Outcome != want {
		c.t.Errorf("Request for pod %s returned %s, want %s", pod.Name, result.Outcome, want)
	}
	return result.Request
}

func (c *cluster) withdraw(requester *evictionrequest.Requester, pod *v1.Pod) {
	c.t.Helper()
	if err := requester.Withdraw(c.t.Context(), pod); err != nil {
		c.t.Fatalf("Withdraw: %v", err)
	}
}

func (c *cluster) expectRequesters(pod *v1.Pod, want ...string) {
	c.t.Helper()
	request := c.awaitRequest(pod, "a request", func(*coordinationv1alpha1.EvictionRequest) bool { return true })
	got := map[string]bool{}
	for _, requester := range request.Spec.Requesters {
		got[requester.Name] = true
	}
	for _, name := range want {
		if !got[name] || len(got) != len(want) {
			c.t.Fatalf("the requesters of pod %s are %v, want %v", pod.Name, request.Spec.Requesters, want)
		}
	}
}

// intercept runs an interceptor with the library. stop stops it.
func (c *cluster) intercept(handle evictionrequest.Handler) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := evictionrequest.Run(ctx, evictionrequest.InterceptorConfig{Client: c.client, Name: first, Namespace: c.namespace, Handle: handle}); err != nil {
			c.t.Errorf("Run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		testcluster.Join(c.t, "the interceptor", &running)
	})
	c.t.Cleanup(stop)
	return stop
}

func testLibraryRequest(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	one, two := c.requester(drainer, evictionrequest.RequesterOptions{}), c.requester(scaler, evictionrequest.RequesterOptions{})

	created := c.request(one, pod, evictionrequest.Created)
	if diff := cmp.Diff(pod.Labels, created.Labels); diff != "" {
		t.Errorf("labels of the request (-want +got):\n%s", diff)
	}
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.request(two, pod, evictionrequest.Joined)
	again := c.request(one, pod, evictionrequest.Joined)
	if again.Generation != 2 {
		t.Errorf("after two requesters and a repeated request the generation is %d, want 2", again.Generation)
	}
	c.expectRequesters(pod, drainer, scaler)

	c.withdraw(one, pod)
	c.expectRequesters(pod, scaler)
	c.withdraw(one, pod) // Withdrawing again has no effect.
	request := c.awaitRequest(pod, "a sync with the remaining requester", observed(3))
	if got, want := describe(request), "active=first processed="; got != want {
		t.Fatalf("with a requester left the request is %q, want %q", got, want)
	}
	if err := two.WithdrawRequest(t.Context(), request); err != nil {
		t.Fatalf("WithdrawRequest: %v", err)
	}
	c.expectEnd(pod, canceledAs(4, "NoRequesters", "The last requester was removed from spec.requesters."), "active= processed=first Canceled=NoRequesters")
	c.expectUntouched(pod)
	c.withdraw(two, pod)
}

func testLibraryDeadline(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("wanted"))
	one := c.requester(drainer, evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: 600})
	two := c.requester(scaler, evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: 900})
	c.request(one, pod, evictionrequest.Created)
	for range 2 {
		request := c.request(two, pod, evictionrequest.Joined)
		if got := *request.Spec.HeartbeatDeadlineSeconds; got != 600 {
			t.Errorf("the deadline is %d, want that of the first requester", got)
		}
	}
	// The second requester does not own the deadline, and the first one keeps it.
	c.withdraw(two, pod)
	c.withdraw(one, pod)
	request := c.awaitRequest(pod, "no requesters", func(request *coordinationv1alpha1.EvictionRequest) bool { return len(request.Spec.Requesters) == 0 })
	if got := *request.Spec.HeartbeatDeadlineSeconds; got != 600 {
		t.Errorf("without requesters the deadline is %d, want 600", got)
	}
	// The default of the server applies.
	other := c.createPod(newPod("other"))
	c.request(c.requester(drainer, evictionrequest.RequesterOptions{}), other, evictionrequest.Created)
	c.request(two, other, evictionrequest.Joined)
	c.expectRequesters(other, drainer, scaler)
}

// testLibraryLabels changes the labels of a request like the controller, while the requester that
// set the old ones is still there.
func testLibraryLabels(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("wanted", func(pod *v1.Pod) { pod.Labels = map[string]string{"app": "db", "tier": "back"} }))
	one, two := c.requester(drainer, evictionrequest.RequesterOptions{}), c.requester(scaler, evictionrequest.RequesterOptions{})
	c.request(one, pod, evictionrequest.Created)
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(t.Context(), string(pod.UID), types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app":"web","zone":"a"}}}`), metav1.PatchOptions{FieldManager: "evictionrequest-controller"}); err != nil {
		t.Fatalf("patching the labels: %v", err)
	}
	want := map[string]string{"app": "web", "tier": "back", "zone": "a"}
	expectLabels := func(when string) {
		t.Helper()
		request := c.awaitRequest(pod, "a request", func(*coordinationv1alpha1.EvictionRequest) bool { return true })
		if diff := cmp.Diff(want, request.Labels); diff != "" {
			t.Errorf("labels after %s (-want +got):\n%s", when, diff)
		}
	}
	// The pod is outdated, like one from a cache.
	c.request(one, pod, evictionrequest.Created)
	expectLabels("requesting again")
	c.request(two, pod, evictionrequest.Joined)
	expectLabels("another requester has joined")
	c.withdraw(one, pod)
	expectLabels("the first requester has left")
	c.expectRequesters(pod, scaler)
	c.withdraw(two, pod)
	expectLabels("the last requester has left")
}

func testLibraryRequestAfterCancellation(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	one := c.requester(drainer, evictionrequest.RequesterOptions{})
	canceledUID := c.request(one, pod, evictionrequest.Created).UID
	c.withdraw(one, pod)
	c.awaitRequest(pod, "the cancellation", canceled)

	request := c.request(one, pod, evictionrequest.Created)
	if request.UID == canceledUID {
		t.Errorf("the canceled request was not replaced")
	}
	c.awaitRequest(pod, "the first interceptor to be active again", active(first))
}

// testLibraryDeletionInFlight has a request with a finalizer that is being deleted.
func testLibraryDeletionInFlight(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	old := c.createRequest(newRequest(pod, func(request *coordinationv1alpha1.EvictionRequest) { request.Finalizers = []string{"example.com/keep"} }))
	if err := requests.Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the request: %v", err)
	}
	two := c.requester(scaler, evictionrequest.RequesterOptions{})
	var running sync.WaitGroup
	running.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), pollTimeout)
		defer cancel()
		if result, err := two.Request(ctx, pod); err != nil || result.Outcome != evictionrequest.Created {
			t.Errorf("Request returned %v, %v, want a new request", result, err)
		}
	})
	// It has joined the old request, which is not sufficient.
	c.awaitRequest(pod, "the second requester", func(request *coordinationv1alpha1.EvictionRequest) bool { return len(request.Spec.Requesters) == 2 })
	if _, err := requests.Patch(t.Context(), old.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("removing the finalizer: %v", err)
	}
	testcluster.Join(t, "the requester", &running)
	request := c.awaitRequest(pod, "a new request", func(request *coordinationv1alpha1.EvictionRequest) bool { return request.UID != old.UID })
	if request.DeletionTimestamp != nil {
		t.Error("the new request is being deleted")
	}
	c.expectRequesters(pod, scaler)
}

func testLibraryAlreadyEvicted(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted"))
	one := c.requester(drainer, evictionrequest.RequesterOptions{})
	c.request(one, pod, evictionrequest.Created)
	c.awaitRequest(pod, "the eviction", evicted)
	c.request(one, pod, evictionrequest.AlreadyEvicted)
	c.request(c.requester(scaler, evictionrequest.RequesterOptions{}), pod, evictionrequest.AlreadyEvicted)
	c.withdraw(one, pod)

	// Another pod of the same name needs another request.
	second := c.createPod(newPod("wanted", withInterceptors(first)))
	c.request(one, second, evictionrequest.Created)
	c.awaitRequest(second, "the first interceptor to be active", active(first))
}

func testLibraryCannotBeEvicted(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("grouped", inSchedulingGroup("group")))
	one := c.requester(drainer, evictionrequest.RequesterOptions{})
	c.request(one, pod, evictionrequest.Created)
	c.awaitRequest(pod, "the cancellation", canceled)
	_, err := one.Request(t.Context(), pod)
	var canceledError *evictionrequest.CanceledError
	if !errors.As(err, &canceledError) || canceledError.Reason != "ValidationFailed" {
		t.Errorf("Request: %v, want a CanceledError with reason ValidationFailed", err)
	}
}

func testLibraryForbidden(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("wanted"))
	requester, err := evictionrequest.NewRequester(c.ClientOf("nobody"), drainer, evictionrequest.RequesterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := requester.Request(t.Context(), pod); !apierrors.IsForbidden(err) {
		t.Errorf("Request: %v, want Forbidden", err)
	}
	if err := requester.Withdraw(t.Context(), pod); !apierrors.IsForbidden(err) {
		t.Errorf("Withdraw: %v, want Forbidden", err)
	}
}

func testLibraryWithdrawNothing(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("wanted"))
	c.withdraw(c.requester(drainer, evictionrequest.RequesterOptions{}), pod)
	list, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("requests are %v, %v, want none", list.Items, err)
	}
}

// testLibraryWithdrawForeign has an entry that was created without apply: applying without it does
// not remove it.
func testLibraryWithdrawForeign(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("wanted"))
	c.createRequest(newRequest(pod))
	one, two := c.requester(drainer, evictionrequest.RequesterOptions{}), c.requester(scaler, evictionrequest.RequesterOptions{})
	c.request(one, pod, evictionrequest.Created)
	c.request(two, pod, evictionrequest.Joined)
	c.withdraw(one, pod)
	c.expectRequesters(pod, scaler)
}

// testLibraryTurn compares the whole status before and after each report.
func testLibraryTurn(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first, second)))
	c.request(c.requester(drainer, evictionrequest.RequesterOptions{}), pod, evictionrequest.Created)
	before := c.awaitRequest(pod, "the first interceptor to be active", active(first))

	eta := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	proceed := make(chan struct{})
	c.intercept(func(ctx context.Context, turn *evictionrequest.Turn) error {
		turn.SetExpectedFinishTime(eta.Time)
		if err := turn.ForbidCancellation(ctx); err != nil { // Is written immediately.
			return err
		}
		select {
		case <-proceed:
			turn.SetMessage("Prepared.")
		case <-ctx.Done(): // Only if the test fails.
		}
		return nil
	})
	request := c.awaitRequest(pod, "an ETA", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.Interceptors[0].ExpectedFinishTime != nil
	})
	report := request.Status.Interceptors[0]
	if report.StartTime == nil || !report.StartTime.Equal(report.HeartbeatTime) || !report.ExpectedFinishTime.Equal(&eta) {
		t.Errorf("the report is %v, want a start, the same heartbeat, and the ETA %v", report, eta)
	}
	want := before.Status.DeepCopy()
	want.Interceptors[0] = report
	want.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
	if diff := cmp.Diff(want, &request.Status); diff != "" {
		t.Errorf("status, which should only differ in the report (-want +got):\n%s", diff)
	}

	close(proceed)
	request = c.awaitRequest(pod, "the second interceptor to be active", active(second))
	done := request.Status.Interceptors[0]
	if done.Message != "Prepared." || done.CompletionTime == nil || done.ExpectedFinishTime != nil || !done.StartTime.Equal(report.StartTime) {
		t.Errorf("the final report is %v, want a completion", done)
	}
	if got, want := describe(request), "active=second processed=first first=completed"; got != want {
		t.Errorf("the request is %q, want %q", got, want)
	}
}

func testLibraryCanceled(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	one := c.requester(drainer, evictionrequest.RequesterOptions{})
	causes := make(chan error, 1)
	c.intercept(func(ctx context.Context, _ *evictionrequest.Turn) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	})
	c.request(one, pod, evictionrequest.Created)
	c.awaitRequest(pod, "the first report", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.Interceptors) > 0 && request.Status.Interceptors[0].StartTime != nil
	})
	c.withdraw(one, pod)
	if cause := testcluster.Receive(t, "the cancellation of the handler", causes); !errors.Is(cause, evictionrequest.ErrCanceled) {
		t.Errorf("the cause is %v, want %v", cause, evictionrequest.ErrCanceled)
	}
	c.expectEnd(pod, canceledAs(2, "NoRequesters", "The last requester was removed from spec.requesters."), "active= processed=first first=started Canceled=NoRequesters")
	c.expectUntouched(pod)
}

func testLibraryRestart(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first, second)))
	c.request(c.requester(drainer, evictionrequest.RequesterOptions{}), pod, evictionrequest.Created)
	// The status has the report before the interceptor has received the response. If it were
	// stopped in between, ForbidCancellation would return that its context was canceled.
	reported := make(chan error, 1)
	stop := c.intercept(func(ctx context.Context, turn *evictionrequest.Turn) error {
		reported <- turn.ForbidCancellation(ctx)
		<-ctx.Done()
		return nil
	})
	if err := testcluster.Receive(t, "the report", reported); err != nil {
		t.Fatalf("ForbidCancellation: %v", err)
	}
	stop()
	before := c.awaitRequest(pod, "the report", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.EvictionRequestCancellationPolicy != ""
	})

	c.intercept(func(context.Context, *evictionrequest.Turn) error { return nil })
	after := c.awaitRequest(pod, "the second interceptor to be active", active(second))
	old, report := before.Status.Interceptors[0], after.Status.Interceptors[0]
	if !report.StartTime.Equal(old.StartTime) || !report.HeartbeatTime.Equal(old.HeartbeatTime) || report.CompletionTime == nil {
		t.Errorf("after the restart the report is %v, want %v and a completion", report, old)
	}
	if got := after.Status.EvictionRequestCancellationPolicy; got != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
		t.Errorf("after the restart the policy is %q, want Forbid", got)
	}
}

// testLibraryForbid checks that the policy remains after the interceptor that set it has completed,
// and after the report of the next one.
func testLibraryForbid(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first, second)))
	c.request(c.requester(drainer, evictionrequest.RequesterOptions{}), pod, evictionrequest.Created)
	c.intercept(func(ctx context.Context, turn *evictionrequest.Turn) error { return turn.ForbidCancellation(ctx) })
	c.awaitRequest(pod, "the second interceptor to be active", active(second))
	c.report(pod, started(second, metav1.Now()))
	request := c.awaitRequest(pod, "the report of the second", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.Interceptors[1].StartTime != nil
	})
	if got := request.Status.EvictionRequestCancellationPolicy; got != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
		t.Errorf("the policy is %q, want Forbid", got)
	}
}

// testLibraryConcurrent adds and removes three requesters concurrently with the reports of the
// interceptor and the status writes of the controller.
func testLibraryConcurrent(t *testing.T, c *cluster) {
	const rounds = 10
	c.startController(clock.RealClock{})
	pod := c.createPod(newPod("wanted", withInterceptors(first)))
	// This requester prevents the cancellation.
	c.request(c.requester(drainer, evictionrequest.RequesterOptions{}), pod, evictionrequest.Created)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	allGone := make(chan struct{})
	c.intercept(func(ctx context.Context, turn *evictionrequest.Turn) error {
		// Each iteration is an immediate write.
		for i := 0; ; i++ {
			select {
			case <-allGone:
				turn.SetMessage("All requesters have left.")
				<-ctx.Done()
				return nil
			default:
				turn.SetMessage(fmt.Sprintf("Round %d.", i))
				if err := turn.ForbidCancellation(ctx); err != nil {
					t.Errorf("ForbidCancellation: %v", err)
					return nil
				}
			}
		}
	})
	var requesters sync.WaitGroup
	for i := range 3 {
		requester := c.requester(fmt.Sprintf("requester-%d.example.com", i), evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: 600})
		requesters.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), pollTimeout)
			defer cancel()
			for range rounds {
				if _, err := requester.Request(ctx, pod); err != nil {
					t.Errorf("Request: %v", err)
				}
				if err := requester.Withdraw(ctx, pod); err != nil {
					t.Errorf("Withdraw: %v", err)
				}
			}
		})
	}
	testcluster.Join(t, "the requesters", &requesters)
	close(allGone)
	request := c.awaitRequest(pod, "a sync after the last change", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.ObservedGeneration == request.Generation && request.Status.Interceptors[0].Message == "All requesters have left."
	})
	c.expectRequesters(pod, drainer)
	if got, want := request.Generation, int64(1+2*3*rounds); got != want {
		t.Errorf("the generation is %d, want %d: one for each join and leave", got, want)
	}
	if got, want := describe(request), "active=first processed= first=started"; got != want {
		t.Errorf("the request is %q, want %q", got, want)
	}
}
