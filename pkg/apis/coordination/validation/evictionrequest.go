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

package validation

import (
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"
)

// This file has only the rules that the markers in k8s.io/api/coordination/v1alpha1 cannot express:
// presence, bounds, uniqueness and immutability are declared there.

// ValidateEvictionRequestCreate validates a new EvictionRequest.
func ValidateEvictionRequestCreate(request *coordination.EvictionRequest) field.ErrorList {
	metaPath := field.NewPath("metadata")
	errs := corevalidation.ValidateObjectMeta(&request.ObjectMeta, true, apimachineryvalidation.NameIsDNSSubdomain, metaPath)
	if len(request.GenerateName) > 0 {
		errs = append(errs, field.Forbidden(metaPath.Child("generateName"), "is not supported: set metadata.name to the UID of the pod"))
	}
	if len(request.Spec.Requesters) == 0 {
		errs = append(errs, field.Required(field.NewPath("spec", "requesters"), "must have at least one requester: add the name of the client that requests the eviction"))
	}
	errs = append(errs, validateSize(request, nil)...)
	errs = append(errs, validateTarget(request, field.NewPath("spec", "target"))...)
	errs = append(errs, validateRequesters(request.Spec.Requesters, nil, field.NewPath("spec", "requesters"))...)
	return errs
}

// ValidateEvictionRequestUpdate validates an update of metadata and spec. All requesters may be
// removed: this cancels the request.
func ValidateEvictionRequestUpdate(request, oldRequest *coordination.EvictionRequest) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&request.ObjectMeta, &oldRequest.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateSize(request, oldRequest)...)
	errs = append(errs, validateRequesters(request.Spec.Requesters, oldRequest.Spec.Requesters, field.NewPath("spec", "requesters"))...)
	return append(errs, validateHeartbeatDeadline(request.Spec.HeartbeatDeadlineSeconds, oldRequest.Spec.HeartbeatDeadlineSeconds, field.NewPath("spec", "heartbeatDeadlineSeconds"))...)
}

// validateHeartbeatDeadline validates that a deadline is only lowered, and not below the default: interceptors
// that keep to it never lose their turn because a requester joins.
func validateHeartbeatDeadline(seconds, old *int32, fldPath *field.Path) field.ErrorList {
	const standard = coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds
	before := ptr.Deref(old, standard)
	switch after := ptr.Deref(seconds, standard); {
	case after == before, before > standard && after >= standard && after < before:
		return nil
	case before > standard:
		return field.ErrorList{field.Invalid(fldPath, after, fmt.Sprintf("must not be greater than the current value, %d, which another requester may need, nor be lowered below %d: "+
			"keep it from %d to %d", before, standard, standard, before))}
	default:
		return field.ErrorList{field.Invalid(fldPath, after, fmt.Sprintf("field is immutable, except that more than %d may be lowered: omit it, or keep %d", standard, before))}
	}
}

const (
	// maxMetadataSize limits the labels, finalizers, owners and managed fields, in bytes. Annotations have a limit of
	// their own. With the longest reports of all interceptors, the request is still small enough for etcd: who fills it
	// must not be able to keep the controller from writing.
	maxMetadataSize = 48 * 1024

	// maxReservedFields is how many bytes of the fields of a requester whose name is reserved, and of the controller, do
	// not count: who fills the request must not be able to keep such a requester out, or in.
	maxReservedFields = 8 * 1024

	// initialManager is the manager that an apply makes kube-apiserver give to all fields of an object without managed
	// fields, and maxInitialFields is how many bytes of these do not count: who resets the managed fields, as everybody
	// may who updates the request, must not be able to keep the next requester out. It is enough for all that
	// maxMetadataSize allows, for the keys of annotations that the admission plugin allows, and for all requesters.
	initialManager   = "before-first-apply"
	maxInitialFields = 120 * 1024

	// finalizerSize and ownerSize are what a finalizer and an owner count besides their texts: what is around their
	// keys in managed fields.
	finalizerSize, ownerSize = 12, 20
)

