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
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BlockerCause is what delays the eviction of a pod that was requested. The values are those of
// coordinationv1alpha1.DrainBlockerCause, of metric labels, and of what kubectl prints for scripts.
type BlockerCause string

const (
	// BlockerComesBack means that the pod replaces one that has left the node since it was cordoned. Its
	// eviction is not requested yet. The name of the blocker says why it comes back.
	BlockerComesBack BlockerCause = "ComesBack"

	// BlockerCordonFailed means that the API server refuses to make the node unschedulable. It
	// concerns the node: no eviction of its pods is requested before that.
	BlockerCordonFailed BlockerCause = "CordonFailed"

	// BlockerDisruptionBudget means that PodDisruptionBudgets do not allow the eviction. The name
	// of the blocker is that of the budgets.
	BlockerDisruptionBudget BlockerCause = "DisruptionBudget"

	// BlockerEvictionRefused means that the API server refuses the eviction for another
	// reason, such as an admission webhook.
	BlockerEvictionRefused BlockerCause = "EvictionRefused"

	// BlockerKeptByMaintenance means that other maintenances of the node skip the pod. The name of the blocker
	// has their names.
	BlockerKeptByMaintenance BlockerCause = "KeptByMaintenance"

	// BlockerNodeStatusFailed means that the status of the node cannot be written, so that its drain
	// targets are not published. It concerns the node, like BlockerCordonFailed.
	BlockerNodeStatusFailed BlockerCause = "NodeStatusFailed"

	// BlockerRequestFailed means that the EvictionRequest or its status cannot be written: the API
	// server refuses that, others keep withdrawing it, or finalizers keep one that was deleted. The
	// name of the blocker is that of the namespace, which often has the reason, such as a quota. No
	// object records a refusal: only the controller that made the request knows it.
	BlockerRequestFailed BlockerCause = "RequestFailed"

	// BlockerRequestRefused means that the EvictionRequest was canceled because it cannot evict the
	// pod, which belongs to a scheduling group, for example.
	BlockerRequestRefused BlockerCause = "RequestRefused"

	// BlockerInterceptor means that an interceptor is active, which the blocker names. It reports, or
	// was activated a moment ago.
	BlockerInterceptor BlockerCause = "Interceptor"

	// BlockerInterceptorUnresponsive means that a heartbeat of the active interceptor is overdue.
	BlockerInterceptorUnresponsive BlockerCause = "InterceptorUnresponsive"

	// BlockerTerminating means that the pod was deleted and is within its grace period.
	BlockerTerminating BlockerCause = "Terminating"

	// BlockerStuckTerminating means that the pod still exists after its grace period.
	BlockerStuckTerminating BlockerCause = "StuckTerminating"

	// BlockerUnhandled means that all interceptors have acted and the pod is still running: a
	// DaemonSet pod or a static pod, which are not evicted. The blocker names the pod type.
	BlockerUnhandled BlockerCause = "Unhandled"

	// BlockerCompletion means that a pod policy waits until the pod has ended.
	BlockerCompletion BlockerCause = "Completion"

	// BlockerVolumesAttached means that no pod is left on the node, but VolumeAttachments are. It concerns
	// the node.
	BlockerVolumesAttached BlockerCause = "VolumesAttached"

	// BlockerEvicting means that the eviction is on its way, or the request was not taken
	// up yet.
	BlockerEvicting BlockerCause = "Evicting"
)

// cause is what is known of a BlockerCause. A new one is a row of the table, and a constant of the API.
type cause struct {
	// blocked is whether it needs an intervention.
	blocked bool
	// ofNode is whether it concerns a node instead of pods.
	ofNode bool
	// predicate says what delays how many pods or nodes.
	predicate func(*BlockerGroup) string
	// since and eta are what the times of a group are in a sentence; empty if it does not name them.
	since, eta string
	// object is what an administrator has to inspect; nil if it is not a single object.
	object func(*BlockerGroup) *coordinationv1alpha1.DrainBlockerObject
}

// causes has all causes.
var causes = map[BlockerCause]cause{
	BlockerComesBack: {blocked: true, since: "since", predicate: func(g *BlockerGroup) string {
		return counted(g.Pods, "pod comes back", "pods come back") + ": " + g.Name
	}},
	BlockerCordonFailed:     {blocked: true, ofNode: true, since: "since", object: firstNode, predicate: nodes("node cannot be cordoned", "nodes cannot be cordoned")},
	BlockerDisruptionBudget: {blocked: true, object: namedBudget, predicate: budgetPredicate},
	BlockerEvictionRefused:  {blocked: true, predicate: podsWait("because the API server refuses to evict")},
	BlockerInterceptorUnresponsive: {blocked: true, eta: "expected to finish", predicate: func(g *BlockerGroup) string {
		if g.Heartbeat == nil {
			return podsWait("for interceptor " + g.Name + ", which has never reported")(g)
		}
		return podsWait("for interceptor " + g.Name + ", which does not report")(g)
	}},
	BlockerKeptByMaintenance: {blocked: true, object: namedMaintenance, predicate: func(g *BlockerGroup) string {
		return counted(g.Pods, "pod is", "pods are") + " kept by the pod policies of NodeMaintenance " + g.Name
	}},
	BlockerNodeStatusFailed: {blocked: true, ofNode: true, since: "since", object: firstNode, predicate: nodes("node has a status that cannot be written", "nodes have a status that cannot be written")},
	BlockerRequestFailed: {blocked: true, since: "since", object: namedNamespace, predicate: func(g *BlockerGroup) string {
		return counted(g.Pods, "pod", "pods") + " in namespace " + g.Name + " cannot get an EvictionRequest"
	}},
	BlockerRequestRefused: {blocked: true, predicate: func(g *BlockerGroup) string {
		return counted(g.Pods, "pod", "pods") + " cannot be evicted by an EvictionRequest"
	}},
	BlockerStuckTerminating: {blocked: true, since: "since", eta: "grace period ends", predicate: podsAre("still terminating after the grace period")},
	BlockerUnhandled:        {blocked: true, predicate: podsAre("still running after all interceptors have acted")},

	BlockerCompletion: {eta: "expected to end", predicate: podsWait("until they have completed, as a pod policy says")},
	BlockerEvicting:   {predicate: podsAre("being evicted")},
	BlockerInterceptor: {eta: "expected to finish", predicate: func(g *BlockerGroup) string {
		return podsWait("for interceptor " + g.Name)(g)
	}},
	BlockerTerminating:     {since: "since", eta: "grace period ends", predicate: podsAre("terminating")},
	BlockerVolumesAttached: {ofNode: true, since: "since", eta: "given up", object: firstNode, predicate: nodes("node still has volumes attached", "nodes still have volumes attached")},
}

