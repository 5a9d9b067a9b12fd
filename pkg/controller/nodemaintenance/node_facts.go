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
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
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

// readPod reads the request for a pod and what delays its eviction. The verdict says what its maintenances
// do with it. budgets returns the budgets that select the pod; without it, blockers do not name them.
func (c *Controller) readPod(pod *v1.Pod, verdict progress.Verdict, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) decision.Pod {
	facts := decision.Pod{Pod: pod, Verdict: verdict, Completes: verdict.Action == coordinationv1alpha1.NodeMaintenancePodWaitCompleted}
	request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	switch {
	case err != nil:
		request = nil // The only error of a lister of a cache is NotFound.
	case evictionrequest.IsFinished(request.Status.Conditions):
		facts.Over = requests.IsOver(request, pod)
	default:
		facts.Request = request
	}
	if facts.Request != nil && request.DeletionTimestamp != nil {
		facts.Obstacle = request
	}
	facts.Blocker, facts.Blocked = maintenance.HoldOf(pod, request, budgets, now)
	if node, err := c.nodeLister.Get(pod.Spec.NodeName); err == nil {
		facts.Blocker.ExplainByNode(pod, node)
	}
	if facts.WaitsForTargets() {
		facts.Blocker, facts.Blocked = maintenance.Hold{}, false
	}
	facts.ExcuseSilence(c.contests.Last(pod.Spec.NodeName, pod.UID), now)
	contest, contestedSince, contested := c.contests.Message(pod.Spec.NodeName, pod.UID, now)
	escalation, escalates := c.failures.Get(pod.Spec.NodeName, write.Escalation.Of(pod.UID))
	var held returns.Held
	held, facts.Held = c.returns.Held(pod.Spec.NodeName, pod.UID)
	switch {
	case facts.IsKeptByNeighbors() && !requests.IsRequested(facts.Request) && pod.DeletionTimestamp == nil:
		facts.Blocker, facts.Blocked = maintenance.KeptPod(pod, verdict.KeptBy, c.drainedSince(pod.Spec.NodeName)), true
	case facts.Held && !requests.IsRequested(facts.Request) && pod.DeletionTimestamp == nil:
		facts.Blocker, facts.Blocked = maintenance.ReturnedPod(pod, held.Why, held.Since, held.Next), true
	case escalates && escalation.Blocks():
		facts.Blocker, facts.Blocked = maintenance.FailedRequest(pod, escalation.Message, escalation.Since), true
	case contested && !requests.IsRequested(facts.Request) && !facts.Over:
		facts.Blocker, facts.Blocked = maintenance.FailedRequest(pod, contest, contestedSince), true
	case facts.Request != nil && c.isRequestRefused(&facts): // What the request of others waits for is not what this drain does.
		facts.Blocker, facts.Blocked = c.refusedRequest(pod), true
	case facts.Obstacle != nil && !requests.IsRequested(facts.Request) && !facts.Completes:
		facts.Blocker, facts.Blocked = maintenance.FailedRequest(pod, requests.ObstacleMessage(facts.Obstacle), facts.Obstacle.DeletionTimestamp.Time), true
	case c.isUnrecorded(&facts, budgets != nil):
		facts.Blocker, facts.Blocked = c.unrecordedRequest(&facts), true
	case facts.Blocked:
		c.explain(&facts.Blocker)
	case facts.Completes:
		facts.Blocker, facts.Blocked = decision.WaitsForCompletion(pod), true
	case facts.Request == nil && c.isRequestRefused(&facts):
		facts.Blocker, facts.Blocked = c.refusedRequest(pod), true
	}
	return facts
}

// isRequestRefused reports whether a drain that has to request the eviction of the pod, or to join the request of others,
// cannot.
func (c *Controller) isRequestRefused(p *decision.Pod) bool {
	failed, fails := c.failures.Get(p.Spec.NodeName, write.Request.Of(p.UID))
	return fails && failed.Blocks() && !requests.IsRequested(p.Request) && !p.Over && !p.Completes && p.DeletionTimestamp == nil
}

// refusedRequest returns the blocker of a pod for which isRequestRefused is true.
func (c *Controller) refusedRequest(pod *v1.Pod) maintenance.Hold {
	failed, _ := c.failures.Get(pod.Spec.NodeName, write.Request.Of(pod.UID))
	return maintenance.FailedRequest(pod, failed.Message, failed.Since)
}

// isUnrecorded reports whether the status of the request cannot be written, so that no interceptor follows the active
// one, and nothing says why the eviction is refused. What needs an intervention itself comes first, unless only an
// earlier status says so. named is whether blockers name budgets.
func (c *Controller) isUnrecorded(p *decision.Pod, named bool) bool {
	if !requests.IsRequested(p.Request) || p.DeletionTimestamp != nil || p.Blocked && p.Blocker.Cause.Blocked() && !mayBeOver(&p.Blocker, named) {
		return false
	}
	_, fails := c.statusFailures.Get(requestKey(p.Request))
	return fails
}

// mayBeOver reports whether nothing but the last status that could be written says so: what else refuses an eviction than
// a budget, or that a budget does which is gone.
func mayBeOver(blocker *maintenance.Hold, named bool) bool {
	return blocker.Cause == maintenance.HoldEvictionRefused || blocker.Cause == maintenance.HoldDisruptionBudget && named && blocker.Name == ""
}

// unrecordedRequest returns the blocker of a pod for which isUnrecorded is true.
func (c *Controller) unrecordedRequest(p *decision.Pod) maintenance.Hold {
	key := requestKey(p.Request)
	if earlier := c.earlierSince(p.Spec.NodeName, write.Request, p.Namespace); !earlier.IsZero() {
		c.statusFailures.Resume(key, earlier)
	}
	failed, _ := c.statusFailures.Get(key)
	message := "the status of its request cannot be written: " + failed.Message
	if p.Blocked && p.Blocker.Cause == maintenance.HoldEvictionRefused {
		message += "; the last one that could says that the eviction was refused: " + p.Blocker.Message
	}
	return maintenance.FailedRequest(p.Pod, message, failed.Since)
}

func requestKey(request *coordinationv1alpha1.EvictionRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
}

// explain adds to the blocker of a pod why this process does not run the interceptor that it waits
// for, unless another process does: see Absence.MaybeElsewhere.
func (c *Controller) explain(blocker *maintenance.Hold) {
	name := blocker.Name
	if blocker.Cause == maintenance.HoldUnhandled && blocker.Name == string(v1.PodTypeDaemonSet) {
		name = coordinationv1alpha1.EvictionInterceptorDaemonSet
	}
	absence, absent := c.absences.Get(name)
	if !absent || blocker.Heartbeat != nil {
		return
	}
	switch blocker.Cause {
	case maintenance.HoldInterceptor, maintenance.HoldInterceptorUnresponsive:
		blocker.Cause, blocker.Message = maintenance.HoldInterceptorUnresponsive, absence.Why
	case maintenance.HoldUnhandled:
		blocker.Message = absence.Why
	}
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
