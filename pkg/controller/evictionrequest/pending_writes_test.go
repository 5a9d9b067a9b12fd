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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
)

// While one queue writes a request, the other decides nothing about it. It is processed again when the write
// has ended, whatever the result: the event of the write may have come before.
func TestOneWriteAtATime(t *testing.T) {
	for name, answer := range map[string]error{
		"the write succeeds":          nil,
		"the write fails":             errUnreachable,
		"the version was not current": apierrors.NewConflict(evictionRequestResource, "", errUnreachable),
		"the request is gone":         apierrors.NewNotFound(evictionRequestResource, ""),
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(imperativeActive(), version("17"))
			f := newFixture(t, request, newPod(terminatingSince(0)))
			_, ctx := ktesting.NewTestContext(t)
			updates := 0
			f.client.PrependReactor("update", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				updates++
				if f.writer.isCurrent(requestKeyOfPod) {
					t.Error("another queue may decide about the request")
				}
				if f.writer.begin(ctx, request) {
					t.Error("another queue may write the request")
				}
				return true, newRequest(imperativeActive(), version("18")), answer
			})
			f.client.PrependReactor("delete", "evictionrequests", answering(nil))
			_ = f.writer.setStatus(ctx, request, newStatus(targets(), active(builtIn, 0), blockedByBudget(0)))
			if updates != 1 {
				t.Errorf("%d writes, want 1", updates)
			}
			f.expectQueued(t, keys(requestKeyOfPod.Name), items(requestKeyOfPod))
			if len(f.writer.pending.pending) > 0 {
				t.Error("the write is still pending")
			}
		})
	}
}

// A version that is known to be old is not written over: neither if the cache has a newer one, nor if
// this controller has written one that the cache does not have yet.
func TestOldVersionIsNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		read, cached, wrote string
		want                bool
	}{
		"as cached":                      {read: "17", cached: "17", want: true},
		"older than cached":              {read: "16", cached: "17"},
		"newer than cached":              {read: "18", cached: "17", want: true},
		"older than the last write":      {read: "17", cached: "17", wrote: "18"},
		"that of the last write":         {read: "18", cached: "17", wrote: "18", want: true},
		"the cache has lost the request": {read: "16", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.cached != "" {
				f.addToCache(t, newRequest(version(test.cached)))
			}
			store := &versionedStore{Store: f.requests.GetStore(), version: "17"}
			w := newRequestWriter(f.client, f, store, serverclock.New(f.clock))
			if test.wrote != "" {
				w.wrote(newRequest(version(test.wrote)))
			}
			f.client.PrependReactor("*", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, newRequest(version("19")), nil
			})
			_, ctx := ktesting.NewTestContext(t)
			for what, write := range map[string]func(*coordinationv1alpha1.EvictionRequest) error{
				"status": func(request *coordinationv1alpha1.EvictionRequest) error {
					return w.setStatus(ctx, request, newStatus(targets()))
				},
				"labels": func(request *coordinationv1alpha1.EvictionRequest) error {
					_, err := w.setLabels(ctx, request, map[string]string{"app": "web"})
					return err
				},
				"calls": func(request *coordinationv1alpha1.EvictionRequest) error {
					_, err := w.withdrawCalls(ctx, request, change{kind: changeCallsExpired})
					return err
				},
			} {
				f.client.ClearActions()
				if err := write(newRequest(version(test.read))); err != nil {
					t.Fatal(err)
				}
				if got := len(f.client.Actions()) == 1; got != test.want {
					t.Errorf("%s: written %t, want %t", what, got, test.want)
				}
				w.written.Clear(requestKeyOfPod, "")
				if test.wrote != "" {
					w.wrote(newRequest(version(test.wrote)))
				}
			}
		})
	}
}

// A request may change during the eviction call. The refusal is recorded in the version that the cache
// has then.
func TestRequestChangesDuringTheCall(t *testing.T) {
	f := newFixture(t, newRequest(imperativeActive(), version("17")), newPod())
	f.imperative.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
		f.sendUpdate(t, newRequest(imperativeActive(), version("18")))
		return apierrors.NewForbidden(podResource, podName, errUnreachable)
	}
	_, ctx := ktesting.NewTestContext(t)
	if err := f.imperative.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	for _, action := range f.client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok {
			if got := update.GetObject().(metav1.Object).GetResourceVersion(); got != "18" {
				t.Errorf("wrote over version %s, want 18", got)
			}
			return
		}
	}
	t.Error("the refusal was not recorded")
}
