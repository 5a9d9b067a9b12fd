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
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/component-helpers/plaintext"
)

// display shows views while they change.
type display interface {
	// show is called when something has changed, or a second has passed.
	show(frame frame) error
	close()
}

// frame is the state at one time.
type frame struct {
	views []view
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

// notices are the problems besides blockers.
func (f *frame) notices() []string {
	return slices.DeleteFunc([]string{f.trouble, f.unobserved, f.uncordoned, f.silent}, func(text string) bool { return text == "" })
}

// printedNotices are the notices that were printed: each is printed once, until the problem is over.
type printedNotices struct {
	inTrouble, unobserved, uncordoned, silent bool
}

// print prints the notices that are new, each behind the prefix.
func (p *printedNotices) print(out io.Writer, prefix string, frame *frame) error {
	for _, notice := range []struct {
		text    string
		printed *bool
	}{{frame.trouble, &p.inTrouble}, {frame.unobserved, &p.unobserved}, {frame.uncordoned, &p.uncordoned}, {frame.silent, &p.silent}} {
		if notice.text != "" && !*notice.printed {
			if _, err := fmt.Fprintln(out, prefix+notice.text); err != nil {
				return err
			}
		}
		*notice.printed = notice.text != ""
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
	notices   printedNotices
}

func (d *lineDisplay) show(frame frame) error {
	if d.reporters == nil {
		d.reporters = map[string]*reporter{}
	}
	if err := d.notices.print(d.out, d.prefix(frame.now), &frame); err != nil {
		return err
	}
	for i := range frame.views {
		if err := d.showView(&frame.views[i], frame.now); err != nil {
			return err
		}
	}
	return nil
}

func (d *lineDisplay) showView(v *view, now time.Time) error {
	if d.reporters[v.Name] == nil {
		d.reporters[v.Name] = &reporter{}
	}
	lines := d.reporters[v.Name].changes(v, now)
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

func (d *screenDisplay) show(frame frame) error {
	width, height := d.screen.size()
	p := &page{width: min(width, maxScreenWidth)}
	if height > lowScreen {
		p.add("")
		p.wrapped("", legend)
	}
	for _, notice := range frame.notices() {
		if notice == frame.trouble {
			p.wrapped("", notice) // It ends with an error of the server.
			continue
		}
		p.wrappedOwn("", notice)
	}
	// The cursor is on a line of its own below.
	return d.screen.draw(renderScreen(frame.views, frame.now, p.width, height-1-len(p.lines)) + p.String())
}

func (d *screenDisplay) close() { d.screen.close() }

// legend explains the progress bars.
const legend = "# gone, ! blocked, > evicting, . pending. Ctrl-C ends only this view."

// lowScreen is the number of lines up to which a terminal does not show the legend.
const lowScreen = 12

// maxScreenWidth keeps lines readable on a wide terminal.
const maxScreenWidth = 120
