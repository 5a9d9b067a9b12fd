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

package pod

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// dropDisabledEvictionInterceptors clears the field while its gate is off, unless
// the stored object has it already: an object must stay writable after a rollback.
func dropDisabledEvictionInterceptors(podSpec, oldPodSpec *api.PodSpec) {
	if utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) || evictionInterceptorsInUse(oldPodSpec) {
		return
	}
	podSpec.EvictionInterceptors = nil
}

func evictionInterceptorsInUse(podSpec *api.PodSpec) bool {
	return podSpec != nil && len(podSpec.EvictionInterceptors) > 0
}

// KeepEvictionInterceptors keeps the interceptors of a pod where an update omits them, with a warning: the list is
// immutable, and clients that are built with other types than ours drop it when they replace a pod.
func KeepEvictionInterceptors(ctx context.Context, pod, oldPod *api.Pod) {
	keepEvictionInterceptors(ctx, &pod.Spec, &oldPod.Spec, "spec.evictionInterceptors", "the list of a pod is immutable")
}

// KeepEvictionInterceptorsOfJob does the same for the pod template of a Job. That is immutable, too, but for what a
// suspended Job may change of it, of which its interceptors are no part.
func KeepEvictionInterceptorsOfJob(ctx context.Context, template, oldTemplate *api.PodTemplateSpec) {
	keepEvictionInterceptors(ctx, &template.Spec, &oldTemplate.Spec, "spec.template.spec.evictionInterceptors", "the template of a Job is immutable")
}

func keepEvictionInterceptors(ctx context.Context, podSpec, oldPodSpec *api.PodSpec, path, reason string) {
	if len(podSpec.EvictionInterceptors) > 0 || !evictionInterceptorsInUse(oldPodSpec) {
		return
	}
	podSpec.EvictionInterceptors = slices.Clone(oldPodSpec.EvictionInterceptors)
	warning.AddWarning(ctx, "", fmt.Sprintf("%s: kept, although the update omits it, because %s: use a patch, or a client that knows the field", path, reason))
}

// warningsForEvictionInterceptors warns of what the author of a pod template may not expect of its interceptors.
func warningsForEvictionInterceptors(fieldPath *field.Path, podSpec *api.PodSpec, meta *metav1.ObjectMeta, oldPodSpec *api.PodSpec) []string {
	warnings := warningsForDroppedEvictionInterceptors(fieldPath, podSpec, oldPodSpec)
	return append(warnings, warningsForCrowdedEvictionInterceptors(fieldPath, podSpec, meta)...)
}

// warningsForCrowdedEvictionInterceptors warns if a template leaves no room for the names that the controllers of
// workloads add to its pods.
func warningsForCrowdedEvictionInterceptors(fieldPath *field.Path, podSpec *api.PodSpec, meta *metav1.ObjectMeta) []string {
	if fieldPath == nil || meta == nil || !utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) {
		return nil // Nothing is added to the names of a pod that is created as such.
	}
	names := make([]v1.EvictionInterceptor, 0, len(podSpec.EvictionInterceptors))
	for _, interceptor := range podSpec.EvictionInterceptors {
		names = append(names, v1.EvictionInterceptor{Name: interceptor.Name})
	}
	count := evictioninterceptor.CountOnPod(names, meta.Annotations)
	kinds := "Deployments and StatefulSets"
	switch free := evictioninterceptor.MaxOnPod - count; {
	case free >= namesOfDeployment:
		return nil
	case free > 0:
		kinds = "Deployments"
	}
	return []string{fmt.Sprintf("%s: with %d interceptors, new pods have no room for those of the controllers of %s, because a pod has at most %d: "+
		"they are neither replaced before their eviction nor evicted one after another; name at most %d",
		fieldPath.Child("spec", "evictionInterceptors"), count, kinds, evictioninterceptor.MaxOnPod, evictioninterceptor.MaxOnPod-namesOfDeployment)}
}

// namesOfDeployment is how many names are added to the pods of a Deployment: its own and that of its ReplicaSet. A
// StatefulSet adds one.
const namesOfDeployment = 2

// warningsForDroppedEvictionInterceptors warns if an update of a template drops interceptors. Its pods are replaced by
// some without them, which is often not intended.
func warningsForDroppedEvictionInterceptors(fieldPath *field.Path, podSpec, oldPodSpec *api.PodSpec) []string {
	if len(podSpec.EvictionInterceptors) > 0 || !evictionInterceptorsInUse(oldPodSpec) {
		return nil
	}
	var names []string
	for _, interceptor := range oldPodSpec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	return []string{fmt.Sprintf("%s: the update removes the interceptors %s, and new pods have none of them: if that is not intended, the client does not know the field; "+
		"annotations of the template, which register interceptors as well, are kept by all clients",
		fieldPath.Child("spec", "evictionInterceptors"), strings.Join(names, ", "))}
}
