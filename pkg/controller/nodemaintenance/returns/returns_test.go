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

package returns

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// Since when a node is claimed is what was read first, and not that of another node with its name.
func TestClaimTimesAreRemembered(t *testing.T) {
	r, never := New(nil), time.Time{}
	for _, step := range []struct {
		name        string
		uid         types.UID
		since, want time.Time
	}{
		{"its status does not say it yet", "first", never, never},
		{"it says so", "first", start, start},
		{"others write it", "first", start.Add(time.Minute), start},
		{"it does not say it any more", "first", never, start},
		{"another node", "second", start.Add(time.Minute), start.Add(time.Minute)},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: step.uid}}
		if !step.since.IsZero() {
			node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue, Reason: status.ReasonInProgress, LastTransitionTime: metav1.NewTime(step.since)}}
		}
		if got := r.claimedSince(node, start.Add(time.Hour)); !got.Equal(step.want) {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
}

// Each owner has a pace of its own, but not each owner that a pod names.
func TestPaceOfOwners(t *testing.T) {
	r, node := New(nil), &v1.Node{}
	node.Name = "n"
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	node.Status.Conditions = []v1.NodeCondition{{
		Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue, Reason: status.ReasonInProgress, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}}
	pod := func(uid, owner types.UID, options ...func(*v1.Pod)) *v1.Pod {
		created := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: uid, CreationTimestamp: metav1.NewTime(now)}}
		for _, option := range append([]func(*v1.Pod){ownedBy(owner)}, options...) {
			option(created)
		}
		return created
	}
	isHeld := func(uid types.UID) bool { _, held := r.Held("n", uid); return held }
	r.See(node, []*v1.Pod{pod("a1", "a"), pod("b1", "b")}, now)
	if isHeld("a1") || isHeld("b1") {
		t.Errorf("the first pods are held")
	}
	r.See(node, []*v1.Pod{pod("a2", "a"), pod("b1", "b"), pod("c1", "c")}, now.Add(time.Second))
	if !isHeld("a2") || isHeld("b1") || isHeld("c1") {
		t.Errorf("held: %t, %t, %t; only the second one of an owner must be", isHeld("a2"), isHeld("b1"), isHeld("c1"))
	}
	r.See(node, []*v1.Pod{pod("a2", "a")}, now.Add(returnPause))
	if isHeld("a2") {
		t.Errorf("held after its time")
	}
	var many []*v1.Pod
	for i := range 3 * maxReturnOwners {
		uid := types.UID("x" + strings.Repeat("x", i))
		many = append(many, pod(uid, uid))
	}
	for i := range many {
		r.See(node, many[i:i+1], now.Add(returnPause+time.Duration(i)*time.Millisecond))
	}
	if !isHeld(many[len(many)-1].UID) || len(r.nodes["n"].owners) > maxReturnOwners+1 {
		t.Errorf("a pod that names another owner each time is not held, with %d owners", len(r.nodes["n"].owners))
	}
	r.See(node, nil, now.Add(time.Hour))
	if got := r.Settles("n", now.Add(time.Hour)); got != LateSettled {
		t.Errorf("settles for %v", got)
	}
	r.See(node, []*v1.Pod{pod("a3", "a")}, now.Add(2*time.Hour))
	if isHeld("a3") {
		t.Errorf("held long after the last one")
	}
	for name, other := range map[string]*v1.Pod{
		"of a DaemonSet":         pod("d", "d", daemon),
		"created before":         pod("e", "e", tolerating, func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour)) }),
		"bound during the write": pod("f", "f", func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour + BindingDelay)) }),
	} {
		if since := maintenance.ClaimedSince(node, now); isCreatedSince(other, since) && !isLateBinding(other, since) {
			t.Errorf("a pod %s has come back", name)
		}
	}
	if maintenance.ComesBack(pod("g", "g")) || !maintenance.ComesBack(pod("g", "g", tolerating)) || maintenance.ComesBack(pod("g", "g", tolerating, func(pod *v1.Pod) { pod.OwnerReferences = nil })) {
		t.Errorf("a pod comes back to a cordoned node if its controller creates another one that tolerates it")
	}
}

