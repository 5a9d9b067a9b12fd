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
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
)

func (m maintenanceStory) created(before time.Duration) maintenanceStory {
	m.CreationTimestamp = ago(before)
	return m
}

func (m maintenanceStory) plan(entries ...corev1.DrainPlanEntry) maintenanceStory {
	m.Spec.DrainPlan = maintenance.CompletePlan(entries)
	return m
}

func pooled(name, pool string) *corev1.Node {
	node := newNode(name)
	node.Labels = map[string]string{"pool": pool}
	return node
}

// TestStartTwice verifies that start resumes and names the open maintenance of the same nodes.
func TestStartTwice(t *testing.T) {
	const resumed = " of these nodes is open and is resumed. To start another one, use --name.\n"
	forPoolA, err := nodeselection.ByLabels("pool=a")
	if err != nil {
		t.Fatal(err)
	}
	byLabels := newMaintenance("labels", cordon)
	byLabels.Spec.NodeSelector = forPoolA
	entry := corev1.DrainPlanEntry{PodType: corev1.PodTypeDefault, PodPriority: 5}
	for _, tc := range []struct {
		name                 string
		stories              []any
		args                 []string
		out, errOut, failure string
	}{
		{"one node", []any{newMaintenance("old", cordon, "node-1")}, []string{"node-1"}, "old moved from Cordon to Drain\n", "NodeMaintenance old" + resumed, ""},
		{"already in the stage", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1"}, "old unchanged, already in stage Drain\n", "NodeMaintenance old" + resumed, ""},
		{"with its name", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1", "--name=old"}, "old unchanged", "NodeMaintenance old of these nodes is open and is resumed.\n", ""},
		{"its name as output", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1", "-o", "name"}, "nodemaintenance.coordination.k8s.io/old\n", "NodeMaintenance old" + resumed, ""},
		{"nodes in another order", []any{newMaintenance("old", idle, "node-1", "node-2")}, []string{"node-2", "node-1"}, "old moved from Idle to Drain\n", "NodeMaintenance old" + resumed, ""},
		{"labels", []any{byLabels}, []string{"-l", "pool in (a)"}, "labels moved from Cordon to Drain\n", "NodeMaintenance labels" + resumed, ""},
		{"the oldest of several", []any{newMaintenance("a", drain, "node-1").created(time.Hour), newMaintenance("b", drain, "node-1").created(3 * time.Hour), newMaintenance("c", drain, "node-1").created(2 * time.Hour)},
			[]string{"node-1"}, "/b unchanged", "NodeMaintenance b" + resumed, ""},
		{"a dry run", []any{newMaintenance("old", cordon, "node-1")}, []string{"node-1", "--dry-run=client"}, "old moved from Cordon to Drain (dry run)\n", "NodeMaintenance old" + resumed, ""},
		{"another reason", []any{newMaintenance("old", drain, "node-1").reason("a")}, []string{"node-1", "--reason=b"}, "old unchanged", resumed + "NodeMaintenance old keeps its reason.\n", ""},
		{"the same reason", []any{newMaintenance("old", drain, "node-1").reason("a")}, []string{"node-1", "--reason=a"}, "old unchanged", resumed, ""},
		{"a dry run with another name", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1", "--name=new", "--dry-run=server"}, "new created (server dry run)\n", "", ""},
		{"the same plan", []any{newMaintenance("old", drain, "node-1").plan(entry)}, []string{"node-1", "--drain-plan-file=-"}, "old unchanged", "NodeMaintenance old" + resumed, ""},
		{"another plan", []any{newMaintenance("old", drain, "node-1").plan()}, []string{"node-1", "--drain-plan-file=-"}, "", "", `NodeMaintenance "old" of these nodes is open and has another drain plan`},
		{"an earlier stage", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1", "--stage=Cordon"}, "", "NodeMaintenance old" + resumed, "is in stage Drain and cannot return to Cordon"},
		{"completing", []any{newMaintenance("old", complete, "node-1")}, []string{"node-1"}, "node-1-x7k2p created\n", "NodeMaintenance old (Complete) selects some of the same nodes.\n", ""},
		{"being deleted", []any{newMaintenance("old", drain, "node-1").deletedNow()}, []string{"node-1"}, "node-1-x7k2p created\n", "NodeMaintenance old (Drain) selects some of the same nodes.\n", ""},
		{"one node fewer", []any{newMaintenance("old", drain, "node-1", "node-2")}, []string{"node-1"}, "node-1-x7k2p created\n", "NodeMaintenance old (Drain) selects some of the same nodes.\n", ""},
		{"another name", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1", "--name=new"}, "new created\n", "NodeMaintenance old (Drain) selects some of the same nodes.\n", ""},
		{"the name of a maintenance of other nodes", []any{newMaintenance("old", drain, "node-2")}, []string{"node-1", "--name=old"}, "", "", `NodeMaintenance "old" already exists`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(tc.stories, pooled("node-1", "a"), pooled("node-2", "b"))...)
			s.environment.In = strings.NewReader("- {podType: Default, podPriority: 5}\n")
			out := s.run(t, append([]string{"start"}, tc.args...)...)
			contains(t, out, tc.out)
			contains(t, s.failure, tc.failure)
			contains(t, s.errOut.String(), tc.errOut)
			if keeps := strings.Contains(s.errOut.String(), "keeps its reason"); keeps != (tc.name == "another reason") {
				t.Errorf("printed %q", s.errOut)
			}
			if tc.errOut == "" && s.errOut.Len() > 0 {
				t.Errorf("printed %q", s.errOut)
			}
			if failed := s.code != 0; failed != (tc.failure != "") {
				t.Errorf("exit code %d: %s", s.code, s.failure)
			}
		})
	}
}

// TestStartTwiceWithoutRights creates another maintenance if the user may not list them.
func TestStartTwiceWithoutRights(t *testing.T) {
	s := newServer(t, newNode("node-1"), newMaintenance("old", drain, "node-1"))
	s.forbid(resource)
	contains(t, s.mustRun(t, "start", "node-1"), "node-1-x7k2p created\n")
}

func TestSameNodes(t *testing.T) {
	selector := func(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	label := func(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: requirements}
	}
	field := func(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: requirements}
	}
	notIn := in("a", "b")
	notIn.Operator = corev1.NodeSelectorOpNotIn
	for _, tc := range []struct {
		name string
		a, b *corev1.NodeSelector
		want bool
	}{
		{"the order of values, requirements and terms", selector(label(in("a", "b", "c"), in("d", "e")), field(in("f", "g"))), selector(field(in("f", "g")), label(in("d", "e"), in("a", "c", "b"))), true},
		{"duplicates", selector(label(in("a", "b", "b")), label(in("a", "b"), in("a", "b"))), selector(label(in("a", "b"))), true},
		{"other values", selector(label(in("a", "b"))), selector(label(in("a", "c"))), false},
		{"other keys", selector(label(in("a", "b"))), selector(label(in("b", "b"))), false},
		{"other operators", selector(label(in("a", "b"))), selector(label(notIn)), false},
		{"a field and a label", selector(label(in("a", "b"))), selector(field(in("a", "b"))), false},
		{"one more requirement", selector(label(in("a", "b"))), selector(label(in("a", "b"), in("c", "d"))), false},
		{"requirements of one term and of two", selector(label(in("a", "b"), in("c", "d"))), selector(label(in("a", "b")), label(in("c", "d"))), false},
		{"none", nil, nil, false},
		{"one", nil, selector(label(in("a", "b"))), false},
	} {
		if got := sameNodes(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
		if got := sameNodes(tc.b, tc.a); got != tc.want {
			t.Errorf("%s, swapped: %t", tc.name, got)
		}
	}
}

func TestStartWithoutNodes(t *testing.T) {
	s := newServer(t, pooled("node-1", "a"))
	s.run(t, "start", "-l", "pool=typo")
	if want := `error: no node matches --selector="pool=typo"; with --allow-no-nodes, the maintenance waits for such nodes`; s.failure != want || s.code != 1 || len(s.writes()) > 0 {
		t.Errorf("exit code %d, %q, writes %v, want %q", s.code, s.failure, s.writes(), want)
	}
	contains(t, s.mustRun(t, "start", "-l", "pool=typo", "--allow-no-nodes"), "pool-typo-x7k2p created\n")
	contains(t, s.mustRun(t, "start", "-l", "pool=a"), "pool-a-x7k2p created\n")
	s.run(t, "start", "node-1", "--allow-no-nodes")
	contains(t, s.failure, "--allow-no-nodes needs --selector")
	s.forbid("nodes")
	s.run(t, "start", "-l", "pool=b")
	contains(t, s.failure, "listing nodes (not needed with --allow-no-nodes)")
	contains(t, s.mustRun(t, "start", "-l", "pool=b", "--allow-no-nodes"), "pool-b-x7k2p created\n")
}

// TestNodesForMaintenances covers commands that get a node instead of its maintenance.
func TestNodesForMaintenances(t *testing.T) {
	own := newMaintenance("own-1", drain, "own").started(0)
	stories := []any{
		newNode("own"), own, newMaintenance("own-0", complete, "own").started(0).completed(),
		newNode("shared"), newNode("other"), newMaintenance("pair", drain, "shared", "other").started(0),
		newNode("twice"), newMaintenance("twice-1", drain, "twice").started(0), newMaintenance("twice-2", cordon, "twice").started(0),
		newNode("free"),
	}
	for _, tc := range []struct {
		args                 []string
		out, errOut, failure string
	}{
		{[]string{"status", "own"}, "own-1: Drain", "\"own\" is a node under maintenance: own-1\n", ""},
		{[]string{"status", "node/own", "own-1", "shared"}, "pair: Drain", "\"shared\" is a node under maintenance: pair\n", ""},
		{[]string{"status", "twice"}, "twice-2: Cordon", "\"twice\" is a node under maintenance: twice-1, twice-2\n", ""},
		{[]string{"status", "free"}, "", "", `error: "free" is a node, and no open maintenance selects it`},
		{[]string{"status", "nobody"}, "", "", `NodeMaintenance "nobody" not found, and no node of that name: "kubectl maintenance status --all" lists them`},
		{[]string{"complete", "own"}, "nodemaintenance/own-1 is being completed\n", "\"own\" is a node under maintenance: own-1\n", ""},
		{[]string{"cancel", "own"}, "nodemaintenance/own-1 is canceled\n", "\"own\" is a node under maintenance: own-1\n", ""},
		{[]string{"complete", "shared"}, "", "", `error: "shared" is a node. To complete its maintenances, use: kubectl maintenance complete pair`},
		{[]string{"cancel", "twice"}, "", "", `error: "twice" is a node. To cancel its maintenances, use: kubectl maintenance cancel twice-1 twice-2`},
		{[]string{"complete", "free"}, "", "", `error: "free" is a node, and no open maintenance selects it`},
		{[]string{"cancel", "nobody"}, "", "", `"nobody" not found`},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			s := newServer(t, stories...)
			out := s.run(t, tc.args...)
			contains(t, out, tc.out)
			if count := strings.Count(out, tc.out); tc.out != "" && count != 1 {
				t.Errorf("%q is printed %d times: %q", tc.out, count, out)
			}
			if count := strings.Count(out, "own-1: Drain"); count > 1 {
				t.Errorf("own-1 is printed %d times: %q", count, out)
			}
			contains(t, s.errOut.String(), tc.errOut)
			contains(t, s.failure, tc.failure)
			if failed := s.code != 0; failed != (tc.failure != "") {
				t.Errorf("exit code %d: %s", s.code, s.failure)
			}
			if tc.failure != "" && len(s.writes()) > 0 {
				t.Errorf("wrote: %v", s.writes())
			}
		})
	}
	s := newServer(t, stories...)
	s.mustRun(t, "complete", "own")
	if stage := s.get(t, "own-1").Spec.Stage; stage != complete {
		t.Errorf("stage %s", stage)
	}
	watching := newServer(t, newNode("own"), newMaintenance("own-1", drain, "own").started(0).drained())
	contains(t, watching.mustRun(t, "watch", "own"), "own-1: drained")
}

// TestNodesThatCannotBeRead verifies that a forbidden read is not reported as NotFound.
func TestNodesThatCannotBeRead(t *testing.T) {
	forbid := func(s *server, verb, name string) {
		s.PrependReactor(verb, name, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "node-1", errors.New("no permission"))
		})
	}
	for _, args := range [][]string{{"status", "node-1"}, {"watch", "node-1"}, {"complete", "node-1"}, {"cancel", "node-1"}, {"start", "node-1"}} {
		s := newServer(t, newNode("node-1"), newMaintenance("rack", drain, "node-1").started(0))
		forbid(s, "get", "nodes")
		s.run(t, args...)
		contains(t, s.failure, "no permission")
		if strings.Contains(s.failure, "no node of that name") || strings.Contains(s.failure, "nor is there") || s.code != 1 {
			t.Errorf("%v: exit code %d: %s", args, s.code, s.failure)
		}
	}
	for _, args := range [][]string{{"status", "rack"}, {"complete", "rack"}, {"cancel", "rack"}} {
		s := newServer(t, newNode("rack"), newMaintenance("rack", drain, "rack").started(0), newMaintenance("other", drain, "rack").started(0))
		forbid(s, "get", resource)
		s.run(t, args...)
		contains(t, s.failure, "no permission")
		if strings.Contains(s.failure, "is a node") {
			t.Errorf("%v: %s", args, s.failure)
		}
	}
}

