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

	v1 "k8s.io/api/core/v1"
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
	repeated := withAnnotations(map[string]string{"coordination.k8s.io/eviction-call-time": "2026-05-04T12:00:00Z", "coordination.k8s.io/eviction-calls-repeat": "true"})
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
		"another client withdraws them":           {user: named(owner), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain)), want: "eviction.k8s.io cannot be removed from spec.requesters"},
		"one that may request withdraws them":     {user: named(callers), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain)), want: allowed},
		"a guest withdraws them":                  {user: named(guest), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain)), want: denied},
		"the controller withdraws them":           {user: named(controller), old: newRequest(withRequesters(callers, drain), called), request: newRequest(withRequesters(drain), withAnnotations(map[string]string{})), want: allowed},
		"withdrawn, as the server says":           {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters(), withAnnotations(map[string]string{"coordination.k8s.io/eviction-withdrawn-by": controller})), want: allowed},
		"the controller withdraws the last":       {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters()), want: allowed},
		"it withdraws callers of a drain":         {user: named(controller), old: newRequest(withRequesters(callers), onCordoned), request: newRequest(withRequesters()), want: allowed},
		"it withdraws callers that go on":         {user: named(controller), old: newRequest(withRequesters(callers), repeated), request: newRequest(withRequesters()), want: allowed},
		"it adds that they go on":                 {user: named(controller), old: newRequest(withRequesters(callers), called), request: newRequest(withRequesters(), repeated), want: denied},
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
			plugin := newRequesterPlugin(t, newPod(podUID, nil))
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

// newRequesterPlugin returns a plugin for users who may delete the pod: owner, the API server, and those with the
// names of requesters, who may act as these.
func newRequesterPlugin(t *testing.T, pod *v1.Pod) *Plugin {
	t.Helper()
	plugin, _, _ := cluster{pod: pod}.newPlugin(t, true)
	of := namespace + "/" + podName
	mayDelete := &rights{deletablePods: map[string]string{owner: of, user.APIServerUser: of, "eviction.k8s.io": of, "nodemaintenance.k8s.io": of}}
	mayControl := &statusRights{}
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if decision, reason, err := mayDelete.Authorize(ctx, a); decision == authorizer.DecisionAllow {
			return decision, reason, err
		}
		return mayControl.Authorize(ctx, a)
	}))
	return plugin
}

func ofEntry(name string) string {
	return `{"f:spec":{"f:requesters":{"k:{\"name\":\"` + name + `\"}":{".":{},"f:name":{}}}}}`
}

