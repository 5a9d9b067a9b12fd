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
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
)

// fieldManager is the field manager of this controller's writes.
const fieldManager = evictioninterceptor.ControllerFieldManager

// callTimeout limits each API call. It is longer than the 30 seconds that an admission webhook may
// take, so that a write that is slow to be admitted succeeds. It is shorter than the 60 seconds
// after which the API server ends a call.
const callTimeout = 35 * time.Second

// maxAnswerLength is how much is kept of the answer of the API server to a write that it refuses.
const maxAnswerLength = 512

var requestResource = coordinationv1alpha1.Resource("evictionrequests")

// requestWriter is the only type in this package that writes requests, and it records events and
// metrics for its writes. Each method takes a request as it was read. If another client has changed
// it since, nothing is written and the next sync decides again.
type requestWriter struct {
	client   kubernetes.Interface
	recorder events.EventRecorder
	// clock is corrected by the times that the API server sets.
	clock *serverclock.Clock
	// written stores the last write of each request until the cache has it: a decision on older
	// data would end in a conflict, or repeat the same step. The lock protects all calls of the
	// store. Two queues process the same request at the same time, and the store loses a write that
	// is recorded while another goroutine checks the previous one. The lock is not held across API
	// calls.
	lock    sync.Mutex
	written consistency.ConsistencyStore
	// last is the request that was written last.
	last types.NamespacedName
	// pending holds the writes in flight, under the same lock.
	pending *pendingWrites
	// contested counts the conflicts that have followed each other, of each request, under the same lock.
	contested map[types.NamespacedName]int
	// failures has the requests whose status cannot be written.
	failures *statusfailures.Failures
}

// maxConflicts is after how many conflicts in succession a status is written to whatever version of the request has the
// same spec and status: labels and annotations can be written by everybody who may delete the pod, as often as they
// like.
const maxConflicts = 2

// waitError is that the status of a request is not written, because that has failed a moment ago.
type waitError struct{ wait time.Duration }

func (e *waitError) Error() string {
	return fmt.Sprintf("the status could not be written, and is not before %s have passed", e.wait)
}

func newRequestWriter(client kubernetes.Interface, recorder events.EventRecorder, requests cache.Store, clock *serverclock.Clock) *requestWriter {
	return &requestWriter{
		client:    client,
		recorder:  recorder,
		clock:     clock,
		failures:  statusfailures.New(),
		contested: map[types.NamespacedName]int{},
		pending:   newPendingWrites(requests),
		written: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			requestResource: requests,
		}),
	}
}

// isCurrent reports whether the cache has this controller's last write of the request, and none is in
// flight. If not, the next sync follows from that write.
func (w *requestWriter) isCurrent(key types.NamespacedName) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return !w.pending.turnAway(key) && w.written.EnsureReady(key) == nil
}

// isCacheCurrent reports whether the cache has this controller's last write of any request.
func (w *requestWriter) isCacheCurrent() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.written.EnsureReady(w.last) == nil
}

// setStatus writes the status if it differs from what the request has.
func (w *requestWriter) setStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) error {
	_, err := w.writeStatus(ctx, request, status)
	return err
}

// setStatusSilently is setStatus without events.
func (w *requestWriter) setStatusSilently(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) error {
	_, err := w.updateStatus(ctx, request, status)
	return err
}

// writeStatus is setStatus, and also reports whether it wrote.
func (w *requestWriter) writeStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (bool, error) {
	written, err := w.updateStatus(ctx, request, status)
	if written == nil {
		return false, err
	}
	recordEvents(w.recorder, written, computeChanges(&request.Status, status))
	return true, nil
}

