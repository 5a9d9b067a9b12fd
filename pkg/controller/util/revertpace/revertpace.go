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

// Package revertpace says how soon a controller writes something again that other clients revert: a few times at once,
// then ever more slowly. Everybody who may revert it could otherwise make the controller write as often as they do.
package revertpace

import "time"

const (
	// Window is how long an attempt counts. In that time, Limit attempts are made at once, and further ones after
	// firstPause, which doubles up to maxPause.
	Window     = 10 * time.Minute
	Limit      = 3
	firstPause = 5 * time.Second
	maxPause   = time.Minute

	// slack is how much longer than the pause nothing has to be reverted until it is known that nobody does so any more.
	slack = 5 * time.Second
)

// Attempts are the times at which something was written again: those that count, the oldest first. There are hardly more
// than twenty, because they have a pace. They only delay further ones: nothing else may depend on them, because a restart
// forgets them. The zero value has none.
type Attempts struct{ times []time.Time }

// Wait returns the delay before the next attempt.
func (a *Attempts) Wait(now time.Time) time.Duration {
	a.forgetOld(now)
	if len(a.times) < Limit {
		return 0
	}
	wait := a.last().Add(a.pause()).Sub(now)
	if wait <= 0 || wait > a.pause() { // The clock may have been set back.
		return 0
	}
	return wait
}

// Made records an attempt, and returns how many count.
func (a *Attempts) Made(now time.Time) int {
	a.forgetOld(now)
	a.times = append(a.times, now)
	return len(a.times)
}

// IsContest reports whether so many attempts mean that others revert it again and again.
func IsContest(attempts int) bool { return attempts >= Limit }

// ContestOver returns when it is known that nobody reverts it any more, if there is no further attempt before. It is
// zero if nobody does now.
func (a *Attempts) ContestOver(now time.Time) time.Time {
	a.forgetOld(now)
	if !IsContest(len(a.times)) {
		return time.Time{}
	}
	pause := a.pause() + slack
	if over := a.last().Add(pause); over.After(now) && over.Sub(now) <= pause {
		return over
	}
	return time.Time{}
}

// IsOver reports whether no attempt counts any more.
func (a *Attempts) IsOver(now time.Time) bool {
	a.forgetOld(now)
	return len(a.times) == 0
}

func (a *Attempts) last() time.Time { return a.times[len(a.times)-1] }

// pause is the time between the last attempt and the next one.
func (a *Attempts) pause() time.Duration {
	pause := firstPause
	for i := Limit; i < len(a.times) && pause < maxPause; i++ {
		pause = min(2*pause, maxPause)
	}
	return pause
}

func (a *Attempts) forgetOld(now time.Time) {
	for len(a.times) > 0 && now.Sub(a.times[0]) > Window {
		a.times = a.times[1:]
	}
}
