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
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/utils/ptr"
)

// terminationPatience is how long a pod may exist after its grace period before it counts as
// stuck: the kubelet needs time to kill it and to report that.
const terminationPatience = 30 * time.Second

// budgetRecheck is how long it is said of a budget that waiting for it does not help, before it is looked at again:
// its changes cause no event.
const budgetRecheck = time.Minute

const (
	// maxBlockerNames is how many pods of a group, and how many budgets of a pod, a message
	// names.
	maxBlockerNames = 3

	// maxFirst is how many pods of a group are kept.
	maxFirst = 5

	// nameSeparator stands between the budgets of a pod. No name contains it.
	nameSeparator = ", "
)

// Blocker is what delays the eviction of one pod, or the maintenance of one node.
type Blocker struct {
	Cause BlockerCause
	// Name distinguishes blockers of the same cause, such as the name of the interceptor.
	Name string
	// Pod is empty if the blocker concerns a node: see BlockerCause.OfNode.
	Pod  types.NamespacedName
	Node string
	// Message is the answer of the API server, the message of the active interceptor, or why waiting does not
	// help, in one bounded line.
	Message string
	// Heartbeat is the time of the last report of the interceptor.
	Heartbeat *metav1.Time
	// ETA is when the interceptor expects to finish, or when the grace period of a terminating
	// pod ends.
	ETA *metav1.Time
	// Since is when the interceptor was activated, the eviction was first refused, or the pod was
	// deleted.
	Since *metav1.Time
	// OverdueSince is when an intervention became necessary, if that was after Since: when the
	// interceptor did not report in time, or the pod was not gone in time.
	OverdueSince *metav1.Time
	// Escalation says which spec.escalation has come to the pod and is held up; usually empty.
	Escalation string
	// RecheckAt is when the blocker changes without an event; zero if it does not.
	RecheckAt time.Time
}

// BlockerOf returns what delays the eviction of a pod. The request is the EvictionRequest of the pod,
// or nil. It returns false for a pod that has no unfinished request and is not terminating, and
// for a pod that has ended. budgets returns the budgets that select the pod; it is only called for
// a pod that a budget blocks, and may be nil.
func BlockerOf(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) (Blocker, bool) {
	blocker := Blocker{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName}
	switch {
	case !IsLeft(pod):
		return Blocker{}, false
	case pod.DeletionTimestamp != nil:
		// Whatever blocked the pod before, only the kubelet has to act now.
		blocker.terminating(pod, now)
		return blocker, true
	case request == nil:
		return Blocker{}, false
	}
	switch evictionrequest.StateOf(request) {
	case evictionrequest.StateEvicted:
		return Blocker{}, false
	case evictionrequest.StateCanceled:
		canceled := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
		if canceled.Reason != coordinationv1alpha1.EvictionRequestReasonValidationFailed {
			return Blocker{}, false // The eviction may be requested again.
		}
		blocker.Cause, blocker.Since = BlockerRequestRefused, canceled.LastTransitionTime.DeepCopy()
	case evictionrequest.StateBlocked:
		blocker.blocked(pod, request, budgets, now)
	case evictionrequest.StateIntercepting:
		blocker.intercepting(request)
	case evictionrequest.StatePending:
		blocker.pending(pod, request)
	default:
		blocker.Cause, blocker.Since = BlockerEvicting, request.Status.ActivationTime.DeepCopy()
	}
	return blocker, true
}

func (b *Blocker) terminating(pod *v1.Pod, now time.Time) {
	// deletionTimestamp is when the grace period ends, not when it began.
	deleted := pod.DeletionTimestamp.Time
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		deleted = deleted.Add(-time.Duration(*seconds) * time.Second)
	}
	b.Since = &metav1.Time{Time: deleted}
	stuckAt := pod.DeletionTimestamp.Add(terminationPatience)
	if !now.Before(stuckAt) {
		b.Cause, b.OverdueSince = BlockerStuckTerminating, &metav1.Time{Time: stuckAt}
		if len(pod.Finalizers) > 0 {
			b.Message = Printable("finalizers: "+listNames(slices.Sorted(slices.Values(pod.Finalizers)), len(pod.Finalizers)), maxForeignText)
		}
		return
	}
	b.Cause, b.ETA, b.RecheckAt = BlockerTerminating, pod.DeletionTimestamp.DeepCopy(), stuckAt
}

