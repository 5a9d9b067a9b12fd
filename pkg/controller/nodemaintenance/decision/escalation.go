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

package decision

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// EscalationGrace is how long after its start a controller begins with no action that has come meanwhile: as
// long as none ran, nobody evicted the pods that their budgets and interceptors let go. For the same time, no
// interceptor times out. It is also the notice that is given before an action from which another maintenance of the
// node, or a policy, has protected a pod begins after that has ended.
const EscalationGrace = 5 * time.Minute

// PodEscalation is what the escalations of the maintenances of a node mean for one of its pods.
type PodEscalation struct {
	// Action is the strongest that all maintenances that drain the node have come to, "" if none. One of them
	// that does not escalate, or whose clock stands still, holds up the others: whoever drains the node with
	// more patience has a reason for it.
	Action v1.MaintenanceEscalation
	// Next is after which time there may be another one, or somebody holds up one; 0 if never.
	Next time.Duration
	// HeldUp is a stronger one that some have come to, and would do something; nil if there is none.
	HeldUp *HeldUp
	// Holders hold up what others have come to, whether it would do something now or later.
	Holders []*progress.Spec
}

// HeldUp is an action that some maintenances of a node have come to, and holders have not.
type HeldUp struct {
	Action        v1.MaintenanceEscalation
	Come, Holders []*progress.Spec
}

// String names all of them.
func (h *HeldUp) String() string {
	return fmt.Sprintf("spec.escalation of NodeMaintenance %s has come to %s, held up by NodeMaintenance %s", status.JoinNames(NamesOf(h.Come)), h.Action, status.JoinNames(NamesOf(h.Holders)))
}

// NamesOf returns the names of maintenances.
func NamesOf(specs []*progress.Spec) []string {
	var names []string
	for _, o := range specs {
		names = append(names, o.Name)
	}
	return names
}

// Escalations are what the escalations of a node depend on.
type Escalations struct {
	Node  *v1.Node
	Specs []progress.Spec
	Now   time.Time
	// Begun is when this process has begun to reconcile.
	Begun time.Time
	// Ended returns when something has ended that had protected a pod of the node; zero if nothing has.
	Ended func(pod types.UID) time.Time
	// NamespaceLabels returns the labels of a namespace, and false if they are not known.
	NamespaceLabels func(namespace string) (labels.Set, bool)
}

// Of returns what the escalations of the maintenances mean for a pod.
func (e *Escalations) Of(pod *Pod) (result PodEscalation) {
	if pod.Held || maintenance.PodTypeOf(pod.Pod) == v1.PodTypeStatic || !Escalates(e.Specs) {
		return result // Only the kubelet can stop a static pod.
	}
	possible := maintenance.EscalationsFor(e.Node)
	if pod.Completes && !requests.IsRequested(pod.Request) {
		possible = possible[:len(possible)-1] // Nobody is asked, so there is nobody to pass over.
	}
	for i, action := range possible {
		due := e.due(pod, possible[:i+1])
		if due.all && due.wait <= 0 {
			result.Action = action
			return result
		}
		if len(due.come) > 0 && len(due.holders) > 0 {
			result.Holders = append(result.Holders, due.holders...)
			if result.HeldUp == nil && pod.isAffectedBy(action) {
				result.HeldUp = &HeldUp{action, due.come, due.holders}
			}
		}
		if next := due.next(); next > 0 && (result.Next == 0 || next < result.Next) {
			result.Next = next
		}
	}
	return result
}

