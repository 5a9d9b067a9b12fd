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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// syncPlan is what sync is going to do.
type syncPlan struct {
	base, tree, digest  string
	write, lay, remove  []string // upstream's files to write, ours to lay, either to remove
	merge               []change // edited upstream files that have changed in the repository
	outgrown, conflicts []string // files of merged patches, merged files with conflict markers
	edits, ourEdits     []string // edited files that stay as they are, for refresh
	lines               []string // what the plan changes, one line for each file
}

// add adds a file to one of the lists of the plan.
func (p *syncPlan) add(list *[]string, verb, path string) {
	*list = append(*list, path)
	p.lines = append(p.lines, verb+" "+path)
}

// sync makes the changes that lead from what the last run left in the tree to
// what the repository says. Nothing is written if anything is wrong.
func (w *workspace) sync(base string) (*syncPlan, error) {
	plan, err := w.planSync(base)
	if err != nil {
		return nil, err
	}
	return plan, w.apply(plan)
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
	plan := &syncPlan{base: base, digest: w.set.digest(base)}
	if err := errors.Join(w.wantedTree(plan), w.checkOurs()); err != nil {
		return nil, err
	}
	if next := w.st.Next; next != "" && next != plan.tree && !w.discard {
		return nil, fmt.Errorf("a run was interrupted, and the patches have changed since: save your edits (git -C %s diff %s), then tree -discard", w.dir, next)
	}
	return plan, w.planFiles(plan)
}

// wantedTree computes the git tree of base plus patches, unless the last run did
// so from the same patches.
func (w *workspace) wantedTree(plan *syncPlan) error {
	if w.st.Patches == plan.digest {
		plan.tree = w.st.Tree
		return nil
	}
	var current, outgrown []*patch
	var errs []error
	for _, p := range w.set.patches {
		switch err := w.checkTarget(p); {
		case err == nil:
			current = append(current, p)
		case w.merging && errors.Is(err, errOutgrown):
			outgrown = append(outgrown, p)
		default:
			errs = append(errs, err)
		}
	}
	var err error
	plan.tree, err = w.edit(plan.base, func(g git) error {
		errs = append(errs, applyPatches(g, current))
		for _, p := range outgrown {
			errs = append(errs, w.mergePatch(g, plan, p))
		}
		return errors.Join(errs...)
	})
	return err
}

// action is what a file of the tree needs.
type action int

const (
	keep     action = iota // the tree has what the repository says
	replace                // the tree has what the last run put there
	edited                 // the tree was edited, the repository did not change
	conflict               // both have changed
)

// decide compares what the last run put into the tree, what the repository says
// now, and what the tree has.
func decide(last, want, have entry) action {
	switch {
	case have == want:
		return keep
	case have == last:
		return replace
	case want == last:
		return edited
	}
	return conflict
}

// planFiles decides about each file that may not be as the repository says.
func (w *workspace) planFiles(plan *syncPlan) error {
	changes, err := w.differences(plan)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range append(changes, w.changesOfOurs()...) {
		have, err := readContent(filepath.Join(w.dir, c.path))
		errs = append(errs, err)
		want, ours := w.layout(c.path)
		todo := decide(c.old, c.new, have.entry())
		switch {
		case ours && have.entry() == want.entry():
			todo = keep
		case ours && todo == keep || w.discard && todo != keep:
			todo = replace
		case have.mode == modeLink || isWorkFile(c.path) && c.old != c.new:
			todo = replace // neither holds an edit
		}
		switch {
		case todo == replace && c.new == "":
			plan.add(&plan.remove, "removed", c.path)
		case todo == replace && ours:
			plan.add(&plan.lay, "laid", c.path)
		case todo == replace && slices.Contains(plan.outgrown, c.path):
			plan.add(&plan.write, "merged", c.path)
		case todo == replace:
			plan.add(&plan.write, "patched", c.path)
		case todo == edited && ours:
			plan.ourEdits = append(plan.ourEdits, c.path)
		case todo == edited && !isWorkFile(c.path):
			plan.edits = append(plan.edits, c.path)
		case todo == conflict && w.merging && !ours && have.mode != "" && c.old != "" && c.new != "":
			plan.merge = append(plan.merge, c)
			plan.lines = append(plan.lines, "merged "+c.path)
		case todo == conflict:
			errs = append(errs, fmt.Errorf("%s: edited in the tree, and changed in the repository: make merge (upstream's), make them equal (ours), or tree -discard", c.path))
		}
	}
	return errors.Join(errs...)
}

// differences lists the upstream files of the tree that are not as the plan wants
// them, and those that have to go.
func (w *workspace) differences(plan *syncPlan) ([]change, error) {
	moved, err := w.git.changes("diff-tree", "-r", w.st.Tree, plan.tree)
	if err != nil {
		return nil, err
	}
	last := map[string]entry{}
	var changes []change
	for _, c := range moved {
		last[c.path] = c.old
		if c.new == "" {
			changes = append(changes, c)
		}
	}
	g := w.index()
	if tree, err := g.line("write-tree"); err != nil || tree != plan.tree {
		if _, err := g.run(nil, "read-tree", "-m", "-i", plan.tree); err != nil {
			return nil, err
		}
	}
	g.run(nil, "update-index", "-q", "--refresh") // fails if there are edits
	differ, err := g.changes("diff-files")
	for _, d := range differ {
		c := change{path: d.path, old: d.old, new: d.old}
		if old, ok := last[d.path]; ok {
			c.old = old
		}
		changes = append(changes, c)
	}
	return changes, err
}

