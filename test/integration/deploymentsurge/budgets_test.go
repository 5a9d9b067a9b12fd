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

package deploymentsurge

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// budgetTests are budgets for one replica. The first two never allow its eviction without a surge.
var budgetTests = []struct {
	name string
	spec policyv1.PodDisruptionBudgetSpec
	// before, surging and surged are the states of the budget during the test.
	before, surging, surged string
}{
	{
		name:    "minAvailable 1",
		spec:    policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))},
		before:  "1 healthy of 1 expected, 0 allowed",
		surging: "1 healthy of 2 expected, 0 allowed",
		surged:  "2 healthy of 2 expected, 1 allowed",
	},
	{
		name:    "maxUnavailable 0",
		spec:    policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))},
		before:  "1 healthy of 1 expected, 0 allowed",
		surging: "1 healthy of 1 expected, 0 allowed",
		surged:  "2 healthy of 1 expected, 1 allowed",
	},
	{
		name:    "maxUnavailable 1",
		spec:    policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))},
		before:  "1 healthy of 1 expected, 1 allowed",
		surging: "1 healthy of 1 expected, 1 allowed",
		surged:  "2 healthy of 1 expected, 2 allowed",
	},
}

// testBudget evicts a single replica that a budget protects.
func testBudget(spec policyv1.PodDisruptionBudgetSpec, before, surging, surged string) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		scaling := newScalingBarrier()
		c.startControllersThrough(true, scaling.Wrap)
		old := c.createDeployment(newDeployment(1))[0]
		c.createBudget(spec)
		c.await("the budget", states{"budget": before})
		history := c.watchAll()
		c.surge([]*v1.Pod{old})
		c.await("the budget with a replacement that is not ready", states{"budget": surging})
		// The replacement exists, but the Deployment cannot scale down.
		scaling.Close()
		c.setUnready(none)
		c.await("the budget to allow a disruption", states{"pods": "2 ready", "budget": surged})
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: old.Name, Namespace: c.Namespace},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &old.UID}},
		}
		if err := c.Client.PolicyV1().Evictions(c.Namespace).Evict(t.Context(), eviction); err != nil {
			t.Errorf("eviction with an available replacement: %v, must be allowed", err)
		}
		c.expectLiving(old)
		scaling.Open()
		c.awaitMoved(1, old)
		c.await("the budget at the end", states{"budget": before})
		c.expectBounds(history, bounds{most: 2, least: 1})
	}
}
