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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/component-helpers/node/maintenance"
)

// expect compares metrics as a monitoring system reads them.
func expect(t *testing.T, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	Register()
	Register() // A second controller in the same process, as in tests.
	// What an earlier run of this test has left.
	drainDuration.Reset()
	stageTransitions.Reset()
	contestedCordons.Reset()
	evictionRequestsCreated.Reset()
	evictionRequestsWithdrawn.Reset()

	ObserveDrainDuration(v1.PodTypeDaemonSet, 5*time.Second)
	ObserveDrainDuration(v1.PodTypeDaemonSet, 26*time.Hour)
	CountStageTransition(coordinationv1alpha1.NodeMaintenanceStageDrain)
	CountStageTransition(coordinationv1alpha1.NodeMaintenanceStageDrain)
	CountStageTransition(coordinationv1alpha1.NodeMaintenanceStageComplete)
	CountContestedCordon()
	CountRequested(3)
	CountRequested(4)
	CountWithdrawn(2)
	expect(t, `
# HELP nodemaintenance_controller_contested_cordons_total [ALPHA] Number of times that another client made a node schedulable during its maintenance.
# TYPE nodemaintenance_controller_contested_cordons_total counter
nodemaintenance_controller_contested_cordons_total 1
# HELP nodemaintenance_controller_drain_duration_seconds [ALPHA] Time in seconds from the start of the stage Drain until no pod of a type was left on the nodes of the maintenance, by pod type: Default, DaemonSet or Static.
# TYPE nodemaintenance_controller_drain_duration_seconds histogram
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="1"} 0
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="3"} 0
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="9"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="27"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="81"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="243"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="729"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="2187"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="6561"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="19683"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="59049"} 1
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="177147"} 2
nodemaintenance_controller_drain_duration_seconds_bucket{pod_type="DaemonSet",le="+Inf"} 2
nodemaintenance_controller_drain_duration_seconds_sum{pod_type="DaemonSet"} 93605
nodemaintenance_controller_drain_duration_seconds_count{pod_type="DaemonSet"} 2
# HELP nodemaintenance_controller_evictionrequests_created_total [ALPHA] Number of EvictionRequests that the controller created, or joined as a requester.
# TYPE nodemaintenance_controller_evictionrequests_created_total counter
nodemaintenance_controller_evictionrequests_created_total 7
# HELP nodemaintenance_controller_evictionrequests_withdrawn_total [ALPHA] Number of EvictionRequests that the controller left as a requester.
# TYPE nodemaintenance_controller_evictionrequests_withdrawn_total counter
nodemaintenance_controller_evictionrequests_withdrawn_total 2
# HELP nodemaintenance_controller_stage_transitions_total [ALPHA] Number of stages that maintenances started, by stage: Idle, Cordon, Drain or Complete.
# TYPE nodemaintenance_controller_stage_transitions_total counter
nodemaintenance_controller_stage_transitions_total{stage="Complete"} 1
nodemaintenance_controller_stage_transitions_total{stage="Drain"} 2
`, "nodemaintenance_controller_contested_cordons_total", "nodemaintenance_controller_drain_duration_seconds",
		"nodemaintenance_controller_evictionrequests_created_total", "nodemaintenance_controller_evictionrequests_withdrawn_total",
		"nodemaintenance_controller_stage_transitions_total")
}

