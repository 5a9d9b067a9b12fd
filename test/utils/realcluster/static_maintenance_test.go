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

package realcluster

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// overlapMaintenances holds a pod until the last of two maintenances ends.
func overlapMaintenances(n *staticNode) {
	n.run(staticPod{name: "plain", ending: 3 * time.Second})
	n.drain("first")
	n.awaitRecord("plain", asked)
	n.drain("second")
	n.awaitDrained("first")
	n.awaitDrained("second")
	n.awaitHeld("plain")
	n.complete("first")
	n.stays("without pods", func() bool { return n.areRunning() })
	n.restartKubelet(unix.SIGTERM)
	n.stays("without pods", func() bool { return n.areRunning() })
	n.expectRecords("plain", started, asked, ended)
	n.complete("second")
	n.awaitOnly("plain")
	n.awaitRecords("plain", started, asked, ended, started)
}

// callOff ends maintenances before, during and after the stop of a pod. What has begun to stop gets
// its grace period.
func callOff(n *staticNode) {
	n.run(staticPod{name: "first", ending: 6 * time.Second}, staticPod{name: "second"})
	want := []string{started}
	for maintenance, end := range map[string]func(string){"deleted": n.delete, "completed": n.complete} {
		n.drain(maintenance)
		n.awaitRecords("first", append(slices.Clone(want), asked)...)
		end(maintenance)
		want = append(want, asked, ended, started)
		n.awaitRecords("first", want...)
		n.awaitOnly("first", "second")
		n.expectRecords("second", started)
	}
	n.drain("after")
	n.awaitDrained("after")
	n.delete("after")
	n.awaitOnly("first", "second")
	n.awaitRecords("first", append(want, asked, ended, started)...)
	n.awaitRecords("second", started, asked, ended, started)
}

// waitForPodWithoutEnd does not kill a pod that does not end before its grace period is over, and
// says so.
func waitForPodWithoutEnd(n *staticNode) {
	n.run(staticPod{name: "endless", ending: time.Hour, grace: 2 * time.Hour}, staticPod{name: "other"})
	n.drain("drain")
	n.awaitRecords("endless", started, asked)
	n.awaitMessage("endless", "Terminating the static pod for the maintenance of node "+n.name)
	n.awaitMessage("other", "one static pod stops at a time")
	n.staysUntil(time.Now().Add(45*time.Second), "the pod ends", func() bool {
		return slices.Equal(n.recordsOf("endless"), []string{started, asked}) && n.areRunning("endless", "other")
	})
	n.expectRecords("other", started)
	if n.isDrained("drain") {
		n.Error("the drain has ended")
	}
	if message := n.drainMessage("drain"); !strings.Contains(message, "Terminating the static pod") || !strings.Contains(message, "default/endless-"+n.name) {
		n.Errorf("the maintenance says %q", message)
	}
}
