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

// ourDirs are the directories of the repository that the tree takes our files from.
var ourDirs = []string{"api", "cmd", "hack", "pkg", "plugin", "staging", "test"}

// The library for requesters and responders is a module of its own in the repository, which everybody can use. The tree
// has the same package in client-go.
const (
	libraryDir   = "evictions/"
	libraryPlace = stagingDir + "k8s.io/client-go/tools/evictions/"
)

// treePath returns the place in the tree of a file of the repository.
func treePath(file string) string {
	if name, isLibrary := strings.CutPrefix(file, libraryDir); isLibrary && path.Ext(name) == ".go" && !strings.Contains(name, "/") {
		return libraryPlace + name
	}
	return file
}

// repoPath returns the file of the repository that has this place in the tree.
func repoPath(place string) string {
	if name, isLibrary := strings.CutPrefix(place, libraryPlace); isLibrary {
		return libraryDir + name
	}
	return place
}

// inTooling reports whether a file serves the repository, not the tree.
func inTooling(file string) bool {
	return strings.HasPrefix(file, "hack/tree/") || strings.HasPrefix(file, "hack/modules/")
}

// layable reports whether one of our files can have this path.
func layable(file string) bool {
	top, _, nested := strings.Cut(file, "/")
	return nested && slices.Contains(ourDirs, top) && !inTooling(file) &&
		!strings.HasSuffix(file, ".patch") && !strings.HasSuffix(file, tempSuffix)
}

// listOurs reads our files: what git tracks or does not ignore.
func (w *workspace) listOurs() (map[string]content, error) {
	args := append([]string{"ls-files", "-z", "-co", "--exclude-standard", "--deduplicate", "--", libraryDir}, ourDirs...)
	paths, err := repoGit(w.root).fields(nil, args...)
	if err != nil {
		return nil, err
	}
	ours := map[string]content{}
	for _, file := range paths {
		p := treePath(file)
		if !layable(p) {
			continue
		}
		our, err := readContent(filepath.Join(w.root, file))
		if err != nil {
			return nil, err
		}
		if our.mode == modeLink {
			return nil, fmt.Errorf("%s: is a link in the repository: only regular files can be ours", p)
		}
		if our.mode != "" { // else removed, but still in git's index
			ours[p] = our
		}
	}
	return ours, nil
}

// checkOurs reports our files that have the place of one of upstream's.
func (w *workspace) checkOurs() error {
	var errs []error
	for _, p := range sortedKeys(w.ours) {
		if _, ok := w.base[p]; ok {
			errs = append(errs, fmt.Errorf("%s: exists upstream: change upstream's file in the tree and run make refresh, or choose another name", p))
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := w.base[dir]; ok {
				errs = append(errs, fmt.Errorf("%s: upstream has a file %s where a directory is needed: choose another name", p, dir))
			}
		}
	}
	return errors.Join(errs...)
}

// generatedPatch holds all edits of upstream's generated files.
const generatedPatch = "hack/generated.patch"

// patch is the edit of one upstream file.
type patch struct {
	file, path   string // the patch file, relative to the repository, and the upstream file
	oldBlob      string // what the patch was made against; empty if it only changes the mode
	header, diff []byte
}

func (p *patch) generated() bool { return p.file == generatedPatch }

// patchSet is the content of all patch files of the repository.
type patchSet struct {
	patches []*patch
	files   map[string][]byte
}

// digest identifies the base and the patches that a tree is computed from.
func (s *patchSet) digest(base string) string {
	return blobID(fmt.Appendf(nil, "%s %q", base, s.files))
}

// readPatches reads all patch files of the repository. They can be in any
// directory, since upstream has files in all of them.
func readPatches(root string) (*patchSet, error) {
	out, err := repoGit(root).fields(nil, "ls-files", "-z", "-co", "--exclude-standard", "--deduplicate", "--", "*.patch")
	if err != nil {
		return nil, err
	}
	// Git lists untracked files first: PATCHES.md must not depend on that.
	slices.Sort(out)
	set := &patchSet{files: map[string][]byte{}}
	seen := map[string]string{}
	var errs []error
	for _, file := range out {
		data, err := os.ReadFile(filepath.Join(root, file))
		if inTooling(file) || os.IsNotExist(err) {
			continue // removed, but still in git's index
		}
		if err != nil {
			return nil, err
		}
		set.files[file] = data
		parsed, err := parsePatchFile(file, data)
		errs = append(errs, err)
		for _, p := range parsed {
			if other := seen[p.path]; other != "" {
				errs = append(errs, fmt.Errorf("%s: is changed by both %s and %s: remove one", p.path, other, file))
			}
			seen[p.path] = file
		}
		set.patches = append(set.patches, parsed...)
	}
	return set, errors.Join(errs...)
}

// parsePatchFile parses a patch of one upstream file, or the generated patch.
func parsePatchFile(file string, data []byte) ([]*patch, error) {
	header, diffs := splitDiff(data)
	if file != generatedPatch && len(diffs) != 1 {
		return nil, fmt.Errorf("%s: has %d diffs, a patch is one diff of the file that it is named after", file, len(diffs))
	}
	var patches []*patch
	for _, diff := range diffs {
		p, err := parseDiff(diff)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		p.file, p.header = file, header
		if want := strings.TrimSuffix(file, ".patch"); !p.generated() && p.path != want {
			return nil, fmt.Errorf("%s: changes %s, but by its name it is the patch of %s", file, p.path, want)
		}
		patches = append(patches, p)
	}
	return patches, nil
}

