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
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/apis/coordination"
	internalv1alpha1 "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/features"
)

// Drains tells whether a pod is to leave because its node is drained. The nodemaintenance-controller requests evictions
// as long as it is, and withdraws afterwards. But it may have been suspended, and webhooks may hold a call while the
// maintenance ends:
// the request would appear when nobody looks after it any more, and a pod without interceptors would be gone before
// anybody withdraws. So kube-apiserver itself reads the node and its maintenances, when admission is done. A nil Drains
// confirms everything.
type Drains struct {
	nodes, maintenances, namespaces *reader
	pods                            *targets
	// admits is whether the maintenances that have begun with a node have admissions, but for those of shutdowns.
	admits bool
}

// NewDrains returns nil if the feature gate DeclarativeNodeMaintenance is off: nodes may then lack their drain targets.
func NewDrains(optsGetter generic.RESTOptionsGetter) (*Drains, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeNodeMaintenance) {
		return nil, nil
	}
	pods, err := newTargets(optsGetter)
	if err != nil {
		return nil, err
	}
	d := &Drains{pods: pods, admits: utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets)}
	for _, r := range []struct {
		reader        **reader
		resource      schema.GroupResource
		example, list runtime.Object
	}{
		{&d.nodes, api.Resource("nodes"), &api.Node{}, &api.NodeList{}},
		{&d.maintenances, coordination.Resource("nodemaintenances"), &coordination.NodeMaintenance{}, &coordination.NodeMaintenanceList{}},
		{&d.namespaces, api.Resource("namespaces"), &api.Namespace{}, &api.NamespaceList{}},
	} {
		if *r.reader, err = newReader(optsGetter, r.resource, r.example, r.list); err != nil {
			d.Destroy()
			return nil, err
		}
	}
	return d, nil
}

// Destroy closes the connections to etcd.
func (d *Drains) Destroy() {
	if d == nil {
		return
	}
	for _, r := range []*reader{d.pods.reader, d.nodes, d.maintenances, d.namespaces} {
		if r != nil {
			r.destroy()
		}
	}
}

// afterCreate returns the validation of a creation, followed by the question whether a drain wants it.
func (d *Drains) afterCreate(validation rest.ValidateObjectFunc) rest.ValidateObjectFunc {
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
func (d *Drains) afterUpdate(validation rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if validation != nil {
			if err := validation(ctx, obj, old); err != nil {
				return err
			}
		}
		return d.confirm(ctx, obj, old)
	}
}

// confirm returns an error if the nodemaintenance-controller becomes a requester, and the drain of the node does not want
// the pod to leave (any more). One whose pod is gone is left to the evictionrequest-controller, as every such request. old
// is nil for a creation.
func (d *Drains) confirm(ctx context.Context, obj, old runtime.Object) error {
	request, isRequest := obj.(*coordination.EvictionRequest)
	if d == nil || !isRequest || request.Spec.Target.Pod == nil || !isForDrain(request) {
		return nil
	}
	if before, isRequest := old.(*coordination.EvictionRequest); isRequest && isForDrain(before) {
		return nil
	}
	target := request.Spec.Target.Pod
	against, err := d.Against(ctx, target.Name, types.UID(target.UID))
	switch {
	case err != nil:
		return apierrors.NewServiceUnavailable(err.Error())
	case against != "":
		refusal := apierrors.NewConflict(coordination.Resource("evictionrequests"), request.Name, fmt.Errorf(
			"spec.requesters: %s requests no eviction of pod %q, because %s: create a NodeMaintenance, or use another name for the requester",
			coordinationv1alpha1.NodeMaintenanceRequester, target.Name, against))
		refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionNotDrainedCause, Message: against, Field: "spec.requesters"}}
		return refusal
	}
	return nil
}

// Against returns what speaks against a drain that wants this pod of the namespace in the context to leave, or "". If the
// pod is gone, nothing does. The error says what could not be read.
func (d *Drains) Against(ctx context.Context, name string, uid types.UID) (string, error) {
	if d == nil {
		return "", nil
	}
	pod, err := d.pods.get(ctx, name)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading pod %q, which a node maintenance requests to leave: %w", name, err)
	case pod == nil || pod.UID != uid:
		return "", nil
	}
	against, err := d.against(ctx, pod)
	if err != nil {
		return "", fmt.Errorf("reading the maintenance of node %q, which requests that pod %q leaves: %w", pod.Spec.NodeName, name, err)
	}
	return against, nil
}

