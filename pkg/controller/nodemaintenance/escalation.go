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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// escalationGrace is how long after its start a controller begins with no action that has come meanwhile: as
// long as none ran, nobody evicted the pods that their budgets and interceptors let go. For the same time, no
// interceptor times out. It is also the notice that is given before an action from which another maintenance of the
// node, or a policy, has protected a pod begins after that has ended.
const escalationGrace = 5 * time.Minute

// podEscalation is what the escalations of the maintenances of a node mean for one of its pods.
type podEscalation struct {
	// action is the strongest that all maintenances that drain the node have come to, "" if none. One of them
	// that does not escalate, or whose clock stands still, holds up the others: whoever drains the node with
	// more patience has a reason for it.
	action v1.MaintenanceEscalation
	// next is after which time there may be another one, or somebody holds up one; 0 if never.
	next time.Duration
	// HeldUp is a stronger one that some have come to, and would do something; nil if there is none.
	heldUp *heldUpEscalation
	// holders hold up what others have come to, whether it would do something now or later.
	holders []*progress.Spec
}

// heldUpEscalation is an action that some maintenances of a node have come to, and holders have not.
type heldUpEscalation struct {
	action        v1.MaintenanceEscalation
	come, holders []*progress.Spec
}

// String names all of them.
func (h *heldUpEscalation) String() string {
	return fmt.Sprintf("spec.escalation of NodeMaintenance %s has come to %s, held up by NodeMaintenance %s", status.JoinNames(namesOf(h.come)), h.action, status.JoinNames(namesOf(h.holders)))
}

func namesOf(specs []*progress.Spec) []string {
	var names []string
	for _, o := range specs {
		names = append(names, o.Name)
	}
	return names
}

// escalationOf returns what the escalations of the maintenances mean for a pod.
func (c *Controller) escalationOf(pod *podFacts, node *v1.Node, specs []progress.Spec, now time.Time) (result podEscalation) {
	if c.fleet == nil || node == nil || pod.held || maintenance.PodTypeOf(pod.Pod) == v1.PodTypeStatic || !escalates(specs) {
		return result // Only the kubelet can stop a static pod.
	}
	possible := maintenance.EscalationsFor(node)
	if pod.completes && !requests.IsRequested(pod.request) {
		possible = possible[:len(possible)-1] // Nobody is asked, so there is nobody to pass over.
	}
	for i, action := range possible {
		due := c.escalationsDue(pod, node, specs, possible[:i+1], now)
		if due.all && due.wait <= 0 {
			result.action = action
			return result
		}
		if len(due.come) > 0 && len(due.holders) > 0 {
			result.holders = append(result.holders, due.holders...)
			if result.heldUp == nil && pod.isAffectedBy(action) {
				result.heldUp = &heldUpEscalation{action, due.come, due.holders}
			}
		}
		if next := due.next(); next > 0 && (result.next == 0 || next < result.next) {
			result.next = next
		}
	}
	return result
}

// escalates reports whether one of the maintenances that drain a node escalates.
func escalates(specs []progress.Spec) bool {
	return slices.ContainsFunc(specs, func(o progress.Spec) bool { return !o.Escalation.IsEmpty() && o.Drains() })
}

// escalationsDue is when the maintenances that drain a node come to one of some actions for a pod.
type escalationsDue struct {
	// come are those that have, and holders the others, and those that keep the pod.
	come, holders []*progress.Spec
	// all is whether all of them will, as things are, and wait how long that takes; soonest is how long the
	// first of the others takes, 0 if none will.
	all           bool
	wait, soonest time.Duration
}

// next returns after which time something changes, 0 if never.
func (d *escalationsDue) next() time.Duration {
	if d.all && d.wait > 0 && (d.soonest == 0 || d.wait < d.soonest) {
		return d.wait
	}
	return d.soonest
}

// escalationsDue returns when the maintenances come to one of the actions for a pod. One that keeps the pod never does.
func (c *Controller) escalationsDue(pod *podFacts, node *v1.Node, specs []progress.Spec, actions []v1.MaintenanceEscalation, now time.Time) escalationsDue {
	due := escalationsDue{all: len(pod.KeptBy) == 0}
	ended := c.holdUps.ended(node, pod.UID)
	for i := range specs {
		o := &specs[i]
		if !o.Drains() || o.IsShutdownOf(node.Name) {
			continue
		}
		after, escalates := o.Escalation.After(pod.Pod, actions, func() (labels.Set, bool) { return c.namespaceLabels(pod.Namespace) })
		admission := maintenance.AdmissionOf(node, o.UID)
		if !escalates || admission == nil || pod.IsKeptBy(o.Name) {
			due.all, due.holders = false, append(due.holders, o)
			continue
		}
		elapsed, running := maintenance.EscalationClock(admission, now)
		left := after - elapsed
		if left <= 0 {
			due.come = append(due.come, o)
		} else {
			due.holders, due.all = append(due.holders, o), due.all && running
			if running && (due.soonest == 0 || left < due.soonest) {
				due.soonest = left
			}
		}
		due.wait = max(due.wait, c.withNotice(admission, actions, after, left, ended, now))
	}
	due.all = due.all && len(due.come)+len(due.holders) > 0
	return due
}

