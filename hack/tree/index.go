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
	"fmt"
	"path/filepath"
	"strings"
)

// indexFile lists all patches for readers.
const indexFile = "PATCHES.md"

const indexIntro = `# Patches

Each row is an upstream file that a person edited; the edit is in the file of the same path with
` + "`.patch`" + ` appended. The gate is the feature gate that the edit takes effect under, or ` + "`none`" + `.
Generated code is not listed: what generators change in upstream's files is ` + "`" + generatedPatch + "`" + `.
This file is written by ` + "`hack/tree index`" + `.

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
		fmt.Fprintf(&rows, "| [%s](%s.patch) | %d | %s | %s | %s |\n", cell(p.path), strings.ReplaceAll(p.path, " ", "%20"),
			plus, removedCell(p, minus), cell(headerField(p.header, "Gate")), cell(headerField(p.header, "Why")))
	}
	var b bytes.Buffer
	b.WriteString(indexIntro)
	fmt.Fprintf(&b, "%d patches, %d lines added, %d removed. Generated: %d files, %d KiB.\n\n",
		count, added, removed, generated, (len(set.files[generatedPatch])+1023)/1024)
	b.WriteString("| path | + | - | gate | why |\n|---|---|---|---|---|\n")
	b.Write(rows.Bytes())
	return b.Bytes()
}

// removedCell says so where a whole file goes: its lines are not in the patch.
func removedCell(p *patch, minus int) string {
	if p.deletes {
		return "file"
	}
	return fmt.Sprint(minus)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// countLines counts the added and removed lines of a diff.
func countLines(diff []byte) (added, removed int) {
	inHunk := false
	for _, line := range bytes.Split(diff, []byte("\n")) {
		switch {
		case bytes.HasPrefix(line, []byte("@@ ")):
			inHunk = true
		case inHunk && bytes.HasPrefix(line, []byte("+")):
			added++
		case inHunk && bytes.HasPrefix(line, []byte("-")):
			removed++
		}
	}
	return added, removed
}

// writeIndex writes PATCHES.md and says whether it changed.
func (w *workspace) writeIndex() (bool, error) {
	set, err := readPatches(w.root)
	if err != nil {
		return false, err
	}
	return writeIfChanged(filepath.Join(w.root, indexFile), renderIndex(set), 0o644, filepath.Dir(w.dir))
}
