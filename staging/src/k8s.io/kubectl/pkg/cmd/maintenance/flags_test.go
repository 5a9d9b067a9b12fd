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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// rollingOut gives the maintenance a rollout. What the server sets by default is set.
func (m maintenanceStory) rollingOut(rollout coordinationv1alpha1.NodeMaintenanceRollout) maintenanceStory {
	if rollout.CompleteNodes == "" {
		rollout.CompleteNodes = coordinationv1alpha1.NodeCompletionManual
	}
	if rollout.ReturnTimeoutSeconds == nil {
		rollout.ReturnTimeoutSeconds = ptr.To[int32](1800)
	}
	if rollout.MaxFailedNodes == nil {
		rollout.MaxFailedNodes = ptr.To[int32](0)
	}
	m.Spec.Rollout = &rollout
	return m
}

// servesBudgets adds NodeMaintenanceBudgets to what the server serves.
func (s *server) servesBudgets() *server {
	s.Resources[0].APIResources = append(s.Resources[0].APIResources, metav1.APIResource{Name: budgetResource})
	return s
}

func TestStartRollout(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want *coordinationv1alpha1.NodeMaintenanceRollout
	}{
		{"none", nil, nil},
		{"a number", []string{"--max-concurrent=20"}, &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(20))}},
		{"a percentage", []string{"--max-concurrent=10%"}, &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromString("10%"))}},
		{"only paused", []string{"--paused"}, &coordinationv1alpha1.NodeMaintenanceRollout{Paused: true}},
		{"not paused", []string{"--paused=false"}, &coordinationv1alpha1.NodeMaintenanceRollout{}},
		{"all", []string{"--max-concurrent=1", "--complete-nodes=rebooted", "--return-timeout=1h", "--max-failed-nodes=0", "--paused"}, &coordinationv1alpha1.NodeMaintenanceRollout{
			MaxConcurrent: ptr.To(intstr.FromInt32(1)), CompleteNodes: coordinationv1alpha1.NodeCompletionRebooted,
			ReturnTimeoutSeconds: ptr.To[int32](3600), MaxFailedNodes: ptr.To[int32](0), Paused: true,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, newNode("node-1")).servesBudgets()
			s.mustRun(t, append([]string{"start", "node-1", "--name=rack"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, s.get(t, "rack").Spec.Rollout); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestStartEscalation(t *testing.T) {
	s := newServer(t, newNode("node-1")).servesBudgets()
	s.mustRun(t, "start", "node-1", "--name=rack", "--ignore-budgets-after=2h", "--skip-interceptors-after=10m", "--force-delete-after=8760h")
	want := coordinationv1alpha1.NodeMaintenanceSpec{
		Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{},
		Escalation: []coordinationv1alpha1.NodeMaintenanceEscalationStep{
			{AfterSeconds: 600, Action: corev1.MaintenanceEscalationSkipInterceptors},
			{AfterSeconds: 7200, Action: corev1.MaintenanceEscalationIgnoreBudgets},
			{AfterSeconds: 31536000, Action: corev1.MaintenanceEscalationForceDelete},
		},
	}
	spec := s.get(t, "rack").Spec
	if diff := cmp.Diff(want, coordinationv1alpha1.NodeMaintenanceSpec{Rollout: spec.Rollout, Escalation: spec.Escalation}); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	s.mustRun(t, "start", "node-1", "--ignore-budgets-after=2h")
	for flag, want := range map[string]string{
		"--ignore-budgets-after=1h":        "its spec.escalation is not what --ignore-budgets-after asks for",
		"--ignore-budgets-after=0s":        "--ignore-budgets-after=0s: must be from 1s to 8760h0m0s, without fractions of a second",
		"--skip-interceptors-after=1500ms": "--skip-interceptors-after=1.5s: must be",
		"--force-delete-after=8761h":       "--force-delete-after=8761h0m0s: must be",
	} {
		if s.run(t, "start", "node-1", flag); s.code != 1 || !strings.Contains(s.failure, want) {
			t.Errorf("%s: %q is missing in %q, exit code %d", flag, want, s.failure, s.code)
		}
	}
}

func TestStartRefusesRollouts(t *testing.T) {
	const numbers = "must be a number of nodes, at least 1, or a percentage of them from 1% to 100%; to begin with none, use --paused"
	five := coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(5))}
	for _, tc := range []struct {
		name    string
		stories []any
		args    []string
		want    string
	}{
		{"none at a time", nil, []string{"node-1", "--max-concurrent=0"}, `--max-concurrent="0": ` + numbers},
		{"no percent", nil, []string{"node-1", "--max-concurrent=0%"}, `--max-concurrent="0%": ` + numbers},
		{"more than all", nil, []string{"node-1", "--max-concurrent=101%"}, `--max-concurrent="101%": ` + numbers},
		{"no number", nil, []string{"node-1", "--max-concurrent=all"}, `--max-concurrent="all": ` + numbers},
		{"more than the API has", nil, []string{"node-1", "--max-concurrent=3000000000"}, numbers},
		{"an empty number", nil, []string{"node-1", "--max-concurrent="}, numbers},
		{"an unknown policy", nil, []string{"node-1", "--complete-nodes=Reboot"}, `--complete-nodes="Reboot": must be one of Manual, Rebooted`},
		{"a fraction", nil, []string{"node-1", "--return-timeout=1500ms"}, "--return-timeout=1.5s: must be from 1s to 168h0m0s, without fractions of a second"},
		{"no time", nil, []string{"node-1", "--return-timeout=0"}, "--return-timeout=0s: must be from 1s"},
		{"too much time", nil, []string{"node-1", "--return-timeout=200h"}, "to 168h0m0s"},
		{"a negative number", nil, []string{"node-1", "--max-failed-nodes=-1"}, "--max-failed-nodes=-1: must not be negative; 0 halts"},
		{"an existing one by its name", []any{newMaintenance("old", cordon, "node-1")}, []string{"old", "--max-concurrent=5", "--paused"},
			`NodeMaintenance "old" is only moved to a later stage: leave out --max-concurrent, --paused; to change its rollout, if it has one, use "kubectl edit nm old" (completeNodes and settle are immutable)`},
		{"an open one without a rollout", []any{newMaintenance("old", drain, "node-1")}, []string{"node-1", "--max-concurrent=5"},
			`NodeMaintenance "old" of these nodes is open, and its spec.rollout is not what --max-concurrent asks for: it has none, which cannot be changed. Complete or cancel it first, or start another one with --name`},
		{"an open one with another rollout", []any{newMaintenance("old", drain, "node-1").rollingOut(five)}, []string{"node-1", "--max-concurrent=4"},
			`change it with "kubectl edit nm old" (completeNodes and settle are immutable), "kubectl maintenance pause" or "resume", or start another one with --name`},
		{"an open one that is not paused", []any{newMaintenance("old", drain, "node-1").rollingOut(five)}, []string{"node-1", "--max-concurrent=5", "--paused"}, "is not what --max-concurrent, --paused asks for"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(tc.stories, newNode("node-1"))...).servesBudgets()
			s.run(t, append([]string{"start"}, tc.args...)...)
			contains(t, s.failure, tc.want)
			if writes := s.writes(); s.code != 1 || len(writes) > 0 {
				t.Errorf("exit code %d, wrote %v", s.code, writes)
			}
		})
	}
}

