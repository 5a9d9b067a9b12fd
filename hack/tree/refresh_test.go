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

func TestRefreshWritesPatch(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	base := blobID([]byte(baseFiles()[mainModule]["pkg/a/a.go"]))
	want := "Why:\nGate:\n\ndiff --git a/pkg/a/a.go b/pkg/a/a.go\nindex " + base + ".." + blobID([]byte(f.readTree("pkg/a/a.go"))) +
		" 100644\n--- a/pkg/a/a.go\n+++ b/pkg/a/a.go\n@@ -9,2 +9,3 @@ package a\n // line 7\n+// seam\n // line 8\n"
	if got := f.readRepo("pkg/a/a.go.patch"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	f.roundTrip()
}

func TestRefreshKeepsHeaderAndNormalises(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	normal := strings.Replace(f.readRepo("pkg/a/a.go.patch"), newHeader, "Why: a reason\nGate: none\n\n", 1)
	// The same edit with more context, as a person may have made it.
	wide := strings.Replace(normal, "@@ -9,2 +9,3 @@ package a\n // line 7", "@@ -8,3 +8,4 @@ package a\n // line 6\n // line 7", 1)
	f.repo("pkg/a/a.go.patch", wide)
	f.fails([]string{"make refresh would write pkg/a/a.go.patch"}, "verify")
	f.ok("refresh")
	if got := f.readRepo("pkg/a/a.go.patch"); got != normal {
		t.Errorf("got\n%s\nwant\n%s", got, normal)
	}
	f.replaceInTree("pkg/a/a.go", "// seam\n", "")
	f.ok("refresh")
	if exists(filepath.Join(f.root, "pkg/a/a.go.patch")) {
		t.Error("the edit is gone, its patch is not")
	}
	f.roundTrip()
}

func TestRefreshUnusualContent(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.tree("pkg/a/crlf.txt", strings.Replace(crlfText, "two", "2", 1))
	f.tree("pkg/a/bin.dat", "\x00\x01other\xfe\n")
	f.tree("pkg/a/b.go", strings.TrimSuffix(f.readTree("pkg/a/b.go"), "\n")+" without a last newline")
	f.tree("pkg/a/gone.go", "") // empty, but there
	if err := os.Chmod(f.inTree("pkg/a/a.go"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Two of twenty blocks that look alike.
	blocks := strings.Split(f.readTree("pkg/a/repeated.go"), "\treturn\n")
	blocks[5] += "\tseam5()\n"
	blocks[11] += "\tseam11()\n"
	f.tree("pkg/a/repeated.go", strings.Join(blocks, "\treturn\n"))
	f.ok("refresh")
	if got := f.readRepo("pkg/a/crlf.txt.patch"); !strings.Contains(got, "-two\r\n+2\r\n") {
		t.Errorf("line ends are lost: %q", got)
	}
	f.roundTrip()
}

func TestRefreshGenerated(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	generated := []string{"pkg/a/zz_generated.deepcopy.go", "staging/src/k8s.io/api/generated.pb.go", "pkg/a/types_swagger_doc_generated.go"}
	for _, p := range generated {
		f.tree(p, f.readTree(p)+"// more\n")
	}
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// seam\n")
	f.ok("refresh")
	patch := f.readRepo(generatedPatch)
	for _, p := range generated {
		if exists(filepath.Join(f.root, p+".patch")) || strings.Count(patch, "diff --git a/"+p+" ") != 1 {
			t.Errorf("%s: its edit should be in the generated patch, and only there", p)
		}
	}
	if strings.Contains(patch, "pkg/a/a.go") || strings.Contains(patch, "Why:") {
		t.Errorf("the generated patch has what does not belong there:\n%s", patch)
	}
	f.roundTrip()

	// What was filed under the wrong one of the two moves.
	f.remove(filepath.Join(f.root, generatedPatch))
	for _, section := range strings.SplitAfter(patch, "// more\n") {
		if strings.Contains(section, "pkg/a/types_swagger_doc_generated.go") {
			f.repo("pkg/a/types_swagger_doc_generated.go.patch", newHeader+section)
		}
	}
	f.ok("tree")
	f.ok("refresh")
	if exists(filepath.Join(f.root, "pkg/a/types_swagger_doc_generated.go.patch")) || !strings.Contains(f.readRepo(generatedPatch), "pkg/a/types_swagger_doc_generated.go") {
		t.Error("the edit did not move to the generated patch")
	}
}

func TestRefreshNewFiles(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.tree("pkg/ours/new.go", "package ours\n")
	f.tree("hack/ours.sh", "#!/bin/sh\n")
	if err := os.Chmod(f.inTree("hack/ours.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"pkg/a/a.go.orig", "pkg/a/a.go.rej", "pkg/a/b.go.tree-tmp", "x.log", "_output/bin/x", "third_party/etcd/etcd", "hack/tools/x", "pkg/.go-build/x"} {
		f.tree(p, "junk\n")
	}
	f.tree("go.work.sum", "changed by the go command\n")
	repo := f.repoFiles()
	f.ok("refresh")
	repo["pkg/ours/new.go"], repo["hack/ours.sh"] = modeFile+" package ours\n", modeExec+" #!/bin/sh\n"
	repo["go.work.sum"] = modeFile + " changed by the go command\n"
	f.same("repository", f.repoFiles(), repo)
	if link, err := os.Readlink(f.inTree("pkg/ours/new.go")); err != nil || link != "../../../../pkg/ours/new.go" {
		t.Errorf("link %q, %v", link, err)
	}
	f.ok("refresh")
	f.same("repository after the second refresh", f.repoFiles(), repo)
}

func TestRefreshFindsCommittedFiles(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.tree("pkg/ours/new.go", "package ours\n")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// seam\n")
	g := treeGit(f.inTree(".git"), f.inTree("."))
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "mine"}} {
		if _, err := g.run(nil, args...); err != nil {
			t.Fatal(err)
		}
	}
	f.ok("refresh")
	if !exists(filepath.Join(f.root, "pkg/a/a.go.patch")) || f.readRepo("pkg/ours/new.go") != "package ours\n" {
		t.Error("what was committed in the tree was not written back")
	}
	f.roundTrip()
}

func TestRefreshRefusesNewFiles(t *testing.T) {
	tests := []struct{ name, path, content, word string }{
		{"outside our directories", "build/x.txt", "x\n", "build/x.txt: is new, but only files below"},
		{"at the top", "x.txt", "x\n", "x.txt: is new, but only files below"},
		{"ignored by the repository", "pkg/x.secret", "x\n", "pkg/x.secret: is new, but the repository's .gitignore"},
		{"a patch", "pkg/x.patch", "x\n", "pkg/x.patch: is new, but only files below"},
		{"a copy of upstream's", "pkg/x/copy.go", baseFiles()[mainModule]["pkg/a/a.go"], "pkg/x/copy.go: is a copy of upstream's pkg/a/a.go"},
		{"with conflict markers", "pkg/x/x.go", "<<<<<<< a\n=======\n>>>>>>> b\n", "pkg/x/x.go: has conflict markers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.ok("tree")
			f.tree(tt.path, tt.content)
			repo, tree := f.repoFiles(), f.treeFiles()
			f.fails([]string{tt.word}, "refresh")
			f.same("repository", f.repoFiles(), repo)
			f.same("tree", f.treeFiles(), tree)
		})
	}
}

func TestRefreshRefusesRemovedUpstreamFile(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/b.go", "// line 7\n", "// seam\n")
	f.ok("refresh")
	repo, want := f.repoFiles(), f.treeFiles()
	f.rename(f.inTree("pkg/a/b.go"), f.inTree("pkg/a/renamed.go"))
	f.fails([]string{"pkg/a/b.go: is upstream's and cannot be removed or renamed", "restore --source laid pkg/a/b.go"}, "refresh")
	f.same("repository", f.repoFiles(), repo)
	// What the message says works, also for the edit.
	f.remove(f.inTree("pkg/a/renamed.go"))
	if _, err := treeGit(f.inTree(".git"), f.inTree(".")).run(nil, "restore", "--source", "laid", "pkg/a/b.go"); err != nil {
		t.Fatal(err)
	}
	f.ok("refresh")
	f.same("tree", f.treeFiles(), want)
	f.roundTrip()
}

func TestRefreshOursRemovedAndRenamed(t *testing.T) {
	for _, mode := range []string{"links", "copies"} {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t)
			f.repo("pkg/ours/gone/x.go", "package gone\n")
			f.repo("pkg/ours/old.go", "package ours // old\n")
			f.repo("pkg/ours/unsaved.go", "package ours // unsaved\n")
			f.git("add", "pkg/ours/gone", "pkg/ours/old.go")
			tree := []string{"tree"}
			if mode == "copies" {
				tree = append(tree, "-copies")
			}
			f.ok(tree...)
			f.remove(f.inTree("pkg/ours/gone/x.go"))
			// tree leaves alone what refresh has not seen.
			f.ok(tree...)
			if exists(f.inTree("pkg/ours/gone/x.go")) {
				t.Fatal("tree undid an edit of the tree")
			}
			f.ok("refresh")
			if exists(filepath.Join(f.root, "pkg/ours/gone")) {
				t.Error("the removed file is still in the repository")
			}
			f.rename(f.inTree("pkg/ours/old.go"), f.inTree("pkg/other/deeper/new.go"))
			if mode == "links" {
				f.fails([]string{"pkg/other/deeper/new.go: is a link", "move our files in the repository"}, "refresh")
				f.remove(f.inTree("pkg/other/deeper/new.go"))
			} else {
				f.ok("refresh")
				if got := f.readRepo("pkg/other/deeper/new.go"); got != "package ours // old\n" || exists(filepath.Join(f.root, "pkg/ours/old.go")) {
					t.Errorf("renamed file: %q", got)
				}
			}
			// git has never seen this one.
			f.remove(f.inTree("pkg/ours/unsaved.go"))
			f.fails([]string{"pkg/ours/unsaved.go: removed in the tree, but git has no copy"}, "refresh")
			if !exists(filepath.Join(f.root, "pkg/ours/unsaved.go")) {
				t.Error("the only copy is gone")
			}
			f.ok(append(tree, "-discard")...)
			f.ok("tree")
			f.roundTrip()
		})
	}
}

