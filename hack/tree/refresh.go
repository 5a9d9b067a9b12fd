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
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// refreshPlan is what refresh writes to the repository, by file; what has no mode
// is removed.
type refreshPlan struct {
	files map[string]content
	lines []string // what the plan changes, one line for each file
}

func (p *refreshPlan) add(verb, file string, c content) {
	p.files[file] = c
	p.lines = append(p.lines, verb+" "+file)
}

// runRefresh writes the edits of the tree back to the repository. It first brings
// what changed in the repository into the tree, so that nothing is reverted, and
// last turns new files of the tree into links.
func (w *workspace) runRefresh() (string, error) {
	base, err := w.loadTree()
	if err != nil {
		return "", err
	}
	found, err := w.sync(base)
	if err != nil {
		return "", err
	}
	plan, err := w.planRefresh(found)
	if err != nil {
		return "", err
	}
	for file, c := range plan.files {
		if c.mode != "" {
			if _, err := writeFile(filepath.Join(w.root, file), c); err != nil {
				return "", err
			}
		}
	}
	// Removals are last: an interrupted run may leave an edit twice, never nowhere.
	for file, c := range plan.files {
		if c.mode == "" {
			if err := removeFile(w.root, file); err != nil {
				return "", err
			}
		}
	}
	if _, err := w.sync(base); err != nil {
		return "", err
	}
	return w.summary() + w.printLines(plan.lines), nil
}

// planRefresh compares the tree with the repository, apart from what sync found
// to have changed in the repository.
func (w *workspace) planRefresh(found *syncPlan) (*refreshPlan, error) {
	plan := &refreshPlan{files: map[string]content{}}
	return plan, errors.Join(w.planEdits(plan, found), w.planImports(plan), w.planPatches(plan, found))
}

// planEdits adds our files that were edited as copies, or removed from the tree.
func (w *workspace) planEdits(plan *refreshPlan, found *syncPlan) error {
	var missing []string
	var errs []error
	for _, p := range found.ourEdits {
		have, err := readContent(filepath.Join(w.dir, p))
		errs = append(errs, err)
		switch {
		case have.mode == "":
			plan.add("remove", repoPath(p), content{})
			missing = append(missing, repoPath(p))
		case conflictMarkers.Match(have.data):
			errs = append(errs, markersError(p))
		default:
			plan.add("write", repoPath(p), have)
		}
	}
	return errors.Join(append(errs, w.checkRemovals(missing))...)
}

func markersError(path string) error {
	return fmt.Errorf("%s: has conflict markers: resolve them first", path)
}

// massRemoval is the number of missing files from which on it is more likely
// that something wiped the tree, as git clean and git checkout do.
const massRemoval = 10

func checkMass(gone, all int, what string) error {
	if gone < massRemoval || 2*gone <= all {
		return nil
	}
	return fmt.Errorf("%d of %d %s are gone from the tree: remove them in the repository, or run tree -discard", gone, all, what)
}

// checkRemovals allows our files to be removed from the repository only if its
// git can bring them back.
func (w *workspace) checkRemovals(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	if err := checkMass(len(missing), len(w.ours), "files of ours"); err != nil {
		return err
	}
	unsaved, err := repoGit(w.root).fields(nil, append([]string{"ls-files", "-z", "--modified", "--others", "--"}, missing...)...)
	if len(unsaved) > 0 {
		err = fmt.Errorf("%s: removed in the tree, but git has no copy: git add it first, or run tree -discard", strings.Join(unsaved, ", "))
	}
	return err
}

