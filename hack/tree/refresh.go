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
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
)

var errNoTree = errors.New("there is no tree: run make tree")

// refreshPlan is what refresh writes to the repository.
type refreshPlan struct {
	// tree is base plus the edits of upstream files.
	tree string
	// patches are the new contents of patch files; nil removes one.
	patches map[string][]byte
	// imports are new files of the tree that become ours.
	imports map[string]content
	// edits are our files that were edited in the tree as copies.
	edits map[string]content
	// renames and removals are those of our files.
	renames  map[string]string
	removals []string
}

func (p *refreshPlan) lines() []string {
	var lines []string
	for file, data := range p.patches {
		verb := "wrote "
		if data == nil {
			verb = "removed "
		}
		lines = append(lines, verb+file)
	}
	for file := range p.imports {
		lines = append(lines, "moved into the repository "+file)
	}
	for file := range p.edits {
		lines = append(lines, "wrote "+file)
	}
	for from, to := range p.renames {
		lines = append(lines, "renamed "+from+" to "+to)
	}
	for _, file := range p.removals {
		lines = append(lines, "removed "+file)
	}
	sort.Strings(lines)
	return lines
}

// refresh writes the edits of the tree back to the repository. It first brings
// what changed in the repository into the tree, so that nothing is reverted.
func (w *workspace) refresh() (*refreshPlan, error) {
	if err := w.loadSound(); err != nil {
		return nil, err
	}
	if _, err := w.sync(w.st.Base); err != nil {
		return nil, err
	}
	plan, err := w.planRefresh()
	if err != nil {
		return nil, err
	}
	if err := w.writeBack(plan); err != nil {
		return nil, err
	}
	if err := w.recordRefresh(plan); err != nil {
		return nil, err
	}
	_, err = w.sync(w.st.Base)
	return plan, err
}

// loadSound loads a tree that the repository may be changed after.
func (w *workspace) loadSound() error {
	if err := w.load(); err != nil {
		return err
	}
	if w.st == nil {
		return errNoTree
	}
	if w.st.BaseKey != baseKey(w.pins) {
		return fmt.Errorf("the tree was made from another version than %s, which go.mod asks for: run make tree", baseVersion(w.pins))
	}
	w.copies = w.st.Copies
	return nil
}

// planRefresh compares the tree with the repository. The tree has to be
// current: planSync has run and found nothing to do.
func (w *workspace) planRefresh() (*refreshPlan, error) {
	plan := &refreshPlan{edits: map[string]content{}, renames: map[string]string{}}
	missing, err := w.editedOurs(plan)
	if err != nil {
		return nil, err
	}
	fresh, err := w.newFiles(plan, missing)
	if err != nil {
		return nil, err
	}
	edits, err := w.upstreamEdits()
	if err != nil {
		return nil, err
	}
	up, err := w.splitUpstream(edits, fresh)
	if err != nil {
		return nil, err
	}
	plan.tree, plan.imports = up.tree, up.imports
	matchRenamedCopies(plan, missing, w.st.Ours)
	if err := w.checkImports(plan); err != nil {
		return nil, err
	}
	if err := w.checkRemovals(plan, missing); err != nil {
		return nil, err
	}
	if plan.patches, err = w.changedPatches(up); err != nil {
		return nil, err
	}
	return plan, w.checkPatchRemovals(plan)
}

// checkPatchRemovals stops a refresh after something like git checkout or git
// stash in the tree, which takes all edits of upstream files back at once.
func (w *workspace) checkPatchRemovals(plan *refreshPlan) error {
	gone := 0
	for _, data := range plan.patches {
		if data == nil {
			gone++
		}
	}
	if gone >= massRemoval && 2*gone > len(w.set.files) {
		return fmt.Errorf("the edits of %d of %d patches are gone from the tree: if you mean to drop them, remove the patches in the repository; else run tree -discard", gone, len(w.set.files))
	}
	return nil
}

// writeBack changes the repository. Patches are written before others are
// removed: a killed run may leave an edit twice, but never nowhere.
func (w *workspace) writeBack(plan *refreshPlan) error {
	for _, files := range []map[string]content{patchContents(plan.patches), plan.imports, plan.edits} {
		for _, file := range sortedKeys(files) {
			c := files[file]
			if _, err := writeIfChanged(filepath.Join(w.root, file), c.data, permOf(c.mode), w.tmpDir()); err != nil {
				return err
			}
			if err := os.Chmod(filepath.Join(w.root, file), permOf(c.mode)); err != nil {
				return err
			}
		}
	}
	for _, from := range sortedKeys(plan.renames) {
		if err := w.renameOurs(from, plan.renames[from]); err != nil {
			return err
		}
	}
	removals := append([]string{}, plan.removals...)
	for file, data := range plan.patches {
		if data == nil {
			removals = append(removals, file)
		}
	}
	sort.Strings(removals)
	for _, file := range removals {
		if err := removeFile(w.root, file); err != nil {
			return err
		}
	}
	return nil
}

func patchContents(patches map[string][]byte) map[string]content {
	files := map[string]content{}
	for file, data := range patches {
		if data != nil {
			files[file] = content{modeFile, data}
		}
	}
	return files
}

// renameOurs moves one of our files within the repository. checkImports has made
// sure that nothing is overwritten.
func (w *workspace) renameOurs(from, to string) error {
	if err := failpoint("rename " + from); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.root, path.Dir(to)), 0o755); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(w.root, from), filepath.Join(w.root, to)); err != nil {
		return err
	}
	return removeFile(w.root, from) // for the directories that are empty now
}

// recordRefresh makes the state agree with what was written.
func (w *workspace) recordRefresh(plan *refreshPlan) error {
	if len(plan.lines()) == 0 && plan.tree == w.st.Tree && len(w.st.Merged) == 0 {
		return nil
	}
	var err error
	if w.set, err = readPatches(w.root); err != nil {
		return err
	}
	if err := w.setLaidIndex(&syncPlan{tree: plan.tree}); err != nil {
		return err
	}
	for p, c := range plan.edits {
		w.st.Ours[p] = laid{Sums: []string{c.sum()}}
	}
	for from := range plan.renames {
		delete(w.st.Ours, from)
	}
	for _, p := range plan.removals {
		delete(w.st.Ours, p)
	}
	w.st.Tree, w.st.Merged = plan.tree, nil
	w.st.Patches = w.set.digest(w.st.Base, nil)
	return w.st.save(w.gitDir())
}
