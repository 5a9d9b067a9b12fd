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

package storage

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericstorage "k8s.io/apiserver/pkg/storage"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/registry/core/pod/admittedpod"
	"k8s.io/utils/ptr"
)

// replacingStore has something happen just before a pod is deleted.
type replacingStore struct {
	rest.StandardStorage
	before func()
}

func (s *replacingStore) Delete(ctx context.Context, name string, validation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	s.before()
	return s.StandardStorage.Delete(ctx, name, validation, options)
}

func contextOfEviction() context.Context {
	// Declarative validation asks in which version a pod comes.
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(genericapirequest.NewContext(), metav1.NamespaceDefault),
		&genericapirequest.RequestInfo{APIVersion: "v1", Resource: "pods"})
}

func createRunningPod(ctx context.Context, t *testing.T, storage *REST, status *StatusREST) *api.Pod {
	t.Helper()
	if _, err := storage.Create(ctx, validNewPod(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		pod := stored.DeepCopyObject().(*api.Pod)
		pod.Status.Phase = api.PodRunning
		return pod, nil
	}
	running, _, err := status.Update(ctx, "foo", rest.DefaultUpdatedObjectInfo(nil, run), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return running.(*api.Pod)
}

// An eviction ends the pod that admission has looked at, or none.
func TestAdmittedPod(t *testing.T) {
	errOther := errors.New("another pod has the name")
	for _, test := range []struct {
		name string
		// The pod is replaced when admission has looked at it, or when it was checked.
		late bool
		// check is whether admission minds.
		check bool
		want  func(error) bool
	}{
		{name: "replaced after admission", check: true, want: func(err error) bool { return errors.Is(err, errOther) }},
		{name: "replaced after the check", check: true, late: true, want: apierrors.IsConflict},
		{name: "admission does not mind", want: func(err error) bool { return err == nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := contextOfEviction()
			storage, _, status, server := newStorage(t)
			defer server.Terminate(t)
			defer storage.Store.DestroyFunc()
			create := func() *api.Pod { return createRunningPod(ctx, t, storage, status) }
			admitted := create().UID
			var successor *api.Pod
			replace := func() {
				if _, _, err := storage.Store.Delete(ctx, "foo", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
					t.Fatal(err)
				}
				successor = create()
			}
			store := &replacingStore{storage.Store, func() {}}
			if test.late {
				store.before = replace
			}
			admit := func(ctx context.Context, _ runtime.Object) error {
				if test.check {
					admittedpod.AddCheck(ctx, func(pod *api.Pod) error {
						if pod.UID != admitted {
							return errOther
						}
						return nil
					})
				}
				if !test.late {
					replace()
				}
				return nil
			}

			eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: metav1.NamespaceDefault}, DeleteOptions: metav1.NewDeleteOptions(0)}
			_, err := newEvictionStorage(store, budgetsClient(t, nil)).Create(ctx, "foo", eviction, admit, &metav1.CreateOptions{})
			if !test.want(err) {
				t.Errorf("unexpected error %v", err)
			}
			var want, got types.UID
			if test.check {
				want = successor.UID
			}
			if left, err := storage.Get(ctx, "foo", &metav1.GetOptions{}); err == nil {
				got = left.(*api.Pod).UID
				if diff := cmp.Diff(successor.Status, left.(*api.Pod).Status); diff != "" {
					t.Errorf("the successor was changed (-before, +after):\n%s", diff)
				}
			}
			if got != want {
				t.Errorf("pod %q is left, want %q", got, want)
			}
		})
	}
}

// halfDeletingStore deletes like a deletion without a grace period whose second write comes late: the
// first one has marked the pod, and the other one removes it.
type halfDeletingStore struct {
	rest.StandardStorage
	remove func()
}

func (s *halfDeletingStore) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	late := func(_ context.Context, pod, _ runtime.Object) (runtime.Object, error) {
		s.remove()
		return pod, nil
	}
	return s.StandardStorage.Update(ctx, name, rest.WrapUpdatedObjectInfo(info, late), create, update, forceAllowCreate, options)
}

// markDeleted is the first write of a deletion: the pod terminates, for so many seconds.
func markDeleted(ctx context.Context, t *testing.T, storage *REST, period int64) {
	t.Helper()
	key, err := storage.KeyFunc(ctx, "foo")
	if err != nil {
		t.Fatal(err)
	}
	mark := func(stored runtime.Object, _ genericstorage.ResponseMeta) (runtime.Object, *uint64, error) {
		marked := stored.DeepCopyObject().(*api.Pod)
		marked.DeletionTimestamp, marked.DeletionGracePeriodSeconds = ptr.To(metav1.Now()), &period
		return marked, nil, nil
	}
	if err := storage.Storage.GuaranteedUpdate(ctx, key, &api.Pod{}, false, nil, mark, false, nil); err != nil {
		t.Fatal(err)
	}
}

// An eviction that meets a pod in the middle of its removal does not end the successor.
func TestEvictionOfRemovedPod(t *testing.T) {
	ctx := contextOfEviction()
	storage, _, status, server := newStorage(t)
	defer server.Terminate(t)
	defer storage.Store.DestroyFunc()
	pod := createRunningPod(ctx, t, storage, status)
	key, err := storage.KeyFunc(ctx, "foo")
	if err != nil {
		t.Fatal(err)
	}
	markDeleted(ctx, t, storage, 0)
	var successor *api.Pod
	remove := sync.OnceFunc(func() {
		if err := storage.Storage.Delete(ctx, key, &api.Pod{}, genericstorage.NewUIDPreconditions(string(pod.UID)), genericstorage.ValidateAllObjectFunc, false, nil, genericstorage.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		successor = createRunningPod(ctx, t, storage, status)
	})
	admit := func(ctx context.Context, _ runtime.Object) error {
		admittedpod.AddCheck(ctx, func(*api.Pod) error { return nil })
		return nil
	}

	eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: metav1.NamespaceDefault}, DeleteOptions: &metav1.DeleteOptions{}}
	if _, err := newEvictionStorage(&halfDeletingStore{storage.Store, remove}, budgetsClient(t, nil)).Create(ctx, "foo", eviction, admit, &metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want that the pod is gone", err)
	}
	remove()
	if _, err := storage.Get(ctx, "foo", &metav1.GetOptions{}); err != nil {
		t.Errorf("the successor %s: %v", successor.UID, err)
	}
}