// planImports adds the files that neither upstream nor the repository has.
func (w *workspace) planImports(plan *refreshPlan) error {
	paths, err := w.index().fields(nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	upstream := map[entry]string{}
	for p, e := range w.base {
		upstream[e] = p
	}
	var imports []string
	var errs []error
	for _, p := range paths {
		if w.ours[p].mode != "" {
			continue
		}
		have, err := readContent(filepath.Join(w.dir, p))
		errs = append(errs, err, w.checkImport(p, have, upstream))
		plan.add("move into the repository", repoPath(p), have)
		imports = append(imports, repoPath(p))
	}
	// The status says whether any is ignored, so it is no error.
	ignored, _ := repoGit(w.root).fields(imports, "check-ignore", "-z", "--no-index", "--stdin")
	for _, p := range ignored {
		errs = append(errs, fmt.Errorf("%s: is new, but the repository's .gitignore excludes it: rename or remove it", p))
	}
	return errors.Join(errs...)
}

// checkImport refuses new files that cannot be ours. Content of upstream's files
// never enters the repository.
func (w *workspace) checkImport(p string, have content, upstream map[entry]string) error {
	from := upstream[have.entry()]
	switch {
	case have.mode == modeLink:
		return fmt.Errorf("%s: is a link to %s; only regular files can be new: remove it, and move our files in the repository", p, have.data)
	case !layable(p):
		return fmt.Errorf("%s: is new, but only files below %s can be ours: move or remove it", p, strings.Join(ourDirs, ", "))
	case conflictMarkers.Match(have.data):
		return markersError(p)
	case from != "" && len(have.data) > 0 && !looksGenerated(p, have.data):
		return fmt.Errorf("%s: is a copy of upstream's %s, which does not belong into the repository: remove it", p, from)
	}
	return nil
}

// planPatches adds the patch files that are not as the tree calls for.
func (w *workspace) planPatches(plan *refreshPlan, found *syncPlan) error {
	tree, err := w.editedTree(found)
	if err != nil {
		return err
	}
	files, err := w.makePatches(found.base, tree)
	if err != nil {
		return err
	}
	for file, data := range files {
		if !bytes.Equal(w.set.files[file], data) {
			plan.add("write", file, content{modeFile, data})
		}
	}
	gone := 0
	for file := range w.set.files {
		if files[file] == nil {
			plan.add("remove", file, content{})
			gone++
		}
	}
	return checkMass(gone, len(w.set.files), "patches")
}

// editedTree makes the git tree of upstream's files as they are now.
func (w *workspace) editedTree(found *syncPlan) (string, error) {
	for _, p := range found.edits {
		if _, err := os.Lstat(filepath.Join(w.dir, p)); err != nil {
			return "", fmt.Errorf("%s: is upstream's and cannot be removed or renamed: git -C %s restore --source laid %s", p, w.dir, p)
		}
	}
	return w.edit(found.tree, func(g git) error {
		_, err := w.git.withIndex(g.index).fields(found.edits, "update-index", "-z", "--stdin")
		return err
	})
}

// diffFlags make a diff the same whoever makes it, whatever git's settings are.
// One line of context keeps the copied lines of upstream few. It is enough: the
// line numbers are those of the very file that the patch is applied to.
var diffFlags = []string{"diff-tree", "-r", "-p", "-U1", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
	"--no-renames", "--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/"}

// makePatches makes the patch files from the base to a tree, and proves that they
// give that very tree.
func (w *workspace) makePatches(base, tree string) (map[string][]byte, error) {
	out, err := w.git.run(nil, append(slices.Clone(diffFlags), base, tree)...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var patches []*patch
	var errs []error
	_, diffs := splitDiff(out)
	for _, diff := range diffs {
		p, err := parseDiff(diff)
		if err != nil {
			return nil, fmt.Errorf("reading a diff of the tree: %w", err)
		}
		p.file = p.path + ".patch"
		patches = append(patches, p)
		errs = append(errs, w.filePatch(files, p))
	}
	proof, err := w.edit(base, func(g git) error { return applyPatches(g, patches) })
	if err == nil && proof != tree {
		err = fmt.Errorf("the patches of the tree make %s instead of %s: please report this as a defect of hack/tree", proof, tree)
	}
	return files, errors.Join(append(errs, err)...)
}

// newHeader is for the developer to fill in; verify demands it.
const newHeader = "Why:\nGate:\n\n"

// filePatch adds a diff to a file of its own, which keeps its header, or to the
// generated patch.
func (w *workspace) filePatch(files map[string][]byte, p *patch) error {
	data, err := os.ReadFile(filepath.Join(w.dir, p.path))
	header, _ := splitDiff(w.set.files[p.file])
	switch {
	case bytes.Contains(p.diff, []byte("\n+<<<<<<< ")):
		return markersError(p.path)
	case looksGenerated(p.path, data):
		files[generatedPatch] = append(files[generatedPatch], p.diff...)
	case len(header) == 0:
		files[p.file] = slices.Concat([]byte(newHeader), p.diff)
	default:
		files[p.file] = slices.Concat(header, p.diff)
	}
	return err
}

// unmarked are upstream files that programs write without a marker in them. A
// path matches if it is below dir and its base name matches name.
var unmarked = []struct{ dir, name string }{
	{"api/openapi-spec/", "*"}, {"api/discovery/", "*"}, {"pkg/generated/", "*"},
	{"staging/src/k8s.io/api/testdata/", "*"},
	{"plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/", "*.yaml"},
	{"test/compatibility_lifecycle/reference/", "*"},
	{"", "zz_generated.*"}, {"", "generated.proto"}, {"", "types_swagger_doc_generated.go"}, {"staging/", "go.sum"},
}

// generatedMarker is how generators sign. It is in the head of a file, below the
// licence at the latest; further down it is more likely to be a template of a
// generator.
var generatedMarker = regexp.MustCompile(`Code generated .*DO NOT EDIT|This file was autogenerated`)

// looksGenerated reports, by path and content, whether a program writes the file.
func looksGenerated(file string, data []byte) bool {
	for _, u := range unmarked {
		if ok, _ := path.Match(u.name, path.Base(file)); ok && strings.HasPrefix(file, u.dir) {
			return true
		}
	}
	return generatedMarker.Match(data[:min(len(data), 1000)])
}
