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
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

var received = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// answered is a request as the audit log has it.
func answered(user, agent, verb, resource, subresource string, code int32, took time.Duration) auditv1.Event {
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

// Who sends requests besides us and our controllers.
const (
	admin   = "kubernetes-admin"
	manager = "kube-controller-manager/v1.36.3"
)

func TestCountRequests(t *testing.T) {
	early := answered(controllerUser, manager, "create", "pods", "eviction", 0, 0)
	early.Stage = auditv1.StageRequestReceived
	events := []auditv1.Event{
		answered(admin, agentSetup, "create", "pods", "", 201, 0),
		answered(admin, agentRequester, "create", "evictionrequests", "", 201, 0),
		answered(controllerUser, manager, "update", "evictionrequests", "status", 200, 0),
		early,
		answered(controllerUser, manager, "create", "pods", "eviction", 409, 500*time.Millisecond),
		answered(controllerUser, manager, "create", "pods", "eviction", 201, 100*time.Millisecond),
		answered(controllerUser, manager, "get", "pods", "", 200, 0),
		answered(controllerUser, manager, "watch", "evictionrequests", "", 200, time.Hour),
		answered(controllerUser, manager, "patch", "events", "", 200, 0),
		// The same controller manager, but not our controller.
		answered("system:serviceaccount:kube-system:disruption-controller", manager, "update", "poddisruptionbudgets", "status", 200, 0),
		answered(admin, "kwok/v0.8.0", "patch", "pods", "status", 200, 0),
		// What the API server calls of itself for an eviction.
		answered("system:apiserver", "kube-apiserver", "update", "poddisruptionbudgets", "status", 409, 0),
	}
	got := countRequests(events, byRequesterAndControllers)
	want := tally{
		Requests: map[string]int{
			"create evictionrequests":        1,
			"update evictionrequests/status": 1,
			"create pods/eviction":           2,
			"get pods":                       1,
			"patch events":                   1,
		},
		All: 9,
		Clients: map[string]int{
			"bench-requester: create evictionrequests":                   1,
			"evictionrequest-controller: update evictionrequests/status": 1,
			"evictionrequest-controller: create pods/eviction":           2,
			"evictionrequest-controller: get pods":                       1,
			"evictionrequest-controller: patch events":                   1,
			"disruption-controller: update poddisruptionbudgets/status":  1,
			"kwok: patch pods/status":                                    1,
			"kube-apiserver: update poddisruptionbudgets/status":         1,
		},
		EvictionCodes:   map[string]int{"201": 1, "409": 1},
		evictionSeconds: []float64{0.5, 0.1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if got.measuredRequests() != 6 {
		t.Errorf("measured requests = %d, want 6", got.measuredRequests())
	}
	if got.writes() != 5 {
		t.Errorf("writes = %d, want 5", got.writes())
	}
}

func TestSelectors(t *testing.T) {
	events := []auditv1.Event{
		answered(admin, "kubectl/v1.36.3 (linux/amd64)", "create", "pods", "eviction", 201, 0),
		answered(admin, agentBare, "create", "pods", "eviction", 201, 0),
		answered(admin, agentRequester, "create", "nodemaintenances", "", 201, 0),
		answered(controllerUser, manager, "create", "pods", "eviction", 201, 0),
		answered(maintenanceControllerUser, manager, "patch", "nodes", "status", 200, 0),
		answered("system:serviceaccount:kube-system:node-controller", manager, "patch", "nodes", "", 200, 0),
		answered(admin, agentSetup, "create", "pods", "", 201, 0),
	}
	for name, tc := range map[string]struct {
		selector selector
		want     []int
	}{
		"kubectl":                   {byKubectl, []int{0}},
		"bare client":               {byBare, []int{1}},
		"controller":                {byController, []int{3}},
		"maintenance controller":    {byMaintenanceController, []int{4}},
		"any controller":            {byAnyController, []int{3, 4, 5}},
		"requester and controllers": {byRequesterAndControllers, []int{2, 3, 4}},
		"anybody":                   {byAnybody, []int{0, 1, 2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for i := range events {
				if tc.selector(&events[i]) {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("selected events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	discovery := auditv1.Event{Verb: "get", RequestURI: "/apis"}
	if got := describe(&discovery); got != "get /apis" {
		t.Errorf("describe = %q", got)
	}
	if got := code(&discovery); got != "none" {
		t.Errorf("code of an unanswered request = %q", got)
	}
}

// A line that is being written when the log is read must be neither lost nor torn.
func TestAuditLogNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := openAuditLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.close()
	for _, step := range []struct {
		written string
		want    []string
	}{
		{"", nil},
		{`{"verb":"get"}` + "\n" + `{"verb":"li`, []string{"get"}},
		{`st"`, nil},
		{"}\n" + `{"verb":"create"}` + "\n", []string{"list", "create"}},
		{"", nil},
	} {
		if _, err := file.WriteString(step.written); err != nil {
			t.Fatal(err)
		}
		events, err := log.next()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, event := range events {
			got = append(got, event.Verb)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", step.written, diff)
		}
	}
	if _, err := file.WriteString("no JSON\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.next(); err == nil {
		t.Error("a broken line was accepted")
	}
}

func TestAuditLogDuringEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := openAuditLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := log.during(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("during = %v, want %v", err, context.Canceled)
	}
}
