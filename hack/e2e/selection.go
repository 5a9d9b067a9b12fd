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
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
	"sigs.k8s.io/yaml"
)

//go:embed selection.yaml
var selectionFile []byte

// selection says which tests of a program run.
type selection struct {
	// Program is the file with the tests, without .test.
	Program string
	// Focus are patterns of the names of tests.
	Focus []string
	// Skip are those of them that do not run.
	Skip []skip
}

// skip is a pattern of tests that cannot run on these clusters, or need not.
type skip struct {
	Pattern string
	// Reason is what the clusters lack, or what the test needs. It is shown in the results.
	Reason string
	// Modes are the only ones in which they do not run; all if there are none.
	Modes []string
}

// readSelections reads the file, which must say everything that it has to.
func readSelections(file []byte) ([]selection, error) {
	var selections []selection
	if err := yaml.UnmarshalStrict(file, &selections); err != nil {
		return nil, fmt.Errorf("read the selection of tests: %w", err)
	}
	var errs []error
	for _, s := range selections {
		if s.Program == "" || len(s.Focus) == 0 {
			errs = append(errs, errors.New("the selection of tests: each entry needs a program and a focus"))
		}
		for _, entry := range s.Skip {
			if len(strings.Fields(entry.Reason)) < 3 {
				errs = append(errs, fmt.Errorf("the selection of tests: the reason %q of %q says nothing", entry.Reason, entry.Pattern))
			}
			for _, name := range entry.Modes {
				if !slices.ContainsFunc(modes, func(m mode) bool { return m.name == name }) {
					errs = append(errs, fmt.Errorf("the selection of tests: the mode %q of %q must be on, off or base", name, entry.Pattern))
				}
			}
		}
	}
	return selections, errors.Join(errs...)
}

// choice is what a selection makes of the tests of a program, by their names.
type choice struct {
	selected []string
	// skipped are the others of the focus, with their reasons.
	skipped map[string]string
}

// choose applies the selection to the names of all tests of the program, for a mode. Each pattern must match a
// test that no pattern before it matches: what matches nothing is outdated.
func (s selection) choose(tests []string, mode string) (choice, error) {
	c := choice{skipped: map[string]string{}}
	var errs []error
	for _, pattern := range s.Focus {
		matching, err := match(pattern, tests)
		errs = append(errs, err)
		for _, test := range matching {
			if !slices.Contains(c.selected, test) {
				c.selected = append(c.selected, test)
			}
		}
	}
	for _, entry := range s.Skip {
		if len(entry.Modes) > 0 && !slices.Contains(entry.Modes, mode) {
			continue
		}
		matching, err := match(entry.Pattern, c.selected)
		errs = append(errs, err)
		for _, test := range matching {
			c.skipped[test] = entry.Reason
		}
		c.selected = slices.DeleteFunc(c.selected, func(test string) bool { return slices.Contains(matching, test) })
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("the selection of tests of %s: %w", s.Program, err)
	}
	return c, nil
}

// narrow returns the tests of the choice that match.
func (c choice) narrow(focus *regexp.Regexp) choice {
	other := func(test string) bool { return !focus.MatchString(test) }
	narrowed := choice{slices.DeleteFunc(slices.Clone(c.selected), other), maps.Clone(c.skipped)}
	maps.DeleteFunc(narrowed.skipped, func(test, _ string) bool { return other(test) })
	return narrowed
}

func match(pattern string, tests []string) ([]string, error) {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	matching := slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return !expression.MatchString(test) })
	if len(matching) == 0 {
		return nil, fmt.Errorf("%q matches no test", pattern)
	}
	return matching, nil
}

// expression matches the selected tests. Ginkgo compares it with the name of the suite and that of a
// test.
func (c choice) expression() string {
	var names []string
	for _, name := range c.selected {
		names = append(names, regexp.QuoteMeta(name))
	}
	return "(" + strings.Join(names, "|") + ")$"
}

// testNames are the names of the tests in a report.
func testNames(report types.Report) []string {
	var names []string
	for _, spec := range report.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
		names = append(names, spec.FullText())
	}
	return names
}
