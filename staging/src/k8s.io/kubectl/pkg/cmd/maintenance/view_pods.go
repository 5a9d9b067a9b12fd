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
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/node/maintenance"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/podgroup"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
)

// maxNodesOneByOne is for how many nodes pods are read node by node, by requests that the server
// answers from an index. A plan of more nodes reads all pods of the cluster page by page, and keeps
// those of its nodes.
const maxNodesOneByOne = 50

// podSnapshot is a snapshot with the pods of some nodes and what delays their eviction. A plan
// needs it, because no controller has computed anything yet.
type podSnapshot struct {
	snapshot

	// pods by the name of their node.
	pods map[string][]*corev1.Pod
	// requests by the UID of their pod, which is their name.
	requests map[string]*coordinationv1alpha1.EvictionRequest
	budgets  []*policyv1.PodDisruptionBudget
	// budgetIndex finds the budgets of a pod; nil before they are read.
	budgetIndex *poddisruptionbudget.Index
	// independent are the PodGroups whose pods are evicted one by one, as far as they and their ancestors say it.
	independent sets.Set[types.NamespacedName]
	// deployments by namespace.
	deployments map[string][]*appsv1.Deployment
	// obstacles are what may keep replacements from starting; nil if unknown.
	obstacles *obstacles
	// workloads are the owners of the pods.
	workloads workloads
	// responders is whether responders act; empty if no pod has some.
	responders responderSupport

	// policies say which pods are not evicted, and drainedWhen what else a drained node needs.
	policies    []nodePolicies
	drainedWhen *coordinationv1alpha1.NodeMaintenanceDrainedWhen
	// policiesDropped is whether the server would not store them.
	policiesDropped bool
	// kept are the pods that are not evicted, with what happens to them instead.
	kept map[*corev1.Pod]*keptPod
	// namespaces are the labels of namespaces, if a policy selects them.
	namespaces map[string]labels.Set
	// nodeBudgets limit which nodes are drained at the same time, in the order of their names.
	nodeBudgets      []*coordinationv1alpha1.NodeMaintenanceBudget
	budgetsNotServed bool
	// used are the requests of the pods of every node; nil unless the plan is of a rollout.
	used map[string]amounts
	// rollout says which nodes are drained at the same time; nil if all are.
	rollout *rolloutPlan
}

// setPods stores the pods that are bound to a node, each once.
func (s *podSnapshot) setPods(pods []*corev1.Pod) {
	s.pods = map[string][]*corev1.Pod{}
	compare := func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(pods, compare)
	pods = slices.CompactFunc(pods, func(a, b *corev1.Pod) bool { return compare(a, b) == 0 })
	for _, pod := range pods {
		if node := pod.Spec.NodeName; node != "" {
			s.pods[node] = append(s.pods[node], pod)
		}
	}
}

func (s *podSnapshot) addRequest(request *coordinationv1alpha1.EvictionRequest) {
	put(&s.requests, request.Name, request)
}

// openRequestOf returns the request for the eviction of the pod, or nil if there is none, or it is finished.
func (s *podSnapshot) openRequestOf(pod *corev1.Pod) *coordinationv1alpha1.EvictionRequest {
	request := s.requests[string(pod.UID)]
	if request == nil || evictionrequest.IsFinished(request.Status.Conditions) {
		return nil
	}
	return request
}

func (s *podSnapshot) setBudgets(budgets []*policyv1.PodDisruptionBudget) {
	s.budgets, s.budgetIndex = budgets, poddisruptionbudget.NewIndex(budgets)
}

// budgetsOf returns the budgets that select the pod, in the order of their names.
func (s *podSnapshot) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	if s.budgetIndex == nil {
		return nil
	}
	return s.budgetIndex.For(pod)
}

