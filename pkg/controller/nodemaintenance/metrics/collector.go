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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-helpers/node/maintenance"
)

// Counts is how much is maintained at one moment.
type Counts struct {
	// Maintenances is the number of maintenances by their stage.
	Maintenances map[coordinationv1alpha1.NodeMaintenanceStage]int
	// Nodes is the number of selected nodes by the stage that they are in: where several
	// maintenances select a node, it counts once.
	Nodes map[coordinationv1alpha1.NodeMaintenanceStage]int
	// PendingPods is the number of pods on nodes that are drained whose eviction was not requested
	// yet, EvictingPods the number of those whose eviction was.
	PendingPods, EvictingPods int
	// BlockedPods is the number of pods within the drain targets that need an intervention, by
	// cause. Other causes are not shown.
	BlockedPods map[maintenance.BlockerCause]int
	// BlockedNodes is the number of nodes that cannot be maintained or released without an
	// intervention, by cause. Causes that concern pods are not shown.
	BlockedNodes map[maintenance.BlockerCause]int
	// WaitingNodes is the number of nodes that wait until a maintenance may begin with them, by what
	// they wait for: see WaitReason. FailedNodes is that of nodes that have not come back in time. A node
	// counts for each maintenance.
	WaitingNodes map[coordinationv1alpha1.NodeMaintenanceWaitReason]int
	FailedNodes  int
	// BlockingBudgets is the number of PodDisruptionBudgets that block pods. Several that block a
	// pod together count as one.
	BlockingBudgets int
	// OldestMaintenance is for how long a maintenance has been in a stage, the longest of each
	// stage. One that is complete does not count.
	OldestMaintenance map[coordinationv1alpha1.NodeMaintenanceStage]time.Duration
	// OldestBlocker is for how long pods or nodes have been blocked, the longest of each cause.
	// Other causes are not shown.
	OldestBlocker map[maintenance.BlockerCause]time.Duration
}

// stages are the values of the label stage.
var stages = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
	coordinationv1alpha1.NodeMaintenanceStageComplete,
}

// waitNeverOpen is the value of the label reason for nodes whose budgets are never open together: unlike those
// that wait for a window, they wait until somebody changes a budget.
const waitNeverOpen coordinationv1alpha1.NodeMaintenanceWaitReason = "NeverOpen"

// WaitReason returns the value of the label reason for a wait: its reason, but for Window, of which it tells the
// waits apart that have no end.
func WaitReason(wait *coordinationv1alpha1.NodeMaintenanceWait) coordinationv1alpha1.NodeMaintenanceWaitReason {
	if maintenance.IsNeverOpen(wait) {
		return waitNeverOpen
	}
	return wait.Reason
}

// waitReasons are the values of the label reason.
var waitReasons = []coordinationv1alpha1.NodeMaintenanceWaitReason{
	coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed,
	coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved,
	coordinationv1alpha1.NodeMaintenanceWaitBudget,
	coordinationv1alpha1.NodeMaintenanceWaitDisabled,
	coordinationv1alpha1.NodeMaintenanceWaitFrozen,
	coordinationv1alpha1.NodeMaintenanceWaitHalted,
	coordinationv1alpha1.NodeMaintenanceWaitConcurrency,
	waitNeverOpen,
	coordinationv1alpha1.NodeMaintenanceWaitNotCurrent,
	coordinationv1alpha1.NodeMaintenanceWaitOlderMaintenance,
	coordinationv1alpha1.NodeMaintenanceWaitPaused,
	coordinationv1alpha1.NodeMaintenanceWaitSettling,
	coordinationv1alpha1.NodeMaintenanceWaitStatusFailed,
	coordinationv1alpha1.NodeMaintenanceWaitTopology,
	coordinationv1alpha1.NodeMaintenanceWaitWindow,
}

// collector counts when the metrics are read. Counters that are updated by events would be wrong
// after a missed event and after a restart.
type collector struct {
	metrics.BaseStableCollector

	source atomic.Pointer[func() Counts]
}

