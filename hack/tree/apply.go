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
	"os"
	"path/filepath"
)

// apply makes the changes of a plan. The state is written first with all that
// may be found in the tree from now on, and last with what is there then.
func (w *workspace) apply(plan *syncPlan) error {
	if !plan.empty() || plan.tree != w.st.Tree {
		if err := w.savePending(plan); err != nil {
			return err
		}
		if err := w.writeUpstream(plan); err != nil {
			return err
		}
		if err := w.writeOurs(plan); err != nil {
			return err
		}
	}
	if err := w.setLaidIndex(plan); err != nil {
		return err
	}
	if err := w.switchBase(plan.base); err != nil {
		return err
	}
	w.st.Tree, w.st.Pending, w.st.Patches, w.st.Copies = plan.tree, nil, plan.digest, w.copies
	w.st.Ours = w.laidAfter(plan)
	if err := w.st.save(w.gitDir()); err != nil {
		return err
	}
	return w.copyWorkSum()
}

// savePending records what a run may leave in the tree, should it be killed. The
// earlier records stay valid beside it until the run is through.
func (w *workspace) savePending(plan *syncPlan) error {
	w.st.Pending = append(w.st.Pending, plan.tree)
	for p, action := range plan.ours {
		if action == actLay {
			last := w.st.Ours[p]
			if sum := w.ours[p].sum(); !last.has(sum) {
				last.Sums = append(last.Sums, sum)
			}
			w.st.Ours[p] = last
		}
	}
	return w.st.save(w.gitDir())
}

// writeUpstream removes before it writes: a file may become a directory.
func (w *workspace) writeUpstream(plan *syncPlan) error {
	paths := sortedKeys(plan.files)
	for _, path := range paths {
		if plan.files[path].mode == "" {
			if err := removeFile(w.dir, path); err != nil {
				return err
			}
		}
	}
	for _, path := range paths {
		if c := plan.files[path]; c.mode != "" {
			if err := writeAtomic(filepath.Join(w.dir, path), c.data, permOf(c.mode), w.tmpDir()); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeOurs keeps the same order: one of our files may become a directory too.
func (w *workspace) writeOurs(plan *syncPlan) error {
	for _, p := range plan.strays {
		if err := removeFile(w.dir, p); err != nil {
			return err
		}
	}
	paths := sortedKeys(plan.ours)
	for _, p := range paths {
		if plan.ours[p] == actRemove {
			if err := removeFile(w.dir, p); err != nil {
				return err
			}
		}
	}
	for _, p := range paths {
		if plan.ours[p] == actLay {
			if err := w.layOurs(p, w.ours[p]); err != nil {
				return err
			}
		}
	}
	return nil
}

// laidAfter is the record of our files once the plan is done. An edit that is
// not written back keeps the record that it is compared with.
func (w *workspace) laidAfter(plan *syncPlan) map[string]laid {
	after := make(map[string]laid, len(w.ours))
	for p, our := range w.ours {
		if plan.ours[p] == actEdited {
			after[p] = w.st.Ours[p]
		} else {
			after[p] = laid{Sums: []string{our.sum()}}
		}
	}
	return after
}

// setLaidIndex records the laid tree with the times of its files.
func (w *workspace) setLaidIndex(plan *syncPlan) error {
	if plan.tree == w.st.Tree && len(plan.files) == 0 && len(w.st.Pending) == 0 {
		return nil
	}
	if err := failpoint("index"); err != nil {
		return err
	}
	g := w.laidIndex()
	// A killed git leaves its lock behind; ours tells that none is running.
	os.Remove(filepath.Join(w.gitDir(), "tree-index.lock"))
	if _, err := g.run(nil, "read-tree", "-m", "-i", plan.tree); err != nil {
		return err
	}
	g.run(nil, "update-index", "-q", "--refresh") // fails if there are edits
	return nil
}

// switchBase makes the tree's git diff compare with a new base.
func (w *workspace) switchBase(base string) error {
	if w.st.Base == base {
		return nil
	}
	branch := "refs/heads/fork-" + baseVersion(w.pins)
	for _, args := range [][]string{
		{"update-ref", refBase, base},
		{"update-ref", branch, base},
		{"symbolic-ref", "HEAD", branch},
		{"read-tree", base},
	} {
		if _, err := w.git.run(nil, args...); err != nil {
			return err
		}
	}
	w.git.run(nil, "update-index", "-q", "--refresh") // fails if there are edits
	w.st.Base, w.st.BaseKey = base, baseKey(w.pins)
	return nil
}

// copyWorkSum puts the sums of the tree's workspace beside the root go.work,
// which is a workspace of the same modules.
func (w *workspace) copyWorkSum() error {
	data, err := os.ReadFile(filepath.Join(w.dir, "go.work.sum"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = writeIfChanged(filepath.Join(w.root, "go.work.sum"), data, 0o644, w.tmpDir())
	return err
}
