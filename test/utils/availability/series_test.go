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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// second returns the time of a second in a test.
func second(n int) time.Time { return time.Unix(int64(n), 0) }

// newSeries returns a series from pairs of a second and a number.
func newSeries(pairs ...[2]int) Series {
	var s Series
	for _, pair := range pairs {
		s = s.add(pair[1], Moment{At: second(pair[0])})
	}
	return s
}

func TestBelow(t *testing.T) {
	between := func(from, to int) Interval { return Interval{From: second(from), To: second(to)} }
	tests := []struct {
		name     string
		series   Series
		limit    int
		from, to int
		want     []Interval
		total    time.Duration
		longest  time.Duration
	}{
		{
			name:   "always enough",
			series: newSeries([2]int{0, 1}, [2]int{12, 2}, [2]int{14, 1}),
			limit:  1, from: 10, to: 20,
		},
		{
			name:  "never seen",
			limit: 1, from: 10, to: 20,
			want: []Interval{between(10, 20)}, total: 10 * time.Second, longest: 10 * time.Second,
		},
		{
			name:   "seen only after a while",
			series: newSeries([2]int{13, 1}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(10, 13)}, total: 3 * time.Second, longest: 3 * time.Second,
		},
		{
			name:   "several gaps",
			series: newSeries([2]int{0, 1}, [2]int{11, 0}, [2]int{13, 1}, [2]int{15, 0}, [2]int{18, 1}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(11, 13), between(15, 18)}, total: 5 * time.Second, longest: 3 * time.Second,
		},
		{
			name:   "a gap that does not end",
			series: newSeries([2]int{0, 1}, [2]int{17, 0}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(17, 20)}, total: 3 * time.Second, longest: 3 * time.Second,
		},
		{
			name:   "a gap that had begun",
			series: newSeries([2]int{0, 1}, [2]int{7, 0}, [2]int{11, 1}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(10, 11)}, total: time.Second, longest: time.Second,
		},
		{
			name:   "a gap that ends too late",
			series: newSeries([2]int{0, 1}, [2]int{11, 0}, [2]int{15, 1}, [2]int{17, 0}, [2]int{25, 1}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(11, 15), between(17, 20)}, total: 7 * time.Second, longest: 4 * time.Second,
		},
		{
			name:   "gaps outside",
			series: newSeries([2]int{0, 1}, [2]int{5, 0}, [2]int{10, 1}, [2]int{20, 0}, [2]int{22, 1}),
			limit:  1, from: 10, to: 20,
		},
		{
			name:   "a gap that begins after the end",
			series: newSeries([2]int{0, 1}, [2]int{25, 0}),
			limit:  1, from: 10, to: 20,
		},
		{
			name:   "a gap without a length",
			series: newSeries([2]int{0, 1}, [2]int{12, 0}, [2]int{12, 1}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(12, 12)},
		},
		{
			name:   "gaps without a length at the edges",
			series: newSeries([2]int{0, 1}, [2]int{9, 0}, [2]int{9, 1}, [2]int{10, 0}, [2]int{10, 1}, [2]int{20, 0}, [2]int{20, 1}, [2]int{21, 0}, [2]int{21, 1}),
			limit:  1, from: 10, to: 20,
			want: []Interval{between(10, 10), between(20, 20)},
		},
		{
			name:   "a budget of two",
			series: newSeries([2]int{0, 3}, [2]int{11, 2}, [2]int{12, 1}, [2]int{13, 0}, [2]int{14, 1}, [2]int{16, 2}),
			limit:  2, from: 10, to: 20,
			want: []Interval{between(12, 16)}, total: 4 * time.Second, longest: 4 * time.Second,
		},
		{
			name:  "no limit",
			limit: 0, from: 10, to: 20,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.series.Below(test.limit, second(test.from), second(test.to))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("intervals (-want, +got):\n%s", diff)
			}
			if total := Total(got); total != test.total {
				t.Errorf("total is %s, want %s", total, test.total)
			}
			if longest := Longest(got); longest != test.longest {
				t.Errorf("longest is %s, want %s", longest, test.longest)
			}
		})
	}
}

func TestMax(t *testing.T) {
	tests := []struct {
		name     string
		series   Series
		from, to int
		want     int
	}{
		{name: "never seen", from: 10, to: 20, want: 0},
		{name: "what it was before", series: newSeries([2]int{0, 3}), from: 10, to: 20, want: 3},
		{name: "a moment", series: newSeries([2]int{0, 1}, [2]int{12, 4}, [2]int{12, 2}), from: 10, to: 20, want: 4},
		{name: "over before", series: newSeries([2]int{0, 1}, [2]int{5, 4}, [2]int{9, 1}), from: 10, to: 20, want: 1},
		{name: "over at the beginning", series: newSeries([2]int{5, 4}, [2]int{10, 1}), from: 10, to: 20, want: 1},
		{name: "a moment at the beginning", series: newSeries([2]int{0, 1}, [2]int{10, 4}, [2]int{10, 1}), from: 10, to: 20, want: 4},
		{name: "at the end", series: newSeries([2]int{0, 1}, [2]int{20, 4}), from: 10, to: 20, want: 4},
		{name: "after the end", series: newSeries([2]int{0, 1}, [2]int{21, 4}), from: 10, to: 20, want: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.series.Max(second(test.from), second(test.to)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestAdd(t *testing.T) {
	got := newSeries([2]int{1, 0}, [2]int{2, 1}, [2]int{3, 1}, [2]int{4, 0}, [2]int{5, 1})
	want := Series{
		{Moment: Moment{At: second(2)}, Value: 1},
		{Moment: Moment{At: second(4)}, Value: 0},
		{Moment: Moment{At: second(5)}, Value: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only changes must be recorded (-want, +got):\n%s", diff)
	}
}

func TestAt(t *testing.T) {
	series := newSeries([2]int{10, 1}, [2]int{12, 4}, [2]int{12, 2})
	for _, test := range []struct{ at, want int }{{9, 0}, {10, 1}, {11, 1}, {12, 2}, {20, 2}} {
		if got := series.At(second(test.at)); got != test.want {
			t.Errorf("at second %d it is %d, want %d", test.at, got, test.want)
		}
	}
}
