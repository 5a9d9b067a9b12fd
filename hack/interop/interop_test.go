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

// Package interop shows that programs with upstream's API types read what the fork stores and
// serves: API servers of upstream on the same etcd, and all clients that are not built from the tree.
package interop

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	v1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// fixture is an object of TestInteropFixtures in k8s.io/api, as upstream knows it: with all but the
// fields of the fork.
type fixture struct {
	object runtime.Object
	// path is that of the object in the API.
	path string
	// unknown are the fields of the fork.
	unknown []string
}

var (
	podSpec = v1.PodSpec{
		Containers: []v1.Container{{Name: "web", Image: "example.com/web:1"}},
		NodeName:   "node-1",
	}
	selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template = v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: podSpec}

	fixtures = map[string]fixture{
		"pod": {
			object: &v1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop"},
				Spec:       podSpec,
			},
			path:    "/api/v1/namespaces/shop/pods/web-0",
			unknown: []string{"spec.evictionInterceptors"},
		},
		"node": {
			object: &v1.Node{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
				ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
				Status: v1.NodeStatus{
					Conditions:       []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
					NodeInfo:         v1.NodeSystemInfo{KubeletVersion: "v1.2.3"},
					DeclaredFeatures: []string{"Feature"},
				},
			},
			path:    "/api/v1/nodes/node-1",
			unknown: []string{"status.maintenanceStatus"},
		},
		"deployment": {
			object: &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
				Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Selector: selector, Template: template},
			},
			path:    "/apis/apps/v1/namespaces/shop/deployments/web",
			unknown: []string{"spec.downscalePodPicker", "spec.template.spec.evictionInterceptors"},
		},
		"replicaset": {
			object: &appsv1.ReplicaSet{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
				ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop"},
				Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](3), Selector: selector, Template: template},
			},
			path:    "/apis/apps/v1/namespaces/shop/replicasets/web-1",
			unknown: []string{"spec.downscalePodPicker", "spec.template.spec.evictionInterceptors"},
		},
	}
)

