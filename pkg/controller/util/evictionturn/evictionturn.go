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

// Package evictionturn computes since when a turn of a workload controller waits. A workload
// controller that is an interceptor gives up a turn after some time without progress. A restart
// must neither forget that time, nor count the time in which no process could make progress. All
// times are in the EvictionRequest.
package evictionturn

import (
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
)

// aliveAfterHeartbeat is how long a process counts as running after its last heartbeat. It is the
// minimum time between two heartbeats. Without it, processes that repeatedly end before their
// second heartbeat would never reach the timeout.
const aliveAfterHeartbeat = evictionrequest.MinHeartbeatInterval

// History is what a process knows about a turn that it has taken.
type History struct {
	// Taken is when this process took the turn.
	Taken time.Time
	// Heartbeat and ETA are the last ones of an earlier process that had the turn, or zero.
	Heartbeat, ETA time.Time
}

// HistoryOf returns the history of a turn of the interceptor that this process takes now. The first
// report counts as a heartbeat. A heartbeat in the future comes from a clock that was ahead and
// counts as now.
func HistoryOf(request *coordinationv1alpha1.EvictionRequest, interceptor string, now time.Time) History {
	history := History{Taken: now}
	entry := evictionrequest.InterceptorStatusOf(&request.Status, interceptor)
	if entry == nil {
		return history
	}
	for _, reported := range []*metav1.Time{entry.StartTime, entry.HeartbeatTime} {
		if reported != nil {
			history.Heartbeat = later(history.Heartbeat, earlier(reported.Time, now))
		}
	}
	if entry.ExpectedFinishTime != nil {
		history.ETA = entry.ExpectedFinishTime.Time
	}
	return history
}

// Began returns when the turn of an interceptor began: when it first reported or, before that, when
// it became active. A time in the future comes from a clock that was ahead and would postpone the
// timeout, so it is skipped.
func Began(request *coordinationv1alpha1.EvictionRequest, interceptor string, now time.Time) time.Time {
	times := []*metav1.Time{request.Status.ActivationTime}
	if entry := evictionrequest.InterceptorStatusOf(&request.Status, interceptor); entry != nil {
		times = []*metav1.Time{entry.StartTime, request.Status.ActivationTime}
	}
	for _, began := range times {
		if began != nil && !began.After(now) {
			return began.Time
		}
	}
	return now
}

// WaitsSince returns the start of the timeout of a turn whose last progress was at base. It is
// base, postponed by the time in which no process was running.
//
// eta is the end of the timeout if outages have postponed it, and otherwise zero. It must be
// reported as the ETA of the turn: it carries the outages that earlier processes have counted to
// the next process, which adds the outage before its own start.
func (h History) WaitsSince(base time.Time, timeout time.Duration) (since, eta time.Time) {
	if !base.Before(h.Taken) {
		return base, time.Time{}
	}
	alive := h.Heartbeat.Add(aliveAfterHeartbeat)
	since = base
	// The timeout may have been shortened since, which makes the ETA too late.
	if waited := earlier(h.ETA.Add(-timeout), alive); waited.After(since) {
		since = waited
	}
	since = since.Add(max(h.Taken.Sub(later(since, alive)), 0))
	// Without a heartbeat, no earlier process had the turn. The activation is stored without
	// fractions of a second, and the turn is taken after that write, which is no outage.
	if !h.Heartbeat.IsZero() && since.After(base) {
		eta = since.Add(timeout)
	}
	return since, eta
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
