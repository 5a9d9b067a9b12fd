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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// measured is a result that meets every target, exactly at the bound where there is one.
func measured(way way, budget budgetKind) result {
	r := result{Way: way, Budget: budget, Pods: 100, PodsPerSecond: 100, RequestsPerPod: 5, EvictionP99Seconds: 1}
	r.EvictionCodes = map[string]int{"201": 100}
	if way == byDrain {
		r.PodsPerSecond = 5
	}
	return r
}

func allMeasured() []result {
	var results []result
	for _, budget := range []budgetKind{noBudget, oneBudget} {
		for _, way := range []way{byRequests, byBareClient, byDrain} {
			results = append(results, measured(way, budget))
		}
	}
	return results
}

var testOptions = options{pods: 100, drainPods: 100, runs: 1, parallel: 30, nodes: 10}

func TestTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(results []result, idle []idleResult)
		want  []string
	}{
		"all at their bound": {func([]result, []idleResult) {}, nil},
		"too many requests, no PDB": {func(r []result, _ []idleResult) { r[0].RequestsPerPod = 5.01 },
			[]string{"API requests per pod, no PDB"}},
		"too many requests, one PDB": {func(r []result, _ []idleResult) { r[3].RequestsPerPod = 5.01 },
			[]string{"API requests per pod, one PDB"}},
		"too slow": {func(r []result, _ []idleResult) { r[0].PodsPerSecond = 99.9 },
			[]string{"times the pods/s of kubectl drain, no PDB"}},
		"one conflict": {func(r []result, _ []idleResult) { r[3].EvictionCodes["409"] = 1 },
			[]string{"evictions answered with 409, one PDB, all runs"}},
		"slow evictions": {func(r []result, _ []idleResult) { r[3].EvictionP99Seconds = 1.01 },
			[]string{"p99 of an eviction call in seconds, one PDB"}},
		"busy while idle": {func(_ []result, idle []idleResult) { idle[0].Writes = 1 },
			[]string{"writes per minute for 1000 idle requests"}},
		"a slow bare client is no failure": {func(r []result, _ []idleResult) {
			r[4].EvictionP99Seconds, r[4].RequestsPerPod, r[4].EvictionCodes["409"] = 9, 9, 9
		}, nil},
		"retries of blocked requests are no failure": {func(_ []result, idle []idleResult) { idle[1].Writes = 1000 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			results := allMeasured()
			idle := []idleResult{{State: stateIntercepting, Waiting: 1000}, {State: stateBlocked, Waiting: 1000}}
			tc.spoil(results, idle)
			report := newReport(testOptions, "v1", results, idle)
			var missed []string
			for _, target := range report.Targets {
				if !target.Met {
					missed = append(missed, target.Name)
				}
			}
			if strings.Join(missed, ";") != strings.Join(tc.want, ";") {
				t.Errorf("missed %q, want %q", missed, tc.want)
			}
			if report.missed() != len(tc.want) {
				t.Errorf("missed() = %d, want %d", report.missed(), len(tc.want))
			}
		})
	}
}

// A figure that could not be computed must not pass for a target that is met.
func TestTargetsWithoutResults(t *testing.T) {
	report := newReport(testOptions, "v1", nil, nil)
	for _, target := range report.Targets {
		if strings.HasPrefix(target.Name, "evictions answered") {
			continue // Nothing was answered at all.
		}
		if target.Met {
			t.Errorf("%q is met with nothing measured", target.Name)
		}
	}
}

func TestSummarize(t *testing.T) {
	var results []result
	for i, rate := range []float64{100, 300, 200} {
		r := measured(byRequests, oneBudget)
		r.PodsPerSecond, r.RequestsPerPod = rate, 4+float64(i)
		r.EvictionCodes = map[string]int{"201": 100, "429": i}
		results = append(results, r)
	}
	other := measured(byRequests, noBudget)
	other.PodsPerSecond = 1000
	s := summarize(append(results, other), byRequests, oneBudget)
	if s.PodsPerSecond != 200 || s.RequestsPerPod != 5 {
		t.Errorf("medians = %v pods/s, %v requests/pod; want 200, 5", s.PodsPerSecond, s.RequestsPerPod)
	}
	if s.EvictionCodes["201"] != 300 || s.EvictionCodes["429"] != 3 {
		t.Errorf("codes = %v, want the sums of all runs", s.EvictionCodes)
	}
}

func TestNewResult(t *testing.T) {
	counted := tally{Requests: map[string]int{"create pods/eviction": 2, "get pods": 4}, All: 10, evictionSeconds: []float64{0.1, 0.3}}
	r, err := newResult(byDrain, noBudget, 2, 4*time.Second, counted)
	if err != nil {
		t.Fatal(err)
	}
	if r.PodsPerSecond != 0.5 || r.RequestsPerPod != 3 || r.AllRequestsPerPod != 5 || r.EvictionP99Seconds != 0.3 || r.EvictionP50Seconds != 0.1 {
		t.Errorf("newResult = %+v", r)
	}
	if _, err := newResult(byDrain, noBudget, 3, time.Second, counted); err == nil {
		t.Error("fewer eviction calls than pods were accepted")
	}
}

func TestWrite(t *testing.T) {
	results := allMeasured()
	results[3].EvictionCodes["409"] = 7
	report := newReport(testOptions, "v1", results, []idleResult{{State: stateIntercepting, Waiting: 1000}})
	var table bytes.Buffer
	if err := report.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"eviction requests, no PDB", "MISSED", "ok", "--kube-api-qps=20"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	path := filepath.Join(t.TempDir(), "eviction.json")
	if err := report.writeJSON(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Targets []struct{ Met *bool }
		Results []struct {
			EvictionCodes map[string]int
			PodsPerSecond float64
		}
	}
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Results) != 6 || read.Results[3].EvictionCodes["409"] != 7 || read.Results[0].PodsPerSecond != 100 {
		t.Errorf("the file lacks results:\n%s", data)
	}
	if len(read.Targets) != 6 || read.Targets[0].Met == nil {
		t.Errorf("the file lacks targets:\n%s", data)
	}
}

func TestOtherErrors(t *testing.T) {
	codes := map[string]int{"201": 100, "409": 1, "429": 2, "404": 4, "500": 8}
	if got := otherErrors(codes); got != 12 {
		t.Errorf("otherErrors = %d, want 12", got)
	}
}

func TestOptionsCheck(t *testing.T) {
	for _, args := range [][]string{{"--pods=0"}, {"--pods=2001"}, {"--runs=0"}, {"--idle=-1"}, {"--nodes=0"}, {"--idle-time=0s"}, {"surplus"}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	if _, err := parseOptions([]string{"--pods=2000", "--idle=0"}); err != nil {
		t.Errorf("bounds were refused: %v", err)
	}
}
