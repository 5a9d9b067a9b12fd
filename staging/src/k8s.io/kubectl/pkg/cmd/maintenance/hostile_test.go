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
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/node/maintenance"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
)

// hostileSeeds is the number of times each snapshot is poisoned, each time in other fields.
const hostileSeeds = 20

// poisonedSnapshot does not change what selects objects of views and plans, such as names of nodes.
func poisonedSnapshot(seed uint64, s *podSnapshot) *podSnapshot {
	for _, nm := range s.maintenances {
		plaintexttesting.Poison(seed, &nm.Status)
		plaintexttesting.Poison(seed+1, &nm.Spec.Reason)
		plaintexttesting.Poison(seed+2, &nm.Name)
	}
	for _, node := range s.nodes {
		plaintexttesting.Poison(seed, &node.Status)
	}
	for _, pods := range s.pods {
		for _, pod := range pods {
			plaintexttesting.Poison(seed+3, &pod.Name)
			plaintexttesting.Poison(seed+4, &pod.Spec.EvictionInterceptors)
		}
	}
	for _, request := range s.requests {
		plaintexttesting.Poison(seed, &request.Status)
		plaintexttesting.Poison(seed, &request.Spec)
	}
	for _, budget := range s.budgets {
		plaintexttesting.Poison(seed, &budget.Name)
	}
	return s
}

// TestHostile renders objects with terminal control sequences in all output formats.
func TestHostile(t *testing.T) {
	poisoned := 0
	check := func(what string, seed uint64, output string) {
		t.Helper()
		if strings.Contains(output, plaintexttesting.Forged) {
			poisoned++
		}
		plaintexttesting.Check(t, fmt.Sprintf("%s, seed %d", what, seed), output)
	}
	for seed := range uint64(hostileSeeds) {
		snapshots := func() map[string]*podSnapshot {
			_, rollout := rolloutStories()
			return map[string]*podSnapshot{
				"blocked": blockedDrain(), "surging": surgingDrain(), "plan": snapshotOf(busyNodes()...), "refused": snapshotOf(refusedDrain()...),
				"rollout": snapshotOf(rollout...), "halted": snapshotOf(haltedStories()...),
			}
		}
		for name, s := range snapshots() {
			views := viewsIn(poisonedSnapshot(seed, s))
			check("status of "+name, seed, renderStatus(views, testNow, defaultWidth))
			var lines, screenful, structured bytes.Buffer
			shown := &lineDisplay{out: &lines, clocked: true}
			if err := shown.show(frame{views: viewsIn(snapshots()[name]), now: testNow}); err != nil {
				t.Fatal(err)
			}
			if err := shown.show(frame{views: views, now: testNow}); err != nil {
				t.Fatal(err)
			}
			check("lines of "+name, seed, lines.String())
			display := &screen{out: &screenful, size: func() (int, int) { return 79, 24 }}
			if err := display.show(frame{views: views, now: testNow}); err != nil {
				t.Fatal(err)
			}
			check("screen of "+name, seed, withoutOwnSequences(screenful.String()))
			last := map[string]*view{}
			for _, v := range views {
				last[v.Name] = v
			}
			check("timeout of "+name, seed, timedOut(last).Error())
			check("end of "+name, seed, undrained(s.maintenances, last).Error())
			p, err := planOf(s, "", s.nodes, maintenance.CompletePlan(nil))
			if err != nil {
				t.Fatal(err)
			}
			check("plan of "+name, seed, renderPlan(p, defaultWidth, testNow))
			if err := writeWidePlan(&structured, p, testNow); err != nil {
				t.Fatal(err)
			}
			check("wide plan of "+name, seed, structured.String())
		}
	}
	if poisoned < hostileSeeds {
		t.Errorf("only %d outputs were poisoned", poisoned)
	}
}

// withoutOwnSequences removes the control sequences that draw a screen.
func withoutOwnSequences(text string) string {
	for _, sequence := range []string{hideCursor, showCursor, clearLineEnd, clearBelow, "\r"} {
		text = strings.ReplaceAll(text, sequence, "")
	}
	return text
}