func (b *Blocker) blocked(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) {
	condition := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
	b.Since = condition.LastTransitionTime.DeepCopy()
	if condition.Reason != coordinationv1alpha1.EvictionRequestReasonDisruptionBudget {
		b.Cause, b.Message = BlockerEvictionRefused, Printable(condition.Message, maxForeignText)
		return
	}
	b.Cause = BlockerDisruptionBudget
	if budgets == nil {
		return
	}
	selecting := budgets(pod)
	b.Name = budgetNames(selecting)
	if len(selecting) != 1 {
		return
	}
	if why := poddisruptionbudget.WhyNever(selecting[0]); why != "" {
		b.Message, b.RecheckAt = Printable("it "+why, maxForeignText), now.Add(budgetRecheck)
	}
}

// ExplainByNode adds to the blocker of a pod that its node is not Ready, where only the kubelet could act, and the way
// out. It comes first: a longer message is truncated.
func (b *Blocker) ExplainByNode(pod *v1.Pod, node *v1.Node) {
	waitsForKubelet := b.Cause == BlockerInterceptor || b.Cause == BlockerInterceptorUnresponsive
	switch {
	case b.Cause == BlockerStuckTerminating:
		// Otherwise, the kubelet has done its part, or nobody waits for it.
		waitsForKubelet = len(pod.Finalizers) == 0 || ptr.Deref(pod.DeletionGracePeriodSeconds, 1) != 0
	case b.Name != coordinationv1alpha1.EvictionInterceptorKubelet:
		waitsForKubelet = false
	}
	if !waitsForKubelet || IsReady(node) {
		return
	}
	why := fmt.Sprintf("node %s is not Ready", node.Name)
	switch {
	case b.Cause != BlockerStuckTerminating:
	case IsOutOfService(node):
		why += " and out of service: the garbage collector of pods removes it"
	default:
		why += fmt.Sprintf(": if the machine is off, give the node the taint %s, or delete it", v1.TaintNodeOutOfService)
	}
	if b.Message != "" {
		why += messageSeparator + b.Message
	}
	b.Message = Printable(why, maxForeignText)
}

// budgetNames names the budgets that select a pod. A single one is the one that does not allow
// the eviction. Several block it together: the API server does not evict such a pod.
func budgetNames(budgets []*policyv1.PodDisruptionBudget) string {
	// Only the first names are kept: each pod of a namespace may be selected by all of its budgets.
	var first []*policyv1.PodDisruptionBudget
	for _, budget := range budgets {
		at, _ := slices.BinarySearchFunc(first, budget, func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
		if at < maxBlockerNames {
			first = slices.Insert(first, at, budget)
			first = first[:min(maxBlockerNames, len(first))]
		}
	}
	var names []string
	for _, budget := range first {
		names = append(names, budget.Namespace+"/"+budget.Name)
	}
	return listNames(names, len(budgets))
}

func (b *Blocker) intercepting(request *coordinationv1alpha1.EvictionRequest) {
	b.Cause, b.Name = BlockerInterceptor, request.Status.ActiveInterceptors[0]
	b.Since = request.Status.ActivationTime.DeepCopy()
	unresponsive := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive))
	if unresponsive != nil && unresponsive.Status == metav1.ConditionTrue {
		b.Cause, b.OverdueSince = BlockerInterceptorUnresponsive, unresponsive.LastTransitionTime.DeepCopy()
	}
	if report := evictionrequest.ActiveInterceptor(request); report != nil {
		b.Heartbeat, b.ETA = report.HeartbeatTime.DeepCopy(), report.ExpectedFinishTime.DeepCopy()
		b.Message = Printable(report.Message, maxForeignText)
	}
	switch b.Name {
	case coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorStatefulSet:
		b.ETA = nil // It is when they give up, not when the pod is gone.
	}
}

// pending is for requests without an active interceptor: before the first or after the last.
func (b *Blocker) pending(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest) {
	if len(request.Status.TargetInterceptors) == 0 {
		b.Cause, b.Since = BlockerEvicting, request.CreationTimestamp.DeepCopy()
		return
	}
	b.Cause, b.Name = BlockerUnhandled, string(PodTypeOf(pod))
	for _, report := range request.Status.Interceptors {
		b.Since = latest(b.Since, report.CompletionTime.DeepCopy())
	}
}