func TestRefreshRefusesToWipeTheRepository(t *testing.T) {
	f := newFixture(t)
	for _, p := range strings.Split("abcdefghijkl", "") {
		f.repo("pkg/ours/"+p+".go", "package ours // "+p+"\n")
	}
	f.commit()
	f.ok("tree")
	want := f.treeFiles()
	if err := os.RemoveAll(f.inTree("pkg/ours")); err != nil {
		t.Fatal(err)
	}
	f.fails([]string{"12 of 12 files of ours are gone from the tree"}, "refresh")
	f.ok("tree", "-discard")
	f.same("tree", f.treeFiles(), want)
}

func TestRefreshRefusesToWipeThePatches(t *testing.T) {
	f := newFixture(t)
	files := map[string]string{}
	for _, p := range strings.Split("abcdefghijkl", "") {
		files["pkg/many/"+p+".go"] = "package many // " + p + "\n"
	}
	f.addBase("1.0", files)
	f.ok("tree")
	for p := range files {
		f.tree(p, files[p]+"// seam\n")
	}
	f.ok("refresh")
	want, repo := f.treeFiles(), f.repoFiles()
	if _, err := treeGit(f.inTree(".git"), f.inTree(".")).run(nil, "checkout", "."); err != nil {
		t.Fatal(err)
	}
	f.fails([]string{"12 of 12 patches are gone from the tree"}, "refresh")
	f.same("repository", f.repoFiles(), repo)
	f.ok("tree", "-discard")
	f.same("tree", f.treeFiles(), want)
}

