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
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/fairshare"
)

func on(node string) func(*v1.Pod) { return func(pod *v1.Pod) { pod.Spec.NodeName = node } }

func requestedBy(names ...string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
		}
	}
}

// nodeOf returns a node that is drained by this maintenance, if drained.
func nodeOf(maintenance string, drained v1.ConditionStatus) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + maintenance},
		Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{
				{Type: v1.NodeReady, Status: v1.ConditionTrue, Message: "kubelet is posting ready status"},
				{Type: v1.NodeDrainInProgress, Status: drained, Message: "NodeMaintenance " + maintenance},
			},
			MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: []v1.DrainPlanEntry{{}}},
		},
	}
}

// recordedNode returns a node with which these maintenances have begun, and whose kubelet pretends another one.
func recordedNode(name string, uids ...types.UID) *v1.Node {
	node := nodeOf("forged", v1.ConditionTrue)
	node.Name = name
	for _, uid := range uids {
		node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, v1.MaintenanceAdmission{MaintenanceUID: uid})
	}
	over := v1.MaintenanceAdmission{MaintenanceUID: "over", DoneTime: &metav1.Time{}}
	node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, over)
	return node
}

// forgedNode returns a node whose kubelet pretends that a maintenance drains it.
func forgedNode(name string) *v1.Node {
	node := nodeOf(name, v1.ConditionTrue)
	node.Status.MaintenanceStatus = nil
	return node
}

// claimedNode returns a forgedNode that a maintenance claims, without draining it yet.
func claimedNode(name string) *v1.Node {
	node := nodeOf(name, v1.ConditionTrue)
	node.Status.MaintenanceStatus.DrainTargets = nil
	return node
}

func TestOwners(t *testing.T) {
	const drain, user = coordinationv1alpha1.NodeMaintenanceRequester, "user.example.com"
	for name, test := range map[string]struct {
		requesters []string
		node       string
		// uid is that of the pod that has the name, if it is another one.
		uid  types.UID
		want fairshare.Owner
	}{
		"a user":                                 {requesters: []string{user}, node: "node-of-m", want: fairshare.Owner{Tenant: namespace, Source: user}},
		"a drain":                                {requesters: []string{drain}, node: "node-of-m", want: fairshare.Owner{Flow: "node drains", Tenant: namespace, Source: "node-of-m"}},
		"a drain that has joined a user":         {requesters: []string{user, drain}, node: "node-of-m", want: fairshare.Owner{Flow: "node drains", Tenant: namespace, Source: "node-of-m"}},
		"a drain whose node says something else": {requesters: []string{drain}, node: "node-of-other", want: fairshare.Owner{Flow: "node drains", Tenant: namespace, Source: "node-of-other"}},
		"another pod has the name":               {requesters: []string{drain}, node: "node-of-m", uid: "another", want: fairshare.Owner{Tenant: namespace, Source: drain}},
		"a drain of a node that is gone":         {requesters: []string{drain}, node: "gone", want: fairshare.Owner{Tenant: namespace, Source: drain}},
		"a drain that a kubelet pretends":        {requesters: []string{drain}, node: "node-of-forged", want: fairshare.Owner{Tenant: namespace, Source: drain}},
		"a drain that a kubelet pretends early":  {requesters: []string{drain}, node: "node-of-claimed", want: fairshare.Owner{Tenant: namespace, Source: drain}},
		"recorded drains":                        {requesters: []string{drain}, node: "recorded", want: fairshare.Owner{Flow: "a,b", Tenant: namespace, Source: drain}},
		"only ended drains are recorded":         {requesters: []string{drain}, node: "ended", want: fairshare.Owner{Flow: "node drains", Tenant: namespace, Source: "ended"}},
		"a request that nobody wants any longer": {node: "node-of-m", want: fairshare.Owner{Tenant: namespace}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(requestedBy(test.requesters...)), newPod(on(test.node), func(pod *v1.Pod) {
				if test.uid != "" {
					pod.UID = test.uid
				}
			}), nodeOf("m", v1.ConditionTrue), nodeOf("other", v1.ConditionFalse), forgedNode("forged"), claimedNode("claimed"),
				recordedNode("recorded", "b", "a"), recordedNode("ended"))
			for _, item := range []evictionItem{itemOf(requestKeyOfPod), budgetItem("web")} {
				f.imperative.waiting.place(requestKeyOfPod, []types.NamespacedName{{Namespace: namespace, Name: "web"}}, &candidate{request: requestKeyOfPod})
				if diff := cmp.Diff(test.want, f.imperative.ownerOf(item)); diff != "" {
					t.Errorf("unexpected owner of %v (-want, +got):\n%s", item, diff)
				}
			}
			f.imperative.forget(requestKeyOfPod)
			if got, want := f.imperative.ownerOf(budgetItem("web")), (fairshare.Owner{Tenant: namespace}); got != want {
				t.Errorf("a budget for which no request waits: got %v, want %v", got, want)
			}
		})
	}
}

