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
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	"k8s.io/utils/ptr"
)

const keeper = "example.com/keeper"

// lifecycleRights lets the owner delete the pod of requests, keeper report as itself, and the controller write statuses: the
// one of the namespace has all permissions there.
func lifecycleRights(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	name, allowed := a.GetUser().GetName(), false
	switch a.GetVerb() {
	case "delete":
		allowed = a.GetResource() == "pods" && a.GetName() == podName && name == owner
	case "intercept":
		allowed = a.GetAPIGroup() == "coordination.k8s.io" && a.GetName() == name && a.GetNamespace() == namespace
	case "control":
		allowed = a.GetAPIGroup() == "lifecycle.k8s.io" && a.GetSubresource() == "status" && (a.GetNamespace() == "" && name == controller || a.GetNamespace() == namespace && name == owner)
	}
	if allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func validateLifecycle(t *testing.T, operation admission.Operation, username, resource, subresource string, object, old runtime.Object) error {
	t.Helper()
	plugin := NewPlugin()
	plugin.lifecycle = true
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(lifecycleRights))
	return plugin.Validate(t.Context(), admission.NewAttributesRecord(object, old, lifecycle.SchemeGroupVersion.WithKind("Any"), namespace, "one",
		lifecycle.Resource(resource).WithVersion("v1alpha1"), subresource, operation, nil, false, &user.DefaultInfo{Name: username}), nil)
}

type lifecycleOption func(*lifecycle.EvictionRequest)

func lifecycleRequest(options ...lifecycleOption) *lifecycle.EvictionRequest {
	request := &lifecycle.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace, Generation: 2}}
	request.Spec.Target.Pod = &lifecycle.EvictionRequestPodReference{Name: podName, UID: podUID}
	request.Spec.Intent = lifecycle.EvictionRequestIntentEviction
	for _, option := range options {
		option(request)
	}
	return request
}

func over(observed int64, conditionType lifecycle.EvictionConditionType) lifecycleOption {
	return func(request *lifecycle.EvictionRequest) {
		request.Status.ObservedGeneration = ptr.To(observed)
		request.Status.Conditions = []metav1.Condition{{Type: string(conditionType), Status: metav1.ConditionTrue}}
	}
}

func ofPod(name string) lifecycleOption {
	return func(request *lifecycle.EvictionRequest) { request.Spec.Target.Pod.Name = name }
}

// Who requests the eviction of a pod, or withdraws that, needs the permission to delete it.
func TestValidateLifecycleRequest(t *testing.T) {
	withdraws := func(request *lifecycle.EvictionRequest) {
		request.Spec.Intent = lifecycle.EvictionRequestIntentWithdrawn
	}
	owned := func(request *lifecycle.EvictionRequest) {
		request.OwnerReferences = []metav1.OwnerReference{{UID: "owner"}}
	}
	labeled := func(request *lifecycle.EvictionRequest) { request.Labels = map[string]string{"a": "b"} }
	for name, test := range map[string]struct {
		request, old *lifecycle.EvictionRequest
		subresource  string
		// those of owner and guest that are allowed
		allowed, anybody bool
	}{
		"is made":                          {request: lifecycleRequest(), allowed: true},
		"is made for another pod":          {request: lifecycleRequest(ofPod("db"))},
		"is deleted":                       {old: lifecycleRequest(), allowed: true},
		"is deleted after the end":         {old: lifecycleRequest(over(2, lifecycle.EvictionConditionTargetEvicted)), anybody: true},
		"is deleted after a failure":       {old: lifecycleRequest(over(2, lifecycle.EvictionConditionFailed)), anybody: true},
		"is deleted, and was asked again":  {old: lifecycleRequest(over(1, lifecycle.EvictionConditionFailed)), allowed: true},
		"is withdrawn":                     {request: lifecycleRequest(withdraws), old: lifecycleRequest(), allowed: true},
		"gets labels":                      {request: lifecycleRequest(labeled), old: lifecycleRequest(), anybody: true},
		"gets an owner, which may be gone": {request: lifecycleRequest(owned), old: lifecycleRequest(), allowed: true},
		"has another pod":                  {request: lifecycleRequest(), old: lifecycleRequest(ofPod("db"))},
		"gets another pod":                 {request: lifecycleRequest(ofPod("db")), old: lifecycleRequest()},
		"its status":                       {request: lifecycleRequest(over(2, lifecycle.EvictionConditionFailed)), old: lifecycleRequest(), subresource: "status"},
		"its status, unchanged":            {request: lifecycleRequest(labeled), old: lifecycleRequest(), subresource: "status", anybody: true},
	} {
		t.Run(name, func(t *testing.T) {
			operation, object, old := admission.Update, runtime.Object(test.request), runtime.Object(test.old)
			if test.request == nil {
				operation, object = admission.Delete, nil
			}
			if test.old == nil {
				operation, old = admission.Create, nil
			}
			for user, want := range map[string]bool{owner: test.allowed || test.anybody, guest: test.anybody} {
				if err := validateLifecycle(t, operation, user, "evictionrequests", test.subresource, object, old); (err == nil) != want || err != nil && !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v, allowed has to be %t", user, err, want)
				}
			}
			if test.subresource != "" {
				if err := validateLifecycle(t, operation, controller, "evictionrequests", test.subresource, object, old); err != nil {
					t.Errorf("the controller: %v", err)
				}
			}
		})
	}
}

