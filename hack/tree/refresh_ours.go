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

// editedOurs finds our files that are regular files in the tree with a content
// of their own, and returns those that are missing there.
func (w *workspace) editedOurs(plan *refreshPlan) (map[string]bool, error) {
	missing := map[string]bool{}
	for p, our := range w.ours {
		last, known := w.st.Ours[p]
		have, err := readContent(filepath.Join(w.dir, p))
		if err != nil {
			return nil, err
		}
		action, err := w.decideOurs(p, &our, last, known, have)
		switch {
		case err != nil:
			return nil, err
		case action != actEdited:
		case have.mode == "":
			missing[p] = true
		case hasMarkers(have.data):
			return nil, fmt.Errorf("%s: has conflict markers: resolve them first", p)
		default:
			plan.edits[p] = have
		}
	}
	return missing, nil
}

// junk are files that no one means to keep: leftovers of merges and builds,
// and what upstream's scripts install.
func junk(p string) bool {
	for _, suffix := range []string{".orig", ".rej", "/"} {
		if strings.HasSuffix(p, suffix) {
			return true
		}
	}
	for _, prefix := range []string{"_output/", "bin/", "third_party/protoc", "third_party/etcd", "hack/tools/", "vendor/"} {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return strings.Contains("/"+p, "/.go-build") || isWorkFile(p)
}

// newFiles lists regular files that neither upstream nor we have. Links that
// were moved are entered into the plan as renames.
func (w *workspace) newFiles(plan *refreshPlan, missing map[string]bool) ([]string, error) {
	paths, err := w.untracked()
	if err != nil {
		return nil, err
	}
	var fresh []string
	var errs []error
	for _, q := range paths {
		if _, ours := w.ours[q]; ours || junk(q) {
			continue
		}
		have, err := readContent(filepath.Join(w.dir, q))
		if err != nil {
			return nil, err
		}
		if have.mode != modeLink {
			fresh = append(fresh, q)
			continue
		}
		from := w.linkedPath(string(have.data))
		if !missing[from] {
			errs = append(errs, fmt.Errorf("%s: is a link to %s; only regular files can be new: remove it", q, have.data))
			continue
		}
		delete(missing, from)
		plan.renames[from] = q
	}
	return fresh, errors.Join(errs...)
}

// matchRenamedCopies finds copies of ours that were moved in the tree.
func matchRenamedCopies(plan *refreshPlan, missing map[string]bool, ours map[string]laid) {
	for _, from := range sortedKeys(missing) {
		for _, to := range sortedKeys(plan.imports) {
			if ours[from].has(plan.imports[to].sum()) {
				plan.renames[from] = to
				delete(plan.imports, to)
				delete(missing, from)
				break
			}
		}
	}
}

// checkImports refuses new files that the repository could not lay again.
func (w *workspace) checkImports(plan *refreshPlan) error {
	targets := sortedKeys(plan.imports)
	for _, to := range plan.renames {
		targets = append(targets, to)
	}
	sort.Strings(targets)
	if len(targets) == 0 {
		return nil
	}
	var errs []error
	for _, q := range targets {
		_, exists := w.base[q]
		switch {
		case !layable(q):
			errs = append(errs, fmt.Errorf("%s: is new, but only files below %s can be ours: move or remove it", q, strings.Join(ourDirs, ", ")))
		case exists:
			errs = append(errs, fmt.Errorf("%s: is one of our files in the place of upstream's: choose another name", q))
		case hasMarkers(plan.imports[q].data):
			errs = append(errs, fmt.Errorf("%s: has conflict markers: resolve them first", q))
		}
		if have, err := readContent(filepath.Join(w.root, q)); err != nil {
			errs = append(errs, err)
		} else if have.mode != "" {
			errs = append(errs, fmt.Errorf("%s: is new in the tree, but the repository has an ignored file there: remove one", q))
		}
	}
	// The status says whether any is ignored, so it is no error.
	ignored, _ := repoGit(w.root).fields(joinNUL(targets), "check-ignore", "-z", "--no-index", "--stdin")
	for _, q := range ignored {
		errs = append(errs, fmt.Errorf("%s: is new, but the repository's .gitignore excludes it: rename or remove it", q))
	}
	return errors.Join(errs...)
}

// massRemoval is the number of missing files from which on it is more likely
// that something wiped the tree, as git clean does.
const massRemoval = 10

// checkRemovals allows to remove our files from the repository only if git can
// bring them back.
func (w *workspace) checkRemovals(plan *refreshPlan, missing map[string]bool) error {
	if len(missing) >= massRemoval && 2*len(missing) > len(w.ours) {
		return fmt.Errorf("%d of our %d files are missing in the tree: if you mean to remove them, do it in the repository; else run tree -discard", len(missing), len(w.ours))
	}
	var errs []error
	for _, p := range sortedKeys(missing) {
		saved, err := w.savedInGit(p)
		if err != nil {
			errs = append(errs, err)
		} else if !saved {
			errs = append(errs, fmt.Errorf("%s: removed in the tree, but git has no copy of its present content: git add it first, or run tree -discard %s", p, p))
		}
		plan.removals = append(plan.removals, p)
	}
	return errors.Join(errs...)
}

// savedInGit is true if the present content is in the repository's HEAD or index.
func (w *workspace) savedInGit(p string) (bool, error) {
	g := repoGit(w.root)
	now, err := g.line("hash-object", "--", p)
	if err != nil {
		return false, err
	}
	for _, rev := range []string{":" + p, "HEAD:" + p} {
		if id, err := g.line("rev-parse", "-q", "--verify", rev); err == nil && id == now {
			return true, nil
		}
	}
	return false, nil
}
