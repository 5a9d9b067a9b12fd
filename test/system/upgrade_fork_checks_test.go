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

package system

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// rewritten are the resources whose objects are read and written through each API server.
var rewritten = []string{
	"deployments", "daemonsets", "evictionrequests", "nodemaintenances", "nodemaintenancebudgets", "nodes",
	"poddisruptionbudgets", "pods", "replicasets",
}

// listedResources returns the resources that an API server can list, in the versions that it prefers.
// Leases and events are left out: API servers write them all the time.
func listedResources(tCtx ktesting.TContext) (resources []schema.GroupVersionResource) {
	tCtx.Helper()
	lists, err := tCtx.Client().Discovery().ServerPreferredResources()
	tCtx.ExpectNoError(err)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		tCtx.ExpectNoError(err)
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains([]string{"componentstatuses", "events", "leases"}, resource.Name) {
				resources = append(resources, version.WithResource(resource.Name))
			}
		}
	}
	return resources
}

// storedObject is an object as an API server shows it.
type storedObject struct {
	*unstructured.Unstructured
	resource schema.GroupVersionResource
}

// scenario reports whether the object is of one of the scenarios, and not of the API servers.
func (o storedObject) scenario() bool {
	if o.GetNamespace() == "" {
		return slices.Contains([]string{"nodes", "nodemaintenances", "nodemaintenancebudgets"}, o.resource.Resource)
	}
	return !strings.HasPrefix(o.GetNamespace(), "kube-") && o.GetNamespace() != metav1.NamespaceDefault
}

// read returns all objects that the API server of a context shows, by resource, namespace and name.
func (f *forkUpgrade) read(tCtx ktesting.TContext) map[string]storedObject {
	tCtx.Helper()
	objects := map[string]storedObject{}
	for _, resource := range f.resources {
		list, err := tCtx.Dynamic().Resource(resource).List(tCtx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) && !slices.Contains(rewritten, resource.Resource) {
			continue // A version that is served by only one of the releases.
		}
		tCtx.ExpectNoError(err, "listing %s", resource)
		for i := range list.Items {
			item := &list.Items[i]
			objects[fmt.Sprintf("%s %s/%s", resource.GroupResource(), item.GetNamespace(), item.GetName())] = storedObject{item, resource}
		}
	}
	return objects
}

// compareStored fails if an object of the scenarios has changed or is missing, or if an object is
// shown in another way although it was not written.
func compareStored(tCtx ktesting.TContext, before, after map[string]storedObject) string {
	tCtx.Helper()
	var all, scenario int
	for _, key := range slices.Sorted(maps.Keys(before)) {
		was, is := before[key], after[key]
		switch {
		case is.Unstructured == nil && was.scenario():
			tCtx.Errorf("%s is missing", key)
		case is.Unstructured == nil:
		case was.GetUID() == is.GetUID() && was.GetResourceVersion() == is.GetResourceVersion():
			all++
			if was.scenario() {
				scenario++
			}
			if !apiequality.Semantic.DeepEqual(was.Object, is.Object) {
				tCtx.Errorf("%s is shown in another way (-before +after):\n%s", key, cmp.Diff(was.Object, is.Object))
			}
		case was.scenario():
			tCtx.Errorf("%s was written (-before +after):\n%s", key, cmp.Diff(was.Object, is.Object))
		}
	}
	for key, is := range after {
		if is.scenario() && before[key].Unstructured == nil {
			tCtx.Errorf("%s is new", key)
		}
	}
	if tCtx.Failed() {
		tCtx.FailNow()
	}
	return fmt.Sprintf("%d objects are shown with the same fields, %d of them of the scenarios, none of which was written", all, scenario)
}

// rewrite reads the objects of the scenarios through one API server, writes them there with a label
// and, where they have one, their status, and sees through the other one that nothing else has changed.
// It returns how many there are.
func (f *forkUpgrade) rewrite(first, server ktesting.TContext, label string) int {
	first.Helper()
	before, written := f.read(server), 0
	for _, key := range slices.Sorted(maps.Keys(before)) {
		object := before[key]
		if !object.scenario() || !slices.Contains(rewritten, object.resource.Resource) {
			continue
		}
		client := server.Dynamic().Resource(object.resource).Namespace(object.GetNamespace())
		changed := object.DeepCopy()
		labels := changed.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["written-through"] = label
		changed.SetLabels(labels)
		changed, err := client.Update(server, changed, metav1.UpdateOptions{})
		server.ExpectNoError(err, "writing %s", key)
		if changed.Object["status"] != nil {
			_, err = client.UpdateStatus(server, changed, metav1.UpdateOptions{})
			server.ExpectNoError(err, "writing the status of %s", key)
		}
		written++
	}
	for _, reader := range f.servers(first) {
		for key, is := range f.read(reader) {
			was := before[key]
			if was.Unstructured == nil || !is.scenario() || was.GetResourceVersion() == is.GetResourceVersion() {
				continue
			}
			was.Unstructured, is.Unstructured = comparable(was.Unstructured), comparable(is.Unstructured)
			if !apiequality.Semantic.DeepEqual(was.Object, is.Object) {
				first.Errorf("%s has lost or got fields (-before +after):\n%s", key, cmp.Diff(was.Object, is.Object))
			}
		}
	}
	if first.Failed() {
		first.FailNow()
	}
	return written
}

// comparable returns an object without what each write changes.
func comparable(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	labels := object.GetLabels()
	delete(labels, "written-through")
	if len(labels) == 0 {
		labels = nil
	}
	object.SetLabels(labels)
	return object
}
