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
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// newTestCluster returns a cluster without processes, whose binaries exit immediately.
func newTestCluster(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{Name: "a", Output: t.TempDir(), Bin: t.TempDir(), proc: t.TempDir(), Timeout: time.Minute, Printf: t.Logf}
	if err := c.resolve(); err != nil {
		t.Fatal(err)
	}
	for _, file := range append([]string{"kubectl", controlplane.KwokStages}, controlplane.Components...) {
		writeScript(t, filepath.Join(c.Bin, file), "exit 0")
	}
	return c
}

func writeScript(t *testing.T, path, script string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	for _, name := range []string{"", "..", "a/b", "Upper", "-a", "a-", "a b", strings.Repeat("a", 64)} {
		if err := (&Cluster{Name: name, Output: t.TempDir()}).resolve(); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
	if err := (&Cluster{Name: "a", Output: filepath.Join(t.TempDir(), "a:b")}).resolve(); err == nil {
		t.Error("an output directory with a colon was accepted")
	}
	// Processes are found by path: all paths of a directory must resolve to one.
	direct := &Cluster{Name: "a", Output: t.TempDir()}
	linked := &Cluster{Name: "a", Output: filepath.Join(t.TempDir(), "link with spaces")}
	if err := errors.Join(os.Symlink(direct.Output, linked.Output), direct.resolve(), linked.resolve()); err != nil {
		t.Fatal(err)
	}
	if direct.Dir() != linked.Dir() {
		t.Errorf("paths differ: %s and %s", direct.Dir(), linked.Dir())
	}
}

func TestKubeconfig(t *testing.T) {
	first, second := &Cluster{Name: DefaultName, Output: "out"}, &Cluster{Name: "second", Output: "out"}
	if got, want := first.Kubeconfig(), filepath.Join("out", "kubeconfig"); got != want {
		t.Errorf("kubeconfig of the default cluster = %s, want %s", got, want)
	}
	if got, want := second.Kubeconfig(), filepath.Join("out", "clusters", "second.kubeconfig"); got != want {
		t.Errorf("kubeconfig = %s, want %s", got, want)
	}
}

// TestMissingBinary verifies that a missing binary is reported before anything is stopped.
func TestMissingBinary(t *testing.T) {
	c := newTestCluster(t)
	runAll(t, c, Settings{})
	if err := os.Remove(filepath.Join(c.Bin, "kwok")); err != nil {
		t.Fatal(err)
	}
	err := c.Ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "kwok is missing") || !strings.Contains(err.Error(), "`make") {
		t.Errorf("Ensure: %v, want the missing binary, and how to build it", err)
	}
	if _, err := os.Stat(c.recordFile()); err != nil {
		t.Errorf("the running cluster was touched: %v", err)
	}
	c.Base = c.Bin
	if err := c.Ensure(t.Context()); !errors.Is(err, ErrNoBase) {
		t.Errorf("Ensure of the base: %v, want ErrNoBase", err)
	}
}

// A cluster with real nodes has the same directory, but is not ended by its processes.
func TestRealNodes(t *testing.T) {
	c := newTestCluster(t)
	record := filepath.Join(c.Dir(), RealRecord)
	if err := errors.Join(os.MkdirAll(c.Dir(), 0o700), os.WriteFile(record, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(ctx context.Context) error{"Ensure": c.Ensure, "Down": c.Down} {
		if err := do(t.Context()); err == nil || !strings.Contains(err.Error(), "has real nodes") {
			t.Errorf("%s: %v, want that the cluster has real nodes", name, err)
		}
	}
	if _, err := os.Stat(record); err != nil {
		t.Errorf("the cluster was touched: %v", err)
	}
}

// TestUpKeepsLogs verifies that the logs are kept if a start fails.
func TestUpKeepsLogs(t *testing.T) {
	c := newTestCluster(t)
	c.proc = "/proc"
	if err := c.Up(t.Context()); err == nil {
		t.Fatal("Up: no error, although etcd ends")
	}
	if _, err := os.Stat(filepath.Join(c.Logs(), "etcd.log")); err != nil {
		t.Error(err)
	}
}

// outputVariable makes this program start a cluster in that directory, until it is killed.
const outputVariable = "LOCALCLUSTER_TEST_OUTPUT"

// TestUpEndsWithProgram verifies that components end when the program is killed that started them.
func TestUpEndsWithProgram(t *testing.T) {
	if output := os.Getenv(outputVariable); output != "" {
		t.Fatal((&Cluster{Name: "a", Output: output, Bin: filepath.Join(output, "bin")}).Up(t.Context()))
	}
	c := newTestCluster(t)
	c.proc = "/proc"
	started := filepath.Join(c.Output, "starts")
	if err := os.Rename(c.Bin, filepath.Join(c.Output, "bin")); err != nil {
		t.Fatal(err)
	}
	writeScript(t, filepath.Join(c.Output, "bin", "etcd"), "echo started >"+started+"\nwhile :; do sleep 0.1; done")
	program := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	program.Env = append(os.Environ(), outputVariable+"="+c.Output)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.kill(); err != nil {
			t.Error(err)
		}
	})
	<-endWith(t.Context(), context.Canceled, started).Done()
	_ = program.Process.Kill()
	_ = program.Wait()
	for start := time.Now(); ; time.Sleep(pollInterval) {
		left, err := c.processes()
		if err == nil && len(left) == 0 {
			return
		}
		if time.Since(start) > 10*time.Second {
			t.Fatalf("left running: %v, %v", left, err)
		}
	}
}

