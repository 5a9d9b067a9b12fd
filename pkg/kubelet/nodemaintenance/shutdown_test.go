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
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
)

// pod returns a node with one pod that needs this time to leave.
func pod(seconds int) map[string]time.Duration {
	return map[string]time.Duration{"a": time.Duration(seconds) * time.Second}
}

func (m *machine) expectResults(want map[metrics.ShutdownDrainResult]int, podsLeft int) {
	m.t.Helper()
	var stored shutdownRecord
	if err := readShutdownRecord(m.directory, &stored); err != nil {
		m.t.Fatal(err)
	}
	if wanted := (shutdownRecord{BootID: stored.BootID, IsOwn: stored.IsOwn, StartTime: stored.StartTime, Results: want, PodsLeft: podsLeft}); !stored.equal(wanted) {
		m.t.Errorf("the record has results %v and %d pods left, want %v and %d", stored.Results, stored.PodsLeft, want, podsLeft)
	}
}

func (m *machine) expectTerminations(want int, isShuttingDown bool) {
	m.t.Helper()
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.terminations != want || m.shuttingDown != isShuttingDown {
		m.t.Errorf("%d terminations, in progress %t, want %d, %t", m.terminations, m.shuttingDown, want, isShuttingDown)
	}
}

func (m *machine) expectCalls(want string) {
	m.t.Helper()
	if got := m.calls(); got != want {
		m.t.Errorf("calls %q, want %q", got, want)
	}
}

func TestShutdownDrainsNode(t *testing.T) {
	onMachine(t, map[string]time.Duration{"a": 20 * time.Second, "b": 40 * time.Second}, func(m *machine) {
		m.run(600)
		m.expectCalls("") // Without a shutdown.
		m.shutDown(time.Hour)
		if !m.shutdown.IsInProgress() || m.syncs != 1 {
			t.Errorf("in progress %t, %d writes of the status of the node", m.shutdown.IsInProgress(), m.syncs)
		}
		m.run(30)
		m.expectDraining()
		m.expectStage(stageDrain)
		m.run(15)
		m.expectOutcome(ShutdownProceeds)
		m.expectEvents(DrainingForShutdownReason, DrainedForShutdownReason)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Drained: 1}, 0)
		m.expectTerminations(0, false)
		m.run(600)
		m.expectStage(stageDrain) // Until the next boot.
		m.calls()

		m.reboot("boot-2")
		m.expectStage(stageComplete)
		m.expectEvents(ShutdownMaintenanceEndedReason)
		m.expectCalls("get patch")
		if m.shutdown.IsInProgress() {
			t.Error("a shutdown is in progress after the boot")
		}
		m.reboot("boot-3")
		m.expectCalls("") // After a boot without a shutdown before.

		// The next shutdown replaces the maintenance.
		m.set(func() { m.pods = pod(10) })
		m.shutDown(time.Hour)
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		m.expectStage(stageDrain)
		m.expectCalls("create get delete create get")
		if got := m.maintenance(shutdownMaintenance).Annotations[maintenance.BootIDAnnotation]; got != "boot-3" {
			t.Errorf("the maintenance is that of %q", got)
		}
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Drained: 2}, 0)
	})
}

func TestShutdownWithoutPods(t *testing.T) {
	onMachine(t, nil, func(m *machine) {
		m.shutDown(time.Hour)
		m.expectOutcome(ShutdownProceeds)
		m.expectCalls("")
	})
}

func TestShutdownIsCanceled(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		for i, uid := range []types.UID{"uid-1", "uid-3"} { // uid-2 is that of the creation which fails.
			m.shutDown(time.Hour)
			m.run(20)
			m.expectStage(stageDrain)
			if got := m.maintenance(shutdownMaintenance).UID; got != uid {
				t.Errorf("UID %s, want %s", got, uid)
			}
			m.events <- false
			m.run(1)
			m.expectOutcome(ShutdownCanceled)
			m.expectStage(stageComplete)
			m.expectEvents(DrainingForShutdownReason, ShutdownCanceledReason, ShutdownMaintenanceEndedReason)
			if m.shutdown.IsInProgress() || m.shutdown.WasInterrupted() {
				t.Error("the shutdown is in progress")
			}
			for range 2 {
				if want := 2 * (i + 1); m.syncs != want {
					t.Errorf("%d writes of the status of the node, want %d", m.syncs, want)
				}
				m.shutdown.Cancel(t.Context()) // Changes nothing.
				m.run(1)
			}
		}
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Canceled: 2}, 0)
		m.expectTerminations(0, false)
	})
}

