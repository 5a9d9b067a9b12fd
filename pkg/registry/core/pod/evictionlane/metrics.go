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

package evictionlane

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "apiserver_eviction_lane"

// What calls wait for, the values of the label operation.
const (
	operationList      = "list"
	operationSelect    = "select"
	operationDecrement = "decrement"
)

var (
	batchSize = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "batch_size",
		Help:           "Number of evictions that share one list of the PodDisruptionBudgets of a namespace (list), one look-up in the index of all budgets (select), or one update of the status of a PodDisruptionBudget (decrement).",
		Buckets:        metrics.ExponentialBuckets(1, 2, 10),
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})

	waitSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "wait_seconds",
		Help:           "Time in seconds for which an eviction waits until its list, select or decrement begins.",
		Buckets:        metrics.ExponentialBuckets(0.001, 2, 15),
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})

	conflicts = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "conflicts_total",
		Help:           "Number of times that evictions were decided again because another client had written the PodDisruptionBudget.",
		StabilityLevel: metrics.ALPHA,
	})
)

// registerMetrics is called where a lane is made: without one, there are no such metrics.
var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(batchSize, waitSeconds, conflicts) })

func observe[A, R any](operation string) func([]*call[A, R]) {
	return func(calls []*call[A, R]) {
		batchSize.WithLabelValues(operation).Observe(float64(len(calls)))
		now := time.Now()
		for _, c := range calls {
			waitSeconds.WithLabelValues(operation).Observe(now.Sub(c.arrived).Seconds())
		}
	}
}

func countConflict() { conflicts.Inc() }
