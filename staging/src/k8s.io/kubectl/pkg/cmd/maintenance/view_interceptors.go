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
	"slices"
	"strconv"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/maintenance"
)

// interceptorsOf returns the interceptors of the pod in the order in which they would act: those of
// the spec, those registered by annotation, the one of its pod type, and the one that evicts.
//
// Annotations come after the whole spec, also after the interceptors that controllers have added to
// it. Annotations of a pod template may precede those: then they are in the spec of its pods.
//
// The server uses pkg/util/evictioninterceptor, which this package cannot import;
// test/integration/nodemaintenance checks that both agree. Pods that were created before the
// validation may have more interceptors than a request can have: this returns all of them.
func interceptorsOf(pod *corev1.Pod) []string {
	var names []string
	for _, interceptor := range pod.Spec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	for _, registered := range registrationsOf(pod.Annotations) {
		names = append(names, registered.name)
	}
	switch maintenance.PodTypeOf(pod) {
	case corev1.PodTypeDaemonSet:
		names = append(names, coordinationv1alpha1.EvictionInterceptorDaemonSet)
	case corev1.PodTypeStatic:
		names = append(names, coordinationv1alpha1.EvictionInterceptorKubelet)
	}
	last := coordinationv1alpha1.EvictionInterceptorImperative
	names = slices.DeleteFunc(names, func(name string) bool { return name == last })
	return append(unique(names), last)
}

type registration struct {
	name     string
	priority uint64
}

// registrationsOf returns the valid registrations, the highest priority first. Of several
// controllers, only the first by name counts.
func registrationsOf(annotations map[string]string) []registration {
	var valid, controllers []registration
	for key, value := range annotations {
		name, registers := strings.CutPrefix(key, coordinationv1alpha1.EvictionInterceptorAnnotationPrefix)
		if !registers || !isInterceptorName(name) {
			continue
		}
		digits, role, hasRole := strings.Cut(value, "/")
		priority, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || priority > coordinationv1alpha1.EvictionInterceptorMaxPriority || hasRole && (role == "" || len(validation.IsValidLabelValue(role)) > 0) {
			continue
		}
		switch {
		case role != coordinationv1alpha1.EvictionInterceptorControllerRole:
			valid = append(valid, registration{name, priority})
		case priority == coordinationv1alpha1.EvictionInterceptorControllerPriority:
			controllers = append(controllers, registration{name, priority})
		}
	}
	byName := func(a, b registration) int { return cmp.Compare(a.name, b.name) }
	slices.SortFunc(controllers, byName)
	valid = append(valid, controllers[:min(1, len(controllers))]...)
	slices.SortFunc(valid, func(a, b registration) int { return cmp.Or(cmp.Compare(b.priority, a.priority), byName(a, b)) })
	return valid
}

// kubernetesInterceptors are the names in the domain of Kubernetes that a pod may list.
var kubernetesInterceptors = []string{
	coordinationv1alpha1.EvictionInterceptorDaemonSet,
	coordinationv1alpha1.EvictionInterceptorDeployment,
	"horizontalpodautoscaler.autoscaling.k8s.io",
	coordinationv1alpha1.EvictionInterceptorKubelet,
	coordinationv1alpha1.EvictionInterceptorReplicaSet,
	coordinationv1alpha1.EvictionInterceptorStatefulSet,
}

func isInterceptorName(name string) bool {
	if strings.HasSuffix(name, ".") || len(validation.IsFullyQualifiedDomainName(field.NewPath("name"), name)) > 0 {
		return false
	}
	return !strings.HasSuffix("."+name, ".k8s.io") || slices.Contains(kubernetesInterceptors, name)
}