// The maintenance ends also if the API server comes back later, even after a boot, and even if the
// creation takes effect only then.
func TestShutdownIsCanceledDuringOutage(t *testing.T) {
	for _, isRebooted := range []bool{false, true} {
		onMachine(t, pod(60), func(m *machine) {
			m.shutDown(time.Hour)
			m.run(20)
			if m.shutdown.IsEnding() {
				t.Error("the maintenance ends during the shutdown")
			}
			m.set(func() { m.frozen = errRefusedConnection })
			m.events <- false
			m.run(100)
			m.expectOutcome(ShutdownCanceled)
			m.stopKubelet()
			m.startKubelet()
			if m.shutdown.WasInterrupted() {
				t.Error("the shutdown counts as interrupted")
			}
			m.shutdown.Cancel(t.Context())
			m.run(1)
			if !m.shutdown.IsEnding() {
				t.Error("the maintenance does not end")
			}
			m.expectStage(stageDrain)
			if m.shutdown.WasInterrupted() {
				t.Error("the shutdown counts as interrupted")
			}
			if isRebooted {
				m.reboot("boot-2")
			}
			m.set(func() { m.frozen = nil })
			m.run(6)
			m.expectStage(stageComplete)
		})
	}
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.frozen = context.DeadlineExceeded })
		m.shutDown(time.Hour)
		m.run(3)
		m.events <- false
		m.run(2)
		m.set(func() { m.frozen = nil })
		m.run(10)
		m.put(newShutdownMaintenance(shutdownNode, "boot-1", nil))
		m.run(6)
		m.expectStage(stageComplete)
		m.calls()
		m.run(600)
		m.expectCalls("")
	})
}

// A creation that is in progress when the shutdown is canceled ends first.
func TestShutdownIsCanceledDuringCreation(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.answerTime = 3 * time.Second })
		m.shutDown(time.Hour)
		m.run(1)
		m.set(func() { m.answerTime = 0 })
		m.events <- false
		m.run(1)
		m.expectDraining()
		m.run(2)
		m.expectOutcome(ShutdownCanceled)
		m.expectStage(stageComplete)
	})
}

// The kubelet does not forget a creation that is in progress when the drain ends, because all pods
// have left or because the connection to logind is lost, and the shutdown is canceled afterwards.
func TestShutdownIsCanceledAfterDrainDuringCreation(t *testing.T) {
	for name, end := range map[string]func(*machine){
		"drained": func(m *machine) { m.set(func() { m.pods = nil }) },
		"unknown": func(m *machine) { close(m.events) },
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, pod(60), func(m *machine) {
				m.set(func() { m.answerTime = 4 * time.Second })
				m.shutDown(time.Hour)
				m.set(func() { m.answerTime = 0 })
				end(m)
				m.run(2)
				m.expectStage("")
				if name == "drained" {
					m.expectOutcome(ShutdownProceeds) // It does not wait.
				}
				m.shutdown.Cancel(t.Context())
				m.run(60)
				m.expectStage(stageComplete)
				if m.shutdown.mustEnd {
					t.Error("the maintenance has not ended")
				}
			})
		})
	}
}

// A shutdown begins before the maintenance of the last one, which was canceled, has ended.
func TestShutdownAgainBeforeEnd(t *testing.T) {
	begin := func(m *machine) {
		m.shutDown(time.Hour)
		m.run(20)
		m.set(func() { m.frozen = errRefusedConnection })
		m.events <- false
		m.run(3)
		m.set(func() { m.frozen = nil })
		m.shutDown(10 * time.Minute)
		m.run(20)
		m.expectStage(stageDrain)
	}
	onMachine(t, pod(60), func(m *machine) {
		begin(m)
		m.run(60)
		m.expectOutcome(ShutdownProceeds)
		// Static pods were stopped for it, and the API server may be one of them.
		if isOver, err := IsMaintenanceOver(m.directory, "boot-2"); !isOver || err != nil {
			t.Errorf("static pods stay away after the boot (%v)", err)
		}
		m.reboot("boot-2")
		m.expectStage(stageComplete)
	})
	onMachine(t, pod(60), func(m *machine) {
		begin(m)
		m.remove(shutdownMaintenance)
		m.run(600)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Canceled: 1, metrics.CalledOff: 1}, 1)
	})
}

