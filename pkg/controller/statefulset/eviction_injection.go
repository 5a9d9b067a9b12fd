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

package statefulset

import (
	"context"
	"strings"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
)

// interceptedPods adds the StatefulSet controller to the eviction interceptors of new pods if
// their evictions are paced. All other calls are passed through.
type interceptedPods struct {
	StatefulPodControlObjectManager
	creator  *evictioninterceptor.Creator
	recorder record.EventRecorder
}

// CreatePod adds the interceptor to the pod and not to the template of the set: a changed template
// would be a new revision and would be rolled out.
func (m interceptedPods) CreatePod(ctx context.Context, pod *v1.Pod, set *apps.StatefulSet) error {
	if !isPaced(set) {
		return m.StatefulPodControlObjectManager.CreatePod(ctx, pod, set)
	}
	create := func(template *v1.PodTemplateSpec) error {
		created := *pod
		created.Spec = template.Spec
		return m.StatefulPodControlObjectManager.CreatePod(ctx, &created, set)
	}
	template := v1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	leftOut := func(reason string) {
		m.recorder.Eventf(set, v1.EventTypeWarning, EvictionInterceptorsLeftOutReason,
			"Pod %s was created without %s, and its eviction does not wait for other pods: %s", pod.Name, coordinationv1alpha1.EvictionInterceptorStatefulSet, reason)
	}
	return m.creator.Create(set.UID, &template, create, leftOut, coordinationv1alpha1.EvictionInterceptorStatefulSet)
}

// observedPods tells the pacer which pods, and which of their claims, could not be created. All other calls are passed
// through.
type observedPods struct {
	StatefulPodControlObjectManager
	created func(set *apps.StatefulSet, pod string, err error)
}

// CreatePod tells whether the pod was created.
func (m observedPods) CreatePod(ctx context.Context, pod *v1.Pod, set *apps.StatefulSet) error {
	err := m.StatefulPodControlObjectManager.CreatePod(ctx, pod, set)
	m.created(set, pod.Name, err)
	return err
}

// CreateClaim tells that a pod is not created, because a claim of it was not.
func (m observedPods) CreateClaim(claim *v1.PersistentVolumeClaim, set *apps.StatefulSet) error {
	err := m.StatefulPodControlObjectManager.CreateClaim(claim, set)
	if err == nil {
		return nil
	}
	for _, template := range set.Spec.VolumeClaimTemplates {
		if pod, found := strings.CutPrefix(claim.Name, template.Name+"-"); found {
			m.created(set, pod, err)
			break
		}
	}
	return err
}

// isPaced reports whether the pods of a StatefulSet are evicted one after another. A single pod
// waits for no other, and with OnDelete the user alone decides which pods are replaced.
func isPaced(set *apps.StatefulSet) bool {
	return replicasOf(set) > 1 && set.Spec.UpdateStrategy.Type == apps.RollingUpdateStatefulSetStrategyType && !isPacingDisabled(set)
}

// isPacingDisabled reports whether the owner of a StatefulSet has opted out. The annotation is read
// at each decision, so it also applies to pods that list the interceptor.
func isPacingDisabled(set *apps.StatefulSet) bool {
	return evictioninterceptor.IsPacingDisabled(set.Annotations, coordinationv1alpha1.EvictionPacingAnnotation)
}
