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
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	"k8s.io/utils/ptr"
)

// rackOf returns a drain of many nodes: a budget blocks a pod on every other one of the last ten,
// and another pod has an interceptor.
func rackOf(nodes int) []any {
	stories := []any{newBudget("db", "db", 0), newBudget("mq", "mq", 0)}
	var names []string
	for i := range nodes {
		node := fmt.Sprintf("node-%02d", i)
		names = append(names, node)
		stories = append(stories, drainingNode(node, 0, 1, "Draining"), newPod(fmt.Sprintf("web-%d", i), node).asked())
		if i >= nodes-10 && i%2 == 1 {
			stories = append(stories, newPod(fmt.Sprintf("db-%d", i), node).asked().blocked())
		}
	}
	return append(stories, newPod("mq-0", names[nodes-1]).asked().blocked(),
		newPod("vm-0", names[0], migrate).asked().reported(20*time.Second, 125*time.Second).saying("Copied 3 of 7 volumes."),
		newMaintenance("rack", drain, names...).reason("Firmware upgrade").started(time.Minute).
			draining(coordinationv1alpha1.DrainStatus{DrainMessage: "Draining"}))
}

// drainsOf returns n drains of one node each, as an autoscaler starts them: a budget blocks every
// other one, or all if n is less than 10.
func drainsOf(n int) []any {
	stories := []any{newBudget("db", "db", 0)}
	for i := range n {
		node, pod := fmt.Sprintf("node-%02d", i), newPod(fmt.Sprintf("web-%d", i), fmt.Sprintf("node-%02d", i)).asked()
		if i%2 == 1 || n < 10 {
			pod = newPod(fmt.Sprintf("db-%d", i), node).asked().blocked()
		}
		stories = append(stories, drainingNode(node, 0, 1, "Draining"), pod,
			newMaintenance(fmt.Sprintf("rack-%02d", i), drain, node).reason("Firmware upgrade").started(time.Minute).
				draining(coordinationv1alpha1.DrainStatus{DrainMessage: "Draining"}))
	}
	return stories
}

// TestScreenShowsBlockers verifies for terminals of several sizes that blockers come first, and
// that all that fits is shown.
func TestScreenShowsBlockers(t *testing.T) {
	two := append(rackOf(30), newMaintenance("spare", drain, "node-99").started(time.Hour), drainingNode("node-99", 1, 0, "Draining"), newPod("web-99", "node-99"))
	for _, tc := range []struct {
		name    string
		stories []any
		height  int
		want    []string
		without []string
	}{
		{"24", rackOf(30), 24, []string{
			"rack: Drain for 60s, 0 of 30 nodes drained", "! 5 pods wait for PodDisruptionBudget default/db", "default/db-21", "! 1 pod waits for PodDisruptionBudget default/mq", "node-21",
			"more nodes, 0 of them drained", "Ctrl-C ends only this view",
		}, []string{"enlarge the terminal"}},
		{"16", rackOf(30), 16, []string{"! 5 pods wait for PodDisruptionBudget default/db", "! 1 pod waits for PodDisruptionBudget default/mq", "interceptor migrate", "30 pods are being evicted"}, []string{"default/db-21,", "more nodes", "enlarge the terminal"}},
		{"12", rackOf(30), 12, []string{"! 5 pods wait for PodDisruptionBudget default/db", "! 1 pod waits for PodDisruptionBudget default/mq", "interceptor migrate"}, []string{"enlarge the terminal"}},
		{"8", rackOf(30), 8, []string{"! 5 pods wait for PodDisruptionBudget default/db", "! 1 pod waits for PodDisruptionBudget default/mq"}, []string{"enlarge the terminal"}},
		{"4", rackOf(30), 4, []string{"rack: Drain for 60s, 0 of 30 nodes drained", "! 5 pods wait for PodDisruptionBudget default/db", "! 1 pod waits for PodDisruptionBudget default/mq"}, []string{"enlarge the terminal"}},
		{"3", rackOf(30), 3, []string{"rack: Drain for 60s, 0 of 30 nodes drained"}, []string{"enlarge the terminal"}},
		{"eight maintenances", drainsOf(8), 24, []string{
			"! 1 pod waits for PodDisruptionBudget default/db (for 3m)\x1b[K\n\rrack-01: Drain", "rack-07: Drain for 60s, 0 of 1 node drained\x1b[K\n\r  ! 1 pod waits",
		}, []string{"enlarge the terminal", "more"}},
		{"forty maintenances", drainsOf(40), 24, []string{
			"rack-01: Drain", "! 1 pod waits for PodDisruptionBudget default/db", "... and 30 more maintenances, 10 of them blocked",
		}, []string{"enlarge the terminal", "rack-00"}},
		{"100", rackOf(30), 100, []string{"default/db-21", "node-00", "node-29", "Copied 3 of 7 volumes."}, []string{"more nodes"}},
		{"two maintenances", two, 24, []string{"rack: Drain", "spare: Drain", "! 5 pods wait for PodDisruptionBudget default/db", "! 1 pod waits for PodDisruptionBudget default/mq"}, []string{"enlarge the terminal"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			display := &screen{out: &out, size: func() (int, int) { return defaultWidth - 1, tc.height }}
			views := viewsIn(snapshotOf(tc.stories...))
			if err := display.show(frame{views: views, now: testNow}); err != nil {
				t.Fatal(err)
			}
			contains(t, out.String(), tc.want...)
			for _, text := range tc.without {
				if strings.Contains(out.String(), text) {
					t.Errorf("shows %q:\n%s", text, out.String())
				}
			}
			if lines := strings.Count(out.String(), "\n"); lines >= tc.height {
				t.Errorf("drew %d lines on a terminal of %d", lines, tc.height)
			}
			if at := strings.Index(out.String(), "PodDisruptionBudget"); at > 0 && at > strings.Index(out.String(), "NODE ") && strings.Contains(out.String(), "NODE ") {
				t.Errorf("nodes are shown before blockers:\n%s", out.String())
			}
		})
	}
	golden(t, "status/screen", renderScreen(viewsIn(snapshotOf(rackOf(30)...)), testNow, defaultWidth-1, 21))
}

