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

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

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
	// compact is a line for each maintenance, and one for each blocker on which somebody has
	// to act.
	compact bool
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
// of nodes go, then the names of pods, then all nodes, then what is known of a maintenance
// as a whole, then pods that leave by themselves, then blockers.
func renderScreen(views []view, now time.Time, width, height int) string {
	for _, layout := range screenLayouts(views, height) {
		if page := renderPage(views, now, width, layout); len(page.lines) <= height {
			return page.String()
		}
	}
	return renderCrowded(views, now, width, height).String()
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
	add(layout{blockers: blockers, details: detailsOfNone, noHead: true})
	for shown := min(blockers, height); shown >= 0; shown-- {
		add(layout{blockers: shown, compact: true})
	}
	return layouts
}

// renderCrowded shows as many maintenances as fit, first those on which somebody has to
// act, each with one of its blockers, and counts the others.
func renderCrowded(views []view, now time.Time, width, height int) *page {
	sorted := slices.Clone(views)
	slices.SortStableFunc(sorted, func(a, b view) int { return cmp.Compare(actingRank(&a), actingRank(&b)) })
	var fits *page
	for shown := 1; shown < len(sorted); shown++ {
		p := renderPage(sorted[:shown], now, width, layout{blockers: 1, compact: true})
		hidden, acting := sorted[shown:], 0
		for i := range hidden {
			acting += 1 - actingRank(&hidden[i])
		}
		p.cut("", fmt.Sprintf("... and %s, %d of them blocked", counted(len(hidden), "more maintenance", "more maintenances"), acting))
		if fits != nil && len(p.lines) > height {
			break
		}
		fits = p
	}
	if fits == nil {
		fits = renderPage(views, now, width, layout{compact: true})
	}
	return fits
}

// actingRank is 0 where somebody has to act, otherwise 1.
func actingRank(v *view) int {
	if v.PodsBlocked > 0 || len(v.acting()) > 0 {
		return 0
	}
	return 1
}

// acting returns the blockers on which somebody has to act.
func (v *view) acting() []blockerView {
	return slices.DeleteFunc(slices.Clone(v.Blockers), func(b blockerView) bool { return !b.Blocked })
}

// addCompact appends a line for the maintenance, and for some of its blockers.
func (p *page) addCompact(v *view, now time.Time, blockers int) {
	p.cut("", headline(v, now))
	acting := v.acting()
	for i := range acting[:min(blockers, len(acting))] {
		p.cut("  ! ", blockerLabel(&acting[i], now))
	}
	switch hidden := len(acting) - blockers; {
	case len(acting) == 0 && v.PodsBlocked > 0 && blockers > 0:
		// Without the right to read pods, the controller alone knows.
		p.cut("  ! ", v.Condition)
	case hidden > 0 && blockers > 0:
		p.add("  ... and %d more marked !", hidden)
	}
}
