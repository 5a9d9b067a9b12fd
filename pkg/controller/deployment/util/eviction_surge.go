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
	"encoding/json"
	"fmt"
	"slices"

	apps "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EvictionSurgeAnnotation is on a ReplicaSet that its Deployment has scaled beyond what it
// wants of it, because pods are about to be evicted. Its value is an EvictionSurge in JSON.
// The Deployment controller writes it, together with spec.replicas.
const EvictionSurgeAnnotation = "deployment.kubernetes.io/eviction-surge"

func init() {
	// It belongs to one ReplicaSet: neither does a Deployment hand it down, nor does it come
	// back from there in a rollback.
	annotationsToSkip[EvictionSurgeAnnotation] = true
}

// EvictionSurge is how many replicas of a ReplicaSet are there only until pods that are
// about to be evicted have gone ("Pod Surge Example" in KEP-4563).
type EvictionSurge struct {
	// Surge is how many of spec.replicas are extra. Not negative; 0 where pods are leaving
	// and nothing is extra any more.
	Surge int32 `json:"surge"`

	// Of is spec.replicas as it was written together with this. If it differs from
	// spec.replicas, somebody else has scaled the ReplicaSet, such as a controller manager
	// that knows nothing of this, and nothing is extra.
	Of int32 `json:"of"`

	// Desired is what the annotation DesiredReplicasAnnotation said when this was written.
	// If it says something else, the Deployment was scaled by a controller manager that knows
	// nothing of this, and nothing is extra, even if Of happens to be right.
	Desired int32 `json:"desired"`

	// Since is when the surge began or last made progress.
	Since metav1.Time `json:"since"`

	// Going is how many replicas were extra, have been given back, and may still be counted in
	// the status. Not negative; 0 when the status has caught up.
	Going int32 `json:"going,omitempty"`

	// Leaving are the UIDs of the pods whose replacements are available. A scale-down takes
	// them first. At most MaxLeaving.
	Leaving []types.UID `json:"leaving,omitempty"`
}

// MaxLeaving bounds the list of leaving pods, and with it the annotation. A ReplicaSet
// deletes no more pods at a time.
const MaxLeaving = 500

// EvictionSurgeOf returns the surge of a ReplicaSet, which is zero if it has none, or none
// that holds. The error says what is wrong with an annotation that cannot be read; it has
// no effect then.
func EvictionSurgeOf(rs *apps.ReplicaSet) (EvictionSurge, error) {
	value, ok := rs.Annotations[EvictionSurgeAnnotation]
	if !ok || rs.Spec.Replicas == nil {
		return EvictionSurge{}, nil
	}
	var surge EvictionSurge
	if err := json.Unmarshal([]byte(value), &surge); err != nil {
		return EvictionSurge{}, fmt.Errorf("annotation %s of ReplicaSet %s/%s: %w", EvictionSurgeAnnotation, rs.Namespace, rs.Name, err)
	}
	if surge.Of != *rs.Spec.Replicas || surge.Desired != desiredReplicas(rs) {
		return EvictionSurge{}, nil
	}
	if surge.Going < 0 {
		return EvictionSurge{}, fmt.Errorf("annotation %s of ReplicaSet %s/%s: going is %d, must not be negative", EvictionSurgeAnnotation, rs.Namespace, rs.Name, surge.Going)
	}
	// What is not extra is what the Deployment wants: nobody can have all replicas taken
	// back by writing that they are extra.
	if extra := max(surge.Of-max(surge.Desired, 0), 0); surge.Surge < 0 || surge.Surge > extra {
		return EvictionSurge{}, fmt.Errorf("annotation %s of ReplicaSet %s/%s: surge is %d, must be from 0 to %d", EvictionSurgeAnnotation, rs.Namespace, rs.Name, surge.Surge, extra)
	}
	return surge, nil
}

// WithEvictionSurge is the way back from WithoutEvictionSurge, after spec.replicas of the
// view may have changed. It returns a copy.
func WithEvictionSurge(view *apps.ReplicaSet) *apps.ReplicaSet {
	var surge EvictionSurge
	value, ok := view.Annotations[EvictionSurgeAnnotation]
	if !ok || json.Unmarshal([]byte(value), &surge) != nil {
		return view
	}
	rs := view.DeepCopy()
	SetEvictionSurge(rs, surge)
	return rs
}

// SetEvictionSurge makes so many replicas of a ReplicaSet extra: spec.replicas must be what
// the Deployment wants of it, and becomes the sum. Of and Desired are filled in. A surge
// that says nothing is removed.
func SetEvictionSurge(rs *apps.ReplicaSet, surge EvictionSurge) {
	if surge.Surge == 0 && surge.Going == 0 && len(surge.Leaving) == 0 {
		delete(rs.Annotations, EvictionSurgeAnnotation)
		return
	}
	replicas := *rs.Spec.Replicas + surge.Surge
	rs.Spec.Replicas = &replicas
	surge.Of = replicas
	surge.Desired = desiredReplicas(rs)
	value, err := json.Marshal(surge)
	if err != nil {
		panic(fmt.Sprintf("an eviction surge has only fields that JSON knows: %v", err))
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations[EvictionSurgeAnnotation] = string(value)
}

// WithoutEvictionSurge returns a ReplicaSet as its Deployment wants it, together with the
// surge that was taken out: spec.replicas is smaller by the surge, and so are the counters
// of the status where they are beyond that. What a Deployment does with it, it does as if
// there was no surge. WithEvictionSurge is the way back.
//
// The counters do not say which pods are extra. One that counts fewer than are wanted stays
// as it is: what is missing is missing, whoever the missing pods are.
func WithoutEvictionSurge(rs *apps.ReplicaSet) (*apps.ReplicaSet, EvictionSurge, error) {
	if _, ok := rs.Annotations[EvictionSurgeAnnotation]; !ok {
		return rs, EvictionSurge{}, nil
	}
	surge, err := EvictionSurgeOf(rs)
	view := rs.DeepCopy()
	if surge.Of == 0 { // Void: nobody must take it for one again.
		delete(view.Annotations, EvictionSurgeAnnotation)
		return view, surge, err
	}
	*view.Spec.Replicas -= surge.Surge
	extra := surge.Surge + surge.Going
	for _, count := range []*int32{&view.Status.Replicas, &view.Status.FullyLabeledReplicas, &view.Status.ReadyReplicas, &view.Status.AvailableReplicas} {
		*count -= min(max(*count-*view.Spec.Replicas, 0), extra)
	}
	if surge.Surge > 0 && view.Status.Replicas >= *view.Spec.Replicas {
		// What cannot be created is extra. The Deployment has all that it wants.
		view.Status.Conditions = slices.DeleteFunc(view.Status.Conditions, func(c apps.ReplicaSetCondition) bool { return c.Type == apps.ReplicaSetReplicaFailure })
	}
	return view, surge, err
}

// desiredReplicas returns the value of DesiredReplicasAnnotation, or -1 where there is none
// that can be read, as on a ReplicaSet that its Deployment has adopted.
func desiredReplicas(rs *apps.ReplicaSet) int32 {
	if desired, ok, err := getNonNegativeInt32FromAnnotation(rs, DesiredReplicasAnnotation); ok && err == nil {
		return desired
	}
	return -1
}
