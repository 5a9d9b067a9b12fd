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
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
)

// TestAnyOrderOfShutdownEvents lets random events happen. In the end, when the machine runs and the
// control plane works, no maintenance of a shutdown is left, and the next shutdown drains the node.
func TestAnyOrderOfShutdownEvents(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onMachine(t, nil, func(m *machine) {
				random := rand.New(rand.NewPCG(seed, 2))
				h := &history{machine: m, random: random}
				for range 40 {
					h.happen()
					m.run(random.IntN(25))
					h.check()
				}
				h.recover()
			})
		})
	}
}

// history is what has happened to a machine.
type history struct {
	*machine
	random *rand.Rand
	boots  int
	// isShuttingDown is what logind says, isDraining whether a drain has begun in this process.
	isShuttingDown, isDraining bool
	// isCalledOff means that an administrator has ended the maintenance since.
	isCalledOff bool
}

func (h *history) happen() {
	switch h.random.IntN(11) {
	case 0, 1, 2:
		h.begin()
	case 3:
		h.cancel()
	case 4:
		h.set(func() { h.frozen = errRefusedConnection })
	case 5:
		h.set(func() { h.frozen = nil })
	case 6:
		h.set(func() { h.idle = !h.idle })
	case 7:
		h.callOff()
	case 8:
		h.restart()
	case 9:
		h.boots++
		h.isShuttingDown, h.isDraining = false, false
		h.reboot(fmt.Sprintf("boot-%d", h.boots+1))
	case 10:
		if h.maintenance("other") == nil {
			h.put(otherMaintenance())
		} else {
			h.remove("other")
		}
	}
}

func (h *history) begin() {
	if h.isShuttingDown {
		return
	}
	h.set(func() { h.pods = pod(h.random.IntN(90)) })
	h.isShuttingDown, h.isDraining, h.isCalledOff = true, true, false
	h.shutDown(time.Duration(h.random.IntN(120)) * time.Second)
}

// cancel cancels the shutdown, during the drain or afterwards.
func (h *history) cancel() {
	if !h.isShuttingDown {
		return
	}
	h.isShuttingDown, h.isDraining = false, false
	h.set(func() { h.shuttingDown = false })
	if h.isOver() {
		h.shutdown.Cancel(h.t.Context())
		return
	}
	h.events <- false
	h.run(10)
	h.expectOutcome(ShutdownCanceled)
}

func (h *history) isOver() bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.outcome != nil
}

func (h *history) callOff() {
	if h.maintenance(shutdownMaintenance) != nil {
		h.remove(shutdownMaintenance)
		h.isCalledOff = true
	}
}

// restart restarts the kubelet, as the manager of shutdowns does.
func (h *history) restart() {
	h.stopKubelet()
	h.startKubelet()
	if h.isShuttingDown {
		h.isCalledOff = false
		h.shutDown(time.Minute)
	} else {
		h.shutdown.Cancel(h.t.Context())
	}
}

func (h *history) check() {
	h.t.Helper()
	found := h.maintenance(shutdownMaintenance)
	if h.isDraining && !h.isOver() && !h.isCalledOff && found != nil && isEnded(found) && h.frozen == nil && h.maintenance("other") == nil && h.shutdown.IsEnding() {
		h.t.Error("the kubelet ends the maintenance of a shutdown in progress")
	}
	if h.isShuttingDown != h.shutdown.IsInProgress() {
		h.t.Errorf("shutdown in progress: %t, want %t", h.shutdown.IsInProgress(), h.isShuttingDown)
	}
}

// recover lets everything work.
func (h *history) recover() {
	h.t.Helper()
	h.set(func() { h.frozen, h.idle = nil, false })
	if h.maintenance("other") != nil {
		h.remove("other")
	}
	if h.random.IntN(2) == 0 {
		h.cancel()
	} else {
		h.reboot("last")
		h.isShuttingDown = false
	}
	h.run(120)
	h.check()
	if found := h.maintenance(shutdownMaintenance); found != nil && !isEnded(found) {
		h.t.Error("the maintenance of a shutdown is left")
	}
	if h.shutdown.IsEnding() {
		h.t.Error("the kubelet still ends a maintenance")
	}
	before := h.shutdown.record.Results[metrics.Drained]
	h.set(func() { h.pods = pod(30) })
	h.shutDown(time.Hour)
	h.run(60)
	h.expectOutcome(ShutdownProceeds)
	if h.shutdown.record.Results[metrics.Drained] != before+1 {
		h.t.Error("the next shutdown does not drain the node")
	}
}