// changesOfOurs lists our files, also those that the repository no longer has.
func (w *workspace) changesOfOurs() []change {
	var changes []change
	for _, p := range sortedKeys(w.ours) {
		changes = append(changes, change{p, w.st.Ours[p], w.ours[p].entry()})
	}
	for _, p := range sortedKeys(w.st.Ours) {
		if w.ours[p].mode == "" {
			changes = append(changes, change{path: p, old: w.st.Ours[p]})
		}
	}
	return changes
}

// layout returns one of our files as it is in the tree: a link, so that an edit
// on either side is an edit of both. Only Go code can be a link, since go:embed
// refuses links. The content is empty if the repository no longer has the file.
func (w *workspace) layout(p string) (c content, ours bool) {
	our := w.ours[p]
	if our.mode == "" || w.copies || !strings.HasSuffix(p, ".go") {
		return our, our.mode != "" || w.st.Ours[p] != ""
	}
	text := strings.Repeat("../", strings.Count(p, "/")) + filepath.ToSlash(w.toRoot) + "/" + p
	return content{modeLink, []byte(text)}, true
}

// isWorkFile reports whether the go command writes the file.
func isWorkFile(path string) bool { return path == "go.work" || path == "go.work.sum" }

// apply makes the changes of a plan. It first records that it has begun, and at
// the end what the tree has then: if it is interrupted, the next run repeats it.
func (w *workspace) apply(plan *syncPlan) error {
	if len(plan.lines) > 0 || plan.tree != w.st.Tree {
		w.st.Next = plan.tree
		if err := w.save(); err != nil {
			return err
		}
		if err := w.write(plan); err != nil {
			return err
		}
		// For the developer: git diff laid shows what is not refreshed.
		if _, err := w.git.run(nil, "update-ref", "refs/tags/laid", plan.tree); err != nil {
			return err
		}
	}
	if err := w.useBase(plan.base); err != nil {
		return err
	}
	w.st = &state{Version: stateVersion, Base: plan.base, Tree: plan.tree, Patches: plan.digest, Copies: w.copies, Ours: map[string]entry{}}
	for p, our := range w.ours {
		w.st.Ours[p] = our.entry()
	}
	if err := w.save(); err != nil {
		return err
	}
	// The repository's go.work is a workspace of the same modules as the tree's.
	sums, err := readContent(filepath.Join(w.dir, "go.work.sum"))
	if err == nil && sums.mode != "" {
		_, err = writeFile(filepath.Join(w.root, "go.work.sum"), sums)
	}
	return err
}

// write changes files of the tree. It removes before it writes: a file may become
// a directory.
func (w *workspace) write(plan *syncPlan) error {
	for _, p := range plan.remove {
		if err := removeFile(w.dir, p); err != nil {
			return err
		}
	}
	if _, err := w.index().fields(plan.write, "checkout-index", "-f", "-u", "-z", "--stdin"); err != nil {
		return err
	}
	for _, p := range plan.lay {
		want, _ := w.layout(p)
		if _, err := writeFile(filepath.Join(w.dir, p), want); err != nil {
			return err
		}
	}
	for _, c := range plan.merge {
		conflict, err := w.mergeEdit(c)
		if err != nil {
			return err
		}
		if conflict {
			plan.conflicts = append(plan.conflicts, c.path)
		}
	}
	return nil
}

// runMerge is sync, but merges what sync refuses: patches that were made against
// another base, and edits of files whose patch has changed. The result is in the
// tree, and refresh makes patches of it.
func (w *workspace) runMerge() (string, error) {
	w.merging = true
	base, err := w.loadTree()
	if err != nil {
		return "", err
	}
	plan, err := w.sync(base)
	if err != nil {
		return "", err
	}
	changed := w.printLines(plan.lines)
	if len(plan.conflicts) > 0 {
		return "", fmt.Errorf("conflict markers are left in these files of the tree: resolve them, then run make refresh\n%s",
			strings.Join(plan.conflicts, "\n"))
	}
	if len(plan.outgrown)+len(plan.merge) == 0 {
		return "nothing to merge", nil
	}
	return changed + ", none with a conflict; check them in the tree, then run make refresh", nil
}

// mergeEdit merges an edited file of the tree with its new version, and reports
// whether conflict markers are left. Binary files are an error.
func (w *workspace) mergeEdit(c change) (bool, error) {
	g, err := w.scratch()
	if err != nil {
		return false, err
	}
	for name, e := range map[string]entry{"old": c.old, "new": c.new} {
		_, blob := e.split()
		data, err := g.run(nil, "cat-file", "blob", blob)
		if err := errors.Join(err, os.WriteFile(filepath.Join(g.dir, name), data, 0o644)); err != nil {
			return false, err
		}
	}
	_, err = g.run(nil, "merge-file", "-L", "tree", "-L", "last laid", "-L", "repository", filepath.Join(w.dir, c.path), "old", "new")
	var exit *exec.ExitError
	// The status is the number of conflicts, or 128 and more for an error.
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return true, nil
	}
	return false, err
}
