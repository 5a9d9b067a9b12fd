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
	"fmt"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// maxAnnotationsSize limits the annotations that kube-apiserver does not write itself: with all other fields, the request
// must be small enough for etcd. It leaves room for those of kube-apiserver, too: who fills the annotations must not be able
// to keep callers of pods/eviction out, or requesters from withdrawing. It is not part of the validation, whose limit is
// the same for all kinds.
const maxAnnotationsSize = 64 * 1024

// maxAnnotationKeysSize limits the keys of the same annotations, with evictioninterceptor.FieldSize for each. It is below
// what the validation allows for managed fields that were reset, so that nobody keeps a drain out.
const maxAnnotationKeysSize = 32 * 1024

// validateAnnotations returns an error if the annotations are too large or too many, and an update makes that worse.
func validateAnnotations(a admission.Attributes, request, old *coordination.EvictionRequest) error {
	size, keys := annotationsSize(request.Annotations)
	stored, storedKeys := 0, 0
	if old != nil {
		stored, storedKeys = annotationsSize(old.Annotations)
	}
	path := field.NewPath("metadata", "annotations")
	switch {
	case size > maxAnnotationsSize && size > stored:
		return apierrors.NewInvalid(a.GetKind().GroupKind(), request.Name, field.ErrorList{field.TooLong(path, "", maxAnnotationsSize)})
	case keys > maxAnnotationKeysSize && keys > storedKeys:
		return apierrors.NewInvalid(a.GetKind().GroupKind(), request.Name, field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("keys must have at most %d bytes together, with %d more for each, and have %d: use fewer annotations, or shorter keys", maxAnnotationKeysSize, evictioninterceptor.FieldSize, keys))})
	}
	return nil
}

// annotationsSize returns the size of the annotations that clients write, and that of their keys in managed fields.
func annotationsSize(annotations map[string]string) (size, keys int) {
	own := append(evictionrequesttools.EvictionCallAnnotations(), coordinationv1alpha1.EvictionWithdrawnByAnnotation)
	for key, value := range annotations {
		if !slices.Contains(own, key) {
			size += len(key) + len(value)
			keys += len(key) + evictioninterceptor.FieldSize
		}
	}
	return size, keys
}
