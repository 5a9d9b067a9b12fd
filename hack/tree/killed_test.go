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
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// work is what the killed commands have to do: an edit, a change of a patch,
// files of ours that come, go and move, and upstream files that do.
func work(f *fixture) {
	f.repo("pkg/ours/stays.go", "package ours // stays\n")
	f.repo("pkg/ours/goes.go", "package ours // goes\n")
	f.repo("pkg/ours/moves.go", "package ours // moves\n")
	f.commit()
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.replaceInTree("pkg/a/b.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	f.commit()
}

func changeTree(f *fixture) {
	f.replaceInTree("pkg/a/a.go", "// line 20\n", "// line 20\n// second seam\n")
	f.replaceInTree("pkg/a/b.go", "// seam\n", "")
	f.tree("pkg/a/zz_generated.deepcopy.go", "package a // more\n")
	f.remove(f.inTree("pkg/a/crlf.txt"))
	f.rename(f.inTree("pkg/a/gone.go"), f.inTree("pkg/moved/gone.go"))
	f.tree("pkg/ours/new.go", "package ours // new\n")
	f.remove(f.inTree("pkg/ours/goes.go"))
	f.rename(f.inTree("pkg/ours/moves.go"), f.inTree("pkg/elsewhere/moved.go"))
}

// changeRepo does the same to the repository as changeTree and refresh.
func changeRepo(f *fixture) {
	changeTree(f)
	f.ok("refresh")
	f.git("stash", "-u", "-q")
	f.ok("tree", "-discard")
	f.git("stash", "pop", "-q")
}

// dieAt makes the run fail at its n-th step, and at all steps after it, as a
// killed process would. It says how many steps there were.
func dieAt(n int, run func()) int {
	steps := 0
	failpoint = func(step string) error {
		steps++
		if steps > n {
			return errors.New("killed before " + step)
		}
		return nil
	}
	defer func() { failpoint = func(string) error { return nil } }()
	run()
	return steps
}

func TestKilledRunIsRepaired(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(f *fixture)
		command string
	}{
		{"first tree", func(f *fixture) {
			work(f)
			if err := os.RemoveAll(filepath.Join(f.root, "_output")); err != nil {
				f.t.Fatal(err)
			}
		}, "tree"},
		{"tree", func(f *fixture) { work(f); changeRepo(f) }, "tree"},
		{"refresh", func(f *fixture) { work(f); changeTree(f) }, "refresh"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prepared := newFixture(t)
			tt.prepare(prepared)
			whole := prepared.clone()
			steps := dieAt(1000, func() { whole.ok(tt.command) })
			if steps < 5 {
				t.Fatalf("only %d steps", steps)
			}
			whole.ok("tree")
			for n := range steps {
				f := prepared.clone()
				dieAt(n, func() {
					if f.run(tt.command) != exitFailed {
						t.Errorf("step %d did not fail: %s", n, f.out)
					}
				})
				if n%2 == 0 {
					f.ok(tt.command)
				} else {
					f.ok("tree") // another command comes next
					f.ok(tt.command)
				}
				f.same(fmt.Sprintf("tree, killed at step %d", n), f.treeFiles(), whole.treeFiles())
				f.same(fmt.Sprintf("repository, killed at step %d", n), f.repoFiles(), whole.repoFiles())
				if t.Failed() {
					return
				}
			}
		})
	}
}

// clone copies the repository with its tree.
func (f *fixture) clone() *fixture {
	f.t.Helper()
	root := filepath.Join(f.t.TempDir(), "my repo")
	if out, err := exec.Command("cp", "-a", f.root, root).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	return &fixture{t: f.t, root: root, src: f.src}
}

// program is the built tool, with modules from a proxy.
type program struct {
	t   *testing.T
	bin string
	env []string
}

func buildProgram(f *fixture) *program {
	f.t.Helper()
	bin := filepath.Join(f.t.TempDir(), "tree")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", bin, ".").CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	return &program{f.t, bin, f.useProxy()}
}

// run runs a command to its end and says how long it took.
func (p *program) run(root, command string) time.Duration {
	p.t.Helper()
	start := time.Now()
	cmd := exec.Command(p.bin, "-C", root, command)
	cmd.Env = p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", command, err, out)
	}
	return time.Since(start)
}

// kill starts a command and kills it after a while.
func (p *program) kill(root, command string, after time.Duration) {
	p.t.Helper()
	cmd := exec.Command(p.bin, "-C", root, command)
	cmd.Env = p.env
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(after)
	cmd.Process.Kill()
	cmd.Wait()
}

