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

package nodemaintenance

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// So does what the API server is asked before an eviction is requested.
func TestConfirmationsEnd(t *testing.T) {
	f := newFixture(t)
	var left time.Duration
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "https://127.0.0.1:1", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		if deadline, ok := request.Context().Deadline(); ok {
			left = time.Until(deadline)
		}
		return nil, errors.New("no answer")
	})})
	if err != nil {
		t.Fatal(err)
	}
	f.writer.RequestClient = client
	if err := f.confirm.Drain(t.Context(), &v1.Pod{}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, nil); err == nil {
		t.Error("no error")
	}
	if left <= 0 || left > write.RequestTimeout {
		t.Errorf("ends in %v", left)
	}
}

// An admission of a node ends, too: one that gets no response does not take the time of the others, and is
// recorded as a failure.
func TestAdmissionsEnd(t *testing.T) {
	f := newFleet(t, "n1")
	f.createRollout("m", atOnce(1))
	f.deliverAll()
	var deadline time.Time
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "https://127.0.0.1:1", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		deadline, _ = request.Context().Deadline()
		return nil, context.DeadlineExceeded
	})})
	if err != nil {
		t.Fatal(err)
	}
	f.writer.Client = client
	m, node := f.maintenance("m"), f.node("n1")
	admitted, err := admissionStore{f.Controller}.Admit(t.Context(), node, []v1.MaintenanceAdmission{{MaintenanceName: m.Name, MaintenanceUID: m.UID}}, f.clock.Now().Add(time.Minute))
	if admitted || err != nil {
		t.Errorf("admitted %t, error %v", admitted, err)
	}
	if deadline.IsZero() || deadline.After(time.Now().Add(admissionTimeout)) {
		t.Errorf("deadline %v", deadline)
	}
	if _, failed := f.failures.Get("n1", write.Admission.Of(node.UID)); !failed {
		t.Error("the timeout is not recorded, so that it is tried again at once")
	}
}

// A withdrawal is unseen until the cache has a new version of the request, or its deletion.
func TestWithdrawalIsUnseen(t *testing.T) {
	for name, change := range map[string]func(*fixture) error{
		"withdrawn": func(*fixture) error { return nil },
		"gone": func(f *fixture) error {
			return f.client.CoordinationV1alpha1().EvictionRequests("default").Delete(f.ctx, string(f.running[0].UID), metav1.DeleteOptions{})
		},
	} {
		f := withdrawal(t)
		if !f.beginRequest() || f.running[0].write == nil {
			t.Fatalf("%s: running: %+v", name, f.running)
		}
		if err := f.running[0].write(f.ctx); err != nil {
			t.Fatal(err)
		}
		if unseen := f.writer.Unseen("n"); len(unseen) != 1 {
			t.Errorf("%s: unseen: %v", name, unseen)
		}
		if err := change(f); err != nil {
			t.Fatal(err)
		}
		f.deliverAll()
		if unseen := f.writer.Unseen("n"); len(unseen) > 0 {
			t.Errorf("%s: unseen afterwards: %v", name, unseen)
		}
	}
}