// withNotice returns how long it takes until an action begins that a maintenance comes to after left: if it has come
// meanwhile, neither the start of a controller nor the end of what has protected the pod must have it deleted at
// once.
func (c *Controller) withNotice(admission *v1.MaintenanceAdmission, actions []v1.MaintenanceEscalation, after, left time.Duration, ended, now time.Time) time.Duration {
	notice := min(after, escalationGrace)
	wait := left
	if !hasBegun(admission, actions, now.Add(left)) {
		// Later than that only on a node that was admitted before.
		wait = max(wait, c.begun.Add(notice).Sub(now))
	}
	if !ended.IsZero() {
		wait = max(wait, pace.Within(ended.Add(notice).Sub(now), notice))
	}
	return wait
}

// DrainedBefore reports whether a controller has begun with one of the actions after a pod had come to it: another
// one that takes over goes on.
func hasBegun(a *v1.MaintenanceAdmission, actions []v1.MaintenanceEscalation, due time.Time) bool {
	return a.EscalationTime != nil && maintenance.EscalatesTo(a.Escalation, actions[len(actions)-1]) &&
		due.Before(a.EscalationTime.Add(time.Second)) // It is stored without fractions.
}

// addEscalation adds what the escalations of the maintenances have come to on the node. Pods that are
// deleted now are within the targets, wherever the plans have them: so their DaemonSets do not
// replace them.
func (s *nodeSync) addEscalation(view *status.View) {
	for i := range s.facts.pods {
		pod := &s.facts.pods[i]
		if maintenance.IsEscalated(pod.Pod, pod.request) {
			view.Escalated++
		}
		if pod.escalation == "" {
			continue
		}
		if view.Escalation == "" || maintenance.EscalatesTo(pod.escalation, view.Escalation) {
			view.Escalation = pod.escalation
		}
		if !maintenance.EscalatesTo(pod.escalation, v1.MaintenanceEscalationIgnoreBudgets) || view.Targets.Take(pod.Pod) || !s.mayRaise(view) {
			continue
		}
		var enough []maintenance.Targets
		for j := range s.specs {
			if o := &s.specs[j]; o.Drains() {
				enough = append(enough, o.Plan.TargetsAt(min(o.Plan.EntryFor(pod.Pod), o.Plan.Len()-1)))
			}
		}
		view.Targets = view.Targets.RaisedTo(maintenance.LeastPowerful(enough...))
	}
}

// mayRaise reports whether further pods may be taken from the node.
func (s *nodeSync) mayRaise(view *status.View) bool {
	return !view.CordonRefused && !s.facts.awaitsFinalizers
}

// escalate returns an admission with what the escalation of its maintenance has come to, and with its
// clock: it stands still while pods are left of which none may leave, because other maintenances are
// not as far.
func (s *nodeSync) escalate(view *status.View, o *progress.Spec, next *v1.MaintenanceAdmission) {
	if o.Escalation.IsEmpty() || !o.Drains() {
		return
	}
	now := metav1.NewTime(s.now.Truncate(time.Second))
	if view.Escalation != "" && (next.Escalation == "" || !maintenance.EscalatesTo(next.Escalation, view.Escalation)) {
		next.Escalation, next.EscalationTime = view.Escalation, &now
	}
	switch waits := view.Drains() && s.facts.isLeftFor(o.Name) && !view.State.Draining && s.mayRaise(view); {
	case waits && next.WaitingTime == nil:
		next.WaitingTime = &now
	case !waits && next.WaitingTime != nil:
		next.WaitedSeconds += int32(max(now.Sub(next.WaitingTime.Time), 0) / time.Second)
		next.WaitingTime = nil
	}
}

// mayAct reports whether the status of the node says that all maintenances that drain it have come to
// the action. Whoever reads it knows what happens, and a controller that takes over does not begin
// anew.
func mayAct(node *v1.Node, specs []progress.Spec, action v1.MaintenanceEscalation) bool {
	return !slices.ContainsFunc(specs, func(o progress.Spec) bool {
		if !o.Drains() || o.IsShutdownOf(node.Name) {
			return false
		}
		admission := maintenance.AdmissionOf(node, o.UID)
		return admission == nil || admission.Escalation == "" || !maintenance.EscalatesTo(admission.Escalation, action)
	})
}

