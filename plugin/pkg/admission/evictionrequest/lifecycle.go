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
	"context"
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	"k8s.io/kubernetes/plugin/pkg/admission/internal/owners"
	"k8s.io/utils/ptr"
)

// The objects of lifecycle.k8s.io have an effect through a controller, which acts with its own permissions. So whoever
// writes them needs those that the same effect has in coordination.k8s.io: to delete the pod, to request its eviction or
// to withdraw that, and the verb intercept on the name of a responder, to report as that one.

// validateLifecycle returns an error if a change of an object of that group is not allowed.
func (p *Plugin) validateLifecycle(ctx context.Context, a admission.Attributes) error {
	isStatus := a.GetSubresource() == "status" && a.GetOperation() == admission.Update
	switch a.GetResource().Resource {
	case "evictionrequests":
		request, isRequest := a.GetObject().(*lifecycle.EvictionRequest)
		old, isOld := a.GetOldObject().(*lifecycle.EvictionRequest)
		switch {
		case isStatus && isRequest && isOld:
			if apiequality.Semantic.DeepEqual(request.Status, old.Status) {
				return nil
			}
			return p.authorizeLifecycleStatus(ctx, a, old.Name, "status")
		case a.GetSubresource() != "":
		case isRequest:
			return p.validateLifecycleRequest(ctx, a, request, old)
		case isOld:
			return p.validateLifecycleRequest(ctx, a, nil, old)
		}
	case "evictions":
		eviction, isEviction := a.GetObject().(*lifecycle.Eviction)
		old, isOld := a.GetOldObject().(*lifecycle.Eviction)
		switch {
		case isStatus && isEviction && isOld:
			return p.validateResponders(ctx, a, eviction, old)
		case a.GetSubresource() == "":
			// Whatever these say, the controller takes nothing from them but reports in their statuses. They are
			// made again.
			return nil
		}
	default:
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("unexpected objects in %s of %s: new %T, old %T", a.GetOperation(), a.GetResource().GroupResource(), a.GetObject(), a.GetOldObject()))
}

// validateLifecycleRequest returns an error unless the user may delete the pod whose eviction a request wants, or does not
// want any more. request is nil for a deletion, and old for a creation. What is over needs no permission.
func (p *Plugin) validateLifecycleRequest(ctx context.Context, a admission.Attributes, request, old *lifecycle.EvictionRequest) error {
	isOver := func(conditionType lifecycle.EvictionConditionType) bool {
		return meta.IsStatusConditionTrue(old.Status.Conditions, string(conditionType))
	}
	switch {
	case request == nil && ptr.Deref(old.Status.ObservedGeneration, 0) == old.Generation && (isOver(lifecycle.EvictionConditionTargetEvicted) || isOver(lifecycle.EvictionConditionFailed)):
		return nil
	case request != nil && old != nil && apiequality.Semantic.DeepEqual(request.Spec, old.Spec) && !owners.AddsOwner(request, old):
		return nil // With an owner that does not exist, the garbage collector would withdraw it.
	}
	for _, r := range []*lifecycle.EvictionRequest{request, old} {
		if r == nil || r.Spec.Target.Pod == nil {
			continue
		}
		// The pod of a request of the other group, with the same messages.
		target := &coordination.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
		target.Spec.Target.Pod = &coordination.LocalPodReference{Name: r.Spec.Target.Pod.Name, UID: string(r.Spec.Target.Pod.UID)}
		if err := p.authorize(ctx, a, target); err != nil {
			return err
		}
	}
	return nil
}

// validateResponders returns an error unless the user may report as each responder whose report changes. Everything else
// belongs to the controller.
func (p *Plugin) validateResponders(ctx context.Context, a admission.Attributes, eviction, old *lifecycle.Eviction) error {
	changed, others := changedReports(eviction, old)
	if !others && len(changed) == 0 {
		return nil
	}
	control := p.authorizeLifecycleStatus(ctx, a, old.Name, "status, except for the own report in status.responders")
	if others || control == nil {
		return control
	}
	for _, name := range sets.List(changed) {
		report := statusChange{field: fmt.Sprintf("status.responders[%s]", name), interceptor: name}
		if err := p.authorizeReport(ctx, a, &coordination.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Name: old.Name}}, report); err != nil {
			return err
		}
	}
	return nil
}

// changedReports returns the responders whose reports an update changes, and whether it changes anything else.
func changedReports(eviction, old *lifecycle.Eviction) (changed sets.Set[string], others bool) {
	changed = sets.New[string]()
	after, before := eviction.Status.DeepCopy(), old.Status.DeepCopy()
	sameName := func(x, y lifecycle.ResponderStatus) bool { return x.Name == y.Name }
	if !slices.EqualFunc(after.Responders, before.Responders, sameName) {
		return changed, true
	}
	for i := range after.Responders {
		if !apiequality.Semantic.DeepEqual(after.Responders[i], before.Responders[i]) {
			changed.Insert(after.Responders[i].Name)
		}
	}
	after.Responders, before.Responders = nil, nil
	return changed, !apiequality.Semantic.DeepEqual(after, before)
}

// authorizeLifecycleStatus returns an error unless the user may write the status of these objects, in all namespaces:
// whoever has all permissions in one has not been given this by accident.
func (p *Plugin) authorizeLifecycleStatus(ctx context.Context, a admission.Attributes, name, field string) error {
	allowed, err := p.isAllowed(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: coordinationv1alpha1.EvictionRequestControlVerb, Namespace: metav1.NamespaceAll,
		APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version, Resource: a.GetResource().Resource, Subresource: a.GetSubresource(), Name: name,
	})
	switch {
	case allowed:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to change %s: %w", a.GetUserInfo().GetName(), field, err))
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), name, fmt.Errorf("user %q cannot change %s, which belongs to the controller: "+
		"this requires the verb %q on the resource %q in API group %q in all namespaces, which only controllers should have",
		a.GetUserInfo().GetName(), field, coordinationv1alpha1.EvictionRequestControlVerb, a.GetResource().Resource+"/"+a.GetSubresource(), a.GetResource().Group))
}
