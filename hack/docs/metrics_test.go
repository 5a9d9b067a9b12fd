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

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metricsList = `
- name: b_total
  subsystem: x
  help: Counts b|c.
  type: Counter
  stabilityLevel: ALPHA
  labels: [cause, stage]
- name: x_a
  help: 'Number of a: all.'
  type: Custom
  stabilityLevel: ALPHA
`

func TestMetrics(t *testing.T) {
	for _, tc := range []struct{ name, list, document, want, err string }{{
		name:     "tables are replaced, the text around them stays",
		document: "# M\n<!-- metrics: x -->\n| old |\n<!-- end of metrics -->\ntext\n",
		want: "# M\n<!-- metrics: x -->\n| metric | type | labels | help |\n|---|---|---|---|\n" +
			"| `x_a` | gauge |  | Number of a: all. |\n" +
			"| `x_b_total` | counter | `cause`, `stage` | Counts b\\|c. |\n<!-- end of metrics -->\ntext\n",
	}, {
		name:     "a metric without a table",
		document: "<!-- metrics: x_b -->\n<!-- end of metrics -->\n",
		err:      "metric x_a is in 0 tables",
	}, {
		name:     "a metric in two tables",
		document: "<!-- metrics: x -->\n<!-- end of metrics -->\n<!-- metrics: x_b -->\n<!-- end of metrics -->\n",
		err:      "metric x_b_total is in 2 tables",
	}, {
		name:     "a table without a metric",
		document: "<!-- metrics: x -->\n<!-- end of metrics -->\n<!-- metrics: y -->\n<!-- end of metrics -->\n",
		err:      "no metric begins with y",
	}, {
		name:     "a metric that is not alpha",
		list:     strings.Replace(metricsList, "ALPHA", "BETA", 1),
		document: "<!-- metrics: x -->\n<!-- end of metrics -->\n",
		err:      "metric x_b_total is BETA",
	}} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.list == "" {
				tc.list = metricsList
			}
			file := filepath.Join(t.TempDir(), "metrics.md")
			if err := os.WriteFile(file, []byte(tc.document), 0o644); err != nil {
				t.Fatal(err)
			}
			err := run([]string{"metrics", file}, strings.NewReader(tc.list), nil)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want %q", err, tc.err)
				}
				tc.want = tc.document
			} else if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}
