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

package maintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
)

// podReads returns the field selectors of what was listed, or watched, of pods.
func (s *server) podReads() []string {
	var selectors []string
	for _, action := range s.Actions() {
		if action.GetResource().Resource != "pods" {
			continue
		}
		switch a := action.(type) {
		case clienttesting.ListActionImpl:
			selectors = append(selectors, a.ListOptions.FieldSelector)
		case clienttesting.WatchActionImpl:
			selectors = append(selectors, a.ListOptions.FieldSelector)
		}
	}
	slices.Sort(selectors)
	return slices.Compact(selectors)
}

// counts returns how often each kind was listed.
func (s *server) lists() map[string]int {
	lists := map[string]int{}
	for _, action := range s.Actions() {
		if action.GetVerb() == "list" {
			lists[action.GetResource().Resource]++
		}
	}
	return lists
}

// TestStatusReadsWhatItNeeds reads no pods of nodes that nobody drains, whatever records
// there are.
func TestStatusReadsWhatItNeeds(t *testing.T) {
	var stories []any
	for i := range 60 {
		node := fmt.Sprintf("node-%02d", i)
		stories = append(stories, newNode(node), newMaintenance("old-"+node, complete, node).started(24*time.Hour).completed())
	}
	stories = append(stories, newNode("idle"), newMaintenance("idle-next", idle, "idle").started(0), newNode("cordon"), newMaintenance("cordon-now", cordon, "cordon").started(0))
	quiet := newServer(t, stories...)
	quiet.mustRun(t, "status", "--all")
	if diff := cmp.Diff(map[string]int{"nodemaintenances": 1, "nodes": 1}, quiet.lists()); diff != "" {
		t.Errorf("without a drain (-want, +got):\n%s", diff)
	}
	stories = append(stories, drainingNode("busy", 0, 1, "Draining"), newMaintenance("busy-now", drain, "busy").started(time.Minute))
	s := newServer(t, stories...)
	s.mustRun(t, "status")
	want := map[string]int{"nodemaintenances": 1, "nodes": 1, "pods": 1, "evictionrequests": 1, "poddisruptionbudgets": 1}
	if diff := cmp.Diff(want, s.lists()); diff != "" {
		t.Errorf("with a drain (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"spec.nodeName=busy"}, s.podReads()); diff != "" {
		t.Errorf("reads of pods (-want, +got):\n%s", diff)
	}
}

// manyNodes is a drain of more nodes than pods are read of. Those from node-050 on have
// been asked, and the last one is drained.
func manyNodes(count int) []any {
	var stories []any
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("node-%03d", i))
		pending, evicting := 1, 0
		switch {
		case i == count-1:
			pending = 0
		case i >= 50:
			pending, evicting = 0, 1
		}
		stories = append(stories, drainingNode(names[i], int32(pending), int32(evicting), ""))
	}
	rack := newMaintenance("rack", drain, names...).started(time.Minute).condition(metav1.ConditionFalse, "Blocked", "140 pods wait for PodDisruptionBudget default/db.")
	rack.Status.DrainStatus.BlockedPods = 140
	return append(stories, rack, newPod("db-60", "node-060").asked().blocked(), newBudget("db", "db", 0))
}

// TestManyNodesAreReadInPart never reads all pods of the cluster.
func TestManyNodesAreReadInPart(t *testing.T) {
	for _, command := range []string{"status", "watch"} {
		s := newServer(t, manyNodes(maxNodesRead+60)...)
		s.whenLooked(func() { s.end(nil) })
		out := s.run(t, command, "rack")
		reads := s.podReads()
		reads = slices.DeleteFunc(reads, func(selector string) bool { return selector == "spec.nodeName=-" })
		if len(reads) != maxNodesRead || slices.Contains(reads, "") || !slices.Contains(reads, "spec.nodeName=node-060") || slices.Contains(reads, "spec.nodeName=node-159") {
			t.Errorf("%s reads the pods of %d nodes: %v", command, len(reads), reads)
		}
		if command == "status" {
			contains(t, out, "Drain for 60s, 1 of 160 nodes drained", "140 of them blocked", "! PodDisruptionBudget default/db: 1 pod",
				"The pods of 60 nodes were not read. The controller says of all:\n    140 pods wait for PodDisruptionBudget default/db.")
		}
	}
}

