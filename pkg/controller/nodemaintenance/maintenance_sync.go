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
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// syncMaintenance reconciles one maintenance: its finalizer, its stage and its status. It writes
// nothing to nodes: see syncNode.
func (c *Controller) syncMaintenance(ctx context.Context, name string) error {
	if !c.writer.IsCurrentMaintenance(name) {
		c.maintenanceQueue.AddAfter(name, c.pacer.AfterStale(pace.MaintenanceCache, name))
		return nil
	}
	c.pacer.Current(pace.MaintenanceCache, name)
	m, err := c.maintenanceLister.Get(name)
	if apierrors.IsNotFound(err) {
		c.enqueueNodes(c.progress.Remove(name))
		c.writer.ForgetMaintenance(name)
		c.pacer.ForgetMaintenance(name)
		c.progress.Limits.Forget(name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the maintenance: %w", err)
	}
	switch c.pacedStep(m) {
	case stepComplete:
		return c.noteFinalizerFailed(ctx, m, c.writer.Complete(ctx, m))
	case stepAddFinalizer:
		// Before the finalizer is stored: its nodes are not uncordoned meanwhile, if another
		// maintenance completes.
		if err := c.observe(m); err != nil {
			c.events.Invalid(m, err)
			return nil
		}
		return c.addFinalizer(ctx, m)
	case stepRemoveFinalizer:
		_, err := c.writer.RemoveFinalizer(ctx, m)
		c.reportWrite(ctx, m, err)
		return err
	case stepNothing:
		c.enqueueNodes(c.progress.Forget(name, m.UID))
		return nil
	}
	if current, err := c.hasCurrentLimits(ctx, m); err != nil {
		c.enqueueNodes(c.progress.FinalizerFailed(name))
		return err
	} else if !current {
		c.maintenanceQueue.AddAfter(name, c.pacer.AfterStale(pace.BudgetCache, name))
		return nil
	}
	c.pacer.Current(pace.BudgetCache, name)
	if err := c.observe(m); err != nil {
		// A retry would not help. The API server validates both fields.
		c.events.Invalid(m, err)
		return nil
	}
	return c.syncStatus(ctx, m, c.clock.Now())
}

// pacedStep is nextStep, but a finalizer that others remove again and again, such as by replacing the object by a manifest,
// has the pace of contested cordons. The maintenance goes on without it: it has begun, and its nodes say so.
func (c *Controller) pacedStep(m *coordinationv1alpha1.NodeMaintenance) step {
	next := nextStep(m)
	if next != stepAddFinalizer || !progress.IsEffective(m) {
		return next
	}
	if wait := c.pacer.AfterRevert(pace.RevertedFinalizer, m.Name, c.clock.Now()); wait > 0 {
		c.maintenanceQueue.AddAfter(m.Name, wait)
		return stepObserve
	}
	return next
}

// addFinalizer adds the finalizer, for the first time or again.
func (c *Controller) addFinalizer(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	err := c.noteFinalizerFailed(ctx, m, c.writer.AddFinalizer(ctx, m))
	if err == nil && progress.IsEffective(m) && c.pacer.Rewrote(pace.RevertedFinalizer, m.Name, time.Time{}, c.clock.Now()) {
		c.events.FinalizerContested(m)
	}
	return err
}

// noteFinalizerFailed returns the outcome of a write that comes before the maintenance has an effect, such as
// that of the finalizer. If it has failed, other drains of the nodes do not wait for it
// any longer.
func (c *Controller) noteFinalizerFailed(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, err error) error {
	if err != nil {
		c.reportWrite(ctx, m, err)
		c.enqueueNodes(c.progress.FinalizerFailed(m.Name))
	}
	return err
}

// reportWrite emits an event if the API server has refused a write of the maintenance: its status cannot say
// that.
func (c *Controller) reportWrite(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, err error) {
	if isRefusal(ctx, err) {
		c.events.MaintenanceFailed(m, err)
	}
}

// isRefusal reports whether a write has failed that people have to know of: not because the object has changed
// or is gone, or the controller stops.
func isRefusal(ctx context.Context, err error) bool {
	return err != nil && !errors.Is(ctx.Err(), context.Canceled) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err)
}

// step is what a maintenance needs first.
type step int

const (
	stepObserve step = iota
	stepComplete
	stepAddFinalizer
	stepRemoveFinalizer
	stepNothing
)

// nextStep decides on the stage and the finalizer. Beyond the stage Idle, the finalizer comes first,
// so that nothing stays behind if the object is deleted.
func nextStep(m *coordinationv1alpha1.NodeMaintenance) step {
	idle := m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageIdle
	complete := m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete
	guarded := progress.HasFinalizer(m)
	switch deleted := m.DeletionTimestamp != nil; {
	case deleted && idle && guarded:
		// It was restored from a backup, for example, and has changed no node. If it were
		// completed, nodes would become schedulable that other clients have cordoned.
		return stepRemoveFinalizer
	case deleted && !idle && !complete:
		return stepComplete
	case idle || guarded:
		return stepObserve
	case deleted, complete && hasEnded(&m.Status):
		// It is completed, or was deleted before it has changed anything: the finalizer is removed,
		// or cannot be added any more.
		return stepNothing
	}
	return stepAddFinalizer
}

