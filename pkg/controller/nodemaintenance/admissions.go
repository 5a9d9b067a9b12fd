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
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// watchFleet handles the events of what the gate NodeMaintenanceBudgets needs.
func (c *Controller) watchFleet(logger klog.Logger) error {
	attachments := c.fleet.VolumeAttachments.Informer()
	if err := attachments.AddIndexers(cache.Indexers{attachmentNodeIndex: func(obj any) ([]string, error) {
		return []string{obj.(*storagev1.VolumeAttachment).Spec.NodeName}, nil
	}}); err != nil {
		return fmt.Errorf("indexing volume attachments by node: %w", err)
	}
	changed := func(obj any) { c.budgetChanged(logger, obj.(*coordinationv1alpha1.NodeMaintenanceBudget)) }
	for what, watched := range map[string]struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		"node maintenance budgets": {c.fleet.Budgets.Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    changed,
			UpdateFunc: func(_, obj any) { changed(obj) },
			DeleteFunc: func(obj any) {
				deleted(logger, obj, func(obj any) { c.budgetGone(obj.(*coordinationv1alpha1.NodeMaintenanceBudget)) })
			},
		}},
		"namespaces": {c.fleet.Namespaces.Informer(), cache.ResourceEventHandlerFuncs{
			// The event of a pod may have come before that of its namespace.
			AddFunc: func(obj any) { c.namespaceChanged(obj.(*v1.Namespace).Name) },
			UpdateFunc: func(old, obj any) {
				if namespace := obj.(*v1.Namespace); !maps.Equal(old.(*v1.Namespace).Labels, namespace.Labels) {
					c.namespaceChanged(namespace.Name)
				}
			},
		}},
		"volume attachments": {attachments, cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			deleted(logger, obj, func(obj any) {
				if node := obj.(*storagev1.VolumeAttachment).Spec.NodeName; c.progress.IsDraining(node) {
					c.nodeQueue.Add(node)
				}
			})
		}}},
	} {
		if _, err := watched.informer.AddEventHandler(watched.handler); err != nil {
			return fmt.Errorf("watching %s: %w", what, err)
		}
	}
	for _, informer := range []cache.SharedIndexInformer{
		c.fleet.Budgets.Informer(), c.fleet.DaemonSets.Informer(), c.fleet.Namespaces.Informer(), attachments, c.fleet.Claims.Informer(),
	} {
		c.cachesSynced = append(c.cachesSynced, informer.HasSynced)
	}
	return nil
}

// namespaceChanged reconciles the nodes that are drained and have pods of the namespace: policies may
// select its labels.
func (c *Controller) namespaceChanged(name string) {
	pods, err := c.podIndexer.ByIndex(cache.NamespaceIndex, name)
	if err != nil {
		return // All informers of pods have this index.
	}
	nodes := sets.New[string]()
	for _, pod := range pods {
		if node := pod.(*v1.Pod).Spec.NodeName; !nodes.Has(node) && c.progress.IsDraining(node) {
			nodes.Insert(node)
		}
	}
	c.enqueueNodes(sets.List(nodes))
}

// budgetChanged handles the event of a budget: if it selects other nodes now, those that wait or will
// are reconciled.
func (c *Controller) budgetChanged(logger klog.Logger, b *coordinationv1alpha1.NodeMaintenanceBudget) {
	changed, err := c.progress.Limits.Set(b)
	if err != nil {
		logger.Error(err, "Ignoring an invalid budget", "nodeMaintenanceBudget", klog.KObj(b))
	}
	c.budgetsChanged(changed)
}

func (c *Controller) budgetGone(b *coordinationv1alpha1.NodeMaintenanceBudget) {
	c.progress.Limits.Remove(b.Name)
	c.writer.ForgetBudget(b.Name)
	c.budgetsChanged(true)
}

func (c *Controller) budgetsChanged(selectOthers bool) {
	if selectOthers {
		c.enqueueNodes(c.progress.Tracked())
	}
	c.admissions.changed()
}

// syncAdmissions admits nodes, and writes the statuses of budgets.
func (c *Controller) syncAdmissions(ctx context.Context, _ string) error {
	now := c.clock.Now()
	// First, because nodes that are gone are noted: what they had may have to run elsewhere.
	nodes := c.updateNodes()
	budgets, maintenances, current := c.readLimits(nodes, now)
	if !current {
		c.admissions.queue.AddAfter(admissionsKey, pace.StaleInterval)
		return nil
	}
	c.updateBudgets(ctx, budgets)
	waits, after, err := c.admissions.admitter.Sync(ctx, maintenances, now)
	for name, counts := range waits {
		if c.progress.SetWaits(name, counts) {
			c.maintenanceQueue.AddAfter(name, pace.SummaryDelay)
		}
	}
	if slices.ContainsFunc(maintenances, func(m rollout.Maintenance) bool { return !m.SettlingUntil.IsZero() }) {
		c.admissions.queue.AddAfter(admissionsKey, settleInterval)
	}
	if after > 0 {
		c.admissions.queue.AddAfter(admissionsKey, after)
	}
	return err
}

