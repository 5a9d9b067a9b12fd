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
	"testing"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"
)

// evictionFixture is a ReplicaSet controller with caches that tests fill.
type evictionFixture struct {
	ctx     context.Context
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	rsc     *ReplicaSetController
	run     func(context.Context)
}

func newEvictionFixture(t *testing.T, objects ...runtime.Object) *evictionFixture {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	rsc := NewReplicaSetController(ctx, factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods(), client, BurstReplicas)
	return &evictionFixture{ctx: ctx, client: client, factory: factory, rsc: rsc}
}

// intercept sets up the controller like the controller manager with the gate on.
func (f *evictionFixture) intercept(t *testing.T) {
	t.Helper()
	run, err := f.rsc.InterceptEvictions(f.client, f.client, f.factory.Apps().V1().Deployments(),
		f.factory.Coordination().V1alpha1().EvictionRequests(), f.factory.Policy().V1().PodDisruptionBudgets())
	if err != nil {
		t.Fatalf("intercepting evictions: %v", err)
	}
	f.run = run
}

// cached adds objects to the caches. The informers must not run.
func (f *evictionFixture) cached(t *testing.T, objects ...runtime.Object) {
	t.Helper()
	for _, object := range objects {
		var informer cache.SharedIndexInformer
		switch object.(type) {
		case *v1.Pod:
			informer = f.factory.Core().V1().Pods().Informer()
		case *apps.ReplicaSet:
			informer = f.factory.Apps().V1().ReplicaSets().Informer()
		case *apps.Deployment:
			informer = f.factory.Apps().V1().Deployments().Informer()
		case *coordinationv1alpha1.EvictionRequest:
			informer = f.factory.Coordination().V1alpha1().EvictionRequests().Informer()
		case *policyv1.PodDisruptionBudget:
			informer = f.factory.Policy().V1().PodDisruptionBudgets().Informer()
		default:
			t.Fatalf("no cache for %T", object)
		}
		if err := informer.GetIndexer().Add(object); err != nil {
			t.Fatalf("caching %T: %v", object, err)
		}
	}
}
