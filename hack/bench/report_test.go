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
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// measured is a result that meets every target, exactly at the bound where there is one.
func measured(way way, budget budgetKind) result {
	r := result{Way: way, Budget: budget, Pods: 100, Seconds: 1, PodsPerSecond: 100, RequestsPerPod: 5, EvictionP99Seconds: 1}
	r.EvictionCodes = map[string]int{"201": 100}
	r.Clients = map[string]int{"evictionrequest-controller: create pods/eviction": 100}
	if way == byDrain || way == byLabelDrain {
		r.Seconds, r.PodsPerSecond = 20, 5
	}
	return r
}

// allMeasured is everything that can be measured, at the bound of every target. The
// results are those of three ways without a budget, the same with one, a maintenance, and
// kubectl drain -l.
func allMeasured() measurements {
	m := measurements{
		version: "v1",
		idle:    []idleResult{{State: stateIntercepting, Waiting: 1000}, {State: stateBlocked, Waiting: 1000}},
		scale:   &scaleResult{Nodes: 5000, Maintenances: 30, With: steadyResult{CPUSeconds: 0.6}},
		surge:   surgeMeasured(),
	}
	for _, budget := range []budgetKind{noBudget, oneBudget} {
		for _, way := range []way{byRequests, byBareClient, byDrain} {
			m.results = append(m.results, measured(way, budget))
		}
	}
	m.results = append(m.results, measured(byMaintenance, noBudget), measured(byLabelDrain, noBudget))
	return m
}

var testOptions = options{parts: allParts, pods: 100, drainPods: 100, runs: 1, parallel: 30, nodes: 10, scaleNodes: 5000}

func TestTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*measurements)
		want  []string
	}{
		"all at their bound": {func(*measurements) {}, nil},
		"too many requests, no PDB": {func(m *measurements) { m.results[0].RequestsPerPod = 5.01 },
			[]string{"API requests per pod, no PDB"}},
		"too many requests, one PDB": {func(m *measurements) { m.results[3].RequestsPerPod = 5.01 },
			[]string{"API requests per pod, one PDB"}},
		"too slow": {func(m *measurements) { m.results[0].PodsPerSecond = 99.9 },
			[]string{"times the pods/s of kubectl drain, no PDB"}},
		"one conflict": {func(m *measurements) { m.results[3].EvictionCodes["409"] = 1 },
			[]string{"evictions answered with 409, one PDB, all runs"}},
		"slow evictions": {func(m *measurements) { m.results[3].EvictionP99Seconds = 1.01 },
			[]string{"p99 of an eviction call in seconds, one PDB"}},
		"busy while idle": {func(m *measurements) { m.idle[0].Writes = 1 },
			[]string{"writes per minute for 1000 idle requests"}},
		"a slow maintenance": {func(m *measurements) { m.results[6].Seconds = 1.01 },
			[]string{"one NodeMaintenance, share of the wall time of kubectl drain -l"}},
		"maintenances that write while nothing happens": {func(m *measurements) { m.scale.With.Writes = 1 },
			[]string{"writes by the nodemaintenance-controller per minute, 5000 nodes, 30 NodeMaintenances"}},
		"maintenances that are busy while nothing happens": {func(m *measurements) { m.scale.With.CPUSeconds = 0.61 },
			[]string{"CPU seconds that it adds per minute, 5000 nodes, 30 NodeMaintenances"}},
		"a slow bare client is no failure": {func(m *measurements) {
			m.results[4].EvictionP99Seconds, m.results[4].RequestsPerPod, m.results[4].EvictionCodes["409"] = 9, 9, 9
		}, nil},
		"retries of blocked requests are no failure": {func(m *measurements) { m.idle[1].Writes = 1000 }, nil},
		"what others use is no failure":              {func(m *measurements) { m.scale.Without.CPUSeconds, m.scale.With.CPUSeconds = 10, 10.6 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := allMeasured()
			tc.spoil(&m)
			report := newReport(testOptions, m)
			var missed []string
			for _, target := range report.Targets {
				if !target.Met {
					missed = append(missed, target.Name)
				}
			}
			if diff := cmp.Diff(tc.want, missed); diff != "" {
				t.Errorf("missed targets (-want +got):\n%s", diff)
			}
			if report.missed() != len(tc.want) {
				t.Errorf("missed() = %d, want %d", report.missed(), len(tc.want))
			}
		})
	}
}

