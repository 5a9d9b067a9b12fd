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

// EvictionSurgeAnnotation is set on a ReplicaSet that the Deployment controller has scaled up
// beyond its wanted size, because pods are about to be evicted. Its value is an EvictionSurge in
// JSON. The Deployment controller writes it together with spec.replicas.
const EvictionSurgeAnnotation = "deployment.kubernetes.io/eviction-surge"

func init() {
	// The annotation belongs to one ReplicaSet: it is neither copied from the Deployment to new
	// ReplicaSets nor copied back by a rollback.
	annotationsToSkip[EvictionSurgeAnnotation] = true
}

// EvictionSurge describes the replicas of a ReplicaSet that exist only until pods that are about to
// be evicted have left ("Pod Surge Example" in KEP-4563).
type EvictionSurge struct {
	// Surge is how many of spec.replicas are extra. It is not negative, and 0 if pods are still
	// leaving but no replica is extra any more.
	Surge int32 `json:"surge"`

	// Of is the value of spec.replicas that was written together with this surge. If it differs
	// from spec.replicas, another client has scaled the ReplicaSet, such as a controller manager
	// without this feature, and no replica is extra.
	Of int32 `json:"of"`

	// Desired is the value of DesiredReplicasAnnotation when this surge was written. If it differs
	// from the annotation, a controller manager without this feature has scaled the Deployment,
	// and no replica is extra, even if Of happens to match.
	Desired int32 `json:"desired"`

	// Since is when the surge began or last made progress.
	Since metav1.Time `json:"since"`

	// Ending is true from when extra replicas are removed until the ReplicaSet has deleted their
	// pods and its status no longer counts them.
	Ending bool `json:"ending,omitempty"`

	// Leaving are the UIDs of the pods whose replacements are available. A scale-down deletes
	// them first. At most MaxLeaving.
	Leaving []types.UID `json:"leaving,omitempty"`

	// Misplaced are those of Leaving that came to a node that a maintenance claims, and make room for
	// another replacement. That they leave is no progress.
	Misplaced []types.UID `json:"misplaced,omitempty"`
}

// IsEmpty reports whether there is nothing to record.
func (s EvictionSurge) IsEmpty() bool { return s.Surge == 0 && !s.Ending && len(s.Leaving) == 0 }

// MaxLeaving limits the list of leaving pods, and so the size of the annotation. A ReplicaSet
// deletes no more pods at a time.
const MaxLeaving = 500

// failedCreate and failedDelete are the reasons of the condition ReplicaFailure of a ReplicaSet that
// cannot create or delete pods.
const (
	failedCreate = "FailedCreate"
	failedDelete = "FailedDelete"
)

// ReplicasBeyond returns by how many replicas the ReplicaSets of a Deployment together exceed its
// size. No more than that can be extra, whatever the annotations say. Without this limit, a client
// that may annotate a ReplicaSet could have all of its pods deleted.
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

// EvictionSurgeOf returns the surge of a ReplicaSet. It is zero if there is none or if it is not
// valid any more. The surge is limited to beyond: the result of ReplicasBeyond, less the surges of
// other ReplicaSets. The error describes an annotation that cannot be parsed or is out of range; it
// is ignored then.
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

// IsLeaving reports whether the record of a surge lists a pod as leaving, whether or not the record is still
// valid: the ReplicaSet may have sent its deletion when it was.
func IsLeaving(rs *apps.ReplicaSet, uid types.UID) bool {
	var surge EvictionSurge
	value, ok := rs.Annotations[EvictionSurgeAnnotation]
	return ok && json.Unmarshal([]byte(value), &surge) == nil && slices.Contains(surge.Leaving, uid)
}

// WithEvictionSurge reverses WithoutEvictionSurge. spec.replicas of the view may have changed in
// between. It returns a copy if there is a surge to add.
func WithEvictionSurge(view *apps.ReplicaSet) *apps.ReplicaSet {
	var surge EvictionSurge
	value, ok := view.Annotations[EvictionSurgeAnnotation]
	if !ok || json.Unmarshal([]byte(value), &surge) != nil {
		return view
	}
	rs := view.DeepCopy()
	if *rs.Spec.Replicas == 0 {
		surge = EvictionSurge{} // There is nothing to replace.
	}
	SetEvictionSurge(rs, surge)
	return rs
}

