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

package evictionrequest

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

// missingLabels returns the labels of the pod that the request lacks or has with another value.
// Interceptors select requests by the labels of the pods (KEP-4563, Label Synchronization). Labels
// that only the request has are kept: former labels of the pod cannot be distinguished from labels
// that a requester has set.
func missingLabels(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) map[string]string {
	var missing map[string]string
	for key, value := range pod.Labels {
		if current, found := request.Labels[key]; found && current == value {
			continue
		}
		if missing == nil {
			missing = map[string]string{}
		}
		missing[key] = value
	}
	return missing
}