// hasEnded reports whether a maintenance without the finalizer has done what the stage Complete asks for. If its
// conditions say that something is left, another client has removed the finalizer, such as one that replaces the object
// by a manifest. A maintenance that an earlier version has completed has no such conditions.
func hasEnded(stored *coordinationv1alpha1.NodeMaintenanceStatus) bool {
	isLeft := func(condition coordinationv1alpha1.NodeMaintenanceConditionType) bool {
		return meta.IsStatusConditionTrue(stored.Conditions, string(condition))
	}
	return progress.HasStarted(stored, coordinationv1alpha1.NodeMaintenanceStageComplete) &&
		(status.HasCompleted(stored) || !isLeft(coordinationv1alpha1.NodeMaintenanceConditionReconciling) && !isLeft(coordinationv1alpha1.NodeMaintenanceConditionStalled))
}

// observe stores the order of the maintenance and enqueues the nodes that it concerns.
func (c *Controller) observe(m *coordinationv1alpha1.NodeMaintenance) error {
	wanted, err := progress.NewSpec(m)
	if err != nil {
		return err
	}
	stored := 0
	if position := m.Status.DrainStatus.DrainPlanPosition; position != nil {
		stored = int(*position)
	}
	c.enqueueNodes(c.progress.Observe(wanted, stored, c.listNodes))
	c.admissions.changed()
	return nil
}

// syncStatus writes the status if it has changed, at most once per pace.StatusInterval, and ends a
// maintenance whose status says that it has released its nodes. While nodes wait, each admission writes
// the status as well: see WriteMaintenance.
func (c *Controller) syncStatus(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, now time.Time) error {
	interval := pace.StatusInterval
	if rollout := m.Status.RolloutStatus; rollout != nil && rollout.WaitingNodes > 0 {
		interval *= 2
	}
	wait := c.pacer.AfterWrite(pace.MaintenanceStatus, m.Name, now, interval)
	if !progress.HasStarted(&m.Status, m.Spec.Stage) {
		wait = 0 // Each stage is stored, however soon the next one follows.
	}
	if wait > 0 && m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		// Every pod that leaves enqueues the maintenance, and the sums of a drain cost most.
		c.maintenanceQueue.AddAfter(m.Name, wait)
		return nil
	}
	sums, waiting, known := c.progress.Summarize(m.Name)
	if !known {
		return nil
	}
	c.enqueueNodes(waiting)
	if sums.Resumes > 0 {
		c.maintenanceQueue.AddAfter(m.Name, sums.Resumes)
	}
	sums.Requesting = sums.Released && c.requests.IsRequestingFor(m.Name)
	desired := status.Compute(m, &sums, now)
	if _, _, next := status.Overdue(&sums, desired, now); next > 0 {
		c.maintenanceQueue.AddAfter(m.Name, next)
	}
	if status.HasCompleted(desired) && !status.HasCompleted(&m.Status) {
		wait = 0 // It is the last one.
	}
	switch unchanged := apiequality.Semantic.DeepEqual(&m.Status, desired); {
	case unchanged && sums.Released:
		return c.end(ctx, m)
	case unchanged:
		return nil
	case wait > 0:
		c.maintenanceQueue.AddAfter(m.Name, wait)
		return nil
	}
	if status.IsDrained(desired) && !status.IsDrained(&m.Status) {
		if err := c.confirm.Drained(ctx, m); write.IsUnseen(err) {
			c.pacer.Wrote(pace.MaintenanceStatus, m.Name, now) // Nothing is written, but what it asks has the pace of writes.
			c.maintenanceQueue.AddAfter(m.Name, pace.FirstRetry)
			return nil
		} else if err != nil {
			return err
		}
	}
	if !c.writer.BeginStatus(m, c.maintenanceLister) {
		c.maintenanceQueue.AddAfter(m.Name, pace.StaleInterval)
		return nil
	}
	defer c.writer.EndStatus(m.Name)
	written, err := c.writer.SetStatus(ctx, m, desired)
	if err != nil || !written {
		c.reportWrite(ctx, m, err)
		return err
	}
	c.wroteStatus(m, desired, now)
	return nil
}

// wroteStatus records that a status was written.
func (c *Controller) wroteStatus(m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus, now time.Time) {
	c.pacer.Wrote(pace.MaintenanceStatus, m.Name, now)
	c.events.MaintenanceChanged(m, status)
	c.measure(m, status, now)
}

// end removes the finalizer of a maintenance that is completed. It first waits for requests that
// are being written because of the maintenance, also on nodes that it does not select any more.
func (c *Controller) end(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	if c.requests.IsRequestingFor(m.Name) {
		c.maintenanceQueue.AddAfter(m.Name, pace.SummaryDelay)
		return nil
	}
	written, err := c.writer.RemoveFinalizer(ctx, m)
	if err != nil || !written {
		c.reportWrite(ctx, m, err)
		return err
	}
	c.events.Completed(m)
	return nil
}

// measure updates the metrics after a new status of the maintenance was written.
func (c *Controller) measure(m *coordinationv1alpha1.NodeMaintenance, written *coordinationv1alpha1.NodeMaintenanceStatus, now time.Time) {
	for _, stage := range written.StageStatuses {
		if !progress.HasStarted(&m.Status, stage.Name) {
			metrics.CountStageTransition(stage.Name)
		}
	}
	started := progress.StartOf(written, coordinationv1alpha1.NodeMaintenanceStageDrain)
	if started == nil {
		return
	}
	before := status.PodTypesDone(m, &m.Status)
	for _, podType := range status.PodTypesDone(m, written) {
		// A drain that ends again, because pods came back, is not measured again.
		if !slices.Contains(before, podType) && c.progress.MeasureOnce(m.Name, podType) {
			metrics.ObserveDrainDuration(podType, max(now.Sub(started.Time), 0))
		}
	}
}
