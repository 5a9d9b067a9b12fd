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
	"fmt"
	"path"
	"sort"
	"strconv"
)

// diffFlags make a diff the same whoever makes it, whatever git's settings are.
// The content of deleted files is left out: it is upstream's.
var diffFlags = []string{"diff-tree", "-r", "-p", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
	"--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/", "--irreversible-delete"}

// One line of context keeps the copied lines of upstream few. More are tried
// where one does not give the same file again.
const (
	minContext = 1
	maxContext = 3
)

// renameSimilarity, one percent, pairs what findRenames has paired already.
const renameSimilarity = "-M01%"

// diff makes the normalised diffs between the base and a tree, of all files or
// of some, one for each.
func (w *workspace) diff(tree string, context int, rename string, paths ...string) ([]*patch, error) {
	args := append([]string{}, diffFlags...)
	args = append(args, "-U"+strconv.Itoa(context), rename, w.st.Base, tree, "--")
	out, err := w.git.run(nil, append(args, paths...)...)
	if err != nil {
		return nil, err
	}
	_, sections := splitDiff(out)
	var patches []*patch
	for _, section := range sections {
		p, err := parseSection(section)
		if err != nil {
			return nil, fmt.Errorf("reading a diff of the tree: %w", err)
		}
		patches = append(patches, p)
	}
	return patches, nil
}

// makePatches makes the diffs from the base and proves that they give the very
// tree that they were made from.
func (w *workspace) makePatches(up *upstreamPart) ([]*patch, error) {
	patches, err := w.diff(up.plain, minContext, "--no-renames")
	if err != nil {
		return nil, err
	}
	for _, from := range sortedKeys(up.renames) {
		p, err := w.diffRename(up, from, minContext)
		if err != nil {
			return nil, err
		}
		patches = append(patches, p)
	}
	if tree, err := w.applyPatches(w.st.Base, patches); err == nil && tree == up.tree {
		return patches, nil
	}
	for i, p := range patches {
		if patches[i], err = w.exactPatch(up, p); err != nil {
			return nil, err
		}
	}
	return patches, nil
}

// diffRename makes the diff of one rename. It is limited to the two paths, so
// that git cannot pair either with another file that is more alike.
func (w *workspace) diffRename(up *upstreamPart, from string, context int) (*patch, error) {
	to := up.renames[from]
	patches, err := w.diff(up.tree, context, renameSimilarity, from, to)
	if err != nil {
		return nil, fmt.Errorf("%s: renamed to %s, but the two have nothing in common: restore it, and write %s anew: %w", from, to, to, err)
	}
	if len(patches) != 1 {
		return nil, fmt.Errorf("%s: renamed to %s, but git sees %d changes", from, to, len(patches))
	}
	return patches[0], nil
}

// exactPatch gives a patch more context until it makes the very file.
func (w *workspace) exactPatch(up *upstreamPart, p *patch) (*patch, error) {
	want, err := w.git.lsTree(up.tree)
	if err != nil {
		return nil, err
	}
	for context := minContext; context <= maxContext; context++ {
		tree, err := w.applyPatches(w.st.Base, []*patch{p})
		if err == nil {
			got, err := w.git.lsTree(tree)
			if err != nil {
				return nil, err
			}
			if got[p.newPath] == want[p.newPath] {
				return p, nil
			}
		}
		if p.newPath != p.path {
			p, err = w.diffRename(up, p.path, context+1)
		} else {
			var again []*patch
			if again, err = w.diff(up.tree, context+1, "--no-renames", p.path); err == nil {
				p = again[0]
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: no diff of up to %d lines of context applies exactly", p.path, maxContext)
}

// changedPatches compares the patch files that the tree calls for with those
// that the repository has; nil stands for one that has to go.
func (w *workspace) changedPatches(up *upstreamPart) (map[string][]byte, error) {
	patches, err := w.makePatches(up)
	if err != nil {
		return nil, err
	}
	wanted, err := w.patchFiles(patches)
	if err != nil {
		return nil, err
	}
	changed := map[string][]byte{}
	for file, data := range wanted {
		if old, ok := w.set.files[file]; !ok || !bytes.Equal(old, data) {
			changed[file] = data
		}
	}
	for file := range w.set.files {
		if _, ok := wanted[file]; !ok {
			changed[file] = nil
		}
	}
	return changed, nil
}

// newHeader is for the developer to fill in; verify demands it.
const newHeader = "Why:\nGate:\n\n"

// patchFiles sorts diffs into a file of their own and the generated patch.
func (w *workspace) patchFiles(patches []*patch) (map[string][]byte, error) {
	headers := map[string][]byte{}
	for _, p := range w.set.patches {
		if !p.generated() {
			headers[p.path] = p.header
		}
	}
	generated, err := w.generatedPaths(patches)
	if err != nil {
		return nil, err
	}
	sort.Slice(patches, func(i, j int) bool { return patches[i].path < patches[j].path })
	files := map[string][]byte{}
	for _, p := range patches {
		if generated[p.path] {
			files[generatedPatch] = append(files[generatedPatch], p.diff...)
			continue
		}
		header := headers[p.path]
		if len(header) == 0 {
			header = []byte(newHeader)
		}
		files[path.Clean(p.path)+".patch"] = append(header[:len(header):len(header)], p.diff...)
	}
	return files, nil
}

// generatedPaths tells which of the patched upstream files programs write.
func (w *workspace) generatedPaths(patches []*patch) (map[string]bool, error) {
	var paths []string
	entries := map[string]entry{}
	for _, p := range patches {
		paths = append(paths, p.path)
		entries[p.path] = w.base[p.path]
	}
	contents, err := w.readEntries(entries)
	if err != nil {
		return nil, err
	}
	generated, err := markedGenerated(w.git, paths)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if looksGenerated(p, contents[p].data) {
			generated[p] = true
		}
	}
	return generated, nil
}
