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

package pace

import (
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestPaceOfReverts(t *testing.T) {
	c := New()
	if c.Rewrote(RevertedCordon, "n", time.Time{}, start) || c.Rewrote(RevertedCordon, "n", time.Time{}, start.Add(time.Minute)) || c.AfterRevert(RevertedCordon, "n", start.Add(time.Minute)) != 0 {
		t.Error("two re-cordons are within the limit")
	}
	third := start.Add(RevertWindow - 30*time.Second)
	if !c.Rewrote(RevertedCordon, "n", time.Time{}, third) || c.AfterRevert(RevertedCordon, "n", third.Add(time.Second)) != RevertPause-time.Second {
		t.Errorf("the third reaches the limit, wait %v", c.AfterRevert(RevertedCordon, "n", third.Add(time.Second)))
	}
	if c.AfterRevert(RevertedCordon, "n", start.Add(RevertWindow)) == 0 || c.AfterRevert(RevertedCordon, "n", start.Add(RevertWindow+time.Second)) != 0 {
		t.Error("the first re-cordon does not count for exactly RevertWindow")
	}
}

func TestPaceOfStatuses(t *testing.T) {
	w := New()
	w.Wrote(NodeStatus, "n", start)
	if got := w.AfterWrite(NodeStatus, "n", start.Add(400*time.Millisecond), StatusInterval); got != 600*time.Millisecond {
		t.Errorf("wait %v", got)
	}
	if got := w.AfterWrite(NodeStatus, "n", start.Add(2*time.Second), ProgressInterval); got != ProgressInterval-2*time.Second {
		t.Errorf("with a longer interval: wait %v", got)
	}
	if got := w.AfterWrite(NodeStatus, "n", start.Add(StatusInterval), StatusInterval); got > 0 || len(w.Names(NodeStatus)) > 0 {
		t.Errorf("wait %v, write times %v", got, w.Names(NodeStatus))
	}
}

func TestPaceOfAStaleCache(t *testing.T) {
	s := New()
	for _, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000} {
		if got := s.AfterStale(NodeCache, "n"); got != want*time.Millisecond {
			t.Errorf("waits %v, want %v", got, want*time.Millisecond)
		}
	}
	if got := s.AfterStale(NodeCache, "o"); got != StaleInterval {
		t.Errorf("another node waits %v", got)
	}
	s.Current(NodeCache, "n")
	if got := s.AfterStale(NodeCache, "n"); got != StaleInterval {
		t.Errorf("waits %v after the reset", got)
	}
}

// Each kind of an object has a pace of its own, and a node none of a maintenance with its name.
func TestKindsAreApart(t *testing.T) {
	p := New()
	for range RevertLimit {
		p.Rewrote(RevertedTaint, "n", time.Time{}, start)
		p.Rewrote(RevertedFinalizer, "n", time.Time{}, start)
	}
	if p.AfterRevert(RevertedUntaint, "n", start) != 0 || p.AfterRevert(RevertedTaint, "o", start) != 0 {
		t.Error("waits for another kind, or for another node")
	}
	p.ForgetNode("n")
	if p.AfterRevert(RevertedTaint, "n", start) != 0 || p.AfterRevert(RevertedFinalizer, "n", start) == 0 {
		t.Error("the end of a node forgets the maintenance with its name, or not the node")
	}
	p.ForgetMaintenance("n")
	if len(p.reverted) > 0 {
		t.Errorf("left: %v", p.reverted)
	}
}