func TestRefreshEditThatReplacedLink(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.ok("tree")
	// As sed -i does: a new file takes the place of the link.
	f.remove(f.inTree("pkg/ours/x.go"))
	f.tree("pkg/ours/x.go", "package ours // edited\n")
	f.ok("tree")
	f.ok("refresh")
	if got := f.readRepo("pkg/ours/x.go"); got != "package ours // edited\n" {
		t.Errorf("the repository has %q", got)
	}
	if c, err := readContent(f.inTree("pkg/ours/x.go")); err != nil || c.mode != modeLink {
		t.Errorf("mode %s, %v, want a link again", c.mode, err)
	}
}

func TestRefreshKeepsWhatChangedInTheRepository(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	// A pull brings another patch; the developer edits another file, and
	// forgets to run tree in between.
	f.repo("pkg/a/a.go.patch", strings.Replace(f.readRepo("pkg/a/a.go.patch"), "+// seam", "+// pulled", 1))
	f.replaceInTree("pkg/a/b.go", "// line 7\n", "// mine\n")
	f.ok("refresh")
	if !strings.Contains(f.readRepo("pkg/a/a.go.patch"), "+// pulled") || !strings.Contains(f.readRepo("pkg/a/b.go.patch"), "+// mine") {
		t.Error("refresh reverted a change of the repository, or lost one of the tree")
	}
	f.roundTrip()
}

func TestRefreshNeedsSoundTree(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.commit()
	f.fails([]string{"there is no tree"}, "refresh")
	f.ok("tree")
	f.remove(f.inTree(".git/tree-state.json"))
	f.fails([]string{"was not made by this version of hack/tree, or is damaged"}, "refresh")
	if !exists(filepath.Join(f.root, "pkg/ours/x.go")) {
		t.Error("our file is gone")
	}
}
