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
// Package interop shows that a later release of Kubernetes reads what this one stores.
package interop

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// stored decodes an object as an API server of Kubernetes 1.37 reads it from etcd. The
// files are those of TestInteropFixtures in k8s.io/api.
func stored[T runtime.Object](t *testing.T, file string, into T) T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if _, _, err := protobuf.NewSerializer(scheme, scheme).Decode(data, nil, into); err != nil {
		t.Fatalf("decoding %s: %v", file, err)
	}
	return into
}

// TestPodHasNoResponders: interceptors must not be decoded as responders, which would have no
// priority and invalid names, so that the pod could not be updated.
func TestPodHasNoResponders(t *testing.T) {
	pod := stored(t, "pod.pb", &v1.Pod{})
	if len(pod.Spec.EvictionResponders) > 0 {
		t.Errorf("responders: %v", pod.Spec.EvictionResponders)
	}
	if pod.Name != "web-0" || len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Image != "example.com/web:1" || pod.Spec.NodeName != "node-1" {
		t.Errorf("the rest of the pod has changed: %v", pod)
	}
}

// TestNodeIsTheSame: the maintenance status must not be decoded as another field.
func TestNodeIsTheSame(t *testing.T) {
	node := stored(t, "node.pb", &v1.Node{})
	want := v1.NodeStatus{
		Conditions:       []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		NodeInfo:         v1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
		DeclaredFeatures: []string{"Feature"},
	}
	if node.Name != "node-1" || node.Status.String() != want.String() {
		t.Errorf("the node is %v, must have the status %v", node, want)
	}
}
