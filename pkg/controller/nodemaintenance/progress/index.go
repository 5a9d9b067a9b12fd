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

package progress

import (
	"iter"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

// index finds the names of maintenances by a key, such as the name of a node.
type index[K comparable] map[K]sets.Set[string]

// set adds the maintenance to the key, or removes it.
func (x index[K]) set(key K, name string, found bool) {
	switch names := x[key]; {
	case found && names == nil:
		x[key] = sets.New(name)
	case found:
		names.Insert(name)
	default:
		names.Delete(name)
		if len(names) == 0 {
			delete(x, key)
		}
	}
}

// setAll is set for many keys.
func (x index[K]) setAll(keys iter.Seq[K], name string, found bool) {
	for key := range keys {
		x.set(key, name, found)
	}
}

// replace stores the progress of the maintenance with that name, or removes it if it is nil. It
// returns the nodes of the earlier and of this progress. No other method changes the entries of
// the store.
func (s *Store) replace(name string, fresh *maintenanceProgress) sets.Set[string] {
	affected := sets.New[string]()
	if known := s.maintenances[name]; known != nil {
		affected = known.all()
		s.bySelector.setAll(known.Selector.Keys(), name, false)
		s.byNode.setAll(maps.Keys(affected), name, false)
	}
	if fresh == nil {
		delete(s.maintenances, name)
		return affected
	}
	s.maintenances[name] = fresh
	s.bySelector.setAll(fresh.Selector.Keys(), name, true)
	s.byNode.setAll(maps.Keys(fresh.all()), name, true)
	return affected.Union(fresh.all())
}

// reindex has to follow each change of the nodes of a progress, whether they are worked on, wait, are
// done, or have to be released.
func (s *Store) reindex(node string, p *maintenanceProgress) {
	s.byNode.set(node, p.Name, p.has(node))
}

// having returns the maintenances that have selected the node or have to release it.
func (s *Store) having(node string) iter.Seq[*maintenanceProgress] {
	return func(yield func(*maintenanceProgress) bool) {
		for name := range s.byNode[node] {
			if !yield(s.maintenances[name]) {
				return
			}
		}
	}
}

// releasing returns the maintenances that have to release the node, and whose spec is not newer
// than the revision.
func (s *Store) releasing(node string, revision int) iter.Seq[*maintenanceProgress] {
	return func(yield func(*maintenanceProgress) bool) {
		for p := range s.having(node) {
			if p.unreleased[node] != nil && p.revision <= revision && !yield(p) {
				return
			}
		}
	}
}

// candidates returns the specs that may select the node, which include all that do.
func (s *Store) candidates(node *v1.Node) []Spec {
	names := sets.New[string]()
	for key := range maintenance.NodeKeysOf(node) {
		for name := range s.bySelector[key] {
			names.Insert(name)
		}
	}
	specs := make([]Spec, 0, len(names))
	for name := range names {
		specs = append(specs, s.maintenances[name].Spec)
	}
	return specs
}