// TestStatusShowsOpenOnes verifies that completed maintenances are shown only on request.
func TestStatusShowsOpenOnes(t *testing.T) {
	s := newServer(t, newNode("node-1"), newMaintenance("now", drain, "node-1").started(0), newMaintenance("old", complete, "node-1").started(0).completed(),
		newMaintenance("older", complete, "node-1").started(0).completed(), newMaintenance("ending", complete, "node-1").started(0))
	open := s.mustRun(t, "status")
	contains(t, open, "now: Drain", "ending: Complete")
	if strings.Contains(open, "old") {
		t.Errorf("completed maintenances are shown:\n%s", open)
	}
	if diff := cmp.Diff("2 completed maintenances are not shown, see --all\n", s.errOut.String()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	contains(t, s.mustRun(t, "status", "--all"), "old: Complete", "older: Complete", "now: Drain")
	if s.errOut.Len() > 0 {
		t.Errorf("printed %q", s.errOut)
	}
	contains(t, s.mustRun(t, "status", "old"), "old: Complete")
	if out := s.mustRun(t, "status", "-o", "json"); strings.Contains(out, `"old"`) {
		t.Errorf("completed maintenances are in the JSON output:\n%s", out)
	}
	only := newServer(t, newMaintenance("old", complete, "node-1").started(0).completed())
	if out := only.mustRun(t, "status"); out != "" || only.errOut.String() != "1 completed maintenance is not shown, see --all\n" {
		t.Errorf("printed %q and %q", out, only.errOut)
	}
}
