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
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// capacityHint says whether the pods of a batch find a place on the nodes that stay schedulable. It is
// a hint: it puts each pod, the largest first, on the first node where it fits by requests, node
// selector, required node affinity and tolerations. It knows neither volumes, nor affinity between
// pods, spreading, preemption and autoscalers.
type capacityHint struct {
	// Batch is the number of the batch with the most pods that need another node, from 1.
	Batch int `json:"batch"`
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// SchedulableNodes is how many other nodes are Ready and schedulable.
	SchedulableNodes int `json:"schedulableNodes"`
	// Unplaced are the pods without a place.
	Unplaced []unplacedPod `json:"unplaced"`
}

// unplacedPod is a pod without a place.
type unplacedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Lacks are the resources of which no node that the pod may run on has enough left. Empty if there
	// is no such node, or if each resource is left somewhere.
	Lacks []corev1.ResourceName `json:"lacks,omitempty"`
	// NoNode is true if there is no node on which the pod may run, however much is left there.
	NoNode bool `json:"noNode,omitempty"`
}

// addCapacity adds the hint for the batch with the most pods, unless no pod needs another node.
func (p *rolloutPlan) addCapacity(s *podSnapshot) {
	hint := &capacityHint{Unplaced: []unplacedPod{}}
	var pods []*corev1.Pod
	for i, batch := range p.Batches {
		if moving := s.podsToMove(batch); len(moving) > len(pods) {
			hint.Batch, hint.Nodes, pods = i+1, len(batch), moving
		}
	}
	if len(pods) == 0 {
		return
	}
	places := s.placesWithout(sets.New(p.Batches[hint.Batch-1]...))
	hint.Pods, hint.SchedulableNodes = len(pods), len(places)
	hint.placeAll(largestFirst(pods), places)
	p.Capacity = hint
}

// placeAll puts pods on nodes. A pod with the same controller and requests as one that has found no
// place is not tried: only less is left. A full cluster has many of them.
func (h *capacityHint) placeAll(pods []requestingPod, places []freePlace) {
	type failure struct {
		requests amounts
		why      *unplacedPod
	}
	failures := map[types.UID]failure{}
	for _, pod := range pods {
		var controller types.UID
		if owner := metav1.GetControllerOf(pod.Pod); owner != nil {
			controller = owner.UID
		}
		known, found := failures[controller]
		if !found || controller == "" || !maps.Equal(known.requests, pod.requests) {
			known = failure{pod.requests, place(pod, places)}
		}
		if known.why == nil {
			continue
		}
		failures[controller] = known
		h.Unplaced = append(h.Unplaced, unplacedPod{pod.Namespace, pod.Name, known.why.Lacks, known.why.NoNode})
	}
}

// podsToMove returns the pods of nodes that are created again elsewhere.
func (s *podSnapshot) podsToMove(nodes []string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, node := range nodes {
		for _, pod := range s.pods[node] {
			if s.kept[pod] == nil && maintenance.IsLeft(pod) && maintenance.PodTypeOf(pod) == corev1.PodTypeDefault && metav1.GetControllerOf(pod) != nil {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// freePlace is a node with what is left there.
type freePlace struct {
	*corev1.Node
	left amounts
}

// placesWithout returns the nodes that are Ready and schedulable while some are drained.
func (s *podSnapshot) placesWithout(drained sets.Set[string]) []freePlace {
	var places []freePlace
	for _, node := range s.nodes {
		if drained.Has(node.Name) || !maintenance.IsAvailable(node) {
			continue
		}
		left := amountsOf(node.Status.Allocatable)
		for name, amount := range s.used[node.Name] {
			left[name] -= amount
		}
		places = append(places, freePlace{node, left})
	}
	return places
}

// largestFirst sorts pods by their requests: small ones find a place between large ones.
func largestFirst(pods []*corev1.Pod) []requestingPod {
	var sorted []requestingPod
	for _, pod := range pods {
		sorted = append(sorted, requestingPod{pod, requestsOf(pod), nodeaffinity.GetRequiredNodeAffinity(pod)})
	}
	slices.SortStableFunc(sorted, func(a, b requestingPod) int {
		return cmp.Or(cmp.Compare(b.requests[corev1.ResourceCPU], a.requests[corev1.ResourceCPU]), cmp.Compare(b.requests[corev1.ResourceMemory], a.requests[corev1.ResourceMemory]))
	})
	return sorted
}

type requestingPod struct {
	*corev1.Pod
	requests amounts
	affinity nodeaffinity.RequiredNodeAffinity
}

// place puts a pod on the first node where it fits. It returns why there is none, without the name of
// the pod, or nil.
func place(pod requestingPod, places []freePlace) *unplacedPod {
	for i := range places {
		if len(pod.lacking(places[i].left)) > 0 || !mayRunOn(pod, places[i].Node) {
			continue
		}
		for name, amount := range pod.requests {
			places[i].left[name] -= amount
		}
		return nil
	}
	return whyUnplaced(pod, places)
}

// lacking returns the resources of which not enough is left for the pod.
func (p *requestingPod) lacking(left amounts) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, amount := range p.requests {
		if amount > 0 && left[name] < amount {
			names = append(names, name)
		}
	}
	return names
}

func whyUnplaced(pod requestingPod, places []freePlace) *unplacedPod {
	unplaced := &unplacedPod{NoNode: true}
	lacks := sets.KeySet(pod.requests)
	for i := range places {
		if mayRunOn(pod, places[i].Node) {
			unplaced.NoNode = false
			lacks = lacks.Intersection(sets.New(pod.lacking(places[i].left)...))
		}
	}
	if !unplaced.NoNode && lacks.Len() > 0 {
		unplaced.Lacks = sets.List(lacks)
	}
	return unplaced
}

// mayRunOn reports whether the pod may run on the node, whatever is left there.
func mayRunOn(pod requestingPod, node *corev1.Node) bool {
	matches, err := pod.affinity.Match(node)
	if err != nil || !matches {
		return false
	}
	_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, true)
	return !untolerated
}
