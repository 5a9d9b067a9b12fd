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

package progress

import (
	"fmt"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

func podsOf(priorities ...int32) []Pod {
	var pods []Pod
	for _, priority := range priorities {
		pods = append(pods, Pod{Pod: &v1.Pod{Spec: v1.PodSpec{Priority: &priority}}, Verdict: Verdict{Wanted: true}})
	}
	return pods
}

func nodesNamed(names ...string) func() []*v1.Node {
	return func() []*v1.Node {
		var nodes []*v1.Node
		for _, name := range names {
			nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return nodes
	}
}

func positionOf(t *testing.T, l *Store) int {
	t.Helper()
	sums, _, known := l.Summarize("m")
	if !known {
		t.Error("the maintenance is not known")
	}
	return sums.Position
}

// The progress of a maintenance survives its updates, but not its replacement.
func TestObserveAgain(t *testing.T) {
	l := NewStore(NewLimits())
	first := orderOf(t, "u", 1, stageDrain, ours)
	expectNames(t, "the first", l.Observe(first, 0, nodesNamed("n1")), "n1")
	begun := first
	begun.begun = true
	expectNames(t, "the same", l.Observe(begun, 0, nodesNamed("n1")))
	if specs, _ := l.Selecting(nodesNamed("n1")()[0]); len(specs) != 1 || !specs[0].begun {
		t.Errorf("orders %+v", specs)
	}
	rolls := begun
	rolls.Rolls = true
	expectNames(t, "nodes that begin at different times", l.Observe(rolls, 0, nodesNamed("n1")), "n1")
	expectNames(t, "nodes that still do", l.Observe(rolls, 0, nodesNamed("n1")))
	if specs, _ := l.Selecting(nodesNamed("n1")()[0]); len(specs) != 1 || !specs[0].Rolls {
		t.Errorf("orders %+v", specs)
	}
	if !l.MeasureOnce("m", v1.PodTypeDefault) || l.MeasureOnce("m", v1.PodTypeDefault) || l.MeasureOnce("other", v1.PodTypeDefault) {
		t.Error("a duration is not measured exactly once")
	}
	l.CountPods("n1", []Spec{begun}, podsOf(1), nil, nil)
	if positionOf(t, l) != 1 {
		t.Errorf("position %d", positionOf(t, l))
	}
	expectNames(t, "another generation", l.Observe(orderOf(t, "u", 2, stageDrain, ours), 0, nodesNamed("n2")), "n1", "n2")
	if positionOf(t, l) != 1 || l.MeasureOnce("m", v1.PodTypeDefault) {
		t.Errorf("after an edit: position %d", positionOf(t, l))
	}
	l.Observe(orderOf(t, "u", 3, stageDrain, ours), 2, nodesNamed())
	if positionOf(t, l) != 2 {
		t.Errorf("position %d, want 2 from another leader", positionOf(t, l))
	}
	// The new maintenance does not wait for nodes that the old one has not released.
	expectNames(t, "a replacement of the same generation", l.Observe(orderOf(t, "other", 3, stageDrain, ours), 0, nodesNamed("n1")), "n1", "n2")
	if unreleased := l.maintenances["m"].unreleased; len(unreleased) > 0 {
		t.Errorf("a replacement waits for %v", unreleased)
	}
	if positionOf(t, l) != 0 || !l.MeasureOnce("m", v1.PodTypeDefault) {
		t.Errorf("a replacement begins at position %d", positionOf(t, l))
	}
}

// What delays the release of a node that was deselected stays known when the spec changes again: nothing
// has to be found out a second time before it can be reported.
func TestReleaseBlockersOutliveAChange(t *testing.T) {
	for _, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageDrain, stageComplete} {
		l, o := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours)
		l.Observe(o, 0, nodesNamed("n1", "n2"))
		for _, node := range []string{"n1", "n2"} {
			l.CountPods(node, []Spec{o}, podsOf(0), nil, nil)
		}
		expectNames(t, "deselected", first(l.Deselect("n2", nil, l.revision)), "m")
		blockers := []maintenance.BlockerGroup{{Cause: maintenance.BlockerCordonFailed, Nodes: 1, Since: &metav1.Time{Time: start}}}
		expectNames(t, "waits for its release", l.Delayed("n2", blockers, l.revision), "m")
		l.Observe(orderOf(t, "u", 2, stage, ours), 0, nodesNamed("n1"))
		if sums, _, _ := l.Summarize("m"); len(sums.ReleaseBlockers) != 1 || sums.ReleaseBlockers[0].Cause != maintenance.BlockerCordonFailed {
			t.Errorf("%s: blockers after the change: %+v", stage, sums.ReleaseBlockers)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// No decision is made before the pods of all nodes are counted. Then all nodes are reconciled.
func TestAllNodesAreCountedFirst(t *testing.T) {
	l, o := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.Observe(o, 0, nodesNamed("n1", "n2"))
	for _, node := range []string{"n1", "came later", "n1"} {
		if got := l.CountPods(node, []Spec{o}, podsOf(0), nil, nil); got.Ready {
			t.Errorf("ready at %s: %+v", node, got)
		}
	}
	got := l.CountPods("n2", []Spec{o}, podsOf(0), nil, nil)
	if !got.Ready {
		t.Error("not ready")
	}
	expectNames(t, "to reconcile", got.Others, "came later", "n1", "n2")
	if sums, _, _ := l.Summarize("m"); sums.Ready {
		t.Error("the summary is ready before the decisions")
	}
	for _, node := range []string{"n1", "n2", "came later"} {
		l.Decide(node, "m", Decision{})
	}
	if sums, _, _ := l.Summarize("m"); !sums.Ready || sums.Left != 3 {
		t.Errorf("sums %+v", sums)
	}
	changed := o
	changed.Generation++
	if got := l.CountPods("n1", []Spec{changed}, podsOf(0), nil, nil); got.Ready || len(got.Participants) > 0 {
		t.Errorf("with an unknown order: %+v", got)
	}
}

// A maintenance advances when a node is deselected that was the last one not counted, or the last
// one with pods of the first entry.
func TestNodesLeave(t *testing.T) {
	l, o := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.Observe(o, 0, nodesNamed("n1", "n2", "n3"))
	l.CountPods("n1", []Spec{o}, podsOf(1), nil, nil)
	l.CountPods("n2", []Spec{o}, podsOf(0), nil, nil)
	left, others := l.Deselect("n3", nil, l.revision)
	expectNames(t, "deselected", left, "m")
	expectNames(t, "to reconcile, because all are counted", others, "n1", "n2")
	if positionOf(t, l) != 0 {
		t.Errorf("position %d", positionOf(t, l))
	}
	_, others = l.Deselect("n2", nil, l.revision)
	expectNames(t, "to reconcile, because the position has changed", others, "n1")
	if positionOf(t, l) != 1 {
		t.Errorf("position %d", positionOf(t, l))
	}
	expectNames(t, "waiting on", l.WaitingOn([]string{"m"}), "m")
	l.CountPods("n1", []Spec{o}, nil, nil, nil)
	l.Summarize("m")
	expectNames(t, "waiting on, with no pods left", l.WaitingOn([]string{"m"}))
}

// A rollout advances when the last node leaves that waited: it is deselected, or done without having begun.
func TestLastWaitingNodeLeaves(t *testing.T) {
	for name, leave := range map[string]func(*Store, Spec){
		"deselected": func(l *Store, _ Spec) { l.Deselect("n2", nil, l.revision) },
		"done": func(l *Store, o Spec) {
			o.Phase = PhaseDone
			l.CountPods("n2", []Spec{o}, nil, nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, o := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours)
			o.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
			l.Observe(o, 0, nodesNamed("n1", "n2"))
			waiting := o
			waiting.Phase = PhaseWaiting
			l.CountPods("n2", []Spec{waiting}, nil, nil, nil)
			o.Phase = PhaseAdmitted
			l.CountPods("n1", []Spec{o}, podsOf(1), nil, nil)
			if position := positionOf(t, l); position != 0 {
				t.Errorf("position %d while a node waits", position)
			}
			leave(l, o)
			if position := positionOf(t, l); position != 1 {
				t.Errorf("position %d", position)
			}
		})
	}
}

// In the stage Complete, blockers are published only after every node has been reconciled since the
// stage was observed, including nodes without a blocker.
func TestDelaysAreReported(t *testing.T) {
	l, drain, complete := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours), orderOf(t, "u", 2, stageComplete, ours)
	l.Observe(drain, 0, nodesNamed("n1", "n2"))
	before := l.revision
	l.Observe(complete, 0, nodesNamed("n1", "n2"))
	for i, report := range []func(){
		func() { l.Delayed("n1", nil, l.revision) },
		func() { l.Delayed("n2", nil, before) },
		func() {
			l.Delayed("n2", []maintenance.BlockerGroup{{Cause: maintenance.BlockerCordonFailed}}, l.revision)
		},
	} {
		report()
		if sums, _, _ := l.Summarize("m"); sums.Ready != (i == 2) {
			t.Errorf("after report %d: ready is %t", i, sums.Ready)
		}
	}
}

// A node that was counted for an outdated spec is reconciled again.
func TestCountForAnOlderMaintenance(t *testing.T) {
	l, old := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.Observe(orderOf(t, "u", 2, stageDrain, ours), 0, nodesNamed("n1", "n2"))
	counted := l.CountPods("n1", []Spec{old}, podsOf(0), nil, nil)
	if expectNames(t, "to reconcile", counted.Others, "n1"); counted.Ready {
		t.Error("ready")
	}
}

// All nodes of a maintenance are reconciled when its summary waits for other maintenances than the
// previous one.
func TestWaitingOnIsPublished(t *testing.T) {
	l, o := NewStore(NewLimits()), orderOf(t, "u", 1, stageDrain, ours)
	l.Observe(o, 0, nodesNamed("n1", "n2"))
	l.CountPods("n1", []Spec{o}, podsOf(0), nil, nil)
	l.CountPods("n2", []Spec{o}, podsOf(0), nil, nil)
	for _, tc := range []struct {
		name, node string
		limitedBy  []string
		others     []string
		waitingOn  []string
	}{
		{"m drains both nodes", "n1", nil, nil, []string{"m"}},
		{"x besides m", "n1", []string{"x"}, []string{"n1", "n2"}, []string{"m", "x"}},
		{"the same", "n1", []string{"x"}, nil, []string{"m", "x"}},
		{"x alone", "n2", []string{"x"}, []string{"n1", "n2"}, []string{"x"}},
	} {
		l.Decide(tc.node, "m", Decision{LimitedBy: tc.limitedBy})
		_, others, _ := l.Summarize("m")
		expectNames(t, tc.name+": to reconcile", others, tc.others...)
		expectNames(t, tc.name+": waiting on", l.WaitingOn([]string{"m"}), tc.waitingOn...)
	}
}

// release returns the maintenance only when its last node is released.
func TestReleaseOfTheLastNode(t *testing.T) {
	l := NewStore(NewLimits())
	l.Observe(orderOf(t, "u", 1, stageComplete, ours), 0, nodesNamed("n1", "n2"))
	expectNames(t, "the first", l.Release("n1", l.revision))
	expectNames(t, "the same again", l.Release("n1", l.revision))
	expectNames(t, "the last", l.Release("n2", l.revision), "m")
	expectNames(t, "afterwards", l.Release("n2", l.revision))
}

// Events of pods are ignored on nodes that are not drained.
func TestIsDraining(t *testing.T) {
	l := NewStore(NewLimits())
	for generation, stage := range []coordinationv1alpha1.NodeMaintenanceStage{stageIdle, stageCordon, stageDrain, stageComplete} {
		l.Observe(orderOf(t, "u", int64(generation), stage, ours), 0, nodesNamed("n"))
		if got := l.IsDraining("n"); got != (stage == stageDrain) || l.IsDraining("other") {
			t.Errorf("%s: %t", stage, got)
		}
	}
}

// A maintenance whose finalizer could not be stored delays no drain until it has the finalizer.
func TestFailedFinalizer(t *testing.T) {
	l := NewStore(NewLimits())
	awaited := func() bool {
		specs, _ := l.Selecting(nodesNamed("n")()[0])
		return len(specs) == 1 && specs[0].DelaysDrains()
	}
	expectNames(t, "unknown", l.FinalizerFailed("m"))
	l.Observe(orderOf(t, "u", 1, stageDrain), 0, nodesNamed("n"))
	if !awaited() {
		t.Error("a maintenance that awaits its finalizer delays no drain")
	}
	expectNames(t, "failed", l.FinalizerFailed("m"), "n")
	expectNames(t, "failed again", l.FinalizerFailed("m"))
	l.Observe(orderOf(t, "u", 2, stageDrain), 0, nodesNamed("n"))
	if awaited() {
		t.Error("delays drains again")
	}
	l.Observe(orderOf(t, "u", 2, stageDrain, ours), 0, nodesNamed("n"))
	expectNames(t, "with its finalizer", l.FinalizerFailed("m"))
	l.Observe(orderOf(t, "u", 3, stageDrain), 0, nodesNamed("n"))
	if !awaited() {
		t.Error("delays no drain after it has lost its finalizer")
	}
	l.Observe(orderOf(t, "u", 4, stageCordon), 0, nodesNamed("n"))
	if awaited() {
		t.Error("a maintenance that does not drain delays drains")
	}
}

// benchmarkedNodes is the maximum number of nodes that Kubernetes supports in a cluster.
const benchmarkedNodes = 5000

// filledStore returns a store with maintenances in the stage Drain. The nodes are divided between
// them, selected by name or hostname label, and their pods are counted.
func filledStore(b *testing.B, maintenances int) (*Store, []*v1.Node) {
	b.Helper()
	l := NewStore(NewLimits())
	nodes := make([]*v1.Node, benchmarkedNodes)
	terms := make([][]v1.NodeSelectorTerm, maintenances)
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		nodes[i] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelOSStable: "linux", v1.LabelTopologyZone: "z", v1.LabelTopologyRegion: "r",
		}}}
		terms[i%maintenances] = append(terms[i%maintenances], termFor(i, name))
	}
	for i := range maintenances {
		o, err := NewSpec(&coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("m-%d", i), UID: types.UID(fmt.Sprintf("u-%d", i)), Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer},
			},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{
				Stage: stageDrain, DrainPlan: maintenance.StandardPlan(), NodeSelector: &v1.NodeSelector{NodeSelectorTerms: terms[i]},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		// The benchmark does not measure the listing of all nodes for each maintenance.
		l.Observe(o, 0, func() []*v1.Node {
			if maintenances == 1 {
				return nodes
			}
			return nodes[i : i+1]
		})
	}
	for _, node := range nodes {
		specs, _ := l.Selecting(node)
		l.CountPods(node.Name, specs, nil, nil, nil)
	}
	return l, nodes
}

