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
	"fmt"
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// CheckIndexes returns an error unless the indexes are what a scan of all maintenances finds. Simulations call it.
func (s *Store) CheckIndexes(nodes []*v1.Node) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	byNode, bySelector := index[string]{}, index[maintenance.NodeKey]{}
	for name, p := range s.maintenances {
		byNode.setAll(maps.Keys(p.all()), name, true)
		bySelector.setAll(p.Selector.Keys(), name, true)
	}
	if !reflect.DeepEqual(byNode, s.byNode) {
		return fmt.Errorf("index by node: %v, a scan finds %v", s.byNode, byNode)
	}
	if !reflect.DeepEqual(bySelector, s.bySelector) {
		return fmt.Errorf("index by selector: %v, a scan finds %v", s.bySelector, bySelector)
	}
	for _, node := range nodes {
		var want, got []string
		for name, p := range s.maintenances {
			if p.Selector.Matches(node) {
				want = append(want, name)
			}
		}
		for _, o := range s.candidates(node) {
			if o.Selector.Matches(node) {
				got = append(got, o.Name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			return fmt.Errorf("node %s is selected by %v, a scan finds %v", node.Name, got, want)
		}
	}
	return nil
}

// Inspect returns the position of a maintenance, what is left on one of its nodes for each entry of its plan, and the targets
// that were decided there; false if the pods of the node are not counted. Simulations check with it what is written.
func (s *Store) Inspect(name, node string) (position int, remaining []int, targets maintenance.Targets, counted bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.maintenances[name]
	if p == nil || p.nodes[node] == nil {
		return 0, nil, maintenance.Targets{}, false
	}
	return p.position, slices.Clone(p.nodes[node].remaining), p.nodes[node].Targets, true
}

// Unreleased names the nodes that a maintenance still has to release, sorted.
func (s *Store) Unreleased(name string) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if p := s.maintenances[name]; p != nil {
		return slices.Sorted(maps.Keys(p.unreleased))
	}
	return nil
}

// Deselected names the nodes that maintenances have claimed until their selectors were changed, and that were not reconciled
// since, sorted.
func (s *Store) Deselected() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Sorted(maps.Keys(s.deselected))
}
