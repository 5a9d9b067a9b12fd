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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

// surging returns a ReplicaSet with this many wanted and extra replicas.
func surging(wanted, surge int32, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	return newReplicaSetOf(append([]func(*apps.ReplicaSet){func(rs *apps.ReplicaSet) {
		rs.Spec.Replicas = ptr.To(wanted)
		deploymentutil.SetReplicasAnnotations(rs, wanted, wanted+surge)
		deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Surge: surge})
	}}, changes...)...)
}

// No pod is created for an extra replica without a pod that should leave. The other missing pods,
// and the surplus ones, are counted as usual.
func TestSurplus(t *testing.T) {
	two := func(d *apps.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }
	pods := func(names ...string) []*v1.Pod {
		var pods []*v1.Pod
		for _, name := range names {
			pods = append(pods, rankedPod(name))
		}
		return pods
	}
	other := func(replicas int32) *apps.ReplicaSet {
		return newReplicaSetOf(func(rs *apps.ReplicaSet) {
			rs.Name, rs.UID, rs.Spec.Replicas = "web-0", "rs0", ptr.To(replicas)
		})
	}
	tests := map[string]struct {
		deployment *apps.Deployment
		rs         *apps.ReplicaSet
		others     []*apps.ReplicaSet
		pods       []*v1.Pod
		requests   []string
		unknown    bool
		off        bool
		want       int
	}{
		"no extra replica": {rs: surging(2, 0), pods: pods("a"), want: -1},
		"no extra replica, another pod waits for its turn": {rs: surging(2, 0), pods: pods("a"), requests: []string{"a"}, want: -1},
		"too many":                                             {rs: surging(2, 0), pods: pods("a", "b", "c"), want: 1},
		"the pod should leave":                                 {rs: surging(2, 1), pods: pods("a", "b"), requests: []string{"a"}, want: -1},
		"it has left":                                          {rs: surging(2, 1), pods: pods("b", "c"), want: 0},
		"it has left, and another one":                         {rs: surging(2, 1), pods: pods("c"), want: -1},
		"one of two has left":                                  {rs: surging(2, 2), pods: pods("a", "c"), requests: []string{"a"}, want: -1},
		"both should leave":                                    {rs: surging(2, 2), pods: pods("a", "b"), requests: []string{"a", "b"}, want: -2},
		"more should leave than are extra":                     {rs: surging(2, 1), pods: pods("a", "b"), requests: []string{"a", "b"}, want: -1},
		"all have left":                                        {rs: surging(2, 2), pods: pods("c", "d"), want: 0},
		"more than wanted exist":                               {rs: surging(2, 2), pods: pods("b", "c", "d"), want: 0},
		"more than requested exist: none is deleted":           {rs: surging(2, 1), pods: pods("b", "c", "d"), want: 0},
		"a pod should leave, surplus is deleted":               {rs: surging(2, 1), pods: pods("a", "b", "c", "d"), requests: []string{"a"}, want: 1},
		"requests are not known":                               {rs: surging(2, 1), pods: pods("b", "c"), unknown: true, want: -1},
		"does not take part in evictions":                      {rs: surging(2, 1), pods: pods("b", "c"), off: true, want: -1},
		"the Deployment was scaled up":                         {deployment: newDeployment(intstr.FromInt32(1), func(d *apps.Deployment) { d.Spec.Replicas = ptr.To[int32](3) }), rs: surging(2, 1), pods: pods("b", "c"), want: -1},
		"the Deployment was scaled up, another ReplicaSet too": {deployment: newDeployment(intstr.FromInt32(1), func(d *apps.Deployment) { d.Spec.Replicas = ptr.To[int32](3) }), rs: surging(2, 1), others: []*apps.ReplicaSet{other(1)}, pods: pods("b", "c"), want: 0},
		"another Deployment has the name":                      {deployment: newDeployment(intstr.FromInt32(1), two, func(d *apps.Deployment) { d.UID = "d1" }), rs: surging(2, 1), pods: pods("b", "c"), want: -1},
		"no Deployment controls it":                            {rs: surging(2, 1, ownedBy()), pods: pods("b", "c"), want: -1},
		"forged: all replicas are extra": {rs: newReplicaSetOf(func(rs *apps.ReplicaSet) {
			rs.Spec.Replicas = ptr.To[int32](2)
			rs.Annotations = map[string]string{deploymentutil.EvictionSurgeAnnotation: `{"surge":2,"of":2,"desired":-1}`}
		}), want: -2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			queue := &delayedQueue{}
			f.rsc.queue = queue
			if !test.off {
				f.intercept(t)
				f.rsc.evictions.requestsSynced = func() bool { return !test.unknown }
			}
			if test.deployment == nil {
				test.deployment = newDeployment(intstr.FromInt32(1), two)
			}
			f.cached(t, test.deployment, test.rs)
			for _, rs := range test.others {
				f.cached(t, rs)
			}
			for _, request := range test.requests {
				f.cached(t, requestOf(request))
			}
			got, _, err := f.rsc.surplus(f.ctx, test.pods, test.rs)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			// A ReplicaSet with an omitted pod is synced again without an event, and one whose missing pods an
			// eviction waits for.
			var delayed []string
			_, surges := test.rs.Annotations[deploymentutil.EvictionSurgeAnnotation]
			switch leftOut := got != len(test.pods)-int(*test.rs.Spec.Replicas); {
			case leftOut:
				delayed = []string{"default/web-1 after 5s"}
			case got < 0 && !test.off && (surges || len(test.requests) > 0):
				delayed = []string{"default/web-1 after 30s"}
			}
			if diff := cmp.Diff(delayed, queue.delayed); diff != "" {
				t.Errorf("synced again (-want +got):\n%s", diff)
			}
		})
	}
}

