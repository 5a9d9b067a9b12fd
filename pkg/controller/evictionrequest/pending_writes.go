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
	"errors"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
)

// pendingWrites holds the requests that this controller is writing. Two queues process the same request,
// and only one of two writes of the same version can succeed: the other one is not even tried.
type pendingWrites struct {
	requests cache.Store
	// pending says of each request whether it was turned away meanwhile.
	pending map[types.NamespacedName]bool
	// retry is called for a request that was turned away, when the write has ended.
	retry func(types.NamespacedName)
}

func newPendingWrites(requests cache.Store) *pendingWrites {
	return &pendingWrites{requests: requests, pending: map[types.NamespacedName]bool{}, retry: func(types.NamespacedName) {}}
}

// turnAway reports whether the request is being written. Its next sync then follows from that.
func (p *pendingWrites) turnAway(key types.NamespacedName) bool {
	if _, pending := p.pending[key]; !pending {
		return false
	}
	p.pending[key] = true
	return true
}

// hasNewer reports whether the cache has a newer version than this one. Its event has enqueued the
// request, or is about to.
func (p *pendingWrites) hasNewer(request *coordinationv1alpha1.EvictionRequest) bool {
	object, found, err := p.requests.Get(request)
	if err != nil || !found {
		return false // A write of a request that is gone says so.
	}
	return isNewer(object.(*coordinationv1alpha1.EvictionRequest).ResourceVersion, request.ResourceVersion)
}

// isNewer reports whether a version is newer than another one of the same request.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// begin reports whether to write this version of the request. It does not if another write is in flight, or
// if the version is known to be old.
func (w *requestWriter) begin(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) bool {
	key := keyOf(request)
	w.lock.Lock()
	defer w.lock.Unlock()
	var own *consistency.ConsistencyError
	switch {
	case w.pending.turnAway(key):
	case w.pending.hasNewer(request):
	case errors.As(w.written.EnsureReady(key), &own) && isNewer(own.WroteRV, request.ResourceVersion):
	default:
		w.pending.pending[key] = false
		return true
	}
	klog.FromContext(ctx).V(4).Info("The request has changed since it was read", "evictionRequest", klog.KObj(request))
	return false
}

// end ends what begin began. A request that was turned away is processed again, even if it was written:
// the event of the write may have come before the response.
func (w *requestWriter) end(request *coordinationv1alpha1.EvictionRequest) {
	key := keyOf(request)
	w.lock.Lock()
	turnedAway := w.pending.pending[key]
	delete(w.pending.pending, key)
	w.lock.Unlock()
	if turnedAway {
		w.pending.retry(key)
	}
}
