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

package util

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var surgeBegan = metav1.NewTime(time.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC).Local())

func replicaSet(replicas int32, desired string) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       apps.ReplicaSetSpec{Replicas: ptr.To(replicas)},
	}
	if desired != "" {
		rs.Annotations = map[string]string{DesiredReplicasAnnotation: desired}
	}
	return rs
}

func annotated(rs *apps.ReplicaSet, value string) *apps.ReplicaSet {
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, EvictionSurgeAnnotation, value)
	return rs
}

func TestEvictionSurgeOf(t *testing.T) {
	const valid = `{"surge":1,"of":3,"desired":2,"since":"2026-03-01T10:00:00Z","leaving":["a"]}`
	tests := map[string]struct {
		rs      *apps.ReplicaSet
		beyond  int
		want    EvictionSurge
		wantErr string
	}{
		"none":      {rs: replicaSet(3, "2")},
		"one":       {rs: annotated(replicaSet(3, "2"), valid), beyond: 1, want: EvictionSurge{Surge: 1, Of: 3, Desired: 2, Since: surgeBegan, Leaving: []types.UID{"a"}}},
		"all of it": {rs: annotated(replicaSet(3, "0"), `{"surge":3,"of":3,"desired":0,"since":null}`), beyond: 3, want: EvictionSurge{Surge: 3, Of: 3}},

		"limited to beyond":         {rs: annotated(replicaSet(3, "0"), `{"surge":3,"of":3,"desired":0,"since":null}`), beyond: 2, want: EvictionSurge{Surge: 2, Of: 3}},
		"nothing is beyond":         {rs: annotated(replicaSet(3, "2"), valid), beyond: 0, want: EvictionSurge{Surge: 0, Of: 3, Desired: 2, Since: surgeBegan, Leaving: []types.UID{"a"}}},
		"beyond is negative":        {rs: annotated(replicaSet(3, "2"), valid), beyond: -7, want: EvictionSurge{Surge: 0, Of: 3, Desired: 2, Since: surgeBegan, Leaving: []types.UID{"a"}}},
		"from an earlier version":   {rs: annotated(replicaSet(3, "2"), `{"surge":1,"of":3,"desired":2,"since":null,"going":2147483647}`), beyond: 1, want: EvictionSurge{Surge: 1, Of: 3, Desired: 2}},
		"as large as a number gets": {rs: annotated(replicaSet(math.MaxInt32, "1"), `{"surge":2147483647,"of":2147483647,"desired":1,"since":null}`), beyond: math.MaxInt, want: EvictionSurge{Surge: math.MaxInt32, Of: math.MaxInt32, Desired: 1}},

		"another client has scaled the ReplicaSet":                 {rs: annotated(replicaSet(2, "2"), valid)},
		"another client has scaled the Deployment, back to that":   {rs: annotated(replicaSet(3, "3"), valid)},
		"the ReplicaSet has lost the annotation of its Deployment": {rs: annotated(replicaSet(3, ""), valid)},
		"it never had one": {rs: annotated(replicaSet(3, ""), `{"surge":1,"of":3,"desired":-1,"since":null}`), beyond: 1, want: EvictionSurge{Surge: 1, Of: 3, Desired: -1}},
		"no replicas":      {rs: annotated(&apps.ReplicaSet{}, valid)},

		"not JSON": {
			rs: annotated(replicaSet(3, "2"), "1"), wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: json: cannot unmarshal number into Go value of type util.EvictionSurge",
		},
		"negative": {
			rs:      annotated(replicaSet(3, "2"), `{"surge":-1,"of":3,"desired":2,"since":null}`),
			wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: surge is -1, must be from 0 to 3",
		},
		"more than there are": {
			rs:      annotated(replicaSet(3, "2"), `{"surge":4,"of":3,"desired":2,"since":null}`),
			wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: surge is 4, must be from 0 to 3",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := EvictionSurgeOf(tc.rs, tc.beyond)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, message); diff != "" {
				t.Errorf("unexpected error (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected surge (-want, +got):\n%s", diff)
			}
		})
	}
}

