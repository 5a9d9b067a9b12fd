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
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is everything that was measured.
type report struct {
	// Version is that of the API server.
	Version    string `json:"version"`
	Processors int    `json:"processors"`
	// Parameters are the values of all flags.
	Parameters map[string]string `json:"parameters"`
	Tables     []*table          `json:"tables"`
}

// table has the results of measurements that can be compared.
type table struct {
	Title   string   `json:"title"`
	Results []result `json:"results"`
	layout  layout
	// runs counts the measurements of each case.
	runs map[string]int
}

// layout says how a table is printed.
type layout int

const (
	// rowPerCase prints few figures of each case. The requests by client are in the file alone.
	rowPerCase layout = iota
	// rowPerFigure prints many figures, with a numbered column for each case.
	rowPerFigure
)

// result is one figure of one case.
type result struct {
	// Case is what was measured: "bare client, no PDB", and Name what of it: "requests".
	Case string `json:"case"`
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Value is the median of all runs, or their sum.
	Value float64   `json:"value"`
	Runs  []float64 `json:"runs,omitempty"`
	*target
	// digits is how many decimals are printed.
	digits int
	// sum adds up the runs.
	sum bool
	// byClient is a number of requests that is zero where it is missing.
	byClient bool
}

// target is what a result must be.
type target struct {
	Relation string  `json:"relation"`
	Wanted   float64 `json:"wanted"`
	Met      bool    `json:"met"`
}

func (r *report) table(l layout, title string, args ...any) *table {
	t := &table{Title: fmt.Sprintf(title, args...), layout: l, runs: map[string]int{}}
	r.Tables = append(r.Tables, t)
	return t
}

// add adds one measurement of a case. Several of them are combined.
func (t *table) add(name string, results ...result) {
	for _, r := range results {
		r.Case = name
		known := t.find(name, r.Name)
		if known == nil {
			r.Runs = make([]float64, t.runs[name])
			t.Results = append(t.Results, r)
			known = &t.Results[len(t.Results)-1]
		}
		known.Runs = append(known.Runs, r.Value)
	}
	t.runs[name]++
	for i := range t.Results {
		if r := &t.Results[i]; r.Case == name && r.Runs != nil { // Not one that was derived.
			if len(r.Runs) < t.runs[name] {
				r.Runs = append(r.Runs, 0) // Not one such request in this run.
			}
			r.Value = median(r.Runs)
			if r.sum {
				r.Value = sum(r.Runs)
			}
		}
	}
}

// derive adds a result that was computed from others of all runs.
func (t *table) derive(name string, r result) {
	r.Case = name
	t.Results = append(t.Results, r)
}

func (t *table) find(name, figure string) *result {
	for i := range t.Results {
		if r := &t.Results[i]; r.Case == name && r.Name == figure {
			return r
		}
	}
	return nil
}

// value returns a result, NaN if there is none.
func (t *table) value(name, figure string) float64 {
	if r := t.find(name, figure); r != nil {
		return r.Value
	}
	return math.NaN()
}

// Relations of a result to its target.
const (
	atMost  = "at most"
	atLeast = "at least"
)

// want sets the target of a result. One that is missing does not meet it.
func (t *table) want(name, figure, relation string, wanted float64) {
	if t.find(name, figure) == nil {
		t.derive(name, result{Name: figure, Value: math.NaN()})
	}
	r := t.find(name, figure)
	r.target = &target{relation, wanted, relation == atMost && r.Value <= wanted || relation == atLeast && r.Value >= wanted}
}

// heading is the name of a figure with its unit. The titles have that of the requests by client.
func (r *result) heading() string {
	if r.byClient || r.Unit == "" {
		return r.Name
	}
	return r.Name + ", " + r.Unit
}

// targets returns the results that have one.
func (r *report) targets() (all []result, missed int) {
	for _, t := range r.Tables {
		for _, result := range t.Results {
			if result.target == nil {
				continue
			}
			all = append(all, result)
			if !result.Met {
				missed++
			}
		}
	}
	return all, missed
}

func (r *report) write(out io.Writer) error {
	fmt.Fprintf(out, "\n%s, %d processors; kube-controller-manager with its default limits (--kube-api-qps=%d --kube-api-burst=%d;\n",
		r.Version, r.Processors, kubeAPIQPS, kubeAPIBurst)
	fmt.Fprint(out, "the controllers of evictions and maintenances multiply them for themselves).\n")
	if args := r.Parameters["arg"]; args != "" {
		fmt.Fprintf(out, "Further flags: %s\n", args)
	}
	for _, t := range r.Tables {
		if err := t.write(out); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	targets, _ := r.targets()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tWANTED\tMEASURED\tRESULT")
	for _, t := range targets {
		outcome := "ok"
		if !t.Met {
			outcome = "MISSED"
		}
		fmt.Fprintf(w, "%s: %s\t%s %g\t%.4g\t%s\n", t.Case, t.heading(), t.Relation, t.Wanted, t.Value, outcome)
	}
	return w.Flush()
}

// rareRequests is what is too little per pod to be printed. The file has all.
const rareRequests = 0.02

func (t *table) write(out io.Writer) error {
	// The requests by client come last, sorted.
	key := func(r result) string {
		if r.byClient {
			return r.Name
		}
		return ""
	}
	slices.SortStableFunc(t.Results, func(a, b result) int { return cmp.Compare(key(a), key(b)) })
	var rows, columns []string
	cells := map[[2]string]string{}
	for i := range t.Results {
		r := &t.Results[i]
		row, column := r.Case, r.heading()
		if t.layout == rowPerFigure {
			row, column = column, row
		}
		cells[[2]string{row, column}] = fmt.Sprintf("%.*f", r.digits, r.Value)
		if r.byClient && (t.layout == rowPerCase || r.Value < rareRequests) {
			continue
		}
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		if !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
	}
	headings := columns
	if t.layout == rowPerFigure {
		headings = nil
		for i := range columns {
			headings = append(headings, fmt.Sprintf("(%d)", i+1))
		}
	}
	fmt.Fprintf(out, "\n%s\n\n", t.Title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	longest := 0
	for _, row := range rows {
		longest = max(longest, len(row))
	}
	// The first column alone is aligned to the left.
	fmt.Fprintf(w, "%*s\t%s\t\n", longest, "", strings.Join(headings, "\t"))
	for _, row := range rows {
		fmt.Fprintf(w, "%-*s\t", longest, row)
		for _, column := range columns {
			fmt.Fprintf(w, "%s\t", cmp.Or(cells[[2]string{row, column}], "-"))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if t.layout == rowPerFigure {
		for i, name := range columns {
			fmt.Fprintf(out, "(%d) %s\n", i+1, name)
		}
	}
	return nil
}

func (r *report) writeJSON(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

func sum(values []float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}

// median returns the middle of the values, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile returns the smallest of the values that at least p percent of them do not exceed
// (nearest rank). It is always one of the values.
func percentile(p float64, values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
