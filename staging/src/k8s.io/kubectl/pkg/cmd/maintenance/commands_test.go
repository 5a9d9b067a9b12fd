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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
)

const (
	idle     = coordinationv1alpha1.NodeMaintenanceStageIdle
	cordon   = coordinationv1alpha1.NodeMaintenanceStageCordon
	drain    = coordinationv1alpha1.NodeMaintenanceStageDrain
	complete = coordinationv1alpha1.NodeMaintenanceStageComplete
)

// contains fails the test unless got contains all texts.
func contains(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("%q is missing in %q", text, got)
		}
	}
}

func (s *server) get(t *testing.T, name string) *coordinationv1alpha1.NodeMaintenance {
	t.Helper()
	nm, err := s.CoordinationV1alpha1().NodeMaintenances().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return nm
}

func TestOldServer(t *testing.T) {
	for _, args := range [][]string{{"plan", "node-1"}, {"start", "node-1"}, {"status"}, {"watch"}, {"complete", "a"}, {"complete", "a", "node-1"}, {"cancel", "a"}, {"pause", "a"}, {"resume", "a"}} {
		for name, resources := range map[string][]*metav1.APIResourceList{
			"no version":    nil,
			"only requests": {{GroupVersion: "coordination.k8s.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "evictionrequests"}}}},
		} {
			t.Run(args[0]+", "+name, func(t *testing.T) {
				s := newServer(t, newNode("node-1"))
				s.Resources = resources
				s.run(t, args...)
				contains(t, s.failure, "the server does not serve NodeMaintenance (coordination.k8s.io/v1alpha1)", "DeclarativeNodeMaintenance", `"kubectl drain"`)
				if s.code != 1 || len(s.writes()) > 0 {
					t.Errorf("exit code %d, writes %v", s.code, s.writes())
				}
			})
		}
	}
}

func TestStartCreates(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte("- {podType: Default, podPriority: 500, podSelector: {matchLabels: {app: web}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	byLabels := func(requirements ...corev1.NodeSelectorRequirement) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}}}
	}
	named := func(prefix, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{GenerateName: prefix, Name: name}
	}
	for _, tc := range []struct {
		name string
		args []string
		want coordinationv1alpha1.NodeMaintenance
		out  string
	}{
		{
			"one node", []string{"node-1", "--reason=why"},
			coordinationv1alpha1.NodeMaintenance{ObjectMeta: named("node-1-", ""), Spec: coordinationv1alpha1.NodeMaintenanceSpec{NodeSelector: nodeselection.ByName([]string{"node-1"}), Stage: drain, Reason: "why"}},
			"nodemaintenance.coordination.k8s.io/node-1-x7k2p created\n",
		},
		{
			"nodes, one of them twice, a name, a stage", []string{"node-1", "node-2", "node-1", "--name=rack", "--stage=cordon", "-o", "name"},
			coordinationv1alpha1.NodeMaintenance{ObjectMeta: named("", "rack"), Spec: coordinationv1alpha1.NodeMaintenanceSpec{NodeSelector: nodeselection.ByName([]string{"node-1", "node-2"}), Stage: cordon}},
			"nodemaintenance.coordination.k8s.io/rack\n",
		},
		{
			"labels", []string{"--allow-no-nodes", "-l", "pool in (b, a),!spot,zone!=z,gpu,cores>4"},
			coordinationv1alpha1.NodeMaintenance{ObjectMeta: named("nodes-", ""), Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: drain, NodeSelector: byLabels(
				corev1.NodeSelectorRequirement{Key: "cores", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}},
				corev1.NodeSelectorRequirement{Key: "gpu", Operator: corev1.NodeSelectorOpExists},
				corev1.NodeSelectorRequirement{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}},
				corev1.NodeSelectorRequirement{Key: "spot", Operator: corev1.NodeSelectorOpDoesNotExist},
				corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"z"}})}},
			"nodemaintenance.coordination.k8s.io/nodes-x7k2p created\n",
		},
		{
			"labels and a name", []string{"--name=rack", "--allow-no-nodes", "-l", "topology.kubernetes.io/zone=A_1", "--drain-plan-file", plan},
			coordinationv1alpha1.NodeMaintenance{ObjectMeta: named("", "rack"), Spec: coordinationv1alpha1.NodeMaintenanceSpec{
				Stage:        drain,
				NodeSelector: byLabels(corev1.NodeSelectorRequirement{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"A_1"}}),
				DrainPlan:    []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault, PodPriority: 500, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
			}},
			"nodemaintenance.coordination.k8s.io/rack created\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"), newNode("node-2"))
			var created *coordinationv1alpha1.NodeMaintenance
			s.PrependReactor("create", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
				created = action.(clienttesting.CreateAction).GetObject().(*coordinationv1alpha1.NodeMaintenance)
				stored := created.DeepCopy()
				if stored.Name == "" {
					stored.Name = stored.GenerateName + "x7k2p"
				}
				return true, stored, nil
			})
			out := s.mustRun(t, append([]string{"start"}, tc.args...)...)
			if created == nil {
				t.Fatal("nothing was created")
			}
			if diff := cmp.Diff(&tc.want, created); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			if out != tc.out {
				t.Errorf("printed %q, want %q", out, tc.out)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"a node that does not exist", []string{"node-1", "nod-2", "nod-3"}, "node \"nod-2\" not found\nnode \"nod-3\" not found"},
		{"neither a node nor a maintenance", []string{"nod-1"}, `node "nod-1" not found, nor is there a NodeMaintenance of that name: "kubectl maintenance status --all" lists them`},
		{"a maintenance among nodes", []string{"old", "node-1"}, `node "old" not found`},
		{"no argument", nil, "name nodes, or select them with -l"},
		{"nodes and labels", []string{"node-1", "node-2", "-l", "a=b"}, "name nodes (node-1, node-2) or select them with -l, not both"},
		{"a node and labels", []string{"node-1", "-l", "a=b"}, "name nodes (node-1) or select them with -l, not both"},
		{"a node, labels and a name", []string{"node-1", "-l", "a=b", "--name=other"}, "not both"},
		{"invalid labels", []string{"-l", "a in b"}, "--selector"},
		{"an unknown stage", []string{"node-1", "--stage=Drian"}, `--stage="Drian": must be one of Idle, Cordon, Drain`},
		{"the last stage", []string{"node-1", "--stage=Complete"}, `use "kubectl maintenance complete"`},
		{"waiting in stage Idle", []string{"node-1", "--stage=Idle", "--wait"}, "nothing to wait for in stage Idle"},
		{"waiting for a dry run", []string{"node-1", "--dry-run=server", "--wait"}, "nothing to wait for with --dry-run"},
		{"a timeout without waiting", []string{"node-1", "--timeout=1m"}, "--timeout needs --wait"},
		{"a negative timeout", []string{"node-1", "--wait", "--timeout=-1m"}, "must not be negative"},
		{"a plan that does not exist", []string{"node-1", "--drain-plan-file=/nowhere"}, "--drain-plan-file: open /nowhere"},
		{"a name that is taken", []string{"node-2", "--name=old"}, `NodeMaintenance "old" already exists`},
		{"an earlier stage", []string{"old", "--stage=Idle"}, `is in stage Cordon and cannot return to Idle: complete or cancel it`},
		{"a reason for an existing one", []string{"old", "--reason=x"}, "--reason and --drain-plan-file are for a new one"},
		{"a plan for an existing one", []string{"old", "--drain-plan-file=-"}, "--reason and --drain-plan-file are for a new one"},
		{"a maintenance, and a name", []string{"old", "--name=new"}, `node "old" not found`},
		{"no such maintenance", []string{"--name=none"}, `"none" not found`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"), newNode("node-2"), newMaintenance("old", cordon, "node-1"))
			s.environment.In = strings.NewReader("- {podType: Default, podPriority: 5}\n")
			s.run(t, append([]string{"start"}, tc.args...)...)
			contains(t, s.failure, tc.want)
			if s.code != 1 {
				t.Errorf("exit code %d", s.code)
			}
			if writes := s.writes(); len(writes) > 0 && tc.name != "a name that is taken" {
				t.Errorf("wrote: %v", writes)
			}
		})
	}
}