// ending is a context with its own error.
type ending struct {
	context.Context
	err error
}

// endWith returns a context that ends with err when the file exists.
func endWith(ctx context.Context, err error, file string) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			time.Sleep(pollInterval)
			if _, err := os.Stat(file); err == nil {
				return
			}
		}
	}()
	return ending{ctx, err}
}

func (e ending) Err() error {
	if e.Context.Err() == nil {
		return nil
	}
	return e.err
}

// Value hides the inner context from derived contexts, because its error is different.
func (ending) Value(any) any { return nil }

func TestStartFails(t *testing.T) {
	cases := map[string]struct {
		etcd string
		// end is the error with which the context ends when etcd runs, if it ends.
		end  error
		want []string
		gone bool // The logs are not needed.
	}{
		"a component ends": {
			etcd: "echo bad flag; exit 1",
			want: []string{"etcd ended while it was starting", "etcd.log", "bad flag"},
		},
		"a component never becomes healthy": {
			etcd: "while :; do sleep 0.1; done", end: context.DeadlineExceeded,
			want: []string{"etcd did not become healthy in time", "hello", "--timeout"},
		},
		"its port is taken": {
			etcd: "echo bind: address already in use; exit 1",
			want: []string{controlplane.ErrPortTaken.Error()},
		},
		"the user interrupts": {
			etcd: "while :; do sleep 0.1; done", end: context.Canceled, gone: true,
			want: []string{"interrupted, nothing is left running"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t)
			c.proc = "/proc"
			starts := filepath.Join(c.Output, "starts")
			var ctx context.Context = t.Context()
			if tc.end != nil {
				ctx = endWith(ctx, tc.end, starts)
			}
			writeScript(t, filepath.Join(c.Bin, "etcd"), "echo hello; echo started >>"+starts+"\n"+tc.etcd)
			err := c.Ensure(ctx)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Ensure: %v, want %q", err, want)
				}
			}
			// A child that the script has just forked looks like it until it executes sleep, which ends.
			var left map[string]int
			if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (done bool, err error) {
				left, err = c.processes()
				return len(left) == 0, err
			}); err != nil {
				t.Errorf("left running: %v, %v", left, err)
			}
			if _, err := os.Stat(c.Dir()); errors.Is(err, os.ErrNotExist) != tc.gone {
				t.Errorf("state directory: %v, want it to be gone: %t", err, tc.gone)
			}
			// Only a taken port makes a retry with other ports useful.
			started, err := os.ReadFile(starts)
			if attempts := strings.Count(string(started), "started"); err != nil || (attempts == 3) != strings.Contains(name, "port") {
				t.Errorf("%d starts, %v", attempts, err)
			}
		})
	}
}

// nodesAsked is the file that fakeComponent creates when it receives a request for nodes.
const nodesAsked = "nodes-asked"

// TestMain runs this program as a fake component if it has the name of one.
func TestMain(m *testing.M) {
	if component := filepath.Base(os.Args[0]); slices.Contains(controlplane.Components, component) {
		fmt.Fprintln(os.Stderr, fakeComponent(component))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// fakeComponent serves as a healthy component, and never answers requests for nodes.
func fakeComponent(component string) error {
	flags := map[string]string{}
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}
	address := "127.0.0.1:" + flags["--secure-port"]
	switch component {
	case controlplane.Etcd:
		address = strings.TrimPrefix(flags["--listen-client-urls"], "http://")
	case controlplane.Kwok:
		address = flags["--server-address"]
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			fmt.Fprint(w, `{"gitVersion":"v0.0.0"}`)
		case "/api/v1/nodes":
			_ = os.WriteFile(filepath.Join(os.Getenv("HOME"), nodesAsked), nil, 0o600)
			<-r.Context().Done()
		}
	})}
	if cert := flags["--tls-cert-file"]; cert != "" && component != controlplane.Kwok {
		return server.ListenAndServeTLS(cert, flags["--tls-private-key-file"])
	}
	return server.ListenAndServe()
}

