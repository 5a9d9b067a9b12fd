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
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
)

func TestJudge(t *testing.T) {
	c := choice{selected: []string{"rolls", "scales"}, skipped: map[string]string{"in a cloud": "It needs a cloud."}}
	scales := newSpec("scales", types.SpecStatePassed, "")
	cloud := newSpec("in a cloud", types.SpecStateSkipped, "")
	skipped := newSpec("in a cloud", types.SpecStateSkipped, "It needs a cloud.")
	setUp := types.SpecReport{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStatePassed}
	failedSetUp := types.SpecReport{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStateFailed}

	for name, test := range map[string]struct {
		specs, want []types.SpecReport
		totals      string
		wantError   string
	}{
		"passed": {
			specs:  []types.SpecReport{setUp, newSpec("rolls", types.SpecStatePassed, ""), scales, cloud, newSpec("other", types.SpecStateSkipped, "")},
			want:   []types.SpecReport{newSpec("rolls", types.SpecStatePassed, ""), scales, skipped},
			totals: "2 passed, 0 failed, 1 skipped",
		},
		"failed": {
			specs:  []types.SpecReport{newSpec("rolls", types.SpecStateFailed, "no pods"), scales},
			want:   []types.SpecReport{newSpec("rolls", types.SpecStateFailed, "no pods"), scales},
			totals: "1 passed, 1 failed, 0 skipped",
		},
		"interrupted and panicked": {
			specs:  []types.SpecReport{newSpec("rolls", types.SpecStateInterrupted, ""), newSpec("scales", types.SpecStatePanicked, "")},
			want:   []types.SpecReport{newSpec("rolls", types.SpecStateInterrupted, ""), newSpec("scales", types.SpecStatePanicked, "")},
			totals: "0 passed, 2 failed, 0 skipped",
		},
		"skipped by itself": {
			specs:  []types.SpecReport{newSpec("rolls", types.SpecStateSkipped, "only on gce"), scales},
			want:   []types.SpecReport{newSpec("rolls", types.SpecStateFailed, "not run: skipped. Should it be on the list of skipped tests? only on gce"), scales},
			totals: "1 passed, 1 failed, 0 skipped",
		},
		"pending": {
			specs:  []types.SpecReport{newSpec("rolls", types.SpecStatePending, ""), scales},
			want:   []types.SpecReport{newSpec("rolls", types.SpecStateFailed, "not run: pending. Should it be on the list of skipped tests?"), scales},
			totals: "1 passed, 1 failed, 0 skipped",
		},
		"failed set-up": {
			specs:  []types.SpecReport{failedSetUp, newSpec("rolls", types.SpecStatePassed, ""), scales},
			want:   []types.SpecReport{failedSetUp, newSpec("rolls", types.SpecStatePassed, ""), scales},
			totals: "2 passed, 1 failed, 0 skipped",
		},
		"missing": {specs: []types.SpecReport{scales}, wantError: "the report has not these tests: rolls"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.judge(newReport(test.specs...))
			checkError(t, err, test.wantError)
			if test.wantError != "" {
				return
			}
			if diff := cmp.Diff(newReport(test.want...), got); diff != "" {
				t.Errorf("report (-want, +got):\n%s", diff)
			}
			if counted := totals(got); counted != test.totals {
				t.Errorf("counted %s, want %s", counted, test.totals)
			}
			if listed := fmt.Sprintf(" %d failed,", len(failures(got))); !strings.Contains(test.totals, listed) {
				t.Errorf("%s are listed of %s", listed, test.totals)
			}
		})
	}
}

// A test that needs another attempt passes, but must be seen.
func TestRetried(t *testing.T) {
	again, failed := newSpec("rolls", types.SpecStatePassed, ""), newSpec("adopts", types.SpecStateFailed, "")
	again.NumAttempts, failed.NumAttempts = 2, 2
	atOnce := newSpec("scales", types.SpecStatePassed, "")
	atOnce.NumAttempts = 1
	report := newReport(again, failed, atOnce)
	if diff := cmp.Diff([]string{"rolls"}, retried(report)); diff != "" {
		t.Errorf("retried (-want, +got):\n%s", diff)
	}
	if counted := totals(report); counted != "2 passed, 1 failed, 0 skipped" {
		t.Errorf("counted %s", counted)
	}
}

// Continuous integration reads the file: it must have the tests of all suites, and reasons.
func TestJUnit(t *testing.T) {
	dir := t.TempDir()
	reports := []types.Report{
		newReport(newSpec("rolls", types.SpecStatePassed, ""), newSpec("in a cloud", types.SpecStateSkipped, "It needs a cloud.")),
		newReport(newSpec("scales", types.SpecStateFailed, "no pods")),
	}
	if err := writeJUnit(reports, dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("there are not only the results: %v, %v", files, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var got reporters.JUnitTestSuites
	if err := xml.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 3 || got.Failures != 1 || got.Disabled != 1 || len(got.TestSuites) != 2 {
		t.Errorf("totals are wrong: %s", data)
	}
	skipped := got.TestSuites[0].TestCases[1]
	if skipped.Name != "in a cloud" || skipped.Skipped == nil || skipped.Skipped.Message != "skipped - It needs a cloud." {
		t.Errorf("the skipped test is %+v", skipped)
	}
	if failed := got.TestSuites[1].TestCases[0]; failed.Failure == nil || failed.Failure.Message != "no pods" {
		t.Errorf("the failed test is %+v", failed)
	}
}
