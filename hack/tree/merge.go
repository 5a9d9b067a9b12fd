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
	"os/exec"
	"path/filepath"
	"strings"
)

// threeWay merges two versions of a text file that come from a common one.
// It says whether conflict markers were left; binary files are an error.
func (w *workspace) threeWay(current, common, other []byte, labels [3]string) ([]byte, bool, error) {
	dir, err := os.MkdirTemp(w.tmpDir(), "merge-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(dir)
	args := []string{"merge-file", "-p"}
	for _, label := range labels {
		args = append(args, "-L", label)
	}
	for i, data := range [][]byte{current, common, other} {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return nil, false, err
		}
		args = append(args, file)
	}
	merged, err := w.git.run(nil, args...)
	var exit *exec.ExitError
	// The status is the number of conflicts, or 128 and more for an error.
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return merged, true, nil
	}
	return merged, false, err
}

// hasMarkers is true if a file holds an unresolved conflict.
func hasMarkers(data []byte) bool {
	data = append([]byte("\n"), data...)
	return bytes.Contains(data, []byte("\n<<<<<<< ")) && bytes.Contains(data, []byte("\n>>>>>>> "))
}

// mergeEdit merges an edit of the tree with the changed patch of the file.
func (w *workspace) mergeEdit(plan *syncPlan, path string, old entry, have, wanted content) error {
	if have.mode == "" || wanted.mode == "" || old.mode == "" {
		return fmt.Errorf("%s: changed on one side and removed on the other: restore it in the tree, or run tree -discard %s", path, path)
	}
	common, err := w.readEntries(map[string]entry{path: old})
	if err != nil {
		return err
	}
	merged, conflict, err := w.threeWay(have.data, common[path].data, wanted.data, [3]string{"tree", "last laid", "repository"})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	plan.addMerged(path, content{have.mode, merged}, conflict)
	return nil
}

// addMerged puts a merge result into the plan, in place of what T has.
func (p *syncPlan) addMerged(path string, c content, conflict bool) {
	p.files[path] = c
	p.merged = append(p.merged, path)
	if conflict {
		p.conflicts = append(p.conflicts, path)
	}
}

// merge brings patches that were made against another base over to the present
// one. The results are edits of the tree, which refresh turns into patches. It
// also merges edits of the tree with patches that changed meanwhile.
func (w *workspace) merge() (*syncPlan, error) {
	if err := w.load(); err != nil {
		return nil, err
	}
	if w.st == nil {
		return nil, errNoTree
	}
	base, err := w.wantedBase()
	if err != nil {
		return nil, err
	}
	if w.base, err = w.git.lsTree(base); err != nil {
		return nil, err
	}
	if w.set, err = readPatches(w.root); err != nil {
		return nil, err
	}
	if w.discard {
		w.st.Merged = nil // do it once more
	}
	results, err := w.mergeStale()
	if err != nil {
		return nil, err
	}
	w.merging = true
	w.st.Merged = mergedFiles(results, w.set, w.st.Merged)
	plan, err := w.planSync(base)
	if err != nil {
		return nil, err
	}
	if err := w.overlay(plan, results); err != nil {
		return nil, err
	}
	return plan, w.apply(plan)
}

// mergeResult is what became of a stale patch.
type mergeResult struct {
	p        *patch
	file     content
	conflict bool
}

// mergedFiles is the record that keeps sync from applying merged patches.
func mergedFiles(results []mergeResult, set *patchSet, before map[string]string) map[string]string {
	merged := map[string]string{}
	for file, sum := range before {
		merged[file] = sum
	}
	for _, r := range results {
		merged[r.p.file] = blobID(set.files[r.p.file])
	}
	return merged
}

// mergeStale merges each patch whose file has changed in the base, but not
// those that an earlier merge has put into the tree already. All that is wrong
// with patches in other ways is reported too: nothing is laid before that is
// put right.
func (w *workspace) mergeStale() ([]mergeResult, error) {
	var results []mergeResult
	var errs []error
	for _, p := range w.set.patches {
		err := p.checkTarget(w.base)
		var stale stalePatch
		switch {
		case err == nil || w.isMerged(p, err):
			continue
		case !errors.As(err, &stale):
			errs = append(errs, err)
			continue
		}
		r, err := w.mergePatch(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.file, err))
			continue
		}
		results = append(results, r)
	}
	return results, errors.Join(errs...)
}

// mergePatch applies a patch to the version of the file that it was made for,
// and merges the result with the version of the present base.
func (w *workspace) mergePatch(p *patch) (mergeResult, error) {
	if p.deletes {
		return mergeResult{p: p}, nil // the file goes, whatever upstream did to it
	}
	if p.newPath != p.path {
		return mergeResult{}, fmt.Errorf("renames %s, which has changed: remove the patch, make tree, and rename the file in the tree again", p.path)
	}
	common, err := w.git.run(nil, "cat-file", "blob", p.oldBlob)
	if err != nil {
		return mergeResult{}, fmt.Errorf("the tree does not have %s as it was when the patch was made: put the old version into go.mod, run make tree, put the new version back, and merge again", p.path)
	}
	patched, err := w.patchedBlob(p)
	if err != nil {
		return mergeResult{}, err
	}
	target := w.base[p.path]
	current, err := w.readEntries(map[string]entry{p.path: target})
	if err != nil {
		return mergeResult{}, err
	}
	data, conflict, err := w.threeWay(current[p.path].data, common, patched.data, [3]string{"upstream", "old upstream", "patch"})
	if p.generated() && (err != nil || conflict) {
		// Nobody merges generated code by hand: it is generated again.
		return mergeResult{p: p, file: current[p.path]}, nil
	}
	mode := target.mode
	if patched.mode != target.mode && strings.Contains(string(p.diff), "\nnew mode ") {
		mode = patched.mode
	}
	return mergeResult{p, content{mode, data}, conflict}, err
}

// patchedBlob applies one patch to its own preimage.
func (w *workspace) patchedBlob(p *patch) (content, error) {
	index, err := w.tempIndex()
	if err != nil {
		return content{}, err
	}
	g := w.git.withIndex(index)
	mode := w.base[p.path].mode
	if _, err := g.run(nil, "update-index", "--add", "--cacheinfo", mode+","+p.oldBlob+","+p.path); err != nil {
		return content{}, err
	}
	if err := gitApply(g, []*patch{p}); err != nil {
		return content{}, err
	}
	tree, err := g.line("write-tree")
	if err != nil {
		return content{}, err
	}
	entries, err := g.lsTree(tree)
	if err != nil {
		return content{}, err
	}
	files, err := w.readEntries(entries)
	return files[p.path], err
}

// overlay puts the merged files into the plan, in place of upstream's.
func (w *workspace) overlay(plan *syncPlan, results []mergeResult) error {
	laid, err := w.git.lsTree(w.st.Tree)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range results {
		have, err := readContent(filepath.Join(w.dir, r.p.path))
		if err != nil {
			return err
		}
		if have.entry() != r.file.entry() && !w.replaceable(r.p.path, have.entry(), []entry{laid[r.p.path]}) {
			errs = append(errs, fmt.Errorf("%s: edited in the tree, and changed upstream: put the old version into go.mod, run make refresh, put the new version back, and merge again", r.p.path))
			continue
		}
		plan.addMerged(r.p.path, r.file, r.conflict)
	}
	return errors.Join(errs...)
}
