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
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
)

// judge reduces a report to the tests of the choice, and to what failed beside tests. A selected
// test that has not run, or has skipped itself, fails: what does not run is on the list, with a
// reason.
func (c choice) judge(report types.Report) (types.Report, error) {
	var specs types.SpecReports
	missing := slices.Clone(c.selected)
	for _, spec := range report.SpecReports {
		name := spec.FullText()
		reason, skipped := c.skipped[name]
		selected := slices.Contains(c.selected, name)
		switch {
		case spec.LeafNodeType != types.NodeTypeIt:
			if !spec.Failed() {
				continue
			}
		case skipped:
			spec.State, spec.Failure.Message = types.SpecStateSkipped, reason
		case !selected:
			continue
		case spec.State == types.SpecStatePassed || spec.Failed():
		default:
			spec.Failure.Message = strings.TrimSpace(fmt.Sprintf("not run: %s. Should it be on the list of skipped tests? %s", spec.State, spec.Failure.Message))
			spec.State = types.SpecStateFailed
		}
		missing = slices.DeleteFunc(missing, func(other string) bool { return other == name })
		specs = append(specs, spec)
	}
	report.SpecReports = specs
	if len(missing) > 0 {
		return report, fmt.Errorf("the report has not these tests: %s", strings.Join(missing, "; "))
	}
	return report, nil
}

// totals counts the tests of a report that was judged.
func totals(report types.Report) string {
	specs := report.SpecReports
	return fmt.Sprintf("%d passed, %d failed, %d skipped", specs.CountWithState(types.SpecStatePassed),
		specs.CountWithState(types.SpecStateFailureStates), specs.CountWithState(types.SpecStateSkipped))
}

// failures are the names of what failed, with the first lines of their messages.
func failures(report types.Report) []string {
	var lines []string
	for _, spec := range report.SpecReports.WithState(types.SpecStateFailureStates) {
		message, _, _ := strings.Cut(spec.Failure.Message, "\n")
		lines = append(lines, fmt.Sprintf("%s: %s", strings.TrimSpace(spec.FullText()+" "+spec.LeafNodeType.String()), message))
	}
	return lines
}

// retried are the names of the tests that have passed, but not at once.
func retried(report types.Report) []string {
	var names []string
	for _, spec := range report.SpecReports.WithState(types.SpecStatePassed) {
		if spec.NumAttempts > 1 {
			names = append(names, spec.FullText())
		}
	}
	return names
}

// writeJUnit writes the reports into one file of a directory. What tests have logged is in it only
// where they failed.
func writeJUnit(reports []types.Report, directory string) error {
	var parts []string
	var errs []error
	for i, report := range reports {
		part := filepath.Join(directory, fmt.Sprintf("junit-%d.xml", i))
		parts = append(parts, part)
		errs = append(errs, reporters.GenerateJUnitReportWithConfig(report, part, reporters.JunitReportConfig{
			OmitTimelinesForSpecState: types.SpecStatePassed | types.SpecStateSkipped,
			OmitCapturedStdOutErr:     true,
			OmitSpecLabels:            true,
			OmitLeafNodeType:          true,
		}))
	}
	// It removes the parts.
	messages, err := reporters.MergeAndCleanupJUnitReports(parts, filepath.Join(directory, "junit.xml"))
	for _, message := range messages {
		errs = append(errs, errors.New(message))
	}
	return errors.Join(append(errs, err)...)
}
