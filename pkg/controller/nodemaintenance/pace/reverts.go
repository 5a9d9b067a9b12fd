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

package pace

import (
	"slices"
	"time"
)

// Reverts is what others keep reverting on one node, as it is known at one time.
type Reverts struct {
	at     time.Time
	byKind map[Kind]rewrites
}

// RevertsOf returns what others keep reverting on a node.
func (p *Pacer) RevertsOf(node string, now time.Time) Reverts {
	p.lock.Lock()
	defer p.lock.Unlock()
	found := Reverts{at: now, byKind: map[Kind]rewrites{}}
	for _, kind := range nodeKinds {
		k := key{kind, node}
		if times := p.recent(k, now); len(times) > 0 {
			found.byKind[kind] = rewrites{slices.Clone(times), p.reverted[k].since}
		}
	}
	return found
}

// Wait returns the delay before something may be written again that another client has reverted.
func (r Reverts) Wait(kind Kind) time.Duration { return r.byKind[kind].wait(r.at) }

// wait returns the delay before the next write. All of the earlier ones count.
func (r rewrites) wait(now time.Time) time.Duration {
	if len(r.times) < RevertLimit {
		return 0
	}
	return Within(r.times[len(r.times)-1].Add(RevertPause).Sub(now), RevertPause)
}

// Contest is that other clients keep reverting what is written: since when, and when they have stopped if nothing is written
// again before.
type Contest struct{ Since, Over time.Time }

// Contested returns that others keep reverting what is written, if the limit is reached. reverted is whether it is reverted
// now: if it is not, they may have stopped.
func (r Reverts) Contested(kind Kind, reverted bool) (found Contest, is bool) {
	rewritten := r.byKind[kind]
	if len(rewritten.times) < RevertLimit {
		return Contest{}, false
	}
	found = Contest{rewritten.since, rewritten.times[len(rewritten.times)-1].Add(RevertPause + RevertSlack)}
	return found, reverted || Within(found.Over.Sub(r.at), RevertPause+RevertSlack) > 0
}
