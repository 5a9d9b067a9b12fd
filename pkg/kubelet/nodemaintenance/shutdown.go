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
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
)

// ShutdownConfig has what a Shutdown needs of the kubelet.
type ShutdownConfig struct {
	// Client is for the NodeMaintenance of the shutdowns of the node.
	Client clientset.Interface
	// NodeName is the name of the node, and BootID returns the ID of its boot.
	NodeName string
	BootID   func() string
	// Node returns the node as it was last seen, or an error if it was not seen or does not exist.
	Node func() (*v1.Node, error)
	// Holds has the states of the static pods.
	Holds *Holds
	// ActivePods returns the pods that the kubelet knows of and that have not ended.
	ActivePods func() []*v1.Pod
	// RunningPods returns the pods that run according to the container runtime. These can be more:
	// the kubelet does not see static pods that it stops for a maintenance.
	RunningPods func(context.Context) ([]types.NamespacedName, error)
	// IsTerminating reports whether the kubelet terminates pods because the node shuts down, with or without a
	// maintenance. Nil if it never does.
	IsTerminating func() bool
	// SyncNodeStatus writes the status of the node if it has changed.
	SyncNodeStatus func(context.Context)
	// Directory is the root directory of the kubelet.
	Directory string
	// Recorder records events of the node NodeRef.
	Recorder record.EventRecorder
	NodeRef  *v1.ObjectReference
}

// Shutdown drains a node that shuts down, by a NodeMaintenance of its own, and ends this maintenance
// when the shutdown is canceled and after the next boot.
type Shutdown struct {
	ShutdownConfig

	// lock protects the fields below. It is not locked during calls of the API server.
	lock sync.Mutex
	// isInProgress is whether the node shuts down.
	isInProgress bool
	// record is what survives the shutdown.
	record shutdownRecord
	// lastCreation is when a creation was last sent, zero if the API server has answered that the
	// maintenance exists. Otherwise the creation can still take effect, also after an error.
	lastCreation time.Time
	// lastEnd is when the end of a maintenance was last sent, zero if the API server has answered
	// that it has ended. Otherwise it can still take effect.
	lastEnd time.Time
	// mustEnd is whether the maintenance of an earlier shutdown has to be ended.
	mustEnd bool
	// stopEnding stops the attempt to do so that is in progress, and waits. Nil if there is none.
	stopEnding func()

	// wake makes Run check mustEnd.
	wake chan struct{}
}

// ShutdownRequest is a shutdown of the node that has begun.
type ShutdownRequest struct {
	// Events receives false when the shutdown is canceled. It is closed when nothing more will be
	// known.
	Events <-chan bool
	// Limit is how long the drain may take, from the begin of the shutdown.
	Limit time.Duration
	// Priorities are the lowest priorities of the groups of pods that terminate one after the
	// other, ascending.
	Priorities []int32
	// Terminate terminates the pods as without a maintenance. When its context is canceled, it
	// terminates no more, and the node does not count as shutting down any more.
	Terminate func(context.Context)
}

// ShutdownOutcome is what follows from a drain.
type ShutdownOutcome int

const (
	// ShutdownProceeds means that the node shuts down. Pods that are left are to be terminated.
	ShutdownProceeds ShutdownOutcome = iota
	// ShutdownCanceled means that the node does not shut down.
	ShutdownCanceled
	// ShutdownUnknown means that it is not known any more whether the node shuts down.
	ShutdownUnknown
)

