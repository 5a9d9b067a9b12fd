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

package maintenance

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Departure says whether the pods of a node have to leave it, and how soon. More is sooner.
type Departure int

const (
	// NotDeparting: nothing is known that makes pods leave.
	NotDeparting Departure = iota
	// DeparturePlanned: a maintenance of the node is planned (KEP-5683).
	DeparturePlanned
	// Departing: a maintenance of the node is in progress, the node shuts down, or others remove it.
	Departing
)

// DepartureOf returns the departure of a node. It believes the conditions whoever has written them: they only serve to
// choose between pods of which one has to go in any case.
func DepartureOf(node *v1.Node) Departure {
	if IsBeingRemoved(node) {
		return Departing
	}
	departure := NotDeparting
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		if condition.Status != v1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case v1.NodeMaintenanceInProgress, v1.NodeDrainInProgress, v1.NodeGracefulNodeShutdownInProgress:
			return Departing
		case v1.NodeMaintenancePlanned:
			departure = DeparturePlanned
		}
	}
	return departure
}

// ReasonInProgress is the reason of the condition MaintenanceInProgress of a node that NodeMaintenances claim. With
// another one, another client has written it.
const ReasonInProgress = "MaintenanceInProgress"

// MaxClockDifference is by how much the clock of who writes a time may differ from that of who reads it.
const MaxClockDifference = time.Minute

// ClaimedSince returns since when maintenances claim the node without interruption, and keep it cordoned; zero if its
// status does not say that they do, or names a time that is yet to come: whoever may write the status of the node can
// write that.
func ClaimedSince(node *v1.Node, now time.Time) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == v1.NodeMaintenanceInProgress && c.Status == v1.ConditionTrue && c.Reason == ReasonInProgress &&
			!c.LastTransitionTime.After(now.Add(MaxClockDifference)) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
