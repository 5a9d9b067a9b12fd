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

package simulation

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// environment is an os.Getenv of its own.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// all returns the seeds in their order.
func (s *seeds) all() []uint64 {
	var all []uint64
	for i := 0; ; i++ {
		seed, ok := s.at(i)
		if !ok {
			return all
		}
		all = append(all, seed)
	}
}

func TestNewSeeds(t *testing.T) {
	const regression = 1493448308696230737
	for _, tc := range []struct {
		name        string
		environment environment
		fixed       []uint64
		random      int
		verbose     bool
	}{
		{"by default", nil, []uint64{1, 2, 3, regression}, 3, false},
		{"many random ones", environment{seedsVariable: "10000"}, []uint64{1, 2, 3, regression}, 10000, true},
		{"the fixed ones alone", environment{seedsVariable: "0"}, []uint64{1, 2, 3, regression}, 0, true},
		{"a single one", environment{seedVariable: "4563", seedsVariable: "10000"}, []uint64{4563}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := newSeeds(tc.environment.get, 3, []uint64{regression})
			if err != nil {
				t.Fatal(err)
			}
			got := s.all()
			if len(got) != len(tc.fixed)+tc.random {
				t.Fatalf("%d seeds, want %d fixed and %d random ones", len(got), len(tc.fixed), tc.random)
			}
			if diff := cmp.Diff(tc.fixed, got[:len(tc.fixed)]); diff != "" {
				t.Errorf("fixed seeds (-want +got):\n%s", diff)
			}
			for i, seed := range got[len(tc.fixed):] {
				if seed != s.base+uint64(i) || seed > math.MaxInt64 {
					t.Fatalf("random seed %d is %d, the first one %d", i, seed, s.base)
				}
			}
			if s.verbose != tc.verbose {
				t.Errorf("verbose is %t", s.verbose)
			}
		})
	}
}

func TestNewSeedsAreRandom(t *testing.T) {
	first, err := newSeeds(environment{}.get, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newSeeds(environment{}.get, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.base == second.base {
		t.Errorf("twice the same: %d", first.base)
	}
}

func TestNewSeedsRefuses(t *testing.T) {
	for _, environment := range []environment{
		{seedVariable: "x"}, {seedVariable: "-1"}, {seedsVariable: "x"}, {seedsVariable: "-1"},
	} {
		if s, err := newSeeds(environment.get, 3, nil); err == nil {
			t.Errorf("%v: %v", environment, s)
		}
	}
}

func TestSeedsSay(t *testing.T) {
	s := &seeds{fixed: []uint64{1, 2}, base: 4212, random: 98}
	if got, want := s.summary("TestX", 8*time.Second), "TestX: 2 fixed seeds, 98 random seeds from 4212: 8.0 s, 12 seeds a second"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.random = 0
	if got, want := s.String(), "2 fixed seeds"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSeedsRun(t *testing.T) {
	s := &seeds{fixed: []uint64{1, 2, 3}, base: 1000, random: 97}
	var mu sync.Mutex
	var got []uint64
	failed := s.run(4, func(seed uint64) bool {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, seed)
		return true
	})
	slices.Sort(got)
	if diff := cmp.Diff(s.all(), got); diff != "" || len(failed) > 0 {
		t.Errorf("%v failed; seeds that were run (-want +got):\n%s", failed, diff)
	}
}

func TestSeedsStopAtAFailure(t *testing.T) {
	s := &seeds{fixed: []uint64{1, 2, 3}, base: 1000, random: 97}
	var got []uint64
	failed := s.run(1, func(seed uint64) bool {
		got = append(got, seed)
		return seed != 1001
	})
	if diff := cmp.Diff([]uint64{1001}, failed); diff != "" {
		t.Errorf("failed seeds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3, 1000, 1001}, got); diff != "" {
		t.Errorf("seeds that were run (-want +got):\n%s", diff)
	}
}

// The processors are shared: one seed does not wait for another.
func TestSeedsRunTogether(t *testing.T) {
	s := &seeds{fixed: []uint64{1, 2}}
	meet := make(chan uint64)
	s.run(2, func(seed uint64) bool {
		select {
		case meet <- seed:
		case <-meet:
		case <-time.After(time.Minute):
			t.Errorf("seed %d waited a minute for the other one to begin", seed)
		}
		return true
	})
}

func TestRun(t *testing.T) {
	t.Setenv(seedVariable, "")
	t.Setenv(seedsVariable, "5")
	var mu sync.Mutex
	names := map[string]bool{}
	Run(t, 2, func(t *testing.T, seed uint64) {
		mu.Lock()
		defer mu.Unlock()
		names[t.Name()] = true
	}, 7)
	if len(names) != 8 || !names["TestRun/1"] || !names["TestRun/7"] {
		t.Errorf("subtests: %v", names)
	}
}
