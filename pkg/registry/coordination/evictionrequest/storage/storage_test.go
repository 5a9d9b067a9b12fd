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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	// Registers the versions of the API group, one of which is stored.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

const (
	targetUID  = "6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91"
	anotherUID = "f0e1d2c3-0000-4000-8000-000000000002"
)

// endpoints has both endpoints with a real etcd.
type endpoints struct {
	*REST
	status *StatusREST
}

func newEndpoints(t *testing.T) *endpoints {
	t.Helper()
	config, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
	t.Cleanup(func() { server.Terminate(t) })
	main, status, err := NewREST(generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "evictionrequests",
	}, evictionrequest.Retention{})
	if err != nil {
		t.Fatalf("creating the storage: %v", err)
	}
	t.Cleanup(main.Destroy)
	return &endpoints{REST: main, status: status}
}

// requestContext returns the context of a request to an endpoint.
func requestContext(verb, subresource string) context.Context {
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(context.Background(), "prod"), &genericapirequest.RequestInfo{
		APIPrefix: "apis", APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1", Namespace: "prod",
		Resource: "evictionrequests", Subresource: subresource, IsResourceRequest: true, Verb: verb,
	})
}

func newRequest(uid string) *coordination.EvictionRequest {
	return &coordination.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: uid, Labels: map[string]string{"app": uid[:1]}},
		Spec: coordination.EvictionRequestSpec{
			Target:                   coordination.EvictionTarget{Pod: &coordination.LocalPodReference{Name: "web-0", UID: uid}},
			Requesters:               []coordination.Requester{{Name: "drain.example.com"}},
			HeartbeatDeadlineSeconds: ptr.To[int32](600),
		},
	}
}

func (e *endpoints) create(t *testing.T, request *coordination.EvictionRequest) *coordination.EvictionRequest {
	t.Helper()
	created, err := e.Create(requestContext("create", ""), request, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the request: %v", err)
	}
	return created.(*coordination.EvictionRequest)
}

func (e *endpoints) get(t *testing.T, uid string) *coordination.EvictionRequest {
	t.Helper()
	request, err := e.Get(requestContext("get", ""), uid, &metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the request: %v", err)
	}
	return request.(*coordination.EvictionRequest)
}

// update sends the object to one of the endpoints.
func update(endpoint rest.Updater, subresource string, request *coordination.EvictionRequest) (*coordination.EvictionRequest, error) {
	updated, _, err := endpoint.Update(requestContext("update", subresource), request.Name, rest.DefaultUpdatedObjectInfo(request),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return updated.(*coordination.EvictionRequest), nil
}

// isInProgress reports whether a request has no other condition than that.
func isInProgress(request *coordination.EvictionRequest) bool {
	return len(request.Status.Conditions) == 1 && request.Status.Conditions[0].Type == "Reconciling"
}

// reconciling returns the only condition of a request that is not finished, of the time at which it was created.
func reconciling(request *coordination.EvictionRequest, reason, message string) []metav1.Condition {
	condition := metav1.Condition{Type: "Reconciling", Status: metav1.ConditionTrue, ObservedGeneration: request.Status.ObservedGeneration, Reason: reason, Message: message}
	if len(request.Status.Conditions) > 0 {
		condition.LastTransitionTime = request.Status.Conditions[0].LastTransitionTime
	}
	return []metav1.Condition{condition}
}

var ignoreAssigned = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp")

func TestCreate(t *testing.T) {
	e := newEndpoints(t)
	request := newRequest(targetUID)
	request.Status.ObservedGeneration = 7 // Ignored by this endpoint.
	created := e.create(t, request)

	want := newRequest(targetUID)
	want.Generation = 1
	want.Status.Conditions = reconciling(created, "Pending", "The controller has not acted on the request yet.")
	if diff := cmp.Diff(want, created, ignoreAssigned); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(created, e.get(t, targetUID)); diff != "" {
		t.Errorf("unexpected stored request (-created, +stored):\n%s", diff)
	}
	if _, err := e.Create(requestContext("create", ""), newRequest(targetUID), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got error %v for a second request for one pod, want AlreadyExists", err)
	}
	invalid := newRequest(anotherUID)
	invalid.Spec.Target.Pod.UID = targetUID
	if _, err := e.Create(requestContext("create", ""), invalid, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for a request that is named after another pod, want Invalid", err)
	}
}

func TestUpdate(t *testing.T) {
	e := newEndpoints(t)
	changed := e.create(t, newRequest(targetUID)).DeepCopy()
	changed.Spec.Requesters = append(changed.Spec.Requesters, coordination.Requester{Name: "other.example.com"})
	changed.Status.ObservedGeneration = 1
	updated, err := update(e, "", changed)
	if err != nil {
		t.Fatalf("updating the request: %v", err)
	}
	want := newRequest(targetUID)
	want.Generation = 2
	want.Spec.Requesters = changed.Spec.Requesters
	want.Status.Conditions = reconciling(updated, "Pending", "The controller has not acted on the request yet.")
	if diff := cmp.Diff(want, updated, ignoreAssigned); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
	if _, err := update(e, "", changed); !apierrors.IsConflict(err) {
		t.Errorf("got error %v for an outdated update, want Conflict", err)
	}
	unconditional := newRequest(targetUID)
	if _, err := update(e, "", unconditional); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for an update without a resourceVersion, want Invalid", err)
	}
	if _, err := update(e, "", newRequest(anotherUID)); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for the update of a missing request, want NotFound", err)
	}
}

