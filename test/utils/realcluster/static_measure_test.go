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

package realcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/localcluster"
)

// measureVariable is for how long TestNodeKubeletWithoutMaintenance counts requests.
const measureVariable = "REAL_CLUSTER_MEASURE"

// maxHeap, in bytes, is what NodeMaintenanceAwareKubelet may add to the heap of a kubelet.
const maxHeap = 2 << 20

// TestNodeKubeletWithoutMaintenance compares two kubelets, with and without the gate, while no
// maintenance reaches their static pods: what they ask the API server for, and their heaps.
func TestNodeKubeletWithoutMaintenance(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv(measureVariable))
	if err != nil {
		t.Skipf("%s is not set to a duration", measureVariable)
	}
	c := newNamedTestCluster(t, "test-measure")
	audit, policy := filepath.Join(t.TempDir(), "audit.log"), filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := localcluster.DefaultSettings
	settings.Args = localcluster.Args{"kube-apiserver:audit-log-path=" + audit, "kube-apiserver:audit-policy-file=" + policy}
	with, without := nodeName(0), nodeName(1)
	c.Local.Settings, c.Local.Nodes = &settings, 2
	c.Kubelets = map[string]Kubelet{without: {Bin: c.Local.Bin, Gates: strings.ReplaceAll(settings.Gates, "NodeMaintenanceAwareKubelet=true", "NodeMaintenanceAwareKubelet=false")}}
	ensure(t, c)
	for _, node := range []string{with, without} {
		newStaticNode(t, c, node).run(staticPod{name: "plain"})
	}
	time.Sleep(time.Minute) // Until both are quiet.
	before, err := os.Stat(audit)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(duration)
	counts := requestsOf(t, audit, before.Size())
	heaps := map[string]int{}
	for _, node := range []string{with, without} {
		heaps[node] = heapOf(t, c, node)
		t.Logf("%s: %d bytes of heap, requests in %v: %v", node, heaps[node], duration, counts[node])
	}
	if more := heaps[with] - heaps[without]; more > maxHeap {
		t.Errorf("the gate adds %d bytes of heap", more)
	}
	for request, count := range counts[with] {
		// Both start at another moment, and so do their periods.
		if other := counts[without][request]; other == 0 || count > other+other/10+1 {
			t.Errorf("%s: %d with the gate, %d without it", request, count, other)
		}
	}
}

// requestsOf counts the requests of nodes in an audit log by node and by verb and resource.
func requestsOf(t *testing.T, audit string, from int64) map[string]map[string]int {
	t.Helper()
	data, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]map[string]int{}
	for line := range bytes.Lines(data[from:]) {
		var event struct {
			Verb, Stage string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			continue // The first or last line, cut.
		}
		node, isNode := strings.CutPrefix(event.User.Username, "system:node:")
		if !isNode || event.Stage != "ResponseComplete" {
			continue
		}
		if counts[node] == nil {
			counts[node] = map[string]int{}
		}
		counts[node][strings.TrimSuffix(event.Verb+" "+event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")]++
	}
	return counts
}

// heapOf returns the heap of the kubelet of a node after a garbage collection.
func heapOf(t *testing.T, c *Cluster, node string) int {
	t.Helper()
	read := func(path string) string {
		output, err := c.Local.Command(t.Context(), "get", "--raw", "/api/v1/nodes/"+node+"/proxy/"+path).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(output)
	}
	profile := read("debug/pprof/heap?gc=1&debug=1")
	var heap int
	for line := range strings.Lines(profile) {
		if _, err := fmt.Sscanf(line, "# HeapAlloc = %d", &heap); err == nil {
			return heap
		}
	}
	t.Fatalf("no size in the heap profile of %s", node)
	return 0
}
