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
	"strings"
)

// ourDirs are the directories of the repository that are laid into the tree.
var ourDirs = []string{"api", "cmd", "hack", "pkg", "plugin", "staging", "test"}

// inTooling is true for directories that serve the repository, not the tree.
func inTooling(file string) bool {
	return strings.HasPrefix(file, "hack/tree/") || strings.HasPrefix(file, "hack/modules/")
}

// layable is true for paths where one of our files can stand.
func layable(file string) bool {
	top, _, nested := strings.Cut(file, "/")
	if !nested || inTooling(file) || strings.HasSuffix(file, ".patch") {
		return false
	}
	for _, dir := range ourDirs {
		if top == dir {
			return true
		}
	}
	return false
}

// ourFile is a file of the repository that is laid into the tree.
type ourFile struct {
	content
	// embedded files are laid as copies, since go:embed refuses links.
	embedded bool
}

// listOurs reads our files: what git tracks or does not ignore.
func (w *workspace) listOurs() (map[string]ourFile, error) {
	args := append([]string{"ls-files", "-z", "-co", "--exclude-standard", "--deduplicate", "--"}, ourDirs...)
	paths, err := repoGit(w.root).fields(nil, args...)
	if err != nil {
		return nil, err
	}
	ours := map[string]ourFile{}
	for _, p := range paths {
		if !layable(p) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(w.root, p))
		if os.IsNotExist(err) {
			continue // removed, but still in git's index
		}
		if err != nil {
			return nil, fmt.Errorf("reading our file %s: %w", p, err)
		}
		info, err := os.Stat(filepath.Join(w.root, p))
		if err != nil {
			return nil, err
		}
		ours[p] = ourFile{content: content{gitMode(info), data}}
	}
	return ours, w.markEmbedded(ours)
}

// checkOurs reports our files that stand where the tree has one of upstream's.
func checkOurs(ours map[string]ourFile, base map[string]entry, patches []*patch) error {
	renamed := map[string]string{}
	for _, p := range patches {
		if p.newPath != p.path {
			renamed[p.newPath] = p.file
		}
	}
	var errs []error
	for _, p := range sortedKeys(ours) {
		if _, ok := base[p]; ok {
			errs = append(errs, fmt.Errorf("%s: exists upstream: change upstream's file in the tree and run make refresh, or choose another name", p))
		}
		if file, ok := renamed[p]; ok {
			errs = append(errs, fmt.Errorf("%s: %s renames an upstream file to this path: choose another name", p, file))
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := base[dir]; ok {
				errs = append(errs, fmt.Errorf("%s: upstream has a file %s where a directory is needed: choose another name", p, dir))
			}
		}
	}
	return errors.Join(errs...)
}

// linkText is the target of the link of one of our files.
func (w *workspace) linkText(p string) string {
	return strings.Repeat("../", strings.Count(p, "/")) + w.toRoot + "/" + p
}

// linkedPath returns which of our files a link in the tree was made for, or "".
// It also knows links that were moved to another directory and now point
// nowhere, which is how a rename of one of our files looks.
func (w *workspace) linkedPath(text string) string {
	if !strings.HasPrefix(text, "../") {
		return ""
	}
	p := strings.TrimLeft(text, "./")
	if top := strings.TrimLeft(w.toRoot, "./"); top != "" {
		rest, ok := strings.CutPrefix(p, top+"/")
		if !ok {
			return ""
		}
		p = rest
	}
	if !layable(p) {
		return ""
	}
	return p
}

// ourAction is what has to be done at the place of one of our files.
type ourAction int

const (
	actNone   ourAction = iota
	actLay              // put our file there
	actRemove           // take away what we laid there
	actEdited           // the tree was edited; refresh will write it back
)

// decideOurs compares the three versions of one of our files: the one in the
// repository (nil if it is gone), the one laid last (known is false if there
// is none), and the one in the tree.
func (w *workspace) decideOurs(p string, our *ourFile, last laid, known bool, have content) (ourAction, error) {
	if our == nil {
		return w.decideGone(p, last, have)
	}
	wantCopy := our.embedded || w.copies
	switch have.mode {
	case "":
		// After a killed run the file may be missing because it was not laid yet.
		if known && !w.discards(p) && len(w.st.Pending) == 0 {
			return actEdited, nil
		}
		return actLay, nil
	case modeLink:
		return w.decideLink(p, string(have.data), wantCopy)
	}
	// From here on the tree has a regular file: a copy, or what an editor that
	// saves by renaming put in the place of the link.
	switch {
	case our.sum() == have.sum():
		if wantCopy {
			return actNone, nil
		}
		return actLay, nil
	case w.discards(p) || last.has(have.sum()):
		return actLay, nil
	case last.has(our.sum()):
		return actEdited, nil
	case !known:
		return actNone, fmt.Errorf("%s: is new in the repository and, with other content, in the tree: make them equal, or run tree -discard", p)
	}
	return actNone, fmt.Errorf("%s: changed in both the repository and the tree (where it is a copy): make them equal, or run tree -discard", p)
}

func (w *workspace) decideLink(p, text string, wantCopy bool) (ourAction, error) {
	if text == w.linkText(p) {
		if wantCopy {
			return actLay, nil
		}
		return actNone, nil
	}
	// The link of another of our files was moved over this one.
	if from := w.linkedPath(text); from != "" && !w.discards(p) {
		if _, exists := w.ours[from]; exists {
			if now, err := readContent(filepath.Join(w.dir, from)); err != nil || now.mode == "" {
				return actNone, fmt.Errorf("%s: the tree has the link of %s in its place: move it in the repository, or run tree -discard", p, from)
			}
		}
	}
	return actLay, nil
}

// decideGone handles one of our files that the repository no longer has.
func (w *workspace) decideGone(p string, last laid, have content) (ourAction, error) {
	switch {
	case have.mode == "" || have.mode == modeLink && w.linkedPath(string(have.data)) == "":
		return actNone, nil
	case have.mode == modeLink || last.has(have.sum()) || w.discards(p):
		return actRemove, nil
	}
	return actNone, fmt.Errorf("%s: removed from the repository, but its copy in the tree was edited: remove it there too, or copy it to the repository", p)
}

// layOurs puts one of our files into the tree.
func (w *workspace) layOurs(p string, our ourFile) error {
	file := filepath.Join(w.dir, p)
	if our.embedded || w.copies {
		return writeAtomic(file, our.data, permOf(our.mode), w.tmpDir())
	}
	return linkAtomic(w.linkText(p), file, w.tmpDir())
}
