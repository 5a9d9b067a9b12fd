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
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
)

// display shows views while they change.
type display interface {
	// show is called whenever something has changed, or a second has passed.
	show(look look) error
	close()
}

// look is what there is to see at a time.
type look struct {
	views []view
	now   time.Time
	// trouble says why the views may be old; usually empty.
	trouble string
	// unobserved names the maintenances on which no controller acts; usually empty.
	unobserved string
	// uncordoned names the nodes that cannot be cordoned for long; usually empty.
	uncordoned string
}

// notices are what is wrong apart from the maintenances.
func (l *look) notices() []string {
	return slices.DeleteFunc([]string{l.trouble, l.unobserved, l.uncordoned}, func(text string) bool { return text == "" })
}

// goal is what a command waits for.
type goal struct {
	// reached tells whether there is nothing more to wait for.
	reached func(v *view) bool
	// goesOn says what happens after a wait that ends early, and subcommand shows it.
	goesOn, subcommand string
}

// drained is the goal of those who wait for a drain.
func drained(reached func(v *view) bool) goal {
	return goal{reached, "the maintenance goes on", "watch"}
}

// givenBack is the goal of those who wait for the end of a maintenance.
func givenBack(reached func(v *view) bool) goal {
	return goal{reached, "the nodes are given back nevertheless", "status"}
}

// controllerPatience is how long a controller may take to act on a maintenance before it
// is asked whether there is one.
const controllerPatience = 30 * time.Second

// follower looks at maintenances until each of them has reached its goal.
type follower struct {
	observer *observer
	clock    clock.WithTicker
	display  display
	goal     goal
	// uids are those of the maintenances, by name: others that are created under their
	// names were not asked about.
	uids map[string]types.UID
	// last are the views that were shown last, by name, also of what is deleted.
	last map[string]view
	// shown is what was shown last.
	shown look
	// unobserved is since when no controller has acted on a maintenance, and uncordoned since
	// when a node should be cordoned, by name.
	unobserved, uncordoned patience
}

// follow returns how the maintenances looked in the end, by name. It returns an error
// with an exit code of its own when ctx ends first.
func follow(ctx context.Context, client kubernetes.Interface, maintenances []*coordinationv1alpha1.NodeMaintenance, clock clock.WithTicker, display display, goal goal) (map[string]view, error) {
	defer display.close()
	f := &follower{clock: clock, display: display, goal: goal, uids: map[string]types.UID{}, last: map[string]view{}, unobserved: patience{}, uncordoned: patience{}}
	for _, nm := range maintenances {
		f.uids[nm.Name] = nm.UID
	}
	var err error
	if f.observer, err = newObserver(ctx, client, sortedNames(f.uids), clock); err == nil {
		err = f.run(ctx)
	}
	return f.last, f.interrupted(ctx, err)
}

func (f *follower) run(ctx context.Context) error {
	seen := progress{}
	// Ages and remainders change without any event.
	seconds := f.clock.NewTicker(time.Second)
	defer seconds.Stop()
	for {
		s, err := f.observer.snapshot(ctx)
		if err != nil {
			return err
		}
		now := f.clock.Now()
		f.observer.probe(ctx, now)
		views := f.followed(viewsOf(s, now))
		seen.apply(views)
		done := f.remember(views)
		f.shown = look{
			views: f.current(views), now: now,
			trouble: f.observer.troubleText(now), unobserved: f.unobservedText(views, now), uncordoned: f.uncordonedText(views, now),
		}
		if err := f.display.show(f.shown); err != nil {
			return err
		}
		if done {
			return nil
		}
		if err := f.pause(ctx, seconds); err != nil {
			return err
		}
	}
}

// pause returns when there is something new, at most a few times per second.
func (f *follower) pause(ctx context.Context, seconds clock.Ticker) error {
	timer := f.clock.NewTimer(redrawInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.observer.changed:
	case <-seconds.C():
	}
	return nil
}

// followed leaves out those that were created under the name of one that was deleted.
func (f *follower) followed(views []view) []view {
	return slices.DeleteFunc(views, func(v view) bool {
		replaced := v.uid != f.uids[v.Name]
		if replaced {
			f.goneAs(v.Name, outcomeReplaced)
		}
		return replaced
	})
}