// podsAmong lists the pods of nodes that a field selector selects, and adds the requests of every pod that it
// selects. The selector may select all pods of a large cluster, of which only some pages are in memory at a time.
func (s *podSnapshot) podsAmong(ctx context.Context, client kubernetes.Interface, nodes sets.Set[string], selector string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: selector}, func(object runtime.Object) error {
		pod := object.(*corev1.Pod)
		s.addRequests(pod)
		if nodes.Has(pod.Spec.NodeName) {
			// A copy, because a pointer into a page would keep all of it.
			kept := *pod
			kept.ManagedFields = nil
			pods = append(pods, &kept)
		}
		return nil
	})
	return pods, err
}

// readPods reads the pods of nodes by field selectors, and all requests and budgets.
func (s *podSnapshot) readPods(ctx context.Context, client kubernetes.Interface, nodes sets.Set[string], selectors []string) error {
	var pods []*corev1.Pod
	for _, selector := range selectors {
		found, err := s.podsAmong(ctx, client, nodes, selector)
		if s.skip("pods", err) {
			break
		}
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		pods = append(pods, found...)
	}
	s.readGroups(ctx, client, pods)
	s.setPods(pods)
	if err := each(ctx, &s.snapshot, "evictionrequests", client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceAll).List, s.addRequest); err != nil {
		return err
	}
	budgets, err := list[policyv1.PodDisruptionBudget](ctx, &s.snapshot, "poddisruptionbudgets", client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List, metav1.ListOptions{})
	s.setBudgets(budgets)
	return err
}

// readGroups reads the PodGroups if a pod is in one, and their parents. If they cannot be read, plans say the same as of
// groups whose pods are not evicted one by one, which is what happens where the server has no such group.
func (s *podSnapshot) readGroups(ctx context.Context, client kubernetes.Interface, pods []*corev1.Pod) {
	if !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.SchedulingGroup != nil }) {
		return
	}
	groups, err := client.SchedulingV1beta1().PodGroups(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	parents := map[types.NamespacedName]*schedulingv1alpha3.CompositePodGroup{}
	if slices.ContainsFunc(groups.Items, func(group schedulingv1beta1.PodGroup) bool { return group.Spec.ParentCompositePodGroupName != nil }) {
		if list, err := client.SchedulingV1alpha3().CompositePodGroups(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
			for _, parent := range pointers(list.Items) {
				parents[types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}] = parent
			}
		}
	}
	s.independent = sets.New[types.NamespacedName]()
	for _, group := range pointers(groups.Items) {
		mode, err := podgroup.ModeOf(group, func(name string) (*schedulingv1alpha3.CompositePodGroup, error) {
			return parents[types.NamespacedName{Namespace: group.Namespace, Name: name}], nil
		})
		if err == nil && mode == podgroup.Single {
			s.independent.Insert(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
}

// isGrouped reports whether the pod is evicted with its group only.
func (s *podSnapshot) isGrouped(pod *corev1.Pod) bool {
	group := pod.Spec.SchedulingGroup
	return group != nil && (group.PodGroupName == nil || !s.independent.Has(types.NamespacedName{Namespace: pod.Namespace, Name: *group.PodGroupName}))
}

// podSelectors returns the field selectors under which a plan reads the pods of the nodes.
func podSelectors(nodes []string) []string {
	if len(nodes) > maxNodesOneByOne {
		return []string{""}
	}
	return mapped(nodes, func(node string) string { return fields.OneTermEqualSelector("spec.nodeName", node).String() })
}

// readNodeBudgets reads the NodeMaintenanceBudgets, if the server serves them. It asks for that first:
// without the permission to list them, the list would be refused also where they are not served.
func (s *podSnapshot) readNodeBudgets(ctx context.Context, client kubernetes.Interface) error {
	served, err := serves(client, budgetResource)
	if s.budgetsNotServed = !served; err != nil || !served {
		return err
	}
	budgets, err := list[coordinationv1alpha1.NodeMaintenanceBudget](ctx, &s.snapshot, budgetResource, client.CoordinationV1alpha1().NodeMaintenanceBudgets().List, metav1.ListOptions{})
	if s.budgetsNotServed = apierrors.IsNotFound(err); s.budgetsNotServed {
		return nil
	}
	s.nodeBudgets = sorted(budgets)
	return err
}

// haveBudget reports whether a NodeMaintenanceBudget selects one of the nodes.
func (s *podSnapshot) haveBudget(nodes []*corev1.Node) bool {
	return slices.ContainsFunc(s.nodeBudgets, func(budget *coordinationv1alpha1.NodeMaintenanceBudget) bool {
		matcher, err := maintenance.NewNodeMatcher(budget.Spec.NodeSelector)
		return err == nil && slices.ContainsFunc(nodes, matcher.Matches)
	})
}

// amounts are quantities of resources: thousandths of cores, and otherwise the number in the unit of
// the resource.
type amounts map[corev1.ResourceName]int64

func amountsOf(quantities corev1.ResourceList) amounts {
	a := amounts{}
	for name, quantity := range quantities {
		a[name] = quantity.Value()
		if name == corev1.ResourceCPU {
			a[name] = quantity.MilliValue()
		}
	}
	return a
}

// requestsOf are what the scheduler reserves for a pod, and its place among the pods of a node.
func requestsOf(pod *corev1.Pod) amounts {
	a := amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true}))
	a[corev1.ResourcePods] = 1
	return a
}

