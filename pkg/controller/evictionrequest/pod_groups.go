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
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/scheduling/podgroup"
)

// groupReader reads how the pods of a PodGroup may be disrupted, in the versions that the scheduler reads. Few requests are for pods
// of groups, so no cache is kept of these.
type groupReader func(ctx context.Context, namespace, name string) (podgroup.Mode, error)

func newGroupReader(client clientset.Interface) groupReader {
	return func(ctx context.Context, namespace, name string) (podgroup.Mode, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		group, err := client.SchedulingV1beta1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return podgroup.Unknown, nil
		case err != nil:
			return podgroup.Unknown, fmt.Errorf("reading PodGroup %s: %w", name, err)
		}
		return podgroup.ModeOf(group, func(parent string) (*schedulingv1alpha3.CompositePodGroup, error) {
			composite, err := client.SchedulingV1alpha3().CompositePodGroups(namespace).Get(ctx, parent, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil, nil // Or the server does not serve them any more.
			case err != nil:
				return nil, fmt.Errorf("reading CompositePodGroup %s: %w", parent, err)
			}
			return composite, nil
		})
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
	return fmt.Sprintf("Target Pod %s is part of a scheduling group. Pods of a scheduling group are not evicted individually.", targetName(request))
}
