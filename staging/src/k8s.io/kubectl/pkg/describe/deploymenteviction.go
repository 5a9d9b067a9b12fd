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

package describe

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// deploymentEvictionInProgress is True while a Deployment starts replacements for pods whose eviction
// is requested.
const deploymentEvictionInProgress appsv1.DeploymentConditionType = "EvictionInProgress"

// printDeploymentEviction prints the progress of the replacements below the table of conditions,
// which has no column for messages. It prints nothing for other Deployments.
func printDeploymentEviction(w PrefixWriter, conditions []appsv1.DeploymentCondition) {
	for _, condition := range conditions {
		if condition.Type == deploymentEvictionInProgress && condition.Status == corev1.ConditionTrue && condition.Message != "" {
			printTextMultiline(w, LEVEL_0, "Eviction In Progress", condition.Message)
		}
	}
}
