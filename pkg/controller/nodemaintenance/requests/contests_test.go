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

package requests

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestContests(t *testing.T) {
	start := time.Unix(1000, 0)
	c := NewContests()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	expect := func(seconds, count int, wait time.Duration) {
		t.Helper()
		if got := c.Count("n", "a", at(seconds)); got != count {
			t.Errorf("after %d s: %d requests, want %d", seconds, got, count)
		}
		if got := c.Wait("n", "a", at(seconds)); got != wait {
			t.Errorf("after %d s: waits %s, want %s", seconds, got, wait)
		}
	}
	expect(0, 0, 0)
	c.Wrote("n", "a", time.Time{}, at(0))
	expect(0, 1, 0)
	c.Wrote("n", "a", time.Time{}, at(1))
	expect(1, 2, 5*time.Second)
	expect(5, 2, time.Second)
	expect(7, 2, 0)
	for i, want := range []time.Duration{10, 20, 40, 60, 60} {
		c.Wrote("n", "a", time.Time{}, at(10+i))
		expect(10+i, 3+i, want*time.Second)
	}
	expect(601, 6, 0)
	expect(700, 0, 0)
	for i := range resumeLimit {
		c.Wrote("n", "c", time.Time{}, at(20*i))
		if got := c.Wait("n", "c", at(20*i+1)); i < resumeLimit-1 && got != 0 {
			t.Errorf("waits %s after %d own withdrawals", got, i)
		}
		c.Withdrew("n", "c")
	}
	if got := c.Wait("n", "c", at(181)); got != 4*time.Second {
		t.Errorf("waits %s after own withdrawals", got)
	}
	c.Wrote("n", "c", time.Time{}, at(190))
	if got := c.Wait("n", "c", at(190)); got != 10*time.Second {
		t.Errorf("waits %s after more own withdrawals", got)
	}
	pod := func(uid types.UID) []*v1.Pod { return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: uid}}} }
	c.See("n", pod("a"), nil)
	if got := c.Count("n", "b", at(0)) + c.Count("o", "a", at(0)); got != 0 {
		t.Errorf("others: %d", got)
	}
	c.Wrote("n", "b", time.Time{}, at(700))
	c.See("n", nil, pod("b"))
	if len(c.nodes["n"]) != 1 || c.Count("n", "b", at(700)) != 1 {
		t.Errorf("kept %v", c.nodes)
	}
	c.See("n", nil, nil)
	if len(c.nodes) != 0 {
		t.Errorf("left %v", c.nodes)
	}
}

// The blocker says since when others have withdrawn, and who was the last one, in the time that counts. A clock that
// was set back delays nothing.
func TestContestMessage(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	c := NewContests()
	expect := func(now int, since int, parts ...string) {
		t.Helper()
		message, found, contested := c.Message("n", "a", at(now))
		if !contested || !found.Equal(at(since)) {
			t.Errorf("after %d s: contested: %t, since %v, want %v", now, contested, found, at(since))
		}
		for _, part := range parts {
			if !strings.Contains(message, part) {
				t.Errorf("after %d s: %q does not say %q", now, message, part)
			}
		}
	}
	c.Wrote("n", "a", time.Time{}, at(0))
	c.Wrote("n", "a", time.Time{}, at(700))
	if _, _, contested := c.Message("n", "a", at(700)); contested {
		t.Error("contested, although the first request does not count any more")
	}
	c.Withdrawn("n", "a", "tenant")
	c.Wrote("n", "a", time.Time{}, at(701))
	expect(702, 700, "2 times in 2s", `user "tenant"`)
	c.Withdrawn("n", "a", "")
	expect(702, 700, "the audit log has by whom")
	c.Wrote("n", "a", time.Time{}, at(1000))
	c.Wrote("n", "a", time.Time{}, at(1001))
	expect(1305, 700, "2 times in 5m5s")
	if got := c.Wait("n", "a", at(900)); got != 0 {
		t.Errorf("waits %s after the clock was set back", got)
	}
	c.Wrote("n", "b", at(-3600), at(0))
	c.Wrote("n", "b", at(-3600), at(1))
	if _, since, _ := c.Message("n", "b", at(1)); !since.Equal(at(-3600)) {
		t.Errorf("contested since %v, want what a process before has found", since)
	}
}
