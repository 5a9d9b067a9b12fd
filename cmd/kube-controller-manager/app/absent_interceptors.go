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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

// absentInterceptors returns what takes the turns of the workload controllers where their
// gate is off: pods that were created while it was on still name them, for as long as they
// live, and would wait for them until the deadline. It says so in the request, and the
// next one gets its turn.
func absentInterceptors(client kubernetes.Interface, requests coordinationinformers.EvictionRequestInformer) ([]runInterceptor, error) {
	if utilfeature.DefaultFeatureGate.Enabled(features.DeploymentPodSurge) {
		return nil, nil
	}
	var runs []runInterceptor
	for _, name := range []string{coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet} {
		interceptor, err := evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
			Client:   client,
			Name:     name,
			Handle:   declineWithout(features.DeploymentPodSurge),
			Informer: requests,
		})
		if err != nil {
			return nil, fmt.Errorf("creating the stand-in for interceptor %s: %w", name, err)
		}
		runs = append(runs, func(ctx context.Context) {
			if err := interceptor.Run(ctx); err != nil {
				utilruntime.HandleErrorWithContext(ctx, err, "Nobody stands in for an interceptor", "interceptor", name)
			}
		})
	}
	return runs, nil
}

func declineWithout(gate featuregate.Feature) evictionrequest.Handler {
	return func(context.Context, *evictionrequest.Turn) error {
		return evictionrequest.Decline(fmt.Sprintf("The feature gate %s of the kube-controller-manager is off.", gate))
	}
}
