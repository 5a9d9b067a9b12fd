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
	"strings"
	"testing"
)

func TestTreeMaterialise(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.repo("hack/tree/main.go", "package main\n")
	f.repo("docs/guide.md", "for users\n")
	f.ok("tree")

	if got := f.readTree("staging/src/k8s.io/api/types.go"); got != "package api\n" {
		t.Errorf("staging module: %q", got)
	}
	if got := f.readTree("pkg/a/crlf.txt"); got != crlfText {
		t.Errorf("line ends changed: %q", got)
	}
	if got := f.readTree("go.work"); strings.Contains(got, "sample-cli-plugin") || !strings.Contains(got, "k8s.io/streaming") {
		t.Errorf("go.work: %s", got)
	}
	if f.readRepo("go.work.sum") != f.readTree("go.work.sum") {
		t.Error("go.work.sum was not copied to the repository")
	}
	info, err := os.Stat(f.inTree("hack/run.sh"))
	if err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("hack/run.sh: %v, %v: want it executable", info.Mode(), err)
	}
	link, err := os.Readlink(f.inTree("pkg/ours/x.go"))
	if want := "../../../../pkg/ours/x.go"; err != nil || link != want {
		t.Errorf("link is %q, %v, want %q", link, err, want)
	}
	if got := f.readTree("pkg/ours/x.go"); got != "package ours\n" {
		t.Errorf("read through the link: %q", got)
	}
	for _, p := range []string{"vendor", "hack/tree", "docs/guide.md"} {
		if exists(f.inTree(p)) {
			t.Errorf("%s should not be in the tree", p)
		}
	}
	if !exists(f.inTree("hack/tools")) {
		t.Error("hack/tools is missing")
	}
}

// TestTreeHasTheLibrary: the tree has the package of the library's module in client-go, and nothing else of it.
func TestTreeHasTheLibrary(t *testing.T) {
	f := newFixture(t)
	for _, file := range []string{"go.mod", "x.go", "gone.go", "sample/main.go"} {
		f.repo("evictions/"+file, file)
	}
	f.git("add", "-A")
	f.commit()
	f.ok("tree")
	const place = "staging/src/k8s.io/client-go/tools/evictions/"
	if link, err := os.Readlink(f.inTree(place + "x.go")); err != nil || !strings.HasSuffix(link, "../evictions/x.go") || f.readTree(place+"x.go") != "x.go" {
		t.Errorf("link is %q, %v", link, err)
	}
	for _, file := range []string{"evictions", place + "go.mod", place + "sample"} {
		if exists(f.inTree(file)) {
			t.Errorf("%s should not be in the tree", file)
		}
	}
	f.tree(place+"new.go", "new")
	f.remove(f.inTree(place + "gone.go"))
	f.ok("refresh")
	if f.readRepo("evictions/new.go") != "new" || exists(filepath.Join(f.root, "evictions/gone.go")) || exists(filepath.Join(f.root, "staging")) {
		t.Errorf("the repository has %v", f.repoFiles())
	}
	before := f.snapshot(f.inTree("."), true)
	f.ok("tree")
	f.same("tree", f.snapshot(f.inTree("."), true), before)
}

func TestTreeGitIsClean(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	cmd := exec.Command("git", "status", "--porcelain")
	cmd.Dir, cmd.Env = f.inTree("."), gitIn("").env
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("git status in the tree: %v: %s", err, out)
	}
}

func TestTreeSecondRunChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	state := f.inTree(".git/tree-state.json")
	before, info := f.snapshot(f.inTree("."), true), stat(t, state)
	f.ok("tree")
	f.same("tree", f.snapshot(f.inTree("."), true), before)
	if !stat(t, state).ModTime().Equal(info.ModTime()) {
		t.Error("the state was written again")
	}
	if !strings.Contains(f.out, "; 0 changed") || f.src.fetches != 1 {
		t.Errorf("%d fetches; output: %s", f.src.fetches, f.out)
	}
}