// The view of a ReplicaSet is as if there was no surge, even after changes, and can be converted
// back.
func TestWithoutEvictionSurge(t *testing.T) {
	rs := replicaSet(2, "2")
	SetEvictionSurge(rs, EvictionSurge{Surge: 1, Since: surgeBegan, Leaving: []types.UID{"a"}})
	if got, want := rs.Annotations[EvictionSurgeAnnotation], `{"surge":1,"of":3,"desired":2,"since":"2026-03-01T10:00:00Z","leaving":["a"]}`; got != want {
		t.Errorf("annotation is %s, want %s", got, want)
	}
	rs.Status = apps.ReplicaSetStatus{Replicas: 4, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7}
	before := rs.DeepCopy()

	view, surge, err := WithoutEvictionSurge(rs, 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, rs); diff != "" {
		t.Errorf("the original was changed (-want, +got):\n%s", diff)
	}
	if surge.Surge != 1 {
		t.Errorf("surge is %d, want 1", surge.Surge)
	}
	if *view.Spec.Replicas != 2 {
		t.Errorf("the Deployment sees %d replicas, want 2", *view.Spec.Replicas)
	}
	// One extra and one leaving pod: at most two pods are hidden from the Deployment. Missing pods
	// stay missing.
	want := apps.ReplicaSetStatus{Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7}
	if diff := cmp.Diff(want, view.Status); diff != "" {
		t.Errorf("unexpected status (-want, +got):\n%s", diff)
	}

	if diff := cmp.Diff(before.Spec, WithEvictionSurge(view).Spec); diff != "" {
		t.Errorf("the round trip changes the spec (-want, +got):\n%s", diff)
	}
	view.Spec.Replicas = ptr.To(int32(5))
	SetReplicasAnnotations(view, 5, 6)
	scaled := WithEvictionSurge(view)
	if got, err := EvictionSurgeOf(scaled, 5); err != nil || *scaled.Spec.Replicas != 6 || got.Surge != 1 || len(got.Leaving) != 1 {
		t.Errorf("scaled to 5, it has %d replicas and the surge %v (%v)", *scaled.Spec.Replicas, got, err)
	}
	if *view.Spec.Replicas != 5 {
		t.Errorf("the view was changed: %d replicas", *view.Spec.Replicas)
	}
}

