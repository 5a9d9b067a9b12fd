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
	"cmp"
	"container/heap"
)

// rank is an order: by places, and those with the same number by turn.
type rank struct {
	places int
	turn   uint64
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.places, other.places), cmp.Compare(r.turn, other.turn))
}

// ordered is a heap: the first element has the lowest rank, and no element has a lower one than its
// two children. The ranks are stored here because that of an element may change with others at the
// same time, and because reading them from thousands of elements is slow.
type ordered[E indexed] []ranked[E]

type ranked[E indexed] struct {
	rank    rank
	element E
}

// indexed stores the index of an element in a heap.
type indexed interface{ heapIndex() *int }

func (o *ordered[E]) add(e E, r rank) { heap.Push(o, ranked[E]{r, e}) }
func (o *ordered[E]) remove(e E)      { heap.Remove(o, *e.heapIndex()) }

// set changes the rank of an element.
func (o *ordered[E]) set(e E, r rank) {
	i := *e.heapIndex()
	if (*o)[i].rank != r {
		(*o)[i].rank = r
		heap.Fix(o, i)
	}
}

// walk visits the first element, and the children of each one for which visit returns true. They
// are not visited in their order, but each one after its parent.
func (o ordered[E]) walk(visit func(E) bool) { o.walkFrom(0, visit) }

func (o ordered[E]) walkFrom(i int, visit func(E) bool) {
	if i < len(o) && visit(o[i].element) {
		o.walkFrom(2*i+1, visit)
		o.walkFrom(2*i+2, visit)
	}
}

// Len and the methods below are for package heap.
func (o ordered[E]) Len() int           { return len(o) }
func (o ordered[E]) Less(i, j int) bool { return o[i].rank.compare(o[j].rank) < 0 }

func (o ordered[E]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	*o[i].element.heapIndex(), *o[j].element.heapIndex() = i, j
}

func (o *ordered[E]) Push(x any) {
	e := x.(ranked[E])
	*e.element.heapIndex() = len(*o)
	*o = append(*o, e)
}

func (o *ordered[E]) Pop() any {
	last := len(*o) - 1
	e := (*o)[last]
	(*o)[last] = ranked[E]{} // It must not be kept in memory.
	*o = (*o)[:last]
	return e
}
