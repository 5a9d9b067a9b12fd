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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
)

// EvictionCallTime returns when pods/eviction was last called for the pod of the request, up to a
// minute too early. known is false if the request does not say so.
func EvictionCallTime(request *coordinationv1alpha1.EvictionRequest) (called time.Time, known bool) {
	called, err := time.Parse(time.RFC3339, request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation])
	return called, err == nil
}
