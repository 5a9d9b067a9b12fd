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
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

func TestMetrics(t *testing.T) {
	Register()
	Register()
	CountRequest("evicted")
	CountRequest("evicted")
	CountRequest("invalid")
	CountSyncError()
	ObserveEvictedDelay(3 * time.Second)
	ObserveEvictedDelay(-time.Second) // The clock of the server may be ahead.
	names := []string{
		"lifecycle_eviction_controller_requests_total", "lifecycle_eviction_controller_sync_errors_total",
		"lifecycle_eviction_controller_target_evicted_delay_seconds", "lifecycle_eviction_controller_outdated_pods", "lifecycle_eviction_controller_oldest_outdated_pod_seconds",
	}
	counters := `
# HELP lifecycle_eviction_controller_requests_total [ALPHA] Number of EvictionRequests of lifecycle.k8s.io that were answered, by outcome: evicted, invalid, canceled or no_further_responder.
# TYPE lifecycle_eviction_controller_requests_total counter
lifecycle_eviction_controller_requests_total{outcome="evicted"} 2
lifecycle_eviction_controller_requests_total{outcome="invalid"} 1
# HELP lifecycle_eviction_controller_sync_errors_total [ALPHA] Number of failed attempts to bring the objects about the eviction of a pod into agreement, without conflicts.
# TYPE lifecycle_eviction_controller_sync_errors_total counter
lifecycle_eviction_controller_sync_errors_total 1
# HELP lifecycle_eviction_controller_target_evicted_delay_seconds [ALPHA] Time in seconds from the end of a pod, as its EvictionRequest of coordination.k8s.io says, to the condition TargetEvicted of its Eviction.
# TYPE lifecycle_eviction_controller_target_evicted_delay_seconds histogram
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="1"} 1
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="2"} 1
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="5"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="10"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="30"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="60"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="300"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="1800"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_bucket{le="+Inf"} 2
lifecycle_eviction_controller_target_evicted_delay_seconds_sum 3
lifecycle_eviction_controller_target_evicted_delay_seconds_count 2
`
	gauges := `
# HELP lifecycle_eviction_controller_oldest_outdated_pod_seconds [ALPHA] Time in seconds for which the objects about the eviction of a pod could not be brought into agreement, the longest. 0 if there are none.
# TYPE lifecycle_eviction_controller_oldest_outdated_pod_seconds gauge
lifecycle_eviction_controller_oldest_outdated_pod_seconds 90
# HELP lifecycle_eviction_controller_outdated_pods [ALPHA] Number of pods of which the last attempt to bring the objects about their eviction into agreement has failed.
# TYPE lifecycle_eviction_controller_outdated_pods gauge
lifecycle_eviction_controller_outdated_pods 2
`
	expect := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	expect(counters) // No controller runs.
	stop := Track(func() Outdated { return Outdated{Pods: 2, Oldest: 90 * time.Second} })
	expect(counters + gauges)
	stop()
	expect(counters)
}
