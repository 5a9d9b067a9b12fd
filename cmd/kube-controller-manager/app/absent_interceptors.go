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
	// permissionCheckInterval is how often a controller without its permissions is checked again.
	permissionCheckInterval = 15 * time.Second

	// permissionChecks is how many consecutive checks must be denied before a stand-in takes the
	// turns of a controller. An API server that has just started denies everything for a few
	// seconds, and a turn that was passed on does not come back.
	permissionChecks = 5

	// standInTurns limits the concurrent turns of a stand-in. None of them does any work, so no
	// turn should have to wait for another one and report that.
	standInTurns = 1000000
)

// workloadInterceptor is a workload controller that takes part in evictions.
type workloadInterceptor struct {
	// name is the name of the interceptor in pods.
	name string
	// gate is the feature gate of the interceptor. It is empty if no controller implements the
	// interceptor yet.
	gate featuregate.Feature
	// controller and account are the names of the controller and of its service account.
	controller, account string
	// exclusive is set for interceptors that are the only way to stop their pods. No other
	// interceptor could take over, so their turns are not passed on and wait for them.
	exclusive bool
}

// workloadInterceptors are the interceptor names that the API server reserves for controllers of
// this process.
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
	controller: names.DaemonSetController, account: "daemon-set-controller", exclusive: true,
}, {
	name: coordinationv1alpha1.EvictionInterceptorHorizontalPodAutoscaler,
}}

// absentInterceptors returns stand-ins for the workload controllers that cannot take their turns:
// their gate is off, they are disabled, or the kube-apiserver does not grant their permissions
// because its gate is off. Existing pods still list them, and would wait for them until the
// deadline. The stand-in reports the reason in the request, and the next interceptor becomes
// active.
//
// The stand-ins report with the permissions of the EvictionRequest controller, which runs them.
func absentInterceptors(controllerContext ControllerContext, client kubernetes.Interface) ([]runInterceptor, error) {
	var runs []runInterceptor
	for _, interceptor := range workloadInterceptors {
		reason := interceptor.whyAbsent(controllerContext)
		if reason != "" && interceptor.exclusive && !utilfeature.DefaultFeatureGate.Enabled(interceptor.gate) {
			continue // No promise for these pods: the draining client ends them.
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
			"The %s lacks the permission to report: enable the feature gate %s of the kube-apiserver.", interceptor.controller, interceptor.gate))
		if err != nil {
			return nil, err
		}
		runs = append(runs, run.whileDenied(own, interceptor.name))
	}
	return runs, nil
}

// whyAbsent returns why the controller does not run as an interceptor, or "".
func (i workloadInterceptor) whyAbsent(controllerContext ControllerContext) string {
	switch {
	case i.gate == "":
		return "No controller of the kube-controller-manager implements this interceptor yet."
	case !utilfeature.DefaultFeatureGate.Enabled(i.gate):
		return fmt.Sprintf("The feature gate %s of the kube-controller-manager is off.", i.gate)
	case !controllerContext.IsControllerEnabled(NewControllerDescriptors()[i.controller]):
		return fmt.Sprintf("The %s is disabled by --controllers of the kube-controller-manager.", i.controller)
	}
	return ""
}

// standIn returns an interceptor that takes the turns of the controller and passes them on.
func (i workloadInterceptor) standIn(controllerContext ControllerContext, client kubernetes.Interface, reason string) (runInterceptor, error) {
	interceptor, err := evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client: client,
		Name:   i.name,
		Handle: func(context.Context, *evictionrequest.Turn) error {
			if i.exclusive {
				// The controller remains active, without heartbeats. The library retries from time
				// to time, and writes the message once.
				return errors.New(reason)
			}
			return evictionrequest.Decline(reason)
		},
		MaxConcurrent: standInTurns,
		Persistent:    i.exclusive,
		Informer:      controllerContext.InformerFactory.Coordination().V1alpha1().EvictionRequests(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the stand-in for interceptor %s: %w", i.name, err)
	}
	return func(ctx context.Context) {
		klog.FromContext(ctx).Info("Running the stand-in for an interceptor", "interceptor", i.name, "reason", reason)
		if err := interceptor.Run(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The stand-in for an interceptor has failed", "interceptor", i.name)
		}
	}, nil
}

// whileDenied runs the stand-in while the API server denies the client of the controller to report
// as the interceptor. The controller runs as well, and takes its turns once it is allowed to.
func (run runInterceptor) whileDenied(client kubernetes.Interface, name string) runInterceptor {
	return func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		var standing sync.WaitGroup
		defer standing.Wait()
		defer stop()
		ask := func(ctx context.Context) (bool, error) { return mayReport(ctx, client, name) }
		untilAllowed(ctx, name, ask, func() { standing.Go(func() { run(ctx) }) })
	}
}

// untilAllowed returns when the API server, which ask asks, allows to report as the interceptor, or with false when the
// context is canceled. It calls denied once if the API server denies it repeatedly.
func untilAllowed(ctx context.Context, name string, ask func(context.Context) (bool, error), denied func()) bool {
	checks, begun := 0, false
	return wait.PollUntilContextCancel(ctx, permissionCheckInterval, true, func(ctx context.Context) (done bool, err error) {
		allowed, err := ask(ctx)
		if err != nil {
			checks = 0 // The answer is unknown.
			klog.FromContext(ctx).Error(err, "Could not check whether an interceptor may report, retrying", "interceptor", name)
			return false, nil
		}
		checks++
		if !allowed && checks >= permissionChecks && !begun {
			begun = true
			denied()
		}
		return allowed, nil
	}) == nil
}

// mayReport asks the API server whether the client may report as the interceptor: whether it may
// write the status subresource, and change the fields of the interceptor.
func mayReport(ctx context.Context, client kubernetes.Interface, name string) (bool, error) {
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: coordinationv1alpha1.GroupName, Resource: "evictionrequests", Subresource: "status"},
		{Verb: coordinationv1alpha1.EvictionInterceptVerb, Group: coordinationv1alpha1.GroupName, Resource: coordinationv1alpha1.EvictionInterceptorResource, Name: name},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("checking the permissions of interceptor %s: %w", name, err)
		}
		if !answer.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
