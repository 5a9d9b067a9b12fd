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
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

// newScriptCluster is for a cluster that upstream's script starts. Its output directory is one of its
// own, so that starts of several do not wait for each other, at a path that few programs take.
func newScriptCluster(t *testing.T) *Cluster {
	t.Helper()
	built := os.Getenv(outputVariable)
	if built == "" {
		t.Skipf("%s is not set: run it with make test-node", outputVariable)
	}
	output := linkedOutput(t)
	if err := os.Symlink(treeOf(built), treeOf(output)); err != nil {
		t.Fatal(err)
	}
	c := newNamedTestClusterIn(t, "test-local-up", output)
	c.Script = &Script{}
	return c
}

// mustLocalUp starts the cluster, and returns what was printed.
func mustLocalUp(t *testing.T, c *Cluster, environment ...string) string {
	t.Helper()
	up := c.program("local-up", "--timeout", "5m")
	up.Env = append(os.Environ(), environment...)
	output, err := up.CombinedOutput()
	if err != nil {
		t.Fatalf("local-up: %v: %s", err, output)
	}
	return string(output)
}

// TestNodesLocalUp drains the node of upstream's script, in the environment of a user who has a proxy
// and a repository with an odd path.
func TestNodesLocalUp(t *testing.T) {
	t.Parallel()
	c := newScriptCluster(t)
	keepFile(t, "/tmp/admin.kubeconfig")
	before := takeInventory(t, c)
	const name = "my-node"
	defer unix.Umask(unix.Umask(0o077))
	environment := []string{"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "TMPDIR=/var/lib/none", "LOG_LEVEL=4", "HOSTNAME_OVERRIDE=" + name}
	c.Script.Env = []string{"HOSTNAME_OVERRIDE=" + name}
	printed := mustLocalUp(t, c, environment...)
	for _, want := range []string{c.Local.Kubeconfig(), c.Manifests(c.Script.node()), "local-down", "LOG_LEVEL=4"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in %s", want, printed)
		}
	}
	expectFlag(t, c, kubelet, "--v=4")
	expectFlag(t, c, controlplane.APIServer, "NodeMaintenanceAwareKubelet=true")
	expectService(t, c)
	if printed := mustLocalUp(t, c, environment...); !strings.Contains(printed, "is already up") {
		t.Errorf("the second start prints %s", printed)
	}

	n := newStaticNode(t, c, name)
	startWorkloads(n)
	// The API server reaches the kubelet by the name of the node.
	exec := c.Local.Command(t.Context(), "exec", "deployment/deployment", "--", "/bin/busybox", "hostname")
	if output, err := exec.CombinedOutput(); err != nil || !strings.HasPrefix(string(output), "deployment-") {
		t.Errorf("kubectl exec: %v: %s", err, output)
	}
	n.run(staticPod{name: "static", ending: time.Second})
	drainByHand(n)

	if output, err := c.program("local-down").CombinedOutput(); err != nil {
		t.Fatalf("local-down: %v: %s", err, output)
	}
	awaitInventory(t, c, before)
}

// keepFile puts a file where the script writes one and removes it, and fails if it does not stay. It is
// not in the inventory, which other tests take at the same time.
func keepFile(t *testing.T, path string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		err = os.WriteFile(path, nil, 0o600)
		t.Cleanup(func() { _ = os.Remove(path) })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("the script has written to %s: %q (%v)", path, after, err)
		}
	})
}

// expectService fails if the node does not reach the Service of the API server.
func expectService(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), serviceTimeout)
	defer cancel()
	conn, err := c.Dial(ctx, nodeName(0), net.JoinHostPort(firstService, "443"))
	if err != nil {
		t.Errorf("the node does not reach a Service: %v", err)
		return
	}
	conn.Close()
}