// What the API server has answered takes no effect later. The next shutdown does not take the decision
// of an administrator for that.
func TestShutdownAgainAfterEnd(t *testing.T) {
	onMachine(t, pod(600), func(m *machine) {
		m.shutDown(10 * time.Minute)
		m.run(10)
		m.events <- false
		m.run(1)
		m.expectStage(stageComplete)
		m.shutDown(10 * time.Minute)
		m.run(10)
		m.remove(shutdownMaintenance)
		m.run(600)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Canceled: 1, metrics.CalledOff: 1}, 1)
	})
	onMachine(t, pod(600), func(m *machine) {
		m.shutDown(10 * time.Minute)
		m.run(5)
		m.remove(shutdownMaintenance)
		m.events <- false
		m.run(1)
		m.expectCalls("create get")
		m.run(60)
		m.expectCalls("")
	})
	// A request that is in progress does not delay the next drain.
	onMachine(t, pod(600), func(m *machine) {
		m.set(func() { m.endTime = 4 * time.Second })
		m.shutDown(10 * time.Minute)
		m.run(10)
		m.events <- false
		m.run(1)
		m.set(func() { m.syncs = 0 })
		m.shutDown(10 * time.Minute)
		if m.syncs != 1 {
			t.Error("the drain does not begin")
		}
	})
	// A request that hangs is not the last one.
	onMachine(t, pod(600), func(m *machine) {
		m.set(func() { m.endTime = time.Hour })
		m.shutDown(10 * time.Minute)
		m.run(10)
		m.events <- false
		m.run(1)
		m.set(func() { m.endTime = 0 })
		m.run(10)
		m.expectStage(stageComplete)
	})
}

// The end of the last maintenance, which the API server has not answered, takes effect when the next
// shutdown uses the maintenance already: no other client has ended it.
func TestShutdownAgainDuringEnd(t *testing.T) {
	onMachine(t, pod(120), func(m *machine) {
		m.shutDown(time.Hour)
		m.run(20)
		m.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, context.DeadlineExceeded
		})
		m.events <- false
		m.run(1)
		m.shutDown(time.Hour)
		m.run(2)
		ended := m.maintenance(shutdownMaintenance).DeepCopy()
		ended.Spec.Stage = stageComplete
		m.put(ended)
		m.run(12)
		m.expectStage(stageDrain)
		m.run(120)
		m.expectOutcome(ShutdownProceeds)
		m.expectTerminations(0, false)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Canceled: 1, metrics.Drained: 1}, 0)
	})
}

// The node does not have to exist for the maintenance to end.
func TestShutdownIsCanceledWithoutNode(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.nodeError = errors.New("not found") })
		m.reboot("boot-2")
		m.shutDown(time.Hour)
		m.run(20)
		m.expectStage(stageDrain)
		m.events <- false
		m.run(2)
		m.expectStage(stageComplete)
	})
}

// metric returns the sum of the values of a metric, with this label if it has labels.
func metric(t *testing.T, name, label string) (sum float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == label) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// The metrics count the shutdowns of all boots.
func TestShutdownMetrics(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		expect := func(counted, left float64) {
			t.Helper()
			if got := metric(t, "kubelet_shutdown_drains_total", "too_short"); got != counted {
				t.Errorf("%v drains, want %v", got, counted)
			}
			if got := metric(t, "kubelet_shutdown_drain_pods_left", ""); got != left {
				t.Errorf("%v pods left, want %v", got, left)
			}
		}
		before := metric(t, "kubelet_shutdown_drains_total", "too_short")
		expect(before, 0)
		m.shutDown(10 * time.Second)
		m.run(10)
		expect(before+1, 1)
		metrics.SetShutdownPodsLeft(0) // As in another process, except that the counter goes on.
		m.reboot("boot-2")
		expect(before+2, 1)
	})
}

// The events say why pods are terminated.
func TestShutdownEvents(t *testing.T) {
	expect := func(m *machine, want string) {
		t.Helper()
		var last string
		for len(m.recorder.Events) > 0 {
			last = <-m.recorder.Events
		}
		if last != want {
			t.Errorf("event %q, want %q", last, want)
		}
	}
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.frozen = errRefusedConnection })
		m.shutDown(time.Hour)
		m.run(6)
		expect(m, "Warning ShutdownWithoutDrain No maintenance drains the node: terminating its pods until one does: connection refused")
	})
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(-time.Minute)
		expect(m, "Warning ShutdownDelayTooShort The shutdown can be delayed by 0s for the drain, which is too short: terminating 1 pods which are left. Raise InhibitDelayMaxSec of logind")
	})
}

// What the API server answers late does not stop the kubelet.
func TestShutdownCreationHangs(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.answerTime, m.termination = time.Hour, time.Hour
		m.shutDown(time.Hour)
		m.run(6)
		m.expectTerminations(1, true)
		m.set(func() { m.answerTime = 0 })
		m.run(9)
		m.expectTerminations(1, false)
		m.expectStage(stageDrain)
	})
	// It is looked for as long as it can take effect.
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.answerTime = time.Hour })
		m.shutDown(time.Hour)
		m.run(3)
		m.events <- false
		m.run(30)
		m.expectOutcome(ShutdownCanceled)
		m.calls()
		m.run(10)
		m.expectCalls("get")
		m.run(60)
		m.calls()
		m.run(60)
		m.expectCalls("")
	})
}

