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

// Package metrics defines the metrics of the evictionrequest-controller. None of them has a label
// for the pod, request or namespace, and labels with user-defined values are bounded.
// docs/reference/metrics.md documents them for users.
package metrics

import (
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// subsystem is the prefix of the metric names (KEP-4563, Monitoring Requirements).
const subsystem = "evictionrequest_controller"

// OutcomeTimedOut is the outcome of an interceptor that did not report before its deadline.
const OutcomeTimedOut = "timed_out"

var (
	// imperativeEvictions counts the calls of the pods/eviction subresource by result: evicted,
	// gone (this instance of the pod no longer existed), blocked (by a PodDisruptionBudget),
	// refused (for another reason), not_requested (the request does not want it any more; the cache of
	// this controller is old), or error (a response that says nothing about the pod, or none; the call
	// is retried).
	imperativeEvictions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "imperative_evictions_total",
		Help:           "Number of calls of the pods/eviction subresource, by result: evicted, gone, blocked, refused, not_requested or error.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	// processedInterceptors counts processed interceptors by name and outcome: completed,
	// timed_out, evicted (the pod was removed while the interceptor was active), canceled or skipped.
	processedInterceptors = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "processed_interceptors_total",
		Help:           "Number of interceptors that stopped being active, by interceptor and outcome: completed, timed_out, evicted, canceled or skipped.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"interceptor", "outcome"})

	// interceptorDuration observes the seconds for which an interceptor was active. Not by outcome:
	// each of 50 names would have a histogram for each.
	interceptorDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem,
		Name:      "interceptor_duration_seconds",
		Help:      "Time in seconds for which an interceptor was active, by interceptor.",
		// From a second, for a program that has nothing to do, to a day, for virtual machines.
		Buckets:        metrics.ExponentialBuckets(1, 4, 9),
		StabilityLevel: metrics.ALPHA,
	}, []string{"interceptor"})

	// podInterceptors observes the number of interceptors of a request, including the built-in
	// ones, when it is initialized. The maximum is 16.
	podInterceptors = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "pod_interceptors",
		Help:           "Number of interceptors of an EvictionRequest, including the built-in ones, observed when the request is initialized.",
		Buckets:        []float64{1, 2, 3, 4, 6, 8, 12, 16},
		StabilityLevel: metrics.ALPHA,
	})

	// requestDuration observes the seconds from the creation of a request to its end, by
	// outcome: evicted or canceled.
	requestDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem,
		Name:      "request_duration_seconds",
		Help:      "Time in seconds from the creation of an EvictionRequest to its end, by outcome: evicted or canceled.",
		// From a tenth of a second, for a pod without interceptors of its own, to a day and a half,
		// for a virtual machine with a lot of memory or a budget that never allows a disruption.
		Buckets:        metrics.ExponentialBuckets(0.125, 4, 11),
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})
)

// The bounds of the labels. The names that are listed here never become otherName.
var (
	interceptorNames = newNames(
		coordinationv1alpha1.EvictionInterceptorImperative,
		coordinationv1alpha1.EvictionInterceptorDaemonSet,
		coordinationv1alpha1.EvictionInterceptorDeployment,
		coordinationv1alpha1.EvictionInterceptorHorizontalPodAutoscaler,
		coordinationv1alpha1.EvictionInterceptorKubelet,
		coordinationv1alpha1.EvictionInterceptorReplicaSet,
		coordinationv1alpha1.EvictionInterceptorStatefulSet,
	)
	requesterNames = newNames(coordinationv1alpha1.NodeMaintenanceRequester, coordinationv1alpha1.EvictionRequesterEvictions)
)

var register sync.Once

// Register registers the metrics. It may be called several times.
func Register() {
	register.Do(func() {
		legacyregistry.MustRegister(imperativeEvictions, processedInterceptors, interceptorDuration, podInterceptors, requestDuration)
		legacyregistry.CustomMustRegister(requests)
	})
}

// CountImperativeEviction counts a call of the pods/eviction subresource.
func CountImperativeEviction(result string) {
	imperativeEvictions.WithLabelValues(result).Inc()
}

// CountProcessedInterceptor counts a processed interceptor, and observes for how long it was active.
func CountProcessedInterceptor(interceptor, outcome string, duration time.Duration) {
	name := interceptorNames.bounded(interceptor)
	processedInterceptors.WithLabelValues(name, outcome).Inc()
	// Times of the API are in seconds, so that the end may seem to precede the beginning.
	interceptorDuration.WithLabelValues(name).Observe(max(duration.Seconds(), 0))
}

// ObservePodInterceptors observes the number of interceptors of a request.
func ObservePodInterceptors(count int) {
	podInterceptors.Observe(float64(count))
}

// ObserveRequestDuration observes how long a finished request took.
func ObserveRequestDuration(outcome string, duration time.Duration) {
	requestDuration.WithLabelValues(outcome).Observe(duration.Seconds())
}
