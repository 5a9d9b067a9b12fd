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
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
)

// picture runs the command, and returns the picture, which must be well-formed, and its text.
func picture(t *testing.T, command, input string) (svg, text string) {
	t.Helper()
	var out bytes.Buffer
	if err := run([]string{command}, strings.NewReader(input), &out); err != nil {
		t.Fatal(err)
	}
	var texts strings.Builder
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out.String(), texts.String()
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, out.String())
		}
		if data, ok := token.(xml.CharData); ok {
			texts.Write(data)
		}
	}
}

func TestTerminal(t *testing.T) {
	svg, text := picture(t, "watch", "kubectl watch\n  ! budget <b> & \"c\"\n\n  [##!]\n  ok!\n\n\n")
	for _, want := range []string{"kubectl watch", `  ! budget <b> & "c"`, "  [##!]", "  ok!"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the picture lacks %q:\n%s", want, text)
		}
	}
	// kubectl prints no colors, so the lines differ in nothing but their places and widths.
	if got := len(regexp.MustCompile(`<text x="16" y="[0-9.]+" textLength="[0-9.]+" xml:space="preserve">`).FindAllString(svg, -1)); got != 3 {
		t.Errorf("%d lines are plain, want 3:\n%s", got, svg)
	}
	if err := run([]string{"watch"}, strings.NewReader("kubectl watch\n\n"), io.Discard); err == nil {
		t.Error("an empty screen was drawn")
	}
}

func TestDashboard(t *testing.T) {
	svg, text := picture(t, "dashboard", `{"Seconds": 100, "Panels": [
		{"Type": "row", "Title": "What blocks <it>", "W": 24, "H": 1},
		{"Type": "stat", "Title": "Oldest", "Unit": "s", "Y": 1, "W": 4, "H": 4, "Series": [{"Name": "age", "Points": [[0, 1], [1, 73.25], [2, 4]]}]},
		{"Type": "timeseries", "Title": "Pods", "X": 8, "Y": 1, "W": 8, "H": 7, "Series": [
			{"Name": "evicting", "Points": [[0, 0], [1, 4], [50, 3]]}, {"Name": "never"},
			{"Name": "a name that is much too long for the width of the legend of a panel"}, {"Name": "x"}]}]}`)
	for _, want := range []string{"What blocks <it>", "Oldest", "73 s", "at most in 100 s", "Pods", "evicting", "5", "+2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q:\n%s", want, text)
		}
	}
	// 4 of 5 is four fifths of the height, and after 49 seconds without points a line begins again.
	if want := `d="M40.0 140.0L42.6 48.8M171.0 71.6"`; !strings.Contains(svg, want) {
		t.Errorf("the picture lacks %s:\n%s", want, svg)
	}
	if strings.Contains(text, "too long") || strings.Count(svg, "<path") != 1 {
		t.Errorf("the picture has names without room, or lines without points:\n%s", svg)
	}
	if err := run([]string{"dashboard"}, strings.NewReader("{}"), io.Discard); err == nil {
		t.Error("no panel was drawn")
	}
}

func TestDowntime(t *testing.T) {
	svg, text := picture(t, "downtime", `[
		{"Way": "ours", "Version": "v1", "Seconds": 4, "Services": [{"Name": "a", "Drained": true}]},
		{"Way": "theirs", "Version": "v1", "Seconds": 12, "Services": [
			{"Name": "a", "Drained": true, "Gaps": [[1, 2.5], [3, 4]]}, {"Name": "b", "Budget": "minAvailable: 1"}]}]`)
	for _, want := range []string{"ours", "theirs", "0.0 s down", "2.5 s down", "pod not evicted", "minAvailable: 1", "no budget", "10 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q:\n%s", want, text)
		}
	}
	// 12 seconds are 480 wide: a gap of 1.5 seconds is 60 wide, and starts 40 from the left end.
	if want := `<rect class="down" x="226" y="2" width="60" height="13"/>`; !strings.Contains(svg, want) {
		t.Errorf("the picture lacks %s:\n%s", want, svg)
	}
	if err := run([]string{"downtime"}, strings.NewReader("[]"), io.Discard); err == nil {
		t.Error("no drain was drawn")
	}
}
