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

package statefulset

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/controller/statefulset/metrics"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/controller/util/tombstone"
	"k8s.io/utils/clock"
)

const (
	// statefulSetIndex finds requests by the StatefulSet to which the name of their pod belongs.
	statefulSetIndex = "statefulSetOfTarget"

	// maxEvictionTurns limits the number of waiting pods. A waiting turn costs almost nothing, and
	// no turn should have to wait for those of other sets.
	maxEvictionTurns = 1000000
)

// InterceptEvictions makes the controller an interceptor of the evictions of its pods, for the
// feature gate StatefulSetEvictionPacing: new pods of sets with several replicas list it as an
// interceptor, and run takes the turns of statefulset.apps.k8s.io. It must be called once, before
// Run and before the informers start. The client needs the permissions of an interceptor.
func (ssc *StatefulSetController) InterceptEvictions(
	client clientset.Interface,
	factory informers.SharedInformerFactory,
) (run func(ctx context.Context), err error) {
	control, ok := ssc.control.(*defaultStatefulSetControl)
	if !ok {
		return nil, fmt.Errorf("intercepting evictions of StatefulSets: unexpected StatefulSet control of type %T", ssc.control)
	}
	requestInformer, budgetInformer := factory.Coordination().V1alpha1().EvictionRequests(), factory.Policy().V1().PodDisruptionBudgets()
	places := placesOf(factory.Core().V1())
	pacer, err := newEvictionPacer(ssc, client, requestInformer, budgetInformer, places, clock.RealClock{})
	if err != nil {
		return nil, fmt.Errorf("intercepting evictions of StatefulSets: %w", err)
	}
	pacer.recorder = control.podControl.recorder
	interceptor, err := evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client:        client,
		Name:          coordinationv1alpha1.EvictionInterceptorStatefulSet,
		Handle:        pacer.handle,
		MaxConcurrent: maxEvictionTurns,
		Informer:      requestInformer,
	})
	if err != nil {
		return nil, fmt.Errorf("intercepting evictions of StatefulSets: %w", err)
	}
	if err := pacer.watch(factory.Core().V1().Pods(), factory.Apps().V1().StatefulSets(), requestInformer, budgetInformer); err != nil {
		return nil, fmt.Errorf("intercepting evictions of StatefulSets: %w", err)
	}
	control.podControl.objectMgr = observedPods{
		interceptedPods{control.podControl.objectMgr, evictioninterceptor.NewCreator(clock.RealClock{}), control.podControl.recorder}, pacer.created,
	}
	requestsSynced, budgetsSynced := requestInformer.Informer().HasSynced, budgetInformer.Informer().HasSynced
	return func(ctx context.Context) {
		// With a part of the pods, the others would appear to be missing, and without the requests
		// the leaving pods would be unknown. If the API server does not serve requests, there is
		// nothing to decide either, and this function alone waits.
		if !cache.WaitForNamedCacheSyncWithContext(ctx, append(places.synced, ssc.podListerSynced, ssc.setListerSynced, requestsSynced, budgetsSynced)...) {
			return
		}
		var deciding sync.WaitGroup
		deciding.Go(func() { pacer.run(ctx) })
		defer deciding.Wait()
		if err := interceptor.Run(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The StatefulSet controller does not intercept evictions")
		}
	}, nil
}

func newEvictionPacer(
	ssc *StatefulSetController,
	client clientset.Interface,
	requestInformer coordinationinformers.EvictionRequestInformer,
	budgetInformer policyinformers.PodDisruptionBudgetInformer,
	places places,
	clock clock.WithTicker,
) (*evictionPacer, error) {
	budgets, err := poddisruptionbudget.IndexOf(budgetInformer.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	if err := requestInformer.Informer().AddIndexers(cache.Indexers{statefulSetIndex: statefulSetOfRequest}); err != nil {
		return nil, fmt.Errorf("indexing eviction requests: %w", err)
	}
	metrics.RegisterEvictions()
	return &evictionPacer{
		ssc:           ssc,
		client:        client,
		live:          evictionpacing.NewLiveReleases(client, isReleasedRequest),
		places:        places,
		budgets:       budgets,
		requestLister: requestInformer.Lister(),
		requests:      requestInformer.Informer().GetIndexer(),
		clock:         clock,
		queue:         newEvictionQueue(clock),
		turns:         map[string]map[types.UID]*evictionTurn{},
		results:       map[string]map[types.UID]*evictionResult{},
		broken:        map[string]sets.Set[types.UID]{},

		createFailures: map[string]createFailure{},
	}, nil
}

func newEvictionQueue(clock clock.WithTicker) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		newEvictionRateLimiter(),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "statefulset_evictions", Clock: clock},
	)
}

