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

// Package metrics holds the metrics of surges for evictions of pods of Deployments. All labels have
// a fixed set of values, so that the number of series does not grow with the cluster.
package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "deployment_controller"

// Outcome is how a Deployment's turn in the eviction of a pod ended.
type Outcome string

const (
	// Completed: the pod has left or leaves, because its replacement is available.
	Completed Outcome = "completed"
	// GivenUp: no replacement became available before the progress deadline.
	GivenUp Outcome = "given_up"
	// Released: the Deployment, which does not surge, can do without the pod.
	Released Outcome = "released"
	// Declined: the Deployment does not surge for the pod.
	Declined Outcome = "declined"
	// Canceled: the eviction is no longer requested.
	Canceled Outcome = "canceled"
	// Lost: the controller did not report in time, and the next interceptor became active.
	Lost Outcome = "lost"
)

var (
	surgesStarted = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "eviction_surges_started_total",
		Help:           "Number of replicas that Deployments added to replace pods before their eviction.",
		StabilityLevel: metrics.ALPHA,
	})

	surgeDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem,
		Name:      "eviction_surge_duration_seconds",
		Help:      "Time in seconds that the Deployment controller was the active interceptor of a pod, by outcome: completed, given_up, released, declined, canceled or lost.",
		// From the start of a small container to a progress deadline of some hours.
		Buckets:        metrics.ExponentialBuckets(0.5, 2.5, 12),
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})

	surgeReplicas = metrics.NewDesc("deployment_controller_eviction_surge_replicas",
		"Number of replicas that Deployments have now to replace pods before their eviction.",
		nil, nil, metrics.ALPHA, "")

	surges = &collector{}

	registerOnce sync.Once
)

// Register registers the metrics, once.
func Register() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(surgesStarted, surgeDuration)
		legacyregistry.CustomMustRegister(surges)
		for _, outcome := range []Outcome{Completed, GivenUp, Released, Declined, Canceled, Lost} {
			surgeDuration.WithLabelValues(string(outcome)) // Series start at 0, so that rates are right.
		}
	})
}

// collector counts surges on each scrape.
type collector struct {
	metrics.BaseStableCollector

	source atomic.Pointer[func() int]
}

// Track has count called on each scrape, which returns the number of replicas of surges.
func Track(count func() int) { surges.source.Store(&count) }

// DescribeWithStability sends the description of the metric.
func (c *collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- surgeReplicas
}

// CollectWithStability sends the current count. A controller that does not run has none.
func (c *collector) CollectWithStability(samples chan<- metrics.Metric) {
	if count := c.source.Load(); count != nil {
		samples <- metrics.NewLazyConstMetric(surgeReplicas, metrics.GaugeValue, float64((*count)()))
	}
}

// SurgesStarted counts extra replicas that were added.
func SurgesStarted(replicas int) { surgesStarted.Add(float64(replicas)) }

// TurnOver records a turn that has ended, and its duration.
func TurnOver(outcome Outcome, took time.Duration) {
	surgeDuration.WithLabelValues(string(outcome)).Observe(max(took, 0).Seconds())
}
