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
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"graceful-kubernetes/hack/modules/images/layer"
)

// license is that of the project, as an expression of SPDX.
const license = "Apache-2.0"

// Annotations by which readers of layouts know the name of an image: that of the OCI, and the one
// of containerd, which the first is only a part of for others.
const (
	refName       = "org.opencontainers.image.ref.name"
	containerName = "io.containerd.image.name"
)

// release is what images are made of.
type release struct {
	programs, output, repository string
	version, revision, source    string
	created                      time.Time
	architectures                []string
	selected                     []program
}

// versions that kubeadm takes: those of semantic versioning.
var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// architectures that go build may have: a directory is named after each.
var architectures = regexp.MustCompile(`^[a-z0-9]+$`)

// check returns an error for flags of which no release could be made.
func (r *release) check() error {
	if !versions.MatchString(r.version) {
		return fmt.Errorf("-version %q is not of the form v1.37.2+graceful.1", r.version)
	}
	if err := checkSource(r.source); err != nil {
		return err
	}
	if _, err := parseTag(r.reference("kubectl")); err != nil {
		return fmt.Errorf("-repository %q gives no name of an image: %w", r.repository, err)
	}
	return nil
}

// parseTag parses the name of an image. The library would take "https:" for a registry.
func parseTag(reference string) (name.Tag, error) {
	if _, rest, found := strings.Cut(reference, "://"); found {
		return name.Tag{}, fmt.Errorf("a name has no scheme: it is %s", rest)
	}
	return name.NewTag(reference, name.StrictValidation)
}

// checkSource returns an error for a repository that readers of an image could not open, or with
// what only its owner is to know.
func checkSource(source string) error {
	if source == "" {
		return nil
	}
	u, err := url.Parse(source)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsFunc(source, unicode.IsSpace) {
		return fmt.Errorf("-source %q is not the URL of a repository, such as https://git.example.com/kubernetes", source)
	}
	if _, found := u.User.Password(); found || u.User != nil && strings.HasPrefix(u.Scheme, "http") {
		return fmt.Errorf("-source has credentials for %s, which everybody could read in the images: take them out", u.Host)
	}
	return nil
}

// tag is that of all images. Tags have no plus sign: kubeadm replaces it in the same way.
func (r *release) tag() string { return strings.ReplaceAll(r.version, "+", "_") }

// reference is the name of an image.
func (r *release) reference(program string) string {
	return r.repository + "/" + program + ":" + r.tag()
}

// build writes, into a directory of its own until all is complete:
//
//	oci/                                 all images as a layout of the OCI, with their SBOMs
//	docker/linux-amd64/<program>.tar     what "docker load" and "ctr images import" read
//	sbom/<program>-linux-amd64.spdx.json
func (r *release) build(ctx context.Context, out io.Writer) error {
	part := r.output + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	images, err := layout.Write(filepath.Join(part, "oci"), empty.Index)
	if err != nil {
		return err
	}
	for _, p := range r.selected {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("image of %s: %w", p.name, err)
		}
		digest, err := r.buildProgram(p, part, images)
		if err != nil {
			return fmt.Errorf("image of %s: %w", p.name, err)
		}
		fmt.Fprintf(out, "%s  %s\n", digest, r.reference(p.name))
	}
	return replace(part, r.output)
}

// replace renames a directory. One that has this name is first renamed, too: a run that is
// interrupted while it removes it leaves no half of images that looks like all.
func replace(from, to string) error {
	old := to + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(to, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// buildProgram adds an image for all platforms, and returns its digest.
func (r *release) buildProgram(p program, directory string, images layout.Path) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var documents []v1.Image
	for _, architecture := range r.architectures {
		image, infos, err := r.image(p, architecture)
		if err != nil {
			return v1.Hash{}, err
		}
		image = noArtifact{image}
		descriptor, err := partial.Descriptor(image)
		if err != nil {
			return v1.Hash{}, err
		}
		descriptor.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: *descriptor})
		document, err := r.writeSBOM(p, architecture, *descriptor, infos, directory)
		if err != nil {
			return v1.Hash{}, err
		}
		documents = append(documents, document)
		if err := r.writeTarball(p, architecture, image, directory); err != nil {
			return v1.Hash{}, err
		}
	}
	index, ok := mutate.Annotations(index, r.labels(p)).(v1.ImageIndex)
	if !ok {
		return v1.Hash{}, fmt.Errorf("an index with annotations is no index")
	}
	reference := r.reference(p.name)
	err := images.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: reference, containerName: reference}))
	if err != nil {
		return v1.Hash{}, err
	}
	for _, document := range documents {
		if err := images.AppendImage(document); err != nil {
			return v1.Hash{}, err
		}
	}
	return index.Digest()
}

// noArtifact is an image whose descriptor has no type of an artifact: the library would take that of
// the configuration.
type noArtifact struct{ v1.Image }

// ArtifactType is what the library asks for.
func (noArtifact) ArtifactType() (string, error) { return "", nil }

// labels are those that the OCI defines. A value that was not given is left out.
func (r *release) labels(p program) map[string]string {
	labels := map[string]string{}
	for key, value := range map[string]string{
		"title": p.name, "description": p.description, "licenses": license,
		"version": r.version, "revision": r.revision, "source": r.source,
		"created": r.created.UTC().Format(time.RFC3339),
	} {
		if value != "" {
			labels["org.opencontainers.image."+key] = value
		}
	}
	return labels
}

// image returns the image of a program for an architecture, and of what its programs are built.
func (r *release) image(p program, architecture string) (v1.Image, []*buildinfo.BuildInfo, error) {
	path, info, err := r.file(p.name, architecture)
	if err != nil {
		return nil, nil, err
	}
	infos := []*buildinfo.BuildInfo{info}
	// What images have in common is in a layer of its own, which nodes fetch and keep once.
	common := layer.Base()
	if p.roots {
		common = append(common, layer.Roots())
	}
	entrypoint, runnerRuns := p.runs()
	if runnerRuns {
		path, info, err := r.file(logRunner, architecture)
		if err != nil {
			return nil, nil, err
		}
		infos = append(infos, info)
		common = append(common, layer.File{Path: runner, Mode: 0o755, Source: path})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, step := range []struct {
		comment string
		files   []layer.File
	}{
		{"accounts, certificates, " + logRunner, common},
		{p.name, []layer.File{{Path: p.installPath(), Mode: 0o755, Source: path, BindsLowPorts: p.bindsLowPorts}}},
	} {
		packed, err := layer.New(step.files...)
		if err != nil {
			return nil, nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: packed, History: v1.History{
			Created: v1.Time{Time: r.created.UTC()}, CreatedBy: "images build", Comment: step.comment,
		}})
		if err != nil {
			return nil, nil, err
		}
	}
	image, err = r.configure(image, p, architecture, entrypoint)
	return image, infos, err
}

func (r *release) configure(image v1.Image, p program, architecture, entrypoint string) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Created = v1.Time{Time: r.created.UTC()}
	config.Config = v1.Config{
		// Not SSL_CERT_FILE: kubeadm mounts the certificates of the host, wherever those are.
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Entrypoint: []string{entrypoint}, Cmd: p.command, WorkingDir: "/", Labels: r.labels(p),
	}
	return mutate.ConfigFile(image, config)
}

func (r *release) writeTarball(p program, architecture string, image v1.Image, directory string) error {
	tag, err := parseTag(r.reference(p.name))
	if err != nil {
		return err
	}
	directory = filepath.Join(directory, "docker", "linux-"+architecture)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	return tarball.WriteToFile(filepath.Join(directory, p.name+".tar"), tag, image)
}
