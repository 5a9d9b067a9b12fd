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

package system

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/utils/history"
	"k8s.io/utils/ptr"
)

const (
	// The apps of a history: each is a Deployment of a few replicas, but one, which is a StatefulSet.
	historyApps     = 4
	historySet      = "app-3"
	slowApp         = "app-1"
	historyReplicas = 3
	// historyProgress is how long a Deployment waits for a replacement. The ReplicaSet controller waits for up to a
	// quarter of an hour before it tries again to create what was refused often.
	historyProgress = 30

	// lookInterval is how often kubelets, the scheduler and the interceptor look at what there is.
	lookInterval = 200 * time.Millisecond

	// The machine of brokenNode breaks in half of the histories, and a person has quarantined quarantinedNode in half of
	// them, until the end of the disturbances.
	brokenNode      = "node-5"
	quarantinedNode = "node-4"

	// opposition is for how long somebody undoes what controllers do, and opposeInterval how often that is looked for.
	opposition     = 5 * time.Second
	opposeInterval = 30 * time.Millisecond
)

// historyActors are those who use a cluster. Each has a random source of its own, and each call goes to any API server.
// What fails is tried again, or not: servers may be down, and others may have been faster.
type historyActors struct {
	test      *historyTest
	namespace string
	// breaks and quarantines are whether a machine breaks, and a node is quarantined, and strict is whether the budget of
	// nodes allows one, and stays so: rules allow all that it has allowed before. Then nobody cordons nodes, which count.
	breaks, quarantines, strict bool
	// flaps is whether the machine that breaks recovers, and breaks again.
	flaps bool
	// isBroken is whether the machine is broken now.
	isBroken atomic.Bool
}

func newHistoryActors(test *historyTest, namespace string) *historyActors {
	random := rand.New(rand.NewPCG(test.seed, 9))
	a := &historyActors{test: test, namespace: namespace, breaks: random.IntN(2) == 0, quarantines: random.IntN(2) == 0, strict: random.IntN(3) == 0}
	a.breaks, a.quarantines, a.flaps = a.breaks && !a.strict, a.quarantines && !a.strict, random.IntN(2) == 0
	return a
}

// actor acts at random moments.
type actor struct {
	*historyActors
	name   string
	random *rand.Rand
	// acts counts what the actor has done.
	acts int
}

// role is what an actor does again and again, with pauses of at most this long.
type role struct {
	name    string
	stream  uint64
	longest time.Duration
	act     func(*actor, context.Context)
}

// carriers carry out what is decided: they go on until all has come to its end.
var carriers = []role{
	{"kubelet", 10, lookInterval, (*actor).runPods},
	{"scheduler", 11, lookInterval, (*actor).bindPods},
	{"interceptor", 12, lookInterval, (*actor).intercept},
	{"responder", 15, lookInterval, (*actor).respond},
	{"technician", 13, 2 * time.Second, (*actor).maintainNodes},
	{"mechanic", 14, 2 * time.Second, (*actor).repairMachine},
}

// deciders have interests of their own.
var deciders = []role{
	{"owner", 20, time.Second, (*actor).own},
	{"administrator", 21, 3 * time.Second, (*actor).administrate},
	{"another administrator", 22, 3 * time.Second, (*actor).administrate},
	{"administrator by hand", 23, 10 * time.Second, (*actor).cordonByHand},
	{"evictor", 24, 500 * time.Millisecond, (*actor).requestEvictions},
	{"another evictor", 25, 500 * time.Millisecond, (*actor).requestEvictions},
	{"evictor by hand", 34, 2 * time.Second, (*actor).evictByHand},
	{"tenant", 26, time.Second, (*actor).interfere},
	{"somebody who replaces pods", 35, 500 * time.Millisecond, (*actor).replacePods},
	{"fleet manager", 27, 3 * time.Second, (*actor).manageFleet},
	{"opponent", 28, 6 * time.Second, (*actor).oppose},
	{"somebody who announces", 29, 5 * time.Second, (*actor).announce},
	{"bad luck", 30, 500 * time.Millisecond, (*actor).breakMachines},
	{"requester of lifecycle.k8s.io", 32, time.Second, (*actor).requestLifecycle},
	{"another requester of lifecycle.k8s.io", 33, time.Second, (*actor).requestLifecycle},
	{"somebody who limits", 31, 6 * time.Second, (*actor).limit},
}

