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
	"slices"
	"time"
)

const (
	// minEvictionsPerBudget is the minimum number of evictions under one budget that may be in flight. One
	// of two goes on while the other waits for its conflict to be tried again; of more, some wait longer
	// than slowEviction.
	minEvictionsPerBudget = 2

	// maxEvictionsPerBudget is the maximum number.
	maxEvictionsPerBudget = 32

	// slowEviction is the duration from which on an eviction under a budget counts as slow. Two
	// evictions whose writes of the budget conflict make kube-apiserver wait for half a second, and
	// one that has no conflict takes a fifth of that.
	slowEviction = 400 * time.Millisecond

	// lateEviction is the duration from which on an eviction that is in flight may be a slow one. It is
	// twice what one without a conflict takes.
	lateEviction = 200 * time.Millisecond

	// maxPacePatience limits how many rounds of quick answers an increase takes.
	maxPacePatience = 64
)

// pace limits how many evictions under one budget are in flight. An API server with the feature gate
// EvictionLane decides many at a time, and without it they impede each other. The answers tell which
// one it is: the limit grows while they are quick, and is halved when one is slow or a conflict.
type pace struct {
	limit int
	// patience is how many rounds of quick answers the next increase takes. It doubles when the limit
	// is halved, so that a limit that was too high is rarely tried again, and is halved when two
	// increases follow each other. While no answer has been slow, it is one.
	patience int
	// quick is the number of quick answers since changed, when the limit changed last.
	quick   int
	changed time.Time
	// grew is whether that change was an increase.
	grew bool
	// inFlight has the times at which the evictions in flight began.
	inFlight []time.Time
}

func newPace() pace { return pace{limit: minEvictionsPerBudget, patience: 1} }

// begin takes note of an eviction.
func (p *pace) begin(now time.Time) { p.inFlight = append(p.inFlight, now) }

// end takes note of its answer, and returns whether the limit has grown.
func (p *pace) end(began, ended time.Time, conflict bool) (grown bool) {
	if index := slices.IndexFunc(p.inFlight, began.Equal); index >= 0 {
		p.inFlight = slices.Delete(p.inFlight, index, index+1)
	}
	if conflict || ended.Sub(began) >= slowEviction {
		// Those that began before the limit was halved are slow for the same reason.
		if p.limit > minEvictionsPerBudget && (p.grew || !began.Before(p.changed)) {
			p.limit, p.patience = max(p.limit/2, minEvictionsPerBudget), min(2*p.patience, maxPacePatience)
			p.quick, p.changed, p.grew = 0, ended, false
		}
		return false
	}
	p.quick++
	if p.limit == maxEvictionsPerBudget || p.quick < p.limit*p.patience || p.isLate(ended) {
		return false
	}
	if p.patience == 1 {
		p.limit = min(2*p.limit, maxEvictionsPerBudget)
	} else {
		p.limit++
		if p.grew {
			p.patience = max(p.patience/2, 2)
		}
	}
	p.quick, p.changed, p.grew = 0, ended, true
	return true
}

// isLate returns whether an eviction in flight may be a slow one. Its answer decides: of several
// evictions with a conflict, the first answers are quick.
func (p *pace) isLate(now time.Time) bool {
	return slices.ContainsFunc(p.inFlight, func(began time.Time) bool { return now.Sub(began) >= lateEviction })
}
