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
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// unrecordedInterval is for how long nothing is recorded of a maintenance that needs no admission, after
// an API server has dropped it.
const unrecordedInterval = 5 * time.Minute

// recordsClaims reports whether the status of a node can say which maintenances have begun with it.
func (c *Controller) recordsClaims(node string, now time.Time) bool {
	if c.fleet == nil {
		return false
	}
	until, found := c.unrecorded.Load(node)
	if !found {
		return true
	}
	return !now.Before(until.(time.Time))
}

// forgiveUnrecorded returns the error of a write of the status of a node, but nil if an API server has only
// dropped admissions that were not needed: its gate is off, and it knows no budgets.
func (c *Controller) forgiveUnrecorded(s *nodeSync, err error) error {
	var dropped *write.UnrecordedError
	if !errors.As(err, &dropped) {
		return err
	}
	unneeded := func(uid types.UID) bool {
		return slices.ContainsFunc(s.Specs, func(o progress.Spec) bool {
			return o.UID == uid && o.Rollout == nil && maintenance.AdmissionOf(s.Node, o.UID) == nil && !c.progress.Limits.Selects(s.Node)
		})
	}
	for uid := range dropped.UIDs {
		if !unneeded(uid) {
			return err
		}
	}
	c.unrecorded.Store(s.Node.Name, s.Now.Add(unrecordedInterval))
	return nil
}

func isPodReady(pod *v1.Pod) bool { return podutil.IsPodReady(pod) }

// boots has since when nodes are Ready in another boot than at their drain, as far as this process has
// seen it: the clock of a node may be wrong. After a restart, they have to be Ready for a while again.
type boots struct {
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

func newBoots() *boots { return &boots{nodes: map[string]map[string]boot{}} }

// readySince returns since when the node is Ready in another boot than at its drain, and when it was for
// the first time; zero if it is not.
func (b *boots) readySince(node *v1.Node, drained string, now time.Time) (since, first time.Time) {
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

func (b *boots) forget(node string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.nodes, node)
}
