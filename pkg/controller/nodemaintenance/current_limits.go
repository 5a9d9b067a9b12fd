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

package nodemaintenance

import (
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// awaitLimits returns all maintenances when this process knows all budgets that were stored before one
// of them was read: see hasCurrentLimits. It returns false if ctx ends before.
func (c *Controller) awaitLimits(ctx context.Context) ([]*coordinationv1alpha1.NodeMaintenance, bool) {
	all, err := c.maintenanceLister.List(labels.Everything())
	if err != nil {
		return nil, true // The lister of a cache returns no error.
	}
	for wait := time.Duration(0); ; wait = min(max(2*wait, pace.StaleInterval), pace.MaxStaleInterval) {
		if wait > 0 {
			select {
			case <-c.clock.After(wait):
			case <-ctx.Done():
				return nil, false
			}
		}
		has, err := c.hasStoredLimits(ctx)
		if err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "No node is reconciled before the budgets are known, will retry")
		}
		if has {
			break
		}
	}
	for _, m := range all {
		c.progress.Limits.MarkChecked(m)
	}
	return all, true
}

// hasCurrentLimits reports whether this process knows all budgets that were stored before the
// maintenance was seen in the stage Drain. Without a rollout, it begins with each node that no budget
// selects: a budget that was created a moment before must not be missed because the cache is behind.
// The budgets are read from the API server once for each generation of the maintenance, not for each
// node.
func (c *Controller) hasCurrentLimits(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) (bool, error) {
	switch {
	case m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain, m.Spec.Rollout != nil, isShutdown(m):
		return true, nil
	case c.progress.Limits.IsChecked(m):
		return true, nil
	}
	has, err := c.hasStoredLimits(ctx)
	if has {
		c.progress.Limits.MarkChecked(m)
	}
	return has, err
}

// hasStoredLimits reports whether this process knows all budgets that the API server has.
func (c *Controller) hasStoredLimits(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, write.ReadTimeout)
	defer cancel()
	stored, err := c.listBudgets(ctx)
	if err != nil {
		return false, fmt.Errorf("listing node maintenance budgets: %w", err)
	}
	return c.progress.Limits.HaveAll(stored), nil
}

// listBudgets returns the budgets that the API server has.
func (c *Controller) listBudgets(ctx context.Context) ([]coordinationv1alpha1.NodeMaintenanceBudget, error) {
	if c.fleet == nil {
		return nil, nil
	}
	list, err := c.writer.Client.CoordinationV1alpha1().NodeMaintenanceBudgets().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		// This API server does not serve them: it has another release, or its gate is off. A maintenance
		// must not wait for that to change, and those that are known still count.
		return nil, nil
	case err != nil:
		return nil, err
	}
	return list.Items, nil
}

// isShutdown reports whether the maintenance is that of a kubelet whose node shuts down, which cannot
// wait.
func isShutdown(m *coordinationv1alpha1.NodeMaintenance) bool {
	if m.Spec.NodeSelector == nil {
		return false
	}
	for _, term := range m.Spec.NodeSelector.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			for _, node := range field.Values {
				if m.Name == maintenance.ShutdownName(node) {
					return true
				}
			}
		}
	}
	return false
}
