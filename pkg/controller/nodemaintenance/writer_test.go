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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/clock"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// A webhook that does not answer blocks a worker only until the timeout.
func TestWritesOfRequestsEnd(t *testing.T) {
	noAnswer := errors.New("no answer")
	var deadlines []time.Time
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "https://127.0.0.1:1", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		if deadline, ok := request.Context().Deadline(); ok {
			deadlines = append(deadlines, deadline)
		}
		return nil, noAnswer
	})})
	if err != nil {
		t.Fatal(err)
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	w, err := newWriter(client, client, store, store, store, store, nil, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}
	escalated := &v1.Pod{ObjectMeta: meta, Status: v1.PodStatus{Conditions: []v1.PodCondition{{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: maintenance.PodReasonDeletionByNodeMaintenance,
	}}}}
	escalate := func(pod *v1.Pod, action v1.MaintenanceEscalation) func(context.Context) error {
		return func(ctx context.Context) error {
			return w.escalate(ctx, pod, &coordinationv1alpha1.EvictionRequest{ObjectMeta: meta}, action, "", func(context.Context) error { return nil })
		}
	}
	for name, test := range map[string]struct {
		write   func(context.Context) error
		timeout time.Duration
	}{
		"request": {func(ctx context.Context) error { return w.request(ctx, &v1.Pod{ObjectMeta: meta}) }, requestTimeout},
		"withdrawal": {func(ctx context.Context) error {
			return w.withdraw(ctx, &v1.Pod{ObjectMeta: meta}, &coordinationv1alpha1.EvictionRequest{ObjectMeta: meta})
		}, requestTimeout},
		"confirmation": {func(ctx context.Context) error {
			_, err := (&Controller{writer: w}).readDrain(ctx, &v1.Node{ObjectMeta: meta}, nil)
			return err
		}, requestTimeout},
		"passing over interceptors": {escalate(escalated, v1.MaintenanceEscalationSkipInterceptors), requestTimeout},
		"mark":                      {escalate(&v1.Pod{ObjectMeta: meta}, v1.MaintenanceEscalationIgnoreBudgets), requestTimeout},
		// Webhooks see it, which may take half a minute.
		"deletion": {escalate(escalated, v1.MaintenanceEscalationIgnoreBudgets), 35 * time.Second},
		"removal":  {escalate(escalated, v1.MaintenanceEscalationForceDelete), 35 * time.Second},
	} {
		deadlines = nil
		if err := test.write(t.Context()); !errors.Is(err, noAnswer) {
			t.Errorf("%s: error %v", name, err)
		}
		left := time.Duration(0)
		if len(deadlines) == 1 {
			left = time.Until(deadlines[0])
		}
		if left > test.timeout || left < test.timeout-5*time.Second+time.Millisecond {
			t.Errorf("%s: deadlines %v", name, deadlines)
		}
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
	f.writer.client = client
	m, node := f.maintenance("m"), f.node("n1")
	admitted, err := admissionStore{f.Controller}.Admit(t.Context(), node, []v1.MaintenanceAdmission{{MaintenanceName: m.Name, MaintenanceUID: m.UID}}, f.clock.Now().Add(time.Minute))
	if admitted || err != nil {
		t.Errorf("admitted %t, error %v", admitted, err)
	}
	if deadline.IsZero() || deadline.After(time.Now().Add(admissionTimeout)) {
		t.Errorf("deadline %v", deadline)
	}
	if _, failed := f.failures.get("n1", writeKey{writeAdmission, node.UID}); !failed {
		t.Error("the timeout is not recorded, so that it is tried again at once")
	}
}

// A withdrawal is unseen until the cache has a new version of the request, or its deletion.
func TestWithdrawalIsUnseen(t *testing.T) {
	for name, change := range map[string]func(*fixture) error{
		"withdrawn": func(*fixture) error { return nil },
		"gone": func(f *fixture) error {
			return f.client.CoordinationV1alpha1().EvictionRequests("default").Delete(f.ctx, string(f.running[0].uid), metav1.DeleteOptions{})
		},
	} {
		f := withdrawal(t)
		if !f.beginRequest() || f.running[0].write == nil {
			t.Fatalf("%s: running: %+v", name, f.running)
		}
		if err := f.running[0].write(f.ctx); err != nil {
			t.Fatal(err)
		}
		if unseen := f.writer.unseen.of("n"); len(unseen) != 1 {
			t.Errorf("%s: unseen: %v", name, unseen)
		}
		if err := change(f); err != nil {
			t.Fatal(err)
		}
		f.deliverAll()
		if unseen := f.writer.unseen.of("n"); len(unseen) > 0 {
			t.Errorf("%s: unseen afterwards: %v", name, unseen)
		}
	}
}

// A cache without a version counts as up to date: otherwise, syncs would wait forever.
func TestCacheWithoutVersion(t *testing.T) {
	w := &writer{requests: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	if version := w.requests.LastStoreSyncResourceVersion(); version != "" {
		t.Fatalf("has version %q", version)
	}
	if !w.hasRequestsOf("5") {
		t.Error("waits")
	}
}