// A runtime that hangs does not delay the shutdown by much.
func TestShutdownRuntimeHangs(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.runtimeHangs = true })
		m.shutDown(30 * time.Second)
		m.run(36)
		m.expectOutcome(ShutdownProceeds)
	})
}

// The node is cordoned, and not drained.
func TestShutdownOfCordonedNode(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.set(func() { m.idle, m.node.Status.MaintenanceStatus = true, &v1.MaintenanceStatus{} })
		m.shutDown(time.Hour)
		m.run(1)
		m.expectStage(stageDrain)
	})
}

// A maintenance that has ended does not count for the next shutdown, which joins another one.
func TestShutdownForgetsItsMaintenance(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(time.Hour)
		m.run(20)
		if isOver, err := IsMaintenanceOver(m.directory, "boot-2"); !isOver || err != nil {
			t.Errorf("the record does not have the maintenance (%v)", err)
		}
		m.events <- false
		m.run(5)
		for _, action := range m.client.Actions() {
			if action, ok := action.(clienttesting.PatchAction); ok {
				if got, want := string(action.GetPatch()), `{"metadata":{"uid":"uid-1"},"spec":{"stage":"Complete"}}`; got != want {
					t.Errorf("patch %s, want %s", got, want)
				}
			}
		}
		m.put(otherMaintenance())
		m.run(5)
		m.shutDown(time.Hour)
		m.run(5)
		if isOver, err := IsMaintenanceOver(m.directory, "boot-2"); isOver || err != nil {
			t.Errorf("static pods start after the boot (%v), which an administrator has taken away", err)
		}
		m.set(func() { m.frozen = errRefusedConnection })
		m.events <- false
		m.run(10)
		if m.shutdown.IsEnding() {
			t.Error("the maintenance of an administrator counts as that of the shutdown")
		}
	})
}

func TestShutdownDelayIsTooShort(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(30 * time.Second)
		m.run(29)
		m.expectDraining()
		m.run(1)
		m.expectOutcome(ShutdownProceeds)
		m.expectEvents(DrainingForShutdownReason, ShutdownDelayTooShortReason)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.TooShort: 1}, 1)
		m.reboot("boot-2")
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.TooShort: 1}, 1)
		m.expectStage(stageComplete)
	})
	for _, limit := range []time.Duration{0, -time.Minute} {
		onMachine(t, pod(60), func(m *machine) {
			m.shutDown(limit)
			m.expectOutcome(ShutdownProceeds)
			m.expectEvents(ShutdownDelayTooShortReason)
			m.expectCalls("")
			m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.TooShort: 1}, 1)
		})
	}
}

func TestShutdownWithoutAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		// back is when the API server answers, limit that of the drain, in seconds.
		back, limit int
		// canceled is when the shutdown is canceled, 0 for never.
		canceled     int
		outcome      ShutdownOutcome
		terminations int
		result       metrics.ShutdownDrainResult
		stage        coordinationv1alpha1.NodeMaintenanceStage
	}{
		"for a short time":           {back: 3, limit: 600, outcome: ShutdownProceeds, result: metrics.Drained, stage: stageDrain},
		"comes back":                 {back: 9, limit: 600, outcome: ShutdownProceeds, terminations: 1, result: metrics.Drained, stage: stageDrain},
		"comes back after the limit": {back: 10, limit: 8, outcome: ShutdownProceeds, terminations: 1, result: metrics.NotStarted, stage: stageDrain},
		"does not come back":         {back: 600, limit: 600, outcome: ShutdownProceeds, terminations: 1, result: metrics.NotStarted},
		"limit without termination":  {back: 600, limit: 4, outcome: ShutdownProceeds, result: metrics.TooShort},
		"canceled":                   {back: 600, limit: 600, canceled: 9, outcome: ShutdownCanceled, terminations: 1, result: metrics.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, pod(20), func(m *machine) {
				m.set(func() { m.frozen = errRefusedConnection })
				m.shutDown(time.Duration(test.limit) * time.Second)
				for second := range 60 {
					if second == test.back {
						m.set(func() { m.frozen = nil })
					}
					if second == test.canceled && second > 0 {
						m.events <- false
					}
					m.run(1)
				}
				m.expectOutcome(test.outcome)
				m.expectTerminations(test.terminations, test.result == metrics.NotStarted)
				m.expectStage(test.stage)
				left := 0
				if test.result == metrics.TooShort || test.result == metrics.NotStarted {
					left = 1
				}
				m.expectResults(map[metrics.ShutdownDrainResult]int{test.result: 1}, left)
			})
		})
	}
}

