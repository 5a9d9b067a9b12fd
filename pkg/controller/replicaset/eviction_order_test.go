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
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-base/metrics/testutil"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/replicaset/metrics"
	"k8s.io/utils/ptr"
)

var orderStart = metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rankedPod returns a pod that has been running and ready for an hour, alone on its node. Its name
// is its UID.
func rankedPod(name string, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name), CreationTimestamp: orderStart,
			Labels: map[string]string{"app": "web"},
		},
		Spec: v1.PodSpec{NodeName: "node-of-" + name},
		Status: v1.PodStatus{
			Phase:             v1.PodRunning,
			Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: orderStart}},
			ContainerStatuses: []v1.ContainerStatus{{}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func unassigned(pod *v1.Pod) { pod.Spec.NodeName = "" }
func notReady(pod *v1.Pod)   { pod.Status.Conditions[0].Status = v1.ConditionFalse }
func restarted(pod *v1.Pod)  { pod.Status.ContainerStatuses[0].RestartCount = 9 }
func younger(pod *v1.Pod)    { pod.CreationTimestamp.Time = orderStart.Add(time.Hour) }
func readySince(pod *v1.Pod) {
	pod.Status.Conditions[0].LastTransitionTime.Time = orderStart.Add(time.Hour)
}
func cheapToDelete(p *v1.Pod)  { p.Annotations = map[string]string{v1.PodDeletionCost: "-9"} }
func onSharedNode(pod *v1.Pod) { pod.Spec.NodeName = "shared" }

// justReady makes a pod ready since now.
func justReady(pod *v1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.Now() }

// withMinReadySeconds sets minReadySeconds to an hour.
func withMinReadySeconds(rs *apps.ReplicaSet) *apps.ReplicaSet {
	rs.Spec.MinReadySeconds = 3600
	return rs
}

func phase(phase v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Phase = phase }
}

// requestOf returns the eviction request for a pod.
func requestOf(pod string, conditions ...coordinationv1alpha1.EvictionRequestConditionType) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: pod},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod, UID: pod}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drainer.example.com"}},
		},
	}
	for _, condition := range conditions {
		request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{Type: string(condition), Status: metav1.ConditionTrue})
	}
	return request
}

// withdrawn removes the requesters.
func withdrawn(request *coordinationv1alpha1.EvictionRequest) *coordinationv1alpha1.EvictionRequest {
	request.Spec.Requesters = nil
	return request
}

// activeFor activates an interceptor.
func activeFor(request *coordinationv1alpha1.EvictionRequest, interceptor string) *coordinationv1alpha1.EvictionRequest {
	request.Status.ActiveInterceptors = []string{interceptor}
	return request
}

const (
	canceled = coordinationv1alpha1.EvictionRequestConditionCanceled
	evicted  = coordinationv1alpha1.EvictionRequestConditionEvicted
	blocked  = coordinationv1alpha1.EvictionRequestConditionBlocked
)

// withLeaving returns a ReplicaSet that lists these pods as leaving.
func withLeaving(leaving ...types.UID) *apps.ReplicaSet {
	return newReplicaSetOf(func(rs *apps.ReplicaSet) {
		deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Of: *rs.Spec.Replicas, Leaving: leaving})
	})
}

// endingSurge returns a ReplicaSet whose extra replicas are removed.
func endingSurge() *apps.ReplicaSet {
	return newReplicaSetOf(func(rs *apps.ReplicaSet) {
		deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Ending: true})
	})
}