// newEvictionRateLimiter limits each set separately: many failing sets must not delay the first
// retry of another one.
func newEvictionRateLimiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, evictionRetryInterval)
}

// evictionKey returns the key of the StatefulSet to which a pod of this name belongs. The name in
// the key is empty if no StatefulSet can have such a pod.
func evictionKey(namespace, podName string) string {
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName}}
	set, _ := getParentNameAndOrdinal(&pod)
	return cache.NewObjectName(namespace, set).String()
}

// statefulSetOfRequest indexes a request by its set if it lists the interceptor.
func statefulSetOfRequest(obj any) ([]string, error) {
	request, ok := obj.(*coordinationv1alpha1.EvictionRequest)
	if !ok {
		return nil, fmt.Errorf("%T is not an EvictionRequest", obj)
	}
	named := slices.ContainsFunc(request.Status.TargetInterceptors, func(i coordinationv1alpha1.Interceptor) bool {
		return i.Name == coordinationv1alpha1.EvictionInterceptorStatefulSet
	})
	if request.Spec.Target.Pod == nil || !named {
		return nil, nil
	}
	return []string{evictionKey(request.Namespace, request.Spec.Target.Pod.Name)}, nil
}

// watch enqueues sets on changes of the objects that a decision depends on.
func (p *evictionPacer) watch(pods coreinformers.PodInformer, sets appsinformers.StatefulSetInformer, requests coordinationinformers.EvictionRequestInformer, budgets policyinformers.PodDisruptionBudgetInformer) error {
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"pods": pods.Informer(), "stateful sets": sets.Informer(), "eviction requests": requests.Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    p.stored,
			UpdateFunc: func(_, obj any) { p.stored(obj) },
			DeleteFunc: func(obj any) {
				p.gone(obj)
				p.changed(obj)
			},
		}); err != nil {
			return fmt.Errorf("watching %s: %w", kind, err)
		}
	}
	if _, err := budgets.Informer().AddEventHandler(p.budgetHandler()); err != nil {
		return fmt.Errorf("watching pod disruption budgets: %w", err)
	}
	return nil
}

// gone forgets what is noted about a pod, a request or a set that was deleted.
func (p *evictionPacer) gone(obj any) {
	if pod, err := tombstone.Object[*v1.Pod](obj); err == nil {
		p.unready.Forget(pod.UID)
		return
	}
	if set, err := tombstone.Object[*apps.StatefulSet](obj); err == nil {
		p.lock.Lock()
		defer p.lock.Unlock()
		delete(p.createFailures, cache.MetaObjectToName(set).String())
		return
	}
	request, err := tombstone.Object[*coordinationv1alpha1.EvictionRequest](obj)
	if err != nil || request.Spec.Target.Pod == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.forget(evictionKey(request.Namespace, request.Spec.Target.Pod.Name), types.UID(request.Name))
}

func (p *evictionPacer) budgetHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: p.budgetChanged,
		UpdateFunc: func(old, new any) {
			// Each eviction changes the status of its budget, but not what the budget permits.
			if !evictionpacing.SamePermission(old.(*policy.PodDisruptionBudget), new.(*policy.PodDisruptionBudget)) {
				p.budgetChanged(new)
			}
		},
		DeleteFunc: p.budgetChanged,
	}
}

// budgetChanged enqueues the sets in the namespace of a budget that have turns: which of them it
// selects may have changed.
func (p *evictionPacer) budgetChanged(obj any) {
	budget, err := tombstone.Object[*policy.PodDisruptionBudget](obj)
	if err != nil {
		return
	}
	for _, key := range p.pacedIn(budget.Namespace) {
		p.queue.Add(key)
	}
}

// stored is called for an object that was created or changed.
func (p *evictionPacer) stored(obj any) {
	if pod, ok := obj.(*v1.Pod); ok {
		p.unready.Saw(pod, p.clock.Now())
	}
	p.changed(obj)
}

// changed enqueues the set of an object if the set has turns.
func (p *evictionPacer) changed(obj any) {
	object, err := tombstone.Object[any](obj)
	if err != nil {
		return
	}
	var key string
	switch object := object.(type) {
	case *v1.Pod:
		key = evictionKey(object.Namespace, object.Name)
	case *apps.StatefulSet:
		key = cache.MetaObjectToName(object).String()
	case *coordinationv1alpha1.EvictionRequest:
		if object.Spec.Target.Pod == nil {
			return
		}
		key = evictionKey(object.Namespace, object.Spec.Target.Pod.Name)
	}
	if p.isTracked(key) {
		p.queue.Add(key)
	}
}
