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

package evictionrequest

import (
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/fairshare"
)

// owners says for whom requests are processed, so that one does not wait for 100,000 others that
// somebody else has created. It reads caches only: what these lack only changes the order.
type owners struct {
	requestLister coordinationlisters.EvictionRequestLister
	podLister     corelisters.PodLister
	nodeLister    corelisters.NodeLister
}

// unrecordedDrains is the flow of all drains of which no node says to which maintenance they belong.
const unrecordedDrains = "node drains"

// of returns the owner of a request. The requests of a node drain are in the flow of that drain, and
// all others in one flow: their requesters can have any name, and must not get more with many.
func (o *owners) of(key types.NamespacedName) fairshare.Owner {
	owner := fairshare.Owner{Tenant: key.Namespace}
	request, err := o.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if err != nil || len(request.Spec.Requesters) == 0 {
		return owner
	}
	owner.Source = request.Spec.Requesters[0].Name
	for _, requester := range request.Spec.Requesters {
		if requester.Name == coordinationv1alpha1.NodeMaintenanceRequester {
			owner.Flow, owner.Source = o.drainOf(request)
		}
	}
	return owner
}

// drainOf returns the flow and the source of a request of a node drain. The flow is what the node of the pod says about
// its drain: which NodeMaintenances have begun with it, so it is the same for all nodes of a maintenance. Kubelets can
// write any conditions, but no maintenanceStatus: they can neither make up drains nor choose the flow of another one.
// Where an API server stores no admissions, because a feature gate is off, all drains are one, and its nodes take turns,
// so that a drain of a few nodes does not wait for all pods of one of thousands.
func (o *owners) drainOf(request *coordinationv1alpha1.EvictionRequest) (flow, source string) {
	const unknown, oneSource = "", coordinationv1alpha1.NodeMaintenanceRequester
	pod, err := o.podLister.Pods(request.Namespace).Get(targetName(request))
	if err != nil || string(pod.UID) != request.Name {
		return unknown, oneSource // The cache has another pod of this name.
	}
	node, err := o.nodeLister.Get(pod.Spec.NodeName)
	if err != nil || node.Status.MaintenanceStatus == nil || len(node.Status.MaintenanceStatus.DrainTargets) == 0 {
		return unknown, oneSource
	}
	var begun []string
	for _, admission := range node.Status.MaintenanceStatus.Admissions {
		if admission.DoneTime == nil {
			begun = append(begun, string(admission.MaintenanceUID))
		}
	}
	if len(begun) > 0 {
		slices.Sort(begun)
		return strings.Join(begun, ","), oneSource
	}
	return unrecordedDrains, node.Name
}
