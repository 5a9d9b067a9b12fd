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
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// Retention is how long finished requests are kept.
type Retention struct {
	// TTL is how long etcd keeps a finished request. Zero leaves that to the controller.
	TTL time.Duration
	// MaxFinished is how many requests this server may finish in that time. Beyond that, it keeps them for as long as it
	// takes to finish so many others. Zero sets no limit.
	MaxFinished int
}

// minRetention is how long a request is kept at least, however many others finish. Clients that were disconnected
// have found out by then what has become of it.
const minRetention = time.Minute

// Expiry has etcd remove requests that have been finished for long enough, without a call. A request with finalizers
// is never removed without those who have set them; the controller deletes it.
type Expiry struct {
	retention Retention
	ends      *recentEnds
}

// NewExpiry returns an Expiry.
func NewExpiry(retention Retention) *Expiry {
	return &Expiry{retention: retention, ends: newRecentEnds(retention.MaxFinished)}
}

// TTL returns for how many seconds etcd keeps a request that is written, or zero if it is not to remove it. It counts
// from the end of the request, not from the write: another write must not prolong it.
func (e *Expiry) TTL(obj runtime.Object, _ uint64, _ bool) (uint64, error) {
	request, isRequest := obj.(*coordination.EvictionRequest)
	if !isRequest || e.retention.TTL <= 0 || len(request.Finalizers) > 0 || request.DeletionTimestamp != nil {
		return 0, nil
	}
	finished := evictionrequesttools.FinalCondition(request.Status.Conditions)
	if finished == nil {
		return 0, nil
	}
	now, ttl := StatusStrategy.Clock.Now(), e.retention.TTL
	if !mayBeNeeded(request, finished) {
		ttl = min(ttl, max(minRetention, e.ends.span(now)))
	}
	left := finished.LastTransitionTime.Add(ttl).Sub(now)
	return uint64(min(max(left, time.Second), ttl) / time.Second), nil
}

// Finished is called once for each request that was written as finished and was not before. Everybody who may change
// the labels of requests can write to finished ones as often as they like, and must not shorten the time of others.
func (e *Expiry) Finished(request *coordination.EvictionRequest) {
	finished := evictionrequesttools.FinalCondition(request.Status.Conditions)
	if finished != nil && request.DeletionTimestamp == nil && !mayBeNeeded(request, finished) {
		e.ends.note(StatusStrategy.Clock.Now())
	}
}

// mayBeNeeded reports whether somebody may look at a finished request later on: interceptors that pace the evictions
// of a workload count those of the last minutes, and one that was canceled because it cannot be carried out says so to
// those who would request the same again. Of the interceptors here, none looks at requests that are finished.
func mayBeNeeded(request *coordination.EvictionRequest, finished *metav1.Condition) bool {
	if finished.Type == string(coordination.EvictionRequestConditionCanceled) && finished.Reason != coordination.EvictionRequestReasonNoRequesters {
		return true
	}
	return slices.ContainsFunc(request.Status.TargetInterceptors, func(interceptor coordination.Interceptor) bool {
		switch interceptor.Name {
		case coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet, coordinationv1alpha1.EvictionInterceptorImperative:
			return false
		}
		return true
	})
}

// recentEnds has the times at which the last requests have finished.
type recentEnds struct {
	lock sync.Mutex
	// ring has them in nanoseconds since 1970. The next one takes the place of the oldest.
	ring []int64
	next int
}

func newRecentEnds(number int) *recentEnds { return &recentEnds{ring: make([]int64, number)} }

// unlimited is longer than any TTL.
const unlimited = time.Duration(1<<63 - 1)

// note records that a request has finished.
func (r *recentEnds) note(now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(r.ring) > 0 {
		r.ring[r.next] = now.UnixNano()
		r.next = (r.next + 1) % len(r.ring)
	}
}

// span returns how long it took to finish as many requests as the ring has.
func (r *recentEnds) span(now time.Time) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(r.ring) == 0 || r.ring[r.next] == 0 {
		return unlimited
	}
	return time.Duration(now.UnixNano() - r.ring[r.next])
}