func stat(t *testing.T, file string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestTreeFollowsRepository(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/deep/x.go", "package deep\n")
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	patch := f.readRepo("pkg/a/a.go.patch")

	f.repo("pkg/a/a.go.patch", strings.Replace(patch, "+// seam", "+// another seam", 1))
	f.repo("pkg/ours/y.go", "package ours\n")
	f.remove(filepath.Join(f.root, "pkg/ours/deep/x.go"))
	f.ok("tree")
	if got := f.readTree("pkg/a/a.go"); !strings.Contains(got, "// another seam\n") {
		t.Errorf("the changed patch was not applied: %s", got)
	}
	if !exists(f.inTree("pkg/ours/y.go")) || exists(f.inTree("pkg/ours/deep")) {
		t.Error("links do not follow the repository")
	}

	f.remove(filepath.Join(f.root, "pkg/a/a.go.patch"))
	f.ok("tree")
	if got := f.readTree("pkg/a/a.go"); strings.Contains(got, "seam") {
		t.Errorf("the removed patch is still applied: %s", got)
	}
}

func TestTreeRefusesOurFileThatExistsUpstream(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/a/a.go", "package a\n")
	f.repo("pkg/a/b.go/x.go", "package x\n")
	f.fails([]string{"pkg/a/a.go: exists upstream", "pkg/a/b.go/x.go: upstream has a file pkg/a/b.go"}, "tree")
}

func TestTreeRefusesBadPatches(t *testing.T) {
	good := func(f *fixture) string {
		f.ok("tree")
		f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
		f.ok("refresh")
		return f.readRepo("pkg/a/a.go.patch")
	}
	tests := []struct {
		name   string
		break_ func(f *fixture, patch string)
		words  []string
	}{
		{"wrong context", func(f *fixture, p string) {
			f.repo("pkg/a/a.go.patch", strings.Replace(p, " // line 8", " // line eight", 1))
		}, []string{"pkg/a/a.go.patch: does not apply to pkg/a/a.go", "patch failed: pkg/a/a.go:9", "restore it, or remove it"}},
		{"other version", func(f *fixture, p string) {
			at := strings.Index(p, "\nindex ") + len("\nindex ")
			f.repo("pkg/a/a.go.patch", p[:at]+strings.Repeat("1", 40)+p[at+40:])
		}, []string{"pkg/a/a.go.patch: was made against another version of pkg/a/a.go", "make merge"}},
		{"missing target", func(f *fixture, p string) {
			f.remove(filepath.Join(f.root, "pkg/a/a.go.patch"))
			f.repo("pkg/a/missing.go.patch", strings.ReplaceAll(p, "a/a.go", "a/missing.go"))
		}, []string{"pkg/a/missing.go.patch: the base has no file pkg/a/missing.go"}},
		{"wrong name", func(f *fixture, p string) {
			f.repo("pkg/a/b.go.patch", p)
		}, []string{"pkg/a/b.go.patch: changes pkg/a/a.go, but by its name it is the patch of pkg/a/b.go"}},
		{"no blob ids", func(f *fixture, p string) {
			at := strings.Index(p, "\nindex ")
			f.repo("pkg/a/a.go.patch", p[:at]+p[strings.Index(p, "\n--- "):])
		}, []string{"pkg/a/a.go.patch: ", "an index line with full blob ids"}},
		{"two diffs", func(f *fixture, p string) {
			f.repo("pkg/a/a.go.patch", p+p[strings.Index(p, "diff --git"):])
		}, []string{"pkg/a/a.go.patch: has 2 diffs"}},
		{"new file", func(f *fixture, p string) {
			f.repo("pkg/a/new.go.patch", "diff --git a/pkg/a/new.go b/pkg/a/new.go\nnew file mode 100644\nindex "+strings.Repeat("0", 40)+".."+strings.Repeat("1", 40)+"\n--- /dev/null\n+++ b/pkg/a/new.go\n@@ -0,0 +1 @@\n+x\n")
		}, []string{"pkg/a/new.go.patch: ", "cannot add, remove or rename a file"}},
		{"deleted file", func(f *fixture, p string) {
			f.repo("pkg/a/a.go.patch", strings.Replace(p, "\nindex ", "\ndeleted file mode 100644\nindex ", 1))
		}, []string{"pkg/a/a.go.patch: ", "cannot add, remove or rename a file"}},
		{"renamed file", func(f *fixture, p string) {
			f.repo("pkg/a/a.go.patch", strings.Replace(p, "b/pkg/a/a.go", "b/pkg/b/a.go", 1))
		}, []string{"pkg/a/a.go.patch: ", "cannot add, remove or rename a file"}},
		{"own and generated", func(f *fixture, p string) {
			other := strings.Replace(p, "+// seam", "+// other", 1)
			at := strings.Index(other, "..") + 2
			f.repo(generatedPatch, other[:at]+strings.Repeat("1", 40)+other[at+40:])
		}, []string{"pkg/a/a.go: is changed by both hack/generated.patch and pkg/a/a.go.patch: remove one"}},
		{"work file", func(f *fixture, p string) {
			f.repo("go.work.patch", strings.ReplaceAll(p, "pkg/a/a.go", "go.work"))
		}, []string{"go.work is written by the tool"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tt.break_(f, good(f))
			before := f.treeFiles()
			f.fails(tt.words, "tree")
			f.same("tree after the error", f.treeFiles(), before)
			// Nor does a refresh touch a repository that is not in order.
			repo := f.repoFiles()
			f.fails(tt.words, "refresh")
			f.same("repository after the error", f.repoFiles(), repo)
		})
	}
}

func TestTreeFindsTheOnePatchThatFails(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	for _, p := range []string{"a.go", "b.go", "gone.go", "types_swagger_doc_generated.go", "repeated.go"} {
		f.replaceInTree("pkg/a/"+p, "package a\n", "package a // seam\n")
	}
	f.ok("refresh")
	f.repo("pkg/a/b.go.patch", strings.Replace(f.readRepo("pkg/a/b.go.patch"), "-package a", "-package wrong", 1))
	f.fails([]string{"pkg/a/b.go.patch: does not apply"}, "tree")
	if n := strings.Count(f.err, "\n"); n != 1 {
		t.Errorf("%d lines of errors, want one:\n%s", n, f.err)
	}
	// A tree made from nothing ends as the plain base, and recovers.
	if err := os.RemoveAll(f.inTree(".")); err != nil {
		t.Fatal(err)
	}
	f.fails([]string{"pkg/a/b.go.patch: does not apply"}, "tree")
	f.remove(filepath.Join(f.root, "pkg/a/b.go.patch"))
	f.ok("tree")
	if f.src.fetches != 2 {
		t.Errorf("%d fetches, want 2: the base should have been kept", f.src.fetches)
	}
}

func TestTreeKeepsUnsavedEdits(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")

	// An edit that the repository knows nothing of is left alone.
	f.replaceInTree("pkg/a/a.go", "// line 30\n", "// unsaved\n")
	f.ok("tree")
	if !strings.Contains(f.readTree("pkg/a/a.go"), "// unsaved\n") {
		t.Fatal("the edit was overwritten")
	}

	// When the patch changes too, there is no telling which one is meant.
	f.repo("pkg/a/a.go.patch", strings.Replace(f.readRepo("pkg/a/a.go.patch"), "+// seam", "+// changed seam", 1))
	before := f.treeFiles()
	f.fails([]string{"pkg/a/a.go: edited in the tree, and changed in the repository", "make merge", "-discard"}, "tree")
	f.fails([]string{"pkg/a/a.go: edited in the tree, and changed in the repository"}, "refresh")
	f.same("tree", f.treeFiles(), before)

	f.ok("merge")
	got := f.readTree("pkg/a/a.go")
	if !strings.Contains(got, "// changed seam\n") || !strings.Contains(got, "// unsaved\n") {
		t.Errorf("merge lost a change:\n%s", got)
	}
	f.ok("refresh")
	f.roundTrip()
}

func TestTreeDiscard(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.ok("tree")
	want := f.treeFiles()
	f.tree("pkg/a/a.go", "scratch\n")
	f.tree("pkg/a/b.go", "scratch\n")
	f.remove(f.inTree("pkg/ours/x.go"))
	f.remove(f.inTree("pkg/a/crlf.txt"))
	f.ok("tree", "-discard")
	f.same("tree", f.treeFiles(), want)
}

func TestTreeLaysOnlyGoAsLinks(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/emb/testdata/sub/ours.yaml", "ours: 1\n")
	f.repo("pkg/own/own.go", "package own\n")
	f.ok("tree")
	for p, want := range map[string]string{"pkg/emb/testdata/sub/ours.yaml": modeFile, "pkg/own/own.go": modeLink} {
		if c, err := readContent(f.inTree(p)); err != nil || c.mode != want {
			t.Errorf("%s has mode %s, %v, want %s", p, c.mode, err, want)
		}
	}
	// A change on either side reaches the other one.
	f.repo("pkg/emb/testdata/sub/ours.yaml", "ours: 2\n")
	f.ok("tree")
	if got := f.readTree("pkg/emb/testdata/sub/ours.yaml"); got != "ours: 2\n" {
		t.Errorf("the copy is %q", got)
	}
	f.tree("pkg/emb/testdata/sub/ours.yaml", "ours: 3\n")
	f.ok("refresh")
	if got := f.readRepo("pkg/emb/testdata/sub/ours.yaml"); got != "ours: 3\n" {
		t.Errorf("the repository has %q", got)
	}
	f.roundTrip()
}

// A link that leads nowhere holds no edit.
func TestTreeMendsLinks(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.repo("pkg/ours/x.txt", "text\n")
	f.ok("tree")
	want := f.treeFiles()
	for _, p := range []string{"pkg/ours/x.go", "pkg/ours/x.txt", "pkg/a/a.go"} {
		f.remove(f.inTree(p))
		if err := os.Symlink("elsewhere", f.inTree(p)); err != nil {
			t.Fatal(err)
		}
	}
	f.ok("tree")
	f.same("tree", f.treeFiles(), want)
}

func TestTreeRefusesLinks(t *testing.T) {
	f := newFixture(t)
	for _, p := range []string{"a.go", "b.go", "c.txt"} {
		f.repo("pkg/ours/"+p, "package ours // "+p+"\n")
	}
	f.commit()
	f.ok("tree")
	want, repo := f.treeFiles(), f.repoFiles()
	other := filepath.Join(f.t.TempDir(), "other.go")
	f.write(other, "package other\n")
	for _, p := range []string{"pkg/a/a.go", "pkg/ours/a.go", "pkg/ours/c.txt"} {
		f.remove(f.inTree(p))
		if err := os.Symlink(other, f.inTree(p)); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"tree", "refresh", "merge", "verify"} {
			f.fails([]string{p + ": is now a link to " + other, "put a regular file there"}, command)
		}
		f.ok("tree", "-discard")
		f.same("tree", f.treeFiles(), want)
	}
	// One of our links moved over another one, and then in the repository too.
	f.rename(f.inTree("pkg/ours/b.go"), f.inTree("pkg/ours/a.go"))
	moved := f.treeFiles()
	for _, command := range []string{"tree", "refresh"} {
		f.fails([]string{"pkg/ours/a.go: is now a link to ../../../../pkg/ours/b.go", "move our files in the repository"}, command)
	}
	f.same("tree after the errors", f.treeFiles(), moved)
	f.same("repository after the errors", f.repoFiles(), repo)
	f.git("mv", "-f", "pkg/ours/b.go", "pkg/ours/a.go")
	f.ok("tree")
	f.ok("refresh")
	if got := f.readRepo("pkg/ours/a.go"); got != "package ours // b.go\n" {
		t.Errorf("the moved file is %q", got)
	}
	f.roundTrip()
}

