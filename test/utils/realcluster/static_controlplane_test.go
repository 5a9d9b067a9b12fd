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
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

// components are those of the control plane.
var components = []string{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler}

// TestNodeStaticControlPlane drains the only node of a cluster, whose static pods are the control
// plane. What the node needs to reach it, or to end the maintenance, is started again.
func TestNodeStaticControlPlane(t *testing.T) {
	c := newNamedTestCluster(t, "test-plane")
	ensure(t, c)
	n := moveControlPlane(t, c)
	n.run(staticPod{name: "plain"})
	n.awaitOnly(append(components, "plain")...)

	n.drain("drain")
	n.awaitHeld("plain")
	needed, held := components[:3], components[3]
	n.awaitStored("refused", needed...)
	n.awaitHeld(held)
	n.awaitOnly(needed...)
	n.stays("only what is needed runs", func() bool { return n.areRunning(needed...) })
	// An API server without etcd may reject the event about etcd, and a kubelet does not send it again.
	n.awaitEvent("StaticPodNeeded", controlplane.APIServer)
	n.awaitEvent("StaticPodNeeded", controlplane.ControllerManager)
	output, err := c.Local.Command(t.Context(), "maintenance", "status", "drain-"+n.name).CombinedOutput()
	if err != nil {
		t.Errorf("kubectl maintenance status: %v", err)
	}
	status := strings.Join(strings.Fields(string(output)), " ")
	for _, want := range append([]string{"the control plane did not answer or did not process its end"}, needed...) {
		if !strings.Contains(status, want) {
			t.Errorf("%q is missing in %s", want, output)
		}
	}
	if strings.Contains(status, held) || strings.Contains(status, "plain") {
		t.Errorf("pods that have left are in %s", output)
	}

	n.complete("drain")
	n.awaitOnly(append(components, "plain")...)
	n.awaitRecords("plain", started, asked, ended, started)
}

// moveControlPlane runs the control plane of a cluster as static pods of its node. That in the
// sandbox is frozen: the cluster would end without it.
func moveControlPlane(t *testing.T, c *Cluster) *staticNode {
	t.Helper()
	n := newStaticNode(t, c, nodeName(0))
	r, err := readRecord(c.Local.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StopKubelet(t.Context(), n.name, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, component := range components {
		n.writeManifest(staticComponent(t, c, component))
	}
	for _, component := range components {
		if err := c.SignalControlPlane(component, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	server := fmt.Sprintf("127.0.0.1:%d", r.Port)
	replace(t, controlplane.UserKubeconfig(c.Local.Dir(), n.name), fmt.Sprintf("%s:%d", controlPlaneAddress, r.Port), server)
	replace(t, c.Local.Kubeconfig(), server, forwardTo(t, c, n.name, server))
	if err := c.StartKubelet(t.Context(), n.name); err != nil {
		t.Fatal(err)
	}
	n = newStaticNode(t, c, n.name)
	await(t, "the control plane in static pods", func() bool {
		_, err := n.client.CoreV1().Nodes().Get(t.Context(), n.name, metav1.GetOptions{})
		return err == nil
	})
	// The next kubelet creates the mirror pods at once, this one only when it syncs the pods again.
	n.restartKubelet(unix.SIGTERM)
	return n
}

// staticComponent returns the static pod of a component, with the flags of that in the sandbox: the
// node has the same ports, and is empty otherwise.
func staticComponent(t *testing.T, c *Cluster, component string) *v1.Pod {
	t.Helper()
	pid := mustRun(t, filepath.Join(controlplane.LinkDir(c.Local.Dir()), component))
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	command := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	command[0] = filepath.Join(c.Local.Bin, component)
	if component == controlplane.Etcd {
		command = append(command, "--data-dir="+filepath.Join(c.Local.Dir(), "static-etcd"))
	}
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: component, Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			HostNetwork: true, PriorityClassName: "system-node-critical", TerminationGracePeriodSeconds: ptr.To(int64(10)),
			Containers: []v1.Container{{
				Name: "main", Image: WorkloadImage, ImagePullPolicy: v1.PullNever, Command: command,
				VolumeMounts: []v1.VolumeMount{{Name: "output", MountPath: c.Local.Output}},
			}},
			Volumes: []v1.Volume{{Name: "output", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: c.Local.Output}}}},
		},
	}
}

// forwardTo forwards connections to an address in the network of a node, and returns where it
// listens.
func forwardTo(t *testing.T, c *Cluster, node, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = forwardBy(t.Context(), listener, func(ctx context.Context) (net.Conn, error) { return c.Dial(ctx, node, address) })
	}()
	return listener.Addr().String()
}

func replace(t *testing.T, path, old, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, text)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