var (
	// Literal names, because upstream's parser of metrics, which makes docs/reference/metrics.md,
	// reads constants only from the same file.
	maintenancesByStage = metrics.NewDesc("nodemaintenance_controller_maintenances",
		"Number of maintenances by stage: Idle, Cordon, Drain or Complete.",
		[]string{"stage"}, nil, metrics.ALPHA, "")
	nodesByStage = metrics.NewDesc("nodemaintenance_controller_nodes",
		"Number of nodes that a maintenance selects, by the stage that they are in: Idle, Cordon, Drain or Complete.",
		[]string{"stage"}, nil, metrics.ALPHA, "")
	podsByState = metrics.NewDesc("nodemaintenance_controller_pods",
		"Number of pods on nodes that are drained, by state: pending (eviction not requested yet) or evicting.",
		[]string{"state"}, nil, metrics.ALPHA, "")
	blockedPodsByCause = metrics.NewDesc("nodemaintenance_controller_blocked_pods",
		"Number of pods within the drain targets whose eviction needs an intervention, by cause.",
		[]string{"cause"}, nil, metrics.ALPHA, "")
	blockedNodesByCause = metrics.NewDesc("nodemaintenance_controller_blocked_nodes",
		"Number of nodes that cannot be maintained or released without an intervention, by cause: CordonFailed or NodeStatusFailed.",
		[]string{"cause"}, nil, metrics.ALPHA, "")
	waitingNodesByReason = metrics.NewDesc("nodemaintenance_controller_waiting_nodes",
		"Number of nodes that wait until a maintenance may begin with them, by what they wait for: AdmissionFailed, BeingRemoved, Budget, Disabled, Frozen, Halted, MaxConcurrent, NeverOpen (no time at which all budgets of the node are open in the next 30 days), NotCurrent, OlderMaintenance, Paused, Settling, StatusFailed, Topology or Window. A node counts for each maintenance.",
		[]string{"reason"}, nil, metrics.ALPHA, "")
	failedNodes = metrics.NewDesc("nodemaintenance_controller_failed_nodes",
		"Number of nodes that have not come back in time from a maintenance with a rollout.",
		nil, nil, metrics.ALPHA, "")
	blockingBudgets = metrics.NewDesc("nodemaintenance_controller_blocking_budgets",
		"Number of PodDisruptionBudgets that block pods within the drain targets. Several that block a pod together count as one.",
		nil, nil, metrics.ALPHA, "")
	oldestMaintenance = metrics.NewDesc("nodemaintenance_controller_oldest_maintenance_seconds",
		"Time in seconds for which the maintenance that has been in a stage the longest has been there, by stage: Idle, Cordon, Drain or Complete. 0 if there is none, and one that is complete does not count.",
		[]string{"stage"}, nil, metrics.ALPHA, "")
	oldestBlocker = metrics.NewDesc("nodemaintenance_controller_oldest_blocker_seconds",
		"Time in seconds for which pods or nodes have been blocked that need an intervention, the longest of each cause. 0 if there are none.",
		[]string{"cause"}, nil, metrics.ALPHA, "")

	maintenances = &collector{}
)

// Track calls count whenever the metrics are read, until stop is called: a controller that does not
// run has no counts.
func Track(count func() Counts) (stop func()) {
	maintenances.source.Store(&count)
	return func() { maintenances.source.CompareAndSwap(&count, nil) }
}

// DescribeWithStability sends the descriptions of all metrics.
func (c *collector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- maintenancesByStage
	descriptions <- nodesByStage
	descriptions <- podsByState
	descriptions <- blockedPodsByCause
	descriptions <- blockedNodesByCause
	descriptions <- waitingNodesByReason
	descriptions <- failedNodes
	descriptions <- blockingBudgets
	descriptions <- oldestMaintenance
	descriptions <- oldestBlocker
}

// CollectWithStability sends all metrics. Every value of a label has a series, even if it is zero, so
// that alerts can use it.
func (c *collector) CollectWithStability(samples chan<- metrics.Metric) {
	count := c.source.Load()
	if count == nil {
		return
	}
	counts := (*count)()
	gauge := func(description *metrics.Desc, value int, labels ...string) {
		samples <- metrics.NewLazyConstMetric(description, metrics.GaugeValue, float64(value), labels...)
	}
	age := func(description *metrics.Desc, value time.Duration, label string) {
		// The clocks of those who have written the objects may be ahead.
		samples <- metrics.NewLazyConstMetric(description, metrics.GaugeValue, max(value.Seconds(), 0), label)
	}
	for _, stage := range stages {
		gauge(maintenancesByStage, counts.Maintenances[stage], string(stage))
		gauge(nodesByStage, counts.Nodes[stage], string(stage))
		age(oldestMaintenance, counts.OldestMaintenance[stage], string(stage))
	}
	gauge(podsByState, counts.PendingPods, "pending")
	gauge(podsByState, counts.EvictingPods, "evicting")
	gauge(blockingBudgets, counts.BlockingBudgets)
	gauge(failedNodes, counts.FailedNodes)
	for _, reason := range waitReasons {
		gauge(waitingNodesByReason, counts.WaitingNodes[reason], string(reason))
	}
	for _, cause := range maintenance.BlockerCauses() {
		if cause.Blocked() {
			age(oldestBlocker, counts.OldestBlocker[cause], string(cause))
		}
		switch {
		case cause.OfNode() && cause.Blocked():
			gauge(blockedNodesByCause, counts.BlockedNodes[cause], string(cause))
		case cause.Blocked():
			gauge(blockedPodsByCause, counts.BlockedPods[cause], string(cause))
		}
	}
}
