/*
Copyright The Kubernetes Authors.

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

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"time"
)

func TestNewNode(t *testing.T) {
	networks := map[string]bool{}
	for _, index := range []int{0, 1, 255, 256, maxNodes - 1} {
		n := newNode(index)
		if networks[n.Spec.PodCIDR] {
			t.Errorf("node %d has the pod network %s of another node", index, n.Spec.PodCIDR)
		}
		networks[n.Spec.PodCIDR] = true
	}
	if got, want := newNode(maxNodes-1).Spec.PodCIDR, "10.255.255.0/24"; got != want {
		t.Errorf("last pod network = %s, want %s", got, want)
	}
}

func TestNodeUsable(t *testing.T) {
	ready := []condition{{Type: "DiskPressure", Status: "False"}, {Type: "Ready", Status: "True"}}
	cases := map[string]struct {
		taints     []taint
		conditions []condition
		want       bool
	}{
		"ready":                    {conditions: ready, want: true},
		"no condition yet":         {},
		"not ready":                {conditions: []condition{{Type: "Ready", Status: "Unknown"}}},
		"ready but tainted still":  {conditions: ready, taints: []taint{{Key: "node.kubernetes.io/not-ready"}}},
		"ready with another taint": {conditions: ready, taints: []taint{{Key: "example.com/own"}}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newNode(0)
			n.Spec.Taints, n.Status.Conditions = tc.taints, tc.conditions
			if got := n.usable(); got != tc.want {
				t.Errorf("usable = %v, want %v", got, tc.want)
			}
		})
	}
}

// fakeNodes is an API server that knows nodes. Nodes become Ready when they are
// listed for the second time.
type fakeNodes struct {
	sync.Mutex
	nodes    map[string]node
	listed   int
	rejected int // status of an answer to a creation, 0 for success
	neverUse bool
}

func (f *fakeNodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Lock()
	defer f.Unlock()
	if r.Method == http.MethodPost {
		if f.rejected != 0 {
			http.Error(w, "rejected", f.rejected)
			return
		}
		var n node
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if _, ok := f.nodes[n.Metadata.Name]; ok {
			http.Error(w, "exists", http.StatusConflict)
			return
		}
		f.nodes[n.Metadata.Name] = n
		return
	}
	f.listed++
	var list struct {
		Items []node `json:"items"`
	}
	for _, n := range f.nodes {
		if f.listed > 2 && !f.neverUse {
			n.Status.Conditions = []condition{{Type: "Ready", Status: "True"}}
		}
		list.Items = append(list.Items, n)
	}
	_ = json.NewEncoder(w).Encode(list)
}

func serveNodes(t *testing.T, f *fakeNodes, existing ...int) *apiClient {
	t.Helper()
	f.nodes = map[string]node{}
	for _, index := range existing {
		n := newNode(index)
		n.Metadata.Labels["seen"] = "before"
		f.nodes[n.Metadata.Name] = n
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return &apiClient{base: server.URL, http: server.Client()}
}

func TestEnsureNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f := &fakeNodes{}
	api := serveNodes(t, f, 1, 7)
	if err := ensureNodes(ctx, api, 3); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for name, n := range f.nodes {
		got[name] = n.Metadata.Labels["seen"] == "before"
	}
	want := map[string]bool{"node-0": false, "node-1": true, "node-2": false, "node-7": true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("nodes, true where they existed: %v, want %v", got, want)
	}
	if f.listed < 3 {
		t.Errorf("returned after %d lists, before the nodes were ready", f.listed)
	}
}

func TestEnsureNodesFails(t *testing.T) {
	cases := map[string]*fakeNodes{
		"creation is rejected":     {rejected: http.StatusForbidden},
		"nodes never become ready": {neverUse: true},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			if err := ensureNodes(ctx, serveNodes(t, f), 40); err == nil {
				t.Error("no error")
			}
		})
	}
}
