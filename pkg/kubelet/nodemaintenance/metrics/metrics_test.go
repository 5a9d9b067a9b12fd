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

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// The increase of a series that begins with the first event would be 0, and no alert would fire.
func TestCountersStartAtZero(t *testing.T) {
	Register()
	Register() // Each part of the kubelet that uses them does.
	const want = `
# HELP kubelet_maintenance_checkpoint_errors_total [ALPHA] Number of failed operations on the checkpoint of the static pods that a maintenance of the node affects, by operation: read or write.
# TYPE kubelet_maintenance_checkpoint_errors_total counter
kubelet_maintenance_checkpoint_errors_total{operation="read"} 0
kubelet_maintenance_checkpoint_errors_total{operation="write"} 0
# HELP kubelet_maintenance_static_pod_stops_total [ALPHA] Number of static pods that were stopped for a maintenance of the node, by result: held, refused or released.
# TYPE kubelet_maintenance_static_pod_stops_total counter
kubelet_maintenance_static_pod_stops_total{result="held"} 0
kubelet_maintenance_static_pod_stops_total{result="refused"} 0
kubelet_maintenance_static_pod_stops_total{result="released"} 0
# HELP kubelet_shutdown_drains_total [ALPHA] Number of shutdowns of the node for which a maintenance was to drain it, also before restarts, by result: drained, too_short, not_started, called_off, static_pods_needed, pods_stay or canceled.
# TYPE kubelet_shutdown_drains_total counter
kubelet_shutdown_drains_total{result="called_off"} 0
kubelet_shutdown_drains_total{result="canceled"} 0
kubelet_shutdown_drains_total{result="drained"} 0
kubelet_shutdown_drains_total{result="not_started"} 0
kubelet_shutdown_drains_total{result="pods_stay"} 0
kubelet_shutdown_drains_total{result="static_pods_needed"} 0
kubelet_shutdown_drains_total{result="too_short"} 0
`
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want),
		"kubelet_maintenance_checkpoint_errors_total", "kubelet_maintenance_static_pod_stops_total", "kubelet_shutdown_drains_total"); err != nil {
		t.Error(err)
	}
}
