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
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/steps"
	"k8s.io/utils/ptr"
)

// measuredPickers returns tables whose figures are all at the bound of their target.
func measuredPickers() (scaled, beside *table) {
	scaled, beside = newTable(rowPerFigure), newTable(rowPerCase)
	scaled.add(setsPlain, result{Name: scaledAfter, Value: 10})
	scaled.add(setsPicked, result{Name: scaledAfter, Value: 12}, result{Name: "picker has answered", Value: 1})
	scaled.add(setsWaiting, result{Name: memoryPerWait, Value: 16})
	beside.add(besideNone, result{Name: scaledAfter, Value: 100})
	beside.add(besideHanging, result{Name: scaledAfter, Value: 105})
	beside.add(plainSets, result{Name: longestAfter, Value: 0.5})
	for _, longest := range []float64{30, 31.7, 31} {
		beside.add(hungSets, result{Name: longestAfter, Value: longest})
	}
	return scaled, beside
}

func TestComparePickers(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(scaled, beside *table)
		missed string
	}{
		"all at their bound":   {func(_, _ *table) {}, ""},
		"slower with a picker": {func(scaled, _ *table) { scaled.find(setsPicked, scaledAfter).Value = 12.1 }, timesPlain},
		"not all were asked":   {func(scaled, _ *table) { scaled.find(setsPicked, "picker has answered").Value = 0.99 }, "picker has answered"},
		"too much memory":      {func(scaled, _ *table) { scaled.find(setsWaiting, memoryPerWait).Value = 16.1 }, memoryPerWait},
		"slower beside others": {func(_, beside *table) { beside.find(besideHanging, scaledAfter).Value = 105.1 }, timesPlain},
		// The longest of all runs counts, not the median.
		"one waited too long": {func(_, beside *table) { beside.find(hungSets, longestAfter).Runs[0] = 31.8 }, hangDelay},
	} {
		t.Run(name, func(t *testing.T) {
			scaled, beside := measuredPickers()
			tc.spoil(scaled, beside)
			comparePickers(scaled, beside)
			targets, _ := (&report{Tables: []*table{scaled, beside}}).targets()
			var want, missed []string
			if tc.missed != "" {
				want = []string{tc.missed}
			}
			for _, target := range targets {
				if !target.Met {
					missed = append(missed, target.Name)
				}
			}
			if diff := cmp.Diff(want, missed); diff != "" || len(targets) != 5 {
				t.Errorf("%d targets, want 5; missed (-want +got):\n%s", len(targets), diff)
			}
		})
	}
}

func TestComparePickersWithoutFigures(t *testing.T) {
	scaled, beside := newTable(rowPerFigure), newTable(rowPerCase)
	comparePickers(scaled, beside)
	if _, missed := (&report{Tables: []*table{scaled, beside}}).targets(); missed != 5 {
		t.Errorf("%d targets are missed, want all 5", missed)
	}
}

func TestProfiled(t *testing.T) {
	const profile = "# runtime.MemStats\n# HeapAlloc = 1234\n# HeapSys = 9\n# Stack = 56 / 78\n"
	for name, tc := range map[string]struct {
		pattern *regexp.Regexp
		want    float64
	}{"HeapAlloc": {heapAlloc, 1234}, "Stack": {stacksInUse, 56}} {
		if got := profiled([]byte(profile), tc.pattern); got != tc.want {
			t.Errorf("%s = %v, want %v", name, got, tc.want)
		}
		other := []byte(strings.ReplaceAll(profile, name, "Other"))
		if err := steps.Attempt(func() { profiled(other, tc.pattern) }); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestWhole(t *testing.T) {
	start := time.Now()
	s := newScaling(make([]types.NamespacedName, 3))
	for i, after := range []time.Duration{2, 0, 1} {
		s.began[i] = start.Add(after * time.Second)
	}
	// They ended after 3, 4 and 2 seconds.
	if got := s.whole([]float64{1, 4, 1}); got != 4 {
		t.Errorf("all took %v s, want 4", got)
	}
}

func TestSetWatch(t *testing.T) {
	w := &setWatch{states: map[types.NamespacedName]setState{}}
	start := time.Now()
	see := func(after time.Duration, name string, generation, observed int64, wanted, pods int32) {
		w.see(&appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: generation},
			Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To(wanted)},
			Status:     appsv1.ReplicaSetStatus{ObservedGeneration: observed, Replicas: pods, AvailableReplicas: pods},
		}, start.Add(after*time.Second))
	}
	s := newScaling([]types.NamespacedName{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}})
	s.began[0], s.began[1] = start, start.Add(time.Second)
	s.generations[0], s.generations[1] = 2, 2
	expect := func(when string, observed bool, took ...float64) {
		t.Helper()
		if got := w.observed(s); got != observed {
			t.Errorf("%s: observed %t, want %t", when, got, observed)
		}
		if diff := cmp.Diff(took, w.took(s), cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s: took (-want +got):\n%s", when, diff)
		}
	}
	expect("nothing is known", false)
	see(0, "a", 1, 1, 5, 5)
	see(0, "b", 1, 1, 5, 5)
	see(1, "a", 2, 1, 3, 5)
	see(1, "b", 2, 2, 3, 5)
	expect("a is not observed", false)
	see(2, "a", 2, 2, 3, 5)
	expect("both wait", true)
	see(3, "a", 2, 2, 3, 3)
	expect("a is scaled", true, 3)
	see(4, "a", 2, 2, 3, 3) // It does not count again.
	see(5, "b", 2, 2, 3, 3)
	expect("both are scaled", true, 3, 4)
}

// TestPickers asks real servers.
func TestPickers(t *testing.T) {
	const question = `{"number_of_pods_requested": 1, "candidate_pods": ["a", "b"]}`
	quick, err := startPickers("127.0.0.", 1, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = quick.close() }()
	hanging, err := startPickers("127.0.1.", 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hanging.close() }()
	ask := func(s *pickerServer, index int) (*http.Response, error) {
		picker := s.spec(index, 1, time.Second).HTTP
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return client.Post("http://"+picker.Host+":"+picker.Port.String(), "application/json", strings.NewReader(question))
	}
	response, err := ask(quick, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || strings.TrimSpace(string(body)) != `{"chosen_pods":["a"],"tied_pods":[]}` {
		t.Errorf("the answer is %s, %v", body, err)
	}
	failed := make(chan error, 3)
	for i := range 3 {
		go func() {
			response, err := ask(hanging, i)
			if err == nil {
				response.Body.Close()
			}
			failed <- err
		}()
	}
	for asking := 0; asking < 3; asking, _, _ = hanging.counts() {
		time.Sleep(time.Millisecond)
	}
	if err := hanging.close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-failed; err == nil {
			t.Error("a picker that hangs has answered")
		}
	}
	if _, most, answered := hanging.counts(); most != 3 || answered != 0 {
		t.Errorf("hanging pickers: %d at a time, %d answered", most, answered)
	}
	if _, _, answered := quick.counts(); answered != 1 {
		t.Errorf("the picker has answered %d times, want once", answered)
	}
	if hosts := slices.Compact(slices.Clone(hanging.addresses)); len(hosts) != 3 {
		t.Errorf("pickers at %v, want different ones", hanging.addresses)
	}
}
