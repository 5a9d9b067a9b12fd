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

package evictionrequest

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxEvictionsPerBudget is how many evictions of pods under one PodDisruptionBudget
// are in flight. Each of them writes to the status of the budget, as the disruption
// controller does, and the loser of two writes waits half a second in the API server
// before it tries again. Two at a time evicted no more pods per second than one, and
// one call in a hundred then took more than a second, for losing twice ("make bench").
const maxEvictionsPerBudget = 1

// pacer lets in as many evictions per budget as the budget can take. Those that have to wait
// are woken one by one as others end. Nothing blocks: who is not let in goes away and
// is put back into the queue.
type pacer struct {
	// wake puts a request back into the queue.
	wake func(request types.NamespacedName)

	lock    sync.Mutex
	budgets map[types.NamespacedName]*pace
	// woken holds the requests that were woken and have not been in since, with the
	// budget that they waited for. If one of them does not need its place any more, the
	// next in line must get it, or the line would stand still.
	woken map[types.NamespacedName]types.NamespacedName
}

// pace is the traffic of one budget.
type pace struct {
	inFlight int
	// line holds the requests that wait, each of them once.
	line   []types.NamespacedName
	inLine sets.Set[types.NamespacedName]
}

func newPacer(wake func(types.NamespacedName)) *pacer {
	return &pacer{
		wake:    wake,
		budgets: map[types.NamespacedName]*pace{},
		woken:   map[types.NamespacedName]types.NamespacedName{},
	}
}

// enter lets a request in, or puts it in line. Who was let in has to leave.
func (p *pacer) enter(budget, request types.NamespacedName) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.woken[request] == budget {
		delete(p.woken, request)
	}
	current := p.budgets[budget]
	if current == nil {
		current = &pace{inLine: sets.New[types.NamespacedName]()}
		p.budgets[budget] = current
	}
	if current.inFlight < maxEvictionsPerBudget {
		current.inFlight++
		return true
	}
	if !current.inLine.Has(request) {
		current.inLine.Insert(request)
		current.line = append(current.line, request)
	}
	return false
}

// leave ends a stay that enter allowed, and wakes the next in line.
func (p *pacer) leave(budget types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.budgets[budget].inFlight--
	p.wakeNext(budget)
}

// pass is for every request that was looked at, let in or not: if it was woken and
// did not use its place, the next in line gets it.
func (p *pacer) pass(request types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	budget, unused := p.woken[request]
	if !unused {
		return
	}
	delete(p.woken, request)
	p.wakeNext(budget)
}

// wakeNext takes the next request out of the line of a budget. The caller holds the
// lock.
func (p *pacer) wakeNext(budget types.NamespacedName) {
	current := p.budgets[budget]
	if current == nil {
		return
	}
	if len(current.line) == 0 {
		if current.inFlight == 0 {
			delete(p.budgets, budget)
		}
		return
	}
	next := current.line[0]
	current.line = current.line[1:]
	current.inLine.Delete(next)
	p.woken[next] = budget
	p.wake(next)
}
