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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/kubernetes/test/utils/steps"
)

// values returns the results without requests by client.
func values(results []result) map[string]float64 {
	all := map[string]float64{}
	for _, r := range results {
		if !r.byClient {
			all[r.Name] = r.Value
		}
	}
	return all
}

func TestWayResults(t *testing.T) {
	w := way{pods: 2, measured: byFork}
	results := w.results(4*time.Second, evictionEvents)
	want := map[string]float64{
		"evicted": 0.5, "evicted after": 4, "requests": 3.5, "of all clients": 6.5,
		"eviction p50": 0.1, "eviction p99": 0.5, "eviction max": 0.5, "409": 1, "429": 0, "other errors": 0,
	}
	if diff := cmp.Diff(want, values(results), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if len(results) <= len(want) {
		t.Error("the requests by client are missing")
	}
	w.pods = 3
	if err := steps.Attempt(func() { w.results(time.Second, evictionEvents) }); err == nil {
		t.Error("fewer eviction calls than pods were accepted")
	}
}

func TestShorten(t *testing.T) {
	if err := errors.New("short"); shorten(err) != err {
		t.Error("a short error was changed")
	}
	got := shorten(errors.New("begin" + strings.Repeat("é", 5000) + "end")).Error()
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || len(got) > 2010 {
		t.Errorf("shorten = %q", got)
	}
}

func TestNodeRange(t *testing.T) {
	nodes := nodeRange{2, 2}
	if diff := cmp.Diff([]string{"node-2", "node-3"}, nodes.names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"node-1": false, "node-2": true, "node-3": true, "node-4": false, "": false} {
		if nodes.has(name) != want {
			t.Errorf("has(%q) = %v, want %v", name, !want, want)
		}
	}
}
