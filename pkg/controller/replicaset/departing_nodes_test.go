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
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	testingclock "k8s.io/utils/clock/testing"
)

// nodeOf returns the node of a pod of rankedPod, with these conditions.
func nodeOf(pod string, conditions ...v1.NodeConditionType) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + pod}}
	for _, condition := range conditions {
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: condition, Status: v1.ConditionTrue})
	}
	return node
}

// A scale-down deletes the first pod of each pair. That the node of a pod is to go comes after the wishes of the owner,
// and before everything that merely follows from what happened before.
func TestScaleDownPrefersDepartingNodes(t *testing.T) {
	const a, b = "a", "b"
	dear := func(p *v1.Pod) { p.Annotations = map[string]string{v1.PodDeletionCost: "9"} }
	for name, test := range map[string]struct {
		first, second *v1.Pod
		nodes         []*v1.Node
		// ranks are those of a picker, if there is one.
		ranks map[string]int
		// requested has an eviction request.
		requested string
		// related are other pods, for the ranks by node.
		related []*v1.Pod
	}{
		"planned":                               {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned), nodeOf(b)}},
		"in progress":                           {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenanceInProgress), nodeOf(b)}},
		"in progress before planned":            {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned, v1.NodeMaintenanceInProgress), nodeOf(b, v1.NodeMaintenancePlanned)}},
		"both planned: younger":                 {first: rankedPod(a, younger), second: rankedPod(b), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned), nodeOf(b, v1.NodeMaintenancePlanned)}},
		"on an unknown node":                    {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned)}},
		"before doubled up":                     {first: rankedPod(a), second: rankedPod(b, onSharedNode), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned)}, related: []*v1.Pod{rankedPod("c", onSharedNode)}},
		"before restarted":                      {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned)}},
		"after not ready":                       {first: rankedPod(a, notReady), second: rankedPod(b), nodes: []*v1.Node{nodeOf(b, v1.NodeMaintenanceInProgress)}},
		"after pending":                         {first: rankedPod(a, phase(v1.PodPending)), second: rankedPod(b), nodes: []*v1.Node{nodeOf(b, v1.NodeMaintenanceInProgress)}},
		"after cheap to delete":                 {first: rankedPod(a, cheapToDelete), second: rankedPod(b), nodes: []*v1.Node{nodeOf(b, v1.NodeMaintenanceInProgress)}},
		"after less dear":                       {first: rankedPod(a), second: rankedPod(b, dear), nodes: []*v1.Node{nodeOf(b, v1.NodeMaintenanceInProgress)}},
		"after requested":                       {first: rankedPod(a), second: rankedPod(b), nodes: []*v1.Node{nodeOf(b, v1.NodeMaintenanceInProgress)}, requested: a},
		"after chosen by a picker":              {first: rankedPod(a), second: rankedPod(b), nodes: []*v1.Node{nodeOf(b, v1.NodeMaintenanceInProgress)}, ranks: map[string]int{a: podpicker.RankChosen, b: podpicker.RankTied}},
		"both tied: in progress":                {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenanceInProgress)}, ranks: map[string]int{a: podpicker.RankTied, b: podpicker.RankTied}},
		"none of a picker's: planned":           {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeMaintenancePlanned)}, ranks: map[string]int{}},
		"a condition that is False":             {first: rankedPod(a, younger), second: rankedPod(b), nodes: []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-of-b"}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionFalse}}}}}},
		"a node that the autoscaler removes":    {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-of-a"}, Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: v1.TaintEffectNoSchedule}}}}}},
		"a node that shuts down before planned": {first: rankedPod(a), second: rankedPod(b, restarted), nodes: []*v1.Node{nodeOf(a, v1.NodeGracefulNodeShutdownInProgress), nodeOf(b, v1.NodeMaintenancePlanned)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			if test.requested != "" {
				f.intercept(t)
				f.rsc.evictions.requestsSynced = func() bool { return true }
				f.cached(t, requestOf(test.requested))
			}
			f.rsc.clock = testingclock.NewFakeClock(orderStart.Add(65 * time.Minute))
			nodes := f.factory.Core().V1().Nodes()
			f.rsc.PreferDepartingNodes(nodes)
			for _, node := range test.nodes {
				if err := nodes.Informer().GetIndexer().Add(node); err != nil {
					t.Fatal(err)
				}
			}
			rs := newReplicaSetOf()
			for _, pods := range [][]*v1.Pod{{test.first, test.second}, {test.second, test.first}} {
				if test.ranks != nil {
					withPicker(rs)
					f.rsc.pickers = pickersWith(podpicker.Result{Ranks: test.ranks})
				}
				got := f.rsc.getPodsToDelete(f.ctx, rs, pods, slices.Concat(pods, test.related), 1)
				if diff := cmp.Diff([]string{test.first.Name}, names(got)); diff != "" {
					t.Errorf("deletes (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// However many pods share a node, and in whatever order they come, the nodes that are to go come first.
func TestRankDeparturesIsAboveAllNumbersOfPods(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	nodes := factory.Core().V1().Nodes()
	if err := nodes.Informer().GetIndexer().Add(nodeOf("a", v1.NodeMaintenancePlanned)); err != nil {
		t.Fatal(err)
	}
	pods := []*v1.Pod{rankedPod("a")}
	for i := range 300 {
		pods = append(pods, rankedPod(fmt.Sprintf("b%d", i), onSharedNode))
	}
	ranked := getPodsRankedByRelatedPodsOnSameNode(pods, pods)
	rankDepartures(nodes.Lister(), ranked, false)
	if ranked.Rank[0] <= slices.Max(ranked.Rank[1:]) {
		t.Errorf("the pod of the node that is to go has rank %d, others have up to %d", ranked.Rank[0], slices.Max(ranked.Rank[1:]))
	}
	if got := maintenance.DepartureOf(nodeOf("a")); got != maintenance.NotDeparting {
		t.Errorf("a node without conditions has departure %d", got)
	}
}

// Without the nodes, pods that have to leave would be spared.
func TestScaleDownWaitsForTheNodes(t *testing.T) {
	f := newEvictionFixture(t)
	f.rsc.rsListerSynced = func() bool { return true }
	nodes := f.factory.Core().V1().Nodes()
	f.rsc.PreferDepartingNodes(nodes)
	if f.rsc.rsListerSynced() {
		t.Error("the controller does not wait for the nodes")
	}
}
