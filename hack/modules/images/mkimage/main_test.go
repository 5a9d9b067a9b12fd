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
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestImage(t *testing.T) {
	dir := t.TempDir()
	program, output := filepath.Join(dir, "program"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	contents := []string{program + "=/bin/program", "@program=/bin/link"}
	if err := run(output, "localhost/one:1,localhost/two:2", []string{"/bin/program", "run"}, []string{"now"}, contents); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"localhost/one:1", "localhost/two:2"} {
		reference, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(output, &reference)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Created.Unix() != 0 {
			t.Errorf("an image for %s/%s of %s", config.OS, config.Architecture, config.Created)
		}
		if c := config.Config; !slices.Equal(c.Entrypoint, []string{"/bin/program", "run"}) || !slices.Equal(c.Cmd, []string{"now"}) || !slices.Equal(c.Env, []string{"PATH=/bin:/"}) {
			t.Errorf("configuration %+v", c)
		}
		var got []string
		reader := tar.NewReader(mutate.Extract(image))
		for {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Name == "bin/program" && header.Mode != 0o755 {
				t.Errorf("the program has the mode %o", header.Mode)
			}
			got = append(got, header.Name+header.Linkname)
		}
		for _, want := range []string{"bin/program", "bin/linkprogram", "etc/passwd", "tmp"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s is missing in %v", want, got)
			}
		}
	}
	expectFiles(t, dir, "image.tar", "program")

	first, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := run(output, "localhost/one:1,localhost/two:2", []string{"/bin/program", "run"}, []string{"now"}, contents); err != nil {
			t.Fatal(err)
		}
		if again, err := os.ReadFile(output); err != nil || !slices.Equal(first, again) {
			t.Fatalf("the same files gave another image, %v", err)
		}
	}
}

func expectFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("files %v, %v, want %v", got, err, want)
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct{ name, tags, content, want string }{
		{"no path", "localhost/a:1", "program", `"program" is not of the form file=/path`},
		{"relative path", "localhost/a:1", "program=bin/program", `"program=bin/program" is not of the form file=/path`},
		{"no file", "localhost/a:1", "missing=/bin/program", "missing: no such file"},
		{"no name", "", "@a=/a", "a repository name must be specified"},
		{"bad name", "localhost/a:1,UPPER", "@a=/a", "can only contain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			err := run(filepath.Join(dir, "image.tar"), test.tags, nil, nil, []string{test.content})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			expectFiles(t, dir)
		})
	}
}

// A file that cannot be written leaves what was there.
func TestImageIsReplacedAtOnce(t *testing.T) {
	dir := t.TempDir()
	output := filepath.Join(dir, "image.tar")
	if err := errors.Join(os.WriteFile(output, []byte("of before"), 0o600), os.Mkdir(output+".part", 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := run(output, "localhost/a:1", nil, nil, []string{"@a=/a"}); err == nil {
		t.Error("an image was written over a directory")
	}
	if content, err := os.ReadFile(output); err != nil || string(content) != "of before" {
		t.Errorf("%s, %v", content, err)
	}
}
