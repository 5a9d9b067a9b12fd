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
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// plan is what a drain would do. "plan -o json" prints it: its fields are an interface.
type plan struct {
	// Maintenance is the name of the stored maintenance, if the plan is of one.
	Maintenance string `json:"maintenance,omitempty"`
	// MissingNodes are named by the selector and do not exist, sorted.
	MissingNodes []string    `json:"missingNodes,omitempty"`
	Steps        []stepView  `json:"steps"`
	Nodes        []*nodePlan `json:"nodes"`
	// Budgets are those that select at least one pod that is evicted through the API.
	Budgets []budgetPlan `json:"budgets"`
	// Warnings name workloads that would be down, and Jobs that would fail.
	Warnings []warning `json:"warnings"`
	// Rollout is nil if all nodes are drained at the same time.
	Rollout *rolloutPlan `json:"rollout,omitempty"`
	// DrainedWhen is that of the spec.
	DrainedWhen *coordinationv1alpha1.NodeMaintenanceDrainedWhen `json:"drainedWhen,omitempty"`
	// Responders is whether responders act, if a pod of the plan has some.
	Responders responderSupport `json:"responders,omitempty"`
	// PoliciesDropped is true if the manifest has pod policies or drainedWhen, and the server does not
	// store them.
	PoliciesDropped bool        `json:"policiesDropped,omitempty"`
	Summary         planSummary `json:"summary"`
	// Unreadable are the resources that the user may not list, and that the plan therefore lacks.
	Unreadable []string `json:"unreadable,omitempty"`
}

// stepView is an entry of the drain plan.
type stepView struct {
	corev1.DrainPlanEntry `json:",inline"`

	// Step is its number, from 1.
	Step int `json:"step"`
	// Pods is how many pods it selects.
	Pods int `json:"pods"`
}

// nodePlan is what would happen on one node.
type nodePlan struct {
	Name     string `json:"name"`
	Cordoned bool   `json:"cordoned"`
	// CoveredBy are the other maintenances of the node that are not completed. A drain evicts only
	// pods that all maintenances of the node allow.
	CoveredBy []coverView `json:"coveredBy,omitempty"`
	// Pods in the order in which their eviction is requested.
	Pods []*podPlan `json:"pods"`
}

type coverView struct {
	Name  string                                    `json:"name"`
	Stage coordinationv1alpha1.NodeMaintenanceStage `json:"stage"`
}

// podPlan is what would happen to one pod.
type podPlan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Step is the number of the entry of the drain plan that selects the pod; 0 if none does.
	Step     int            `json:"step"`
	Type     corev1.PodType `json:"type"`
	Priority int32          `json:"priority"`
	// Action is Skip or WaitCompleted if a pod policy says so: nobody evicts the pod.
	Action coordinationv1alpha1.NodeMaintenancePodAction `json:"action,omitempty"`
	// KeptBy are other maintenances of the node whose policies skip the pod. It stays until they have ended, and the
	// node is not drained before.
	KeptBy []string `json:"keptBy,omitempty"`
	// EndsBy is when a pod that is waited for ends at the latest, if it has a deadline.
	EndsBy *metav1.Time `json:"endsBy,omitempty"`
	// Interceptors, and responders that act, do so in this order. The last one evicts the pod.
	Interceptors []string `json:"interceptors"`
	// IdleResponders do not act: the server does not serve their API, the request was made without them, or the pod has
	// too many interceptors.
	IdleResponders []string `json:"idleResponders,omitempty"`
	// Budgets select the pod.
	Budgets []string `json:"budgets,omitempty"`
	// Blocked says why the API server would not evict the pod now. Empty if it would, and for a
	// pod that is replaced first, which needs no eviction.
	Blocked string `json:"blocked,omitempty"`
	// BlockedUnreplaced says the same for a pod that is replaced first: it applies if no
	// replacement becomes available.
	BlockedUnreplaced string `json:"blockedIfNotReplaced,omitempty"`
	// ReplacementObstacle says why no replacement of the pod can start while it runs, although its Deployment
	// surges. Empty if nothing is known that prevents it.
	ReplacementObstacle string `json:"replacementObstacle,omitempty"`
	// Requesters already request the eviction of the pod.
	Requesters []string  `json:"requesters,omitempty"`
	Remarks    []podNote `json:"remarks,omitempty"`
}

// podNote is a remark about the eviction of a pod.
type podNote string

