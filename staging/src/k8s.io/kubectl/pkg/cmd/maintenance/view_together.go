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
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A drain of several nodes requests the eviction of all pods of a step at once, while "kubectl
// drain" handles one node after another. If no budget and no controller limits that, a workload
// whose pods are all on these nodes is down until it has new pods. A plan warns of that.

// jobIndexFailures is the annotation of a pod of an indexed Job with the number of previous
// failures of its index.
const jobIndexFailures = batchv1.JobIndexFailureCountAnnotation

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
	all := metav1.ListOptions{}
	for _, kind := range []struct {
		name, resource string
		read           func() error
	}{
		{"StatefulSet", "statefulsets", func() error {
			list, err := client.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, all)
			if err == nil {
				s.addStatefulSets(pointers(list.Items))
			}
			return err
		}},
		{"ReplicaSet", "replicasets", func() error {
			list, err := client.AppsV1().ReplicaSets(metav1.NamespaceAll).List(ctx, all)
			if err == nil {
				s.addReplicaSets(pointers(list.Items))
			}
			return err
		}},
		{"ReplicationController", "replicationcontrollers", func() error {
			list, err := client.CoreV1().ReplicationControllers(metav1.NamespaceAll).List(ctx, all)
			if err == nil {
				s.addReplicationControllers(pointers(list.Items))
			}
			return err
		}},
		{"Job", "jobs", func() error {
			list, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, all)
			if err == nil {
				s.addJobs(pointers(list.Items))
			}
			return err
		}},
	} {
		if !s.anyPod(func(pod *corev1.Pod) bool { return ownerKind(pod) == kind.name }) {
			continue
		}
		if err := kind.read(); !s.skip(kind.resource, err) && err != nil {
			return fmt.Errorf("listing %s: %w", kind.resource, err)
		}
	}
	return nil
}

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind
	}
	return ""
}

func (s *podSnapshot) addStatefulSets(sets []*appsv1.StatefulSet) {
	for _, set := range sets {
		own := workload{"StatefulSet", set.Namespace, set.Name}
		s.owners().statefulSets[own] = set
		s.owners().ready[own] = int(set.Status.ReadyReplicas)
		s.owners().templates[own] = ownTemplate{set.UID, &set.Spec.Template}
	}
}

func (s *podSnapshot) addReplicationControllers(controllers []*corev1.ReplicationController) {
	for _, c := range controllers {
		s.owners().templates[workload{"ReplicationController", c.Namespace, c.Name}] = ownTemplate{c.UID, c.Spec.Template}
	}
}

// addReplicaSets counts the ready pods of a Deployment over all of its ReplicaSets.
func (s *podSnapshot) addReplicaSets(sets []*appsv1.ReplicaSet) {
	for _, set := range sets {
		own := workload{"ReplicaSet", set.Namespace, set.Name}
		s.owners().templates[own] = ownTemplate{set.UID, &set.Spec.Template}
		if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "Deployment" {
			s.owners().deploymentOf[own] = owner.Name
		}
		s.owners().ready[s.userFacing(own)] += int(set.Status.ReadyReplicas)
	}
}

func (s *podSnapshot) addJobs(jobs []*batchv1.Job) {
	for _, job := range jobs {
		own := workload{"Job", job.Namespace, job.Name}
		s.owners().jobs[own] = job
		s.owners().templates[own] = ownTemplate{job.UID, &job.Spec.Template}
	}
}

func (s *podSnapshot) owners() *workloads {
	if s.workloads == nil {
		s.workloads = &workloads{statefulSets: map[workload]*appsv1.StatefulSet{}, ready: map[workload]int{}, deploymentOf: map[workload]string{}, jobs: map[workload]*batchv1.Job{}, templates: map[workload]ownTemplate{}}
	}
	return s.workloads
}

// nameNodeOf reports whether the owner of a pod creates pods for the node of this one: spec.nodeName of its template names
// it, whether the node is cordoned or not. The controller decides by the same rule.
func (s *podSnapshot) nameNodeOf(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	template := s.owners().templates[workload{owner.Kind, pod.Namespace, owner.Name}]
	return template.uid == owner.UID && template.PodTemplateSpec != nil && template.Spec.NodeName != "" && template.Spec.NodeName == pod.Spec.NodeName
}

