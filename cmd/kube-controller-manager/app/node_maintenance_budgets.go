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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/features"
)

// servesBudgets reports whether there are NodeMaintenanceBudgets: the gate is on here, and in
// kube-apiserver. An error means that this is not known.
func servesBudgets(ctx context.Context, client kubernetes.Interface) (bool, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) {
		return false, nil
	}
	version := coordinationv1alpha1.SchemeGroupVersion.String()
	listed, err := client.Discovery().ServerResourcesForGroupVersion(version)
	served := err == nil && slices.ContainsFunc(listed.APIResources, func(r metav1.APIResource) bool { return r.Name == "nodemaintenancebudgets" })
	if apierrors.IsForbidden(err) {
		// Retries would get the same answer. What matters is whether there can be a cache of budgets.
		_, err = client.CoordinationV1alpha1().NodeMaintenanceBudgets().List(ctx, metav1.ListOptions{Limit: 1})
		served = err == nil
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("asking kube-apiserver whether it serves NodeMaintenanceBudgets: %w", err)
	}
	if !served {
		klog.FromContext(ctx).Info("Maintenances with a rollout begin with no node: kube-apiserver does not serve NodeMaintenanceBudgets. Enable the feature gate there, and restart this process",
			"featureGate", features.NodeMaintenanceBudgets, "apiVersion", version)
	}
	return served, nil
}

// runWhenBudgetsKnown creates and runs the controller when it is known whether budgets are served. Until
// then, each guess could be wrong: a cache of what is not served never syncs, so that no node would ever
// be drained, and without the cache a freeze would be ignored. Other controllers do not wait.
func runWhenBudgetsKnown(ctx context.Context, controllerContext ControllerContext, client kubernetes.Interface, create func(served bool) (*nodemaintenance.Controller, error)) {
	served, err := awaitAnswer(ctx, "No NodeMaintenance is reconciled yet, will retry", func(ctx context.Context) (bool, error) { return servesBudgets(ctx, client) })
	if err != nil {
		return
	}
	controller, err := create(served)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "No NodeMaintenance is reconciled")
		return
	}
	// The others were started before.
	controllerContext.InformerFactory.StartWithContext(ctx)
	controller.Run(ctx, concurrentNodeMaintenanceSyncs)
}

// fleetInformers returns what the gate NodeMaintenanceBudgets needs, or nil if budgets are not served.
func fleetInformers(controllerContext ControllerContext, served bool) *nodemaintenance.FleetInformers {
	if !served {
		return nil
	}
	return &nodemaintenance.FleetInformers{
		Budgets:    controllerContext.InformerFactory.Coordination().V1alpha1().NodeMaintenanceBudgets(),
		DaemonSets: controllerContext.InformerFactory.Apps().V1().DaemonSets(),
		Namespaces: controllerContext.InformerFactory.Core().V1().Namespaces(),

		VolumeAttachments: controllerContext.InformerFactory.Storage().V1().VolumeAttachments(),
		Claims:            controllerContext.InformerFactory.Core().V1().PersistentVolumeClaims(),
	}
}
