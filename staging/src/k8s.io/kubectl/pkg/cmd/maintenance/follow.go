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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/exec"
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
}

// controllerPatience is how long a controller may take to act on a maintenance before it
// is asked whether there is one.
const controllerPatience = 30 * time.Second

// follower looks at maintenances until each of them has reached its goal.
type follower struct {
	observer *observer
	clock    clock.WithTicker
	display  display
	// reached tells whether there is nothing more to wait for.
	reached func(v *view) bool
	// uids are those of the maintenances, by name: others that are created under their
	// names were not asked about.
	uids map[string]types.UID
	// last are the views that were shown last, by name, also of what is deleted.
	last map[string]view
	// unobserved is since when no controller has acted on a maintenance, by name.
	unobserved map[string]time.Time
}

// follow returns how the maintenances looked in the end, by name. It returns an error
// with an exit code of its own when ctx ends first.
func follow(ctx context.Context, client kubernetes.Interface, maintenances []*coordinationv1alpha1.NodeMaintenance, clock clock.WithTicker, display display, reached func(v *view) bool) (map[string]view, error) {
	defer display.close()
	f := &follower{clock: clock, display: display, reached: reached, uids: map[string]types.UID{}, last: map[string]view{}, unobserved: map[string]time.Time{}}
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
		shown := look{views: f.current(views), now: now, trouble: f.observer.troubleText(now), unobserved: f.unobservedText(views, now)}
		if err := f.display.show(shown); err != nil {
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
		done = done && f.reached(&views[i])
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

// unobservedText asks whether there is a controller, where it has done nothing for long.
func (f *follower) unobservedText(views []view, now time.Time) string {
	var names []string
	for i := range views {
		name := views[i].Name
		if views[i].observed {
			delete(f.unobserved, name)
			continue
		}
		if _, known := f.unobserved[name]; !known {
			f.unobserved[name] = now
		}
		if now.Sub(f.unobserved[name]) >= controllerPatience {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return plaintext.Line(fmt.Sprintf("No controller has acted on %s for %s: is the feature gate DeclarativeNodeMaintenance enabled in kube-controller-manager?",
		strings.Join(names, ", "), duration.HumanDuration(controllerPatience)))
}

// interrupted says in an error with a code of its own why ctx has ended.
func (f *follower) interrupted(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(cause, context.DeadlineExceeded):
		trouble := ""
		if f.observer != nil {
			trouble = f.observer.troubleText(f.clock.Now())
		}
		return timedOut(f.last, trouble)
	}
	return exec.CodeExitError{Err: errors.New("interrupted; the maintenance goes on"), Code: exitInterrupted}
}

// timedOut names who is in the way.
func timedOut(last map[string]view, trouble string) error {
	var blockers []string
	for _, name := range sortedNames(last) {
		v := last[name]
		for i := range v.Blockers {
			if b := &v.Blockers[i]; b.Blocked {
				blockers = append(blockers, plaintext.Line(fmt.Sprintf("%s: %s: %s", name, heldText(b), linePods(b))))
			}
		}
		if v.PodsBlocked > 0 && len(v.Unreadable) > 0 {
			blockers = append(blockers, name+": "+plaintext.Line(v.Condition))
		}
	}
	text, code := "timed out; the maintenance goes on", exitTimedOut
	if len(blockers) > 0 {
		text, code = "timed out while pods were blocked; the maintenance goes on", exitBlocked
	}
	if trouble != "" {
		blockers = append(blockers, trouble)
	}
	return exec.CodeExitError{Err: errors.New(strings.Join(append([]string{text}, blockers...), "\n")), Code: code}
}

// lineDisplay prints a line for each change, for logs and pipes.
type lineDisplay struct {
	out io.Writer
	// clocked puts the time before each line.
	clocked bool
	old     map[string]view
	// inTrouble keeps a lost connection from being told again and again, unobserved the
	// absence of a controller.
	inTrouble, unobserved bool
}

func (d *lineDisplay) show(look look) error {
	if d.old == nil {
		d.old = map[string]view{}
	}
	for _, notice := range []struct {
		text string
		told *bool
	}{{look.trouble, &d.inTrouble}, {look.unobserved, &d.unobserved}} {
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
	for _, notice := range []string{look.trouble, look.unobserved} {
		if notice != "" {
			p.wrapped("", notice)
		}
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