func TestUpdateStatus(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t, newRequest(targetUID))
	changed := created.DeepCopy()
	changed.Spec.Requesters = nil
	changed.Labels = nil
	changed.Status.ObservedGeneration = 1
	changed.Status.TargetInterceptors = []coordination.Interceptor{{Name: "imperative-eviction.k8s.io"}}
	changed.Status.Interceptors = []coordination.InterceptorStatus{{Name: "imperative-eviction.k8s.io"}}
	updated, err := update(e.status, "status", changed)
	if err != nil {
		t.Fatalf("updating the status: %v", err)
	}
	want := newRequest(targetUID)
	want.Generation = 1
	want.Status = changed.Status
	// Nobody is active.
	want.Status.Conditions = reconciling(updated, "Pending", "The controller has not acted on the request yet.")
	if diff := cmp.Diff(want, updated, ignoreAssigned); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
	stored, err := e.status.Get(requestContext("get", "status"), targetUID, &metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the status: %v", err)
	}
	if diff := cmp.Diff(updated, stored); diff != "" {
		t.Errorf("unexpected stored request (-updated, +stored):\n%s", diff)
	}
	if _, err := update(e.status, "status", changed); !apierrors.IsConflict(err) {
		t.Errorf("got error %v for an outdated status, want Conflict", err)
	}
}

// The status endpoint never creates an object, even if forceAllowCreate is set.
func TestUpdateStatusNeverCreates(t *testing.T) {
	e := newEndpoints(t)
	request := newRequest(targetUID)
	_, _, err := e.status.Update(requestContext("update", "status"), targetUID, rest.DefaultUpdatedObjectInfo(request),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want NotFound", err)
	}
	if _, err := e.Get(requestContext("get", ""), targetUID, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading the request, want NotFound", err)
	}
}

