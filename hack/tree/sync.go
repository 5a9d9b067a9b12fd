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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// syncPlan is what sync is going to do.
type syncPlan struct {
	base, tree, digest  string
	write, lay, remove  []string           // upstream's files to write, ours to lay, either to remove
	merged              map[string]content // edited upstream files, merged with their change in the repository
	outgrown, conflicts []string           // files of merged patches, merged files with conflict markers
	edits, ourEdits     []string           // edited files that stay as they are, for refresh
	lines               []string           // what the plan changes, one line for each file
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
	plan := &syncPlan{base: base, digest: w.set.digest(base), merged: map[string]content{}}
	if err := errors.Join(w.wantedTree(plan), w.checkOurs()); err != nil {
		return nil, err
	}
	return plan, w.planFiles(plan)
}

// wantedTree computes the git tree of base plus patches, unless the last run did
// so from the same patches.
func (w *workspace) wantedTree(plan *syncPlan) error {
	if w.st.Patches == plan.digest {
		plan.tree = w.st.Laid[0].Tree
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

// candidate is a file of the tree that may not be as the repository says.
type candidate struct {
	path string
	laid []entry // what the last run put there, and runs since that were interrupted; each once
	want entry   // what the repository says
	ours bool    // it is, or was, one of our files
}

// action is what a file of the tree needs.
type action int

const (
	keep     action = iota // the tree has what the repository says
	replace                // the tree has what a run put there
	edited                 // the tree was edited, the repository did not change
	conflict               // both have changed
)

// decide compares what the runs put into the tree, what the repository says now,
// and what the tree has.
func (c candidate) decide(have entry) action {
	switch {
	case have == c.want:
		return keep
	case slices.Contains(c.laid, have):
		return replace
	case len(c.laid) == 1 && c.laid[0] == c.want:
		return edited
	}
	return conflict
}

// planFiles decides about each file that may not be as the repository says.
func (w *workspace) planFiles(plan *syncPlan) error {
	candidates, err := w.candidates(plan)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range candidates {
		have, err := readContent(filepath.Join(w.dir, c.path))
		errs = append(errs, err)
		want, ours := w.layout(c.path)
		todo := c.decide(have.entry())
		switch {
		case ours && have.entry() == want.entry():
			todo = keep
		case ours && todo == keep || w.discard && todo != keep || c.ours && ownLink(c.path, have):
			todo = replace
		case have.mode == modeLink:
			todo = replace // it holds no edit if it leads nowhere
			if _, err := os.Stat(filepath.Join(w.dir, c.path)); err == nil {
				errs = append(errs, fmt.Errorf("%s: is now a link to %s, which cannot be written back: move our files in the repository, or put a regular file there", c.path, have.data))
			}
		case isWorkFile(c.path) && todo == conflict:
			todo = replace // the go command wrote it
		}
		switch {
		case todo == replace && c.want == "":
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
		case todo == conflict:
			errs = append(errs, w.planConflict(plan, c, have))
		}
	}
	return errors.Join(errs...)
}

// ownLink reports whether a file is the link that a run lays for it. How the link
// leads to the repository does not matter: either directory may have moved.
func ownLink(path string, have content) bool {
	return have.mode == modeLink && strings.HasSuffix(string(have.data), "/"+repoPath(path))
}

// planConflict merges an edit with the change in the repository if that is asked
// for, and else is the error that says what to do.
func (w *workspace) planConflict(plan *syncPlan, c candidate, have content) error {
	before := slices.DeleteFunc(slices.Clone(c.laid), func(e entry) bool { return e == c.want })
	restore := fmt.Sprintf("keep a copy elsewhere and run git -C %q restore --source laid %s", w.dir, c.path)
	way := "make merge"
	switch {
	case c.ours:
		way = "make the two equal"
	case have.mode == "" || c.want == "" || len(before) != 1 || before[0] == "":
		way = restore
	case w.merging:
		merged, conflict, err := w.mergeEdit(before[0], c.want, have)
		if err != nil {
			return fmt.Errorf("%s: cannot be merged: %s: %w", c.path, restore, err)
		}
		if conflict {
			plan.conflicts = append(plan.conflicts, c.path)
		}
		plan.merged[c.path] = merged
		plan.lines = append(plan.lines, "merged "+c.path)
		return nil
	}
	return fmt.Errorf("%s: edited in the tree, and changed in the repository: %s, or tree -discard", c.path, way)
}

// candidates lists the upstream files of the tree that are not as the plan wants
// them, those that have to go, and all our files. Each path is there once: a file
// may have been ours and be upstream's now, or the reverse.
func (w *workspace) candidates(plan *syncPlan) ([]candidate, error) {
	want := map[string]entry{}
	before := make([]map[string]entry, len(w.st.Laid))
	for i, l := range w.st.Laid {
		moved, err := w.git.changes("diff-tree", "-r", l.Tree, plan.tree)
		if err != nil {
			return nil, err
		}
		before[i] = map[string]entry{}
		for _, c := range moved {
			before[i][c.path] = c.old
		}
		maps.Copy(before[i], l.Ours)
		for p := range before[i] {
			if _, upstream := w.base[p]; !upstream {
				want[p] = ""
			}
		}
	}
	differ, err := w.differences(plan.tree)
	for _, d := range differ {
		want[d.path] = d.old
	}
	for p, our := range w.ours {
		want[p] = our.entry()
	}
	var candidates []candidate
	for _, p := range sortedKeys(want) {
		c := candidate{path: p, want: want[p], ours: w.ours[p].mode != ""}
		for i := range before {
			e, ok := before[i][p]
			if !ok && !c.ours {
				e = c.want // upstream's, the same in both
			}
			if !slices.Contains(c.laid, e) {
				c.laid = append(c.laid, e)
			}
		}
		c.ours = c.ours || slices.ContainsFunc(w.st.Laid, func(l laid) bool { return l.Ours[p] != "" })
		candidates = append(candidates, c)
	}
	return candidates, err
}

// differences lists the files of a git tree that the work tree does not have so.
func (w *workspace) differences(want string) ([]change, error) {
	g := w.index()
	if tree, err := g.line("write-tree"); err != nil || tree != want {
		if _, err := g.run(nil, "read-tree", "-m", "-i", want); err != nil {
			return nil, err
		}
	}
	g.run(nil, "update-index", "-q", "--refresh") // fails if there are edits
	return g.changes("diff-files")
}

// layout returns one of our files as it is in the tree: a link, so that an edit
// on either side is an edit of both. Only Go code can be a link, since go:embed
// refuses links.
func (w *workspace) layout(p string) (c content, ours bool) {
	our := w.ours[p]
	if our.mode == "" || w.copies || !strings.HasSuffix(p, ".go") {
		return our, our.mode != ""
	}
	text := strings.Repeat("../", strings.Count(p, "/")) + filepath.ToSlash(w.toRoot) + "/" + repoPath(p)
	return content{modeLink, []byte(text)}, true
}

// isWorkFile reports whether the go command writes the file.
func isWorkFile(path string) bool { return path == "go.work" || path == "go.work.sum" }

// stale reports whether the tree is not as the plan wants it, edits apart.
func (w *workspace) stale(plan *syncPlan) bool {
	return len(plan.lines) > 0 || len(w.st.Laid) > 1 || plan.tree != w.st.Laid[0].Tree
}

// apply makes the changes of a plan. It first records what it is going to put into
// the tree: should it be interrupted, the next run does not take that for edits.
func (w *workspace) apply(plan *syncPlan) error {
	next := laid{plan.tree, map[string]entry{}}
	for p, our := range w.ours {
		next.Ours[p] = our.entry()
	}
	if w.stale(plan) {
		if !slices.ContainsFunc(w.st.Laid, func(l laid) bool { return reflect.DeepEqual(l, next) }) {
			w.st.Laid = append(w.st.Laid, next)
		}
		if w.st.Base != plan.base {
			w.st.Base = "" // neither, until useBase is done
		}
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
	w.st = &state{Version: stateVersion, Base: plan.base, Patches: plan.digest, Copies: w.copies, Laid: []laid{next}}
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
	for p, merged := range plan.merged {
		if _, err := writeFile(filepath.Join(w.dir, p), merged); err != nil {
			return err
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
	if len(plan.outgrown)+len(plan.merged) == 0 {
		return "nothing to merge", nil
	}
	return changed + ", none with a conflict; check them in the tree, then run make refresh", nil
}

// mergeEdit merges an edited file of the tree with its new version, and reports
// whether conflict markers are left. Binary files are an error.
func (w *workspace) mergeEdit(before, want entry, have content) (merged content, conflict bool, err error) {
	g, err := w.scratch()
	if err != nil {
		return have, false, err
	}
	write := func(name string, data []byte) error { return os.WriteFile(filepath.Join(g.dir, name), data, 0o644) }
	err = write("tree", have.data)
	for name, e := range map[string]entry{"old": before, "new": want} {
		_, blob := e.split()
		data, catErr := g.run(nil, "cat-file", "blob", blob)
		err = errors.Join(err, catErr, write(name, data))
	}
	if err != nil {
		return have, false, err
	}
	merged.mode = have.mode
	if mode, _ := before.split(); mode == have.mode {
		merged.mode, _ = want.split()
	}
	merged.data, err = g.run(nil, "merge-file", "-p", "-L", "tree", "-L", "last laid", "-L", "repository", "tree", "old", "new")
	var exit *exec.ExitError
	// The status is the number of conflicts, or 128 and more for an error.
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return merged, true, nil
	}
	return merged, false, err
}
