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

package evictioninterceptor

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
)

// DeploymentPacingAnnotation, of a Deployment, with the value EvictionPacingDisabled, turns off that its
// pods wait for each other before they are evicted (feature gate DeploymentPodSurge), where the Deployment
// starts no replacement first. It is read at each decision, so it also applies to pods that wait. The owner
// of the Deployment writes it; other values have no effect. It is what
// coordinationv1alpha1.EvictionPacingAnnotation is for a StatefulSet, which has the same values.
const DeploymentPacingAnnotation = "deployment.kubernetes.io/eviction-pacing"

// IsPacingDisabled reports whether a workload with these annotations has opted out by the annotation with this key.
func IsPacingDisabled(annotations map[string]string, key string) bool {
	return annotations[key] == coordinationv1alpha1.EvictionPacingDisabled
}
