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

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/utils/ptr"
)

// readDeployments reads the Deployments of all namespaces, if one of them would start a
// replacement. Other plans do not need the permission.
func (s *podSnapshot) readDeployments(ctx context.Context, client kubernetes.Interface) error {
	if !s.anyPod(s.awaitsSurge) {
		return nil
	}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if s.skip("deployments", err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing deployments: %w", err)
	}
	s.setDeployments(pointers(deployments.Items))
	return nil
}

func (s *podSnapshot) setDeployments(deployments []*appsv1.Deployment) {
	s.deployments = map[string][]*appsv1.Deployment{}
	for _, deployment := range deployments {
		s.deployments[deployment.Namespace] = append(s.deployments[deployment.Namespace], deployment)
	}
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
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || pod.DeletionTimestamp != nil || s.isGrouped(pod) {
		return false
	}
	request := s.requests[string(pod.UID)]
	if request == nil || evictionrequest.IsFinished(request.Status.Conditions) || len(request.Status.TargetInterceptors) == 0 {
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
	var found *appsv1.Deployment
	for _, deployment := range s.deployments[pod.Namespace] {
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if found != nil {
			return nil
		}
		found = deployment
	}
	return found
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
