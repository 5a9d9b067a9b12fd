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

// Package metrics has the metrics of the kubelet about node maintenances: its static pods, and its
// shutdowns.
package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// StopResult is the result of the stop of a static pod.
type StopResult string

const (
	// Held means that the pod has ended and stays away until the end of the maintenance.
	Held StopResult = "held"
	// Refused means that the pod was started again, because the control plane did not work
	// without it.
	Refused StopResult = "refused"
	// Released means that the maintenance ended before the stop.
	Released StopResult = "released"
)

// CheckpointOperation is what failed with the checkpoint.
type CheckpointOperation string

const (
	// Read is the read at the start of the kubelet.
	Read CheckpointOperation = "read"
	// Write is each later change.
	Write CheckpointOperation = "write"
)

// ShutdownDrainResult is the result of the drain of a node that shuts down.
type ShutdownDrainResult string

const (
	// Drained means that all pods have left.
	Drained ShutdownDrainResult = "drained"
	// TooShort means that the shutdown could not be delayed until then.
	TooShort ShutdownDrainResult = "too_short"
	// NotStarted means that no maintenance has drained the node, for example because the API server
	// did not answer.
	NotStarted ShutdownDrainResult = "not_started"
	// CalledOff means that another client has ended the maintenance.
	CalledOff ShutdownDrainResult = "called_off"
	// StaticPodsNeeded means that all pods have left, but static pods that the control plane needs.
	StaticPodsNeeded ShutdownDrainResult = "static_pods_needed"
	// PodsStay means that the node is drained, and that pods are left which maintenances leave alone.
	PodsStay ShutdownDrainResult = "pods_stay"
	// Canceled means that the node did not shut down.
	Canceled ShutdownDrainResult = "canceled"
)

var (
	staticPods = metrics.NewGaugeVec(&metrics.GaugeOpts{
		// Literals: upstream's parser of metrics reads constants only from the same file.
		Subsystem:      "kubelet",
		Name:           "maintenance_static_pods",
		Help:           "Number of static pods that a maintenance of the node affects, by state: stopping, ended, held or refused.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"state"})

	stops = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "kubelet",
		Name:           "maintenance_static_pod_stops_total",
		Help:           "Number of static pods that were stopped for a maintenance of the node, by result: held, refused or released.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	checkpointErrors = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "kubelet",
		Name:           "maintenance_checkpoint_errors_total",
		Help:           "Number of failed operations on the checkpoint of the static pods that a maintenance of the node affects, by operation: read or write.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})

	shutdownDrains = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "kubelet",
		Name:           "shutdown_drains_total",
		Help:           "Number of shutdowns of the node for which a maintenance was to drain it, also before restarts, by result: drained, too_short, not_started, called_off, static_pods_needed, pods_stay or canceled.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	shutdownPodsLeft = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem:      "kubelet",
		Name:           "shutdown_drain_pods_left",
		Help:           "Number of pods that the drain for the last shutdown of the node has left, which were terminated afterwards.",
		StabilityLevel: metrics.ALPHA,
	})
)

var register sync.Once

// Register registers the metrics.
func Register() {
	register.Do(func() {
		legacyregistry.MustRegister(staticPods, stops, checkpointErrors, shutdownDrains, shutdownPodsLeft)
		// Series start at 0, so that an increase shows the first event.
		for _, result := range []StopResult{Held, Refused, Released} {
			stops.WithLabelValues(string(result))
		}
		for _, operation := range []CheckpointOperation{Read, Write} {
			checkpointErrors.WithLabelValues(string(operation))
		}
		for _, result := range []ShutdownDrainResult{Drained, TooShort, NotStarted, CalledOff, StaticPodsNeeded, PodsStay, Canceled} {
			shutdownDrains.WithLabelValues(string(result))
		}
	})
}

// SetStaticPods sets the number of pods in each state.
func SetStaticPods(counts map[string]int) {
	for state, count := range counts {
		staticPods.WithLabelValues(state).Set(float64(count))
	}
}

// CountStop counts the end of a stop.
func CountStop(result StopResult) { stops.WithLabelValues(string(result)).Inc() }

// CountCheckpointError counts a failed operation.
func CountCheckpointError(operation CheckpointOperation) {
	checkpointErrors.WithLabelValues(string(operation)).Inc()
}

// AddShutdownDrains counts drains for shutdowns.
func AddShutdownDrains(result ShutdownDrainResult, count int) {
	shutdownDrains.WithLabelValues(string(result)).Add(float64(count))
}

// SetShutdownPodsLeft sets the number of pods that the last drain for a shutdown has left.
func SetShutdownPodsLeft(count int) { shutdownPodsLeft.Set(float64(count)) }
