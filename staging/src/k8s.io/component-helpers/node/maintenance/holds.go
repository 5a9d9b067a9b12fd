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

// HoldCause is what delays the eviction of a pod that was requested. The values are those of
// coordinationv1alpha1.DrainBlockerCause, of metric labels, and of what kubectl prints for scripts.
type HoldCause string

const (
	// HoldComesBack means that the pod replaces one that has left the node since it was cordoned. Its
	// eviction is not requested yet. The name of the hold says why it comes back.
	HoldComesBack HoldCause = "ComesBack"

	// HoldCordonFailed means that the API server refuses to make the node unschedulable. It
	// concerns the node: no eviction of its pods is requested before that.
	HoldCordonFailed HoldCause = "CordonFailed"

	// HoldDisruptionBudget means that PodDisruptionBudgets do not allow the eviction. The name
	// of the hold is that of the budgets.
	HoldDisruptionBudget HoldCause = "DisruptionBudget"

	// HoldEvictionRefused means that the API server refuses the eviction for another
	// reason, such as an admission webhook.
	HoldEvictionRefused HoldCause = "EvictionRefused"

	// HoldKeptByMaintenance means that other maintenances of the node skip the pod. The name of the hold
	// has their names.
	HoldKeptByMaintenance HoldCause = "KeptByMaintenance"

	// HoldNodeStatusFailed means that the status of the node cannot be written, so that its drain
	// targets are not published. It concerns the node, like HoldCordonFailed.
	HoldNodeStatusFailed HoldCause = "NodeStatusFailed"

	// HoldRequestFailed means that the API server refuses the EvictionRequest. The name of the
	// hold is that of the namespace, which often has the reason, such as a quota. No object
	// records the refusal: only the controller that requests the eviction knows it.
	HoldRequestFailed HoldCause = "RequestFailed"

	// HoldRequestRefused means that the EvictionRequest was canceled because it cannot evict the
	// pod, which belongs to a scheduling group, for example.
	HoldRequestRefused HoldCause = "RequestRefused"

	// HoldInterceptor means that an interceptor is active, which the hold names. It reports, or
	// was activated a moment ago.
	HoldInterceptor HoldCause = "Interceptor"

	// HoldInterceptorUnresponsive means that a heartbeat of the active interceptor is overdue.
	HoldInterceptorUnresponsive HoldCause = "InterceptorUnresponsive"

	// HoldTerminating means that the pod was deleted and is within its grace period.
	HoldTerminating HoldCause = "Terminating"

	// HoldStuckTerminating means that the pod still exists after its grace period.
	HoldStuckTerminating HoldCause = "StuckTerminating"

	// HoldUnhandled means that all interceptors have acted and the pod is still running: a
	// DaemonSet pod or a static pod, which are not evicted. The hold names the pod type.
	HoldUnhandled HoldCause = "Unhandled"

	// HoldCompletion means that a pod policy waits until the pod has ended.
	HoldCompletion HoldCause = "Completion"

	// HoldVolumesAttached means that no pod is left on the node, but VolumeAttachments are. It concerns
	// the node.
	HoldVolumesAttached HoldCause = "VolumesAttached"

	// HoldEvicting means that the eviction is on its way, or the request was not taken
	// up yet.
	HoldEvicting HoldCause = "Evicting"
)

// terminationPatience is how long a pod may exist after its grace period before it counts as
// stuck: the kubelet needs time to kill it and to report that.
const terminationPatience = 30 * time.Second

// budgetRecheck is how long it is said of a budget that waiting for it does not help, before it is looked at again:
// its changes cause no event.
const budgetRecheck = time.Minute

const (
	// maxHoldNames is how many pods of a group, and how many budgets of a pod, a message
	// names.
	maxHoldNames = 3

	// maxFirst is how many pods of a group are kept.
	maxFirst = 5

	// nameSeparator stands between the budgets of a pod. No name contains it.
	nameSeparator = ", "
)

// HoldCauses returns all causes: those that need an intervention first, then by name.
func HoldCauses() []HoldCause {
	return []HoldCause{
		HoldComesBack, HoldCordonFailed, HoldDisruptionBudget, HoldEvictionRefused, HoldInterceptorUnresponsive, HoldKeptByMaintenance,
		HoldNodeStatusFailed, HoldRequestFailed, HoldRequestRefused, HoldStuckTerminating, HoldUnhandled,
		HoldCompletion, HoldEvicting, HoldInterceptor, HoldTerminating, HoldVolumesAttached,
	}
}

