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
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// recording is what make monitoring has recorded of the panels of a dashboard of Grafana.
type recording struct {
	// Seconds is the length of the recording.
	Seconds float64
	Panels  []recordedPanel
}

// recordedPanel is a panel, at its place in a grid of 24 columns.
type recordedPanel struct {
	// Type is row, stat or timeseries; the first one has a title only.
	Type, Title, Unit string
	X, Y, W, H        int
	Series            []series
}

// series has points of a time, in seconds from the beginning, and a value. Where a point is
// missing, there was no value.
type series struct {
	Name   string
	Points [][2]float64
}

const (
	dashboardWidth = 960.0
	columnWidth    = dashboardWidth / 24
	rowHeight      = 26.0
	panelMargin    = 4.0
	// chartLeft and chartTop, chartBottom are around the lines of a panel.
	chartLeft, chartTop, chartBottom = 40.0, 26.0, 34.0
	// chartStep is the longest pause between two points of a line.
	chartStep = 3.0
	// legendColumns is how many characters of names fit into 100 pixels.
	legendColumns = 17.5
)

// palette are colors that are told apart on white, by those who see no red and green, too.
var palette = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a800"}

// drawnPanel is a panel in pixels.
type drawnPanel struct {
	recordedPanel
	Left, Top, Width, Height float64
	// Value is that of a stat, Limit the highest label of the scale.
	Value, Limit string
	Lines        []drawnLine
	// Legend has the names that fit, More how many do not.
	Legend []drawnLine
	More   int
}

// drawnLine is a series. Its path may have gaps.
type drawnLine struct {
	Name, Color, Path string
	X                 float64
}

func drawDashboard(out io.Writer, input []byte) error {
	var r recording
	if err := json.Unmarshal(input, &r); err != nil {
		return fmt.Errorf("parsing the recording of the dashboard: %w", err)
	}
	if r.Seconds <= 0 || len(r.Panels) == 0 {
		return fmt.Errorf("the recording has no panel")
	}
	picture := struct {
		Height  float64
		Seconds int
		Panels  []drawnPanel
	}{Seconds: int(r.Seconds)}
	for _, p := range r.Panels {
		drawn := drawPanel(p, r.Seconds)
		picture.Panels = append(picture.Panels, drawn)
		picture.Height = max(picture.Height, drawn.Top+drawn.Height+panelMargin)
	}
	return templates.ExecuteTemplate(out, "dashboard.svg", picture)
}

func drawPanel(p recordedPanel, seconds float64) drawnPanel {
	d := drawnPanel{
		recordedPanel: p,
		Left:          float64(p.X)*columnWidth + panelMargin, Top: float64(p.Y)*rowHeight + panelMargin,
		Width: float64(p.W)*columnWidth - 2*panelMargin, Height: float64(p.H)*rowHeight - 2*panelMargin,
	}
	limit := 0.0
	for _, s := range p.Series {
		for _, point := range s.Points {
			limit = max(limit, point[1])
		}
	}
	if p.Type == "stat" {
		d.Value, d.Limit = formatValue(highest(p.Series), p.Unit), ""
		return d
	}
	limit = niceLimit(limit)
	d.Limit = formatValue(limit, p.Unit)
	x, room := 0.0, d.Width-20
	for i, s := range p.Series {
		line := drawnLine{Name: s.Name, Color: palette[i%len(palette)], X: x}
		line.Path = d.path(s.Points, seconds, limit)
		d.Lines = append(d.Lines, line)
		width := float64(len(s.Name))*100/legendColumns + 18
		if d.More > 0 || x+width > room {
			d.More++
			continue
		}
		d.Legend = append(d.Legend, line)
		x += width
	}
	return d
}

// highest returns the highest of all values.
func highest(all []series) float64 {
	value := 0.0
	for _, s := range all {
		for _, point := range s.Points {
			value = max(value, point[1])
		}
	}
	return value
}

// path draws points, relative to the panel.
func (d *drawnPanel) path(points [][2]float64, seconds, limit float64) string {
	var path strings.Builder
	last := math.Inf(-1)
	for _, point := range points {
		command := "L"
		if point[0]-last > chartStep {
			command = "M"
		}
		last = point[0]
		x := chartLeft + point[0]/seconds*(d.Width-chartLeft-10)
		y := d.Height - chartBottom - point[1]/limit*(d.Height-chartTop-chartBottom)
		fmt.Fprintf(&path, "%s%.1f %.1f", command, x, y)
	}
	return path.String()
}

// niceLimit returns the next number that people count to.
func niceLimit(value float64) float64 {
	if value <= 0 {
		return 1
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(value)))
	for _, step := range []float64{1, 2, 5} {
		if value <= step*magnitude {
			return step * magnitude
		}
	}
	return 10 * magnitude
}

func formatValue(value float64, unit string) string {
	precision := 0
	if value < 10 {
		precision = 1
	}
	text := strings.TrimSuffix(strconv.FormatFloat(value, 'f', precision, 64), ".0")
	switch unit {
	case "s":
		return text + " s"
	case "ops":
		return text + "/s"
	}
	return text
}
