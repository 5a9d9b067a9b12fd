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

// Package metrics holds the metrics of the nodemaintenance-controller. None of them has a
// label by node, pod or maintenance: all values of their labels are from fixed lists. metrics.go has what
// is observed when it happens, collector.go what is counted when it is read.
package metrics

import (
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// subsystem is the prefix of the names.
const subsystem = "nodemaintenance_controller"

var (
	// drainDuration observes how long the pods of one type took to leave all nodes of a
	// maintenance.
	drainDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem,
		Name:      "drain_duration_seconds",
		Help:      "Time in seconds from the start of the stage Drain until no pod of a type was left on the nodes of the maintenance, by pod type: Default, DaemonSet or Static.",
		// From a second, for a few pods without a grace period, to two days, for virtual
		// machines that are moved one by one, or a budget that nobody changes.
		Buckets:        metrics.ExponentialBuckets(1, 3, 12),
		StabilityLevel: metrics.ALPHA,
	}, []string{"pod_type"})

	// stageTransitions counts the stages that were started.
	stageTransitions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "stage_transitions_total",
		Help:           "Number of stages that maintenances started, by stage: Idle, Cordon, Drain or Complete.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"stage"})

	// contestedCordons counts how often another client has made a node schedulable that a
	// maintenance holds.
	contestedCordons = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "contested_cordons_total",
		Help:           "Number of times that another client made a node schedulable during its maintenance.",
		StabilityLevel: metrics.ALPHA,
	})

	// nodeAdmissions counts the nodes with which maintenances could begin that had to wait for it.
	nodeAdmissions = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "node_admissions_total",
		Help:           "Number of nodes that were admitted to a maintenance, within NodeMaintenanceBudgets and rollouts.",
		StabilityLevel: metrics.ALPHA,
	})

	// evictionRequestsCreated counts the pods whose eviction was requested, also where their
	// request existed already and the controller has joined the requesters.
	evictionRequestsCreated = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "evictionrequests_created_total",
		Help:           "Number of EvictionRequests that the controller created, or joined as a requester.",
		StabilityLevel: metrics.ALPHA,
	})

	// evictionRequestsWithdrawn counts the requests that the controller has left.
	evictionRequestsWithdrawn = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "evictionrequests_withdrawn_total",
		Help:           "Number of EvictionRequests that the controller left as a requester.",
		StabilityLevel: metrics.ALPHA,
	})

	// escalations counts what spec.escalation did to pods, by action.
	escalations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "escalations_total",
		Help:           "Number of acts of spec.escalation on pods, by action: SkipInterceptors, IgnoreBudgets or ForceDelete.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"action"})
)

var register sync.Once

// Register makes the metrics known to the process. It may be called again.
func Register() {
	register.Do(func() {
		legacyregistry.MustRegister(drainDuration, stageTransitions, contestedCordons, nodeAdmissions, evictionRequestsCreated, evictionRequestsWithdrawn, escalations)
		legacyregistry.CustomMustRegister(maintenances)
	})
}

// ObserveDrainDuration observes how long the pods of a type took to leave all nodes
// of a maintenance.
func ObserveDrainDuration(podType v1.PodType, duration time.Duration) {
	drainDuration.WithLabelValues(string(podType)).Observe(duration.Seconds())
}

// CountStageTransition counts a stage that was started.
func CountStageTransition(stage coordinationv1alpha1.NodeMaintenanceStage) {
	stageTransitions.WithLabelValues(string(stage)).Inc()
}

// CountContestedCordon counts a node that another client has made schedulable.
func CountContestedCordon() {
	contestedCordons.Inc()
}

// CountAdmission counts a node that was admitted.
func CountAdmission() {
	nodeAdmissions.Inc()
}

// CountRequested counts requests that were created or joined.
func CountRequested(n int) {
	evictionRequestsCreated.Add(float64(n))
}

// CountWithdrawn counts requests that were left.
func CountWithdrawn(n int) {
	evictionRequestsWithdrawn.Add(float64(n))
}

// CountEscalation counts a pod that an escalation has acted on.
func CountEscalation(action v1.MaintenanceEscalation) {
	escalations.WithLabelValues(string(action)).Inc()
}
