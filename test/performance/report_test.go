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
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func newTable(l layout) *table { return (&report{}).table(l, "Title.") }

// TestAdd: values of several runs are combined, requests that a run does not have are zero, and what is no
// figure of a run stays.
func TestAdd(t *testing.T) {
	table := newTable(rowPerCase)
	for i, seconds := range []float64{4, 9, 5} {
		results := []result{
			{Name: "took", Value: seconds},
			{Name: "409", Value: float64(i), sum: true},
			{Name: "always", Value: 2, byClient: true},
		}
		if i == 1 {
			results = append(results, result{Name: "once", Value: 7, byClient: true})
		}
		table.add("a", results...)
		table.add("b", result{Name: "took", Value: 100})
		if i == 0 {
			table.derive("a", result{Name: "at first", Value: 8})
		}
	}
	want := []result{
		{Case: "a", Name: "took", Value: 5, Runs: []float64{4, 9, 5}},
		{Case: "a", Name: "409", Value: 3, Runs: []float64{0, 1, 2}, sum: true},
		{Case: "a", Name: "always", Value: 2, Runs: []float64{2, 2, 2}, byClient: true},
		{Case: "b", Name: "took", Value: 100, Runs: []float64{100, 100, 100}},
		{Case: "a", Name: "at first", Value: 8},
		{Case: "a", Name: "once", Value: 0, Runs: []float64{0, 7, 0}, byClient: true},
	}
	if diff := cmp.Diff(want, table.Results, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestWant(t *testing.T) {
	for name, tc := range map[string]struct {
		relation string
		value    float64
		want     bool
	}{
		"at most, at the bound":  {atMost, 5, true},
		"at most, above":         {atMost, 5.01, false},
		"at most, below":         {atMost, 4.99, true},
		"at least, at the bound": {atLeast, 5, true},
		"at least, above":        {atLeast, 5.01, true},
		"at least, below":        {atLeast, 4.99, false},
		// A figure that could not be computed must not meet a target.
		"at most, not computed":  {atMost, math.NaN(), false},
		"at least, not computed": {atLeast, math.NaN(), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{}
			table := r.table(rowPerCase, "Title.")
			table.add("case", result{Name: "figure", Value: tc.value}, result{Name: "without target"})
			table.want("case", "figure", tc.relation, 5)
			targets, missed := r.targets()
			if len(targets) != 1 || targets[0].Met != tc.want || (missed == 0) != tc.want {
				t.Errorf("targets = %+v, %d missed, want met = %v", targets, missed, tc.want)
			}
		})
	}
	r := &report{}
	r.table(rowPerCase, "Title.").want("case", "missing", atMost, 5)
	if targets, missed := r.targets(); len(targets) != 1 || missed != 1 {
		t.Errorf("targets = %+v, %d missed, want that of the missing figure", targets, missed)
	}
}

// lines returns the lines of a report without the spaces that align it.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

// fill adds two cases, of which the second lacks a figure, and requests by client.
func fill(t *table) {
	t.add("first",
		result{Name: "b: rare", Unit: "per pod", Value: 0.019, digits: 2, byClient: true},
		result{Name: "b", Unit: "per pod", Value: 1, digits: 2, byClient: true},
		result{Name: "a", Unit: "per pod", Value: 0.02, digits: 2, byClient: true},
		result{Name: "took", Unit: "s", Value: 2.06, digits: 1},
		result{Name: "count", Value: 3})
	t.add("second",
		result{Name: "took", Unit: "s", Value: 11, digits: 1},
		result{Name: "a", Unit: "per pod", Value: 0.001, digits: 2, byClient: true})
	t.want("first", "took", atMost, 2)
	t.want("first", "count", atLeast, 3)
}

func TestWrite(t *testing.T) {
	r := &report{Version: "v1", Processors: 2, Parameters: map[string]string{"arg": "kube-apiserver:v=4", "pods": "7"}}
	fill(r.table(rowPerCase, "Rows are cases."))
	fill(r.table(rowPerFigure, "Rows are figures."))
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"", "v1, 2 processors; kube-controller-manager with its default limits (--kube-api-qps=20 --kube-api-burst=30;",
		"the controllers of evictions and maintenances multiply them for themselves).",
		"Further flags: kube-apiserver:v=4",
		"", "Rows are cases.", "",
		"took, s count", "first 2.1 3", "second 11.0 -",
		"", "Rows are figures.", "",
		"(1) (2)", "took, s 2.1 11.0", "count 3 -", "a 0.02 0.00", "b 1.00 -",
		"(1) first", "(2) second",
		"", "TARGET WANTED MEASURED RESULT",
		"first: took, s at most 2 2.06 MISSED", "first: count at least 3 3 ok",
		"first: took, s at most 2 2.06 MISSED", "first: count at least 3 3 ok",
	}
	if diff := cmp.Diff(want, lines(out.String())); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if !strings.Contains(out.String(), "\n   first      2.1      3\n") && !strings.Contains(out.String(), "first       2.1      3\n") {
		t.Errorf("the table is not aligned:\n%s", out.String())
	}
}

