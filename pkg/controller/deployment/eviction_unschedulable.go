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

package deployment

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/scheduling/topologyspread"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/util/schedulerverdict"
)

// cannotBeScheduled reports whether a replacement waits for nothing but that the pods leave that it replaces. Other
// reasons, such as a lack of resources, may end by themselves, above all where nodes are added. spreads answers for pods
// that may be spread: see spreadWithoutAsked.
func (s *surger) cannotBeScheduled(replacement *v1.Pod, spreads func(*v1.Pod) bool) bool {
	verdict := schedulerverdict.Of(replacement)
	if verdict.Spread {
		return spreads(replacement)
	}
	return verdict.Volumes
}

// spreadWithoutAsked reports whether the topologySpreadConstraints of a replacement let it run on a node if the pods
// that are to leave had left. If not, these are not what it waits for.
func (s *surger) spreadWithoutAsked(set *replicaSet, replacement *v1.Pod) bool {
	leaving := sets.New[types.UID]()
	for _, asked := range set.asked {
		leaving.Insert(asked.uid)
	}
	nodes, err := s.nodeLister.List(labels.Everything())
	if err != nil {
		return false
	}
	pods, err := s.dc.podLister.Pods(replacement.Namespace).List(labels.Everything())
	if err != nil {
		return false
	}
	staying := slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool {
		return leaving.Has(pod.UID) || podutil.IsPodPhaseTerminal(pod.Status.Phase)
	})
	spread, affinity := topologyspread.Of(replacement, nodes, staying), nodeaffinity.GetRequiredNodeAffinity(replacement)
	return slices.ContainsFunc(nodes, func(node *v1.Node) bool {
		matches, err := affinity.Match(node)
		return !node.Spec.Unschedulable && err == nil && matches && spread.Allows(node)
	})
}

// isPinned reports whether a replacement has come to a node that is drained and is the only one that its template names
// or selects. Of several nodes, one may be free later.
func (s *surger) isPinned(template *v1.PodTemplateSpec, replacement *v1.Pod) bool {
	if !s.isMisplaced(replacement, s.clock.Now()) {
		return false
	}
	if name := template.Spec.NodeName; name != "" {
		return name == replacement.Spec.NodeName
	}
	nodes, err := s.nodeLister.List(labels.Everything())
	if err != nil {
		return false // A lister that reads from a cache returns no errors.
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: template.Spec})
	return !slices.ContainsFunc(nodes, func(node *v1.Node) bool {
		matches, err := affinity.Match(node)
		return node.Name != replacement.Spec.NodeName && (matches || err != nil)
	})
}

// observeHindered counts the replacements that cannot be scheduled before pods have left, or that have come to a node that
// is drained because no other one is for them, if no other one may become available.
func (s *surger) observeHindered(w *workload) {
	for _, set := range w.sets {
		if len(set.asked) == 0 {
			continue
		}
		spreads := sharedAnswer(func(replacement *v1.Pod) bool { return s.spreadWithoutAsked(set, replacement) })
		replacements := set.replacements()
		for _, replacement := range replacements {
			if !s.isPinned(&set.view.Spec.Template, replacement) && !s.cannotBeScheduled(replacement, spreads) {
				set.hindered = 0
				break
			}
			set.hindered++
		}
		// Other pods may look like replacements: they were created in the second in which the node was claimed, or came
		// there before any was asked to leave.
		set.hindered = min(set.hindered, max(len(set.pods)-set.wanted, 0))
		// Each pod that may leave already makes room for one.
		for _, pod := range set.pods {
			if pod.turn == passedOn || pod.turn == evicting {
				set.hindered--
			}
		}
	}
}

// sharedAnswer returns a function that answers for a pod as for the last one that is spread in the same way: the pods of
// a ReplicaSet are, and each answer looks at all nodes and at all pods of the namespace.
func sharedAnswer(answer func(*v1.Pod) bool) func(*v1.Pod) bool {
	var last *v1.Pod
	var known bool
	return func(pod *v1.Pod) bool {
		if last == nil || !isSpreadAlike(last, pod) {
			last, known = pod, answer(pod)
		}
		return known
	}
}

func isSpreadAlike(a, b *v1.Pod) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Spec.NodeSelector, b.Spec.NodeSelector) &&
		apiequality.Semantic.DeepEqual(a.Spec.TopologySpreadConstraints, b.Spec.TopologySpreadConstraints) &&
		apiequality.Semantic.DeepEqual(a.Spec.Affinity, b.Spec.Affinity) && apiequality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations)
}
