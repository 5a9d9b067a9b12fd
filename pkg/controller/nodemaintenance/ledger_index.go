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
	"iter"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
)

// index finds the names of maintenances by what they have to do with.
type index[K comparable] map[K]sets.Set[string]

// set notes whether the maintenance is found by the key.
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

// enter makes the account that of the maintenance with the name; nil drops it. It returns the
// nodes that the one before or this one has. Only this changes the accounts of the ledger.
func (l *ledger) enter(name string, fresh *account) sets.Set[string] {
	affected := sets.New[string]()
	if known := l.maintenances[name]; known != nil {
		affected = known.all()
		l.bySelector.setAll(known.selector.Keys(), name, false)
		l.byNode.setAll(maps.Keys(affected), name, false)
	}
	if fresh == nil {
		delete(l.maintenances, name)
		return affected
	}
	l.maintenances[name] = fresh
	l.bySelector.setAll(fresh.selector.Keys(), name, true)
	l.byNode.setAll(maps.Keys(fresh.all()), name, true)
	return affected.Union(fresh.all())
}

// all returns the nodes of a maintenance, and those that it has not given back yet.
func (a *account) all() sets.Set[string] {
	return sets.KeySet(a.nodes).Union(sets.KeySet(a.unreleased))
}

// reindex follows a change of the nodes of the account, or of those it has not given back.
func (l *ledger) reindex(node string, a *account) {
	_, has := a.nodes[node]
	_, unreleased := a.unreleased[node]
	l.byNode.set(node, a.name, has || unreleased)
}

// accountsOf returns the accounts that have the node, or have not given it back yet.
func (l *ledger) accountsOf(node string) iter.Seq[*account] {
	return func(yield func(*account) bool) {
		for name := range l.byNode[node] {
			if !yield(l.maintenances[name]) {
				return
			}
		}
	}
}

// candidates returns the orders that may select the node: every one that does is among them.
func (l *ledger) candidates(node *v1.Node) []order {
	names := sets.New[string]()
	for key := range maintenance.NodeKeysOf(node) {
		for name := range l.bySelector[key] {
			names.Insert(name)
		}
	}
	orders := make([]order, 0, len(names))
	for name := range names {
		orders = append(orders, l.maintenances[name].order)
	}
	return orders
}
