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

package describe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	maintenancehelpers "k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

// admittedNode is a node that was admitted and not given back.
type admittedNode struct {
	name      string
	admission *corev1.MaintenanceAdmission
}

// nodesUnderWay returns the nodes that a rollout has begun with and not given back: those that have
// failed first, then those that were admitted first. Like events, they are left out if the user may not
// list nodes.
func nodesUnderWay(client clientset.Interface, maintenance *coordinationv1alpha1.NodeMaintenance) []admittedNode {
	status := maintenance.Status.RolloutStatus
	if status == nil || status.AdmittedNodes == 0 || maintenance.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		return nil
	}
	// From the cache of the API server: there may be thousands.
	nodes, err := client.CoreV1().Nodes().List(context.TODO(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	var underWay []admittedNode
	for i := range nodes.Items {
		if a := maintenancehelpers.AdmissionOf(&nodes.Items[i], maintenance.UID); a != nil && a.DoneTime == nil {
			underWay = append(underWay, admittedNode{nodes.Items[i].Name, a})
		}
	}
	rank := func(n admittedNode) int {
		if n.admission.FailedTime != nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(underWay, func(a, b admittedNode) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.admission.AdmittedTime.Compare(b.admission.AdmittedTime.Time), strings.Compare(a.name, b.name))
	})
	return underWay
}

// printUnderWay prints how far the first nodes are, and where the others are shown.
func printUnderWay(w PrefixWriter, now time.Time, maintenance *coordinationv1alpha1.NodeMaintenance, underWay []admittedNode) {
	var texts []string
	for _, node := range underWay[:min(len(underWay), maxDescribedValues)] {
		texts = append(texts, plaintext.Line(fmt.Sprintf("%s: %s", node.name, formatAdmission(now, node.admission))))
	}
	if more := len(underWay) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more: kubectl maintenance status %s", more, maintenance.Name))
	}
	if len(texts) > 0 {
		printTextMultiline(w, LEVEL_1, "Under Way", strings.Join(texts, "\n"))
	}
}
