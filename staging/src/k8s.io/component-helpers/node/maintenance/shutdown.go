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
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// shutdownNamePrefix and the name of a node are the name of the maintenance of its shutdowns.
const shutdownNamePrefix = "graceful-shutdown-"

const (
	// EndedByAnnotation, on a NodeMaintenance, says which component ends it. Others need not. The
	// annotation informs clients, and has no effect in the control plane.
	EndedByAnnotation = "nodemaintenance.coordination.k8s.io/ended-by"

	// EndedByKubelet is the value for the maintenance of a shutdown: the kubelet of the node ends it
	// after the next boot, or when the shutdown is canceled.
	EndedByKubelet = "kubelet"

	// BootIDAnnotation, on the maintenance of a shutdown, is the status.nodeInfo.bootID of the node
	// in the boot that shuts down.
	BootIDAnnotation = "nodemaintenance.coordination.k8s.io/boot-id"
)

// Reasons of the condition GracefulNodeShutdownInProgress that a kubelet writes. A condition with another reason
// was written by an administrator.
const (
	// ShutdownReason means that the machine shuts down, and that a maintenance is to drain the node before.
	ShutdownReason = "NodeShutdown"
	// ShutdownTerminatingReason means that the machine shuts down, and that the kubelet terminates the pods of the
	// node itself. It rejects new ones.
	ShutdownTerminatingReason = "NodeShutdownTerminatesPods"
	// NoShutdownReason means that the machine does not shut down.
	NoShutdownReason = "NoNodeShutdown"
)

// staleShutdown is how much older than the condition Ready that of a shutdown may be. A kubelet writes both together:
// one that writes Ready alone does not know the other, which the kubelet before has left.
const staleShutdown = time.Minute

// TerminatesPods reports whether the kubelet of a node terminates its pods because the machine shuts down, as it says
// in the condition GracefulNodeShutdownInProgress. It would reject every new pod.
func TerminatesPods(node *v1.Node) bool {
	var shutdown, ready *v1.NodeCondition
	for i := range node.Status.Conditions {
		switch condition := &node.Status.Conditions[i]; condition.Type {
		case v1.NodeGracefulNodeShutdownInProgress:
			shutdown = condition
		case v1.NodeReady:
			ready = condition
		}
	}
	if shutdown == nil || shutdown.Status != v1.ConditionTrue || shutdown.Reason != ShutdownTerminatingReason {
		return false
	}
	return ready == nil || ready.LastHeartbeatTime.Sub(shutdown.LastHeartbeatTime.Time) <= staleShutdown
}

// ShutdownName returns the name of the NodeMaintenance that the kubelet of a node creates when the
// node shuts down (KEP-4212, "kubelet: Graceful Node Shutdown"). It is the only maintenance that the
// kubelet may write. Names of nodes that would be too long with the prefix are replaced by a hash.
func ShutdownName(nodeName string) string {
	name := shutdownNamePrefix + nodeName
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	hash := sha256.Sum256([]byte(nodeName))
	return shutdownNamePrefix + hex.EncodeToString(hash[:])
}

// IsShutdownName reports whether a name is that of the shutdowns of some node.
func IsShutdownName(name string) bool { return strings.HasPrefix(name, shutdownNamePrefix) }

// ShutdownSelector returns the selector of that maintenance: the name of the node.
func ShutdownSelector(nodeName string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{nodeName}}},
	}}}
}
