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
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	own       = "own.example.com"
	other     = "other.example.com"
	drainer   = "drainer.example.com"
	namespace = "work"
)

var errUnavailable = errors.New("the API server is unavailable")

// cluster is an API server with one client. Tests run in a synctest bubble: time advances only when
// all goroutines are blocked.
type cluster struct {
	t      *testing.T
	client *fake.Clientset

	lock sync.Mutex
	// reports are the reports that were sent, accepted or not.
	reports []sentReport
	// reject returns the error for a report, or nil to accept it.
	reject func(sentReport) error
}

// sentReport is a report of an interceptor and the time when it was sent.
type sentReport struct {
	at    time.Time
	uid   types.UID
	entry coordinationv1alpha1.InterceptorStatus
	// policy is the cancellation policy in the same patch.
	policy  coordinationv1alpha1.EvictionRequestCancellationPolicy
	manager string
	force   bool
}

func newCluster(t *testing.T, requests ...*coordinationv1alpha1.EvictionRequest) *cluster {
	t.Helper()
	var objects []runtime.Object
	for _, request := range requests {
		objects = append(objects, request)
	}
	w := &cluster{t: t, client: fake.NewClientset(objects...)}
	w.client.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if patch.GetSubresource() != "status" {
			return false, nil, nil
		}
		return w.receive(patch)
	})
	return w
}

func (w *cluster) receive(patch clienttesting.PatchActionImpl) (bool, runtime.Object, error) {
	var request coordinationv1alpha1.EvictionRequest
	if err := json.Unmarshal(patch.GetPatch(), &request); err != nil || len(request.Status.Interceptors) != 1 {
		w.t.Errorf("patch of the status: %v, %s", err, patch.GetPatch())
		return true, nil, errUnavailable
	}
	report := sentReport{
		at:      time.Now(),
		uid:     request.UID,
		entry:   request.Status.Interceptors[0],
		policy:  request.Status.EvictionRequestCancellationPolicy,
		manager: patch.PatchOptions.FieldManager,
		force:   patch.PatchOptions.Force != nil && *patch.PatchOptions.Force,
	}
	w.lock.Lock()
	w.reports = append(w.reports, report)
	reject := w.reject
	w.lock.Unlock()
	if reject != nil {
		if err := reject(report); err != nil {
			return true, nil, err
		}
	}
	return false, nil, nil // Continue with the object tracker.
}

func (w *cluster) rejectReports(reject func(sentReport) error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.reject = reject
}

func (w *cluster) sent() []sentReport {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Clone(w.reports)
}

// heartbeats returns when each heartbeat was sent, as the time since start.
func (w *cluster) heartbeats(start time.Time) []time.Duration {
	var beats []time.Duration
	var last *metav1.Time
	for _, report := range w.sent() {
		if !report.entry.HeartbeatTime.Equal(last) {
			last = report.entry.HeartbeatTime
			beats = append(beats, report.at.Sub(start))
		}
	}
	return beats
}

// start runs an interceptor. stop stops it and waits until it has returned.
func (w *cluster) start(handle Handler, options ...func(*InterceptorConfig)) (stop func()) {
	w.t.Helper()
	config := InterceptorConfig{Client: w.client, Name: own, Handle: handle}
	for _, option := range options {
		option(&config)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(ctx, config); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

func (w *cluster) get(name string) *coordinationv1alpha1.EvictionRequest {
	w.t.Helper()
	request, err := w.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatalf("reading request %s: %v", name, err)
	}
	return request
}

func (w *cluster) entry(name string) coordinationv1alpha1.InterceptorStatus {
	w.t.Helper()
	return w.get(name).Status.Interceptors[0]
}

// update simulates a write of the controller.
func (w *cluster) update(name string, change func(*coordinationv1alpha1.EvictionRequest)) {
	w.t.Helper()
	request := w.get(name)
	change(request)
	if _, err := w.client.CoordinationV1alpha1().EvictionRequests(namespace).UpdateStatus(w.t.Context(), request, metav1.UpdateOptions{}); err != nil {
		w.t.Fatalf("updating request %s: %v", name, err)
	}
	synctest.Wait()
}

func (w *cluster) delete(name string) {
	w.t.Helper()
	if err := w.client.CoordinationV1alpha1().EvictionRequests(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatalf("deleting request %s: %v", name, err)
	}
	synctest.Wait()
}

// newRequest returns a request for which own is active.
func newRequest(name string, options ...func(*coordinationv1alpha1.EvictionRequest)) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("uid-of-" + name)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: "pod-of-" + name, UID: name}},
			Requesters: []coordinationv1alpha1.Requester{{Name: drainer}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: own}, {Name: other}},
			ActiveInterceptors: []string{own},
			ActivationTime:     &metav1.Time{Time: time.Now().Truncate(time.Second)},
			Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: own}, {Name: other}},
		},
	}
	for _, option := range options {
		option(request)
	}
	return request
}

func withDeadline(deadline time.Duration) func(*coordinationv1alpha1.EvictionRequest) {
	seconds := int32(deadline / time.Second)
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Spec.HeartbeatDeadlineSeconds = &seconds }
}

// reportedBefore is a request option: the interceptor has reported before a restart.
func reportedBefore(started, beat time.Duration) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		entry := &request.Status.Interceptors[0]
		entry.StartTime = ago(started)
		entry.HeartbeatTime = ago(beat)
		request.Status.ActivationTime = ago(started)
	}
}

func ago(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: time.Now().Add(-d).Truncate(time.Second)}
}

func setTrue(condition coordinationv1alpha1.EvictionRequestConditionType, reason string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
			Type: string(condition), Status: metav1.ConditionTrue, Reason: reason, Message: "As expected.",
		})
	}
}

func activate(name string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.ActiveInterceptors = []string{name}
	}
}

// untilDone is a handler that waits until its context is done, and sends the cause.
func untilDone(causes chan<- error) Handler {
	return func(ctx context.Context, _ *Turn) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}
}

// inSynctest runs a test in a synctest bubble.
func inSynctest(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}
