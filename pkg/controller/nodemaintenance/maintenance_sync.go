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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
)

// syncMaintenance reads one maintenance and what the ledger knows of its nodes, and
// writes its finalizer, its stage and its status. What happens to nodes is up to
// syncNode.
func (c *Controller) syncMaintenance(ctx context.Context, name string) error {
	if !c.writer.isCurrentMaintenance(name) {
		c.maintenances.AddAfter(name, c.staleMaintenances.wait(name))
		return nil
	}
	c.staleMaintenances.reset(name)
	m, err := c.maintenanceLister.Get(name)
	if apierrors.IsNotFound(err) {
		c.enqueueNodes(c.ledger.forget(name))
		c.writer.forgetMaintenance(name)
		c.maintenanceWrites.forget(name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the maintenance: %w", err)
	}
	switch nextStep(m) {
	case stepComplete:
		return c.tried(name, c.writer.complete(ctx, m))
	case stepAddFinalizer:
		// Nodes learn that it is about to hold them, so that they are not made schedulable in
		// between.
		if err := c.observe(m); err != nil {
			c.events.invalid(m, err)
			return nil
		}
		return c.tried(name, c.writer.addFinalizer(ctx, m))
	case stepRemoveFinalizer:
		_, err := c.writer.removeFinalizer(ctx, m)
		return err
	case stepNothing:
		c.enqueueNodes(c.ledger.forget(name))
		return nil
	}
	if err := c.observe(m); err != nil {
		// The API server validates both: asking again does not help.
		c.events.invalid(m, err)
		return nil
	}
	return c.syncStatus(ctx, m, c.clock.Now())
}

// tried returns the outcome of a write without which a claim remains one. Others that drain
// its nodes do not wait for it if that has failed, until it succeeds.
func (c *Controller) tried(name string, err error) error {
	if err != nil {
		c.enqueueNodes(c.ledger.refuse(name))
	}
	return err
}

// step is what has to happen to a maintenance before anything else.
type step int

const (
	stepObserve step = iota
	stepComplete
	stepAddFinalizer
	stepRemoveFinalizer
	stepNothing
)

// nextStep decides on the stage and the finalizer. Beyond the stage Idle nothing is done
// before the finalizer is there, so that nothing is left behind if the object goes.
func nextStep(m *coordinationv1alpha1.NodeMaintenance) step {
	idle := m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageIdle
	complete := m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete
	guarded := hasFinalizer(m)
	switch deleted := m.DeletionTimestamp != nil; {
	case deleted && idle && guarded:
		// Restored from a backup, for example. It has touched nothing: completing it would make
		// nodes schedulable that others have cordoned.
		return stepRemoveFinalizer
	case deleted && !idle && !complete:
		return stepComplete
	case idle || guarded:
		return stepObserve
	case deleted, complete && hasStarted(&m.Status, coordinationv1alpha1.NodeMaintenanceStageComplete):
		// Completed, or deleted before anything was done: the finalizer is gone, or cannot be
		// added any more.
		return stepNothing
	}
	return stepAddFinalizer
}

// observe enters the maintenance into the ledger and has the nodes looked at that it
// concerns.
func (c *Controller) observe(m *coordinationv1alpha1.NodeMaintenance) error {
	wanted, err := newOrder(m)
	if err != nil {
		return err
	}
	stored := 0
	if position := m.Status.DrainStatus.DrainPlanPosition; position != nil {
		stored = int(*position)
	}
	c.enqueueNodes(c.ledger.observe(wanted, stored, c.listNodes))
	return nil
}

// listNodes returns all nodes of the cluster.
func (c *Controller) listNodes() []*v1.Node {
	nodes, err := c.nodeLister.List(labels.Everything())
	if err != nil {
		return nil // A lister of a cache has no errors.
	}
	return nodes
}

// syncStatus writes the status if it has changed, at most once in a while, and lets a
// maintenance go that is completed and says so.
func (c *Controller) syncStatus(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, now time.Time) error {
	wait := c.maintenanceWrites.wait(m.Name, now)
	if wait > 0 && m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		// Every pod that leaves asks for this. What could not be written is not computed.
		c.maintenances.AddAfter(m.Name, wait)
		return nil
	}
	sums, known := c.ledger.summarize(m.Name)
	if !known {
		return nil
	}
	status := computeStatus(m, &sums, now)
	switch unchanged := apiequality.Semantic.DeepEqual(&m.Status, status); {
	case unchanged && sums.released:
		return c.letGo(ctx, m)
	case unchanged:
		return nil
	case wait > 0:
		c.maintenances.AddAfter(m.Name, wait)
		return nil
	}
	written, err := c.writer.setStatus(ctx, m, status)
	if err != nil || !written {
		return err
	}
	c.maintenanceWrites.wrote(m.Name, now)
	c.events.maintenanceChanged(m, status)
	c.measure(m, status, now)
	return nil
}

// letGo ends a maintenance that is completed. No pod is asked because of it after that, also on
// a node that it has ceased to select meanwhile.
func (c *Controller) letGo(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	if c.requests.isAskingFor(m.Name) {
		c.maintenances.AddAfter(m.Name, lookInterval)
		return nil
	}
	written, err := c.writer.removeFinalizer(ctx, m)
	if err != nil || !written {
		return err
	}
	c.events.completed(m)
	return nil
}

// measure updates the metrics for a maintenance that got a new status.
func (c *Controller) measure(m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus, now time.Time) {
	for _, stage := range status.StageStatuses {
		if !hasStarted(&m.Status, stage.Name) {
			metrics.CountStageTransition(stage.Name)
		}
	}
	started := startOf(status, coordinationv1alpha1.NodeMaintenanceStageDrain)
	if started == nil {
		return
	}
	before := podTypesDone(m, &m.Status)
	for _, podType := range podTypesDone(m, status) {
		// A pod that comes back after the drain does not make it end twice.
		if !slices.Contains(before, podType) && c.ledger.timeOnce(m.Name, podType) {
			metrics.ObserveDrainDuration(podType, now.Sub(started.Time))
		}
	}
}

// isDrained tells whether the condition Drained is True.
func isDrained(status *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	condition := findDrained(status)
	return condition != nil && condition.Status == metav1.ConditionTrue
}
