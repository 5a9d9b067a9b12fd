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

package maintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// Actions of a pod that a plan shows: such pods are not evicted.
const (
	actionSkip = coordinationv1alpha1.NodeMaintenancePodSkip
	actionWait = coordinationv1alpha1.NodeMaintenancePodWaitCompleted
)

// nodePolicies are the pod policies of a maintenance, and the nodes on which they decide.
type nodePolicies struct {
	*maintenance.PodPolicies
	// name is that of the maintenance; empty for one that is not stored.
	name string
	// nodes is nil for the planned maintenance, all of whose nodes are planned.
	nodes *maintenance.NodeMatcher
}

// decideOn reports whether the policies decide on the node. Those of a shutdown never do: its kubelet writes them.
func (p *nodePolicies) decideOn(node *corev1.Node) bool {
	return p.name != maintenance.ShutdownName(node.Name) && (p.nodes == nil || p.nodes.Matches(node))
}

// readPolicies keeps the pod policies of a maintenance, and of others that drain its nodes: each has a verdict of its
// own on a pod, and the most cautious one decides. It reads namespaces if a policy selects them.
func (s *podSnapshot) readPolicies(ctx context.Context, client kubernetes.Interface, nm *coordinationv1alpha1.NodeMaintenance) error {
	if nm.UID == "" && s.budgetsNotServed && (len(nm.Spec.PodPolicies) > 0 || nm.Spec.DrainedWhen != nil) {
		s.policiesDropped = true // The gate is the same.
		nm = nm.DeepCopy()
		nm.Spec.PodPolicies, nm.Spec.DrainedWhen = nil, nil
	}
	if err := s.setPolicies(nm); err != nil {
		return err
	}
	if !slices.ContainsFunc(s.policies, func(policies nodePolicies) bool { return policies.SelectNamespaces() }) {
		return nil
	}
	// A policy that does not drain matches pods of unknown namespaces.
	return each(ctx, &s.snapshot, "namespaces", client.CoreV1().Namespaces().List, func(namespace *corev1.Namespace) {
		put(&s.namespaces, namespace.Name, labels.Set(namespace.Labels))
	})
}

func (s *podSnapshot) setPolicies(nm *coordinationv1alpha1.NodeMaintenance) error {
	s.policies, s.drainedWhen = nil, nm.Spec.DrainedWhen
	own, err := maintenance.NewPodPolicies(nm.Spec.PodPolicies)
	if err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	for i, policy := range nm.Spec.PodPolicies {
		if known := []coordinationv1alpha1.NodeMaintenancePodAction{coordinationv1alpha1.NodeMaintenancePodDrain, actionSkip, actionWait}; !slices.Contains(known, policy.Action) {
			return fmt.Errorf("spec.podPolicies[%d].action: unknown value %q: must be Drain, Skip or WaitCompleted", i, policy.Action)
		}
	}
	s.policies = append(s.policies, nodePolicies{PodPolicies: own, name: nm.Name})
	for _, other := range s.maintenances {
		if other.Name == nm.Name || other.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain || len(other.Spec.PodPolicies) == 0 {
			continue
		}
		// The controller does nothing for an invalid maintenance either.
		nodes, err := maintenance.NewNodeMatcher(other.Spec.NodeSelector)
		if err != nil {
			continue
		}
		if policies, err := maintenance.NewPodPolicies(other.Spec.PodPolicies); err == nil {
			s.policies = append(s.policies, nodePolicies{policies, other.Name, nodes})
		}
	}
	return nil
}

// keptPod is what happens to a pod that is not evicted.
type keptPod struct {
	action coordinationv1alpha1.NodeMaintenancePodAction
	// by names the other maintenances that skip the pod. If the planned one does not, it waits until they have ended.
	by []string
	// agent is whether the planned maintenance skips it only because a skipped pod of the node may need it.
	agent bool
}

// keepPods finds the pods of the nodes that are not evicted. It needs policies and pods.
func (s *podSnapshot) keepPods(nodes []*corev1.Node) {
	s.kept = map[*corev1.Pod]*keptPod{}
	for _, node := range nodes {
		for i := range s.policies {
			if policies := &s.policies[i]; policies.decideOn(node) {
				s.keepPodsOf(node, policies, i == 0)
			}
		}
	}
}

