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

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown/systemd"
)

// Watch makes the manager, which must not have started, keep its part in a shutdown when the kubelet
// restarts, and if drains is set, drain the node before it terminates pods. It returns false if the manager does not
// wait for shutdowns.
func Watch(manager Manager, shutdown *nodemaintenance.Shutdown, drains bool) bool {
	m, ok := manager.(*managerImpl)
	if ok {
		m.draining = &draining{shutdown: shutdown, drains: drains, locks: newInhibitLocks(newSystemdStore(m.logger))}
	}
	return ok
}

// draining is what the connections of a manager to logind share.
type draining struct {
	shutdown *nodemaintenance.Shutdown
	// drains is whether the node is drained before it shuts down.
	drains bool
	locks  *inhibitLocks
}

// drainingInhibiter is a connection to logind that delivers the begin of a shutdown when the node is
// drained. Until then, the manager does not know about the shutdown: the node is ready, its pods
// serve requests, and the manager has its lock.
type drainingInhibiter struct {
	dbusInhibiter
	*draining
	ctx     context.Context
	manager *managerImpl
}

// drainFirst returns the connection, or if the manager was told to Watch, one which does what that says.
func (m *managerImpl) drainFirst(ctx context.Context, bus dbusInhibiter) dbusInhibiter {
	if m.draining == nil {
		return bus
	}
	return &drainingInhibiter{dbusInhibiter: bus, draining: m.draining, ctx: klog.NewContext(ctx, m.logger), manager: m}
}

// isShuttingDown reports whether the machine shuts down, if logind says so.
func (d *drainingInhibiter) isShuttingDown() (isShuttingDown, known bool) {
	bus, ok := d.dbusInhibiter.(interface{ PreparingForShutdown() (bool, error) })
	if !ok {
		return false, false
	}
	isShuttingDown, err := bus.PreparingForShutdown()
	if err != nil {
		d.manager.logger.Error(err, "Unable to read whether the machine shuts down")
	}
	return isShuttingDown, err == nil
}

// InhibitShutdown overrides dbusInhibiter. While the machine shuts down, logind grants no lock, so a
// kubelet that has restarted, or has connected again, takes part in the shutdown with the lock that it had, or
// without one if that is lost.
func (d *drainingInhibiter) InhibitShutdown() (systemd.InhibitLock, error) {
	lock, err := d.dbusInhibiter.InhibitShutdown()
	if err == nil {
		return d.locks.add(lock, d.dbusInhibiter.ReleaseInhibitLock), nil
	}
	if isShuttingDown, _ := d.isShuttingDown(); !isShuttingDown {
		return 0, err
	}
	lock, held := d.locks.share()
	if !held {
		d.manager.logger.Error(err, "The machine shuts down, and logind grants no new lock: the shutdown may not wait for pods. "+
			"With FileDescriptorStoreMax in the unit of the kubelet, systemd keeps the lock while the kubelet restarts")
	}
	return lock, nil
}

// ReleaseInhibitLock overrides dbusInhibiter.
func (d *drainingInhibiter) ReleaseInhibitLock(lock systemd.InhibitLock) error {
	if d.ctx.Err() != nil {
		return nil // The kubelet ends, and its files with it, but for those that the next one takes over.
	}
	return d.locks.release(lock, d.dbusInhibiter.ReleaseInhibitLock)
}

// MonitorShutdown overrides dbusInhibiter.
func (d *drainingInhibiter) MonitorShutdown(logger klog.Logger) (<-chan bool, error) {
	events, err := d.dbusInhibiter.MonitorShutdown(logger)
	if err != nil {
		return nil, err
	}
	if d.drains {
		d.reportLimit()
	}
	isShuttingDown, known := d.isShuttingDown()
	if !known {
		isShuttingDown = d.shutdown.WasInterrupted()
	}
	drained := make(chan bool)
	go d.forward(isShuttingDown, events, drained)
	return drained, nil
}