// actorsNames are those of the actors that may be left out.
func actorsNames() []string {
	var names []string
	for i := range deciders {
		names = append(names, deciders[i].name)
	}
	return names
}

// loops has each role played, unless it is left out.
func (a *historyActors) loops(roles []role) []func(context.Context) {
	var loops []func(context.Context)
	for _, r := range roles {
		if a.test.without.Has(r.name) {
			continue
		}
		loops = append(loops, func(ctx context.Context) {
			self := &actor{historyActors: a, name: r.name, random: rand.New(rand.NewPCG(a.test.seed, r.stream))}
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Duration(self.random.Int64N(int64(r.longest)))):
				}
				r.act(self, ctx)
				self.acts++
			}
		})
	}
	return loops
}

func (a *actor) client() clientset.Interface {
	return a.test.clients[a.random.IntN(len(a.test.clients))]
}

func (a *actor) oneOf(n int) int { return a.random.IntN(n) }

func (a *actor) app() string { return "app-" + strconv.Itoa(a.oneOf(historyApps)) }

func (a *actor) node() string { return "node-" + strconv.Itoa(a.oneOf(historyNodes)) }

func (a *actor) runPods(ctx context.Context) {
	if a.test.isOut.Load() {
		return
	}
	pods := a.client().CoreV1().Pods(a.namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		switch pod := &list.Items[i]; {
		case pod.Spec.NodeName == "" || pod.Spec.NodeName == brokenNode && a.isBroken.Load():
		case a.oneOf(4) == 0: // It takes its time.
		case pod.DeletionTimestamp != nil && pod.Labels[appLabel] == slowApp && a.oneOf(6) > 0: // Its program as well.
		case pod.DeletionTimestamp != nil:
			options := metav1.NewDeleteOptions(0)
			options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
			_ = pods.Delete(ctx, pod.Name, *options)
		case pod.Status.Phase == v1.PodPending:
			a.reportPod(ctx, pod, v1.ConditionFalse)
		case pod.Status.Phase == v1.PodRunning && !podutil.IsPodReady(pod) && a.oneOf(6) == 0: // And its start.
			a.reportPod(ctx, pod, v1.ConditionTrue)
		}
	}
}

