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
	"math"
	"slices"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
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
	// spec.replicas, another client has scaled the ReplicaSet, such as a controller manager
	// that knows nothing of this, and nothing is extra.
	Of int32 `json:"of"`

	// Desired is what the annotation DesiredReplicasAnnotation said when this was written.
	// If it says something else, the Deployment was scaled by a controller manager that knows
	// nothing of this, and nothing is extra, even if Of happens to be right.
	Desired int32 `json:"desired"`

	// Since is when the surge began or last made progress.
	Since metav1.Time `json:"since"`

	// Ending is true from when replicas that were extra are not any more until the ReplicaSet
	// has deleted their pods, and its status does not count them.
	Ending bool `json:"ending,omitempty"`

	// Leaving are the UIDs of the pods whose replacements are available. A scale-down takes
	// them first. At most MaxLeaving.
	Leaving []types.UID `json:"leaving,omitempty"`
}

// IsEmpty reports whether there is nothing to record.
func (s EvictionSurge) IsEmpty() bool { return s.Surge == 0 && !s.Ending && len(s.Leaving) == 0 }

// MaxLeaving bounds the list of leaving pods, and with it the annotation. A ReplicaSet
// deletes no more pods at a time.
const MaxLeaving = 500

// failedCreate is the reason of the condition ReplicaFailure of a ReplicaSet whose pods
// cannot be created.
const failedCreate = "FailedCreate"

// ReplicasBeyond returns how many replicas the ReplicaSets of a Deployment have together
// beyond its size. No more than that can be extra, whatever a ReplicaSet says: without this
// bound, whoever may annotate a ReplicaSet could have all of its pods deleted.
func ReplicasBeyond(d *apps.Deployment, replicaSets []*apps.ReplicaSet) int {
	if d.Spec.Replicas == nil {
		return 0
	}
	beyond := -int(*d.Spec.Replicas)
	for _, rs := range replicaSets {
		if rs.Spec.Replicas != nil {
			beyond += int(*rs.Spec.Replicas)
		}
	}
	return max(beyond, 0)
}

// EvictionSurgeOf returns the surge of a ReplicaSet, which is zero if it has none, or none
// that holds. The surge is at most beyond, which is what ReplicasBeyond returns, less what
// other ReplicaSets have of that. The error says what is wrong with an annotation that cannot
// be read; it has no effect then.
func EvictionSurgeOf(rs *apps.ReplicaSet, beyond int) (EvictionSurge, error) {
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
	if surge.Surge < 0 || surge.Surge > surge.Of {
		return EvictionSurge{}, fmt.Errorf("annotation %s of ReplicaSet %s/%s: surge is %d, must be from 0 to %d", EvictionSurgeAnnotation, rs.Namespace, rs.Name, surge.Surge, surge.Of)
	}
	surge.Surge = int32(min(int(surge.Surge), max(beyond, 0)))
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
	if *rs.Spec.Replicas == 0 {
		surge = EvictionSurge{} // Nothing is to be replaced.
	}
	SetEvictionSurge(rs, surge)
	return rs
}

// SetEvictionSurge makes so many replicas of a ReplicaSet extra: spec.replicas must be what
// the Deployment wants of it, and becomes the sum. Of and Desired are filled in. A surge
// that says nothing is removed.
func SetEvictionSurge(rs *apps.ReplicaSet, surge EvictionSurge) {
	surge.Surge = min(surge.Surge, math.MaxInt32-*rs.Spec.Replicas)
	replicas := *rs.Spec.Replicas + surge.Surge
	rs.Spec.Replicas = &replicas
	recordEvictionSurge(rs, surge)
}

// recordEvictionSurge writes down that so many of the replicas that there are are extra.
func recordEvictionSurge(rs *apps.ReplicaSet, surge EvictionSurge) {
	if surge.IsEmpty() {
		delete(rs.Annotations, EvictionSurgeAnnotation)
		return
	}
	surge.Of = *rs.Spec.Replicas
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
// surge that was taken out, which is at most beyond, as for EvictionSurgeOf: spec.replicas is
// smaller by the surge, and so are the counters of the status where they are beyond that.
// What a Deployment does with it, it does as if there was no surge. WithEvictionSurge is the
// way back.
//
// The counters do not say which pods are extra. One that counts fewer than are wanted stays
// as it is: what is missing is missing, whoever the missing pods are.
func WithoutEvictionSurge(rs *apps.ReplicaSet, beyond int) (*apps.ReplicaSet, EvictionSurge, error) {
	if _, ok := rs.Annotations[EvictionSurgeAnnotation]; !ok {
		return withoutOldFailure(rs), EvictionSurge{}, nil
	}
	surge, err := EvictionSurgeOf(rs, beyond)
	view := rs.DeepCopy()
	// Also where the annotation is void, or says more than it may: nobody must read it again.
	recordEvictionSurge(view, surge)
	*view.Spec.Replicas -= surge.Surge
	// Pods that leave are counted until the ReplicaSet has deleted them.
	extra := int(surge.Surge) + len(surge.Leaving)
	if surge.Ending {
		extra = math.MaxInt32
	}
	for _, count := range []*int32{&view.Status.Replicas, &view.Status.FullyLabeledReplicas, &view.Status.ReadyReplicas, &view.Status.AvailableReplicas} {
		*count -= int32(min(max(int(*count)-int(*view.Spec.Replicas), 0), extra))
	}
	return withoutOldFailure(view), surge, err
}

// withoutOldFailure returns the ReplicaSet without the failure to create pods that are not
// wanted: extra ones, or ones that are not extra any more and still in the status. The
// Deployment has all that it wants.
func withoutOldFailure(rs *apps.ReplicaSet) *apps.ReplicaSet {
	if rs.Spec.Replicas == nil || rs.Status.Replicas < *rs.Spec.Replicas || CreateFailureOf(rs) == nil {
		return rs
	}
	view := rs.DeepCopy()
	view.Status.Conditions = slices.DeleteFunc(view.Status.Conditions, isCreateFailure)
	return view
}

// CreateFailureOf returns the condition of a ReplicaSet that cannot create pods, or nil.
func CreateFailureOf(rs *apps.ReplicaSet) *apps.ReplicaSetCondition {
	if i := slices.IndexFunc(rs.Status.Conditions, isCreateFailure); i >= 0 {
		return &rs.Status.Conditions[i]
	}
	return nil
}

func isCreateFailure(c apps.ReplicaSetCondition) bool {
	return c.Type == apps.ReplicaSetReplicaFailure && c.Status == v1.ConditionTrue && c.Reason == failedCreate
}

// desiredReplicas returns the value of DesiredReplicasAnnotation, or -1 where there is none
// that can be read, as on a ReplicaSet that its Deployment has adopted.
func desiredReplicas(rs *apps.ReplicaSet) int32 {
	if desired, ok, err := getNonNegativeInt32FromAnnotation(rs, DesiredReplicasAnnotation); ok && err == nil {
		return desired
	}
	return -1
}