func TestStartMovesOn(t *testing.T) {
	for _, tc := range []struct {
		name, out string
		args      []string
		want      coordinationv1alpha1.NodeMaintenanceStage
	}{
		{"by its name", "nodemaintenance.coordination.k8s.io/old moved from Cordon to Drain\n", []string{"old"}, drain},
		{"by the flag", "nodemaintenance.coordination.k8s.io/old moved from Cordon to Drain\n", []string{"--name=old"}, drain},
		{"already in the stage", "nodemaintenance.coordination.k8s.io/old unchanged, already in stage Cordon\n", []string{"old", "--stage=Cordon"}, cordon},
		{"a dry run", "nodemaintenance.coordination.k8s.io/old moved from Cordon to Drain (dry run)\n", []string{"old", "--dry-run=client"}, cordon},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"), newMaintenance("old", cordon, "node-1"))
			if out := s.mustRun(t, append([]string{"start"}, tc.args...)...); out != tc.out {
				t.Errorf("printed %q, want %q", out, tc.out)
			}
			if stage := s.get(t, "old").Spec.Stage; stage != tc.want {
				t.Errorf("stage %s, want %s", stage, tc.want)
			}
		})
	}
}

// TestStartOfEndedOne has somebody start a maintenance under the name of one that is over: what is proposed works.
func TestStartOfEndedOne(t *testing.T) {
	for name, args := range map[string][]string{
		`NodeMaintenance "old" is in stage Complete and cannot return to Drain: start another one`: {"old"},
		`NodeMaintenance "old" already exists, and has ended: choose another name`:                 {"node-1", "--name=old"},
	} {
		s := newServer(t, newNode("node-1"), newMaintenance("old", complete, "node-1"))
		s.run(t, append([]string{"start"}, args...)...)
		contains(t, s.failure, name)
		contains(t, s.failure, "delete it first: kubectl delete nm old")
	}
}

// TestStartOfOneThatIsBeingDeleted does not ask to delete it: what its deletion waits for is named.
func TestStartOfOneThatIsBeingDeleted(t *testing.T) {
	old := newMaintenance("old", drain, "node-1").deletedNow()
	old.Finalizers = append(old.Finalizers, "example.com/backup")
	s := newServer(t, newNode("node-1"), old)
	s.run(t, "start", "node-1", "--name=old")
	const want = `error: NodeMaintenance "old" is being deleted already, and exists until its finalizers are removed (nodemaintenance.k8s.io/maintenance-completion, example.com/backup): ` +
		`choose another name, or wait for that: kubectl wait --for=delete nm/old`
	if s.failure != want {
		t.Errorf("%q, want %q", s.failure, want)
	}
}

