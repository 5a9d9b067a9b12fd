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
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubectl/pkg/util/term"
)

// display shows views while they change. It is called when something has changed, or a second has passed.
type display func(frame frame) error

// frame is the state at one time.
type frame struct {
	views []*view
	now   time.Time
	// trouble says why the views may be outdated; usually empty.
	trouble string
	// unobserved names the maintenances on which no controller acts; usually empty.
	unobserved string
	// uncordoned names the nodes that are not cordoned for long; usually empty.
	uncordoned string
	// silent says that kube-controller-manager does not run; usually empty.
	silent string
}

// notices are the problems besides blockers; empty where there is none.
func (f *frame) notices() []string { return []string{f.trouble, f.unobserved, f.uncordoned, f.silent} }

// printNotices prints the notices that were not printed yet, each behind the prefix.
func (p *printedTexts) printNotices(out io.Writer, prefix string, frame *frame) error {
	for _, notice := range p.fresh(frame.notices()...) {
		if _, err := fmt.Fprintln(out, prefix+notice); err != nil {
			return err
		}
	}
	return nil
}

// lineDisplay prints a line for each change, for logs and pipes.
type lineDisplay struct {
	out io.Writer
	// clocked puts the time before each line.
	clocked bool
	// reporters are those of the maintenances, by name.
	reporters map[string]*reporter
	notices   printedTexts
}