func TestShutdownWithoutControllers(t *testing.T) {
	onMachine(t, pod(20), func(m *machine) {
		m.idle, m.termination = true, time.Hour
		m.shutDown(time.Hour)
		m.run(59)
		m.expectTerminations(0, false)
		m.run(2)
		m.expectTerminations(1, true)
		m.expectEvents(DrainingForShutdownReason, ShutdownWithoutDrainReason)
		m.set(func() { m.idle = false })
		m.run(3)
		m.expectTerminations(1, false)
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		m.expectEvents(DrainingForShutdownReason, DrainedForShutdownReason)
	})
}

func otherMaintenance() *coordinationv1alpha1.NodeMaintenance {
	other := newShutdownMaintenance(shutdownNode, "", nil)
	other.Name, other.UID, other.Annotations = "other", "other", nil
	return other
}

// forbidRead makes the API server one without the gate that gives kubelets rights.
func (m *machine) forbidRead() {
	m.client.PrependReactor("get", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errForbidden
	})
}

func TestShutdownJoinsMaintenance(t *testing.T) {
	onMachine(t, pod(30), func(m *machine) {
		m.put(otherMaintenance())
		m.run(10)
		m.shutDown(time.Hour)
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		m.expectCalls("get") // Once: is it that of an earlier shutdown?
		m.reboot("boot-2")
		if other := m.maintenance("other"); other.Spec.Stage != stageDrain {
			t.Errorf("the other maintenance is in the stage %s", other.Spec.Stage)
		}
	})
	// The other maintenance ends before the pods have left.
	onMachine(t, pod(60), func(m *machine) {
		m.put(otherMaintenance())
		m.run(10)
		m.shutDown(time.Hour)
		m.run(10)
		m.expectStage("")
		m.remove("other")
		m.run(3)
		m.expectStage(stageDrain)
		m.run(60)
		m.expectOutcome(ShutdownProceeds)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Drained: 1}, 0)
	})
	// It ends after a long time, and the maintenance of the last shutdown has to be deleted first. The
	// times in which the API server and the controllers must act count from then on.
	onMachine(t, pod(300), func(m *machine) {
		m.put(otherMaintenance())
		old := newShutdownMaintenance(shutdownNode, "boot-0", nil)
		old.UID, old.Spec.Stage = "old", stageComplete
		m.put(old)
		m.run(10)
		m.shutDown(time.Hour)
		m.run(120)
		m.remove("other")
		m.set(func() { m.idle, m.node.Status.MaintenanceStatus = true, nil })
		m.run(20)
		m.expectStage(stageDrain)
		m.set(func() { m.idle = false })
		m.run(300)
		m.expectTerminations(0, false)
		m.expectOutcome(ShutdownProceeds)
	})
	// The API server does not have the gate.
	onMachine(t, pod(30), func(m *machine) {
		m.put(otherMaintenance())
		m.run(10)
		m.forbidRead()
		m.shutDown(time.Hour)
		m.run(30)
		m.expectTerminations(0, false)
		m.expectOutcome(ShutdownProceeds)
	})
	// The API server is away.
	onMachine(t, pod(60), func(m *machine) {
		m.put(otherMaintenance())
		m.run(10)
		m.set(func() { m.frozen = errRefusedConnection })
		m.shutDown(time.Hour)
		m.run(10)
		m.expectTerminations(1, true)
		m.set(func() { m.frozen = nil })
		m.run(2)
		m.expectTerminations(1, false)
		m.expectStage("")
	})
}

// Administrators can end the maintenance. The node shuts down all the same, so the pods that are left
// are terminated at the end of the delay.
func TestShutdownIsCalledOff(t *testing.T) {
	for name, end := range map[string]func(*machine){
		"deleted": func(m *machine) { m.remove(shutdownMaintenance) },
		"being deleted": func(m *machine) {
			changed := m.maintenance(shutdownMaintenance).DeepCopy()
			changed.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			m.put(changed)
		},
		"completed": func(m *machine) {
			changed := m.maintenance(shutdownMaintenance).DeepCopy()
			changed.Spec.Stage = stageComplete
			m.put(changed)
		},
		"replaced": func(m *machine) {
			changed := m.maintenance(shutdownMaintenance).DeepCopy()
			changed.UID = "other"
			m.put(changed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, pod(600), func(m *machine) {
				m.shutDown(5 * time.Minute)
				m.run(20)
				end(m)
				m.run(200)
				m.expectDraining()
				m.expectTerminations(0, false)
				m.expectEvents(DrainingForShutdownReason, ShutdownWithoutDrainReason)
				m.calls()
				m.run(50)
				m.expectCalls("")
				m.run(50)
				m.expectOutcome(ShutdownProceeds)
				m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.CalledOff: 1}, 1)
			})
			onMachine(t, pod(600), func(m *machine) {
				m.shutDown(time.Hour)
				m.run(20)
				end(m)
				m.run(20)
				m.events <- false
				m.calls()
				m.run(1)
				m.expectOutcome(ShutdownCanceled)
				if name != "replaced" {
					m.expectCalls("get") // It has ended already.
				}
			})
		})
	}
}