func TestWithoutVoidEvictionSurge(t *testing.T) {
	for name, value := range map[string]string{
		"broken": "{", "of another size": `{"surge":1,"of":2,"desired":2,"since":null}`, "empty": "", "negative": `{"surge":-1,"of":3,"desired":2,"since":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			rs := annotated(replicaSet(3, "2"), value)
			rs.Status.Replicas = 4
			view, surge, _ := WithoutEvictionSurge(rs, 5)
			if *view.Spec.Replicas != 3 || view.Status.Replicas != 4 || surge.Of != 0 {
				t.Errorf("got %d replicas, %d in the status, surge %v; want all 3 and 4", *view.Spec.Replicas, view.Status.Replicas, surge)
			}
			// The next write must contain no surge.
			if got := WithEvictionSurge(view); *got.Spec.Replicas != 3 || len(got.Annotations) != 1 {
				t.Errorf("converted back: %d replicas, annotations %v", *got.Spec.Replicas, got.Annotations)
			}
		})
	}
}

// A surge beyond the limit is reduced to the limit when read, and written like that.
func TestWithoutEvictionSurgeIsBounded(t *testing.T) {
	rs := annotated(replicaSet(10, "0"), `{"surge":10,"of":10,"desired":0,"leaving":["a"]}`)
	rs.Status = apps.ReplicaSetStatus{Replicas: 10, ReadyReplicas: 10, AvailableReplicas: 10}
	view, surge, err := WithoutEvictionSurge(rs, 2)
	if err != nil || *view.Spec.Replicas != 8 || surge.Surge != 2 {
		t.Errorf("got %d replicas, surge %v (%v), want 8 and 2", *view.Spec.Replicas, surge, err)
	}
	if back := WithEvictionSurge(view); *back.Spec.Replicas != 10 || back.Annotations[EvictionSurgeAnnotation] != `{"surge":2,"of":10,"desired":0,"since":null,"leaving":["a"]}` {
		t.Errorf("converted back: %d replicas, annotations %v", *back.Spec.Replicas, back.Annotations)
	}
	rs = annotated(replicaSet(10, "0"), `{"surge":10,"of":10,"desired":0}`)
	view, surge, _ = WithoutEvictionSurge(rs, 0)
	if _, recorded := view.Annotations[EvictionSurgeAnnotation]; recorded || *view.Spec.Replicas != 10 || surge.Of != 10 {
		t.Errorf("with no extra replica: %d replicas, surge %v, annotations %v", *view.Spec.Replicas, surge, view.Annotations)
	}
}

// A Deployment that was scaled to 0 has no extra replicas.
func TestWithEvictionSurgeOfNothing(t *testing.T) {
	view := annotated(replicaSet(0, "0"), `{"surge":1,"of":3,"desired":2,"leaving":["a"]}`)
	if back := WithEvictionSurge(view); *back.Spec.Replicas != 0 || len(back.Annotations) != 1 {
		t.Errorf("converted back: %d replicas, annotations %v", *back.Spec.Replicas, back.Annotations)
	}
}

func TestReplicasBeyond(t *testing.T) {
	tests := map[string]struct {
		size  *int32
		sizes []int32
		want  int
	}{
		"as many":                  {ptr.To[int32](3), []int32{2, 1}, 0},
		"more":                     {ptr.To[int32](3), []int32{2, 3}, 2},
		"fewer":                    {ptr.To[int32](3), []int32{2}, 0},
		"none":                     {ptr.To[int32](3), nil, 0},
		"the size is not known":    {nil, []int32{2}, 0},
		"more than fit in a field": {ptr.To[int32](1), []int32{math.MaxInt32, math.MaxInt32}, 2*math.MaxInt32 - 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sets := []*apps.ReplicaSet{{}}
			for _, size := range tc.sizes {
				sets = append(sets, replicaSet(size, ""))
			}
			if got := ReplicasBeyond(&apps.Deployment{Spec: apps.DeploymentSpec{Replicas: tc.size}}, sets); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// A pod that cannot be created and is not wanted is no failure of the Deployment, neither while it
// is extra nor after that, until the ReplicaSet has updated its status.
func TestOldFailure(t *testing.T) {
	failure := func(reason string, status v1.ConditionStatus) apps.ReplicaSetCondition {
		return apps.ReplicaSetCondition{Type: apps.ReplicaSetReplicaFailure, Status: status, Reason: reason}
	}
	other := apps.ReplicaSetCondition{Type: "Other", Status: v1.ConditionTrue, Reason: "FailedCreate"}
	tests := map[string]struct {
		surge      string
		replicas   int32
		counted    int32
		condition  apps.ReplicaSetCondition
		wantFailed bool
	}{
		"an extra pod cannot be created": {`{"surge":1,"of":3,"desired":2}`, 3, 2, failure("FailedCreate", v1.ConditionTrue), false},
		"a wanted pod cannot be created": {`{"surge":1,"of":3,"desired":2}`, 3, 1, failure("FailedCreate", v1.ConditionTrue), true},
		"the surge is over":              {"", 2, 2, failure("FailedCreate", v1.ConditionTrue), false},
		"one is missing":                 {"", 2, 1, failure("FailedCreate", v1.ConditionTrue), true},
		"a pod cannot be deleted":        {"", 2, 3, failure("FailedDelete", v1.ConditionTrue), true},
		"in a surge, a pod cannot be":    {`{"surge":1,"of":3,"desired":2}`, 3, 3, failure("FailedDelete", v1.ConditionTrue), true},
		"no failure":                     {"", 2, 2, failure("FailedCreate", v1.ConditionFalse), true},
		"another condition":              {"", 2, 2, other, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rs := replicaSet(tc.replicas, "2")
			if tc.surge != "" {
				annotated(rs, tc.surge)
			}
			rs.Status = apps.ReplicaSetStatus{Replicas: tc.counted, Conditions: []apps.ReplicaSetCondition{tc.condition}}
			before := rs.DeepCopy()
			view, _, err := WithoutEvictionSurge(rs, 1)
			if err != nil {
				t.Fatal(err)
			}
			if failed := len(view.Status.Conditions) > 0; failed != tc.wantFailed {
				t.Errorf("the Deployment sees %v", view.Status.Conditions)
			}
			if diff := cmp.Diff(before, rs); diff != "" {
				t.Errorf("the original was changed (-want, +got):\n%s", diff)
			}
		})
	}
}

// FuzzEvictionSurge writes arbitrary annotations: they must not remove a replica that the
// Deployment wants, and no number may become negative or overflow.
func FuzzEvictionSurge(f *testing.F) {
	for _, value := range []string{
		"", "{}", "17", "null", "[]", `{"surge":"1"}`, `{"surge":10,"of":10,"desired":0}`, `{"surge":10,"of":10,"desired":-1}`, `{"surge":9,"of":10,"desired":1}`,
		`{"surge":1,"of":10,"desired":10,"going":2147483647}`, `{"surge":-1,"of":10,"desired":10}`, `{"surge":2147483647,"of":2147483647,"desired":10}`,
		`{"surge":-2147483648,"of":10,"desired":10}`, `{"surge":1e9,"of":10}`, `{"surge":0,"of":10,"desired":10,"leaving":["a","a",""]}`, `{"surge":1,"of":10,"desired":10,"since":"9999-12-31T23:59:59Z"}`,
	} {
		for _, desired := range []string{"", "0", "1", "10", "-1", "x", "2147483647"} {
			f.Add(value, desired, int32(10), int32(10), int32(11))
			f.Add(value, desired, int32(10), int32(9), int32(0))
			f.Add(value, desired, int32(math.MaxInt32), int32(1), int32(math.MaxInt32))
		}
	}
	f.Fuzz(func(t *testing.T, value, desired string, replicas, size, counted int32) {
		replicas, size, counted = max(replicas, 0), max(size, 0), max(counted, 0)
		rs := annotated(replicaSet(replicas, desired), value)
		rs.Status = apps.ReplicaSetStatus{Replicas: counted, FullyLabeledReplicas: counted, ReadyReplicas: counted, AvailableReplicas: counted}
		d := &apps.Deployment{Spec: apps.DeploymentSpec{Replicas: &size}}
		view, surge, _ := WithoutEvictionSurge(rs, ReplicasBeyond(d, []*apps.ReplicaSet{rs}))
		if surge.Surge < 0 || *view.Spec.Replicas > replicas || *view.Spec.Replicas < min(size, replicas) {
			t.Errorf("of %d replicas, %d wanted, %d stay: surge %v", replicas, size, *view.Spec.Replicas, surge)
		}
		for _, count := range []int32{view.Status.Replicas, view.Status.FullyLabeledReplicas, view.Status.ReadyReplicas, view.Status.AvailableReplicas} {
			if count < min(counted, *view.Spec.Replicas) || count > counted {
				t.Errorf("%d are counted as %d of %d", counted, count, *view.Spec.Replicas)
			}
		}
		if back := WithEvictionSurge(view); *back.Spec.Replicas != replicas {
			t.Errorf("the round trip makes %d replicas of %d", *back.Spec.Replicas, replicas)
		}
		*view.Spec.Replicas = math.MaxInt32
		if back := WithEvictionSurge(view); *back.Spec.Replicas != math.MaxInt32 {
			t.Errorf("scaled to the maximum, it has %d replicas", *back.Spec.Replicas)
		}
	})
}

func TestSetEvictionSurgeThatSaysNothing(t *testing.T) {
	rs := annotated(replicaSet(3, "2"), "something")
	SetEvictionSurge(rs, EvictionSurge{Since: surgeBegan})
	if _, ok := rs.Annotations[EvictionSurgeAnnotation]; ok || *rs.Spec.Replicas != 3 {
		t.Errorf("got %d replicas, annotations %v", *rs.Spec.Replicas, rs.Annotations)
	}
}

// A surge is copied neither from a Deployment nor by a rollback.
func TestEvictionSurgeIsNotCopied(t *testing.T) {
	d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{EvictionSurgeAnnotation: "x", "other": "y"}}}
	rs := replicaSet(1, "1")
	copyDeploymentAnnotationsToReplicaSet(d, rs)
	if _, ok := rs.Annotations[EvictionSurgeAnnotation]; ok || rs.Annotations["other"] != "y" {
		t.Errorf("the ReplicaSet has %v", rs.Annotations)
	}
	d.Annotations = nil
	SetDeploymentAnnotationsTo(d, annotated(replicaSet(1, "1"), "x"))
	if _, ok := d.Annotations[EvictionSurgeAnnotation]; ok {
		t.Errorf("the Deployment has %v", d.Annotations)
	}
}
