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
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	clientset "k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
	"k8s.io/kubernetes/pkg/util/evictioninterceptor"
)

const (
	// maxConcurrentEvictions is how many pods the ReplicaSet controller evicts at a time.
	maxConcurrentEvictions = 4 * maxEvictionsPerNamespace

	// maxEvictionsPerNamespace is how many of them may be of one namespace, whose webhooks can
	// make each call last for half a minute; then it has fewer, see fairshare. A call takes a tenth of a second on a quiet API
	// server, so this allows for 80 pods per second. More would not help where a
	// PodDisruptionBudget selects all of them: each eviction writes to its status, and the
	// loser of two writes waits half a second. There is no queue for each budget: every pod is
	// tried once, and one that is refused costs one short call.
	maxEvictionsPerNamespace = 8
)

// evictions is what the ReplicaSet controller knows of pods that are asked to leave. It
// is nil where the controller takes no part in evictions, as for ReplicationControllers.
type evictions struct {
	deploymentLister appslisters.DeploymentLister
	requestLister    coordinationlisters.EvictionRequestLister
	requestsSynced   cache.InformerSynced
}

// InterceptEvictions makes the controller take part in the eviction of its pods, as
// DeploymentPodSurge wants it: pods of Deployments that can surge name their controllers
// as interceptors, no pod is created in the place of an extra one that is not needed any more,
// a scale-down takes pods first that have to go anyway, and the turns of
// replicaset.apps.k8s.io are taken by what is returned, while that runs. It is called
// once, before Run. Evictions have a client of their own: many turns that report would
// make them wait for its limits.
func (rsc *ReplicaSetController) InterceptEvictions(
	reportClient, evictionClient clientset.Interface,
	deploymentInformer appsinformers.DeploymentInformer,
	requestInformer coordinationinformers.EvictionRequestInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
) (run func(ctx context.Context), err error) {
	handler := evictionHandler{
		podLister:    rsc.podLister,
		budgetLister: budgetInformer.Lister(),
		evict:        podeviction.NewEvictor(evictionClient),
	}
	interceptor, err := evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client:        reportClient,
		Name:          coordinationv1alpha1.EvictionInterceptorReplicaSet,
		Handle:        handler.handle,
		MaxConcurrent: maxConcurrentEvictions,

		MaxConcurrentPerNamespace: maxEvictionsPerNamespace,
		Informer:                  requestInformer,
	})
	if err != nil {
		return nil, fmt.Errorf("intercepting evictions of ReplicaSets: %w", err)
	}

	rsc.podControl = interceptedPodControl{PodControlInterface: rsc.podControl, deploymentLister: deploymentInformer.Lister(), creator: evictioninterceptor.NewCreator(rsc.clock)}
	// Before the Deployments are known, pods would be created without their interceptors.
	// EvictionRequests are not waited for: where the API server does not serve them, that
	// would be for ever.
	rsListerSynced, deploymentsSynced := rsc.rsListerSynced, deploymentInformer.Informer().HasSynced
	rsc.rsListerSynced = func() bool { return rsListerSynced() && deploymentsSynced() }
	rsc.evictions = &evictions{deploymentLister: deploymentInformer.Lister(), requestLister: requestInformer.Lister(), requestsSynced: requestInformer.Informer().HasSynced}

	podsSynced, budgetsSynced := rsc.podListerSynced, budgetInformer.Informer().HasSynced
	return func(ctx context.Context) {
		// If that fails, the context has ended, and Run only ends what was begun without it.
		cache.WaitForNamedCacheSyncWithContext(ctx, podsSynced, budgetsSynced)
		if err := interceptor.Run(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "ReplicaSets do not intercept evictions")
		}
	}, nil
}
