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
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
)

const (
	// askTimeout is how long the API server may take to accept the maintenance of a shutdown.
	// Afterwards pods are terminated as without a maintenance, until it accepts.
	askTimeout = 5 * time.Second

	// startTimeout is how long the controllers may take to begin the drain of a maintenance that
	// the API server has accepted. It is longer than another instance of them takes to become the
	// leader and read all objects.
	startTimeout = time.Minute

	// drainInterval is the time between two checks of what is left.
	drainInterval = time.Second

	// stayTime is how long a node with pods has to be drained before these count as pods that stay. What the kubelet
	// has seen of the node may be that of the last drain.
	stayTime = 5 * time.Second
)

// drain is the drain of a node for one shutdown.
type drain struct {
	*Shutdown
	ShutdownRequest
	start     time.Time
	isResumed bool

	phase drainPhase
	// since is when the phase began, for this kubelet.
	since     time.Time
	lastError error
	// left is how many pods were left when they were last counted.
	left int
	// stayingSince is since when only pods are left that stay, zero if others are.
	stayingSince time.Time
	// deadline is the end of the limit.
	deadline time.Time
	// terminate is the termination of pods without a maintenance. Nil if none is in progress.
	terminate *termination
}

// termination is the termination of pods without a maintenance.
type termination struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// run returns when the node can shut down, or is known not to.
func (d *drain) run(ctx context.Context) (ShutdownOutcome, metrics.ShutdownDrainResult) {
	d.phase, d.since = asking, time.Now()
	// After a restart of the kubelet, the clock can have been set back since.
	limit := d.Limit - max(time.Since(d.start), 0)
	if limit <= 0 {
		d.left = len(d.ActivePods())
		d.reportTooShort(ctx)
		return ShutdownProceeds, metrics.TooShort
	}
	d.deadline = time.Now().Add(limit)
	klog.FromContext(ctx).Info("The node shuts down: draining it", "limit", limit, "resumed", d.isResumed)
	d.event(v1.EventTypeNormal, DrainingForShutdownReason, "The node shuts down: a NodeMaintenance drains it for at most %v", limit.Round(time.Second))

	if result, done := d.check(ctx); done {
		return ShutdownProceeds, result // Without a maintenance: nothing has to leave.
	}
	keeping, stopKeeping := context.WithCancel(ctx)
	k := newKeeper(d)
	go k.run(keeping)
	outcome, result := d.wait(ctx, k, time.After(limit))
	stopKeeping()
	d.stopTerminating()
	if outcome == ShutdownCanceled {
		<-k.done // It creates nothing after the end of the shutdown.
	}
	return outcome, result
}

func (d *drain) wait(ctx context.Context, k *keeper, late <-chan time.Time) (ShutdownOutcome, metrics.ShutdownDrainResult) {
	ticker := time.NewTicker(drainInterval)
	defer ticker.Stop()
	for {
		if result, done := d.check(ctx); done {
			return ShutdownProceeds, result
		}
		select {
		case <-ctx.Done():
			return ShutdownUnknown, ""
		case isShuttingDown, ok := <-d.Events:
			if !ok {
				return ShutdownUnknown, ""
			}
			if !isShuttingDown {
				klog.FromContext(ctx).Info("The shutdown of the node was canceled", "phase", d.phase)
				d.event(v1.EventTypeNormal, ShutdownCanceledReason, "The shutdown of the node was canceled: pods may stay")
				return ShutdownCanceled, metrics.Canceled
			}
		case <-late:
		case update := <-k.updates:
			d.observe(ctx, update)
		case <-d.terminated():
		case <-ticker.C:
		}
	}
}

// check reports whether the node can shut down, and why.
func (d *drain) check(ctx context.Context) (metrics.ShutdownDrainResult, bool) {
	if d.terminate != nil {
		select {
		case <-d.terminate.done:
			return metrics.NotStarted, true
		default:
			return "", false // What is left has begun to terminate, or does soon.
		}
	}
	if d.isLate() {
		if d.phase == calledOff {
			return metrics.CalledOff, true
		}
		d.reportTooShort(ctx)
		return metrics.TooShort, true
	}
	left, err := d.countPods(ctx)
	if err == nil {
		d.left = left.total()
	}
	stay := err == nil && d.onlyStay(left)
	switch {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Could not list the running pods: the node does not shut down yet")
	case left.total() == 0:
		klog.FromContext(ctx).Info("The node is drained, and can shut down", "duration", time.Since(d.start))
		d.event(v1.EventTypeNormal, DrainedForShutdownReason, "The node is drained, and can shut down")
		return metrics.Drained, true
	case left.leaving == 0 && left.idle == 0:
		klog.FromContext(ctx).Info("Only static pods are left that the control plane needs: they are terminated", "pods", left.needed)
		d.event(v1.EventTypeWarning, ShutdownWithoutDrainReason, "Only %d static pods are left that the control plane needs: they are terminated", left.needed)
		return metrics.StaticPodsNeeded, true
	case stay:
		klog.FromContext(ctx).Info("The node is drained, but for pods that stay in maintenances: they are terminated", "pods", d.left, "duration", time.Since(d.start))
		d.event(v1.EventTypeNormal, DrainedForShutdownReason, "The node is drained, but for %d pods that stay in maintenances: they are terminated", d.left)
		return metrics.PodsStay, true
	}
	d.maybeTerminate(ctx)
	return "", false
}

