/*
Copyright 2026 The Kubernetes Authors.

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

package scripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// targets are a part that passes, one whose first target fails, one whose log has a failure while
// its target succeeds, and one that counts in other ways.
const targets = `test-drain:
	@printf '%s\n' '=== RUN   TestDrain' '    --- PASS: TestDrain/a (0.00s)' '    --- SKIP: TestDrain/b (0.00s)' '--- PASS: TestDrain (1.00s)'
demo:
	@echo '--- FAIL: TestDemo (1.00s)'; exit 1
demo-evictionrequest:
	@touch not-expected
down:
	@touch _output/cleaned$(NAME)
test-docs:
	@echo '--- FAIL: TestDocs (1.00s)'
test-e2e-upstream:
	@printf '%s\n' 'e2e nodes: 3 passed, 0 failed, 1 skipped' 'total: 10 passed, 0 failed, 2 skipped'
`

func TestTestAll(t *testing.T) {
	r := newRepository(t)
	data, err := os.ReadFile("../../../test-all.sh")
	if err != nil {
		t.Fatal(err)
	}
	r.write("hack/test-all.sh", string(data))
	r.write("Makefile", targets)
	r.write(".gitignore", "/_output\n")
	r.commit("pkg/a.go")
	// expect compares the rows without the seconds.
	expect := func(failed bool, rows []string, parts ...string) {
		t.Helper()
		got := r.try("hack/test-all.sh", parts...)
		table := map[string]bool{}
		for line := range strings.Lines(got.stdout) {
			if fields := strings.Fields(line); len(fields) > 5 {
				table[strings.Join(append(fields[:4], fields[5:]...), " ")] = true
			}
		}
		for _, row := range rows {
			if !table[row] {
				t.Errorf("%v: there is no row %q", parts, row)
			}
		}
		if got.failed != failed || t.Failed() {
			t.Fatalf("%v: failed %t, want %t: %s%s", parts, got.failed, failed, got.stdout, got.stderr)
		}
	}
	drain, e2e := "drain 2 0 1 ok", "e2e-upstream 13 0 3 ok"
	expect(false, []string{drain, "docs - - - not run"}, "drain")
	expect(false, []string{drain, e2e}, "e2e-upstream")
	expect(true, []string{drain, e2e, "docs 0 1 0 ok"}, "docs")
	expect(true, []string{drain, e2e, "demos 0 1 0 failed: make demo"}, "demos")
	if got := r.git("status", "--short", "not-expected"); got != "" {
		t.Error("the targets after the one that failed ran as well")
	}
	for _, cluster := range []string{"", "fleet"} {
		if _, err := os.Stat(filepath.Join(r.dir, "_output/cleaned"+cluster)); err != nil {
			t.Errorf("a cluster of the part that failed is left: %v", err)
		}
	}
	expect(true, []string{drain, "docs 0 1 0 ok"}, "drain")
	tested := r.git("rev-parse", "--short=12", "HEAD")
	r.commit("pkg/a.go")
	expect(true, []string{drain, e2e + " (of another commit, " + strings.TrimSpace(tested) + ")"}, "drain")
	if got := r.try("hack/test-all.sh", "drain", "none-of-them"); !got.failed || !strings.Contains(got.stderr, "usage: make test-all") {
		t.Errorf("an unknown part: failed %t, %s%s", got.failed, got.stdout, got.stderr)
	}
	if got := r.try("hack/test-all.sh", "none"); got.failed {
		t.Error(got.stderr)
	}
	expect(false, []string{drain, "demos - - - not run"}, "drain")
}
