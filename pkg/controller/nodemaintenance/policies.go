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

package nodemaintenance

import (
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// attachmentNodeIndex finds VolumeAttachments by the name of their node.
const attachmentNodeIndex = "nodemaintenance-node"

// policies returns what says which pods stay.
func (c *Controller) policies() decision.Policies {
	return decision.Policies{NamespaceLabels: c.namespaceLabels,
		WhyUnstopped: func(pod *v1.Pod) string { return c.absences.whyUnstopped(pod, c.nodeLister) }}
}

// verdictOn returns what happens to one pod that is left on its node.
func (c *Controller) verdictOn(pod *v1.Pod, specs []progress.Spec) (progress.Verdict, error) {
	if !slices.ContainsFunc(specs, func(o progress.Spec) bool { return o.Drains() && !o.Policies.IsEmpty() }) && c.absences.whyUnstopped(pod, c.nodeLister) == "" {
		// The usual case, in which the other pods of the node do not matter.
		return progress.Verdict{Action: coordinationv1alpha1.NodeMaintenancePodDrain, Wanted: progress.IsDraining(specs)}, nil
	}
	pods, _, err := c.podsOn(pod.Spec.NodeName)
	if err != nil {
		return progress.Verdict{}, err
	}
	verdicts, _ := c.policies().Verdicts(pod.Spec.NodeName, pods, specs)
	for i, v := range verdicts {
		if pods[i].UID == pod.UID {
			return v, nil
		}
	}
	return progress.Verdict{}, fmt.Errorf("pod %s is not left on its node any more", klog.KObj(pod))
}

// podsOn returns the pods of a node that have not ended, and those that have.
func (c *Controller) podsOn(node string) (left, ended []*v1.Pod, err error) {
	objects, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, node)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the pods of the node: %w", err)
	}
	for _, object := range objects {
		if pod := object.(*v1.Pod); maintenance.IsLeft(pod) {
			left = append(left, pod)
		} else {
			ended = append(ended, pod)
		}
	}
	return left, ended, nil
}

// namespaceLabels returns the labels of a namespace, and false if they are not known.
func (c *Controller) namespaceLabels(name string) (labels.Set, bool) {
	if c.fleet == nil {
		return nil, false
	}
	namespace, err := c.fleet.Namespaces.Lister().Get(name)
	if err != nil {
		return nil, false // The cache may be behind.
	}
	return namespace.Labels, true
}

// attachedVolumes names the volumes that are attached to the node but those of the pods that stay,
// sorted.
func (c *Controller) attachedVolumes(node *v1.Node, staying []*v1.Pod) []string {
	if c.fleet == nil {
		return []string{"unknown, because the feature gate NodeMaintenanceBudgets is off"} // The timeout ends it.
	}
	attachments, err := c.fleet.VolumeAttachments.Informer().GetIndexer().ByIndex(attachmentNodeIndex, node.Name)
	if err != nil {
		return nil // The index exists.
	}
	used := sets.New[string]()
	for _, pod := range staying {
		for i := range pod.Spec.Volumes {
			claimName := ""
			switch volume := &pod.Spec.Volumes[i]; {
			case volume.PersistentVolumeClaim != nil:
				claimName = volume.PersistentVolumeClaim.ClaimName
			case volume.Ephemeral != nil:
				claimName = pod.Name + "-" + volume.Name
			default:
				continue
			}
			// Anybody may create a claim that names a volume of others. It is not bound to it.
			if claim, err := c.fleet.Claims.Lister().PersistentVolumeClaims(pod.Namespace).Get(claimName); err == nil && claim.Status.Phase == v1.ClaimBound {
				used.Insert(claim.Spec.VolumeName)
			}
		}
	}
	var names []string
	for _, object := range attachments {
		attachment := object.(*storagev1.VolumeAttachment)
		switch volume := attachment.Spec.Source.PersistentVolumeName; {
		case volume == nil:
			names = append(names, attachment.Name)
		case !used.Has(*volume):
			names = append(names, *volume)
		}
	}
	slices.Sort(names)
	return names
}
