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
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// metric is an entry of the list that upstream's parser writes, see hack/modules/instrumentation.
type metric struct {
	Subsystem      string   `json:"subsystem"`
	Name           string   `json:"name"`
	Help           string   `json:"help"`
	Type           string   `json:"type"`
	StabilityLevel string   `json:"stabilityLevel"`
	Labels         []string `json:"labels"`
}

// alpha is the stability of all metrics, which the document says once.
const alpha = "ALPHA"

// block is a table of metrics in the document, between two comments. The first one names the prefix
// of the metrics.
var block = regexp.MustCompile(`(?s)<!-- metrics: (\w+) -->\n.*?<!-- end of metrics -->`)

// updateMetrics writes the metrics into their tables in the document.
func updateMetrics(file string, list []byte) error {
	var metrics []metric
	if err := yaml.Unmarshal(list, &metrics); err != nil {
		return fmt.Errorf("parsing the list of metrics: %w", err)
	}
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	updated, err := fillTables(string(document), metrics)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(updated), 0o644)
}

// fillTables returns the document with current tables. Every metric must be alpha and
// belong to exactly one table, and no table may be empty.
func fillTables(document string, metrics []metric) (string, error) {
	shown := map[string]int{}
	var empty []string
	document = block.ReplaceAllStringFunc(document, func(old string) string {
		prefix := block.FindStringSubmatch(old)[1]
		rows := []string{"| metric | type | labels | help |", "|---|---|---|---|"}
		for _, m := range metrics {
			if strings.HasPrefix(m.fullName(), prefix+"_") {
				rows = append(rows, m.row())
				shown[m.fullName()]++
			}
		}
		if len(rows) == 2 {
			empty = append(empty, prefix)
		}
		slices.Sort(rows[2:])
		return fmt.Sprintf("<!-- metrics: %s -->\n%s\n<!-- end of metrics -->", prefix, strings.Join(rows, "\n"))
	})
	for _, m := range metrics {
		if m.StabilityLevel != alpha {
			return "", fmt.Errorf("metric %s is %s, but the document says that all are %s", m.fullName(), m.StabilityLevel, alpha)
		}
		if n := shown[m.fullName()]; n != 1 {
			return "", fmt.Errorf("metric %s is in %d tables, want 1: each table has the comment <!-- metrics: PREFIX -->", m.fullName(), n)
		}
	}
	if len(empty) > 0 {
		return "", fmt.Errorf("no metric begins with %s: remove the table", strings.Join(empty, ", "))
	}
	return document, nil
}

func (m metric) fullName() string {
	if m.Subsystem == "" {
		return m.Name
	}
	return m.Subsystem + "_" + m.Name
}

// row is the line of the metric in a table.
func (m metric) row() string {
	kind := strings.ToLower(m.Type)
	if kind == "custom" {
		// The parser does not see what a collector reports. Ours report gauges, as their tests say.
		kind = "gauge"
	}
	var labels []string
	for _, label := range m.Labels {
		labels = append(labels, "`"+label+"`")
	}
	help := strings.ReplaceAll(m.Help, "|", "\\|")
	return fmt.Sprintf("| `%s` | %s | %s | %s |", m.fullName(), kind, strings.Join(labels, ", "), help)
}
