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

package app

import (
	"context"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/features"
)

// unservedInterceptors returns the interceptors that nobody runs and that have no stand-in, with the reason: drains
// leave their pods. watch keeps them up to date while kube-apiserver may lack a gate. reviewer may ask what others may
// do.
func unservedInterceptors(controllerContext ControllerContext, reviewer kubernetes.Interface) (absences *nodemaintenance.Absences, watch runInterceptor, err error) {
	const name, gate = coordinationv1alpha1.EvictionInterceptorDaemonSet, features.NodeMaintenanceAwareDaemonSet
	absences = nodemaintenance.NewAbsences(nil)
	kubelets := watchKubelets(absences, reviewer, controllerContext.InformerFactory.Core().V1().Nodes().Lister())
	switch {
	case !utilfeature.DefaultFeatureGate.Enabled(gate):
		absences.Set(name, nodemaintenance.Absence{Why: fmt.Sprintf("feature gate %s of the kube-controller-manager is off", gate)})
		return absences, kubelets, nil
	case !controllerContext.IsControllerEnabled(NewControllerDescriptors()[names.DaemonSetController]):
		why := fmt.Sprintf("%s is disabled by --controllers of the kube-controller-manager", names.DaemonSetController)
		absences.Set(name, nodemaintenance.Absence{Why: why, MaybeElsewhere: true})
		return absences, kubelets, nil
	}
	own, err := newEvictionClient(controllerContext, "daemon-set-controller")
	if err != nil {
		return nil, nil, err
	}
	return absences, bothOf(watchDaemonSets(absences, own), kubelets), nil
}

// bothOf runs both until the context is canceled.
func bothOf(first, second runInterceptor) runInterceptor {
	return func(ctx context.Context) {
		var running sync.WaitGroup
		running.Go(func() { first(ctx) })
		second(ctx)
		running.Wait()
	}
}

// watchDaemonSets records the absence of the DaemonSet controller while the API server denies its client to report.
func watchDaemonSets(absences *nodemaintenance.Absences, client kubernetes.Interface) runInterceptor {
	const name = coordinationv1alpha1.EvictionInterceptorDaemonSet
	return func(ctx context.Context) {
		absentUntilAllowed(ctx, absences, name, features.NodeMaintenanceAwareDaemonSet, func(ctx context.Context) (bool, error) {
			return mayReport(ctx, client, name)
		})
	}
}

// watchKubelets records the absence of the kubelets while the API server would deny them to report, although they
// declare that they stop static pods: its gate is off. It asks for the first node with such a kubelet, because all of
// them have the same permission.
func watchKubelets(absences *nodemaintenance.Absences, client kubernetes.Interface, nodes corelisters.NodeLister) runInterceptor {
	return func(ctx context.Context) {
		node := ""
		if wait.PollUntilContextCancel(ctx, permissionCheckInterval, true, func(context.Context) (bool, error) {
			node = declaringNode(nodes)
			return node != "", nil
		}) != nil {
			return
		}
		absentUntilAllowed(ctx, absences, coordinationv1alpha1.EvictionInterceptorKubelet, features.NodeMaintenanceAwareKubelet, func(ctx context.Context) (bool, error) {
			return mayKubeletReport(ctx, client, node)
		})
	}
}

// declaringNode returns the name of a node whose kubelet stops static pods, or "" if there is none.
func declaringNode(nodes corelisters.NodeLister) string {
	all, err := nodes.List(labels.Everything())
	if err != nil {
		return "" // The lister of a cache returns no error.
	}
	for _, node := range all {
		if maintenance.StopsStaticPods(node) {
			return node.Name
		}
	}
	return ""
}

// absentUntilAllowed records the absence of an interceptor until the API server allows it to report.
func absentUntilAllowed(ctx context.Context, absences *nodemaintenance.Absences, name string, gate featuregate.Feature, ask func(context.Context) (bool, error)) {
	if untilAllowed(ctx, name, ask, func() {
		absences.Set(name, nodemaintenance.Absence{Why: fmt.Sprintf("feature gate %s of the kube-apiserver is off", gate)})
	}) {
		absences.Clear(name)
	}
}

// mayKubeletReport asks the API server whether the kubelet of a node may change the fields of its interceptor. Which
// requests it may write depends on its pods, and is not asked.
func mayKubeletReport(ctx context.Context, client kubernetes.Interface, node string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:node:" + node, Groups: []string{user.NodesGroup, user.AllAuthenticated},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: coordinationv1alpha1.EvictionInterceptVerb, Group: coordinationv1alpha1.GroupName,
			Resource: coordinationv1alpha1.EvictionInterceptorResource, Name: coordinationv1alpha1.EvictionInterceptorKubelet,
		},
	}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("checking the permissions of the kubelet of node %s: %w", node, err)
	}
	return answer.Status.Allowed, nil
}
