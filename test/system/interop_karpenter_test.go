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
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// karpenterNode is a label of the nodes that Karpenter creates.
	karpenterNode = "interop"

	// karpenterTimeout is how long Karpenter may take to replace its nodes: it waits between most
	// of its steps.
	karpenterTimeout = 4 * time.Minute

	karpenterObjects = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {interop: karpenter}}
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
    budgets: [{nodes: "100%"}]
`
)

// TestInteropKarpenter lets Karpenter drain and replace its nodes. Each of the Deployments on them has
// one replica, and a budget that never allows its eviction.
func TestInteropKarpenter(t *testing.T) { testInteropKarpenter(ktesting.Init(t)) }
func testInteropKarpenter(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	c := &localcluster.Cluster{Name: "interop-karpenter", Output: p.output, Bin: p.fork, Nodes: 1}
	tCtx, _ = startCluster(tCtx, c)
	tCtx = tCtx.WithNamespace("karpenter")
	createNamespace(tCtx)
	startKarpenter(tCtx, p, c)

	names := []string{"web-0", "web-1", "web-2"}
	for _, name := range names {
		pod := newSlowPod(name, startDelay, endDelay)
		pod.Spec.NodeSelector = map[string]string{karpenterNode: "karpenter"}
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(pod, 1))
		create(tCtx, tCtx.Client().CoreV1().Services(tCtx.Namespace()), newService(name))
	}
	for _, name := range names {
		awaitReadyPod(tCtx, name)
		createBudget(tCtx, name, "maxUnavailable: 0", 1)
	}
	await(tCtx, "the endpoints", func(tCtx ktesting.TContext) {
		if ready := countEndpoints(tCtx, ""); ready != len(names) {
			tCtx.Fatalf("%d are ready, want %d", ready, len(names))
		}
	})

	recorder, err := availability.Start(tCtx, tCtx.Client(), tCtx.Namespace())
	tCtx.ExpectNoError(err)
	from := time.Now()
	old := karpenterNodes(tCtx)
	kubectl(tCtx, c, "", "delete", "nodeclaims", "--all", "--wait=false")
	awaitWithin(tCtx, karpenterTimeout, "the old nodes to be gone", func(tCtx ktesting.TContext) {
		if left := old.Intersection(karpenterNodes(tCtx)); len(left) > 0 {
			tCtx.Fatalf("these are left: %v", sets.List(left))
		}
	})
	to := time.Now()
	record, err := recorder.Stop(tCtx)
	tCtx.ExpectNoError(err)
	tCtx.Logf("Karpenter has replaced its nodes in %.1f s", to.Sub(from).Seconds())
	for _, name := range names {
		gaps := record.ReadyEndpoints[name].Below(1, from, to)
		if len(gaps) > 0 {
			tCtx.Errorf("%s had no ready endpoint for %s", name, availability.Total(gaps))
		}
		if app := record.Apps[name]; app.Active.Max(from, to) != maxPods {
			tCtx.Errorf("%s had at most %d pods, want a surge to %d", name, app.Active.Max(from, to), maxPods)
		}
	}
	for _, request := range listRequests(tCtx, "") {
		var requesters []string
		for _, requester := range request.Spec.Requesters {
			requesters = append(requesters, requester.Name)
		}
		if got := strings.Join(requesters, ","); got != "eviction.k8s.io" {
			tCtx.Errorf("the requesters of %s are %s", request.Spec.Target.Pod.Name, got)
		}
	}
}

// karpenterNodes returns the names of the nodes of Karpenter.
func karpenterNodes(tCtx ktesting.TContext) sets.Set[string] {
	tCtx.Helper()
	list, err := tCtx.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{LabelSelector: karpenterNode})
	tCtx.ExpectNoError(err)
	names := sets.New[string]()
	for _, node := range list.Items {
		names.Insert(node.Name)
	}
	return names
}

// startKarpenter starts Karpenter with simulated machines, and stops it after the test.
func startKarpenter(tCtx ktesting.TContext, p programs, c *localcluster.Cluster) {
	tCtx.Helper()
	kubectl(tCtx, c, "", "apply", "--server-side", "-f", filepath.Join(p.output, "karpenter"))
	kubectl(tCtx, c, "", "wait", "--for=condition=Established", "crd", "--all")
	log, err := os.Create(filepath.Join(c.Logs(), "karpenter.log"))
	tCtx.ExpectNoError(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(tCtx))
	karpenter := exec.CommandContext(ctx, filepath.Join(p.fork, "karpenter-kwok"))
	// Nobody asks for its metrics and its health; port 0 disables them.
	karpenter.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "LOG_LEVEL=debug")
	karpenter.Stdout, karpenter.Stderr = log, log
	tCtx.ExpectNoError(karpenter.Start(), "starting Karpenter")
	tCtx.Cleanup(func() {
		stop()
		_ = karpenter.Wait() // It was killed.
		_ = log.Close()
	})
	kubectl(tCtx, c, karpenterObjects, "apply", "-f", "-")
}

// kubectl runs kubectl with an input, and fails the test if it fails.
func kubectl(tCtx ktesting.TContext, c *localcluster.Cluster, input string, args ...string) {
	tCtx.Helper()
	command := c.Command(tCtx, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	tCtx.ExpectNoError(err, fmt.Sprintf("kubectl %s: %s", strings.Join(args, " "), bytes.TrimSpace(output)))
}
