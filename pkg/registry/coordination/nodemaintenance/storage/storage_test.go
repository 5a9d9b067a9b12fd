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
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	// Registers the versions of the API group, one of which is stored.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// endpoints has the main and the status endpoint, with a real etcd.
type endpoints struct {
	*REST
	status *StatusREST
}

func newEndpoints(t *testing.T) *endpoints {
	t.Helper()
	config, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("nodemaintenances"))
	t.Cleanup(func() { server.Terminate(t) })
	main, status, err := NewREST(generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "nodemaintenances",
	})
	if err != nil {
		t.Fatalf("creating the storage: %v", err)
	}
	t.Cleanup(main.Destroy)
	return &endpoints{REST: main, status: status}
}

// requestContext returns the context of a request to an endpoint.
func requestContext(verb, subresource string) context.Context {
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(context.Background(), metav1.NamespaceNone), &genericapirequest.RequestInfo{
		APIPrefix: "apis", APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1",
		Resource: "nodemaintenances", Subresource: subresource, IsResourceRequest: true, Verb: verb,
	})
}

func newMaintenance(name string) *coordination.NodeMaintenance {
	return &coordination.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "infra"}},
		Spec: coordination.NodeMaintenanceSpec{
			NodeSelector: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchFields: []core.NodeSelectorRequirement{{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{"node-1"}}},
			}}},
			Stage:     coordination.NodeMaintenanceStageIdle,
			DrainPlan: []core.DrainPlanEntry{{PodType: core.PodTypeDefault, PodPriority: 1000}},
			Reason:    "firmware 2.1",
		},
	}
}

func (e *endpoints) create(t *testing.T, maintenance *coordination.NodeMaintenance) *coordination.NodeMaintenance {
	t.Helper()
	created, err := e.Create(requestContext("create", ""), maintenance, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the maintenance: %v", err)
	}
	return created.(*coordination.NodeMaintenance)
}

func (e *endpoints) get(t *testing.T, name string) *coordination.NodeMaintenance {
	t.Helper()
	maintenance, err := e.Get(requestContext("get", ""), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the maintenance: %v", err)
	}
	return maintenance.(*coordination.NodeMaintenance)
}

