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
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// holdUps has what protects the pods of nodes from the escalations of maintenances, and when that has ended: what was
// protected is not deleted in the same moment. After a restart, notice is given anyway: see escalationGrace.
type holdUps struct {
	lock  sync.Mutex
	nodes map[string]*nodeHoldUps
}

// nodeHoldUps is what protects the pods of one node.
type nodeHoldUps struct {
	uid types.UID
	// holders are the maintenances that hold up what others have come to, also for pods to which that would do nothing
	// before. ended is when one of them has ended.
	holders sets.Set[types.UID]
	ended   time.Time
	// kept are the pods that do not leave, as policies say, and freed has since when others that were kept do.
	kept  sets.Set[types.UID]
	freed map[types.UID]time.Time
	// told is what events have said.
	told sets.Set[string]
}

func newHoldUps() *holdUps { return &holdUps{nodes: map[string]*nodeHoldUps{}} }

// see records which maintenances drain a node, and which of its pods they keep. The verdicts are those of the pods.
func (h *holdUps) see(node *v1.Node, specs []progress.Spec, pods []*v1.Pod, verdicts []progress.Verdict, now time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if !decision.Escalates(specs) {
		delete(h.nodes, node.Name)
		return
	}
	found := h.nodes[node.Name]
	if found == nil || found.uid != node.UID {
		found = &nodeHoldUps{uid: node.UID, holders: storedHolders(node), told: sets.New[string]()}
		h.nodes[node.Name] = found
	}
	for holder := range found.holders {
		if !slices.ContainsFunc(specs, func(o progress.Spec) bool { return o.UID == holder && o.Drains() }) {
			found.holders.Delete(holder)
			found.ended = now
		}
	}
	found.seePods(pods, verdicts, now)
}

// seePods records which pods are kept, and which are not any more: that need not be because a maintenance has ended.
func (n *nodeHoldUps) seePods(pods []*v1.Pod, verdicts []progress.Verdict, now time.Time) {
	kept, freed := sets.New[types.UID](), map[types.UID]time.Time{}
	for i, pod := range pods {
		since, wasFreed := n.freed[pod.UID]
		switch {
		case len(verdicts[i].KeptBy) > 0:
			kept.Insert(pod.UID)
		case n.kept.Has(pod.UID):
			freed[pod.UID] = now
		case wasFreed:
			freed[pod.UID] = since
		}
	}
	n.kept, n.freed = kept, freed
}

// storedHolders returns the UIDs of the maintenances that drain a node according to its status: one that has held up
// others may have ended while no controller ran. That of a shutdown holds up none.
func storedHolders(node *v1.Node) sets.Set[types.UID] {
	uids := sets.New[types.UID]()
	for _, a := range maintenance.Admissions(node) {
		if a.ReturningTime == nil && a.DoneTime == nil && a.MaintenanceName != maintenance.ShutdownName(node.Name) {
			uids.Insert(a.MaintenanceUID)
		}
	}
	return uids
}

// note records who holds up others on a node, and returns what is held up of which no event has told.
func (h *holdUps) note(node string, holders sets.Set[types.UID], heldUp []*decision.HeldUp) (news []*decision.HeldUp) {
	h.lock.Lock()
	defer h.lock.Unlock()
	found := h.nodes[node]
	if found == nil {
		return nil
	}
	said := sets.New[string]()
	for _, held := range heldUp {
		text := held.String()
		if !found.told.Has(text) && !said.Has(text) {
			news = append(news, held)
		}
		said.Insert(text)
	}
	found.holders, found.told = holders, said
	return news
}

// ended returns when something has ended that had protected a pod of a node from escalations; zero if nothing has.
func (h *holdUps) ended(node *v1.Node, pod types.UID) time.Time {
	h.lock.Lock()
	defer h.lock.Unlock()
	found := h.nodes[node.Name]
	if found == nil || found.uid != node.UID {
		return time.Time{}
	}
	if freed := found.freed[pod]; freed.After(found.ended) {
		return freed
	}
	return found.ended
}

func (h *holdUps) forget(node string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	delete(h.nodes, node)
}
