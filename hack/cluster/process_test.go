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
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fakeProc writes a proc file system with the given command lines.
func fakeProc(t *testing.T, commands map[int][]string) string {
	t.Helper()
	proc := t.TempDir()
	for pid, argv := range commands {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmdline := ""
		for _, arg := range argv {
			cmdline += arg + "\x00"
		}
		if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(cmdline), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestFindProcesses(t *testing.T) {
	const bin = "/repo/_output/clusters/graceful/bin"
	cases := map[string]struct {
		argv []string
		want string
	}{
		"component":                   {argv: []string{bin + "/etcd", "--name=node0"}, want: "etcd"},
		"component behind a script":   {argv: []string{"/bin/bash", bin + "/kube-scheduler", "--v=2"}, want: "kube-scheduler"},
		"component of other cluster":  {argv: []string{"/repo/_output/clusters/graceful2/bin/etcd"}},
		"cluster of other clone":      {argv: []string{"/other/_output/clusters/graceful/bin/etcd"}},
		"tool of the user":            {argv: []string{bin + "/kubectl", "get", "pods"}},
		"program that reads our file": {argv: []string{"tail", "-f", bin + "/etcd"}},
		"editor on our directory":     {argv: []string{"vi", "-R", bin + "/etcd"}},
		"zombie":                      {argv: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := findProcesses(fakeProc(t, map[int][]string{42: tc.argv}), bin)
			if err != nil {
				t.Fatal(err)
			}
			var want []process
			if tc.want != "" {
				want = []process{{pid: 42, component: tc.want}}
			}
			if !reflect.DeepEqual(found, want) {
				t.Errorf("findProcesses = %v, want %v", found, want)
			}
		})
	}
}

func TestDiedComponents(t *testing.T) {
	pids := t.TempDir()
	for _, started := range []string{"kube-scheduler", "kube-apiserver", "etcd"} {
		// The pid of a living process: a stale pid file must not count as life.
		if err := os.WriteFile(filepath.Join(pids, started+".pid"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	proc := fakeProc(t, map[int][]string{1: {"/cluster/bin/etcd"}})
	got, err := diedComponents(pids, proc, "/cluster/bin")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"kube-apiserver", "kube-scheduler"}; !reflect.DeepEqual(got, want) {
		t.Errorf("diedComponents = %v, want %v", got, want)
	}
}

// startScript runs a script under the name of a component in dir.
// A component whose process has no command line yet has not ended.
func TestDiedComponentsWhileStarting(t *testing.T) {
	for name, tc := range map[string]struct {
		pid, cmdline, stat string
		died               bool
	}{
		"pid being written":    {pid: "", died: false},
		"no command line yet":  {pid: "7\n", stat: "7 (a) b) R 1 7", died: false},
		"zombie":               {pid: "7", stat: "7 (etcd) Z 1 7", died: true},
		"pid of other program": {pid: "7", cmdline: "vi\x00", stat: "7 (vi) S 1 7", died: true},
		"no such process":      {pid: "8", stat: "7 (etcd) S 1 7", died: true},
	} {
		t.Run(name, func(t *testing.T) {
			pids, proc := t.TempDir(), fakeProc(t, map[int][]string{7: nil})
			for path, content := range map[string]string{
				filepath.Join(pids, "etcd.pid"):     tc.pid,
				filepath.Join(proc, "7", "cmdline"): tc.cmdline,
				filepath.Join(proc, "7", "stat"):    tc.stat,
			} {
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			died, err := diedComponents(pids, proc, "/cluster/bin")
			if err != nil {
				t.Fatal(err)
			}
			if (len(died) > 0) != tc.died {
				t.Errorf("died components: %v, want any: %t", died, tc.died)
			}
		})
	}
}

func startScript(t *testing.T, dir, name, script string, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// The script says when it has set its traps.
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestStopProcesses(t *testing.T) {
	const loop = "\necho x\nwhile :; do sleep 0.02; done\n"
	bin, other := t.TempDir(), t.TempDir()
	startScript(t, bin, "etcd", loop)
	bystander := startScript(t, other, "etcd", loop, "--data-dir="+bin)

	// So long that the wait for the process, on a machine that is busy, is not mistaken for it.
	const grace = time.Minute
	start := time.Now()
	if err := stopProcesses("/proc", bin, grace); err != nil {
		t.Fatal(err)
	}
	if elapsed := time.Since(start); elapsed >= grace {
		t.Errorf("took %v: a process that obeys must not cost the grace time", elapsed)
	}
	if processComponent("/proc", bystander.Process.Pid, other) != "etcd" {
		t.Error("a process of another directory was ended too")
	}

	startScript(t, bin, "kube-apiserver", "trap '' TERM"+loop)
	if err := stopProcesses("/proc", bin, 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if left, err := findProcesses("/proc", bin); err != nil || len(left) > 0 {
		t.Errorf("left running: %v, %v", left, err)
	}
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("x", 400)
	got := lastLines([]byte("one\ntwo\n"+long+"\n\n"), 2)
	if want := "    two\n    " + long[:300] + "..."; got != want {
		t.Errorf("lastLines = %q, want %q", got, want)
	}
}
