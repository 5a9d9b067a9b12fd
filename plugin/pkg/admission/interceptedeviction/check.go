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

package interceptedeviction

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	api "k8s.io/kubernetes/pkg/apis/core"
	apiv1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// check returns an error if the eviction must not end this pod, although it was admitted: the name
// belongs to another pod by now, or an interceptor has registered for the pod. It makes no requests,
// because it is called in a transaction.
func (e *eviction) check(stored *api.Pod) error {
	pod := &v1.Pod{}
	if err := apiv1.Convert_core_Pod_To_v1_Pod(stored, pod, nil); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("converting pod %q: %w", stored.Name, err))
	}
	interceptors := ownInterceptors(pod)
	switch {
	case len(interceptors) == 0 || !mayBeHarmed(pod, nil):
		return nil
	case e.pod == nil || e.pod.UID != pod.UID:
		err := apierrors.NewNotFound(api.Resource("pods"), e.GetName())
		err.ErrStatus.Message += fmt.Sprintf(": the pod that was to be evicted has left, and its name belongs to another pod with interceptors: "+
			"set deleteOptions.preconditions.uid to %s to evict that one", pod.UID)
		return err
	case len(e.interceptors) == 0:
		return tooManyRequests(
			fmt.Sprintf("Cannot evict pod %s/%s: its interceptors (%s) have registered while it was evicted, and have to act first: try again",
				e.GetNamespace(), e.GetName(), strings.Join(interceptors, ", ")),
			"interceptors have registered while the pod was evicted")
	}
	return nil
}
