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

package auth

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// evictionInterceptors is a resource that no server lists, because it exists in
// authorization only.
var evictionInterceptors = coordinationv1alpha1.Resource(coordinationv1alpha1.EvictionInterceptorResource)

// isVirtualResource reports whether can-i has to ask for the resource as it is named,
// without a warning that the server does not have it.
func isVirtualResource(resource schema.GroupResource) bool { return resource == evictionInterceptors }
