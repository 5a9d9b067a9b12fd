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
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/kubernetes/hack/availability"
)

// writeTable shows the drains side by side.
func writeTable(out io.Writer, results []*result) error {
	fmt.Fprintf(out, "\nA new pod is ready after %s, an old one gone after %s. Of each drain, from its first moment to its last:\n", startDelay, endDelay)
	fmt.Fprintln(out, "  no endpoint  how long the Service had no ready endpoint: in all, and the longest time")
	fmt.Fprintln(out, "  pods         the highest number of pods (and with those that are on their way out)")
	fmt.Fprintf(out, "  left         when the pod on %s was gone\n\n", drainedNode)

	left := []string{"DEPLOYMENT\tBUDGET"}
	for _, d := range deployments() {
		left = append(left, d.name+"\t"+cmp.Or(d.budget, "none"))
	}
	lines := append([]string{""}, aligned(left)...)
	for _, r := range results {
		rows := []string{"NO ENDPOINT\tLONGEST\tPODS\tLEFT"}
		for _, d := range deployments() {
			rows = append(rows, strings.Join(r.cells(d.name), "\t"))
		}
		lines = beside(lines, append([]string{r.way + " of " + r.version}, aligned(rows)...))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " ")); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	fmt.Fprintln(out)
	return nil
}

// aligned returns rows with their columns, which tabs divide, below one another.
func aligned(rows []string) []string {
	var buffer bytes.Buffer
	table := tabwriter.NewWriter(&buffer, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, row)
	}
	table.Flush() // A buffer takes everything.
	return strings.Split(strings.TrimSuffix(buffer.String(), "\n"), "\n")
}

// beside puts the lines of one table beside those of another.
func beside(left, right []string) []string {
	width := 0
	for _, line := range left {
		width = max(width, len(line))
	}
	var both []string
	for i := range left {
		both = append(both, fmt.Sprintf("%-*s  |  %s", width, left[i], right[i]))
	}
	return both
}

// cells are those of a Deployment in the table.
func (r *result) cells(name string) []string {
	gaps, app := r.without(name), r.record.Apps[name]
	return []string{
		fmt.Sprintf("%.1f s", availability.Total(gaps).Seconds()),
		fmt.Sprintf("%.1f s", availability.Longest(gaps).Seconds()),
		fmt.Sprintf("%d (%d)", app.Active.Max(r.from, r.to), app.Existing.Max(r.from, r.to)),
		r.left(name),
	}
}

// left says when the pods of an app were gone that were on the node.
func (r *result) left(app string) string {
	left := "never there"
	for _, pod := range r.record.OnNode(drainedNode) {
		switch {
		case pod.App != app:
		case pod.Gone == nil:
			return fmt.Sprintf("never, in %.0f s", r.to.Sub(r.from).Seconds())
		default:
			left = fmt.Sprintf("%.1f s", pod.Gone.At.Sub(r.from).Seconds())
		}
	}
	return left
}
