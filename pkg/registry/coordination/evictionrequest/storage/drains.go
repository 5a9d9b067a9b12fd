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

package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/features"
)

// drains tells whether the node of a pod is drained. The nodemaintenance-controller requests evictions as long as it
// is, and withdraws afterwards. But it may have been suspended, and webhooks may hold a call while the maintenance ends:
// the request would appear when nobody looks after it any more, and a pod without interceptors would be gone before
// anybody withdraws. So kube-apiserver itself reads the node, when admission is done. A nil drains confirms everything.
type drains struct {
	nodes *reader
	pods  *targets
}

// newDrains returns nil if the feature gate DeclarativeNodeMaintenance is off: nodes may then lack their drain targets.
func newDrains(optsGetter generic.RESTOptionsGetter, pods *targets) (*drains, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeNodeMaintenance) {
		return nil, nil
	}
	nodes, err := newReader(optsGetter, api.Resource("nodes"), &api.Node{}, &api.NodeList{})
	return &drains{nodes: nodes, pods: pods}, err
}

func (d *drains) destroy() {
	if d != nil {
		d.nodes.destroy()
	}
}

// afterCreate returns the validation of a creation, followed by the question whether a drain wants it.
func (d *drains) afterCreate(validation rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if validation != nil {
			if err := validation(ctx, obj); err != nil {
				return err
			}
		}
		return d.confirm(ctx, obj, nil)
	}
}

// afterUpdate is afterCreate for an update, by which a drain may join other requesters.
func (d *drains) afterUpdate(validation rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if validation != nil {
			if err := validation(ctx, obj, old); err != nil {
				return err
			}
		}
		return d.confirm(ctx, obj, old)
	}
}

// confirm returns an error if the nodemaintenance-controller becomes a requester, and the drain targets of the node do
// not take the pod. One whose pod is gone is left to the evictionrequest-controller, as every such request. old is nil
// for a creation.
func (d *drains) confirm(ctx context.Context, obj, old runtime.Object) error {
	request, isRequest := obj.(*coordination.EvictionRequest)
	if d == nil || !isRequest || request.Spec.Target.Pod == nil || !isForDrain(request) {
		return nil
	}
	if before, isRequest := old.(*coordination.EvictionRequest); isRequest && isForDrain(before) {
		return nil
	}
	target := request.Spec.Target.Pod
	pod, err := d.pods.get(ctx, target.Name)
	switch {
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("reading pod %q, which a node maintenance requests to leave: %v", target.Name, err))
	case pod == nil || string(pod.UID) != target.UID:
		return nil
	}
	targets, err := d.targetsOf(ctx, pod.Spec.NodeName)
	switch {
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("reading node %q, whose maintenance requests that pod %q leaves: %v", pod.Spec.NodeName, target.Name, err))
	case !targets.Take(pod):
		return apierrors.NewConflict(coordination.Resource("evictionrequests"), request.Name, fmt.Errorf(
			"spec.requesters: %s requests no eviction of pod %q, because status.maintenanceStatus.drainTargets of its node %q does not take the pod (any more): "+
				"create a NodeMaintenance, or use another name for the requester", coordinationv1alpha1.NodeMaintenanceRequester, target.Name, pod.Spec.NodeName))
	}
	return nil
}

func isForDrain(request *coordination.EvictionRequest) bool {
	return slices.ContainsFunc(request.Spec.Requesters, func(requester coordination.Requester) bool {
		return requester.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}

// targetsOf returns the drain targets of a node, none if it does not exist.
func (d *drains) targetsOf(ctx context.Context, name string) (maintenance.Targets, error) {
	none := maintenance.Targets{}
	if name == "" {
		return none, nil
	}
	key, err := genericregistry.NoNamespaceKeyFunc(ctx, d.nodes.prefix, name)
	if err != nil {
		return none, err
	}
	stored, node := &api.Node{}, &v1.Node{}
	if found, err := d.nodes.read(ctx, key, stored); !found || err != nil {
		return none, err
	}
	if stored.Status.MaintenanceStatus == nil {
		return none, nil
	}
	if err := corev1.Convert_core_Node_To_v1_Node(stored, node, nil); err != nil {
		return none, err
	}
	targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
	if err != nil {
		return none, errors.Join(errors.New("status.maintenanceStatus.drainTargets"), err)
	}
	return targets, nil
}
