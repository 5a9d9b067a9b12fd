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
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fill has a line in which each letter is an item of the tenant of that letter.
func fill(limit int, tenants string) *line[string] {
	l := newLine[string](limit)
	for i, tenant := range tenants {
		l.push(string(tenant), fmt.Sprintf("%c%d", tenant, i))
	}
	return l
}

// popAll takes what may be taken.
func popAll(l *line[string]) []string {
	var got []string
	for {
		item, found := l.pop()
		if !found {
			return got
		}
		got = append(got, item)
	}
}

func TestLine(t *testing.T) {
	for name, test := range map[string]struct {
		limit   int
		waiting string
		change  func(l *line[string])
		want    []string
	}{
		"nothing waits":                   {limit: 1},
		"one tenant, in its order":        {waiting: "aaa", want: []string{"a0", "a1", "a2"}},
		"tenants in turn":                 {waiting: "aaabbc", want: []string{"a0", "b3", "c5", "a1", "b4", "a2"}},
		"a tenant at its limit":           {limit: 2, waiting: "aaabb", want: []string{"a0", "b3", "a1", "b4"}},
		"a place comes free":              {limit: 1, waiting: "aab", change: func(l *line[string]) { popAll(l); l.release("a") }, want: []string{"a1"}},
		"a place comes free for nobody":   {limit: 1, waiting: "aab", change: func(l *line[string]) { popAll(l); l.release("b") }},
		"who comes later":                 {limit: 1, waiting: "aab", change: func(l *line[string]) { l.push("c", "c3") }, want: []string{"a0", "b2", "c3"}},
		"one is removed":                  {waiting: "aab", change: func(l *line[string]) { l.remove("a", "a0") }, want: []string{"a1", "b2"}},
		"the only one is removed":         {limit: 1, waiting: "ab", change: func(l *line[string]) { l.remove("a", "a0") }, want: []string{"b1"}},
		"one that does not wait":          {waiting: "ab", change: func(l *line[string]) { l.remove("a", "b1") }, want: []string{"a0", "b1"}},
		"one of nobody":                   {waiting: "a", change: func(l *line[string]) { l.remove("z", "z0") }, want: []string{"a0"}},
		"the limit is raised":             {limit: 1, waiting: "aaa", change: func(l *line[string]) { popAll(l); l.setLimit(2) }, want: []string{"a1"}},
		"the limit falls":                 {limit: 3, waiting: "aaab", change: func(l *line[string]) { l.pop(); l.setLimit(1) }, want: []string{"b3"}},
		"places beyond a limit that fell": {limit: 3, waiting: "aaaa", change: func(l *line[string]) { popAll(l); l.setLimit(1); l.release("a") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := fill(test.limit, test.waiting)
			if test.change != nil {
				test.change(l)
			}
			if l.available < len(test.want) && test.limit == 0 {
				t.Errorf("%d available, want %d", l.available, len(test.want))
			}
			if diff := cmp.Diff(test.want, popAll(l)); diff != "" {
				t.Errorf("unexpected items (-want, +got):\n%s", diff)
			}
			if l.available != 0 || len(l.ready) != 0 {
				t.Errorf("%d available of %v, when nothing can be taken", l.available, l.ready)
			}
		})
	}
}

// Whatever happens: no tenant is above its limit, who can be served is, in order, and
// nothing is kept in the end.
func TestLineInRandomHistories(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := random.IntN(4)
		l, next := newLine[string](limit), 0
		waiting, places := map[string][]string{}, map[string]int{}
		for range 300 {
			name := string(rune('a' + random.IntN(4)))
			switch random.IntN(4) {
			case 0, 1:
				item := fmt.Sprintf("%s%d", name, next)
				next++
				l.push(name, item)
				waiting[name] = append(waiting[name], item)
			case 2:
				item, found := l.pop()
				if !found {
					for other, items := range waiting {
						if len(items) > 0 && (limit == 0 || places[other] < limit) {
							t.Fatalf("seed %d: took nothing, though %s has %d places and %v wait", seed, other, places[other], items)
						}
					}
					continue
				}
				name := item[:1]
				if want := waiting[name][0]; item != want {
					t.Fatalf("seed %d: took %s, want %s", seed, item, want)
				}
				waiting[name] = waiting[name][1:]
				places[name]++
				if limit > 0 && places[name] > limit {
					t.Fatalf("seed %d: %s has %d places of %d", seed, name, places[name], limit)
				}
			case 3:
				if places[name] > 0 {
					l.release(name)
					places[name]--
				}
			}
			want := 0
			for name, items := range waiting {
				if limit == 0 {
					want += len(items)
				} else {
					want += min(len(items), limit-places[name])
				}
			}
			if l.available != want {
				t.Fatalf("seed %d: %d available, want %d", seed, l.available, want)
			}
		}
		for name, items := range waiting {
			for _, item := range items {
				l.remove(name, item)
			}
			for range places[name] {
				l.release(name)
			}
		}
		if len(l.tenants) > 0 || len(l.ready) > 0 {
			t.Fatalf("seed %d: keeps %v and %v in the end", seed, l.tenants, l.ready)
		}
	}
}
