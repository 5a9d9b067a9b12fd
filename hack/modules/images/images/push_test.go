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
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// faultyRegistry is a registry whose requests fail as a test says.
type faultyRegistry struct {
	http.Handler

	lock sync.Mutex
	// fault returns the status of the failure of a request, 0 for none, or abort.
	fault func(method, path string) int
}

// abort ends the connection in the middle of a request.
const abort = -1

func newFaultyRegistry(t *testing.T, fault func(method, path string) int) (*faultyRegistry, string) {
	t.Helper()
	f := &faultyRegistry{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), fault: fault}
	server := httptest.NewServer(f)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	return f, strings.TrimPrefix(server.URL, "http://") + "/kubernetes"
}

func (f *faultyRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.lock.Lock()
	status := 0
	if f.fault != nil {
		status = f.fault(r.Method, r.URL.Path)
	}
	f.lock.Unlock()
	switch status {
	case 0:
		f.Handler.ServeHTTP(w, r)
	case abort:
		panic(http.ErrAbortHandler)
	default:
		http.Error(w, "this registry has a fault", status)
	}
}

func (f *faultyRegistry) setFault(fault func(method, path string) int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.fault = fault
}

// once returns a fault of the first request of each kind that matches: uploads have paths of their
// own.
func once(status int, matches func(method, path string) bool) func(string, string) int {
	done := map[string]bool{}
	return func(method, path string) int {
		path, _, _ = strings.Cut(path, "/uploads/")
		if matches(method, path) && !done[method+path] {
			done[method+path] = true
			return status
		}
		return 0
	}
}

// always returns a fault of all requests that match.
func always(status int, matches func(method, path string) bool) func(string, string) int {
	return func(method, path string) int {
		if matches(method, path) {
			return status
		}
		return 0
	}
}

func all(string, string) bool { return true }

func uploads(method, path string) bool {
	return method != http.MethodHead && method != http.MethodGet && strings.Contains(path, "/blobs/uploads/")
}

// Failures that pass are not seen.
func TestPushIsTriedAgain(t *testing.T) {
	layout := filepath.Join(build(t), "oci")
	for name, fault := range map[string]func(string, string) int{
		"too many requests": once(http.StatusTooManyRequests, func(method, _ string) bool { return method != http.MethodPut && method != http.MethodPatch }),
		"server error":      once(http.StatusInternalServerError, func(method, path string) bool { return method == http.MethodPut }),
		"lost connections":  once(abort, func(method, _ string) bool { return method == http.MethodPatch }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, target := newFaultyRegistry(t, fault)
			out := mustRun(t, "push", "-layout", layout, "-registry", target)
			if got := strings.Count(out, target+"/kube"); got != 5 {
				t.Errorf("%d images were pushed: %s", got, out)
			}
		})
	}
}