// A responder writes its own report. Everything else is the controller's, also for who has all permissions in a namespace.
func TestValidateResponders(t *testing.T) {
	old := &lifecycle.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace}}
	old.Status.Responders = []lifecycle.ResponderStatus{{Name: keeper}, {Name: "example.com/other"}}
	old.Status.TargetResponders = []lifecycle.TargetResponder{{Name: keeper, State: lifecycle.ResponderStateActive}}
	for name, test := range map[string]struct {
		change          func(*lifecycle.EvictionStatus)
		allowed, nobody bool
	}{
		"nothing":         {func(*lifecycle.EvictionStatus) {}, true, true},
		"the own report":  {func(s *lifecycle.EvictionStatus) { s.Responders[0].Message = ptr.To("Saving.") }, true, false},
		"that of another": {func(s *lifecycle.EvictionStatus) { s.Responders[1].Message = ptr.To("Saving.") }, false, false},
		"both": {func(s *lifecycle.EvictionStatus) {
			s.Responders[0].Message, s.Responders[1].Message = ptr.To("a"), ptr.To("b")
		}, false, false},
		"a new entry": {func(s *lifecycle.EvictionStatus) {
			s.Responders = append(s.Responders, lifecycle.ResponderStatus{Name: "a/b"})
		}, false, false},
		"an entry less":     {func(s *lifecycle.EvictionStatus) { s.Responders = s.Responders[:1] }, false, false},
		"another name":      {func(s *lifecycle.EvictionStatus) { s.Responders[0].Name = "example.com/new" }, false, false},
		"the own state":     {func(s *lifecycle.EvictionStatus) { s.TargetResponders[0].State = lifecycle.ResponderStateCompleted }, false, false},
		"report, and state": {func(s *lifecycle.EvictionStatus) { s.Responders[0].Message, s.TargetResponders = ptr.To("a"), nil }, false, false},
		"a condition":       {func(s *lifecycle.EvictionStatus) { s.Conditions = []metav1.Condition{{Type: "Failed"}} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := old.DeepCopy()
			test.change(&changed.Status)
			for user, want := range map[string]bool{controller: true, keeper: test.allowed, owner: test.nobody, guest: test.nobody} {
				if err := validateLifecycle(t, admission.Update, user, "evictions", "status", changed, old); (err == nil) != want || err != nil && !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v, allowed has to be %t", user, err, want)
				}
			}
		})
	}
	if err := validateLifecycle(t, admission.Update, guest, "evictions", "", old, old); err != nil {
		t.Errorf("an Eviction itself: %v", err)
	}
	if err := validateLifecycle(t, admission.Update, controller, "evictions", "other", old, old); !apierrors.IsBadRequest(err) {
		t.Errorf("another subresource: %v", err)
	}
}
