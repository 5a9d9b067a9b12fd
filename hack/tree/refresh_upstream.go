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
	"path/filepath"
)

// upstreamEdits lists edited upstream files, without those with open conflicts.
func (w *workspace) upstreamEdits() ([]string, error) {
	all, err := w.edits()
	if err != nil {
		return nil, err
	}
	var paths []string
	var errs []error
	for _, p := range all {
		have, err := readContent(filepath.Join(w.dir, p))
		switch {
		case isWorkFile(p):
			continue
		case err != nil:
			errs = append(errs, err)
		case have.mode == modeLink:
			errs = append(errs, fmt.Errorf("%s: upstream's file is a link in the tree: put a file there, or run tree -discard %s", p, p))
		case hasMarkers(have.data):
			errs = append(errs, fmt.Errorf("%s: has conflict markers: resolve them first", p))
		}
		paths = append(paths, p)
	}
	return paths, errors.Join(errs...)
}

// upstreamPart is what the tree makes of the base.
type upstreamPart struct {
	// tree is base plus edits; plain is the same with renames undone.
	tree, plain string
	// renames of upstream files.
	renames map[string]string
	imports map[string]content
}

// splitUpstream tells new files from renamed upstream files, whose content
// must not land in the repository.
func (w *workspace) splitUpstream(edits, fresh []string) (*upstreamPart, error) {
	index, err := w.tempIndex()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(w.gitDir(), "tree-index"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(index, data, 0o644); err != nil {
		return nil, err
	}
	g := w.git.withIndex(index)
	if _, err := g.run(joinNUL(append(edits, fresh...)), "update-index", "--add", "--remove", "-z", "--stdin"); err != nil {
		return nil, err
	}
	all, err := g.line("write-tree")
	if err != nil {
		return nil, err
	}
	changes, err := w.git.diffTrees(w.st.Base, all)
	if err != nil {
		return nil, err
	}
	up := &upstreamPart{}
	if up.renames, err = w.findRenames(all, changes); err != nil {
		return nil, err
	}
	if err := w.findImports(up, changes); err != nil {
		return nil, err
	}
	if _, err := g.run(joinNUL(sortedKeys(up.imports)), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
		return nil, err
	}
	if up.tree, err = g.line("write-tree"); err != nil {
		return nil, err
	}
	up.plain, err = w.undoRenames(g, up)
	return up, err
}

// findRenames pairs deleted upstream files with files that are not upstream's.
func (w *workspace) findRenames(tree string, changes []change) (map[string]string, error) {
	renames := map[string]string{}
	added, deleted := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		if c.old.mode == "" {
			added[c.path] = true
		} else if c.new.mode == "" {
			deleted[c.path] = true
		}
	}
	if len(added) == 0 || len(deleted) == 0 {
		return renames, nil
	}
	// A rename that has a patch stays one, however much its content changes.
	for _, p := range w.set.patches {
		if p.newPath != p.path && added[p.newPath] && deleted[p.path] {
			renames[p.path] = p.newPath
			delete(added, p.newPath)
		}
	}
	items, err := w.git.fields(nil, "diff-tree", "-r", "-z", "-M", "-l0", "--diff-filter=R", "--name-status", w.st.Base, tree)
	if err != nil {
		return nil, err
	}
	for i := 0; i+2 < len(items); i += 3 {
		if from, to := items[i+1], items[i+2]; added[to] && renames[from] == "" {
			renames[from] = to
		}
	}
	return renames, nil
}

// findImports collects the added files that are no renames, and refuses those
// that are upstream's in another place.
func (w *workspace) findImports(up *upstreamPart, changes []change) error {
	targets := map[string]bool{}
	for _, to := range up.renames {
		targets[to] = true
	}
	wasTarget := map[string]string{}
	for _, p := range w.set.patches {
		if p.newPath != p.path {
			wasTarget[p.newPath] = p.path
		}
	}
	upstream := map[string]string{}
	for p, e := range w.base {
		upstream[e.blob] = p
	}
	up.imports = map[string]content{}
	var errs []error
	for _, c := range changes {
		if c.old.mode != "" || targets[c.path] {
			continue
		}
		have, err := readContent(filepath.Join(w.dir, c.path))
		if err != nil {
			return err
		}
		from := wasTarget[c.path]
		if from == "" && len(have.data) > 0 && !looksGenerated(c.path, have.data) {
			from = upstream[c.new.blob]
		}
		if from != "" {
			errs = append(errs, fmt.Errorf("%s: is a copy of upstream's %s, which does not belong into the repository: remove it, or remove %s to make it a rename", c.path, from, from))
		}
		up.imports[c.path] = have
	}
	return errors.Join(errs...)
}

// undoRenames makes the tree in which renamed files are as in the base: the
// diffs of renames are made one by one, so that git pairs no others.
func (w *workspace) undoRenames(g git, up *upstreamPart) (string, error) {
	if len(up.renames) == 0 {
		return up.tree, nil
	}
	var info bytes.Buffer
	for from, to := range up.renames {
		fmt.Fprintf(&info, "0 %s\t%s\x00", nullBlob, to)
		fmt.Fprintf(&info, "%s %s\t%s\x00", w.base[from].mode, w.base[from].blob, from)
	}
	if _, err := g.run(info.Bytes(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return g.line("write-tree")
}
