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

// Package nodepin finds the nodes to which a pod is bound by their names, so that no node that is added can run it.
package nodepin

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Of returns the nodes that the node selector, the affinity and the volumes of a pod permit. pinned is false if a node
// that is added might be permitted as well.
func Of(pod *v1.Pod, volumes []*v1.PersistentVolume, nodes []*v1.Node) (permitted []*v1.Node, pinned bool) {
	var required []*v1.NodeSelector
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		required = append(required, affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	var ofVolumes []*nodeaffinity.NodeSelector
	for _, volume := range volumes {
		if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
		if err != nil {
			return nil, false // The API server rejects such a volume.
		}
		required, ofVolumes = append(required, volume.Spec.NodeAffinity.Required), append(ofVolumes, selector)
	}
	if pod.Spec.NodeSelector[v1.LabelHostname] == "" && !slices.ContainsFunc(required, namesNodes) {
		return nil, false
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, node := range nodes {
		matches, err := affinity.Match(node)
		if err == nil && matches && !slices.ContainsFunc(ofVolumes, func(selector *nodeaffinity.NodeSelector) bool { return !selector.Match(node) }) {
			permitted = append(permitted, node)
		}
	}
	return permitted, true
}

// namesNodes reports whether each alternative of a selector names its nodes.
func namesNodes(selector *v1.NodeSelector) bool {
	return len(selector.NodeSelectorTerms) > 0 && !slices.ContainsFunc(selector.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		names := func(field string) func(v1.NodeSelectorRequirement) bool {
			return func(r v1.NodeSelectorRequirement) bool { return r.Key == field && r.Operator == v1.NodeSelectorOpIn }
		}
		return !slices.ContainsFunc(term.MatchExpressions, names(v1.LabelHostname)) && !slices.ContainsFunc(term.MatchFields, names(metav1.ObjectNameField))
	})
}
