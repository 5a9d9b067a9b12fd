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

package evictionpacing

import (
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
)

// Limit is how many pods of a workload may be unavailable at a time.
type Limit struct {
	Pods int
	// Budget is the name of the PodDisruptionBudget that says so, or "" if the workload says so.
	Budget string
}

// LimitOf returns the limit for a workload with these pods, whose own limit is maxUnavailable. If exactly
// one budget selects all of its pods, the owner has said with it how many may be disrupted at a time. The
// API server evicts no pod beyond that, so a budget in the cache that is out of date makes no pod
// unavailable.
//
// A budget that permits no disruption is not what the pods wait for here: one of them is released,
// and its request says that the budget blocks the eviction.
func LimitOf(pods []*v1.Pod, budgets *poddisruptionbudget.Index, maxUnavailable int) Limit {
	if budget := onlyBudgetOf(pods, budgets); budget != nil {
		if permitted, known := poddisruptionbudget.Permitted(budget); known {
			return Limit{Pods: max(permitted, 1), Budget: budget.Name}
		}
	}
	return Limit{Pods: max(maxUnavailable, 1)}
}

// onlyBudgetOf returns the budget that selects all the pods if none of them has another one.
// Otherwise it returns nil.
func onlyBudgetOf(pods []*v1.Pod, budgets *poddisruptionbudget.Index) *policy.PodDisruptionBudget {
	var only *policy.PodDisruptionBudget
	for _, pod := range pods {
		selecting := budgets.For(pod)
		if len(selecting) != 1 || only != nil && selecting[0].Name != only.Name {
			return nil
		}
		only = selecting[0]
	}
	return only
}

// SamePermission reports whether the limit that follows from a budget has not changed.
func SamePermission(a, b *policy.PodDisruptionBudget) bool {
	permittedA, knownA := poddisruptionbudget.Permitted(a)
	permittedB, knownB := poddisruptionbudget.Permitted(b)
	return a.Generation == b.Generation && a.UID == b.UID && permittedA == permittedB && knownA == knownB
}
