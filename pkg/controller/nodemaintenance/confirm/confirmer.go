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

package confirm

import (
	"time"

	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/clock"
)

// Confirmer asks the API server.
type Confirmer struct {
	// writer has the clients.
	writer *write.Writer
	clock  clock.PassiveClock

	maintenances coordinationlisters.NodeMaintenanceLister
	nodes        corelisters.NodeLister
	pods         corelisters.PodLister

	claims liveClaims
	drains *liveDrains
}

// New returns one that compares what the API server says with what these caches have.
func New(writer *write.Writer, clock clock.PassiveClock, maintenances coordinationlisters.NodeMaintenanceLister, nodes corelisters.NodeLister, pods corelisters.PodLister) *Confirmer {
	return &Confirmer{writer: writer, clock: clock, maintenances: maintenances, nodes: nodes, pods: pods, drains: newLiveDrains()}
}

// Forget forgets what was read of the drain of a node.
func (c *Confirmer) Forget(node string) { c.drains.forget(node) }

// isCurrent reports whether what was read at a time is younger than this age. The clock on the wall decides: Go's
// monotonic clock stands still while the machine is suspended, and what was read before would be current afterwards.
func isCurrent(now, read time.Time, age time.Duration) bool {
	since := now.Round(0).Sub(read.Round(0))
	return since >= 0 && since < age
}
