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
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// expect compares the gathered metrics.
func expect(t *testing.T, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	Register()
	Register() // A second controller in the same process, as in tests.
	// What an earlier run of the tests has left.
	imperativeEvictions.Reset()
	processedInterceptors.Reset()
	interceptorDuration.Reset()
	requestDuration.Reset()
	CountImperativeEviction("evicted")
	CountImperativeEviction("evicted")
	CountImperativeEviction("blocked")
	CountProcessedInterceptor("imperative-eviction.k8s.io", "timed_out", 3*time.Minute)
	CountProcessedInterceptor("first.example.com", "completed", -time.Second) // The clock of the interceptor.
	ObservePodInterceptors(3)
	ObserveRequestDuration("evicted", 3*time.Second)
	expect(t, `
# HELP evictionrequest_controller_imperative_evictions_total [ALPHA] Number of calls of the pods/eviction subresource, by result: evicted, gone, blocked, refused, not_requested or error.
# TYPE evictionrequest_controller_imperative_evictions_total counter
evictionrequest_controller_imperative_evictions_total{result="blocked"} 1
evictionrequest_controller_imperative_evictions_total{result="evicted"} 2
# HELP evictionrequest_controller_processed_interceptors_total [ALPHA] Number of interceptors that stopped being active, by interceptor and outcome: completed, timed_out, evicted, canceled or skipped.
# TYPE evictionrequest_controller_processed_interceptors_total counter
evictionrequest_controller_processed_interceptors_total{interceptor="first.example.com",outcome="completed"} 1
evictionrequest_controller_processed_interceptors_total{interceptor="imperative-eviction.k8s.io",outcome="timed_out"} 1
# HELP evictionrequest_controller_pod_interceptors [ALPHA] Number of interceptors of an EvictionRequest, including the built-in ones, observed when the request is initialized.
# TYPE evictionrequest_controller_pod_interceptors histogram
evictionrequest_controller_pod_interceptors_bucket{le="1"} 0
evictionrequest_controller_pod_interceptors_bucket{le="2"} 0
evictionrequest_controller_pod_interceptors_bucket{le="3"} 1
evictionrequest_controller_pod_interceptors_bucket{le="4"} 1
evictionrequest_controller_pod_interceptors_bucket{le="6"} 1
evictionrequest_controller_pod_interceptors_bucket{le="8"} 1
evictionrequest_controller_pod_interceptors_bucket{le="12"} 1
evictionrequest_controller_pod_interceptors_bucket{le="16"} 1
evictionrequest_controller_pod_interceptors_bucket{le="+Inf"} 1
evictionrequest_controller_pod_interceptors_sum 3
evictionrequest_controller_pod_interceptors_count 1
`, "evictionrequest_controller_imperative_evictions_total", "evictionrequest_controller_processed_interceptors_total",
		"evictionrequest_controller_pod_interceptors")
	for name, want := range map[string]float64{"imperative-eviction.k8s.io": 180, "first.example.com": 0} {
		if got, err := testutil.GetHistogramMetricValue(interceptorDuration.WithLabelValues(name)); err != nil || got != want {
			t.Errorf("observed a turn of %s of %v, %v, want %v seconds", name, got, err, want)
		}
	}
	if got, err := testutil.GetHistogramMetricValue(requestDuration.WithLabelValues("evicted")); err != nil || got != 3 {
		t.Errorf("observed a duration of %v, %v, want 3 seconds", got, err)
	}
}