// goneAs notes that a maintenance does not exist any more. Of one that was gone before it
// was ever seen only the name is known.
func (f *follower) goneAs(name string, as outcome) {
	v := f.last[name]
	if !v.isGone() {
		v.Name, v.Outcome = name, as
		f.last[name] = v
	}
}

// remember notes the views, and which maintenances are gone. It returns whether there
// is nothing more to wait for.
func (f *follower) remember(views []view) bool {
	present := map[string]bool{}
	done := true
	for i := range views {
		present[views[i].Name] = true
		f.last[views[i].Name] = views[i]
		done = done && f.goal.reached(&views[i])
	}
	for name := range f.uids {
		if !present[name] {
			f.goneAs(name, outcomeDeleted)
		}
	}
	return done
}

// current returns the views and those of what is gone.
func (f *follower) current(views []view) []view {
	for _, name := range sortedNames(f.last) {
		if v := f.last[name]; v.isGone() {
			views = append(views, v)
		}
	}
	return views
}

// patience is since when names have been of one kind.
type patience map[string]time.Time

// exhausted returns which of the names have been given for long, and forgets all others.
func (p patience) exhausted(names []string, now time.Time) []string {
	given := sets.New(names...)
	for name := range p {
		if !given.Has(name) {
			delete(p, name)
		}
	}
	var long []string
	for _, name := range names {
		if _, known := p[name]; !known {
			p[name] = now
		}
		if now.Sub(p[name]) >= controllerPatience {
			long = append(long, name)
		}
	}
	return long
}

// unobservedText asks whether there is a controller, where it has done nothing for long.
func (f *follower) unobservedText(views []view, now time.Time) string {
	var names []string
	for i := range views {
		if !views[i].observed {
			names = append(names, views[i].Name)
		}
	}
	if names = f.unobserved.exhausted(names, now); len(names) == 0 {
		return ""
	}
	return plaintext.Line(fmt.Sprintf("No controller has acted on %s for %s: is the feature gate DeclarativeNodeMaintenance enabled in kube-controller-manager?",
		strings.Join(names, ", "), duration.HumanDuration(controllerPatience)))
}

// uncordonedText names nodes that are not cordoned for long, where nothing else tells of
// them: a cordon that somebody takes back again and again is no blocker.
func (f *follower) uncordonedText(views []view, now time.Time) string {
	var names []string
	for i := range views {
		names = append(names, views[i].unexplained()...)
	}
	names = f.uncordoned.exhausted(unique(names), now)
	if len(names) == 0 {
		return ""
	}
	return plaintext.Line(fmt.Sprintf("Not cordoned for %s: %s. The events say why: kubectl describe node %s",
		duration.HumanDuration(controllerPatience), listPods(names[:min(maxLinePods, len(names))], len(names)), names[0]))
}

// unexplained names the nodes that are not cordoned, without those that a blocker is about. That
// names one of them and counts the others. It may be about nodes that are not selected any more.
func (v *view) unexplained() []string {
	var names []string
	for i := range v.Nodes {
		if v.isUncordoned(&v.Nodes[i]) {
			names = append(names, v.Nodes[i].Name)
		}
	}
	for i := range v.Blockers {
		b := &v.Blockers[i]
		isNamed := func(name string) bool { return b.Object == "Node "+name }
		if b.Cause != maintenance.HoldCordonFailed || !slices.ContainsFunc(names, isNamed) {
			continue
		}
		if len(names) <= b.Nodes {
			return nil
		}
		names = slices.DeleteFunc(names, isNamed)
	}
	return names
}

// interrupted says in an error with a code of its own why ctx has ended.
func (f *follower) interrupted(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(cause, context.DeadlineExceeded):
		return f.timedOut()
	}
	return exec.CodeExitError{Err: errors.New("interrupted; " + f.goesOn()), Code: exitInterrupted}
}

