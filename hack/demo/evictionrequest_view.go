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
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// view shows the progress: a block that is drawn anew on a terminal, a line for each
// change elsewhere.
type view struct {
	lock      sync.Mutex
	out       *os.File
	start     time.Time
	terminal  bool
	scenarios []*scenario
	states    map[*scenario]string
	drawn     bool
}

func newView(out *os.File, scenarios []*scenario) *view {
	return &view{
		out:       out,
		start:     time.Now(),
		terminal:  term.IsTerminal(int(out.Fd())),
		scenarios: scenarios,
		states:    map[*scenario]string{},
	}
}

// show records what a scenario is doing now.
func (v *view) show(s *scenario, state string) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if v.states[s] == state {
		return
	}
	v.states[s] = state
	if v.terminal {
		v.draw()
		return
	}
	fmt.Fprintf(v.out, "%6s  %-12s %s\n", v.elapsed(), s.name, state)
}

// draw replaces the block that was drawn before. Lines are cut at the width of the
// terminal: a line that wraps would shift the block.
func (v *view) draw() {
	if v.drawn {
		fmt.Fprintf(v.out, "\x1b[%dA", len(v.scenarios))
	}
	v.drawn = true
	width, _, err := term.GetSize(int(v.out.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	for _, s := range v.scenarios {
		line := []rune(fmt.Sprintf("%6s  %-12s %s", v.elapsed(), s.name, v.states[s]))
		if len(line) >= width {
			line = append(line[:width-2], '…')
		}
		fmt.Fprintf(v.out, "\x1b[2K%s\n", string(line))
	}
}

func (v *view) elapsed() string {
	return fmt.Sprintf("%.1fs", time.Since(v.start).Seconds())
}

// close ends the block.
func (v *view) close() { fmt.Fprintln(v.out) }

// report prints the table that sums up, and returns an error unless all is well.
func report(out *os.File, scenarios []*scenario, results []error) error {
	failed := false
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POD\tWHAT MUST HAPPEN\tENDED AS\tTOOK\tRESULT")
	for i, s := range scenarios {
		result := "ok"
		if results[i] != nil {
			failed = true
			result = "FAILED: " + results[i].Error()
		}
		outcome := s.outcome
		if outcome == "" {
			outcome = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1fs\t%s\n", s.name, s.story, outcome, s.took.Seconds(), result)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if failed {
		return errFailed
	}
	return nil
}
