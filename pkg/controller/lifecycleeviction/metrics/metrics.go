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

// Package metrics defines the metrics of the lifecycle-eviction-controller. None of them has a label for the pod, request or
// namespace, nor for names that users choose. docs/reference/metrics.md documents them for users.
package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "lifecycle_eviction_controller"

// Outdated is what the gauges say: of how many pods the last attempt to bring their objects into agreement has failed, and
// since when at most.
type Outdated struct {
	Pods   int
	Oldest time.Duration
}

var (
	// requests counts EvictionRequests that have got their answer, by outcome: evicted, invalid, canceled or
	// no_further_responder.
	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "requests_total",
		Help:           "Number of EvictionRequests of lifecycle.k8s.io that were answered, by outcome: evicted, invalid, canceled or no_further_responder.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})

	// syncErrors counts failed attempts to bring the objects about a pod into agreement. Conflicts do not count: they only
	// say that a cache is behind.
	syncErrors = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "sync_errors_total",
		Help:           "Number of failed attempts to bring the objects about the eviction of a pod into agreement, without conflicts.",
		StabilityLevel: metrics.ALPHA,
	})

	// evictedDelay observes how long an Eviction took to say TargetEvicted.
	evictedDelay = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem,
		Name:      "target_evicted_delay_seconds",
		Help:      "Time in seconds from the end of a pod, as its EvictionRequest of coordination.k8s.io says, to the condition TargetEvicted of its Eviction.",
		// Times are in seconds. A silent responder has five of them to report its end.
		Buckets:        []float64{1, 2, 5, 10, 30, 60, 300, 1800},
		StabilityLevel: metrics.ALPHA,
	})

	outdatedPods = metrics.NewDesc("lifecycle_eviction_controller_outdated_pods",
		"Number of pods of which the last attempt to bring the objects about their eviction into agreement has failed.",
		nil, nil, metrics.ALPHA, "")
	oldestOutdatedPod = metrics.NewDesc("lifecycle_eviction_controller_oldest_outdated_pod_seconds",
		"Time in seconds for which the objects about the eviction of a pod could not be brought into agreement, the longest. 0 if there are none.",
		nil, nil, metrics.ALPHA, "")

	outdated = &collector{}
	register sync.Once
)

// Register registers the metrics. It may be called several times.
func Register() {
	register.Do(func() {
		legacyregistry.MustRegister(requests, syncErrors, evictedDelay)
		legacyregistry.CustomMustRegister(outdated)
	})
}

// CountRequest counts an EvictionRequest that has got its answer.
func CountRequest(outcome string) { requests.WithLabelValues(outcome).Inc() }

// CountSyncError counts a failed attempt to bring objects into agreement.
func CountSyncError() { syncErrors.Inc() }

// ObserveEvictedDelay observes how long after the end of a pod its Eviction says so. Clocks may differ.
func ObserveEvictedDelay(delay time.Duration) { evictedDelay.Observe(max(delay.Seconds(), 0)) }

// Track has count called on each scrape until stop is called: a controller that does not run knows nothing.
func Track(count func() Outdated) (stop func()) {
	outdated.source.Store(&count)
	return func() { outdated.source.CompareAndSwap(&count, nil) }
}

// collector counts on each scrape.
type collector struct {
	metrics.BaseStableCollector

	source atomic.Pointer[func() Outdated]
}

// DescribeWithStability sends the descriptions of the metrics.
func (c *collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- outdatedPods
	descriptions <- oldestOutdatedPod
}

// CollectWithStability sends the current values.
func (c *collector) CollectWithStability(samples chan<- metrics.Metric) {
	count := c.source.Load()
	if count == nil {
		return
	}
	found := (*count)()
	samples <- metrics.NewLazyConstMetric(outdatedPods, metrics.GaugeValue, float64(found.Pods))
	samples <- metrics.NewLazyConstMetric(oldestOutdatedPod, metrics.GaugeValue, max(found.Oldest.Seconds(), 0))
}
