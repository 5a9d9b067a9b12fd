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
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func newTestCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c, err := newCluster(name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.proc = t.TempDir()
	return c
}

func TestNewCluster(t *testing.T) {
	for _, name := range []string{"", "..", "a/b", "Upper", "-a", "a-", "a b", strings.Repeat("a", 64)} {
		if _, err := newCluster(name, t.TempDir()); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
	for _, dir := range []string{"a,b", "a:b"} {
		if _, err := newCluster("a", filepath.Join(t.TempDir(), dir)); err == nil {
			t.Errorf("output directory %q was accepted", dir)
		}
	}
	// Processes are found by path: every way to a directory must give one path.
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link with spaces")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	direct, err := newCluster("a", real)
	if err != nil {
		t.Fatal(err)
	}
	linked, err := newCluster("a", link)
	if err != nil {
		t.Fatal(err)
	}
	if direct.binLinks() != linked.binLinks() {
		t.Errorf("paths differ: %s and %s", direct.binLinks(), linked.binLinks())
	}
}

func TestKubeconfig(t *testing.T) {
	first, second := newTestCluster(t, defaultName), newTestCluster(t, "second")
	if got, want := first.kubeconfig(), filepath.Join(first.output, "kubeconfig"); got != want {
		t.Errorf("kubeconfig of the default cluster = %s, want %s", got, want)
	}
	if got, want := second.kubeconfig(), filepath.Join(second.output, "clusters", "second.kubeconfig"); got != want {
		t.Errorf("kubeconfig = %s, want %s", got, want)
	}
}

// runAll pretends that all components of the cluster run from its binaries.
func runAll(t *testing.T, c *cluster, opts options) {
	t.Helper()
	commands := map[int][]string{}
	for i, component := range components {
		commands[i+1] = []string{filepath.Join(c.binLinks(), component)}
	}
	c.proc = fakeProc(t, commands)
	if err := os.MkdirAll(c.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, component := range components {
		binary := filepath.Join(c.bin, binaryOf(component))
		if err := os.WriteFile(binary, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(binary, filepath.Join(c.proc, strconv.Itoa(i+1), "exe")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.prepare(opts, record{Gates: opts.gates, RuntimeConfig: opts.runtimeConfig, Args: opts.args}); err != nil {
		t.Fatal(err)
	}
}

func TestReusable(t *testing.T) {
	asked := options{gates: "A=true", runtimeConfig: "g/v1=true"}
	cases := map[string]struct {
		arrange func(t *testing.T, c *cluster)
		want    string
	}{
		"nothing there": {
			arrange: func(*testing.T, *cluster) {},
			want:    errNoCluster.Error(),
		},
		"files without processes": {
			arrange: func(t *testing.T, c *cluster) {
				runAll(t, c, asked)
				c.proc = t.TempDir()
			},
			want: "leftovers of an earlier run",
		},
		"processes without files": {
			arrange: func(t *testing.T, c *cluster) {
				runAll(t, c, asked)
				if err := os.RemoveAll(c.dir()); err != nil {
					t.Fatal(err)
				}
			},
			want: "leftovers of an earlier run",
		},
		"a component is gone": {
			arrange: func(t *testing.T, c *cluster) {
				runAll(t, c, asked)
				if err := os.RemoveAll(filepath.Join(c.proc, "2")); err != nil {
					t.Fatal(err)
				}
			},
			want: "kube-apiserver does not run any more",
		},
		"a binary was replaced": {
			arrange: func(t *testing.T, c *cluster) {
				runAll(t, c, asked)
				replaceFile(t, filepath.Join(c.bin, "kwok"), filepath.Join(c.proc, "5", "exe"))
			},
			want: "kwok-controller runs another build",
		},
		"other gates": {
			arrange: func(t *testing.T, c *cluster) {
				runAll(t, c, options{gates: "B=true", runtimeConfig: "g/v1=true"})
			},
			want: `runs with feature gates "B=true"`,
		},
		"other runtime config": {
			arrange: func(t *testing.T, c *cluster) { runAll(t, c, options{gates: "A=true"}) },
			want:    `runs with runtime config ""`,
		},
		"other arguments": {
			arrange: func(t *testing.T, c *cluster) {
				runAll(t, c, options{gates: "A=true", runtimeConfig: "g/v1=true", args: argList{"etcd:v=2"}})
			},
			want: `runs with --arg "etcd:v=2"`,
		},
		"does not answer": {
			arrange: func(t *testing.T, c *cluster) { runAll(t, c, asked) },
			want:    "etcd is not healthy",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, "a")
			tc.arrange(t, c)
			_, err := c.reusable(context.Background(), asked)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("reusable: %v, want %q", err, tc.want)
			}
		})
	}
}

// writeBinaries writes a script for every binary that a cluster needs; those that
// scripts does not mention print a version.
func writeBinaries(t *testing.T, dir string, scripts map[string]string) {
	t.Helper()
	for _, name := range append([]string{"kwokctl", "kubectl"}, components...) {
		name = binaryOf(name)
		script, ok := scripts[name]
		if !ok {
			script = "echo " + name + " v1; echo more"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckBinaries(t *testing.T) {
	cases := map[string]struct {
		scripts map[string]string
		missing string
		timeout time.Duration
		want    string
	}{
		"all work":      {timeout: time.Minute},
		"one is absent": {missing: "kwok", timeout: time.Minute, want: "kwok is missing"},
		"one fails": {
			scripts: map[string]string{"etcd": "echo no such library; exit 1"},
			timeout: time.Minute, want: "etcd is broken",
		},
		// The last one, so that the others have shown that they get their time.
		"one is slow": {
			scripts: map[string]string{"kwok": "exec sleep 60"},
			timeout: time.Second, want: "slow rather than broken",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			writeBinaries(t, bin, tc.scripts)
			if tc.missing != "" {
				if err := os.Remove(filepath.Join(bin, tc.missing)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), tc.timeout)
			defer cancel()
			version, err := checkBinaries(ctx, bin)
			if tc.want == "" && (err != nil || version != "kube-apiserver v1") {
				t.Errorf("checkBinaries: %q, %v, want the version of the API server", version, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("checkBinaries: %v, want %q", err, tc.want)
			}
		})
	}
}

// Binaries share the disk that they are read from: two at once would be slower than
// one after another, and the last one of many would run out of time.
func TestCheckBinariesOneAtATime(t *testing.T) {
	bin := t.TempDir()
	busy := filepath.Join(bin, "busy")
	scripts := map[string]string{}
	for _, name := range append([]string{"kwokctl", "kubectl"}, components...) {
		scripts[binaryOf(name)] = "mkdir '" + busy + "' || exit 1; sleep 0.05; rmdir '" + busy + "'; echo v1"
	}
	writeBinaries(t, bin, scripts)
	if _, err := checkBinaries(context.Background(), bin); err != nil {
		t.Errorf("checkBinaries: %v, want each binary to run alone", err)
	}
}

// replaceFile puts a new file at path and lets exe refer to the old one.
func replaceFile(t *testing.T, path, exe string) {
	t.Helper()
	old := path + ".old"
	err := errors.Join(os.Rename(path, old), os.WriteFile(path, nil, 0o755), os.Remove(exe), os.Symlink(old, exe))
	if err != nil {
		t.Fatal(err)
	}
}

// The caller's environment must not reach into the cluster.
func TestEnvironment(t *testing.T) {
	c := newTestCluster(t, "a")
	env := c.environment([]string{"KWOK_KUBE_APISERVER_PORT=1", "ETCD_DATA_DIR=/x", "KUBECONFIG=/home/me/config", "PATH=/usr/bin", "HOME=/home/me", "LANG=C"})
	for _, want := range []string{"LANG=C", "HOME=" + c.output, "KUBECONFIG=" + filepath.Join(c.dir(), "kubeconfig.yaml")} {
		if !slices.Contains(env, want) {
			t.Errorf("%q is missing in %q", want, env)
		}
	}
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		// Any KWOK_ variable, KWOK_WORKDIR too: kwokctl cuts it at a blank.
		if strings.HasPrefix(name, "KWOK_") || name == "ETCD_DATA_DIR" || variable == "KUBECONFIG=/home/me/config" || variable == "HOME=/home/me" {
			t.Errorf("%q was passed on", variable)
		}
	}
}

// A port that was taken meanwhile is tried again; other failures are reported.
func TestFailure(t *testing.T) {
	c := newTestCluster(t, "a")
	if err := os.MkdirAll(filepath.Dir(c.logFile("etcd")), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(log string) error {
		if err := os.WriteFile(c.logFile("etcd"), []byte(log), 0o644); err != nil {
			t.Fatal(err)
		}
		return c.failure("etcd", "ended")
	}
	var failure *startFailure
	if err := write("listen tcp 127.0.0.1:1: bind: address already in use\n"); !errors.As(err, &failure) || !failure.portTaken() {
		t.Errorf("%v: want a taken port to be recognised", err)
	}
	err := write("panic: broken\n")
	if !errors.As(err, &failure) || failure.portTaken() {
		t.Errorf("%v: want no taken port", err)
	}
	for _, want := range []string{"etcd ended", c.logFile("etcd"), "panic: broken"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
}

func TestStartFails(t *testing.T) {
	cases := map[string]struct {
		kwokctl string
		// hangs: nothing but the timeout ends it.
		hangs bool
		want  []string
	}{
		"kwokctl fails":                  {kwokctl: "echo no such runtime; exit 1", want: []string{"kwokctl failed", "no such runtime"}},
		"kwokctl hangs":                  {kwokctl: "sleep 60", hangs: true, want: []string{"etcd did not become healthy in time"}},
		"a component never gets healthy": {kwokctl: "exit 0", hangs: true, want: []string{"etcd did not become healthy in time"}},
		"a component dies": {
			kwokctl: `dir="$HOME/.kwok/clusters/a"; mkdir "$dir/pids" "$dir/logs"; echo 1 >"$dir/pids/kube-scheduler.pid"; echo bad flag >"$dir/logs/kube-scheduler.log"; sleep 60`,
			want:    []string{"kube-scheduler ended while", "bad flag"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, "a")
			if err := os.MkdirAll(c.bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(c.bin, "kwokctl"), []byte("#!/bin/sh\n"+tc.kwokctl+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			timeout := time.Minute
			if tc.hangs {
				timeout = time.Second
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, err := c.start(ctx, options{})
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("start: %v, want %q", err, want)
				}
			}
			// The timeout, the last question for health and much room, but less than kwokctl hangs.
			if elapsed := time.Since(start); elapsed > 45*time.Second {
				t.Errorf("start took %v", elapsed)
			}
		})
	}
}

func TestLock(t *testing.T) {
	c := newTestCluster(t, "a")
	unlock, err := c.lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*pollInterval)
	defer cancel()
	if _, err := c.lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second lock: %v, want it to wait until the context is over", err)
	}
	unlock()
	unlock, err = c.lock(context.Background())
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	unlock()
}
