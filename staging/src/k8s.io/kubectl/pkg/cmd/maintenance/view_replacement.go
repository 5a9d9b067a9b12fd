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
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/scheduling/nodepin"
	"k8s.io/component-helpers/scheduling/topologyspread"
)

// obstacles are what may keep a replacement from starting while the pod that it replaces runs.
type obstacles struct {
	// claims by namespace and name.
	claims map[string]*corev1.PersistentVolumeClaim
	// volumes by name, and the nodes that they are attached to.
	volumes  map[string]*corev1.PersistentVolume
	attached map[string]sets.Set[string]
	// pods of the namespaces in which topology spread constraints count them.
	pods map[string][]*corev1.Pod
	// drained are the nodes of the plan, by the number of their batch.
	drained map[int]sets.Set[string]
}

// readObstacles reads claims and volumes, if a pod has some that would be replaced first, or whose like wait for its
// replacement, and the pods that topology spread constraints count. Other plans do not need the permissions.
func (s *podSnapshot) readObstacles(ctx context.Context, client kubernetes.Interface) error {
	o := &obstacles{claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{}, attached: map[string]sets.Set[string]{}, pods: map[string][]*corev1.Pod{}}
	s.obstacles = o
	if s.anyPod(func(pod *corev1.Pod) bool {
		return len(claimsOf(pod)) > 0 && (s.awaitsSurge(pod) || s.isOfPacedSet(pod))
	}) {
		if err := s.readVolumes(ctx, client); err != nil {
			return err
		}
	}
	spread := sets.New[string]()
	for _, pod := range slices.Concat(slices.Collect(maps.Values(s.pods))...) {
		if s.awaitsSurge(pod) && topologyspread.HasHardConstraints(pod) {
			spread.Insert(pod.Namespace)
		}
	}
	for _, namespace := range sets.List(spread) {
		options := metav1.ListOptions{FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String()}
		pods, err := list[corev1.Pod](ctx, &s.snapshot, "pods in namespace "+namespace, client.CoreV1().Pods(namespace).List, options)
		if err != nil {
			return err
		}
		o.pods[namespace] = pods
	}
	return nil
}

func (s *podSnapshot) readVolumes(ctx context.Context, client kubernetes.Interface) error {
	o := s.obstacles
	if err := each(ctx, &s.snapshot, "persistentvolumeclaims", client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List, func(claim *corev1.PersistentVolumeClaim) {
		o.claims[claim.Namespace+"/"+claim.Name] = claim
	}); err != nil {
		return err
	}
	if err := each(ctx, &s.snapshot, "persistentvolumes", client.CoreV1().PersistentVolumes().List, func(volume *corev1.PersistentVolume) {
		o.volumes[volume.Name] = volume
	}); err != nil {
		return err
	}
	return each(ctx, &s.snapshot, "volumeattachments", client.StorageV1().VolumeAttachments().List, func(attachment *storagev1.VolumeAttachment) {
		if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
			insert(o.attached, *name, attachment.Spec.NodeName)
		}
	})
}

// insert adds a name to one of several sets.
func insert[K comparable](all map[K]sets.Set[string], key K, name string) {
	if all[key] == nil {
		all[key] = sets.New[string]()
	}
	all[key].Insert(name)
}

// claimsOf returns the names of the claims that a replacement would share with the pod. Those of ephemeral volumes are
// its own.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// obstacleOf says why no replacement of the pod can start while it runs; empty if nothing is known that prevents it.
// Pods have to be asked about in the order in which they leave, because each one that is replaced counts elsewhere.
func (s *podSnapshot) obstacleOf(pod *corev1.Pod) string {
	if s.nameNodeOf(pod) {
		return "its template names this node, and a replacement on it does not count"
	}
	if s.obstacles == nil || len(claimsOf(pod)) == 0 && !topologyspread.HasHardConstraints(pod) && !choosesNodes(pod) {
		return ""
	}
	places := s.placesOf(pod)
	if len(places) == 0 && choosesNodes(pod) {
		return "no other node that stays schedulable matches its node selector and affinity" + untilDeadline
	}
	for _, name := range claimsOf(pod) {
		if obstacle := s.obstacleOfClaim(pod, name, places); obstacle != "" {
			return obstacle
		}
	}
	return s.obstacleOfSpread(pod, places)
}

