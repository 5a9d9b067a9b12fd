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

package nodemaintenance

import (
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isCanceledFor reports whether the request is canceled for this reason. After ValidationFailed, it stays canceled, also
// with a new requester: the pod cannot be evicted by a request. After NoRequesters, kube-apiserver lets a new request
// take its place while it is being deleted, whatever its finalizers wait for.
func isCanceledFor(request *coordinationv1alpha1.EvictionRequest, reason string) bool {
	canceled := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
	return canceled != nil && canceled.Status == metav1.ConditionTrue && canceled.Reason == reason
}

// obstacleMessage names the finalizers of a request that is being deleted.
func obstacleMessage(request *coordinationv1alpha1.EvictionRequest) string {
	return fmt.Sprintf("the EvictionRequest %s/%s of the pod is being deleted and waits for its finalizers %s: no new request is possible before it is canceled, or their owners remove them",
		request.Namespace, request.Name, joinNames(request.Finalizers))
}

// isRequested reports whether this controller is one of the requesters.
func isRequested(request *coordinationv1alpha1.EvictionRequest) bool {
	return request != nil && slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool {
		return r.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}
