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

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

const (
	// version is none of Kubernetes: any will do.
	version  = "v1.2.3+graceful.7"
	tag      = "v1.2.3_graceful.7"
	revision = "0123456789abcdef0123456789abcdef01234567"
	source   = "https://git.example.com/kubernetes"
	created  = "2026-11-23T07:23:35Z"
)

// programsDir has small programs with the names of the components, for two platforms.
var programsDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "images")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		programsDir = filepath.Join(dir, "bin")
		patience.Duration = time.Millisecond
		if err := buildPrograms(dir); err != nil {
			log.Fatal(err)
		}
		return m.Run()
	}())
}

// buildPrograms compiles one program, which has a dependency, for each platform.
func buildPrograms(dir string) error {
	for path, content := range map[string]string{
		"src/go.mod":            "module k8s.io/kubernetes\n\ngo 1.26\n\nrequire k8s.io/api v0.0.0\n\nreplace k8s.io/api => ../api\n",
		"src/cmd/small/main.go": "package main\n\nimport _ \"k8s.io/api\"\n\nfunc main() {}\n",
		"api/go.mod":            "module k8s.io/api\n\ngo 1.26\n",
		"api/api.go":            "package api\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700), os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600)); err != nil {
			return err
		}
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		small := filepath.Join(dir, "small-"+architecture)
		if err := compile(filepath.Join(dir, "src"), small, architecture); err != nil {
			return err
		}
		for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kube-log-runner", "kube-proxy"} {
			if err := copyFile(small, filepath.Join(programsDir, "linux-"+architecture, program)); err != nil {
				return err
			}
		}
	}
	return nil
}