// TestStartAgainWithRollout resumes an open maintenance whose rollout is what the flags ask for.
func TestStartAgainWithRollout(t *testing.T) {
	open := newMaintenance("old", cordon, "node-1").rollingOut(coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(5)), Paused: true})
	for _, args := range [][]string{{"--max-concurrent=5"}, {"--paused"}, {"--max-concurrent=5", "--complete-nodes=Manual", "--return-timeout=30m", "--max-failed-nodes=0"}, nil} {
		s := newServer(t, open, newNode("node-1")).servesBudgets()
		contains(t, s.mustRun(t, append([]string{"start", "node-1"}, args...)...), "old moved from Cordon to Drain")
	}
}

// TestServerWithoutRollouts verifies that no maintenance remains whose rollout the server has
// dropped: it would drain all nodes at once.
func TestServerWithoutRollouts(t *testing.T) {
	const failure = "error: the server does not support spec.rollout: enable the feature gate NodeMaintenanceBudgets"
	start := []string{"start", "node-1", "--name=rack", "--max-concurrent=1"}
	for _, args := range [][]string{start, append(slices.Clone(start), "--dry-run=server"), append(slices.Clone(start), "--dry-run=client")} {
		s := newServer(t, newNode("node-1"))
		s.run(t, args...)
		contains(t, s.failure, failure)
		if writes := s.writes(); s.code != 1 || len(writes) > 0 {
			t.Errorf("%v: exit code %d, wrote %v", args, s.code, writes)
		}
	}
	drops := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, newMaintenance("rack", drain, "node-1").NodeMaintenance, nil
	}
	s := newServer(t, newNode("node-1")).servesBudgets()
	s.PrependReactor("create", resource, drops)
	var deleted *string
	s.PrependReactor("delete", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		deleted = (*string)(action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions.UID)
		return true, nil, nil
	})
	out := s.run(t, start...)
	contains(t, s.failure, failure)
	if deleted == nil || *deleted != "uid-of-rack" || out != "" {
		t.Errorf("deleted %v, printed %q", deleted, out)
	}
	s = newServer(t, newNode("node-1")).servesBudgets()
	s.PrependReactor("create", resource, drops)
	s.PrependReactor("delete", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errNotServed })
	s.run(t, start...)
	contains(t, s.failure, `which drains all its nodes at once: end it with "kubectl maintenance cancel rack", because kubectl could not: `)
}

// TestRolloutWithoutDiscovery creates a rollout although the user may not read what is served.
func TestRolloutWithoutDiscovery(t *testing.T) {
	s := newServer(t, newNode("node-1"))
	s.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no permission"))
	})
	contains(t, s.mustRun(t, "start", "node-1", "--name=rack", "--max-concurrent=1"), "rack created")
	if !strings.Contains(s.get(t, "rack").Spec.Rollout.MaxConcurrent.String(), "1") {
		t.Error("the rollout is missing")
	}
}

