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
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
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

// filled is the namespace of objects in which all fields of the fork are set.
const filled = "filled"

// fillStored writes these objects into etcd, as an API server of the fork does: no validation of one
// would accept all fields at once. They are removed when the test calls the function that it returns.
func fillStored(tCtx ktesting.TContext, plane *controlplane.ControlPlane) (remove func()) {
	tCtx.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", plane.Ports()[controlplane.Etcd])}, DialTimeout: 10 * time.Second})
	tCtx.ExpectNoError(err, "connecting to etcd")
	encoder := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
		schema.GroupVersions{v1.SchemeGroupVersion, appsv1.SchemeGroupVersion, coordinationv1alpha1.SchemeGroupVersion})

	pod := newPod(filled)
	request, maintenance, budget := &coordinationv1alpha1.EvictionRequest{}, &coordinationv1alpha1.NodeMaintenance{}, &coordinationv1alpha1.NodeMaintenanceBudget{}
	node, deployment := &v1.Node{}, newDeployment(pod, 1)
	set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template}}
	for _, value := range []any{
		&request.Spec, &request.Status, &maintenance.Spec, &maintenance.Status, &budget.Spec, &budget.Status,
		&node.Status.MaintenanceStatus, &pod.Spec.EvictionInterceptors, &deployment.Spec.DownscalePodPicker, &set.Spec.DownscalePodPicker,
	} {
		fill(reflect.ValueOf(value).Elem(), "f")
	}
	var keys []string
	for prefix, object := range map[string]interface {
		metav1.Object
		runtime.Object
	}{
		"evictionrequests/" + filled + "/": request, "nodemaintenances/": maintenance, "nodemaintenancebudgets/": budget,
		"minions/": node, "pods/" + filled + "/": pod, "deployments/" + filled + "/": deployment, "replicasets/" + filled + "/": set,
	} {
		object.SetName(filled)
		object.SetUID(types.UID(filled + "-" + strings.ReplaceAll(prefix, "/", "-")))
		object.SetCreationTimestamp(metav1.Unix(1_800_000_000, 0))
		if strings.Contains(prefix, filled) {
			object.SetNamespace(filled)
		}
		data, err := runtime.Encode(encoder, object)
		tCtx.ExpectNoError(err, "encoding %T", object)
		key := "/registry/" + prefix + filled
		_, err = client.Put(tCtx, key, string(data))
		tCtx.ExpectNoError(err, "writing %s", key)
		keys = append(keys, key)
	}
	return func() {
		defer client.Close()
		for _, key := range keys {
			_, err := client.Delete(tCtx, key)
			tCtx.ExpectNoError(err, "deleting %s", key)
		}
	}
}

// fill sets all fields of a value, each to another value.
func fill(value reflect.Value, path string) {
	switch value.Interface().(type) {
	case metav1.Time:
		value.Set(reflect.ValueOf(metav1.Unix(1_700_000_000+int64(len(path)), 0)))
		return
	case intstr.IntOrString:
		value.Set(reflect.ValueOf(intstr.FromString(path)))
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path)
	case reflect.Struct:
		for i := range value.NumField() {
			fill(value.Field(i), fmt.Sprintf("%s.%d", path, i))
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), path)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key, path)
		fill(element, path)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.String:
		value.SetString(path)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(int64(len(path)))
	case reflect.Uint8:
		value.SetUint(uint64(len(path)))
	default:
		panic(fmt.Sprintf("a field has the kind %s", value.Kind()))
	}
}

// compareFilled compares objects in which all fields of the fork are set, and returns how many fields
// these are.
func (f *forkUpgrade) compareFilled(tCtx, other ktesting.TContext) int {
	tCtx.Helper()
	defer fillStored(tCtx, f.plane)()
	objects := func(tCtx ktesting.TContext) map[string]storedObject {
		found := f.read(tCtx)
		maps.DeleteFunc(found, func(_ string, object storedObject) bool { return object.GetName() != filled })
		return found
	}
	var fields int
	older := min(serverVersion(tCtx).Minor, serverVersion(other).Minor)
	for _, server := range []ktesting.TContext{tCtx, other} {
		isOld := serverVersion(server).Minor == older
		await(server, "the objects with all fields", func(tCtx ktesting.TContext) {
			all, missing := countFields(objects(tCtx))
			if isOld {
				missing = slices.DeleteFunc(missing, isNewField)
			}
			if fields = all; len(missing) > 0 {
				tCtx.Fatalf("of %d fields, no object has %q", all, missing)
			}
		})
	}
	compareStored(tCtx, objects(tCtx), objects(other))
	return fields
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
			if was, is := was.withoutNewFields(), is.withoutNewFields(); !apiequality.Semantic.DeepEqual(was, is) {
				tCtx.Errorf("%s is shown in another way (-before +after):\n%s", key, cmp.Diff(was, is))
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
			was.Unstructured, is.Unstructured = withoutWrites(was.Unstructured), withoutWrites(is.Unstructured)
			if was, is := was.withoutNewFields(), is.withoutNewFields(); !apiequality.Semantic.DeepEqual(was, is) {
				first.Errorf("%s has lost or got fields (-before +after):\n%s", key, cmp.Diff(was, is))
			}
		}
	}
	if first.Failed() {
		first.FailNow()
	}
	return written
}

