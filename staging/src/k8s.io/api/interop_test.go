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

package api

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// interopFixtures is where the tests with upstream's k8s.io/api find what we store and serve.
const interopFixtures = "../../../../hack/interop/testdata"

// TestInteropFixtures checks that the files are what etcd would have of these objects, and what
// clients would be sent as JSON. UPDATE_COMPATIBILITY_FIXTURE_DATA=true writes them.
func TestInteropFixtures(t *testing.T) {
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop"},
		Spec: v1.PodSpec{
			Containers:           []v1.Container{{Name: "web", Image: "example.com/web:1"}},
			NodeName:             "node-1",
			EvictionInterceptors: []v1.EvictionInterceptor{{Name: "saver.example.com"}, {Name: "deployment.apps.k8s.io"}},
		},
	}
	node := &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status: v1.NodeStatus{
			Conditions:       []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			NodeInfo:         v1.NodeSystemInfo{KubeletVersion: "v1.2.3"},
			DeclaredFeatures: []string{"Feature"},
			MaintenanceStatus: &v1.MaintenanceStatus{
				DrainTargets:           []v1.DrainPlanEntry{{PodType: v1.PodTypeDefault, PodPriority: 1000}},
				DrainMessage:           "Draining",
				ActiveEvictionRequests: 2,
				BlockedPods:            1,
				Admissions: []v1.MaintenanceAdmission{{
					MaintenanceName: "kernel", MaintenanceUID: "1-2-3", AdmittedTime: metav1.Unix(1, 0), DoneTime: &metav1.Time{Time: time.Unix(2, 0)},
					Escalation: v1.MaintenanceEscalationForceDelete, EscalationTime: &metav1.Time{Time: time.Unix(3, 0)},
					WaitingTime: &metav1.Time{Time: time.Unix(4, 0)}, WaitedSeconds: 5,
				}},
				Unclaimed:   true,
				EmptiedTime: &metav1.Time{Time: time.Unix(3, 0)},
				InitialPods: 6,
			},
		},
	}
	replicas := int32(3)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: pod.Spec}
	picker := &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: "picker.example.com", Port: intstr.FromInt32(8443), Path: "/pick"}, MaxRetries: &replicas}
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template, DownscalePodPicker: picker},
	}
	replicaSet := &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template, DownscalePodPicker: picker},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	type fixture struct {
		object     runtime.Object
		serializer runtime.Serializer
	}
	fixtures := map[string]fixture{}
	for name, object := range map[string]runtime.Object{"pod": pod, "node": node, "deployment": deployment, "replicaset": replicaSet} {
		fixtures[name+".pb"] = fixture{object, protobuf.NewSerializer(scheme, scheme)}
		fixtures[name+".json"] = fixture{object, json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Pretty: true})}
	}
	for file, fixture := range fixtures {
		var encoded bytes.Buffer
		if err := fixture.serializer.Encode(fixture.object, &encoded); err != nil {
			t.Fatalf("encoding %s: %v", file, err)
		}
		path := filepath.Join(interopFixtures, file)
		if os.Getenv("UPDATE_COMPATIBILITY_FIXTURE_DATA") == "true" {
			if err := os.WriteFile(path, encoded.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, encoded.Bytes()) {
			t.Errorf("%s is not what is stored today (%v): run this test with UPDATE_COMPATIBILITY_FIXTURE_DATA=true, and read what hack/interop says of it", path, err)
		}
	}
}

// The round trip of a version, with fixtures of what it once was, is tested only where the
// list of versions has it, and nothing else misses it there.
func TestRoundTripHasOurKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, builder := range groups {
		if err := builder.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"EvictionRequest", "EvictionRequestList", "NodeMaintenance", "NodeMaintenanceList", "NodeMaintenanceBudget", "NodeMaintenanceBudgetList"} {
		if !scheme.Recognizes(coordinationv1alpha1.SchemeGroupVersion.WithKind(kind)) {
			t.Errorf("round trips of %s are not tested: add its version to groups", kind)
		}
	}
}