// NewShutdown returns a Shutdown. It reads what earlier kubelets have left in the directory.
func NewShutdown(ctx context.Context, config ShutdownConfig) *Shutdown {
	metrics.Register()
	s := &Shutdown{ShutdownConfig: config, wake: make(chan struct{}, 1)}
	if err := readShutdownRecord(s.Directory, &s.record); err != nil {
		klog.FromContext(ctx).Error(err, "Could not read the state of the last shutdown")
	}
	for result, count := range s.record.Results {
		metrics.AddShutdownDrains(result, count)
	}
	metrics.SetShutdownPodsLeft(s.record.PodsLeft)
	// In the same boot, the shutdown may be in progress: see WasInterrupted.
	s.mustEnd = s.record.BootID != "" && s.record.BootID != s.BootID()
	// Until logind has answered, the condition of the node stays.
	s.isInProgress = s.WasInterrupted()
	return s
}

// IsInProgress reports whether the node shuts down.
func (s *Shutdown) IsInProgress() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.isInProgress
}

// WasInterrupted reports whether an earlier kubelet of this boot saw a shutdown and not its
// cancellation.
func (s *Shutdown) WasInterrupted() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.record.BootID == s.BootID() && !s.record.StartTime.IsZero()
}

// IsEnding reports whether the maintenance of an earlier shutdown has not ended yet, so that the
// drain targets of the node may be those of it.
func (s *Shutdown) IsEnding() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.mustEnd && s.record.IsOwn
}

// Drain drains the node, and returns when it can shut down, or is known not to.
func (s *Shutdown) Drain(ctx context.Context, r ShutdownRequest) ShutdownOutcome {
	ctx = klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), "node-shutdown"))
	start, isResumed := s.begin(ctx)
	go s.SyncNodeStatus(ctx)
	d := &drain{Shutdown: s, ShutdownRequest: r, start: start, isResumed: isResumed}
	outcome, result := d.run(ctx)
	switch outcome {
	case ShutdownCanceled:
		s.count(ctx, result, 0)
		s.Cancel(ctx)
	case ShutdownProceeds:
		s.count(ctx, result, d.left)
	}
	return outcome
}

// begin stores that the node shuts down, before anything else is done. It returns when the shutdown
// began, and whether an earlier kubelet has begun to drain the node for it.
func (s *Shutdown) begin(ctx context.Context) (start time.Time, isResumed bool) {
	isResumed = s.WasInterrupted()
	var stopEnding func()
	s.update(ctx, func() {
		s.isInProgress, s.mustEnd = true, false
		stopEnding = s.stopEnding
		if !isResumed {
			// IsOwn stays: the maintenance of the shutdown before may not have ended.
			s.record.BootID, s.record.StartTime = s.BootID(), time.Now()
		}
		start = s.record.StartTime
	})
	if stopEnding != nil {
		stopEnding()
	}
	return start, isResumed
}

// Cancel notes that the node does not shut down, and ends its maintenance.
func (s *Shutdown) Cancel(ctx context.Context) {
	wasInProgress := s.IsInProgress()
	s.update(ctx, func() {
		s.isInProgress = false
		s.record.StartTime = time.Time{}
		s.mustEnd = s.record.BootID != ""
	})
	if wasInProgress {
		go s.SyncNodeStatus(ctx)
	}
	s.wakeUp()
}

func (s *Shutdown) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // It is awake.
	}
}

// count stores the result of a drain, which the restart of the machine would reset.
func (s *Shutdown) count(ctx context.Context, result metrics.ShutdownDrainResult, podsLeft int) {
	metrics.AddShutdownDrains(result, 1)
	metrics.SetShutdownPodsLeft(podsLeft)
	s.update(ctx, func() {
		if s.record.Results == nil {
			s.record.Results = map[metrics.ShutdownDrainResult]int{}
		}
		s.record.Results[result]++
		s.record.PodsLeft = podsLeft
	})
}

// update changes the record under the lock, and stores it if it differs.
func (s *Shutdown) update(ctx context.Context, change func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	old := s.record.clone()
	change()
	if s.record.equal(old) {
		return
	}
	if err := writeShutdownRecord(s.Directory, s.record); err != nil {
		// The annotations of the maintenance say the same, except for the results.
		klog.FromContext(ctx).Error(err, "Could not store the state of the shutdown")
	}
}
