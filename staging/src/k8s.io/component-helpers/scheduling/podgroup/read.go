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

package podgroup

import (
	"context"
	"fmt"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Read returns the mode of the pods of the group of this name, which is read in the versions that the scheduler reads.
func Read(ctx context.Context, client kubernetes.Interface, namespace, name string) (Mode, error) {
	group, err := client.SchedulingV1beta1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Unknown, nil
	case err != nil:
		return Unknown, fmt.Errorf("reading PodGroup %s: %w", name, err)
	}
	return ModeOf(group, func(parent string) (*schedulingv1alpha3.CompositePodGroup, error) {
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
