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

package maintenance

import "time"

// layout is how much of each maintenance a page shows.
type layout struct {
	// nodeRows is how many nodes are shown one by one.
	nodeRows int
	// blockers is how many blockers are shown.
	blockers int
	// details are shown below blockers: which pods wait, and what is said of them.
	details details
	// blockersFirst puts them above the nodes: a screen is cut off below.
	blockersFirst bool
	// noHead leaves out what is known of the maintenance as a whole.
	noHead bool
	// headlinesOnly leaves out everything else.
	headlinesOnly bool
}

type details int

const (
	detailsOfAll details = iota
	// detailsOfBlocked are those of pods that stay until somebody acts.
	detailsOfBlocked
	detailsOfNone
)

func (d details) include(b *blockerView) bool {
	return d == detailsOfAll || d == detailsOfBlocked && b.Blocked
}

// fewNodeRows is to how many nodes a screen is limited before blockers are shortened.
const fewNodeRows = 3

// fullLayout is for a page that may be as long as it takes.
func fullLayout(views []view) layout {
	return layout{nodeRows: maxNodeRows, blockers: mostBlockers(views)}
}

func mostBlockers(views []view) int {
	most := 0
	for i := range views {
		most = max(most, len(views[i].Blockers))
	}
	return most
}

// renderScreen returns the text for some maintenances in at most as many lines as there
// are, if that is possible at all. What somebody has to act on is dropped last: first rows
// of nodes go, then the names of pods, then all nodes, then blockers.
func renderScreen(views []view, now time.Time, width, height int) string {
	var page *page
	for _, layout := range screenLayouts(views, height) {
		if page = renderPage(views, now, width, layout); len(page.lines) <= height {
			break
		}
	}
	return page.String()
}

// screenLayouts returns the layouts to try, the best one first.
func screenLayouts(views []view, height int) []layout {
	blockers, rows := mostBlockers(views), min(maxNodeRows, max(height, fewNodeRows))
	var layouts []layout
	add := func(l layout) {
		l.blockersFirst = true
		layouts = append(layouts, l)
	}
	for _, details := range []details{detailsOfAll, detailsOfBlocked, detailsOfNone} {
		for shown := rows; shown >= fewNodeRows; shown-- {
			add(layout{nodeRows: shown, blockers: blockers, details: details})
		}
	}
	for shown := fewNodeRows - 1; shown >= 0; shown-- {
		add(layout{nodeRows: shown, blockers: blockers, details: detailsOfNone})
	}
	for _, noHead := range []bool{false, true} {
		for shown := min(blockers, height); shown > 0; shown-- {
			add(layout{blockers: shown, details: detailsOfNone, noHead: noHead})
		}
	}
	add(layout{headlinesOnly: true})
	return layouts
}
