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
	"path/filepath"
	"sort"
	"strings"
)

// sync plans and makes the changes that lead from what is laid to what the
// repository says. Nothing is written if anything is wrong.
func (w *workspace) sync(base string) (*syncPlan, error) {
	plan, err := w.planSync(base)
	if err != nil {
		return nil, err
	}
	return plan, w.apply(plan)
}

// syncPlan is what sync is going to do.
type syncPlan struct {
	base, tree, digest string
	// files are upstream files to write, or to remove if the mode is empty.
	files map[string]content
	ours  map[string]ourAction
	// strays are links to our files where the repository has none.
	strays []string
	merged []string
	// conflicts are merged files that have conflict markers.
	conflicts []string
	// created is set if there was no tree before.
	created bool
}

func (p *syncPlan) empty() bool { return len(p.lines()) == 0 }

// lines says what the plan changes, one line for each file.
func (p *syncPlan) lines() []string {
	var lines []string
	for path, c := range p.files {
		verb := "patched "
		if c.mode == "" {
			verb = "removed "
		}
		lines = append(lines, verb+path)
	}
	for path, action := range p.ours {
		switch action {
		case actLay:
			lines = append(lines, "laid "+path)
		case actRemove:
			lines = append(lines, "removed "+path)
		}
	}
	for _, path := range p.strays {
		lines = append(lines, "removed stray link "+path)
	}
	sort.Strings(lines)
	return lines
}

// planSync reads the repository and compares it with the tree.
func (w *workspace) planSync(base string) (*syncPlan, error) {
	var err error
	if w.base, err = w.git.lsTree(base); err != nil {
		return nil, err
	}
	if w.set, err = readPatches(w.root); err != nil {
		return nil, err
	}
	if w.ours, err = w.listOurs(); err != nil {
		return nil, err
	}
	plan := &syncPlan{base: base, digest: w.set.digest(base, w.st.Merged)}
	tree, err := w.wantedTree(base, plan.digest)
	if err := errors.Join(err, checkOurs(w.ours, w.base, w.set.patches)); err != nil {
		return nil, err
	}
	plan.tree = tree
	return plan, errors.Join(w.planUpstream(plan), w.planOurs(plan), w.planStrays(plan))
}

// wantedTree computes the tree of base plus patches, unless the last run did
// so from the same patches.
func (w *workspace) wantedTree(base, digest string) (string, error) {
	if w.st.Patches == digest {
		return w.st.Tree, nil
	}
	var active []*patch
	var errs []error
	for _, p := range w.set.patches {
		err := p.checkTarget(w.base)
		if err == nil {
			active = append(active, p)
		} else if !w.isMerged(p, err) {
			errs = append(errs, err)
		}
	}
	tree, err := w.applyPatches(base, active)
	return tree, errors.Join(errors.Join(errs...), err)
}

// isMerged is true for a patch that the base has outgrown, but which merge has
// turned into an edit of the tree already.
func (w *workspace) isMerged(p *patch, err error) bool {
	var stale stalePatch
	return errors.As(err, &stale) && w.st.Merged[p.file] == blobID(w.set.files[p.file])
}

// planUpstream finds the upstream files to write: those that differ between
// the trees laid so far and the wanted one.
func (w *workspace) planUpstream(plan *syncPlan) error {
	plan.files = map[string]content{}
	wanted, laid := map[string]entry{}, map[string][]entry{}
	for _, from := range append([]string{w.st.Tree}, w.st.Pending...) {
		changes, err := w.git.diffTrees(from, plan.tree)
		if err != nil {
			return err
		}
		for _, c := range changes {
			wanted[c.path] = c.new
			laid[c.path] = append(laid[c.path], c.old)
		}
	}
	if w.discard {
		if err := w.addDiscarded(plan.tree, wanted); err != nil {
			return err
		}
	}
	contents, err := w.readEntries(wanted)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range sortedKeys(wanted) {
		have, err := readContent(filepath.Join(w.dir, path))
		switch {
		case err != nil:
			errs = append(errs, err)
		case have.entry() == wanted[path]:
		case w.replaceable(path, have.entry(), laid[path]):
			plan.files[path] = contents[path]
		case w.merging:
			errs = append(errs, w.mergeEdit(plan, path, laid[path][0], have, contents[path]))
		default:
			errs = append(errs, fmt.Errorf("%s: edited in the tree, and its patch changed in the repository: merge the two with make merge, or drop the edit with tree -discard %s", path, path))
		}
	}
	return errors.Join(errs...)
}

