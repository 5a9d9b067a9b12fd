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
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
)

// readDeployments reads the Deployments of all namespaces, if one of them would start a
// replacement. Other plans do not need the permission.
func (s *podSnapshot) readDeployments(ctx context.Context, client kubernetes.Interface) error {
	if !s.anyPod(s.awaitsSurge) {
		return nil
	}
	return each(ctx, &s.snapshot, "deployments", client.AppsV1().Deployments(metav1.NamespaceAll).List, s.addDeployment)
}

func (s *podSnapshot) addDeployment(deployment *appsv1.Deployment) {
	put(&s.deployments, deployment.Namespace, append(s.deployments[deployment.Namespace], deployment))
}

func (s *podSnapshot) anyPod(is func(*corev1.Pod) bool) bool {
	for _, pods := range s.pods {
		if slices.ContainsFunc(pods, is) {
			return true
		}
	}
	return false
}

// awaitsSurge reports whether the Deployment controller is an interceptor of the pod and has not
// finished. The name of the interceptor is in the spec since the pod was created. In a group whose pods leave
// together, none acts.
func (s *podSnapshot) awaitsSurge(pod *corev1.Pod) bool {
	const name = coordinationv1alpha1.EvictionInterceptorDeployment
	if ownerKind(pod) != "ReplicaSet" || pod.DeletionTimestamp != nil || s.isGrouped(pod) {
		return false
	}
	request := s.openRequestOf(pod)
	if request == nil || len(request.Status.TargetInterceptors) == 0 {
		return slices.Contains(evictioninterceptor.Targets(pod), name)
	}
	// After it has finished, it does nothing more for this pod.
	return slices.Contains(request.Status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name}) &&
		!slices.Contains(request.Status.ProcessedInterceptors, name)
}

// surgeNoteOf says whether a replacement of the pod is started first; empty if its Deployment is
// not an interceptor.
func (s *podSnapshot) surgeNoteOf(pod *corev1.Pod) podNote {
	if !s.awaitsSurge(pod) {
		return ""
	}
	switch deployment := s.deploymentOf(pod); {
	case deployment == nil:
		return noteMayBeReplaced
	case allowsSurge(deployment):
		return noteReplacedFirst
	case isPacedDeployment(deployment):
		return "" // It was never meant to be replaced first.
	}
	return noteNotReplaced
}

// deploymentOf returns the Deployment that selects the pod, or nil if it is unknown. If several do,
// which is a mistake, only their ReplicaSets would tell.
func (s *podSnapshot) deploymentOf(pod *corev1.Pod) *appsv1.Deployment {
	selecting := filtered(s.deployments[pod.Namespace], func(deployment *appsv1.Deployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels))
	})
	if len(selecting) != 1 {
		return nil
	}
	return selecting[0]
}

// allowsSurge reports whether the strategy allows a surge, by the rule of the Deployment
// controller. Percentages round up.
//
// The function of the controller cannot be imported here; test/integration/nodemaintenance checks
// that both agree.
func allowsSurge(deployment *appsv1.Deployment) bool {
	strategy := &deployment.Spec.Strategy
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || strategy.RollingUpdate == nil {
		return false
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(strategy.RollingUpdate.MaxSurge, int(ptr.Deref(deployment.Spec.Replicas, 1)), true)
	return err == nil && surge > 0
}

// leavesAlone reports whether the StatefulSet or the Deployment of a pod lets its pods leave one after another. Whether
// its controller does so depends on a feature gate that kubectl cannot read, but pods name it only
// if they were created with the gate.
func (s *podSnapshot) leavesAlone(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	if pod.DeletionTimestamp != nil || !podutils.IsPodReady(pod) || s.isGrouped(pod) {
		return false
	}
	own, paced := s.pacedLimit(pod)
	if !paced {
		return false
	}
	if len(budgets) == 1 {
		if permitted, known := poddisruptionbudget.Permitted(budgets[0]); known {
			return permitted <= 1
		}
	}
	return own <= 1
}

// pacedLimit reports whether the pods of the workload of a pod wait for each other, and how many of them may be
// unavailable at a time if no budget says so.
func (s *podSnapshot) pacedLimit(pod *corev1.Pod) (pods int, paced bool) {
	if deployment := s.deploymentOf(pod); deployment != nil && s.awaitsSurge(pod) {
		if update := deployment.Spec.Strategy.RollingUpdate; update != nil {
			return scaledOr1(update.MaxUnavailable, deployment.Spec.Replicas), isPacedDeployment(deployment)
		}
		return 1, isPacedDeployment(deployment)
	}
	set := s.statefulSetOf(pod)
	if set == nil || !isPacedSet(set) || !slices.Contains(evictioninterceptor.Targets(pod), coordinationv1alpha1.EvictionInterceptorStatefulSet) {
		return 0, false
	}
	if update := set.Spec.UpdateStrategy.RollingUpdate; update != nil && set.Spec.Replicas != nil {
		return scaledOr1(update.MaxUnavailable, set.Spec.Replicas), true
	}
	return 1, true
}

// scaledOr1 returns how many of the replicas may be unavailable: one, if that is not said.
func scaledOr1(maxUnavailable *intstr.IntOrString, replicas *int32) int {
	limit, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(maxUnavailable, ptr.To(intstr.FromInt32(1))), int(ptr.Deref(replicas, 1)), false)
	if err != nil {
		return 1
	}
	return limit
}