// goesOn says what goes on, and how to see it.
func (f *follower) goesOn() string {
	text := f.goal.goesOn + ": kubectl maintenance " + f.goal.subcommand
	if names := sortedNames(f.uids); len(names) <= maxNames {
		text += " " + strings.Join(names, " ")
	}
	return plaintext.Line(text)
}

// maxNames is how many maintenances a command that is suggested names.
const maxNames = 3

// timedOut names who is in the way, and what else is wrong.
func (f *follower) timedOut() error {
	var blockers []string
	what := "something was"
	for _, name := range sortedNames(f.last) {
		v := f.last[name]
		if v.PodsBlocked > 0 {
			what = "pods were"
		}
		for i := range v.Blockers {
			b := &v.Blockers[i]
			if b.Blocked && b.Pods > 0 {
				what = "pods were"
			}
			if b.Blocked && !v.conditionHas(b) {
				blockers = append(blockers, plaintext.Line(fmt.Sprintf("%s: %s: %s", name, heldText(b), linePods(b))))
			}
		}
		if v.PodsBlocked > 0 && len(v.Unreadable) > 0 {
			blockers = append(blockers, name+": "+plaintext.Line(v.Condition))
		}
	}
	text, code := "timed out; ", exitTimedOut
	if len(blockers) > 0 {
		text, code = "timed out while "+what+" blocked; ", exitBlocked
	}
	lines := slices.Concat([]string{text + f.goesOn()}, blockers, f.shown.notices())
	return exec.CodeExitError{Err: errors.New(strings.Join(lines, "\n")), Code: code}
}

// lineDisplay prints a line for each change, for logs and pipes.
type lineDisplay struct {
	out io.Writer
	// clocked puts the time before each line.
	clocked bool
	old     map[string]view
	// inTrouble keeps a lost connection from being told again and again, unobserved the
	// absence of a controller, uncordoned nodes that are not cordoned.
	inTrouble, unobserved, uncordoned bool
}

func (d *lineDisplay) show(look look) error {
	if d.old == nil {
		d.old = map[string]view{}
	}
	for _, notice := range []struct {
		text string
		told *bool
	}{{look.trouble, &d.inTrouble}, {look.unobserved, &d.unobserved}, {look.uncordoned, &d.uncordoned}} {
		if notice.text != "" && !*notice.told {
			if _, err := fmt.Fprintln(d.out, d.prefix(look.now)+notice.text); err != nil {
				return err
			}
		}
		*notice.told = notice.text != ""
	}
	for i := range look.views {
		if err := d.showView(&look.views[i], look.now); err != nil {
			return err
		}
	}
	return nil
}

func (d *lineDisplay) showView(v *view, now time.Time) error {
	old, known := d.old[v.Name]
	d.old[v.Name] = *v
	var lines []string
	switch {
	case v.isGone() && old.isGone():
	case v.Outcome == outcomeReplaced:
		lines = []string{"deleted; another maintenance has its name now"}
	case v.Outcome == outcomeDeleted:
		lines = []string{"deleted"}
	case known:
		lines = changesBetween(&old, v, now)
	default:
		lines = changesBetween(nil, v, now)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(d.out, d.prefix(now)+plaintext.Line(v.Name+": "+line)); err != nil {
			return err
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

func (d *lineDisplay) close() {}

// screenDisplay redraws a terminal.
type screenDisplay struct {
	screen *screen
}

func (d *screenDisplay) show(look look) error {
	width, height := d.screen.size()
	p := &page{width: min(width, maxScreenWidth)}
	if height > lowScreen {
		p.add("")
		p.wrapped("", legend)
	}
	for _, notice := range look.notices() {
		p.wrapped("", notice)
	}
	// The cursor stands on a line of its own below.
	return d.screen.draw(renderScreen(look.views, look.now, p.width, height-1-len(p.lines)) + p.String())
}

func (d *screenDisplay) close() { d.screen.close() }

// legend explains the progress bars.
const legend = "# gone, ! blocked, > asked to leave, . not asked yet. Ctrl-C ends only the view"

// lowScreen is how many lines are too few to explain bars that hardly fit themselves.
const lowScreen = 12

// maxScreenWidth keeps lines readable on a wide terminal.
const maxScreenWidth = 120
