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

package maintenance

import (
	"errors"
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// resource is NodeMaintenance in URLs and messages.
const resource = "nodemaintenances"

// qualifiedResource is for requests that do not use the typed client: other projects have a resource
// of the same name, which is the only one while the gates are off.
const qualifiedResource = resource + "." + coordinationv1alpha1.GroupName

// budgetResource is NodeMaintenanceBudget in URLs and messages.
const budgetResource = "nodemaintenancebudgets"

// errNotServed is the error on a server without the API.
var errNotServed = errors.New(`the server does not serve NodeMaintenance (coordination.k8s.io/v1alpha1): ` +
	`enable its feature gates EvictionRequestAPI and DeclarativeNodeMaintenance in kube-apiserver and kube-controller-manager, ` +
	`and --runtime-config=coordination.k8s.io/v1alpha1=true in kube-apiserver, or use "kubectl drain"`)

// requireServed returns an error unless the server serves NodeMaintenances. If the user may not read
// the discovery document, the next request will fail if the API is not served.
func requireServed(client kubernetes.Interface) error {
	resources, err := servedResources(client)
	if err != nil || resources == nil || serves(resources, resource) {
		return err
	}
	return errNotServed
}

// servedResources asks the server itself what it serves: the discovery cache of kubectl can be hours
// old. The list is nil if the user may not read the discovery document.
func servedResources(client kubernetes.Interface) (*metav1.APIResourceList, error) {
	resources, err := client.Discovery().ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNotServed
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking the server whether it serves NodeMaintenance: %w", err)
	}
	return resources, nil
}

func serves(resources *metav1.APIResourceList, name string) bool {
	return slices.ContainsFunc(resources.APIResources, func(served metav1.APIResource) bool { return served.Name == name })
}
