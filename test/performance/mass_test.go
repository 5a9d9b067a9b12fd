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
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/test/utils/steps"
)

func TestHistoryBehind(t *testing.T) {
	start := time.Now()
	var h history
	for i, value := range []int{0, 10, 20, 20, 30} {
		h = append(h, sample{start.Add(time.Duration(i) * time.Second), value})
	}
	now := start.Add(4 * time.Second)
	for value, want := range map[int]time.Duration{
		30: 0, // It is current.
		31: 0, // It is ahead: it was read later.
		29: time.Second,
		20: time.Second,
		19: 3 * time.Second,
		0:  4 * time.Second,
		-1: 4 * time.Second,
	} {
		if got := h.behind(now, value); got != want {
			t.Errorf("%d: behind by %s, want %s", value, got, want)
		}
	}
	if got := (history{}).behind(now, 0); got != 0 {
		t.Errorf("without a history: behind by %s", got)
	}
}

// fakeKV is an etcd with as many keys below one prefix.
type fakeKV struct {
	clientv3.KV
	prefix string
	count  int64
}

func (f fakeKV) Get(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, options...)
	if key != f.prefix || !op.IsCountOnly() || string(op.RangeBytes()) != clientv3.GetPrefixRangeEnd(f.prefix) {
		return nil, fmt.Errorf("%s is not counted", key)
	}
	return &clientv3.GetResponse{Count: f.count}, nil
}

func TestCountStored(t *testing.T) {
	m := &mass{stored: fakeKV{prefix: "/registry/pods/" + namespace + "/", count: 42}}
	if got := m.countStored(t.Context(), "pods"); got != 42 {
		t.Errorf("counted %d, want 42", got)
	}
	if err := steps.Attempt(func() { m.countStored(t.Context(), "nodes") }); err == nil {
		t.Error("counted another resource, want an error")
	}
}

func TestNamesOfMassCasesAreLabels(t *testing.T) {
	for _, name := range []string{massCompared, massDrain} {
		if problems := validation.IsValidLabelValue(labelValue(name)); len(problems) > 0 {
			t.Errorf("%q: %v", labelValue(name), problems)
		}
	}
}

const metricsBefore = `# TYPE apiserver_request_total counter
apiserver_request_total{verb="POST",resource="pods"} 10
apiserver_request_total{verb="APPLY",resource="evictionrequests"} 2
apiserver_request_total{verb="LIST",resource="pods"} 100
# TYPE apiserver_request_duration_seconds histogram
apiserver_request_duration_seconds_bucket{verb="POST",le="0.1"} 10
apiserver_request_duration_seconds_bucket{verb="POST",le="1"} 10
apiserver_request_duration_seconds_bucket{verb="POST",le="+Inf"} 10
apiserver_request_duration_seconds_sum{verb="POST"} 1
apiserver_request_duration_seconds_count{verb="POST"} 10
`

const metricsAfter = `# TYPE apiserver_request_duration_seconds histogram
apiserver_request_duration_seconds_bucket{verb="POST",le="0.1"} 105
apiserver_request_duration_seconds_bucket{verb="POST",le="1"} 110
apiserver_request_duration_seconds_bucket{verb="POST",le="+Inf"} 110
apiserver_request_duration_seconds_sum{verb="POST"} 20
apiserver_request_duration_seconds_count{verb="POST"} 110
apiserver_request_duration_seconds_bucket{verb="LIST",le="0.1"} 0
apiserver_request_duration_seconds_bucket{verb="LIST",le="1"} 0
apiserver_request_duration_seconds_bucket{verb="LIST",le="+Inf"} 1000
apiserver_request_duration_seconds_sum{verb="LIST"} 20000
apiserver_request_duration_seconds_count{verb="LIST"} 1000
`

func TestAPIMetrics(t *testing.T) {
	before, after := parseMetrics([]byte(metricsBefore)), parseMetrics([]byte(metricsAfter))
	if got := before.writes(); got != 12 {
		t.Errorf("%v writes, want 12", got)
	}
	if got := before.writesOfRequests(); got != 2 {
		t.Errorf("%v writes of requests, want 2", got)
	}
	for p, want := range map[float64]float64{50: 0.1, 95: 0.1, 95.2: 1, 99: 1} {
		if got := after.writeLatency(p, before); got != want {
			t.Errorf("p%v is %v s, want %v", p, got, want)
		}
	}
}

func TestCompareMass(t *testing.T) {
	opts := options{massPods: 75000}
	m := &mass{cluster: &cluster{opts: opts}, table: (&report{}).table(rowPerFigure, "")}
	m.table.add(massCompared, result{Name: "drained", Value: 100})
	m.table.add(massDrain, result{Name: "drained", Value: 90}, result{Name: "drained after", Value: 361}, result{Name: "kubectl maintenance status", Value: 2})
	m.compare()
	for figure, met := range map[string]bool{
		"drained after":                      false, // 12 minutes are for twice as many.
		"pods/s, times that with 1,000 pods": true,
		"kubectl maintenance status":         true,
		"status behind, at most":             false, // It was not measured.
	} {
		if got := m.table.find(massDrain, figure); got == nil || got.target == nil || got.Met != met {
			t.Errorf("%s: %+v, want it to be met: %t", figure, got, met)
		}
	}
}
