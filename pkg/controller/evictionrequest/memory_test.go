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

package evictionrequest

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/utils/ktesting"
	testingclock "k8s.io/utils/clock/testing"
)

// TestCachedRequestsShareMemory: the informer has the transform that BenchmarkHeap measures.
func TestCachedRequestsShareMemory(t *testing.T) {
	f := newFixture(t)
	if f.requests.transform == nil {
		t.Fatal("the informer has no transform")
	}
	request := newRequest()
	request.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "drain.example.com"}}
	if _, err := f.requests.transform(request); err != nil || request.ManagedFields != nil {
		t.Errorf("the transform is another one: %v, %v", request.ManagedFields, err)
	}
}

// BenchmarkHeap measures what a request takes of the heap: the cached object, with its transform, and what the
// controller knows about it once it was synced. One run is enough: -benchtime=1x.
func BenchmarkHeap(b *testing.B) {
	const number = 20000
	for name, state := range map[string]func(*coordinationv1alpha1.EvictionRequest){
		"waiting":     having(targets(first), active(first, 0)),
		"intercepted": having(targets(first), active(first, 0), reporting(alive(first, 0, 0))),
		"blocked":     imperativeActive(reporting(retrying(1, 0, 0)), blockedByBudget(0)),
		"evicted":     having(targets(), processed(builtIn), reporting(done(builtIn, 0)), condition(evicted, metav1.ConditionTrue, "PodDeleted", "Target Pod web-5b4d9c7f6-x2k4q was deleted.", 0)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(heapOf(b, number, state))/number, "B/request")
			}
		})
	}
}

// heapOf returns the growth of the heap with so many requests in this state.
func heapOf(b *testing.B, number int, state func(*coordinationv1alpha1.EvictionRequest)) uint64 {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	requests, pods, nodes, budgets := factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Pods(), factory.Core().V1().Nodes(), factory.Policy().V1().PodDisruptionBudgets()
	handled := &handledInformer{SharedIndexInformer: requests.Informer()}
	_, ctx := ktesting.NewTestContext(b)
	client := fake.NewClientset()
	c, err := newController(ctx, handledRequests{requests, handled}, pods, nodes, budgets, client, client, nil, ttl, testingclock.NewFakeClock(start))
	if err != nil {
		b.Fatal(err)
	}
	defer c.queue.ShutDown()
	defer c.imperative.queue.ShutDown()
	c.limitWorkers(1)
	c.imperative.limitWorkers(1)
	add := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	add(budgets.Informer().GetIndexer().Add(newBudget("web")))
	encoded := make([][]byte, number)
	for i := range number {
		name, uid := fmt.Sprintf("web-5b4d9c7f6-%05d", i), fmt.Sprintf("%08d-78b1-4b4f-9c1e-52f9b6f0a1d3", i)
		request := newRequest(deadlineOf(1200), state)
		request.Name, request.UID, request.ResourceVersion = uid, types.UID("r"+uid), fmt.Sprint(1000000+i)
		request.Spec.Target.Pod.Name, request.Spec.Target.Pod.UID = name, uid
		request.Labels = map[string]string{"app": "web", "pod-template-hash": "5b4d9c7f6", "team": "shop"}
		if encoded[i], err = request.Marshal(); err != nil {
			b.Fatal(err)
		}
		if len(request.Status.Conditions) > 0 && request.Status.Conditions[0].Type == string(evicted) {
			continue
		}
		pod := newPod(podUIDIs(types.UID(uid)))
		pod.Name, pod.Labels = name, request.Labels
		add(pods.Informer().GetIndexer().Add(pod))
	}

	before := heapInUse()
	share := evictionrequesttools.ShareMemory()
	for i := range encoded {
		request := &coordinationv1alpha1.EvictionRequest{}
		add(request.Unmarshal(encoded[i]))
		if _, err := share(request); err != nil {
			b.Fatal(err)
		}
		add(handled.GetIndexer().Add(request))
		handled.handler.OnAdd(request, true)
		// As in a drain, the queues are never long: what they have held once, they keep.
		for i%100 == 99 && c.queue.Len() > 0 {
			c.workOnce(ctx)
		}
		for i%100 == 99 && c.imperative.queue.Len() > 0 {
			c.imperative.workOnce(ctx)
		}
	}
	time.Sleep(100 * time.Millisecond) // The queue takes delayed items over in the background.
	grown := heapInUse() - before
	runtime.KeepAlive(encoded)
	runtime.KeepAlive(c)
	return grown
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
