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

// expect compares metrics as a monitoring system reads them.
func expect(t *testing.T, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// The gauge is what the controller counts at each scrape; without a controller there is none.
func TestTrack(t *testing.T) {
	Register()
	Register() // A second controller in the same process, as in tests.
	const name = "deployment_controller_eviction_surge_replicas"
	t.Cleanup(func() { surges.source.Store(nil) })
	expect(t, "", name)
	replicas := 3
	Track(func() int { return replicas })
	expect(t, `
# HELP deployment_controller_eviction_surge_replicas [ALPHA] Number of replicas that Deployments have now to replace pods before their eviction.
# TYPE deployment_controller_eviction_surge_replicas gauge
deployment_controller_eviction_surge_replicas 3
`, name)
	replicas = 0
	expect(t, `
# HELP deployment_controller_eviction_surge_replicas [ALPHA] Number of replicas that Deployments have now to replace pods before their eviction.
# TYPE deployment_controller_eviction_surge_replicas gauge
deployment_controller_eviction_surge_replicas 0
`, name)
}

// Each outcome has a series from the start: a rate of one that begins with the first turn would miss
// that turn.
func TestOutcomesBeginAtZero(t *testing.T) {
	Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]bool{}
	for _, family := range families {
		if family.GetName() != "deployment_controller_eviction_surge_duration_seconds" {
			continue
		}
		for _, series := range family.GetMetric() {
			outcomes[series.GetLabel()[0].GetValue()] = true
		}
	}
	for _, outcome := range []Outcome{Completed, GivenUp, Declined, Canceled, Lost} {
		if !outcomes[string(outcome)] {
			t.Errorf("outcome %s has no series: %v", outcome, outcomes)
		}
	}
}

// A turn takes no negative time, although the clocks of two programs differ.
func TestTurnOver(t *testing.T) {
	surgeDuration.Reset() // What an earlier run of the tests has left.
	t.Cleanup(func() {
		surgeDuration.Reset()
		for _, outcome := range []Outcome{Completed, GivenUp, Declined, Canceled, Lost} {
			surgeDuration.WithLabelValues(string(outcome))
		}
	})
	TurnOver(GivenUp, 90*time.Second)
	TurnOver(GivenUp, -time.Minute)
	if got, err := testutil.GetHistogramMetricValue(surgeDuration.WithLabelValues("given_up")); err != nil || got != 90 {
		t.Errorf("observed %v seconds (%v), want 90", got, err)
	}
	if got, err := testutil.GetHistogramMetricCount(surgeDuration.WithLabelValues("given_up")); err != nil || got != 2 {
		t.Errorf("observed %d turns (%v), want 2", got, err)
	}
}
