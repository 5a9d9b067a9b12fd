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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/plugin/pkg/admission/internal/owners"
)

// validateEvictionsRequester returns an error if a client other than kube-apiserver adds the
// requester that stands for the callers of pods/eviction: the controller withdraws it when there are
// no calls. The name is reserved whether or not evictions request anything on this server, because
// another one may have the gate on.
func validateEvictionsRequester(a admission.Attributes, request, old *coordination.EvictionRequest) error {
	if !hasEvictionsRequester(request) || old != nil && hasEvictionsRequester(old) || isAPIServer(a.GetUserInfo()) {
		return nil
	}
	return forbidden(a, request, fmt.Errorf("the requester %s is reserved for evictions through pods/eviction, and only kube-apiserver can add it: "+
		"use a name in your own domain", coordinationv1alpha1.EvictionRequesterEvictions))
}

// validateCallAnnotations returns an error if a client other than kube-apiserver changes the annotations about callers of
// pods/eviction while these request the eviction: the controller would withdraw them, as if they had given up.
func validateCallAnnotations(a admission.Attributes, request, old *coordination.EvictionRequest) error {
	if !hasEvictionsRequester(request) || isAPIServer(a.GetUserInfo()) {
		return nil
	}
	for _, key := range evictionrequesttools.EvictionCallAnnotations() {
		if value, found := request.Annotations[key]; value != old.Annotations[key] || found != hasAnnotation(old, key) {
			return forbidden(a, request, fmt.Errorf("the annotation %s is written by kube-apiserver while %s is in spec.requesters: leave it as it is, %q",
				key, coordinationv1alpha1.EvictionRequesterEvictions, old.Annotations[key]))
		}
	}
	return nil
}

func hasAnnotation(request *coordination.EvictionRequest, key string) bool {
	_, found := request.Annotations[key]
	return found
}

func hasEvictionsRequester(request *coordination.EvictionRequest) bool {
	return slices.ContainsFunc(request.Spec.Requesters, isEvictionsRequester)
}

func isEvictionsRequester(requester coordination.Requester) bool {
	return requester.Name == coordinationv1alpha1.EvictionRequesterEvictions
}

// isAPIServer reports whether kube-apiserver itself is the client.
func isAPIServer(info user.Info) bool {
	return info.GetName() == user.APIServerUser && slices.Contains(info.GetGroups(), user.SystemPrivilegedGroup)
}

// mayWithdrawEvictions reports whether the update is one by which the controller withdraws the
// requester that stands for the callers of pods/eviction. The controller has no permission to delete
// pods.
func (p *Plugin) mayWithdrawEvictions(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) bool {
	if !withdrawsEvictions(request, old) {
		return false
	}
	allowed, _ := p.isAllowed(ctx, authorizer.AttributesRecord{
		User:        a.GetUserInfo(),
		Verb:        coordinationv1alpha1.EvictionRequestControlVerb,
		Namespace:   metav1.NamespaceAll,
		APIGroup:    a.GetResource().Group,
		APIVersion:  a.GetResource().Version,
		Resource:    a.GetResource().Resource,
		Subresource: "status",
		Name:        old.Name,
	})
	return allowed
}

// withdrawsEvictions reports whether an update withdraws that requester, and changes nothing else
// that an eviction depends on.
func withdrawsEvictions(request, old *coordination.EvictionRequest) bool {
	if !hasEvictionsRequester(old) || owners.AddsOwner(request, old) || addsFinalizer(request, old) {
		return false
	}
	withdrawn := old.DeepCopy()
	withdrawn.Spec.Requesters = slices.DeleteFunc(withdrawn.Spec.Requesters, isEvictionsRequester)
	for _, key := range evictionrequesttools.EvictionCallAnnotations() {
		// A controller of an earlier release leaves the one that it does not know.
		if _, kept := request.Annotations[key]; !kept {
			delete(withdrawn.Annotations, key)
		}
	}
	withdrawn.Generation = request.Generation
	return apiequality.Semantic.DeepEqual(withoutHousekeeping(request), withoutHousekeeping(withdrawn))
}
