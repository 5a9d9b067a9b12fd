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
	"context"
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/scheduling/podgroup"
)

// groupReader reads how the pods of a PodGroup may be disrupted. Few requests are for pods of groups, so no cache is kept
// of these.
type groupReader func(ctx context.Context, namespace, name string) (podgroup.Mode, error)

func newGroupReader(client clientset.Interface) groupReader {
	return func(ctx context.Context, namespace, name string) (podgroup.Mode, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return podgroup.Read(ctx, client, namespace, name)
	}
}

// asIndividual returns the pod of a request as it is for the decisions about the request: without its group if that
// and its ancestors let its pods be disrupted independently. A request that has its interceptors was decided on.
func (c *Controller) asIndividual(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (*v1.Pod, error) {
	if pod == nil || pod.Spec.SchedulingGroup == nil {
		return pod, nil
	}
	if name := pod.Spec.SchedulingGroup.PodGroupName; !isInitialized(&request.Status) && name != nil {
		mode, err := c.groups(ctx, pod.Namespace, *name)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		if mode != podgroup.Single {
			return pod, nil
		}
	} else if name == nil {
		return pod, nil
	}
	individual := *pod
	individual.Spec.SchedulingGroup = nil
	return &individual, nil
}

// groupMessage says why a pod of a group is not evicted.
func groupMessage(request *coordinationv1alpha1.EvictionRequest) string {
	return fmt.Sprintf("Target Pod %s references a SchedulingGroup whose pods are not evicted individually.", targetName(request))
}
