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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// readFacts reads the pods of a node, and counts them for the maintenances.
func (c *Controller) readFacts(name string, node *v1.Node, specs []progress.Spec, now time.Time) (*decision.Facts, error) {
	pods, ended, err := c.podsOn(name)
	if err != nil {
		return nil, err
	}
	c.contests.See(name, pods, ended)
	facts := &decision.Facts{Now: now, Node: node, Specs: specs, Lookups: nodeLookups{c}, Skipped: map[string]int{}, Unstopped: map[progress.Unstopped]int{}}
	admitted := sets.New[types.UID]()
	if node != nil {
		for i := range specs {
			// The others begin with all nodes together, and record that as an admission. A budget that comes
			// later must not have pods of later entries leave at once.
			if o := &specs[i]; o.Rolls && maintenance.AdmissionOf(node, o.UID) != nil {
				admitted.Insert(o.UID)
			}
		}
	}
	verdicts, agentsStay := c.policies().Verdicts(name, pods, specs)
	if node != nil && progress.IsDraining(specs) {
		leaving := decision.Leaving(pods, verdicts)
		c.returns.Resume(node, len(leaving) == 0, hasBeenDrained(node, specs), func() map[string]time.Time { return c.comesBackSince(specs) }, now)
		c.returns.See(node, leaving, now)
	} else {
		c.returns.Forget(name)
		c.confirm.Forget(name)
	}
	if node != nil {
		c.holdUps.see(node, specs, pods, verdicts, now)
	}
	var heldUp []*decision.HeldUp
	holders := sets.New[types.UID]()
	for i, pod := range pods {
		if len(verdicts[i].KeptBy) > 0 {
			facts.Staying = append(facts.Staying, pod)
			for _, keeper := range verdicts[i].KeptBy {
				facts.Skipped[keeper]++
			}
		}
		if why := verdicts[i].Unstopped; why != "" {
			facts.Unstopped[progress.Unstopped{PodType: maintenance.PodTypeOf(pod), Why: why}]++
		}
		read := c.readPod(pod, verdicts[i], c.podBudgets.For, now)
		if len(verdicts[i].KeptBy) > 0 && !verdicts[i].Wanted {
			if read.NeedsWithdrawal() {
				facts.Unneeded = append(facts.Unneeded, pod)
			}
			continue
		}
		escalation := c.escalationOf(&read, node, specs, now)
		if next := escalation.Next; next > 0 && (facts.NextEscalation == 0 || next < facts.NextEscalation) {
			facts.NextEscalation = next
		}
		read.Escalation = escalation.Action
		for _, o := range escalation.Holders {
			holders.Insert(o.UID)
		}
		if escalation.HeldUp != nil {
			heldUp = append(heldUp, escalation.HeldUp)
			read.Blocker.Escalation = escalation.HeldUp.String()
		}
		facts.Pods = append(facts.Pods, read)
	}
	for _, news := range c.holdUps.note(name, holders, heldUp) {
		c.reportHeldUp(node, news)
	}
	if node != nil {
		facts.Limited = c.progress.Limits.Selects(node)
	}
	facts.Counts = c.progress.CountPods(name, specs, facts.Counted(), admitted, agentsStay)
	c.enqueueNodes(facts.Others)
	return facts, nil
}

// readPod reads what is known of a pod, and decides what delays its eviction. The verdict says what its maintenances
// do with it. budgets returns the budgets that select the pod; without it, blockers do not name them.
func (c *Controller) readPod(pod *v1.Pod, verdict progress.Verdict, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) decision.Pod {
	name := pod.Spec.NodeName
	read := decision.PodReadings{
		Budgets: budgets, Asked: c.contests.Last(name, pod.UID), Unrecorded: c.statusFailureOf, WhyAbsent: c.absences.why,
	}
	// The only error of the lister of a cache is NotFound.
	if request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID)); err == nil {
		read.Request = request
	}
	if node, err := c.nodeLister.Get(name); err == nil {
		read.Node = node
	}
	read.Contest, read.ContestedSince, _ = c.contests.Message(name, pod.UID, now)
	read.Return, read.Returned = c.returns.Held(name, pod.UID)
	read.Escalation, _ = c.failures.Get(name, write.Escalation.Of(pod.UID))
	read.Refusal, _ = c.failures.Get(name, write.Request.Of(pod.UID))
	return decision.NewPod(pod, verdict, &read, now)
}

