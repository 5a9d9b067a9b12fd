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

package interceptedeviction

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestRights: these permissions let a caller pass interceptors, as the API documents them.
func TestRights(t *testing.T) {
	caller := &user.DefaultInfo{Name: "evictor"}
	bypass := authorizer.AttributesRecord{
		User: caller, Verb: "bypass", Namespace: namespace, APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1",
		Resource: "evictionrequests", Name: string(podUID), ResourceRequest: true,
	}
	intercept := authorizer.AttributesRecord{
		User: caller, Verb: "intercept", Namespace: namespace, APIGroup: "coordination.k8s.io", APIVersion: "*",
		Resource: "evictioninterceptors", Name: first, ResourceRequest: true,
	}
	allOf := func(attributes authorizer.AttributesRecord) authorizer.AttributesRecord {
		attributes.Verb = "*"
		return attributes
	}
	everywhere := func(attributes authorizer.AttributesRecord) authorizer.AttributesRecord {
		attributes.Namespace = ""
		return attributes
	}
	for name, test := range map[string]struct {
		// asked is whether the caller asks to bypass the interceptors.
		asked   bool
		allowed []authorizer.AttributesRecord
		// err is what the authorizer returns with each decision.
		err  error
		want bool
	}{
		"none":                             {},
		"bypass":                           {allowed: []authorizer.AttributesRecord{bypass}, want: true},
		"bypass as one of all":             {allowed: []authorizer.AttributesRecord{bypass, allOf(bypass)}},
		"bypass, and all in the namespace": {allowed: []authorizer.AttributesRecord{bypass, allOf(bypass), everywhere(bypass)}, want: true},
		"bypass as one of all everywhere":  {allowed: []authorizer.AttributesRecord{bypass, allOf(bypass), everywhere(bypass), allOf(everywhere(bypass))}},
		"bypass as one of all, asked":      {asked: true, allowed: []authorizer.AttributesRecord{bypass, allOf(bypass)}, want: true},
		"intercept":                        {allowed: []authorizer.AttributesRecord{intercept}, want: true},
		"intercept as one of all":          {allowed: []authorizer.AttributesRecord{intercept, allOf(intercept)}},
		"intercept as one of all, asked":   {asked: true, allowed: []authorizer.AttributesRecord{intercept, allOf(intercept)}},
		// RBAC may be unable to read one role, and find the permission in another one.
		"bypass, and a role that cannot be read": {allowed: []authorizer.AttributesRecord{bypass}, err: errors.New("role not found"), want: true},
		"none, and a role that cannot be read":   {err: errors.New("role not found")},
	} {
		t.Run(name, func(t *testing.T) {
			pod, request := newPod(interceptedBy(first)), newRequest(processing(first, first, imperative))
			plugin, _ := world{stored: []runtime.Object{pod, request}, cached: []runtime.Object{pod, request}}.newPlugin(t)
			plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				for _, allowed := range test.allowed {
					if cmp.Equal(a, authorizer.Attributes(allowed)) {
						return authorizer.DecisionAllow, "", test.err
					}
				}
				return authorizer.DecisionNoOpinion, "", test.err
			}))
			eviction := newEviction(nil)
			if test.asked {
				eviction.Annotations = map[string]string{coordinationv1alpha1.EvictionBypassAnnotation: "true"}
			}
			if err := plugin.Validate(t.Context(), call("pods", "eviction", eviction), nil); (err == nil) != test.want {
				t.Errorf("got error %v, want admitted: %t", err, test.want)
			}
		})
	}
}

// The authorizer may be a webhook. It is asked about the bypass, and about the interceptors whose turn it
// may be, however many the pod has.
func TestQuestionsToTheAuthorizer(t *testing.T) {
	var names []string
	for i := range 15 {
		names = append(names, fmt.Sprintf("i-%d.example.com", i))
	}
	pod := newPod(interceptedBy(names...))
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    int
	}{
		"no request":                 {want: 1},
		"a request that is new":      {request: newRequest(calledAt("")), want: 2},
		"the first one is active":    {request: newRequest(processing(names[0], append(names, imperative)...)), want: 3},
		"the last one is active":     {request: newRequest(processing(names[14], append(names, imperative)...)), want: 2},
		"the built-in one is active": {request: newRequest(processing(imperative, append(names, imperative)...)), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}
			if test.request != nil {
				w.stored, w.cached = append(w.stored, test.request), append(w.cached, test.request)
			}
			plugin, _ := w.newPlugin(t)
			asked := 0
			plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				asked++
				return authorizer.DecisionNoOpinion, "", nil
			}))
			_ = plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil) // Refused or not: see TestCaches.
			if asked != test.want {
				t.Errorf("asked %d times, want %d", asked, test.want)
			}
		})
	}
}
