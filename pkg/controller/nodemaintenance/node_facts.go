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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// nodeFacts is what the caches and the progress of the maintenances say about a node.
type nodeFacts struct {
	progress.Counts
	// revision is that of the progress.Store when the specs were read.
	revision int
	// quiet is whether all requests for the pods are known: see dropRequests.
	quiet bool
	// awaitsFinalizers is whether the drain may not start yet: see progress.AwaitsFinalizers.
	awaitsFinalizers bool
	pods             []podFacts
	// staying are pods that stay, because policies skip them or nobody stops them, and skipped counts them by the
	// names of the maintenances for which they do. Those that another maintenance does not skip are among pods as well.
	staying []*v1.Pod
	skipped map[string]int
	// unstopped counts those of them whose own controllers take no part in maintenances.
	unstopped map[progress.Unstopped]int
	// unneeded are pods whose eviction is requested for a maintenance that has ended: all that drain the node skip
	// them.
	unneeded []*v1.Pod
	// nextEscalation is after which time a further action may be due for a pod, 0 if never.
	nextEscalation time.Duration
}

// podFacts is a pod that is left on a node, with its unfinished request, if it has one.
type podFacts struct {
	*v1.Pod
	progress.Verdict
	request *coordinationv1alpha1.EvictionRequest
	// held is whether the pod has come back before its eviction may be requested again: see returns.
	held bool
	// completes is whether a policy waits until the pod has ended: nobody evicts it.
	completes bool
	// over is whether a request has no effect: one for this pod was given up for good, or says
	// that the pod is gone, which the cache of pods does not have yet.
	over bool
	// obstacle is a request that is being deleted, kept by finalizers, and not canceled yet. No other one
	// can be created before that; the event enqueues the node.
	obstacle *coordinationv1alpha1.EvictionRequest
	// escalation is the strongest action that is due for the pod: see escalationOf.
	escalation v1.MaintenanceEscalation
	// blocker is what delays the eviction of the pod, if blocked.
	blocker maintenance.Hold
	blocked bool
}

// readFacts reads the pods of a node, and counts them for the maintenances.
func (c *Controller) readFacts(name string, node *v1.Node, specs []progress.Spec, now time.Time) (*nodeFacts, error) {
	pods, ended, err := c.podsOn(name)
	if err != nil {
		return nil, err
	}
	c.contests.See(name, pods, ended)
	facts := &nodeFacts{skipped: map[string]int{}, unstopped: map[progress.Unstopped]int{}}
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
	verdicts, agentsStay := c.verdictsOn(name, pods, specs)
	if node != nil && progress.IsDraining(specs) {
		leaving := leaving(pods, verdicts)
		c.returns.Resume(node, len(leaving) == 0, hasBeenDrained(node, specs), func() map[string]time.Time { return c.comesBackSince(specs) }, now)
		c.returns.See(node, leaving, now)
	} else {
		c.returns.Forget(name)
		c.liveDrains.forget(name)
	}
	if node != nil {
		c.holdUps.see(node, specs, pods, verdicts, now)
	}
	var heldUp []*heldUpEscalation
	holders := sets.New[types.UID]()
	for i, pod := range pods {
		if len(verdicts[i].KeptBy) > 0 {
			facts.staying = append(facts.staying, pod)
			for _, keeper := range verdicts[i].KeptBy {
				facts.skipped[keeper]++
			}
		}
		if why := verdicts[i].Unstopped; why != "" {
			facts.unstopped[progress.Unstopped{PodType: maintenance.PodTypeOf(pod), Why: why}]++
		}
		read := c.readPod(pod, verdicts[i], c.podBudgets.For, now)
		if len(verdicts[i].KeptBy) > 0 && !verdicts[i].Wanted {
			if read.needsWithdrawal() {
				facts.unneeded = append(facts.unneeded, pod)
			}
			continue
		}
		escalation := c.escalationOf(&read, node, specs, now)
		if next := escalation.next; next > 0 && (facts.nextEscalation == 0 || next < facts.nextEscalation) {
			facts.nextEscalation = next
		}
		read.escalation = escalation.action
		for _, o := range escalation.holders {
			holders.Insert(o.UID)
		}
		if escalation.heldUp != nil {
			heldUp = append(heldUp, escalation.heldUp)
			read.blocker.Escalation = escalation.heldUp.String()
		}
		facts.pods = append(facts.pods, read)
	}
	for _, news := range c.holdUps.note(name, holders, heldUp) {
		c.reportHeldUp(node, news)
	}
	facts.Counts = c.progress.CountPods(name, specs, facts.counted(), admitted, agentsStay)
	c.enqueueNodes(facts.Others)
	return facts, nil
}

