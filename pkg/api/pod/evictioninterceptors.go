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

package pod

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// dropDisabledEvictionInterceptors clears the field while its gate is off, unless
// the stored object has it already: an object must stay writable after a rollback.
func dropDisabledEvictionInterceptors(podSpec, oldPodSpec *api.PodSpec) {
	if utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) || evictionInterceptorsInUse(oldPodSpec) {
		return
	}
	podSpec.EvictionInterceptors = nil
}

func evictionInterceptorsInUse(podSpec *api.PodSpec) bool {
	return podSpec != nil && len(podSpec.EvictionInterceptors) > 0
}