// drainByHand drains the node and releases it, with the commands of a user.
func drainByHand(n *staticNode) {
	n.Helper()
	kubectl := func(want string, args ...string) {
		n.Helper()
		output, err := n.cluster.Local.Command(n.Context(), append([]string{"maintenance"}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(output), want) {
			n.Fatalf("kubectl maintenance %q: %v: %q is missing in %s", args, err, want, output)
		}
	}
	kubectl("created", "start", n.name, "--name=drain", "--wait", "--timeout=3m")
	kubectl("1 of 1 node drained", "status", "drain")
	n.expectRecords("static", started, asked, ended)
	pods, err := n.client.CoreV1().Pods(metav1.NamespaceAll).List(n.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err != nil || len(pods.Items) != 0 {
		n.Fatalf("the drained node has the pods %v: %v", pods.Items, err)
	}
	kubectl("completed", "complete", "drain", "--wait")
	n.awaitOnly("static")
	n.awaitRecords("static", started, asked, ended, started)
	awaitPods(n, 3)
}

// startWorkloads starts a pod of a Deployment and one of a DaemonSet. The Deployment does not surge:
// there is no other node.
func startWorkloads(n *staticNode) {
	n.Helper()
	labels := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	template := func(name string) v1.PodTemplateSpec {
		return v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels(name).MatchLabels},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: WorkloadImage, ImagePullPolicy: v1.PullNever}}},
		}
	}
	_, err := n.client.AppsV1().Deployments(metav1.NamespaceDefault).Create(n.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "deployment"},
		Spec: appsv1.DeploymentSpec{
			Selector: labels("deployment"), Template: template("deployment"),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(0))}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	_, err = n.client.AppsV1().DaemonSets(metav1.NamespaceDefault).Create(n.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemonset"},
		Spec:       appsv1.DaemonSetSpec{Selector: labels("daemonset"), Template: template("daemonset")},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	awaitPods(n, 2)
}

// awaitPods waits until so many pods run on the node.
func awaitPods(n *staticNode, count int) {
	n.Helper()
	await(n.T, fmt.Sprintf("%d pods to run", count), func() bool {
		pods, err := n.client.CoreV1().Pods(metav1.NamespaceDefault).List(n.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running,spec.nodeName=" + n.name})
		return err == nil && len(pods.Items) == count
	})
}

// expectFlag fails if what was started does not have a flag, or a part of one.
func expectFlag(t *testing.T, c *Cluster, component, flag string) {
	t.Helper()
	pid := mustRun(t, filepath.Join(programDirectory(c.Local.Dir(), nodeName(0)), component))
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(line), flag) {
		t.Errorf("%s has the flags %q (%v), without %s", component, line, err, flag)
	}
}

// TestNodesLocalUpLeavesNothing ends clusters of the script at bad moments.
func TestNodesLocalUpLeavesNothing(t *testing.T) {
	t.Parallel()
	logged := func(name string) func(*Cluster) bool {
		return func(c *Cluster) bool { return exists(c.log(name)) }
	}
	for name, test := range map[string]struct {
		during    func(c *Cluster) bool
		end       func(t *testing.T, c *Cluster, program *exec.Cmd)
		needsDown bool
	}{
		"interrupted when the script starts":      {during: logged(scriptName), end: signalProgram(unix.SIGINT)},
		"killed when the API server starts":       {during: logged(controlplane.APIServer), end: signalProgram(unix.SIGKILL)},
		"terminated when the kubelet starts":      {during: logged(kubelet), end: signalProgram(unix.SIGTERM)},
		"the supervisor is killed during a start": {during: logged(kubelet), end: killProcess(supervisorLock), needsDown: true},
		"the script is interrupted":               {end: signalScript(unix.SIGINT)},
		"the script is killed":                    {end: signalScript(unix.SIGKILL)},
		"the directory is removed":                {end: removeScriptDirectory},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScriptCluster(t)
			before := takeInventory(t, c)
			program := c.program("local-up", "--timeout", "5m")
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			if test.during != nil {
				await(t, "this moment of the start", func() bool { return test.during(c) })
				test.end(t, c, program)
				_ = program.Wait() // It was interrupted.
			} else {
				if err := program.Wait(); err != nil {
					t.Fatalf("local-up: %v", err)
				}
				runPod(t, c)
				test.end(t, c, program)
			}
			if test.needsDown {
				if output, err := c.program("local-down").CombinedOutput(); err != nil {
					t.Fatalf("local-down: %v: %s", err, output)
				}
			}
			awaitInventory(t, c, before)
		})
	}
}