func TestTrack(t *testing.T) {
	Register()
	const none = ""
	gauges := []string{
		"nodemaintenance_controller_maintenances", "nodemaintenance_controller_nodes",
		"nodemaintenance_controller_pods", "nodemaintenance_controller_blocked_pods",
		"nodemaintenance_controller_blocked_nodes", "nodemaintenance_controller_blocking_budgets",
		"nodemaintenance_controller_oldest_maintenance_seconds", "nodemaintenance_controller_oldest_blocker_seconds",
		"nodemaintenance_controller_waiting_nodes", "nodemaintenance_controller_failed_nodes",
	}
	expect(t, none, gauges...)

	stop := Track(func() Counts {
		return Counts{
			Maintenances: map[coordinationv1alpha1.NodeMaintenanceStage]int{"Idle": 1, "Drain": 2, "Complete": 4, "Unknown": 9},
			Nodes:        map[coordinationv1alpha1.NodeMaintenanceStage]int{"Idle": 30, "Cordon": 40, "Drain": 50},
			PendingPods:  60, EvictingPods: 70,
			// What is in progress is not blocked, and not shown.
			BlockedPods:  map[maintenance.BlockerCause]int{maintenance.BlockerDisruptionBudget: 8, maintenance.BlockerUnhandled: 7, maintenance.BlockerRequestFailed: 5, maintenance.BlockerCordonFailed: 4, maintenance.BlockerInterceptor: 6},
			BlockedNodes: map[maintenance.BlockerCause]int{maintenance.BlockerCordonFailed: 3, maintenance.BlockerUnhandled: 2},

			WaitingNodes:      map[coordinationv1alpha1.NodeMaintenanceWaitReason]int{"Window": 12, "Frozen": 13, "Unknown": 14, "NeverOpen": 16},
			FailedNodes:       15,
			BlockingBudgets:   11,
			OldestMaintenance: map[coordinationv1alpha1.NodeMaintenanceStage]time.Duration{"Drain": 90 * time.Minute, "Idle": -time.Second, "Unknown": time.Hour},
			OldestBlocker:     map[maintenance.BlockerCause]time.Duration{maintenance.BlockerCordonFailed: time.Minute, maintenance.BlockerUnhandled: time.Hour, maintenance.BlockerInterceptor: time.Hour, maintenance.BlockerRequestFailed: -time.Second},
		}
	})
	expect(t, `
# HELP nodemaintenance_controller_blocked_nodes [ALPHA] Number of nodes that cannot be maintained or released without an intervention, by cause: CordonFailed or NodeStatusFailed.
# TYPE nodemaintenance_controller_blocked_nodes gauge
nodemaintenance_controller_blocked_nodes{cause="CordonFailed"} 3
nodemaintenance_controller_blocked_nodes{cause="NodeStatusFailed"} 0
# HELP nodemaintenance_controller_blocked_pods [ALPHA] Number of pods within the drain targets whose eviction needs an intervention, by cause.
# TYPE nodemaintenance_controller_blocked_pods gauge
nodemaintenance_controller_blocked_pods{cause="ComesBack"} 0
nodemaintenance_controller_blocked_pods{cause="DisruptionBudget"} 8
nodemaintenance_controller_blocked_pods{cause="EvictionRefused"} 0
nodemaintenance_controller_blocked_pods{cause="InterceptorUnresponsive"} 0
nodemaintenance_controller_blocked_pods{cause="KeptByMaintenance"} 0
nodemaintenance_controller_blocked_pods{cause="RequestFailed"} 5
nodemaintenance_controller_blocked_pods{cause="RequestRefused"} 0
nodemaintenance_controller_blocked_pods{cause="StuckTerminating"} 0
nodemaintenance_controller_blocked_pods{cause="Unhandled"} 7
# HELP nodemaintenance_controller_blocking_budgets [ALPHA] Number of PodDisruptionBudgets that block pods within the drain targets. Several that block a pod together count as one.
# TYPE nodemaintenance_controller_blocking_budgets gauge
nodemaintenance_controller_blocking_budgets 11
# HELP nodemaintenance_controller_maintenances [ALPHA] Number of maintenances by stage: Idle, Cordon, Drain or Complete.
# TYPE nodemaintenance_controller_maintenances gauge
nodemaintenance_controller_maintenances{stage="Complete"} 4
nodemaintenance_controller_maintenances{stage="Cordon"} 0
nodemaintenance_controller_maintenances{stage="Drain"} 2
nodemaintenance_controller_maintenances{stage="Idle"} 1
# HELP nodemaintenance_controller_nodes [ALPHA] Number of nodes that a maintenance selects, by the stage that they are in: Idle, Cordon, Drain or Complete.
# TYPE nodemaintenance_controller_nodes gauge
nodemaintenance_controller_nodes{stage="Complete"} 0
nodemaintenance_controller_nodes{stage="Cordon"} 40
nodemaintenance_controller_nodes{stage="Drain"} 50
nodemaintenance_controller_nodes{stage="Idle"} 30
# HELP nodemaintenance_controller_oldest_blocker_seconds [ALPHA] Time in seconds for which pods or nodes have been blocked that need an intervention, the longest of each cause. 0 if there are none.
# TYPE nodemaintenance_controller_oldest_blocker_seconds gauge
nodemaintenance_controller_oldest_blocker_seconds{cause="ComesBack"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="CordonFailed"} 60
nodemaintenance_controller_oldest_blocker_seconds{cause="DisruptionBudget"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="EvictionRefused"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="InterceptorUnresponsive"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="KeptByMaintenance"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="NodeStatusFailed"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="RequestFailed"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="RequestRefused"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="StuckTerminating"} 0
nodemaintenance_controller_oldest_blocker_seconds{cause="Unhandled"} 3600
# HELP nodemaintenance_controller_oldest_maintenance_seconds [ALPHA] Time in seconds for which the maintenance that has been in a stage the longest has been there, by stage: Idle, Cordon, Drain or Complete. 0 if there is none, and one that is complete does not count.
# TYPE nodemaintenance_controller_oldest_maintenance_seconds gauge
nodemaintenance_controller_oldest_maintenance_seconds{stage="Complete"} 0
nodemaintenance_controller_oldest_maintenance_seconds{stage="Cordon"} 0
nodemaintenance_controller_oldest_maintenance_seconds{stage="Drain"} 5400
nodemaintenance_controller_oldest_maintenance_seconds{stage="Idle"} 0
# HELP nodemaintenance_controller_pods [ALPHA] Number of pods on nodes that are drained, by state: pending (eviction not requested yet) or evicting.
# TYPE nodemaintenance_controller_pods gauge
nodemaintenance_controller_pods{state="evicting"} 70
nodemaintenance_controller_pods{state="pending"} 60
# HELP nodemaintenance_controller_failed_nodes [ALPHA] Number of nodes that have not come back in time from a maintenance with a rollout.
# TYPE nodemaintenance_controller_failed_nodes gauge
nodemaintenance_controller_failed_nodes 15
# HELP nodemaintenance_controller_waiting_nodes [ALPHA] Number of nodes that wait until a maintenance may begin with them, by what they wait for: AdmissionFailed, BeingRemoved, Budget, Disabled, Frozen, Halted, MaxConcurrent, NeverOpen (no time at which all budgets of the node are open in the next 30 days), NotCurrent, OlderMaintenance, Paused, Settling, StatusFailed, Topology or Window. A node counts for each maintenance.
# TYPE nodemaintenance_controller_waiting_nodes gauge
nodemaintenance_controller_waiting_nodes{reason="AdmissionFailed"} 0
nodemaintenance_controller_waiting_nodes{reason="BeingRemoved"} 0
nodemaintenance_controller_waiting_nodes{reason="Budget"} 0
nodemaintenance_controller_waiting_nodes{reason="Disabled"} 0
nodemaintenance_controller_waiting_nodes{reason="Frozen"} 13
nodemaintenance_controller_waiting_nodes{reason="Halted"} 0
nodemaintenance_controller_waiting_nodes{reason="MaxConcurrent"} 0
nodemaintenance_controller_waiting_nodes{reason="NeverOpen"} 16
nodemaintenance_controller_waiting_nodes{reason="NotCurrent"} 0
nodemaintenance_controller_waiting_nodes{reason="OlderMaintenance"} 0
nodemaintenance_controller_waiting_nodes{reason="Paused"} 0
nodemaintenance_controller_waiting_nodes{reason="Settling"} 0
nodemaintenance_controller_waiting_nodes{reason="StatusFailed"} 0
nodemaintenance_controller_waiting_nodes{reason="Topology"} 0
nodemaintenance_controller_waiting_nodes{reason="Window"} 12
`, gauges...)

	// The next controller takes over before the last one has ended.
	stopNext := Track(func() Counts { return Counts{PendingPods: 1} })
	stop()
	expect(t, `
# HELP nodemaintenance_controller_pods [ALPHA] Number of pods on nodes that are drained, by state: pending (eviction not requested yet) or evicting.
# TYPE nodemaintenance_controller_pods gauge
nodemaintenance_controller_pods{state="evicting"} 0
nodemaintenance_controller_pods{state="pending"} 1
`, "nodemaintenance_controller_pods")
	stopNext()
	expect(t, none, gauges...)
}