// TestUnlimitedRollout warns of a rollout that drains all nodes at once, unless a budget limits it.
func TestUnlimitedRollout(t *testing.T) {
	const (
		unlimited = "Warning: nothing limits how many of the 2 nodes are drained at once"
		warning   = unlimited + ". To start it again with --max-concurrent, first: kubectl maintenance cancel rack\n"
	)
	failing := func(err error) func(*server) {
		return func(s *server) {
			s.PrependReactor("list", budgetResource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: budgetResource}, "", errors.New("no permission"))
	for _, tc := range []struct {
		name    string
		stories []any
		change  func(*server)
		args    []string
		want    string
	}{
		{"no limit", nil, nil, []string{"node-1", "node-2", "--complete-nodes=Rebooted"}, warning},
		{"only an escalation", nil, nil, []string{"node-1", "node-2", "--ignore-budgets-after=2h"}, warning},
		{"by labels", nil, nil, []string{"-l", "pool=a", "--paused"}, warning},
		{"drained later", nil, nil, []string{"node-1", "node-2", "--complete-nodes=Manual", "--stage=Idle"}, warning},
		{"a dry run", nil, nil, []string{"node-1", "node-2", "--complete-nodes=Manual", "--dry-run=server"}, unlimited + ": see --max-concurrent\n"},
		{"a budget of another node", []any{nodeBudget("others", "1", "node-3")}, nil, []string{"node-1", "node-2", "--paused"}, warning},
		{"a limit", nil, nil, []string{"node-1", "node-2", "--max-concurrent=1"}, ""},
		{"a budget", []any{nodeBudget("workers", "1", "node-2")}, nil, []string{"node-1", "node-2", "--paused"}, ""},
		{"one node", nil, nil, []string{"node-1", "--paused"}, ""},
		{"no rollout", nil, nil, []string{"node-1", "node-2"}, ""},
		{"budgets cannot be listed", nil, failing(forbidden), []string{"node-1", "node-2", "--paused"}, ""},
		{"budgets are not served", nil, failing(apierrors.NewNotFound(schema.GroupResource{Resource: budgetResource}, "")), []string{"node-1", "node-2", "--paused"}, ""},
		{"nodes cannot be listed", nil, func(s *server) { s.forbid("nodes") }, []string{"node-1", "node-2", "--paused"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(tc.stories, pooled("node-1", "a"), pooled("node-2", "a"), newNode("node-3"))...).servesBudgets()
			if tc.change != nil {
				tc.change(s)
			}
			contains(t, s.mustRun(t, append([]string{"start", "--name=rack"}, tc.args...)...), "rack created")
			if got := s.errOut.String(); got != tc.want {
				t.Errorf("printed %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPlanHasNoPaused verifies that a plan does not advise a flag that it does not have.
func TestPlanHasNoPaused(t *testing.T) {
	s := newServer(t, newNode("node-1"))
	s.run(t, "plan", "node-1", "--max-concurrent=0")
	if want := `error: --max-concurrent="0": must be a number of nodes, at least 1, or a percentage of them from 1% to 100%`; s.failure != want {
		t.Errorf("%q, want %q", s.failure, want)
	}
}

// TestStartPrefixed verifies that the prefix of a name counts: where a node has the name of a maintenance,
// that node is not drained.
func TestStartPrefixed(t *testing.T) {
	s := newServer(t, newMaintenance("rack", cordon, "node-1"), newNode("rack"), newNode("node-1"))
	contains(t, s.mustRun(t, "start", "nm/rack"), "rack moved from Cordon to Drain")
	for _, args := range [][]string{{"nm/rack", "node-1"}, {"nm/rack", "node/rack"}, {"nm/rack", "rack"}, {"nm/rack", "-l", "pool=a"}, {"nm/rack", "--name=other"}} {
		s.run(t, append([]string{"start"}, args...)...)
		contains(t, s.failure, "nm/rack is a NodeMaintenance: name it alone to move it to a later stage")
	}
	contains(t, s.mustRun(t, "start", "node/rack"), "rack-x7k2p created")

	s = newServer(t, newMaintenance("rack", cordon, "node-1"), newNode("node-1"))
	s.run(t, "start", "node/rack")
	contains(t, s.failure, `error: node "rack" not found`)
	s.PrependReactor("get", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no permission"))
	})
	s.run(t, "start", "rack")
	contains(t, s.failure, `reading node "rack": `, "no permission", "kubectl maintenance start nm/rack")
	if len(s.writes()) > 0 {
		t.Errorf("wrote %v", s.writes())
	}
	contains(t, s.mustRun(t, "start", "nm/rack"), "rack moved from Cordon to Drain")
}

// TestPlanPrefixed verifies the same of plan.
func TestPlanPrefixed(t *testing.T) {
	s := newServer(t, newMaintenance("rack", cordon, "node-1"), newNode("rack"), newNode("node-1"))
	contains(t, s.mustRun(t, "plan", "nm/rack"), "node-1")
	s.run(t, "plan", "nm/rack", "node-1")
	contains(t, s.failure, "nm/rack is a NodeMaintenance: name it alone, or with --maintenance")
}