// statefulSetOf returns the StatefulSet that controls the pod, or nil if there is none, or it is unknown.
func (s *podSnapshot) statefulSetOf(pod *corev1.Pod) *appsv1.StatefulSet {
	own, owned := s.workloadOf(pod)
	if !owned {
		return nil
	}
	return s.workloads.statefulSets[own]
}

// isOfPacedSet reports whether a pod is of a StatefulSet whose pods wait for each other.
func (s *podSnapshot) isOfPacedSet(pod *corev1.Pod) bool {
	_, paced := s.pacedLimit(pod)
	return paced && s.statefulSetOf(pod) != nil
}

// isPacedDeployment reports whether pods of the Deployment wait for each other if they name it, by the rule of its
// controller.
func isPacedDeployment(deployment *appsv1.Deployment) bool {
	return deployment.DeletionTimestamp == nil && deployment.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType &&
		!allowsSurge(deployment) && ptr.Deref(deployment.Spec.Replicas, 1) > 1 &&
		!evictioninterceptor.IsPacingDisabled(deployment.Annotations, evictioninterceptor.DeploymentPacingAnnotation)
}

// isPacedSet reports whether pods of the StatefulSet wait for each other if they name it.
func isPacedSet(set *appsv1.StatefulSet) bool {
	return set.DeletionTimestamp == nil && set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		!evictioninterceptor.IsPacingDisabled(set.Annotations, coordinationv1alpha1.EvictionPacingAnnotation)
}

// refusalOf says why the API server would not evict the pod now, under the budgets that select it;
// empty if it would.
func refusalOf(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	applicable := poddisruptionbudget.Applicable(pod, budgets)
	switch {
	case poddisruptionbudget.AllowEviction(pod, podutils.IsPodReady(pod), budgets):
		return ""
	case len(applicable) > 1:
		return fmt.Sprintf("%d PodDisruptionBudgets select it, and the API server does not evict such pods: %s", len(applicable), strings.Join(budgetNames(applicable), ", "))
	}
	budget := applicable[0]
	name, status := budget.Namespace+"/"+budget.Name, &budget.Status
	why := poddisruptionbudget.WhyNever(budget)
	switch {
	case why != "":
		return fmt.Sprintf("PodDisruptionBudget %s %s", name, why)
	case status.ObservedGeneration < budget.Generation:
		return fmt.Sprintf("PodDisruptionBudget %s is not processed yet", name)
	}
	text := fmt.Sprintf("PodDisruptionBudget %s allows no disruption: %d of %d healthy pods are needed", name, status.DesiredHealthy, status.CurrentHealthy)
	if !podutils.IsPodReady(pod) { // With the policy, it would not be refused.
		text += "; the pod is not ready: unhealthyPodEvictionPolicy AlwaysAllow lets such pods go"
	}
	return text
}

func budgetNames(budgets []*policyv1.PodDisruptionBudget) []string {
	return mapped(budgets, func(budget *policyv1.PodDisruptionBudget) string { return budget.Namespace + "/" + budget.Name })
}

// responderSupport is what is known about whether responders (spec.evictionResponders) act. They do if the server serves
// lifecycle.k8s.io and kube-controller-manager has the feature gate LifecycleEvictions, which kubectl cannot read.
type responderSupport string

const (
	// respondersIfGate: the server serves their API group, so all depends on the gate.
	respondersIfGate responderSupport = "IfFeatureGateEnabled"
	// respondersNotServed: it does not, so they do not act.
	respondersNotServed responderSupport = "NotServed"
	// respondersUnknown: the user may not ask the server what it serves.
	respondersUnknown responderSupport = "Unknown"
)

// readResponders asks the server whether it serves the API of responders, if a pod has some.
func (s *podSnapshot) readResponders(_ context.Context, client kubernetes.Interface) error {
	if !s.anyPod(func(pod *corev1.Pod) bool { return len(pod.Spec.EvictionResponders) > 0 }) {
		return nil
	}
	version := lifecyclev1alpha1.SchemeGroupVersion.String()
	_, err := client.Discovery().ServerResourcesForGroupVersion(version)
	switch {
	case err == nil:
		s.responders = respondersIfGate
	case apierrors.IsNotFound(err):
		s.responders = respondersNotServed
	case apierrors.IsForbidden(err):
		s.responders = respondersUnknown
	default:
		return fmt.Errorf("asking the server whether it serves %s: %w", version, err)
	}
	return nil
}

// targetsOf returns the interceptors of a pod, with the responders that act, in the order in which they do.
func (s *podSnapshot) targetsOf(pod *corev1.Pod) []string {
	switch {
	case s.isGrouped(pod):
		return evictioninterceptor.TargetNames(nil, nil, evictionrequest.DefaultInterceptors(pod)) // Those that it names never act.
	case s.responders == respondersNotServed:
		return evictioninterceptor.Targets(pod)
	}
	return evictioninterceptor.AllTargets(pod)
}

// setResponders says which responders of the pod do not act, after its interceptors are known.
func (p *podPlan) setResponders(pod *corev1.Pod) {
	sorted := slices.SortedStableFunc(slices.Values(pod.Spec.EvictionResponders), func(a, b corev1.EvictionResponder) int {
		return evictioninterceptor.CompareResponders(a.Name, a.Priority, b.Name, b.Priority)
	})
	for _, responder := range sorted {
		if !slices.Contains(p.Interceptors, responder.Name) {
			p.IdleResponders = append(p.IdleResponders, responder.Name)
		}
	}
}