// update sends the object to one of the endpoints.
func update(endpoint rest.Updater, subresource string, maintenance *coordination.NodeMaintenance) (*coordination.NodeMaintenance, error) {
	updated, _, err := endpoint.Update(requestContext("update", subresource), maintenance.Name, rest.DefaultUpdatedObjectInfo(maintenance),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return updated.(*coordination.NodeMaintenance), nil
}

// notObserved returns the condition of a maintenance on which the controller has not acted.
func notObserved(maintenance *coordination.NodeMaintenance) []metav1.Condition {
	condition := metav1.Condition{
		Type: "Reconciling", Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: "NotObserved", Message: "The node maintenance controller has not acted on it yet.",
	}
	if len(maintenance.Status.Conditions) > 0 {
		condition.LastTransitionTime = maintenance.Status.Conditions[0].LastTransitionTime
	}
	return []metav1.Condition{condition}
}

var ignoreAssigned = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp")

func TestCreate(t *testing.T) {
	e := newEndpoints(t)
	maintenance := newMaintenance("firmware")
	maintenance.Status.ObservedGeneration = 7 // Ignored by this endpoint.
	created := e.create(t, maintenance)

	want := newMaintenance("firmware")
	want.Generation = 1
	want.Status.Conditions = notObserved(created)
	if diff := cmp.Diff(want, created, ignoreAssigned); diff != "" {
		t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(created, e.get(t, "firmware")); diff != "" {
		t.Errorf("unexpected stored maintenance (-created, +stored):\n%s", diff)
	}
	if _, err := e.Create(requestContext("create", ""), newMaintenance("firmware"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got error %v for a second maintenance of that name, want AlreadyExists", err)
	}
	invalid := newMaintenance("upgrade")
	invalid.Spec.Stage = "Pause"
	if _, err := e.Create(requestContext("create", ""), invalid, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for an unknown stage, want Invalid", err)
	}
}

func TestUpdate(t *testing.T) {
	e := newEndpoints(t)
	created := e.create(t, newMaintenance("firmware"))
	changed := created.DeepCopy()
	changed.Spec.Stage = coordination.NodeMaintenanceStageDrain
	changed.Status.ObservedGeneration = 1
	updated, err := update(e, "", changed)
	if err != nil {
		t.Fatalf("updating the maintenance: %v", err)
	}
	want := newMaintenance("firmware")
	want.Generation = 2
	want.Spec.Stage = coordination.NodeMaintenanceStageDrain
	want.Status.Conditions = notObserved(updated)
	if diff := cmp.Diff(want, updated, ignoreAssigned); diff != "" {
		t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
	}
	if _, err := update(e, "", changed); !apierrors.IsConflict(err) {
		t.Errorf("got error %v for an outdated update, want Conflict", err)
	}
	if _, err := update(e, "", newMaintenance("firmware")); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for a stage that goes back, want Invalid", err)
	}
	unconditional := newMaintenance("firmware")
	unconditional.Spec.Stage = coordination.NodeMaintenanceStageComplete
	if updated, err = update(e, "", unconditional); err != nil || updated.Generation != 3 {
		t.Errorf("an update without a resourceVersion returned %v, %v, want generation 3", updated, err)
	}
	if _, err := update(e, "", newMaintenance("upgrade")); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for the update of a missing maintenance, want NotFound", err)
	}
}

// A maintenance with a finalizer is kept until it is complete. Its stage may still move forward.
func TestUpdateWhileItIsDeleted(t *testing.T) {
	e := newEndpoints(t)
	maintenance := newMaintenance("firmware")
	maintenance.Spec.Stage = coordination.NodeMaintenanceStageDrain
	maintenance.Finalizers = []string{coordination.NodeMaintenanceFinalizer}
	e.create(t, maintenance)
	if _, _, err := e.Delete(requestContext("delete", ""), "firmware", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	deleted := e.get(t, "firmware")
	if deleted.DeletionTimestamp == nil || deleted.Generation != 2 {
		t.Fatalf("a deleted maintenance has the time %v and generation %d, want a time and 2", deleted.DeletionTimestamp, deleted.Generation)
	}
	deleted.Spec.Stage = coordination.NodeMaintenanceStageComplete
	completed, err := update(e, "", deleted)
	if err != nil {
		t.Fatalf("completing it: %v", err)
	}
	completed.Finalizers = nil
	if _, err := update(e, "", completed); err != nil {
		t.Fatalf("removing its finalizer: %v", err)
	}
	if _, err := e.Get(requestContext("get", ""), "firmware", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading it without a finalizer, want NotFound", err)
	}
}

func TestUpdateStatus(t *testing.T) {
	e := newEndpoints(t)
	changed := e.create(t, newMaintenance("firmware")).DeepCopy()
	changed.Spec.Stage = coordination.NodeMaintenanceStageDrain
	changed.Labels = nil
	changed.Finalizers = []string{coordination.NodeMaintenanceFinalizer}
	changed.Status = coordination.NodeMaintenanceStatus{
		ObservedGeneration: 1, SelectedNodes: 1,
		StageStatuses: []coordination.StageStatus{{Name: coordination.NodeMaintenanceStageIdle}},
		DrainStatus:   coordination.DrainStatus{ReachedDrainTargets: changed.Spec.DrainPlan, DrainPlanPosition: ptr.To[int32](0), BlockedPods: 2, DrainMessage: "Draining"},
	}
	updated, err := update(e.status, "status", changed)
	if err != nil {
		t.Fatalf("updating the status: %v", err)
	}
	want := newMaintenance("firmware")
	want.Generation = 1
	want.Status = changed.Status
	if diff := cmp.Diff(want, updated, ignoreAssigned); diff != "" {
		t.Errorf("unexpected maintenance (-want, +got):\n%s", diff)
	}
	stored, err := e.status.Get(requestContext("get", "status"), "firmware", &metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the status: %v", err)
	}
	if diff := cmp.Diff(updated, stored); diff != "" {
		t.Errorf("unexpected stored maintenance (-updated, +stored):\n%s", diff)
	}
	if _, err := update(e.status, "status", changed); !apierrors.IsConflict(err) {
		t.Errorf("got error %v for an outdated status, want Conflict", err)
	}
	back := stored.(*coordination.NodeMaintenance).DeepCopy()
	back.Status.DrainStatus.DrainPlanPosition = nil
	if _, err := update(e.status, "status", back); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for a status that goes back, want Invalid", err)
	}
	early := stored.(*coordination.NodeMaintenance).DeepCopy()
	early.Spec.Stage = coordination.NodeMaintenanceStageDrain // Ignored by this endpoint.
	early.Status.StageStatuses = append(early.Status.StageStatuses, coordination.StageStatus{Name: coordination.NodeMaintenanceStageDrain})
	if _, err := update(e.status, "status", early); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for a stage that spec.stage has not reached, want Invalid", err)
	}
}

