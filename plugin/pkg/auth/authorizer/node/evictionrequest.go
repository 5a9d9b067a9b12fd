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

package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	coordapi "k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/features"
)

// evictionRequestVertexType is the type of EvictionRequests. It is far from those of upstream, which
// are counted from zero.
const evictionRequestVertexType vertexType = 1 << 7

func init() {
	vertexTypes[evictionRequestVertexType] = "evictionrequest"
}

var evictionRequestResource = coordapi.Resource("evictionrequests")

// addEvictionRequestLocked relates the EvictionRequest of a mirror pod to its node, before it exists:
// the kubelet waits for it. Its name is the UID of the pod, so the name cannot be chosen by a node
// to reach the request for another pod, and a pod with the same name has another request.
//
// The relation ends with the pod. Afterwards, the kubelet cannot report any more.
func (g *Graph) addEvictionRequestLocked(pod *corev1.Pod, podVertex, nodeVertex *namedVertex) {
	if _, isMirrorPod := pod.Annotations[corev1.MirrorPodAnnotationKey]; !isMirrorPod || pod.UID == "" {
		return
	}
	request := g.getOrCreateVertexLocked(evictionRequestVertexType, pod.Namespace, string(pod.UID))
	g.addEdgeLocked(request, podVertex, nodeVertex)
}

// authorizeEvictionRequest allows a node to read each EvictionRequest of its own mirror pods by its
// name, and to write its status. The admission plugin EvictionRequest restricts what it may change
// in the status to the entry of the interceptor kubelet.k8s.io, see NodeRules.
func (r *NodeAuthorizer) authorizeEvictionRequest(nodeName string, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	if !r.features.Enabled(features.NodeMaintenanceAwareKubelet) {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if attrs.GetSubresource() == "status" {
		return r.authorizeStatusUpdate(nodeName, evictionRequestVertexType, attrs)
	}
	return r.authorizeReadNamespacedObject(nodeName, evictionRequestVertexType, attrs)
}