// TestHostileCommands runs all commands against a server whose objects and errors contain terminal
// control sequences.
func TestHostileCommands(t *testing.T) {
	const hostile = plaintexttesting.Text
	stories := func() []any {
		forbidding := newPod("vm-0", "node-1", migrate).asked().forbidding().saying(hostile)
		forbidding.Name += hostile
		others := newPod("web-0", "node-1").asked()
		others.Name += hostile
		others.request.Spec.Requesters = append(others.request.Spec.Requesters, others.request.Spec.Requesters[0])
		others.request.Spec.Requesters[1].Name = "other" + hostile
		return []any{
			newMaintenance("rack", drain, "node-1").started(time.Minute).reason(hostile).condition(metav1.ConditionFalse, "Blocked", hostile),
			drainingNode("node-1", 0, 2, hostile), newNode("node-2"), forbidding, others,
		}
	}
	for _, args := range [][]string{
		{"status"}, {"status", "-o", "json"}, {"status", "-o", "yaml"}, {"status", "node-1"}, {"watch"}, {"watch", "rack"},
		{"plan", "node-1"}, {"plan", "node-1", "-o", "wide"}, {"plan", "node-1", "-o", "json"}, {"plan", "--maintenance=rack"},
		{"start", "node-1"}, {"start", "node-1", "-o", "yaml"}, {"start", "rack", "-o", "json"}, {"start", "node-1", "node-2"}, {"start", "node-1", "--wait"},
		{"complete", "rack"}, {"cancel", "rack"},
	} {
		s := newServer(t, stories()...)
		s.whenLooked(func() { s.end(nil) })
		out := s.run(t, args...)
		plaintexttesting.Check(t, fmt.Sprint(args), out+s.errOut.String()+s.failure)
		// Text that is not UTF-8, which no server sends, cannot be put into YAML.
		isYAML := args[len(args)-1] == "yaml"
		if !strings.Contains(out, plaintexttesting.Forged) && args[0] != "start" && !isYAML {
			t.Errorf("%v: nothing was poisoned: %s", args, out)
		}
	}
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "rack", errors.New(hostile))
	for _, args := range [][]string{{"status"}, {"watch", "rack"}, {"plan", "--maintenance=rack"}, {"start", "node-2", "--name=new"}, {"complete", "rack", "other"}, {"cancel", "rack"}, {"pause", "rack"}, {"resume", "rack"}} {
		s := newServer(t, stories()...)
		s.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		s.run(t, args...)
		plaintexttesting.Check(t, fmt.Sprint(args), s.failure)
		if !strings.Contains(s.failure, plaintexttesting.Forged) {
			t.Errorf("%v: failed with %q", args, s.failure)
		}
	}
}

// TestPlainError verifies that an error keeps its type, by which it is printed, and its exit code.
func TestPlainError(t *testing.T) {
	const hostile = plaintexttesting.Text
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "NodeMaintenance" + hostile}, "rack"+hostile, field.ErrorList{field.Invalid(field.NewPath("spec"+hostile), hostile, hostile)})
	before := invalid.ErrStatus.DeepCopy()
	for _, tc := range []struct {
		name string
		err  error
		is   func(error) bool
	}{
		{"invalid", &apierrors.StatusError{ErrStatus: *before}, apierrors.IsInvalid},
		{"without details", &apierrors.StatusError{ErrStatus: metav1.Status{Message: hostile, Reason: metav1.StatusReasonForbidden}}, apierrors.IsForbidden},
		{"wrapped", fmt.Errorf("reading %q: %w", "a", invalid), func(error) bool { return true }},
		{"several, wrapped", errors.Join(errors.New("a"), fmt.Errorf("reading: %w", invalid)), func(err error) bool { return strings.HasPrefix(err.Error(), "a\nreading: ") }},
		{"a code", exec.CodeExitError{Err: errors.New(hostile), Code: 3}, func(err error) bool { return err.(exec.CodeExitError).ExitStatus() == 3 }},
		{"another", errors.New("a" + strings.ReplaceAll(hostile, plaintexttesting.Forged, "")), func(err error) bool { return strings.HasPrefix(err.Error(), `a\u001b`) }},
	} {
		err := plainError(tc.err)
		if !tc.is(err) {
			t.Errorf("%s: %T %v", tc.name, err, err)
		}
		if tc.name != "a code" {
			plaintexttesting.Check(t, tc.name, err.Error())
		}
		var status *apierrors.StatusError
		if errors.As(err, &status) && status.ErrStatus.Details != nil {
			plaintexttesting.Check(t, tc.name, fmt.Sprint(status.ErrStatus.Details.Kind, status.ErrStatus.Details.Name, status.ErrStatus.Details.Causes))
		}
	}
	if plain := errors.New("plain"); plainError(plain) != plain || plainError(nil) != nil {
		t.Error("a plain error was changed")
	}
}

// TestPageIsPlain verifies that a page escapes all text.
func TestPageIsPlain(t *testing.T) {
	p := &page{width: defaultWidth}
	p.add("%s", "a\u009bb")
	if got := p.String(); got != "a\\u009bb\n" {
		t.Errorf("%q", got)
	}
}