// addRequests adds what a pod uses of its node, if a plan needs that.
func (s *podSnapshot) addRequests(pod *corev1.Pod) {
	if s.used == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	used := s.used[pod.Spec.NodeName]
	if used == nil {
		used = amounts{}
		s.used[pod.Spec.NodeName] = used
	}
	for name, amount := range requestsOf(pod) {
		used[name] += amount
	}
}

// A drain of several nodes requests the eviction of all pods of a step at once, while "kubectl
// drain" handles one node after another. If no budget and no controller limits that, a workload
// whose pods are all on these nodes is down until it has new pods. A plan warns of that.

// workload names the controller of pods as users know it: the Deployment instead of its ReplicaSet.
type workload struct {
	kind, namespace, name string
}

// workloads has the properties of the owners of pods that plans need.
type workloads struct {
	// statefulSets has those that own pods.
	statefulSets map[workload]*appsv1.StatefulSet
	// ready is how many pods of a StatefulSet, ReplicaSet or Deployment are ready.
	ready map[workload]int
	// deploymentOf names the Deployment of a ReplicaSet.
	deploymentOf map[workload]string
	jobs         map[workload]*batchv1.Job
	// templates are those of the owners that create pods: what a pod does not say is whether the next one goes to the
	// same node.
	templates map[workload]ownTemplate
}

// ownTemplate is the template of an owner, which has a UID: another one may have had its name.
type ownTemplate struct {
	uid types.UID
	*corev1.PodTemplateSpec
}

// warning says what a drain would do to a workload.
type warning struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Step is the one in which the pods are evicted.
	Step int `json:"step"`
	// Pods is how many ready pods are evicted together: all of a workload, or more than the
	// backoffLimit of a Job allows to fail.
	Pods int `json:"pods"`
	// FailuresAllowed is how many pods of a Job may fail before it does.
	FailuresAllowed *int `json:"failuresAllowed,omitempty"`
}

// readWorkloads reads the owners of the pods, only of kinds that own at least one.
func (s *podSnapshot) readWorkloads(ctx context.Context, client kubernetes.Interface) error {
	if err := readOwners(ctx, s, "StatefulSet", "statefulsets", client.AppsV1().StatefulSets(metav1.NamespaceAll).List, s.addStatefulSet); err != nil {
		return err
	}
	if err := readOwners(ctx, s, "ReplicaSet", "replicasets", client.AppsV1().ReplicaSets(metav1.NamespaceAll).List, s.addReplicaSet); err != nil {
		return err
	}
	if err := readOwners(ctx, s, "ReplicationController", "replicationcontrollers", client.CoreV1().ReplicationControllers(metav1.NamespaceAll).List, func(c *corev1.ReplicationController) {
		put(&s.workloads.templates, workload{"ReplicationController", c.Namespace, c.Name}, ownTemplate{c.UID, c.Spec.Template})
	}); err != nil {
		return err
	}
	return readOwners(ctx, s, "Job", "jobs", client.BatchV1().Jobs(metav1.NamespaceAll).List, s.addJob)
}

