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
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push copies a layout to a registry.
type push struct {
	layout, registry string
	overwrite        bool
	// withoutSBOMs is for registries that take nothing but images.
	withoutSBOMs bool
}

// patience is how often a request that fails is sent again, and when, if the failure may pass:
// registries limit rates, and restart.
var patience = remote.Backoff{Duration: time.Second, Factor: 3, Jitter: 0.1, Steps: 4}

func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithRetryBackoff(patience)}
}

// push pushes all images, each with its SBOMs first: who sees a tag, finds all of it. It asks for
// the credentials that docker or podman have stored. Images that the registry has already are
// left as they are.
func (p *push) push(ctx context.Context, out io.Writer) error {
	path, err := layout.FromPath(p.layout)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("-layout %s is no layout of images: run \"make images\" first: %w", p.layout, err)
	}
	if err != nil {
		return err
	}
	root, err := path.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return err
	}
	if err := checkBlobs(p.layout); err != nil {
		return err
	}
	pusher, err := remote.NewPusher(options(ctx)...)
	if err != nil {
		return err
	}
	referrers, err := readReferrers(path, manifest)
	if err != nil {
		return err
	}
	for _, descriptor := range manifest.Manifests {
		if !descriptor.MediaType.IsIndex() {
			continue
		}
		if err := p.pushImage(ctx, out, pusher, root, descriptor, referrers); err != nil {
			return err
		}
	}
	return nil
}

// checkBlobs returns an error for a layout with a file that is not what its name says: not all of
// them are compared when they are sent.
func checkBlobs(directory string) error {
	blobs := filepath.Join(directory, "blobs", "sha256")
	entries, err := os.ReadDir(blobs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		file, err := os.Open(filepath.Join(blobs, entry.Name()))
		if err != nil {
			return err
		}
		hash, _, err := v1.SHA256(file)
		file.Close()
		if err != nil {
			return err
		}
		if hash.Hex != entry.Name() {
			return fmt.Errorf("-layout: %s was changed after it was written: run \"make images\" again", file.Name())
		}
	}
	return nil
}

// readReferrers returns the SBOMs of a layout by the images that they refer to.
func readReferrers(path layout.Path, manifest *v1.IndexManifest) (map[v1.Hash][]v1.Image, error) {
	referrers := map[v1.Hash][]v1.Image{}
	for _, descriptor := range manifest.Manifests {
		if !descriptor.MediaType.IsImage() {
			continue
		}
		image, err := path.Image(descriptor.Digest)
		if err != nil {
			return nil, err
		}
		m, err := image.Manifest()
		if err != nil {
			return nil, err
		}
		if m.Subject != nil {
			referrers[m.Subject.Digest] = append(referrers[m.Subject.Digest], image)
		}
	}
	return referrers, nil
}

func (p *push) pushImage(ctx context.Context, out io.Writer, pusher *remote.Pusher, root v1.ImageIndex, descriptor v1.Descriptor, referrers map[v1.Hash][]v1.Image) error {
	reference, err := p.reference(descriptor)
	if err != nil {
		return err
	}
	if present, err := p.isPresent(ctx, reference, descriptor.Digest); err != nil {
		return err
	} else if present {
		fmt.Fprintf(out, "%s is there already\n", reference)
		return nil
	}
	index, err := root.ImageIndex(descriptor.Digest)
	if err != nil {
		return err
	}
	platforms, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, platform := range platforms.Manifests {
		if p.withoutSBOMs {
			break
		}
		for _, document := range referrers[platform.Digest] {
			digest, err := document.Digest()
			if err != nil {
				return err
			}
			if err := pusher.Push(ctx, reference.Context().Digest(digest.String()), document); err != nil {
				return fmt.Errorf("push the SBOM of %s (-without-sboms pushes to registries that take only images): %w", reference, err)
			}
		}
	}
	if err := pusher.Push(ctx, reference, index); err != nil {
		return fmt.Errorf("push %s: %w", reference, err)
	}
	fmt.Fprintf(out, "%s@%s\n", reference, descriptor.Digest)
	return nil
}

// reference is the name of an image of a layout in the registry.
func (p *push) reference(descriptor v1.Descriptor) (name.Tag, error) {
	local := descriptor.Annotations[refName]
	image := local[strings.LastIndex(local, "/")+1:]
	reference, err := parseTag(strings.TrimSuffix(p.registry, "/") + "/" + image)
	if err != nil {
		return reference, fmt.Errorf("-registry %q gives no name of an image: %w", p.registry, err)
	}
	return reference, nil
}

// isPresent returns whether the registry has an image already. A tag of a release that another
// image has is not moved, unless the user wants it: nodes would run either.
func (p *push) isPresent(ctx context.Context, reference name.Tag, digest v1.Hash) (bool, error) {
	found, err := remote.Head(reference, options(ctx)...)
	var failure *transport.Error
	switch {
	case errors.As(err, &failure) && failure.StatusCode == http.StatusNotFound:
		return false, nil
	case errors.As(err, &failure) && (failure.StatusCode == http.StatusUnauthorized || failure.StatusCode == http.StatusForbidden):
		return false, fmt.Errorf("the registry does not let you read %s: \"docker login\" or \"podman login\" stores credentials: %w", reference, err)
	case err != nil:
		return false, fmt.Errorf("ask the registry for %s: %w", reference, err)
	case found.Digest == digest:
		return true, nil
	case p.overwrite:
		return false, nil
	default:
		return false, fmt.Errorf("%s is another image in the registry, %s, not %s: give the release another version, or say that its tag is to be moved", reference, found.Digest, digest)
	}
}
