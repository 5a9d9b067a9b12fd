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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// A start that fails says why, long before its time is over, and ends what it has started.
func TestNodesFailingStart(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, c *Cluster)
		flags   []string
		want    []string
	}{
		"an unknown flag of the API server": {
			flags: []string{"--arg", "kube-apiserver:nonsense=1"},
			want:  []string{"kube-apiserver ended while it was starting", "unknown flag: --nonsense"},
		},
		"a file that is no image": {
			prepare: func(t *testing.T, c *Cluster) { write(t, filepath.Join(c.Local.Output, "images", "broken.tar")) },
			want:    []string{"node-0 has ended", "import ", "broken.tar"},
		},
		"a node that takes no pods": {
			flags: []string{"--arg", "kube-controller-manager:controllers=*,-node-lifecycle-controller", "--timeout", "20s"},
			want:  []string{"node-0 has the taint node.kubernetes.io/not-ready", "node-0-kubelet.log", "its last lines"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestClusterIn(t, linkedOutput(t))
			if test.prepare != nil {
				test.prepare(t, c)
			}
			before := takeInventory(t, c)
			start := time.Now()
			output, err := c.program("up-real", test.flags...).CombinedOutput()
			if err == nil || time.Since(start) > 2*time.Minute {
				t.Errorf("up-real ends after %s: %v", time.Since(start), err)
			}
			for _, want := range test.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("%q is missing in %s", want, output)
				}
			}
			awaitInventory(t, c, before)
		})
	}
}

// A cluster that a program has started for itself ends with the program: then the kernel closes the
// program's end of the pipe.
func TestNodesEndWithProgram(t *testing.T) {
	c := newTestCluster(t)
	before := takeInventory(t, c)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	runPod(t, c)
	if err := c.supervisor.owner.Close(); err != nil {
		t.Fatal(err)
	}
	awaitInventory(t, c, before)
}

// What the user has set must not reach the nodes, and containerd and the kubelet must not see the
// path of the repository, of which they take only some characters.
func TestNodesInHostileEnvironment(t *testing.T) {
	c := newTestClusterIn(t, linkedOutput(t))
	up := c.program("up-real")
	up.Env = append(os.Environ(), "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "TMPDIR=/var/lib/none")
	// For this program, too: a child takes it from here.
	defer unix.Umask(unix.Umask(0o077))
	if output, err := up.CombinedOutput(); err != nil {
		t.Fatalf("up-real: %v: %s", err, output)
	}
	runPod(t, c, func(pod *v1.Pod) {
		pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{RunAsUser: ptr.To(int64(1000))}
		pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "id -u; ls /bin/busybox; exec /workload sleep"}
	})
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", mustRun(t, c.kubeletPath(nodeName(0)))))
	if err != nil || !strings.Contains(string(environment), "TMPDIR="+temporaryDirectory) {
		t.Errorf("the kubelet has the environment %q (%v): it would write into a directory of the machine", environment, err)
	}
	for _, command := range [][]string{{"logs", "pod"}, {"exec", "pod", "--", "/bin/sh", "-c", "id -u; ls /bin/busybox"}} {
		kubectl := c.Local.Command(t.Context(), command...)
		if output, err := kubectl.CombinedOutput(); err != nil || string(output) != "1000\n/bin/busybox\n" {
			t.Errorf("kubectl %v: %v: %s", command, err, output)
		}
	}
}

// An interrupt during the check of a cluster that runs must not end it.
func TestNodesInterruptedCheck(t *testing.T) {
	c := newTestCluster(t)
	if output, err := c.program("up-real").CombinedOutput(); err != nil {
		t.Fatalf("up-real: %v: %s", err, output)
	}
	if err := c.SignalControlPlane(controlplane.APIServer, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	supervisor, err := c.Process(supervisorLock)
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	again := c.program("up-real")
	again.Stdout, again.Stderr = &output, &output
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // Shorter than readyTimeout. It has nothing to say meanwhile.
	interrupt := again.Process.Signal(unix.SIGINT)
	// The API server answers only afterwards: the check must not succeed before it is interrupted.
	result := again.Wait()
	if err := errors.Join(interrupt, c.SignalControlPlane(controlplane.APIServer, unix.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	if result == nil || !strings.Contains(output.String(), "interrupted, nothing was changed") {
		t.Errorf("up-real: %v: %s", result, output.String())
	}
	if pid, err := c.Process(supervisorLock); err != nil || pid != supervisor {
		t.Errorf("the supervisor is process %d (%v), was %d", pid, err, supervisor)
	}
	runPod(t, c)
}

// Leftovers of a start or an end that was killed in between have no record. The directory of a
// cluster with simulated nodes has another one.
func TestCheckKind(t *testing.T) {
	c := &Cluster{Local: &localcluster.Cluster{Name: "kind", Output: t.TempDir()}}
	expect := func(want bool) {
		t.Helper()
		if err := c.checkKind(); (err == nil) != want {
			t.Errorf("checkKind: %v, want nil: %t", err, want)
		}
	}
	expect(true)
	write(t, filepath.Join(c.Local.Logs(), "supervisor.log"))
	expect(true)
	write(t, filepath.Join(c.Local.Dir(), localcluster.Record))
	expect(false)
}

// linkedOutput returns an output directory with a path that is hard to quote, and links to the
// programs and images.
func linkedOutput(t *testing.T) string {
	t.Helper()
	built := os.Getenv(outputVariable)
	output := filepath.Join(t.TempDir(), `a b,c"d'é[x]\n`)
	if err := errors.Join(os.MkdirAll(filepath.Join(output, "images"), 0o700), os.Symlink(filepath.Join(built, "bin"), filepath.Join(output, "bin"))); err != nil {
		t.Fatal(err)
	}
	images, err := filepath.Glob(filepath.Join(built, "images", "*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if err := os.Symlink(image, filepath.Join(output, "images", filepath.Base(image))); err != nil {
			t.Fatal(err)
		}
	}
	return output
}
