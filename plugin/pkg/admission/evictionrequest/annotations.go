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
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// maxAnnotationsSize limits the annotations that kube-apiserver does not write itself. It leaves the rest of what the
// annotations of an object may have for these: who fills them must not be able to keep callers of pods/eviction out, or
// requesters from withdrawing. It is not part of the validation, whose limit is the same for all kinds.
const maxAnnotationsSize = apimachineryvalidation.TotalAnnotationSizeLimitB - 4*1024

// validateAnnotations returns an error if the annotations are too large, and an update makes them larger.
func validateAnnotations(a admission.Attributes, request, old *coordination.EvictionRequest) error {
	size, stored := annotationsSize(request.Annotations), 0
	if old != nil {
		stored = annotationsSize(old.Annotations)
	}
	if size <= maxAnnotationsSize || size <= stored {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), request.Name, field.ErrorList{
		field.TooLong(field.NewPath("metadata", "annotations"), "", maxAnnotationsSize),
	})
}

func annotationsSize(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		switch key {
		case coordinationv1alpha1.EvictionCallTimeAnnotation, coordinationv1alpha1.EvictionCallCordonAnnotation,
			coordinationv1alpha1.EvictionCallsRepeatAnnotation, coordinationv1alpha1.EvictionCallGracePeriodAnnotation, coordinationv1alpha1.EvictionWithdrawnByAnnotation:
		default:
			size += len(key) + len(value)
		}
	}
	return size
}
