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

package localcluster

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestNewNode(t *testing.T) {
	networks := map[string]bool{}
	for _, index := range []int{0, 1, 255, 256, MaxNodes - 1} {
		n := newNode(index)
		if networks[n.Spec.PodCIDR] {
			t.Errorf("node %d has the pod network %s of another node", index, n.Spec.PodCIDR)
		}
		networks[n.Spec.PodCIDR] = true
	}
	if got, want := newNode(MaxNodes-1).Spec.PodCIDR, "10.255.255.0/24"; got != want {
		t.Errorf("last pod network = %s, want %s", got, want)
	}
}

// ready are the conditions of a node whose kubelet has reported.
var ready = []v1.NodeCondition{{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse}, {Type: v1.NodeReady, Status: v1.ConditionTrue}}

func TestUsable(t *testing.T) {
	cases := map[string]struct {
		taint      string
		conditions []v1.NodeCondition
		want       bool
	}{
		"ready":                    {conditions: ready, want: true},
		"no condition yet":         {},
		"not ready":                {conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}},
		"ready but tainted still":  {conditions: ready, taint: v1.TaintNodeNotReady},
		"ready with another taint": {conditions: ready, taint: "example.com/own", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newNode(0)
			n.Status.Conditions = tc.conditions
			if tc.taint != "" {
				n.Spec.Taints = []v1.Taint{{Key: tc.taint}}
			}
			if got := usable(n); got != tc.want {
				t.Errorf("usable = %v, want %v", got, tc.want)
			}
		})
	}
}

// newClient returns a client of a cluster with the given nodes. Nodes become ready after the second
// list, if they become ready at all; the service account exists after the third.
func newClient(becomeReady bool, existing ...int) (client *fake.Clientset, lists *int) {
	client, lists = fake.NewClientset(), new(int)
	for _, index := range existing {
		node := newNode(index)
		node.Labels["seen"] = "before"
		_ = client.Tracker().Add(node)
	}
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		*lists++
		switch *lists {
		case 3:
			for node := range maps.Values(nodesOf(client)) {
				if becomeReady {
					node.Status.Conditions = ready
					_ = client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), &node, "")
				}
			}
		case 4:
			_ = client.Tracker().Add(&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}})
		}
		return false, nil, nil
	})
	return client, lists
}

func nodesOf(client *fake.Clientset) map[string]v1.Node {
	object, err := client.Tracker().List(v1.SchemeGroupVersion.WithResource("nodes"), v1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		panic(err)
	}
	nodes := map[string]v1.Node{}
	for _, node := range object.(*v1.NodeList).Items {
		nodes[node.Name] = node
	}
	return nodes
}

func TestEnsureNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, lists := newClient(true, 1, 7)
	if err := ensureNodes(ctx, client, 3); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for name, node := range nodesOf(client) {
		got[name] = node.Labels["seen"] == "before"
	}
	want := map[string]bool{"node-0": false, "node-1": true, "node-2": false, "node-7": true}
	if !maps.Equal(got, want) {
		t.Errorf("nodes, true where they existed: %v, want %v", got, want)
	}
	if *lists < 4 {
		t.Errorf("returned after %d lists, before the nodes were ready and the service account existed", *lists)
	}
}

func TestEnsureNodesFails(t *testing.T) {
	for name, rejected := range map[string]error{
		"creation is rejected":     errors.New("rejected"),
		"nodes never become ready": nil,
	} {
		t.Run(name, func(t *testing.T) {
			timeout := 500 * time.Millisecond
			if rejected != nil {
				timeout = time.Minute // Long enough for a busy machine.
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			client, _ := newClient(rejected != nil)
			client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return rejected != nil, nil, rejected
			})
			if err := ensureNodes(ctx, client, 40); err == nil || rejected != nil && !errors.Is(err, rejected) {
				t.Errorf("ensureNodes: %v", err)
			}
		})
	}
}
