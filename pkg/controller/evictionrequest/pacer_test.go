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
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// wokenBy returns a pacer and the requests that it has woken.
func wokenBy() (*pacer, *[]types.NamespacedName) {
	var woken []types.NamespacedName
	return newPacer(func(request types.NamespacedName) { woken = append(woken, request) }), &woken
}

func (p *pacer) mustEnter(t *testing.T, budget, request string, want bool) {
	t.Helper()
	if got := p.enter(named(budget), named(request)); got != want {
		t.Fatalf("letting %s in is %t, want %t", request, got, want)
	}
}

func expectWoken(t *testing.T, woken *[]types.NamespacedName, names ...string) {
	t.Helper()
	var want []types.NamespacedName
	for _, name := range names {
		want = append(want, named(name))
	}
	if diff := cmp.Diff(want, *woken); diff != "" {
		t.Errorf("unexpected requests woken (-want, +got):\n%s", diff)
	}
}

func TestPacerLetsInOneAtATime(t *testing.T) {
	p, woken := wokenBy()
	p.mustEnter(t, "web", "a", true)
	p.mustEnter(t, "web", "c", false)
	p.mustEnter(t, "web", "d", false)
	p.mustEnter(t, "web", "c", false) // Looked at again: still one place in the line.
	p.mustEnter(t, "db", "e", true)   // Another budget.
	p.leave(named("web"))
	expectWoken(t, woken, "c")
	p.mustEnter(t, "web", "c", true)
	p.pass(named("c"))
	expectWoken(t, woken, "c")
	p.leave(named("web"))
	expectWoken(t, woken, "c", "d")
	p.mustEnter(t, "web", "d", true)
	p.leave(named("web"))
	expectWoken(t, woken, "c", "d") // Nobody stood in line twice.
}

// A request that does not need its place any more must not stop the others.
func TestPacerPassesUnusedPlacesOn(t *testing.T) {
	p, woken := wokenBy()
	p.mustEnter(t, "web", "a", true)
	for _, name := range []string{"c", "d", "e"} {
		p.mustEnter(t, "web", name, false)
	}
	p.leave(named("web"))
	p.pass(named("x")) // Nobody has woken this one.
	p.pass(named("c")) // Its pod is gone.
	expectWoken(t, woken, "c", "d")
	// The next one is selected by another budget meanwhile.
	p.mustEnter(t, "db", "d", true)
	p.pass(named("d"))
	expectWoken(t, woken, "c", "d", "e")
}

// In the end nothing is kept, and everybody has been in, whatever the order.
func TestPacerKeepsNothing(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var queue []types.NamespacedName
		p := newPacer(func(request types.NamespacedName) { queue = append(queue, request) })
		for i := range 20 {
			queue = append(queue, named(strconv.Itoa(i)))
		}
		inside, served := 0, map[types.NamespacedName]bool{}
		for len(queue) > 0 || inside > 0 {
			if len(queue) == 0 || (inside > 0 && random.IntN(2) == 0) {
				p.leave(named("web"))
				inside--
				continue
			}
			next := random.IntN(len(queue))
			request := queue[next]
			queue = append(queue[:next], queue[next+1:]...)
			if random.IntN(4) == 0 {
				served[request] = true // It does not want to any more.
			} else if p.enter(named("web"), request) {
				served[request] = true
				inside++
			}
			if inside > maxEvictionsPerBudget {
				t.Fatalf("seed %d: %d are in", seed, inside)
			}
			p.pass(request)
		}
		if len(served) != 20 || len(p.budgets) != 0 || len(p.woken) != 0 {
			t.Fatalf("seed %d: served %d of 20, keeps %v and %v", seed, len(served), p.budgets, p.woken)
		}
	}
}