func TestWriteJSON(t *testing.T) {
	r := &report{Version: "v1", Parameters: map[string]string{"pods": "7"}}
	fill(r.table(rowPerCase, "Title."))
	path := filepath.Join(t.TempDir(), "eviction.json")
	if err := r.writeJSON(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Parameters map[string]string
		Tables     []struct {
			Results []struct {
				Case, Name, Unit, Relation string
				Value, Wanted              float64
				Runs                       []float64
				Met                        *bool
			}
		}
	}
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Tables) != 1 || len(read.Tables[0].Results) != 7 || read.Parameters["pods"] != "7" {
		t.Fatalf("the file lacks results:\n%s", data)
	}
	took := read.Tables[0].Results[3]
	if took.Case != "first" || took.Name != "took" || took.Unit != "s" || took.Value != 2.06 || len(took.Runs) != 1 ||
		took.Relation != "at most" || took.Wanted != 2 || took.Met == nil || *took.Met {
		t.Errorf("result = %+v, want all of it:\n%s", took, data)
	}
	if read.Tables[0].Results[0].Met != nil {
		t.Errorf("a result has a target that was not set:\n%s", data)
	}
}

// measured returns a report with results that meet every target, at the bound if there is one.
func measured() *report {
	r := &report{}
	evictions := r.table(rowPerCase, "Evictions.")
	for _, budget := range []string{noBudget, oneBudget} {
		for name, rate := range map[string]float64{byRequests: 100, byBareClient: 100, byDrain: 5} {
			evictions.add(name+budget, result{Name: "evicted", Value: rate}, result{Name: "requests", Value: 3},
				result{Name: "409", sum: true}, result{Name: "eviction p99", Value: 1})
		}
		evictions.derive(byRequests+budget, result{Name: recordedAfter, Value: 1})
	}
	idle := r.table(rowPerCase, "Idle.")
	idle.add(stateIntercepting, result{Name: "writes by the controller"})
	idle.add(stateBlocked, result{Name: "writes by the controller", Value: blockedAtRest}, result{Name: "writes at first", Value: blockedAtFirst},
		result{Name: firstAfter, Value: 2}, result{Name: ownConflicts})
	drain := r.table(rowPerFigure, "Drain.")
	drain.add(byMaintenance+noBudget, result{Name: "evicted after", Value: 5})
	drain.add(byLabelDrain+noBudget, result{Name: "evicted after", Value: 100})
	scale := r.table(rowPerCase, "Scale.")
	scale.add(scaleOff, result{Name: restCPU}, result{Name: "writes by " + maintenanceController})
	scale.add(scaleOn, result{Name: restCPU, Value: 0.6}, result{Name: "writes by " + maintenanceController})
	surgeRest := r.table(rowPerCase, "Surge at rest.")
	surgeRest.add(surgeRestOn, result{Name: restCPU, Value: 0.6}, result{Name: "writes by controllers"})
	surgeRest.add(surgeRestOff, result{Name: restCPU}, result{Name: "writes by controllers"})
	surge := r.table(rowPerFigure, "Surge.")
	for name, figures := range map[string][4]float64{
		surgeWithBudgets: {60, 2, 1, 7}, surgeNoBudgets: {60, 2, 1, 7}, surgeOff: {30, 1, 1, 3}, surgeKubectl: {60, 1, 0, 1}, surgeLarge: {60, 1250, 1000, 7},
	} {
		surge.add(name, result{Name: "drained after", Value: figures[0]}, result{Name: "most pods of a Deployment", Value: figures[1]},
			result{Name: "fewest ready pods", Value: figures[2]}, result{Name: "requests for its eviction", Value: figures[3]})
	}
	return r
}

// compare sets all targets of a report.
func compare(r *report) {
	compareEvictions(r.Tables[0])
	compareIdle(r.Tables[1])
	compareDrains(r.Tables[2])
	compareRest(r.Tables[3], scaleOn, scaleOff, maintenanceController)
	compareSurge(r.Tables[4], r.Tables[5], 1000)
}