// Escalates reports whether one of the maintenances that drain a node escalates.
func Escalates(specs []progress.Spec) bool {
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

// due returns when the maintenances come to one of the actions for a pod. One that keeps the pod never does.
func (e *Escalations) due(pod *Pod, actions []v1.MaintenanceEscalation) escalationsDue {
	due := escalationsDue{all: len(pod.KeptBy) == 0}
	ended := e.Ended(pod.UID)
	for i := range e.Specs {
		o := &e.Specs[i]
		if !o.Drains() || o.IsShutdownOf(e.Node.Name) {
			continue
		}
		after, escalates := o.Escalation.After(pod.Pod, actions, func() (labels.Set, bool) { return e.NamespaceLabels(pod.Namespace) })
		admission := maintenance.AdmissionOf(e.Node, o.UID)
		if !escalates || admission == nil || pod.IsKeptBy(o.Name) {
			due.all, due.holders = false, append(due.holders, o)
			continue
		}
		elapsed, running := maintenance.EscalationClock(admission, e.Now)
		left := after - elapsed
		if left <= 0 {
			due.come = append(due.come, o)
		} else {
			due.holders, due.all = append(due.holders, o), due.all && running
			if running && (due.soonest == 0 || left < due.soonest) {
				due.soonest = left
			}
		}
		due.wait = max(due.wait, e.withNotice(admission, actions, after, left, ended))
	}
	due.all = due.all && len(due.come)+len(due.holders) > 0
	return due
}

// withNotice returns how long it takes until an action begins that a maintenance comes to after left: if it has come
// meanwhile, neither the start of a controller nor the end of what has protected the pod must have it deleted at
// once.
func (e *Escalations) withNotice(admission *v1.MaintenanceAdmission, actions []v1.MaintenanceEscalation, after, left time.Duration, ended time.Time) time.Duration {
	notice := min(after, EscalationGrace)
	wait := left
	if !escalationStarted(admission, actions, e.Now.Add(left)) {
		// Later than that only on a node that was admitted before.
		wait = max(wait, e.Begun.Add(notice).Sub(e.Now))
	}
	if !ended.IsZero() {
		wait = max(wait, pace.Within(ended.Add(notice).Sub(e.Now), notice))
	}
	return wait
}

// escalationStarted reports whether a controller has begun with one of the actions after a pod had come to it: another
// one that takes over goes on.
func escalationStarted(a *v1.MaintenanceAdmission, actions []v1.MaintenanceEscalation, due time.Time) bool {
	return a.EscalationTime != nil && maintenance.EscalatesTo(a.Escalation, actions[len(actions)-1]) &&
		due.Before(a.EscalationTime.Add(time.Second)) // It is stored without fractions.
}

// addEscalation adds what the escalations of the maintenances have come to on the node. Pods that are
// deleted now are within the targets, wherever the plans have them: so their DaemonSets do not
// replace them.
func (d *Decision) addEscalation() {
	view := d.View
	for i := range d.Pods {
		pod := &d.Pods[i]
		if maintenance.IsEscalated(pod.Pod, pod.Request) {
			view.Escalated++
		}
		if pod.Escalation == "" {
			continue
		}
		if view.Escalation == "" || maintenance.EscalatesTo(pod.Escalation, view.Escalation) {
			view.Escalation = pod.Escalation
		}
		if !maintenance.EscalatesTo(pod.Escalation, v1.MaintenanceEscalationIgnoreBudgets) || view.Targets.Take(pod.Pod) || !d.mayRaise() {
			continue
		}
		var enough []maintenance.Targets
		for j := range d.Specs {
			if o := &d.Specs[j]; o.Drains() {
				enough = append(enough, o.Plan.TargetsAt(min(o.Plan.EntryFor(pod.Pod), o.Plan.Len()-1)))
			}
		}
		view.Targets = view.Targets.RaisedTo(maintenance.LeastPowerful(enough...))
	}
}

// recordEscalation adds to an admission what the escalation of its maintenance has come to, and its
// clock: it stands still while pods are left of which none may leave, because other maintenances are
// not as far.
func (d *Decision) recordEscalation(o *progress.Spec, next *v1.MaintenanceAdmission) {
	if o.Escalation.IsEmpty() || !o.Drains() {
		return
	}
	now := metav1.NewTime(d.Now.Truncate(time.Second))
	if d.View.Escalation != "" && (next.Escalation == "" || !maintenance.EscalatesTo(next.Escalation, d.View.Escalation)) {
		next.Escalation, next.EscalationTime = d.View.Escalation, &now
	}
	switch waits := d.View.Drains() && d.isLeftFor(o.Name) && !d.View.State.Draining && d.mayRaise(); {
	case waits && next.WaitingTime == nil:
		next.WaitingTime = &now
	case !waits && next.WaitingTime != nil:
		next.WaitedSeconds += int32(max(now.Sub(next.WaitingTime.Time), 0) / time.Second)
		next.WaitingTime = nil
	}
}

// MayAct reports whether the status of the node says that all maintenances that drain it have come to
// the action. Whoever reads it knows what happens, and a controller that takes over does not begin
// anew.
func MayAct(node *v1.Node, specs []progress.Spec, action v1.MaintenanceEscalation) bool {
	return !slices.ContainsFunc(specs, func(o progress.Spec) bool {
		if !o.Drains() || o.IsShutdownOf(node.Name) {
			return false
		}
		admission := maintenance.AdmissionOf(node, o.UID)
		return admission == nil || admission.Escalation == "" || !maintenance.EscalatesTo(admission.Escalation, action)
	})
}

// EscalationMessage says on whose behalf an escalation acts.
func EscalationMessage(node *v1.Node, specs []progress.Spec, now time.Time) string {
	longest := time.Duration(0)
	for i := range specs {
		if admission := maintenance.AdmissionOf(node, specs[i].UID); specs[i].Drains() && admission != nil {
			elapsed, _ := maintenance.EscalationClock(admission, now)
			longest = max(longest, elapsed)
		}
	}
	return fmt.Sprintf("spec.escalation of NodeMaintenance %s, %v after it began with node %s",
		status.JoinNames(DrainingNames(specs)), longest.Truncate(time.Second), node.Name)
}

// DrainingNames names the maintenances that drain a node.
func DrainingNames(specs []progress.Spec) []string {
	names := []string{}
	for i := range specs {
		if specs[i].Drains() {
			names = append(names, specs[i].Name)
		}
	}
	return names
}

// NeededAct returns the act that is due for a pod, "" if there is none.
func (p *Pod) NeededAct(node *v1.Node, specs []progress.Spec) v1.MaintenanceEscalation {
	if p.Escalation == "" || !MayAct(node, specs, p.Escalation) {
		return ""
	}
	if !p.isAffectedBy(p.Escalation) || p.Escalation != v1.MaintenanceEscalationSkipInterceptors && !progress.StoredTargets(node).Take(p.Pod) {
		return ""
	}
	return p.Escalation
}

// acts returns the pods for which an act is due.
func (f *Facts) acts() []*v1.Pod {
	return f.podsThat(func(pod *Pod) bool { return pod.NeededAct(f.Node, f.Specs) != "" })
}
