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
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// DeleteResult is the result of an attempt to delete a pod.
type DeleteResult string

const (
	// Deleted means that the API server accepted the deletion.
	Deleted DeleteResult = "deleted"
	// Failed means that the deletion failed and will be retried.
	Failed DeleteResult = "failed"
)

// maintenanceDeletes counts the deletions by the interceptor. The durations of the terminations are
// in the metrics of the nodemaintenance-controller.
var maintenanceDeletes = metrics.NewCounterVec(&metrics.CounterOpts{
	// A literal: upstream's parser of metrics reads constants only from the same file.
	Subsystem:      "daemonset_controller",
	Name:           "maintenance_pod_deletes_total",
	Help:           "Number of attempts to delete a DaemonSet pod for the maintenance of its node, by result: deleted or failed.",
	StabilityLevel: metrics.ALPHA,
}, []string{"result"})

var registerMaintenance sync.Once

// RegisterMaintenance registers the metrics for node maintenances.
func RegisterMaintenance() {
	registerMaintenance.Do(func() { legacyregistry.MustRegister(maintenanceDeletes) })
}

// CountMaintenanceDelete counts an attempt to delete a pod.
func CountMaintenanceDelete(result DeleteResult) {
	maintenanceDeletes.WithLabelValues(string(result)).Inc()
}
