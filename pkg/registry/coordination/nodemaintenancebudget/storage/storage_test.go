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
	"k8s.io/apimachinery/pkg/util/intstr"
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
	config, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("nodemaintenancebudgets"))
	t.Cleanup(func() { server.Terminate(t) })
	main, status, err := NewREST(generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "nodemaintenancebudgets",
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
		Resource: "nodemaintenancebudgets", Subresource: subresource, IsResourceRequest: true, Verb: verb,
	})
}

func newBudget(name string) *coordination.NodeMaintenanceBudget {
	return &coordination.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "infra"}},
		Spec: coordination.NodeMaintenanceBudgetSpec{
			NodeSelector: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{{Key: "pool", Operator: core.NodeSelectorOpIn, Values: []string{"old"}}},
			}}},
			MaxUnavailable: ptr.To(intstr.FromString("10%")),
			Topology:       &coordination.NodeMaintenanceTopology{Key: "topology.kubernetes.io/zone", MaxDomains: 1},
			Windows:        []coordination.NodeMaintenanceWindow{{Schedule: "0 2 * * 6", TimeZone: "Etc/UTC", DurationSeconds: 14400}},
		},
	}
}

func (e *endpoints) create(t *testing.T, budget *coordination.NodeMaintenanceBudget) *coordination.NodeMaintenanceBudget {
	t.Helper()
	created, err := e.Create(requestContext("create", ""), budget, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the budget: %v", err)
	}
	return created.(*coordination.NodeMaintenanceBudget)
}

func (e *endpoints) get(t *testing.T, name string) *coordination.NodeMaintenanceBudget {
	t.Helper()
	budget, err := e.Get(requestContext("get", ""), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the budget: %v", err)
	}
	return budget.(*coordination.NodeMaintenanceBudget)
}

// update sends the object to one of the endpoints.
func update(endpoint rest.Updater, subresource string, budget *coordination.NodeMaintenanceBudget) (*coordination.NodeMaintenanceBudget, error) {
	updated, _, err := endpoint.Update(requestContext("update", subresource), budget.Name, rest.DefaultUpdatedObjectInfo(budget),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return updated.(*coordination.NodeMaintenanceBudget), nil
}

var ignoreAssigned = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp")

func TestCreate(t *testing.T) {
	e := newEndpoints(t)
	budget := newBudget("workers")
	budget.Status.ObservedGeneration = 7 // Ignored by this endpoint.
	created := e.create(t, budget)

	want := newBudget("workers")
	want.Generation = 1
	if diff := cmp.Diff(want, created, ignoreAssigned); diff != "" {
		t.Errorf("unexpected budget (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(created, e.get(t, "workers")); diff != "" {
		t.Errorf("unexpected stored budget (-created, +stored):\n%s", diff)
	}
	if _, err := e.Create(requestContext("create", ""), newBudget("workers"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got error %v for a second budget of that name, want AlreadyExists", err)
	}
	invalid := newBudget("zonal")
	invalid.Spec.Windows[0].TimeZone = "Mars/Olympus"
	if _, err := e.Create(requestContext("create", ""), invalid, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for an unknown time zone, want Invalid", err)
	}
}

func TestUpdate(t *testing.T) {
	e := newEndpoints(t)
	freeze := ptr.To(intstr.FromInt32(0))
	changed := e.create(t, newBudget("workers")).DeepCopy()
	changed.Spec.MaxUnavailable = freeze
	changed.Status.ObservedGeneration = 1
	updated, err := update(e, "", changed)
	if err != nil {
		t.Fatalf("updating the budget: %v", err)
	}
	want := newBudget("workers")
	want.Generation = 2
	want.Spec.MaxUnavailable = freeze
	if diff := cmp.Diff(want, updated, ignoreAssigned); diff != "" {
		t.Errorf("unexpected budget (-want, +got):\n%s", diff)
	}
	if _, err := update(e, "", changed); !apierrors.IsConflict(err) {
		t.Errorf("got error %v for an outdated update, want Conflict", err)
	}
	invalid := newBudget("workers")
	invalid.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(-1))
	if _, err := update(e, "", invalid); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for less than no node, want Invalid", err)
	}
	if updated, err = update(e, "", newBudget("workers")); err != nil || updated.Generation != 3 {
		t.Errorf("an update without a resourceVersion returned %v, %v, want generation 3", updated, err)
	}
	if _, err := update(e, "", newBudget("zonal")); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for the update of a missing budget, want NotFound", err)
	}
}