// statusFailureOf returns since when the status of a request of a pod on a node cannot be written, and false if it can.
func (c *Controller) statusFailureOf(node string, request *coordinationv1alpha1.EvictionRequest) (statusfailures.Failure, bool) {
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	failed, fails := c.statusFailures.Get(key)
	if !fails {
		return failed, false
	}
	if earlier := c.earlierSince(node, write.Request, request.Namespace); !earlier.IsZero() {
		c.statusFailures.Resume(key, earlier)
		failed, _ = c.statusFailures.Get(key)
	}
	return failed, true
}

// escalationOf returns what the escalations of the maintenances mean for a pod; nothing while the gate NodeMaintenanceBudgets is
// off.
func (c *Controller) escalationOf(pod *decision.Pod, node *v1.Node, specs []progress.Spec, now time.Time) decision.PodEscalation {
	if c.fleet == nil || node == nil {
		return decision.PodEscalation{}
	}
	e := decision.Escalations{
		Node: node, Specs: specs, Now: now, Begun: c.begun, NamespaceLabels: c.namespaceLabels,
		Ended: func(pod types.UID) time.Time { return c.holdUps.ended(node, pod) },
	}
	return e.Of(pod)
}

// recordsClaims reports whether the status of a node can say which maintenances have begun with it.
func (c *Controller) recordsClaims(node string, now time.Time) bool {
	if c.fleet == nil {
		return false
	}
	until, found := c.unrecorded.Load(node)
	if !found {
		return true
	}
	return !now.Before(until.(time.Time))
}

// remember returns what a decision about a node takes from the memories.
func (c *Controller) remember(node *v1.Node, now time.Time) decision.Memories {
	known := decision.Memories{
		CompletionCordoned: c.progress.IsCordoned(node.Name),
		Failures:           c.failures.Of(node.Name),
		Reverts:            c.pacer.RevertsOf(node.Name, now),
		StatusUndone:       c.writer.IsStatusUndone(node),
		Settles:            c.returns.Settles(node.Name, now),
		RecordsClaims:      c.recordsClaims(node.Name, now),
	}
	known.Own = c.ownCordon(node)
	if found, ok := c.ownConditions.Load(node.Name); ok {
		known.OwnConditions = found.(*decision.WrittenConditions)
	}
	if known.Settles > 0 {
		known.Unsettled = c.returns.Unsettled(node.Name, now)
	}
	if len(maintenance.Admissions(node)) == 0 {
		c.reboots.forget(node.Name)
	}
	return known
}

// nodeLookups reads what only few decisions need.
type nodeLookups struct{ c *Controller }

func (l nodeLookups) WaitingOn(names []string) []string { return l.c.progress.WaitingOn(names) }

func (l nodeLookups) AttachedVolumes(node *v1.Node, staying []*v1.Pod) []string {
	return l.c.attachedVolumes(node, staying)
}

func (l nodeLookups) DaemonSets() []*appsv1.DaemonSet {
	if l.c.fleet == nil {
		return nil
	}
	all, err := l.c.fleet.DaemonSets.Lister().List(labels.Everything())
	if err != nil {
		return nil // The lister of a cache returns no error.
	}
	return all
}

func (l nodeLookups) ReadySince(node *v1.Node, drained string, now time.Time) (since, first time.Time) {
	return l.c.reboots.readySince(node, drained, now)
}

func (l nodeLookups) IsUnknown(a *v1.MaintenanceAdmission) bool {
	return !l.c.progress.Knows(a.MaintenanceName, a.MaintenanceUID) && !l.c.progress.IsGone(a.MaintenanceUID)
}

// isCordonRefused reports whether the node could not be cordoned.
func (c *Controller) isCordonRefused(node *v1.Node) bool {
	_, failed := c.failures.Get(node.Name, write.Cordon.Of(node.UID))
	return failed && !node.Spec.Unschedulable
}

// isOwnCordon reports whether the node may be unschedulable because of this controller.
func (c *Controller) isOwnCordon(node *v1.Node) bool {
	return decision.IsOwnCordon(node, c.ownCordon(node), c.progress.IsCordoned(node.Name))
}

// ownCordon returns what was last written, or nil if the status of the node says the same already.
func (c *Controller) ownCordon(node *v1.Node) *decision.OwnCordon {
	found, ok := c.ownCordons.Load(node.Name)
	if !ok || found.(decision.OwnCordon).UID != node.UID {
		return nil
	}
	own := found.(decision.OwnCordon)
	return &own
}

// reportHeldUp emits an event for each maintenance whose escalation others hold up on a node.
func (c *Controller) reportHeldUp(node *v1.Node, held *decision.HeldUp) {
	for _, o := range held.Come {
		if m, err := c.maintenanceLister.Get(o.Name); err == nil && m.UID == o.UID {
			c.events.HeldUp(m, node, held.Action, decision.NamesOf(held.Holders))
		}
	}
}