// TestMoveAfterConflict verifies that a retry decides again: another user has completed it.
func TestMoveAfterConflict(t *testing.T) {
	s := newServer(t, newMaintenance("old", cordon, "node-1"))
	var patches []string
	s.PrependReactor("patch", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		patches = append(patches, string(action.(clienttesting.PatchAction).GetPatch()))
		nm := newMaintenance("old", complete, "node-1").NodeMaintenance
		if err := s.Tracker().Update(action.GetResource(), nm, ""); err != nil {
			t.Fatal(err)
		}
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), "old", nil)
	})
	s.run(t, "start", "old")
	contains(t, s.failure, "is in stage Complete and cannot return to Drain")
	if diff := cmp.Diff([]string{`{"metadata":{"resourceVersion":"7","uid":"uid-of-old"},"spec":{"stage":"Drain"}}`}, patches); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestStartDryRun(t *testing.T) {
	s := newServer(t, newNode("node-1"))
	if got, want := s.mustRun(t, "start", "node-1", "--dry-run=client"), "nodemaintenance.coordination.k8s.io/node-1-* created (dry run)\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	contains(t, s.mustRun(t, "start", "node-1", "--dry-run=client", "-o", "yaml"), "apiVersion: coordination.k8s.io/v1alpha1", "kind: NodeMaintenance", "generateName: node-1-")
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("wrote: %v", writes)
	}
	s.mustRun(t, "start", "node-1", "--name=a", "--dry-run=server")
	last := s.Actions()[len(s.Actions())-1].(clienttesting.CreateActionImpl)
	if diff := cmp.Diff([]string{metav1.DryRunAll}, last.CreateOptions.DryRun); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func (s *server) update(t *testing.T, story maintenanceStory) {
	if err := s.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource), story.NodeMaintenance, ""); err != nil {
		t.Error(err)
	}
}

func TestStartWaits(t *testing.T) {
	for _, tc := range []struct {
		name    string
		args    []string
		change  func(t *testing.T, s *server)
		code    int
		out     []string
		failure string
	}{
		{
			"drained", []string{"--wait"},
			func(t *testing.T, s *server) {
				s.update(t, newMaintenance("rack", drain, "node-1").started(0).drained())
			},
			0, []string{"created\n", "rack: stage Drain, 1 node\n", "rack: blocked: 1 pod waits for PodDisruptionBudget default/db: default/db-0\n", "rack: drained: no pod is left on 1 node\n"}, "",
		},
		{
			"ended by another user", []string{"--wait"},
			func(t *testing.T, s *server) {
				s.update(t, newMaintenance("rack", complete, "node-1").started(0).completed())
			},
			1, nil, "error: NodeMaintenance rack was completed before it was drained: its nodes are released",
		},
		{
			"blocked for too long", []string{"--wait", "--timeout=1h"}, func(_ *testing.T, s *server) { s.end(context.DeadlineExceeded) },
			3, nil, "timed out while pods were blocked; the maintenance continues: kubectl maintenance watch rack\nrack: 1 pod waits for PodDisruptionBudget default/db: default/db-0",
		},
		{
			"interrupted", []string{"--wait"}, func(_ *testing.T, s *server) { s.end(nil) },
			130, nil, "interrupted; the maintenance continues: kubectl maintenance watch rack",
		},
		{
			"cordoned", []string{"--wait", "--stage=Cordon"},
			func(t *testing.T, s *server) {
				if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), drainingNode("node-1", 0, 0, ""), ""); err != nil {
					t.Error(err)
				}
				s.update(t, newMaintenance("rack", cordon, "node-1").started(0))
			},
			0, []string{"rack: node-1: cordoned\n"}, "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1"), newPod("db-0", "node-1").asked().blocked(), newBudget("db", "db", 0))
			s.whenLooked(func() { tc.change(t, s) })
			out := s.run(t, append([]string{"start", "node-1", "--name=rack"}, tc.args...)...)
			if s.code != tc.code {
				t.Errorf("exit code %d, want %d: %s", s.code, tc.code, s.failure)
			}
			contains(t, out, tc.out...)
			contains(t, s.failure, tc.failure)
		})
	}
}

func TestStatus(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"),
		newMaintenance("other", idle, "node-2").started(time.Minute), newNode("node-2"),
		newPod("db-0", "node-1").asked().blocked(), newBudget("db", "db", 0))
	all := s.mustRun(t, "status")
	contains(t, all, "other: Idle for 60s, 1 node\n", "rack: Drain for 60s, 0 of 1 node drained\n", "! 1 pod waits for PodDisruptionBudget default/db (for 3m)\n")
	if one := s.mustRun(t, "status", "rack"); strings.Contains(one, "other") {
		t.Errorf("shows another maintenance: %s", one)
	}
	contains(t, s.mustRun(t, "status", "rack", "-o", "json"), `"name": "default/db"`, `"blocked": true`)
	s.run(t, "status", "rack", "nobody")
	contains(t, s.failure, `NodeMaintenance "nobody" not found, and no node of that name: "kubectl maintenance status --all" lists them`)
	s.run(t, "status", "-o", "wide")
	contains(t, s.failure, `--output="wide": must be one of [json yaml]`)
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("wrote: %v", writes)
	}
	empty := newServer(t)
	if out := empty.mustRun(t, "status"); out != "" || empty.errOut.String() != "No maintenances found\n" {
		t.Errorf("printed %q and %q", out, empty.errOut)
	}
	contains(t, empty.mustRun(t, "status", "-o", "json"), `"maintenances": []`)
}

