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

package scripts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// The bases of these repositories, whatever that of the fork is.
	previousBase, currentBase, nextBase = "v1.35.7", "v1.36.3", "v1.37.0"

	// makefile builds programs that say their base, and leaves a line for each build.
	makefile = `CONTROL_PLANE := nothing
control-plane:
	@test -z "$(VERSION)$(PROGRAMS)" || { echo 'VERSION or PROGRAMS is set' >&2; exit 1; }
	@mkdir -p _output/bin; echo "built $(CONTROL_PLANE)" >>../../builds
	@for program in $(CONTROL_PLANE); do \
	  { echo '#!/bin/sh'; echo "echo $$(awk '$$1 == "k8s.io/kubernetes" { print $$2 }' go.mod)"; } >_output/bin/$$program; \
	  chmod +x _output/bin/$$program; done
`
)

// newFork returns a repository with the script and a Makefile.
func newFork(t *testing.T) *repository {
	t.Helper()
	r := newRepository(t)
	data, err := os.ReadFile("../../../predecessor.sh")
	if err != nil {
		t.Fatal(err)
	}
	r.write("hack/predecessor.sh", string(data))
	r.write("Makefile", makefile)
	r.write(".gitignore", "/_output/\n")
	return r
}

// require makes go.mod require a version of the base.
func (r *repository) require(version string) {
	r.t.Helper()
	r.write("go.mod", "module example.com/fork\n\ngo 1.26\n\nrequire (\n\tk8s.io/kubernetes "+version+"\n)\n")
}

// newForks returns a repository whose base has moved, to another patch release as well, and the last
// commit before that.
func newForks(t *testing.T) (*repository, string) {
	t.Helper()
	r := newFork(t)
	r.require(previousBase)
	r.commit("pkg/a.go")
	last := r.commit("pkg/a.go")
	for _, version := range []string{"v1.36.0", currentBase} {
		r.require(version)
		r.commit("pkg/a.go")
		r.commit("docs/a.md")
	}
	return r, last
}

func TestPredecessorCommit(t *testing.T) {
	r, last := newForks(t)
	if got := r.try("hack/predecessor.sh", "commit"); got.failed || got.stdout != last {
		t.Errorf("failed %t, %s%s, want %s", got.failed, got.stdout, got.stderr, last)
	}
	// The next base, before it is committed.
	r.require(nextBase)
	if got, want := r.try("hack/predecessor.sh", "commit"), r.git("rev-parse", "HEAD"); got.failed || got.stdout != want {
		t.Errorf("before the commit: failed %t, %s%s, want %s", got.failed, got.stdout, got.stderr, want)
	}
}

func TestPredecessorMissing(t *testing.T) {
	r, _ := newForks(t)
	shallow := newFork(t)
	shallow.git("fetch", "--quiet", "--depth=1", "file://"+r.dir, "main")
	shallow.git("reset", "--quiet", "--hard", "FETCH_HEAD")
	unpacked := newFork(t)
	if err := os.RemoveAll(filepath.Join(unpacked.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	first := newFork(t)
	first.commit("pkg/a.go")
	for _, test := range []struct {
		r    *repository
		want string
	}{
		{shallow, "this clone is shallow: run \"git fetch --unshallow --tags\""},
		{unpacked, "here is none: clone the repository"},
		{first, "there is no predecessor to upgrade from"},
	} {
		if got := test.r.try("hack/predecessor.sh"); !got.failed || !strings.Contains(got.stderr, test.want) {
			t.Errorf("failed %t, %s%s, want %s", got.failed, got.stdout, got.stderr, test.want)
		}
	}
}

func TestPredecessorBuild(t *testing.T) {
	r, _ := newForks(t)
	expect := func(what, program, version string, builds int) {
		t.Helper()
		// As in a make with variables.
		r.env = []string{"MAKEFLAGS= -- VERSION=v1.36.3+graceful.9", "VERSION=v1.36.3+graceful.9"}
		if program == "kubelet" {
			r.env = append(r.env, "PROGRAMS="+program)
		}
		got := r.try("hack/predecessor.sh")
		r.env = nil
		says := r.try("_output/predecessor/bin/" + program)
		log, _ := os.ReadFile(filepath.Join(r.dir, "_output/builds"))
		if got.failed || says.stdout != version || strings.Count(string(log), "built") != builds {
			t.Fatalf("%s: failed %t, %s%s; %s says %q, want %q; %q, want %d", what, got.failed, got.stdout, got.stderr, program, says.stdout, version, log, builds)
		}
	}
	expectPrograms := func(want ...string) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(r.dir, "_output/predecessor/bin"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	const server = "kube-apiserver"
	expect("first", server, previousBase, 1)
	expectPrograms("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
	expect("again", server, previousBase, 1)
	r.commit("pkg/a.go")
	expect("after a commit", server, previousBase, 1)
	if err := os.Remove(filepath.Join(r.dir, "_output/predecessor/bin/kubectl")); err != nil {
		t.Fatal(err)
	}
	expect("without a program", server, previousBase, 2)
	expect("another program", "kubelet", previousBase, 3)
	expect("another program again", "kubelet", previousBase, 3)
	expect("beside another program", server, previousBase, 3)
	expectPrograms("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")
	// As a killed run leaves it.
	for _, path := range []string{"commit", "src/.git/HEAD"} {
		if err := os.Remove(filepath.Join(r.dir, "_output/predecessor", path)); err != nil {
			t.Fatal(err)
		}
	}
	expect("with a clone that is not complete", server, previousBase, 4)
	// As one who tries something out leaves it.
	r.write("_output/predecessor/src/go.mod", "\tk8s.io/kubernetes "+nextBase+"\n")
	expect("another program after that", "kubelet", previousBase, 5)
	r.require(nextBase)
	r.commit("pkg/a.go")
	expect("another program on the next base", "kubelet", currentBase, 6)
	expectPrograms("kubelet")
	expect("on the next base", server, currentBase, 7)
}
