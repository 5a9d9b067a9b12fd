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

package write

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Unseen returns the pods of the node for which the cache of requests lacks the last write.
func (w *Writer) Unseen(node string) sets.Set[types.UID] { return w.unseen.of(node) }

// Remembers reports what is remembered of the writes to a node: its status, and requests for its pods. Tests of what is
// forgotten ask it.
func (w *Writer) Remembers(node string) (ownStatus, unseenRequests bool) {
	_, ownStatus = w.ownStatuses.Load(node)
	return ownStatus, slices.Contains(w.UnseenNodes(), node)
}

// UnseenNodes names the nodes with such pods, as of the last call of Unseen for each of them, sorted.
func (w *Writer) UnseenNodes() []string {
	w.unseen.lock.Lock()
	defer w.unseen.lock.Unlock()
	return slices.Sorted(maps.Keys(w.unseen.nodes))
}

// Unanswered makes a write of a request for a pod of the node, and forgets it again, as if the answer had been lost. Tests
// call it.
func (w *Writer) Unanswered(node string, write func() error) error {
	w.unseen.lock.Lock()
	before := maps.Clone(w.unseen.nodes[node])
	w.unseen.lock.Unlock()
	err := write()
	w.unseen.lock.Lock()
	defer w.unseen.lock.Unlock()
	w.unseen.nodes[node] = before
	return err
}
