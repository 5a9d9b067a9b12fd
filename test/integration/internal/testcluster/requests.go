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

package testcluster

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
)

// ApplyRequesters applies the entries of a requester to the request for a pod by Server-Side Apply.
// The first call creates the request. A call without requesters removes the entries.
func (c *Cluster) ApplyRequesters(pod *v1.Pod, manager string, requesters ...string) {
	c.T.Helper()
	target := coordinationapply.EvictionTarget().WithPod(coordinationapply.LocalPodReference().WithName(pod.Name).WithUID(string(pod.UID)))
	spec := coordinationapply.EvictionRequestSpec().WithTarget(target)
	for _, name := range requesters {
		spec.WithRequesters(coordinationapply.Requester().WithName(name))
	}
	patch := coordinationapply.EvictionRequest(string(pod.UID), c.Namespace).WithSpec(spec)
	if _, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Apply(c.T.Context(), patch, metav1.ApplyOptions{FieldManager: manager}); err != nil {
		c.T.Fatalf("applying the requesters of %s: %v", manager, err)
	}
}
