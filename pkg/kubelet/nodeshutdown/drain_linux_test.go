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

package nodeshutdown

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown/systemd"
)

var maintenances = coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenances")

func stageOf(obj apiruntime.Object) string {
	return string(obj.(*coordinationv1alpha1.NodeMaintenance).Spec.Stage)
}

func TestShutdownWaitsForDrain(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		n.logind.expectLocks(1)
		n.logind.say(true)
		n.run(600)
		if !n.hasMaintenance("Drain") {
			t.Error("no maintenance drains the node")
		}
		obj, err := n.client.Tracker().Get(maintenances, "", "graceful-shutdown-n1")
		if err != nil {
			t.Fatal(err)
		}
		// Pods that are not critical leave first, as without a drain.
		if plan := obj.(*coordinationv1alpha1.NodeMaintenance).Spec.DrainPlan; !slices.Contains(plan, v1.DrainPlanEntry{PodType: v1.PodTypeDefault, PodPriority: 1999999999}) {
			t.Errorf("plan %v", plan)
		}
		n.expectServing(true)
		n.logind.expectLocks(1)
		n.remove("a", "b", "critical")
		n.run(1)
		n.expectServing(false)
		n.logind.expectLocks(0)
		n.expectKilled()
	})
}

// The termination of pods gets the time that it asks for.
func TestDelayIsTooShort(t *testing.T) {
	onNode(t, 90*time.Second, func(n *testNode) {
		n.logind.say(true)
		n.run(30)
		n.remove("a")
		n.run(29)
		n.expectServing(true)
		n.run(1)
		n.expectServing(false)
		n.expectEvent(nodemaintenance.ShutdownDelayTooShortReason)
		n.run(9)
		n.logind.expectLocks(1)
		n.run(8)
		n.logind.expectLocks(0)
		n.expectKilled("b/20", "critical/10")
	})
	onNode(t, 30*time.Second, func(n *testNode) {
		n.expectEvent(`Raise InhibitDelayMaxSec of logind (UID "u1")`) // At the start already.
		n.logind.say(true)
		n.expectServing(false)
	})
}

// After each cancellation, the kubelet has the lock again.
func TestLockAfterCancellations(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		for range 3 {
			n.logind.say(true)
			n.run(10)
			n.logind.expectLocks(1)
			n.logind.say(false)
			n.run(10)
			n.logind.expectLocks(1)
			n.expectServing(true)
			if !n.hasMaintenance("Complete") {
				t.Error("the maintenance has not ended")
			}
		}
		pods := n.activePods()
		for range 3 {
			n.remove("a", "b", "critical")
			n.logind.say(true)
			n.run(1)
			n.logind.expectLocks(0)
			n.expectServing(false)
			n.setPods(pods)
			n.logind.say(false)
			n.run(1)
			if n.shutdown.IsInProgress() {
				t.Error("the shutdown is in progress")
			}
			n.logind.expectLocks(1)
			n.expectServing(true)
		}
	})
}

func TestTerminationStopsForMaintenance(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		n.setAway(true)
		n.logind.say(true)
		n.run(4)
		n.expectServing(true)
		n.expectSyncs(0)
		n.run(3)
		n.expectServing(false)
		n.expectSyncs(1)
		n.setAway(false)
		n.run(3)
		n.expectServing(true)
		n.expectSyncs(2)
		n.run(60)
		n.logind.expectLocks(1)
		n.expectServing(true)
		n.expectKilled("a/20", "b/20")
		n.remove("critical")
		n.run(1)
		n.logind.expectLocks(0)
		n.expectServing(false)
	})
	// The API server does not come back.
	onNode(t, time.Hour, func(n *testNode) {
		n.setAway(true)
		n.logind.say(true)
		n.run(20)
		n.logind.expectLocks(1)
		n.expectServing(false)
		n.run(3)
		n.logind.expectLocks(0)
		n.expectServing(false)
		n.expectKilled("a/20", "b/20", "critical/10")
	})
	// The shutdown is canceled.
	onNode(t, time.Hour, func(n *testNode) {
		n.setAway(true)
		n.logind.say(true)
		n.run(7)
		n.expectServing(false)
		n.logind.say(false)
		n.run(60)
		n.expectServing(true)
		n.logind.expectLocks(1)
		if len(n.activePods()) != 1 {
			t.Errorf("%d pods are left", len(n.activePods()))
		}
	})
}