// BenchmarkProgressStore measures an event of a pod and the sync of a node after it. Their costs
// must not depend on the number of nodes or maintenances.
func BenchmarkProgressStore(b *testing.B) {
	for _, maintenances := range []int{1, benchmarkedNodes} {
		l, nodes := filledStore(b, maintenances)
		name := func(what string) string {
			return fmt.Sprintf("%s/%d maintenances of %d nodes", what, maintenances, benchmarkedNodes/maintenances)
		}
		b.Run(name("event of a pod"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !l.IsDraining(nodes[i%benchmarkedNodes].Name) {
					b.Fatal("not draining")
				}
			}
		})
		b.Run(name("event of a node without maintenance"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if l.IsDraining("other") {
					b.Fatal("draining")
				}
			}
		})
		b.Run(name("sync of a node"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				node := nodes[i%benchmarkedNodes]
				specs, revision := l.Selecting(node)
				if len(specs) != 1 {
					b.Fatalf("selected by %d", len(specs))
				}
				l.Deselect(node.Name, specs, revision)
				if counts := l.CountPods(node.Name, specs, nil, nil, nil); !counts.Ready || len(counts.Others) > 0 {
					b.Fatalf("counted %+v", counts)
				}
				l.Decide(node.Name, specs[0].Name, Decision{Cordoned: true})
				l.WaitingOn([]string{specs[0].Name})
				l.IsCordoned(node.Name)
				l.Release(node.Name, revision)
			}
		})
	}
}

