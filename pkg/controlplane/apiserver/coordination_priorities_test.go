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

package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A version without a priority gets no APIService and is not reachable. Ours comes last: clients
// without a version mean an older one.
func TestCoordinationVersionsHavePriorities(t *testing.T) {
	priorities := DefaultGenericAPIServicePriorities()
	ours, ok := priorities[schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1alpha1"}]
	if !ok {
		t.Fatal("v1alpha1 has no priority")
	}
	for _, version := range []string{"v1", "v1beta1", "v1alpha2"} {
		other := priorities[schema.GroupVersion{Group: "coordination.k8s.io", Version: version}]
		if ours.Group != other.Group {
			t.Errorf("the group has priority %d in v1alpha1 and %d in %s", ours.Group, other.Group, version)
		}
		if ours.Version >= other.Version {
			t.Errorf("v1alpha1 has priority %d, %s has %d, which must be more", ours.Version, version, other.Version)
		}
	}
}
