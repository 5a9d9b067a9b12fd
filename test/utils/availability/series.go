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

package availability

import (
	"time"
)

// Moment is when something was observed. The API server's order is that of the resource
// versions; the time is when the event arrived here.
type Moment struct {
	At              time.Time
	ResourceVersion string
}

// Point is a number, and since when it holds.
type Point struct {
	Moment
	Value int
}

// Series is a number that changes, in the order of its changes. Before its first point it
// is zero: what was never seen was not there.
type Series []Point

// add appends a number, unless it is the last one.
func (s Series) add(value int, moment Moment) Series {
	if len(s) > 0 && s[len(s)-1].Value == value || len(s) == 0 && value == 0 {
		return s
	}
	return append(s, Point{Moment: moment, Value: value})
}

// At returns the number at a time, after all events of that moment.
func (s Series) At(at time.Time) int {
	value := 0
	for _, point := range s {
		if !point.At.After(at) {
			value = point.Value
		}
	}
	return value
}

// Max returns the highest number from one time to another, both included.
func (s Series) Max(from, to time.Time) int {
	highest := 0
	for i, point := range s {
		overBefore := i+1 < len(s) && !s[i+1].At.After(from) && point.At.Before(from)
		if !overBefore && !point.At.After(to) {
			highest = max(highest, point.Value)
		}
	}
	return highest
}

// Below returns all intervals from one time to another in which the number was less than
// the limit. One in which two events arrived at the same time has no length, but it was
// seen and counts.
func (s Series) Below(limit int, from, to time.Time) []Interval {
	var found []Interval
	var began *time.Time
	if 0 < limit {
		began = &time.Time{}
	}
	for _, point := range s {
		switch {
		case point.Value < limit && began == nil:
			began = &point.At
		case point.Value >= limit && began != nil:
			found = appendWithin(found, Interval{From: *began, To: point.At}, from, to)
			began = nil
		}
	}
	if began != nil && began.Before(to) {
		found = appendWithin(found, Interval{From: *began, To: to}, from, to)
	}
	return found
}

// Interval is a time that has a beginning and an end.
type Interval struct {
	From, To time.Time
}

// Length is how long it lasted.
func (i Interval) Length() time.Duration { return i.To.Sub(i.From) }

// appendWithin appends the part of an interval that is between two times.
func appendWithin(intervals []Interval, i Interval, from, to time.Time) []Interval {
	moment := i.From.Equal(i.To)
	if i.To.Before(from) || i.From.After(to) || !moment && (i.To.Equal(from) || i.From.Equal(to)) {
		return intervals
	}
	if i.From.Before(from) {
		i.From = from
	}
	if i.To.After(to) {
		i.To = to
	}
	return append(intervals, i)
}

// Total is how long all of them lasted.
func Total(intervals []Interval) time.Duration {
	var total time.Duration
	for _, i := range intervals {
		total += i.Length()
	}
	return total
}

// Longest is how long the longest of them lasted.
func Longest(intervals []Interval) time.Duration {
	var longest time.Duration
	for _, i := range intervals {
		longest = max(longest, i.Length())
	}
	return longest
}