// TestStatusWithoutRights verifies that blockers are shown, as the maintenance contains them.
func TestStatusWithoutRights(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"), newPod("db-0", "node-1").asked().blocked(), newBudget("db", "db", 0))
	for _, kind := range []string{"nodes", "pods", "evictionrequests", "poddisruptionbudgets"} {
		s.forbid(kind)
	}
	contains(t, s.mustRun(t, "status"), "Without the permission to list nodes, they are not shown.", "! 1 pod waits for PodDisruptionBudget default/db (for 3m)", "Pods:    1 left: 0 pending, 1 evicting, 1 blocked")
	// A watch without the permission would panic.
	s.whenLooked(func() { s.update(t, newMaintenance("rack", drain, "node-1").started(0).drained()) })
	contains(t, s.mustRun(t, "watch", "rack"), "rack: blocked: 1 pod waits for PodDisruptionBudget default/db: default/db-0\n", "rack: drained")
}

// TestOnlyMaintenancesAndNodesAreRead covers the commands that show blockers: they are read from
// the status of the maintenance.
func TestOnlyMaintenancesAndNodesAreRead(t *testing.T) {
	for _, args := range [][]string{
		{"status"}, {"status", "rack", "-o", "json"}, {"status", "--all"}, {"watch"}, {"watch", "rack"}, {"start", "node-2", "--wait"}, {"start", "rack", "--wait"},
		{"complete", "other", "--wait"}, {"cancel", "other", "--wait"},
	} {
		s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), newNode("node-1"), newNode("node-2"), newPod("db-0", "node-1").asked().blocked(), newBudget("db", "db", 0),
			newMaintenance("other", drain, "node-2").started(time.Minute).drained())
		s.PrependReactor("delete", resource, ignoreDelete)
		s.whenLooked(func() { s.end(context.DeadlineExceeded) })
		out := s.run(t, args...) + s.failure
		read := map[string]bool{}
		for _, action := range s.Actions() {
			read[action.GetVerb()+" "+action.GetResource().Resource] = true
			switch action.GetResource().Resource {
			case resource, "nodes":
			case "leases": // Only that of kube-controller-manager.
				if get, ok := action.(clienttesting.GetAction); !ok || get.GetName() != "kube-controller-manager" || get.GetNamespace() != "kube-system" {
					t.Errorf("%v: %v", args, action)
				}
			case "resource": // API discovery.
			default:
				t.Errorf("%v: %s %s", args, action.GetVerb(), action.GetResource().Resource)
			}
		}
		if !read["list nodes"] {
			t.Errorf("%v: read %v", args, read)
		}
		if args[0] == "status" || args[0] == "watch" {
			contains(t, out, "1 pod waits for PodDisruptionBudget default/db")
		}
	}
}

// TestStatusReadsOnce lists nodes once, regardless of the number of maintenances.
func TestStatusReadsOnce(t *testing.T) {
	var stories []any
	for i := range 60 {
		node := fmt.Sprintf("node-%02d", i)
		stories = append(stories, newNode(node), newMaintenance("old-"+node, complete, node).started(24*time.Hour).completed(), newMaintenance("new-"+node, drain, node).started(time.Minute))
	}
	s := newServer(t, stories...)
	s.mustRun(t, "status", "--all")
	if diff := cmp.Diff(map[string]int{"nodemaintenances": 1, "nodes": 1}, s.lists()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"),
		newMaintenance("ended", complete, "node-2").started(time.Hour).completed(), newNode("node-2"))
	s.whenLooked(func() {
		if err := s.Tracker().Delete(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource), "", "rack"); err != nil {
			t.Error(err)
		}
	})
	out := s.run(t, "watch")
	contains(t, out, "13:02:25  rack: stage Drain, 1 node\n", "13:02:25  rack: deleted\n")
	if strings.Contains(out, "ended") {
		t.Errorf("watches a completed maintenance: %s", out)
	}
	s.run(t, "watch", "rack")
	contains(t, s.failure, `"rack" not found`)
	contains(t, s.run(t, "watch", "ended"), "completed: the nodes are released")
}

func TestWatchLosesTheConnection(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"))
	s.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, errors.New("connection refused")
	})
	reported := 0
	s.clock.looked = func() {
		if strings.Contains(s.out.String(), "may be outdated") {
			reported++
		}
		if reported == 3 {
			s.end(nil)
		}
	}
	out := s.run(t, "watch", "--timeout=1m")
	contains(t, out, "13:02:25  The view may be outdated, retrying: connection refused\n")
	if count := strings.Count(out, "may be outdated"); count != 1 {
		t.Errorf("reported %d times: %s", count, out)
	}
}

