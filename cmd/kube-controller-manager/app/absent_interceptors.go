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
	"errors"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// rightsCheckInterval is how often a controller that lacks its rights is checked again.
	rightsCheckInterval = 15 * time.Second

	// rightsChecks is how many checks in a row have to fail before a stand-in takes the turns
	// of a controller. An API server that has just started denies everything for some seconds,
	// and a turn that was passed on does not come back.
	rightsChecks = 5

	// standInTurns is how many turns a stand-in takes at a time. None of them does anything, so
	// none should have to wait for another one, and report that.
	standInTurns = 1000000
)

// workloadInterceptor is a controller that takes part in evictions.
type workloadInterceptor struct {
	// name is what pods call it.
	name string
	// gate is what it needs. Without one, no controller acts under the name yet.
	gate featuregate.Feature
	// controller and account are the names of the controller and of its service account.
	controller, account string
	// onlyEnd is for those that alone can end their pods: nobody could take over from them,
	// so their turns are not passed on, and wait for them.
	onlyEnd bool
}

// workloadInterceptors are the names that the API server lets pods have because
// controllers of this process act under them.
var workloadInterceptors = []workloadInterceptor{{
	name: coordinationv1alpha1.EvictionInterceptorDeployment, gate: features.DeploymentPodSurge,
	controller: names.DeploymentController, account: "deployment-controller",
}, {
	name: coordinationv1alpha1.EvictionInterceptorReplicaSet, gate: features.DeploymentPodSurge,
	controller: names.ReplicaSetController, account: "replicaset-controller",
}, {
	name: coordinationv1alpha1.EvictionInterceptorStatefulSet, gate: features.StatefulSetEvictionPacing,
	controller: names.StatefulSetController, account: "statefulset-controller",
}, {
	name: coordinationv1alpha1.EvictionInterceptorDaemonSet, gate: features.NodeMaintenanceAwareDaemonSet,
	controller: names.DaemonSetController, account: "daemon-set-controller", onlyEnd: true,
}, {
	name: coordinationv1alpha1.EvictionInterceptorHorizontalPodAutoscaler,
}}

// absentInterceptors returns what takes the turns of workload controllers that cannot:
// their gate is off, they are switched off, or kube-apiserver does not give them the
// rights, because its gate is off. Pods name them all the same, for as long as they
// live, and would wait for them until the deadline. The stand-in says why in the request,
// and the next interceptor gets its turn.
//
// It reports with the rights of the EvictionRequest controller, which runs it.
func absentInterceptors(controllerContext ControllerContext, client kubernetes.Interface) ([]runInterceptor, error) {
	var runs []runInterceptor
	for _, interceptor := range workloadInterceptors {
		reason := interceptor.whyAbsent(controllerContext)
		if reason != "" && interceptor.onlyEnd && !utilfeature.DefaultFeatureGate.Enabled(interceptor.gate) {
			continue // Nothing is promised for these pods: whoever drains ends them.
		}
		if reason != "" {
			run, err := interceptor.standIn(controllerContext, client, reason)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
			continue
		}
		own, err := newEvictionClient(controllerContext, interceptor.account)
		if err != nil {
			return nil, err
		}
		run, err := interceptor.standIn(controllerContext, client, fmt.Sprintf(
			"The %s may not report: turn the feature gate %s of the kube-apiserver on.", interceptor.controller, interceptor.gate))
		if err != nil {
			return nil, err
		}
		runs = append(runs, run.whileDenied(own, interceptor.name))
	}
	return runs, nil
}

// whyAbsent says why the controller does not run as an interceptor, or "".
func (i workloadInterceptor) whyAbsent(controllerContext ControllerContext) string {
	switch {
	case i.gate == "":
		return "No controller of the kube-controller-manager acts under this name yet."
	case !utilfeature.DefaultFeatureGate.Enabled(i.gate):
		return fmt.Sprintf("The feature gate %s of the kube-controller-manager is off.", i.gate)
	case !controllerContext.IsControllerEnabled(NewControllerDescriptors()[i.controller]):
		return fmt.Sprintf("The %s is switched off: see --controllers of the kube-controller-manager.", i.controller)
	}
	return ""
}

// standIn returns what takes the turns of the controller and passes them on.
func (i workloadInterceptor) standIn(controllerContext ControllerContext, client kubernetes.Interface, reason string) (runInterceptor, error) {
	interceptor, err := evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client: client,
		Name:   i.name,
		Handle: func(context.Context, *evictionrequest.Turn) error {
			if i.onlyEnd {
				// It stays the turn of the controller, and no heartbeat speaks for it. The library calls
				// again from time to time, and writes the message once.
				return errors.New(reason)
			}
			return evictionrequest.Decline(reason)
		},
		MaxConcurrent: standInTurns,
		Persistent:    i.onlyEnd,
		Informer:      controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the stand-in for interceptor %s: %w", i.name, err)
	}
	return func(ctx context.Context) {
		klog.FromContext(ctx).Info("Standing in for an interceptor", "interceptor", i.name, "reason", reason)
		if err := interceptor.Run(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Nobody stands in for an interceptor", "interceptor", i.name)
		}
	}, nil
}

// whileDenied runs the stand-in for as long as the API server does not let the client, which
// is that of the controller, report as the interceptor. The controller itself runs, too, and
// takes its turns from when it may.
func (run runInterceptor) whileDenied(client kubernetes.Interface, name string) runInterceptor {
	return func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		var standing sync.WaitGroup
		defer standing.Wait()
		defer stop()
		denied, begun := 0, false
		// The only error is the end of the context.
		_ = wait.PollUntilContextCancel(ctx, rightsCheckInterval, true, func(ctx context.Context) (done bool, err error) {
			allowed, err := mayReport(ctx, client, name)
			if err != nil {
				denied = 0 // Nobody knows.
				klog.FromContext(ctx).Error(err, "Could not find out whether an interceptor may report, trying again", "interceptor", name)
				return false, nil
			}
			denied++
			if !allowed && denied >= rightsChecks && !begun {
				begun = true // An interceptor can be run once.
				standing.Go(func() { run(ctx) })
			}
			return allowed, nil
		})
	}
}

// mayReport asks the API server whether the client may report as the interceptor: write to
// the endpoint, and change the fields that belong to the interceptor.
func mayReport(ctx context.Context, client kubernetes.Interface, name string) (bool, error) {
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: coordinationv1alpha1.GroupName, Resource: "evictionrequests", Subresource: "status"},
		{Verb: coordinationv1alpha1.EvictionInterceptVerb, Group: coordinationv1alpha1.GroupName, Resource: coordinationv1alpha1.EvictionInterceptorResource, Name: name},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("reviewing the rights of interceptor %s: %w", name, err)
		}
		if !answer.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
