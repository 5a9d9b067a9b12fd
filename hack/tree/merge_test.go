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