func TestShutdownFindsMaintenanceOfItsName(t *testing.T) {
	onMachine(t, pod(20), func(m *machine) {
		foreign := newShutdownMaintenance(shutdownNode, "", nil)
		foreign.UID, foreign.Annotations = "foreign", nil
		m.put(foreign)
		m.set(func() { m.idle = true }) // The kubelet does not see that the node drains.
		m.shutDown(time.Hour)
		m.run(3)
		m.set(func() { m.idle = false })
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		if isOver, err := IsMaintenanceOver(m.directory, "boot-2"); isOver || err != nil {
			t.Errorf("static pods start after the boot (%v), which an administrator has taken away", err)
		}
		m.reboot("boot-2")
		m.expectStage(stageDrain) // It is not for the kubelet to end.
	})
	onMachine(t, pod(20), func(m *machine) {
		foreign := newShutdownMaintenance(shutdownNode, "", nil)
		foreign.UID, foreign.Spec.Stage = "foreign", coordinationv1alpha1.NodeMaintenanceStageIdle
		m.put(foreign)
		m.shutDown(time.Hour)
		m.run(10)
		m.expectTerminations(1, true)
	})
	// One that is deleted is gone when the controller has removed its finalizer.
	onMachine(t, pod(20), func(m *machine) {
		old := newShutdownMaintenance(shutdownNode, "", nil)
		old.UID, old.Spec.Stage = "old", stageComplete
		now := otherMaintenance().CreationTimestamp
		old.DeletionTimestamp = &now
		m.put(old)
		m.shutDown(time.Hour)
		m.run(3)
		m.expectCalls("create get create get create get create get")
		// The API server answers, so the controllers get their time.
		m.run(50)
		m.expectTerminations(0, false)
		m.remove(shutdownMaintenance)
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		m.expectTerminations(0, false)
	})
}

// The deletion of a maintenance that is complete does not hit one that another client has created
// since.
func TestShutdownDeletesByUID(t *testing.T) {
	onMachine(t, pod(20), func(m *machine) {
		old := newShutdownMaintenance(shutdownNode, "", nil)
		old.UID, old.Spec.Stage = "old", stageComplete
		m.put(old)
		m.shutDown(time.Hour)
		m.run(3)
		for _, action := range m.client.Actions() {
			if action, ok := action.(clienttesting.DeleteActionImpl); ok {
				if p := action.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "old" {
					t.Errorf("preconditions %v", p)
				}
				return
			}
		}
		t.Error("no deletion")
	})
}

func TestKubeletRestartsDuringShutdown(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(50 * time.Second)
		m.run(20)
		m.stopKubelet()
		m.run(10)
		m.startKubelet()
		m.run(1)
		m.expectStage(stageDrain)
		if !m.shutdown.WasInterrupted() || !m.shutdown.IsInProgress() {
			t.Error("the interrupted shutdown is not known")
		}
		m.calls()
		m.shutDown(50 * time.Second)
		m.run(18)
		m.expectDraining()
		m.expectCalls("get") // No second maintenance.
		m.run(2)
		m.expectOutcome(ShutdownProceeds) // The limit is about the whole shutdown.
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.TooShort: 1}, 1)
	})
	// The clock was set back in between.
	onMachine(t, pod(600), func(m *machine) {
		m.shutDown(50 * time.Second)
		m.run(20)
		m.stopKubelet()
		changed := m.shutdown.record.clone()
		changed.StartTime = changed.StartTime.Add(time.Hour)
		if err := writeShutdownRecord(m.directory, changed); err != nil {
			t.Fatal(err)
		}
		m.startKubelet()
		m.shutDown(50 * time.Second)
		m.run(50)
		m.expectOutcome(ShutdownProceeds)
	})
	// The shutdown was canceled in between.
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(time.Hour)
		m.run(20)
		m.stopKubelet()
		m.startKubelet()
		m.shutdown.Cancel(t.Context())
		m.run(1)
		m.expectStage(stageComplete)
		if m.shutdown.WasInterrupted() {
			t.Error("the shutdown counts as interrupted")
		}
	})
	// The maintenance was ended in between: the drain begins again.
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(time.Hour)
		m.run(20)
		m.stopKubelet()
		m.remove(shutdownMaintenance)
		m.run(5)
		m.startKubelet()
		m.shutDown(time.Hour)
		m.run(3)
		m.expectStage(stageDrain)
	})
}