// choosesNodes reports whether the pod has to run on certain nodes.
func choosesNodes(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	return len(pod.Spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// placesOf returns the nodes on which a replacement of the pod may run, whatever is left there.
func (s *podSnapshot) placesOf(pod *corev1.Pod) []*corev1.Node {
	drained := s.obstacles.drained[s.rollout.batchOf(pod.Spec.NodeName)]
	requesting := requestingPod{Pod: pod, affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
	return filtered(s.schedulable(drained), func(node *corev1.Node) bool { return mayRunOn(requesting, node) })
}

// setDrained stores the nodes of the plan.
func (s *podSnapshot) setDrained(nodes []*corev1.Node) {
	if s.obstacles == nil {
		return
	}
	s.obstacles.drained = map[int]sets.Set[string]{}
	for _, node := range nodes {
		insert(s.obstacles.drained, s.rollout.batchOf(node.Name), node.Name)
	}
}

func (s *podSnapshot) obstacleOfClaim(pod *corev1.Pod, name string, places []*corev1.Node) string {
	claim, volume := s.obstacles.claimOf(pod, name)
	switch {
	case claim == nil:
		return ""
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return fmt.Sprintf("its PersistentVolumeClaim %s has the access mode ReadWriteOncePod", name)
	case volume == nil:
		return ""
	}
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector, err := nodeaffinity.NewNodeSelector(affinity.Required)
		if err == nil && !slices.ContainsFunc(places, selector.Match) {
			return fmt.Sprintf("the volume of its PersistentVolumeClaim %s is on no other node on which it may run", name)
		}
	}
	once := len(claim.Spec.AccessModes) > 0 && !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool { return mode != corev1.ReadWriteOnce })
	if once && s.obstacles.attached[volume.Name].Has(pod.Spec.NodeName) {
		return fmt.Sprintf("the volume of its PersistentVolumeClaim %s is attached to this node, and its access mode is ReadWriteOnce"+untilDeadline, name)
	}
	return ""
}

// claimOf returns the claim of that name, and its volume, as far as they are known.
func (o *obstacles) claimOf(pod *corev1.Pod, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := o.claims[pod.Namespace+"/"+name]
	if claim == nil {
		return nil, nil
	}
	return claim, o.volumes[claim.Spec.VolumeName]
}

// untilDeadline is about obstacles that the Deployment cannot tell from those that end by themselves.
const untilDeadline = ", which its Deployment waits for until its progress deadline"

func (s *podSnapshot) obstacleOfSpread(pod *corev1.Pod, places []*corev1.Node) string {
	others := s.obstacles.pods[pod.Namespace]
	if !topologyspread.HasHardConstraints(pod) || len(others) == 0 {
		return ""
	}
	spread := topologyspread.Of(pod, s.nodes, others)
	at := slices.IndexFunc(places, spread.Allows)
	if at < 0 {
		staying := filtered(others, func(other *corev1.Pod) bool { return other.UID != pod.UID })
		if slices.ContainsFunc(places, topologyspread.Of(pod, s.nodes, staying).Allows) {
			return "no other node satisfies its topologySpreadConstraints before it has left"
		}
		return "no other node satisfies its topologySpreadConstraints" + untilDeadline
	}
	// It is there from then on, and not here.
	moved := *pod
	moved.Spec.NodeName = places[at].Name
	for i := range others {
		if others[i].UID == pod.UID {
			others[i] = &moved
		}
	}
	return ""
}

// comesAfter reports whether the pods of the StatefulSet of a pod wait for each other, but its replacement can only come
// to its own node, when that is schedulable again. Its controller decides by the same rule.
func (s *podSnapshot) comesAfter(pod *corev1.Pod) bool {
	if s.obstacles == nil || pod.DeletionTimestamp != nil || s.isGrouped(pod) || !s.isOfPacedSet(pod) {
		return false
	}
	var volumes []*corev1.PersistentVolume
	for _, name := range claimsOf(pod) {
		if _, volume := s.obstacles.claimOf(pod, name); volume != nil {
			volumes = append(volumes, volume)
		}
	}
	permitted, pinned := nodepin.Of(pod, volumes, s.nodes)
	drained := s.obstacles.drained[s.rollout.batchOf(pod.Spec.NodeName)]
	return pinned && len(permitted) == 1 && !slices.ContainsFunc(permitted, func(node *corev1.Node) bool { return !node.Spec.Unschedulable && !drained.Has(node.Name) })
}

// isCrowded reports whether the pod has so many interceptors that its controller could not add its own.
func isCrowded(pod *corev1.Pod) bool {
	names := 0
	switch ownerKind(pod) {
	case "ReplicaSet":
		names = 2 // Its Deployment and its ReplicaSet.
	case "StatefulSet":
		names = 1
	}
	return names > 0 && !slices.ContainsFunc(evictioninterceptor.OwnTargets(pod), func(name string) bool { return slices.Contains(workloadInterceptors, name) }) &&
		evictioninterceptor.CountOnPod(pod.Spec.EvictionInterceptors, pod.Annotations)+names > evictioninterceptor.MaxOnPod
}
