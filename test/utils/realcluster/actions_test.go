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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// A kubelet that is restarted, or stopped for a while, leaves its pods alone.
func TestNodesRestartKubelet(t *testing.T) {
	c := startTestCluster(t)
	runPod(t, c)
	node := nodeName(0)
	before := containerOf(t, c)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		kubelet := mustRun(t, c.kubeletPath(node))
		if err := c.RestartKubelet(t.Context(), node, signal); err != nil {
			t.Fatal(err)
		}
		if again := mustRun(t, c.kubeletPath(node)); again == kubelet {
			t.Errorf("after %s, process %d is the kubelet as before", signal, again)
		}
	}
	if err := c.StopKubelet(t.Context(), node, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * restartDelay) // It would be started again meanwhile.
	if err := c.StopKubelet(t.Context(), node, unix.SIGKILL); err == nil {
		t.Error("a kubelet that was stopped runs")
	}
	if err := c.StartKubelet(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, c, func(*v1.Node) bool { return true })
	if after := containerOf(t, c); after != before {
		t.Errorf("the container of the pod is %s, was %s", after, before)
	}
}

// Without power, all of a node ends and its disk stays. Then it boots: the kubelet says so, and
// starts the containers of its pods again.
func TestNodesPower(t *testing.T) {
	c := startTestCluster(t)
	runPod(t, c)
	node := nodeName(0)
	container, boot := containerOf(t, c), getNode(t, c).Status.NodeInfo.BootID
	file := filepath.Join(c.KubeletDirectory(node), "state-of-a-test")
	write(t, file)
	for range 2 {
		if err := c.PowerOff(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		for _, process := range processesOf(t, c) {
			if strings.Contains(process, node) {
				t.Errorf("without power, this runs: %s", process)
			}
		}
		if err := c.PowerOn(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if err := c.PowerOn(t.Context(), node); err == nil {
			t.Error("a node that has power was powered on")
		}
		awaitReady(t, c, func(node *v1.Node) bool { return node.Status.NodeInfo.BootID != boot })
		boot = getNode(t, c).Status.NodeInfo.BootID
		await(t, "another container", func() bool {
			now := containerOf(t, c)
			return now != "" && now != container
		})
		container = containerOf(t, c)
	}
	if !exists(file) {
		t.Error("the disk of the kubelet is empty")
	}
	// The pod has a network again.
	output, err := c.Local.Command(t.Context(), "exec", "pod", "--", "/bin/true").CombinedOutput()
	if err != nil {
		t.Errorf("kubectl exec: %v: %s", err, output)
	}
}

// A frozen API server does not answer, and answers again when it goes on.
func TestNodesFreezeAPIServer(t *testing.T) {
	c := startTestCluster(t)
	if err := c.SignalControlPlane(controlplane.APIServer, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	frozen := c.Local.Command(t.Context(), "get", "nodes", "--request-timeout=2s")
	if output, err := frozen.CombinedOutput(); err == nil {
		t.Errorf("a frozen API server answers: %s", output)
	}
	if err := c.SignalControlPlane(controlplane.APIServer, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	runPod(t, c)
}

// The programs of the pristine base take part: its kubelet on a node of ours, also after a while,
// and our kubelet under its control plane.
func TestNodesVersionSkew(t *testing.T) {
	base := filepath.Join(os.Getenv(outputVariable), "base", "bin")
	if !exists(filepath.Join(base, kubelet)) {
		t.Skip("the pristine base is not built")
	}
	t.Run("kubelet of the base", func(t *testing.T) {
		c := newTestCluster(t)
		node := nodeName(0)
		c.Kubelets = map[string]Kubelet{node: {Bin: base}}
		ensure(t, c)
		version := func() string { return getNode(t, c).Status.NodeInfo.KubeletVersion }
		old := version()
		runPod(t, c)
		drainWithOldKubelet(newStaticNode(t, c, node))
		if err := c.ReplaceKubelet(t.Context(), node, Kubelet{}); err != nil {
			t.Fatal(err)
		}
		await(t, "our kubelet", func() bool { return version() != old })
		if err := c.ReplaceKubelet(t.Context(), node, Kubelet{Bin: base}); err != nil {
			t.Fatal(err)
		}
		await(t, "the kubelet of the base", func() bool { return version() == old })
	})
	t.Run("control plane of the base", func(t *testing.T) {
		c := newTestCluster(t)
		c.ControlPlane, c.Local.Settings = base, &localcluster.Settings{}
		c.Kubelets = map[string]Kubelet{nodeName(0): {Bin: c.Local.Bin, Gates: localcluster.DefaultSettings.Gates}}
		ensure(t, c)
		_, server, err := c.Local.Client()
		if err != nil {
			t.Fatal(err)
		}
		if ours := getNode(t, c).Status.NodeInfo.KubeletVersion; ours == server {
			t.Errorf("both have version %s", ours)
		}
		runPod(t, c)
		runUnderOldControlPlane(newStaticNode(t, c, nodeName(0)))
	})
}

func startTestCluster(t *testing.T) *Cluster {
	t.Helper()
	c := newTestCluster(t)
	ensure(t, c)
	return c
}

func ensure(t *testing.T, c *Cluster) {
	t.Helper()
	c.Local.Timeout = settleTimeout
	if err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func mustRun(t *testing.T, path string) int {
	t.Helper()
	pid, err := processOf(path)
	if err != nil || pid == 0 {
		t.Fatalf("%s does not run: %v", path, err)
	}
	return pid
}

func testClient(t *testing.T, c *Cluster) kubernetes.Interface {
	t.Helper()
	client, _, err := c.Local.Client()
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func getNode(t *testing.T, c *Cluster) *v1.Node {
	t.Helper()
	node, err := testClient(t, c).CoreV1().Nodes().Get(t.Context(), nodeName(0), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// containerOf returns the ID of the container of the pod that runPod has created, or "" while it
// does not run.
func containerOf(t *testing.T, c *Cluster) string {
	t.Helper()
	pod, err := testClient(t, c).CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), "pod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil {
			return container.ContainerID
		}
	}
	return ""
}

// awaitReady waits until the node is ready, and as it should be.
func awaitReady(t *testing.T, c *Cluster, check func(*v1.Node) bool) {
	t.Helper()
	await(t, "the node to be ready", func() bool {
		node := getNode(t, c)
		_, ready := nodeutil.GetNodeCondition(&node.Status, v1.NodeReady)
		return ready != nil && ready.Status == v1.ConditionTrue && check(node)
	})
}