// reportPod reports that a pod runs, and whether it is ready.
func (a *actor) reportPod(ctx context.Context, pod *v1.Pod, ready v1.ConditionStatus) {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		pod.UID, ready, time.Now().UTC().Format(time.RFC3339))
	_, _ = a.client().CoreV1().Pods(a.namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

func (a *actor) bindPods(ctx context.Context) {
	list, err := a.client().CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil || len(list.Items) == 0 {
		return
	}
	nodes, err := a.client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	var free []string
	for i := range nodes.Items {
		if !nodes.Items[i].Spec.Unschedulable && maintenance.IsReady(&nodes.Items[i]) {
			free = append(free, nodes.Items[i].Name)
		}
	}
	for i := range list.Items {
		node := pinnedTo(&list.Items[i])
		if node == "" && len(free) > 0 {
			node = free[a.oneOf(len(free))]
		}
		if node == "" || list.Items[i].DeletionTimestamp != nil {
			continue
		}
		_ = a.client().CoreV1().Pods(a.namespace).Bind(ctx, &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: list.Items[i].Name, UID: list.Items[i].UID}, Target: v1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
	}
}

// pinnedTo returns the node of a pod of a DaemonSet, which tolerates that it is unschedulable; empty for others.
func pinnedTo(pod *v1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// intercept reports the start of the work, and in one of the next rounds its end.
func (a *actor) intercept(ctx context.Context) {
	requests := a.client().CoordinationV1alpha1().EvictionRequests(a.namespace)
	list, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		request := &list.Items[i]
		for j := range request.Status.Interceptors {
			entry := &request.Status.Interceptors[j]
			if entry.Name != interceptor || len(request.Status.ActiveInterceptors) != 1 || request.Status.ActiveInterceptors[0] != interceptor || entry.CompletionTime != nil || a.oneOf(3) == 0 {
				continue
			}
			now := metav1.Now().Rfc3339Copy()
			entry.HeartbeatTime = &now
			if entry.StartTime == nil {
				entry.StartTime = &now
			} else {
				entry.CompletionTime = &now
			}
			_, _ = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		}
	}
}

// own creates workloads and budgets, scales and rolls them, and takes budgets away again.
func (a *actor) own(ctx context.Context) {
	app := a.app()
	budgets, apps := a.client().PolicyV1().PodDisruptionBudgets(a.namespace), a.client().AppsV1()
	patchApp := func(patch []byte) {
		if app == historySet {
			_, _ = apps.StatefulSets(a.namespace).Patch(ctx, app, types.MergePatchType, patch, metav1.PatchOptions{})
			return
		}
		_, _ = apps.Deployments(a.namespace).Patch(ctx, app, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	switch a.oneOf(8) {
	case 0, 1, 2:
		a.createWorkload(ctx, app)
	case 3:
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
		budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(int32(a.oneOf(3))))
		_, _ = budgets.Create(ctx, budget, metav1.CreateOptions{})
	case 4:
		_ = budgets.Delete(ctx, app, metav1.DeleteOptions{})
	case 5:
		patchApp(fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, 1+a.oneOf(historyReplicas+1)))
	case 6:
		patchApp(fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"owner.example.com/version":"%d"}}}}}`, a.oneOf(3)))
	case 7:
		_, _ = apps.DaemonSets(a.namespace).Create(ctx, newDaemonSet(newTemplate("agent")), metav1.CreateOptions{})
	}
}

func newTemplate(app string, interceptors ...string) *v1.Pod {
	template := newScheduledPod(app, interceptors...)
	template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](5)
	return template
}

func (a *actor) createWorkload(ctx context.Context, app string) {
	if app == historySet {
		_, _ = a.client().AppsV1().StatefulSets(a.namespace).Create(ctx, newStatefulSet(newTemplate(app), historyReplicas), metav1.CreateOptions{})
		return
	}
	var interceptors []string
	if app == "app-0" {
		interceptors = append(interceptors, interceptor)
	}
	template := newTemplate(app, interceptors...)
	if a.test.opensDoor {
		template.Spec.EvictionResponders = respondersOf(app)
	}
	deployment := newDeployment(template, historyReplicas)
	deployment.Spec.ProgressDeadlineSeconds = ptr.To[int32](historyProgress)
	_, _ = a.client().AppsV1().Deployments(a.namespace).Create(ctx, deployment, metav1.CreateOptions{})
}

// administrate begins with maintenances that overlap, and ends them.
func (a *actor) administrate(ctx context.Context) {
	maintenances := a.client().CoordinationV1alpha1().NodeMaintenances()
	name := "m-" + strconv.Itoa(a.oneOf(5))
	switch a.oneOf(5) {
	case 0, 1:
		term := nodesNamed(a.node(), a.node())
		switch a.oneOf(4) {
		case 0, 1:
			term.MatchExpressions[0] = v1.NodeSelectorRequirement{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{strconv.Itoa(a.oneOf(3))}}
		case 2: // Somebody else has finished with one of them.
			if node, found := a.oneNode(ctx, a.client(), isDrained); found {
				term = nodesNamed(node, a.node())
			}
		}
		m := newMaintenance(name, term)
		if a.oneOf(3) == 0 {
			m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
		}
		_, _ = maintenances.Create(ctx, m, metav1.CreateOptions{})
	case 2:
		_, _ = maintenances.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"stage":"Drain"}}`), metav1.PatchOptions{})
	case 3:
		_, _ = maintenances.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`), metav1.PatchOptions{})
	case 4:
		_ = maintenances.Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func nodesNamed(names ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: names}}}
}

func newHistoryRollout(name string, maxConcurrent int) *coordinationv1alpha1.NodeMaintenance {
	m := newMaintenance(name, allNodes())
	m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(maxConcurrent))}
	return m
}

func allNodes() v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpExists}}}
}

func isForDrain(request *coordinationv1alpha1.EvictionRequest) bool {
	return slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool {
		return r.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}

func isDrained(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeDrained && c.Status == v1.ConditionTrue })
}

// manageFleet rolls maintenances over all nodes, changes how many at a time of one of them, and calls rollouts off.
func (a *actor) manageFleet(ctx context.Context) {
	coordination := a.client().CoordinationV1alpha1()
	name := "r-" + strconv.Itoa(a.oneOf(2))
	switch a.oneOf(6) {
	case 0, 1, 2:
		_, _ = coordination.NodeMaintenances().Create(ctx, newHistoryRollout(name, 1+a.oneOf(2)), metav1.CreateOptions{})
	case 3:
		patch := fmt.Appendf(nil, `{"spec":{"rollout":{"maxConcurrent":%d}}}`, 1+a.oneOf(3))
		_, _ = coordination.NodeMaintenances().Patch(ctx, "r-0", types.MergePatchType, patch, metav1.PatchOptions{})
	case 4:
		if a.oneOf(3) == 0 {
			_ = coordination.NodeMaintenances().Delete(ctx, name, metav1.DeleteOptions{})
		}
	case 5:
		patch := fmt.Appendf(nil, `{"spec":{"maxUnavailable":%d}}`, 1+a.oneOf(3))
		if a.strict {
			return
		}
		_, _ = coordination.NodeMaintenanceBudgets().Patch(ctx, historyBudget, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// maintainNodes does the work on nodes that are drained, and says so. Where no rollout waits for that, nobody does: the
// administrators say when they have done theirs.
func (a *actor) maintainNodes(ctx context.Context) {
	nodes, err := a.client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range nodes.Items {
		for _, admission := range maintenance.Admissions(&nodes.Items[i]) {
			// Some do not wait until the node is drained.
			isPatient := admission.DrainedTime == nil && a.oneOf(40) > 0
			if isPatient || admission.DoneTime != nil || !strings.HasPrefix(admission.MaintenanceName, "r-") || a.oneOf(2) == 0 {
				continue
			}
			_ = sayDone(ctx, a.client(), &nodes.Items[i], admission.MaintenanceUID)
		}
	}
}

// sayDone says that the work of a maintenance on a node is done.
func sayDone(ctx context.Context, client clientset.Interface, node *v1.Node, of types.UID) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, node.UID, coordinationv1alpha1.NodeDoneAnnotation, of)
	_, err := client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "technician"})
	return err
}

// cordonByHand cordons and uncordons nodes, with commands and with manifests.
func (a *actor) cordonByHand(ctx context.Context) {
	if a.strict {
		return
	}
	node, cordon, applies := a.node(), a.oneOf(3) == 0, a.oneOf(3) == 0
	if a.quarantines && node == quarantinedNode {
		cordon = true
	}
	if applies {
		a.applyByHand(ctx, node, cordon)
		return
	}
	a.patchByHand(ctx, node, cordon)
}

func (a *actor) patchByHand(ctx context.Context, node string, unschedulable bool) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}},"spec":{"unschedulable":%t}}`, history.ByHand, a.random.Uint32(), unschedulable)
	_, _ = a.client().CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "by-hand"})
}

