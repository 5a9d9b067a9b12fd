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

package fairshare

import (
	"maps"
	"slices"
)

// line is what waits for a place. It is not safe for concurrent use.
type line[T comparable] struct {
	// limit is how many places one tenant may have; zero is any number.
	limit   int
	tenants map[string]*tenant[T]
	// ready holds the tenants of which an item may be taken, the next one first.
	ready []string
	// available is how many items may be taken if no place comes free.
	available int
}

// tenant is what one tenant has: what waits, in its order, and places.
type tenant[T comparable] struct {
	waiting   []T
	places    int
	available int
}

func newLine[T comparable](limit int) *line[T] {
	return &line[T]{limit: limit, tenants: map[string]*tenant[T]{}}
}

// push adds an item behind the others of its tenant.
func (l *line[T]) push(name string, item T) {
	t := l.tenants[name]
	if t == nil {
		t = &tenant[T]{}
		l.tenants[name] = t
	}
	t.waiting = append(t.waiting, item)
	l.update(name, t)
}

// pop takes the next item, which has one of the places of its tenant until release. The next
// item after it is of another tenant, if there is one.
func (l *line[T]) pop() (item T, found bool) {
	if len(l.ready) == 0 {
		return item, false
	}
	name := l.ready[0]
	l.ready = l.ready[1:]
	t := l.tenants[name]
	item, t.waiting[0] = t.waiting[0], item // Nothing keeps what was taken in memory.
	t.waiting = t.waiting[1:]
	t.places++
	l.available -= t.available
	t.available = 0
	l.update(name, t)
	return item, true
}

// release gives a place of the tenant back.
func (l *line[T]) release(name string) {
	t := l.tenants[name]
	t.places--
	l.update(name, t)
}

// remove takes an item out that waits, if it does.
func (l *line[T]) remove(name string, item T) {
	t := l.tenants[name]
	if t == nil {
		return
	}
	if i := slices.Index(t.waiting, item); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		l.update(name, t)
	}
}

// setLimit changes how many places one tenant may have.
func (l *line[T]) setLimit(limit int) {
	l.limit = limit
	for _, name := range slices.Sorted(maps.Keys(l.tenants)) {
		l.update(name, l.tenants[name])
	}
}

// update brings up to date whether and how much of a tenant may be taken. Who comes to be
// ready is the last in turn.
func (l *line[T]) update(name string, t *tenant[T]) {
	available := len(t.waiting)
	if l.limit > 0 {
		available = max(0, min(available, l.limit-t.places))
	}
	switch {
	case available > 0 && t.available == 0:
		l.ready = append(l.ready, name)
	case available == 0 && t.available > 0:
		l.ready = slices.DeleteFunc(l.ready, func(other string) bool { return other == name })
	}
	l.available += available - t.available
	t.available = available
	if len(t.waiting) == 0 && t.places == 0 {
		delete(l.tenants, name)
	}
}
