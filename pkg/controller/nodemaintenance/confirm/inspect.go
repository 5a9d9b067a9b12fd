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

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// Assume records what the API server has said of the drain of a node, as if it was read at that time.
func (c *Confirmer) Assume(node *v1.Node, specs []progress.Spec, targets maintenance.Targets, at time.Time) {
	known := c.drains.get(node.Name)
	known.lock.Lock()
	defer known.lock.Unlock()
	known.at, known.of, known.targets, known.err = at, drainOf(node, specs), targets, nil
}

// Age has what was read of the drain of a node be of that time.
func (c *Confirmer) Age(node string, at time.Time) {
	known := c.drains.get(node)
	known.lock.Lock()
	defer known.lock.Unlock()
	known.at = at
}

// Remembers reports whether something is known of the drain of a node.
func (c *Confirmer) Remembers(node string) bool {
	c.drains.lock.Lock()
	defer c.drains.lock.Unlock()
	return c.drains.nodes[node] != nil
}
