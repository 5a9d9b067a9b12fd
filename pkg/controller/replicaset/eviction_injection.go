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
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// interceptedPodControl adds the Deployment and the ReplicaSet controller to the eviction
// interceptors of new pods if the Deployment can surge, or lets its pods leave one after another. For
// other pods, the two controllers could do nothing that a plain eviction does not do.
type interceptedPodControl struct {
	controller.PodControlInterface
	deploymentLister appslisters.DeploymentLister
	creator          *evictioninterceptor.Creator
	recorder         record.EventRecorder
	podLister        corelisters.PodLister
	requestLister    coordinationlisters.EvictionRequestLister
}

// eventInterceptorsLeftOut: a pod was created without its controllers as interceptors.
const eventInterceptorsLeftOut = "EvictionInterceptorsLeftOut"

// CreatePods adds the interceptors to the pods and not to the template: a template that differs
// from that of the Deployment would be rolled out.
func (c interceptedPodControl) CreatePods(ctx context.Context, namespace string, template *v1.PodTemplateSpec, object runtime.Object, controllerRef *metav1.OwnerReference) error {
	create := func(template *v1.PodTemplateSpec) error {
		return c.PodControlInterface.CreatePods(ctx, namespace, template, object, controllerRef)
	}
	rs, ok := object.(*apps.ReplicaSet)
	if !ok {
		return create(template)
	}
	deployment := deploymentOf(c.deploymentLister, rs)
	if deployment == nil || deploymentutil.MaxSurge(*deployment) == 0 && !deploymentutil.PacesEvictions(deployment) {
		return create(template)
	}
	leftOut := func(reason string) {
		// Users look at the Deployment first.
		c.recorder.Eventf(deployment, v1.EventTypeWarning, eventInterceptorsLeftOut,
			"Pods of ReplicaSet %s are created without %s and %s, and are neither replaced before their eviction nor evicted one after another: %s",
			rs.Name, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet, reason)
	}
	return c.creator.Create(rs.UID, template, create, leftOut, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)
}

// isAppsKind reports whether an owner is of this kind in the group apps, in any version.
func isAppsKind(ref *metav1.OwnerReference, kind string) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == schema.GroupKind{Group: apps.GroupName, Kind: kind}
}
