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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiServer answers evictions under one budget on a clock of its own.
type apiServer struct {
	pace pace
	now  time.Time
	// answer returns how long an eviction takes while this many are in flight.
	answer func(inFlight int) time.Duration
	// inFlight has the begin and end of each eviction.
	inFlight [][2]time.Time
	limits   []int
	done     int
	slow     int
}

func newAPIServer(answer func(int) time.Duration) *apiServer {
	return &apiServer{pace: newPace(), now: start, answer: answer}
}

// run evicts for some time, always with as many in flight as the pace allows.
func (s *apiServer) run(duration time.Duration) {
	for end := s.now.Add(duration); s.now.Before(end); {
		for len(s.inFlight) < s.pace.limit {
			s.inFlight = append(s.inFlight, [2]time.Time{s.now, s.now.Add(s.answer(len(s.inFlight) + 1))})
			s.pace.begin(s.now)
		}
		slices.SortFunc(s.inFlight, func(a, b [2]time.Time) int { return a[1].Compare(b[1]) })
		first := s.inFlight[0]
		s.inFlight = s.inFlight[1:]
		s.now = first[1]
		s.done++
		if first[1].Sub(first[0]) >= slowEviction {
			s.slow++
		}
		before := s.pace.limit
		if grown := s.pace.end(first[0], first[1], false); grown != (s.pace.limit > before) {
			panic(fmt.Sprintf("grown is %t, but the limit changed from %d to %d", grown, before, s.pace.limit))
		}
		if s.pace.limit != before {
			s.limits = append(s.limits, s.pace.limit)
		}
	}
}

// lane is an API server with EvictionLane: more evictions at a time take hardly longer.
func lane(inFlight int) time.Duration {
	return 5*time.Millisecond + time.Duration(inFlight)*time.Millisecond
}

// plain is one without: an eviction takes 100 ms, and half a second more for each conflict. Of two, one
// has none.
func plain(inFlight int) time.Duration {
	return 100*time.Millisecond + time.Duration(max(inFlight-minEvictionsPerBudget, 0))*500*time.Millisecond
}

func TestPaceOfALane(t *testing.T) {
	s := newAPIServer(lane)
	s.run(time.Second)
	if got, want := fmt.Sprint(s.limits), "[4 8 16 32]"; got != want {
		t.Errorf("limits %s, want %s", got, want)
	}
	// It stays at the maximum.
	s.run(time.Hour)
	if s.pace.limit != maxEvictionsPerBudget || len(s.limits) != 4 {
		t.Errorf("limits %v, want no further change", s.limits)
	}
}

func TestPaceWithoutALane(t *testing.T) {
	s := newAPIServer(plain)
	s.run(10 * time.Minute)
	// Twice the minimum is tried once, and then one more only as often as patience lets it.
	if highest := slices.Max(s.limits[1:]); highest > minEvictionsPerBudget+1 {
		t.Errorf("%d evictions are in flight", highest)
	}
	s.done, s.slow = 0, 0
	s.run(10 * time.Minute)
	if s.slow*maxPacePatience > 2*s.done || s.slow*maxPacePatience < s.done {
		t.Errorf("%d of %d answers are slow, want one or two in %d", s.slow, s.done, maxPacePatience)
	}
}

// An API server that becomes slow is relieved, and one that becomes quick again is used again.
func TestPaceChanges(t *testing.T) {
	s := newAPIServer(lane)
	s.run(time.Minute)
	s.limits = nil
	s.answer = func(int) time.Duration { return time.Second }
	s.run(30 * time.Second)
	if got, want := fmt.Sprint(s.limits), "[16 8 4 2]"; got != want {
		t.Errorf("limits %s of a slow API server, want %s", got, want)
	}
	s.answer = lane
	s.run(5 * time.Minute)
	if s.pace.limit != maxEvictionsPerBudget || s.pace.patience != 2 {
		t.Errorf("limit %d with patience %d of an API server that is quick again, want %d with 2", s.pace.limit, s.pace.patience, maxEvictionsPerBudget)
	}
}

