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

// What the ReplicaSet controller does about evictions (KEP-4563) and about the choice of pods for scale-downs:
//
//	eviction.go                 how it takes part, with the gate DeploymentPodSurge
//	eviction_injection.go       the names of the Deployment and ReplicaSet controllers on new pods
//	eviction_order.go           which pods a scale-down deletes first
//	eviction_surplus.go         no pod for an extra replica that is not needed any more
//	eviction_interceptor.go     the interceptor replicaset.apps.k8s.io: one attempt to evict, within budgets
//	eviction_grace_period.go    the grace period that callers of pods/eviction have asked for
//	departing_nodes.go          pods on nodes that are to go are preferred
//	downscale_pod_picker.go     the sync asks a picker: see package podpicker

import (
	"context"
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	appslisters "k8s.io/client-go/listers/apps/v1"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

const (
	// maxConcurrentEvictions is how many pods the ReplicaSet controller evicts concurrently.
	maxConcurrentEvictions = 4 * maxEvictionsPerNamespace

	// maxEvictionsPerNamespace limits the concurrent evictions of one namespace, whose webhooks can
	// delay each call by half a minute. A namespace with slow calls gets fewer, see fairshare. A
	// call takes 100ms on an idle API server, so this allows for 80 pods per second. More would not
	// help if one PodDisruptionBudget selects all pods: each eviction writes to its status, and the
	// loser of a conflict waits half a second. There is no queue per budget: every pod is tried
	// once, and a rejected eviction costs one short call.
	maxEvictionsPerNamespace = 8
)

// evictions is what the ReplicaSet controller knows about pods that are requested to leave. It is
// nil if the controller does not take part in evictions, as for ReplicationControllers.
type evictions struct {
	deploymentLister appslisters.DeploymentLister
	requestLister    coordinationlisters.EvictionRequestLister
	requestsSynced   cache.InformerSynced
	// client reads ReplicaSets whose pods are leaving.
	client clientset.Interface
}

// newEvictionRecorder returns a recorder of events with a source of its own, like newPickerRecorder.
func newEvictionRecorder(broadcaster record.EventBroadcaster) record.EventRecorder {
	return broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "replicaset-controller-evictions"})
}

// InterceptEvictions makes the controller take part in the eviction of its pods, for the feature
// gate DeploymentPodSurge: new pods of Deployments that can surge, or pace evictions, list both controllers as
// interceptors, no pod is created for an extra replica that is no longer needed, a scale-down
// prefers pods that have to leave anyway, and deletes them with the grace period that callers of pods/eviction
// have asked for, and run takes the turns of replicaset.apps.k8s.io. It
// must be called once, before Run. Evictions have their own client, because the rate limit of the
// reporting client would delay them.
func (rsc *ReplicaSetController) InterceptEvictions(
	reportClient, evictionClient clientset.Interface,
	deploymentInformer appsinformers.DeploymentInformer,
	requestInformer coordinationinformers.EvictionRequestInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
) (run func(ctx context.Context), err error) {
	budgets, err := poddisruptionbudget.IndexOf(budgetInformer.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	handler := evictionHandler{
		podLister: rsc.podLister,
		budgets:   budgets,
		evict:     podeviction.NewEvictor(evictionClient),
		read:      podeviction.NewReader(evictionClient),
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

	if _, err := requestInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		rsc.requestCreated(obj.(*coordinationv1alpha1.EvictionRequest))
	}}); err != nil {
		return nil, fmt.Errorf("watching evictions of ReplicaSets: %w", err)
	}
	rsc.podControl = interceptedPodControl{
		PodControlInterface: rsc.podControl, deploymentLister: deploymentInformer.Lister(), creator: evictioninterceptor.NewCreator(rsc.clock),
		recorder: newEvictionRecorder(rsc.eventBroadcaster), podLister: rsc.podLister, requestLister: requestInformer.Lister(),
	}
	// Pods that are created before the Deployments are known would lack their interceptors.
	// EvictionRequests are not waited for: the API server may never serve them.
	rsListerSynced, deploymentsSynced := rsc.rsListerSynced, deploymentInformer.Informer().HasSynced
	rsc.rsListerSynced = func() bool { return rsListerSynced() && deploymentsSynced() }
	rsc.evictions = &evictions{deploymentLister: deploymentInformer.Lister(), requestLister: requestInformer.Lister(), requestsSynced: requestInformer.Informer().HasSynced, client: evictionClient}

	podsSynced, budgetsSynced := rsc.podListerSynced, budgetInformer.Informer().HasSynced
	return func(ctx context.Context) {
		// If the caches do not sync, the context has been canceled. Run must be called even then:
		// it shuts down what was started without it.
		cache.WaitForNamedCacheSyncWithContext(ctx, podsSynced, budgetsSynced)
		if err := interceptor.Run(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The ReplicaSet controller does not intercept evictions")
		}
	}, nil
}
