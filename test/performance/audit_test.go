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

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authnv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
)

var received = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// event returns the audit event of a request.
func event(user, agent, verb, resource, subresource string, code int32, took time.Duration) auditv1.Event {
	return auditv1.Event{
		Stage:                    auditv1.StageResponseComplete,
		Verb:                     verb,
		User:                     authnv1.UserInfo{Username: user},
		UserAgent:                agent,
		ObjectRef:                &auditv1.ObjectReference{Resource: resource, Subresource: subresource},
		ResponseStatus:           &metav1.Status{Code: code},
		RequestReceivedTimestamp: metav1.NewMicroTime(received),
		StageTimestamp:           metav1.NewMicroTime(received.Add(took)),
	}
}

// Users and user agents of other clients than ours.
const (
	admin   = "kubernetes-admin"
	manager = "kube-controller-manager/v1.37.2"

	evictionUser    = controllerUsers + evictionController
	maintenanceUser = controllerUsers + maintenanceController
)

func TestCounts(t *testing.T) {
	panicked := event(admin, agentBare, "create", "pods", "eviction", 500, 0)
	panicked.Stage = auditv1.StagePanic
	early := event(admin, agentBare, "create", "pods", "eviction", 0, 0)
	early.Stage = auditv1.StageRequestReceived
	for name, tc := range map[string]struct {
		event auditv1.Event
		want  bool
	}{
		"an answer":     {event(admin, agentBare, "create", "pods", "eviction", 201, 0), true},
		"a panic":       {panicked, true},
		"not answered":  {early, false},
		"a watch":       {event(evictionUser, manager, "watch", "evictionrequests", "", 200, time.Hour), false},
		"our own":       {event(admin, agentSetup, "create", "pods", "", 201, 0), false},
		"a requester's": {event(admin, agentRequester, "create", "evictionrequests", "", 201, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := counts(&tc.event); got != tc.want {
				t.Errorf("counts = %v, want %v", got, tc.want)
			}
		})
	}
}

// The API server must take all policies.
func TestAuditPolicies(t *testing.T) {
	for _, rules := range []string{auditAll, auditControllers, auditNothing} {
		policy, err := policy.LoadPolicyFromBytes(fmt.Appendf(nil, auditPolicy, rules))
		if err != nil {
			t.Errorf("%s: %v", rules, err)
		} else if len(policy.OmitStages) != 2 || len(policy.Rules) != strings.Count(rules, "level: ") {
			t.Errorf("%s: %+v", rules, policy)
		}
	}
}

// evictionEvents are the events of two evictions by EvictionRequests, and of other clients.
var evictionEvents = requests{
	event(admin, agentRequester, "create", "evictionrequests", "", 201, 0),
	event(evictionUser, manager, "update", "evictionrequests", "status", 200, 0),
	event(evictionUser, manager, "create", "pods", "eviction", 409, 500*time.Millisecond),
	event(evictionUser, manager, "create", "pods", "eviction", 201, 100*time.Millisecond),
	event(evictionUser, manager, "get", "pods", "", 200, 0),
	event(evictionUser, manager, "patch", "events", "", 200, 0),
	// The same controller manager, but not our controller.
	event(controllerUsers+"disruption-controller", manager, "update", "poddisruptionbudgets", "status", 200, 0),
	event(admin, "kwok/v0.8.0", "patch", "pods", "status", 200, 0),
	// A request of the API server to itself for an eviction.
	event("system:apiserver", "kube-apiserver", "update", "poddisruptionbudgets", "status", 409, 0),
	event(admin, "kubectl/v1.37.2 (linux/amd64)", "create", "pods", "eviction", 429, 0),
	event(admin, agentBare, "create", "pods", "eviction", 500, 0),
	event(maintenanceUser, manager, "patch", "nodes", "status", 200, 0),
	{Verb: "get", RequestURI: "/apis"},
}

