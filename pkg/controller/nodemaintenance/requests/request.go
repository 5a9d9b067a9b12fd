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

package requests

import (
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// IsOver reports whether a finished request leaves nothing to request for its pod: it says that the pod is gone, which
// the cache of pods does not have yet, or it was canceled because no request can evict the pod. It would stay canceled,
// also with a new requester.
//
// One that is being deleted is as good as absent: kube-apiserver lets a new one take its place, whatever its finalizers
// wait for, also if it says that the pod is gone and the pod runs. The evictionrequest-controller deletes it then.
func IsOver(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) bool {
	if request.DeletionTimestamp != nil && pod.DeletionTimestamp == nil {
		return false
	}
	final := evictionrequest.FinalCondition(request.Status.Conditions)
	return final.Type == string(coordinationv1alpha1.EvictionRequestConditionEvicted) || final.Reason == coordinationv1alpha1.EvictionRequestReasonValidationFailed
}

// ObstacleMessage names the finalizers of a request that is being deleted.
func ObstacleMessage(request *coordinationv1alpha1.EvictionRequest) string {
	return fmt.Sprintf("the EvictionRequest %s/%s of the pod is being deleted and waits for its finalizers %s: no new request is possible before it is canceled, or their owners remove them",
		request.Namespace, request.Name, status.JoinNames(request.Finalizers))
}

// IsRequested reports whether this controller is one of the requesters.
func IsRequested(request *coordinationv1alpha1.EvictionRequest) bool {
	return request != nil && slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool {
		return r.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}