// TestWatchFailsIfAListFails verifies that watch does not wait for a list that fails for another
// reason than a missing permission.
func TestWatchFailsIfAListFails(t *testing.T) {
	for _, kind := range []string{"nodes", resource} {
		s := newServer(t, newMaintenance("rack", drain, "node-1").started(0).drained(), newNode("node-1"))
		failed := false
		s.PrependReactor("list", kind, func(clienttesting.Action) (bool, runtime.Object, error) {
			first := !failed
			failed = true
			return first, nil, errors.New("etcd has no leader")
		})
		s.run(t, "watch", "rack")
		if want := "error: listing " + kind + ": etcd has no leader"; s.failure != want || s.code != 1 {
			t.Errorf("exit code %d, %q, want 1, %q", s.code, s.failure, want)
		}
	}
}

// TestWatchNoticesASilentServer covers a lost connection that the watches do not report: reflectors
// retry if a connection is refused.
func TestWatchNoticesASilentServer(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"))
	s.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, syscall.ECONNREFUSED
	})
	var gone atomic.Bool
	s.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if gone.Load() {
			return true, nil, syscall.ECONNREFUSED
		}
		return false, nil, nil
	})
	looks := 0
	s.clock.looked = func() {
		gone.Store(true)
		s.clock.Step(probeInterval / 2)
		if looks++; strings.Contains(s.out.String(), "may be outdated") || looks == 100 {
			s.end(context.DeadlineExceeded)
		}
	}
	const notice = "The view may be outdated, retrying: connection refused"
	contains(t, s.run(t, "watch", "rack"), notice)
	contains(t, s.failure, notice)
	if s.code != exitTimedOut {
		t.Errorf("exit code %d", s.code)
	}
}

// TestWatchAfterAnOutage does not call a view outdated when the probe that has failed, or the watch, has worked again.
func TestWatchAfterAnOutage(t *testing.T) {
	for name, tc := range map[string]struct{ probe, watches, works, outdated bool }{
		"a probe answers again":              {probe: true, works: true},
		"an update comes again":              {watches: true, works: true},
		"only the probe is answered":         {watches: true, outdated: true},
		"only the watch works, and no probe": {probe: true, outdated: true},
	} {
		t.Run(name, func(t *testing.T) {
			rack := func() maintenanceStory { return newMaintenance("rack", drain, "node-1").started(time.Minute) }
			s := newServer(t, rack(), drainingNode("node-1", 0, 1, "Draining"))
			var down, works, again atomic.Bool
			s.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
				again.Store(works.Load())
				return tc.watches && !works.Load(), nil, errors.New("connection refused")
			})
			s.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.probe && down.Load() && !works.Load(), nil, errors.New("connection refused")
			})
			looks, seen, watched := 0, 0, 0
			s.clock.looked = func() {
				down.Store(true)
				if looks++; seen == 0 || looks < seen+15 {
					s.clock.Step(probeInterval / 2) // All in all, less than a minute.
				}
				if seen == 0 && strings.Contains(s.out.String(), "may be outdated") {
					works.Store(tc.works)
					seen = looks
				}
				retried := tc.watches && tc.works
				if seen > 0 && retried && looks%20 == 0 {
					time.Sleep(10 * time.Millisecond) // The watch is tried again after some seconds, whatever the clock says.
					m := rack()
					m.ResourceVersion = strconv.Itoa(looks)
					s.update(t, m)
					if watched == 0 && again.Load() {
						watched = looks
					}
				}
				if seen > 0 && (watched > 0 && looks == watched+100 || !retried && looks == seen+15) || looks == 100000 {
					s.end(context.DeadlineExceeded)
				}
			}
			s.run(t, "watch", "rack")
			if seen == 0 || strings.Contains(s.failure, "may be outdated") != tc.outdated {
				t.Errorf("seen %d: %s", seen, s.failure)
			}
		})
	}
}

func TestWatchTimesOut(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Minute), drainingNode("node-1", 0, 1, "Draining"), newPod("web-0", "node-1").asked())
	s.whenLooked(func() { s.end(context.DeadlineExceeded) })
	s.run(t, "watch", "--timeout=1h")
	contains(t, s.failure, "timed out; the maintenance continues: kubectl maintenance watch rack")
	if s.code != exitTimedOut {
		t.Errorf("exit code %d", s.code)
	}
}