// Without the record, such as on a new disk, the maintenance is found if the node is in one.
func TestShutdownRecordIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		maintenance *coordinationv1alpha1.NodeMaintenance
		status      *v1.MaintenanceStatus
		forbidden   bool
		calls       string
		stage       coordinationv1alpha1.NodeMaintenanceStage
	}{
		"of an earlier boot":    {maintenance: newShutdownMaintenance(shutdownNode, "boot-1", nil), calls: "get patch", stage: stageComplete},
		"of this boot":          {maintenance: newShutdownMaintenance(shutdownNode, "boot-2", nil), calls: "get", stage: stageDrain},
		"of another client":     {maintenance: otherMaintenance(), calls: "get"},
		"no maintenance at all": {},
		"no drain":              {status: &v1.MaintenanceStatus{}},
		"forbidden":             {maintenance: otherMaintenance(), forbidden: true, calls: "get"},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, pod(600), func(m *machine) {
				if test.maintenance != nil {
					m.put(test.maintenance)
				}
				if test.status != nil {
					m.set(func() { m.idle, m.node.Status.MaintenanceStatus = true, test.status })
				}
				if test.forbidden {
					m.forbidRead()
				}
				m.run(5)
				m.reboot("boot-2")
				m.run(600)
				m.expectCalls(test.calls)
				m.expectStage(test.stage)
				m.run(60)
				m.expectCalls("")
			})
		})
	}
}

// A kubelet that has created a maintenance ends it also if the API server is one without the gate for
// some time.
func TestShutdownMayNotBeEnded(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(time.Hour)
		m.run(20)
		m.set(func() { m.frozen = errForbidden })
		m.events <- false
		m.run(60)
		m.set(func() { m.frozen = nil })
		m.run(6)
		m.expectStage(stageComplete)
	})
}

// TestShutdownDoesNotWaitForPodsThatStay verifies that a machine goes down when all pods have left that leave in a
// maintenance: with the pods that a policy skips or that nobody stops, it would take the whole delay.
func TestShutdownDoesNotWaitForPodsThatStay(t *testing.T) {
	drained := func(m *machine, status v1.ConditionStatus) {
		m.set(func() { m.node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeDrained, Status: status}} })
	}
	for _, joins := range []bool{false, true} {
		onMachine(t, map[string]time.Duration{"a": 20 * time.Second, "stays": 24 * time.Hour}, func(m *machine) {
			if joins {
				m.put(&coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stageDrain}})
				m.run(2)
			}
			drained(m, v1.ConditionFalse)
			m.shutDown(time.Hour)
			m.run(60)
			m.expectDraining()
			drained(m, v1.ConditionTrue)
			m.run(4)
			m.expectDraining() // The kubelet may have seen an old status.
			drained(m, v1.ConditionFalse)
			m.run(60)
			m.expectDraining()
			drained(m, v1.ConditionTrue)
			m.run(6)
			m.expectOutcome(ShutdownProceeds)
			m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.PodsStay: 1}, 1)
		})
	}
	// A pod that has begun to end gets its time.
	onMachine(t, map[string]time.Duration{"stays": 24 * time.Hour}, func(m *machine) {
		m.hidden = []types.NamespacedName{{Namespace: testNamespace, Name: "ends"}}
		drained(m, v1.ConditionTrue)
		m.shutDown(time.Hour)
		m.run(60)
		m.expectDraining()
		m.set(func() { m.hidden = nil })
		m.run(6)
		m.expectOutcome(ShutdownProceeds)
	})
	// Nobody says so without a maintenance.
	onMachine(t, map[string]time.Duration{"stays": 24 * time.Hour}, func(m *machine) {
		m.idle = true
		drained(m, v1.ConditionTrue)
		m.shutDown(time.Hour)
		m.run(30)
		m.expectDraining()
	})
}

func TestShutdownWaitsForStaticPods(t *testing.T) {
	key := types.NamespacedName{Namespace: testNamespace, Name: "etcd"}
	onMachine(t, nil, func(m *machine) {
		// The kubelet does not see a pod that it stops. The runtime does.
		m.hidden = []types.NamespacedName{key}
		m.shutDown(time.Hour)
		m.run(60)
		m.expectDraining()
		m.set(func() { m.hidden, m.runtimeError = nil, errors.New("no runtime") })
		m.run(60)
		m.expectDraining()
		// Its end has to be stored, or the pod would start with the machine.
		m.holds.pods[key] = podState{Namespace: key.Namespace, Name: key.Name, State: ended}
		m.set(func() { m.runtimeError = nil })
		m.run(60)
		m.expectDraining()
		if err := m.holds.confirm(key); err != nil {
			t.Fatal(err)
		}
		m.run(1)
		m.expectOutcome(ShutdownProceeds)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Drained: 1}, 0)
	})
	// The kubelet does not stop a pod that the control plane needs.
	onMachine(t, map[string]time.Duration{"a": 20 * time.Second, "etcd": time.Hour}, func(m *machine) {
		m.holds.pods[key] = podState{Namespace: key.Namespace, Name: key.Name, State: refused}
		m.shutDown(time.Hour)
		m.run(10)
		m.expectDraining()
		m.run(15)
		m.expectOutcome(ShutdownProceeds)
		m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.StaticPodsNeeded: 1}, 1)
	})
}

