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
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
)

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
	for _, owner := range []struct {
		kind string
		read func() error
	}{
		{"StatefulSet", func() error {
			return each(ctx, &s.snapshot, "statefulsets", client.AppsV1().StatefulSets(metav1.NamespaceAll).List, s.addStatefulSet)
		}},
		{"ReplicaSet", func() error {
			return each(ctx, &s.snapshot, "replicasets", client.AppsV1().ReplicaSets(metav1.NamespaceAll).List, s.addReplicaSet)
		}},
		{"ReplicationController", func() error {
			return each(ctx, &s.snapshot, "replicationcontrollers", client.CoreV1().ReplicationControllers(metav1.NamespaceAll).List, s.addReplicationController)
		}},
		{"Job", func() error {
			return each(ctx, &s.snapshot, "jobs", client.BatchV1().Jobs(metav1.NamespaceAll).List, s.addJob)
		}},
	} {
		if !s.anyPod(func(pod *corev1.Pod) bool { return ownerKind(pod) == owner.kind }) {
			continue
		}
		if err := owner.read(); err != nil {
			return err
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

func (s *podSnapshot) addStatefulSet(set *appsv1.StatefulSet) {
	own := workload{"StatefulSet", set.Namespace, set.Name}
	put(&s.workloads.statefulSets, own, set)
	put(&s.workloads.ready, own, int(set.Status.ReadyReplicas))
	put(&s.workloads.templates, own, ownTemplate{set.UID, &set.Spec.Template})
}

func (s *podSnapshot) addReplicationController(c *corev1.ReplicationController) {
	put(&s.workloads.templates, workload{"ReplicationController", c.Namespace, c.Name}, ownTemplate{c.UID, c.Spec.Template})
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
	// Its controller releases it only when other pods are ready.
	paced = paced || slices.ContainsFunc(planned.Remarks, podNote.replaces) ||
		slices.Contains(planned.Interceptors, coordinationv1alpha1.EvictionInterceptorStatefulSet) && (set == nil || isPacedSet(set))
	switch {
	case !podutils.IsPodReady(pod) || paced || len(planned.Budgets) > 1:
		// The API server never evicts a pod with several budgets.
	case len(planned.Budgets) == 1:
		l.budgeted[planned.Budgets[0]]++
	default:
		l.unpaced++
	}
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
	for _, node := range p.Nodes {
		planned := map[string]*podPlan{}
		for _, pod := range node.Pods {
			planned[pod.Namespace+"/"+pod.Name] = pod
		}
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
