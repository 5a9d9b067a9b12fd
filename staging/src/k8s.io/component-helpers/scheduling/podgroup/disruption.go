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

// Package podgroup says how the pods of a PodGroup may be disrupted.
package podgroup

import (
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Mode says how the pods of a PodGroup may be disrupted.
type Mode int

const (
	// Unknown: a group of the hierarchy does not exist, is its own ancestor, or has a mode that is not known.
	Unknown Mode = iota
	// Single: independently of each other, which is the default.
	Single
	// All: only together with all pods of their group, or of one of its ancestors.
	All
)

// GetParent returns the CompositePodGroup of that name in the namespace of the PodGroup; nil if there is none.
type GetParent func(name string) (*schedulingv1alpha3.CompositePodGroup, error)

// ModeOf returns the mode of the pods of a group: that of the group and of its ancestors, of which the strictest counts,
// as for the preemption by the scheduler. An error is one of getParent, of which nothing is asked if the group has no parent.
func ModeOf(group *schedulingv1beta1.PodGroup, getParent GetParent) (Mode, error) {
	mode := Single
	if own := group.Spec.DisruptionMode; own != nil {
		mode = modeOf(own.Single != nil, own.All != nil)
	}
	seen := sets.New[string]()
	for name := group.Spec.ParentCompositePodGroupName; name != nil && mode == Single; {
		if seen.Has(*name) {
			return Unknown, nil
		}
		seen.Insert(*name)
		parent, err := getParent(*name)
		if err != nil || parent == nil {
			return Unknown, err
		}
		if own := parent.Spec.DisruptionMode; own != nil {
			mode = modeOf(own.Single != nil, own.All != nil)
		}
		name = parent.Spec.ParentCompositePodGroupName
	}
	return mode, nil
}

// modeOf returns the mode of which the API has these members. A later release may have others.
func modeOf(single, all bool) Mode {
	switch {
	case all:
		return All
	case single:
		return Single
	}
	return Unknown
}