func TestComplete(t *testing.T) {
	// called returns a pod for which pods/eviction was called, with the annotation that kube-apiserver sets if the node was cordoned.
	called := func(name, cordon string, more ...string) podStory {
		pod := newPod(name, "node-1").asked()
		for _, requester := range append([]string{coordinationv1alpha1.EvictionRequesterEvictions}, more...) {
			pod.request.Spec.Requesters = append(pod.request.Spec.Requesters, coordinationv1alpha1.Requester{Name: requester})
		}
		pod.request.Annotations = map[string]string{coordinationv1alpha1.EvictionCallCordonAnnotation: cordon}
		return pod
	}
	node := newNode("node-1")
	node.UID = "uid-of-node-1"
	others := newPod("web-0", "node-1").asked()
	others.request.Spec.Requesters = append(others.request.Spec.Requesters, coordinationv1alpha1.Requester{Name: "drain.example.com"})
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(0), newMaintenance("ended", complete, "node-1").started(0).completed(), node,
		newPod("vm-0", "node-1", migrate).asked().forbidding(), others, newPod("db-0", "node-1").asked(), newPod("idle-0", "node-1"),
		called("called-0", "uid-of-node-1/5"), called("called-1", "uid-of-node-1/6"), called("called-before", ""), called("called-elsewhere", "uid-of-node-2/5"), called("both-0", "uid-of-node-1/5", "drain.example.com"))
	want := `nodemaintenance/rack is being completed
1 pod will still be evicted, because its interceptor forbids cancellation: default/vm-0
4 pods will still be evicted, because other clients request it: default/both-0, default/called-before, default/called-elsewhere, default/web-0
2 pods will only be evicted while their nodes stay cordoned, because somebody called pods/eviction for them: default/called-0, default/called-1
nodemaintenance/ended is already completed
`
	if diff := cmp.Diff(want, s.mustRun(t, "complete", "rack", "ended")); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if stage := s.get(t, "rack").Spec.Stage; stage != complete {
		t.Errorf("stage %s", stage)
	}
	if again := s.mustRun(t, "complete", "rack"); again != "nodemaintenance/rack is already being completed\n" {
		t.Errorf("the second time: %q", again)
	}
	s.run(t, "complete", "nobody", "ended")
	contains(t, s.failure, `"nobody" not found`, "\nerror: nothing was changed")
	if s.out.Len() > 0 {
		t.Errorf("printed %q", s.out)
	}
	s.run(t, "complete")
	contains(t, s.failure, "at least one NAME is required")
	s.whenLooked(func() { s.update(t, newMaintenance("rack", complete, "node-1").started(0).completed()) })
	contains(t, s.mustRun(t, "complete", "rack", "--wait"), "rack: completed: the nodes are released\n")
}

// TestStillHeld prints one line for all nodes that the same maintenances claim.
func TestStillHeld(t *testing.T) {
	v := view{Nodes: []*nodeView{{Name: "free"}, {Name: "x", ClaimedBy: []string{"b", "c"}}}}
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"} {
		v.Nodes = append(v.Nodes, &nodeView{Name: name, ClaimedBy: []string{"b"}})
	}
	want := []string{"n1, n2, n3, n4, n5 and 2 more: still claimed by b", "x: still claimed by b, c"}
	if diff := cmp.Diff(want, v.stillHeld()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestCompleteOfHeldNodes(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1", "node-2", "node-3"), newNode("node-1"), drainingNode("node-2", 0, 0, "Drained"), newNode("node-3"),
		newMaintenance("node-2-disk", cordon, "node-2").started(time.Hour),
		newMaintenance("announced", idle, "node-2").started(time.Hour),
		newMaintenance("ended", complete, "node-2").started(time.Hour).completed())
	s.whenLooked(func() {
		s.update(t, newMaintenance("rack", complete, "node-1", "node-2", "node-3").started(0).completed())
	})
	want := `nodemaintenance/rack is being completed
rack: stage Complete, 3 nodes
rack: completed
rack: node-2: still claimed by node-2-disk
`
	if diff := cmp.Diff(want, s.mustRun(t, "complete", "rack", "--wait")); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	hint := "The record stays until you delete it: kubectl delete nm rack\n"
	if diff := cmp.Diff(hint, s.errOut.String()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	s.mustRun(t, "complete", "rack")
	if s.errOut.Len() > 0 {
		t.Errorf("the second time: %q", s.errOut)
	}
}

// ignoreDelete keeps a deleted object, as a finalizer does.
func ignoreDelete(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil }

func TestCancel(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(0), newNode("node-1"), newPod("vm-0", "node-1", migrate).asked().forbidding())
	var options metav1.DeleteOptions
	s.PrependReactor("delete", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		options = action.(clienttesting.DeleteActionImpl).DeleteOptions
		return ignoreDelete(action)
	})
	s.whenLooked(func() {
		if err := s.Tracker().Delete(coordinationv1alpha1.SchemeGroupVersion.WithResource(resource), "", "rack"); err != nil {
			t.Error(err)
		}
	})
	contains(t, s.mustRun(t, "cancel", "rack", "--wait"), "nodemaintenance/rack is canceled\n1 pod will still be evicted, because its interceptor forbids", "rack: deleted\n")
	if diff := cmp.Diff(metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("uid-of-rack")}, options); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	s.run(t, "cancel", "rack")
	contains(t, s.failure, `"rack" not found`)
}

