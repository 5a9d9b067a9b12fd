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

package rollout

import (
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/kubernetes/pkg/apis/coordination/schedule"
)

const (
	// maxMeetingWait is how far ahead a time is looked for at which all budgets of a node are open. If there
	// is none, somebody has to change their windows.
	maxMeetingWait = 30 * 24 * time.Hour

	// meetingMemory is for how long it is known that there is none.
	meetingMemory = time.Hour
)

// meeting is when the windows of several budgets are open together.
type meeting struct {
	// at is zero if they are not within maxMeetingWait after asked.
	at, asked time.Time
	// opens is the key of the windows of which one opens then.
	opens string
	// used is whether the current decision needs it.
	used bool
}

// meet replaces the waits for windows by one for the time at which all budgets of the node are open.
func (r *round) meet(n *node, waits []Wait) []Wait {
	isWindow := func(w Wait) bool { return w.Reason == coordinationv1alpha1.NodeMaintenanceWaitWindow }
	if !slices.ContainsFunc(waits, isWindow) {
		return waits
	}
	return append(slices.DeleteFunc(waits, isWindow), r.windowWait(n))
}

// windowWait returns the wait of a node of which at least one budget is closed. It names the budget that opens
// last, or the first one that is closed, if they do not meet.
func (r *round) windowWait(n *node) Wait {
	wait := Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitWindow}
	var windows []*budget // Those whose windows differ.
	opens, isKnown := "", false
	for _, b := range n.budgets {
		if len(b.Spec.Windows) > 0 && !slices.ContainsFunc(windows, func(other *budget) bool { return other.windowsKey == b.windowsKey }) {
			windows = append(windows, b)
		}
	}
	if len(windows) > 1 {
		found := r.meetingOf(windows, r.now)
		opens, isKnown, wait.Until = found.opens, !found.at.IsZero(), found.at
	}
	for _, b := range n.budgets {
		state := r.states[b]
		if len(b.Spec.Windows) == 0 || isKnown && b.windowsKey != opens || !isKnown && state.open {
			continue
		}
		wait.Budget = b.Name
		if len(windows) == 1 {
			wait.Until = state.next
		}
		break
	}
	return wait
}

// meetingOf returns when the budgets are open together. It is looked for again when that time has come.
func (f *Fleet) meetingOf(budgets []*budget, now time.Time) *meeting {
	var key strings.Builder
	sets := make([][]*schedule.Window, 0, len(budgets))
	for _, b := range budgets {
		key.WriteString(b.windowsKey + "\n")
		sets = append(sets, b.windows)
	}
	known := f.meetings[key.String()]
	if known == nil || !known.isValid(now) {
		known = &meeting{asked: now}
		at, opens := schedule.Meet(sets, now, now.Add(maxMeetingWait))
		if opens >= 0 {
			known.at, known.opens = at.UTC(), budgets[opens].windowsKey
		}
		f.meetings[key.String()] = known
	}
	known.used = true
	return known
}

// isValid reports whether nothing has happened since that was asked: the clock may have been set back.
func (m *meeting) isValid(now time.Time) bool {
	switch {
	case now.Before(m.asked):
		return false
	case m.at.IsZero():
		return now.Before(m.asked.Add(meetingMemory))
	}
	return now.Before(m.at)
}

// forgetMeetings removes those that the decision did not need.
func (f *Fleet) forgetMeetings() {
	maps.DeleteFunc(f.meetings, func(_ string, m *meeting) bool { return !m.used })
	for _, m := range f.meetings {
		m.used = false
	}
}