// forward forwards events, each shutdown after the drain.
func (d *drainingInhibiter) forward(isShuttingDown bool, events <-chan bool, drained chan<- bool) {
	defer close(drained)
	if !isShuttingDown {
		d.shutdown.Cancel(d.ctx)
	}
	for {
		if !isShuttingDown {
			var ok bool
			if isShuttingDown, ok = d.receive(events); !ok {
				return
			}
		}
		d.locks.keep(isShuttingDown)
		if !isShuttingDown {
			d.shutdown.Cancel(d.ctx)
		} else if outcome := d.maybeDrain(events); outcome == nodemaintenance.ShutdownUnknown {
			return
		} else {
			isShuttingDown = outcome == nodemaintenance.ShutdownProceeds
			d.locks.keep(isShuttingDown)
		}
		select {
		case drained <- isShuttingDown:
		case <-d.ctx.Done():
			return
		}
		isShuttingDown = false
	}
}

// receive returns the next event, if there is one.
func (d *drainingInhibiter) receive(events <-chan bool) (isShuttingDown, ok bool) {
	select {
	case isShuttingDown, ok = <-events:
		return isShuttingDown, ok
	case <-d.ctx.Done():
		return false, false
	}
}

// maybeDrain drains the node, if it is to be drained.
func (d *drainingInhibiter) maybeDrain(events <-chan bool) nodemaintenance.ShutdownOutcome {
	if !d.drains {
		return nodemaintenance.ShutdownProceeds
	}
	return d.drain(events)
}

func (d *drainingInhibiter) drain(events <-chan bool) nodemaintenance.ShutdownOutcome {
	delay, err := d.CurrentInhibitDelay()
	if err != nil {
		d.manager.logger.Error(err, "Unable to read how long the shutdown can be delayed: the node is not drained")
	}
	request := nodemaintenance.ShutdownRequest{
		Events:    events,
		Limit:     delay - d.manager.podManager.periodRequested(),
		Terminate: d.manager.terminate,
	}
	for _, period := range d.manager.podManager.shutdownGracePeriodByPodPriority {
		request.Priorities = append(request.Priorities, period.Priority)
	}
	return d.shutdown.Drain(d.ctx, request)
}

// reportLimit reports at the start if there will never be time for a drain.
func (d *drainingInhibiter) reportLimit() {
	delay, err := d.CurrentInhibitDelay()
	if err != nil {
		return // Reported by the manager.
	}
	period := d.manager.podManager.periodRequested()
	if delay > period {
		d.manager.logger.Info("The node is drained before it shuts down", "limit", delay-period)
		return
	}
	d.manager.logger.Error(nil, "The node will not be drained before it shuts down: logind delays a shutdown only as long as the termination of pods may take. Raise its InhibitDelayMaxSec",
		"inhibitDelay", delay, "shutdownGracePeriod", period)
	d.manager.recorder.Eventf(d.shutdown.NodeReference(), v1.EventTypeWarning, nodemaintenance.ShutdownDelayTooShortReason,
		"The node will not be drained before it shuts down: logind delays a shutdown by %v, and the termination of pods may take %v. Raise InhibitDelayMaxSec of logind", delay, period)
}

// terminate terminates pods as processShutdownEvent does, and stops when the context is canceled.
// Pods that terminate already continue to.
func (m *managerImpl) terminate(ctx context.Context) {
	m.setShuttingDown(ctx, true)
	for _, group := range groupByPriority(m.podManager.shutdownGracePeriodByPodPriority, m.getPods()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = m.podManager.killPods(context.WithoutCancel(ctx), group.Pods) // Its only error is a canceled context.
		}()
		select {
		case <-done:
		case <-ctx.Done():
			m.setShuttingDown(context.WithoutCancel(ctx), false)
			return
		}
	}
}

// setShuttingDown makes the node not ready, and makes it reject pods, or ends that.
func (m *managerImpl) setShuttingDown(ctx context.Context, isShuttingDown bool) {
	m.nodeShuttingDownMutex.Lock()
	m.nodeShuttingDownNow = isShuttingDown
	m.nodeShuttingDownMutex.Unlock()
	go m.syncNodeStatus(context.WithoutCancel(ctx))
}