// userFacing replaces a ReplicaSet by its Deployment.
func (s *podSnapshot) userFacing(own workload) workload {
	if deployment := s.owners().deploymentOf[own]; deployment != "" {
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
	// unpaced is how many ready pods may be evicted at the same time without any limit.
	unpaced int
	// budgeted counts ready pods by the budget that limits their evictions.
	budgeted map[string]int
}

// add adds a pod. It counts only those that may be evicted at the same time as others.
// The set is that of the pod, if it has one that is known, and paced is whether its workload lets its pods
// wait for each other.
func (l *leaving) add(pod *corev1.Pod, planned *podPlan, set *appsv1.StatefulSet, paced bool) {
	l.pods = append(l.pods, pod)
	switch {
	case !isReady(pod) || paced || isPaced(planned, set) || len(planned.Budgets) > 1:
		// The API server never evicts a pod with several budgets.
	case len(planned.Budgets) == 1:
		l.budgeted[planned.Budgets[0]]++
	default:
		l.unpaced++
	}
}

// isPaced reports whether the controller of the pod releases it only when other pods are ready.
func isPaced(planned *podPlan, set *appsv1.StatefulSet) bool {
	return slices.ContainsFunc(planned.Remarks, podNote.replaces) ||
		slices.Contains(planned.Interceptors, coordinationv1alpha1.EvictionInterceptorStatefulSet) && (set == nil || isPacedSet(set))
}

// atOnce is how many ready pods may be evicted at the same time.
func (l *leaving) atOnce(allowed map[string]int) int {
	count := l.unpaced
	for budget, pods := range l.budgeted {
		count += min(pods, allowed[budget])
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
	for i := range p.Nodes {
		planned := map[string]*podPlan{}
		for j := range p.Nodes[i].Pods {
			planned[p.Nodes[i].Pods[j].Namespace+"/"+p.Nodes[i].Pods[j].Name] = &p.Nodes[i].Pods[j]
		}
		for _, pod := range s.pods[p.Nodes[i].Name] {
			plan := planned[pod.Namespace+"/"+pod.Name]
			own, owned := s.workloadOf(pod)
			if plan == nil || !owned || plan.Step == 0 || plan.isKept() {
				continue
			}
			k := key{own, plan.Step, p.batchOf(p.Nodes[i].Name)}
			if s.owners().jobs[own] != nil {
				k.batch = 0 // The failures of all batches count.
			}
			if groups[k] == nil {
				groups[k] = &leaving{budgeted: map[string]int{}}
				order = append(order, k)
			}
			_, paced := s.pacedLimit(pod)
			groups[k].add(pod, plan, s.owners().statefulSets[own], paced)
		}
	}
	allowed := map[string]int{}
	for _, budget := range p.Budgets {
		allowed[budget.Name] = int(max(0, budget.DisruptionsAllowed))
	}
	for _, k := range order {
		warned := warning{Kind: k.kind, Namespace: k.namespace, Name: k.name, Step: k.step}
		if job := s.owners().jobs[k.workload]; job != nil {
			warned.ofJob(job, groups[k])
		} else if ready := s.owners().ready[k.workload]; ready > 0 && groups[k].atOnce(allowed) >= ready {
			warned.Pods = ready
		}
		if warned.Pods > 0 {
			p.Warnings = append(p.Warnings, warned)
		}
	}
	slices.SortStableFunc(p.Warnings, compareWarnings)
}

// batchOf returns with which other nodes the node is drained at the same time.
func (p *plan) batchOf(node string) int {
	if p.Rollout == nil {
		return 0
	}
	return p.Rollout.batchOf[node]
}

// ofJob counts the pods of a Job if more of them would fail than its limits allow.
func (w *warning) ofJob(job *batchv1.Job, group *leaving) {
	if toleratesDisruption(job) {
		return
	}
	if limit := job.Spec.BackoffLimitPerIndex; limit != nil {
		failing := 0
		for _, pod := range group.pods {
			if before, _ := strconv.Atoi(pod.Annotations[jobIndexFailures]); before >= int(*limit) {
				failing++
			}
		}
		allowed := 0
		w.Pods, w.FailuresAllowed = failing, &allowed
		return
	}
	const defaultBackoffLimit = 6
	limit := defaultBackoffLimit
	if job.Spec.BackoffLimit != nil {
		limit = int(*job.Spec.BackoffLimit)
	}
	if allowed := max(0, limit-int(job.Status.Failed)); len(group.pods) > allowed {
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
