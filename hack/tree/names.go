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
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// packageDoc is the file with the documentation of a package.
const packageDoc = "doc.go"

var (
	// goFileName is a Go file that a text names, perhaps with a directory or as a pattern.
	goFileName = regexp.MustCompile(`[\w./*-]*[\w*]\.go\b`)
	// readingOrder is a line of a documentation that lists files.
	readingOrder = regexp.MustCompile(`(?m)^//\t\S+\.go\b`)
)

// checkNames demands that the Go files exist that documents and documentations of packages name, and that
// a documentation which lists the files of its package lists all of them, without tests and generated ones.
func (w *workspace) checkNames() error {
	files, err := repoGit(w.root).fields(nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		if path.Base(file) != packageDoc && path.Ext(file) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.root, file))
		if err != nil {
			if !os.IsNotExist(err) { // It is deleted, and that is not committed.
				errs = append(errs, err)
			}
			continue
		}
		errs = append(errs, w.checkNamed(file, text, files)...)
		if path.Base(file) == packageDoc && readingOrder.Match(text) {
			errs = append(errs, checkListed(file, text, files)...)
		}
	}
	return errors.Join(errs...)
}

// checkNamed returns an error for each Go file that the text names and that does not exist.
func (w *workspace) checkNamed(file string, text []byte, files []string) []error {
	var errs []error
	for number, line := range bytes.Split(text, []byte("\n")) {
		for _, name := range goFileName.FindAllString(string(line), -1) {
			isAddress := strings.HasPrefix(name, "//") // https:
			if !isAddress && !w.isNamed(file, name, files) {
				errs = append(errs, fmt.Errorf("%s:%d: names %s, which does not exist: correct the name", file, number+1, name))
			}
		}
	}
	return errs
}

// isNamed reports whether a name means a file of the repository or of the base: from the root, from the directory
// of the text, or by the end of its path.
func (w *workspace) isNamed(file, name string, files []string) bool {
	for _, dir := range []string{w.dir, filepath.Join(w.dir, path.Dir(file)), filepath.Join(w.root, path.Dir(file))} {
		if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
			return true
		}
	}
	depth := strings.Count(path.Clean(name), "/") + 1
	return slices.ContainsFunc(files, func(f string) bool {
		parts := strings.Split(f, "/")
		matches, _ := path.Match(path.Clean(name), path.Join(parts[max(0, len(parts)-depth):]...))
		return matches
	})
}

// checkListed returns an error for each file of the package that its documentation does not list.
func checkListed(file string, text []byte, files []string) []error {
	listed := goFileName.FindAllString(string(text), -1)
	var errs []error
	for _, f := range files {
		name := path.Base(f)
		if path.Dir(f) != path.Dir(file) || path.Ext(name) != ".go" || name == packageDoc || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		if !slices.ContainsFunc(listed, func(pattern string) bool { matches, _ := path.Match(pattern, name); return matches }) {
			errs = append(errs, fmt.Errorf("%s: does not list %s: say in a line what the file has", file, name))
		}
	}
	return errs
}
