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

package requests

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// WaitingFor returns the pods of a node for which a write waits, by their UIDs, sorted.
func (q *Queue) WaitingFor(node string) []types.UID {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.nodes[node] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(q.nodes[node].waiting))
}

// Len returns how many writes wait.
func (q *Queue) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.line.Len()
}

// TryGet is Get, but returns false if no write may begin.
func (q *Queue) TryGet() (Write, bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.next()
}

// Limit sets how many workers there are, and how many of them may work for one namespace.
func (q *Queue) Limit(workers, ofNamespace int) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.line.Limit(workers, ofNamespace)
}

// Remembers reports whether requests for pods of a node are remembered.
func (c *Contests) Remembers(node string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.nodes[node] != nil
}