// counted returns the pods that are left, for the progress of the maintenances.
func (f *nodeFacts) counted() []progress.Pod {
	pods := make([]progress.Pod, len(f.pods))
	for i := range f.pods {
		pods[i] = progress.Pod{Pod: f.pods[i].Pod, Verdict: f.pods[i].Verdict}
	}
	return pods
}

// readPod reads the request for a pod and what delays its eviction. The verdict says what its maintenances
// do with it. budgets returns the budgets that select the pod; without it, blockers do not name them.
func (c *Controller) readPod(pod *v1.Pod, verdict progress.Verdict, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) podFacts {
	facts := podFacts{Pod: pod, Verdict: verdict, completes: verdict.Action == coordinationv1alpha1.NodeMaintenancePodWaitCompleted}
	request, err := c.requestLister.EvictionRequests(pod.Namespace).Get(string(pod.UID))
	switch {
	case err != nil:
		request = nil // The only error of a lister of a cache is NotFound.
	case evictionrequest.IsFinished(request.Status.Conditions):
		facts.over = requests.IsOver(request, pod)
	default:
		facts.request = request
	}
	if facts.request != nil && request.DeletionTimestamp != nil {
		facts.obstacle = request
	}
	facts.blocker, facts.blocked = maintenance.HoldOf(pod, request, budgets, now)
	if node, err := c.nodeLister.Get(pod.Spec.NodeName); err == nil {
		facts.blocker.ExplainByNode(pod, node)
	}
	if facts.waitsForTargets() {
		facts.blocker, facts.blocked = maintenance.Hold{}, false
	}
	facts.excuseSilence(c.contests.Last(pod.Spec.NodeName, pod.UID), now)
	contest, contestedSince, contested := c.contests.Message(pod.Spec.NodeName, pod.UID, now)
	escalation, escalates := c.failures.Get(pod.Spec.NodeName, write.Escalation.Of(pod.UID))
	var held returns.Held
	held, facts.held = c.returns.Held(pod.Spec.NodeName, pod.UID)
	switch {
	case facts.IsKeptByNeighbors() && !requests.IsRequested(facts.request) && pod.DeletionTimestamp == nil:
		facts.blocker, facts.blocked = maintenance.KeptPod(pod, verdict.KeptBy, c.drainedSince(pod.Spec.NodeName)), true
	case facts.held && !requests.IsRequested(facts.request) && pod.DeletionTimestamp == nil:
		facts.blocker, facts.blocked = maintenance.ReturnedPod(pod, held.Why, held.Since, held.Next), true
	case escalates && escalation.Blocks():
		facts.blocker, facts.blocked = maintenance.FailedRequest(pod, escalation.Message, escalation.Since), true
	case contested && !requests.IsRequested(facts.request) && !facts.over:
		facts.blocker, facts.blocked = maintenance.FailedRequest(pod, contest, contestedSince), true
	case facts.request != nil && c.isRequestRefused(&facts): // What the request of others waits for is not what this drain does.
		facts.blocker, facts.blocked = c.refusedRequest(pod), true
	case facts.obstacle != nil && !requests.IsRequested(facts.request) && !facts.completes:
		facts.blocker, facts.blocked = maintenance.FailedRequest(pod, requests.ObstacleMessage(facts.obstacle), facts.obstacle.DeletionTimestamp.Time), true
	case c.isUnrecorded(&facts, budgets != nil):
		facts.blocker, facts.blocked = c.unrecordedRequest(&facts), true
	case facts.blocked:
		c.explain(&facts.blocker)
	case facts.completes:
		facts.blocker, facts.blocked = waitsForCompletion(pod), true
	case facts.request == nil && c.isRequestRefused(&facts):
		facts.blocker, facts.blocked = c.refusedRequest(pod), true
	}
	return facts
}

// isRequestRefused reports whether a drain that has to request the eviction of the pod, or to join the request of others,
// cannot.
func (c *Controller) isRequestRefused(p *podFacts) bool {
	failed, fails := c.failures.Get(p.Spec.NodeName, write.Request.Of(p.UID))
	return fails && failed.Blocks() && !requests.IsRequested(p.request) && !p.over && !p.completes && p.DeletionTimestamp == nil
}

// refusedRequest returns the blocker of a pod for which isRequestRefused is true.
func (c *Controller) refusedRequest(pod *v1.Pod) maintenance.Hold {
	failed, _ := c.failures.Get(pod.Spec.NodeName, write.Request.Of(pod.UID))
	return maintenance.FailedRequest(pod, failed.Message, failed.Since)
}

// isUnrecorded reports whether the status of the request cannot be written, so that no interceptor follows the active
// one, and nothing says why the eviction is refused. What needs an intervention itself comes first, unless only an
// earlier status says so. named is whether blockers name budgets.
func (c *Controller) isUnrecorded(p *podFacts, named bool) bool {
	if !requests.IsRequested(p.request) || p.DeletionTimestamp != nil || p.blocked && p.blocker.Cause.Blocked() && !mayBeOver(&p.blocker, named) {
		return false
	}
	_, fails := c.statusFailures.Get(requestKey(p.request))
	return fails
}

