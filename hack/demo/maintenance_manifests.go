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

import (
	"fmt"
	"strings"
)

// nodeManifests are the simulated nodes of the rack. kwok takes the addresses of pods from
// podCIDR; these are below those of the nodes that hack/cluster makes.
func nodeManifests(names []string) string {
	var manifests strings.Builder
	for i, name := range names {
		fmt.Fprintf(&manifests, `---
apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {%[2]s: maintenance, rack: "7", kubernetes.io/hostname: %[1]s, kubernetes.io/os: linux}
  annotations: {kwok.x-k8s.io/node: fake}
spec: {podCIDR: 10.63.%[3]d.0/24, podCIDRs: [10.63.%[3]d.0/24]}
status:
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
`, name, demoLabel, i)
	}
	return manifests.String()
}

// prefersRack brings the pods to the rack while they may go there, and elsewhere while they
// may not.
const prefersRack = `affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            preference: {matchExpressions: [{key: rack, operator: In, values: ["7"]}]}`

// shopManifests are an application with a single pod behind a Service. Simulated pods take
// the time that the annotations say; without them they would start and end at once.
var shopManifests = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations:
        pod-ready.stage.kwok.x-k8s.io/delay: %[2]s
        pod-delete.stage.kwok.x-k8s.io/delay: %[3]s
    spec:
      %[4]s
      %[5]s
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 80}]
`, shop, shopStart, shopEnd, container, prefersRack)

// workloadManifests are the applications on the rack. They differ in how their pods leave
// it.
var workloadManifests = shopManifests + `---
# Any pod may go at any time.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      ` + container + `
      ` + prefersRack + `
---
# Both pods must be there, so none may go, and there is no room for a third one while a
# new pod replaces an old one.
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      ` + container + `
      ` + prefersRack + `
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: api}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: api}}
---
# Its operator moves the data away before a pod goes.
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      evictionInterceptors: [{name: ` + migratorName + `}]
      ` + container + `
      ` + prefersRack + `
---
# All others need it: it goes last.
apiVersion: apps/v1
kind: Deployment
metadata: {name: dns}
spec:
  replicas: 1
  selector: {matchLabels: {app: dns}}
  template:
    metadata: {labels: {app: dns}}
    spec:
      priorityClassName: system-cluster-critical
      ` + container + `
      ` + prefersRack + `
`