// During a rollout, pods of one ReplicaSet may wait for those that another one lacks.
func TestMissingPodsOfAnotherReplicaSet(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(older *apps.ReplicaSet)
		request []*coordinationv1alpha1.EvictionRequest
		want    []string
	}{
		"a pod waits for its turn": {request: []*coordinationv1alpha1.EvictionRequest{requestOf("old")}, want: []string{"default/web-1 after 30s"}},
		"there are extra replicas": {change: func(rs *apps.ReplicaSet) {
			deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Surge: 1})
		}, want: []string{"default/web-1 after 30s"}},
		"nobody wants a pod": {request: []*coordinationv1alpha1.EvictionRequest{withdrawn(requestOf("old"))}},
		"it belongs to another Deployment": {change: func(rs *apps.ReplicaSet) {
			rs.OwnerReferences[0].UID = "other"
		}, request: []*coordinationv1alpha1.EvictionRequest{requestOf("old")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			queue := &delayedQueue{}
			f.rsc.queue = queue
			f.intercept(t)
			f.rsc.evictions.requestsSynced = func() bool { return true }
			newer := surging(2, 0)
			older := newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Name, rs.UID, rs.Status.Replicas = "web-0", "rs0", 1
			})
			if test.change != nil {
				test.change(older)
			}
			f.cached(t, newDeployment(intstr.FromInt32(1)), newer, older, rankedPod("old", func(pod *v1.Pod) {
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(older, apps.SchemeGroupVersion.WithKind("ReplicaSet"))}
			}))
			for _, request := range test.request {
				f.cached(t, request)
			}
			if _, _, err := f.rsc.surplus(f.ctx, []*v1.Pod{rankedPod("a")}, newer); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, queue.delayed); diff != "" {
				t.Errorf("synced again (-want +got):\n%s", diff)
			}
		})
	}
}

