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

package interop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestMigrateDocs runs the convert commands in the console blocks of docs/migrate, on the files that
// "cat" shows before them, and compares what they print. UPDATE_DOCS=true writes the pages.
func TestMigrateDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/migrate/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		now, commands := runBlocks(t, path, string(text))
		ran += commands
		switch {
		case now == string(text):
		case os.Getenv("UPDATE_DOCS") == "true":
			err = os.WriteFile(page, []byte(now), 0o644)
		default:
			t.Errorf("%s (-page, +output now):\n%s\nset UPDATE_DOCS=true to write it", page, gocmp.Diff(string(text), now))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if ran < 6 {
		t.Errorf("the pages have only %d convert commands", ran)
	}
}

// runBlocks returns the page with the output that its commands have now, and their number.
func runBlocks(t *testing.T, path, page string) (string, int) {
	t.Helper()
	directory := t.TempDir()
	var now strings.Builder
	count := 0
	inBlock := false
	for _, part := range splitCommands(page) {
		command, content, _ := strings.Cut(part, "\n")
		file, shows := strings.CutPrefix(command, "$ cat ")
		switch {
		case strings.HasPrefix(part, "```console\n"):
			inBlock = true
		case !strings.HasPrefix(part, "$ "):
			inBlock = false
		case inBlock && shows:
			if err := os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		case inBlock && strings.Contains(command, "kubectl maintenance convert"):
			count++
			shell := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(strings.TrimPrefix(command, "$ "), "kubectl maintenance", path, 1))
			shell.Dir = directory
			shell.Env = append(os.Environ(), "KUBECONFIG=/nonexistent")
			output, err := shell.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			part = command + "\n" + string(output)
		}
		now.WriteString(part)
	}
	return now.String(), count
}

// splitCommands splits a page before each command, and before and after each fence of a block.
func splitCommands(page string) []string {
	var parts []string
	start := true
	for _, line := range strings.SplitAfter(page, "\n") {
		fence := strings.HasPrefix(line, "```")
		if start || fence || strings.HasPrefix(line, "$ ") {
			parts = append(parts, line)
		} else {
			parts[len(parts)-1] += line
		}
		start = fence
	}
	return parts
}