// Blocked reports whether the cause needs an intervention.
func (c HoldCause) Blocked() bool {
	switch c {
	case HoldComesBack, HoldCordonFailed, HoldDisruptionBudget, HoldEvictionRefused, HoldInterceptorUnresponsive, HoldKeptByMaintenance,
		HoldNodeStatusFailed, HoldRequestFailed, HoldRequestRefused, HoldStuckTerminating, HoldUnhandled:
		return true
	}
	return false
}

// OfNode reports whether the cause concerns a node instead of pods.
func (c HoldCause) OfNode() bool {
	return c == HoldCordonFailed || c == HoldNodeStatusFailed || c == HoldVolumesAttached
}

// Hold is what delays the eviction of one pod, or the maintenance of one node.
type Hold struct {
	Cause HoldCause
	// Name distinguishes holds of the same cause, such as the name of the interceptor.
	Name string
	// Pod is empty if the hold concerns a node: see HoldCause.OfNode.
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
	// RecheckAt is when the hold changes without an event; zero if it does not.
	RecheckAt time.Time
}

// HoldOf returns what delays the eviction of a pod. The request is the EvictionRequest of the pod,
// or nil. It returns false for a pod that has no unfinished request and is not terminating, and
// for a pod that has ended. budgets returns the budgets that select the pod; it is only called for
// a pod that a budget blocks, and may be nil.
func HoldOf(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) (Hold, bool) {
	hold := Hold{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName}
	switch {
	case !IsLeft(pod):
		return Hold{}, false
	case pod.DeletionTimestamp != nil:
		// Whatever blocked the pod before, only the kubelet has to act now.
		hold.terminating(pod, now)
		return hold, true
	case request == nil:
		return Hold{}, false
	}
	switch evictionrequest.StateOf(request) {
	case evictionrequest.StateEvicted:
		return Hold{}, false
	case evictionrequest.StateCanceled:
		canceled := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
		if canceled.Reason != coordinationv1alpha1.EvictionRequestReasonValidationFailed {
			return Hold{}, false // The eviction may be requested again.
		}
		hold.Cause, hold.Since = HoldRequestRefused, canceled.LastTransitionTime.DeepCopy()
	case evictionrequest.StateBlocked:
		hold.blocked(pod, request, budgets, now)
	case evictionrequest.StateIntercepting:
		hold.intercepting(request)
	case evictionrequest.StatePending:
		hold.pending(pod, request)
	default:
		hold.Cause, hold.Since = HoldEvicting, request.Status.ActivationTime.DeepCopy()
	}
	return hold, true
}

func (h *Hold) terminating(pod *v1.Pod, now time.Time) {
	// deletionTimestamp is when the grace period ends, not when it began.
	deleted := pod.DeletionTimestamp.Time
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		deleted = deleted.Add(-time.Duration(*seconds) * time.Second)
	}
	h.Since = &metav1.Time{Time: deleted}
	stuckAt := pod.DeletionTimestamp.Add(terminationPatience)
	if !now.Before(stuckAt) {
		h.Cause, h.OverdueSince = HoldStuckTerminating, &metav1.Time{Time: stuckAt}
		if len(pod.Finalizers) > 0 {
			h.Message = Printable("finalizers: "+listNames(slices.Sorted(slices.Values(pod.Finalizers)), len(pod.Finalizers)), maxForeignText)
		}
		return
	}
	h.Cause, h.ETA, h.RecheckAt = HoldTerminating, pod.DeletionTimestamp.DeepCopy(), stuckAt
}

func (h *Hold) blocked(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget, now time.Time) {
	condition := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
	h.Since = condition.LastTransitionTime.DeepCopy()
	if condition.Reason != coordinationv1alpha1.EvictionRequestReasonDisruptionBudget {
		h.Cause, h.Message = HoldEvictionRefused, Printable(condition.Message, maxForeignText)
		return
	}
	h.Cause = HoldDisruptionBudget
	if budgets == nil {
		return
	}
	selecting := budgets(pod)
	h.Name = budgetNames(selecting)
	if len(selecting) != 1 {
		return
	}
	if why := poddisruptionbudget.WhyNever(selecting[0]); why != "" {
		h.Message, h.RecheckAt = Printable("it "+why, maxForeignText), now.Add(budgetRecheck)
	}
}

