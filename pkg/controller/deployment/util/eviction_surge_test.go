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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
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
		want    EvictionSurge
		wantErr string
	}{
		"none":      {rs: replicaSet(3, "2")},
		"one":       {rs: annotated(replicaSet(3, "2"), valid), want: EvictionSurge{Surge: 1, Of: 3, Desired: 2, Since: surgeBegan, Leaving: []types.UID{"a"}}},
		"all of it": {rs: annotated(replicaSet(3, "0"), `{"surge":3,"of":3,"desired":0,"since":null}`), want: EvictionSurge{Surge: 3, Of: 3}},

		"somebody else has scaled the ReplicaSet":                  {rs: annotated(replicaSet(2, "2"), valid)},
		"somebody else has scaled the Deployment, back to that":    {rs: annotated(replicaSet(3, "3"), valid)},
		"the ReplicaSet has lost the annotation of its Deployment": {rs: annotated(replicaSet(3, ""), valid)},
		"it never had one": {rs: annotated(replicaSet(3, ""), `{"surge":1,"of":3,"desired":-1,"since":null}`), want: EvictionSurge{Surge: 1, Of: 3, Desired: -1}},
		"no replicas":      {rs: annotated(&apps.ReplicaSet{}, valid)},

		"not JSON": {
			rs: annotated(replicaSet(3, "2"), "1"), wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: json: cannot unmarshal number into Go value of type util.EvictionSurge",
		},
		"negative": {
			rs:      annotated(replicaSet(3, "2"), `{"surge":-1,"of":3,"desired":2,"since":null}`),
			wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: surge is -1, must be from 0 to 1",
		},
		"all of it, although the Deployment wants some": {
			rs:      annotated(replicaSet(3, "3"), `{"surge":3,"of":3,"desired":3,"since":null}`),
			wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: surge is 3, must be from 0 to 0",
		},
		"less than nothing goes": {
			rs:      annotated(replicaSet(3, "2"), `{"surge":0,"of":3,"desired":2,"since":null,"going":-1}`),
			wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: going is -1, must not be negative",
		},
		"more than there are": {
			rs:      annotated(replicaSet(3, "2"), `{"surge":4,"of":3,"desired":2,"since":null}`),
			wantErr: "annotation deployment.kubernetes.io/eviction-surge of ReplicaSet default/web: surge is 4, must be from 0 to 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := EvictionSurgeOf(tc.rs)
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

// What a Deployment sees of a ReplicaSet is what it would be without the surge, whatever it
// does with it, and back again.
func TestWithoutEvictionSurge(t *testing.T) {
	rs := replicaSet(2, "2")
	SetEvictionSurge(rs, EvictionSurge{Surge: 1, Going: 1, Since: surgeBegan, Leaving: []types.UID{"a"}})
	if got, want := rs.Annotations[EvictionSurgeAnnotation], `{"surge":1,"of":3,"desired":2,"since":"2026-03-01T10:00:00Z","going":1,"leaving":["a"]}`; got != want {
		t.Errorf("annotation is %s, want %s", got, want)
	}
	rs.Status = apps.ReplicaSetStatus{Replicas: 4, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7}
	before := rs.DeepCopy()

	view, surge, err := WithoutEvictionSurge(rs)
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
	// One extra and one that goes: at most two that it need not know of. Ones that are
	// missing stay missing.
	want := apps.ReplicaSetStatus{Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 7}
	if diff := cmp.Diff(want, view.Status); diff != "" {
		t.Errorf("unexpected status (-want, +got):\n%s", diff)
	}

	if diff := cmp.Diff(before.Spec, WithEvictionSurge(view).Spec); diff != "" {
		t.Errorf("there and back makes another spec (-want, +got):\n%s", diff)
	}
	view.Spec.Replicas = ptr.To(int32(5))
	SetReplicasAnnotations(view, 5, 6)
	scaled := WithEvictionSurge(view)
	if got, err := EvictionSurgeOf(scaled); err != nil || *scaled.Spec.Replicas != 6 || got.Surge != 1 || len(got.Leaving) != 1 {
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
			view, surge, _ := WithoutEvictionSurge(rs)
			if *view.Spec.Replicas != 3 || view.Status.Replicas != 4 || surge.Of != 0 {
				t.Errorf("got %d replicas, %d in the status, surge %v; want all 3 and 4", *view.Spec.Replicas, view.Status.Replicas, surge)
			}
			// Whoever writes it next writes no surge.
			if got := WithEvictionSurge(view); *got.Spec.Replicas != 3 || len(got.Annotations) != 1 {
				t.Errorf("on the way back: %d replicas, annotations %v", *got.Spec.Replicas, got.Annotations)
			}
		})
	}
}

func TestSetEvictionSurgeThatSaysNothing(t *testing.T) {
	rs := annotated(replicaSet(3, "2"), "something")
	SetEvictionSurge(rs, EvictionSurge{Since: surgeBegan})
	if _, ok := rs.Annotations[EvictionSurgeAnnotation]; ok || *rs.Spec.Replicas != 3 {
		t.Errorf("got %d replicas, annotations %v", *rs.Spec.Replicas, rs.Annotations)
	}
}

// Neither a Deployment nor a rollback may hand a surge on.
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
