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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
)

// groupMode says how the pods of a PodGroup may be disrupted.
type groupMode int

const (
	// groupUnknown: there is no such group, or the server does not serve groups.
	groupUnknown groupMode = iota
	// groupSingle: independently of each other, which is the default.
	groupSingle
	// groupAll: only all together.
	groupAll
)

// groupReader reads the mode of a PodGroup, in the version that the scheduler reads. Few requests are for pods of groups, so no cache is kept of these.
type groupReader func(ctx context.Context, namespace, name string) (groupMode, error)

func newGroupReader(client clientset.Interface) groupReader {
	return func(ctx context.Context, namespace, name string) (groupMode, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		group, err := client.SchedulingV1beta1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && group.Spec.DisruptionMode != nil && group.Spec.DisruptionMode.All != nil:
			return groupAll, nil
		case err == nil:
			return groupSingle, nil
		case !apierrors.IsNotFound(err):
			return groupUnknown, err
		}
		return groupUnknown, nil
	}
}

// asIndividual returns the pod of a request as it is for the decisions about the request: without its group if that
// lets its pods be disrupted independently. A request that has its interceptors was decided on.
func (c *Controller) asIndividual(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (*v1.Pod, error) {
	if pod == nil || pod.Spec.SchedulingGroup == nil {
		return pod, nil
	}
	if name := pod.Spec.SchedulingGroup.PodGroupName; !isInitialized(&request.Status) && name != nil {
		mode, err := c.groups(ctx, pod.Namespace, *name)
		if err != nil {
			return nil, fmt.Errorf("reading PodGroup %s of pod %s: %w", *name, pod.Name, err)
		}
		if mode != groupSingle {
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
	return fmt.Sprintf("Target Pod %s is part of a scheduling group. Pods of a scheduling group are not evicted individually.", targetName(request))
}
