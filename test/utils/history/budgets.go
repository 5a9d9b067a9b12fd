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

package history

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// BudgetRules are those of PodDisruptionBudgets, for evictions that requests make.
func BudgetRules() []Rule {
	return []Rule{
		{"a budget allows no less than nothing", notNegative},
		{"a pod is evicted only if each budget that counts it has allowed it", newChargedBudgets().check},
	}
}

func notNegative(_ *World, c *Change) string {
	if _, after, ok := versions[*policyv1.PodDisruptionBudget](c); ok && after != nil && after.Status.DisruptionsAllowed < 0 {
		return fmt.Sprintf("it allows %d disruptions", after.Status.DisruptionsAllowed)
	}
	return ""
}

// chargedBudgets has the budgets that have allowed the eviction of a pod, since that was marked last. The disruption
// controller may account for the pod before it is gone.
type chargedBudgets struct {
	// charged has the names of the pods that each budget has allowed since, and markedAt when each pod was marked.
	charged  map[Key]map[string]int64
	markedAt map[types.UID]int64
}

func newChargedBudgets() *chargedBudgets {
	return &chargedBudgets{charged: map[Key]map[string]int64{}, markedAt: map[types.UID]int64{}}
}

func (b *chargedBudgets) check(w *World, c *Change) string {
	if _, after, ok := versions[*policyv1.PodDisruptionBudget](c); ok {
		if after == nil {
			delete(b.charged, c.Key)
			return ""
		}
		if b.charged[c.Key] == nil {
			b.charged[c.Key] = map[string]int64{}
		}
		for name := range after.Status.DisruptedPods {
			b.charged[c.Key][name] = c.Revision
		}
		return ""
	}
	before, after, ok := versions[*v1.Pod](c)
	if !ok || before == nil || before.DeletionTimestamp != nil || markOf(before) == "" || !isReady(before) || hasEnded(before) ||
		before.Status.Phase != v1.PodRunning || after != nil && after.UID == before.UID && after.DeletionTimestamp == nil {
		return ""
	}
	text := ""
	each(w, func(budget *policyv1.PodDisruptionBudget) {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || budget.Namespace != before.Namespace || !selector.Matches(labels.Set(before.Labels)) {
			return
		}
		key := Key{"PodDisruptionBudget", types.NamespacedName{Namespace: budget.Namespace, Name: budget.Name}}
		// One that has come meanwhile was not asked.
		if _, allowed := b.charged[key][before.Name]; !allowed && w.hasHeld(key, exists, settled) {
			text = fmt.Sprintf("budget %s has not allowed it: %+v", budget.Name, budget.Status)
		}
	})
	return text
}

// leaves reports whether a drain with the plan that takes all pods waits for a pod: not for those that have ended, and
// not for those of DaemonSets and static ones, which who runs them stops.
func leaves(pod *v1.Pod) bool {
	if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; static || hasEnded(pod) {
		return false
	}
	return !slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "DaemonSet" })
}