// A path that was ours and is upstream's now, or the reverse, is one file.
func TestTreePathChangesSides(t *testing.T) {
	paths := []string{"pkg/x/x.go", "pkg/x/x.txt", "pkg/x/edited.txt"}
	fixtures := map[string]*fixture{"ours": newFixture(t), "upstream's": newFixture(t)}
	for from, f := range fixtures {
		upstream, other := map[string]string{}, "2.0"
		for _, p := range paths {
			upstream[p] = "package upstream\n"
			if from == "ours" {
				f.repo(p, "package ours\n")
			}
		}
		if from == "upstream's" {
			f.addBase("1.0", upstream)
			upstream = map[string]string{}
		}
		f.commit()
		f.addBase(other, upstream)
		f.ok("tree")
		f.src.version = other
		f.tree("pkg/x/edited.txt", "edited\n")
		if from == "ours" {
			f.fails([]string{"pkg/x/x.go: exists upstream", "pkg/x/x.txt: exists upstream"}, "tree")
			f.git("rm", "-q", "-r", "pkg/x")
		} else {
			for _, p := range paths {
				f.repo(p, "package ours\n")
			}
		}
		repo := f.repoFiles()
		f.fails([]string{"pkg/x/edited.txt: edited in the tree, and changed in the repository"}, "tree")
		f.ok("tree", "-discard")
		want := "package upstream\n"
		if from == "upstream's" {
			want = "package ours\n"
		}
		for _, p := range paths {
			if got := f.readTree(p); got != want {
				t.Errorf("%s was %s and is %q, want %q", p, from, got, want)
			}
		}
		f.ok("refresh")
		repo["go.work.sum"] = f.repoFiles()["go.work.sum"]
		f.same("repository", f.repoFiles(), repo)
		f.roundTrip()
	}
}