// readLimits returns the budgets and the maintenances that need admissions. It is not current while
// the caches lack own writes of them, or the progress of a maintenance is that of an earlier spec.
func (c *Controller) readLimits(nodes []*v1.Node, now time.Time) (budgets []*coordinationv1alpha1.NodeMaintenanceBudget, maintenances []rollout.Maintenance, current bool) {
	if c.fleet != nil {
		var err error
		if budgets, err = c.fleet.Budgets.Lister().List(labels.Everything()); err != nil {
			return nil, nil, false // The lister of a cache returns no error.
		}
	}
	for _, b := range budgets {
		if !c.writer.IsCurrentBudget(b.Name) {
			return nil, nil, false
		}
	}
	all, err := c.maintenanceLister.List(labels.Everything())
	if err != nil {
		return nil, nil, false // The lister of a cache returns no error.
	}
	newestUnready := sync.OnceValue(func() time.Time { return newestUnready(c.podIndexer) })
	unreleased := sync.OnceValue(func() map[types.UID]int { return c.countUnreleased(nodes) })
	drained := sync.OnceValue(func() map[types.UID][]departedNode { return drainedNodes(nodes, all, now) })
	for _, m := range all {
		if m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
			continue
		}
		waiting, selected, found := c.progress.WaitingNodes(m.Name, m.UID, m.Generation)
		pending := m.Status.RolloutStatus != nil && len(m.Status.RolloutStatus.PendingAdmissions) > 0
		if !found || len(waiting) == 0 && !pending {
			continue // Its sync causes another decision.
		}
		if !c.writer.IsCurrentMaintenance(m.Name) {
			return nil, nil, false
		}
		limited := rollout.Maintenance{
			NodeMaintenance: m, Rank: queueRankOf(m), Selected: selected, Waiting: waiting,
			Disabled: c.fleet == nil, Unwritable: c.writer.IsStatusSlow(m.Name, now), Unreleased: unreleased()[m.UID],
		}
		if len(waiting) > 0 {
			limited.SettlingUntil = c.departed.settlingUntil(m, drained, now, newestUnready)
		}
		maintenances = append(maintenances, limited)
	}
	return budgets, maintenances, true
}

// queueRankOf returns the place of a maintenance among those that wait for budgets: the one that has been in the
// stage Drain for the longest is first. One that was prepared long ago, in the stage Idle or Cordon, does not go
// before those that have been waiting since. Until its start is stored, it is the last one. Others who write its status
// could store a start before the stage began, but none before its creation counts.
func queueRankOf(m *coordinationv1alpha1.NodeMaintenance) string {
	since := progress.StartOf(&m.Status, coordinationv1alpha1.NodeMaintenanceStageDrain)
	if since == nil {
		return "~/" + progress.RankOf(m)
	}
	if since.Before(&m.CreationTimestamp) {
		since = &m.CreationTimestamp
	}
	return since.UTC().Format("2006-01-02T15:04:05") + "/" + progress.RankOf(m)
}

// countUnreleased counts, by maintenance, the nodes that are done and yet to be made schedulable.
func (c *Controller) countUnreleased(nodes []*v1.Node) map[types.UID]int {
	counts := map[types.UID]int{}
	isDone := func(a v1.MaintenanceAdmission) bool { return a.DoneTime != nil }
	for _, node := range nodes {
		if !node.Spec.Unschedulable || !slices.ContainsFunc(maintenance.Admissions(node), isDone) || !c.isOwnCordon(node) {
			continue
		}
		specs, _ := c.progress.Selecting(node)
		if slices.ContainsFunc(specs, func(o progress.Spec) bool {
			return o.Claims() || o.AwaitsFinalizer() || o.Waits() && o.HasCordoned(node)
		}) {
			continue
		}
		for i := range specs {
			if a := maintenance.AdmissionOf(node, specs[i].UID); a != nil && isDone(*a) {
				counts[a.MaintenanceUID]++
			}
		}
	}
	return counts
}

// updateNodes brings the nodes of the fleet up to date with the cache, and returns them.
func (c *Controller) updateNodes() []*v1.Node {
	// Read before the list: the fleet has at least this version. Event handlers may be behind the cache.
	c.admissions.version = c.writer.NodeStore.LastStoreSyncResourceVersion()
	nodes := c.listNodes()
	c.admissions.admitter.SetNodes(nodes)
	return nodes
}

// updateBudgets brings the budgets of the fleet up to date with the cache.
func (c *Controller) updateBudgets(ctx context.Context, budgets []*coordinationv1alpha1.NodeMaintenanceBudget) {
	fleet := c.admissions.admitter.Fleet
	known := sets.New[string]()
	for _, b := range budgets {
		known.Insert(b.Name)
		if err := fleet.SetBudget(b); err != nil {
			klog.FromContext(ctx).Error(err, "The budget is not completely valid", "nodeMaintenanceBudget", klog.KObj(b))
			c.events.InvalidBudget(b, err)
		}
	}
	for _, name := range fleet.BudgetNames() {
		if !known.Has(name) {
			fleet.RemoveBudget(name)
		}
	}
}

