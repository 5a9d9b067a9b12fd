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
	"path/filepath"
	"strings"
	"testing"
)

func TestVerify(t *testing.T) {
	f := newFixture(t)
	f.fails([]string{"there is no tree", "PATCHES.md: is not current"}, "verify")
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	f.ok("index")
	f.fails([]string{"pkg/a/a.go.patch: Why: is empty", "pkg/a/a.go.patch: Gate: is empty"}, "verify")

	f.repo("pkg/a/a.go.patch", strings.Replace(f.readRepo("pkg/a/a.go.patch"), newHeader, "Why: starts | the\n  controller\nGate: none; it has none\n\n", 1))
	f.fails([]string{`pkg/a/a.go.patch: Gate: is "none; it has none": write none`}, "verify")
	f.repo("pkg/a/a.go.patch", strings.Replace(f.readRepo("pkg/a/a.go.patch"), "none; it has none", "none", 1))
	f.fails([]string{"PATCHES.md: is not current"}, "verify")
	f.ok("index")
	f.ok("verify")
	f.ok("index")
	if !strings.Contains(f.out, "is current") {
		t.Errorf("index wrote the same again: %s", f.out)
	}
	index := f.readRepo(patchIndex)
	for _, want := range []string{
		"- [pkg/a/a.go](pkg/a/a.go.patch) +1/-0: starts | the controller\n",
		"1 patches, 1 lines added, 0 removed. Generated: 0 files, 0 KiB.\n",
	} {
		if !strings.Contains(index, want) {
			t.Errorf("PATCHES.md has no %q:\n%s", want, index)
		}
	}

	f.repo("pkg/ours/x.go", "package ours\n")
	f.fails([]string{"the tree is not current: run make tree (1 files differ)"}, "verify")
	f.ok("tree")

	repo := f.repoFiles()
	f.replaceInTree("pkg/a/b.go", "// line 7\n", "// more\n")
	f.tree("pkg/ours/new.go", "package ours\n")
	f.fails([]string{"make refresh would write pkg/a/b.go.patch", "make refresh would move into the repository pkg/ours/new.go"}, "verify")
	f.same("repository after verify", f.repoFiles(), repo)
	f.ok("tree", "-discard")
	f.remove(f.inTree("pkg/ours/new.go"))
	f.ok("verify")
}

func TestVerifyNamesOfFiles(t *testing.T) {
	f := newFixture(t)
	f.repo("pkg/ours/x.go", "package ours\n")
	f.repo("pkg/ours/x_test.go", "package ours\n")
	f.repo("pkg/ours/zz_generated.x.go", "package ours\n")
	f.repo("pkg/ours/doc.go", "// Package ours is ours, see y.go, pkg/a/b.go and *.go.\npackage ours\n")
	f.repo("docs/guide.md", "`pkg/a/a.go`, ours/x.go, x*.go and https://example.com/gone.go exist.\nours/a.go and pkg/a/c.go do not.\n")
	f.ok("tree")
	f.ok("index")
	f.fails([]string{"pkg/ours/doc.go:1: names y.go", "docs/guide.md:2: names ours/a.go", "docs/guide.md:2: names pkg/a/c.go"}, "verify")
	if count := strings.Count(f.err, ": names "); count != 3 {
		t.Errorf("%d names are not found, want 3: %s", count, f.err)
	}

	f.repo("docs/guide.md", "")
	f.repo("pkg/ours/y.go", "package ours\n")
	f.repo("pkg/ours/doc.go", "// Package ours is ours.\n//\n//\tx.go  the first\npackage ours\n")
	f.ok("tree")
	f.fails([]string{"pkg/ours/doc.go: does not list y.go"}, "verify")
	if strings.Count(f.err, "does not list") != 1 {
		t.Errorf("other files are not listed as well: %s", f.err)
	}
	f.repo("pkg/ours/doc.go", "// Package ours is ours.\n//\n//\tx.go, y.go  both\npackage ours\n")
	f.ok("tree")
	f.ok("verify")
}

// A patch that git does not know yet must not stand elsewhere than after the commit.
func TestIndexDoesNotDependOnGit(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	f.git("add", "-A")
	f.replaceInTree("pkg/a/b.go", "// line 7\n", "// line 7\n// seam\n")
	f.ok("refresh")
	f.ok("index")
	before := f.readRepo(patchIndex)
	f.git("add", "-A")
	f.ok("index")
	if after := f.readRepo(patchIndex); after != before {
		t.Errorf("before git add:\n%s\nafter:\n%s", before, after)
	}
}

func TestHeaderField(t *testing.T) {
	header := []byte("Why: one\n two\nGate:\nNote: x\n\n")
	for name, want := range map[string]string{"Why": "one two", "Gate": "", "Note": "x", "Missing": ""} {
		if got := headerField(header, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestIndexCountsLinesAndGenerated(t *testing.T) {
	f := newFixture(t)
	f.ok("tree")
	f.replaceInTree("pkg/a/a.go", "// line 7\n", "--- odd\n+++ odd\n")
	f.tree("pkg/a/types_swagger_doc_generated.go", "package a // generated\n")
	f.ok("refresh")
	f.ok("index")
	index := f.readRepo(patchIndex)
	for _, want := range []string{"(pkg/a/a.go.patch) +2/-1", "1 patches, 2 lines added, 1 removed. Generated: 1 files, 1 KiB."} {
		if !strings.Contains(index, want) {
			t.Errorf("PATCHES.md has no %q:\n%s", want, index)
		}
	}
	if exists(filepath.Join(f.root, "pkg/a/types_swagger_doc_generated.go.patch")) {
		t.Error("generated file with a patch of its own")
	}
}

func TestLooksGenerated(t *testing.T) {
	for path, want := range map[string]bool{
		"api/openapi-spec/v3/x.json": true, "api/discovery/apis.json": true, "api/other.json": false,
		"staging/src/k8s.io/api/testdata/HEAD/x.pb": true, "staging/src/k8s.io/api/x.go": false,
		"pkg/x/zz_generated.defaults.go": true, "staging/src/k8s.io/api/core/v1/generated.proto": true,
		"plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/x.yaml":    true,
		"plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go":          false,
		"test/compatibility_lifecycle/reference/versioned_feature_list.yaml": true,
		"pkg/generated/openapi/zz.go":                                        true,
	} {
		if got := looksGenerated(path, []byte("package x\n")); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	marker := "// Code generated by x. DO NOT EDIT.\n"
	if !looksGenerated("x.go", []byte(numbered(20)+marker)) || looksGenerated("x.go", []byte(numbered(100)+marker)) {
		t.Error("the marker counts in the first lines, and only there")
	}
}