// FailedRequest returns the blocker of a pod whose eviction cannot be requested, and why.
func FailedRequest(pod *v1.Pod, message string, since time.Time) Blocker {
	return Blocker{
		Cause: BlockerRequestFailed, Name: pod.Namespace,
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
		Message: Printable(message, maxForeignText), Since: &metav1.Time{Time: since},
	}
}

// ReturnedPod returns the blocker of a pod that has come back, why, since when pods come back, and when its
// eviction is requested.
func ReturnedPod(pod *v1.Pod, why string, since, next time.Time) Blocker {
	return Blocker{
		Cause: BlockerComesBack, Name: why, Since: &metav1.Time{Time: since}, RecheckAt: next,
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
	}
}

// KeptPod returns the blocker of a pod that other maintenances of its node skip, since when the drain waits for it.
func KeptPod(pod *v1.Pod, maintenances []string, since *metav1.Time) Blocker {
	return Blocker{
		Since: since.DeepCopy(),
		Cause: BlockerKeptByMaintenance, Name: listNames(slices.Sorted(slices.Values(maintenances)), len(maintenances)),
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
	}
}

// FailedCordon returns the blocker of a node that cannot be made unschedulable, and why.
func FailedCordon(node, message string, since time.Time) Blocker {
	return Blocker{Cause: BlockerCordonFailed, Node: node, Message: Printable(message, maxForeignText), Since: &metav1.Time{Time: since}}
}

// FailedNodeStatus returns the blocker of a node whose status cannot be written, and why.
func FailedNodeStatus(node, message string, since time.Time) Blocker {
	return Blocker{Cause: BlockerNodeStatusFailed, Node: node, Message: Printable(message, maxForeignText), Since: &metav1.Time{Time: since}}
}

// AttachedVolumes returns the blocker of a node without pods whose volumes are still attached, and until
// when it is waited for. Volumes are the names of PersistentVolumes, or of VolumeAttachments without
// one, sorted.
func AttachedVolumes(node string, volumes []string, since metav1.Time, until time.Time) Blocker {
	return Blocker{
		Cause: BlockerVolumesAttached, Node: node, Since: since.DeepCopy(), ETA: &metav1.Time{Time: until}, RecheckAt: until,
		Message: Printable(fmt.Sprintf("%s: %s", node, listNames(volumes, len(volumes))), maxForeignText),
	}
}

// BlockerGroup sums up the blockers with the same cause and name.
type BlockerGroup struct {
	Cause BlockerCause
	Name  string
	// Pods is the number of pods, Nodes that of their nodes, and First names the first five pods.
	// If the cause concerns nodes, Pods is 0, and First names nodes.
	Pods, Nodes int
	First       []types.NamespacedName
	// Message is that of the first pod or node that has one, which is MessageOf.
	Message   string
	MessageOf types.NamespacedName
	// More are up to two other messages, each with the first pod or node that has it, and Omits reports whether
	// there are still others. Mixed reports whether not all pods or nodes have the same message.
	More         []GroupMessage
	Omits, Mixed bool
	// Escalation is that of one of the pods.
	Escalation string
	// Heartbeat, Since and OverdueSince are the oldest, ETA is the latest among the pods.
	Heartbeat, ETA, Since, OverdueSince *metav1.Time
}

// GroupMessage is a message with the first pod or node that has it.
type GroupMessage struct {
	Text string
	Of   types.NamespacedName
}

// GroupBlockers groups blockers: those that need an intervention first, then by cause and name. The
// result does not depend on the order of the blockers.
func GroupBlockers(blockers []Blocker) []BlockerGroup {
	type place struct {
		cause      BlockerCause
		name, node string
	}
	counted := map[place]bool{}
	groups := make([]BlockerGroup, 0, len(blockers))
	for i := range blockers {
		blocker := &blockers[i]
		group := BlockerGroup{
			Cause: blocker.Cause, Name: blocker.Name, First: []types.NamespacedName{blocker.first()},
			Heartbeat: representable(blocker.Heartbeat), ETA: representable(blocker.ETA),
			Since: representable(blocker.Since), OverdueSince: representable(blocker.OverdueSince), Escalation: blocker.Escalation,
		}
		if blocker.Pod.Name != "" {
			group.Pods = 1
		}
		if blocker.Message != "" {
			group.Message, group.MessageOf = blocker.Message, blocker.first()
		}
		// Each node counts once in a group.
		if at := (place{blocker.Cause, blocker.Name, blocker.Node}); !counted[at] {
			counted[at], group.Nodes = true, 1
		}
		groups = append(groups, group)
	}
	return MergeGroups(groups)
}

