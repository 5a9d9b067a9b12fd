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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller/statefulset/metrics"
	"k8s.io/kubernetes/pkg/util/evictioninterceptor"
	"k8s.io/utils/clock"
)

const (
	// statefulSetIndex finds requests by the StatefulSet that the name of their pod belongs to.
	statefulSetIndex = "statefulSetOfTarget"

	// maxEvictionTurns is how many pods may wait at the same time. A turn costs next to
	// nothing while it waits, and none should have to wait for those of other sets.
	maxEvictionTurns = 1000000
)

// InterceptEvictions makes the controller take part in the eviction of its pods, as
// StatefulSetEvictionPacing wants it: pods of sets with several replicas name it as an
// interceptor, and the turns of statefulset.apps.k8s.io are taken by what is returned,
// while that runs. It is called once, before Run and before the informers start. The client
// needs the rights of an interceptor.
func (ssc *StatefulSetController) InterceptEvictions(
	client clientset.Interface,
	podInformer coreinformers.PodInformer,
	setInformer appsinformers.StatefulSetInformer,
	requestInformer coordinationinformers.EvictionRequestInformer,
) (run func(ctx context.Context), err error) {
	control, ok := ssc.control.(*defaultStatefulSetControl)
	if !ok {
		return nil, fmt.Errorf("intercepting evictions of StatefulSets: pods are controlled by %T, which takes no interceptors", ssc.control)
	}
	pacer, err := newEvictionPacer(ssc, requestInformer, clock.RealClock{})
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
	if err := pacer.watch(podInformer, setInformer, requestInformer); err != nil {
		return nil, fmt.Errorf("intercepting evictions of StatefulSets: %w", err)
	}
	control.podControl.objectMgr = interceptedPods{control.podControl.objectMgr, evictioninterceptor.NewCreator(clock.RealClock{})}
	requestsSynced := requestInformer.Informer().HasSynced
	return func(ctx context.Context) {
		// A decision from half of the pods would take the others for missing, and one without
		// the requests would not know who is leaving. Where the API server does not serve
		// requests there is nothing to decide either, and only this waits.
		if !cache.WaitForNamedCacheSyncWithContext(ctx, ssc.podListerSynced, ssc.setListerSynced, requestsSynced) {
			return
		}
		var deciding sync.WaitGroup
		deciding.Go(func() { pacer.run(ctx) })
		defer deciding.Wait()
		if err := interceptor.Run(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "StatefulSets do not intercept evictions")
		}
	}, nil
}

func newEvictionPacer(ssc *StatefulSetController, requestInformer coordinationinformers.EvictionRequestInformer, clock clock.WithTicker) (*evictionPacer, error) {
	if err := requestInformer.Informer().AddIndexers(cache.Indexers{statefulSetIndex: statefulSetOfRequest}); err != nil {
		return nil, fmt.Errorf("indexing eviction requests: %w", err)
	}
	metrics.RegisterEvictions()
	return &evictionPacer{
		ssc:           ssc,
		requestLister: requestInformer.Lister(),
		requests:      requestInformer.Informer().GetIndexer(),
		clock:         clock,
		queue:         newEvictionQueue(clock),
		turns:         map[string]map[types.UID]*evictionTurn{},
		verdicts:      map[string]map[types.UID]*evictionVerdict{},
	}, nil
}

func newEvictionQueue(clock clock.WithTicker) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		newEvictionRateLimiter(),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "statefulset_evictions", Clock: clock},
	)
}

// newEvictionRateLimiter has each set wait for itself: many that fail must not delay the first
// retry of another one.
func newEvictionRateLimiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, evictionRetryInterval)
}

// evictionKey returns the key of the StatefulSet that a pod of this name belongs to. The
// name of the set is empty if it cannot be a pod of one.
func evictionKey(namespace, podName string) string {
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName}}
	return cache.NewObjectName(namespace, getParentName(&pod)).String()
}

// statefulSetOfRequest returns the key of the set for a request that names the interceptor.
func statefulSetOfRequest(obj any) ([]string, error) {
	request, ok := obj.(*coordinationv1alpha1.EvictionRequest)
	if !ok {
		return nil, fmt.Errorf("%T is no eviction request", obj)
	}
	named := slices.ContainsFunc(request.Status.TargetInterceptors, func(i coordinationv1alpha1.Interceptor) bool {
		return i.Name == coordinationv1alpha1.EvictionInterceptorStatefulSet
	})
	if request.Spec.Target.Pod == nil || !named {
		return nil, nil
	}
	return []string{evictionKey(request.Namespace, request.Spec.Target.Pod.Name)}, nil
}

// watch has sets decided on again when something has changed that a decision depends on.
func (p *evictionPacer) watch(pods coreinformers.PodInformer, sets appsinformers.StatefulSetInformer, requests coordinationinformers.EvictionRequestInformer) error {
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"pods": pods.Informer(), "stateful sets": sets.Informer(), "eviction requests": requests.Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    p.changed,
			UpdateFunc: func(_, obj any) { p.changed(obj) },
			DeleteFunc: p.changed,
		}); err != nil {
			return fmt.Errorf("watching %s: %w", kind, err)
		}
	}
	return nil
}

// changed enqueues the set that an object belongs to, if anything is to be decided there.
func (p *evictionPacer) changed(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	var key string
	switch object := obj.(type) {
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