// A scale-down deletes the first pod of each pair, whatever other rules prefer the second.
func TestScaleDownOrder(t *testing.T) {
	const a, b = "a", "b"
	tests := map[string]struct {
		first, second *v1.Pod
		requests      []*coordinationv1alpha1.EvictionRequest
		rs            *apps.ReplicaSet
		// related are other pods, for the ranks by node.
		related []*v1.Pod
		// unknown means that the requests have not synced.
		unknown bool
	}{
		"not assigned before requested": {
			first: rankedPod(a, unassigned), second: rankedPod(b), requests: requests(requestOf(b)),
		},
		"pending before requested": {
			first: rankedPod(a, phase(v1.PodPending)), second: rankedPod(b), requests: requests(requestOf(b)),
		},
		"in an unknown phase before requested": {
			first: rankedPod(a, phase(v1.PodUnknown)), second: rankedPod(b), requests: requests(requestOf(b)),
		},
		"not ready before requested": {
			first: rankedPod(a, notReady), second: rankedPod(b), requests: requests(requestOf(b)),
		},
		"requested before cheap to delete": {
			first: rankedPod(a), second: rankedPod(b, cheapToDelete), requests: requests(requestOf(a)),
		},
		"requested before doubled up": {
			first: rankedPod(a), second: rankedPod(b, onSharedNode), requests: requests(requestOf(a)),
			related: []*v1.Pod{rankedPod("c", onSharedNode), rankedPod("d", onSharedNode)},
		},
		"requested before ready for a shorter time": {
			first: rankedPod(a), second: rankedPod(b, readySince), requests: requests(requestOf(a)),
		},
		"requested before restarted": {
			first: rankedPod(a), second: rankedPod(b, restarted), requests: requests(requestOf(a)),
		},
		"requested before younger": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(requestOf(a)),
		},
		"not ready and requested before not ready": {
			first: rankedPod(a, notReady), second: rankedPod(b, notReady, restarted), requests: requests(requestOf(a)),
		},
		"pending and requested before pending": {
			first: rankedPod(a, phase(v1.PodPending), notReady), second: rankedPod(b, phase(v1.PodPending), notReady, younger), requests: requests(requestOf(a)),
		},
		"not assigned and requested before not assigned": {
			first: rankedPod(a, unassigned), second: rankedPod(b, unassigned, younger), requests: requests(requestOf(a)),
		},
		"requested and blocked before younger": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(requestOf(a, blocked)),
		},
		"younger before one that is being saved": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(activeFor(requestOf(b), "saver.example.com")),
		},
		"older before one that is being saved": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(activeFor(requestOf(b), "saver.example.com")),
		},
		"any before one that is being saved, also if that is cheap to delete": {
			first: rankedPod(a), second: rankedPod(b, cheapToDelete), requests: requests(activeFor(requestOf(b), "saver.example.com")),
		},
		"requested before one that is being saved": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(requestOf(a), activeFor(requestOf(b), "example.com/saver")),
		},
		"not ready before ready, also if it is being saved": {
			first: rankedPod(a, notReady), second: rankedPod(b), requests: requests(activeFor(requestOf(a), "saver.example.com")),
		},
		"requested, while its Deployment is asked, before younger": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(activeFor(requestOf(a), "deployment.apps.k8s.io")),
		},
		"requested, while it is evicted, before younger": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(activeFor(requestOf(a), "imperative-eviction.k8s.io")),
		},
		"younger before one that was saved, and is canceled": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(activeFor(requestOf(b, canceled), "saver.example.com")),
		},
		"of two requested the younger": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(requestOf(a), requestOf(b)),
		},
		"younger before canceled": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(requestOf(b, canceled)),
		},
		"younger before canceled while blocked": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(requestOf(b, blocked, canceled)),
		},
		"younger before evicted": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(requestOf(b, evicted)),
		},
		"younger before a namesake of the requested": {
			first: rankedPod(a, younger), second: rankedPod(b),
			requests: requests(func() *coordinationv1alpha1.EvictionRequest {
				elsewhere := requestOf(b)
				elsewhere.Namespace = "other"
				return elsewhere
			}()),
		},
		"younger before requested under its name": {
			first: rankedPod(a, younger), second: rankedPod(b, func(pod *v1.Pod) { pod.UID = "b2" }), requests: requests(requestOf(b)),
		},
		"leaving before not assigned": {
			first: rankedPod(a), second: rankedPod(b, unassigned), requests: requests(requestOf(a)), rs: withLeaving(a),
		},
		"leaving before pending": {
			first: rankedPod(a), second: rankedPod(b, phase(v1.PodPending)), requests: requests(requestOf(a)), rs: withLeaving(a),
		},
		"not ready before leaving, where no other is available": {
			first: rankedPod(a, notReady), second: rankedPod(b), requests: requests(requestOf(b)), rs: withLeaving(b),
		},
		"not available before leaving, where no other is available": {
			first: rankedPod(a, justReady), second: rankedPod(b), requests: requests(requestOf(b)), rs: withMinReadySeconds(withLeaving(b)),
		},
		"leaving and broken before not assigned": {
			first: rankedPod(a, notReady), second: rankedPod(b, unassigned, notReady), requests: requests(requestOf(a)), rs: withLeaving(a),
		},
		"not available before requested": {
			first: rankedPod(a, justReady), second: rankedPod(b), requests: requests(requestOf(b)), rs: withMinReadySeconds(newReplicaSetOf()),
		},
		"not available before requested, also where that is cheap to delete": {
			first: rankedPod(a, justReady), second: rankedPod(b, cheapToDelete), requests: requests(requestOf(b)), rs: withMinReadySeconds(newReplicaSetOf()),
		},
		"not available and requested before not available": {
			first: rankedPod(a, justReady), second: rankedPod(b, justReady, younger), requests: requests(requestOf(a)), rs: withMinReadySeconds(newReplicaSetOf()),
		},
		"available for as long as it must, and requested": {
			first: rankedPod(a), second: rankedPod(b, justReady), requests: requests(requestOf(a)),
		},
		"not ready before not available": {
			first: rankedPod(a, notReady), second: rankedPod(b, justReady), requests: requests(requestOf(b)), rs: withMinReadySeconds(newReplicaSetOf()),
		},
		"leaving before requested": {
			first: rankedPod(a), second: rankedPod(b, younger), requests: requests(requestOf(a), requestOf(b)), rs: withLeaving(a),
		},
		"requested and not ready before leaving, where no other is available": {
			first: rankedPod(a, notReady), second: rankedPod(b), requests: requests(requestOf(a), requestOf(b)), rs: withLeaving(b),
		},
		"of two leaving the one that is not ready": {
			first: rankedPod(a, notReady), second: rankedPod(b, younger), requests: requests(requestOf(a), requestOf(b)), rs: withLeaving(b, a),
		},
		"younger before leaving without a request": {
			first: rankedPod(a, younger), second: rankedPod(b), rs: withLeaving(b),
		},
		"younger before leaving and canceled": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(requestOf(b, canceled)), rs: withLeaving(b),
		},
		"any other before canceled, at the end of a surge": {
			first: rankedPod(a), second: rankedPod(b, cheapToDelete, younger), requests: requests(requestOf(b, canceled)), rs: endingSurge(),
		},
		"any other before withdrawn, at the end of a surge": {
			first: rankedPod(a), second: rankedPod(b, cheapToDelete, younger), requests: requests(withdrawn(requestOf(b))), rs: endingSurge(),
		},
		"canceled and not ready before ready, at the end of a surge": {
			first: rankedPod(a, notReady), second: rankedPod(b), requests: requests(requestOf(a, canceled)), rs: endingSurge(),
		},
		"evicted does not matter, at the end of a surge": {
			first: rankedPod(a, cheapToDelete), second: rankedPod(b), requests: requests(requestOf(a, evicted)), rs: endingSurge(),
		},
		"canceled does not matter without a surge": {
			first: rankedPod(a, cheapToDelete), second: rankedPod(b), requests: requests(requestOf(a, canceled)),
		},
		"withdrawn before others no more": {
			first: rankedPod(a, cheapToDelete), second: rankedPod(b), requests: requests(withdrawn(requestOf(b))),
		},
		"younger before leaving and evicted": {
			first: rankedPod(a, younger), second: rankedPod(b), requests: requests(requestOf(b, evicted)), rs: withLeaving(b),
		},
		"not assigned before leaving, after another client has scaled": {
			first: rankedPod(a, unassigned), second: rankedPod(b), requests: requests(requestOf(b)),
			rs: func() *apps.ReplicaSet {
				rs := withLeaving(b)
				rs.Spec.Replicas = ptr.To(*rs.Spec.Replicas + 1)
				return rs
			}(),
		},
		"not assigned before leaving by an invalid annotation": {
			first: rankedPod(a, unassigned), second: rankedPod(b), requests: requests(requestOf(b)),
			rs: newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Annotations = map[string]string{deploymentutil.EvictionSurgeAnnotation: `{"of":1,"leaving":["b"]`}
			}),
		},
		"leaving before not assigned, while requests are unknown": {
			first: rankedPod(a), second: rankedPod(b, unassigned), rs: withLeaving(a), unknown: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			f.intercept(t)
			f.rsc.evictions.requestsSynced = func() bool { return !test.unknown }
			for _, request := range test.requests {
				f.cached(t, request)
			}
			rs := test.rs
			if rs == nil {
				rs = newReplicaSetOf()
			}
			for _, pods := range [][]*v1.Pod{{test.first, test.second}, {test.second, test.first}} {
				related := slices.Concat(pods, test.related)
				got := f.rsc.getPodsToDelete(f.ctx, rs, pods, related, 1)
				if diff := cmp.Diff([]string{test.first.Name}, names(got)); diff != "" {
					t.Errorf("deletes (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func requests(requests ...*coordinationv1alpha1.EvictionRequest) []*coordinationv1alpha1.EvictionRequest {
	return requests
}

func names(pods []*v1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// randomPods returns pods that often differ in the fields that the order compares, and often do
// not.
func randomPods(random *rand.Rand, count int) []*v1.Pod {
	changes := []func(*v1.Pod){
		unassigned, notReady, restarted, younger, readySince, cheapToDelete, onSharedNode,
		phase(v1.PodPending), phase(v1.PodUnknown),
	}
	var pods []*v1.Pod
	for i := range count {
		pod := rankedPod(fmt.Sprintf("pod-%02d", i))
		for _, change := range changes {
			if random.IntN(4) == 0 {
				change(pod)
			}
		}
		pods = append(pods, pod)
	}
	return pods
}

// Without requests that are not done or canceled, pods are deleted in upstream's order.
func TestScaleDownOrderWithoutRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, setUp := range map[string]func(*testing.T, *evictionFixture){
		"does not take part in evictions": func(t *testing.T, f *evictionFixture) {
			for i := range 12 {
				f.cached(t, requestOf(fmt.Sprintf("pod-%02d", i)))
			}
		},
		"takes part in evictions": func(t *testing.T, f *evictionFixture) {
			f.intercept(t)
			f.rsc.evictions.requestsSynced = func() bool { return true }
			f.cached(t, requestOf("pod-03", evicted), requestOf("pod-04", evicted))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			setUp(t, f)
			for range 200 {
				pods := randomPods(random, 12)
				for diff := range len(pods) + 1 {
					want := getPodsToDelete(slices.Clone(pods), pods, diff)
					got := f.rsc.getPodsToDelete(f.ctx, withLeaving("pod-03", "pod-05"), slices.Clone(pods), pods, diff)
					if diff := cmp.Diff(names(want), names(got)); diff != "" {
						t.Fatalf("deletes (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}

// Sorting requires a strict weak order, and does not check that it has one.
func TestScaleDownOrderIsStrictAndWeak(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		f := newEvictionFixture(t)
		f.intercept(t)
		f.rsc.evictions.requestsSynced = func() bool { return true }
		pods := randomPods(random, 12)
		var leaving []types.UID
		for _, pod := range pods {
			if random.IntN(3) == 0 {
				f.cached(t, requestOf(pod.Name))
			}
			if random.IntN(3) == 0 {
				leaving = append(leaving, pod.UID)
			}
		}
		rs := withLeaving(leaving...)
		rs.Spec.MinReadySeconds = 5400 // Pods with readySince are unavailable.
		newOrder := func() evictionOrder {
			ranked := getPodsRankedByRelatedPodsOnSameNode(slices.Clone(pods), pods)
			// With a time, upstream compares ages by their magnitude, and then, before restarts,
			// those of the same magnitude by UID. That is not a strict weak order.
			ranked.Now = metav1.Time{}
			return f.rsc.evictions.order(metav1.NewTime(orderStart.Add(2*time.Hour)), rs, f.rsc.surgeOf(f.ctx, rs), ranked)
		}
		expectStrictWeakOrder(t, newOrder())
		order := newOrder()
		sort.Sort(order)
		pods = order.Pods
		for sorted, i := newOrder(), 1; i < sorted.Len(); i++ {
			if sorted.Less(i, i-1) {
				t.Fatalf("%s is sorted before %s, and should come after it", pods[i-1].Name, pods[i].Name)
			}
		}
	}
}

func expectStrictWeakOrder(t *testing.T, order sort.Interface) {
	t.Helper()
	equal := func(i, j int) bool { return !order.Less(i, j) && !order.Less(j, i) }
	for i := range order.Len() {
		if order.Less(i, i) {
			t.Fatalf("%d comes before itself", i)
		}
		for j := range order.Len() {
			if order.Less(i, j) && order.Less(j, i) {
				t.Fatalf("%d and %d come before each other", i, j)
			}
			for k := range order.Len() {
				if order.Less(i, j) && order.Less(j, k) && !order.Less(i, k) {
					t.Fatalf("%d comes before %d, that before %d, and the first not before the last", i, j, k)
				}
				if equal(i, j) && equal(j, k) && !equal(i, k) {
					t.Fatalf("%d is like %d, that like %d, and the first not like the last", i, j, k)
				}
			}
		}
	}
}

// Pods are marked as leaving while enough others are available, in the order of the record.
// Duplicates in the record have no effect.
func TestLeavingIsBounded(t *testing.T) {
	f := newEvictionFixture(t)
	f.intercept(t)
	f.rsc.evictions.requestsSynced = func() bool { return true }
	for _, name := range []string{"a", "b", "c"} {
		f.cached(t, requestOf(name))
	}
	pods := []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c"), rankedPod("d"), rankedPod("e", notReady)}
	for name, test := range map[string]struct {
		wanted, extra int32
		want          []bool
	}{
		"two wanted":                        {wanted: 2, want: []bool{false, true, true, false, false}},
		"two wanted, one extra that starts": {wanted: 2, extra: 1, want: []bool{false, true, true, false, false}},
		"as many as are available":          {wanted: 4, want: []bool{false, false, false, false, false}},
		"one less":                          {wanted: 3, want: []bool{false, false, true, false, false}},
		"one less, with a forged number of extra ones": {wanted: 3, extra: 2, want: []bool{false, false, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			rs := surging(test.wanted, test.extra, func(rs *apps.ReplicaSet) {
				*rs.Spec.Replicas = test.wanted
				deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Surge: test.extra, Leaving: []types.UID{"c", "c", "gone", "b", "a"}})
			})
			f.cached(t, newDeployment(intstr.FromInt32(1), func(d *apps.Deployment) { d.Spec.Replicas = &test.wanted }), rs)
			order := f.rsc.evictions.order(metav1.Now(), rs, f.rsc.surgeOf(f.ctx, rs), getPodsRankedByRelatedPodsOnSameNode(pods, nil))
			if diff := cmp.Diff(test.want, order.leaving); diff != "" {
				t.Errorf("unexpected leaving pods (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a Deployment without extra replicas", func(t *testing.T) {
		rs := surging(1, 2, func(rs *apps.ReplicaSet) {
			*rs.Spec.Replicas = 1
			deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Surge: 3, Leaving: []types.UID{"c"}})
		})
		f.cached(t, newDeployment(intstr.FromInt32(1), func(d *apps.Deployment) { d.Spec.Replicas = ptr.To[int32](4) }), rs)
		order := f.rsc.evictions.order(metav1.Now(), rs, f.rsc.surgeOf(f.ctx, rs), getPodsRankedByRelatedPodsOnSameNode(pods, nil))
		if slices.Contains(order.leaving, true) {
			t.Errorf("pods leave for a forged surge: %v", order.leaving)
		}
	})
}

// The metric of the ages of deleted pods is recorded as in upstream.
func TestScaleDownIsMeasured(t *testing.T) {
	f := newEvictionFixture(t)
	f.intercept(t)
	f.cached(t, requestOf("a"))
	count := func() uint64 {
		t.Helper()
		count, err := testutil.GetHistogramMetricCount(metrics.SortingDeletionAgeRatio.ObserverMetric)
		if err != nil {
			t.Fatalf("reading the metric: %v", err)
		}
		return count
	}
	before := count()
	pods := []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c")}
	f.rsc.getPodsToDelete(f.ctx, newReplicaSetOf(), pods, pods, 2)
	if got := count() - before; got != 2 {
		t.Errorf("counted %d pods, want 2", got)
	}
}