// first returns the name of the pod or node that the blocker concerns.
func (b *Blocker) first() types.NamespacedName {
	if b.Pod.Name == "" {
		return types.NamespacedName{Name: b.Node}
	}
	return b.Pod
}

// MergeGroups returns the groups of all blockers together, so that the caller can store the groups of
// each node. A node must not be in two of the arguments.
func MergeGroups(groups ...[]BlockerGroup) []BlockerGroup {
	type key struct {
		cause BlockerCause
		name  string
	}
	merged := map[key]*BlockerGroup{}
	for i := range groups {
		for j := range groups[i] {
			group := &groups[i][j]
			k := key{group.Cause, group.Name}
			if merged[k] == nil {
				merged[k] = &BlockerGroup{Cause: group.Cause, Name: group.Name}
			}
			merged[k].add(group)
		}
	}
	var sorted []BlockerGroup
	for _, group := range merged {
		sorted = append(sorted, *group)
	}
	slices.SortFunc(sorted, func(a, b BlockerGroup) int {
		return cmp.Or(compareCauses(a.Cause, b.Cause), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

func (g *BlockerGroup) add(other *BlockerGroup) {
	g.Pods += other.Pods
	g.Nodes += other.Nodes
	g.Mixed = g.Mixed || other.Mixed || len(g.First) > 0 && g.Message != other.Message
	g.addMessages(other)
	if g.Escalation == "" || other.Escalation != "" && other.Escalation < g.Escalation {
		g.Escalation = other.Escalation
	}
	for _, pod := range other.First {
		g.addFirst(pod)
	}
	g.Heartbeat, g.Since = oldest(g.Heartbeat, other.Heartbeat), oldest(g.Since, other.Since)
	g.OverdueSince, g.ETA = oldest(g.OverdueSince, other.OverdueSince), latest(g.ETA, other.ETA)
}

// addMessages keeps the first messages that differ, by their first pods, so that the order of events does not
// change them.
func (g *BlockerGroup) addMessages(other *BlockerGroup) {
	switch {
	case other.Message == "":
		return
	case g.Message == "":
		g.Message, g.MessageOf, g.More, g.Omits = other.Message, other.MessageOf, other.More, other.Omits
		return
	case g.Message == other.Message && len(other.More) == 0: // Most have the same.
		if comparePods(other.MessageOf, g.MessageOf) < 0 {
			g.MessageOf = other.MessageOf
		}
		return
	}
	all := slices.Concat([]GroupMessage{{g.Message, g.MessageOf}, {other.Message, other.MessageOf}}, g.More, other.More)
	slices.SortFunc(all, func(a, b GroupMessage) int { return cmp.Or(cmp.Compare(a.Text, b.Text), comparePods(a.Of, b.Of)) })
	all = slices.CompactFunc(all, func(a, b GroupMessage) bool { return a.Text == b.Text })
	slices.SortFunc(all, func(a, b GroupMessage) int { return comparePods(a.Of, b.Of) })
	g.Message, g.MessageOf, g.More = all[0].Text, all[0].Of, nil
	g.Omits = g.Omits || other.Omits || len(all) > maxBlockerNames
	if len(all) > 1 {
		g.More = all[1:min(maxBlockerNames, len(all))]
	}
}

// addFirst keeps the first names in order. Most names are not among the first.
func (g *BlockerGroup) addFirst(pod types.NamespacedName) {
	if n := len(g.First); n == maxFirst && comparePods(g.First[n-1], pod) <= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(g.First, pod, comparePods)
	g.First = slices.Insert(g.First, at, pod)
	g.First = g.First[:min(maxFirst, len(g.First))]
}

func comparePods(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func oldest(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && b.Before(a) {
		return b
	}
	return a
}

func latest(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && a.Before(b) {
		return b
	}
	return a
}

// representable returns nil for a time that JSON cannot represent: one with a time zone may be in the
// year 10000 in UTC. Interceptors and kubelets report times. If one of them was stored in a status, no
// client could read the object, or patch it.
func representable(t *metav1.Time) *metav1.Time {
	if t == nil || t.UTC().Year() < 0 || t.UTC().Year() > 9999 {
		return nil
	}
	return t
}

// listNames joins the first names, and counts the others.
func listNames(names []string, total int) string {
	names = names[:min(maxBlockerNames, len(names))]
	list := strings.Join(names, nameSeparator)
	if more := total - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}