func TestSelectors(t *testing.T) {
	for name, tc := range map[string]struct {
		selectors []selector
		want      []int
	}{
		"all":                          {nil, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"kubectl":                      {[]selector{by("kubectl")}, []int{9}},
		"bare client":                  {[]selector{by(agentBare)}, []int{10}},
		"controller":                   {[]selector{by(evictionController)}, []int{1, 2, 3, 4, 5}},
		"maintenance controller":       {[]selector{by(maintenanceController)}, []int{11}},
		"any controller":               {[]selector{byAnyController}, []int{1, 2, 3, 4, 5, 6, 11}},
		"requester and controllers":    {[]selector{byFork}, []int{0, 1, 2, 3, 4, 5, 11}},
		"writes by the controller":     {[]selector{by(evictionController), isWrite}, []int{1, 2, 3, 5}},
		"for evictions":                {[]selector{forEvictions}, []int{0, 1, 2, 3, 4, 5, 9, 10}},
		"to pods and their status":     {[]selector{to("pods")}, []int{2, 3, 4, 7, 9, 10}},
		"evictions by the controller":  {[]selector{isEviction, byFork}, []int{2, 3}},
		"evictions answered with 409":  {[]selector{isEviction, answered(409)}, []int{2}},
		"failed, neither 409 nor 429":  {[]selector{otherError}, []int{10, 12}},
		"no events selected by others": {[]selector{by("kubectl"), by(agentBare)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for i := range evictionEvents {
				if evictionEvents[i:i+1].count(tc.selectors...) == 1 {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("selected events (-want +got):\n%s", diff)
			}
			if count := evictionEvents.count(tc.selectors...); int(count) != len(tc.want) {
				t.Errorf("count = %v, want %v", count, len(tc.want))
			}
		})
	}
}

func TestSeconds(t *testing.T) {
	got := evictionEvents.of(isEviction, byFork).seconds()
	if diff := cmp.Diff([]float64{0.5, 0.1}, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestUntilEvicted(t *testing.T) {
	var all requests
	at := func(seconds int, name, user, verb, subresource string) {
		e := event(user, manager, verb, "evictionrequests", subresource, 200, time.Duration(seconds)*time.Second)
		e.ObjectRef.Name = name
		all = append(all, e)
	}
	at(1, "a", maintenanceUser, "get", "")
	at(2, "a", maintenanceUser, "patch", "")
	at(3, "b", maintenanceUser, "patch", "")
	at(4, "a", evictionUser, "update", "status")
	at(5, "a", evictionUser, "update", "status")
	at(6, "a", maintenanceUser, "patch", "")
	at(9, "a", controllerUsers+"deployment-controller", "patch", "status")
	at(10, "b", evictionUser, "update", "status")
	got := all.untilEvicted()
	slices.Sort(got)
	if diff := cmp.Diff([]float64{3, 7}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestUntilRecorded(t *testing.T) {
	var all requests
	at := func(seconds int, user, verb, resource, name, subresource string, code int32) {
		e := event(user, manager, verb, resource, subresource, code, time.Duration(seconds)*time.Second)
		e.ObjectRef.Name = name
		all = append(all, e)
	}
	at(1, evictionUser, "create", "pods", "pod-0", "eviction", 429)
	at(2, evictionUser, "patch", "evictionrequests", "uid-0", "status", 200)
	at(3, evictionUser, "create", "pods", "pod-0", "eviction", 201)
	at(4, evictionUser, "create", "pods", "pod-1", "eviction", 201)
	at(5, evictionUser, "patch", "evictionrequests", "uid-0", "status", 200)
	at(7, controllerUsers+"deployment-controller", "patch", "evictionrequests", "uid-0", "status", 200)
	at(8, evictionUser, "patch", "evictionrequests", "uid-0", "", 200)
	at(9, evictionUser, "create", "pods", "another", "eviction", 201)
	pods := []v1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "pod-0", UID: "uid-0"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "pod-1", UID: "uid-1"}}, // Not recorded.
	}
	if diff := cmp.Diff([]float64{2}, all.untilRecorded(pods)); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestByClient(t *testing.T) {
	got := map[string]float64{}
	for _, r := range evictionEvents[:10].byClient(2, "per pod") {
		if !r.byClient || r.Unit != "per pod" {
			t.Errorf("%s is not a number of requests per pod: %+v", r.Name, r)
		}
		got[r.Name] = r.Value
	}
	want := map[string]float64{
		"bench-requester":                                            0.5,
		"bench-requester: create evictionrequests":                   0.5,
		"evictionrequest-controller":                                 2.5,
		"evictionrequest-controller: update evictionrequests/status": 0.5,
		"evictionrequest-controller: create pods/eviction (201)":     0.5,
		"evictionrequest-controller: create pods/eviction (409)":     0.5,
		"evictionrequest-controller: get pods":                       0.5,
		"evictionrequest-controller: patch events":                   0.5,
		"disruption-controller":                                      0.5,
		"disruption-controller: update poddisruptionbudgets/status":  0.5,
		"kwok":                    0.5,
		"kwok: patch pods/status": 0.5,
		"kube-apiserver":          0.5,
		"kube-apiserver: update poddisruptionbudgets/status": 0.5,
		"kubectl":                             0.5,
		"kubectl: create pods/eviction (429)": 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests by client (-want +got):\n%s", diff)
	}
	if what := describe(&evictionEvents[12]); what != "get /apis" {
		t.Errorf("describe = %q", what)
	}
	if !slices.Equal(evictionEvents[12:].seconds(), []float64{0}) {
		t.Error("a request without times took time")
	}
}