func TestBusRestartsDuringDrain(t *testing.T) {
	for _, isCanceled := range []bool{false, true} {
		onNode(t, 10*time.Minute, func(n *testNode) {
			n.logind.say(true)
			n.run(30)
			n.logind.disconnect(!isCanceled)
			n.run(60)
			n.logind.expectLocks(1)
			n.expectServing(true)
			if isCanceled {
				if !n.hasMaintenance("Complete") {
					t.Error("the maintenance has not ended")
				}
				return
			}
			// The limit is that of the shutdown: 10 minutes, less 30 seconds.
			n.run(600 - 30 - 30 - 60 - 1)
			n.expectServing(true)
			n.run(1)
			n.expectServing(false)
			n.run(30)
			n.logind.expectLocks(0)
		})
	}
}

func TestKubeletRestartsDuringDrain(t *testing.T) {
	restart := func(n *testNode) {
		n.logind.say(true)
		n.run(30)
		n.stop()
		n.logind.forget(true) // The process has ended.
		n.start()
		n.run(10)
		n.logind.expectLocks(0)
		n.expectServing(true)
		if !n.hasMaintenance("Drain") {
			n.Error("no maintenance drains the node")
		}
	}
	onNode(t, time.Hour, func(n *testNode) {
		restart(n)
		n.remove("a", "b", "critical")
		n.run(1)
		n.expectServing(false)
	})
	onNode(t, time.Hour, func(n *testNode) {
		restart(n)
		n.logind.say(false)
		n.run(1)
		n.expectServing(true)
		n.logind.expectLocks(1)
		if !n.hasMaintenance("Complete") {
			t.Error("the maintenance has not ended")
		}
	})
}

// Where systemd keeps the lock, a kubelet that restarts during a shutdown has it again, with and without a drain.
func TestLockOutlastsKubelet(t *testing.T) {
	restart := func(n *testNode) {
		n.stop()
		n.logind.forget(n.logind.shuttingDown)
		n.start()
		n.run(1)
	}
	begin := func(n *testNode) {
		n.logind.stored = map[systemd.InhibitLock]bool{}
		n.logind.say(true)
		n.run(30)
		n.logind.expectStored(1)
		for range 2 {
			restart(n)
			n.logind.expectLocks(1)
			n.logind.expectStored(1)
			n.expectServing(true)
		}
	}
	onNode(t, time.Hour, func(n *testNode) {
		begin(n)
		n.remove("a", "b", "critical")
		n.run(1)
		n.expectServing(false)
		n.logind.expectLocks(0)
		n.logind.expectStored(0)
	})
	onNode(t, time.Hour, func(n *testNode) {
		begin(n)
		n.logind.say(false)
		n.run(1)
		n.expectServing(true)
		n.logind.expectLocks(1)
		n.logind.expectStored(0)
		// Nothing is kept without a shutdown: a kubelet that does not know of the store would not take it.
		restart(n)
		n.logind.expectLocks(1)
		n.logind.expectStored(0)
	})
	// The shutdown is canceled while the kubelet is away.
	onNode(t, time.Hour, func(n *testNode) {
		begin(n)
		n.stop()
		n.logind.forget(false)
		n.start()
		n.run(1)
		n.expectServing(true)
		n.logind.expectLocks(1)
		n.logind.expectStored(0)
	})
	// Also if logind grants no other lock, so that the manager does not release this one.
	onNode(t, time.Hour, func(n *testNode) {
		begin(n)
		n.logind.setBusy(true)
		n.logind.say(false)
		n.run(1)
		n.logind.expectStored(0)
		n.logind.setBusy(false)
	})
	// Without a drain, the pods terminate again.
	onNode(t, time.Hour, func(n *testNode) {
		n.stop()
		n.logind.forget(false)
		n.logind.stored, n.isPlain = map[systemd.InhibitLock]bool{}, true
		n.start()
		n.run(1)
		n.logind.expectStored(0)
		n.logind.say(true)
		n.run(1)
		n.expectServing(false)
		n.logind.expectStored(1)
		restart(n)
		n.expectServing(false)
		n.logind.expectLocks(1)
		n.run(60)
		n.logind.expectLocks(0)
		n.logind.expectStored(0)
		if len(n.activePods()) > 0 || n.hasMaintenance("Drain") {
			t.Error("pods are left, or there is a maintenance")
		}
	})
}