// SetEvictionSurge adds a surge to a ReplicaSet: spec.replicas must be the number that the
// Deployment wants, and becomes the sum. Of and Desired are filled in. An empty surge is removed.
func SetEvictionSurge(rs *apps.ReplicaSet, surge EvictionSurge) {
	surge.Surge = min(surge.Surge, math.MaxInt32-*rs.Spec.Replicas)
	replicas := *rs.Spec.Replicas + surge.Surge
	rs.Spec.Replicas = &replicas
	recordEvictionSurge(rs, surge)
}

// recordEvictionSurge writes the annotation without changing spec.replicas.
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

// WithoutEvictionSurge returns the ReplicaSet as its Deployment wants it, and the surge that was
// removed, which is limited to beyond, as in EvictionSurgeOf. spec.replicas is reduced by the
// surge, and so are the counters of the status that exceed it. The Deployment can then be
// reconciled as if there was no surge. WithEvictionSurge reverses this.
//
// The counters do not say which pods are extra. A counter below the wanted number is not changed,
// because pods are missing whether or not they are the extra ones.
func WithoutEvictionSurge(rs *apps.ReplicaSet, beyond int) (*apps.ReplicaSet, EvictionSurge, error) {
	if _, ok := rs.Annotations[EvictionSurgeAnnotation]; !ok {
		return withoutOldFailure(rs), EvictionSurge{}, nil
	}
	surge, err := EvictionSurgeOf(rs, beyond)
	view := rs.DeepCopy()
	// Write it even if the annotation is invalid or exceeds the limit, so that WithEvictionSurge
	// reads the effective surge.
	recordEvictionSurge(view, surge)
	*view.Spec.Replicas -= surge.Surge
	// Leaving pods are counted until the ReplicaSet has deleted them.
	extra := int(surge.Surge) + len(surge.Leaving)
	if surge.Ending {
		extra = math.MaxInt32
	}
	for _, count := range []*int32{&view.Status.Replicas, &view.Status.FullyLabeledReplicas, &view.Status.ReadyReplicas, &view.Status.AvailableReplicas} {
		*count -= int32(min(max(int(*count)-int(*view.Spec.Replicas), 0), extra))
	}
	return withoutOldFailure(view), surge, err
}

// withoutOldFailure removes the failure to create pods if the status counts at least the wanted
// replicas: the failure concerns extra pods, or ones that are no longer extra.
func withoutOldFailure(rs *apps.ReplicaSet) *apps.ReplicaSet {
	if rs.Spec.Replicas == nil || rs.Status.Replicas < *rs.Spec.Replicas || CreateFailureOf(rs) == nil {
		return rs
	}
	view := rs.DeepCopy()
	view.Status.Conditions = slices.DeleteFunc(view.Status.Conditions, isFailure(failedCreate))
	return view
}

// CreateFailureOf returns the condition of a ReplicaSet that cannot create pods, or nil.
func CreateFailureOf(rs *apps.ReplicaSet) *apps.ReplicaSetCondition {
	return failureOf(rs, failedCreate)
}

// DeleteFailureOf returns the condition of a ReplicaSet that cannot delete pods, or nil.
func DeleteFailureOf(rs *apps.ReplicaSet) *apps.ReplicaSetCondition {
	return failureOf(rs, failedDelete)
}

func failureOf(rs *apps.ReplicaSet, reason string) *apps.ReplicaSetCondition {
	if i := slices.IndexFunc(rs.Status.Conditions, isFailure(reason)); i >= 0 {
		return &rs.Status.Conditions[i]
	}
	return nil
}

func isFailure(reason string) func(apps.ReplicaSetCondition) bool {
	return func(c apps.ReplicaSetCondition) bool {
		return c.Type == apps.ReplicaSetReplicaFailure && c.Status == v1.ConditionTrue && c.Reason == reason
	}
}

// desiredReplicas returns the value of DesiredReplicasAnnotation, or -1 if it is missing or
// invalid, as on a ReplicaSet that the Deployment has adopted.
func desiredReplicas(rs *apps.ReplicaSet) int32 {
	if desired, ok, err := getNonNegativeInt32FromAnnotation(rs, DesiredReplicasAnnotation); ok && err == nil {
		return desired
	}
	return -1
}
