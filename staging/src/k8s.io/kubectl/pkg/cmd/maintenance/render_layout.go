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
	// details are shown below blockers: the names of pods.
	details details
	// blockersFirst shows them above the nodes: a screen is truncated at the bottom.
	blockersFirst bool
	// noHead omits the fields of the maintenance as a whole.
	noHead bool
	// compact shows a line per maintenance, and one per blocker that needs an intervention.
	compact bool
}

type details int

const (
	detailsOfAll details = iota
	// detailsOfBlocked are those of blockers that need an intervention.
	detailsOfBlocked
	detailsOfNone
)

func (d details) include(b *blockerView) bool {
	return d == detailsOfAll || d == detailsOfBlocked && b.Blocked
}

// fewNodeRows is how many nodes a screen shows at least before blockers are shortened.
const fewNodeRows = 3

// fullLayout is for a page of unlimited length.
func fullLayout(views []view) layout {
	return layout{nodeRows: maxNodeRows, blockers: mostBlockers(views)}
}

func mostBlockers(views []view) int {
	most := 0
	for i := range views {
		shown := len(views[i].Blockers)
		if views[i].isHalted() {
			shown++
		}
		most = max(most, shown)
	}
	return most
}

// renderScreen returns the text of the maintenances in at most height lines, if possible. What
// needs an intervention is dropped last: it first drops rows of nodes, then the names of pods, then
// all nodes, then the fields of the maintenance, then blockers that end by themselves, then the
// others.
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

// renderCrowded shows as many maintenances as fit, those that need an intervention first, each with
// one of its blockers, and counts the others.
func renderCrowded(views []view, now time.Time, width, height int) *page {
	sorted := slices.Clone(views)
	slices.SortStableFunc(sorted, func(a, b view) int { return cmp.Compare(blockedRank(&a), blockedRank(&b)) })
	var fits *page
	for shown := 1; shown < len(sorted); shown++ {
		p := renderPage(sorted[:shown], now, width, layout{blockers: 1, compact: true})
		hidden, blocked := sorted[shown:], 0
		for i := range hidden {
			blocked += 1 - blockedRank(&hidden[i])
		}
		p.cut("", fmt.Sprintf("... and %s, %d of them blocked", counted(len(hidden), "more maintenance", "more maintenances"), blocked))
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

// blockedRank is 0 if the maintenance needs an intervention, otherwise 1.
func blockedRank(v *view) int {
	if v.PodsBlocked > 0 || v.isHalted() || countBlocked(v.Blockers) > 0 {
		return 0
	}
	return 1
}

// addCompact appends a line for the maintenance, and lines for some of the blockers that need an
// intervention.
func (p *page) addCompact(v *view, now time.Time, blockers int) {
	p.cut("", headline(v, now))
	if v.isHalted() && blockers > 0 {
		p.cut("  ! ", v.haltedText())
		blockers--
	}
	hidden := countBlocked(v.Blockers)
	for i := range v.Blockers {
		if b := &v.Blockers[i]; b.Blocked && blockers > 0 {
			p.cut("  ! ", blockerLabel(b, now))
			blockers, hidden = blockers-1, hidden-1
			if blockers == 0 && hidden > 0 {
				p.add("  ... and %d more marked !", hidden)
			}
		}
	}
}