// A webhook may have refused to delete a replaced pod many times, and accepts it now.
func TestRefusedDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		leaving types.UID
		reason  string
		want    []string
	}{
		"of a replaced pod":     {leaving: "a", reason: "FailedDelete", want: []string{"default/web-1 after 30s"}},
		"nothing was refused":   {leaving: "a"},
		"a creation was before": {leaving: "a", reason: "FailedCreate"},
		"of another pod":        {leaving: "gone", reason: "FailedDelete"},
	} {
		t.Run(name, func(t *testing.T) {
			rs := newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Spec.Replicas = ptr.To[int32](1)
				deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Leaving: []types.UID{test.leaving}})
				if test.reason != "" {
					rs.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: test.reason}}
				}
			})
			f := newEvictionFixture(t, rs)
			queue := &delayedQueue{}
			f.rsc.queue = queue
			f.intercept(t)
			f.cached(t, newDeployment(intstr.FromInt32(1)), rs)
			got, _, err := f.rsc.surplus(f.ctx, []*v1.Pod{rankedPod("a"), rankedPod("b")}, rs)
			if got != 1 || err != nil {
				t.Fatalf("got %d to delete and error %v, want 1", got, err)
			}
			if diff := cmp.Diff(test.want, queue.delayed); diff != "" {
				t.Errorf("synced again (-want +got):\n%s", diff)
			}
		})
	}
}

// The controller may have been refused pods many times before an eviction waits for them.
func TestRequestAfterRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		missing int32
		change  func(*coordinationv1alpha1.EvictionRequest)
		want    []string
	}{
		"pods are missing":    {missing: 1, want: []string{"default/web-1 after 30s"}},
		"no pod is missing":   {},
		"it has another pod":  {missing: 1, change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.UID = "other" }},
		"its pod is not here": {missing: 1, change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.Name = "other" }},
		"it has no pod":       {missing: 1, change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			queue := &delayedQueue{}
			f.rsc.queue = queue
			f.intercept(t)
			newer := newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Spec.Replicas, rs.Status.Replicas = ptr.To(1+test.missing), 1
			})
			older := newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Name, rs.UID, rs.Status.Replicas = "web-0", "rs0", 1
			})
			f.cached(t, newer, older, rankedPod("old", func(pod *v1.Pod) {
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(older, apps.SchemeGroupVersion.WithKind("ReplicaSet"))}
			}))
			request := requestOf("old")
			if test.change != nil {
				test.change(request)
			}
			f.rsc.requestCreated(request)
			if diff := cmp.Diff(test.want, queue.delayed); diff != "" {
				t.Errorf("synced again (-want +got):\n%s", diff)
			}
		})
	}
}

// delayedQueue records what is added to it with a delay.
type delayedQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	delayed []string
}

func (q *delayedQueue) AddAfter(key string, after time.Duration) {
	q.delayed = append(q.delayed, fmt.Sprintf("%s after %v", key, after))
}

// The sync calls surplus before it creates pods.
func TestNoUnneededPods(t *testing.T) {
	for name, test := range map[string]struct {
		requested bool
		want      int
	}{
		"the pod should leave": {requested: true, want: 1},
		"it has left":          {want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			recorder := &recordingPodControl{}
			f.rsc.podControl = recorder
			f.intercept(t)
			f.rsc.evictions.requestsSynced = func() bool { return true }
			rs := surging(1, 1)
			f.cached(t, newDeployment(intstr.FromInt32(1)), rs)
			if test.requested {
				f.cached(t, requestOf("a"))
			}
			if err := f.rsc.manageReplicas(f.ctx, []*v1.Pod{rankedPod("a")}, rs); err != nil {
				t.Fatal(err)
			}
			if got := len(recorder.creations); got != test.want {
				t.Errorf("%d pods are created, want %d", got, test.want)
			}
		})
	}
}

