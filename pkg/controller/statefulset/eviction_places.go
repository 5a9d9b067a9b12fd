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

package statefulset

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/scheduling/nodepin"
	"k8s.io/kubernetes/pkg/controller/util/schedulerverdict"
)

// places tells where pods may run.
type places struct {
	nodes   corelisters.NodeLister
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	synced  []cache.InformerSynced
}

func placesOf(core coreinformers.Interface) places {
	nodes, claims, volumes := core.Nodes(), core.PersistentVolumeClaims(), core.PersistentVolumes()
	return places{
		nodes: nodes.Lister(), claims: claims.Lister(), volumes: volumes.Lister(),
		synced: []cache.InformerSynced{nodes.Informer().HasSynced, claims.Informer().HasSynced, volumes.Informer().HasSynced},
	}
}

// onlyOn returns the names of the only nodes that may ever run a pod which is not bound, if all of them are cordoned: it
// names them, or its volumes are there, and kube-scheduler says of no node that the pod waits for anything else. If the pod
// may come to a node that is added, such as one of a zone, there may be one soon.
func (p places) onlyOn(pod *v1.Pod) []string {
	if verdict := schedulerverdict.Of(pod); pod.Spec.NodeName != "" || isTerminating(pod) || verdict.Spread || !verdict.Nodes && !verdict.Volumes {
		return nil
	}
	nodes, err := p.nodes.List(labels.Everything())
	if err != nil {
		return nil // A lister that reads from a cache returns no errors.
	}
	permitted, pinned := nodepin.Of(pod, p.volumesOf(pod), nodes)
	if !pinned {
		return nil
	}
	var names []string
	for _, node := range permitted {
		if !node.Spec.Unschedulable {
			return nil
		}
		names = append(names, node.Name)
	}
	return names
}

// volumesOf returns the volumes that are bound to claims of the pod.
func (p places) volumesOf(pod *v1.Pod) []*v1.PersistentVolume {
	var volumes []*v1.PersistentVolume
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := p.claims.PersistentVolumeClaims(pod.Namespace).Get(volume.PersistentVolumeClaim.ClaimName)
		if err != nil || claim.Spec.VolumeName == "" {
			continue
		}
		if bound, err := p.volumes.Get(claim.Spec.VolumeName); err == nil {
			volumes = append(volumes, bound)
		}
	}
	return volumes
}