func TestListWatchAndDelete(t *testing.T) {
	e := newEndpoints(t)
	// A watch from version 0 starts at an arbitrary version, which may be later than the following
	// changes. A watch from a listed version receives all changes since.
	before, err := e.List(requestContext("list", ""), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	watcher, err := e.Watch(requestContext("watch", ""), &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", anotherUID), ResourceVersion: before.(*coordination.EvictionRequestList).ResourceVersion})
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer watcher.Stop()
	first, second := e.create(t, newRequest(targetUID)), e.create(t, newRequest(anotherUID))

	list, err := e.List(requestContext("list", ""), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	want := []coordination.EvictionRequest{*first, *second}
	if diff := cmp.Diff(want, list.(*coordination.EvictionRequestList).Items); diff != "" {
		t.Errorf("unexpected list (-want, +got):\n%s", diff)
	}
	if _, _, err := e.Delete(requestContext("delete", ""), anotherUID, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	if _, err := e.Get(requestContext("get", ""), anotherUID, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading a deleted request, want NotFound", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		event := nextEvent(t, watcher)
		request, ok := event.Object.(*coordination.EvictionRequest)
		if event.Type != want || !ok || request.Name != anotherUID {
			t.Errorf("got event %s of %v, want %s of the second request", event.Type, event.Object, want)
		}
	}
}

func nextEvent(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-watcher.ResultChan():
		return event
	case <-time.After(wait.ForeverTestTimeout):
		t.Fatalf("no event came within %v", wait.ForeverTestTimeout)
		return watch.Event{}
	}
}

func TestNames(t *testing.T) {
	e := newEndpoints(t)
	if diff := cmp.Diff([]string{"er"}, e.ShortNames()); diff != "" {
		t.Errorf("unexpected short names (-want, +got):\n%s", diff)
	}
	if got := e.GetSingularName(); got != "evictionrequest" {
		t.Errorf("the singular name is %q", got)
	}
	if !e.NamespaceScoped() {
		t.Error("requests are not namespaced")
	}
	want := schema.GroupResource{Group: "coordination.k8s.io", Resource: "evictionrequests"}
	if e.DefaultQualifiedResource != want {
		t.Errorf("the resource is %s, want %s", e.DefaultQualifiedResource, want)
	}
	for what, object := range map[string]runtime.Object{"main": e.New(), "status": e.status.New()} {
		if _, ok := object.(*coordination.EvictionRequest); !ok {
			t.Errorf("the %s endpoint decodes into %T", what, object)
		}
	}
	if _, ok := e.NewList().(*coordination.EvictionRequestList); !ok {
		t.Errorf("the main endpoint lists into %T", e.NewList())
	}
}

// Each endpoint resets the fields that the other one writes.
func TestResetFields(t *testing.T) {
	e := newEndpoints(t)
	for what, test := range map[string]struct{ got, want *fieldpath.Set }{
		"main":   {e.GetResetFields()["coordination.k8s.io/v1alpha1"], fieldpath.NewSet(fieldpath.MakePathOrDie("status"))},
		"status": {e.status.GetResetFields()["coordination.k8s.io/v1alpha1"], fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))},
	} {
		if test.got == nil || !test.got.Equals(test.want) {
			t.Errorf("the %s endpoint resets %v, want %v", what, test.got, test.want)
		}
	}
}

// Both endpoints use the same printers.
func TestConvertToTable(t *testing.T) {
	e := newEndpoints(t)
	convertor := &recordedConvertor{}
	e.Store.TableConvertor, e.status.store.TableConvertor = convertor, convertor
	request := newRequest(targetUID)
	for what, endpoint := range map[string]rest.TableConvertor{"main": e.REST, "status": e.status} {
		convertor.objects = nil
		if _, err := endpoint.ConvertToTable(requestContext("get", ""), request, nil); !errors.Is(err, errBroken) {
			t.Errorf("the %s endpoint returned the error %v, want that of the convertor", what, err)
		}
		if len(convertor.objects) != 1 || convertor.objects[0] != request {
			t.Errorf("the %s endpoint printed %v, want the request", what, convertor.objects)
		}
	}
}

// recordedConvertor records the converted objects.
type recordedConvertor struct{ objects []runtime.Object }

func (c *recordedConvertor) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	c.objects = append(c.objects, object)
	return nil, errBroken
}

// The store is shared: only the main endpoint may destroy it.
func TestDestroyStatus(t *testing.T) {
	e := newEndpoints(t)
	e.status.Destroy()
	e.create(t, newRequest(targetUID))
}

func TestNewRESTReportsBrokenOptions(t *testing.T) {
	if _, _, err := NewREST(brokenOptions{}, evictionrequest.Retention{}); !errors.Is(err, errBroken) {
		t.Errorf("got error %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken")

type brokenOptions struct{}

func (brokenOptions) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{}, errBroken
}