// BlockerCauses returns all causes: those that need an intervention first, then by name.
func BlockerCauses() []BlockerCause {
	return slices.SortedFunc(maps.Keys(causes), compareCauses)
}

func compareCauses(a, b BlockerCause) int {
	if a.Blocked() != b.Blocked() {
		if a.Blocked() {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

// Blocked reports whether the cause needs an intervention.
func (c BlockerCause) Blocked() bool { return causes[c].blocked }

// OfNode reports whether the cause concerns a node instead of pods.
func (c BlockerCause) OfNode() bool { return causes[c].ofNode }

// predicate says what delays how many pods.
func (g *BlockerGroup) predicate() string {
	known, found := causes[g.Cause]
	if !found {
		known = causes[BlockerEvicting]
	}
	return known.predicate(g)
}

// times are those that a blocker has fields for, and the last heartbeat of an interceptor that
// reports: it would change the message of the blocker again and again, and mean nothing new.
func (g *BlockerGroup) times() []string {
	var times []string
	add := func(what string, at *metav1.Time) {
		if what != "" && at != nil {
			times = append(times, what+" "+at.UTC().Format(time.RFC3339))
		}
	}
	known := causes[g.Cause]
	since := known.since
	switch {
	case g.Cause != BlockerInterceptor && g.Cause != BlockerInterceptorUnresponsive:
	case g.Heartbeat == nil:
		since = "active since"
	case g.Cause == BlockerInterceptor:
		// To the minute: with many pods, some interceptor reports every second.
		times = append(times, "last heartbeat "+g.Heartbeat.UTC().Format("2006-01-02T15:04Z07:00"))
	}
	add(since, g.Since)
	add(known.eta, g.ETA)
	return times
}

// object returns the object that an administrator has to inspect; nil if it is not a single one.
func (g *BlockerGroup) object() *coordinationv1alpha1.DrainBlockerObject {
	if object := causes[g.Cause].object; object != nil {
		return object(g)
	}
	return nil
}

func podsWait(what string) func(*BlockerGroup) string {
	return func(g *BlockerGroup) string { return counted(g.Pods, "pod waits", "pods wait") + " " + what }
}

// podsAre names the type of the pods that interceptors do not evict, which is the name of the group.
func podsAre(what string) func(*BlockerGroup) string {
	return func(g *BlockerGroup) string {
		kind := ""
		switch {
		case g.Cause != BlockerUnhandled:
		case g.Name == string(v1.PodTypeDaemonSet):
			kind = "DaemonSet "
		case g.Name == string(v1.PodTypeStatic):
			kind = "static "
		}
		return counted(g.Pods, kind+"pod is", kind+"pods are") + " " + what
	}
}

func nodes(one, many string) func(*BlockerGroup) string {
	return func(g *BlockerGroup) string { return counted(g.Nodes, one, many) }
}

func budgetPredicate(g *BlockerGroup) string {
	switch {
	case g.Name == "":
		return podsWait("for a PodDisruptionBudget")(g)
	case strings.Contains(g.Name, nameSeparator):
		// It would not help if one of them allowed the eviction.
		return podsWait("because several PodDisruptionBudgets apply (" + g.Name + ")")(g)
	default:
		return podsWait("for PodDisruptionBudget " + g.Name)(g)
	}
}

func namedBudget(g *BlockerGroup) *coordinationv1alpha1.DrainBlockerObject {
	// The names of several budgets are joined by separators.
	namespace, name, found := strings.Cut(g.Name, "/")
	if !found || strings.Contains(g.Name, nameSeparator) {
		return nil
	}
	return &coordinationv1alpha1.DrainBlockerObject{APIGroup: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: namespace, Name: name}
}

func namedMaintenance(g *BlockerGroup) *coordinationv1alpha1.DrainBlockerObject {
	if strings.Contains(g.Name, nameSeparator) {
		return nil
	}
	return &coordinationv1alpha1.DrainBlockerObject{APIGroup: coordinationv1alpha1.GroupName, Kind: "NodeMaintenance", Name: g.Name}
}

func namedNamespace(g *BlockerGroup) *coordinationv1alpha1.DrainBlockerObject {
	return &coordinationv1alpha1.DrainBlockerObject{Kind: "Namespace", Name: g.Name}
}

func firstNode(g *BlockerGroup) *coordinationv1alpha1.DrainBlockerObject {
	return &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: g.First[0].Name}
}
