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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/plugin/pkg/admission/internal/owners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// validateReservedRequesters returns an error unless the user may act as each requester with a reserved
// name that the update adds or removes. old is nil for a creation. Nothing is lost with a requester of a
// request that is finished.
func (p *Plugin) validateReservedRequesters(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) error {
	before, after := reservedRequesters(old), reservedRequesters(request)
	if err := p.authorizeRequesters(ctx, a, request, reassigned(before.Intersection(after), request, old), "assigned to other field managers in"); err != nil {
		return err
	}
	if err := p.authorizeRequesters(ctx, a, request, after.Difference(before), "added to"); err != nil {
		return err
	}
	if old == nil || isFinished(old) {
		return nil
	}
	return p.authorizeRequesters(ctx, a, request, before.Difference(after), "removed from")
}

// authorizeRequesters returns an error unless the user may act as each of these requesters.
func (p *Plugin) authorizeRequesters(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest, names sets.Set[string], how string) error {
	for _, name := range sets.List(names) {
		allowed, err := p.isAllowed(ctx, authorizer.AttributesRecord{
			User:       a.GetUserInfo(),
			Verb:       coordinationv1alpha1.EvictionRequestVerb,
			Namespace:  metav1.NamespaceAll,
			APIGroup:   coordination.GroupName,
			APIVersion: "*", // It is a virtual resource without a version.
			Resource:   coordinationv1alpha1.EvictionRequesterResource,
			Name:       name,
		})
		switch {
		case allowed:
			continue
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to act as the requester %s: %w", a.GetUserInfo().GetName(), name, err))
		}
		return forbidden(a, request, fmt.Errorf("the requester %s cannot be %s spec.requesters by user %q: names in the domain k8s.io are reserved, "+
			"and need the verb %q on the resource %q in API group %q with the name %q in all namespaces; "+
			"use a name in your own domain, or grant it with a ClusterRoleBinding and the rule {apiGroups: [%s], resources: [%s], resourceNames: [%s], verbs: [%s]}",
			name, how, a.GetUserInfo().GetName(),
			coordinationv1alpha1.EvictionRequestVerb, coordinationv1alpha1.EvictionRequesterResource, coordination.GroupName, name,
			coordination.GroupName, coordinationv1alpha1.EvictionRequesterResource, name, coordinationv1alpha1.EvictionRequestVerb))
	}
	return nil
}

// reassigned returns which of these requesters have other appliers after the update: one that owns the entry of
// another requester withdraws that, or is refused, when it applies the next time.
func reassigned(names sets.Set[string], request, old *coordination.EvictionRequest) sets.Set[string] {
	changed := sets.New[string]()
	for name := range names {
		isEntry := func(path fieldpath.Path) bool {
			return len(path) > 2 && owners.IsField(path, 0, "spec") && owners.IsField(path, 1, "requesters") && isKey(path[2], name)
		}
		if !owners.KeepsAppliers(request, old, isEntry) {
			changed.Insert(name)
		}
	}
	return changed
}

func isKey(element fieldpath.PathElement, name string) bool {
	return element.Key != nil && slices.ContainsFunc(*element.Key, func(field value.Field) bool {
		return field.Name == "name" && field.Value.IsString() && field.Value.AsString() == name
	})
}

// reservedRequesters returns the requesters of a request whose names are reserved.
func reservedRequesters(request *coordination.EvictionRequest) sets.Set[string] {
	names := sets.New[string]()
	if request == nil {
		return names
	}
	for _, requester := range request.Spec.Requesters {
		if evictioninterceptor.IsReserved(requester.Name) {
			names.Insert(requester.Name)
		}
	}
	return names
}