// Failures that stay are reported, name the image, and leave no tag of an image that is not complete.
func TestPushFails(t *testing.T) {
	layout := filepath.Join(build(t), "oci")
	kubectl := func(matches func(string, string) bool) func(string, string) bool {
		return func(method, path string) bool { return strings.Contains(path, "/kubectl/") && matches(method, path) }
	}
	for _, test := range []struct {
		name  string
		fault func(method, path string) int
		want  string
	}{
		{"credentials are asked for", always(http.StatusUnauthorized, kubectl(all)), `the registry does not let you read %s: "docker login"`},
		{"reading is forbidden", always(http.StatusForbidden, kubectl(all)), `the registry does not let you read %s: "docker login"`},
		{"writing is forbidden", always(http.StatusForbidden, kubectl(uploads)), "push the SBOM of %s"},
		{"server errors", always(http.StatusInternalServerError, kubectl(uploads)), "push the SBOM of %s"},
		{"full disk", always(http.StatusInsufficientStorage, kubectl(func(method, path string) bool {
			return method == http.MethodPut && strings.HasSuffix(path, "/manifests/"+tag)
		})), "push %s: "},
		{"no artifacts", always(http.StatusBadRequest, kubectl(func(method, path string) bool {
			return method == http.MethodPut && strings.Contains(path, "/manifests/")
		})), "push the SBOM of %s (-without-sboms pushes to registries that take only images): "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, target := newFaultyRegistry(t, test.fault)
			args := []string{"push", "-layout", layout, "-registry", target}
			err := run(t.Context(), args, io.Discard)
			image := target + "/kubectl:" + tag
			if want := fmt.Sprintf(test.want, image); err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q", err, want)
			}
			// It goes on where it has ended.
			f.setFault(nil)
			reference, err := name.NewTag(image)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := remote.Head(reference); err == nil {
				t.Error("the image has a tag")
			}
			out := mustRun(t, args...)
			if !strings.Contains(out, image+"@sha256:") || !strings.Contains(out, "/kube-apiserver:"+tag+" is there already\n") {
				t.Errorf("the second time: %s", out)
			}
			if _, err := remote.Head(reference); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPushWithoutSBOMs(t *testing.T) {
	_, target := newFaultyRegistry(t, nil)
	mustRun(t, "push", "-layout", filepath.Join(build(t), "oci"), "-registry", target, "-without-sboms")
	repository, err := name.NewRepository(target + "/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	tags, err := remote.List(repository)
	if err != nil || len(tags) != 1 || tags[0] != tag {
		t.Errorf("tags %v, %v", tags, err)
	}
}

// The credentials that "docker login" has stored are used.
func TestPushWithStoredCredentials(t *testing.T) {
	layout := filepath.Join(build(t), "oci")
	f, _ := newFaultyRegistry(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "release" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	configuration := t.TempDir()
	t.Setenv("DOCKER_CONFIG", configuration)
	args := []string{"push", "-layout", layout, "-registry", host + "/kubernetes"}
	if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), `"docker login"`) {
		t.Errorf("without credentials: %v", err)
	}
	stored := fmt.Sprintf(`{"auths": {%q: {"username": "release", "password": "secret"}}}`, host)
	if err := os.WriteFile(filepath.Join(configuration, "config.json"), []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, args...)
}

// Ctrl-C ends a push before the next image.
func TestPushIsInterrupted(t *testing.T) {
	layout := filepath.Join(build(t), "oci")
	ctx, cancel := context.WithCancel(t.Context())
	f, target := newFaultyRegistry(t, nil)
	f.setFault(func(method, path string) int {
		if method == http.MethodPut && strings.HasSuffix(path, "/manifests/"+tag) {
			cancel()
		}
		return 0
	})
	err := run(ctx, []string{"push", "-layout", layout, "-registry", target}, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	f.setFault(nil)
	if out := mustRun(t, "push", "-layout", layout, "-registry", target); strings.Count(out, "@sha256:") < 4 {
		t.Errorf("after the interruption: %s", out)
	}
}

// A layout of which something is missing or changed is not pushed as if it were complete.
func TestPushOfBrokenLayout(t *testing.T) {
	// The path has characters that mean something to patterns.
	output := filepath.Join(t.TempDir(), "a[b]", "images")
	mustRun(t, buildArgs(programsDir, output, "-only", "kubectl", "-platforms", "linux/amd64")...)
	directory := filepath.Join(output, "oci/blobs/sha256")
	blobs, err := os.ReadDir(directory)
	if err != nil || len(blobs) < 7 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	paths := []string{filepath.Join(output, "oci/index.json")}
	for _, blob := range blobs {
		paths = append(paths, filepath.Join(directory, blob.Name()))
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []func() error{
			func() error { return os.WriteFile(path, append([]byte("x"), content[1:]...), 0o600) },
			func() error { return os.Remove(path) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			_, target := newFaultyRegistry(t, nil)
			var out strings.Builder
			err := run(t.Context(), []string{"push", "-layout", filepath.Join(output, "oci"), "-registry", target}, &out)
			if err == nil || out.Len() > 0 {
				t.Errorf("pushed though %s is missing or changed: %.100q", filepath.Base(path), content)
			}
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