// The status endpoint never creates an object, even if forceAllowCreate is set.
func TestUpdateStatusNeverCreates(t *testing.T) {
	e := newEndpoints(t)
	maintenance := newMaintenance("firmware")
	_, _, err := e.status.Update(requestContext("update", "status"), "firmware", rest.DefaultUpdatedObjectInfo(maintenance),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want NotFound", err)
	}
	if _, err := e.Get(requestContext("get", ""), "firmware", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading the maintenance, want NotFound", err)
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
		FieldSelector: fields.OneTermEqualSelector("metadata.name", "upgrade"), ResourceVersion: before.(*coordination.NodeMaintenanceList).ResourceVersion})
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer watcher.Stop()
	first, second := e.create(t, newMaintenance("firmware")), e.create(t, newMaintenance("upgrade"))

	list, err := e.List(requestContext("list", ""), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	want := []coordination.NodeMaintenance{*first, *second}
	if diff := cmp.Diff(want, list.(*coordination.NodeMaintenanceList).Items); diff != "" {
		t.Errorf("unexpected list (-want, +got):\n%s", diff)
	}
	if _, _, err := e.Delete(requestContext("delete", ""), "upgrade", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	if _, err := e.Get(requestContext("get", ""), "upgrade", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading a deleted maintenance, want NotFound", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		event := nextEvent(t, watcher)
		maintenance, ok := event.Object.(*coordination.NodeMaintenance)
		if event.Type != want || !ok || maintenance.Name != "upgrade" {
			t.Errorf("got event %s of %v, want %s of the second maintenance", event.Type, event.Object, want)
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
	if diff := cmp.Diff([]string{"nm"}, e.ShortNames()); diff != "" {
		t.Errorf("unexpected short names (-want, +got):\n%s", diff)
	}
	if got := e.GetSingularName(); got != "nodemaintenance" {
		t.Errorf("the singular name is %q", got)
	}
	if e.NamespaceScoped() {
		t.Error("maintenances are namespaced")
	}
	want := schema.GroupResource{Group: "coordination.k8s.io", Resource: "nodemaintenances"}
	if e.DefaultQualifiedResource != want {
		t.Errorf("the resource is %s, want %s", e.DefaultQualifiedResource, want)
	}
	for what, object := range map[string]runtime.Object{"main": e.New(), "status": e.status.New()} {
		if _, ok := object.(*coordination.NodeMaintenance); !ok {
			t.Errorf("the %s endpoint decodes into %T", what, object)
		}
	}
	if _, ok := e.NewList().(*coordination.NodeMaintenanceList); !ok {
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
	maintenance := newMaintenance("firmware")
	for what, endpoint := range map[string]rest.TableConvertor{"main": e.REST, "status": e.status} {
		convertor.objects = nil
		if _, err := endpoint.ConvertToTable(requestContext("get", ""), maintenance, nil); !errors.Is(err, errBroken) {
			t.Errorf("the %s endpoint returned the error %v, want that of the convertor", what, err)
		}
		if len(convertor.objects) != 1 || convertor.objects[0] != maintenance {
			t.Errorf("the %s endpoint printed %v, want the maintenance", what, convertor.objects)
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
	e.create(t, newMaintenance("firmware"))
}

func TestNewRESTReportsBrokenOptions(t *testing.T) {
	if _, _, err := NewREST(brokenOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("got error %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken")

type brokenOptions struct{}

func (brokenOptions) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{}, errBroken
}
