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
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// TestEvictionsRequester has writes of the requester that stands for the callers of pods/eviction.
func TestEvictionsRequester(t *testing.T) {
	const callers, drain = "eviction.k8s.io", "drain.example.com"
	const allowed, reserved, denied = "", "the requester eviction.k8s.io is reserved", "cannot delete pod"
	apiServer := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	named := func(name string) user.Info { return &user.DefaultInfo{Name: name} }
	called := withAnnotations(map[string]string{"coordination.k8s.io/eviction-call-time": "2026-05-04T12:00:00Z"})
	onCordoned := withAnnotations(map[string]string{"coordination.k8s.io/eviction-call-time": "2026-05-04T12:00:00Z", "coordination.k8s.io/eviction-call-cordon": "1/2"})
	onlyCordon := withAnnotations(map[string]string{"coordination.k8s.io/eviction-call-cordon": "1/2"})
	otherCordon := withAnnotations(map[string]string{"coordination.k8s.io/eviction-call-cordon": "1/3"})
	ownerRef := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "node", UID: "1"}
	for name, test := range map[string]struct {
		user         user.Info
		old, request *coordination.EvictionRequest
		want         string
	}{
		"the API server creates":                  {user: apiServer, request: newRequest(withRequesters(callers), called), want: allowed},
		"the API server joins":                    {user: apiServer, old: newRequest(), request: newRequest(withRequesters(drain, callers), called), want: allowed},
		"another client creates":                  {user: named(owner), request: newRequest(withRequesters(callers)), want: reserved},
		"another client adds it":                  {user: named(owner), old: newRequest(), request: newRequest(withRequesters(drain, callers)), want: reserved},
		"a client with the name of the server":    {user: named(user.APIServerUser), old: newRequest(), request: newRequest(withRequesters(drain, callers)), want: reserved},
		"an administrator":                        {user: &user.DefaultInfo{Name: owner, Groups: []string{user.SystemPrivilegedGroup}}, old: newRequest(), request: newRequest(withRequesters(drain, callers)), want: reserved},
		"another client joins the callers":        {user: named(owner), old: newRequest(withRequesters(callers)), request: newRequest(withRequesters(callers, drain)), want: allowed},
		"another client withdraws them":           {user: named(owner), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain)), want: allowed},
		"a guest withdraws them":                  {user: named(guest), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain)), want: denied},
		"the controller withdraws them":           {user: named(controller), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain), withAnnotations(map[string]string{})), want: allowed},
		"the controller withdraws the last":       {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters()), want: allowed},
		"it withdraws callers of a drain":         {user: named(controller), old: newRequest(withRequesters(callers), onCordoned), request: newRequest(withRequesters()), want: allowed},
		"it does not know of cordons":             {user: named(controller), old: newRequest(withRequesters(callers), onCordoned), request: newRequest(withRequesters(), onlyCordon), want: allowed},
		"it changes a cordon":                     {user: named(controller), old: newRequest(withRequesters(callers), onCordoned), request: newRequest(withRequesters(), otherCordon), want: denied},
		"it adds a cordon":                        {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters(), onlyCordon), want: denied},
		"the controller withdraws others":         {user: named(controller), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(callers), called), want: denied},
		"the controller withdraws all":            {user: named(controller), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters()), want: denied},
		"the controller withdraws without them":   {user: named(controller), old: newRequest(withRequesters(drain), called), request: newRequest(withRequesters(drain)), want: denied},
		"the controller adds a finalizer as well": {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters(), withFinalizers("a/b")), want: denied},
		"the controller adds an owner as well":    {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters(), withOwners(ownerRef)), want: denied},
		"the controller labels as well":           {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters(), withLabels(map[string]string{"a": "b"})), want: denied},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, _, _ := cluster{pod: newPod(podUID, nil)}.newPlugin(t, true)
			mayDelete := &rights{deletablePods: map[string]string{owner: namespace + "/" + podName, user.APIServerUser: namespace + "/" + podName}}
			mayControl := &statusRights{}
			plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if decision, reason, err := mayDelete.Authorize(ctx, a); decision == authorizer.DecisionAllow {
					return decision, reason, err
				}
				return mayControl.Authorize(ctx, a)
			}))
			operation := admission.Update
			if test.old == nil {
				operation = admission.Create
			}
			same := attributes(operation, "", "", test.request, test.old)
			a := admission.NewAttributesRecord(same.GetObject(), same.GetOldObject(), same.GetKind(), same.GetNamespace(), same.GetName(),
				same.GetResource(), same.GetSubresource(), operation, nil, false, test.user)
			err := plugin.Validate(t.Context(), a, nil)
			if test.want == allowed && err != nil || test.want != allowed && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
