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

package status

import (
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// A drain waits only while none of its pods may leave, and has no message without nodes.
func TestTextsOfADrain(t *testing.T) {
	if got := JoinNames([]string{"e", "d", "c", "b", "a"}); got != "a, b, c, d, e" {
		t.Errorf("got %q", got)
	}
	if reason := drainReason(&progress.Summary{State: progress.DrainState{Draining: true, WaitingFor: []string{"x"}}}); reason != coordinationv1alpha1.NodeMaintenanceReasonDraining {
		t.Errorf("reason %s", reason)
	}
	if status := computeDrainStatus(&progress.Summary{}); status.DrainMessage != "" {
		t.Errorf("message %q without nodes", status.DrainMessage)
	}
}

func TestShorten(t *testing.T) {
	short, long := strings.Repeat("x", maxNote), strings.Repeat("ä", maxNote)
	if got := Shorten(short); got != short {
		t.Errorf("shortened to %d bytes", len(got))
	}
	if got := Shorten(long); len(got) > maxNote || !strings.HasSuffix(got, "ä...") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}

func TestJoinNames(t *testing.T) {
	if got := JoinNames([]string{"c", "a", "b", "a"}); got != "a, b, c" {
		t.Errorf("got %q", got)
	}
	if got := JoinNames([]string{"g", "f", "e", "d", "c", "b", "a"}); got != "a, b, c, d, e and 2 more" {
		t.Errorf("got %q", got)
	}
}