// TestScreenFits verifies that a page never has more lines than the terminal.
func TestScreenFits(t *testing.T) {
	views := viewsIn(snapshotOf(rackOf(30)...))
	for height := 1; height < 60; height++ {
		if lines := strings.Count(renderScreen(views, testNow, defaultWidth, height), "\n"); lines > height {
			t.Errorf("%d lines for %d", lines, height)
		}
	}
}

// TestCompactScreen covers the layout that shows a maintenance on few lines.
func TestCompactScreen(t *testing.T) {
	blocker := func(name string, blocked bool) *blockerView {
		return &blockerView{Cause: maintenance.BlockerDisruptionBudget, Name: name, Blocked: blocked, Pods: 1, Message: "1 pod waits for " + name}
	}
	started := ptr.To(ago(0))
	for name, tc := range map[string]struct {
		v        view
		blockers int
		want     string
	}{
		"not blocked":          {view{Name: "rack", Stage: drain, StageStarted: started, SelectedNodes: 1, Blockers: []*blockerView{blocker("a/b", false)}}, 2, "rack: Drain for 0s, 0 of 1 node drained\n"},
		"all":                  {view{Name: "rack", Stage: cordon, StageStarted: started, SelectedNodes: 1, Blockers: []*blockerView{blocker("a/b", true), blocker("a/c", false)}}, 2, "rack: Cordon for 0s, 1 node\n  ! 1 pod waits for a/b\n"},
		"some":                 {view{Name: "rack", Stage: cordon, StageStarted: started, SelectedNodes: 1, Blockers: []*blockerView{blocker("a/b", true), blocker("a/c", true), blocker("a/d", true)}}, 1, "rack: Cordon for 0s, 1 node\n  ! 1 pod waits for a/b\n  ... and 2 more marked !\n"},
		"too long":             {view{Name: "rack", Stage: drain, StageStarted: started, SelectedNodes: 1, Blockers: []*blockerView{blocker("a\nlong/name-of-a-budget", true)}}, 1, "rack: Drain for 0s, 0 of 1 node drained\n  ! 1 pod waits for a long/name-of-a-...\n"},
		"deleted":              {view{Name: "rack", Stage: drain, Outcome: outcomeDeleted}, 1, "rack: deleted\n"},
		"no room for blockers": {view{Name: "rack", Stage: drain, StageStarted: started, SelectedNodes: 1, PodsBlocked: 1, Blockers: []*blockerView{blocker("a/b", true)}}, 0, "rack: Drain for 0s, 0 of 1 node drained\n"},
	} {
		if got := renderPage([]*view{&tc.v}, testNow, 40, layout{compact: true, blockers: tc.blockers}).String(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestHiddenNodes counts the drained ones among the hidden nodes in stage Drain only.
func TestHiddenNodes(t *testing.T) {
	for stage, want := range map[coordinationv1alpha1.NodeMaintenanceStage]string{
		drain: "  ... and 2 more nodes, 1 of them drained\n", complete: "  ... and 2 more nodes\n", cordon: "  ... and 2 more nodes\n",
	} {
		p := &page{width: defaultWidth}
		p.addNodes(&view{Stage: stage, Nodes: []*nodeView{{Name: "a"}, {Name: "b", Drained: true}, {Name: "c", PodsBlocked: 1}}}, 1)
		contains(t, p.String(), "  c ", want)
	}
}

// TestScreenUsesTheRoom verifies that no row is dropped that fits.
func TestScreenUsesTheRoom(t *testing.T) {
	views := viewsIn(snapshotOf(rackOf(30)...))
	all := len(renderPage(views, testNow, defaultWidth, fullLayout(views)).lines)
	if text := renderScreen(views, testNow, defaultWidth, all); strings.Contains(text, "more nodes") {
		t.Errorf("drops a row that fits:\n%s", text)
	}
	for height := 26; height <= all; height++ {
		if lines := strings.Count(renderScreen(views, testNow, defaultWidth, height), "\n"); lines != height && lines != height-1 {
			t.Errorf("%d of %d lines are used", lines, height)
		}
	}
}

// TestManyNodesAreRenderedQuickly includes a small screen, for which several layouts are tried.
// Blocked nodes are shown first.
func TestManyNodesAreRenderedQuickly(t *testing.T) {
	const nodes, limit = 5000, 10 * time.Second
	rack := newMaintenance("rack", drain).started(time.Minute).draining(coordinationv1alpha1.DrainStatus{ActiveEvictionRequests: nodes, DrainMessage: "Draining"})
	for i := range 20 {
		rack.Status.DrainStatus.Blockers = append(rack.Status.DrainStatus.Blockers, coordinationv1alpha1.DrainBlocker{
			Cause: coordinationv1alpha1.DrainBlockerDisruptionBudget, Name: fmt.Sprint("default/db-", i), PodCount: 1, NodeCount: 1, Message: fmt.Sprint("1 pod waits for db-", i),
		})
	}
	rack.Status.DrainStatus.BlockerCount = nodes
	byLabel, err := nodeselection.ByLabels("pool=a")
	if err != nil {
		t.Fatal(err)
	}
	rack.Spec.NodeSelector = byLabel
	stories := []any{rack}
	for i := range nodes {
		node := drainingNode(fmt.Sprintf("node-%04d", i), 0, 1, "Draining")
		node.Labels = map[string]string{"pool": "a"}
		if i == 4321 {
			node.Status.MaintenanceStatus.BlockedPods = 1
		}
		stories = append(stories, node)
	}
	s := snapshotOf(stories...)
	began := time.Now()
	views := viewsIn(s)
	full, small := renderStatus(views, testNow, defaultWidth), renderScreen(views, testNow, defaultWidth, 24)
	if took := time.Since(began); took > limit {
		t.Errorf("took %v", took)
	}
	contains(t, full, "0 of 5000 nodes drained", "node-4321", "... and 4960 more nodes", "... and 4980 that the status does not list")
	if strings.Index(full, "node-4321") > strings.Index(full, "node-0000") {
		t.Error("the blocked node is not the first one")
	}
	if lines := strings.Count(small, "\n"); lines > 24 {
		t.Errorf("%d lines on a screen of 24", lines)
	}
}
