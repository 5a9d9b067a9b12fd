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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// workspace is the repository with its tree.
type workspace struct {
	root, dir, toRoot string // toRoot leads from the top of the tree to the repository
	src               baseSource
	pins              []module
	out               io.Writer
	git               git
	st                *state

	// copies lays copies of our files instead of links, discard drops the edits of
	// the tree, and merging merges them, and outgrown patches, instead of failing.
	copies, discard, merging bool

	to string // the version that pin pins

	// What the repository says, read by planSync.
	base map[string]entry
	set  *patchSet
	ours map[string]content
}

// open finds the directories; the tree may be missing.
func (w *workspace) open() error {
	// Links are relative: both ends have to be known by their real names.
	var err error
	if w.root, err = repoGit(w.root).line("rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.root, "_output"), 0o755); err != nil {
		return err
	}
	output, err := filepath.EvalSymlinks(filepath.Join(w.root, "_output"))
	if err != nil {
		return err
	}
	w.use(filepath.Join(output, "kubernetes"))
	if w.toRoot, err = filepath.Rel(w.dir, w.root); err != nil {
		return err
	}
	w.pins, err = w.src.pins(w.root)
	return err
}

// use makes dir the tree.
func (w *workspace) use(dir string) {
	w.dir = dir
	w.git = treeGit(w.gitDir(), dir)
}

func (w *workspace) gitDir() string { return filepath.Join(w.dir, ".git") }

// index is git on an index of T with the times of the files in the tree. The
// developer's own index stays the developer's.
func (w *workspace) index() git { return w.git.withIndex(filepath.Join(w.gitDir(), "tree-index")) }

// scratch returns git with an empty work tree and an empty index, until the
// next call.
func (w *workspace) scratch() (git, error) {
	dir := filepath.Join(w.gitDir(), "tree-scratch")
	err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755))
	return treeGit(w.gitDir(), dir).withIndex(filepath.Join(dir, "index")), err
}

// edit makes a git tree of another one: change works on an index of it.
func (w *workspace) edit(tree string, change func(g git) error) (string, error) {
	g, err := w.scratch()
	if err != nil {
		return "", err
	}
	if _, err := g.run(nil, "read-tree", tree); err != nil {
		return "", err
	}
	if err := change(g); err != nil {
		return "", err
	}
	return g.line("write-tree")
}

// stateVersion changes when an older tool could misread the state.
const stateVersion = 3

// state is what the last runs left in the tree.
type state struct {
	Version int
	Base    string // commit of the base
	Patches string // digest of the patches that Laid[0].Tree was computed from
	Copies  bool   // our files are copies in the tree
	// Laid is what the last complete run put into the tree, and behind that what
	// each run since was to put there that was interrupted.
	Laid []laid
}

// laid is all that a run puts into the tree.
type laid struct {
	Tree string           // git tree of base plus patches
	Ours map[string]entry // our files
}

func (w *workspace) statePath() string { return filepath.Join(w.gitDir(), "tree-state.json") }

var errNoTree = errors.New("there is no tree: run make tree")

// load reads the state.
func (w *workspace) load() error {
	if _, err := os.Lstat(w.dir); errors.Is(err, fs.ErrNotExist) {
		return errNoTree
	}
	var made struct{ Version int }
	st := &state{}
	data, err := os.ReadFile(w.statePath())
	if err == nil {
		err = json.Unmarshal(data, &made)
	}
	// Only then the rest: another version may have other types.
	if err == nil && made.Version != stateVersion {
		err = fmt.Errorf("its version is %d instead of %d", made.Version, stateVersion)
	}
	if err == nil {
		err = json.Unmarshal(data, st)
	}
	if err == nil && len(st.Laid) == 0 {
		err = errors.New("its state is empty")
	}
	if err != nil {
		return fmt.Errorf("%s was not made by this version of hack/tree, or is damaged (%w): in %s, run mv kubernetes kubernetes.old and make tree, "+
			"then diff -r -x .git kubernetes kubernetes.old shows the edits that were not refreshed", w.dir, err, filepath.Dir(w.dir))
	}
	w.st = st
	// A killed git leaves its lock behind; ours proves that none is running.
	os.Remove(w.index().index + ".lock")
	return nil
}

// loadTree loads a tree for the commands that work on one, and returns the base
// that go.mod pins. If the tree was made from another base, only merge can continue.
func (w *workspace) loadTree() (string, error) {
	if err := w.load(); err != nil {
		return "", err
	}
	w.copies = w.st.Copies
	base, err := w.wantedBase()
	if err == nil && base != w.st.Base && !w.merging {
		err = fmt.Errorf("the tree was made from another version than %s, which go.mod asks for: run make tree", baseVersion(w.pins))
	}
	return base, err
}

// save writes the state.
func (w *workspace) save() error {
	data, err := json.MarshalIndent(w.st, "", "\t")
	if err == nil {
		_, err = writeFile(w.statePath(), content{modeFile, append(data, '\n')})
	}
	return err
}

// create makes a tree that is the plain base: from there, sync does for a new
// tree what it does for any. It is built beside its final place and moved there
// when it is complete.
func (w *workspace) create() error {
	final := w.dir
	w.use(final + ".new")
	defer w.use(final)
	if err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o755), initRepo(w.gitDir())); err != nil {
		return err
	}
	base, err := w.wantedBase()
	if err != nil {
		return err
	}
	// Zero workers are as many as there are processors.
	if _, err := w.index().run(nil, "-c", "checkout.workers=0", "read-tree", "--reset", "-u", base); err != nil {
		return err
	}
	// Git replaces an index and never writes to one: the developer's may be a link.
	if err := os.Link(w.index().index, filepath.Join(w.gitDir(), "index")); err != nil {
		return err
	}
	// Upstream's scripts change into this directory, which no module has.
	if err := os.MkdirAll(filepath.Join(w.dir, "hack/tools"), 0o755); err != nil {
		return err
	}
	w.st = &state{Version: stateVersion, Laid: []laid{{Tree: base + "^{tree}"}}}
	if err := w.save(); err != nil {
		return err
	}
	return os.Rename(w.dir, final)
}