func (a *actor) applyByHand(ctx context.Context, node string, unschedulable bool) {
	patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"annotations":{%q:"%d"}},"spec":{"unschedulable":%t}}`,
		node, history.ByHand, a.random.Uint32(), unschedulable)
	_, _ = a.client().CoreV1().Nodes().Patch(ctx, node, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: history.Applier, Force: ptr.To(true)})
}

// announce says that a maintenance is planned for a node of which no controller says anything, as everybody may who
// writes the status of nodes (KEP-5683), or for those of a maintenance that ends: the controllers write to them as well.
func (a *actor) announce(ctx context.Context) {
	if a.oneOf(2) == 0 {
		a.announceAtEnd(ctx)
		return
	}
	name := a.node()
	node, err := a.client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeMaintenancePlanned }) {
		return
	}
	_ = a.patchCondition(ctx, name, v1.NodeMaintenancePlanned, v1.ConditionTrue, history.Announced)
}

// announceAtEnd announces the next maintenance as soon as one ends.
func (a *actor) announceAtEnd(ctx context.Context) {
	client := a.test.clients[a.oneOf(len(a.test.clients))]
	for end := time.Now().Add(opposition); ctx.Err() == nil && time.Now().Before(end); time.Sleep(opposeInterval) {
		list, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		at := slices.IndexFunc(list.Items, func(m coordinationv1alpha1.NodeMaintenance) bool {
			return m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && !meta.IsStatusConditionTrue(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionCompleted))
		})
		if at < 0 {
			continue
		}
		matcher, err := maintenance.NewNodeMatcher(list.Items[at].Spec.NodeSelector)
		if err != nil {
			return
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range nodes.Items {
			if matcher.Matches(&nodes.Items[i]) {
				_ = patchNodeCondition(ctx, client, nodes.Items[i].Name, v1.NodeMaintenancePlanned, v1.ConditionTrue, history.Announced)
			}
		}
		return
	}
}

func (a *actor) patchCondition(ctx context.Context, node string, conditionType v1.NodeConditionType, status v1.ConditionStatus, reason string) error {
	return patchNodeCondition(ctx, a.client(), node, conditionType, status, reason)
}

func patchNodeCondition(ctx context.Context, client clientset.Interface, node string, conditionType v1.NodeConditionType, status v1.ConditionStatus, reason string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":%q,"lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, conditionType, status, reason, now, now)
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// breakMachines has a node quarantined at the beginning, and breaks a machine: its pods neither start nor end any more, or not
// until it recovers.
func (a *actor) breakMachines(ctx context.Context) {
	if a.quarantines && a.acts == 0 {
		a.patchByHand(ctx, quarantinedNode, true)
	}
	if a.flaps && a.oneOf(20) > 0 {
		return // It stays as it is for a few seconds.
	}
	if a.flaps && a.isBroken.Load() {
		a.isBroken.Store(false)
		return
	}
	if a.breaks && !a.isBroken.Load() {
		a.isBroken.Store(true)
		a.isBroken.Store(a.patchCondition(ctx, brokenNode, v1.NodeReady, v1.ConditionUnknown, "NodeStatusUnknown") == nil)
	}
}

// repairMachine has kubelets report again after an outage, and repairs the broken machine at the end: all has come to
// its end only with machines that work.
func (a *actor) repairMachine(ctx context.Context) {
	if a.test.isCalm.Load() {
		a.isBroken.Store(false)
	}
	nodes, err := a.client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range nodes.Items {
		isBroken := nodes.Items[i].Name == brokenNode && a.isBroken.Load()
		if !isBroken && !a.test.isOut.Load() && !maintenance.IsReady(&nodes.Items[i]) {
			_ = a.patchCondition(ctx, nodes.Items[i].Name, v1.NodeReady, v1.ConditionTrue, "KubeletReady")
		}
	}
}

// oppose undoes for a few seconds what controllers do to one object, as often as they do it: two that want different things
// would go on for ever.
func (a *actor) oppose(ctx context.Context) {
	undo := a.findOpposition(ctx)
	for end := time.Now().Add(opposition); undo != nil && ctx.Err() == nil && time.Now().Before(end); time.Sleep(opposeInterval) {
		undo(ctx)
	}
}

// findOpposition returns what undoes something that controllers have done, or nil.
func (a *actor) findOpposition(ctx context.Context) func(context.Context) {
	client := a.test.clients[a.oneOf(len(a.test.clients))]
	requests, nodes := client.CoordinationV1alpha1().EvictionRequests(a.namespace), client.CoreV1().Nodes()
	switch kind := a.oneOf(5); kind {
	case 0, 1:
		list, err := requests.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		// The younger ones may be over in a moment.
		found := slices.DeleteFunc(list.Items, func(request coordinationv1alpha1.EvictionRequest) bool {
			return hasFinished(&request) || kind == 0 && !isForDrain(&request) || time.Since(request.CreationTimestamp.Time) < 2*time.Second
		})
		if len(found) == 0 {
			return nil
		}
		name := found[a.oneOf(len(found))].Name
		if kind == 0 {
			return func(ctx context.Context) { _ = requests.Delete(ctx, name, metav1.DeleteOptions{}) }
		}
		return func(ctx context.Context) {
			_, _ = requests.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, appLabel), metav1.PatchOptions{})
		}
	case 2:
		name, found := a.oneNode(ctx, client, func(node *v1.Node) bool { return node.Spec.Unschedulable && node.Name != quarantinedNode })
		if !found {
			return nil
		}
		return func(ctx context.Context) {
			if node, err := nodes.Get(ctx, name, metav1.GetOptions{}); err == nil && node.Spec.Unschedulable {
				a.patchByHand(ctx, name, false)
			}
		}
	default:
		isPlanned := func(taint v1.Taint) bool { return taint.Key == coordinationv1alpha1.NodePlannedTaint }
		name, found := a.oneNode(ctx, client, func(node *v1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isPlanned) })
		if !found {
			return nil
		}
		return func(ctx context.Context) {
			if node, err := nodes.Get(ctx, name, metav1.GetOptions{}); err == nil && slices.ContainsFunc(node.Spec.Taints, isPlanned) {
				node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isPlanned)
				_, _ = nodes.Update(ctx, node, metav1.UpdateOptions{})
			}
		}
	}
}

// oneNode returns the name of one of the nodes of a kind.
func (a *actor) oneNode(ctx context.Context, client clientset.Interface, is func(*v1.Node) bool) (name string, found bool) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false
	}
	names := []string{}
	for i := range list.Items {
		if is(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return names[a.oneOf(len(names))], true
}

// anyPod returns one of the pods, nil if there is none.
func (a *actor) anyPod(ctx context.Context) *v1.Pod {
	list, err := a.client().CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[a.oneOf(len(list.Items))]
}

// requestEvictions asks that a pod leaves, or no longer.
func (a *actor) requestEvictions(ctx context.Context) {
	pod := a.anyPod(ctx)
	if pod == nil {
		return
	}
	requests := a.client().CoordinationV1alpha1().EvictionRequests(a.namespace)
	name := fmt.Sprintf("evictor-%d.example.com", a.oneOf(2))
	create := func(pod *v1.Pod) {
		_, _ = requests.Create(ctx, &coordinationv1alpha1.EvictionRequest{
			ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
			Spec: coordinationv1alpha1.EvictionRequestSpec{
				Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
				Requesters: []coordinationv1alpha1.Requester{{Name: name}},
			},
		}, metav1.CreateOptions{})
	}
	switch a.oneOf(4) {
	case 0:
		create(pod)
	case 1:
		// Who evicts some pods of a workload may evict all of them.
		list, err := a.client().CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{LabelSelector: appLabel + "=" + pod.Labels[appLabel]})
		if err != nil || a.oneOf(4) > 0 {
			create(pod)
			return
		}
		for i := range list.Items {
			create(&list.Items[i])
		}
	case 2:
		_ = a.client().PolicyV1().Evictions(a.namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: pod.Name}})
	case 3:
		list, err := requests.List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		open := slices.DeleteFunc(list.Items, func(request coordinationv1alpha1.EvictionRequest) bool { return hasFinished(&request) })
		if len(open) == 0 {
			return
		}
		request := &open[a.oneOf(len(open))]
		request.Spec.Requesters = nil
		_, _ = requests.Update(ctx, request, metav1.UpdateOptions{})
	}
}

// interfere deletes pods and requests, and writes to pods.
func (a *actor) interfere(ctx context.Context) {
	pod := a.anyPod(ctx)
	if pod == nil {
		return
	}
	switch a.oneOf(3) {
	case 0:
		_ = a.client().CoreV1().Pods(a.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
	case 1:
		_ = a.client().CoordinationV1alpha1().EvictionRequests(a.namespace).Delete(ctx, string(pod.UID), metav1.DeleteOptions{})
	case 2:
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"tenant.example.com/n":"%d"}}}`, a.random.Uint32())
		_, _ = a.client().CoreV1().Pods(a.namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// evictByHand calls the API that evicts pods for all pods of a node, again and again, as kubectl drain does.
func (a *actor) evictByHand(ctx context.Context) {
	client, node := a.test.clients[a.oneOf(len(a.test.clients))], a.node()
	for end := time.Now().Add(opposition); ctx.Err() == nil && time.Now().Before(end); time.Sleep(lookInterval) {
		list, err := client.CoreV1().Pods(a.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil || len(list.Items) == 0 {
			return
		}
		for i := range list.Items {
			_ = client.PolicyV1().Evictions(a.namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: list.Items[i].Name}})
		}
	}
}

// singleApps are pods that no controller keeps.
var singleApps = []string{"single-0", "single-1", "single-2", "single-3"}

// replacePods creates pods that no controller keeps, and replaces those whose evictions are requested by others with their
// names at once, as kubectl replace --force does.
func (a *actor) replacePods(ctx context.Context) {
	client, name := a.client(), singleApps[a.oneOf(len(singleApps))]
	pods := client.CoreV1().Pods(a.namespace)
	replacement := newTemplate(name, interceptor)
	old, err := pods.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, _ = pods.Create(ctx, replacement, metav1.CreateOptions{})
		return
	case err != nil:
		return
	}
	if _, err := client.CoordinationV1alpha1().EvictionRequests(a.namespace).Get(ctx, string(old.UID), metav1.GetOptions{}); err != nil || a.oneOf(4) > 0 {
		return
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(old.UID))
	_ = pods.Delete(ctx, name, *options)
	_, _ = pods.Create(ctx, replacement, metav1.CreateOptions{})
}