// expectCondition checks the condition GracefulNodeShutdownInProgress of the node.
func (n *testNode) expectCondition(status v1.ConditionStatus, reason string) {
	n.Helper()
	node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{
		Type: v1.NodeGracefulNodeShutdownInProgress, Status: v1.ConditionUnknown, Reason: maintenance.NoShutdownReason,
	}}}}
	if err := n.shutdown.SetCondition(n.Context(), node); err != nil {
		n.Error(err)
	}
	if c := node.Status.Conditions[0]; c.Status != status || c.Reason != reason {
		n.Errorf("condition %s, %s, want %s, %s", c.Status, c.Reason, status, reason)
	}
}

// The condition of the node says that pods are terminated in every graceful shutdown, and only then: controllers
// create none for it.
func TestConditionOfShutdowns(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		n.stop()
		n.logind.forget(false)
		n.isPlain = true
		n.start()
		n.run(1)
		n.expectCondition(v1.ConditionFalse, maintenance.NoShutdownReason)
		n.logind.say(true)
		n.expectCondition(v1.ConditionTrue, maintenance.ShutdownTerminatingReason)
		n.logind.say(false)
		n.run(60)
		n.expectCondition(v1.ConditionFalse, maintenance.NoShutdownReason)
	})
	onNode(t, 90*time.Second, func(n *testNode) {
		n.logind.say(true)
		n.run(30)
		n.expectCondition(v1.ConditionTrue, maintenance.ShutdownReason)
		n.run(31) // The drain takes too long.
		n.expectCondition(v1.ConditionTrue, maintenance.ShutdownTerminatingReason)
	})
	// A kubelet that restarts does not say that it is over before it knows.
	onNode(t, time.Hour, func(n *testNode) {
		n.logind.say(true)
		n.run(30)
		n.stop()
		n.logind.forget(true)
		shutdown := nodemaintenance.NewShutdown(t.Context(), nodemaintenance.ShutdownConfig{
			Directory: n.directory, BootID: func() string { return "boot-1" }, SyncNodeStatus: func(context.Context) {},
		})
		n.shutdown = shutdown
		n.expectCondition(v1.ConditionTrue, maintenance.ShutdownReason)
		n.start()
		n.expectCondition(v1.ConditionTrue, maintenance.ShutdownReason)
	})
}

// A logind that does not say whether the machine shuts down: the record does.
func TestKubeletRestartsWithSimpleLogind(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		n.stop()
		n.logind.forget(false)
		n.logind.isSimple = true
		n.start()
		n.logind.say(true)
		n.run(30)
		n.stop()
		n.logind.forget(false) // It grants a lock.
		n.start()
		n.run(10)
		n.logind.expectLocks(1)
		n.remove("a", "b", "critical")
		n.run(1)
		n.expectServing(false)
		n.logind.expectLocks(0)
	})
}

