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
	"path/filepath"
	"strings"
	"testing"
)

// outgrown is a fixture with patches of several files, whose base then changes.
func outgrown(t *testing.T, changed map[string]string) *fixture {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam a\n")
	f.replaceInTree("pkg/a/b.go", "// line 7\n", "// line 7\n// seam b\n")
	f.replaceInTree("pkg/a/zz_generated.deepcopy.go", "// line 3\n", "// line 3\n// seam zz\n")
	f.ok("refresh")
	f.repo("pkg/a/a.go.patch", strings.Replace(f.readRepo("pkg/a/a.go.patch"), newHeader, "Why: a\nGate: A\n\n", 1))
	f.addBase("2.0", changed)
	f.src.version = "2.0"
	return f
}

func editedBase(p, old, new string) string {
	return strings.Replace(baseFiles()[mainModule][p], old, new, 1)
}

func TestBaseChangeWithoutConflict(t *testing.T) {
	f := outgrown(t, map[string]string{"pkg/a/gone.go": "", "pkg/a/repeated.go": "package a // 2.0\n", "pkg/new/new.go": "package new\n"})
	f.ok("tree")
	if exists(f.inTree("pkg/a/gone.go")) || f.readTree("pkg/a/repeated.go") != "package a // 2.0\n" || !exists(f.inTree("pkg/new/new.go")) {
		t.Error("the tree does not have the new base")
	}
	g := treeGit(f.inTree(".git"), f.inTree("."))
	if out, err := g.line("diff", "--stat", "--name-only", "base"); err != nil || out != "pkg/a/a.go\npkg/a/b.go\npkg/a/zz_generated.deepcopy.go" {
		t.Errorf("git diff base: %s, %v", out, err)
	}
	if f.src.fetches != 2 {
		t.Errorf("%d fetches, want 2", f.src.fetches)
	}
	f.roundTrip()
}

func TestMergeWithoutConflict(t *testing.T) {
	f := outgrown(t, map[string]string{"pkg/a/a.go": editedBase("pkg/a/a.go", "// line 30\n", "// upstream\n")})
	before := f.treeFiles()
	f.fails([]string{"pkg/a/a.go.patch: was made against another version", "make merge"}, "tree")
	f.same("tree after the error", f.treeFiles(), before)
	f.fails([]string{"run make tree"}, "refresh")
	f.ok("merge")
	if !strings.Contains(f.out, "merged pkg/a/a.go") {
		t.Errorf("output: %s", f.out)
	}
	f.ok("tree") // does not undo the merge
	f.ok("merge")
	f.ok("refresh")
	patch := f.readRepo("pkg/a/a.go.patch")
	if !strings.HasPrefix(patch, "Why: a\nGate: A\n\n") || !strings.Contains(patch, "+// seam a\n") || strings.Contains(patch, "upstream") {
		t.Errorf("patch after the merge:\n%s", patch)
	}
	f.roundTrip()
}

func TestMergeWithConflict(t *testing.T) {
	f := outgrown(t, map[string]string{
		"pkg/a/a.go":                     editedBase("pkg/a/a.go", "// line 7\n", "// line 7\n// upstream\n"),
		"pkg/a/zz_generated.deepcopy.go": editedBase("pkg/a/zz_generated.deepcopy.go", "// line 3\n", "// line 3\n// upstream\n"),
	})
	f.fails([]string{"conflict markers are left", "merge: pkg/a/a.go"}, "merge")
	f.fails([]string{"pkg/a/a.go: has conflict markers"}, "refresh")
	f.fails([]string{"pkg/a/a.go: has conflict markers"}, "verify")
	if got := f.readTree("pkg/a/zz_generated.deepcopy.go"); conflictMarkers.MatchString(got) || !strings.Contains(got, "// upstream") {
		t.Errorf("generated code should be upstream's until it is generated again:\n%s", got)
	}
	f.tree("pkg/a/a.go", editedBase("pkg/a/a.go", "// line 7\n", "// line 7\n// resolved\n// upstream\n"))
	f.ok("refresh")
	if patch := f.readRepo("pkg/a/a.go.patch"); !strings.Contains(patch, "+// resolved\n") || strings.Contains(patch, "+// upstream") {
		t.Errorf("patch after the merge:\n%s", patch)
	}
	f.roundTrip()
}

func TestMergeAgain(t *testing.T) {
	f := outgrown(t, map[string]string{"pkg/a/a.go": editedBase("pkg/a/a.go", "// line 7\n", "// line 7\n// upstream\n")})
	f.fails([]string{"conflict markers"}, "merge")
	f.tree("pkg/a/a.go", "a failed attempt\n")
	f.ok("tree") // does not undo the attempt
	f.ok("tree", "-discard")
	if got := f.readTree("pkg/a/a.go"); !conflictMarkers.MatchString(got) {
		t.Errorf("the merge was not redone:\n%s", got)
	}
}

func TestMergeNeedsOldBase(t *testing.T) {
	f := outgrown(t, map[string]string{"pkg/a/a.go": editedBase("pkg/a/a.go", "// line 30\n", "// upstream\n")})
	if err := os.RemoveAll(filepath.Join(f.root, "_output")); err != nil {
		t.Fatal(err)
	}
	f.fails([]string{"was made against another version"}, "tree")
	f.fails([]string{"put the old version into go.mod, run make tree"}, "merge")
	// What the message says works.
	f.src.version = "1.0"
	f.ok("tree")
	f.src.version = "2.0"
	f.ok("merge")
	f.ok("refresh")
	f.roundTrip()
}

