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

package evictionrequest

import (
	"context"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationapiv1alpha1 "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	"k8s.io/kubernetes/pkg/features"
)

// TargetReader returns the pod of this name in the namespace of the context as it is stored, or nil if
// there is none.
type TargetReader func(ctx context.Context, name string) (*v1.Pod, error)

// initialize copies the labels of the pod to its new request, so that interceptors which select requests
// see them from the beginning. If nobody but the built-in interceptor has to do with the pod, it also
// records that this one is active: together that is two writes less for each pod of a drain. The turn of
// another interceptor begins when the controller says so, which then watches its deadline.
//
// It leaves to the controller what is not the usual case: a pod that is missing, that has finished, or
// that cannot be read. Of one that is part of a scheduling group, it copies the labels.
func (s *strategy) initialize(ctx context.Context, request *coordination.EvictionRequest) {
	target := request.Spec.Target.Pod
	if s.targets == nil || target == nil || target.Name == "" {
		return
	}
	pod, err := s.targets(ctx, target.Name)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The interceptors of a new request are left to the controller, because its pod could not be read",
			"evictionRequest", klog.KObj(request), "pod", target.Name, "err", err)
		return
	}
	if pod == nil || string(pod.UID) != target.UID || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		return
	}
	for key, value := range evictioninterceptor.MissingLabels(request.Labels, pod.Labels) {
		metav1.SetMetaDataLabel(&request.ObjectMeta, key, value)
	}
	targets := evictioninterceptor.Targets(pod)
	if len(targets) > 1 || hasResponders(pod) || pod.Spec.SchedulingGroup != nil {
		return
	}
	status := coordinationv1alpha1.EvictionRequestStatus{ObservedGeneration: request.Generation}
	evictioninterceptor.Initialize(&status, targets, metav1.Time{Time: StatusStrategy.Clock.Now().Truncate(time.Second)})
	if err := coordinationapiv1alpha1.Convert_v1alpha1_EvictionRequestStatus_To_coordination_EvictionRequestStatus(&status, &request.Status, nil); err != nil {
		request.Status = coordination.EvictionRequestStatus{}
		return
	}
}

// hasResponders reports whether responders of lifecycle.k8s.io act for the pod.
func hasResponders(pod *v1.Pod) bool {
	return len(pod.Spec.EvictionResponders) > 0 && utilfeature.DefaultFeatureGate.Enabled(features.LifecycleEvictions)
}
