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

package nodemaintenance

import (
	"testing"
	"time"
)

func TestShutdownDrainsNode(t *testing.T) {
	onMachine(t, map[string]time.Duration{"a": 20 * time.Second, "b": 40 * time.Second}, func(m *machine) {
		m.run(600)
		if calls := m.calls(); calls != "" {
			t.Errorf("calls without a shutdown: %s", calls)
		}
		m.shutDown(time.Hour)
		if !m.shutdown.IsInProgress() {
			t.Error("no shutdown is in progress")
		}
		m.run(30)
		m.expectDraining()
		m.expectStage(stageDrain)
		m.run(15)
		m.expectOutcome(ShutdownProceeds)
		m.expectStage(stageDrain)
		m.expectEvents(DrainingForShutdownReason, DrainedForShutdownReason)
		m.run(600)
		m.expectStage(stageDrain) // Until the next boot.
		m.calls()

		m.reboot("boot-2")
		m.expectStage(stageComplete)
		m.expectEvents(ShutdownMaintenanceEndedReason)
		if calls := m.calls(); calls != "get patch" {
			t.Errorf("calls after the boot: %q", calls)
		}
		if m.shutdown.IsInProgress() {
			t.Error("a shutdown is in progress after the boot")
		}
		m.reboot("boot-3")
		if calls := m.calls(); calls != "" {
			t.Errorf("calls after a boot without a shutdown: %q", calls)
		}
	})
}
