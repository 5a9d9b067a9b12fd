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

// Package schedule says when the windows of NodeMaintenanceBudgets are open. The API server validates
// with it, and the node maintenance controller decides with it.
//
// A window opens when a CronJob with the same schedule and time zone would start. So where clocks are
// put forward, it does not open at a time of the day that this leaves out: at 02:30 in Europe/Berlin
// on the last Sunday of March. Where they are put back, it opens at both times that are called 02:30.
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// DefaultTimeZone is the time zone of a window that names none.
const DefaultTimeZone = "Etc/UTC"

// Window is a repeated time.
type Window struct {
	schedule cron.Schedule
	location *time.Location
	duration time.Duration
}

// NewWindow returns the window that opens at each time of the schedule, for that long.
func NewWindow(expression, timeZone string, duration time.Duration) (*Window, error) {
	schedule, err := ParseSchedule(expression)
	if err != nil {
		return nil, err
	}
	location, err := ParseTimeZone(timeZone)
	if err != nil {
		return nil, err
	}
	return &Window{schedule: schedule, location: location, duration: duration}, nil
}

// ParseSchedule parses a schedule in the format of CronJobs.
func ParseSchedule(expression string) (cron.Schedule, error) {
	switch {
	case strings.Contains(expression, "TZ"):
		return nil, errors.New("must not name a time zone: use timeZone")
	case strings.HasPrefix(expression, "@every"):
		// Its times depend on when it is asked.
		return nil, errors.New("must not be relative: name minutes, hours and days")
	}
	schedule, err := cron.ParseStandard(expression)
	if fields, ok := schedule.(*cron.SpecSchedule); ok && slices.Contains([]uint64{fields.Minute, fields.Hour, fields.Dom, fields.Month, fields.Dow}, 0) {
		// The library accepts a list without values. It would look at each minute of five years for it.
		err = errors.New("a field has no value")
	}
	if err != nil {
		return nil, fmt.Errorf("must have five fields, for minute, hour, day of the month, month, and day of the week, such as \"0 2 * * 6\": %w", err)
	}
	// The library gives up after five years.
	if schedule.Next(time.Now().UTC()).IsZero() {
		return nil, errors.New("must occur: there is no such date within five years")
	}
	return schedule, nil
}

// ParseTimeZone returns the time zone with that name of the time zone database.
func ParseTimeZone(name string) (*time.Location, error) {
	switch {
	case name == "":
		name = DefaultTimeZone
	case strings.EqualFold(name, "Local"):
		// It differs between the processes that read it.
		return nil, errors.New("must not be Local: name a time zone, such as Europe/Berlin")
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("must be a name of the time zone database, such as Europe/Berlin: %w", err)
	}
	return location, nil
}

// IsOpen reports whether the window is open.
func (w *Window) IsOpen(now time.Time) bool {
	opened := w.Next(now.Add(-w.duration))
	return !opened.IsZero() && !opened.After(now)
}

// maxClockChanges bounds the search for the next opening. It is more than what a time zone has in the
// years between two leap days.
const maxClockChanges = 20

// Next returns when the window opens next, after now. It is zero if that is never.
//
// The library is asked for each period in which the offset of the time zone is the same, with a zone that
// always has this offset. With the real one it counts hours from the last change of the clocks, and misses
// times of a day on which they are changed by half an hour; and it may return times of another day, or miss
// some, if they are changed at midnight.
func (w *Window) Next(now time.Time) time.Time {
	period, after := now.In(w.location), now
	for range maxClockChanges {
		name, offset := period.Zone()
		_, end := period.ZoneBounds()
		next := w.schedule.Next(after.In(time.FixedZone(name, offset)))
		switch {
		case !next.IsZero() && (end.IsZero() || next.Before(end)):
			return next.In(w.location)
		case end.IsZero():
			return time.Time{}
		}
		// The times of the next period are those after the second before it.
		period, after = end, end.Add(-time.Second)
	}
	return time.Time{}
}

// maxReopenings bounds the search for the end of a window that is always open.
const maxReopenings = 1000

// Closes returns when the window closes; zero if it is closed. A window that opens again and again
// before it closes may be open for longer.
func (w *Window) Closes(now time.Time) time.Time {
	if !w.IsOpen(now) {
		return time.Time{}
	}
	closes := now
	for range maxReopenings {
		opened := w.Next(closes.Add(-w.duration))
		if opened.IsZero() || opened.After(closes) {
			break
		}
		closes = opened.Add(w.duration)
	}
	return closes
}

// maxFollowing bounds the search for the end of windows that follow each other.
const maxFollowing = 20

// OpenFor returns for how long at least one of the windows stays open. It is zero if none is open, and
// if no end is found.
func OpenFor(windows []*Window, now time.Time) time.Duration {
	closes := now
	for range maxFollowing {
		i := slices.IndexFunc(windows, func(w *Window) bool { return w.IsOpen(closes) })
		if i < 0 {
			return closes.Sub(now)
		}
		closes = windows[i].Closes(closes)
		if windows[i].IsOpen(closes) {
			break // It is always open, or nearly so.
		}
	}
	return 0
}

// maxMeetingSteps bounds the search for a time at which windows are open together.
const maxMeetingSteps = 2000

// Meet returns the first time from now until the end at which at least one window of each set is open, and
// which set opens then; -1 if all of them are open now. It is zero if there is none. Windows that open and
// close so often that the search takes too long do not meet before the time that is returned.
func Meet(sets [][]*Window, now, end time.Time) (at time.Time, opens int) {
	at, opens = now, -1
	for range maxMeetingSteps {
		closed := slices.IndexFunc(sets, func(windows []*Window) bool {
			return !slices.ContainsFunc(windows, func(w *Window) bool { return w.IsOpen(at) })
		})
		if closed < 0 {
			return at, opens
		}
		next := nextOf(sets[closed], at)
		if next.IsZero() || next.After(end) {
			return time.Time{}, -1
		}
		at, opens = next, closed
	}
	return at, opens
}

// nextOf returns when the first of the windows opens, after now; zero if none does.
func nextOf(windows []*Window, now time.Time) (first time.Time) {
	for _, w := range windows {
		if next := w.Next(now); !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}
