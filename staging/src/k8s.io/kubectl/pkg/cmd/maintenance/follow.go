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
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/exec"
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
}

// follower looks at maintenances until each of them has reached its goal.
type follower struct {
	observer *observer
	clock    clock.WithTicker
	display  display
	// reached tells whether there is nothing more to wait for.
	reached func(v *view) bool
	// last are the views that were shown last, by name, also of what is deleted.
	last map[string]view
}

// follow returns how the maintenances looked in the end, by name. It returns an error
// with an exit code of its own when ctx ends first.
func follow(ctx context.Context, client kubernetes.Interface, names []string, clock clock.WithTicker, display display, reached func(v *view) bool) (map[string]view, error) {
	defer display.close()
	observer, err := newObserver(ctx, client, names, clock)
	if err != nil {
		return nil, interrupted(ctx, err, nil)
	}
	f := &follower{observer: observer, clock: clock, display: display, reached: reached, last: map[string]view{}}
	err = f.run(ctx)
	return f.last, interrupted(ctx, err, f.last)
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
		views := viewsOf(s, now)
		seen.apply(views)
		done := f.remember(views)
		if err := f.display.show(look{views: f.current(views), now: now, trouble: f.observer.troubleText(now)}); err != nil {
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
	for name, v := range f.last {
		if !present[name] {
			v.Outcome = outcomeDeleted
			f.last[name] = v
		}
	}
	// Of a maintenance that was there when this began, and is not when it looks, only
	// the name is known.
	for _, name := range f.observer.names {
		if _, known := f.last[name]; !known {
			f.last[name] = view{Name: name, Outcome: outcomeDeleted}
		}
	}
	return done
}

// current returns the views and those of what is deleted.
func (f *follower) current(views []view) []view {
	for _, v := range f.last {
		if v.Outcome == outcomeDeleted {
			views = append(views, v)
		}
	}
	return views
}

// interrupted says in an error with a code of its own why ctx has ended.
func interrupted(ctx context.Context, err error, last map[string]view) error {
	switch cause := context.Cause(ctx); {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(cause, context.DeadlineExceeded):
		return timedOut(last)
	}
	return exec.CodeExitError{Err: errors.New("interrupted; the maintenance goes on"), Code: exitInterrupted}
}

// timedOut names who is in the way.
func timedOut(last map[string]view) error {
	var blockers []string
	for _, name := range sortedNames(last) {
		v := last[name]
		for i := range v.Blockers {
			if b := &v.Blockers[i]; b.Blocked {
				blockers = append(blockers, fmt.Sprintf("%s: %s: %s", name, heldText(b), linePods(b)))
			}
		}
		if v.PodsBlocked > 0 && len(v.Unreadable) > 0 {
			blockers = append(blockers, name+": "+oneLine(v.Condition))
		}
	}
	if len(blockers) > 0 {
		return exec.CodeExitError{Err: fmt.Errorf("timed out while pods were blocked; the maintenance goes on\n%s", strings.Join(blockers, "\n")), Code: exitBlocked}
	}
	return exec.CodeExitError{Err: errors.New("timed out; the maintenance goes on"), Code: exitTimedOut}
}

// lineDisplay prints a line for each change, for logs and pipes.
type lineDisplay struct {
	out io.Writer
	// clocked puts the time before each line.
	clocked bool
	old     map[string]view
	// inTrouble keeps a lost connection from being told again and again.
	inTrouble bool
}

func (d *lineDisplay) show(look look) error {
	if d.old == nil {
		d.old = map[string]view{}
	}
	if look.trouble != "" && !d.inTrouble {
		if _, err := fmt.Fprintln(d.out, d.prefix(look.now)+look.trouble); err != nil {
			return err
		}
	}
	d.inTrouble = look.trouble != ""
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
	case v.Outcome == outcomeDeleted && old.Outcome == outcomeDeleted:
	case v.Outcome == outcomeDeleted:
		lines = []string{"deleted"}
	case known:
		lines = changesBetween(&old, v, now)
	default:
		lines = changesBetween(nil, v, now)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(d.out, d.prefix(now)+v.Name+": "+line); err != nil {
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
	width, _ := d.screen.size()
	p := &page{width: min(width, maxScreenWidth)}
	p.add("")
	p.wrapped("", legend)
	if look.trouble != "" {
		p.wrapped("", look.trouble)
	}
	return d.screen.draw(renderStatus(look.views, look.now, p.width) + p.String())
}

func (d *screenDisplay) close() { d.screen.close() }

// legend explains the progress bars.
const legend = "# gone, ! blocked, > asked to leave, . not asked yet. Ctrl-C ends only the view"

// maxScreenWidth keeps lines readable on a wide terminal.
const maxScreenWidth = 120
