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

package realcluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// drainWithOldKubelet drains a node whose kubelet takes no part in maintenances: its static pod runs
// on, the node is drained with it, and the maintenance says why.
func drainWithOldKubelet(n *staticNode) {
	n.run(staticPod{name: "plain"})
	n.drain("drain")
	n.awaitf(func() bool {
		message := n.drainMessage("drain")
		return strings.HasPrefix(message, "No pod is left") &&
			strings.Contains(message, "1 static pod stays, which nobody stops: feature gate NodeMaintenanceAwareKubelet of the kubelet is off on "+n.name)
	}, func() string { return "the drain, and the pod in the message: " + n.drainMessage("drain") })
	n.stays("the pod runs", func() bool { return n.areRunning("plain") })
	n.expectRecords("plain", started)
	n.clear()
}

// runUnderOldControlPlane runs a static pod under a control plane without maintenances: the kubelet
// does not ask for them.
func runUnderOldControlPlane(n *staticNode) {
	n.run(staticPod{name: "plain"})
	n.awaitOnly("plain")
	n.stays("the pod runs", func() bool { return n.areRunning("plain") })
	log, err := os.ReadFile(filepath.Join(n.cluster.Local.Logs(), n.name+"-kubelet.log"))
	if err != nil {
		n.Fatal(err)
	}
	if found := regexp.MustCompile(`(?mi)^[EW].*(maintenance|evictionrequest).*$`).FindAllString(string(log), 3); found != nil {
		n.Errorf("the kubelet logs %q", found)
	}
}