// TestCallAnnotations: who may delete the pod cannot make callers of pods/eviction look as if they had given up.
func TestCallAnnotations(t *testing.T) {
	const callers, drain, key = "eviction.k8s.io", "drain.example.com", "coordination.k8s.io/eviction-"
	said := func(pairs ...string) option {
		annotations := map[string]string{"other": "x"}
		for i := 0; i < len(pairs); i += 2 {
			annotations[key+pairs[i]] = pairs[i+1]
		}
		return withAnnotations(annotations)
	}
	const refused = "is written by kube-apiserver while eviction.k8s.io is in spec.requesters"
	for name, test := range map[string]struct {
		user         string
		old, request *coordination.EvictionRequest
		want         string
	}{
		"the time changes":          {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), said("call-time", "b")), want: refused},
		"the time goes":             {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), said()), want: refused},
		"a cordon is added":         {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), said("call-time", "a", "call-cordon", "b")), want: refused},
		"an empty one is added":     {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), said("call-time", "a", "call-cordon", "")), want: refused},
		"a grace period is added":   {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), said("call-time", "a", "call-grace-period-seconds", "0")), want: refused},
		"they seem to go on":        {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), said("call-time", "a", "calls-repeat", "true")), want: refused},
		"they seem to be slow":      {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a", "calls-repeat", "true")), request: newRequest(withRequesters(callers), said("call-time", "a")), want: refused},
		"another annotation":        {user: owner, old: newRequest(withRequesters(callers), said("call-time", "a")), request: newRequest(withRequesters(callers), withAnnotations(map[string]string{key + "call-time": "a"}))},
		"without callers":           {user: owner, old: newRequest(said("call-time", "a")), request: newRequest(said("call-time", "b"))},
		"who withdraws the callers": {user: callers, old: newRequest(withRequesters(callers, drain), said("call-time", "a")), request: newRequest(withRequesters(drain), said())},
	} {
		t.Run(name, func(t *testing.T) {
			err := newRequesterPlugin(t, newPod(podUID, nil)).Validate(t.Context(), attributes(admission.Update, test.user, "", test.request, test.old), nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// TestReservedRequesters: who may delete the pod adds and removes all requesters but those of Kubernetes.
func TestReservedRequesters(t *testing.T) {
	const maintenance, drain, key = "nodemaintenance.k8s.io", "drain.example.com", "k8s.io/drain"
	leaving := newPod(podUID, nil)
	leaving.DeletionTimestamp = &metav1.Time{}
	over := withCondition("Canceled", metav1.ConditionTrue)
	for name, test := range map[string]struct {
		user         string
		pod          *v1.Pod
		old, request *coordination.EvictionRequest
		want         string
	}{
		"created by the owner":               {user: owner, request: newRequest(withRequesters(maintenance)), want: "nodemaintenance.k8s.io cannot be added to"},
		"created by its own":                 {user: maintenance, request: newRequest(withRequesters(maintenance))},
		"added by the owner":                 {user: owner, old: newRequest(), request: newRequest(withRequesters(drain, maintenance)), want: "nodemaintenance.k8s.io cannot be added to"},
		"added by its own":                   {user: maintenance, old: newRequest(), request: newRequest(withRequesters(drain, maintenance))},
		"a key added by the owner":           {user: owner, old: newRequest(), request: newRequest(withRequesters(drain, key)), want: "k8s.io/drain cannot be added to"},
		"the domain itself":                  {user: owner, old: newRequest(), request: newRequest(withRequesters(drain, "k8s.io")), want: "k8s.io cannot be added to"},
		"a similar name":                     {user: owner, old: newRequest(), request: newRequest(withRequesters(drain, "drain.notk8s.io"))},
		"removed by the owner":               {user: owner, old: newRequest(withRequesters(maintenance, drain)), request: newRequest(withRequesters(drain)), want: "nodemaintenance.k8s.io cannot be removed from"},
		"emptied by the owner":               {user: owner, old: newRequest(withRequesters(maintenance)), request: newRequest(withRequesters()), want: "nodemaintenance.k8s.io cannot be removed from"},
		"removed by its own":                 {user: maintenance, old: newRequest(withRequesters(maintenance)), request: newRequest(withRequesters())},
		"kept by the owner":                  {user: owner, old: newRequest(withRequesters(maintenance, drain)), request: newRequest(withRequesters(maintenance))},
		"removed when the request is over":   {user: owner, old: newRequest(withRequesters(maintenance), over), request: newRequest(withRequesters(), over)},
		"added when the request is over":     {user: owner, old: newRequest(withRequesters(), over), request: newRequest(withRequesters(maintenance), over), want: "nodemaintenance.k8s.io cannot be added to"},
		"exchanged by another of Kubernetes": {user: maintenance, old: newRequest(withRequesters("other.k8s.io")), request: newRequest(withRequesters(maintenance)), want: "other.k8s.io cannot be removed from"},
		"deleted by the owner":               {user: owner, old: newRequest(withRequesters(maintenance, drain)), want: "nodemaintenance.k8s.io cannot be removed from"},
		"deleted by its own":                 {user: maintenance, old: newRequest(withRequesters(maintenance, drain))},
		"deleted by the owner, for others":   {user: owner, old: newRequest(withRequesters(drain))},
		"deleted by the owner, over":         {user: owner, old: newRequest(withRequesters(maintenance), over)},
		"deleted, and the pod terminates":    {user: owner, pod: leaving, old: newRequest(withRequesters(maintenance))},
		"deleted, and the pod is replaced":   {user: owner, pod: newPod(otherUID, nil), old: newRequest(withRequesters(maintenance))},
		"deleted, and cannot be canceled":    {user: maintenance, pod: leaving, old: newRequest(withRequesters(maintenance), withPolicy("Forbid")), want: "can no longer be canceled"},
		"assigned to another manager":        {user: owner, old: newRequest(withRequesters(maintenance, drain), withManagers(applied("nm", ofEntry(maintenance)))), request: newRequest(withRequesters(maintenance, drain), withManagers(applied("drain", ofEntry(maintenance)))), want: "nodemaintenance.k8s.io cannot be assigned to other field managers in"},
		"claimed by another manager":         {user: owner, old: newRequest(withRequesters(maintenance), withManagers(applied("nm", ofEntry(maintenance)))), request: newRequest(withRequesters(maintenance), withManagers(applied("nm", ofEntry(maintenance)), applied("drain", ofEntry(maintenance)))), want: "nodemaintenance.k8s.io cannot be assigned"},
		"assigned by its own":                {user: maintenance, old: newRequest(withRequesters(maintenance), withManagers(applied("a", ofEntry(maintenance)))), request: newRequest(withRequesters(maintenance), withManagers(applied("b", ofEntry(maintenance))))},
		"an ordinary one is assigned":        {user: owner, old: newRequest(withRequesters(maintenance, drain), withManagers(applied("nm", ofEntry(maintenance)), applied("a", ofEntry(drain)))), request: newRequest(withRequesters(maintenance, drain), withManagers(applied("nm", ofEntry(maintenance)), applied("b", ofEntry(drain))))},
		"deleted by a guest, terminating":    {user: guest, pod: leaving, old: newRequest(withRequesters(maintenance)), want: "cannot delete pod"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := test.pod
			if pod == nil {
				pod = newPod(podUID, nil)
			}
			operation := admission.Update
			switch {
			case test.old == nil:
				operation = admission.Create
			case test.request == nil:
				operation = admission.Delete
			}
			err := newRequesterPlugin(t, pod).Validate(t.Context(), attributes(operation, test.user, "", test.request, test.old), nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
