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
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// countingIndex counts look-ups, and calls after when the first is done.
type countingIndex struct {
	budgetIndex
	lookUps int
	after   func()
}

func (c *countingIndex) For(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	c.lookUps++
	budgets := c.budgetIndex.For(pod)
	if after := c.after; after != nil {
		c.after = nil
		after()
	}
	return budgets
}

// A sync looks up the budgets of its pod once, and again only if a budget has changed since: the
// event of that may have been handled before the request was placed, and found no request.
func TestBudgetsAreLookedUpOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(f *fixture)
		want      int
	}{
		"no change":           {func(*fixture) {}, 1},
		"a deleted budget":    {func(f *fixture) { f.sendDelete(t, newBudget("web")) }, 2},
		"a new budget":        {func(f *fixture) { f.sendUpdate(t, newBudget("spare")) }, 2},
		"a budget of another": {func(f *fixture) { f.sendUpdate(t, newBudget("db", selecting("db"))) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBudget("web", allowing(1)))
			request, pod := pair("a", 0)
			f.addToCache(t, request)
			f.addToCache(t, pod)
			index := &countingIndex{budgetIndex: f.imperative.budgetIndex, after: func() { tc.meanwhile(f) }}
			f.imperative.budgetIndex = index
			if err := f.imperative.syncRequest(t.Context(), keyOf(request)); err != nil {
				t.Fatal(err)
			}
			if index.lookUps != tc.want {
				t.Errorf("%d look-ups, want %d", index.lookUps, tc.want)
			}
		})
	}
}
