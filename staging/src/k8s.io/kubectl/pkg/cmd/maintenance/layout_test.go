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
)

// rackOf is a drain of many nodes: a database is blocked on every other one of the last
// ten, and some pods have interceptors.
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

// TestScreenShowsBlockers on terminals of all sizes: what somebody has to act on comes
// first, and all is on the screen that fits.
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
			"rack: Drain for 60s, 0 of 30 nodes drained", "! PodDisruptionBudget default/db: 5 pods", "default/db-21", "! PodDisruptionBudget default/mq: 1 pod", "node-21",
			"more nodes, 0 of them drained", "Ctrl-C ends only the view",
		}, []string{"enlarge the terminal"}},
		{"16", rackOf(30), 16, []string{"! PodDisruptionBudget default/db: 5 pods", "! PodDisruptionBudget default/mq: 1 pod", "... and 30 more nodes"}, []string{"default/db-21,", "enlarge the terminal"}},
		{"12", rackOf(30), 12, []string{"! PodDisruptionBudget default/db: 5 pods", "... and 1 more, 0 of them marked !"}, []string{"enlarge the terminal"}},
		{"10", rackOf(30), 10, []string{"! PodDisruptionBudget default/db: 5 pods", "... and 3 more, 1 of them marked !"}, []string{"enlarge the terminal"}},
		{"4", rackOf(30), 4, []string{"rack: Drain for 60s, 0 of 30 nodes drained", "Ctrl-C"}, []string{"enlarge the terminal", "db:"}},
		{"100", rackOf(30), 100, []string{"default/db-21", "node-00", "node-29", "Copied 3 of 7 volumes."}, []string{"more nodes"}},
		{"two maintenances", two, 24, []string{"rack: Drain", "spare: Drain", "! PodDisruptionBudget default/db: 5 pods", "... and 1 more node"}, []string{"enlarge the terminal"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			display := &screenDisplay{screen: &screen{out: &out, size: func() (int, int) { return defaultWidth - 1, tc.height }}}
			views := viewsOf(snapshotOf(tc.stories...), testNow)
			if err := display.show(look{views: views, now: testNow}); err != nil {
				t.Fatal(err)
			}
			contains(t, out.String(), tc.want...)
			for _, text := range tc.without {
				if strings.Contains(out.String(), text) {
					t.Errorf("shows %q:\n%s", text, out.String())
				}
			}
			if lines := strings.Count(out.String(), "\n"); lines >= tc.height {
				t.Errorf("draws %d lines on %d", lines, tc.height)
			}
			if at := strings.Index(out.String(), "PodDisruptionBudget"); at > 0 && at > strings.Index(out.String(), "NODE ") && strings.Contains(out.String(), "NODE ") {
				t.Errorf("nodes come first:\n%s", out.String())
			}
		})
	}
	golden(t, "status/screen", renderScreen(viewsOf(snapshotOf(rackOf(30)...), testNow), testNow, defaultWidth-1, 21))
}

// TestScreenFits on each height has as many lines as there is room for, or less.
func TestScreenFits(t *testing.T) {
	views := viewsOf(snapshotOf(rackOf(30)...), testNow)
	for height := 1; height < 60; height++ {
		if lines := strings.Count(renderScreen(views, testNow, defaultWidth, height), "\n"); lines > height {
			t.Errorf("%d lines for %d", lines, height)
		}
	}
}

// TestHiddenNodes says how many are drained where that is what it is about.
func TestHiddenNodes(t *testing.T) {
	for stage, want := range map[coordinationv1alpha1.NodeMaintenanceStage]string{
		drain: "  ... and 2 more nodes, 1 of them drained\n", complete: "  ... and 2 more nodes\n", cordon: "  ... and 2 more nodes\n",
	} {
		p := &page{width: defaultWidth}
		p.addNodes(&view{Stage: stage, Nodes: []nodeView{{Name: "a"}, {Name: "b", Drained: true}, {Name: "c", PodsBlocked: 1}}}, 1)
		contains(t, p.String(), "  c ", want)
	}
}

// TestScreenUsesTheRoom drops no row that fits.
func TestScreenUsesTheRoom(t *testing.T) {
	views := viewsOf(snapshotOf(rackOf(30)...), testNow)
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