const kills = 10

func TestKilledProcess(t *testing.T) {
	f := newFixture(t)
	p := buildProgram(f)
	work(f)
	prepared := f.clone()
	changeTree(prepared)
	for _, command := range []string{"refresh", "tree"} {
		whole := prepared.clone()
		if command == "tree" {
			// The first tree of a clone: nothing in _output yet.
			whole.ok("refresh")
			if err := os.RemoveAll(filepath.Join(whole.root, "_output")); err != nil {
				t.Fatal(err)
			}
			prepared = whole.clone()
		}
		took := p.run(whole.root, command)
		for i := range kills {
			f := prepared.clone()
			p.kill(f.root, command, took*time.Duration(i)/kills)
			p.run(f.root, command)
			what := fmt.Sprintf("%s, kill %d", command, i)
			f.same(what, f.treeFiles(), whole.treeFiles())
			f.same(what, f.repoFiles(), whole.repoFiles())
			if left, _ := filepath.Glob(filepath.Join(f.root, "_output/*.tmp-*")); len(left) > 0 {
				t.Errorf("%s left %v", what, left)
			}
		}
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	f := newFixture(t)
	p := buildProgram(f)
	f.repo("pkg/ours/x.go", "package ours\n")
	want := f.clone()
	want.ok("tree")
	var runs []*exec.Cmd
	for range 3 {
		cmd := exec.Command(p.bin, "-C", f.root, "tree")
		cmd.Env = p.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, cmd)
	}
	for _, cmd := range runs {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	f.same("tree", f.treeFiles(), want.treeFiles())
}

// useProxy serves the base as a module proxy in a directory, and returns the
// environment of a program that is to use it.
func (f *fixture) useProxy() []string {
	f.t.Helper()
	dir := f.t.TempDir()
	proxy := filepath.Join(dir, "proxy")
	gomod := "module example.com/fork\n\ngo 1.26.0\n\nrequire (\n"
	pins, _ := f.src.pins("")
	pins, _ = f.src.fetch("", pins)
	var args []string
	for _, m := range pins {
		at := filepath.Join(proxy, m.Path, "@v", m.Version)
		f.write(at+".info", fmt.Sprintf(`{"Version":%q}`, m.Version))
		f.write(at+".mod", "module "+m.Path+"\n")
		f.write(at+".zip", f.zipModule(m))
		gomod += "\t" + m.Path + " " + m.Version + "\n"
		args = append(args, m.Path+"@"+m.Version)
	}
	f.repo("go.mod", gomod+")\n")
	env := append(os.Environ(), "GOPROXY=file://"+proxy, "GOSUMDB=off", "GOFLAGS=-modcacherw",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOWORK=off", "GOTOOLCHAIN=local")
	cmd := exec.Command("go", append([]string{"mod", "download", "-json"}, args...)...)
	cmd.Dir, cmd.Env = f.root, env
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("go mod download: %v: %s", err, out)
	}
	sums := ""
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var m module
		if err := dec.Decode(&m); err != nil {
			f.t.Fatal(err)
		}
		sums += m.Path + " " + m.Version + " " + m.Sum + "\n"
	}
	f.repo("go.sum", sums)
	return env
}

func (f *fixture) zipModule(m module) string {
	f.t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for p, c := range f.snapshot(m.Dir, false) {
		entry, err := z.Create(m.Path + "@" + m.Version + "/" + p)
		if err != nil {
			f.t.Fatal(err)
		}
		_, data, _ := strings.Cut(c, " ")
		if _, err := entry.Write([]byte(data)); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		f.t.Fatal(err)
	}
	return b.String()
}

func TestModuleCacheDemandsSum(t *testing.T) {
	f := newFixture(t)
	for _, v := range f.useProxy() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GO") {
			t.Setenv(name, value)
		}
	}
	pins, err := moduleCache{}.pins(f.root)
	if err != nil || len(pins) != 3 {
		t.Fatalf("pins: %v, %v", pins, err)
	}
	if _, err := (moduleCache{}).fetch(f.root, pins); err != nil {
		t.Fatal(err)
	}
	f.repo("go.sum", strings.Replace(f.readRepo("go.sum"), "k8s.io/api v0.1.0 h1:", "k8s.io/api v0.1.0 h1:x", 1))
	if _, err := (moduleCache{}).fetch(f.root, pins); err == nil || !strings.Contains(err.Error(), "k8s.io/api") {
		t.Errorf("a module that go.sum does not vouch for was accepted: %v", err)
	}
}