func readOwners[T any, L runtime.Object](ctx context.Context, s *podSnapshot, kind, resource string, from func(context.Context, metav1.ListOptions) (L, error), use func(*T)) error {
	if !s.anyPod(func(pod *corev1.Pod) bool { return ownerKind(pod) == kind }) {
		return nil
	}
	return each(ctx, &s.snapshot, resource, from, use)
}

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind
	}
	return ""
}

func (s *podSnapshot) addStatefulSet(set *appsv1.StatefulSet) {
	own := workload{"StatefulSet", set.Namespace, set.Name}
	put(&s.workloads.statefulSets, own, set)
	put(&s.workloads.ready, own, int(set.Status.ReadyReplicas))
	put(&s.workloads.templates, own, ownTemplate{set.UID, &set.Spec.Template})
}

// addReplicaSet counts the ready pods of a Deployment over all of its ReplicaSets.
func (s *podSnapshot) addReplicaSet(set *appsv1.ReplicaSet) {
	own := workload{"ReplicaSet", set.Namespace, set.Name}
	put(&s.workloads.templates, own, ownTemplate{set.UID, &set.Spec.Template})
	if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "Deployment" {
		put(&s.workloads.deploymentOf, own, owner.Name)
	}
	facing := s.userFacing(own)
	put(&s.workloads.ready, facing, s.workloads.ready[facing]+int(set.Status.ReadyReplicas))
}

func (s *podSnapshot) addJob(job *batchv1.Job) {
	own := workload{"Job", job.Namespace, job.Name}
	put(&s.workloads.jobs, own, job)
	put(&s.workloads.templates, own, ownTemplate{job.UID, &job.Spec.Template})
}

// nameNodeOf reports whether the owner of a pod creates pods for the node of this one: spec.nodeName of its template names
// it, whether the node is cordoned or not. The controller decides by the same rule.
func (s *podSnapshot) nameNodeOf(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	template := s.workloads.templates[workload{owner.Kind, pod.Namespace, owner.Name}]
	return template.uid == owner.UID && template.PodTemplateSpec != nil && template.Spec.NodeName != "" && template.Spec.NodeName == pod.Spec.NodeName
}

// userFacing replaces a ReplicaSet by its Deployment.
func (s *podSnapshot) userFacing(own workload) workload {
	if deployment := s.workloads.deploymentOf[own]; deployment != "" {
		return workload{"Deployment", own.namespace, deployment}
	}
	return own
}

// workloadOf returns what controls the pod.
func (s *podSnapshot) workloadOf(pod *corev1.Pod) (workload, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return workload{}, false
	}
	return s.userFacing(workload{owner.Kind, pod.Namespace, owner.Name}), true
}

// leaving are the pods of a workload whose eviction is requested in the same step.
type leaving struct {
	pods []*corev1.Pod
	// budgeted counts the ready pods that may be evicted at the same time as others, by the budget that limits their
	// evictions. Its name is empty if there is none.
	budgeted map[string]int
}

// add adds a pod. The set is that of the pod, if it has one that is known, and paced is whether its workload lets its
// pods wait for each other.
func (l *leaving) add(pod *corev1.Pod, planned *podPlan, set *appsv1.StatefulSet, paced bool) {
	l.pods = append(l.pods, pod)
	// Its controller releases it only when other pods are ready.
	paced = paced || slices.ContainsFunc(planned.Remarks, podNote.replaces) ||
		slices.Contains(planned.Interceptors, coordinationv1alpha1.EvictionInterceptorStatefulSet) && (set == nil || isPacedSet(set))
	// The API server never evicts a pod with several budgets.
	if podutils.IsPodReady(pod) && !paced && len(planned.Budgets) <= 1 {
		l.budgeted[strings.Join(planned.Budgets, "")]++
	}
}