// updateStatus writes the status and returns the request, or nil if it wrote none.
func (w *requestWriter) updateStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (updated *coordinationv1alpha1.EvictionRequest, err error) {
	if apiequality.Semantic.DeepEqual(&request.Status, status) {
		if !isImperativeActive(request) {
			w.failures.Ended(keyOf(request))
		} // Otherwise another queue may have something to write.
		return nil, nil
	}
	if wait := w.failures.Wait(keyOf(request), w.clock.Now()); wait > 0 {
		return nil, &waitError{wait}
	}
	if !w.begin(ctx, request) {
		return nil, nil
	}
	defer w.end(request)
	desired := request.DeepCopy()
	desired.Status = *status
	began := w.clock.WithTicker.Now()
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	written, err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		UpdateStatus(callCtx, desired, metav1.UpdateOptions{FieldManager: fieldManager})
	if w.isContested(request, err) {
		written, err = w.patchStatus(callCtx, request, status)
	}
	if apierrors.IsNotFound(err) {
		// Usually the request was deleted in the meantime. If the request exists and its namespace
		// does not, because the namespace was deleted while an older release served the cluster,
		// the request can only be deleted.
		return nil, w.remove(ctx, request)
	}
	if apierrors.IsConflict(err) {
		return nil, ignoreStale(ctx, request, "writing the status", err)
	}
	if err != nil {
		w.statusFailed(ctx, request, err)
		return nil, fmt.Errorf("writing the status: %w", err)
	}
	w.failures.Ended(keyOf(request))
	if stamp, stamped := serverStamp(&request.Status, &written.Status); stamped {
		w.clock.Observe(stamp, began, w.clock.WithTicker.Now())
	}
	w.wrote(written)
	measure(request, status, computeChanges(&request.Status, status), began)
	return written, nil
}

// statusFailed records that the status could not be written. Whoever waits for the eviction could not see it otherwise.
func (w *requestWriter) statusFailed(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, err error) {
	if ctx.Err() != nil {
		return // The controller stops.
	}
	message := plaintext.Truncate(err.Error(), maxAnswerLength)
	if w.failures.Failed(keyOf(request), message, w.clock.Now()) {
		recordEvents(w.recorder, request, []change{{kind: changeStatusFailed, message: message}})
	}
}

// isContested reports whether the writes of the request have ended with too many conflicts in succession.
func (w *requestWriter) isContested(request *coordinationv1alpha1.EvictionRequest, err error) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	if !apierrors.IsConflict(err) {
		delete(w.contested, key)
		return false
	}
	w.contested[key]++
	return w.contested[key] > maxConflicts
}

