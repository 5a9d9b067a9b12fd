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

package replicaset

import (
	"context"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// interceptedPodControl adds the Deployment and the ReplicaSet controller to the eviction
// interceptors of new pods if the Deployment can surge. For other pods, the two controllers could
// do nothing that a plain eviction does not do.
type interceptedPodControl struct {
	controller.PodControlInterface
	deploymentLister appslisters.DeploymentLister
	creator          *evictioninterceptor.Creator
}

// CreatePods adds the interceptors to the pods and not to the template: a template that differs
// from that of the Deployment would be rolled out.
func (c interceptedPodControl) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error {
	create := func(template *v1.PodTemplateSpec) error {
		return c.PodControlInterface.CreatePods(ctx, namespace, template, object, controllerRef)
	}
	if rs, ok := object.(*apps.ReplicaSet); ok && c.canSurge(rs) {
		return c.creator.Create(rs.UID, template, create, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	}
	return create(template)
}

// canSurge reports whether the ReplicaSet is controlled by a Deployment with a positive maxSurge.
func (c interceptedPodControl) canSurge(rs *apps.ReplicaSet) bool {
	deployment := deploymentOf(c.deploymentLister, rs)
	return deployment != nil && deploymentutil.MaxSurge(*deployment) > 0
}

// isAppsKind reports whether an owner is of this kind in the group apps, in any version.
func isAppsKind(ref *metav1.OwnerReference, kind string) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == schema.GroupKind{Group: apps.GroupName, Kind: kind}
}