// withoutWrites returns an object without what each write changes.
func withoutWrites(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	labels := object.GetLabels()
	delete(labels, "written-through")
	if len(labels) == 0 {
		labels = nil
	}
	object.SetLabels(labels)
	withoutProgress(object)
	return object
}

// withoutProgress removes the conditions that tools like kstatus read, which the API server of the fork adds to an
// EvictionRequest with each write of its status, and the predecessor does not know.
func withoutProgress(request *unstructured.Unstructured) {
	conditions, found, err := unstructured.NestedSlice(request.Object, "status", "conditions")
	if !found || err != nil || request.GetKind() != "EvictionRequest" {
		return
	}
	conditions = slices.DeleteFunc(conditions, func(condition any) bool {
		kind, _, err := unstructured.NestedString(condition.(map[string]any), "type")
		return err == nil && slices.Contains([]string{
			string(coordinationv1alpha1.EvictionRequestConditionReconciling), string(coordinationv1alpha1.EvictionRequestConditionStalled),
		}, kind)
	})
	if len(conditions) == 0 {
		unstructured.RemoveNestedField(request.Object, "status", "conditions")
		return
	}
	request.Object["status"].(map[string]any)["conditions"] = conditions
}

// ownFields are the fields of the fork, by the resource and field that holds them.
var ownFields = []struct {
	resource string
	at       []string
	of       reflect.Type
}{
	{"evictionrequests", []string{"spec"}, reflect.TypeFor[coordinationv1alpha1.EvictionRequestSpec]()},
	{"evictionrequests", []string{"status"}, reflect.TypeFor[coordinationv1alpha1.EvictionRequestStatus]()},
	{"nodemaintenances", []string{"spec"}, reflect.TypeFor[coordinationv1alpha1.NodeMaintenanceSpec]()},
	{"nodemaintenances", []string{"status"}, reflect.TypeFor[coordinationv1alpha1.NodeMaintenanceStatus]()},
	{"nodemaintenancebudgets", []string{"spec"}, reflect.TypeFor[coordinationv1alpha1.NodeMaintenanceBudgetSpec]()},
	{"nodemaintenancebudgets", []string{"status"}, reflect.TypeFor[coordinationv1alpha1.NodeMaintenanceBudgetStatus]()},
	{"nodes", []string{"status", "maintenanceStatus"}, reflect.TypeFor[v1.MaintenanceStatus]()},
	{"pods", []string{"spec", "evictionInterceptors"}, reflect.TypeFor[[]v1.EvictionInterceptor]()},
	{"deployments", []string{"spec", "downscalePodPicker"}, reflect.TypeFor[v1.DownscalePodPicker]()},
	{"replicasets", []string{"spec", "downscalePodPicker"}, reflect.TypeFor[v1.DownscalePodPicker]()},
}

// newFields are the fields that the predecessor does not know. Its API server shows objects without them, and stores them so.
var newFields = []struct {
	resource string
	path     []string
}{
	{"nodemaintenances", []string{"spec", "rollout", "acknowledgedNodeUIDs"}},
	{"nodemaintenances", []string{"status", "rolloutStatus", "skippedNodes"}},
	{"nodes", []string{"status", "maintenanceStatus", "initialPods"}},
}

// isNewField reports whether a field, as countFields names it, is one of newFields.
func isNewField(name string) bool {
	for _, field := range newFields {
		if name == field.resource+"."+strings.Join(field.path, ".") {
			return true
		}
	}
	return false
}

// withoutNewFields returns the content of the object without newFields.
func (o storedObject) withoutNewFields() map[string]any {
	object := o.DeepCopy().Object
	for _, field := range newFields {
		if o.resource.Resource == field.resource {
			unstructured.RemoveNestedField(object, field.path...)
		}
	}
	return object
}

// countFields returns how many fields the fork has, and those of them that no object has.
func countFields(objects map[string]storedObject) (all int, missing []string) {
	set := map[string]bool{}
	for _, object := range objects {
		for _, own := range ownFields {
			if value, found, err := unstructured.NestedFieldNoCopy(object.Object, own.at...); found && err == nil && object.resource.Resource == own.resource {
				addFields(set, own.resource+"."+strings.Join(own.at, "."), value)
			}
		}
	}
	for _, own := range ownFields {
		for _, field := range fieldsOf(own.resource+"."+strings.Join(own.at, "."), own.of) {
			all++
			if !set[field] {
				missing = append(missing, field)
			}
		}
	}
	return all, missing
}

// addFields adds a value and all fields in it.
func addFields(set map[string]bool, path string, value any) {
	set[path] = true
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			addFields(set, path, element)
		}
	case map[string]any:
		for name, field := range value {
			addFields(set, path+"."+name, field)
		}
	}
}

// fieldsOf returns all fields of a type. Those of types that the fork only uses are not among them.
func fieldsOf(path string, of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || strings.HasPrefix(of.PkgPath(), "k8s.io/apimachinery/") || of == reflect.TypeFor[v1.NodeSelector]() {
		return []string{path}
	}
	var fields []string
	for field := range of.Fields() {
		at := path
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			at += "." + name
		}
		fields = append(fields, fieldsOf(at, field.Type)...)
	}
	return fields
}