func TestTrack(t *testing.T) {
	Register()
	const none = ""
	gauges := []string{
		"evictionrequest_controller_active_interceptor", "evictionrequest_controller_active_requester",
		"evictionrequest_controller_oldest_heartbeat_seconds", "evictionrequest_controller_blocked_requests",
		"evictionrequest_controller_oldest_blocked_request_seconds",
	}
	expect(t, none, gauges...)
	processedInterceptors.Reset()

	stop := Track(func() Counts {
		return Counts{
			Interceptors: map[string]int{"first.example.com": 2}, Requesters: map[string]int{"drain.example.com": 3},
			// The clock of an interceptor may be ahead.
			OldestHeartbeats: map[string]time.Duration{"first.example.com": 90 * time.Second, "ahead.example.com": -time.Second},
			Blocked:          map[string]int{"DisruptionBudget": 4, "Unknown": 5},
			OldestBlocked:    map[string]time.Duration{"DisruptionBudget": time.Hour, "EvictionRefused": -time.Second},
		}
	})
	want := `
# HELP evictionrequest_controller_active_interceptor [ALPHA] Number of unfinished EvictionRequests by active interceptor.
# TYPE evictionrequest_controller_active_interceptor gauge
evictionrequest_controller_active_interceptor{interceptor="first.example.com"} 2
# HELP evictionrequest_controller_active_requester [ALPHA] Number of unfinished EvictionRequests by requester.
# TYPE evictionrequest_controller_active_requester gauge
evictionrequest_controller_active_requester{requester="drain.example.com"} 3
# HELP evictionrequest_controller_blocked_requests [ALPHA] Number of unfinished EvictionRequests with the condition Blocked, by its reason.
# TYPE evictionrequest_controller_blocked_requests gauge
evictionrequest_controller_blocked_requests{reason="DisruptionBudget"} 4
evictionrequest_controller_blocked_requests{reason="EvictionRefused"} 0
# HELP evictionrequest_controller_oldest_blocked_request_seconds [ALPHA] Time in seconds for which unfinished EvictionRequests have had the condition Blocked, the longest of each reason. 0 if there are none.
# TYPE evictionrequest_controller_oldest_blocked_request_seconds gauge
evictionrequest_controller_oldest_blocked_request_seconds{reason="DisruptionBudget"} 3600
evictionrequest_controller_oldest_blocked_request_seconds{reason="EvictionRefused"} 0
# HELP evictionrequest_controller_oldest_heartbeat_seconds [ALPHA] Time in seconds since an active interceptor that has to report last did, or became active if it has not, the longest of each interceptor.
# TYPE evictionrequest_controller_oldest_heartbeat_seconds gauge
evictionrequest_controller_oldest_heartbeat_seconds{interceptor="ahead.example.com"} 0
evictionrequest_controller_oldest_heartbeat_seconds{interceptor="first.example.com"} 90
`
	expect(t, want, gauges...)
	// An increase of a series that begins with the first timeout would be 0.
	expect(t, `
# HELP evictionrequest_controller_processed_interceptors_total [ALPHA] Number of interceptors that stopped being active, by interceptor and outcome: completed, timed_out, evicted, canceled or skipped.
# TYPE evictionrequest_controller_processed_interceptors_total counter
evictionrequest_controller_processed_interceptors_total{interceptor="ahead.example.com",outcome="timed_out"} 0
evictionrequest_controller_processed_interceptors_total{interceptor="first.example.com",outcome="timed_out"} 0
`, "evictionrequest_controller_processed_interceptors_total")

	// The next controller starts before the last one stops.
	stopNext := Track(func() Counts { return Counts{} })
	stop()
	expect(t, none, gauges[:3]...)
	stopNext()
	if requests.source.Load() != nil {
		t.Error("a stopped controller is still called")
	}
}

