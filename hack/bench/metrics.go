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
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// fetch reads a page that a component serves to administrators.
func (c *cluster) fetch(ctx context.Context, component, path string) (io.ReadCloser, error) {
	config, err := c.local.Config()
	if err != nil {
		return nil, err
	}
	ports, err := c.local.Ports()
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d%s", ports[component], path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	request.Header.Set("Authorization", "Bearer "+config.BearerToken)
	// Some components have made their certificates themselves.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("reading %s: %s", url, response.Status)
	}
	return response.Body, nil
}

// managerHeap returns the heap of the controller manager after a garbage collection, in bytes.
func (c *cluster) managerHeap(ctx context.Context) (float64, error) {
	heap, _, err := c.managerMemory(ctx)
	return heap, err
}

// serverMemory returns the memory of the API server that is resident, in bytes.
func (c *cluster) serverMemory() (float64, error) {
	process, _, err := findProcess(c.local.Output, filepath.Join("clusters", clusterName, "bin", controlplane.APIServer))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the API server: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the API server: %w", err)
	}
	return float64(stat.ResidentMemory()), nil
}

// managerMemory returns the heap of the controller manager after a garbage collection, and the stacks of
// its goroutines, in bytes. The profile, which says what holds the heap, stays beside the results.
func (c *cluster) managerMemory(ctx context.Context) (heap, stacks float64, err error) {
	body, err := c.fetch(ctx, controlplane.ControllerManager, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, 0, err
	}
	defer body.Close()
	profile, err := io.ReadAll(body)
	if err != nil {
		return 0, 0, fmt.Errorf("reading a profile: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.opts.resultsDir(), fmt.Sprintf("heap-%d.pprof", c.heaps)), profile, 0o644); err != nil {
		return 0, 0, fmt.Errorf("writing a profile: %w", err)
	}
	c.heaps++
	return memoryOf(profile)
}

var (
	heapAlloc   = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)
	stacksInUse = regexp.MustCompile(`(?m)^# Stack = (\d+) / \d+$`)
)

// memoryOf returns what a profile says of the memory, in bytes.
func memoryOf(profile []byte) (heap, stacks float64, err error) {
	for _, figure := range []struct {
		pattern *regexp.Regexp
		to      *float64
	}{{heapAlloc, &heap}, {stacksInUse, &stacks}} {
		found := figure.pattern.FindSubmatch(profile)
		if found == nil {
			return 0, 0, fmt.Errorf("the profile has no line like %s", figure.pattern)
		}
		if *figure.to, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return 0, 0, err
		}
	}
	return heap, stacks, nil
}

// apiMetrics are the metrics of the API server.
type apiMetrics map[string]*dto.MetricFamily

func (c *cluster) apiMetrics(ctx context.Context) (apiMetrics, error) {
	body, err := c.fetch(ctx, controlplane.APIServer, "/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	metrics, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	return metrics, nil
}

// settledMetrics returns the metrics once no more requests and evictions are written: the end of the
// last evictions is recorded after the pods are gone.
func (c *cluster) settledMetrics(ctx context.Context) (metrics apiMetrics, err error) {
	last := math.NaN()
	err = wait.PollUntilContextTimeout(ctx, quietTime, stepTimeout, true, func(ctx context.Context) (bool, error) {
		if metrics, err = c.apiMetrics(ctx); err != nil {
			return false, err
		}
		writes := metrics.writesOfRequests()
		settled := writes == last
		last = writes
		return settled, nil
	})
	return metrics, err
}

// writesOfRequests counts the writes that an eviction consists of: one that creates the request, the
// eviction, and one of its status.
func (a apiMetrics) writesOfRequests() float64 {
	total := 0.0
	for _, metric := range a["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if isMutation(metric) && labels["verb"] != "DELETE" && (labels["resource"] == "evictionrequests" || labels["subresource"] == "eviction") {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}

// isMutation reports whether the metric is about requests that write.
func isMutation(metric *dto.Metric) bool {
	return slices.ContainsFunc(metric.GetLabel(), func(label *dto.LabelPair) bool {
		return label.GetName() == "verb" && slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, label.GetValue())
	})
}

// writes counts the requests that write.
func (a apiMetrics) writes() float64 {
	total := 0.0
	for _, metric := range a["apiserver_request_total"].GetMetric() {
		if isMutation(metric) {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}

// writeLatency returns how long p percent of the requests that write took at most, in seconds, since
// the earlier metrics. It is the upper limit of a bucket.
func (a apiMetrics) writeLatency(p float64, before apiMetrics) float64 {
	counts := a.writeBuckets()
	for limit, count := range before.writeBuckets() {
		counts[limit] -= count
	}
	total := counts[math.Inf(1)]
	for _, limit := range slices.Sorted(maps.Keys(counts)) {
		if counts[limit] >= total*p/100 {
			return limit
		}
	}
	return math.NaN()
}

// writeBuckets returns how many requests that write took at most so many seconds.
func (a apiMetrics) writeBuckets() map[float64]float64 {
	counts := map[float64]float64{}
	for _, metric := range a["apiserver_request_duration_seconds"].GetMetric() {
		if isMutation(metric) {
			for _, bucket := range metric.GetHistogram().GetBucket() {
				counts[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
			}
		}
	}
	return counts
}
