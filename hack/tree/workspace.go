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
	"io"
	"os"
	"path/filepath"
)

// workspace is the repository with its tree.
type workspace struct {
	root, dir string
	// toRoot leads from the top of the tree to the repository.
	toRoot string
	src    baseSource
	out    io.Writer
	git    git
	st     *state
	pins   []module

	// copies lays our files as copies, for generators that skip links.
	copies bool
	// discard drops edits of the tree that were not written back, all of them
	// or those of discardPaths.
	discard      bool
	discardPaths map[string]bool
	// merging merges edits of the tree with changed patches.
	merging bool

	// What the repository says, read by planSync.
	base map[string]entry
	set  *patchSet
	ours map[string]ourFile
}

// openWorkspace finds the directories; it does not need a tree to be there.
func openWorkspace(root string, src baseSource, out io.Writer) (*workspace, error) {
	// Links are relative: both ends have to be known by their real names.
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(root, "_output"), 0o755); err != nil {
		return nil, err
	}
	output, err := filepath.EvalSymlinks(filepath.Join(root, "_output"))
	if err != nil {
		return nil, err
	}
	w := &workspace{root: root, src: src, out: out}
	w.use(filepath.Join(output, "kubernetes"))
	if w.toRoot, err = filepath.Rel(w.dir, root); err != nil {
		return nil, err
	}
	w.toRoot = filepath.ToSlash(w.toRoot)
	w.pins, err = src.pins(root)
	return w, err
}

// use makes dir the tree; a new tree is built beside its final place.
func (w *workspace) use(dir string) {
	w.dir = dir
	w.git = treeGit(w.gitDir(), dir)
}

func (w *workspace) gitDir() string { return filepath.Join(w.dir, ".git") }

// tmpDir is where files are written before they are renamed into place.
func (w *workspace) tmpDir() string { return filepath.Join(w.gitDir(), "tree-tmp") }

// laidIndex is git on the tool's own index, which holds what was laid. The
// developer's index stays the developer's.
func (w *workspace) laidIndex() git {
	return w.git.withIndex(filepath.Join(w.gitDir(), "tree-index"))
}

// tempIndex returns the name of an index file that does not exist yet.
func (w *workspace) tempIndex() (string, error) {
	dir, err := os.MkdirTemp(w.tmpDir(), "index-")
	return filepath.Join(dir, "index"), err
}

// discards is true if the developer gave up the edits of this path.
func (w *workspace) discards(path string) bool {
	return w.discard && (len(w.discardPaths) == 0 || w.discardPaths[path])
}

// lock is beside the tree, not in it: the tree may not be there yet.
func (w *workspace) lock() (func(), error) {
	return lock(filepath.Join(filepath.Dir(w.dir), ".tree.lock"), func() {
		fmt.Fprintln(w.out, "another run works on the tree; waiting for it to end")
	})
}

// load reads the state and removes what killed runs left behind.
func (w *workspace) load() error {
	leftovers, err := filepath.Glob(escapeGlob(w.dir) + ".tmp-*")
	if err != nil {
		return err
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if w.st, err = loadState(w.dir); err != nil || w.st == nil {
		return err
	}
	if err := os.RemoveAll(w.tmpDir()); err != nil {
		return err
	}
	if err := os.MkdirAll(w.tmpDir(), 0o755); err != nil {
		return err
	}
	if _, err := w.git.run(nil, "cat-file", "-e", w.st.Base+"^{tree}"); err != nil {
		return fmt.Errorf("%s has lost its base commit (%w): move it away and run make tree", w.dir, err)
	}
	return nil
}

// materialise makes the tree what the repository says.
func (w *workspace) materialise() (*syncPlan, error) {
	if err := w.load(); err != nil {
		return nil, err
	}
	if w.st == nil {
		return w.create()
	}
	if w.discard && len(w.st.Merged) > 0 {
		return nil, fmt.Errorf("the tree holds merged patches that are not written back: run refresh, or redo the merge with merge -discard")
	}
	base, err := w.wantedBase()
	if err != nil {
		return nil, err
	}
	return w.sync(base)
}

// create builds a tree beside its final place and moves it there when it is
// whole. If a patch fails, the tree is moved too: it is the base then, which
// the next run starts from.
func (w *workspace) create() (*syncPlan, error) {
	final := w.dir
	defer w.use(final)
	w.use(fmt.Sprintf("%s.tmp-%d", final, os.Getpid()))
	if err := w.createBase(); err != nil {
		return nil, err
	}
	plan, err := w.sync(w.st.Base)
	if err2 := failpoint("rename tree"); err2 != nil {
		return nil, err2
	}
	if plan != nil {
		plan.created = true
	}
	return plan, errors.Join(err, os.Rename(w.dir, final))
}

// createBase lays and commits the base, and records it as a tree without patches
// or files of ours: from there, sync does for a new tree what it does for any.
func (w *workspace) createBase() error {
	modules, err := w.fetch()
	if err != nil {
		return err
	}
	if err := layBase(w.dir, modules); err != nil {
		return err
	}
	if err := failpoint("base laid"); err != nil {
		return err
	}
	if err := initRepo(w.gitDir()); err != nil {
		return err
	}
	if err := os.Mkdir(w.tmpDir(), 0o755); err != nil {
		return err
	}
	base, err := commitBase(w.git, baseVersion(w.pins))
	if err != nil {
		return err
	}
	tree, err := w.git.line("rev-parse", base+"^{tree}")
	if err != nil {
		return err
	}
	index, err := os.ReadFile(filepath.Join(w.gitDir(), "index"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.gitDir(), "tree-index"), index, 0o644); err != nil {
		return err
	}
	w.st = &state{Version: stateVersion, BaseKey: baseKey(w.pins), Base: base, Tree: tree, Ours: map[string]laid{}}
	for _, ref := range []string{refBase, "refs/heads/fork", w.baseRef()} {
		if _, err := w.git.run(nil, "update-ref", ref, base); err != nil {
			return err
		}
	}
	return w.st.save(w.gitDir())
}

// fetch says what it does first: with an empty module cache it takes a while.
func (w *workspace) fetch() ([]module, error) {
	fmt.Fprintf(w.out, "fetching Kubernetes %s (%d modules)\n", baseVersion(w.pins), len(w.pins))
	return w.src.fetch(w.root, w.pins)
}

// baseRef keeps a base and its blobs, which a three-way merge needs after the
// next change of version.
func (w *workspace) baseRef() string { return "refs/bases/" + baseKey(w.pins) }

// wantedBase returns the commit of the base that go.mod asks for. If the tree
// does not have it, its files are copied once to add them to the object store.
func (w *workspace) wantedBase() (string, error) {
	if w.st.BaseKey == baseKey(w.pins) {
		return w.st.Base, nil
	}
	if base, err := w.git.line("rev-parse", "-q", "--verify", w.baseRef()); err == nil {
		return base, nil
	}
	modules, err := w.fetch()
	if err != nil {
		return "", err
	}
	tmp := fmt.Sprintf("%s.tmp-%d", w.dir, os.Getpid())
	defer os.RemoveAll(tmp)
	if err := layBase(tmp, modules); err != nil {
		return "", err
	}
	index, err := w.tempIndex()
	if err != nil {
		return "", err
	}
	base, err := commitBase(treeGit(w.gitDir(), tmp).withIndex(index), baseVersion(w.pins))
	if err != nil {
		return "", err
	}
	_, err = w.git.run(nil, "update-ref", w.baseRef(), base)
	return base, err
}
