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

// Package cachestate has what the controllers of a process know in common about the objects of a cache, and no object
// can say.
package cachestate

import (
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// creating is locked while it is decided whether a cache has a state.
var creating sync.Mutex

// question asks an index function for the state that it keeps.
type question[T any] struct{ answer *T }

// Of returns the state with this name that a cache has, and makes it with newState if it has none: all who share the cache
// share it. A cache has no other place for it than an index function, which returns no values. Two states of different
// types must have different names.
func Of[T any](objects cache.Indexer, name string, newState func() *T) (*T, error) {
	creating.Lock()
	defer creating.Unlock()
	if ask, exists := objects.GetIndexers()[name]; exists {
		q := &question[T]{}
		if _, err := ask(q); err != nil {
			return nil, fmt.Errorf("asking the cache for its state %s: %w", name, err)
		}
		if q.answer == nil {
			return nil, fmt.Errorf("the cache has another index function with the name %s", name)
		}
		return q.answer, nil
	}
	state := newState()
	if err := objects.AddIndexers(cache.Indexers{name: func(obj any) ([]string, error) {
		if q, asks := obj.(*question[T]); asks {
			q.answer = state
		}
		return nil, nil
	}}); err != nil {
		return nil, fmt.Errorf("adding the state %s to the cache: %w", name, err)
	}
	return state, nil
}
