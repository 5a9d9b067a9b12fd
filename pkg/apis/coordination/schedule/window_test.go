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

package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // The tests must not depend on the database of the system.
)

// at parses a time in UTC, which may lack seconds.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range []string{"2006-01-02T15:04Z", time.RFC3339Nano} {
		if parsed, err := time.Parse(layout, text); err == nil {
			return parsed
		}
	}
	t.Fatalf("%q is no time", text)
	return time.Time{}
}

// format is the inverse of at. A time that is zero is "never".
func format(when time.Time) string {
	switch {
	case when.IsZero():
		return "never"
	case when.Truncate(time.Minute).Equal(when):
		return when.UTC().Format("2006-01-02T15:04Z")
	}
	return when.UTC().Format(time.RFC3339Nano)
}

func TestParseSchedule(t *testing.T) {
	const (
		fields   = `must have five fields, for minute, hour, day of the month, month, and day of the week, such as "0 2 * * 6": `
		zone     = "must not name a time zone: use timeZone"
		relative = "must not be relative: name minutes, hours and days"
		never    = "must occur: there is no such date within five years"
	)
	for expression, want := range map[string]string{
		"0 2 * * 6":               "",
		"*/15 22-23 1,15 JAN sun": "",
		"0 0 ? * *":               "",
		"  0\t2  * * 6 ":          "",
		"@daily":                  "",
		"@midnight":               "",
		"@weekly":                 "",
		"0 0 29 2 *":              "",
		"0 0 30 2 mon":            "", // On the day of the month or of the week.

		"":                           fields + "empty spec string",
		" ":                          fields + "expected exactly 5 fields, found 0",
		"nights":                     fields + "expected exactly 5 fields, found 1",
		"0 0 2 * * 6":                fields + "expected exactly 5 fields, found 6",
		"60 2 * * 6":                 fields + "end of range (60) above maximum (59)",
		"0 2 0 * *":                  fields + "beginning of range (0) below minimum (1)",
		"0 2 * * 7":                  fields + "end of range (7) above maximum (6)",
		"0 */0 * * *":                fields + "step of range should be a positive number",
		", * * * *":                  fields + "a field has no value",
		"0 ,, * * *":                 fields + "a field has no value",
		"0 2 , * *":                  fields + "a field has no value",
		"0 2 * , *":                  fields + "a field has no value",
		"0 2 * * ,":                  fields + "a field has no value",
		"@reboot":                    fields + "unrecognized descriptor: @reboot",
		"TZ=Europe/Berlin 0 2 * * 6": zone,
		"CRON_TZ=UTC 0 2 * * 6":      zone,
		"TZ=0":                       zone, // The library panics.
		"@every 1h":                  relative,
		"@every":                     relative,
		"0 0 31 2 *":                 never,
		"0 0 30 2 *":                 never,
		"0 0 31 4,6,9,11 *":          never,
	} {
		got, err := ParseSchedule(expression)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: unexpected error: %v", expression, err)
		case want == "" && got == nil:
			t.Errorf("%q: no schedule", expression)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: got error %v, want %q", expression, err, want)
		}
	}
}

func TestParseTimeZone(t *testing.T) {
	const (
		local   = "must not be Local: name a time zone, such as Europe/Berlin"
		unknown = "must be a name of the time zone database, such as Europe/Berlin: "
	)
	for name, want := range map[string]struct{ location, err string }{
		"":                 {location: "Etc/UTC"},
		"UTC":              {location: "UTC"},
		"Etc/GMT-2":        {location: "Etc/GMT-2"},
		"Europe/Berlin":    {location: "Europe/Berlin"},
		"Local":            {err: local},
		"LOCAL":            {err: local},
		"Mars/Olympus":     {err: unknown + "unknown time zone Mars/Olympus"},
		"Europe":           {err: unknown},
		"../etc/localtime": {err: unknown},
		"/etc/localtime":   {err: unknown},
		"Europe/Berlin ":   {err: unknown},
		"+02:00":           {err: unknown},
	} {
		got, err := ParseTimeZone(name)
		switch {
		case want.err == "" && err != nil:
			t.Errorf("%q: unexpected error: %v", name, err)
		case want.err == "" && got.String() != want.location:
			t.Errorf("%q: got %s, want %s", name, got, want.location)
		case want.err != "" && (err == nil || !strings.HasPrefix(err.Error(), want.err)):
			t.Errorf("%q: got error %v, want %q", name, err, want.err)
		}
	}
}