func TestMergeUpstreamRemovedTheFile(t *testing.T) {
	f := outgrown(t, map[string]string{"pkg/a/a.go": "", "pkg/a/b.go": editedBase("pkg/a/b.go", "// line 20\n", "// upstream\n")})
	f.fails([]string{"pkg/a/a.go.patch: the base has no file pkg/a/a.go"}, "merge")
	f.remove(filepath.Join(f.root, "pkg/a/a.go.patch"))
	f.ok("merge")
	f.ok("refresh")
	f.roundTrip()
}

func TestMergeKeepsUnsavedEdits(t *testing.T) {
	f := outgrown(t, map[string]string{"pkg/a/a.go": editedBase("pkg/a/a.go", "// line 30\n", "// upstream\n")})
	f.replaceInTree("pkg/a/a.go", "// line 20\n", "// unsaved\n")
	before := f.treeFiles()
	f.fails([]string{"pkg/a/a.go.patch: was made against another version"}, "tree")
	f.same("tree", f.treeFiles(), before)
	f.ok("merge")
	got := f.readTree("pkg/a/a.go")
	for _, want := range []string{"// seam a\n", "// unsaved\n", "// upstream\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("merge lost %q:\n%s", want, got)
		}
	}
	f.ok("refresh")
	f.roundTrip()
}

func TestMergeOfEditWithConflict(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	f.repo("pkg/a/a.go.patch", strings.Replace(f.readRepo("pkg/a/a.go.patch"), "+// seam", "+// repository", 1))
	f.replaceInTree("pkg/a/a.go", "// seam\n", "// tree\n")
	f.fails([]string{"conflict markers are left", "merge: pkg/a/a.go"}, "merge")
	f.fails([]string{"pkg/a/a.go: has conflict markers"}, "refresh")
	f.tree("pkg/a/a.go", editedBase("pkg/a/a.go", "// line 7\n", "// line 7\n// resolved\n"))
	f.ok("refresh")
	if patch := f.readRepo("pkg/a/a.go.patch"); !strings.Contains(patch, "+// resolved\n") {
		t.Errorf("patch after the merge:\n%s", patch)
	}
	f.roundTrip()
}

func TestMergeKeepsMode(t *testing.T) {
	for _, side := range []string{"repository", "tree"} {
		f := newFixture(t)
		f.ok("tree")
		f.replaceInTree("pkg/a/a.go", "// line 7\n", "// seam\n")
		f.ok("refresh")
		before := f.clone()
		f.replaceInTree("pkg/a/a.go", "// line 20\n", "// more\n")
		other := before
		if side == "repository" {
			other = f
		}
		if err := os.Chmod(other.inTree("pkg/a/a.go"), 0o755); err != nil {
			t.Fatal(err)
		}
		f.ok("refresh")
		before.repo("pkg/a/a.go.patch", f.readRepo("pkg/a/a.go.patch"))
		before.replaceInTree("pkg/a/a.go", "// line 35\n", "// unsaved\n")
		before.ok("merge")
		c, err := readContent(before.inTree("pkg/a/a.go"))
		if got := string(c.data); err != nil || c.mode != modeExec || !strings.Contains(got, "// more\n") || !strings.Contains(got, "// unsaved\n") {
			t.Errorf("mode changed in the %s: the merge has mode %s, %v:\n%s", side, c.mode, err, got)
		}
		before.ok("refresh")
		before.roundTrip()
	}
}

func TestMergeRefusesBinaryConflict(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.tree("pkg/a/bin.dat", "\x00one\n")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// one\n")
	f.ok("refresh")
	before := f.clone()
	f.tree("pkg/a/bin.dat", "\x00two\n")
	f.replaceInTree("pkg/a/a.go", "// one\n", "// two\n")
	f.ok("refresh")
	for _, p := range []string{"pkg/a/a.go.patch", "pkg/a/bin.dat.patch"} {
		before.repo(p, f.readRepo(p))
	}
	before.tree("pkg/a/bin.dat", "\x00three\n")
	want := before.snapshot(before.root, true)
	tree, state := before.treeFiles(), before.readTree(".git/tree-state.json")
	before.fails([]string{"pkg/a/bin.dat: cannot be merged", "keep a copy elsewhere", "restore --source laid pkg/a/bin.dat"}, "merge")
	before.same("repository", before.snapshot(before.root, true), want)
	before.same("tree", before.treeFiles(), tree)
	if before.readTree(".git/tree-state.json") != state {
		t.Error("the refused merge passes for an interrupted run")
	}
	// What the message says works.
	if _, err := treeGit(before.inTree(".git"), before.inTree(".")).run(nil, "restore", "--source", "laid", "pkg/a/bin.dat"); err != nil {
		t.Fatal(err)
	}
	before.ok("tree")
	before.same("tree", before.treeFiles(), f.treeFiles())

	// The same for a patch of a binary file that the base has outgrown.
	f.addBase("2.0", map[string]string{"pkg/a/bin.dat": "\x00upstream\n"})
	f.src.version = "2.0"
	f.fails([]string{"pkg/a/bin.dat.patch: cannot be merged", "keep a copy elsewhere, remove it"}, "merge")
	f.remove(filepath.Join(f.root, "pkg/a/bin.dat.patch"))
	f.ok("merge")
	f.tree("pkg/a/bin.dat", "\x00three\n")
	f.ok("refresh")
	f.roundTrip()
}
