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
	"iter"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Kind is what waits. Each kind has a rule: an interval between two writes, a delay while the cache lacks an own write, or
// the pace of what others revert. The names of the objects are those of nodes or those of maintenances.
type Kind string

const (
	// NodeStatus and MaintenanceStatus are written at most once per interval: see AfterWrite.
	NodeStatus        Kind = "node status"
	MaintenanceStatus Kind = "maintenance status"

	// NodeCache and MaintenanceCache lack an own write of the object, and BudgetCache lacks budgets that the maintenance may
	// have to wait for: see AfterStale.
	NodeCache        Kind = "node cache"
	MaintenanceCache Kind = "maintenance cache"
	BudgetCache      Kind = "budget cache"

	// RevertedCordon is that others make a node schedulable that is claimed: see AfterRevert.
	RevertedCordon Kind = "reverted cordon"
	// RevertedTaint is that others remove the taint of a planned node, and RevertedUntaint that they add it to another one.
	RevertedTaint   Kind = "reverted taint"
	RevertedUntaint Kind = "reverted untaint"
	// RevertedConditions is that others change the conditions of a node, and RevertedStatus that they change its
	// status.maintenanceStatus.
	RevertedConditions Kind = "reverted conditions"
	RevertedStatus     Kind = "reverted status"
	// RevertedSelection is that a claim of a node ends because others have changed what maintenances select.
	RevertedSelection Kind = "reverted selection"
	// RevertedFinalizer is that others remove the finalizer of a maintenance.
	RevertedFinalizer Kind = "reverted finalizer"
)

var (
	nodeKinds = []Kind{NodeStatus, NodeCache, RevertedCordon, RevertedTaint, RevertedUntaint, RevertedConditions,
		RevertedStatus, RevertedSelection}
	maintenanceKinds = []Kind{MaintenanceStatus, MaintenanceCache, BudgetCache, RevertedFinalizer}
)

// Pacer remembers what was written when. All workers use it.
type Pacer struct {
	lock sync.Mutex
	// written has the times of the last writes.
	written map[key]time.Time
	// stale has the next delays of objects of which the cache lacks an own write.
	stale map[key]time.Duration
	// reverted has what was written again because another client had reverted it, such as cordons. It outlasts the
	// maintenance: who undoes the cordons of one would otherwise have the pace of the limit anew from each of several that
	// are short.
	reverted map[key]*rewrites
}

// key is an object in one respect.
type key struct {
	kind Kind
	name string
}

// New returns a Pacer that remembers nothing.
func New() *Pacer {
	return &Pacer{written: map[key]time.Time{}, stale: map[key]time.Duration{}, reverted: map[key]*rewrites{}}
}

// AfterWrite returns the delay before the next write of the object, if there has to be so much time between
// two.
func (p *Pacer) AfterWrite(kind Kind, name string, now time.Time, interval time.Duration) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	last, ok := p.written[key{kind, name}]
	if !ok {
		return 0
	}
	wait := Within(last.Add(interval).Sub(now), interval)
	if wait <= 0 {
		delete(p.written, key{kind, name})
	}
	return wait
}

// Wrote records a write, from which AfterWrite counts.
func (p *Pacer) Wrote(kind Kind, name string, now time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.written[key{kind, name}] = now
}

// AfterStale returns the delay before an object is reconciled again of which the cache is behind, and doubles the next one.
func (p *Pacer) AfterStale(kind Kind, name string) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	wait := max(p.stale[key{kind, name}], StaleInterval)
	p.stale[key{kind, name}] = min(2*wait, MaxStaleInterval)
	return wait
}

// Current records that the cache is not behind.
func (p *Pacer) Current(kind Kind, name string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.stale, key{kind, name})
}

// rewrites are the times at which something of one object was written again: those that count, the oldest first,
// and since when there have always been some that do.
type rewrites struct {
	times []time.Time
	since time.Time
}

// AfterRevert returns the delay before something may be written again that another client has reverted.
func (p *Pacer) AfterRevert(kind Kind, name string, now time.Time) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	return rewrites{times: p.recent(key{kind, name}, now)}.wait(now)
}

// Rewrote records that it was written again, and reports whether the limit is reached. earlier is since when a
// process before has found that others revert it; zero if it has not.
func (p *Pacer) Rewrote(kind Kind, name string, earlier, now time.Time) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	k := key{kind, name}
	times := p.recent(k, now)
	if len(times) == 0 {
		p.reverted[k] = &rewrites{since: Earliest(now.Truncate(time.Second), earlier)}
	}
	p.reverted[k].times = append(times, now)
	return len(times)+1 >= RevertLimit
}

// recent returns the times within RevertWindow.
func (p *Pacer) recent(k key, now time.Time) []time.Time {
	found := p.reverted[k]
	if found == nil {
		return nil
	}
	for len(found.times) > 0 && now.Sub(found.times[0]) > RevertWindow {
		found.times = found.times[1:]
	}
	if len(found.times) == 0 {
		delete(p.reverted, k)
	}
	return found.times
}

// Forget forgets one kind of an object.
func (p *Pacer) Forget(kind Kind, name string) { p.forget([]Kind{kind}, name) }

// ForgetNode forgets a node that is gone.
func (p *Pacer) ForgetNode(name string) { p.forget(nodeKinds, name) }

// ForgetMaintenance forgets a maintenance that is gone.
func (p *Pacer) ForgetMaintenance(name string) { p.forget(maintenanceKinds, name) }

func (p *Pacer) forget(kinds []Kind, name string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, kind := range kinds {
		delete(p.written, key{kind, name})
		delete(p.stale, key{kind, name})
		delete(p.reverted, key{kind, name})
	}
}

// Names returns the objects of which something of that kind is remembered, sorted.
func (p *Pacer) Names(kind Kind) []string {
	p.lock.Lock()
	defer p.lock.Unlock()
	names := sets.New[string]()
	for _, keys := range []iter.Seq[key]{maps.Keys(p.written), maps.Keys(p.stale), maps.Keys(p.reverted)} {
		for k := range keys {
			if k.kind == kind {
				names.Insert(k.name)
			}
		}
	}
	return sets.List(names)
}