func TestShutdownIsNotKnownAnyMore(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.shutDown(time.Hour)
		m.run(10)
		m.events <- true // As logind says again.
		m.run(1)
		m.expectDraining()
		close(m.events)
		m.run(1)
		m.expectOutcome(ShutdownUnknown)
		m.expectStage(stageDrain)
		if !m.shutdown.IsInProgress() || !m.shutdown.WasInterrupted() {
			t.Error("the shutdown is not in progress")
		}
	})
}

// After the next boot, static pods start again without the API server: it may be one of them. Those
// that an administrator has taken away stay away.
func TestStaticPodsAfterShutdown(t *testing.T) {
	expect := func(m *machine, bootID string, want bool) {
		m.t.Helper()
		if got, err := IsMaintenanceOver(m.directory, bootID); err != nil || got != want {
			m.t.Errorf("over in %s: %t, %v, want %t", bootID, got, err, want)
		}
	}
	onMachine(t, pod(20), func(m *machine) {
		expect(m, "boot-1", false)
		m.shutDown(time.Hour)
		m.run(30)
		expect(m, "boot-1", false)
		expect(m, "boot-2", true)
		m.set(func() { m.frozen = errRefusedConnection })
		m.reboot("boot-2")
		if !m.shutdown.IsEnding() {
			t.Error("the maintenance is not to be ended")
		}
		m.set(func() { m.frozen = nil })
		m.run(6)
		if m.shutdown.IsEnding() {
			t.Error("the maintenance has not ended")
		}
		expect(m, "boot-2", false)
		expect(m, "boot-3", false)
	})
	onMachine(t, pod(20), func(m *machine) {
		m.put(otherMaintenance())
		m.run(10)
		m.shutDown(time.Hour)
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		expect(m, "boot-2", false)
	})
	onMachine(t, nil, func(m *machine) {
		a, b := types.NamespacedName{Namespace: testNamespace, Name: "a"}, types.NamespacedName{Namespace: testNamespace, Name: "b"}
		m.holds.pods[a] = podState{Namespace: a.Namespace, Name: a.Name, State: held}
		m.holds.pods[b] = podState{Namespace: b.Namespace, Name: b.Name, State: refused}
		released, err := m.holds.ReleaseAll()
		if err != nil || len(released) != 1 || released[0] != a.String() || !m.holds.IsEmpty() {
			t.Errorf("released %q, %v", released, err)
		}
	})
}

// An attempt to end the maintenance of an earlier shutdown has stopped before a drain begins: it
// would end the new one.
func TestShutdownStopsEnding(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		m.run(1) // The kubelet has started.
		stopped := false
		m.shutdown.stopEnding = func() {
			stopped = true
			m.expectCalls("")
		}
		m.shutdown.mustEnd = true
		m.shutDown(time.Hour)
		if !stopped || m.shutdown.mustEnd {
			t.Errorf("stopped %t, still to end %t", stopped, m.shutdown.mustEnd)
		}
	})
}

func TestShutdownRecordIsUnusable(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON":       "{",
		"wrong version": `{"version":2,"bootID":"boot-0","podsLeft":0}`,
		"wrong number":  `{"version":1,"results":{"drained":-1},"podsLeft":0}`,
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, pod(20), func(m *machine) {
				if err := os.WriteFile(filepath.Join(m.directory, shutdownRecordFile), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				m.reboot("boot-1")
				m.expectCalls("")
				m.shutDown(time.Hour)
				m.run(30)
				m.expectOutcome(ShutdownProceeds)
				m.expectResults(map[metrics.ShutdownDrainResult]int{metrics.Drained: 1}, 0)
			})
		})
	}
	// The drain does not depend on the disk.
	onMachine(t, pod(20), func(m *machine) {
		if err := os.RemoveAll(m.directory); err != nil {
			t.Fatal(err)
		}
		m.shutDown(time.Hour)
		m.run(30)
		m.expectOutcome(ShutdownProceeds)
		m.reboot("boot-2")
		m.expectStage(stageComplete)
	})
}
