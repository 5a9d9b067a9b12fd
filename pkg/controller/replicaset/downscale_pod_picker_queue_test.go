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

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	consistencyutil "k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/utils/ptr"
)

// pickerAt gives a ReplicaSet the picker at this URL.
func pickerAt(t *testing.T, address string) func(*apps.ReplicaSet) {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(parsed.Port())
	if err != nil {
		t.Fatal(err)
	}
	return func(rs *apps.ReplicaSet) {
		rs.Spec.DownscalePodPicker = &v1.DownscalePodPicker{
			HTTP:       &v1.HTTPDownscalePodPicker{Host: parsed.Hostname(), Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTP},
			MaxRetries: ptr.To[int32](0), TimeoutSeconds: ptr.To[int32](1),
		}
	}
}

// newAskingFixture returns a controller that asks pickers on loopback, with informers that do not run.
func newAskingFixture(t *testing.T, objects ...runtime.Object) *evictionFixture {
	t.Helper()
	f := newEvictionFixture(t, objects...)
	f.rsc.consistencyStore = consistencyutil.NewNoopConsistencyStore() // The fake client has no versions.
	ranges, err := podpicker.ParseRanges([]string{"127.0.0.1/32"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.rsc.AskPickers(f.client, f.factory.Apps().V1().ReplicaSets(), &podpicker.Addresses{Allowed: ranges}, 20); err != nil {
		t.Fatal(err)
	}
	return f
}

func ownedPods(rs *apps.ReplicaSet, count int) []*v1.Pod {
	var pods []*v1.Pod
	for i := range count {
		pod := rankedPod(fmt.Sprintf("pod-%04d", i))
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rs, apps.SchemeGroupVersion.WithKind("ReplicaSet"))}
		pods = append(pods, pod)
	}
	return pods
}

// While pods cannot be deleted, the controller tries it as rarely with a picker as without one.
func TestDeletionsFail(t *testing.T) {
	without, withPicker := countFailures(t, false), countFailures(t, true)
	t.Logf("without picker %v, with picker %v", without, withPicker)
	if withPicker.deletions > 2*without.deletions || withPicker.statuses > without.statuses+2 {
		t.Errorf("without picker %v, with picker %v", without, withPicker)
	}
}

type failures struct{ questions, deletions, statuses int64 }

// countFailures runs the controller for some seconds in which no pod can be deleted.
func countFailures(t *testing.T, withPicker bool) failures {
	t.Helper()
	var questions, deletions, statuses atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		questions.Add(1)
		_, _ = w.Write([]byte(`{"chosen_pods":["pod-0000"]}`))
	}))
	defer server.Close()
	rs := newReplicaSetOf()
	if withPicker {
		pickerAt(t, server.URL)(rs)
	}
	f := newAskingFixture(t, rs)
	for _, pod := range ownedPods(rs, 3) {
		if err := f.client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	f.client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch {
		case action.Matches("delete", "pods"):
			deletions.Add(1)
			return true, nil, apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("a webhook refuses"))
		case action.GetSubresource() == "status":
			statuses.Add(1)
		}
		return false, nil, nil
	})
	ctx, stop := context.WithCancel(f.ctx)
	f.factory.Start(ctx.Done())
	done := make(chan struct{})
	go func() { defer close(done); f.rsc.Run(ctx, 5) }()
	time.Sleep(3 * time.Second)
	stop()
	<-done
	return failures{questions.Load(), deletions.Load(), statuses.Load()}
}

// The event that says that a ReplicaSet is deleted may come after its successor of the same name has
// asked. The successor is scaled down all the same.
func TestLateDeleteEvent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	rs := newReplicaSetOf(pickerAt(t, server.URL))
	f := newAskingFixture(t, rs)
	f.cached(t, rs)
	for _, pod := range ownedPods(rs, 3) {
		f.cached(t, pod)
	}
	var deletions atomic.Int64
	f.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		deletions.Add(1)
		return true, nil, nil
	})
	if err := f.rsc.syncReplicaSet(f.ctx, webKey.String()); err != nil {
		t.Fatal(err)
	}
	f.rsc.forgetQuestion(webKey)
	for deadline := time.Now().Add(10 * time.Second); deletions.Load() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the ReplicaSet is not synced again: it keeps too many pods")
		}
		if f.rsc.queue.Len() > 0 {
			f.rsc.processNextWorkItem(f.ctx)
		}
	}
}

// A ReplicaSet that is deleted during its sync leaves no question.
func TestDeletedDuringSync(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }))
	defer server.Close()
	rs := newReplicaSetOf(pickerAt(t, server.URL))
	f := newAskingFixture(t)
	f.rsc.forgetQuestion(webKey) // The event comes while the sync has the ReplicaSet in its hands,
	f.rsc.processNextWorkItem(f.ctx)
	if _, _, err := f.rsc.surplus(f.ctx, ownedPods(rs, 3), rs); err != nil { // and then the sync asks.
		t.Fatal(err)
	}
	f.rsc.processNextWorkItem(f.ctx) // The question has ended.
	if _, found := f.rsc.pickers.client.Take(webKey); found {
		t.Error("the answer for a deleted ReplicaSet is kept")
	}
}
