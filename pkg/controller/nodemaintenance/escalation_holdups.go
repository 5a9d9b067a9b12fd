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
)

// holdUps has which maintenances hold up the escalations of others on nodes, and when one of them has ended: what
// they have protected is not deleted in the same moment. After a restart, notice is given anyway: see
// escalationGrace.
type holdUps struct {
	lock  sync.Mutex
	nodes map[string]*nodeHoldUps
}

// nodeHoldUps are the escalations that are held up on one node.
type nodeHoldUps struct {
	uid     types.UID
	holders sets.Set[types.UID]
	ended   time.Time
	// told is what events have said.
	told sets.Set[string]
}

func newHoldUps() *holdUps { return &holdUps{nodes: map[string]*nodeHoldUps{}} }

// see records which maintenances drain a node.
func (h *holdUps) see(node *v1.Node, orders []order, now time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if !escalates(orders) {
		delete(h.nodes, node.Name)
		return
	}
	found := h.nodes[node.Name]
	if found == nil || found.uid != node.UID {
		found = &nodeHoldUps{uid: node.UID, holders: sets.New[types.UID](), told: sets.New[string]()}
		h.nodes[node.Name] = found
	}
	for holder := range found.holders {
		if !slices.ContainsFunc(orders, func(o order) bool { return o.uid == holder && o.drains() }) {
			found.holders.Delete(holder)
			found.ended = now
		}
	}
}

// note records what is held up on a node, and returns that of which no event has told.
func (h *holdUps) note(node string, heldUp []*heldUpEscalation) (news []*heldUpEscalation) {
	h.lock.Lock()
	defer h.lock.Unlock()
	found := h.nodes[node]
	if found == nil {
		return nil
	}
	holders, said := sets.New[types.UID](), sets.New[string]()
	for _, held := range heldUp {
		for _, o := range held.holders {
			holders.Insert(o.uid)
		}
		text := held.String()
		if !found.told.Has(text) && !said.Has(text) {
			news = append(news, held)
		}
		said.Insert(text)
	}
	found.holders, found.told = holders, said
	return news
}

// ended returns when a maintenance has ended that had held up others on a node; zero if none has.
func (h *holdUps) ended(node *v1.Node) time.Time {
	h.lock.Lock()
	defer h.lock.Unlock()
	if found := h.nodes[node.Name]; found != nil && found.uid == node.UID {
		return found.ended
	}
	return time.Time{}
}

func (h *holdUps) forget(node string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	delete(h.nodes, node)
}
