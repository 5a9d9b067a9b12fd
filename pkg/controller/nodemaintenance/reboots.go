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

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// reboots has since when nodes are Ready in another boot than at their drain, as far as this process has
// seen it: the clock of a node may be wrong. After a restart, they have to be Ready for a while again.
type reboots struct {
	lock sync.Mutex
	// nodes has them by the name of the node, and by the boot at the drain.
	nodes map[string]map[string]boot
}

// boot is the other boot, and since when the node is Ready in it; zero while it is not. first is when it
// was Ready in another boot for the first time, whatever happened since.
type boot struct {
	id           string
	since, first time.Time
}

func newReboots() *reboots { return &reboots{nodes: map[string]map[string]boot{}} }

// readySince returns since when the node is Ready in another boot than at its drain, and when it was for
// the first time; zero if it is not.
func (b *reboots) readySince(node *v1.Node, drained string, now time.Time) (since, first time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	current := node.Status.NodeInfo.BootID
	if current == drained {
		// Somebody else than its kubelet has reported another one.
		delete(b.nodes[node.Name], drained)
		return time.Time{}, time.Time{}
	}
	known := b.nodes[node.Name][drained]
	switch {
	case !maintenance.IsReady(node):
		known.since = time.Time{}
	case known.since.IsZero() || known.id != current:
		known.id, known.since = current, now
	}
	if known.first.IsZero() {
		known.first = known.since
	}
	if b.nodes[node.Name] == nil {
		b.nodes[node.Name] = map[string]boot{}
	}
	b.nodes[node.Name][drained] = known
	return known.since, known.first
}

func (b *reboots) forget(node string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.nodes, node)
}
