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

	// Since is when the surge began or last made progress.
	Since metav1.Time `json:"since"`

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
	if surge.Of != *rs.Spec.Replicas {
		return EvictionSurge{}, nil
	}
	if surge.Surge < 0 || surge.Surge > surge.Of {
		return EvictionSurge{}, fmt.Errorf("annotation %s of ReplicaSet %s/%s: surge is %d, must be from 0 to %d", EvictionSurgeAnnotation, rs.Namespace, rs.Name, surge.Surge, surge.Of)
	}
	return surge, nil
}

// SetEvictionSurge records the surge on a ReplicaSet. One that says nothing is removed.
func SetEvictionSurge(rs *apps.ReplicaSet, surge EvictionSurge) {
	if surge.Surge == 0 && len(surge.Leaving) == 0 {
		delete(rs.Annotations, EvictionSurgeAnnotation)
		return
	}
	value, err := json.Marshal(surge)
	if err != nil {
		panic(fmt.Sprintf("an eviction surge has only fields that JSON knows: %v", err))
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations[EvictionSurgeAnnotation] = string(value)
}
