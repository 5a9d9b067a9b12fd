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
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
)

// fieldManager is how this controller signs what it writes.
const fieldManager = "evictionrequest-controller"

// callTimeout is how long a call may take. It is more than the half a minute that the slowest
// admission webhook has, so that what it admits in the end is written, and less than the
// minute after which an API server ends every call.
const callTimeout = 35 * time.Second

var requestResource = coordinationv1alpha1.Resource("evictionrequests")

// requestWriter is the only one in this package that writes to requests, and tells
// of what it wrote. Each of its methods takes a request as it was read: when somebody
// else was faster, nothing is written, and the next sync decides anew.
type requestWriter struct {
	client   kubernetes.Interface
	recorder events.EventRecorder
	// clock learns from the times that the API server sets.
	clock *serverClock
	// written remembers the last own write of each request until the cache has it:
	// deciding on older data would end in a conflict, or in the same step again. The lock is
	// for all its calls: two queues work on the same request at a time, and the store loses
	// a write that is recorded while another goroutine asks for the one before. It is not
	// held across API calls.
	lock    sync.Mutex
	written consistency.ConsistencyStore
}

func newRequestWriter(client kubernetes.Interface, recorder events.EventRecorder, requests cache.Store, clock *serverClock) *requestWriter {
	return &requestWriter{
		client:   client,
		recorder: recorder,
		clock:    clock,
		written: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			requestResource: requests,
		}),
	}
}

// isCurrent reports whether the cache has this controller's last write of the request.
func (w *requestWriter) isCurrent(key types.NamespacedName) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.written.EnsureReady(key) == nil
}

// setStatus writes the status if it differs from what the request has.
func (w *requestWriter) setStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) error {
	_, err := w.writeStatus(ctx, request, status)
	return err
}

// writeStatus is setStatus, and reports whether it wrote.
func (w *requestWriter) writeStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) (bool, error) {
	if apiequality.Semantic.DeepEqual(&request.Status, status) {
		return false, nil
	}
	desired := request.DeepCopy()
	desired.Status = *status
	began := w.clock.WithTicker.Now()
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	written, err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		UpdateStatus(callCtx, desired, metav1.UpdateOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) {
		// Deleted meanwhile, as a rule. But where the request is there and its namespace is
		// not, because the namespace was deleted while an older release served the cluster,
		// it can only be deleted.
		return false, w.remove(ctx, request)
	}
	if err != nil {
		return false, lost(ctx, request, "writing the status", err)
	}
	if stamp, stamped := serverStamp(&request.Status, &written.Status); stamped {
		w.clock.observe(stamp, began, w.clock.WithTicker.Now())
	}
	w.wrote(written)
	changes := computeChanges(&request.Status, status)
	recordEvents(w.recorder, written, changes)
	measure(request, status, changes)
	return true, nil
}

// setLabels gives the request these labels and returns it as it is then, or nil when
// it has changed otherwise meanwhile. A patch leaves the labels of others alone.
func (w *requestWriter) setLabels(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, labels map[string]string) (*coordinationv1alpha1.EvictionRequest, error) {
	if len(labels) == 0 {
		return request, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// A request of the same name may have taken its place.
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
		return nil, lost(ctx, request, "copying the labels of the pod", err)
	}
	w.wrote(written)
	return written, nil
}

// remove deletes the request as it was read.
func (w *requestWriter) remove(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).Delete(callCtx, request.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion},
	})
	if err != nil {
		return lost(ctx, request, "deleting the request", err)
	}
	klog.FromContext(ctx).V(3).Info("Deleted request", "evictionRequest", klog.KObj(request))
	return nil
}

// forget drops what is remembered of a request that is gone.
func (w *requestWriter) forget(key types.NamespacedName) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.written.Clear(key, "")
}

func (w *requestWriter) wrote(request *coordinationv1alpha1.EvictionRequest) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.written.WroteAt(types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, request.UID, requestResource, request.ResourceVersion)
}

// lost sorts the errors of a write. A request that is gone, or has changed meanwhile, is
// none: the event that brings the news brings the next sync too.
func lost(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, doing string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		klog.FromContext(ctx).V(4).Info("The request changed meanwhile", "evictionRequest", klog.KObj(request))
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// measure updates the metrics for a request that got a new status.
func measure(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus, changes []change) {
	for _, c := range changes {
		switch c.kind {
		case changeInitialized:
			metrics.ObservePodInterceptors(len(status.TargetInterceptors))
		case changeProcessed:
			metrics.CountProcessedInterceptor(c.interceptor, c.outcome)
		case changeEvicted:
			metrics.ObserveRequestDuration(outcomePodGone, duration(request, status))
		case changeCanceled:
			metrics.ObserveRequestDuration(outcomeCanceled, duration(request, status))
		}
	}
}

// duration returns how long a request took that has finished.
func duration(request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) time.Duration {
	return finalCondition(status).LastTransitionTime.Sub(request.CreationTimestamp.Time)
}