func newScheme(t *testing.T, adders ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range adders {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestVersions requires that upstream's modules are of the release that the fork patches.
func TestVersions(t *testing.T) {
	versions := func(file string) map[string]string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, required := range regexp.MustCompile(`(?m)^\t(k8s\.io/(?:api|apimachinery|client-go)) (v\S+)$`).FindAllStringSubmatch(string(data), -1) {
			all[required[1]] = required[2]
		}
		return all
	}
	want, got := versions("../../go.mod"), versions("go.mod")
	if diff := gocmp.Diff(want, got); diff != "" || len(got) != 3 {
		t.Errorf("the modules are not those of the base, use go get (-base +here):\n%s", diff)
	}
}

// TestStored decodes objects as an API server of upstream reads them from etcd. Interceptors, for
// example, must not be decoded as responders: these would have no priority and invalid names, so that
// the pod could not be updated.
func TestStored(t *testing.T) {
	scheme := newScheme(t, v1.AddToScheme, appsv1.AddToScheme)
	for name, want := range fixtures {
		got, _, err := protobuf.NewSerializer(scheme, scheme).Decode(read(t, name+".pb"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got.GetObjectKind().SetGroupVersionKind(want.object.GetObjectKind().GroupVersionKind())
		if diff := gocmp.Diff(want.object, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestManifests decodes the objects strictly, as "kubectl apply" of upstream has them validated by an
// API server of upstream: all that it does not know are the fields of the fork.
func TestManifests(t *testing.T) {
	decoder := serializer.NewCodecFactory(newScheme(t, v1.AddToScheme, appsv1.AddToScheme), serializer.EnableStrict).UniversalDeserializer()
	quoted := regexp.MustCompile(`unknown field "([^"]*)"`)
	for name, want := range fixtures {
		got, _, err := decoder.Decode(read(t, name+".json"), nil, nil)
		strict, isStrict := runtime.AsStrictDecodingError(err)
		if !isStrict {
			t.Errorf("%s: error %v, want unknown fields", name, err)
			continue
		}
		var unknown []string
		for _, err := range strict.Errors() {
			field := quoted.FindStringSubmatch(err.Error())
			if field == nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			unknown = append(unknown, field[1])
		}
		slices.Sort(unknown)
		if diff := gocmp.Diff(want.unknown, unknown); diff != "" {
			t.Errorf("unknown fields of %s (-want +got):\n%s", name, diff)
		}
		if diff := gocmp.Diff(want.object, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestClients reads the objects with client-go of upstream.
func TestClients(t *testing.T) {
	extensions := map[string]string{runtime.ContentTypeProtobuf: ".pb", runtime.ContentTypeJSON: ".json"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
		for name, fixture := range fixtures {
			if r.URL.Path == fixture.path {
				w.Header().Set("Content-Type", accepted)
				w.Write(read(t, name+extensions[accepted]))
				return
			}
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	for contentType := range extensions {
		config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{AcceptContentTypes: contentType, ContentType: contentType}}
		core, apps := corev1client.NewForConfigOrDie(config), appsv1client.NewForConfigOrDie(config)
		for name, get := range map[string]func() (runtime.Object, error){
			"pod": func() (runtime.Object, error) {
				return core.Pods("shop").Get(t.Context(), "web-0", metav1.GetOptions{})
			},
			"node": func() (runtime.Object, error) { return core.Nodes().Get(t.Context(), "node-1", metav1.GetOptions{}) },
			"deployment": func() (runtime.Object, error) {
				return apps.Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
			},
			"replicaset": func() (runtime.Object, error) {
				return apps.ReplicaSets("shop").Get(t.Context(), "web-1", metav1.GetOptions{})
			},
		} {
			got, err := get()
			if err != nil {
				t.Errorf("%s as %s: %v", name, contentType, err)
				continue
			}
			want := fixtures[name].object
			got.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", name, contentType, diff)
			}
		}
	}
}

// TestFieldsAreFree looks for the names and the protobuf tags of the fork's fields in upstream's types.
// The fork's fields of upstream's types have numbers of KEPs as tags, which are above 1000.
func TestFieldsAreFree(t *testing.T) {
	patches, err := filepath.Glob("../../staging/src/k8s.io/api/*/*/types.go.patch")
	if err != nil || len(patches) < 5 {
		t.Fatalf("%d patches of types, %v", len(patches), err)
	}
	added := regexp.MustCompile(`(?m)^\+\t\w.* ` + "`" + `json:"(\w+)[",].* protobuf:"\w+,(\d{4,}),`)
	names, tags := map[string]bool{}, map[string]bool{}
	for _, patch := range patches {
		data, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range added.FindAllSubmatch(data, -1) {
			names[string(field[1])], tags[string(field[2])] = true, true
		}
	}
	for _, fixture := range fixtures {
		for _, field := range fixture.unknown {
			if name := field[strings.LastIndex(field, ".")+1:]; !names[name] {
				t.Errorf("no patch adds %s: the expression does not find it", name)
			}
		}
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typed reflect.Type) {
		switch typed.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(typed.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typed] {
			return
		}
		seen[typed] = true
		for i := range typed.NumField() {
			field := typed.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			_, rest, _ := strings.Cut(field.Tag.Get("protobuf"), ",")
			tag, _, _ := strings.Cut(rest, ",")
			if number, err := strconv.Atoi(tag); names[name] || tags[tag] || err == nil && number > 1000 {
				t.Errorf("%v.%s is %q with the tag %q", typed, field.Name, name, tag)
			}
			walk(field.Type)
		}
	}
	for _, typed := range newScheme(t, v1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme, appsv1beta2.AddToScheme, extensionsv1beta1.AddToScheme).AllKnownTypes() {
		walk(typed)
	}
	for _, typed := range []any{v1.PodSpec{}, v1.NodeStatus{}, appsv1.DeploymentSpec{}, extensionsv1beta1.ReplicaSetSpec{}} {
		if !seen[reflect.TypeOf(typed)] {
			t.Errorf("%T was not looked at", typed)
		}
	}
}