// atOnce is how many ready pods may be evicted at the same time.
func (l *leaving) atOnce(allowed map[string]int) int {
	count := 0
	for budget, pods := range l.budgeted {
		if budget != "" {
			pods = min(pods, allowed[budget])
		}
		count += pods
	}
	return count
}

// addWarnings adds the workloads whose ready pods would all be evicted together, and the Jobs that
// would fail.
func (p *plan) addWarnings(s *podSnapshot) {
	type key struct {
		workload
		step, batch int
	}
	var order []key
	groups := map[key]*leaving{}
	for _, node := range p.Nodes {
		planned := keyed(node.Pods, func(pod *podPlan) string { return pod.Namespace + "/" + pod.Name })
		for _, pod := range s.pods[node.Name] {
			plan := planned[pod.Namespace+"/"+pod.Name]
			own, owned := s.workloadOf(pod)
			if plan == nil || !owned || plan.Step == 0 || plan.isKept() {
				continue
			}
			k := key{own, plan.Step, p.Rollout.batchOf(node.Name)}
			if s.workloads.jobs[own] != nil {
				k.batch = 0 // The failures of all batches count.
			}
			if groups[k] == nil {
				groups[k] = &leaving{budgeted: map[string]int{}}
				order = append(order, k)
			}
			_, paced := s.pacedLimit(pod)
			groups[k].add(pod, plan, s.workloads.statefulSets[own], paced)
		}
	}
	allowed := map[string]int{}
	for _, budget := range p.Budgets {
		allowed[budget.Name] = int(max(0, budget.DisruptionsAllowed))
	}
	for _, k := range order {
		warned := warning{Kind: k.kind, Namespace: k.namespace, Name: k.name, Step: k.step}
		if job := s.workloads.jobs[k.workload]; job != nil {
			warned.ofJob(job, groups[k])
		} else if ready := s.workloads.ready[k.workload]; ready > 0 && groups[k].atOnce(allowed) >= ready {
			warned.Pods = ready
		}
		if warned.Pods > 0 {
			p.Warnings = append(p.Warnings, warned)
		}
	}
	slices.SortStableFunc(p.Warnings, func(a, b warning) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Step, b.Step))
	})
}

// ofJob counts the pods of a Job if more of them would fail than its limits allow.
func (w *warning) ofJob(job *batchv1.Job, group *leaving) {
	if toleratesDisruption(job) {
		return
	}
	if limit := job.Spec.BackoffLimitPerIndex; limit != nil {
		w.FailuresAllowed = ptr.To(0)
		w.Pods = len(filtered(group.pods, func(pod *corev1.Pod) bool {
			before, _ := strconv.Atoi(pod.Annotations[batchv1.JobIndexFailureCountAnnotation]) // Of its index.
			return before >= int(*limit)
		}))
		return
	}
	const defaultBackoffLimit = 6
	if allowed := int(max(0, ptr.Deref(job.Spec.BackoffLimit, defaultBackoffLimit)-job.Status.Failed)); len(group.pods) > allowed {
		w.Pods, w.FailuresAllowed = len(group.pods), &allowed
	}
}

// toleratesDisruption reports whether evictions of its pods do not count as failures.
func toleratesDisruption(job *batchv1.Job) bool {
	if job.Spec.PodFailurePolicy == nil {
		return false
	}
	return slices.ContainsFunc(job.Spec.PodFailurePolicy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
		return rule.Action == batchv1.PodFailurePolicyActionIgnore && slices.ContainsFunc(rule.OnPodConditions, func(pattern batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return pattern.Type == corev1.DisruptionTarget && (pattern.Status == "" || pattern.Status == corev1.ConditionTrue)
		})
	})
}