// patchStatus writes the status if the request still has the spec and the status on which it was decided. The API server
// tries that again if something else has changed. Each change of the spec, and the deletion, changes the generation.
func (w *requestWriter) patchStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (*coordinationv1alpha1.EvictionRequest, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": request.UID},
		{"op": "test", "path": "/metadata/generation", "value": request.Generation},
		{"op": "test", "path": "/status", "value": request.Status},
		{"op": "replace", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	written, err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		Patch(ctx, request.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	return written, w.failedTest(ctx, request, err, func(stored *coordinationv1alpha1.EvictionRequest) bool {
		return apiequality.Semantic.DeepEqual(stored.Status, request.Status)
	})
}

// failedTest returns the error of a JSON patch, as a conflict if a test of it has failed, so that the decision is outdated.
// The API server does not say whether a patch is invalid for that reason or because of what it writes, which is not tried
// again soon. isAsTested is about what the patch has tested besides the UID and the generation.
func (w *requestWriter) failedTest(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, err error, isAsTested func(stored *coordinationv1alpha1.EvictionRequest) bool) error {
	if !apierrors.IsInvalid(err) {
		return err
	}
	stored, readErr := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).Get(ctx, request.Name, metav1.GetOptions{})
	switch {
	case readErr != nil:
		return readErr
	case stored.UID == request.UID && stored.Generation == request.Generation && isAsTested(stored):
		return err
	}
	return apierrors.NewConflict(requestResource, request.Name, err)
}

// created measures what kube-apiserver has written when it created the request, instead of a write of
// this controller. One that has just started does not measure what it finds.
func (w *requestWriter) created(request *coordinationv1alpha1.EvictionRequest) {
	isWritten := func(c metav1.Condition) bool {
		return c.Type != string(coordinationv1alpha1.EvictionRequestConditionReconciling)
	}
	if len(request.Status.ProcessedInterceptors) > 0 || slices.ContainsFunc(request.Status.Conditions, isWritten) {
		return // The creation was missed.
	}
	changes := computeChanges(&coordinationv1alpha1.EvictionRequestStatus{}, &request.Status)
	measure(request, &request.Status, changes, w.clock.Now())
}

// setLabels adds these labels to the request and returns the updated request, or nil if the request
// has changed concurrently. It uses a patch, which keeps all other labels.
func (w *requestWriter) setLabels(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, labels map[string]string) (*coordinationv1alpha1.EvictionRequest, error) {
	if len(labels) == 0 {
		return request, nil
	}
	if !w.begin(ctx, request) {
		return nil, nil
	}
	defer w.end(request)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// Another request may have the same name now.
		"uid":    request.UID,
		"labels": labels,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the labels: %w", err)
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	written, err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		Patch(callCtx, request.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, ignoreStale(ctx, request, "copying the labels of the pod", err)
	}
	w.wrote(written)
	return written, nil
}

// remove deletes the request if it has not changed since it was read.
func (w *requestWriter) remove(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).Delete(callCtx, request.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion},
	})
	if err != nil {
		return ignoreStale(ctx, request, "deleting the request", err)
	}
	w.failures.Ended(keyOf(request))
	klog.FromContext(ctx).V(3).Info("Deleted request", "evictionRequest", klog.KObj(request))
	return nil
}

// forget drops the stored write of a request that is gone.
func (w *requestWriter) forget(key types.NamespacedName) {
	w.failures.Ended(key)
	w.lock.Lock()
	defer w.lock.Unlock()
	w.written.Clear(key, "")
	delete(w.contested, key)
}

func (w *requestWriter) wrote(request *coordinationv1alpha1.EvictionRequest) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.last = types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	w.written.WroteAt(w.last, request.UID, requestResource, request.ResourceVersion)
}

// ignoreStale returns nil for errors that mean that the request is gone or has changed: the event
// of that change triggers the next sync. It wraps any other error.
func ignoreStale(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, operation string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		klog.FromContext(ctx).V(4).Info("The request changed concurrently", "evictionRequest", klog.KObj(request))
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// measure updates the metrics for a status that was written at this time.
func measure(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, changes []change, now time.Time) {
	for _, c := range changes {
		switch c.kind {
		case changeInitialized:
			metrics.ObservePodInterceptors(len(status.TargetInterceptors))
		case changeProcessed:
			metrics.CountProcessedInterceptor(c.interceptor, c.outcome, turnDuration(request, c.interceptor, now))
		case changeEvicted:
			metrics.ObserveRequestDuration(outcomePodGone, duration(request, status))
		case changeCanceled:
			metrics.ObserveRequestDuration(outcomeCanceled, duration(request, status))
		}
	}
}

// turnDuration returns for how long an interceptor was active that is not any more. One that has
// skipped its turn, because another write came first, was so for no time.
func turnDuration(request *coordinationv1alpha1.EvictionRequest, interceptor string, now time.Time) time.Duration {
	activated := request.Status.ActivationTime
	if activated == nil || activeInterceptor(&request.Status) != interceptor {
		return 0
	}
	if entry := evictionrequesttools.InterceptorStatusOf(&request.Status, interceptor); entry != nil && entry.CompletionTime != nil {
		return entry.CompletionTime.Sub(activated.Time)
	}
	return now.Sub(activated.Time)
}

// duration returns how long a finished request took.
func duration(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) time.Duration {
	return evictionrequesttools.FinalCondition(status.Conditions).LastTransitionTime.Sub(request.CreationTimestamp.Time)
}