func TestTargets(t *testing.T) {
	type figure struct {
		table      int
		name, what string
		value      float64
	}
	for name, tc := range map[string]struct {
		spoiled []figure
		// missed is the figure that misses its target, by default the one that was spoiled.
		missed string
		none   bool
	}{
		"all at their bound":                 {none: true},
		"too many requests, no PDB":          {spoiled: []figure{{0, byRequests + noBudget, "requests", 3.01}}},
		"too many requests, one PDB":         {spoiled: []figure{{0, byRequests + oneBudget, "requests", 3.01}}},
		"too slow":                           {spoiled: []figure{{0, byRequests + noBudget, "evicted", 99.9}}, missed: "times kubectl drain"},
		"one conflict":                       {spoiled: []figure{{0, byRequests + oneBudget, "409", 1}}},
		"slow evictions":                     {spoiled: []figure{{0, byRequests + oneBudget, "eviction p99", 1.01}}},
		"a bare client has no target":        {spoiled: []figure{{0, byBareClient + oneBudget, "eviction p99", 9}, {0, byBareClient + oneBudget, "requests", 9}}, none: true},
		"busy while idle":                    {spoiled: []figure{{1, stateIntercepting, "writes by the controller", 1}}},
		"late records, no PDB":               {spoiled: []figure{{0, byRequests + noBudget, recordedAfter, 1.01}}},
		"late records, one PDB":              {spoiled: []figure{{0, byRequests + oneBudget, recordedAfter, 1.01}}},
		"busy while blocked":                 {spoiled: []figure{{1, stateBlocked, "writes by the controller", 21}}},
		"blocked ones are written twice":     {spoiled: []figure{{1, stateBlocked, "writes at first", 2}}},
		"a release is noticed late":          {spoiled: []figure{{1, stateBlocked, firstAfter, 2.01}}},
		"conflicts in a release":             {spoiled: []figure{{1, stateBlocked, ownConflicts, 1}}},
		"a slow maintenance":                 {spoiled: []figure{{2, byMaintenance + noBudget, "evicted after", 5.01}}, missed: "share of the wall time of kubectl drain -l"},
		"maintenances that write at rest":    {spoiled: []figure{{3, scaleOn, "writes by " + maintenanceController, 1}}},
		"maintenances that are busy at rest": {spoiled: []figure{{3, scaleOn, restCPU, 0.61}}, missed: "CPU more than " + scaleOff},
		"CPU of others is allowed":           {spoiled: []figure{{3, scaleOff, restCPU, 10}, {3, scaleOn, restCPU, 10.5}}, none: true},
		"Deployments, writes at rest":        {spoiled: []figure{{4, surgeRestOn, "writes by controllers", 1}}},
		"Deployments, busy at rest":          {spoiled: []figure{{4, surgeRestOn, restCPU, 2}, {4, surgeRestOff, restCPU, 1}}, missed: "CPU more than " + surgeRestOff},
		"Deployments, CPU of others":         {spoiled: []figure{{4, surgeRestOn, restCPU, 10}, {4, surgeRestOff, restCPU, 9.5}}, none: true},
		"surge, too many pods":               {spoiled: []figure{{5, surgeWithBudgets, "most pods of a Deployment", 3}}},
		"surge, a gap":                       {spoiled: []figure{{5, surgeNoBudgets, "fewest ready pods", 0}}},
		"surge, too many requests":           {spoiled: []figure{{5, surgeNoBudgets, "requests for its eviction", 7.1}}},
		"gate off, too many requests":        {spoiled: []figure{{5, surgeOff, "requests for its eviction", 3.1}}},
		"gate off, a gap is allowed":         {spoiled: []figure{{5, surgeOff, "fewest ready pods", 0}}, none: true},
		"large, too many pods":               {spoiled: []figure{{5, surgeLarge, "most pods of a Deployment", 1251}}},
		"large, too few ready":               {spoiled: []figure{{5, surgeLarge, "fewest ready pods", 999}}},
		"large, too many requests":           {spoiled: []figure{{5, surgeLarge, "requests for its eviction", 7.1}}},
		"kubectl has no target": {spoiled: []figure{{5, surgeKubectl, "fewest ready pods", 0}, {5, surgeKubectl, "most pods of a Deployment", 9},
			{5, surgeKubectl, "requests for its eviction", 90}}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := measured()
			for _, f := range tc.spoiled {
				r.Tables[f.table].find(f.name, f.what).Value = f.value
			}
			compare(r)
			var want, missed []string
			if !tc.none {
				f := tc.spoiled[0]
				want = []string{f.name + ": " + f.what}
				if tc.missed != "" {
					want = []string{f.name + ": " + tc.missed}
				}
			}
			targets, count := r.targets()
			for _, target := range targets {
				if !target.Met {
					missed = append(missed, target.Case+": "+target.Name)
				}
			}
			if diff := cmp.Diff(want, missed); diff != "" || count != len(want) {
				t.Errorf("%d missed targets (-want +got):\n%s", count, diff)
			}
			if len(targets) != 27 {
				t.Errorf("%d targets, want 27", len(targets))
			}
		})
	}
}

