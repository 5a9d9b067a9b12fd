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

package podpicker

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "replicaset_controller"

// How an attempt ended, the values of the label result.
const (
	callAnswered = "answered"
	callTimeout  = "timeout"
	callFailed   = "failed"
)

// How a scale-down ended if it did not fall back, besides the fallback reasons.
const (
	scaleDownPicked    = "picked"
	scaleDownUndecided = "undecided"
)

var (
	callDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "downscale_pod_picker_call_duration_seconds",
		Help:           "Time in seconds of an attempt to ask a downscale pod picker, by result: answered, timeout or failed.",
		Buckets:        metrics.ExponentialBuckets(0.005, 2.5, 11),
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	scaleDownDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem,
		Name:      "downscale_pod_picker_scale_down_duration_seconds",
		Help: "Time in seconds for which a scale-down waited for its downscale pod picker, by result: picked, undecided (the answer named no pod), " +
			"failed, busy (others were asked until the time was over), changed (pods or replicas changed until the time was over) or skipped (not asked, because its last attempts failed).",
		// The last one is more than ten retries of 30 seconds take.
		Buckets:        metrics.ExponentialBuckets(0.005, 2.5, 13),
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	waitingScaleDowns = metrics.NewDesc("replicaset_controller_downscale_pod_picker_waiting_scale_downs",
		"Number of scale-downs that wait for their downscale pod picker now.",
		nil, nil, metrics.ALPHA, "")

	waiting = &collector{}

	// registerMetrics is called where a client is made: without one, there are no such metrics.
	registerMetrics = sync.OnceFunc(func() {
		legacyregistry.MustRegister(callDuration, scaleDownDuration)
		legacyregistry.CustomMustRegister(waiting)
		for _, result := range []string{callAnswered, callTimeout, callFailed} {
			callDuration.WithLabelValues(result) // Series start at 0, so that rates are right.
		}
		for _, result := range []string{scaleDownPicked, scaleDownUndecided, string(FallbackFailed), string(FallbackBusy), string(FallbackChanged), string(FallbackSkipped)} {
			scaleDownDuration.WithLabelValues(result)
		}
	})
)

// collector counts the waiting scale-downs on each scrape.
type collector struct {
	metrics.BaseStableCollector

	client atomic.Pointer[Client]
}

// DescribeWithStability sends the description of the metric.
func (c *collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- waitingScaleDowns
}

// CollectWithStability sends the current count.
func (c *collector) CollectWithStability(samples chan<- metrics.Metric) {
	if client := c.client.Load(); client != nil {
		samples <- metrics.NewLazyConstMetric(waitingScaleDowns, metrics.GaugeValue, float64(client.countWaiting()))
	}
}

func observeCall(began time.Time, timedOut bool, err error) {
	result := callAnswered
	switch {
	case timedOut:
		result = callTimeout
	case err != nil:
		result = callFailed
	}
	callDuration.WithLabelValues(result).Observe(time.Since(began).Seconds())
}

func observeScaleDown(r Result) {
	result := scaleDownPicked
	switch {
	case r.Err != nil:
		result = string(r.Reason)
	case r.Ranks == nil:
		result = scaleDownUndecided
	}
	scaleDownDuration.WithLabelValues(result).Observe(r.Duration.Seconds())
}
