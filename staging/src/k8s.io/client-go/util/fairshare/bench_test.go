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
	"fmt"
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// benchmarkItems is how many items wait in each benchmark, at least: two for each owner, so that
// neither maps nor caches of the processor favor those with few owners.
const benchmarkItems = 20000

// BenchmarkLine measures what one item costs: Push, Pop, Begin and Release, and the Pop that finds
// no other one. It should be about the same with any number of flows and tenants.
func BenchmarkLine(b *testing.B) {
	type shape struct {
		name   string
		owners []Owner
		// stuck are the owners of items that wait as well, and never complete.
		stuck []Owner
		// slow is whether the tenants of these have been slow.
		slow bool
	}
	// each returns an owner for each combination.
	each := func(flows, tenants int) (owners []Owner) {
		for f := range flows {
			for t := range tenants {
				owners = append(owners, Owner{Flow: fmt.Sprint("flow", f), Tenant: fmt.Sprint("tenant", t)})
			}
		}
		return owners
	}
	// some returns the owners of flows with a few of the tenants each.
	some := func(flows, tenants, of int) (owners []Owner) {
		for f := range flows {
			for t := range of {
				owners = append(owners, Owner{Flow: fmt.Sprint("flow", f), Tenant: fmt.Sprint("tenant", (f+t)%tenants)})
			}
		}
		return owners
	}
	// sets returns the owners of flows with all sets of the tenants.
	sets := func(flows, tenants int) (owners []Owner) {
		for f := range flows {
			for t := range tenants {
				if set := 1 + f%(1<<tenants-1); set&(1<<t) > 0 {
					owners = append(owners, Owner{Flow: fmt.Sprint("flow", f), Tenant: fmt.Sprint("tenant", t)})
				}
			}
		}
		return owners
	}
	other := []Owner{{Flow: "other flow", Tenant: "other tenant"}}
	otherInFlows := func(flows int) (owners []Owner) {
		for f := range flows {
			owners = append(owners, Owner{Flow: fmt.Sprint("other flow", f), Tenant: "other tenant"})
		}
		return owners
	}
	for _, shape := range []shape{
		{name: "1 flow, 1 tenant", owners: each(1, 1)},
		{name: "1 flow, 100 tenants", owners: each(1, 100)},
		{name: "1 flow, 2000 tenants", owners: each(1, 2000)},
		{name: "1 flow, 10000 tenants", owners: each(1, 10000)},
		{name: "100 flows, 1 tenant", owners: each(100, 1)},
		{name: "5000 flows, 1 tenant", owners: each(5000, 1)},
		{name: "10000 flows, 1 tenant", owners: each(10000, 1)},
		{name: "100 flows, a tenant each", owners: some(100, 100, 1)},
		{name: "5000 flows, a tenant each", owners: some(5000, 5000, 1)},
		{name: "10000 flows, a tenant each", owners: some(10000, 10000, 1)},
		{name: "5000 flows, one of 50 tenants each", owners: some(5000, 50, 1)},
		{name: "5000 flows, 4 of 50 tenants each", owners: some(5000, 50, 4)},
		{name: "5000 flows, 20 tenants each", owners: each(5000, 20)},
		{name: "100 flows, 1500 tenants each", owners: each(100, 1500)},
		{name: "another tenant than that of 5000 flows", owners: other, stuck: each(5000, 1)},
		{name: "another tenant than that of 5000 flows, in 100", owners: otherInFlows(100), stuck: each(5000, 1)},
		{name: "another tenant than the four of 5000 flows", owners: other, stuck: each(5000, 4)},
		{name: "another tenant than any of four in 5000 flows", owners: other, stuck: sets(5000, 4)},
		{name: "another tenant than the slow ones of 5000 flows", owners: other, stuck: some(5000, 5000, 1), slow: true},
	} {
		b.Run(shape.name, func(b *testing.B) {
			clock := testingclock.NewFakeClock(time.Now())
			l := NewLine[int](clock)
			complete := func(owner Owner, took time.Duration) {
				l.Push(owner, 0)
				l.Pop()
				l.Begin(0)
				clock.Step(took)
				l.Release(0)
				clock.Step(-took)
			}
			tenants := map[string]bool{}
			for _, owner := range slices.Concat(shape.stuck, shape.owners) {
				if tenants[owner.Tenant] {
					continue
				}
				tenants[owner.Tenant] = true
				complete(owner, 0)
				if shape.slow && owner != other[0] {
					complete(owner, slowThreshold)
					clock.Step(2 * slowInterval)
					complete(owner, slowThreshold)
					clock.Step(-2 * slowInterval)
				}
			}
			l.Limit(50, 10)
			stuck := 0 // Items with lower numbers are stuck.
			for _, owner := range shape.stuck {
				l.Push(owner, stuck)
				stuck++
			}
			for _, found := l.Pop(); found; _, found = l.Pop() { // They do not begin.
			}
			for i := range max(benchmarkItems, 2*len(shape.owners)) {
				l.Push(shape.owners[i%len(shape.owners)], stuck+i)
			}
			var running []int
			next := func() {
				for item, found := l.Pop(); found; item, found = l.Pop() {
					l.Begin(item)
					running = append(running, item)
				}
				done := running[0]
				running = append(running[:0], running[1:]...)
				l.Release(done)
				l.Push(shape.owners[(done-stuck)%len(shape.owners)], done)
			}
			for range 100 { // Until the places are taken.
				next()
			}
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
		})
	}
}
