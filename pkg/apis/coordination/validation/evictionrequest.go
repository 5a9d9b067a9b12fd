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

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
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
	errs = append(errs, validateTarget(request, field.NewPath("spec", "target"))...)
	errs = append(errs, validateRequesters(request.Spec.Requesters, field.NewPath("spec", "requesters"))...)
	return errs
}

// ValidateEvictionRequestUpdate validates an update of metadata and spec. All requesters may be
// removed: this cancels the request.
func ValidateEvictionRequestUpdate(request, oldRequest *coordination.EvictionRequest) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&request.ObjectMeta, &oldRequest.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateRequesters(request.Spec.Requesters, field.NewPath("spec", "requesters"))...)
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

func validateRequesters(requesters []coordination.Requester, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, requester := range requesters {
		if len(requester.Name) == 0 {
			continue // Reported by declarative validation.
		}
		errs = append(errs, evictionrequest.ValidateParticipantName(requester.Name, fldPath.Index(i).Child("name"))...)
	}
	return errs
}
