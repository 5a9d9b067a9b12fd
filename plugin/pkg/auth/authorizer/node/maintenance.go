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
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/node/maintenance"
	coordapi "k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/features"
)

// evictionRequestVertexType is the type of EvictionRequests. It is far from those of upstream, which
// are counted from zero.
const evictionRequestVertexType vertexType = 1 << 7

func init() {
	vertexTypes[evictionRequestVertexType] = "evictionrequest"
}

var (
	evictionRequestResource = coordapi.Resource("evictionrequests")
	nodeMaintenanceResource = coordapi.Resource("nodemaintenances")
)

// addEvictionRequestLocked relates the EvictionRequest of a mirror pod to its node, before it exists:
// the kubelet waits for it. Its name is the UID of the pod, so the name cannot be chosen by a node
// to reach the request for another pod, and a pod with the same name has another request.
//
// The relation ends with the pod. Afterwards, the kubelet cannot report any more. The admission
// plugin EvictionRequest restricts what a node may change in the status to the entry of the
// interceptor kubelet.k8s.io, see NodeRules.
func (g *Graph) addEvictionRequestLocked(pod *corev1.Pod, podVertex, nodeVertex *namedVertex) {
	if _, isMirrorPod := pod.Annotations[corev1.MirrorPodAnnotationKey]; !isMirrorPod || pod.UID == "" {
		return
	}
	request := g.getOrCreateVertexLocked(evictionRequestVertexType, pod.Namespace, string(pod.UID))
	g.addEdgeLocked(request, podVertex, nodeVertex)
}

// authorizeMaintenance authorizes a node to take part in maintenances of itself.
func (r *NodeAuthorizer) authorizeMaintenance(nodeName string, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case !r.features.Enabled(features.NodeMaintenanceAwareKubelet):
		return authorizer.DecisionNoOpinion, "", nil
	case attrs.GetResource() == nodeMaintenanceResource.Resource:
		return authorizeNodeMaintenance(nodeName, attrs)
	case attrs.GetSubresource() == "status":
		return r.authorizeStatusUpdate(nodeName, evictionRequestVertexType, attrs)
	}
	return r.authorizeReadNamespacedObject(nodeName, evictionRequestVertexType, attrs)
}

// authorizeNodeMaintenance allows a node to create a NodeMaintenance, and to read and write the one
// of its shutdowns. The admission plugin NodeMaintenance allows only this one to be created, and
// restricts it to the node.
func authorizeNodeMaintenance(nodeName string, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	if attrs.GetSubresource() != "" {
		return authorizer.DecisionNoOpinion, "cannot access subresources of NodeMaintenances", nil
	}
	own := maintenance.ShutdownName(nodeName)
	switch attrs.GetVerb() {
	case "create":
		if name := attrs.GetName(); name == "" || name == own {
			return authorizer.DecisionAllow, "", nil
		}
	case "get", "list", "watch", "update", "patch", "delete":
		if attrs.GetName() == own {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, fmt.Sprintf("can only access the NodeMaintenance %q of the shutdowns of the node, by its name", own), nil
}