func (d *lineDisplay) show(frame frame) error {
	if d.reporters == nil {
		d.reporters = map[string]*reporter{}
	}
	if err := d.notices.printNotices(d.out, d.prefix(frame.now), &frame); err != nil {
		return err
	}
	for _, v := range frame.views {
		if d.reporters[v.Name] == nil {
			d.reporters[v.Name] = &reporter{}
		}
		for _, line := range d.reporters[v.Name].changes(v, frame.now) {
			if _, err := fmt.Fprintln(d.out, d.prefix(frame.now)+plaintext.Line(v.Name+": "+line)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *lineDisplay) prefix(now time.Time) string {
	if !d.clocked {
		return ""
	}
	return now.Format(time.TimeOnly) + "  "
}

// show redraws the terminal.
func (s *screen) show(frame frame) error {
	width, height := s.size()
	p := &page{width: min(width, maxScreenWidth)}
	if height > lowScreen {
		p.add("")
		p.wrapped("", legend)
	}
	p.wrapped("", frame.trouble) // It ends with an error of the server.
	for _, notice := range frame.notices()[1:] {
		p.wrappedOwn("", notice)
	}
	// The cursor is on a line of its own below.
	return s.draw(renderScreen(frame.views, frame.now, p.width, height-1-len(p.lines)) + p.String())
}

// legend explains the progress bars.
const legend = "# gone, ! blocked, > evicting, . pending. Ctrl-C ends only this view."

// lowScreen is the number of lines up to which a terminal does not show the legend.
const lowScreen = 12

// maxScreenWidth keeps lines readable on a wide terminal.
const maxScreenWidth = 120

// Control sequences of ECMA-48, and the usual ones for the cursor.
const (
	hideCursor    = "\x1b[?25l"
	showCursor    = "\x1b[?25h"
	clearLineEnd  = "\x1b[K"
	clearBelow    = "\x1b[J"
	cursorUpLines = "\x1b[%dA"
)

// screen draws each text over the previous one. A frame is one write that overwrites lines instead
// of clearing them first, so that nothing flickers.
type screen struct {
	out io.Writer
	// size returns the columns and rows to draw on.
	size func() (width, height int)
	// drawn is how many lines the last frame has.
	drawn int
}

// newScreen returns nil if out is not a terminal.
func newScreen(out io.Writer) *screen {
	tty := term.TTY{Out: out}
	if !tty.IsTerminalOut() {
		return nil
	}
	return &screen{out: out, size: func() (int, int) {
		size := tty.GetSize()
		if size == nil || size.Width == 0 || size.Height == 0 {
			return defaultWidth - 1, 24
		}
		// Clearing the rest of a line that fills all columns would erase its last column.
		return int(size.Width) - 1, int(size.Height)
	}}
}

// draw shows a text. It truncates what does not fit: a frame that scrolls could not be overwritten.
func (s *screen) draw(text string) error {
	width, height := s.size()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if limit := max(1, height-1); len(lines) > limit {
		hidden := len(lines) - limit + 1
		lines = append(lines[:limit-1], fmt.Sprintf("... %s more, enlarge the terminal", counted(hidden, "line", "lines")))
	}
	var frame strings.Builder
	frame.WriteString(hideCursor)
	// The terminal may have become lower than the last frame.
	if up := min(s.drawn, max(0, height-1)); up > 0 {
		fmt.Fprintf(&frame, cursorUpLines, up)
	}
	for _, line := range lines {
		frame.WriteString("\r" + truncated(line, width) + clearLineEnd + "\n")
	}
	frame.WriteString(clearBelow)
	s.drawn = len(lines)
	_, err := io.WriteString(s.out, frame.String())
	return err
}

// close shows the cursor again. It is below the last frame, which stays.
func (s *screen) close() {
	_, _ = io.WriteString(s.out, showCursor) // The command ends, and cannot handle an error.
}

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

// fewNodeRows is how many nodes a screen shows at least before blockers are shortened.
const fewNodeRows = 3

// fullLayout is for a page of unlimited length.
func fullLayout(views []*view) layout {
	return layout{nodeRows: maxNodeRows, blockers: mostBlockers(views)}
}

func mostBlockers(views []*view) int {
	most := 0
	for _, v := range views {
		shown := len(v.Blockers)
		if v.isHalted() {
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
func renderScreen(views []*view, now time.Time, width, height int) string {
	for _, layout := range screenLayouts(views, height) {
		if page := renderPage(views, now, width, layout); len(page.lines) <= height {
			return page.String()
		}
	}
	return renderCrowded(views, now, width, height).String()
}

// screenLayouts returns the layouts to try, the best one first.
func screenLayouts(views []*view, height int) []layout {
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
func renderCrowded(views []*view, now time.Time, width, height int) *page {
	sorted := slices.SortedStableFunc(slices.Values(views), func(a, b *view) int { return cmp.Compare(blockedRank(a), blockedRank(b)) })
	fits := renderPage(views, now, width, layout{compact: true})
	for shown := 1; shown < len(sorted); shown++ {
		p := renderPage(sorted[:shown], now, width, layout{blockers: 1, compact: true})
		blocked := filtered(sorted[shown:], func(v *view) bool { return blockedRank(v) == 0 })
		p.cut("", fmt.Sprintf("... and %s, %d of them blocked", counted(len(sorted)-shown, "more maintenance", "more maintenances"), len(blocked)))
		if shown > 1 && len(p.lines) > height {
			break
		}
		fits = p
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
	for _, b := range v.Blockers {
		if b.Blocked && blockers > 0 {
			p.cut("  ! ", blockerLabel(b, now))
			blockers, hidden = blockers-1, hidden-1
			if blockers == 0 && hidden > 0 {
				p.add("  ... and %d more marked !", hidden)
			}
		}
	}
}

// reporter reports the changes of one maintenance in lines.
type reporter struct {
	// last is the view that was reported last; nil before the first one.
	last *view
	// printed are the blockers that have a line, by key, as they were when it was printed.
	printed map[string]*blockerView
	// checks says where to look for the reason when nodes begin to be released too late. That depends on the time, not
	// only on the last view.
	checks printedTexts
}

// changes returns a line for each change since the last call.
func (r *reporter) changes(v *view, now time.Time) []string {
	old := cmp.Or(r.last, &view{})
	current := *v
	r.last = &current
	switch {
	case v.isGone() && old.isGone():
		return nil
	case v.Outcome == outcomeReplaced:
		return []string{"deleted; another maintenance has its name now"}
	case v.Outcome == outcomeDeleted:
		return []string{"deleted"}
	}
	return r.changesBetween(old, v, now)
}

func (r *reporter) changesBetween(old, v *view, now time.Time) []string {
	lines := appendIf(nil, old.Stage != v.Stage, stageChange(v))
	lines = appendIf(lines, v.unreadableText() != old.unreadableText(), v.unreadableText())
	lines = appendIf(lines, v.Deleting && !old.Deleting, "is being deleted")
	if v.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
		lines = append(lines, cordonChanges(old, v)...)
		if old.Stage != v.Stage {
			// The blockers of the drain do not matter any more.
			old, r.printed = &view{}, nil
		}
		return append(lines, r.blockerChanges(old, v, now)...)
	}
	lines = appendIf(lines, old.DrainMessage != v.DrainMessage && v.DrainMessage != "" && v.Outcome == "" && !v.isPlainDrain(), plaintext.Line(v.DrainMessage))
	lines = append(lines, rolloutChanges(old, v, now)...)
	lines = append(lines, nodeChanges(old, v)...)
	for _, text := range r.checks.fresh(v.overdueText(now), v.unreleasedText(now)) {
		lines = append(lines, plaintext.Line("check: "+text))
	}
	lines = append(lines, r.blockerChanges(old, v, now)...)
	lines = appendIf(lines, v.Outcome == outcomeDrained && old.Outcome != outcomeDrained, drainedText(v))
	return appendIf(lines, v.Outcome == outcomeDone && old.Outcome != outcomeDone, "done: released "+counted(v.SelectedNodes, "node", "nodes")+v.skippedNodesText())
}

// printedTexts are which texts were printed: each is printed once, until the problem is over.
type printedTexts []bool

// fresh returns those of the texts, which are given in the same order each time, that are to be printed. An empty one
// says that there is no problem.
func (p *printedTexts) fresh(texts ...string) []string {
	var found []string
	current := make(printedTexts, len(texts))
	for i, text := range texts {
		if current[i] = text != ""; current[i] && (len(*p) == 0 || !(*p)[i]) {
			found = append(found, text)
		}
	}
	*p = current
	return found
}

// drainedText says on which nodes no pod is left. Those that were given back one by one run pods again.
func drainedText(v *view) string {
	given := v.givenBack()
	text := "drained: no pod is left on " + counted(v.SelectedNodes-given, "node", "nodes")
	if given > 0 {
		text += fmt.Sprintf("; given back: %d", given) + v.skippedNodesText()
	}
	return text + skippedText(v)
}

func stageChange(v *view) string {
	text := fmt.Sprintf("stage %s, %s", v.Stage, counted(v.SelectedNodes, "node", "nodes"))
	if v.SelectedNodes == 0 {
		text = fmt.Sprintf("stage %s, selects no node", v.Stage)
	}
	if v.Reason != "" {
		text += ": " + plaintext.Line(v.Reason)
	}
	return text
}

func cordonChanges(old, v *view) []string {
	var lines []string
	before := nodesByNames(old)
	for _, node := range v.Nodes {
		was, known := before[node.Name]
		switch {
		case v.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete && node.Cordoned:
			// It is about to be released, or another maintenance claims it.
		case node.Cordoned && !(known && was.Cordoned):
			lines = append(lines, node.Name+": cordoned")
		case !node.Cordoned && known && was.Cordoned:
			lines = append(lines, node.Name+": schedulable")
		}
	}
	isNew := v.Outcome == outcomeCompleted && old.Outcome != outcomeCompleted
	lines = appendIf(lines, isNew && v.isHeld(), "completed")
	return appendIf(lines, isNew && !v.isHeld(), "completed: the nodes are released")
}

func nodeChanges(old, v *view) []string {
	var lines []string
	before := nodesByNames(old)
	for _, node := range v.Nodes {
		was, known := before[node.Name]
		change := phaseChange(v, was, node)
		lines = appendIf(lines, change != "", change)
		switch {
		case node.Phase == phaseDone || node.Phase == phaseWaiting:
			// What the node says is about others.
		case node.Drained && !(known && was.Drained):
			lines = append(lines, node.Name+": drained")
		case node.podsLeft() == 0:
			// Its pods are not counted yet, or it is about to be drained.
		case !node.Drained && (!known || was.PodsPending != node.PodsPending || was.PodsEvicting != node.PodsEvicting || was.PodsBlocked != node.PodsBlocked):
			parts := listParts(part{node.PodsPending, "pending"}, part{node.PodsEvicting, "evicting"}, part{node.PodsBlocked, "blocked"})
			lines = append(lines, fmt.Sprintf("%s: %s left: %s", node.Name, counted(node.podsLeft(), "pod", "pods"), parts))
		}
		delete(before, node.Name)
	}
	for _, was := range old.Nodes {
		switch {
		case before[was.Name] == nil:
		case was.isFinished():
			lines = append(lines, was.Name+": is no longer selected")
		default:
			lines = append(lines, was.Name+": is no longer selected, released undrained")
		}
	}
	return lines
}

func nodesByNames(v *view) map[string]*nodeView {
	return keyed(v.Nodes, func(node *nodeView) string { return node.Name })
}

const (
	// maxLinePods is how many pods a line names.
	maxLinePods = 2

	// reportedDelay is by how much an ETA must move to be reported.
	reportedDelay = time.Minute
)

// blockerChanges reports blockers that appear, change, or are gone. Evictions in progress are what
// a drain consists of: they get no line.
func (r *reporter) blockerChanges(old, v *view, now time.Time) []string {
	if r.printed == nil {
		r.printed = map[string]*blockerView{}
	}
	before, current := keyed(old.Blockers, (*blockerView).key), keyed(v.Blockers, (*blockerView).key)
	var lines []string
	for _, b := range v.Blockers {
		printed := r.printed[b.key()]
		// Others neither need an intervention nor name what the drain waits for.
		isReported := b.Blocked || b.Name != ""
		if isReported && (printed == nil || b.differs(printed, before[b.key()])) {
			r.printed[b.key()] = b
			lines = append(lines, b.lineWithETA(now))
		}
	}
	if len(v.Blockers) < v.BlockerCount {
		// The status does not list all: one that is missing may still exist.
		return lines
	}
	for _, key := range sortedNames(r.printed) {
		if current[key] != nil {
			continue
		}
		gone := r.printed[key]
		delete(r.printed, key)
		// Pods still wait for another blocker of the same name, such as that of an interceptor that does not report any more.
		if gone.Name == "" || !slices.ContainsFunc(v.Blockers, func(b *blockerView) bool { return b.Name == gone.Name }) {
			lines = append(lines, plaintext.Line("resolved: "+gone.title()))
		}
	}
	return lines
}

// differs reports whether a blocker needs another line. A drain changes the number of pods all the
// time, so it must at least double or halve since the last line, which bounds the output. If the
// number is that of the previous view, another text is news of the interceptor or the API server.
func (b *blockerView) differs(printed, previous *blockerView) bool {
	switch {
	case b.Pods >= 2*printed.Pods && b.Pods > printed.Pods, 2*b.Pods <= printed.Pods && b.Pods < printed.Pods:
		return true
	case b.ETA != nil && (printed.ETA == nil || b.ETA.Sub(printed.ETA.Time).Abs() >= reportedDelay):
		return true
	}
	return previous != nil && b.Pods == previous.Pods && b.Nodes == previous.Nodes && b.Message != previous.Message
}

// title is the object that has the name of the blocker, if there is one, as its message names it, and
// otherwise its cause and its name.
func (b *blockerView) title() string {
	if b.Name != "" && strings.HasSuffix(b.Object, " "+b.Name) {
		return b.Object
	}
	return strings.TrimSpace(string(b.Cause) + " " + b.Name)
}

// line is the text of the blocker with a few of its pods.
func (b *blockerView) line() string {
	text := b.text()
	if names := b.names(maxLinePods); names != "" {
		text += ": " + names
	}
	return text
}

func (b *blockerView) lineWithETA(now time.Time) string {
	line := b.line()
	if b.Blocked {
		line = "blocked: " + line
	}
	if b.ETA != nil {
		line += " (" + etaText(now, *b.ETA) + ")"
	}
	return plaintext.Line(line)
}