const (
	// noteUnmanaged: no controller will recreate the pod.
	noteUnmanaged podNote = "Unmanaged"
	// noteLocalStorage: the data of its emptyDir volumes is lost.
	noteLocalStorage podNote = "LocalStorage"
	// noteNeedsDaemonSet, noteNeedsKubelet: pods of this type are not evicted through the API.
	noteNeedsDaemonSet podNote = "NeedsDaemonSetController"
	noteNeedsKubelet   podNote = "NeedsKubelet"
	// noteForeignDaemonSet: so are pods of another group's DaemonSet, such as apps.kruise.io, whose controller has
	// to be an interceptor for that.
	noteForeignDaemonSet podNote = "NeedsForeignDaemonSetController"
	// noteSchedulingGroup: a request for its eviction is canceled, because the disruptionMode of its PodGroup is
	// all, or the group cannot be read.
	noteSchedulingGroup podNote = "SchedulingGroup"
	// noteReplacedFirst: its Deployment surges, and the scale-down that follows deletes the pod.
	noteReplacedFirst podNote = "ReplacedFirst"
	// noteMayBeReplaced: the same, but the Deployment could not be read.
	noteMayBeReplaced podNote = "MayBeReplacedFirst"
	// noteNotReplaced: its Deployment allowed a surge when the pod was created, and no longer does.
	noteNotReplaced podNote = "NotReplacedFirst"
	// noteCannotBeReplaced: its Deployment surges, but no replacement can start while the pod runs.
	noteCannotBeReplaced podNote = "CannotBeReplacedFirst"
	// noteCrowded: it names so many interceptors that its controller could not add its own.
	noteCrowded podNote = "NoRoomForInterceptors"
	// noteComesBack: its replacement may run on the cordoned node, and would be evicted again.
	noteComesBack podNote = "ComesBack"
	// noteNamesNode: its replacement runs on the cordoned node, which the template names, and would be evicted again.
	noteNamesNode podNote = "ComesBackByNodeName"
	// noteStaysWithSkipped: a policy skips a pod of the node, which may need this agent.
	noteStaysWithSkipped podNote = "StaysWithSkippedPods"
	// noteOneByOne: its StatefulSet, or its Deployment, lets its pods leave one after another.
	noteOneByOne podNote = "OneAfterAnother"
	// noteComesAfter: its StatefulSet lets its pods leave one after another, but its replacement can only come to nodes that
	// are drained.
	noteComesAfter podNote = "ReplacedAfterDrain"
	// noteTerminating: it is being deleted.
	noteTerminating podNote = "Terminating"
)

// replaces reports whether the pod is replaced and then deleted, without an eviction.
func (n podNote) replaces() bool {
	return n == noteReplacedFirst || n == noteMayBeReplaced
}

// budgetPlan is a budget and how many of the pods it selects.
type budgetPlan struct {
	Name               string `json:"name"`
	DisruptionsAllowed int32  `json:"disruptionsAllowed"`
	Pods               int    `json:"pods"`
}

type planSummary struct {
	Nodes        int `json:"nodes"`
	Pods         int `json:"pods"`
	Blocked      int `json:"blockedPods"`
	Intercepted  int `json:"interceptedPods"`
	Replaced     int `json:"podsReplacedFirst"`
	Unmanaged    int `json:"unmanagedPods"`
	LocalStorage int `json:"podsWithLocalStorage"`
	// IdleResponders are pods of which a responder does not act.
	IdleResponders int `json:"podsWithIdleResponders"`
	// Skipped pods stay, those of KeptByOthers until other maintenances have ended, and those of WaitedFor are left alone until they end: by WaitedForUntil, but for
	// WaitedForEndless of them, which have no deadline.
	Skipped          int          `json:"skippedPods"`
	KeptByOthers     int          `json:"podsKeptByOthers"`
	WaitedFor        int          `json:"podsWaitedFor"`
	WaitedForEndless int          `json:"podsWaitedForWithoutDeadline"`
	WaitedForUntil   *metav1.Time `json:"waitedForUntil,omitempty"`
	// StayingAgents are DaemonSet pods and static pods that stay with skipped pods, and ComingBack those
	// whose replacements may run on the cordoned node.
	StayingAgents int `json:"podsThatStayWithSkippedPods"`
	ComingBack    int `json:"podsThatComeBack"`
	// Unhandled are DaemonSet pods, static pods and those of scheduling groups.
	Unhandled int `json:"podsThatNeedOthers"`
}