// The first pods of each owner that may have been bound late have not come back, and do not keep the node from being
// drained; the next ones have.
func TestLateBindings(t *testing.T) {
	r, node := New(nil), &v1.Node{}
	node.Name = "n"
	claimed := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	node.Status.Conditions = []v1.NodeCondition{{
		Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue, Reason: status.ReasonInProgress, LastTransitionTime: metav1.NewTime(claimed),
	}}
	pod := func(uid, owner types.UID, after time.Duration) *v1.Pod {
		created := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: uid, CreationTimestamp: metav1.NewTime(claimed.Add(after))}}
		ownedBy(owner)(created)
		return created
	}
	isHeld := func(uid types.UID) bool { _, held := r.Held("n", uid); return held }
	see := func(after time.Duration, pods ...*v1.Pod) { r.See(node, pods, claimed.Add(after)) }
	before := pod("a0", "a", 0)
	a1, b1 := pod("a1", "a", time.Second), pod("b1", "b", BindingDelay)
	see(0, before)
	see(time.Second, before, a1)
	see(BindingDelay, a1, b1)
	if isHeld("a0") || isHeld("a1") || isHeld("b1") {
		t.Errorf("the first ones are held: %t, %t, %t", isHeld("a0"), isHeld("a1"), isHeld("b1"))
	}
	see(BindingDelay + time.Second)
	if got := r.Settles("n", claimed.Add(BindingDelay+time.Second)); got != 0 {
		t.Errorf("after the first ones, the node settles for %v", got)
	}
	b2 := pod("b2", "b", BindingDelay)
	see(BindingDelay+2*time.Second, b2)
	if !isHeld("b2") {
		t.Error("the second one of an owner is not held")
	}
	see(BindingDelay+returnPause, b2)
	if isHeld("b2") {
		t.Error("held after its time")
	}
	see(BindingDelay+returnPause+time.Millisecond, b2)
	see(BindingDelay + returnPause + time.Second)
	if got := r.Settles("n", claimed.Add(BindingDelay+returnPause+time.Second)); got != LateSettled {
		t.Errorf("after a second one, the node settles for %v", got)
	}
}

// How long an empty node settles, and whether it names pods that come back, depends on those that have come back indeed.
func TestSettling(t *testing.T) {
	claimed := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	pod := func(after time.Duration, options ...func(*v1.Pod)) *v1.Pod {
		uid := types.UID(after.String())
		created := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: uid, CreationTimestamp: metav1.NewTime(claimed.Add(after))}}
		for _, option := range append([]func(*v1.Pod){ownedBy(uid)}, options...) {
			option(created)
		}
		return created
	}
	for name, test := range map[string]struct {
		unclaimed bool
		pods      []*v1.Pod
		settles   time.Duration
		comeBack  int
	}{
		"one that may come back":                     {pods: []*v1.Pod{pod(-time.Minute, tolerating)}, settles: Settled},
		"such a one, and another one was bound late": {pods: []*v1.Pod{pod(-time.Minute, tolerating), pod(time.Second)}, settles: Settled},
		"one was bound late":                         {pods: []*v1.Pod{pod(time.Second)}},
		"one has come back at once":                  {pods: []*v1.Pod{pod(time.Second, tolerating)}, settles: LateSettled, comeBack: 1},
		"one came after the cordon was known":        {pods: []*v1.Pod{pod(BindingDelay + time.Second)}, settles: LateSettled, comeBack: 1},
		"nobody claims the node":                     {unclaimed: true, pods: []*v1.Pod{pod(time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			r, node := New(nil), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			if !test.unclaimed {
				node.Status.Conditions = []v1.NodeCondition{{
					Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue, Reason: status.ReasonInProgress, LastTransitionTime: metav1.NewTime(claimed),
				}}
			}
			emptied := claimed.Add(BindingDelay + unsettledAfter + 2*time.Second)
			r.See(node, test.pods, claimed.Add(BindingDelay+time.Second))
			r.See(node, test.pods, emptied.Add(-time.Second))
			r.See(node, nil, emptied)
			if got := r.Settles("n", emptied); got != test.settles {
				t.Errorf("settles for %v, want %v", got, test.settles)
			}
			if got := r.Unsettled("n", emptied); len(got) != test.comeBack {
				t.Errorf("pods that come back: %+v, want %d", got, test.comeBack)
			}
		})
	}
}

// No pod is decided on before all kinds of owners are known, where they are.
func TestOwnersAreAwaited(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	owners := &OwnerInformers{
		Jobs: factory.Batch().V1().Jobs(), ReplicaSets: factory.Apps().V1().ReplicaSets(),
		StatefulSets: factory.Apps().V1().StatefulSets(), ReplicationControllers: factory.Core().V1().ReplicationControllers(),
	}
	awaited := owners.Synced()
	if len(awaited) != 4 || slices.ContainsFunc(awaited, func(synced cache.InformerSynced) bool { return synced() }) {
		t.Errorf("%d informers are awaited, want 4, none of which has synced", len(awaited))
	}
	var unknown *OwnerInformers
	pod := &v1.Pod{Spec: v1.PodSpec{NodeName: "n"}}
	ownedBy("owner")(pod)
	if len(unknown.Synced()) > 0 || unknown.nameNodeOf(pod) {
		t.Error("owners that are not known name a node")
	}
}
