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

package storage

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/dryrun"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/pod/evictionlane"
)

// budgetsOf returns the budgets of the pod. It is getPodDisruptionBudgets, but does not parse all budgets of the namespace
// where the lane has them parsed.
func (r *EvictionREST) budgetsOf(ctx context.Context, pod *api.Pod) ([]policyv1.PodDisruptionBudget, error) {
	if lane, ok := r.podDisruptionBudgetClient.(*evictionlane.Lane); ok {
		if budgets, known := lane.Select(ctx, pod.Namespace, pod.Labels); known {
			return budgets, nil
		}
	}
	return r.getPodDisruptionBudgets(ctx, pod)
}

// decrementInLane has checkAndDecrement decide on the stored budget, together with the other
// evictions that wait for it. It does nothing, and returns false, if the feature gate EvictionLane is
// off.
func (r *EvictionREST) decrementInLane(ctx context.Context, pod *api.Pod, budget *policyv1.PodDisruptionBudget, options *metav1.DeleteOptions) (done bool, err error) {
	lane, ok := r.podDisruptionBudgetClient.(*evictionlane.Lane)
	if !ok {
		return false, nil
	}
	if dryrun.IsDryRun(options.DryRun) {
		// Nothing is written. A copy, because the list is shared and checkAndDecrement changes it.
		return true, r.checkAndDecrement(pod.Namespace, pod.Name, *budget.DeepCopy(), true)
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: budget.Name}
	return true, lane.Decrement(ctx, key, func(client policyclient.PodDisruptionBudgetsGetter, stored policyv1.PodDisruptionBudget) error {
		return (&EvictionREST{podDisruptionBudgetClient: client}).checkAndDecrement(pod.Namespace, pod.Name, stored, false)
	})
}