// That a maintenance was deleted is known for as long as the cache may be behind, and no longer, also if the clock is set
// back.
func TestDeletionsAreForgotten(t *testing.T) {
	limits := NewLimits()
	s := NewStore(limits)
	deleted := func(at time.Duration, uid types.UID, want ...types.UID) {
		t.Helper()
		limits.Now = func() time.Time { return start.Add(at) }
		s.noteGone(uid)
		for _, known := range want {
			if !s.IsGone(known) {
				t.Errorf("%v: the deletion of %s is not known", at, known)
			}
		}
		if len(s.gone) != len(want) {
			t.Errorf("%v: known are %v, want %v", at, s.gone, want)
		}
	}
	deleted(0, "a", "a")
	deleted(time.Minute, "b", "a", "b")
	deleted(UnknownAdmission-time.Second, "c", "a", "b", "c")
	deleted(UnknownAdmission, "d", "b", "c", "d")
	deleted(-time.Hour, "e", "e")
}

// A node that is created while a maintenance is observed is either listed, or reconciled after the
// maintenance is known: the nodes are listed under the lock.
func TestNodesAreListedUnderTheLock(t *testing.T) {
	l, listed := NewStore(NewLimits()), false
	l.Observe(orderOf(t, "u", 1, stageDrain, ours), 0, func() []*v1.Node {
		listed = true
		if l.lock.TryLock() {
			l.lock.Unlock()
			t.Error("a node could be reconciled between the list and the maintenance")
		}
		return nil
	})
	if !listed {
		t.Error("no nodes were listed")
	}
}

// orderOf returns the order of a maintenance in the given stage. Its plan starts with entries for
// the priorities 0 and 1.
func orderOf(t *testing.T, uid types.UID, generation int64, stage coordinationv1alpha1.NodeMaintenanceStage, finalizers ...string) Spec {
	t.Helper()
	o, err := NewSpec(&coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: uid, Generation: generation, Finalizers: finalizers},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage: stage, DrainPlan: plan(entry(v1.PodTypeDefault, 0), entry(v1.PodTypeDefault, 1)),
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "none", Operator: v1.NodeSelectorOpDoesNotExist}},
			}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const ours = coordinationv1alpha1.NodeMaintenanceFinalizer