// TestEndDryRun verifies that a dry run says what would happen, and that no object changes: the client sends nothing, or
// asks the server not to store it.
func TestEndDryRun(t *testing.T) {
	for _, tc := range []struct {
		args    []string
		out     string
		written string
	}{
		{[]string{"complete", "rack"}, "nodemaintenance/rack is being completed%s\n1 pod will still be evicted, because its interceptor forbids cancellation: default/vm-0\n", "patch nodemaintenances rack"},
		{[]string{"complete", "ended"}, "nodemaintenance/ended is already completed%s\n", ""},
		{[]string{"cancel", "rack"}, "nodemaintenance/rack is canceled%s\n1 pod will still be evicted, because its interceptor forbids cancellation: default/vm-0\n", "delete nodemaintenances rack"},
		{[]string{"complete", "kernel", "node-2"}, "node/node-2 is being completed%s\n", "patch nodes node-2"},
		{[]string{"complete", "kernel", "node-3"}, "node/node-3 is already completed%s\n", ""},
	} {
		for strategy, suffix := range map[string]string{"client": " (dry run)", "server": " (server dry run)"} {
			t.Run(strings.Join(tc.args, " ")+" "+strategy, func(t *testing.T) {
				kernel := newMaintenance("kernel", drain, "node-2", "node-3").started(time.Hour).rollingOut(twoAtATime(manual))
				s := newServer(t, newMaintenance("rack", drain, "node-1").started(0), newNode("node-1"), newPod("vm-0", "node-1", migrate).asked().forbidding(),
					newMaintenance("ended", complete, "node-4").started(0).completed(), newNode("node-4"),
					kernel, admittedNode(kernel, "node-2", phaseDrained, time.Minute), admittedNode(kernel, "node-3", phaseDone, time.Minute))
				var written []string
				note := func(action clienttesting.Action, name string, dryRun []string) {
					written = append(written, fmt.Sprintf("%s %s %s", action.GetVerb(), action.GetResource().Resource, name))
					if !slices.Equal(dryRun, []string{metav1.DryRunAll}) {
						t.Errorf("%s of %s has the option dryRun %q", action.GetVerb(), name, dryRun)
					}
				}
				s.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
					patch := action.(clienttesting.PatchActionImpl)
					note(action, patch.Name, patch.PatchOptions.DryRun)
					return false, nil, nil
				})
				s.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
					deletion := action.(clienttesting.DeleteActionImpl)
					note(action, deletion.Name, deletion.DeleteOptions.DryRun)
					return false, nil, nil
				})
				if diff := cmp.Diff(fmt.Sprintf(tc.out, suffix), s.mustRun(t, append(tc.args, "--dry-run="+strategy)...)); diff != "" {
					t.Errorf("(-want, +got):\n%s", diff)
				}
				if s.errOut.Len() > 0 {
					t.Errorf("printed %q", s.errOut)
				}
				var want []string
				if strategy == "server" && tc.written != "" {
					want = []string{tc.written}
				}
				if diff := cmp.Diff(want, written); diff != "" {
					t.Errorf("writes (-want, +got):\n%s", diff)
				}
			})
		}
	}
	s := newServer(t, newMaintenance("rack", drain, "node-1"))
	for _, args := range [][]string{{"complete", "rack", "--wait", "--dry-run=server"}, {"cancel", "rack", "--wait", "--dry-run=client"}} {
		s.run(t, args...)
		contains(t, s.failure, "--wait: there is nothing to wait for with --dry-run")
	}
	s.run(t, "cancel", "rack", "--dry-run=perhaps")
	contains(t, s.failure, "Invalid dry-run value (perhaps)")
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
}

// TestNothingIsChanged verifies that all arguments are read before the first write: whoever wants to end the
// work on one node, and writes "cancel NAME NODE", must not end the maintenance of all.
func TestNothingIsChanged(t *testing.T) {
	begun := func(name string, stage coordinationv1alpha1.NodeMaintenanceStage, nodes ...string) maintenanceStory {
		return newMaintenance(name, stage, nodes...).started(time.Hour).rollingOut(twoAtATime(manual))
	}
	rollout := begun("kernel", drain, "node-7", "node-8")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"a node of the maintenance", []string{"cancel", "kernel", "node-7"}, `error: "node-7" is a node. To end the work on it alone: kubectl maintenance complete kernel node-7. To cancel the maintenance of all its nodes: kubectl maintenance cancel kernel` + "\nerror: nothing was changed"},
		{"the same, with its kind", []string{"cancel", "nm/kernel", "node/node-7"}, "kubectl maintenance complete kernel node-7. To cancel"},
		{"a node of a maintenance without a rollout", []string{"cancel", "kernel", "node-3"}, `error: "node-3" is a node. To cancel its maintenances, use: kubectl maintenance cancel together` + "\nerror: nothing was changed"},
		{"a node of several maintenances", []string{"cancel", "kernel", "node-5"}, `error: "node-5" is a node. To cancel its maintenances, use: kubectl maintenance cancel disk fans` + "\nerror: nothing was changed"},
		{"a node of a maintenance that drains no node", []string{"cancel", "kernel", "node-6"}, `error: "node-6" is a node. To cancel its maintenances, use: kubectl maintenance cancel later` + "\nerror: nothing was changed"},
		{"a node that nothing selects", []string{"cancel", "kernel", "node-9"}, `error: "node-9" is a node, and no open maintenance selects it` + "\nerror: nothing was changed"},
		{"unknown", []string{"cancel", "kernel", "nobody", "together"}, `error: NodeMaintenance "nobody" not found, and no node of that name`},
		{"unknown, with its kind", []string{"cancel", "kernel", "nm/nobody"}, `"nobody" not found` + "\nerror: nothing was changed"},
		{"two are unknown", []string{"cancel", "nobody", "kernel", "node-9"}, `no open maintenance selects it` + "\nerror: nothing was changed"},
		{"pause", []string{"pause", "kernel", "node-7"}, "nothing was changed"},
		{"resume", []string{"resume", "kernel", "nobody"}, "nothing was changed"},
		{"complete", []string{"complete", "nobody", "kernel", "together"}, "nothing was changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, rollout, newMaintenance("together", drain, "node-3", "node-4"), begun("disk", drain, "node-5", "node-8"), begun("fans", drain, "node-5", "node-8"), begun("later", cordon, "node-6", "node-8"),
				newNode("node-3"), newNode("node-4"), newNode("node-5"), newNode("node-6"), newNode("node-7"), newNode("node-8"), newNode("node-9"))
			out := s.run(t, tc.args...)
			contains(t, s.failure, tc.want)
			if writes := s.writes(); s.code != 1 || len(writes) > 0 || out != "" {
				t.Errorf("exit code %d, wrote %v, printed %q", s.code, writes, out)
			}
		})
	}
	// A single argument changes nothing else.
	s := newServer(t, rollout)
	s.run(t, "cancel", "nobody")
	if strings.Contains(s.failure, "nothing was changed") {
		t.Errorf("%s", s.failure)
	}
	// Both name the same one.
	s = newServer(t, newMaintenance("own", drain, "node-1"), newNode("node-1"))
	if out := s.mustRun(t, "cancel", "own", "node-1"); out != "nodemaintenance/own is canceled\n" {
		t.Errorf("printed %q", out)
	}
}