func TestUpdateStatus(t *testing.T) {
	e := newEndpoints(t)
	changed := e.create(t, newBudget("workers")).DeepCopy()
	changed.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	changed.Labels = nil
	changed.Finalizers = []string{"example.com/other"}
	changed.Status = coordination.NodeMaintenanceBudgetStatus{
		ObservedGeneration: 1, ExpectedNodes: 30, UnavailableNodes: 2, AdmissionsAllowed: 1, ActiveDomains: []string{"a"},
		NextWindowTime:           ptr.To(metav1.NewTime(time.Unix(1000, 0).UTC())),
		PendingAdmissions:        []coordination.NodeMaintenancePendingAdmission{{NodeName: "node-1", MaintenanceUID: "1-2-3", Time: metav1.NewTime(time.Unix(900, 0).UTC())}},
		AdmissionResourceVersion: "17",
	}
	updated, err := update(e.status, "status", changed)
	if err != nil {
		t.Fatalf("updating the status: %v", err)
	}
	want := newBudget("workers")
	want.Generation = 1
	want.Status = changed.Status
	if diff := cmp.Diff(want, updated, ignoreAssigned); diff != "" {
		t.Errorf("unexpected budget (-want, +got):\n%s", diff)
	}
	stored, err := e.status.Get(requestContext("get", "status"), "workers", &metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the status: %v", err)
	}
	if diff := cmp.Diff(updated, stored); diff != "" {
		t.Errorf("unexpected stored budget (-updated, +stored):\n%s", diff)
	}
	// So no admission is decided by two controllers.
	if _, err := update(e.status, "status", changed); !apierrors.IsConflict(err) {
		t.Errorf("got error %v for an outdated status, want Conflict", err)
	}
	back := stored.(*coordination.NodeMaintenanceBudget).DeepCopy()
	back.Status.ObservedGeneration = 0
	if _, err := update(e.status, "status", back); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v for a status that goes back, want Invalid", err)
	}
}

// The status endpoint never creates an object, even if forceAllowCreate is set.
func TestUpdateStatusNeverCreates(t *testing.T) {
	e := newEndpoints(t)
	budget := newBudget("workers")
	_, _, err := e.status.Update(requestContext("update", "status"), "workers", rest.DefaultUpdatedObjectInfo(budget),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want NotFound", err)
	}
	if _, err := e.Get(requestContext("get", ""), "workers", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading the budget, want NotFound", err)
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
		FieldSelector: fields.OneTermEqualSelector("metadata.name", "zonal"), ResourceVersion: before.(*coordination.NodeMaintenanceBudgetList).ResourceVersion})
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer watcher.Stop()
	first, second := e.create(t, newBudget("workers")), e.create(t, newBudget("zonal"))

	list, err := e.List(requestContext("list", ""), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	want := []coordination.NodeMaintenanceBudget{*first, *second}
	if diff := cmp.Diff(want, list.(*coordination.NodeMaintenanceBudgetList).Items); diff != "" {
		t.Errorf("unexpected list (-want, +got):\n%s", diff)
	}
	if _, _, err := e.Delete(requestContext("delete", ""), "zonal", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	if _, err := e.Get(requestContext("get", ""), "zonal", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v when reading a deleted budget, want NotFound", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		event := nextEvent(t, watcher)
		budget, ok := event.Object.(*coordination.NodeMaintenanceBudget)
		if event.Type != want || !ok || budget.Name != "zonal" {
			t.Errorf("got event %s of %v, want %s of the second budget", event.Type, event.Object, want)
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
	if diff := cmp.Diff([]string{"nmb"}, e.ShortNames()); diff != "" {
		t.Errorf("unexpected short names (-want, +got):\n%s", diff)
	}
	if got := e.GetSingularName(); got != "nodemaintenancebudget" {
		t.Errorf("the singular name is %q", got)
	}
	if e.NamespaceScoped() {
		t.Error("budgets are namespaced")
	}
	want := schema.GroupResource{Group: "coordination.k8s.io", Resource: "nodemaintenancebudgets"}
	if e.DefaultQualifiedResource != want {
		t.Errorf("the resource is %s, want %s", e.DefaultQualifiedResource, want)
	}
	for what, object := range map[string]runtime.Object{"main": e.New(), "status": e.status.New()} {
		if _, ok := object.(*coordination.NodeMaintenanceBudget); !ok {
			t.Errorf("the %s endpoint decodes into %T", what, object)
		}
	}
	if _, ok := e.NewList().(*coordination.NodeMaintenanceBudgetList); !ok {
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
	budget := newBudget("workers")
	for what, endpoint := range map[string]rest.TableConvertor{"main": e.REST, "status": e.status} {
		convertor.objects = nil
		if _, err := endpoint.ConvertToTable(requestContext("get", ""), budget, nil); !errors.Is(err, errBroken) {
			t.Errorf("the %s endpoint returned the error %v, want that of the convertor", what, err)
		}
		if len(convertor.objects) != 1 || convertor.objects[0] != budget {
			t.Errorf("the %s endpoint printed %v, want the budget", what, convertor.objects)
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
	e.create(t, newBudget("workers"))
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
