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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/utils/ptr"
)

// Pod is a pod that is left on a node, with its unfinished request, if it has one.
type Pod struct {
	*v1.Pod
	progress.Verdict
	Request *coordinationv1alpha1.EvictionRequest
	// Held is whether the pod has come back before its eviction may be requested again: see returns.
	Held bool
	// Completes is whether a policy waits until the pod has ended: nobody evicts it.
	Completes bool
	// Over is whether a request has no effect: one for this pod was given up for good, or says
	// that the pod is gone, which the cache of pods does not have yet.
	Over bool
	// Obstacle is a request that is being deleted, kept by finalizers, and not canceled yet. No other one
	// can be created before that; the event enqueues the node.
	Obstacle *coordinationv1alpha1.EvictionRequest
	// Escalation is the strongest action that is due for the pod: see escalationOf.
	Escalation v1.MaintenanceEscalation
	// Blocker is what delays the eviction of the pod, if blocked.
	Blocker maintenance.Hold
	Blocked bool
}

// WaitsForTargets reports whether others have asked for a pod whose interceptor acts only when drain targets have
// reached it: that it does nothing yet is as it should be.
func (p *Pod) WaitsForTargets() bool {
	if !p.Blocked || p.DeletionTimestamp != nil || requests.IsRequested(p.Request) {
		return false
	}
	switch p.Blocker.Cause {
	case maintenance.HoldInterceptor, maintenance.HoldInterceptorUnresponsive, maintenance.HoldUnhandled:
		return maintenance.PodTypeOf(p.Pod) != v1.PodTypeDefault
	}
	return false
}

// FirstReport is how long an interceptor has for its first report. That of a pod for which others have asked too
// early has it from the time on when the drain targets have reached the pod.
const FirstReport = time.Minute

// ExcuseSilence needs no intervention for the only interceptor that can stop the pod while it only counts as silent
// because others have asked it too early. asked is when this controller has.
func (p *Pod) ExcuseSilence(asked, now time.Time) {
	if p.Blocker.Cause != maintenance.HoldInterceptorUnresponsive || p.Blocker.Heartbeat != nil ||
		maintenance.PodTypeOf(p.Pod) == v1.PodTypeDefault || now.Sub(asked) >= FirstReport {
		return
	}
	p.Blocker.Cause, p.Blocker.OverdueSince, p.Blocker.RecheckAt = maintenance.HoldInterceptor, nil, asked.Add(FirstReport)
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

// WaitsForCompletion returns what delays the drain of a pod that nobody evicts.
func WaitsForCompletion(pod *v1.Pod) maintenance.Hold {
	hold := maintenance.Hold{
		Cause: maintenance.HoldCompletion, Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
		Since: pod.Status.StartTime.DeepCopy(),
	}
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil && pod.Status.StartTime != nil {
		hold.ETA = ptr.To(metav1.NewTime(pod.Status.StartTime.Add(time.Duration(*seconds) * time.Second)))
	}
	return hold
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
