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
	apps "k8s.io/api/apps/v1"

	"k8s.io/component-helpers/coordination/evictioninterceptor"
)

func init() {
	// It says something about the Deployment, and a rollback must not bring an old one back.
	annotationsToSkip[evictioninterceptor.DeploymentPacingAnnotation] = true
}

// PacesEvictions reports whether a Deployment lets its pods leave one after another, or as many as it permits to
// be unavailable: it starts no replacements first, because maxSurge is 0, but replaces its pods step by step in
// rollouts. A single pod waits for no other, and with Recreate the owner accepts that all pods are gone.
func PacesEvictions(d *apps.Deployment) bool {
	return d.DeletionTimestamp == nil && IsRollingUpdate(d) && MaxSurge(*d) == 0 && *d.Spec.Replicas > 1 &&
		!evictioninterceptor.IsPacingDisabled(d.Annotations, evictioninterceptor.DeploymentPacingAnnotation)
}
