/*
Copyright The Kubernetes Authors.

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

// Package declared has what the tests of the declared rules of our kinds share.
package declared

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/test/declarative_validation/meta"

	// Registers the versions of the API group, whose rules are tested.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// Context returns the context of a request, by which the rules of the version are found. The
// subresource is empty for the main endpoint.
func Context(version, verb, resource, subresource string) context.Context {
	return genericapirequest.WithRequestInfo(context.Background(), &genericapirequest.RequestInfo{
		APIPrefix: "apis", APIGroup: coordination.GroupName, APIVersion: version,
		Resource: resource, Subresource: subresource, IsResourceRequest: true, Verb: verb,
	})
}

// VerifyStatus verifies an update of the status, by this version and by all others.
func VerifyStatus(t *testing.T, version, resource string, changed, stored runtime.Object, strategy rest.RESTUpdateStrategy, want field.ErrorList) {
	t.Helper()
	ctx := Context(version, "update", resource, "status")
	apitesting.VerifyUpdateValidationEquivalence(t, ctx, changed, stored, strategy, want, apitesting.WithSubResources("status"))
}

// RunConditions runs upstream's test cases for the conditions of a kind. Upstream's own function,
// RunConditionTestCases, expects that handwritten validation reports a type that is there twice.
// For our kinds, the declared rule alone reports it.
func RunConditions[T runtime.Object](t *testing.T, version, resource string, stored T, strategy rest.RESTUpdateStrategy, conditionsOf func(T) *[]metav1.Condition) {
	for _, test := range meta.GenerateConditionTestCases(field.NewPath("status", "conditions")) {
		t.Run(version+", conditions, "+test.Name, func(t *testing.T) {
			changed := stored.DeepCopyObject().(T)
			*conditionsOf(changed) = test.Conditions
			VerifyStatus(t, version, resource, changed, stored, strategy, withEnforcedDuplicates(test.ExpectedErrs))
		})
	}
}

func withEnforcedDuplicates(errs field.ErrorList) field.ErrorList {
	var enforced field.ErrorList
	for _, err := range errs {
		if err.Type == field.ErrorTypeDuplicate {
			err = &field.Error{Type: err.Type, Field: err.Field}
		}
		enforced = append(enforced, err)
	}
	return enforced
}

// Numbered returns so many different names.
func Numbered(count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("number-%d.example.com", i))
	}
	return names
}

// Conditions returns a condition of each type, none of which is True.
func Conditions(types ...string) []metav1.Condition {
	var conditions []metav1.Condition
	for _, conditionType := range types {
		conditions = append(conditions, meta.MkCondition(meta.TweakType(conditionType), meta.TweakStatus(metav1.ConditionFalse)))
	}
	return conditions
}

// TooMany is the error of a list with one item more than the most that it may have.
func TooMany(path *field.Path, most int) *field.Error {
	return field.TooMany(path, most+1, most).WithOrigin("maxItems")
}

// TooLong is the error of a text with more characters than it may have.
func TooLong(path *field.Path, most int) *field.Error {
	return field.TooLongCharacters(path, "", most).WithOrigin("maxLength")
}

// TooSmall is the error of a number that is less than its minimum.
func TooSmall(path *field.Path) *field.Error {
	return field.Invalid(path, nil, "").WithOrigin("minimum")
}

// TooLarge is the error of a number that is greater than its maximum.
func TooLarge(path *field.Path) *field.Error {
	return field.Invalid(path, nil, "").WithOrigin("maximum")
}

// Missing is the error of a field that is not set.
func Missing(path *field.Path) *field.Error { return field.Required(path, "") }

// Unknown is the error of a word that is none of those that the field may have.
func Unknown(path *field.Path) *field.Error { return field.NotSupported[string](path, "", nil) }