// TestInterruptedAtTheEnd interrupts a start while the nodes are not ready yet.
func TestInterruptedAtTheEnd(t *testing.T) {
	c := newTestCluster(t)
	c.proc = "/proc"
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range controlplane.Components {
		path := filepath.Join(c.Bin, component)
		if err := errors.Join(os.Remove(path), os.Symlink(program, path)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx := endWith(t.Context(), context.Canceled, filepath.Join(c.Dir(), nodesAsked))
	if err := c.Ensure(ctx); err == nil || !strings.Contains(err.Error(), "interrupted, nothing is left running") {
		t.Errorf("Ensure: %v, want it to be interrupted", err)
	}
	if left, err := c.processes(); err != nil || len(left) > 0 {
		t.Errorf("left running: %v, %v", left, err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("state directory: %v, want it to be gone", err)
	}
}

// runAll pretends that all components of the cluster run from its binaries.
func runAll(t *testing.T, c *Cluster, settings Settings) {
	t.Helper()
	commands := map[int][]string{}
	for i, component := range controlplane.Components {
		commands[i+1] = []string{filepath.Join(controlplane.LinkDir(c.Dir()), component)}
	}
	c.proc = fakeProc(t, commands)
	for i, component := range controlplane.Components {
		if err := os.Symlink(filepath.Join(c.Bin, component), filepath.Join(c.proc, strconv.Itoa(i+1), "exe")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(c.Dir(), 0o755), c.writeRecord(record{Settings: settings})); err != nil {
		t.Fatal(err)
	}
}

func TestReusable(t *testing.T) {
	wanted := Settings{Gates: "A=true", RuntimeConfig: "g/v1=true"}
	cases := map[string]struct {
		arrange func(t *testing.T, c *Cluster)
		want    string
	}{
		"no cluster": {arrange: func(*testing.T, *Cluster) {}, want: errNoCluster.Error()},
		"files without processes": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, wanted)
				c.proc = t.TempDir()
			},
			want: "leftovers of an earlier run",
		},
		"processes without files": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, wanted)
				if err := os.RemoveAll(c.Dir()); err != nil {
					t.Fatal(err)
				}
			},
			want: "leftovers of an earlier run",
		},
		"a component is gone": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, wanted)
				if err := os.RemoveAll(filepath.Join(c.proc, "2")); err != nil {
					t.Fatal(err)
				}
			},
			want: "kube-apiserver does not run any more",
		},
		"a binary was replaced": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, wanted)
				replaceFile(t, filepath.Join(c.Bin, "kwok"), filepath.Join(c.proc, "5", "exe"))
			},
			want: "kwok runs another build",
		},
		"the stages were changed": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, wanted)
				later := time.Now().Add(time.Minute)
				if err := os.Chtimes(filepath.Join(c.Bin, controlplane.KwokStages), later, later); err != nil {
					t.Fatal(err)
				}
			},
			want: "kwok-stages.yaml has changed",
		},
		"other gates": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, Settings{Gates: "B=true", RuntimeConfig: "g/v1=true"})
			},
			want: `runs with feature gates "B=true"`,
		},
		"other runtime config": {
			arrange: func(t *testing.T, c *Cluster) { runAll(t, c, Settings{Gates: "A=true"}) },
			want:    `runtime config ""`,
		},
		"other arguments": {
			arrange: func(t *testing.T, c *Cluster) {
				runAll(t, c, Settings{Gates: "A=true", RuntimeConfig: "g/v1=true", Args: Args{"etcd:v=2"}})
			},
			want: `further flags ["etcd:v=2"]`,
		},
		"does not answer": {
			arrange: func(t *testing.T, c *Cluster) { runAll(t, c, wanted) },
			want:    "etcd is not healthy",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t)
			tc.arrange(t, c)
			if err := c.reusable(t.Context(), wanted); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("reusable: %v, want %q", err, tc.want)
			}
		})
	}
}