// signalScript does what a user does who finds the script in the list of processes.
func signalScript(signal unix.Signal) func(*testing.T, *Cluster, *exec.Cmd) {
	return func(t *testing.T, c *Cluster, _ *exec.Cmd) {
		t.Helper()
		if err := unix.Kill(scriptProcess(t, c), signal); err != nil {
			t.Fatal(err)
		}
	}
}

// scriptProcess returns the process of the script. It forks others, which have its command line until
// they run a program.
func scriptProcess(t *testing.T, c *Cluster) int {
	t.Helper()
	parents := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // It may have ended.
		stat, _ := os.ReadFile(file)
		var pid, parent int
		if !strings.Contains(string(line), scriptFile(c.Local.Output)+"\x00-o\x00"+programDirectory(c.Local.Dir(), nodeName(0))) {
			continue
		}
		if _, err := fmt.Sscanf(string(stat), "%d (bash) %1s %d", &pid, new(string), &parent); err == nil {
			parents[pid] = parent
		}
	}
	for pid, parent := range parents {
		if _, found := parents[parent]; !found {
			return pid
		}
	}
	t.Fatal("the script does not run")
	return 0
}

// removeScriptDirectory does what "git clean" does.
func removeScriptDirectory(t *testing.T, c *Cluster, _ *exec.Cmd) {
	t.Helper()
	await(t, "the directory to be gone", func() bool { return os.RemoveAll(c.Local.Dir()) == nil })
}

// A start that fails says why, long before the script would, and ends what it has started.
func TestNodesLocalUpFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string][]string{
		"FEATURE_GATES=Nonsense=true": {"kube-apiserver has ended", "unrecognized feature gate: Nonsense"},
		"KUBELET_FLAGS=--nonsense":    {"kubelet has ended", "unknown flag: --nonsense"},
		"KUBE_PROXY_MODE=nonsense":    {"kube-proxy has ended", "must be iptables"},
		"ETCD_LOGLEVEL=nonsense":      {"etcd has ended", "unrecognized level"},
		"LOG_DIR=/tmp/logs":           {"LOG_DIR=/tmp/logs", "env --unset=LOG_DIR make local-up"},
		portVariable + "=" + port:     {"address already in use", "give another " + portVariable},
	} {
		t.Run(variable, func(t *testing.T) {
			c := newScriptCluster(t)
			before := takeInventory(t, c)
			up := c.program("local-up", "--timeout", "5m")
			up.Env = append(os.Environ(), variable)
			start := time.Now()
			output, err := up.CombinedOutput()
			if err == nil || time.Since(start) > 2*time.Minute {
				t.Errorf("local-up ends after %s: %v", time.Since(start), err)
			}
			for _, want := range want {
				if !strings.Contains(string(output), want) {
					t.Errorf("%q is missing in %s", want, output)
				}
			}
			awaitInventory(t, c, before)
		})
	}
}

// A component that has ended is a reason to start again, and a cluster of another kind is none.
func TestNodesLocalUpAgain(t *testing.T) {
	t.Parallel()
	c := newScriptCluster(t)
	mustLocalUp(t, c)
	expectService(t, c)
	if err := c.signal(c.kubeletPath(nodeName(0)), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if printed := mustLocalUp(t, c); !strings.Contains(printed, "is started again: kubelet has ended") {
		t.Errorf("local-up prints %s", printed)
	}
	supervisor, err := c.Process(supervisorLock)
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.program("up-real").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "make local-down") {
		t.Errorf("up-real: %v: %s", err, output)
	}
	if after, err := c.Process(supervisorLock); err != nil || after != supervisor {
		t.Errorf("up-real has ended the cluster: its supervisor is %d, was %d (%v)", after, supervisor, err)
	}
	if printed := mustLocalUp(t, c); !strings.Contains(printed, "is already up") {
		t.Errorf("local-up prints %s", printed)
	}
}