// TestFailuresSurviveTheWait verifies that what failed before a wait is named if the wait ends early, with the
// exit code of the wait.
func TestFailuresSurviveTheWait(t *testing.T) {
	refuse := func(s *server, verb, kind, name string) {
		s.PrependReactor(verb, kind, func(action clienttesting.Action) (bool, runtime.Object, error) {
			if named, ok := action.(interface{ GetName() string }); !ok || named.GetName() != name {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, errors.New("no permission"))
		})
	}
	m := newMaintenance("kernel", drain, "drained", "failed").started(time.Hour).rollingOut(twoAtATime(manual))
	for _, tc := range []struct {
		name    string
		stories []any
		refuse  []string
		args    []string
		end     error
		code    int
	}{
		{"cancel times out", []any{newMaintenance("a", drain, "n"), newMaintenance("b", drain, "n")}, []string{"delete", resource, "a"}, []string{"cancel", "a", "b"}, context.DeadlineExceeded, exitTimedOut},
		{"complete is interrupted", []any{newMaintenance("a", drain, "n"), newMaintenance("b", drain, "n")}, []string{"patch", resource, "a"}, []string{"complete", "a", "b"}, nil, exitInterrupted},
		{"nodes time out", phasesOf(m), []string{"patch", "nodes", "failed"}, []string{"complete", "kernel", "failed", "drained"}, context.DeadlineExceeded, exitTimedOut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, tc.stories...)
			refuse(s, tc.refuse[0], tc.refuse[1], tc.refuse[2])
			s.PrependReactor("delete", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.(clienttesting.DeleteAction).GetName() == "b", nil, nil
			})
			s.whenLooked(func() { s.end(tc.end) })
			s.run(t, append(tc.args, "--wait", "--timeout=1h")...)
			contains(t, s.failure, fmt.Sprintf("%q is forbidden: no permission", tc.refuse[2]), "the nodes will be released anyway")
			if s.code != tc.code {
				t.Errorf("exit code %d, want %d: %s", s.code, tc.code, s.failure)
			}
		})
	}
}

func TestParseDrainPlan(t *testing.T) {
	want := []corev1.DrainPlanEntry{{PodType: corev1.PodTypeStatic, PodPriority: 1}}
	for name, text := range map[string]string{
		"a list": "- podType: Static\n  podPriority: 1\n",
		"JSON":   `[{"podType": "Static", "podPriority": 1}]`,
		"object": "apiVersion: coordination.k8s.io/v1alpha1\nkind: NodeMaintenance\nspec:\n  drainPlan: [{podType: Static, podPriority: 1}]\n",
	} {
		plan, _, err := parseDrainPlan([]byte(text))
		if diff := cmp.Diff(want, plan); err != nil || diff != "" {
			t.Errorf("%s: %v (-want, +got):\n%s", name, err, diff)
		}
	}
	for name, text := range map[string]string{
		"a typo":         "- podTyp: Static\n",
		"duplicate":      "- {podType: Static, podType: Default}\n",
		"a string":       "nothing\n",
		"a typo, nested": "spec: {drainPlans: []}\n",
		"no number":      "- {podPriority: many}\n",
		"nested lists":   "- - podType: Static\n",
		"invalid YAML":   "{",
	} {
		if plan, _, err := parseDrainPlan([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, plan)
		}
	}
}

// TestConvertNeedsNoServer runs "convert" as a subcommand.
func TestConvertNeedsNoServer(t *testing.T) {
	s := newServer(t)
	s.environment.factory = nil
	s.environment.client = func() (kubernetes.Interface, error) {
		t.Error("convert has asked for a server")
		return s.Clientset, nil
	}
	contains(t, s.mustRun(t, "convert", "--", "kubectl", "drain", "foo"), "name: drain-foo")
	contains(t, s.errOut.String(), "kubectl drain: wait: ")
}

func TestBareNames(t *testing.T) {
	got := bareNames([]string{"a", "nm/b", "nodemaintenance.coordination.k8s.io/c", "node/a", "pod/d", "nodemaintenance/b"})
	if diff := cmp.Diff([]string{"a", "b", "c", "pod/d"}, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestStartNamesOthers verifies that start names other maintenances of its nodes.
func TestStartNamesOthers(t *testing.T) {
	s := newServer(t, newNode("node-1"), newNode("node-2"),
		newMaintenance("first", drain, "node-1"), newMaintenance("elsewhere", drain, "node-2"))
	s.mustRun(t, "start", "node/node-1", "--name=second")
	if got, want := s.errOut.String(), "NodeMaintenance first (Drain) selects some of the same nodes.\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
