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
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// listPods joins the first names, and counts the others.
func listPods(first []string, pods int) string {
	text := strings.Join(first, ", ")
	if more := pods - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// elapsed is never negative: the clock of the writer of the time may be ahead.
func elapsed(now time.Time, at metav1.Time) string {
	return duration.HumanDuration(max(0, now.Sub(at.Time)))
}

// timeAndRemainder is a time and how far away it is, with the date unless it is today.
func timeAndRemainder(now time.Time, at metav1.Time) string {
	return formatTime(now, at, time.TimeOnly)
}

// windowTime is timeAndRemainder with the time zone, because people in several zones agree upon windows, which
// open at full minutes.
func windowTime(now time.Time, at metav1.Time) string { return formatTime(now, at, "15:04 MST") }

func formatTime(now time.Time, at metav1.Time, format string) string {
	local := at.In(now.Location())
	if local.YearDay() != now.YearDay() || local.Year() != now.Year() {
		format = time.DateOnly + " " + format
	}
	if remainder := at.Sub(now); remainder >= 0 {
		return fmt.Sprintf("%s, in %s", local.Format(format), duration.HumanDuration(remainder))
	}
	return fmt.Sprintf("%s, %s ago", local.Format(format), elapsed(now, at))
}
