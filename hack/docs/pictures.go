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
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"unicode/utf8"
)

//go:embed templates
var files embed.FS

// Both pictures have a background of their own, so that they are readable on light and dark pages.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"escape": template.HTMLEscapeString,
	"add":    func(a, b float64) float64 { return a + b },
	"mul":    func(a, b float64) float64 { return a * b },
	"float":  func(a int) float64 { return float64(a) },
}).ParseFS(files, "templates/*.svg"))

// terminal is a screen and the command that filled it.
type terminal struct {
	Command string
	Lines   []line
	Columns int
}

type line struct {
	Text string
	// Columns is the width, which the picture enforces whatever the font is.
	Columns int
}

// drawTerminal draws a screen, in one color, as "kubectl maintenance" prints it. The first line of the
// text is the command.
func drawTerminal(out io.Writer, text string) error {
	command, screen, found := strings.Cut(strings.TrimRight(text, "\n "), "\n")
	if !found {
		return fmt.Errorf("the input has no screen after its first line %q", command)
	}
	t := terminal{Command: command, Columns: utf8.RuneCountInString(command) + 10}
	for text := range strings.Lines(screen) {
		text = strings.TrimRight(text, " \n")
		columns := utf8.RuneCountInString(text)
		t.Lines = append(t.Lines, line{Text: text, Columns: columns})
		t.Columns = max(t.Columns, columns)
	}
	return templates.ExecuteTemplate(out, "terminal.svg", t)
}

// drain is what make test-surge has recorded of a drain, see drainRecord in test/system. Times are in
// seconds after the start of the drain.
type drain struct {
	Way, Version string
	Seconds      float64
	Services     []service
}

// service is the Service of a Deployment with one replica.
type service struct {
	Name, Budget string
	// Gaps are the intervals without a ready endpoint.
	Gaps []gap
	// Drained is whether the pod has left the node.
	Drained bool
}

// Summary is the text beside the bar of the Service.
func (s service) Summary() string {
	total := 0.0
	for _, gap := range s.Gaps {
		total += gap.Length()
	}
	if !s.Drained {
		return "pod not evicted"
	}
	return fmt.Sprintf("%.1f s down", total)
}

// gap is when an interval begins and ends.
type gap [2]float64

func (g gap) Length() float64 { return g[1] - g[0] }

// downtime is the picture of drains, one above the other, on one scale.
type downtime struct {
	Drains []drain
	// Seconds are the labels of the scale.
	Seconds []int
	// Scale is the width of a second.
	Scale float64
}

// chartWidth is the width of the part of the picture that has a scale.
const chartWidth = 480.0

func drawDowntime(out io.Writer, input []byte) error {
	var d downtime
	if err := json.Unmarshal(input, &d.Drains); err != nil {
		return fmt.Errorf("parsing the record of the drains: %w", err)
	}
	longest := 0.0
	for _, drain := range d.Drains {
		longest = max(longest, drain.Seconds)
	}
	if longest == 0 {
		return fmt.Errorf("the record has no drain")
	}
	d.Scale = chartWidth / longest
	for second := 0; float64(second) <= longest; second += 5 {
		d.Seconds = append(d.Seconds, second)
	}
	return templates.ExecuteTemplate(out, "downtime.svg", d)
}