// replaceFile puts a new file at path, and makes exe refer to the old one.
func replaceFile(t *testing.T, path, exe string) {
	t.Helper()
	old := path + ".old"
	if err := errors.Join(os.Rename(path, old), os.WriteFile(path, nil, 0o755), os.Remove(exe), os.Symlink(old, exe)); err != nil {
		t.Fatal(err)
	}
}

func TestEnded(t *testing.T) {
	c := newTestCluster(t)
	runAll(t, c, Settings{})
	if err := c.Ended(); err != nil {
		t.Errorf("Ended: %v, although all components run", err)
	}
	if err := os.RemoveAll(filepath.Join(c.proc, "3")); err != nil {
		t.Fatal(err)
	}
	if err := c.Ended(); err == nil || !strings.Contains(err.Error(), "kube-controller-manager does not run any more") {
		t.Errorf("Ended: %v, want the controller manager", err)
	}
}

func TestLock(t *testing.T) {
	c := newTestCluster(t)
	unlock, err := c.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*pollInterval)
	defer cancel()
	if _, err := c.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another up or down") {
		t.Errorf("second lock: %v, want it to wait until the context is over", err)
	}
	unlock()
	if unlock, err = c.Lock(t.Context()); err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	unlock()
}

// fakeProc writes a proc file system with the given command lines.
func fakeProc(t *testing.T, commands map[int][]string) string {
	t.Helper()
	proc := t.TempDir()
	for pid, argv := range commands {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		cmdline := ""
		for _, arg := range argv {
			cmdline += arg + "\x00"
		}
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cmdline"), []byte(cmdline), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestProcesses(t *testing.T) {
	const bin = "/repo/_output/clusters/a/bin"
	cases := map[string]struct {
		argv []string
		home string
		want string
	}{
		"component":                   {argv: []string{bin + "/etcd", "--name=node0"}, want: "map[etcd:42]"},
		"component behind a script":   {argv: []string{"/bin/bash", bin + "/kube-scheduler", "--v=2"}, home: "/repo/_output/clusters/a", want: "map[kube-scheduler:42]"},
		"debugger on our program":     {argv: []string{"gdb", bin + "/kube-apiserver"}, home: "/home/me", want: "map[]"},
		"pager without a home":        {argv: []string{"less", bin + "/etcd"}, want: "map[]"},
		"component of other cluster":  {argv: []string{"/repo/_output/clusters/a2/bin/etcd"}, want: "map[]"},
		"cluster of other clone":      {argv: []string{"/other/_output/clusters/a/bin/etcd"}, want: "map[]"},
		"tool of the user":            {argv: []string{bin + "/kubectl", "get", "pods"}, want: "map[]"},
		"program that reads our file": {argv: []string{"tail", "-f", bin + "/etcd"}, want: "map[]"},
		"editor on our directory":     {argv: []string{"vi", "-R", bin + "/etcd"}, want: "map[]"},
		"zombie":                      {argv: nil, want: "map[]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Name: "a", Output: "/repo/_output", proc: fakeProc(t, map[int][]string{42: tc.argv})}
			if err := os.WriteFile(filepath.Join(c.proc, "42", "environ"), []byte("LANG=C\x00HOME="+tc.home+"\x00"), 0o644); err != nil {
				t.Fatal(err)
			}
			if found, err := c.processes(); err != nil || fmt.Sprint(found) != tc.want {
				t.Errorf("processes = %v, %v, want %v", found, err, tc.want)
			}
		})
	}
}

func TestKill(t *testing.T) {
	c, other := newTestCluster(t), newTestCluster(t)
	c.proc, other.proc = "/proc", "/proc"
	start := func(c *Cluster, component, script string, args ...string) {
		path := filepath.Join(controlplane.LinkDir(c.Dir()), component)
		// The script prints a line when it has set its traps.
		writeScript(t, path, script+"\necho x\nwhile :; do sleep 0.02; done")
		command := exec.Command(path, args...)
		command.Env = append(os.Environ(), "HOME="+c.Dir()) // As for a component.
		out, err := command.StdoutPipe()
		if err := errors.Join(err, command.Start()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	start(c, "etcd", "")
	start(c, "kube-apiserver", "trap '' TERM INT")
	start(other, "etcd", "", "--data-dir="+controlplane.LinkDir(c.Dir()))
	if err := c.kill(); err != nil {
		t.Fatal(err)
	}
	if left, err := c.processes(); err != nil || len(left) > 0 {
		t.Errorf("left running: %v, %v", left, err)
	}
	if left, err := other.processes(); err != nil || len(left) != 1 {
		t.Errorf("processes of another cluster: %v, %v, want the one that was started", left, err)
	}
}