// In both queues, neither a user nor a small drain waits for hundreds of requests of a large drain,
// or of another user, that wait already, also in the same namespace.
func TestOwnersTakeTurns(t *testing.T) {
	const drain = coordinationv1alpha1.NodeMaintenanceRequester
	f := newFixture(t, recordedNode("node-of-large", "large"), recordedNode("node-of-small", "small"))
	add := func(kind, namespace, requester, node string, count int) {
		for i := range count {
			request, pod := pairIn(namespace, fmt.Sprintf("%s-%d", kind, i), requestedBy(requester))
			pod.Spec.NodeName = node
			f.addToCache(t, request)
			f.addToCache(t, pod)
			f.queue.Add(keyOf(request))
			f.imperative.queue.Add(itemOf(keyOf(request)))
		}
	}
	f.queue, f.limitWorkers = newQueue(f.clock, f.owners.of)
	f.imperative.queue, f.imperative.limitWorkers = newEvictionQueue(f.clock, f.imperative.ownerOf)
	defer f.queue.ShutDown()
	defer f.imperative.queue.ShutDown()
	f.limitWorkers(1)
	f.imperative.limitWorkers(1)
	add("large", "a", drain, "node-of-large", 100)
	add("large-elsewhere", "b", drain, "node-of-large", 100)
	add("descheduler", "a", "descheduler.example.com", "node-of-large", 100)
	add("small", "a", drain, "node-of-small", 2)
	add("user", "a", "user.example.com", "node-of-large", 1)

	var synced, evicted []string
	for range 8 {
		key, _ := f.queue.Get()
		synced = append(synced, key.Name)
		f.queue.Done(key)
		item, _ := f.imperative.queue.Get()
		evicted = append(evicted, item.request.Name)
		f.imperative.queue.Done(item)
	}
	want := []string{
		"uid-of-large-0", "uid-of-descheduler-0", "uid-of-small-0",
		"uid-of-large-elsewhere-0", "uid-of-user-0", "uid-of-small-1",
		"uid-of-large-1", "uid-of-descheduler-1",
	}
	if diff := cmp.Diff([][]string{want, want}, [][]string{synced, evicted}); diff != "" {
		t.Errorf("unexpected order of syncs and of evictions (-want, +got):\n%s", diff)
	}
}

// Without records of drains, a drain of a few nodes does not wait for all pods of another one.
func TestNodesOfUnrecordedDrainsTakeTurns(t *testing.T) {
	f := newFixture(t, recordedNode("large"), recordedNode("small"))
	queue, limit := newQueue(f.clock, f.owners.of)
	defer queue.ShutDown()
	limit(1)
	for _, drain := range []struct {
		node string
		pods int
	}{{"large", 100}, {"small", 2}} {
		for i := range drain.pods {
			request, pod := pairIn(namespace, fmt.Sprintf("%s-%d", drain.node, i), requestedBy(coordinationv1alpha1.NodeMaintenanceRequester))
			pod.Spec.NodeName = drain.node
			f.addToCache(t, request)
			f.addToCache(t, pod)
			queue.Add(keyOf(request))
		}
	}
	var got []string
	for range 5 {
		key, _ := queue.Get()
		got = append(got, key.Name)
		queue.Done(key)
	}
	if diff := cmp.Diff([]string{"uid-of-large-0", "uid-of-small-0", "uid-of-large-1", "uid-of-small-1", "uid-of-large-2"}, got); diff != "" {
		t.Errorf("unexpected order (-want, +got):\n%s", diff)
	}
}
