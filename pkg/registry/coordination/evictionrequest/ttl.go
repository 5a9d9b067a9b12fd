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

	"k8s.io/apimachinery/pkg/runtime"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// NewTTL returns the function by which etcd removes a request when it has been finished for so long,
// without a call. Zero leaves that to the controller. A request with finalizers is never removed without
// those who have set them; the controller deletes it.
//
// The function returns seconds. It counts from the end of the request, not from the write: another write
// must not prolong it.
func NewTTL(ttl time.Duration) func(obj runtime.Object, existing uint64, update bool) (uint64, error) {
	return func(obj runtime.Object, _ uint64, _ bool) (uint64, error) {
		request, isRequest := obj.(*coordination.EvictionRequest)
		if !isRequest || ttl <= 0 || len(request.Finalizers) > 0 || request.DeletionTimestamp != nil {
			return 0, nil
		}
		finished := evictionrequesttools.FinalCondition(request.Status.Conditions)
		if finished == nil {
			return 0, nil
		}
		left := finished.LastTransitionTime.Add(ttl).Sub(StatusStrategy.Clock.Now())
		return uint64(min(max(left, time.Second), ttl) / time.Second), nil
	}
}