// diffStart is the first line of the diff of a file. No line within a diff
// begins like this: text has a sign or a blank before it, binary data no blank.
var diffStart = regexp.MustCompile(`(?m)^diff --git `)

// splitDiff cuts a patch file into what is above the first diff and the diffs
// of the single files.
func splitDiff(data []byte) (header []byte, diffs [][]byte) {
	starts := diffStart.FindAllIndex(data, -1)
	if len(starts) == 0 {
		return data, nil
	}
	end := len(data)
	for _, start := range slices.Backward(starts) {
		diffs = append(diffs, data[start[0]:end])
		end = start[0]
	}
	slices.Reverse(diffs)
	return data[:end], diffs
}

// diffHead is how the diff of an edited file begins. Full blob ids prove that a
// patch was made against this very file. A diff that adds, removes or renames a
// file has more lines.
var diffHead = regexp.MustCompile(`^diff --git a/(.+) b/(.+)\n(?:old mode \d+\nnew mode \d+\n)?` +
	`(?:index ([0-9a-f]{40})\.\.[0-9a-f]{40}(?: \d+)?\n)?(?:--- a/|GIT binary patch\n|$)`)

func parseDiff(diff []byte) (*patch, error) {
	m := diffHead.FindSubmatch(diff)
	if m == nil || !bytes.Equal(m[1], m[2]) || m[3] == nil && bytes.Contains(diff, []byte("\n@@ ")) {
		first, _, _ := bytes.Cut(diff, []byte("\n"))
		return nil, fmt.Errorf("%s: a patch has an index line with full blob ids, and cannot add, remove or rename a file", first)
	}
	return &patch{path: string(m[1]), oldBlob: string(m[3]), diff: diff}, nil
}

// errOutgrown is the error of a patch that was made against another version of
// its file: a three-way merge can help.
var errOutgrown = errors.New("run make merge for a three-way merge, then make refresh")

// checkTarget compares a patch with the base that it is to be applied to.
func (w *workspace) checkTarget(p *patch) error {
	target, ok := w.base[p.path]
	_, blob := target.split()
	switch {
	case isWorkFile(p.path):
		return fmt.Errorf("%s: %s is written by the tool and cannot be patched", p.file, p.path)
	case !ok:
		return fmt.Errorf("%s: the base has no file %s: remove the patch, or move its edit to where upstream moved the code", p.file, p.path)
	case p.oldBlob != "" && p.oldBlob != blob:
		return fmt.Errorf("%s: was made against another version of %s: %w", p.file, p.path, errOutgrown)
	}
	return nil
}

// applyPatches applies patches to the index of g, all at once, which is much
// faster than one by one. Only if that fails, it finds out which ones fail.
func applyPatches(g git, patches []*patch) error {
	if len(patches) == 0 || gitApply(g, patches, "--cached") == nil {
		return nil
	}
	var errs []error
	for _, p := range patches {
		if err := gitApply(g, []*patch{p}, "--cached", "--check"); err != nil {
			errs = append(errs, fmt.Errorf("%s: does not apply to %s: %w: restore it, or remove it and edit the file in the tree", p.file, p.path, err))
		}
	}
	return errors.Join(errs...)
}

// gitApply runs git apply, which allows no fuzz by itself.
func gitApply(g git, patches []*patch, flags ...string) error {
	var all bytes.Buffer
	for _, p := range patches {
		all.Write(p.diff)
	}
	_, err := g.run(all.Bytes(), append([]string{"apply", "--whitespace=nowarn"}, flags...)...)
	return err
}

// mergePatch merges a patch with the present version of its file, in the index
// and the work tree of g. Conflict markers become part of the tree that is laid
// out, for the developer to resolve.
func (w *workspace) mergePatch(g git, plan *syncPlan, p *patch) error {
	if _, err := g.run(nil, "cat-file", "-e", p.oldBlob); err != nil {
		return fmt.Errorf("%s: the old %s is unknown: put the old version into go.mod, run make tree, and merge with the new one", p.file, p.path)
	}
	plan.outgrown = append(plan.outgrown, p.path)
	applyErr := gitApply(g, []*patch{p}, "--3way")
	if applyErr == nil {
		return nil
	}
	file, err := readContent(filepath.Join(g.dir, p.path))
	switch {
	case p.generated():
		// Generated code is not merged by hand but generated again.
		mode, blob := w.base[p.path].split()
		_, err = g.run(nil, "update-index", "--cacheinfo", mode+","+blob+","+p.path)
	case conflictMarkers.Match(file.data):
		plan.conflicts = append(plan.conflicts, p.path)
		_, err = g.run(nil, "update-index", "--", p.path)
	default:
		err = errors.Join(err, fmt.Errorf("%s: cannot be merged: keep a copy elsewhere, remove it, and make the edit again in the new %s: %w", p.file, p.path, applyErr))
	}
	return err
}

// conflictMarkers are those of an unresolved conflict.
var conflictMarkers = regexp.MustCompile(`(?ms)^<<<<<<< .*^>>>>>>> `)

// headerField returns the value of "Why:" or "Gate:" above a diff, with the
// indented lines that continue it.
func headerField(header []byte, name string) string {
	field := regexp.MustCompile(`(?m)^` + name + `:(.*(?:\n[ \t]+\S.*)*)`).FindSubmatch(header)
	if field == nil {
		return ""
	}
	return strings.Join(strings.Fields(string(field[1])), " ")
}
