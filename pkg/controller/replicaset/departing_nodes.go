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

package replicaset

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller"
)

// PreferDepartingNodes makes a scale-down prefer pods on nodes that are to go, for the feature gate
// DeclarativeNodeMaintenance: they would have to be moved a moment later. It must be called once, before Run.
// ReplicationControllers, which share this controller, use it as well.
func (rsc *ReplicaSetController) PreferDepartingNodes(nodeInformer coreinformers.NodeInformer) {
	rsc.nodeLister = nodeInformer.Lister()
	// A scale-down that is decided before the nodes are known would spare the pods that have to leave.
	rsListerSynced, nodesSynced := rsc.rsListerSynced, nodeInformer.Informer().HasSynced
	rsc.rsListerSynced = func() bool { return rsListerSynced() && nodesSynced() }
}

// departuresByRank is by how much a rank of a picker is multiplied, so that departures fit in between.
const departuresByRank = int(maintenance.Departing) + 1

// rankDepartures adds to the ranks whether the nodes of the pods are to go. It comes after what the owner of the pods
// wants, which is their pod-deletion-cost and the ranks of a picker, and before the number of pods on the same node.
func rankDepartures(nodeLister corelisters.NodeLister, ranked controller.ActivePodsWithRanks, picked bool) {
	if nodeLister == nil || len(ranked.Rank) == 0 {
		return
	}
	above := slices.Max(ranked.Rank) + 1 // Without a picker, ranks are numbers of pods.
	departures := map[string]maintenance.Departure{}
	for i, pod := range ranked.Pods {
		departure, known := departures[pod.Spec.NodeName]
		if !known {
			departure = departureOf(nodeLister, pod)
			departures[pod.Spec.NodeName] = departure
		}
		if picked {
			ranked.Rank[i] = ranked.Rank[i]*departuresByRank + int(departure)
		} else {
			ranked.Rank[i] += int(departure) * above
		}
	}
}

func departureOf(nodeLister corelisters.NodeLister, pod *v1.Pod) maintenance.Departure {
	node, err := nodeLister.Get(pod.Spec.NodeName)
	if err != nil {
		return maintenance.NotDeparting // It is not bound, or its node is gone, and so will be the pod.
	}
	return maintenance.DepartureOf(node)
}