// A figure that could not be computed must not pass for a target that is met.
func TestTargetsWithoutResults(t *testing.T) {
	report := newReport(testOptions, measurements{})
	for _, target := range report.Targets {
		if strings.HasPrefix(target.Name, "evictions answered") {
			continue // Nothing was answered at all.
		}
		if target.Met {
			t.Errorf("%q is met with nothing measured", target.Name)
		}
	}
}

// A part that was not asked for has no targets.
func TestTargetsOfParts(t *testing.T) {
	all := allMeasured()
	for part, tc := range map[part]struct {
		m    measurements
		want int
	}{
		partEvictions: {measurements{results: all.results[:6]}, 5},
		partIdle:      {measurements{idle: all.idle}, 1},
		partDrain:     {measurements{results: all.results[6:]}, 1},
		partScale:     {measurements{scale: all.scale}, 2},
		partSurge:     {measurements{surge: all.surge}, 12},
	} {
		t.Run(string(part), func(t *testing.T) {
			opts := testOptions
			opts.parts = partSet{part}
			report := newReport(opts, tc.m)
			if len(report.Targets) != tc.want || report.missed() != 0 {
				t.Errorf("%d targets, %d missed, want %d and none: %+v", len(report.Targets), report.missed(), tc.want, report.Targets)
			}
			if err := report.writeTable(io.Discard); err != nil {
				t.Error(err)
			}
			if err := report.writeJSON(filepath.Join(t.TempDir(), "report.json")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSummarizeDrains(t *testing.T) {
	var results []result
	for i, seconds := range []float64{4, 9, 5} {
		r := measured(byMaintenance, noBudget)
		r.Seconds = seconds
		r.Clients = map[string]int{"nodemaintenance-controller: patch nodes/status": 10 * (i + 1), "kwok: delete pods": 100}
		if i == 0 {
			r.Clients["kube-apiserver: update leases"] = 1
		}
		results = append(results, r)
	}
	kubectl := measured(byLabelDrain, noBudget)
	kubectl.Seconds = 100
	got := summarizeDrains(append(results, kubectl, measured(byRequests, noBudget)))
	if got.Share != 0.05 || got.Maintenance.Seconds != 5 || got.Maintenance.TimesDrain != 20 || got.Kubectl.Seconds != 100 {
		t.Errorf("summarizeDrains = %+v, want 5 s of 100 s", got)
	}
	want := map[string]float64{
		"nodemaintenance-controller: patch nodes/status": 0.2,
		"kwok: delete pods":             1,
		"kube-apiserver: update leases": 0, // Of three runs, two had none.
	}
	if diff := cmp.Diff(want, got.RequestsPerPod); diff != "" {
		t.Errorf("requests per pod (-want +got):\n%s", diff)
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
	m := allMeasured()
	m.results[3].EvictionCodes["409"] = 7
	report := newReport(testOptions, m)
	var table bytes.Buffer
	if err := report.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"eviction requests, no PDB", "MISSED", "ok", "--kube-api-qps=20",
		"1000 requests wait", "one NodeMaintenance", "kubectl drain -l", "1.000  evictionrequest-controller: create pods/eviction",
		"5000 nodes", "30 NodeMaintenances", "200 Deployments", "(5) surge of one large Deployment",
	} {
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
	if len(read.Results) != 8 || read.Results[3].EvictionCodes["409"] != 7 || read.Results[0].PodsPerSecond != 100 {
		t.Errorf("the file lacks results:\n%s", data)
	}
	if len(read.Targets) != 21 || read.Targets[0].Met == nil {
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
	for _, args := range [][]string{{"--pods=0"}, {"--pods=2001"}, {"--runs=0"}, {"--idle=-1"}, {"--nodes=0"}, {"--idle-time=0s"}, {"--scale-nodes=-1"}, {"--parts="}, {"--parts=drain,all"}, {"--surge=401"}, {"--surge-replicas=-1"}, {"surplus"}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	opts, err := parseOptions([]string{"--pods=2000", "--idle=0", "--scale-nodes=0", "--parts=drain,scale"})
	if err != nil {
		t.Errorf("bounds were refused: %v", err)
	}
	if diff := cmp.Diff(partSet{partDrain, partScale}, opts.parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if opts, err = parseOptions(nil); err != nil || !slices.Equal(opts.parts, allParts) {
		t.Errorf("parts by default = %v, %v, want %v", opts.parts, err, allParts)
	}
}
