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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// resource is NodeMaintenance in URLs and messages.
const resource = "nodemaintenances"

// qualifiedResource is for requests that do not use the typed client: other projects have a resource
// of the same name, which is the only one while the gates are off.
const qualifiedResource = resource + "." + coordinationv1alpha1.GroupName

// errNotServed is the error on a server without the API.
var errNotServed = errors.New(`the server does not serve NodeMaintenance (coordination.k8s.io/v1alpha1): ` +
	`enable its feature gates EvictionRequestAPI and DeclarativeNodeMaintenance in kube-apiserver and kube-controller-manager, ` +
	`and --runtime-config=coordination.k8s.io/v1alpha1=true in kube-apiserver, or use "kubectl drain"`)

// servedClient returns a client, if the server serves NodeMaintenances.
func (e *environment) servedClient() (kubernetes.Interface, error) {
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	return client, requireServed(client)
}

// requireServed asks the server itself: the discovery cache of kubectl can be hours old. If the
// user may not read the discovery document, the next request will fail if the API is not served.
func requireServed(client kubernetes.Interface) error {
	resources, err := client.Discovery().ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return errNotServed
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("asking the server whether it serves NodeMaintenance: %w", err)
	}
	for _, served := range resources.APIResources {
		if served.Name == resource {
			return nil
		}
	}
	return errNotServed
}
