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
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// imagesProgram is the program that hack/release.sh makes images with.
var imagesProgram string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "scripts")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		imagesProgram = filepath.Join(dir, "images")
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", imagesProgram, "../images")
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			log.Fatalf("build images: %v: %s", err, out)
		}
		return m.Run()
	}())
}

// components are the programs of a release.
var components = []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubectl-maintenance", "kubelet"}

// newTree returns a repository of which a release can be made, in a directory whose name has a
// space. Its programs do nothing.
func newTree(t *testing.T) *repository {
	t.Helper()
	r := newRelease(t)
	spaced := filepath.Join(t.TempDir(), "with space")
	if err := os.Rename(r.dir, spaced); err != nil {
		t.Fatal(err)
	}
	r.dir = spaced
	r.write("LICENSE", "a license\n")
	r.write("CHANGELOG.md", strings.ReplaceAll(`# Changelog

## [Unreleased]

- not yet

## [BASE+graceful.20] - 2026-12-01

- twenty

## [BASE+graceful.2] - 2026-11-01

- two

## [BASE+graceful.1] - 2026-10-01

- one
`, "BASE", number))
	r.write("_output/kubernetes/go.mod", "module k8s.io/kubernetes\n\ngo 1.26\n")
	for _, program := range components {
		r.write("_output/kubernetes/cmd/"+program+"/main.go", "package main\n\nfunc main() { println(\""+program+"\") }\n")
	}
	r.write("_output/kubernetes/staging/src/k8s.io/component-base/logs/kube-log-runner/main.go", "package main\n\nfunc main() {}\n")
	r.write("_output/kubernetes/cmd/kubectl/other.go", "//go:build other\n\npackage main\n\nfunc init() { println(\"other\") }\n")
	if err := errors.Join(os.MkdirAll(filepath.Join(r.dir, "_output/bin"), 0o755), os.Symlink(imagesProgram, filepath.Join(r.dir, "_output/bin/images"))); err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs hack/release.sh, which must succeed, with variables for this once.
func (r *repository) run(what string, env ...string) string {
	r.t.Helper()
	got := r.release(what, env...)
	if got.failed {
		r.t.Fatalf("hack/release.sh %s failed: %s%s", what, got.stdout, got.stderr)
	}
	return got.stdout
}

func (r *repository) release(what string, env ...string) result {
	r.t.Helper()
	own := r.env
	defer func() { r.env = own }()
	r.env = append(slices.Clone(own), "PLATFORMS=linux/"+runtime.GOARCH, "STRIP=-s -w")
	r.env = append(r.env, env...)
	return r.try("hack/release.sh", what, "-trimpath", "-buildvcs=false")
}

func (r *repository) read(path string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, path))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func (r *repository) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, path))
	return err == nil
}

var releaseDir = "_output/release/" + base + "+graceful.2"

func TestRelease(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.run("all", "PLATFORMS=", "SOURCE=https://git.example.com/kubernetes")
	r.expectComplete([]string{"amd64", "arm64"})
	if got, want := r.read(releaseDir+"/CHANGELOG.md"), "## ["+number+"+graceful.2] - 2026-11-01\n\n- two\n\n"; got != want {
		t.Errorf("CHANGELOG.md %q, want %q", got, want)
	}
	sums := r.read(releaseDir + "/SHA256SUMS")
	if index := r.read(releaseDir + "/images/oci/index.json"); !strings.Contains(index, "localhost/kube-apiserver:"+base+"_graceful.2") {
		t.Errorf("index %s", index)
	}

	// Whose files, variables and settings there are, and how the platforms are written, changes nothing.
	elsewhere := newTree(t)
	elsewhere.write(".git/goenv", "GOFLAGS=-tags=other\nGOAMD64=v2\nGOARM64=v8.1\nGOEXPERIMENT=nogreenteagc\n")
	for _, flags := range [][]string{
		{"PLATFORMS=linux/amd64,linux/arm64", "GOENV=" + elsewhere.dir + "/.git/goenv", "TZ=Asia/Tokyo", "CGO_ENABLED=1", "GOOS=windows", "GOARCH=386"},
		{"PLATFORMS=\n linux/amd64\t linux/amd64,\nlinux/arm64 ", "GOFLAGS=-tags=other", "GOAMD64=v2", "GOARM64=v8.1", "GOEXPERIMENT=nogreenteagc", "GOFIPS140=latest"},
	} {
		elsewhere.write(releaseDir+"/bin/linux-riscv64/stale", "of another run")
		elsewhere.run("all", append(flags, "SOURCE=https://git.example.com/kubernetes")...)
		if got := elsewhere.read(releaseDir + "/SHA256SUMS"); got != sums {
			t.Errorf("%q: another release:\n%s\nwant\n%s", flags, got, sums)
		}
	}
}

