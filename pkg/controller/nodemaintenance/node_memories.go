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

package nodemaintenance

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/node/maintenance"

	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
)

// nodeMemories are what this process remembers of nodes. Each is empty after a restart, and only delays or explains what the
// objects and the caches say, but for ownCordons.
type nodeMemories struct {
	contests   *requests.Contests
	liveDrains *liveDrains
	returns    *returns.Returns
	holdUps    *holdUps
	// boots has since when nodes are Ready.
	boots *boots
	// ownCordons has, by node name, each ownCordon that the status of the node does not say yet: see
	// isOwnCordon. After a restart it is empty. If the status could not be written before, a cordon
	// by hand is then mistaken for one of this controller, and that of a deselected node stays.
	ownCordons sync.Map
	// unrecorded has, by node name, until when no admission is recorded that is not needed: see
	// forgiveUnrecorded.
	unrecorded sync.Map
	// ownConditions has, by node name, the writtenConditions: see isRestoration.
	ownConditions sync.Map
}

func newNodeMemories(owners *returns.OwnerInformers) nodeMemories {
	return nodeMemories{contests: requests.NewContests(), liveDrains: newLiveDrains(), returns: returns.New(owners), holdUps: newHoldUps(), boots: newBoots()}
}

// forget forgets a node that is gone.
func (m *nodeMemories) forget(node string) {
	m.contests.Forget(node)
	m.liveDrains.forget(node)
	m.returns.Forget(node)
	m.holdUps.forget(node)
	m.boots.forget(node)
	m.ownCordons.Delete(node)
	m.unrecorded.Delete(node)
	m.ownConditions.Delete(node)
}

// remember returns what a decision about a node takes from the memories.
func (c *Controller) remember(node *v1.Node, now time.Time) decision.Memories {
	known := decision.Memories{
		CompletionCordoned: c.progress.IsCordoned(node.Name),
		Failures:           c.failures.Of(node.Name),
		Reverts:            c.pacer.RevertsOf(node.Name, now),
		StatusUndone:       c.writer.IsStatusUndone(node),
		Settles:            c.returns.Settles(node.Name, now),
		RecordsClaims:      c.recordsClaims(node.Name, now),
	}
	known.Own = c.ownCordon(node)
	if found, ok := c.ownConditions.Load(node.Name); ok {
		known.OwnConditions = found.(*decision.WrittenConditions)
	}
	if known.Settles > 0 {
		known.Unsettled = c.returns.Unsettled(node.Name, now)
	}
	if len(maintenance.Admissions(node)) == 0 {
		c.boots.forget(node.Name)
	}
	return known
}

// nodeLookups reads what only few decisions need.
type nodeLookups struct{ c *Controller }

func (l nodeLookups) WaitingOn(names []string) []string { return l.c.progress.WaitingOn(names) }

func (l nodeLookups) AttachedVolumes(node *v1.Node, staying []*v1.Pod) []string {
	return l.c.attachedVolumes(node, staying)
}

func (l nodeLookups) DaemonSets() []*appsv1.DaemonSet {
	if l.c.fleet == nil {
		return nil
	}
	all, err := l.c.fleet.DaemonSets.Lister().List(labels.Everything())
	if err != nil {
		return nil // The lister of a cache returns no error.
	}
	return all
}

func (l nodeLookups) ReadySince(node *v1.Node, drained string, now time.Time) (since, first time.Time) {
	return l.c.boots.readySince(node, drained, now)
}

func (l nodeLookups) IsUnknown(a *v1.MaintenanceAdmission) bool {
	return !l.c.progress.Knows(a.MaintenanceName, a.MaintenanceUID) && !l.c.progress.IsGone(a.MaintenanceUID)
}
