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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
)

// describePodPolicies prints which pods are not evicted, and what else a drained node needs. For a
// maintenance without either, it prints nothing.
func describePodPolicies(w PrefixWriter, spec *coordinationv1alpha1.NodeMaintenanceSpec) {
	if len(spec.PodPolicies) > 0 {
		w.Write(LEVEL_0, "Pod Policies:\t(the first that matches a pod decides)\n")
		for i := range spec.PodPolicies {
			printTextMultiline(w, LEVEL_1, fmt.Sprint(i+1), formatPodPolicy(&spec.PodPolicies[i]))
		}
	}
	if when := spec.DrainedWhen; when != nil && when.Volumes != "" {
		printTextMultiline(w, LEVEL_0, "Drained When", fmt.Sprintf("no pod is left, and volumes are %s%s", when.Volumes, atMost(when.TimeoutSeconds)))
	}
}

// describeEscalation prints when the drain of a node stops waiting. For a maintenance that never does,
// it prints nothing.
func describeEscalation(w PrefixWriter, steps []coordinationv1alpha1.NodeMaintenanceEscalationStep) {
	if len(steps) == 0 {
		return
	}
	w.Write(LEVEL_0, "Escalation:\t(since the admission of each node)\n")
	for i := range steps {
		step := &steps[i]
		printTextMultiline(w, LEVEL_1, "after "+(time.Duration(step.AfterSeconds)*time.Second).String(),
			formatPodPolicy(&coordinationv1alpha1.NodeMaintenancePodPolicy{
				Action:      coordinationv1alpha1.NodeMaintenancePodAction(step.Action),
				PodSelector: step.PodSelector, NamespaceSelector: step.NamespaceSelector,
			}))
	}
}

// formatEscalated returns on how many pods an escalation has acted, to follow other counts of pods;
// empty if on none.
func formatEscalated(pods int32) string {
	if pods == 0 {
		return ""
	}
	return fmt.Sprintf(", %d escalated", pods)
}

// formatPodPolicy returns what happens to which pods: "Skip: pods with labels app=db".
func formatPodPolicy(policy *coordinationv1alpha1.NodeMaintenancePodPolicy) string {
	var conditions []string
	if policy.PodSelector != nil {
		conditions = append(conditions, "with labels "+metav1.FormatLabelSelector(policy.PodSelector))
	}
	if policy.NamespaceSelector != nil {
		conditions = append(conditions, "in namespaces with labels "+metav1.FormatLabelSelector(policy.NamespaceSelector))
	}
	if len(policy.ResourceNames) > 0 {
		var names []string
		for _, name := range policy.ResourceNames {
			names = append(names, string(name))
		}
		conditions = append(conditions, "that request "+strings.Join(names, " or "))
	}
	if len(conditions) == 0 {
		return string(policy.Action) + ": all pods"
	}
	return string(policy.Action) + ": pods " + strings.Join(conditions, " ")
}

// formatSkipped returns how many pods stay, to follow other counts of pods; empty if none does.
func formatSkipped(pods int32) string {
	if pods == 0 {
		return ""
	}
	return fmt.Sprintf(", %d skipped", pods)
}

// attachedVolumes names the volumes that are attached to a node, which its own status names only by
// their drivers and handles. Those of pods that stay are among them.
func attachedVolumes(client clientset.Interface, node string) string {
	attachments, err := client.StorageV1().VolumeAttachments().List(context.TODO(), metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	var names []string
	for i := range attachments.Items {
		attachment := &attachments.Items[i]
		if attachment.Spec.NodeName != node {
			continue
		}
		name := attachment.Name
		if volume := attachment.Spec.Source.PersistentVolumeName; volume != nil {
			name = *volume
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return joinFirst(names, maxDescribedValues)
}

// joinFirst joins the first names, and counts the others.
func joinFirst(names []string, limit int) string {
	if more := len(names) - limit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), more)
	}
	return strings.Join(names, ", ")
}
