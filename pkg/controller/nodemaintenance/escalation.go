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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// act returns the write of an act, or nil if it is not due any more.
func (c *Controller) act(w requests.Write, facts *decision.Pod, node *v1.Node, specs []progress.Spec) func(context.Context) error {
	now := c.clock.Now()
	facts.Escalation = c.escalationOf(facts, node, specs, now).Action
	if facts.NeededAct(node, specs) != w.Act || c.isCordonRefused(node) {
		return nil
	}
	message := decision.EscalationMessage(node, specs, now)
	return func(ctx context.Context) error {
		confirm := func(ctx context.Context) error { return c.confirmAct(ctx, w.Act, facts, node, specs) }
		if err := confirm(ctx); err != nil {
			return err
		}
		if err := c.writer.Escalate(ctx, facts.Pod, facts.Request, w.Act, message, confirm); err != nil {
			return err
		}
		c.events.Escalated(facts.Pod, w.Act, message)
		c.reportAct(node, specs, w.Act)
		return nil
	}
}

// confirmAct returns an error unless the API server agrees with what the caches say of an act: neither a budget nor a
// withdrawal limits what a controller does that was suspended, and whose caches are old. A rollout goes on when it has
// given the node back, and others may have requested the eviction of the pod as well, whose interceptors are not to be
// passed over then. If a node is back that was out of service, it runs pods that their owners would start a second time.
func (c *Controller) confirmAct(ctx context.Context, act v1.MaintenanceEscalation, pod *decision.Pod, node *v1.Node, specs []progress.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, write.ReadTimeout)
	defer cancel()
	stored, err := c.writer.RequestClient.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	isGivenBack := func(o progress.Spec) bool { return o.Drains() && maintenance.IsGivenBack(stored, o.UID) }
	waits := func(a v1.MaintenanceAdmission) bool {
		return a.ReturningTime == nil && (a.Escalation == "" || !maintenance.EscalatesTo(a.Escalation, act))
	}
	if stored.UID != node.UID || !decision.MayAct(stored, specs, act) || slices.ContainsFunc(maintenance.Admissions(stored), waits) ||
		slices.ContainsFunc(specs, isGivenBack) || act != v1.MaintenanceEscalationSkipInterceptors && !progress.StoredTargets(stored).Take(pod.Pod) {
		return apierrors.NewConflict(write.NodeResource, node.Name, errors.New("spec.escalation does not apply to the node any more"))
	}
	if act == v1.MaintenanceEscalationForceDelete && !maintenance.IsOutOfService(stored) {
		return fmt.Errorf("removing the pod, as spec.escalation says: node %s is Ready, or no longer has the taint %s", node.Name, v1.TaintNodeOutOfService)
	}
	for i := range specs {
		o := &specs[i]
		if !o.Drains() {
			continue
		}
		m, err := c.writer.RequestClient.CoordinationV1alpha1().NodeMaintenances().Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the NodeMaintenance: %w", err)
		}
		if m.UID != o.UID || m.Generation != o.Generation {
			return apierrors.NewConflict(write.MaintenanceResource, o.Name, errors.New("the NodeMaintenance has changed since the decision"))
		}
	}
	// The answers say what time it is.
	if due := c.escalationOf(pod, node, specs, c.clock.Now()).Action; due == "" || !maintenance.EscalatesTo(due, act) {
		return apierrors.NewConflict(write.NodeResource, node.Name, errors.New("by the clock of the API server, spec.escalation has not come to that yet"))
	}
	return nil
}

// reportAct emits an event for each maintenance on whose behalf a pod of the node was acted on. Those of a node
// and an action become one series.
func (c *Controller) reportAct(node *v1.Node, specs []progress.Spec, action v1.MaintenanceEscalation) {
	for i := range specs {
		o := &specs[i]
		if !o.Drains() {
			continue
		}
		if m, err := c.maintenanceLister.Get(o.Name); err == nil && m.UID == o.UID {
			c.events.Escalates(m, node, action)
		}
	}
}
