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

package metrics

import (
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-base/metrics"
)

// Counts is the number of unfinished requests by different criteria.
type Counts struct {
	// Interceptors is the number of requests by active interceptor.
	Interceptors map[string]int
	// Requesters is the number of requests by requester.
	Requesters map[string]int
	// OldestHeartbeats is the time since an active interceptor that has to report last did, or became
	// active if it has not, the longest of each interceptor.
	OldestHeartbeats map[string]time.Duration
	// Blocked is the number of requests whose eviction the API server does not allow, and
	// OldestBlocked for how long, the longest of each reason, by the reason of the condition
	// Blocked.
	Blocked       map[string]int
	OldestBlocked map[string]time.Duration
}

// NewCounts returns counts of nothing.
func NewCounts() Counts {
	return Counts{
		Interceptors: map[string]int{}, Requesters: map[string]int{}, OldestHeartbeats: map[string]time.Duration{},
		Blocked: map[string]int{}, OldestBlocked: map[string]time.Duration{},
	}
}

// blockedReasons are the reasons of the condition Blocked.
var blockedReasons = []string{coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, coordinationv1alpha1.EvictionRequestReasonEvictionRefused}

// collector counts on each scrape. Gauges that are updated by events drift if an event is missed,
// and are wrong after a restart.
type collector struct {
	metrics.BaseStableCollector

	source atomic.Pointer[func() Counts]
}

var (
	// Literal names, because upstream's parser of metrics, which makes docs/reference/metrics.md,
	// reads constants only from the same file.
	activeInterceptor = metrics.NewDesc("evictionrequest_controller_active_interceptor",
		"Number of unfinished EvictionRequests by active interceptor.",
		[]string{"interceptor"}, nil, metrics.ALPHA, "")
	activeRequester = metrics.NewDesc("evictionrequest_controller_active_requester",
		"Number of unfinished EvictionRequests by requester.",
		[]string{"requester"}, nil, metrics.ALPHA, "")
	oldestHeartbeat = metrics.NewDesc("evictionrequest_controller_oldest_heartbeat_seconds",
		"Time in seconds since an active interceptor that has to report last did, or became active if it has not, the longest of each interceptor.",
		[]string{"interceptor"}, nil, metrics.ALPHA, "")
	blockedRequests = metrics.NewDesc("evictionrequest_controller_blocked_requests",
		"Number of unfinished EvictionRequests with the condition Blocked, by its reason.",
		[]string{"reason"}, nil, metrics.ALPHA, "")
	oldestBlockedRequest = metrics.NewDesc("evictionrequest_controller_oldest_blocked_request_seconds",
		"Time in seconds for which unfinished EvictionRequests have had the condition Blocked, the longest of each reason. 0 if there are none.",
		[]string{"reason"}, nil, metrics.ALPHA, "")

	requests = &collector{}
)

// Track has count called on each scrape until stop is called: a controller that does not run has no
// current counts.
func Track(count func() Counts) (stop func()) {
	requests.source.Store(&count)
	return func() { requests.source.CompareAndSwap(&count, nil) }
}

// DescribeWithStability sends the descriptions of the metrics.
func (c *collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- activeInterceptor
	descriptions <- activeRequester
	descriptions <- oldestHeartbeat
	descriptions <- blockedRequests
	descriptions <- oldestBlockedRequest
}

// CollectWithStability sends the current counts.
func (c *collector) CollectWithStability(samples chan<- metrics.Metric) {
	count := c.source.Load()
	if count == nil {
		return
	}
	counts := (*count)()
	collect(samples, activeInterceptor, counts.Interceptors, interceptorNames)
	collect(samples, activeRequester, counts.Requesters, requesterNames)
	oldest := map[string]time.Duration{}
	for name, age := range counts.OldestHeartbeats {
		name = interceptorNames.bounded(name)
		// The clock of the interceptor may be ahead.
		oldest[name] = max(oldest[name], age)
	}
	gauge := func(description *metrics.Desc, value float64, label string) {
		samples <- metrics.NewLazyConstMetric(description, metrics.GaugeValue, value, label)
	}
	for name, age := range oldest {
		gauge(oldestHeartbeat, age.Seconds(), name)
		// It may time out. The series starts at 0, so that an increase shows the first timeout.
		processedInterceptors.WithLabelValues(name, OutcomeTimedOut)
	}
	for _, reason := range blockedReasons {
		gauge(blockedRequests, float64(counts.Blocked[reason]), reason)
		gauge(oldestBlockedRequest, max(counts.OldestBlocked[reason].Seconds(), 0), reason)
	}
}

// collect adds up the counts of names with the same bounded name: a series may be sent only once.
func collect(samples chan<- metrics.Metric, description *metrics.Desc, counts map[string]int, names *names) {
	sums := map[string]int{}
	for name, count := range counts {
		sums[names.bounded(name)] += count
	}
	for name, sum := range sums {
		samples <- metrics.NewLazyConstMetric(description, metrics.GaugeValue, float64(sum), name)
	}
}