// mayBeOver reports whether nothing but the last status that could be written says so: what else refuses an eviction than
// a budget, or that a budget does which is gone.
func mayBeOver(blocker *maintenance.Hold, named bool) bool {
	return blocker.Cause == maintenance.HoldEvictionRefused || blocker.Cause == maintenance.HoldDisruptionBudget && named && blocker.Name == ""
}

// unrecordedRequest returns the blocker of a pod for which isUnrecorded is true.
func (c *Controller) unrecordedRequest(p *podFacts) maintenance.Hold {
	key := requestKey(p.request)
	if earlier := c.earlierSince(p.Spec.NodeName, write.Request, p.Namespace); !earlier.IsZero() {
		c.statusFailures.Resume(key, earlier)
	}
	failed, _ := c.statusFailures.Get(key)
	message := "the status of its request cannot be written: " + failed.Message
	if p.blocked && p.blocker.Cause == maintenance.HoldEvictionRefused {
		message += "; the last one that could says that the eviction was refused: " + p.blocker.Message
	}
	return maintenance.FailedRequest(p.Pod, message, failed.Since)
}

func requestKey(request *coordinationv1alpha1.EvictionRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
}

// waitsForTargets reports whether others have asked for a pod whose interceptor acts only when drain targets have
// reached it: that it does nothing yet is as it should be.
func (p *podFacts) waitsForTargets() bool {
	if !p.blocked || p.DeletionTimestamp != nil || requests.IsRequested(p.request) {
		return false
	}
	switch p.blocker.Cause {
	case maintenance.HoldInterceptor, maintenance.HoldInterceptorUnresponsive, maintenance.HoldUnhandled:
		return maintenance.PodTypeOf(p.Pod) != v1.PodTypeDefault
	}
	return false
}

// firstReport is how long an interceptor has for its first report. That of a pod for which others have asked too
// early has it from the time on when the drain targets have reached the pod.
const firstReport = time.Minute

// excuseSilence needs no intervention for the only interceptor that can stop the pod while it only counts as silent
// because others have asked it too early. asked is when this controller has.
func (p *podFacts) excuseSilence(asked, now time.Time) {
	if p.blocker.Cause != maintenance.HoldInterceptorUnresponsive || p.blocker.Heartbeat != nil ||
		maintenance.PodTypeOf(p.Pod) == v1.PodTypeDefault || now.Sub(asked) >= firstReport {
		return
	}
	p.blocker.Cause, p.blocker.OverdueSince, p.blocker.RecheckAt = maintenance.HoldInterceptor, nil, asked.Add(firstReport)
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

// anyTaken reports whether the targets include one of the pods that no policy keeps.
func (f *nodeFacts) anyTaken(targets maintenance.Targets) bool {
	return slices.ContainsFunc(f.pods, func(pod podFacts) bool { return !pod.IsKeptByNeighbors() && targets.Take(pod.Pod) })
}

// isLeftFor reports whether a pod is left that has to leave for the maintenance.
func (f *nodeFacts) isLeftFor(maintenance string) bool {
	return slices.ContainsFunc(f.pods, func(pod podFacts) bool { return !pod.IsKeptBy(maintenance) })
}

// requests returns the pods whose eviction has to be requested.
func (f *nodeFacts) requests(targets maintenance.Targets) []*v1.Pod {
	return f.podsThat(func(pod *podFacts) bool { return pod.needsRequest(targets) })
}

// withdrawals returns the pods from whose requests this controller has to withdraw.
func (f *nodeFacts) withdrawals() []*v1.Pod { return f.podsThat((*podFacts).needsWithdrawal) }

func (f *nodeFacts) podsThat(match func(*podFacts) bool) []*v1.Pod {
	var pods []*v1.Pod
	for i := range f.pods {
		if match(&f.pods[i]) {
			pods = append(pods, f.pods[i].Pod)
		}
	}
	return pods
}

// needsRequest reports whether the eviction of the pod has to be requested, with these targets of
// its node.
func (p *podFacts) needsRequest(targets maintenance.Targets) bool {
	return !p.over && !p.held && !p.completes && !p.IsKeptByNeighbors() && p.obstacle == nil && !requests.IsRequested(p.request) && targets.Take(p.Pod)
}

// needsWithdrawal reports whether this controller has to withdraw from the request if no
// maintenance drains the node. A request whose interceptor forbids cancellation stays.
func (p *podFacts) needsWithdrawal() bool {
	return requests.IsRequested(p.request) && p.request.Status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}
