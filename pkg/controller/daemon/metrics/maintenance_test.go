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

func TestMaintenanceMetrics(t *testing.T) {
	RegisterMaintenance()
	RegisterMaintenance() // A second controller in the same process, as in tests.
	// Remove the counts of an earlier run of this test.
	maintenanceDeletes.Reset()
	CountMaintenanceDelete(Deleted)
	CountMaintenanceDelete(Deleted)
	CountMaintenanceDelete(Failed)
	const want = `
# HELP daemonset_controller_maintenance_pod_deletes_total [ALPHA] Number of attempts to delete a DaemonSet pod for the maintenance of its node, by result: deleted or failed.
# TYPE daemonset_controller_maintenance_pod_deletes_total counter
daemonset_controller_maintenance_pod_deletes_total{result="deleted"} 2
daemonset_controller_maintenance_pod_deletes_total{result="failed"} 1
`
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), "daemonset_controller_maintenance_pod_deletes_total"); err != nil {
		t.Error(err)
	}
}