// replaceable is true if nothing is lost when the file is overwritten: it is
// what the tool has laid, or what the base has.
func (w *workspace) replaceable(path string, have entry, laid []entry) bool {
	if have == w.base[path] || w.discards(path) || isWorkFile(path) {
		return true
	}
	for _, e := range laid {
		if have == e {
			return true
		}
	}
	return false
}

// isWorkFile is true for the files that the go command writes in the tree.
func isWorkFile(path string) bool { return path == "go.work" || path == "go.work.sum" }

// addDiscarded adds all files that were edited in the tree.
func (w *workspace) addDiscarded(tree string, wanted map[string]entry) error {
	edits, err := w.edits()
	if err != nil {
		return err
	}
	entries, err := w.git.lsTree(tree)
	if err != nil {
		return err
	}
	for _, path := range edits {
		if w.discards(path) {
			wanted[path] = entries[path]
		}
	}
	return nil
}

// edits lists the upstream files that differ from what was laid.
func (w *workspace) edits() ([]string, error) {
	g := w.laidIndex()
	// The exit status only says that there are edits.
	g.run(nil, "update-index", "-q", "--refresh")
	return g.fields(nil, "diff-files", "-z", "--name-only")
}

// readEntries reads the contents that the entries stand for.
func (w *workspace) readEntries(entries map[string]entry) (map[string]content, error) {
	var ids []string
	for _, e := range entries {
		if e.mode != "" {
			ids = append(ids, e.blob)
		}
	}
	contents := make(map[string]content, len(entries))
	if len(ids) == 0 {
		return contents, nil
	}
	blobs, err := w.git.blobs(ids)
	if err != nil {
		return nil, err
	}
	for path, e := range entries {
		if e.mode != "" {
			contents[path] = content{e.mode, blobs[e.blob]}
		}
	}
	return contents, nil
}

// planOurs decides about each of our files, those laid and those to be laid.
func (w *workspace) planOurs(plan *syncPlan) error {
	plan.ours = map[string]ourAction{}
	var errs []error
	decide := func(p string, our *ourFile) {
		have, err := readContent(filepath.Join(w.dir, p))
		if err != nil {
			errs = append(errs, err)
			return
		}
		last, known := w.st.Ours[p]
		action, err := w.decideOurs(p, our, last, known, have)
		plan.ours[p] = action
		errs = append(errs, err)
	}
	for _, p := range sortedKeys(w.ours) {
		our := w.ours[p]
		decide(p, &our)
	}
	for _, p := range sortedKeys(w.st.Ours) {
		if _, ok := w.ours[p]; !ok {
			decide(p, nil)
		}
	}
	return errors.Join(errs...)
}

// untracked lists the files of the tree that neither upstream nor the patches
// have. The tree's .gitignore is obeyed.
func (w *workspace) untracked() ([]string, error) {
	return w.laidIndex().fields(nil, "ls-files", "-z", "--others", "--exclude-standard")
}

// planStrays finds links to our files at places where we have no file. A link
// that was moved in the tree is not one of them: it is a rename that refresh
// will make in the repository.
func (w *workspace) planStrays(plan *syncPlan) error {
	paths, err := w.untracked()
	if err != nil {
		return err
	}
	for _, q := range paths {
		if _, ours := plan.ours[q]; ours {
			continue
		}
		have, err := readContent(filepath.Join(w.dir, strings.TrimSuffix(q, "/")))
		if err != nil || have.mode != modeLink {
			continue
		}
		if from := w.linkedPath(string(have.data)); from != "" && plan.ours[from] != actEdited {
			plan.strays = append(plan.strays, q)
		}
	}
	return nil
}