// paceStep is an eviction with the limit and the patience after its answer.
type paceStep struct {
	began, took time.Duration
	conflict    bool
	want        string
}

func TestPaceSteps(t *testing.T) {
	const quick, slow, second = 100 * time.Millisecond, slowEviction, time.Second
	for name, test := range map[string]struct {
		// others are evictions without an answer.
		others []time.Duration
		steps  []paceStep
	}{
		"a slow answer at the lowest limit changes nothing": {steps: []paceStep{{0, slow, false, "2/1"}, {0, time.Hour, false, "2/1"}}},
		"as slow as may be":                  {steps: []paceStep{{0, slow - 1, false, "2/1"}, {0, slow - 1, false, "4/1"}}},
		"an increase takes quick answers":    {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {second, quick, false, "4/1"}, {second, quick, false, "4/1"}, {second, quick, false, "4/1"}, {second, quick, false, "8/1"}}},
		"an increase waits for late answers": {others: []time.Duration{0}, steps: []paceStep{{0, quick, false, "2/1"}, {0, lateEviction, false, "2/1"}, {second, quick, false, "2/1"}}},
		"others that are not late":           {others: []time.Duration{0, 1}, steps: []paceStep{{0, quick, false, "2/1"}, {0, lateEviction - 1, false, "4/1"}}},
		"a conflict halves":                  {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {second, quick, true, "2/2"}}},
		"one conflict of several halves":     {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {second, quick, false, "4/1"}, {second, quick, false, "4/1"}, {second, quick, false, "4/1"}, {second, quick, false, "8/1"}, {2 * second, quick, true, "4/2"}, {2 * second, 2 * quick, true, "4/2"}, {2*second + quick, quick, true, "2/4"}}},
		"not below the lowest limit":         {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {second, quick, true, "2/2"}, {2 * second, quick, true, "2/2"}}},
		"half of an odd limit":               {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {second, quick, true, "2/2"}, {2 * second, quick, false, "2/2"}, {2 * second, quick, false, "2/2"}, {2 * second, quick, false, "2/2"}, {2 * second, quick, false, "3/2"}, {3 * second, quick, true, "2/4"}}},
		"what began before an increase":      {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {0, slow, false, "2/2"}}},
		"after a conflict it takes patience": {steps: []paceStep{{0, quick, false, "2/1"}, {0, quick, false, "4/1"}, {second, quick, true, "2/2"}, {2 * second, quick, false, "2/2"}, {2 * second, quick, false, "2/2"}, {2 * second, quick, false, "2/2"}, {2 * second, quick, false, "3/2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace()
			for _, began := range test.others {
				p.begin(start.Add(began))
			}
			var got, want []string
			for _, step := range test.steps {
				began := start.Add(step.began)
				p.begin(began)
				p.end(began, began.Add(step.took), step.conflict)
				got, want = append(got, fmt.Sprintf("%d/%d", p.limit, p.patience)), append(want, step.want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit/patience %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
			}
			if len(p.inFlight) != len(test.others) {
				t.Errorf("%d evictions are in flight, want %d", len(p.inFlight), len(test.others))
			}
		})
	}
}

// The queue of a budget has as many evictions in flight as the answers allow.
func TestPaceOfABudget(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errors.New("changed"))
	for name, test := range map[string]struct {
		took time.Duration
		err  error
		want []int
	}{
		"quick answers": {want: []int{1, 2, 2, 2, 3}},
		"slow answers":  {took: slowEviction, want: []int{1, 2, 2, 2, 2}},
		"conflicts":     {err: conflict, want: []int{1, 2, 2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBudget("web", allowing(5)))
			var inFlight []int
			now := 0
			f.imperative.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
				now++
				inFlight = append(inFlight, now)
				f.runEvictions(t) // Other workers.
				f.clock.Step(test.took)
				now--
				return test.err
			}
			for i := range 5 {
				f.enqueue(t)(pair(fmt.Sprint(i), time.Duration(i)*time.Second))
			}
			f.runEvictions(t)
			if !slices.Equal(inFlight, test.want) {
				t.Errorf("evictions in flight %d, want %d", inFlight, test.want)
			}
		})
	}
}
