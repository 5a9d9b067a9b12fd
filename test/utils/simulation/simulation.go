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
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	seedVariable  = "SIMULATION_SEED"
	seedsVariable = "SIMULATION_SEEDS"
)

// Run calls simulate, in a subtest, for each seed: the fixed ones from 1 to count, and as many
// random ones, unless the environment says otherwise. Seeds fit into an int64. The subtests
// share the processors, so simulate must not use what another one changes; it must behave the
// same whenever it is called with the same seed. Run stops after the first failure and says
// how to repeat it.
//
// Regressions are seeds that failed once; they are run with the fixed ones.
func Run(t *testing.T, count int, simulate func(t *testing.T, seed uint64), regressions ...uint64) {
	t.Helper()
	seeds, err := newSeeds(os.Getenv, count, regressions)
	if err != nil {
		t.Fatal(err)
	}
	// Before the first of them, so that it is there whatever becomes of the test.
	t.Logf("%v", seeds)
	start := time.Now()
	failed := seeds.run(runtime.GOMAXPROCS(0), func(seed uint64) bool {
		return t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { simulate(t, seed) })
	})
	for _, seed := range failed {
		t.Errorf("to repeat this: %s=%d go test -run '^%s$'", seedVariable, seed, t.Name())
	}
	if seeds.verbose && len(failed) == 0 {
		// A test that passes does not show its log.
		fmt.Println(seeds.summary(t.Name(), time.Since(start)))
	}
}

// IsLong reports whether the environment asks for a long run, by a number of random seeds. A simulation
// that has no seeds may be larger then.
func IsLong() bool {
	random, err := strconv.Atoi(os.Getenv(seedsVariable))
	return err == nil && random > 0
}

// seeds are the seeds of one run.
type seeds struct {
	fixed []uint64
	// The random ones are base, base+1 and so on.
	base   uint64
	random int
	// verbose is whether the run reports its duration.
	verbose bool
}

func newSeeds(getenv func(string) string, count int, regressions []uint64) (*seeds, error) {
	if value := getenv(seedVariable); value != "" {
		seed, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no seed: %w", seedVariable, err)
		}
		return &seeds{fixed: []uint64{seed}}, nil
	}
	s := &seeds{random: count}
	if value := getenv(seedsVariable); value != "" {
		random, err := strconv.Atoi(value)
		if err != nil || random < 0 {
			return nil, fmt.Errorf("%s=%q is no number of seeds", seedsVariable, value)
		}
		s.random, s.verbose = random, true
	}
	for seed := range count {
		s.fixed = append(s.fixed, uint64(seed+1))
	}
	s.fixed = append(s.fixed, regressions...)
	// Half of the range, so that adding the number of the seed does not overflow an int64.
	s.base = rand.Uint64() >> 2
	return s, nil
}

func (s *seeds) String() string {
	text := fmt.Sprintf("%d fixed seeds", len(s.fixed))
	if s.random > 0 {
		text += fmt.Sprintf(", %d random seeds from %d", s.random, s.base)
	}
	return text
}

func (s *seeds) summary(name string, duration time.Duration) string {
	total := len(s.fixed) + s.random
	return fmt.Sprintf("%s: %v: %.1f s, %.0f seeds a second", name, s, duration.Seconds(), float64(total)/duration.Seconds())
}

func (s *seeds) at(i int) (uint64, bool) {
	switch {
	case i < len(s.fixed):
		return s.fixed[i], true
	case i < len(s.fixed)+s.random:
		return s.base + uint64(i-len(s.fixed)), true
	default:
		return 0, false
	}
}

// run calls one for each seed, several at the same time, until one returns false. It returns
// the seeds that failed: those that were running at that time may be among them.
func (s *seeds) run(workers int, one func(seed uint64) bool) []uint64 {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		next   int
		failed []uint64
	)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(failed) > 0 {
			return 0, false
		}
		seed, ok := s.at(next)
		next++
		return seed, ok
	}
	for range workers {
		wg.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				if !one(seed) {
					mu.Lock()
					failed = append(failed, seed)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}
