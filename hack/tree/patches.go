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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// generatedPatch holds all edits of upstream's generated files.
const generatedPatch = "hack/generated.patch"

const nullBlob = "0000000000000000000000000000000000000000"

// patch is the edit of one upstream file.
type patch struct {
	// file is the patch file, relative to the repository.
	file string
	// path is the upstream file, newPath the same unless it is renamed.
	path, newPath string
	// oldBlob and newBlob are empty if the patch only renames or changes modes.
	oldBlob, newBlob string
	deletes          bool
	header, diff     []byte
}

func (p *patch) generated() bool { return p.file == generatedPatch }

// patchSet is the content of all patch files of the repository.
type patchSet struct {
	patches []*patch
	// files are the contents of the patch files as they are now.
	files map[string][]byte
}

// digest changes when a tree made from the patches could.
func (s *patchSet) digest(base string, merged map[string]string) string {
	h := sha256.New()
	fmt.Fprintln(h, stateVersion, base)
	for _, file := range sortedKeys(s.files) {
		fmt.Fprintln(h, file, len(s.files[file]), merged[file])
		h.Write(s.files[file])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// readPatches reads and parses all patch files of the repository. Patches may
// stand in any directory, since upstream has files in all of them.
func readPatches(root string) (*patchSet, error) {
	out, err := repoGit(root).fields(nil, "ls-files", "-z", "-co", "--exclude-standard", "--deduplicate", "--", "*.patch")
	if err != nil {
		return nil, err
	}
	// Git lists what it does not know yet first: the index must not depend on that.
	sort.Strings(out)
	set := &patchSet{files: map[string][]byte{}}
	var errs []error
	for _, file := range out {
		if inTooling(file) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // removed, but still in git's index
		}
		if err != nil {
			return nil, err
		}
		set.files[file] = data
		parsed, err := parsePatchFile(file, data)
		errs = append(errs, err)
		set.patches = append(set.patches, parsed...)
	}
	errs = append(errs, set.dedupe())
	return set, errors.Join(errs...)
}

// dedupe demands that one upstream file has one patch. The same edit in both a
// patch of its own and the generated patch is what a killed refresh leaves when
// it moves the edit from one to the other: it counts once.
func (s *patchSet) dedupe() error {
	seen := map[string]*patch{}
	var kept []*patch
	var errs []error
	for _, p := range s.patches {
		q := seen[p.path]
		switch {
		case q == nil:
			seen[p.path] = p
			kept = append(kept, p)
		case q.newBlob == "" || q.newBlob != p.newBlob || q.oldBlob != p.oldBlob:
			errs = append(errs, fmt.Errorf("%s: is changed by both %s and %s: remove one", p.path, q.file, p.file))
		}
	}
	s.patches = kept
	return errors.Join(errs...)
}

// parsePatchFile parses a patch of one upstream file, or the generated patch.
func parsePatchFile(file string, data []byte) ([]*patch, error) {
	header, sections := splitDiff(data)
	if file != generatedPatch && len(sections) != 1 {
		return nil, fmt.Errorf("%s: has %d diffs, a patch is one diff of the file that it is named after", file, len(sections))
	}
	var patches []*patch
	for _, diff := range sections {
		p, err := parseSection(diff)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		p.file, p.header = file, header
		if want := strings.TrimSuffix(file, ".patch"); !p.generated() && p.path != want {
			return nil, fmt.Errorf("%s: changes %s, but by its name it is the patch of %s", file, p.path, want)
		}
		patches = append(patches, p)
	}
	return patches, nil
}

// splitDiff cuts a patch file into what stands above the first diff and the
// diffs of the single files.
func splitDiff(data []byte) (header []byte, sections [][]byte) {
	const start = "diff --git "
	begin := -1
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 {
			end = len(data) - at
		}
		// No line within a diff begins like this: lines of text have a sign or
		// a blank before them, lines of binary data have no blank.
		if bytes.HasPrefix(data[at:], []byte(start)) {
			if begin < 0 {
				header = data[:at]
			} else {
				sections = append(sections, data[begin:at])
			}
			begin = at
		}
		at += end
	}
	if begin < 0 {
		return data, nil
	}
	return header, append(sections, data[begin:])
}

// parseSection reads the extended header of the diff of one file.
func parseSection(diff []byte) (*patch, error) {
	lines := strings.Split(string(diff[:sectionHeaderLen(diff)]), "\n")
	path, err := pathOfDiffLine(strings.TrimPrefix(lines[0], "diff --git "))
	p := &patch{path: path, newPath: path, diff: diff}
	for _, line := range lines[1:] {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "deleted file mode"):
			p.deletes = true
		case strings.HasPrefix(line, "new file mode"):
			return nil, fmt.Errorf("%s: adds a file; new files stand in the repository as they are", path)
		case strings.HasPrefix(line, "rename from "):
			p.path, err = unquote(strings.TrimPrefix(line, "rename from ")), nil
		case strings.HasPrefix(line, "rename to "):
			p.newPath, err = unquote(strings.TrimPrefix(line, "rename to ")), nil
		case key == "index":
			ids, _, _ := strings.Cut(value, " ")
			p.oldBlob, p.newBlob, _ = strings.Cut(ids, "..")
		}
	}
	if err != nil {
		return nil, err
	}
	return p, p.checkIndexLine()
}

// sectionHeaderLen is the length of a section without its hunks.
func sectionHeaderLen(diff []byte) int {
	for _, mark := range []string{"\n--- ", "\n@@ ", "\nGIT binary patch\n", "\nBinary files "} {
		if i := bytes.Index(diff, []byte(mark)); i >= 0 {
			return i + 1
		}
	}
	return len(diff)
}