// expectComplete checks the files of a release, and their sums.
func (r *repository) expectComplete(architectures []string) {
	r.t.Helper()
	var got []string
	dir := filepath.Join(r.dir, releaseDir)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(path, "/oci/blobs/") {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	want := []string{"CHANGELOG.md", "LICENSE", "SHA256SUMS", "images/oci/index.json", "images/oci/oci-layout"}
	for _, architecture := range architectures {
		platform := "linux-" + architecture
		for _, program := range append([]string{"kube-log-runner"}, components...) {
			want = append(want, "bin/"+platform+"/"+program, "sbom/"+program+"-"+platform+".spdx.json")
		}
		for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"} {
			want = append(want, "images/docker/"+platform+"/"+program+".tar", "images/sbom/"+program+"-"+platform+".spdx.json")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("files %s\nwant %s", got, want)
	}
	sums := r.read(releaseDir + "/SHA256SUMS")
	for _, path := range want {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(r.read(releaseDir+"/"+path))), path); path != "SHA256SUMS" && !strings.Contains(sums, line) {
			r.t.Errorf("SHA256SUMS has no right sum of %s", path)
		}
	}
	// The same list on any machine.
	lines := strings.Split(strings.TrimSpace(sums), "\n")
	if !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) }) {
		r.t.Errorf("SHA256SUMS is not sorted by path: %s", sums)
	}
	if blobs := strings.Count(sums, "  images/oci/blobs/sha256/"); blobs < 10 {
		r.t.Errorf("SHA256SUMS has %d blobs of images", blobs)
	}
}

func TestReleaseOfUnreleased(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.run("all", "VERSION="+base+"+graceful.3", "REGISTRY=registry.example.com/kubernetes/")
	dir := "_output/release/" + base + "+graceful.3"
	if got, want := r.read(dir+"/CHANGELOG.md"), "## [Unreleased]\n\n- not yet\n\n"; got != want {
		t.Errorf("CHANGELOG.md %q, want %q", got, want)
	}
	index := r.read(dir + "/images/oci/index.json")
	if !strings.Contains(index, `"registry.example.com/kubernetes/kubectl:`+base+`_graceful.3"`) {
		t.Errorf("index %s", index)
	}
	if out := r.run("images"); !strings.Contains(out, "SOURCE=https://... names the repository") {
		t.Errorf("images without a source: %s", out)
	}
	if !r.exists(dir + "/SHA256SUMS") {
		t.Error("images of another version were removed")
	}
}

// TestReleaseOfArchive is about sources without history, whose commit is not known.
func TestReleaseOfArchive(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.remove(".git")
	if got := r.release("images"); !got.failed || !strings.Contains(got.stderr, "VERSION="+base+"+graceful.1") {
		t.Errorf("images of a version that is not known: %+v", got)
	}
	r.run("images", "VERSION="+base+"+graceful.2")
	sbom := r.read(releaseDir + "/images/sbom/kubectl-linux-" + runtime.GOARCH + ".spdx.json")
	if strings.Contains(sbom, "unknown") || strings.Contains(sbom, "sourceInfo") || !strings.Contains(sbom, `"created": "1970-01-01T00:00:00Z"`) {
		t.Errorf("SBOM %s", sbom)
	}
}

// TestReleaseOfBadInput is about mistakes, which are found before anything is built or removed.
func TestReleaseOfBadInput(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.write(releaseDir+"/SHA256SUMS", "of before")
	for _, test := range []struct{ variable, want string }{
		{"PLATFORMS=windows/amd64", "PLATFORMS: windows/amd64 is not of the form linux/arm64"},
		{"PLATFORMS=linux/arm/v7", "PLATFORMS: linux/arm/v7 is not of the form"},
		{"PLATFORMS=linux/AMD64", "PLATFORMS: linux/AMD64 is not of the form"},
		{"PLATFORMS=linux/*", "PLATFORMS: linux/* is not of the form"},
		{"PLATFORMS=linux/amd64 ../x", "PLATFORMS: ../x is not of the form"},
		{"PLATFORMS= \n", "PLATFORMS names no platform"},
		{"PLATFORMS=,", "PLATFORMS names no platform"},
		{"SOURCE=here", `-source "here" is not the URL of a repository`},
		{"SOURCE=https://git.example.com/a b", `-source "https://git.example.com/a b" is not the URL`},
		{"SOURCE=https://git.example.com/a\nb", `-source "https://git.example.com/a\nb" is not the URL`},
		{"SOURCE=https://user:secret@git.example.com/a", "-source has credentials for git.example.com"},
		{"SOURCE=https://secret@git.example.com/a", "-source has credentials for git.example.com"},
		{"REGISTRY=UPPER/case", `-repository "UPPER/case" gives no name of an image`},
		{"REGISTRY=https://registry.example.com/a", `-repository "https://registry.example.com/a" gives no name of an image`},
		{"REGISTRY=registry.example.com/a b", `-repository "registry.example.com/a b" gives no name of an image`},
		{"REGISTRY=registry.example.com/'a'", `-repository "registry.example.com/'a'" gives no name of an image`},
		{"VERSION=" + base, "VERSION=" + base + " is not of the form " + base + "+graceful.1"},
		{"VERSION=../../etc", "VERSION=../../etc is not of the form"},
	} {
		got := r.release("all", test.variable)
		if !got.failed || !strings.Contains(got.stderr, test.want) || strings.Contains(got.stdout, "building") || strings.Contains(got.stderr, "secret") {
			t.Errorf("%q: %+v, want %s", test.variable, got, test.want)
		}
		if got := r.read(releaseDir + "/SHA256SUMS"); got != "of before" {
			t.Errorf("%q: the release of before is not there", test.variable)
		}
	}
	for _, what := range []string{"", "everything"} {
		if got := r.release(what); !got.failed || !strings.Contains(got.stderr, "usage: hack/release.sh") {
			t.Errorf("%q: %+v", what, got)
		}
	}
	r.run("images", "SOURCE=ssh://git@git.example.com/a")
}