// TestWatchMovesOn reads the pods of other nodes when those that were read are drained,
// and ends the watches of these.
func TestWatchMovesOn(t *testing.T) {
	s := newServer(t, manyNodes(maxNodesRead+60)...)
	o, err := newObserver(s.ctx, s, []string{"rack"}, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	first, err := o.snapshot(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if first.nodesRead.Len() != maxNodesRead || !first.readsPodsOf("node-060") || first.readsPodsOf("node-000") {
		t.Errorf("reads the pods of %v", first.nodesRead)
	}
	for _, node := range first.nodes {
		if node.Name >= "node-060" {
			node.Status = drainingNode("", 0, 0, "").Status
		}
	}
	if err := o.watchPods(s.ctx, first); err != nil {
		t.Fatal(err)
	}
	second, err := o.snapshot(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.pods) != maxNodesRead || !second.readsPodsOf("node-000") {
		t.Errorf("later reads the pods of %d nodes: %v", len(o.pods), second.nodesRead)
	}
}

// TestWatchEnds ends the watch of a node that does not count any more, and keeps others.
func TestWatchEnds(t *testing.T) {
	rack := newMaintenance("rack", drain, "node-1", "node-2").started(0)
	s := newServer(t, rack, newNode("node-1"), newNode("node-2"))
	o, err := newObserver(s.ctx, s, []string{"rack"}, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	first, err := o.snapshot(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	dropped, kept := o.pods["node-1"].SharedIndexInformer, o.pods["node-2"].SharedIndexInformer
	first.maintenances = []*coordinationv1alpha1.NodeMaintenance{newMaintenance("rack", drain, "node-2").NodeMaintenance}
	if err := o.watchPods(s.ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(s.ctx, 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return dropped.IsStopped(), nil }); err != nil {
		t.Errorf("the watch of the pods of node-1 does not end: %v", err)
	}
	if kept.IsStopped() || o.pods["node-2"].SharedIndexInformer != kept {
		t.Error("the watch of the pods of node-2 was begun again")
	}
}

// TestNodesToReadOnce names a node of several maintenances once.
func TestNodesToReadOnce(t *testing.T) {
	s := snapshotOf(newNode("a"), newNode("b"), newMaintenance("one", drain, "a", "b"), newMaintenance("two", drain, "b"))
	if diff := cmp.Diff([]string{"a", "b"}, s.nodesToRead(s.maintenances)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestNotReadIsSaidOnce repeats the controller only once.
func TestNotReadIsSaidOnce(t *testing.T) {
	v := view{Name: "rack", Stage: drain, NodesNotRead: 2, Condition: "9 pods wait."}
	if text := renderStatus([]view{v}, testNow, defaultWidth); strings.Count(text, "9 pods wait.") != 1 {
		t.Error(text)
	}
}

func TestPodsOfNodesOnly(t *testing.T) {
	s := snapshotOf(newNode("a"), newNode("b"))
	if !s.readsPodsOf("a") {
		t.Error("a snapshot of all pods has none of a node")
	}
	s.unreadable = []string{"pods"}
	if s.readsPodsOf("a") {
		t.Error("pods are read without the right to")
	}
	if out := renderStatus(viewsOf(snapshotOf(manyNodes(3)...), testNow), testNow, defaultWidth); strings.Contains(out, "were not read") {
		t.Errorf("all were read:\n%s", out)
	}
}

// TestPodsAreReadInPages where a plan has so many nodes that it goes through all pods: of
// those on other nodes nothing is kept.
func TestPodsAreReadInPages(t *testing.T) {
	s := newServer(t)
	pages := [][]corev1.Pod{{*newPod("a", "node-1").Pod, *newPod("b", "other").Pod}, {*newPod("c", "node-2").Pod}}
	pages[0][0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	asked := 0
	s.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		if options.Limit == 0 || options.Continue != []string{"", "1"}[asked] {
			t.Errorf("request %d: limit %d, continue %q", asked, options.Limit, options.Continue)
		}
		page := &corev1.PodList{Items: pages[asked]}
		if asked++; asked < len(pages) {
			page.Continue = fmt.Sprint(asked)
		}
		return true, page, nil
	})
	read := &snapshot{}
	if err := read.readPods(t.Context(), s, sets.New("node-1", "node-2"), []string{""}); err != nil {
		t.Fatal(err)
	}
	if asked != 2 || len(read.pods) != 2 || len(read.pods["node-1"]) != 1 || len(read.pods["node-2"]) != 1 || read.pods["node-1"][0].ManagedFields != nil {
		t.Errorf("%d requests, %v", asked, read.pods)
	}
}
