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

package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

func TestReadSelections(t *testing.T) {
	const focus = "- program: e2e\n  focus: ['^Deployment']\n"
	for name, test := range map[string]struct {
		file, want string
	}{
		"a focus":          {file: focus},
		"a reason":         {file: focus + "  skip: [{pattern: 'cloud', reason: It needs a cloud.}]\n"},
		"no program":       {file: "- focus: ['^Deployment']\n", want: "needs a program and a focus"},
		"no focus":         {file: "- program: e2e\n", want: "needs a program and a focus"},
		"no reason":        {file: focus + "  skip: [{pattern: 'cloud'}]\n", want: `the reason "" of "cloud" says nothing`},
		"an empty reason":  {file: focus + "  skip: [{pattern: 'cloud', reason: '  '}]\n", want: "says nothing"},
		"a word as reason": {file: focus + "  skip: [{pattern: 'cloud', reason: Fails.}]\n", want: `the reason "Fails." of "cloud" says nothing`},
		"a mode":           {file: focus + "  skip: [{pattern: 'cloud', reason: It needs a cloud., modes: ['off', base]}]\n"},
		"an unknown mode":  {file: focus + "  skip: [{pattern: 'cloud', reason: It needs a cloud., modes: [both]}]\n", want: `the mode "both" of "cloud" must be on, off or base`},
		"an unknown field": {file: focus + "  skipped: []\n", want: "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readSelections([]byte(test.file))
			checkError(t, err, test.want)
		})
	}
}

// The file in the repository must be right; the programs say whether its patterns match.
func TestSelectionFile(t *testing.T) {
	selections, err := readSelections(selectionFile)
	if err != nil {
		t.Fatal(err)
	}
	var programs []string
	for _, s := range selections {
		programs = append(programs, s.Program)
		patterns := slices.Clone(s.Focus)
		for _, entry := range s.Skip {
			patterns = append(patterns, entry.Pattern)
		}
		for _, pattern := range patterns {
			if _, err := regexp.Compile(pattern); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(suitesByProgram)), slices.Sorted(slices.Values(programs))); diff != "" {
		t.Errorf("programs (-known, +selected):\n%s", diff)
	}
}

func TestChoose(t *testing.T) {
	tests := []string{"Deployment rolls", "Deployment in a cloud", "ReplicaSet adopts", "Services in a cloud"}
	cloud := skip{Pattern: "cloud", Reason: "It needs a cloud."}
	for name, test := range map[string]struct {
		selection selection
		want      choice
		wantError string
	}{
		"all of two patterns": {
			selection: selection{Focus: []string{"^Deployment", "^ReplicaSet"}},
			want:      choice{selected: tests[:3], skipped: map[string]string{}},
		},
		"a test that two patterns match is there once": {
			selection: selection{Focus: []string{"^Deployment", "rolls$"}},
			want:      choice{selected: tests[:2], skipped: map[string]string{}},
		},
		"without what is skipped": {
			selection: selection{Focus: []string{"^Deployment"}, Skip: []skip{cloud}},
			want:      choice{selected: tests[:1], skipped: map[string]string{tests[1]: cloud.Reason}},
		},
		"what is skipped in this mode": {
			selection: selection{Focus: []string{"^Deployment"}, Skip: []skip{{Pattern: "cloud", Reason: cloud.Reason, Modes: []string{"off", "on"}}}},
			want:      choice{selected: tests[:1], skipped: map[string]string{tests[1]: cloud.Reason}},
		},
		"what is skipped in another mode": {
			selection: selection{Focus: []string{"^Deployment"}, Skip: []skip{{Pattern: "cloud", Reason: cloud.Reason, Modes: []string{"off"}}}},
			want:      choice{selected: tests[:2], skipped: map[string]string{}},
		},
		"a focus that matches nothing": {
			selection: selection{Focus: []string{"^Deployment", "^Job"}}, wantError: `"^Job" matches no test`,
		},
		"a skip that matches nothing in the focus": {
			selection: selection{Focus: []string{"^ReplicaSet"}, Skip: []skip{cloud}}, wantError: `"cloud" matches no test`,
		},
		"a skip that matches nothing that is not skipped": {
			selection: selection{Focus: []string{"^Deployment"}, Skip: []skip{cloud, {Pattern: "in a"}}}, wantError: `"in a" matches no test`,
		},
		"no expression": {
			selection: selection{Focus: []string{"("}}, wantError: "error parsing regexp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.selection.choose(slices.Clone(tests), "on")
			checkError(t, err, test.wantError)
			if test.wantError != "" {
				return
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(choice{})); diff != "" {
				t.Errorf("choice (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestNarrow(t *testing.T) {
	c := choice{
		selected: []string{"Deployment rolls", "ReplicaSet adopts"},
		skipped:  map[string]string{"Deployment in a cloud": "It needs a cloud.", "ReplicaSet in a cloud": "It needs a cloud."},
	}
	want := choice{selected: []string{"ReplicaSet adopts"}, skipped: map[string]string{"ReplicaSet in a cloud": "It needs a cloud."}}
	if diff := cmp.Diff(want, c.narrow(regexp.MustCompile("^ReplicaSet")), cmp.AllowUnexported(choice{})); diff != "" {
		t.Errorf("narrowed (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(c, c.narrow(regexp.MustCompile("")), cmp.AllowUnexported(choice{})); diff != "" {
		t.Errorf("not narrowed (-want, +got):\n%s", diff)
	}
}

// The expression must match the selected tests and no others, as ginkgo matches it.
func TestExpression(t *testing.T) {
	c := choice{selected: []string{"[sig-apps] Daemon set [Serial] runs", "Deployment => scales (50%)"}}
	expression := regexp.MustCompile(c.expression())
	for name, want := range map[string]bool{
		c.selected[0]:                    true,
		c.selected[1]:                    true,
		c.selected[0] + " and stops":     false,
		"s runs":                         false,
		"Deployment => scales 50%":       false,
		"[sig-apps] Daemon set S runs":   false,
		"[sig-apps] Daemon set [Serial]": false,
	} {
		if got := expression.MatchString("Kubernetes e2e suite " + name); got != want {
			t.Errorf("the expression matches %q: %t", name, got)
		}
	}
}

// checkError wants an error that contains a text, or none.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Fatalf("the error is %v, must contain %q", err, want)
	}
}

// newReport returns a report of tests and their states.
func newReport(specs ...types.SpecReport) types.Report {
	return types.Report{SuiteDescription: "suite", SpecReports: specs}
}

func newSpec(name string, state types.SpecState, message string) types.SpecReport {
	return types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: name, State: state, Failure: types.Failure{Message: message}}
}

func TestTestNames(t *testing.T) {
	nested := newSpec("rolls", types.SpecStatePassed, "")
	nested.ContainerHierarchyTexts = []string{"[sig-apps] Deployment", "with pods"}
	setUp := types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStatePassed}
	got := testNames(newReport(setUp, nested))
	if diff := cmp.Diff([]string{"[sig-apps] Deployment with pods rolls"}, got); diff != "" {
		t.Errorf("names (-want, +got):\n%s", diff)
	}
}