// ExplainByNode adds to the hold of a pod that its node is not Ready, where only the kubelet could act, and the way
// out. It comes first: a longer message is truncated.
func (h *Hold) ExplainByNode(pod *v1.Pod, node *v1.Node) {
	waitsForKubelet := h.Cause == HoldInterceptor || h.Cause == HoldInterceptorUnresponsive
	switch {
	case h.Cause == HoldStuckTerminating:
		// Otherwise, the kubelet has done its part, or nobody waits for it.
		waitsForKubelet = len(pod.Finalizers) == 0 || ptr.Deref(pod.DeletionGracePeriodSeconds, 1) != 0
	case h.Name != coordinationv1alpha1.EvictionInterceptorKubelet:
		waitsForKubelet = false
	}
	if !waitsForKubelet || IsReady(node) {
		return
	}
	why := fmt.Sprintf("node %s is not Ready", node.Name)
	switch {
	case h.Cause != HoldStuckTerminating:
	case IsOutOfService(node):
		why += " and out of service: the garbage collector of pods removes it"
	default:
		why += fmt.Sprintf(": if the machine is off, give the node the taint %s, or delete it", v1.TaintNodeOutOfService)
	}
	if h.Message != "" {
		why += messageSeparator + h.Message
	}
	h.Message = Printable(why, maxForeignText)
}

// budgetNames names the budgets that select a pod. A single one is the one that does not allow
// the eviction. Several block it together: the API server does not evict such a pod.
func budgetNames(budgets []*policyv1.PodDisruptionBudget) string {
	// Only the first names are kept: each pod of a namespace may be selected by all of its budgets.
	var first []*policyv1.PodDisruptionBudget
	for _, budget := range budgets {
		at, _ := slices.BinarySearchFunc(first, budget, func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
		if at < maxHoldNames {
			first = slices.Insert(first, at, budget)
			first = first[:min(maxHoldNames, len(first))]
		}
	}
	var names []string
	for _, budget := range first {
		names = append(names, budget.Namespace+"/"+budget.Name)
	}
	return listNames(names, len(budgets))
}

func (h *Hold) intercepting(request *coordinationv1alpha1.EvictionRequest) {
	h.Cause, h.Name = HoldInterceptor, request.Status.ActiveInterceptors[0]
	h.Since = request.Status.ActivationTime.DeepCopy()
	unresponsive := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive))
	if unresponsive != nil && unresponsive.Status == metav1.ConditionTrue {
		h.Cause, h.OverdueSince = HoldInterceptorUnresponsive, unresponsive.LastTransitionTime.DeepCopy()
	}
	if report := evictionrequest.ActiveInterceptor(request); report != nil {
		h.Heartbeat, h.ETA = report.HeartbeatTime.DeepCopy(), report.ExpectedFinishTime.DeepCopy()
		h.Message = Printable(report.Message, maxForeignText)
	}
	switch h.Name {
	case coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorStatefulSet:
		h.ETA = nil // It is when they give up, not when the pod is gone.
	}
}

// pending is for requests without an active interceptor: before the first or after the last.
func (h *Hold) pending(pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest) {
	if len(request.Status.TargetInterceptors) == 0 {
		h.Cause, h.Since = HoldEvicting, request.CreationTimestamp.DeepCopy()
		return
	}
	h.Cause, h.Name = HoldUnhandled, string(PodTypeOf(pod))
	for _, report := range request.Status.Interceptors {
		h.Since = latest(h.Since, report.CompletionTime.DeepCopy())
	}
}

// FailedRequest returns the hold of a pod whose eviction cannot be requested, and why.
func FailedRequest(pod *v1.Pod, message string, since time.Time) Hold {
	return Hold{
		Cause: HoldRequestFailed, Name: pod.Namespace,
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
		Message: Printable(message, maxForeignText), Since: &metav1.Time{Time: since},
	}
}

// ReturnedPod returns the hold of a pod that has come back, why, since when pods come back, and when its
// eviction is requested.
func ReturnedPod(pod *v1.Pod, why string, since, next time.Time) Hold {
	return Hold{
		Cause: HoldComesBack, Name: why, Since: &metav1.Time{Time: since}, RecheckAt: next,
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
	}
}

// KeptPod returns the hold of a pod that other maintenances of its node skip, since when the drain waits for it.
func KeptPod(pod *v1.Pod, maintenances []string, since *metav1.Time) Hold {
	return Hold{
		Since: since.DeepCopy(),
		Cause: HoldKeptByMaintenance, Name: listNames(slices.Sorted(slices.Values(maintenances)), len(maintenances)),
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
	}
}

