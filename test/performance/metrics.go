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

package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/steps"
)

// fetch reads a page that a component serves to administrators.
func (c *cluster) fetch(ctx context.Context, component, path string) []byte {
	config := steps.Must(c.local.Config())
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", steps.Must(c.local.Ports())[component])
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true} // Some have made their certificates themselves.
	page, err := steps.Must(discovery.NewDiscoveryClientForConfig(config)).RESTClient().Get().RequestURI(path).DoRaw(ctx)
	steps.Check(err, "reading ", path, " of ", component)
	return page
}

// serverMemory returns the memory of the API server that is resident, in bytes.
func (c *cluster) serverMemory() float64 {
	return float64(steps.Must(c.process(controlplane.APIServer).Stat()).ResidentMemory())
}

// managerMemory returns the heap of the controller manager after a garbage collection, and the stacks of
// its goroutines, in bytes. The profile, which says what holds the heap, stays beside the results.
func (c *cluster) managerMemory(ctx context.Context) (heap, stacks float64) {
	profile := c.fetch(ctx, controlplane.ControllerManager, "/debug/pprof/heap?gc=1&debug=1")
	steps.Check(os.WriteFile(filepath.Join(c.opts.resultsDir(), fmt.Sprintf("heap-%d.pprof", c.heaps)), profile, 0o644), "writing a profile")
	c.heaps++
	return profiled(profile, heapAlloc), profiled(profile, stacksInUse)
}

var (
	heapAlloc   = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)
	stacksInUse = regexp.MustCompile(`(?m)^# Stack = (\d+) / \d+$`)
)

// profiled returns what a profile says of the memory, in bytes.
func profiled(profile []byte, pattern *regexp.Regexp) float64 {
	found := pattern.FindSubmatch(profile)
	if found == nil {
		steps.Check(fmt.Errorf("the profile has no line like %s", pattern))
	}
	return steps.Must(strconv.ParseFloat(string(found[1]), 64))
}

// apiMetrics are the metrics of the API server.
type apiMetrics testutil.Metrics

func (c *cluster) apiMetrics(ctx context.Context) apiMetrics {
	return parseMetrics(c.fetch(ctx, controlplane.APIServer, "/metrics"))
}

func parseMetrics(page []byte) apiMetrics {
	metrics := testutil.NewMetrics()
	steps.Check(testutil.ParseMetrics(string(page), &metrics), "reading the metrics of the API server")
	return apiMetrics(metrics)
}

// settledMetrics returns the metrics once no more requests and evictions are written: the end of the
// last evictions is recorded after the pods are gone.
func (c *cluster) settledMetrics(ctx context.Context) (metrics apiMetrics) {
	last := math.NaN()
	await(ctx, "the end of writes", quietTime, stepTimeout, func(ctx context.Context) bool {
		metrics = c.apiMetrics(ctx)
		writes := metrics.writesOfRequests()
		settled := writes == last
		last = writes
		return settled
	})
	return metrics
}

// isMutation reports whether the sample is about requests that write.
func isMutation(sample *testutil.Sample) bool {
	return slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, string(sample.Metric["verb"]))
}

// count counts the requests that write and are of a kind.
func (a apiMetrics) count(is func(*testutil.Sample) bool) float64 {
	total := 0.0
	for _, sample := range a["apiserver_request_total"] {
		if isMutation(sample) && is(sample) {
			total += float64(sample.Value)
		}
	}
	return total
}

// writes counts the requests that write.
func (a apiMetrics) writes() float64 { return a.count(isMutation) }

// writesOfRequests counts the writes that an eviction consists of: one that creates the request, the
// eviction, and one of its status.
func (a apiMetrics) writesOfRequests() float64 {
	return a.count(func(sample *testutil.Sample) bool {
		return sample.Metric["verb"] != "DELETE" && (sample.Metric["resource"] == "evictionrequests" || sample.Metric["subresource"] == "eviction")
	})
}

// writeLatency returns how long p percent of the requests that write took at most, in seconds, since
// the earlier metrics. It is the upper limit of a bucket.
func (a apiMetrics) writeLatency(p float64, before apiMetrics) float64 {
	counts := map[float64]float64{}
	for sign, metrics := range map[float64]apiMetrics{1: a, -1: before} {
		for _, bucket := range metrics["apiserver_request_duration_seconds_bucket"] {
			if isMutation(bucket) {
				counts[steps.Must(strconv.ParseFloat(string(bucket.Metric["le"]), 64))] += sign * float64(bucket.Value)
			}
		}
	}
	total := counts[math.Inf(1)]
	for _, limit := range slices.Sorted(maps.Keys(counts)) {
		if counts[limit] >= total*p/100 {
			return limit
		}
	}
	return math.NaN()
}
