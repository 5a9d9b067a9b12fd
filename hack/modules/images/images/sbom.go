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
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

const (
	// spdxType is the media type of an SBOM, and the type of the artifact that holds it.
	spdxType types.MediaType = "application/spdx+json"

	sbomSuffix = ".spdx.json"

	noAssertion = "NOASSERTION"

	// rootsModule is where the certificate authorities of images come from.
	rootsModule = "golang.org/x/crypto/x509roots/fallback"
)

// writeSBOM writes the SBOM of an image into a file, and returns it as an artifact that refers to
// the image.
func (r *release) writeSBOM(p program, architecture string, image v1.Descriptor, infos []*buildinfo.BuildInfo, directory string) (v1.Image, error) {
	name := p.name + "-linux-" + architecture
	data, err := writeDocument(r.sbom(p, architecture, image, infos), filepath.Join(directory, "sbom"), name)
	if err != nil {
		return nil, err
	}
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), spdxType)
	artifact, err = mutate.Append(artifact, mutate.Addendum{
		Layer:       static.NewLayer(data, spdxType),
		Annotations: map[string]string{"org.opencontainers.image.title": name + sbomSuffix},
	})
	if err != nil {
		return nil, err
	}
	image.Platform = nil
	artifact, ok := mutate.Subject(artifact, image).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("an image with a subject is no image")
	}
	return artifact, nil
}

// sbom describes an image: what it contains, the modules of Go that its programs are built from,
// and Go itself.
func (r *release) sbom(p program, architecture string, image v1.Descriptor, infos []*buildinfo.BuildInfo) *spdx.Document {
	b := r.newSBOM(fmt.Sprintf("%s-image-%s-linux-%s", p.name, r.version, architecture), image.Digest.Hex)
	container := b.add(&spdx.Package{
		PackageName: p.name, PackageVersion: r.version, PrimaryPackagePurpose: "CONTAINER",
		PackageLicenseDeclared: license, PackageDownloadLocation: noAssertion,
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: image.Digest.Hex}},
	}, "pkg:oci/"+p.name+"@"+strings.ReplaceAll(image.Digest.String(), ":", "%3A")+"?arch="+architecture)
	b.relate("DOCUMENT", "DESCRIBES", container)
	for _, info := range infos {
		b.relate(container, "CONTAINS", b.addProgram(info, r))
	}
	if p.roots {
		b.relate(container, "CONTAINS", b.addModule(&debug.Module{Path: rootsModule, Version: moduleVersion(rootsModule)}, ""))
	}
	return b.document
}

// writeProgramSBOMs writes an SBOM for each program, also for those without an image.
func (r *release) writeProgramSBOMs() error {
	for _, architecture := range r.architectures {
		platform := "linux-" + architecture
		entries, err := os.ReadDir(filepath.Join(r.programs, platform))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			path, info, err := r.file(entry.Name(), architecture)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := fmt.Sprintf("%x", sha256.Sum256(data))
			b := r.newSBOM(fmt.Sprintf("%s-%s-%s", entry.Name(), r.version, platform), sum)
			main := b.addProgram(info, r)
			b.document.Packages[0].PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
			b.relate("DOCUMENT", "DESCRIBES", main)
			if _, err := writeDocument(b.document, r.output, entry.Name()+"-"+platform); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeDocument writes an SBOM into a file, and returns its content.
func writeDocument(document *spdx.Document, directory, name string) ([]byte, error) {
	var data bytes.Buffer
	if err := json.Write(document, &data, json.Indent("  "), json.EscapeHTML(false)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	return data.Bytes(), os.WriteFile(filepath.Join(directory, name+sbomSuffix), data.Bytes(), 0o644)
}

// newSBOM returns a document that describes nothing yet. The hash is of what it is to describe: the
// namespace has to be unique, not to lead anywhere.
func (r *release) newSBOM(name, hash string) *sbomBuilder {
	return &sbomBuilder{added: map[common.ElementID]bool{}, document: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://spdx.org/spdxdocs/" + name + "-" + hash,
		CreationInfo: &spdx.CreationInfo{
			Created:  r.created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "graceful-kubernetes/hack/modules/images"}},
		},
	}}
}