// FailedCordon returns the hold of a node that cannot be made unschedulable, and why.
func FailedCordon(node, message string, since time.Time) Hold {
	return Hold{Cause: HoldCordonFailed, Node: node, Message: Printable(message, maxForeignText), Since: &metav1.Time{Time: since}}
}

// FailedNodeStatus returns the hold of a node whose status cannot be written, and why.
func FailedNodeStatus(node, message string, since time.Time) Hold {
	return Hold{Cause: HoldNodeStatusFailed, Node: node, Message: Printable(message, maxForeignText), Since: &metav1.Time{Time: since}}
}

// AttachedVolumes returns the hold of a node without pods whose volumes are still attached, and until
// when it is waited for. Volumes are the names of PersistentVolumes, or of VolumeAttachments without
// one, sorted.
func AttachedVolumes(node string, volumes []string, since metav1.Time, until time.Time) Hold {
	return Hold{
		Cause: HoldVolumesAttached, Node: node, Since: since.DeepCopy(), ETA: &metav1.Time{Time: until}, RecheckAt: until,
		Message: Printable(fmt.Sprintf("%s: %s", node, listNames(volumes, len(volumes))), maxForeignText),
	}
}

// HoldGroup sums up the holds with the same cause and name.
type HoldGroup struct {
	Cause HoldCause
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

// GroupHolds groups holds: those that need an intervention first, then by cause and name. The
// result does not depend on the order of the holds.
func GroupHolds(holds []Hold) []HoldGroup {
	type place struct {
		cause      HoldCause
		name, node string
	}
	counted := map[place]bool{}
	groups := make([]HoldGroup, 0, len(holds))
	for i := range holds {
		hold := &holds[i]
		group := HoldGroup{
			Cause: hold.Cause, Name: hold.Name, First: []types.NamespacedName{hold.first()},
			Heartbeat: representable(hold.Heartbeat), ETA: representable(hold.ETA),
			Since: representable(hold.Since), OverdueSince: representable(hold.OverdueSince), Escalation: hold.Escalation,
		}
		if hold.Pod.Name != "" {
			group.Pods = 1
		}
		if hold.Message != "" {
			group.Message, group.MessageOf = hold.Message, hold.first()
		}
		// Each node counts once in a group.
		if at := (place{hold.Cause, hold.Name, hold.Node}); !counted[at] {
			counted[at], group.Nodes = true, 1
		}
		groups = append(groups, group)
	}
	return MergeGroups(groups)
}

// first returns the name of the pod or node that the hold concerns.
func (h *Hold) first() types.NamespacedName {
	if h.Pod.Name == "" {
		return types.NamespacedName{Name: h.Node}
	}
	return h.Pod
}

// MergeGroups returns the groups of all holds together, so that the caller can store the groups of
// each node. A node must not be in two of the arguments.
func MergeGroups(groups ...[]HoldGroup) []HoldGroup {
	type key struct {
		cause HoldCause
		name  string
	}
	merged := map[key]*HoldGroup{}
	for i := range groups {
		for j := range groups[i] {
			group := &groups[i][j]
			k := key{group.Cause, group.Name}
			if merged[k] == nil {
				merged[k] = &HoldGroup{Cause: group.Cause, Name: group.Name}
			}
			merged[k].add(group)
		}
	}
	var sorted []HoldGroup
	for _, group := range merged {
		sorted = append(sorted, *group)
	}
	slices.SortFunc(sorted, func(a, b HoldGroup) int {
		return cmp.Or(compareCauses(a.Cause, b.Cause), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

func (g *HoldGroup) add(other *HoldGroup) {
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
func (g *HoldGroup) addMessages(other *HoldGroup) {
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
	g.Omits = g.Omits || other.Omits || len(all) > maxHoldNames
	if len(all) > 1 {
		g.More = all[1:min(maxHoldNames, len(all))]
	}
}

// addFirst keeps the first names in order. Most names are not among the first.
func (g *HoldGroup) addFirst(pod types.NamespacedName) {
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

func compareCauses(a, b HoldCause) int {
	if a.Blocked() != b.Blocked() {
		if a.Blocked() {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
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
	names = names[:min(maxHoldNames, len(names))]
	list := strings.Join(names, nameSeparator)
	if more := total - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}