// checkIndexLine wants full blob ids wherever content changes: they prove that
// a patch was made against this very file.
func (p *patch) checkIndexLine() error {
	if p.oldBlob == "" && sectionHeaderLen(p.diff) == len(p.diff) && !p.deletes {
		return nil
	}
	if len(p.oldBlob) != len(nullBlob) || len(p.newBlob) != len(nullBlob) {
		return fmt.Errorf("%s: the diff has no index line with full blob ids: make it with refresh, or git diff --full-index", p.path)
	}
	return nil
}

// pathOfDiffLine gets X from "a/X b/X". Renames, where the two differ, are read
// from their own lines.
func pathOfDiffLine(s string) (string, error) {
	half := len(s) / 2
	if len(s)%2 == 1 && s[half] == ' ' {
		a, b := unquote(s[:half]), unquote(s[half+1:])
		if strings.HasPrefix(a, "a/") && strings.HasPrefix(b, "b/") && a[2:] == b[2:] {
			return a[2:], nil
		}
	}
	return "", fmt.Errorf("the line %q does not name one file as a/<path> b/<path>", "diff --git "+s)
}

// unquote undoes git's quoting of paths with unusual characters, which is that
// of Go strings.
func unquote(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

// stalePatch is the error of a patch that was made against another version of
// its file: a three-way merge can help.
type stalePatch struct{ p *patch }

func (e stalePatch) Error() string {
	return fmt.Sprintf("%s: was made against another version of %s: run make merge for a three-way merge, then make refresh", e.p.file, e.p.path)
}

// checkTarget compares a patch with the base that it is to be applied to.
func (p *patch) checkTarget(base map[string]entry) error {
	target, ok := base[p.path]
	switch {
	case p.path == "go.work" || p.path == "go.work.sum":
		return fmt.Errorf("%s: %s is written by the tool and cannot be patched", p.file, p.path)
	case !ok:
		return fmt.Errorf("%s: the base has no file %s: remove the patch, or move its edit to where upstream moved the code", p.file, p.path)
	case p.oldBlob != "" && p.oldBlob != target.blob:
		return stalePatch{p}
	case p.newPath != p.path && base[p.newPath] != entry{}:
		return fmt.Errorf("%s: renames to %s, which the base has already", p.file, p.newPath)
	}
	return nil
}

// applyPatches makes the git tree of base plus patches. It works on an index of
// its own, so that a patch that fails leaves no trace. Deletions are done by hand,
// because git apply wants to see the content that a deletion patch leaves out.
func (w *workspace) applyPatches(base string, patches []*patch) (string, error) {
	index, err := w.tempIndex()
	if err != nil {
		return "", err
	}
	defer os.Remove(index)
	g := w.git.withIndex(index)
	if _, err := g.run(nil, "read-tree", base); err != nil {
		return "", err
	}
	var diffs []*patch
	var deleted []string
	for _, p := range patches {
		if p.deletes {
			deleted = append(deleted, p.path)
		} else {
			diffs = append(diffs, p)
		}
	}
	if err := applyDiffs(g, diffs); err != nil {
		return "", err
	}
	if _, err := g.run(joinNUL(deleted), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
		return "", err
	}
	return g.line("write-tree")
}

// applyDiffs applies all diffs to the index at once, which is much faster than
// one by one, and finds the culprits only if that fails.
func applyDiffs(g git, diffs []*patch) error {
	if len(diffs) == 0 || gitApply(g, diffs) == nil {
		return nil
	}
	var errs []error
	findFailing(g, diffs, &errs)
	if len(errs) == 0 {
		return fmt.Errorf("the patches apply one by one, but not together: two of them rename to the same path")
	}
	return errors.Join(errs...)
}

// gitApply applies diffs to the index. git apply allows no fuzz by itself.
func gitApply(g git, diffs []*patch, flags ...string) error {
	var all bytes.Buffer
	for _, p := range diffs {
		all.Write(p.diff)
	}
	args := append([]string{"apply", "--cached", "--whitespace=nowarn"}, flags...)
	_, err := g.run(all.Bytes(), append(args, "-")...)
	return err
}

// findFailing halves the list until the patches that fail stand alone.
func findFailing(g git, diffs []*patch, errs *[]error) {
	err := gitApply(g, diffs, "--check")
	switch {
	case err == nil:
	case len(diffs) == 1:
		reason := err.Error()
		var ge *gitError
		if errors.As(err, &ge) {
			reason = strings.ReplaceAll(strings.ReplaceAll(ge.stderr, "error: ", ""), "\n", "; ")
		}
		*errs = append(*errs, fmt.Errorf("%s: does not apply to %s: %s", diffs[0].file, diffs[0].path, reason))
	default:
		half := len(diffs) / 2
		findFailing(g, diffs[:half], errs)
		findFailing(g, diffs[half:], errs)
	}
}

// headerField returns the value of "Why:" or "Gate:" above a diff, with the
// lines that continue it.
func headerField(header []byte, name string) string {
	var value []string
	inside := false
	for _, line := range strings.Split(string(header), "\n") {
		switch {
		case strings.HasPrefix(line, name+":"):
			inside = true
			line = strings.TrimPrefix(line, name+":")
		case strings.TrimSpace(line) == "" || fieldStart.MatchString(line):
			inside = false
		}
		if inside {
			value = append(value, strings.TrimSpace(line))
		}
	}
	return strings.TrimSpace(strings.Join(value, " "))
}

var fieldStart = regexp.MustCompile(`^[A-Z][a-z]+:`)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
