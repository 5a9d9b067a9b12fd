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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// PodReadings are what is known of a pod that is left on a node, but for the pod itself.
type PodReadings struct {
	// Request is its EvictionRequest, which may be finished; nil if there is none.
	Request *coordinationv1alpha1.EvictionRequest
	// Node is its node; nil if that is gone.
	Node *v1.Node
	// Budgets returns the budgets that select the pod; if it is nil, blockers do not name them.
	Budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget
	// Asked is when this process has requested the eviction for the last time; zero if it has not.
	Asked time.Time
	// Contest says that the request is withdrawn again and again, since when; "" if it is not.
	Contest        string
	ContestedSince time.Time
	// Return is why the eviction is not requested yet of a pod that has come back, if Returned.
	Return   returns.Held
	Returned bool
	// Escalation and Refusal are the failed writes of an escalation, and of the request.
	Escalation, Refusal write.Failure
	// Unrecorded returns since when the status of the request cannot be written, and false if it can.
	Unrecorded func(node string, request *coordinationv1alpha1.EvictionRequest) (statusfailures.Failure, bool)
	// WhyAbsent returns why this process does not run an interceptor, and false if it does.
	WhyAbsent func(interceptor string) (string, bool)
}

// Pod is a pod that is left on a node, with its unfinished request, if it has one.
type Pod struct {
	*v1.Pod
	progress.Verdict
	Request *coordinationv1alpha1.EvictionRequest
	// Held is whether the pod has come back before its eviction may be requested again: see package returns.
	Held bool
	// Completes is whether a policy waits until the pod has ended: nobody evicts it.
	Completes bool
	// Over is whether a request has no effect: one for this pod was given up for good, or says
	// that the pod is gone, which the cache of pods does not have yet.
	Over bool
	// Obstacle is a request that is being deleted, kept by finalizers, and not canceled yet. No other one
	// can be created before that; the event enqueues the node.
	Obstacle *coordinationv1alpha1.EvictionRequest
	// Escalation is the strongest action that is due for the pod: see Escalations.
	Escalation v1.MaintenanceEscalation
	// Blocker is what delays the eviction of the pod, if Blocked.
	Blocker maintenance.Blocker
	Blocked bool
}

// NewPod decides what delays the eviction of a pod. The verdict says what its maintenances do with it.
func NewPod(pod *v1.Pod, verdict progress.Verdict, read *PodReadings, now time.Time) Pod {
	p := Pod{Pod: pod, Verdict: verdict, Completes: verdict.Action == coordinationv1alpha1.NodeMaintenancePodWaitCompleted, Held: read.Returned}
	switch request := read.Request; {
	case request == nil:
	case evictionrequest.IsFinished(request.Status.Conditions):
		p.Over = requests.IsOver(request, pod)
	default:
		p.Request = request
	}
	if p.Request != nil && p.Request.DeletionTimestamp != nil {
		p.Obstacle = p.Request
	}
	p.Blocker, p.Blocked = maintenance.BlockerOf(pod, read.Request, read.Budgets, now)
	if read.Node != nil {
		p.Blocker.ExplainByNode(pod, read.Node)
	}
	if p.waitsForTargets() {
		p.Blocker, p.Blocked = maintenance.Blocker{}, false
	}
	p.excuseSilence(read.Asked, now)
	if blocker, found := p.ownBlocker(read, now); found {
		p.Blocker, p.Blocked = blocker, true
	} else if p.Blocked {
		p.explain(read.WhyAbsent)
	}
	return p
}

// ownBlocker returns what delays the eviction on the part of this controller and its maintenances, and false if nothing does
// that matters more than what the request and the pod say.
func (p *Pod) ownBlocker(read *PodReadings, now time.Time) (maintenance.Blocker, bool) {
	requested := requests.IsRequested(p.Request)
	// A drain has to request the eviction, or to join the request of others, and cannot.
	refused := read.Refusal.Blocks() && !requested && !p.Over && !p.Completes && p.DeletionTimestamp == nil
	switch {
	case p.IsKeptByNeighbors() && !requested && p.DeletionTimestamp == nil:
		return maintenance.KeptPod(p.Pod, p.KeptBy, drainedSince(read.Node, now)), true
	case p.Held && !requested && p.DeletionTimestamp == nil:
		return maintenance.ReturnedPod(p.Pod, read.Return.Why, read.Return.Since, read.Return.Next), true
	case read.Escalation.Blocks():
		return maintenance.FailedRequest(p.Pod, read.Escalation.Message, read.Escalation.Since), true
	case read.Contest != "" && !requested && !p.Over:
		return maintenance.FailedRequest(p.Pod, read.Contest, read.ContestedSince), true
	case refused && (p.Request != nil || !p.Blocked): // What the request of others waits for is not what this drain does.
		return maintenance.FailedRequest(p.Pod, read.Refusal.Message, read.Refusal.Since), true
	case p.Obstacle != nil && !requested && !p.Completes:
		return maintenance.FailedRequest(p.Pod, requests.ObstacleMessage(p.Obstacle), p.Obstacle.DeletionTimestamp.Time), true
	}
	if requested && p.mayBeUnrecorded(read.Budgets != nil) {
		if failed, fails := read.Unrecorded(p.Spec.NodeName, p.Request); fails {
			return p.unrecorded(&failed), true
		}
	}
	if !p.Blocked && p.Completes {
		return waitsForCompletion(p.Pod), true
	}
	return maintenance.Blocker{}, false
}

// mayBeUnrecorded reports whether it matters that the status of the request cannot be written, so that no interceptor follows
// the active one, and nothing says why the eviction is refused. What needs an intervention itself comes first, unless only an
// earlier status says so. named is whether blockers name budgets.
func (p *Pod) mayBeUnrecorded(named bool) bool {
	return p.DeletionTimestamp == nil && (!p.Blocked || !p.Blocker.Cause.Blocked() || mayBeOver(&p.Blocker, named))
}