func isForDrain(request *coordination.EvictionRequest) bool {
	return slices.ContainsFunc(request.Spec.Requesters, func(requester coordination.Requester) bool {
		return requester.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}

// against returns what speaks against a drain that wants the pod to leave: the targets of its node do not take it, the
// maintenances that have begun with the node are over or have given it back, or a policy of one of them keeps the pod. The
// node says which have begun, unless a feature gate is off. Then its targets decide alone, which may be those of a
// maintenance before.
func (d *Drains) against(ctx context.Context, pod *v1.Pod) (string, error) {
	node, err := d.nodes.nodeOf(ctx, pod)
	if err != nil {
		return "", err
	}
	targets := maintenance.Targets{}
	if node.Status.MaintenanceStatus != nil {
		if targets, err = maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets); err != nil {
			return "", fmt.Errorf("status.maintenanceStatus.drainTargets: %w", err)
		}
	}
	if !targets.Take(pod) {
		return fmt.Sprintf("status.maintenanceStatus.drainTargets of its node %q does not take the pod (any more)", pod.Spec.NodeName), nil
	}
	ended, drained := "", false
	for _, admission := range maintenance.Admissions(node) {
		if admission.DoneTime != nil {
			continue
		}
		if maintenance.IsGivenBack(node, admission.MaintenanceUID) {
			ended = admission.MaintenanceName
			continue
		}
		m, err := d.draining(ctx, node, admission.MaintenanceName)
		switch {
		case err != nil:
			return "", err
		case m == nil || m.UID != admission.MaintenanceUID:
			ended = admission.MaintenanceName
			continue
		}
		drained = true
		keeps, err := d.keeps(ctx, m, pod)
		switch {
		case err != nil:
			return "", fmt.Errorf("NodeMaintenance %q: %w", m.Name, err)
		case keeps:
			return fmt.Sprintf("spec.podPolicies of NodeMaintenance %q, which drains its node %q, keeps the pod", m.Name, node.Name), nil
		}
	}
	if drained || ended == "" && !d.admits {
		return "", nil
	}
	// That of a shutdown has no admission.
	shutdown, exists, err := d.shutdownOf(ctx, node)
	switch {
	case err != nil:
		return "", err
	case shutdown != nil, ended == "" && !exists:
		return "", nil
	case ended == "":
		// Its targets are those of the shutdown, unless one has begun that an admission should name.
		others, err := d.anyDrains(ctx, node)
		if others || err != nil {
			return "", err
		}
		ended = maintenance.ShutdownName(node.Name)
	}
	return fmt.Sprintf("NodeMaintenance %q does not drain its node %q (any more)", ended, node.Name), nil
}

// shutdownOf returns the NodeMaintenance of a shutdown that drains the node, or nil, and whether there is one that does or
// did.
func (d *Drains) shutdownOf(ctx context.Context, node *v1.Node) (m *coordinationv1alpha1.NodeMaintenance, exists bool, err error) {
	stored := &coordination.NodeMaintenance{}
	if exists, err = d.maintenances.readUnscoped(ctx, maintenance.ShutdownName(node.Name), stored); !exists || err != nil {
		return nil, false, err
	}
	m, err = drainingOf(node, stored)
	return m, true, err
}

// anyDrains reports whether there is a NodeMaintenance that drains the node. All of them are read, which is only done for
// a node that has been shut down and whose admissions do not say it.
func (d *Drains) anyDrains(ctx context.Context, node *v1.Node) (bool, error) {
	list := &coordination.NodeMaintenanceList{}
	err := d.maintenances.objects.GetList(ctx, d.maintenances.prefix+"/", apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}, list)
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		if m, err := drainingOf(node, &list.Items[i]); m != nil || err != nil {
			return m != nil, err
		}
	}
	return false, nil
}

// nodeOf returns the node of the pod, an empty one if it does not exist.
func (r *reader) nodeOf(ctx context.Context, pod *v1.Pod) (*v1.Node, error) {
	stored, node := &api.Node{}, &v1.Node{}
	if pod.Spec.NodeName == "" {
		return node, nil
	}
	if found, err := r.readUnscoped(ctx, pod.Spec.NodeName, stored); !found || err != nil {
		return node, err
	}
	return node, corev1.Convert_core_Node_To_v1_Node(stored, node, nil)
}

// draining returns the NodeMaintenance with this name, or nil if none drains the node.
func (d *Drains) draining(ctx context.Context, node *v1.Node, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	stored := &coordination.NodeMaintenance{}
	if found, err := d.maintenances.readUnscoped(ctx, name, stored); !found || err != nil {
		return nil, err
	}
	return drainingOf(node, stored)
}

// drainingOf returns a stored NodeMaintenance, or nil if it does not drain the node.
func drainingOf(node *v1.Node, stored *coordination.NodeMaintenance) (*coordinationv1alpha1.NodeMaintenance, error) {
	m := &coordinationv1alpha1.NodeMaintenance{}
	if err := internalv1alpha1.Convert_coordination_NodeMaintenance_To_v1alpha1_NodeMaintenance(stored, m, nil); err != nil {
		return nil, err
	}
	if m.DeletionTimestamp != nil || m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain || !maintenance.SelectsNode(m.Spec.NodeSelector, node) {
		return nil, nil
	}
	return m, nil
}

// keeps reports whether a policy of the maintenance has the pod not evicted.
func (d *Drains) keeps(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, pod *v1.Pod) (bool, error) {
	policies, err := maintenance.NewPodPolicies(m.Spec.PodPolicies)
	if err != nil || policies.IsEmpty() || m.Name == maintenance.ShutdownName(pod.Spec.NodeName) {
		return false, err
	}
	namespace := &api.Namespace{}
	known := false
	if policies.SelectNamespaces() {
		if known, err = d.namespaces.readUnscoped(ctx, pod.Namespace, namespace); err != nil {
			return false, err
		}
	}
	action := policies.ActionFor(pod, func() (labels.Set, bool) { return namespace.Labels, known })
	return action != coordinationv1alpha1.NodeMaintenancePodDrain, nil
}
