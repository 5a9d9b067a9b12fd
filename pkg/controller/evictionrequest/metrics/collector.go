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

	"k8s.io/component-base/metrics"
)

// Counts is a picture of all requests that are not finished.
type Counts struct {
	// Interceptors is the number of requests by the interceptor whose turn it is.
	Interceptors map[string]int
	// Requesters is the number of requests by who asks for them.
	Requesters map[string]int
}

// collector counts when it is asked: numbers that are kept up to date by events drift
// when one is missed, and start wrong after a restart.
type collector struct {
	metrics.BaseStableCollector

	source atomic.Pointer[func() Counts]
}

var (
	activeInterceptor = metrics.NewDesc(subsystem+"_active_interceptor",
		"Number of unfinished requests by the interceptor whose turn it is.",
		[]string{"interceptor"}, nil, metrics.ALPHA, "")
	activeRequester = metrics.NewDesc(subsystem+"_active_requester",
		"Number of unfinished requests by requester.",
		[]string{"requester"}, nil, metrics.ALPHA, "")

	requests = &collector{}
)

// Track has count called whenever the metrics are read, until the function that it
// returns is called: a controller that does not run knows nothing.
func Track(count func() Counts) (stop func()) {
	requests.source.Store(&count)
	return func() { requests.source.CompareAndSwap(&count, nil) }
}

// DescribeWithStability says which metrics there are.
func (c *collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- activeInterceptor
	descriptions <- activeRequester
}

// CollectWithStability counts.
func (c *collector) CollectWithStability(samples chan<- metrics.Metric) {
	count := c.source.Load()
	if count == nil {
		return
	}
	counts := (*count)()
	collect(samples, activeInterceptor, counts.Interceptors, interceptorNames)
	collect(samples, activeRequester, counts.Requesters, requesterNames)
}

// collect adds up what shares a bounded name: the same series may not come twice.
func collect(samples chan<- metrics.Metric, description *metrics.Desc, counts map[string]int, names *names) {
	sums := map[string]int{}
	for name, count := range counts {
		sums[names.bounded(name)] += count
	}
	for name, sum := range sums {
		samples <- metrics.NewLazyConstMetric(description, metrics.GaugeValue, float64(sum), name)
	}
}
