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
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
)

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
func (s *podSnapshot) readResponders(client kubernetes.Interface) error {
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

// respondersText says on what it depends that responders act; empty if the plan has none.
func (p *plan) respondersText() string {
	const served = "lifecycle.k8s.io/v1alpha1"
	switch p.Responders {
	case respondersIfGate:
		return "If the feature gate LifecycleEvictions is off in kube-controller-manager, responders (spec.evictionResponders) do not act."
	case respondersNotServed:
		return fmt.Sprintf("Responders (spec.evictionResponders) do not act: the server does not serve %s. Enable it, and the feature gate "+
			"LifecycleEvictions, or let \"kubectl maintenance convert\" make interceptors of them.", served)
	case respondersUnknown:
		return fmt.Sprintf("If the server does not serve %s, which you may not ask it, or the feature gate LifecycleEvictions is off in "+
			"kube-controller-manager, responders (spec.evictionResponders) do not act.", served)
	}
	return ""
}