// planOf returns what a drain of the nodes would do. The maintenance of the given name is not
// listed among the other maintenances of the nodes.
func planOf(s *podSnapshot, name string, nodes []*corev1.Node, entries []corev1.DrainPlanEntry) (*plan, error) {
	compiled, err := maintenance.NewPlan(entries)
	if err != nil {
		return nil, err
	}
	p := &plan{Maintenance: name, Steps: []stepView{}, Nodes: []*nodePlan{}, Budgets: []budgetPlan{}, Warnings: []warning{}, Rollout: s.rollout, Responders: s.responders, DrainedWhen: s.drainedWhen, PoliciesDropped: s.policiesDropped, Unreadable: s.unreadable}
	for i, entry := range entries {
		p.Steps = append(p.Steps, stepView{DrainPlanEntry: entry, Step: i + 1})
	}
	coversOf := s.covers(name)
	s.setDrained(nodes)
	for _, node := range nodes {
		n := &nodePlan{Name: node.Name, Cordoned: node.Spec.Unschedulable, CoveredBy: coversOf(node), Pods: []*podPlan{}}
		for _, pod := range filtered(s.pods[node.Name], maintenance.IsLeft) {
			if kept := s.kept[pod]; kept != nil {
				n.Pods = append(n.Pods, keptPodPlan(pod, kept, compiled))
			} else {
				n.Pods = append(n.Pods, podPlanOf(s, pod, compiled))
			}
		}
		// Pods that no entry selects come last.
		slices.SortStableFunc(n.Pods, func(a, b *podPlan) int {
			return cmp.Or(cmp.Compare(uint(a.Step-1), uint(b.Step-1)), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		p.Nodes = append(p.Nodes, n)
	}
	p.sumUp(s)
	p.addWarnings(s)
	return p, nil
}

// covers returns a function that returns the open maintenances of a node but the one of the name.
// Selectors of thousands of nodes are compiled only once.
func (s *snapshot) covers(name string) func(node *corev1.Node) []coverView {
	matchers := map[coverView]*maintenance.NodeMatcher{}
	var covers []coverView
	for _, nm := range s.maintenances {
		if nm.Name == name || isCompleted(nm) || nm.Spec.NodeSelector == nil {
			continue
		}
		// The controller does nothing for an invalid selector either.
		if matcher, err := maintenance.NewNodeMatcher(nm.Spec.NodeSelector); err == nil {
			cover := coverView{Name: nm.Name, Stage: nm.Spec.Stage}
			covers, matchers[cover] = append(covers, cover), matcher
		}
	}
	return func(node *corev1.Node) []coverView {
		return filtered(covers, func(cover coverView) bool { return matchers[cover].Matches(node) })
	}
}

// newPodPlan returns the plan of a pod without what happens to it.
func newPodPlan(pod *corev1.Pod) *podPlan {
	return &podPlan{Namespace: pod.Namespace, Name: pod.Name, Type: maintenance.PodTypeOf(pod), Priority: maintenance.PodPriority(pod), Interceptors: []string{}}
}

// setStep sets the step of the drain plan that selects the pod.
func (p *podPlan) setStep(pod *corev1.Pod, compiled *maintenance.Plan) {
	if step := compiled.EntryFor(pod); step < compiled.Len() {
		p.Step = step + 1
	}
}

func podPlanOf(s *podSnapshot, pod *corev1.Pod, compiled *maintenance.Plan) *podPlan {
	budgets := s.budgetsOf(pod)
	p := newPodPlan(pod)
	p.setStep(pod, compiled)
	p.Interceptors, p.Budgets = s.targetsOf(pod), budgetNames(budgets)
	surge := s.surgeNoteOf(pod)
	if surge.replaces() {
		if p.ReplacementObstacle = s.obstacleOf(pod); p.ReplacementObstacle != "" {
			surge = noteCannotBeReplaced
		}
	}
	p.Remarks = append(s.notesOf(pod), chosen(
		choice{surge != "", surge},
		choice{s.leavesAlone(pod, budgets), noteOneByOne},
		choice{s.comesAfter(pod), noteComesAfter},
	)...)
	switch {
	case p.Type != corev1.PodTypeDefault:
		// Such pods are not evicted through the API.
	case surge.replaces():
		p.BlockedUnreplaced = refusalOf(pod, budgets)
	default:
		p.Blocked = refusalOf(pod, budgets)
	}
	if request := s.openRequestOf(pod); request != nil {
		p.Requesters = mapped(request.Spec.Requesters, func(requester coordinationv1alpha1.Requester) string { return requester.Name })
		if targets := request.Status.TargetInterceptors; len(targets) > 0 {
			// The list is fixed when the request is created.
			p.Interceptors = mapped(targets, func(interceptor coordinationv1alpha1.Interceptor) string { return interceptor.Name })
		}
	}
	p.setResponders(pod)
	return p
}

// choice is a note, and whether it is about the pod.
type choice struct {
	applies bool
	note    podNote
}

// chosen returns the notes that apply.
func chosen(choices ...choice) []podNote {
	return mapped(filtered(choices, func(c choice) bool { return c.applies }), func(c choice) podNote { return c.note })
}

func (s *podSnapshot) notesOf(pod *corev1.Pod) []podNote {
	podType := maintenance.PodTypeOf(pod)
	isOfDaemonSet, isDefault := podType == corev1.PodTypeDaemonSet, podType != corev1.PodTypeDaemonSet && podType != corev1.PodTypeStatic
	hasOwnController, namesNode := evictionrequest.HasDaemonSetController(pod), s.nameNodeOf(pod)
	return chosen(
		choice{pod.DeletionTimestamp != nil, noteTerminating},
		choice{s.isGrouped(pod), noteSchedulingGroup},
		choice{isOfDaemonSet && hasOwnController, noteNeedsDaemonSet},
		choice{isOfDaemonSet && !hasOwnController, noteForeignDaemonSet},
		choice{podType == corev1.PodTypeStatic, noteNeedsKubelet},
		choice{isDefault && metav1.GetControllerOf(pod) == nil, noteUnmanaged},
		choice{isDefault && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }), noteLocalStorage},
		choice{isDefault && namesNode, noteNamesNode},
		choice{isDefault && !namesNode && maintenance.ComesBack(pod), noteComesBack},
		choice{isDefault && isCrowded(pod), noteCrowded},
	)
}

// sumUp sets the sums, after all pods are added.
func (p *plan) sumUp(s *podSnapshot) {
	pods := slices.Concat(mapped(p.Nodes, func(node *nodePlan) []*podPlan { return node.Pods })...)
	budgeted := map[string]int{}
	for _, pod := range pods {
		if pod.Step > 0 {
			p.Steps[pod.Step-1].Pods++
		}
		if pod.Type == corev1.PodTypeDefault {
			for _, name := range pod.Budgets {
				budgeted[name]++
			}
		}
	}
	for _, budget := range s.budgets {
		if name := budget.Namespace + "/" + budget.Name; budgeted[name] > 0 {
			p.Budgets = append(p.Budgets, budgetPlan{Name: name, DisruptionsAllowed: budget.Status.DisruptionsAllowed, Pods: budgeted[name]})
		}
	}
	slices.SortFunc(p.Budgets, func(a, b budgetPlan) int { return cmp.Compare(a.Name, b.Name) })
	p.Summary = summaryOf(pods)
	p.Summary.Nodes = len(p.Nodes)
}

func summaryOf(pods []*podPlan) planSummary {
	count := func(is func(pod *podPlan) bool) int { return len(filtered(pods, is)) }
	noted := func(notes ...podNote) (total int) {
		for _, pod := range pods {
			total += len(filtered(pod.Remarks, func(note podNote) bool { return slices.Contains(notes, note) }))
		}
		return total
	}
	s := planSummary{
		Pods:           len(pods),
		Blocked:        count(func(pod *podPlan) bool { return pod.Blocked != "" }),
		Intercepted:    count(func(pod *podPlan) bool { return len(pod.namedInterceptors()) > 0 }),
		IdleResponders: count(func(pod *podPlan) bool { return len(pod.IdleResponders) > 0 }),
		Replaced:       noted(noteReplacedFirst, noteMayBeReplaced),
		Unmanaged:      noted(noteUnmanaged),
		LocalStorage:   noted(noteLocalStorage),
		StayingAgents:  count((*podPlan).staysWithSkipped),
		ComingBack:     noted(noteComesBack, noteNamesNode),
		Unhandled:      noted(noteNeedsDaemonSet, noteForeignDaemonSet, noteNeedsKubelet, noteSchedulingGroup),
		KeptByOthers:   count((*podPlan).isKeptByOthers),
		Skipped: count(func(pod *podPlan) bool {
			return pod.Action == actionSkip && !pod.staysWithSkipped() && !pod.isKeptByOthers()
		}),
	}
	for _, pod := range filtered(pods, (*podPlan).isWaitedFor) {
		s.WaitedFor++
		switch {
		case pod.EndsBy == nil:
			s.WaitedForEndless++
		case s.WaitedForUntil == nil || s.WaitedForUntil.Before(pod.EndsBy):
			s.WaitedForUntil = pod.EndsBy
		}
	}
	return s
}

// ownInterceptors are those of Kubernetes itself, which the remarks explain.
var ownInterceptors = []string{
	coordinationv1alpha1.EvictionInterceptorDaemonSet,
	coordinationv1alpha1.EvictionInterceptorDeployment,
	coordinationv1alpha1.EvictionInterceptorImperative,
	coordinationv1alpha1.EvictionInterceptorKubelet,
	coordinationv1alpha1.EvictionInterceptorReplicaSet,
	coordinationv1alpha1.EvictionInterceptorStatefulSet,
}

// namedInterceptors are the interceptors that are not part of Kubernetes, and act in any case.
func (p *podPlan) namedInterceptors() []string {
	return filtered(p.Interceptors, func(name string) bool { return !slices.Contains(ownInterceptors, name) })
}

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
			policies := &s.policies[i]
			// Those of a shutdown never decide: its kubelet writes them.
			if policies.name != maintenance.ShutdownName(node.Name) && (policies.nodes == nil || policies.nodes.Matches(node)) {
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