// onlyStay reports whether all pods that leave in maintenances have left.
func (d *drain) onlyStay(left podsLeft) bool {
	if left.leaving > 0 || d.phase != draining || !d.isDrained() {
		d.stayingSince = time.Time{}
		return false
	}
	if d.stayingSince.IsZero() {
		d.stayingSince = time.Now()
	}
	return time.Since(d.stayingSince) >= stayTime
}

// isLate reports whether the limit is over. It does not depend on which of several events is received
// first.
func (d *drain) isLate() bool { return !time.Now().Before(d.deadline) }

// observe notes what the keeper of the maintenance has seen.
func (d *drain) observe(ctx context.Context, update keeperUpdate) {
	d.lastError = update.err
	if update.phase != d.phase {
		d.since = time.Now()
		klog.FromContext(ctx).Info("The drain of the node changed its phase", "from", d.phase, "to", update.phase)
		if update.phase == calledOff {
			d.event(v1.EventTypeWarning, ShutdownWithoutDrainReason, "NodeMaintenance %s was ended by another client: the node still shuts down", d.maintenanceName())
		}
	}
	d.phase = update.phase
	// The termination of pods without a maintenance stops only as long as there is time to
	// terminate them again.
	if d.phase == draining && d.terminate != nil && !d.isLate() {
		d.stopTerminating()
		klog.FromContext(ctx).Info("The maintenance evicts the pods which are left")
		d.event(v1.EventTypeNormal, DrainingForShutdownReason, "A NodeMaintenance drains the node now: it evicts the pods which are left")
	}
}

// maybeTerminate begins to terminate pods without a maintenance if none takes them in time.
func (d *drain) maybeTerminate(ctx context.Context) {
	switch {
	case d.phase == asking && time.Since(d.since) >= askTimeout:
	case d.phase == asked && time.Since(d.since) >= startTimeout:
	default:
		return
	}
	cause := "no controller processes the maintenance"
	if d.lastError != nil {
		cause = d.lastError.Error()
	}
	klog.FromContext(ctx).Error(nil, "No maintenance drains the node: terminating its pods until one does", "phase", d.phase, "cause", cause)
	d.event(v1.EventTypeWarning, ShutdownWithoutDrainReason, "No maintenance drains the node: terminating its pods until one does: %s", cause)
	ctx, cancel := context.WithCancel(ctx)
	d.terminate = &termination{cancel: cancel, done: make(chan struct{})}
	go func(t *termination) {
		defer close(t.done)
		d.Terminate(ctx)
	}(d.terminate)
}

// stopTerminating returns when the termination has stopped.
func (d *drain) stopTerminating() {
	if d.terminate != nil {
		d.terminate.cancel()
		<-d.terminate.done
		d.terminate = nil
	}
}

func (d *drain) terminated() <-chan struct{} {
	if d.terminate == nil {
		return nil
	}
	return d.terminate.done
}

func (d *drain) reportTooShort(ctx context.Context) {
	klog.FromContext(ctx).Error(d.lastError, "The delay of the shutdown is too short for the drain: terminating the pods which are left",
		"limit", d.Limit, "pods", d.left, "phase", d.phase)
	d.event(v1.EventTypeWarning, ShutdownDelayTooShortReason,
		"The shutdown can be delayed by %v for the drain, which is too short: terminating %d pods which are left. Raise InhibitDelayMaxSec of logind", max(d.Limit, 0), d.left)
}

// podsLeft counts the pods that are left on the node.
type podsLeft struct {
	// idle are those that have not begun to end, and leaving the others.
	idle, leaving int
	// needed are static pods that the kubelet does not stop for the maintenance.
	needed int
}

func (l podsLeft) total() int { return l.idle + l.leaving + l.needed }

// countPods counts the pods that are left on the node.
func (s *Shutdown) countPods(ctx context.Context) (podsLeft, error) {
	isIdle := map[types.NamespacedName]bool{}
	for _, pod := range s.ActivePods() {
		isIdle[keyOf(pod)] = pod.DeletionTimestamp == nil
	}
	// A runtime that hangs must not make the drain miss its limit by much.
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ofRuntime, err := s.RunningPods(ctx)
	if err != nil {
		return podsLeft{}, err
	}
	for _, key := range append(ofRuntime, s.Holds.undecided()...) {
		if _, known := isIdle[key]; !known {
			isIdle[key] = false // What the kubelet does not know any more ends.
		}
	}
	var left podsLeft
	for key, idle := range isIdle {
		state, _ := s.Holds.observe(key)
		switch {
		case state == refused:
			left.needed++
		case idle && state == running:
			left.idle++
		default:
			left.leaving++
		}
	}
	return left, nil
}

// isDrained reports whether controllers have seen the last pod leave that leaves in a maintenance. Others stay, because
// a policy skips them or nobody stops them.
func (s *Shutdown) isDrained() bool {
	node, err := s.Node()
	return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeDrained && c.Status == v1.ConditionTrue
	})
}
