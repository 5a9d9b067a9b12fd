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

package revertpace

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// Somebody reverts for twelve minutes: three attempts at once, then ever more slowly, at most once a minute.
func TestPace(t *testing.T) {
	var attempts Attempts
	var made []string
	for now := epoch; now.Before(epoch.Add(12 * time.Minute)); now = now.Add(time.Second) {
		if attempts.Wait(now) > 0 {
			continue
		}
		contest := IsContest(attempts.Made(now))
		made = append(made, fmt.Sprint(now.Sub(epoch), " ", contest))
	}
	want := []string{"0s false", "1s false", "2s true", "7s true", "17s true", "37s true", "1m17s true", "2m17s true", "3m17s true", "4m17s true",
		"5m17s true", "6m17s true", "7m17s true", "8m17s true", "9m17s true", "10m17s true", "11m17s true"}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("unexpected attempts (-want, +got):\n%s", diff)
	}
}

func TestContestEnds(t *testing.T) {
	var attempts Attempts
	if over := attempts.ContestOver(epoch); !over.IsZero() {
		t.Errorf("a contest without attempts until %v", over)
	}
	for range 3 {
		attempts.Made(epoch)
	}
	// The pause of five seconds, and five more.
	for after, want := range map[time.Duration]bool{0: true, 9 * time.Second: true, 10 * time.Second: false} {
		if over := attempts.ContestOver(epoch.Add(after)); over.IsZero() == want || want && !over.Equal(epoch.Add(10*time.Second)) {
			t.Errorf("after %v the contest is over at %v", after, over)
		}
	}
	if attempts.IsOver(epoch.Add(10 * time.Minute)) {
		t.Error("no attempt counts within the window")
	}
	if wait := attempts.Wait(epoch.Add(11 * time.Minute)); wait != 0 || !attempts.IsOver(epoch.Add(11*time.Minute)) {
		t.Errorf("after the window it waits for %v, and has %v", wait, attempts.times)
	}
}

// A clock that was set back by an hour delays nothing for an hour.
func TestClockIsSetBack(t *testing.T) {
	var attempts Attempts
	for range 5 {
		attempts.Made(epoch)
	}
	if wait := attempts.Wait(epoch.Add(-time.Hour)); wait != 0 {
		t.Errorf("it waits for %v", wait)
	}
	if over := attempts.ContestOver(epoch.Add(-time.Hour)); !over.IsZero() {
		t.Errorf("the contest is over at %v", over)
	}
}
