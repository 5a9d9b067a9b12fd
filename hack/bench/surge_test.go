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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/kubernetes/hack/availability"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

// surgeMeasured is at the bound of every target.
func surgeMeasured() *surgeResult {
	r := &surgeResult{Deployments: 200, LargeReplicas: 1000, IdleOn: restResult{CPUSeconds: 0.6}}
	for _, kind := range []surgeKind{surgeWithBudgets, surgeNoBudgets, surgeOff, surgeKubectl, surgeLarge} {
		d := surgeDrainResult{Kind: kind, Pods: 200, Seconds: 60, Most: 2, Fewest: 1, EvictionsPerPod: 9, Clients: map[string]int{
			"replicaset-controller: create pods": 200, "replicaset-controller: create events": 100, "kwok-controller: delete pods": 5,
		}}
		switch kind {
		case surgeOff:
			d.Seconds, d.EvictionsPerPod = 30, 5
		case surgeLarge:
			d.Most, d.Fewest = 1250, 1000
		}
		r.Drains = append(r.Drains, d)
	}
	return r
}

func TestSurgeTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*surgeResult)
		want  []string
	}{
		"all at their bound": {func(*surgeResult) {}, nil},
		"writes at rest":     {func(r *surgeResult) { r.IdleOn.Writes = 1 }, []string{"writes by controllers per minute, 200 Deployments at rest"}},
		"busy at rest":       {func(r *surgeResult) { r.IdleOn.CPUSeconds, r.IdleOff.CPUSeconds = 2, 1 }, []string{"CPU seconds that the gate DeploymentPodSurge adds per minute, 200 Deployments at rest"}},
		"too many pods":      {func(r *surgeResult) { r.Drains[0].Most = 3 }, []string{"most pods of a Deployment with one, " + string(surgeWithBudgets)}},
		"a gap":              {func(r *surgeResult) { r.Drains[1].Fewest = 0 }, []string{"fewest ready pods of a Deployment with one, " + string(surgeNoBudgets)}},
		"too many requests":  {func(r *surgeResult) { r.Drains[1].EvictionsPerPod = 9.1 }, []string{"requests per eviction, " + string(surgeNoBudgets)}},
		"more without surge": {func(r *surgeResult) { r.Drains[2].EvictionsPerPod = 5.1 }, []string{"requests per eviction, " + string(surgeOff)}},
		"large, too many":    {func(r *surgeResult) { r.Drains[4].Most = 1251 }, []string{"most pods, " + string(surgeLarge)}},
		"large, too few":     {func(r *surgeResult) { r.Drains[4].Fewest = 999 }, []string{"fewest ready pods, " + string(surgeLarge)}},
		"kubectl has no target": {func(r *surgeResult) {
			r.Drains[3].Fewest, r.Drains[3].Most, r.Drains[3].EvictionsPerPod = 0, 9, 90
		}, nil},
		"what others use is no failure": {func(r *surgeResult) { r.IdleOn.CPUSeconds, r.IdleOff.CPUSeconds, r.Drains[2].Fewest = 10, 9.5, 0 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := surgeMeasured()
			tc.spoil(r)
			var missed []string
			for _, target := range r.targets() {
				if !target.Met {
					missed = append(missed, target.Name)
				}
			}
			if diff := cmp.Diff(tc.want, missed); diff != "" {
				t.Errorf("missed targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSurgeWrite(t *testing.T) {
	var out bytes.Buffer
	if err := surgeMeasured().write(&out); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{
		"seconds until drained 60.0 60.0 30.0 60.0 60.0",
		"times as long as (3) 2.00 2.00 1.00 2.00 -",
		// With its sum above, and without what is rare.
		"Requests per pod by who sends them:\n1.50 1.50 1.50 1.50 1.50 replicaset-controller\n0.50 0.50 0.50 0.50 0.50 replicaset-controller: create events\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestSurgeCount(t *testing.T) {
	events := []auditv1.Event{
		answered(controllerUser, "kube-controller-manager", "update", "evictionrequests", "status", 200, 0),
		answered(controllerUser, "kube-controller-manager", "create", "events", "", 201, 0),
		answered(controllerUsers+"deployment-controller", "kube-controller-manager", "patch", "evictionrequests", "status", 200, 0),
		answered(controllerUsers+"deployment-controller", "kube-controller-manager", "update", "replicasets", "", 200, 0),
		answered(controllerUsers+"deployment-controller", "kube-controller-manager", "update", "deployments", "status", 200, 0),
		answered(controllerUsers+"replicaset-controller", "kube-controller-manager", "get", "replicasets", "", 200, 0),
		answered(controllerUsers+"replicaset-controller", "kube-controller-manager", "create", "pods", "", 201, 0),
		answered("admin", "kubectl/v1", "create", "pods", "eviction", 201, 0),
		answered("admin", agentSetup, "update", "deployments", "", 200, 0),
	}
	var got surgeDrainResult
	got.count(2, events)
	clients := got.Clients
	got.Clients = nil
	want := surgeDrainResult{Pods: 2, EvictionsPerPod: 2, ReplicaSetsPerPod: 0.5, DeploymentsPerPod: 0.5, AllRequestsPerPod: 4, CreatedPerPod: 0.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
	if len(clients) != 8 || clients["replicaset-controller: create pods"] != 1 {
		t.Errorf("requests by client = %v", clients)
	}
}

func TestSurgeJudge(t *testing.T) {
	start := time.Now().Add(-10 * time.Second)
	series := func(values ...int) availability.Series {
		var s availability.Series
		for i, value := range values {
			at := start.Add(time.Duration(i) * time.Second)
			if i == 0 {
				at = start.Add(-time.Second)
			}
			s = append(s, availability.Point{Moment: availability.Moment{At: at}, Value: value})
		}
		return s
	}
	record := &availability.Record{Apps: map[string]*availability.App{
		"steady": {Active: series(1, 2, 1), Ready: series(1, 2, 1)},
		"away":   {Active: series(1, 0, 1), Ready: series(1, 0, 1)}, // For a second.
	}}
	var got surgeDrainResult
	got.judge(record, start, 1)
	want := surgeDrainResult{Most: 2, Fewest: 0, AwaySeconds: 0.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("judge (-want +got):\n%s", diff)
	}
	delete(record.Apps, "away")
	got = surgeDrainResult{}
	got.judge(record, start, 1)
	if diff := cmp.Diff(surgeDrainResult{Most: 2, Fewest: 1}, got); diff != "" {
		t.Errorf("judge without a gap (-want +got):\n%s", diff)
	}
}

func TestRequestTimer(t *testing.T) {
	now := time.Now()
	request := func(uid types.UID, evicted bool) *coordinationv1alpha1.EvictionRequest {
		r := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if evicted {
			r.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionEvicted), Status: metav1.ConditionTrue}}
		}
		return r
	}
	timer := &requestTimer{cancel: func() {}, done: make(chan struct{}), created: map[types.UID]time.Time{}, evicted: map[types.UID]time.Time{}}
	close(timer.done)
	for i, event := range []watch.Event{
		{Type: watch.Added, Object: request("a", false)},
		{Type: watch.Modified, Object: request("a", false)},
		{Type: watch.Modified, Object: request("a", true)},
		{Type: watch.Modified, Object: request("a", true)},
		{Type: watch.Deleted, Object: request("a", true)},
	} {
		timer.note(event, now.Add(time.Duration(i)*time.Second))
	}
	took, err := timer.stop()
	if diff := cmp.Diff([]float64{2}, took); diff != "" || err != nil {
		t.Errorf("took (-want +got), error %v:\n%s", err, diff)
	}
	timer.note(watch.Event{Type: watch.Added, Object: request("b", false)}, now)
	if _, err := timer.stop(); err == nil {
		t.Error("a request that was not evicted was passed over")
	}
}

func TestReplicaSetSettled(t *testing.T) {
	settled := appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1)}, Status: appsv1.ReplicaSetStatus{Replicas: 1, AvailableReplicas: 1}}
	for name, tc := range map[string]struct {
		change func(*appsv1.ReplicaSet)
		want   bool
	}{
		"settled": {func(*appsv1.ReplicaSet) {}, true},
		"a surge": {func(rs *appsv1.ReplicaSet) {
			rs.Annotations = map[string]string{deploymentutil.EvictionSurgeAnnotation: "{}"}
		}, false},
		"not observed":   {func(rs *appsv1.ReplicaSet) { rs.Generation = 1 }, false},
		"one too many":   {func(rs *appsv1.ReplicaSet) { rs.Status.Replicas = 2 }, false},
		"none available": {func(rs *appsv1.ReplicaSet) { rs.Status.AvailableReplicas = 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			rs := settled.DeepCopy()
			tc.change(rs)
			if got := isReplicaSetSettled(rs); got != tc.want {
				t.Errorf("isReplicaSetSettled = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStatCPUSeconds(t *testing.T) {
	got, err := statCPUSeconds("123 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20\n")
	if err != nil || got != 4 {
		t.Errorf("statCPUSeconds = %v, %v, want 4", got, err)
	}
	for _, stat := range []string{"", "123 (a) S 1 2", "1 (a) S 1 2 3 4 5 6 7 8 9 10 x 1"} {
		if _, err := statCPUSeconds(stat); err == nil {
			t.Errorf("%q was accepted", stat)
		}
	}
}
