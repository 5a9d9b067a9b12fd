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
	"path/filepath"
	"regexp"
	"strings"
)

// patchIndex lists all patches for readers.
const patchIndex = "PATCHES.md"

const indexIntro = `# Patches

Upstream files that a person edited, with the lines, the gate and the reason. The edit is in the file
of the same path with ` + "`.patch`" + ` appended; those of generators are in
` + "`" + generatedPatch + "`" + `. ` + "`hack/tree index`" + ` writes this page.

`

// renderIndex makes PATCHES.md from the patch files alone.
func renderIndex(set *patchSet) []byte {
	var rows bytes.Buffer
	var count, added, removed, generated int
	for _, p := range set.patches {
		if p.generated() {
			generated++
			continue
		}
		plus, minus := countLines(p.diff)
		count, added, removed = count+1, added+plus, removed+minus
		gate := ""
		if field := headerField(p.header, "Gate"); field != "none" {
			gate = " (" + field + ")"
		}
		fmt.Fprintf(&rows, "- [%s](%s.patch) +%d/-%d%s: %s\n", p.path, strings.ReplaceAll(p.path, " ", "%20"),
			plus, minus, gate, headerField(p.header, "Why"))
	}
	return fmt.Appendf(nil, "%s%d patches, %d lines added, %d removed. Generated: %d files, %d KiB.\n\n%s",
		indexIntro, count, added, removed, generated, (len(set.files[generatedPatch])+1023)/1024, rows.Bytes())
}

// countLines counts the added and removed lines of a diff.
func countLines(diff []byte) (added, removed int) {
	inHunk := false
	for line := range bytes.Lines(diff) {
		switch {
		case bytes.HasPrefix(line, []byte("@@ ")):
			inHunk = true
		case inHunk && line[0] == '+':
			added++
		case inHunk && line[0] == '-':
			removed++
		}
	}
	return added, removed
}

// runIndex writes PATCHES.md.
func (w *workspace) runIndex() (string, error) {
	set, err := readPatches(w.root)
	if err != nil {
		return "", err
	}
	changed, err := writeFile(filepath.Join(w.root, patchIndex), content{modeFile, renderIndex(set)})
	if changed {
		return "wrote " + patchIndex, err
	}
	return patchIndex + " is current", err
}

// runVerify lists all that keeps the repository from being complete. It changes
// neither the repository nor the tree.
func (w *workspace) runVerify() (string, error) {
	set, err := readPatches(w.root)
	if err != nil {
		return "", err
	}
	index, err := readContent(filepath.Join(w.root, patchIndex))
	if err == nil && !bytes.Equal(index.data, renderIndex(set)) {
		err = fmt.Errorf("%s: is not current: run make index", patchIndex)
	}
	return "the repository is complete", errors.Join(checkHeaders(set), err, w.checkRefreshed(), w.checkNames())
}

// gateField is what follows "Gate:". The tests with the gates on take the names from there.
var gateField = regexp.MustCompile(`^(none|[A-Z][A-Za-z0-9]*(, [A-Z][A-Za-z0-9]*)*)$`)

// checkHeaders demands that each patch says why it is there, and by which gates.
func checkHeaders(set *patchSet) error {
	var errs []error
	for _, p := range set.patches {
		for _, field := range []string{"Why", "Gate"} {
			if !p.generated() && headerField(p.header, field) == "" {
				errs = append(errs, fmt.Errorf("%s: %s: is empty or missing: fill it in above the diff (no gate is none)", p.file, field))
			}
		}
		if gates := headerField(p.header, "Gate"); gates != "" && !gateField.MatchString(gates) {
			errs = append(errs, fmt.Errorf("%s: Gate: is %q: write none, or the names of feature gates with a comma and a space between them", p.file, gates))
		}
	}
	return errors.Join(errs...)
}

// checkRefreshed fails if tree or refresh had anything to do.
func (w *workspace) checkRefreshed() error {
	base, err := w.loadTree()
	if err != nil {
		return err
	}
	found, err := w.planSync(base)
	if err != nil {
		return err
	}
	if n := len(found.lines); w.stale(found) {
		return fmt.Errorf("the tree is not current: run make tree (%d files differ)", n)
	}
	plan, err := w.planRefresh(found)
	if err != nil {
		return err
	}
	var errs []error
	for _, line := range plan.lines {
		errs = append(errs, fmt.Errorf("make refresh would %s", line))
	}
	return errors.Join(errs...)
}