// mayBeOver reports whether nothing but the last status that could be written says so: what else refuses an eviction than
// a budget, or that a budget does which is gone.
func mayBeOver(blocker *maintenance.Blocker, named bool) bool {
	return blocker.Cause == maintenance.BlockerEvictionRefused || blocker.Cause == maintenance.BlockerDisruptionBudget && named && blocker.Name == ""
}

// unrecorded returns the blocker of a pod the status of whose request cannot be written.
func (p *Pod) unrecorded(failed *statusfailures.Failure) maintenance.Blocker {
	message := "the status of its request cannot be written: " + failed.Message
	if p.Blocked && p.Blocker.Cause == maintenance.BlockerEvictionRefused {
		message += "; the last one that could says that the eviction was refused: " + p.Blocker.Message
	}
	return maintenance.FailedRequest(p.Pod, message, failed.Since)
}

// explain adds to the blocker why this process does not run the interceptor that the pod waits
// for, unless another process does: see Absence.MaybeElsewhere of the controller.
func (p *Pod) explain(whyAbsent func(interceptor string) (string, bool)) {
	blocker := &p.Blocker
	name := blocker.Name
	if blocker.Cause == maintenance.BlockerUnhandled && blocker.Name == string(v1.PodTypeDaemonSet) {
		name = coordinationv1alpha1.EvictionInterceptorDaemonSet
	}
	why, absent := whyAbsent(name)
	if !absent || blocker.Heartbeat != nil {
		return
	}
	switch blocker.Cause {
	case maintenance.BlockerInterceptor, maintenance.BlockerInterceptorUnresponsive:
		blocker.Cause, blocker.Message = maintenance.BlockerInterceptorUnresponsive, why
	case maintenance.BlockerUnhandled:
		blocker.Message = why
	}
}

// drainedSince returns since when a node is being drained, as its status says; nil if it does not.
func drainedSince(node *v1.Node, now time.Time) *metav1.Time {
	if node == nil {
		return nil
	}
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == v1.NodeDrainInProgress && condition.Status == v1.ConditionTrue && status.IsOwnCondition(condition, now) {
			return &condition.LastTransitionTime
		}
	}
	return nil
}

// waitsForTargets reports whether others have asked for a pod whose interceptor acts only when drain targets have
// reached it: that it does nothing yet is as it should be.
func (p *Pod) waitsForTargets() bool {
	if !p.Blocked || p.DeletionTimestamp != nil || requests.IsRequested(p.Request) {
		return false
	}
	switch p.Blocker.Cause {
	case maintenance.BlockerInterceptor, maintenance.BlockerInterceptorUnresponsive, maintenance.BlockerUnhandled:
		return maintenance.PodTypeOf(p.Pod) != v1.PodTypeDefault
	}
	return false
}

// FirstReport is how long an interceptor has for its first report. That of a pod for which others have asked too
// early has it from the time on when the drain targets have reached the pod.
const FirstReport = time.Minute

// excuseSilence needs no intervention for the only interceptor that can stop the pod while it only counts as silent
// because others have asked it too early. asked is when this controller has.
func (p *Pod) excuseSilence(asked, now time.Time) {
	if p.Blocker.Cause != maintenance.BlockerInterceptorUnresponsive || p.Blocker.Heartbeat != nil ||
		maintenance.PodTypeOf(p.Pod) == v1.PodTypeDefault || now.Sub(asked) >= FirstReport {
		return
	}
	p.Blocker.Cause, p.Blocker.OverdueSince, p.Blocker.RecheckAt = maintenance.BlockerInterceptor, nil, asked.Add(FirstReport)
}

// NeedsRequest reports whether the eviction of the pod has to be requested, with these targets of
// its node.
func (p *Pod) NeedsRequest(targets maintenance.Targets) bool {
	return !p.Over && !p.Held && !p.Completes && !p.IsKeptByNeighbors() && p.Obstacle == nil && !requests.IsRequested(p.Request) && targets.Take(p.Pod)
}

// NeedsWithdrawal reports whether this controller has to withdraw from the request if no
// maintenance drains the node. A request whose interceptor forbids cancellation stays.
func (p *Pod) NeedsWithdrawal() bool {
	return requests.IsRequested(p.Request) && p.Request.Status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}

// waitsForCompletion returns what delays the drain of a pod that nobody evicts.
func waitsForCompletion(pod *v1.Pod) maintenance.Blocker {
	blocker := maintenance.Blocker{
		Cause: maintenance.BlockerCompletion, Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
		Since: pod.Status.StartTime.DeepCopy(),
	}
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil && pod.Status.StartTime != nil {
		blocker.ETA = ptr.To(metav1.NewTime(pod.Status.StartTime.Add(time.Duration(*seconds) * time.Second)))
	}
	return blocker
}

// isAffectedBy reports whether an action does something to a pod.
func (p *Pod) isAffectedBy(action v1.MaintenanceEscalation) bool {
	switch action {
	case v1.MaintenanceEscalationSkipInterceptors:
		// What the pod says does not matter: its kubelet may write that.
		return p.DeletionTimestamp == nil && requests.IsRequested(p.Request) && evictionrequest.IsPassable(p.Request, p.Pod) && !maintenance.IsSkipped(p.Request)
	case v1.MaintenanceEscalationForceDelete:
		return p.DeletionTimestamp == nil || ptr.Deref(p.DeletionGracePeriodSeconds, 1) != 0 // Otherwise, its finalizers keep it.
	}
	return p.DeletionTimestamp == nil
}