func TestTreeCopies(t *testing.T) {
	f := newFixture(t)
	for _, p := range []string{"x", "y", "z"} {
		f.repo("pkg/ours/"+p+".go", "package ours // "+p+"\n")
	}
	f.ok("tree")
	links := f.treeFiles()
	f.ok("tree", "-copies")
	if c, err := readContent(f.inTree("pkg/ours/x.go")); err != nil || c.mode != modeFile {
		t.Fatalf("mode %s, %v, want a copy", c.mode, err)
	}
	f.tree("pkg/ours/x.go", "package ours // tree\n")
	f.repo("pkg/ours/y.go", "package ours // repository\n")
	f.tree("pkg/ours/new.go", "package ours // new\n")
	f.ok("refresh")
	if got := f.readRepo("pkg/ours/x.go"); got != "package ours // tree\n" {
		t.Errorf("edit of the copy: the repository has %q", got)
	}
	if got := f.readTree("pkg/ours/y.go"); got != "package ours // repository\n" {
		t.Errorf("edit in the repository: the copy is %q", got)
	}

	f.tree("pkg/ours/z.go", "package ours // tree\n")
	f.repo("pkg/ours/z.go", "package ours // repository\n")
	f.fails([]string{"pkg/ours/z.go: edited in the tree, and changed in the repository"}, "tree", "-copies")
	f.fails([]string{"pkg/ours/z.go: edited in the tree, and changed in the repository"}, "tree")
	f.fails([]string{"pkg/ours/z.go: edited in the tree, and changed in the repository"}, "refresh")
	f.repo("pkg/ours/z.go", "package ours // z\n")

	// An unsaved edit survives the way back to links, and is written back.
	f.ok("tree")
	if got := f.readTree("pkg/ours/z.go"); got != "package ours // tree\n" {
		t.Fatalf("the edit is lost: %q", got)
	}
	f.ok("refresh")
	if got := f.readRepo("pkg/ours/z.go"); got != "package ours // tree\n" {
		t.Errorf("the repository has %q", got)
	}
	f.remove(filepath.Join(f.root, "pkg/ours/new.go"))
	f.ok("tree")
	f.same("tree with links", f.treeFiles(), links)
}