// keepPodsOf adds the verdicts of one maintenance on the pods of a node. Where it skips a pod, it skips the pods of
// DaemonSets and the static pods as well: they may be its network or its storage. own is whether it is the planned one,
// which comes first.
func (s *podSnapshot) keepPodsOf(node *corev1.Node, policies *nodePolicies, own bool) {
	skips := slices.ContainsFunc(s.pods[node.Name], func(pod *corev1.Pod) bool {
		return maintenance.IsLeft(pod) && maintenance.PodTypeOf(pod) == corev1.PodTypeDefault && s.actionFor(pod, policies) == actionSkip
	})
	for _, pod := range s.pods[node.Name] {
		action, agent := s.actionFor(pod, policies), false
		if skips && action != actionSkip && maintenance.PodTypeOf(pod) != corev1.PodTypeDefault {
			action, agent = actionSkip, true
		}
		known := s.kept[pod]
		switch {
		case action != actionSkip && action != actionWait, known != nil && known.action == actionSkip && len(known.by) == 0:
			continue // What the planned maintenance skips itself, it does not wait for.
		case known == nil:
			known = &keptPod{action: action}
			s.kept[pod] = known
		}
		known.action = maintenance.MoreCautious(known.action, action)
		switch {
		case own:
			known.agent = agent
		case action == actionSkip:
			known.by = append(known.by, policies.name)
		}
	}
}

// actionFor returns what the policies of a maintenance do with a pod.
func (s *podSnapshot) actionFor(pod *corev1.Pod, policies *nodePolicies) coordinationv1alpha1.NodeMaintenancePodAction {
	return policies.ActionFor(pod, func() (labels.Set, bool) {
		set, known := s.namespaces[pod.Namespace]
		return set, known
	})
}

// keptPodPlan is the plan of a pod that nobody evicts. One that is waited for keeps its step, and the
// next steps wait for it.
func keptPodPlan(pod *corev1.Pod, kept *keptPod, compiled *maintenance.Plan) *podPlan {
	p := newPodPlan(pod)
	p.Action, p.KeptBy = kept.action, kept.by
	if kept.agent {
		p.Remarks = append(p.Remarks, noteStaysWithSkipped)
	}
	if kept.action == actionSkip {
		return p
	}
	p.setStep(pod, compiled)
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil && pod.Status.StartTime != nil {
		p.EndsBy = ptr.To(metav1.NewTime(pod.Status.StartTime.Add(time.Duration(*seconds) * time.Second)))
	}
	return p
}

// isKept reports whether nobody evicts the pod.
func (p *podPlan) isKept() bool { return p.Action != "" }

// staysWithSkipped reports whether the pod stays only because a skipped pod of its node may need it.
func (p *podPlan) staysWithSkipped() bool { return slices.Contains(p.Remarks, noteStaysWithSkipped) }

// isKeptByOthers reports whether the pod stays until other maintenances have ended.
func (p *podPlan) isKeptByOthers() bool { return len(p.KeptBy) > 0 && !p.staysWithSkipped() }

// isWaitedFor reports whether the drain waits until the pod ends by itself.
func (p *podPlan) isWaitedFor() bool {
	return p.isKept() && p.Action != actionSkip && !p.staysWithSkipped() && !p.isKeptByOthers()
}

// keptText says why a pod is not evicted, and when the drain goes on.
func (p *podPlan) keptText(now time.Time) string {
	switch {
	case p.staysWithSkipped():
		return "" // The remark says why.
	case len(p.KeptBy) > 0:
		return fmt.Sprintf("stays until NodeMaintenance %s has ended, which skips it: the node is not drained before", strings.Join(p.KeptBy, ", "))
	case p.Action == actionSkip:
		return "stays: spec.podPolicies skips it"
	case p.EndsBy != nil:
		return fmt.Sprintf("not evicted: waited for until it ends, at the latest at %s", timeAndRemainder(now, *p.EndsBy))
	}
	return "not evicted: waited for until it ends, without a limit: it has no activeDeadlineSeconds"
}

// waitedForText says how many pods are waited for, and until when.
func (s *planSummary) waitedForText(now time.Time) string {
	var limits []string
	if s.WaitedForUntil != nil {
		limits = append(limits, "at the latest at "+timeAndRemainder(now, *s.WaitedForUntil))
	}
	if s.WaitedForEndless > 0 {
		limits = append(limits, fmt.Sprintf("%d of them without a limit", s.WaitedForEndless))
	}
	return "waited for until they end (" + strings.Join(limits, "; ") + ")"
}

// volumesText says what a drained node needs besides that no pod is left; empty if it needs nothing.
func (p *plan) volumesText() string {
	if p.DrainedWhen == nil || p.DrainedWhen.Volumes == "" {
		return ""
	}
	return fmt.Sprintf("A node without pods is drained when its volumes are %s, or after %s.", p.DrainedWhen.Volumes,
		duration.HumanDuration(time.Duration(ptr.Deref(p.DrainedWhen.TimeoutSeconds, defaultDetachSeconds))*time.Second))
}

// defaultDetachSeconds is the default of the API, for a manifest that is not stored yet.
const defaultDetachSeconds = 600
