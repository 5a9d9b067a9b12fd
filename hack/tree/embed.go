/*
Copyright The Kubernetes Authors.

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
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// markEmbedded finds our files that a go:embed directive covers, in a Go file
// of their directory or of one above it, upstream's or ours.
func (w *workspace) markEmbedded(ours map[string]ourFile) error {
	patterns := map[string][]string{} // by directory
	for p, our := range ours {
		if strings.HasSuffix(p, ".go") {
			continue
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := patterns[dir]; !ok {
				found, err := w.embedPatterns(dir)
				if err != nil {
					return err
				}
				patterns[dir] = found
			}
			if embeds(patterns[dir], strings.TrimPrefix(p, dir+"/")) {
				our.embedded = true
				ours[p] = our
			}
		}
	}
	return nil
}

// embedPatterns collects the go:embed patterns of the Go files of a directory,
// in the tree and, for what may not be laid yet, in the repository and in the
// patches.
func (w *workspace) embedPatterns(dir string) ([]string, error) {
	var patterns []string
	for _, top := range []string{w.dir, w.root} {
		files, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Join(top, dir)), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			// A link whose target is gone is not laid for long.
			if data, err := os.ReadFile(file); err == nil {
				patterns = append(patterns, parseEmbeds(data)...)
			}
		}
	}
	for _, p := range w.set.patches {
		if path.Dir(p.path) == dir {
			patterns = append(patterns, parseEmbeds(p.diff)...)
		}
	}
	return patterns, nil
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func parseEmbeds(source []byte) []string {
	var patterns []string
	for {
		at := bytes.Index(source, []byte("//go:embed "))
		if at < 0 {
			return patterns
		}
		line, rest, _ := bytes.Cut(source[at:], []byte("\n"))
		patterns = append(patterns, splitPatterns(strings.TrimPrefix(string(line), "//go:embed "))...)
		source = rest
	}
}

// splitPatterns splits at blanks, but not within the quotes of a Go string.
func splitPatterns(s string) []string {
	var patterns []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		word, quoted := s, false
		if q, err := strconv.QuotedPrefix(s); err == nil {
			word, quoted = q, true
		} else if i := strings.IndexAny(s, " \t"); i >= 0 {
			word = s[:i]
		}
		s = s[len(word):]
		if quoted {
			word, _ = strconv.Unquote(word) // QuotedPrefix has found it valid
		}
		patterns = append(patterns, strings.TrimPrefix(word, "all:"))
	}
	return patterns
}

// embeds is true if a pattern names the file or a directory above it.
func embeds(patterns []string, file string) bool {
	for _, pattern := range patterns {
		for p := file; p != "."; p = path.Dir(p) {
			if ok, _ := path.Match(pattern, p); ok {
				return true
			}
		}
	}
	return false
}
