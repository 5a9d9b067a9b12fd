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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary the program itself, for tests that run or kill
// processes: fixture.process sets the variable.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TREE_TEST_MODULES"); dir != "" {
		os.Exit(run(os.Args[1:], &fakeSource{dir: dir, version: "1.0"}, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func (f *fixture) process(command string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], command, "-C", f.root)
	cmd.Env = append(os.Environ(), "TREE_TEST_MODULES="+f.src.dir)
	return cmd
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

const kills = 10

// A killed run loses nothing: the next one completes it, or says what to do.
func TestKilledProcess(t *testing.T) {
	edited := newFixture(t)
	for _, p := range []string{"stays.go", "goes.go", "copy.txt"} {
		edited.repo("pkg/ours/"+p, "package ours\n")
	}
	edited.commit()
	edited.ok("tree")
	edited.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	edited.ok("refresh")
	edited.replaceInTree("pkg/a/a.go", "// line 20\n", "// second seam\n")
	edited.replaceInTree("pkg/a/b.go", "// line 7\n", "// seam\n")
	edited.tree("pkg/a/zz_generated.deepcopy.go", "package a // more\n")
	edited.tree("pkg/ours/new.go", "package ours // new\n")
	edited.tree("pkg/ours/copy.txt", "edited\n")
	edited.remove(edited.inTree("pkg/ours/goes.go"))

	whole := edited.clone()
	start := time.Now()
	if out, err := whole.process("refresh").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(start)
	fresh := whole.clone() // the first tree of a clone
	if err := os.RemoveAll(filepath.Join(fresh.root, "_output")); err != nil {
		t.Fatal(err)
	}
	for name, prepared := range map[string]*fixture{"refresh": edited, "tree": fresh} {
		for i := range kills {
			f := prepared.clone()
			cmd := f.process(name)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(took * time.Duration(i) / kills)
			cmd.Process.Kill()
			cmd.Wait()
			f.ok(name)
			what := fmt.Sprintf("%s, kill %d", name, i)
			f.same(what, f.treeFiles(), whole.treeFiles())
			f.same(what, f.repoFiles(), whole.repoFiles())
		}
	}
}

// interrupt makes a command stop before it writes one of our files.
func (f *fixture) interrupt(p, command string) {
	f.t.Helper()
	block := f.inTree(p + tempSuffix)
	f.write(filepath.Join(block, "x"), "")
	f.fails([]string{"is a directory"}, command)
	if err := os.RemoveAll(block); err != nil {
		f.t.Fatal(err)
	}
}

// What an interrupted run has written of upstream's files is not an edit.
func TestInterruptedRunWithOtherPatches(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/copy.txt", "ours\n")
	f.repo("pkg/ours/z.txt", "one\n")
	f.ok("tree")
	before := f.clone()
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// seam\n")
	f.ok("refresh")
	seam := f.readRepo("pkg/a/a.go.patch")
	for name, patch := range map[string]string{"same": seam, "other": strings.Replace(seam, "+// seam", "+// other", 1), "none": ""} {
		for _, command := range []string{"tree", "refresh"} {
			f := before.clone()
			f.repo("pkg/a/a.go.patch", seam)
			f.repo("pkg/ours/z.txt", "two\n")
			f.interrupt("pkg/ours/z.txt", command)
			if !strings.Contains(f.readTree("pkg/a/a.go"), "// seam") {
				t.Fatal("the run was interrupted too early for this test")
			}
			if patch == "" {
				f.remove(filepath.Join(f.root, "pkg/a/a.go.patch"))
			} else {
				f.repo("pkg/a/a.go.patch", patch)
			}
			f.tree("pkg/ours/copy.txt", "edited\n")
			f.ok(command)
			f.ok("refresh")
			if got := f.readRepo("pkg/ours/copy.txt"); got != "edited\n" {
				t.Errorf("%s, %s: the edit of our file became %q", name, command, got)
			}
			if got := exists(filepath.Join(f.root, "pkg/a/a.go.patch")); got != (patch != "") || got && f.readRepo("pkg/a/a.go.patch") == seam != (patch == seam) {
				t.Errorf("%s, %s: what the interrupted run wrote became a patch", name, command)
			}
			f.roundTrip()
		}
	}
}

// An edit of what an interrupted run has laid is kept. Merge can take it back to
// the one or the other content that was laid, but not on to a third one.
func TestInterruptedRunWithEdit(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/z.txt", "one\n")
	f.ok("tree")
	interrupted := f.clone()
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// seam\n")
	f.ok("refresh")
	seam := f.readRepo("pkg/a/a.go.patch")
	interrupted.repo("pkg/a/a.go.patch", seam)
	interrupted.repo("pkg/ours/z.txt", "two\n")
	interrupted.interrupt("pkg/ours/z.txt", "tree")
	interrupted.replaceInTree("pkg/a/a.go", "// line 30\n", "// unsaved\n")

	onward := interrupted.clone()
	onward.repo("pkg/a/a.go.patch", strings.Replace(seam, "+// seam", "+// other", 1))
	before := onward.treeFiles()
	for _, command := range []string{"tree", "refresh", "merge"} {
		onward.fails([]string{"pkg/a/a.go: edited in the tree, and changed in the repository", "restore --source laid pkg/a/a.go"}, command)
	}
	onward.same("tree after the errors", onward.treeFiles(), before)

	for _, patch := range []string{seam, ""} {
		f := interrupted.clone()
		if patch == "" {
			f.remove(filepath.Join(f.root, "pkg/a/a.go.patch"))
		}
		f.fails([]string{"pkg/a/a.go: edited in the tree, and changed in the repository", "make merge"}, "refresh")
		f.ok("merge")
		if got := f.readTree("pkg/a/a.go"); !strings.Contains(got, "// unsaved") || strings.Contains(got, "// seam") != (patch != "") {
			t.Errorf("merged:\n%s", got)
		}
		f.ok("refresh")
		f.roundTrip()
	}
}

// Nor is what it has written or removed of our files an edit.
func TestInterruptedRunWithOtherFilesOfOurs(t *testing.T) {
	state := func(f *fixture, text string) {
		f.repo("pkg/ours/copy.txt", text)
		f.repo("pkg/ours/z.txt", text)
	}
	first := newFixture(t)
	state(first, "one\n")
	first.repo("pkg/ours/goes.go", "package ours\n")
	first.repo("pkg/ours/goes.txt", "text\n")
	first.commit()
	first.ok("tree")
	repo, tree := first.repoFiles(), first.treeFiles()

	second := first.clone()
	state(second, "two\n")
	second.git("rm", "-q", "pkg/ours/goes.go", "pkg/ours/goes.txt")
	second.repo("pkg/ours/added.txt", "added\n")
	second.interrupt("pkg/ours/z.txt", "tree")
	if got := second.readTree("pkg/ours/copy.txt"); got != "two\n" {
		t.Fatalf("the run was interrupted too early for this test: %q", got)
	}
	back := func(f *fixture) {
		f.git("reset", "-q", "--hard")
		f.remove(filepath.Join(f.root, "pkg/ours/added.txt"))
	}
	for _, command := range []string{"tree", "refresh"} {
		f := second.clone()
		back(f)
		f.ok(command)
		f.ok("refresh")
		f.same("repository after "+command, f.repoFiles(), repo)
		f.same("tree after "+command, f.treeFiles(), tree)

		f = second.clone()
		state(f, "three\n")
		f.ok(command)
		if got := f.readTree("pkg/ours/copy.txt") + f.readRepo("pkg/ours/copy.txt"); got != "three\nthree\n" {
			t.Errorf("%s with a third content: %q", command, got)
		}
		f.roundTrip()

		f = second.clone()
		state(f, "three\n")
		f.interrupt("pkg/ours/z.txt", "tree")
		back(f)
		f.ok(command)
		f.ok("refresh")
		f.same("repository after two interrupted runs and "+command, f.repoFiles(), repo)
		f.same("tree after two interrupted runs and "+command, f.treeFiles(), tree)

		f = second.clone()
		f.tree("pkg/ours/copy.txt", "two, edited\n")
		back(f)
		f.fails([]string{"pkg/ours/copy.txt: edited in the tree, and changed in the repository", "make the two equal"}, command)
		f.same("repository with an edit", f.repoFiles(), repo)
	}
}

func TestInterruptedChangeOfBase(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/z.txt", "one\n")
	f.commit()
	f.ok("tree")
	repo, tree := f.repoFiles(), f.treeFiles()
	f.addBase("2.0", map[string]string{"pkg/a/new.go": "package a // 2.0\n", "pkg/a/gone.go": "", "pkg/a/b.go": "package a // 2.0\n"})
	f.src.version = "2.0"
	f.repo("pkg/ours/z.txt", "two\n")
	f.interrupt("pkg/ours/z.txt", "tree")
	if !exists(f.inTree("pkg/a/new.go")) {
		t.Fatal("the run was interrupted too early for this test")
	}
	// As if the run had come as far as useBase.
	g := treeGit(f.inTree(".git"), f.inTree("."))
	oldBase, err := g.line("rev-parse", "base")
	if err != nil {
		t.Fatal(err)
	}
	newBase, err := g.line("for-each-ref", "--sort=-creatordate", "--format=%(objectname)", "--no-contains="+oldBase, "refs/bases/")
	if err != nil || newBase == oldBase {
		t.Fatal(newBase, err)
	}
	if _, err := g.run(nil, "update-ref", "refs/tags/base", newBase); err != nil {
		t.Fatal(err)
	}
	old := *f.src
	old.version = "1.0"
	for _, discard := range []string{"", "-discard"} {
		back := f.clone()
		back.src = &old
		back.repo("pkg/ours/z.txt", "one\n")
		args := []string{"tree"}
		if discard != "" {
			back.tree("pkg/a/new.go", "package a // edited\n")
			back.fails([]string{"run make tree"}, "refresh")
			back.fails([]string{"pkg/a/new.go: edited in the tree, and changed in the repository"}, "tree")
			args = append(args, discard)
		}
		back.ok(args...)
		back.same("tree"+discard, back.treeFiles(), tree)
		if got, err := treeGit(back.inTree(".git"), back.inTree(".")).line("rev-parse", "base"); err != nil || got != oldBase {
			t.Errorf("the tag base is %s, %v, want %s", got, err, oldBase)
		}
		back.ok("refresh")
		back.same("repository"+discard, back.repoFiles(), repo)
	}
	f.ok("tree")
	f.roundTrip()
}

func TestTwoRunsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	want := f.clone()
	want.ok("tree")
	var runs []*exec.Cmd
	for range 3 {
		cmd := f.process("tree")
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
	// Not a wrong sum, which the go command finds itself, but a missing one.
	kept := ""
	for line := range strings.Lines(f.readRepo("go.sum")) {
		if !strings.HasPrefix(line, "k8s.io/api v0.1.0 ") {
			kept += line
		}
	}
	f.repo("go.sum", kept)
	if _, err := (moduleCache{}).fetch(f.root, pins); err == nil || !strings.Contains(err.Error(), "go.sum has no line \"k8s.io/api") {
		t.Errorf("a module that go.sum does not vouch for was accepted: %v", err)
	}
}

// A module that cannot be had is for the caller of download to judge; a pinned one must be there.
func TestModuleCacheWithoutModule(t *testing.T) {
	f := newFixture(t)
	for _, v := range f.useProxy() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GO") {
			t.Setenv(name, value)
		}
	}
	wanted := []module{{Path: "k8s.io/none", Version: "v0.1.0"}, {Path: "k8s.io/api", Version: "v0.1.0"}}
	got, err := (moduleCache{}).download(f.root, wanted)
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, m := range got {
		if isThere := m.Dir != "" && m.Sum != "" && m.GoModSum != ""; isThere != (m.Path == "k8s.io/api") || isThere == (m.Error != "") {
			t.Errorf("unexpected result of a download: %+v", m)
		}
	}
	if _, err := (moduleCache{}).fetch(f.root, wanted); err == nil || !strings.Contains(err.Error(), "downloading k8s.io/none@v0.1.0: ") {
		t.Errorf("a pinned module that cannot be had: %v", err)
	}
}