// A pod is not deleted because it is leaving if it may stay: its request is withdrawn, or the cache is behind the
// ReplicaSet, whose record the Deployment has changed when the request was canceled.
func TestLeavingPodMayStay(t *testing.T) {
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		// stored changes the ReplicaSet at the API server, which has none if it is nil.
		stored  func(*apps.ReplicaSet)
		want    []string
		wantErr bool
		recheck bool
	}{
		"it leaves":                         {request: requestOf("a"), stored: func(*apps.ReplicaSet) {}, want: []string{"a"}},
		"its request is withdrawn":          {request: withdrawn(requestOf("a")), stored: func(*apps.ReplicaSet) {}, want: []string{"replacement"}},
		"the record does not have it":       {request: requestOf("a"), stored: func(rs *apps.ReplicaSet) { rs.Annotations = nil }, recheck: true},
		"the ReplicaSet has another size":   {request: requestOf("a"), stored: func(rs *apps.ReplicaSet) { rs.Generation++ }, recheck: true},
		"it is another ReplicaSet":          {request: requestOf("a"), stored: func(rs *apps.ReplicaSet) { rs.UID = "next" }, recheck: true},
		"the status has changed, only that": {request: requestOf("a"), stored: func(rs *apps.ReplicaSet) { rs.Status.Replicas, rs.ResourceVersion = 2, "9" }, want: []string{"a"}},
		"the ReplicaSet is gone":            {request: requestOf("a"), wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			recorder, queue := &recordingPodControl{}, &delayedQueue{}
			f.rsc.podControl, f.rsc.queue = recorder, queue
			f.intercept(t)
			f.rsc.evictions.requestsSynced = func() bool { return true }
			rs := withLeaving("a")
			f.cached(t, newDeployment(intstr.FromInt32(1)), rs, test.request)
			if test.stored != nil {
				stored := rs.DeepCopy()
				test.stored(stored)
				if err := f.client.Tracker().Add(stored); err != nil {
					t.Fatal(err)
				}
			}
			err := f.rsc.manageReplicas(f.ctx, []*v1.Pod{rankedPod("a"), rankedPod("replacement", cheapToDelete)}, rs)
			if (err != nil) != test.wantErr {
				t.Errorf("got error %v, want one: %t", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, recorder.deletions); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			if got := len(queue.delayed) > 0; got != test.recheck {
				t.Errorf("synced again: %t, want %t", got, test.recheck)
			}
		})
	}
}

// Nothing is read for a scale-down without pods that are leaving.
func TestOrdinaryScaleDownReadsNothing(t *testing.T) {
	f := newEvictionFixture(t)
	f.rsc.podControl = &recordingPodControl{}
	f.intercept(t)
	f.rsc.evictions.requestsSynced = func() bool { return true }
	rs := withLeaving("gone")
	f.cached(t, newDeployment(intstr.FromInt32(1)), rs)
	if err := f.rsc.manageReplicas(f.ctx, []*v1.Pod{rankedPod("a"), rankedPod("b")}, rs); err != nil {
		t.Fatal(err)
	}
	if actions := f.client.Actions(); len(actions) > 0 {
		t.Errorf("the controller calls %v", actions)
	}
}

// The sync deletes pods in the order for evictions: the replacement is ready, but not available
// yet.
func TestSyncDeletesInOurOrder(t *testing.T) {
	f := newEvictionFixture(t)
	recorder := &recordingPodControl{}
	f.rsc.podControl = recorder
	f.intercept(t)
	f.rsc.evictions.requestsSynced = func() bool { return true }
	rs := withMinReadySeconds(newReplicaSetOf())
	f.cached(t, newDeployment(intstr.FromInt32(1)), rs, requestOf("a"))
	expensive := func(pod *v1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.PodDeletionCost, "9") }
	if err := f.rsc.manageReplicas(f.ctx, []*v1.Pod{rankedPod("a"), rankedPod("replacement", justReady, expensive)}, rs); err != nil {
		t.Fatal(err)
	}
	if len(recorder.deletions) != 1 || recorder.deletions[0] != "replacement" {
		t.Errorf("deleted %v, want the replacement: no other pod is available", recorder.deletions)
	}
}