func TestNewWindowErrors(t *testing.T) {
	for _, broken := range []struct{ schedule, timeZone, want string }{
		{"daily", "Europe/Berlin", "must have five fields"},
		{"@daily", "Berlin", "must be a name of the time zone database"},
	} {
		if window, err := NewWindow(broken.schedule, broken.timeZone, time.Hour); window != nil || err == nil || !strings.HasPrefix(err.Error(), broken.want) {
			t.Errorf("%q in %q: got %v and error %v, want %q", broken.schedule, broken.timeZone, window, err, broken.want)
		}
	}
}

// moment is what a window says at a time. closes is "never" if it is closed.
type moment struct{ now, next, closes string }

func TestWindow(t *testing.T) {
	const night = "2026-01-10T02:00Z" // A Saturday.
	for name, test := range map[string]struct {
		schedule, timeZone string
		duration           time.Duration
		moments            []moment
	}{
		"its edges": {"0 2 * * 6", "", 4 * time.Hour, []moment{
			{"2026-01-03T06:00Z", night, "never"},
			{"2026-01-10T01:59:59.999999999Z", night, "never"},
			{night, "2026-01-17T02:00Z", "2026-01-10T06:00Z"},
			{"2026-01-10T02:00:00.000000001Z", "2026-01-17T02:00Z", "2026-01-10T06:00Z"},
			{"2026-01-10T05:59:59.999999999Z", "2026-01-17T02:00Z", "2026-01-10T06:00Z"},
			{"2026-01-10T06:00Z", "2026-01-17T02:00Z", "never"},
		}},
		"over midnight, and over the end of a year": {"0 22 31 12 *", "", 4 * time.Hour, []moment{
			{"2026-12-31T21:59Z", "2026-12-31T22:00Z", "never"},
			{"2026-12-31T23:59Z", "2027-12-31T22:00Z", "2027-01-01T02:00Z"},
			{"2027-01-01T00:00Z", "2027-12-31T22:00Z", "2027-01-01T02:00Z"},
			{"2027-01-01T02:00Z", "2027-12-31T22:00Z", "never"},
		}},
		"every day": {"@daily", "", time.Hour, []moment{
			{"2026-01-10T00:00Z", "2026-01-11T00:00Z", "2026-01-10T01:00Z"},
			{"2026-01-10T01:00Z", "2026-01-11T00:00Z", "never"},
		}},
		"it opens again while it is open": {"0,30 2,3 * * *", "", 45 * time.Minute, []moment{
			{"2026-01-10T02:00Z", "2026-01-10T02:30Z", "2026-01-10T04:15Z"},
			{"2026-01-10T02:40Z", "2026-01-10T03:00Z", "2026-01-10T04:15Z"},
			{"2026-01-10T04:14Z", "2026-01-11T02:00Z", "2026-01-10T04:15Z"},
			{"2026-01-10T04:15Z", "2026-01-11T02:00Z", "never"},
		}},
		"it opens again when it closes": {"0 2,3 * * *", "", time.Hour, []moment{
			{"2026-01-10T02:59:59Z", "2026-01-10T03:00Z", "2026-01-10T04:00Z"},
			{"2026-01-10T03:00Z", "2026-01-11T02:00Z", "2026-01-10T04:00Z"},
		}},
		// The end is not true, and late enough.
		"it is always open": {"* * * * *", "", time.Minute, []moment{
			{"2026-01-10T02:00:30Z", "2026-01-10T02:01Z", "2026-01-10T18:40Z"},
		}},
		"a leap day": {"0 0 29 2 *", "", time.Hour, []moment{
			{"2026-01-10T00:00Z", "2028-02-29T00:00Z", "never"},
			{"2028-02-29T00:59Z", "2032-02-29T00:00Z", "2028-02-29T01:00Z"},
			// There is none in 2100. The library looks five years ahead.
			{"2096-03-01T00:00Z", "never", "never"},
		}},
		"a leap day, after eight changes of the clocks": {"0 0 29 2 *", "Europe/Berlin", time.Hour, []moment{
			{"2028-03-01T00:00Z", "2032-02-28T23:00Z", "never"},
		}},
		"in another time zone": {"0 2 * * 6", "Asia/Kolkata", time.Hour, []moment{
			{"2026-01-09T20:29Z", "2026-01-09T20:30Z", "never"},
			{"2026-01-09T20:30Z", "2026-01-16T20:30Z", "2026-01-09T21:30Z"},
		}},
		"the same time of day in summer and winter": {"0 1 * * *", "Europe/Berlin", time.Hour, []moment{
			{"2026-03-28T12:00Z", "2026-03-29T00:00Z", "never"},
			{"2026-03-29T12:00Z", "2026-03-29T23:00Z", "never"},
			{"2026-10-25T12:00Z", "2026-10-26T00:00Z", "never"},
		}},
		// From 02:00 to 03:00, which is 01:00 UTC.
		"clocks are put forward while it is open": {"30 1 * * 0", "Europe/Berlin", 2 * time.Hour, []moment{
			{"2026-03-29T00:29Z", "2026-03-29T00:30Z", "never"},
			{"2026-03-29T01:00Z", "2026-04-04T23:30Z", "2026-03-29T02:30Z"},
			{"2026-03-29T02:30Z", "2026-04-04T23:30Z", "never"},
		}},
		"clocks are put forward to its time": {"0 3 * * *", "Europe/Berlin", time.Hour, []moment{
			{"2026-03-28T12:00Z", "2026-03-29T01:00Z", "never"},
			{"2026-03-29T01:00Z", "2026-03-30T01:00Z", "2026-03-29T02:00Z"},
		}},
		"clocks are put forward over its time": {"30 2 * * *", "Europe/Berlin", time.Hour, []moment{
			{"2026-03-28T12:00Z", "2026-03-30T00:30Z", "never"},
			{"2026-03-29T01:00Z", "2026-03-30T00:30Z", "never"},
			{"2026-03-29T01:30Z", "2026-03-30T00:30Z", "never"},
		}},
		// From 03:00 to 02:00, which is 01:00 UTC.
		"clocks are put back while it is open": {"0 1 * * *", "Europe/Berlin", 3 * time.Hour, []moment{
			{"2026-10-24T23:00Z", "2026-10-26T00:00Z", "2026-10-25T02:00Z"},
			{"2026-10-25T01:59Z", "2026-10-26T00:00Z", "2026-10-25T02:00Z"},
			{"2026-10-25T02:00Z", "2026-10-26T00:00Z", "never"},
		}},
		"clocks are put back over its time": {"30 2 * * *", "Europe/Berlin", 45 * time.Minute, []moment{
			{"2026-10-24T12:00Z", "2026-10-25T00:30Z", "never"},
			{"2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T01:15Z"},
			{"2026-10-25T01:20Z", "2026-10-25T01:30Z", "never"},
			{"2026-10-25T01:30Z", "2026-10-26T01:30Z", "2026-10-25T02:15Z"},
		}},
		// At midnight from Thursday to Friday, 2026-04-24, to 01:00.
		"clocks skip midnight": {"0 1 * * 4", "Africa/Cairo", time.Hour, []moment{
			{"2026-04-22T23:30Z", "2026-04-29T22:00Z", "2026-04-23T00:00Z"},
			{"2026-04-23T22:30Z", "2026-04-29T22:00Z", "never"},
		}},
		// At 02:00 on 2026-10-04 to 02:30.
		"clocks skip half an hour": {"30 1 * * *", "Australia/Lord_Howe", 20 * time.Minute, []moment{
			{"2026-10-03T15:01Z", "2026-10-04T14:30Z", "2026-10-03T15:20Z"},
			{"2026-10-03T15:30Z", "2026-10-04T14:30Z", "never"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			window, err := NewWindow(test.schedule, test.timeZone, test.duration)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			for _, want := range test.moments {
				now := at(t, want.now)
				if got := (moment{want.now, format(window.Next(now)), format(window.Closes(now))}); got != want {
					t.Errorf("got %v, want %v", got, want)
				}
				if open := want.closes != "never"; window.IsOpen(now) != open {
					t.Errorf("%s: open is %t, want %t", want.now, !open, open)
				}
			}
		})
	}
}

// Whether a window is open depends on how its openings lie around a time, and on nothing else.
func TestWindowAgreesWithItsOpenings(t *testing.T) {
	for _, zone := range []string{"Etc/UTC", "Europe/Berlin", "Africa/Cairo", "America/Santiago"} {
		for _, expression := range []string{"30 2 * * *", "0 0 * * 0", "15 0-3 24,25,29 * *"} {
			window, err := NewWindow(expression, zone, 90*time.Minute)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			year := at(t, "2026-01-01T00:00Z")
			var openings []time.Time
			for now := window.Next(year.Add(-window.duration)); now.Before(year.AddDate(1, 0, 0)); now = window.Next(now) {
				openings = append(openings, now)
			}
			for now := year; now.Before(year.AddDate(1, 0, 0)); now = now.Add(17 * time.Minute) {
				for len(openings) > 0 && !openings[0].Add(window.duration).After(now) {
					openings = openings[1:]
				}
				if want := len(openings) > 0 && !openings[0].After(now); window.IsOpen(now) != want {
					t.Errorf("%s in %s: open at %s: %t, want %t", expression, zone, format(now), !want, want)
				}
			}
		}
	}
}

func TestOpenFor(t *testing.T) {
	type window struct {
		schedule string
		duration time.Duration
	}
	var follows []window
	for hour := range 24 {
		follows = append(follows, window{fmt.Sprintf("0 %d * * *", hour), time.Hour})
	}
	now := at(t, "2026-01-10T02:30Z")
	for name, test := range map[string]struct {
		windows []window
		want    time.Duration
	}{
		"no window":              {},
		"one that is closed":     {windows: []window{{"0 3 * * *", time.Hour}}},
		"one that is open":       {windows: []window{{"0 3 * * *", 30 * time.Minute}, {"0 2 * * *", 45 * time.Minute}}, want: 15 * time.Minute},
		"the later end":          {windows: []window{{"0 2 * * *", 45 * time.Minute}, {"0 2 * * *", time.Hour}}, want: 30 * time.Minute},
		"one follows":            {windows: []window{{"0 3 * * *", time.Hour}, {"0 2 * * *", time.Hour}}, want: 90 * time.Minute},
		"one overlaps":           {windows: []window{{"50 2 * * *", time.Hour}, {"0 2 * * *", time.Hour}}, want: 80 * time.Minute},
		"always open":            {windows: []window{{"* * * * *", time.Minute}}},
		"always open beside one": {windows: []window{{"0 2 * * *", time.Hour}, {"0 * * * *", time.Hour}}},
		"all day":                {windows: follows},
	} {
		var windows []*Window
		for _, w := range test.windows {
			window, err := NewWindow(w.schedule, "", w.duration)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			windows = append(windows, window)
		}
		if got := OpenFor(windows, now); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// A window opens at each minute of a year at which a clock on the wall shows a time of its schedule, and at
// no other: also where clocks are changed by half an hour, or at midnight.
func TestOpeningsOfAYear(t *testing.T) {
	for _, zone := range []string{"Australia/Lord_Howe", "Europe/Berlin", "Africa/Cairo", "America/Santiago", "Asia/Kathmandu", "Antarctica/Troll", "America/St_Johns"} {
		location, err := ParseTimeZone(zone)
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		for _, clock := range []struct{ hour, minute int }{{0, 0}, {0, 30}, {1, 15}, {1, 45}, {2, 0}, {2, 30}, {3, 0}, {12, 0}, {23, 45}} {
			window, err := NewWindow(fmt.Sprintf("%d %d * * *", clock.minute, clock.hour), zone, time.Minute)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			begin := at(t, "2026-01-01T00:00Z")
			next := window.Next(begin.Add(-time.Second))
			for now := begin; now.Before(begin.AddDate(1, 0, 0)); now = now.Add(15 * time.Minute) {
				local := now.In(location)
				if local.Hour() != clock.hour || local.Minute() != clock.minute {
					continue
				}
				if !next.Equal(now) {
					t.Errorf("%02d:%02d in %s: opens at %s, not at %s", clock.hour, clock.minute, zone, format(next), format(now))
				}
				next = window.Next(now)
			}
		}
	}
}

func TestMeet(t *testing.T) {
	type window struct {
		schedule string
		duration time.Duration
	}
	now := at(t, "2026-01-10T02:30Z") // A Saturday.
	for name, test := range map[string]struct {
		sets  [][]window
		want  string
		opens int
	}{
		"no set":                 {nil, "2026-01-10T02:30Z", -1},
		"all are open":           {[][]window{{{"0 2 * * *", time.Hour}}, {{"15 2 * * *", time.Hour}}}, "2026-01-10T02:30Z", -1},
		"one is closed":          {[][]window{{{"0 2 * * *", time.Hour}}, {{"45 2 * * *", time.Hour}}}, "2026-01-10T02:45Z", 1},
		"they overlap tomorrow":  {[][]window{{{"0 1 * * *", time.Hour}}, {{"30 1 * * *", time.Hour}}}, "2026-01-11T01:30Z", 1},
		"only on Wednesdays":     {[][]window{{{"0 4 * * 1-5", time.Hour}}, {{"0 4 * * 3,6", 30 * time.Minute}}, {{"15 4 * * 1-5", time.Hour}}}, "2026-01-14T04:15Z", 2},
		"one ends as another":    {[][]window{{{"0 16 * * *", time.Hour}}, {{"0 17 * * *", time.Hour}}}, "never", -1},
		"they never meet":        {[][]window{{{"0 16 * * *", time.Hour}}, {{"0 18 * * *", time.Hour}}}, "never", -1},
		"after the end":          {[][]window{{{"0 16 * * *", time.Hour}}, {{"0 16 1 3 *", time.Hour}}}, "never", -1},
		"another window does":    {[][]window{{{"0 16 * * *", time.Hour}, {"0 18 * * 0", time.Hour}}, {{"30 18 * * *", time.Hour}}}, "2026-01-11T18:30Z", 1},
		"one has no window":      {[][]window{{{"0 16 * * *", time.Hour}}, {}}, "never", -1},
		"the search is too long": {[][]window{{{"*/2 * * * *", time.Minute}}, {{"1-59/2 * * * *", time.Minute}}}, "2026-01-11T11:50Z", 0},
	} {
		var sets [][]*Window
		for _, windows := range test.sets {
			var set []*Window
			for _, w := range windows {
				window, err := NewWindow(w.schedule, "", w.duration)
				if err != nil {
					t.Fatalf("unexpected error: %v", err)
				}
				set = append(set, window)
			}
			sets = append(sets, set)
		}
		got, opens := Meet(sets, now, now.AddDate(0, 0, 30))
		if format(got) != test.want || opens != test.opens {
			t.Errorf("%s: got %s and set %d, want %s and set %d", name, format(got), opens, test.want, test.opens)
		}
	}
}
