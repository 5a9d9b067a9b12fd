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
package main

import "fmt"

// container is the same everywhere: simulated nodes run no image.
const container = `containers: [{name: app, image: registry.k8s.io/pause}]`

// podManifest is a pod that names an interceptor.
func podManifest(name, interceptor string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  evictionInterceptors: [{name: %[2]s}]
  %[3]s
`, name, interceptor, container)
}

// protectedManifest is an application with one replica, whose strategy allows no second
// one in its place, and a budget that never lets it go.
func protectedManifest(name string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {%[2]s}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: %[1]s}}
`, name, container)
}