func compile(src, output, architecture string, flags ...string) error {
	command := exec.Command("go", append(append([]string{"build", "-trimpath", "-buildvcs=false"}, flags...), "-o", output, "./cmd/small")...)
	command.Dir = src
	// It may be followed by other variables.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod", "GOOS=linux")
	command.Env = append(command.Env, strings.Fields("GOARCH="+architecture)...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compile for %s: %w: %s", architecture, err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, data, 0o700))
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("images %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

func buildArgs(programs, output string, more ...string) []string {
	return append([]string{"build", "-programs", programs, "-o", output, "-version", version, "-revision", revision, "-source", source, "-created", created}, more...)
}

// build returns the directory with the images of a release.
func build(t *testing.T) string {
	t.Helper()
	output := filepath.Join(t.TempDir(), "images")
	mustRun(t, buildArgs(programsDir, output)...)
	return output
}

func TestBuildIsReproducible(t *testing.T) {
	programs, output := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "images")
	if err := os.CopyFS(programs, os.DirFS(programsDir)); err != nil {
		t.Fatal(err)
	}
	past := time.Unix(1, 0)
	err := filepath.WalkDir(programs, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = errors.Join(os.Chmod(path, 0o755), os.Chtimes(path, past, past))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// What an interrupted run and another release have left.
	for _, stale := range []string{"images/docker/stale", "images.part/oci/stale"} {
		if err := copyFile(filepath.Join(programsDir, "linux-amd64", "kubectl"), filepath.Join(filepath.Dir(output), stale)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, buildArgs(programs, output)...)
	first, second := readFiles(t, build(t)), readFiles(t, output)
	for path, content := range first {
		if second[path] != content {
			t.Errorf("%s differs", path)
		}
		delete(second, path)
	}
	for path := range second {
		t.Errorf("%s is there only in one", path)
	}
	if left, err := filepath.Glob(output + ".*"); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if len(first) < 30 {
		t.Errorf("%d files, too few for ten images", len(first))
	}
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// images returns what a layout has: each image by its name, and the SBOMs by the image that they
// refer to.
func readLayout(t *testing.T, dir string) (map[string]v1.ImageIndex, map[v1.Hash][]v1.Image) {
	t.Helper()
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.ImageIndex{}
	for _, descriptor := range manifest.Manifests {
		if !descriptor.MediaType.IsIndex() {
			continue
		}
		image, err := root.ImageIndex(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(image); err != nil {
			t.Error(err)
		}
		if descriptor.Annotations[refName] != descriptor.Annotations[containerName] {
			t.Errorf("two names: %v", descriptor.Annotations)
		}
		images[descriptor.Annotations[refName]] = image
	}
	referrers, err := readReferrers(path, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return images, referrers
}

func TestImages(t *testing.T) {
	images, referrers := readLayout(t, filepath.Join(build(t), "oci"))
	for program, want := range map[string]struct {
		path, entrypoint, capability string
		command                      []string
	}{
		"kube-apiserver": {"usr/local/bin/kube-apiserver", "/go-runner",
			"\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", nil},
		"kube-controller-manager": {"usr/local/bin/kube-controller-manager", "/go-runner", "", nil},
		"kube-scheduler":          {"usr/local/bin/kube-scheduler", "/go-runner", "", nil},
		"kubelet":                 {"usr/local/bin/kubelet", "/go-runner", "", []string{"kubelet", "--version"}},
		"kubectl":                 {"bin/kubectl", "/bin/kubectl", "", nil},
	} {
		t.Run(program, func(t *testing.T) {
			index := images["localhost/"+program+":"+tag]
			if index == nil {
				t.Fatalf("no image: there are %v", images)
			}
			manifest, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			var platforms []string
			for _, descriptor := range manifest.Manifests {
				platforms = append(platforms, descriptor.Platform.String())
				if descriptor.ArtifactType != "" {
					t.Errorf("an image is an artifact of type %s", descriptor.ArtifactType)
				}
				image, err := index.Image(descriptor.Digest)
				if err != nil {
					t.Fatal(err)
				}
				config, err := image.ConfigFile()
				if err != nil {
					t.Fatal(err)
				}
				if got := config.OS + "/" + config.Architecture; got != descriptor.Platform.String() {
					t.Errorf("the image for %s says %s", descriptor.Platform, got)
				}
				if got := config.Created.UTC().Format(time.RFC3339); got != created {
					t.Errorf("created %s", got)
				}
				if got := strings.Join(config.Config.Entrypoint, " "); got != want.entrypoint {
					t.Errorf("entrypoint %s, want %s", got, want.entrypoint)
				}
				// As upstream's: manifests that say nothing run them as root.
				if config.Config.User != "" {
					t.Errorf("user %s", config.Config.User)
				}
				if !slices.Equal(config.Config.Cmd, want.command) || config.Config.WorkingDir != "/" {
					t.Errorf("command %q in %s", config.Config.Cmd, config.Config.WorkingDir)
				}
				if want := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}; !slices.Equal(config.Config.Env, want) {
					t.Errorf("environment %q", config.Config.Env)
				}
				expectLabels(t, program, config.Config.Labels)
				expectFiles(t, image, want.path, want.capability, descriptor.Platform.Architecture)
				if len(referrers[descriptor.Digest]) != 1 {
					t.Errorf("%d SBOMs refer to the image for %s", len(referrers[descriptor.Digest]), descriptor.Platform)
				}
			}
			if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
				t.Errorf("platforms %s", got)
			}
			expectLabels(t, program, manifest.Annotations)
		})
	}
	if len(images) != 5 {
		t.Errorf("images %v", images)
	}
}

func expectLabels(t *testing.T, program string, labels map[string]string) {
	t.Helper()
	for key, want := range map[string]string{
		"title": program, "version": version, "revision": revision, "source": source, "licenses": "Apache-2.0", "created": created,
	} {
		if got := labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
}

// expectFiles checks the files of an image that runs without a distribution below it.
func expectFiles(t *testing.T, image v1.Image, programPath, capability, architecture string) {
	t.Helper()
	files := map[string]string{}
	reader := tar.NewReader(mutate.Extract(image))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o022 != 0 && header.Mode&0o1000 == 0 {
			t.Errorf("%s belongs to %d:%d, mode %o", header.Name, header.Uid, header.Gid, header.Mode)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == programPath {
			if got := header.PAXRecords["SCHILY.xattr.security.capability"]; got != capability {
				t.Errorf("%s has the capability %q, want %q", header.Name, got, capability)
			}
			info, err := buildinfo.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "GOARCH" && s.Value == architecture }) {
				t.Errorf("%s is not for %s", header.Name, architecture)
			}
		}
		files[strings.TrimSuffix(header.Name, "/")] = string(data)
	}
	for _, path := range []string{programPath, "tmp", "etc/passwd", "etc/group", "etc/nsswitch.conf"} {
		if _, found := files[path]; !found {
			t.Errorf("%s is missing", path)
		}
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM([]byte(files["etc/ssl/certs/ca-certificates.crt"])) {
		t.Error("no certificate authorities")
	}
}

func TestTarballs(t *testing.T) {
	output := build(t)
	images, _ := readLayout(t, filepath.Join(output, "oci"))
	for _, architecture := range []string{"amd64", "arm64"} {
		reference, err := name.NewTag("localhost/kube-apiserver:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(filepath.Join(output, "docker", "linux-"+architecture, "kube-apiserver.tar"), &reference)
		if err != nil {
			t.Fatal(err)
		}
		// A tarball of docker's has another manifest; the configuration is what names an image there.
		got, err := image.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := images[reference.Name()].IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == architecture })
		want, err := images[reference.Name()].Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := want.ConfigName(); err != nil || name != got {
			t.Errorf("the tarball for %s has the image %s, the layout %s, %v", architecture, got, name, err)
		}
	}
}

func TestSBOMs(t *testing.T) {
	output := build(t)
	document := readSBOM(t, filepath.Join(output, "sbom", "kube-apiserver-linux-arm64.spdx.json"))
	for _, want := range []string{
		"kube-apiserver@" + version, "k8s.io/kubernetes/cmd/small@" + version, "stdlib@", "k8s.io/api@v0.2.3+graceful.7", rootsModule + "@",
	} {
		if !slices.ContainsFunc(document.Packages, func(p *spdx.Package) bool { return strings.HasPrefix(p.PackageName+"@"+p.PackageVersion, want) }) {
			t.Errorf("%s is missing", want)
		}
	}
	// What the image contains: both programs, which here are one, and the authorities.
	var contained []string
	for _, relationship := range document.Relationships {
		if relationship.Relationship == "CONTAINS" && relationship.RefA.ElementRefID == document.Packages[0].PackageSPDXIdentifier {
			contained = append(contained, string(relationship.RefB.ElementRefID))
		}
	}
	if len(contained) != 3 || contained[0] != "Package-k8s.io-kubernetes-cmd-small-v1.2.3-graceful.7" || !strings.HasPrefix(contained[2], "Package-golang.org-x-crypto-x509roots") {
		t.Errorf("the image contains %v", contained)
	}
	// The artifact in the layout has the same content.
	_, referrers := readLayout(t, filepath.Join(output, "oci"))
	hash := v1.Hash{Algorithm: "sha256", Hex: document.Packages[0].PackageChecksums[0].Value}
	if len(referrers[hash]) != 1 {
		t.Fatalf("%d artifacts refer to the image that the SBOM describes", len(referrers[hash]))
	}
	manifest, err := referrers[hash][0].Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if title := manifest.Layers[0].Annotations["org.opencontainers.image.title"]; title != "kube-apiserver-linux-arm64.spdx.json" || manifest.Subject.Platform != nil {
		t.Errorf("the artifact has the file %s, and refers to %+v", title, manifest.Subject)
	}
	layers, err := referrers[hash][0].Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers %v, %v", layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := json.Read(content); err != nil || again.DocumentNamespace != document.DocumentNamespace {
		t.Errorf("the artifact is another document: %v", err)
	}

	sboms := t.TempDir()
	args := buildArgs(programsDir, sboms)
	args[0] = "sbom"
	mustRun(t, args...)
	document = readSBOM(t, filepath.Join(sboms, "kube-proxy-linux-amd64.spdx.json"))
	if len(document.Packages[0].PackageChecksums) != 1 {
		t.Error("the SBOM of a program does not say which file it is about")
	}
}

// TestPackageURLs is about the names by which vulnerabilities are found.
func TestPackageURLs(t *testing.T) {
	r := &release{version: version, revision: revision, source: source}
	b := r.newSBOM("test", "hash")
	b.addProgram(&buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Path: "k8s.io/component-base/logs/kube-log-runner", Main: debug.Module{Path: "k8s.io/component-base", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "k8s.io/klog/v2", Version: "v2.140.0", Sum: "h1:a="},
			{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "./staging/src/k8s.io/api"}},
			{Path: "github.com/NYTimes/gziphandler", Version: "v1.1.1"},
			{Path: "github.com/coreos/go-oidc", Version: "v2.5.0+incompatible"},
			{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/b", Version: "v1.0.1"}},
		},
	}, r)
	b.addProgram(&buildinfo.BuildInfo{GoVersion: "go1.26.8", Path: "k8s.io/kubernetes/cmd/kubelet", Main: debug.Module{Path: "k8s.io/kubernetes"}}, r)
	var got []string
	for _, p := range b.document.Packages {
		reference := p.PackageExternalReferences[0]
		if reference.Category != "PACKAGE-MANAGER" || reference.RefType != "purl" {
			t.Errorf("%s has the reference %+v", p.PackageName, reference)
		}
		got = append(got, reference.Locator+" "+p.PackageLicenseDeclared)
	}
	if got, want := b.document.Packages[0].PackageSourceInfo, "built from commit "+revision+" "+source; got != want {
		t.Errorf("source %q, want %q", got, want)
	}
	if got := b.document.Packages[2].PackageComment; got != "sum of the module: h1:a=" {
		t.Errorf("comment %q", got)
	}
	if got := b.document.DocumentNamespace; got != "https://spdx.org/spdxdocs/test-hash" {
		t.Errorf("namespace %s", got)
	}
	for _, relationship := range b.document.Relationships {
		if relationship.Relationship != "DEPENDS_ON" {
			t.Errorf("a program %s a module", relationship.Relationship)
		}
	}
	want := []string{
		"pkg:golang/k8s.io/component-base@v0.2.3%2Bgraceful.7#logs/kube-log-runner Apache-2.0",
		"pkg:golang/stdlib@1.26.8 NOASSERTION",
		"pkg:golang/k8s.io/klog/v2@v2.140.0 NOASSERTION",
		"pkg:golang/k8s.io/api@v0.2.3%2Bgraceful.7 Apache-2.0",
		"pkg:golang/github.com/nytimes/gziphandler@v1.1.1 NOASSERTION",
		"pkg:golang/github.com/coreos/go-oidc@v2.5.0%2Bincompatible NOASSERTION",
		"pkg:golang/example.com/b@v1.0.1 NOASSERTION",
		"pkg:golang/k8s.io/kubernetes@v1.2.3%2Bgraceful.7#cmd/kubelet Apache-2.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("packages\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func readSBOM(t *testing.T, path string) *spdx.Document {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	document, err := json.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil || len(described) != 1 || described[0] != document.Packages[0].PackageSPDXIdentifier {
		t.Errorf("%s describes %v, %v", path, described, err)
	}
	if document.CreationInfo.Created != created {
		t.Errorf("created %s", document.CreationInfo.Created)
	}
	return document
}

// TestPush pushes to registries that know of referrers and to those that do not.
func TestPush(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		t.Run(fmt.Sprintf("referrers %t", referrers), func(t *testing.T) { testPush(t, referrers) })
	}
}

func testPush(t *testing.T, referrers bool) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	target := strings.TrimPrefix(server.URL, "http://") + "/some/path"
	output := build(t)
	args := []string{"push", "-layout", filepath.Join(output, "oci"), "-registry", target + "/"}
	mustRun(t, args...)

	images, _ := readLayout(t, filepath.Join(output, "oci"))
	for local, image := range images {
		reference, err := name.NewTag(strings.Replace(local, "localhost", target, 1))
		if err != nil {
			t.Fatal(err)
		}
		pulled, err := remote.Index(reference)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(pulled); err != nil {
			t.Error(err)
		}
		if got, want := digestOf(t, pulled), digestOf(t, image); got != want {
			t.Errorf("%s is %s in the registry, want %s", local, got, want)
		}
		manifest, err := pulled.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, platform := range manifest.Manifests {
			found, err := remote.Referrers(reference.Context().Digest(platform.Digest.String()))
			if err != nil {
				t.Fatal(err)
			}
			documents, err := found.IndexManifest()
			if err != nil || len(documents.Manifests) != 1 || documents.Manifests[0].ArtifactType != string(spdxType) {
				t.Errorf("SBOMs of %s for %s: %+v, %v", local, platform.Platform, documents, err)
			}
		}
	}
	if got := strings.Count(mustRun(t, args...), "is there already\n"); got != len(images) {
		t.Errorf("%d images are there already at the second time", got)
	}
	testPushOther(t, target)
}

// testPushOther pushes other images of the same version.
func testPushOther(t *testing.T, target string) {
	other := filepath.Join(t.TempDir(), "images")
	mustRun(t, append(buildArgs(programsDir, other), "-created", "2026-11-24T00:00:00Z")...)
	args := []string{"push", "-layout", filepath.Join(other, "oci"), "-registry", target}
	err := run(t.Context(), args, io.Discard)
	if err == nil || !strings.Contains(err.Error(), target+"/kube-apiserver:"+tag+" is another image in the registry") {
		t.Errorf("tags of a release were moved: %v", err)
	}
	mustRun(t, append(args, "-overwrite")...)
	images, _ := readLayout(t, filepath.Join(other, "oci"))
	reference, err := name.NewTag(target + "/kubectl:" + tag)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digestOf(t, pulled), digestOf(t, images["localhost/kubectl:"+tag]); got != want {
		t.Errorf("kubectl is %s after its tag was moved, want %s", got, want)
	}
}

func digestOf(t *testing.T, image interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// A label without a value is none.
func TestLabelsThatAreNotGiven(t *testing.T) {
	r := &release{version: version}
	for key, value := range r.labels(programs[0]) {
		if value == "" {
			t.Errorf("%s is empty", key)
		}
	}
}

// Ctrl-C leaves the images of before.
func TestBuildIsInterrupted(t *testing.T) {
	output := filepath.Join(t.TempDir(), "images")
	if err := copyFile("build.go", filepath.Join(output, "before")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, buildArgs(programsDir, output), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if files := readFiles(t, output); len(files) != 1 {
		t.Errorf("%d files", len(files))
	}
}

// What check accepts or not, build does, and check writes nothing.
func TestCheck(t *testing.T) {
	output := filepath.Join(t.TempDir(), "images")
	args := buildArgs(filepath.Join(t.TempDir(), "not built yet"), output)
	args[0] = "check"
	mustRun(t, args...)
	if err := run(t.Context(), append(args, "-repository", "UPPER"), io.Discard); err == nil || !strings.Contains(err.Error(), "-repository") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("check has written")
	}
}

func TestErrors(t *testing.T) {
	mixed, linked, windows, output := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "images")
	if err := copyFile(filepath.Join(programsDir, "linux-arm64", "kubectl"), filepath.Join(mixed, "linux-amd64", "kubectl")); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(filepath.Join("build.go"), filepath.Join(mixed, "linux-arm64", "kubectl")); err != nil {
		t.Fatal(err)
	}
	// It asks for the loader of the C library.
	if err := compile(filepath.Join(filepath.Dir(programsDir), "src"), filepath.Join(linked, "linux-amd64", "kubectl"), "amd64", "-buildmode=pie"); err != nil {
		t.Fatal(err)
	}
	if err := compile(filepath.Join(filepath.Dir(programsDir), "src"), filepath.Join(windows, "linux-amd64", "kubectl"), "amd64 GOOS=windows"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		args       []string
	}{
		{"no command", "no command", nil},
		{"unknown command", `unknown command "pull"`, []string{"pull"}},
		{"no programs", "the flag -programs is missing: directory with", []string{"build"}},
		{"an argument", `unexpected argument "all"`, buildArgs(programsDir, output, "all")},
		{"version", `-version "1.37" is not of the form v1.37.2+graceful.1`, buildArgs(programsDir, output, "-version", "1.37")},
		{"time", `-created "yesterday" is not a time such as`, buildArgs(programsDir, output, "-created", "yesterday")},
		{"source", `-source "here" is not the URL of a repository`, buildArgs(programsDir, output, "-source", "here")},
		{"repository", `-repository "UPPER case" gives no name of an image`, buildArgs(programsDir, output, "-repository", "UPPER case")},
		{"platform", `-platforms: "windows/amd64" is not of the form linux/<architecture>`, buildArgs(programsDir, output, "-platforms", "windows/amd64")},
		{"platform twice", "-platforms names linux/amd64 twice", buildArgs(programsDir, output, "-platforms", "linux/amd64,linux/amd64")},
		{"platform with a path", `-platforms: "linux/../x" is not of the form`, buildArgs(programsDir, output, "-platforms", "linux/../x")},
		{"credentials", "-source has credentials for git.example.com", buildArgs(programsDir, output, "-source", "https://a:b@git.example.com/c")},
		{"scheme", `-repository "https://registry.example.com" gives no name of an image: a name has no scheme: it is registry.example.com/kubectl`, buildArgs(programsDir, output, "-repository", "https://registry.example.com/")},
		{"other system", "linux-amd64/kubectl is built with GOOS=windows", buildArgs(windows, output, "-only", "kubectl", "-platforms", "linux/amd64")},
		{"no such image", `-only: there is no image of "kube-proxy"`, buildArgs(programsDir, output, "-only", "kube-proxy")},
		{"missing program", "/linux-amd64/kube-apiserver: no such file", buildArgs(mixed, output)},
		{"other architecture", "linux-amd64/kubectl is built with GOARCH=arm64, not for linux/amd64", buildArgs(mixed, output, "-only", "kubectl")},
		{"no program", "linux-arm64/kubectl: unrecognized file format", buildArgs(mixed, output, "-only", "kubectl", "-platforms", "linux/arm64")},
		{"C libraries", "linux-amd64/kubectl needs libraries of C", buildArgs(linked, output, "-only", "kubectl", "-platforms", "linux/amd64")},
		{"no layout", `is no layout of images: run "make images" first`, []string{"push", "-layout", mixed, "-registry", "localhost:1"}},
		{"no registry", "the flag -registry is missing", []string{"push", "-layout", mixed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := run(context.Background(), test.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if _, err := os.Stat(output); err == nil {
				t.Error("images were written")
			}
		})
	}
	t.Run("registry", func(t *testing.T) {
		err := run(t.Context(), []string{"push", "-layout", filepath.Join(build(t), "oci"), "-registry", "UPPER case"}, io.Discard)
		if want := `-registry "UPPER case" gives no name of an image`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	})
}