// admissionStore makes the API calls of admissions.
type admissionStore struct{ *Controller }

func (s admissionStore) ListBudgets(ctx context.Context) ([]coordinationv1alpha1.NodeMaintenanceBudget, error) {
	return s.listBudgets(ctx)
}

func (s admissionStore) WriteBudget(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenanceBudget) error {
	err := s.admissions.contended(changed.UID, s.writer.SetBudgetStatus(ctx, changed))
	if err = rollout.Unanswered(ctx, "nodemaintenancebudgets/status", err); err != nil {
		if isRefusal(ctx, err) {
			s.events.BudgetFailed(changed, err)
		}
		return fmt.Errorf("writing the status of node maintenance budget %s: %w", changed.Name, err)
	}
	return nil
}

// WriteMaintenance also writes the rest of the status: otherwise that would be another write, and often
// one that conflicts with this one.
func (s admissionStore) WriteMaintenance(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenance) error {
	if !s.writer.BeginStatus(changed, s.maintenanceLister) {
		return apierrors.NewConflict(write.MaintenanceResource, changed.Name, errors.New("the status is written by another worker"))
	}
	defer s.writer.EndStatus(changed.Name)
	before, now := *changed, s.clock.Now()
	if sums, waiting, known := s.progress.Summarize(changed.Name); known {
		s.enqueueNodes(waiting)
		changed.Status = *status.Compute(&before, &sums, now)
	}
	err := s.admissions.contended(changed.UID, s.writer.ReplaceStatus(ctx, changed))
	if err = rollout.Unanswered(ctx, "nodemaintenances/status", err); err != nil {
		s.reportWrite(ctx, changed, err)
		return fmt.Errorf("writing the status of node maintenance %s: %w", changed.Name, err)
	}
	s.wroteStatus(&before, &changed.Status, now)
	return nil
}

func (s admissionStore) Admit(ctx context.Context, node *v1.Node, added []v1.MaintenanceAdmission, before time.Time) (bool, error) {
	current, err := s.nodeLister.Get(node.Name)
	if err != nil || !s.writer.IsCurrentNode(node.Name) || write.NeedsDecision(node, current) {
		// Usually the decision before has admitted it. The event of that write causes the next one.
		return false, apierrors.NewConflict(write.NodeResource, node.Name, errors.New("the node has changed since the decision"))
	}
	key := write.Admission.Of(node.UID)
	wait, undone := s.failures.Wait(node.Name, key, s.clock.Now()), s.writer.IsStatusUndone(current)
	if undone {
		// Whoever removes admissions again and again has those of a node waited for as well.
		wait = max(wait, s.pacer.AfterRevert(pace.RevertedStatus, node.Name, s.clock.Now()))
	}
	if wait > 0 {
		s.admissions.queue.AddAfter(admissionsKey, wait)
		return false, nil
	}
	// A node whose write hangs does not take the time of the others.
	limited, cancel := context.WithTimeout(ctx, admissionTimeout)
	defer cancel()
	err = rollout.Unanswered(limited, "nodes/status", s.writer.Admit(limited, node, added, func() bool { return s.clock.Now().Before(before) }))
	switch {
	case errors.Is(err, write.ErrTooLate):
		s.admissions.queue.AddAfter(admissionsKey, pace.StaleInterval)
		return false, apierrors.NewConflict(write.NodeResource, node.Name, err)
	case err == nil:
		s.failures.Succeeded(node.Name, key)
		if undone {
			s.noteRewrite(current, s.clock.Now())
		}
		return true, nil
	case ctx.Err() != nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, err
	}
	s.admissionFailed(ctx, node, added, err)
	return false, nil
}

// admissionFailed records that a node could not be admitted, like cordonFailed. Other nodes do not wait
// for it.
func (c *Controller) admissionFailed(ctx context.Context, node *v1.Node, added []v1.MaintenanceAdmission, err error) {
	write := write.Admission.Of(node.UID)
	if c.failures.Failed(node.Name, write, err, time.Time{}, c.clock.Now()) {
		klog.FromContext(ctx).Error(err, "Failed to admit the node, will retry", "node", klog.KObj(node))
	}
	for i := range added {
		if m, err := c.maintenanceLister.Get(added[i].MaintenanceName); err == nil && m.UID == added[i].MaintenanceUID {
			failed, _ := c.failures.Get(node.Name, write)
			c.events.AdmissionFailed(node, m, failed.Message)
		}
	}
	c.admissions.queue.AddAfter(admissionsKey, c.failures.Wait(node.Name, write, c.clock.Now()))
}

func (s admissionStore) NodesVersion() string { return s.admissions.version }

func (s admissionStore) GetNode(ctx context.Context, name string) (*v1.Node, error) {
	return s.writer.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// admitted handles an admission that was written.
func (c *Controller) admitted(a rollout.Admission) {
	metrics.CountAdmission()
	c.events.Admitted(a.Node, a.Maintenance)
	c.nodeQueue.AddAfter(a.Node.Name, pace.StaleInterval)
}
