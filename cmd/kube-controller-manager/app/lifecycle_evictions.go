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

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"
)

// concurrentLifecycleEvictionSyncs is the number of pods about which objects are brought into agreement at a time.
const concurrentLifecycleEvictionSyncs = 20

func newLifecycleEvictionControllerDescriptor() *ControllerDescriptor {
	return &ControllerDescriptor{
		name:                 names.LifecycleEvictionController,
		constructor:          newLifecycleEvictionController,
		requiredFeatureGates: []featuregate.Feature{features.EvictionRequestAPI, features.LifecycleEvictions},
	}
}

func newLifecycleEvictionController(ctx context.Context, controllerContext ControllerContext, controllerName string) (Controller, error) {
	// Times in statuses have to be those of the server.
	now := serverclock.New(clock.RealClock{})
	client, err := newEvictionClient(controllerContext, controllerName, now.Transport)
	if err != nil {
		return nil, err
	}
	return newControllerLoop(func(ctx context.Context) {
		if !isServed(ctx, controllerContext, client) {
			return
		}
		informers := controllerContext.InformerFactory
		controller, err := lifecycleeviction.New(client,
			informers.Lifecycle().V1alpha1().EvictionRequests(), informers.Lifecycle().V1alpha1().Evictions(),
			informers.Coordination().V1alpha1().EvictionRequests(), informers.Core().V1().Pods(), now)
		if err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "EvictionRequests of lifecycle.k8s.io have no effect")
			return
		}
		// The others were started before.
		informers.StartWithContext(ctx)
		controller.Run(ctx, concurrentLifecycleEvictionSyncs)
	}, controllerName), nil
}

// respondersAct reports whether responders of pods act: the gate is on, and they can report, because the controller of
// Evictions runs. It returns false if the context is canceled before that is known.
func respondersAct(ctx context.Context, controllerContext ControllerContext, client kubernetes.Interface) bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.LifecycleEvictions) &&
		controllerContext.IsControllerEnabled(newLifecycleEvictionControllerDescriptor()) && isServed(ctx, controllerContext, client)
}

// served has what awaitServed has returned, by the informers of a process. While kube-apiservers are restarted with other
// flags, they answer differently: the engine must not wait for a controller that has heard the other answer.
var served sync.Map

// isServed is awaitServed with one answer for all controllers.
func isServed(ctx context.Context, controllerContext ControllerContext, client kubernetes.Interface) bool {
	ask, _ := served.LoadOrStore(controllerContext.InformerFactory, sync.OnceValue(func() bool { return awaitServed(ctx, client) }))
	return ask.(func() bool)()
}

// awaitServed asks until it is known whether kube-apiserver serves lifecycle.k8s.io. A cache of what is not served would
// never sync, and responders that cannot report would hold up each pod until they time out.
func awaitServed(ctx context.Context, client kubernetes.Interface) bool {
	served, err := awaitAnswer(ctx, "Responders do not act yet, will retry", func(ctx context.Context) (bool, error) {
		version := lifecyclev1alpha1.SchemeGroupVersion.String()
		_, err := client.Discovery().ServerResourcesForGroupVersion(version)
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			klog.FromContext(ctx).Info("Responders do not act: kube-apiserver does not serve their API group. Enable it there, and restart this process",
				"featureGate", features.LifecycleEvictions, "apiVersion", version)
			return false, nil
		}
		return false, fmt.Errorf("asking kube-apiserver whether it serves %s: %w", version, err)
	})
	return err == nil && served
}