// validateSize validates what an update makes larger. Both versions are measured alike: when a requester withdraws, what
// is left of its fields must not count more than before.
func validateSize(request, oldRequest *coordination.EvictionRequest) field.ErrorList {
	requesters := request.Spec.Requesters
	if oldRequest != nil {
		requesters = slices.Concat(requesters, oldRequest.Spec.Requesters)
	}
	size := metadataSize(request, requesters)
	if size <= maxMetadataSize || oldRequest != nil && size <= metadataSize(oldRequest, requesters) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), field.OmitValueType{},
		fmt.Sprintf("labels, finalizers, ownerReferences and managedFields must have at most %d bytes together, and have %d: remove labels, which are copied from the pod, or finalizers and owners, or apply fewer fields",
			maxMetadataSize, size))}
}

// metadataSize returns the size of what the limit is about, without what is reserved for those of the requesters that may
// have it.
func metadataSize(request *coordination.EvictionRequest, requesters []coordination.Requester) int {
	size := evictioninterceptor.LabelsSize(request.Labels)
	for _, finalizer := range request.Finalizers {
		size += len(finalizer) + finalizerSize
	}
	for i := range request.OwnerReferences {
		owner := &request.OwnerReferences[i]
		size += len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID) + ownerSize
	}
	for manager, fields := range fieldsSizes(request.ManagedFields) {
		size += fields
		switch {
		case manager == initialManager:
			size -= min(fields, maxInitialFields)
		case manager == evictioninterceptor.ControllerFieldManager, isReservedManager(manager, requesters):
			size -= min(fields, maxReservedFields)
		}
	}
	return size
}

// fieldsSizes returns the size of the managed fields of each manager, with its name.
func fieldsSizes(entries []metav1.ManagedFieldsEntry) map[string]int {
	sizes := map[string]int{}
	for i := range entries {
		sizes[entries[i].Manager] += len(entries[i].Manager)
		if fields := entries[i].FieldsV1; fields != nil {
			sizes[entries[i].Manager] += len(fields.GetRawBytes())
		}
	}
	return sizes
}

// isReservedManager reports whether it is the manager of a requester whose name is reserved.
func isReservedManager(manager string, requesters []coordination.Requester) bool {
	return slices.ContainsFunc(requesters, func(requester coordination.Requester) bool {
		return evictioninterceptor.IsReserved(requester.Name) && evictionrequest.FieldManager(requester.Name) == manager
	})
}

// validateTarget validates that the name of the request is the UID of its target: this makes the
// request unique for a pod instance.
func validateTarget(request *coordination.EvictionRequest, fldPath *field.Path) field.ErrorList {
	pod := request.Spec.Target.Pod
	if pod == nil {
		return nil // Reported by declarative validation, like an empty name or UID.
	}
	var errs field.ErrorList
	if len(pod.Name) > 0 {
		for _, msg := range corevalidation.ValidatePodName(pod.Name, false) {
			errs = append(errs, field.Invalid(fldPath.Child("pod", "name"), pod.Name, msg))
		}
	}
	if len(pod.UID) > 0 && request.Name != pod.UID {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), request.Name,
			fmt.Sprintf("must be the UID of the target pod, spec.target.pod.uid: %q", pod.UID)))
	}
	return errs
}

// maxOrdinaryRequesters is the maximum number of requesters whose names are not reserved. The declared
// maximum of spec.requesters allows the components of Kubernetes in addition.
const maxOrdinaryRequesters = 100

// validateRequesters validates the names, and that they leave the places for the components of Kubernetes: who
// fills the list must not be able to keep a drain out.
func validateRequesters(requesters, old []coordination.Requester, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, requester := range requesters {
		if len(requester.Name) == 0 {
			continue // Reported by declarative validation.
		}
		errs = append(errs, evictionrequest.ValidateParticipantName(requester.Name, fldPath.Index(i).Child("name"))...)
	}
	if ordinary := ordinaryRequesters(requesters); ordinary > maxOrdinaryRequesters && ordinary > ordinaryRequesters(old) {
		errs = append(errs, field.TooMany(fldPath, ordinary, maxOrdinaryRequesters))
	}
	return errs
}

func ordinaryRequesters(requesters []coordination.Requester) int {
	ordinary := 0
	for _, requester := range requesters {
		if !evictioninterceptor.IsReserved(requester.Name) {
			ordinary++
		}
	}
	return ordinary
}