// Many shutdowns that are called off, some before the kubelet has done anything, leave one lock.
func TestManyCancellations(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		n.run(1)
		before := runtime.NumGoroutine()
		for i := range 100 {
			n.logind.say(true)
			n.run(i % 3)
			n.logind.say(false)
			n.run(i % 2)
		}
		n.run(100)
		n.logind.expectLocks(1)
		n.expectServing(true)
		if files := n.manager.(*managerImpl).draining.locks.files; len(files) != 1 {
			t.Errorf("the kubelet notes the locks %v", files)
		}
		if after := runtime.NumGoroutine(); after > before+5 {
			t.Errorf("%d goroutines, %d before", after, before)
		}
		n.remove("a", "b", "critical")
		n.logind.say(true)
		n.run(1)
		n.logind.expectLocks(0)
	})
}

// logind says twice that the machine shuts down, before and after the end of the drain.
func TestShutdownIsSaidTwice(t *testing.T) {
	onNode(t, time.Hour, func(n *testNode) {
		n.logind.say(true)
		n.run(10)
		n.logind.say(true)
		n.run(10)
		n.logind.expectLocks(1)
		n.expectServing(true)
		n.remove("a", "b", "critical")
		n.run(1)
		n.logind.say(true)
		n.run(1)
		n.logind.expectLocks(0)
		n.expectServing(false)
		n.logind.say(false)
		n.run(1)
		n.logind.expectLocks(1)
		n.expectServing(true)
	})
}

// failingConnection is a connection to a logind that refuses all.
type failingConnection struct {
	dbusInhibiter
	isPreparing    bool
	preparingError error
}

var errFailing = errors.New("failing")

func (failingConnection) InhibitShutdown() (systemd.InhibitLock, error)    { return 0, errFailing }
func (failingConnection) MonitorShutdown(klog.Logger) (<-chan bool, error) { return nil, errFailing }
func (c failingConnection) PreparingForShutdown() (isPreparing bool, err error) {
	return c.isPreparing, c.preparingError
}

func TestFailingLogind(t *testing.T) {
	inhibiter := func(c failingConnection) *drainingInhibiter {
		return &drainingInhibiter{dbusInhibiter: c, draining: &draining{locks: newInhibitLocks(fakeStore{&fakeLogind{}})}, ctx: t.Context(), manager: &managerImpl{}}
	}
	if _, err := inhibiter(failingConnection{}).InhibitShutdown(); !errors.Is(err, errFailing) {
		t.Errorf("a lock without a shutdown: %v", err)
	}
	if lock, err := inhibiter(failingConnection{isPreparing: true}).InhibitShutdown(); err != nil || lock == 0 {
		t.Errorf("lock %d, %v in a shutdown", lock, err)
	}
	if _, err := inhibiter(failingConnection{}).MonitorShutdown(klog.Logger{}); !errors.Is(err, errFailing) {
		t.Errorf("events without a connection: %v", err)
	}
	if _, known := inhibiter(failingConnection{preparingError: errFailing}).isShuttingDown(); known {
		t.Error("it is known whether the machine shuts down")
	}
}

func TestWatchWithoutShutdowns(t *testing.T) {
	if Watch(managerStub{}, nil, true) {
		t.Error("a manager that does not wait for shutdowns drains")
	}
}

// Files of the kubelet before that no lock has taken over are closed with the last lock: logind would wait for them.
func TestReleaseClosesInheritedFiles(t *testing.T) {
	logind := &fakeLogind{t: t, files: map[systemd.InhibitLock]bool{7: true, 8: true}, stored: map[systemd.InhibitLock]bool{7: true, 8: true}}
	locks := newInhibitLocks(fakeStore{logind})
	lock, held := locks.share()
	if !held {
		t.Fatal("no file was inherited")
	}
	if err := locks.release(lock, logind.ReleaseInhibitLock); err != nil {
		t.Fatal(err)
	}
	if len(logind.files) > 0 {
		t.Errorf("open are %v", logind.files)
	}
	logind.expectStored(0)
}