func TestUsageErrors(t *testing.T) {
	f := newFixture(t)
	for _, args := range [][]string{{}, {"frobnicate"}, {"tree", "-nonsense"}, {"refresh", "extra"}, {"refresh", "-discard"}, {"tree", "path"}} {
		if status := f.run(args...); status != 2 {
			t.Errorf("%q: exit status %d, want %d", args, status, 2)
		}
	}
}

func TestTreeRefusesForeignDirectory(t *testing.T) {
	f := newFixture(t)
	f.tree("pkg/x.go", "mine\n")
	f.fails([]string{"was not made by this version of hack/tree"}, "tree")
	f.fails([]string{"was not made by this version of hack/tree"}, "refresh")
	if f.readTree("pkg/x.go") != "mine\n" {
		t.Error("the file is gone")
	}
}

func TestTreeOfOtherVersion(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.repo("pkg/ours/x.txt", "text\n")
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// seam\n")
	f.tree("pkg/ours/x.txt", "edited\n")
	// Version 1 had other types.
	f.tree(".git/tree-state.json", `{"version": 1, "tree": "abc", "ours": {"pkg/ours/x.go": {"sums": ["abc"]}}}`)
	for _, command := range []string{"tree", "refresh", "merge", "verify"} {
		f.fails([]string{"its version is 1 instead of", "mv kubernetes kubernetes.old", "diff -r -x .git kubernetes kubernetes.old"}, command)
	}
	// What the message says works.
	f.rename(f.inTree("."), f.inTree(".")+".old")
	f.ok("tree")
	cmd := exec.Command("diff", "-r", "-q", "-x", ".git", "kubernetes", "kubernetes.old")
	cmd.Dir = filepath.Join(f.root, "_output")
	want := "Files kubernetes/pkg/a/a.go and kubernetes.old/pkg/a/a.go differ\nFiles kubernetes/pkg/ours/x.txt and kubernetes.old/pkg/ours/x.txt differ\n"
	if out, _ := cmd.CombinedOutput(); string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}
