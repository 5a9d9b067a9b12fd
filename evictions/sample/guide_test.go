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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const guide = "../../docs/how-to/write-an-interceptor.md"

// TestGuide: the program of the guide is this one, and an empty module with it builds.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```go\npackage main\n")
	program, _, closed := strings.Cut(program, "```\n")
	if program = "package main\n" + program; !found || !closed {
		t.Fatalf("%s has no program", guide)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if _, same, _ := strings.Cut(string(source), "from here on.\n"); same != program {
		t.Errorf("the program of %s is not main.go: copy it", guide)
	}

	module := t.TempDir()
	if err := os.WriteFile(filepath.Join(module, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	library, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	// As the guide says, whose commands name no directory.
	for _, command := range []string{
		"go mod init example.com/save",
		"go mod edit -replace graceful-kubernetes.example/evictions=" + library,
		"go mod edit -require k8s.io/client-go@v0.37.2",
		"go mod tidy",
		"go build -o save .",
	} {
		if fields := strings.Fields(command); !strings.Contains(string(page), strings.TrimSuffix(command, library)) {
			t.Errorf("%s does not have: %s", guide, command)
		} else {
			run := exec.CommandContext(t.Context(), fields[0], fields[1:]...)
			run.Dir, run.Env = module, append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false")
			if output, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, output)
			}
		}
	}
	required, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"} {
		if !strings.Contains(string(required), module+" v0.37.2\n") {
			t.Errorf("does not require upstream's %s v0.37.2:\n%s", module, required)
		}
	}
}