func (r *release) origin() string {
	if r.revision == "" {
		return ""
	}
	return strings.TrimSpace("built from commit " + r.revision + " " + r.source)
}

// sbomBuilder adds packages to a document, each once.
type sbomBuilder struct {
	document *spdx.Document
	added    map[common.ElementID]bool
}

// notInIdentifiers are the characters that an identifier of SPDX does not have.
var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// add adds a package with the URL by which tools find its vulnerabilities (purl).
func (b *sbomBuilder) add(p *spdx.Package, url string) common.ElementID {
	p.PackageSPDXIdentifier = common.ElementID("Package-" + strings.Trim(notInIdentifiers.ReplaceAllString(p.PackageName+"-"+p.PackageVersion, "-"), "-"))
	if p.PrimaryPackagePurpose == "CONTAINER" {
		p.PackageSPDXIdentifier = "Image"
	}
	if b.added[p.PackageSPDXIdentifier] {
		return p.PackageSPDXIdentifier
	}
	b.added[p.PackageSPDXIdentifier] = true
	p.IsFilesAnalyzedTagPresent = true
	p.PackageLicenseConcluded, p.PackageCopyrightText = noAssertion, noAssertion
	p.PackageExternalReferences = []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: url,
	}}
	b.document.Packages = append(b.document.Packages, p)
	return p.PackageSPDXIdentifier
}

// addProgram adds a program with its modules.
func (b *sbomBuilder) addProgram(info *buildinfo.BuildInfo, r *release) common.ElementID {
	main := b.add(&spdx.Package{
		PackageName: info.Path, PackageVersion: r.version, PrimaryPackagePurpose: "APPLICATION",
		PackageLicenseDeclared: license, PackageDownloadLocation: noAssertion, PackageSourceInfo: r.origin(),
	}, goURL(info.Main.Path, treeVersion(info.Main.Path, r.version))+"#"+strings.TrimPrefix(info.Path, info.Main.Path+"/"))
	for _, module := range append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...) {
		b.relate(main, "DEPENDS_ON", b.addModule(module, r.version))
	}
	return main
}

// treeVersion returns the version of a module of the tree. Those beside Kubernetes itself have no
// version of their own. Upstream releases them as v0 with the numbers of the release, and that is
// what reports of vulnerabilities name.
func treeVersion(path, version string) string {
	if path == "k8s.io/kubernetes" {
		return version
	}
	return strings.Replace(version, "v1.", "v0.", 1)
}

// addModule adds a module of Go.
func (b *sbomBuilder) addModule(module *debug.Module, version string) common.ElementID {
	if module.Replace != nil && !isLocal(module.Replace) {
		module = module.Replace
	}
	p := &spdx.Package{
		PackageName: module.Path, PackageVersion: module.Version, PrimaryPackagePurpose: "LIBRARY",
		PackageLicenseDeclared: noAssertion, PackageDownloadLocation: noAssertion,
	}
	if (isLocal(module) || module.Replace != nil && isLocal(module.Replace)) && strings.HasPrefix(module.Path, "k8s.io/") {
		p.PackageVersion, p.PackageLicenseDeclared = treeVersion(module.Path, version), license
	}
	if module.Sum != "" {
		p.PackageComment = "sum of the module: " + module.Sum
	}
	return b.add(p, goURL(module.Path, p.PackageVersion))
}

// isLocal returns whether a module was a directory, not one that has a version.
func isLocal(module *debug.Module) bool { return module.Version == "" || module.Version == "(devel)" }

func (b *sbomBuilder) relate(from common.ElementID, kind string, to common.ElementID) {
	b.document.Relationships = append(b.document.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to)),
	})
}

// goURL returns the purl of a module of Go.
func goURL(module, version string) string {
	return "pkg:golang/" + strings.ToLower(module) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// moduleVersion returns the version of a module that this program is built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path }); i >= 0 {
			return info.Deps[i].Version
		}
	}
	return ""
}
