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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/utils/ptr"
)

func TestSurgeRequests(t *testing.T) {
	all := requests{
		event(evictionUser, manager, "update", "evictionrequests", "status", 200, 0),
		event(evictionUser, manager, "create", "events", "", 201, 0),
		event(controllerUsers+"deployment-controller", manager, "patch", "evictionrequests", "status", 200, 0),
		event(controllerUsers+"deployment-controller", manager, "update", "replicasets", "", 200, 0),
		event(controllerUsers+"deployment-controller", manager, "update", "deployments", "status", 200, 0),
		event(controllerUsers+"replicaset-controller", manager, "get", "replicasets", "", 200, 0),
		event(controllerUsers+"replicaset-controller", manager, "create", "pods", "", 201, 0),
		event(admin, "kubectl/v1", "create", "pods", "eviction", 201, 0),
	}
	results := surgeRequests(all, 2)
	want := map[string]float64{
		"pods created": 0.5, "requests for its eviction": 2, "writes to ReplicaSets": 0.5, "writes to Deployments": 0.5, "requests of all clients": 4,
		"request to Evicted, p50": 0, "request to Evicted, p99": 0,
	}
	if diff := cmp.Diff(want, values(results)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if len(values(surgeRequests(all[7:], 1))) != 5 {
		t.Error("there are figures of eviction requests without such requests")
	}
	// Four clients with eight kinds of requests.
	if byClient := len(results) - len(want); byClient != 4+8 {
		t.Errorf("%d requests by client, want 12: %+v", byClient, results)
	}
}

func TestAvailabilityResults(t *testing.T) {
	start := time.Unix(1000, 0)
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
	const most, fewest, below = "most pods of a Deployment", "fewest ready pods", "with fewer than its replicas, mean"
	got := values(availabilityResults(record, start, start.Add(10*time.Second), 1))
	if diff := cmp.Diff(map[string]float64{most: 2, fewest: 0, below: 0.5}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	delete(record.Apps, "away")
	got = values(availabilityResults(record, start, start.Add(10*time.Second), 1))
	if diff := cmp.Diff(map[string]float64{most: 2, fewest: 1, below: 0}, got); diff != "" {
		t.Errorf("results without a gap (-want +got):\n%s", diff)
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
