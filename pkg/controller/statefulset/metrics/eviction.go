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
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// EvictionOutcome is how a StatefulSet's turn in the eviction of a pod ended.
type EvictionOutcome string

const (
	// EvictionReleased: the set allows the eviction of the pod.
	EvictionReleased EvictionOutcome = "released"
	// EvictionGivenUp: too many pods of the set were unavailable for too long.
	EvictionGivenUp EvictionOutcome = "given_up"
	// EvictionDeclined: there is nothing to pace for the pod.
	EvictionDeclined EvictionOutcome = "declined"
	// EvictionGone: the pod has left or terminates, and was not released.
	EvictionGone EvictionOutcome = "gone"
	// EvictionCanceled: the eviction is no longer requested.
	EvictionCanceled EvictionOutcome = "canceled"
	// EvictionLost: the controller did not report in time, and the next interceptor became active.
	EvictionLost EvictionOutcome = "lost"
)

var evictionWait = metrics.NewHistogramVec(&metrics.HistogramOpts{
	// A literal: upstream's parser of metrics reads constants only from the same file.
	Subsystem: "statefulset_controller",
	Name:      "eviction_wait_duration_seconds",
	Help:      "Time in seconds that the eviction of a pod waited for other pods of its StatefulSet, by outcome: released, given_up, declined, gone, canceled or lost.",
	// From an immediate decision to a set with many pods that start slowly.
	Buckets:        metrics.ExponentialBuckets(0.5, 2.5, 12),
	StabilityLevel: metrics.ALPHA,
}, []string{"outcome"})

var registerEvictions sync.Once

// RegisterEvictions registers the metrics of evictions, once.
func RegisterEvictions() {
	registerEvictions.Do(func() {
		legacyregistry.MustRegister(evictionWait)
		for _, outcome := range []EvictionOutcome{EvictionReleased, EvictionGivenUp, EvictionDeclined, EvictionGone, EvictionCanceled, EvictionLost} {
			evictionWait.WithLabelValues(string(outcome)) // Series start at 0, so that rates are right.
		}
	})
}

// EvictionTurnOver records a turn that has ended, and its duration.
func EvictionTurnOver(outcome EvictionOutcome, took time.Duration) {
	evictionWait.WithLabelValues(string(outcome)).Observe(max(took, 0).Seconds())
}