// neededAct returns the act that is due for a pod, "" if there is none.
func (p *podFacts) neededAct(node *v1.Node, specs []progress.Spec) v1.MaintenanceEscalation {
	if p.escalation == "" || !mayAct(node, specs, p.escalation) {
		return ""
	}
	if !p.isAffectedBy(p.escalation) || p.escalation != v1.MaintenanceEscalationSkipInterceptors && !progress.StoredTargets(node).Take(p.Pod) {
		return ""
	}
	return p.escalation
}

// isAffectedBy reports whether an action does something to a pod.
func (p *podFacts) isAffectedBy(action v1.MaintenanceEscalation) bool {
	switch action {
	case v1.MaintenanceEscalationSkipInterceptors:
		// What the pod says does not matter: its kubelet may write that.
		return p.DeletionTimestamp == nil && requests.IsRequested(p.request) && evictionrequest.IsPassable(p.request, p.Pod) && !maintenance.IsSkipped(p.request)
	case v1.MaintenanceEscalationForceDelete:
		return p.DeletionTimestamp == nil || ptr.Deref(p.DeletionGracePeriodSeconds, 1) != 0 // Otherwise, its finalizers keep it.
	}
	return p.DeletionTimestamp == nil
}

// acts returns the pods for which an act is due.
func (f *nodeFacts) acts(node *v1.Node, specs []progress.Spec) []*v1.Pod {
	return f.podsThat(func(pod *podFacts) bool { return pod.neededAct(node, specs) != "" })
}

// actWrites returns the writes of the acts that are due.
func (f *nodeFacts) actWrites(node *v1.Node, specs []progress.Spec) []requests.Write {
	var writes []requests.Write
	for i := range f.pods {
		pod := &f.pods[i]
		if act := pod.neededAct(node, specs); act != "" {
			writes = append(writes, requests.Write{Namespace: pod.Namespace, Pod: pod.Name, Node: node.Name, UID: pod.UID, Act: act})
		}
	}
	return writes
}

// act returns the write of an act, or nil if it is not due any more.
func (c *Controller) act(w requests.Write, facts *podFacts, node *v1.Node, specs []progress.Spec) func(context.Context) error {
	now := c.clock.Now()
	facts.escalation = c.escalationOf(facts, node, specs, now).action
	if facts.neededAct(node, specs) != w.Act || c.isCordonRefused(node) {
		return nil
	}
	message := escalationMessage(node, specs, now)
	return func(ctx context.Context) error {
		confirm := func(ctx context.Context) error { return c.confirmAct(ctx, w.Act, facts, node, specs) }
		if err := confirm(ctx); err != nil {
			return err
		}
		if err := c.writer.Escalate(ctx, facts.Pod, facts.request, w.Act, message, confirm); err != nil {
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
func (c *Controller) confirmAct(ctx context.Context, act v1.MaintenanceEscalation, pod *podFacts, node *v1.Node, specs []progress.Spec) error {
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
	if stored.UID != node.UID || !mayAct(stored, specs, act) || slices.ContainsFunc(maintenance.Admissions(stored), waits) ||
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
	if due := c.escalationOf(pod, node, specs, c.clock.Now()).action; due == "" || !maintenance.EscalatesTo(due, act) {
		return apierrors.NewConflict(write.NodeResource, node.Name, errors.New("by the clock of the API server, spec.escalation has not come to that yet"))
	}
	return nil
}

// escalationMessage says on whose behalf an escalation acts.
func escalationMessage(node *v1.Node, specs []progress.Spec, now time.Time) string {
	longest := time.Duration(0)
	for i := range specs {
		if admission := maintenance.AdmissionOf(node, specs[i].UID); specs[i].Drains() && admission != nil {
			elapsed, _ := maintenance.EscalationClock(admission, now)
			longest = max(longest, elapsed)
		}
	}
	return fmt.Sprintf("spec.escalation of NodeMaintenance %s, %v after it began with node %s",
		status.JoinNames(drainingNames(specs)), longest.Truncate(time.Second), node.Name)
}

// reportHeldUp emits an event for each maintenance whose escalation others hold up on a node.
func (c *Controller) reportHeldUp(node *v1.Node, held *heldUpEscalation) {
	for _, o := range held.come {
		if m, err := c.maintenanceLister.Get(o.Name); err == nil && m.UID == o.UID {
			c.events.HeldUp(m, node, held.action, namesOf(held.holders))
		}
	}
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