// TestTargetsOfParts verifies the number of targets of each part, and that no figure is missing.
func TestTargetsOfParts(t *testing.T) {
	r := measured()
	compare(r)
	var got []int
	for i, table := range r.Tables {
		targets, missed := (&report{Tables: r.Tables[i : i+1]}).targets()
		got = append(got, len(targets))
		if missed > 0 {
			t.Errorf("%d targets of %q are missed", missed, table.Title)
		}
	}
	if diff := cmp.Diff([]int{7, 5, 1, 2, 2, 10}, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func TestCompared(t *testing.T) {
	r := measured()
	compare(r)
	got := map[string]float64{}
	for _, table := range r.Tables {
		for _, result := range table.Results {
			if len(result.Runs) == 0 {
				got[result.Case+": "+result.Name] = result.Value
			}
		}
	}
	const times, longer = ": times kubectl drain", ": times as long as with the gate off"
	want := map[string]float64{
		byRequests + noBudget + times: 20, byBareClient + noBudget + times: 20, byDrain + noBudget + times: 1,
		byRequests + oneBudget + times: 20, byBareClient + oneBudget + times: 20, byDrain + oneBudget + times: 1,
		byMaintenance + noBudget + ": times as fast as kubectl drain -l":          20,
		byMaintenance + noBudget + ": share of the wall time of kubectl drain -l": 0.05,
		byLabelDrain + noBudget + ": times as fast as kubectl drain -l":           1,
		byLabelDrain + noBudget + ": share of the wall time of kubectl drain -l":  1,
		scaleOn + ": CPU more than " + scaleOff:                                   0.6,
		surgeRestOn + ": CPU more than " + surgeRestOff:                           0.6,
		surgeWithBudgets + longer:                                                 2, surgeNoBudgets + longer: 2, surgeOff + longer: 1, surgeKubectl + longer: 2,
		byRequests + noBudget + ": " + recordedAfter: 1, byRequests + oneBudget + ": " + recordedAfter: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("computed figures (-want +got):\n%s", diff)
	}
}

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":                   {[]float64{3}, 3},
		"odd, unsorted":         {[]float64{9, 1, 5}, 5},
		"even":                  {[]float64{1, 2, 4, 100}, 3},
		"an outlier is ignored": {[]float64{5, 5, 5, 5, 5000}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.values)
			if got := median(tc.values); got != tc.want {
				t.Errorf("median(%v) = %v, want %v", tc.values, got, tc.want)
			}
			if !slices.Equal(before, tc.values) {
				t.Errorf("the values were changed to %v", tc.values)
			}
		})
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
}

func TestPercentile(t *testing.T) {
	var hundred []float64
	for i := 100; i > 0; i-- {
		hundred = append(hundred, float64(i))
	}
	for name, tc := range map[string]struct {
		p      float64
		values []float64
		want   float64
	}{
		"p99 of 100":             {99, hundred, 99},
		"p50 of 100":             {50, hundred, 50},
		"p100 is the largest":    {100, hundred, 100},
		"p0 is the smallest":     {0, hundred, 1},
		"p99 of 10 is the worst": {99, hundred[:10], 100},
		"p50 of 3":               {50, []float64{3, 1, 2}, 2},
		"one value":              {99, []float64{7}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentile(tc.p, tc.values); got != tc.want {
				t.Errorf("percentile(%v) = %v, want %v", tc.p, got, tc.want)
			}
		})
	}
	if got := percentile(99, nil); !math.IsNaN(got) {
		t.Errorf("percentile of nothing = %v, want NaN", got)
	}
}

func TestOptionsCheck(t *testing.T) {
	for _, args := range [][]string{{"--pods=0"}, {"--pods=2001"}, {"--runs=0"}, {"--idle=-1"}, {"--nodes=0"}, {"--idle-time=0s"}, {"--scale-nodes=-1"}, {"--parts="}, {"--parts=drain,all"}, {"--surge=401"}, {"--surge-replicas=-1"}, {"--picker-sets=2001"}, {"surplus"}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	opts, err := parseOptions([]string{"--pods=2000", "--idle=0", "--scale-nodes=0", "--parts=drain,scale", "--idle-time=2s", "--arg=a:b=c", "--arg=d:e=f"})
	if err != nil {
		t.Errorf("bounds were refused: %v", err)
	}
	if diff := cmp.Diff([]string{"drain", "scale"}, opts.parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if opts.idleTime != 2*time.Second || opts.flags["idle-time"] != "2s" || opts.flags["runs"] != "5" || opts.flags["arg"] != "a:b=c d:e=f" {
		t.Errorf("flags = %v", opts.flags)
	}
	if opts, err = parseOptions(nil); err != nil || !slices.Equal(opts.parts, allParts()) {
		t.Errorf("parts by default = %v, %v, want %v", opts.parts, err, allParts())
	}
}