// TestReleaseThatFails is about releases that end in the middle, and other runs of the same version:
// nothing looks complete that is not.
func TestReleaseThatFails(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.run("all")
	layout := r.read(releaseDir + "/images/oci/index.json")
	r.run("images", "SOURCE=https://git.example.com/kubernetes")
	if r.read(releaseDir+"/images/oci/index.json") == layout {
		t.Fatal("the images are not others")
	}
	if r.exists(releaseDir + "/SHA256SUMS") {
		t.Error("there are sums of other images")
	}

	layout = r.read(releaseDir + "/images/oci/index.json")
	r.write("_output/kubernetes/cmd/kubelet/main.go", "package main\n\nfunc main() { ")
	if got := r.release("images"); !got.failed || !strings.Contains(got.stderr, "cmd/kubelet/main.go:3") {
		t.Errorf("%+v", got)
	}
	if got := r.read(releaseDir + "/images/oci/index.json"); got != layout {
		t.Error("the images are others, though their programs could not be built")
	}
	if got := r.release("all"); !got.failed {
		t.Errorf("%+v", got)
	}
	if r.exists(releaseDir+"/SHA256SUMS") || r.exists(releaseDir+"/images") {
		t.Error("a release that failed has sums or images")
	}
	if got := r.release("push", "REGISTRY=registry.example.com"); !got.failed || !strings.Contains(got.stderr, "there are no images of "+base+"+graceful.2: run make images") {
		t.Errorf("push of no images: %+v", got)
	}
}

// TestReleaseWaits has a second run wait for the first.
func TestReleaseWaits(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.write("_output/release/.lock", "")
	lock, err := os.Open(filepath.Join(r.dir, "_output/release/.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"PLATFORMS=linux/" + runtime.GOARCH}
	command := r.command("hack/release.sh", "images", "-trimpath", "-buildvcs=false")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	if line, err := reader.ReadString('\n'); err != nil || line != "==> waiting for another run that makes a release here\n" {
		t.Errorf("%q, %v", line, err)
	}
	if r.exists(releaseDir) {
		t.Error("the second run did not wait")
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(reader)
	if err := errors.Join(err, command.Wait()); err != nil || !strings.Contains(string(rest), "localhost/kubectl") {
		t.Errorf("%s, %v", rest, err)
	}
}

// newRegistry returns the name of a registry for images, and how many manifests it was sent.
func newRegistry(t *testing.T) (target string, manifests *atomic.Int32) {
	t.Helper()
	manifests = &atomic.Int32{}
	handler := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			manifests.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "REGISTRY=" + strings.TrimPrefix(server.URL, "http://") + "/kubernetes", manifests
}

func TestReleaseIsPushed(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.run("programs")
	if _, err := os.Stat(filepath.Join(r.dir, releaseDir, "images")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("programs alone have images: %v", err)
	}
	r.run("images")
	target, all := newRegistry(t)
	other, withoutSBOMs := newRegistry(t)
	r.run("push", other, "WITHOUT_SBOMS=1")
	if got := r.run("push", target); strings.Count(got, "/kubernetes/kube") != 5 {
		t.Errorf("pushed %s", got)
	}
	if withoutSBOMs.Load() == 0 || withoutSBOMs.Load() >= all.Load() {
		t.Errorf("%d manifests without SBOMs, %d with them", withoutSBOMs.Load(), all.Load())
	}
	if got := r.release("push"); !got.failed || !strings.Contains(got.stderr, "REGISTRY is missing") {
		t.Errorf("%+v", got)
	}
	r.change("pkg/a.go")
	if got := r.release("push", target); !got.failed || !strings.Contains(got.stderr, "there are no images of "+base+"+graceful.2.dirty") {
		t.Errorf("push of other sources: %+v", got)
	}
	r.run("images", "VERSION="+base+"+graceful.2")
	if got := r.release("push", target, "VERSION="+base+"+graceful.2"); !got.failed || !strings.Contains(got.stderr, "is another image in the registry") {
		t.Errorf("a tag was moved: %+v", got)
	}
	r.run("push", target, "VERSION="+base+"+graceful.2", "OVERWRITE=1")
}