// The series of turns and of reports are bounded, too, and the oldest report of all other interceptors
// is theirs.
func TestSeriesOfInterceptorsAreBounded(t *testing.T) {
	Register()
	old := interceptorNames
	interceptorNames = newNames()
	t.Cleanup(func() {
		interceptorNames = old
		interceptorDuration.Reset()
		processedInterceptors.Reset()
	})
	interceptorDuration.Reset()
	counts := NewCounts()
	for i := range 60 {
		name := fmt.Sprintf("user-%d.example.com", i)
		CountProcessedInterceptor(name, "completed", time.Second)
		counts.OldestHeartbeats[name] = time.Duration(i) * time.Second
	}
	for i := range 10 { // Whatever the order in which the names come, this is the oldest of the others.
		counts.OldestHeartbeats[fmt.Sprintf("user-%d.example.com", 50+i)] = time.Duration(100-i) * time.Second
	}
	if got, err := testutil.GetHistogramMetricValue(interceptorDuration.WithLabelValues("other")); err != nil || got != 10 {
		t.Errorf("the turns of the other interceptors took %v seconds (%v), want 10", got, err)
	}
	stop := Track(func() Counts { return counts })
	defer stop()
	for range 20 {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		ages := map[string]float64{}
		for _, family := range families {
			if family.GetName() == "evictionrequest_controller_oldest_heartbeat_seconds" {
				for _, series := range family.GetMetric() {
					ages[series.GetLabel()[0].GetValue()] = series.GetGauge().GetValue()
				}
			}
		}
		if len(ages) != 51 || ages["other"] != 100 || ages["user-49.example.com"] != 49 {
			t.Fatalf("%d series: %v", len(ages), ages)
		}
	}
}

// Users choose the names: the number of series is bounded.
func TestNamesAreBounded(t *testing.T) {
	n := newNames("known.k8s.io")
	for i := range 60 {
		name := fmt.Sprintf("user-%d.example.com", i)
		want := name
		if i >= 50 {
			want = "other"
		}
		if got := n.bounded(name); got != want {
			t.Errorf("name %d became %q, want %q", i, got, want)
		}
	}
	for name, want := range map[string]string{
		"known.k8s.io":        "known.k8s.io",
		"user-7.example.com":  "user-7.example.com",
		"user-51.example.com": "other",
	} {
		if got := n.bounded(name); got != want {
			t.Errorf("%s became %q, want %q", name, got, want)
		}
	}
}

// However many names users choose, the metrics still tell the controllers of the project apart.
func TestOwnNamesAreNeverOther(t *testing.T) {
	for label, limit := range map[string]struct {
		names *names
		own   []string
	}{
		"interceptor": {interceptorNames, []string{
			coordinationv1alpha1.EvictionInterceptorImperative, coordinationv1alpha1.EvictionInterceptorDaemonSet,
			coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorHorizontalPodAutoscaler,
			coordinationv1alpha1.EvictionInterceptorKubelet, coordinationv1alpha1.EvictionInterceptorReplicaSet,
			coordinationv1alpha1.EvictionInterceptorStatefulSet,
		}},
		"requester": {requesterNames, []string{coordinationv1alpha1.NodeMaintenanceRequester, coordinationv1alpha1.EvictionRequesterEvictions}},
	} {
		full := &names{known: limit.names.known.Clone()}
		for _, name := range limit.own {
			if got := full.bounded(name); got != name {
				t.Errorf("%s %s became %q", label, name, got)
			}
		}
	}
}

func TestNamesAreSafeForConcurrentUse(t *testing.T) {
	n := newNames()
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 100 {
				n.bounded(fmt.Sprintf("user-%d-%d.example.com", i, j))
			}
		})
	}
	wait.Wait()
	if n.remaining != 0 || n.known.Len() != 50 {
		t.Errorf("has %d names and accepts %d more", n.known.Len(), n.remaining)
	}
}

// The counts of names with the same label are added up: a duplicate series would fail the whole
// scrape.
func TestBoundedNamesAreAddedUp(t *testing.T) {
	Register()
	counts := map[string]int{}
	for i := range 60 {
		counts[fmt.Sprintf("crowd-%d.example.com", i)] = 1
	}
	defer Track(func() Counts { return Counts{Requesters: counts} })()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatalf("reading the metrics: %v", err)
	}
	sum, series := 0.0, 0
	for _, family := range families {
		if family.GetName() == "evictionrequest_controller_active_requester" {
			for _, metric := range family.Metric {
				sum, series = sum+metric.Gauge.GetValue(), series+1
			}
		}
	}
	if sum != 60 || series > 51 {
		t.Errorf("counted %v requests in %d series, want 60 in 51 at most", sum, series)
	}
}
