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
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func requestNamed(name string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Name = name }
}

// TestSweep: each open request is enqueued once in a safetyInterval, and not all at the same time.
func TestSweep(t *testing.T) {
	f := newFixture(t)
	const number = 300
	for i := range number {
		state := imperativeActive()
		if i%2 == 0 {
			state = having(targets(first), active(first, 0))
		}
		f.addToCache(t, newRequest(requestNamed(fmt.Sprintf("%d-78b1-4b4f-9c1e-52f9b6f0a1d3", i)), state))
	}
	decisions, evictions := map[types.NamespacedName]int{}, map[evictionItem]int{}
	for range sweeps {
		f.clock.Step(sweepInterval)
		f.sweepOnce(f.Controller.clock.Now())
		swept := f.decisions.taken()
		if len(swept) > number/10 {
			t.Errorf("one of %d sweeps has enqueued %d of %d requests", sweeps, len(swept), number)
		}
		for _, key := range swept {
			decisions[key]++
		}
		for _, item := range f.evictions.taken() {
			evictions[item]++
		}
	}
	if len(decisions) != number || len(evictions) != number/2 {
		t.Errorf("%d requests and %d evictions were enqueued, want %d and %d", len(decisions), len(evictions), number, number/2)
	}
	for key, times := range decisions {
		if times != 1 {
			t.Errorf("%s was enqueued %d times", key, times)
		}
	}
}

// TestSweepOrder: the oldest requests come first.
func TestSweepOrder(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.addToCache(t, newRequest(requestNamed(fmt.Sprint(i)), func(request *coordinationv1alpha1.EvictionRequest) {
			request.CreationTimestamp = *at(time.Duration(i*7%20) * time.Minute)
		}))
	}
	for range sweeps {
		f.sweepOnce(f.Controller.clock.Now())
		ages := []time.Time{}
		for _, key := range f.decisions.taken() {
			request, err := f.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
			if err != nil {
				t.Fatal(err)
			}
			ages = append(ages, request.CreationTimestamp.Time)
		}
		if !slices.IsSortedFunc(ages, time.Time.Compare) {
			t.Errorf("not the oldest first: %v", ages)
		}
	}
}

// TestSweepFinished: a finished request is enqueued when its TTL has passed. If it cannot be deleted, that is not
// tried again with every sweep.
func TestSweepFinished(t *testing.T) {
	f := newFixture(t, newRequest(having(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0))))
	sweep := func(until time.Duration) (enqueued int) {
		for f.clock.Now().Before(start.Add(until)) {
			f.clock.Step(sweepInterval)
			f.sweepOnce(f.Controller.clock.Now())
			enqueued += len(f.decisions.taken())
		}
		return enqueued
	}
	if got := sweep(ttl - sweepInterval); got != 0 {
		t.Errorf("enqueued %d times before the TTL has passed", got)
	}
	if got := sweep(ttl); got != 1 {
		t.Errorf("enqueued %d times when the TTL has passed, want once", got)
	}
	if got := sweep(ttl + 2*safetyInterval); got != 2 {
		t.Errorf("enqueued %d times in two safety intervals after that, want twice", got)
	}
	f.ttlAfterFinished = 0
	if got := sweep(ttl + 4*safetyInterval); got != 0 {
		t.Errorf("enqueued %d times without a TTL", got)
	}
}
