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

package cachestate

import (
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"
)

func newCache(functions cache.Indexers) cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions)
}

// TestOf: who shares a cache shares its states, one for each name, also if all ask at once.
func TestOf(t *testing.T) {
	objects, made := newCache(cache.Indexers{}), 0
	newState := func() *int { made++; return new(int) }
	var lock sync.Mutex
	states := map[*int]bool{}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			state, err := Of(objects, "first", newState)
			if err != nil {
				t.Error(err)
			}
			lock.Lock()
			defer lock.Unlock()
			states[state] = true
		})
	}
	group.Wait()
	if len(states) != 1 || made != 1 {
		t.Errorf("%d states were made, and %d returned", made, len(states))
	}
	second, err := Of(objects, "second", newState)
	if err != nil || states[second] {
		t.Errorf("another name has the same state: %v", err)
	}
	if another, err := Of(newCache(cache.Indexers{}), "first", newState); err != nil || states[another] {
		t.Errorf("another cache has the same state: %v", err)
	}
}

// TestNameIsTaken: an index function of somebody else, or a state of another type, is an error and no state.
func TestNameIsTaken(t *testing.T) {
	objects := newCache(cache.Indexers{"index": func(any) ([]string, error) { return nil, nil }})
	if state, err := Of(objects, "index", func() *int { return new(int) }); err == nil {
		t.Errorf("got %v", state)
	}
	if _, err := Of(objects, "state", func() *int { return new(int) }); err != nil {
		t.Fatal(err)
	}
	if state, err := Of(objects, "state", func() *string { return new(string) }); err == nil {
		t.Errorf("got %v", state)
	}
}
