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
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
)

const (
	// requestTimeout is how long the API server may take to answer.
	requestTimeout = 5 * time.Second

	// readInterval is the time between two reads of the maintenance, which show that another client
	// has ended it.
	readInterval = 5 * time.Second

	// creationTimeout is how long a creation, or the end of a maintenance, can still take effect after
	// it was sent. The API server ends requests after a minute.
	creationTimeout = time.Minute
)

// drainPhase is how far a maintenance is.
type drainPhase string

const (
	// asking means that the API server has not accepted a maintenance.
	asking drainPhase = "asking"
	// asked means that the maintenance exists, or an earlier one that ends. Controllers have not
	// processed it.
	asked drainPhase = "asked"
	// draining means that controllers evict the pods of the node.
	draining drainPhase = "draining"
	// calledOff means that another client has ended the maintenance.
	calledOff drainPhase = "called off"
)

// errEnding is why a maintenance cannot be created.
var errEnding = errors.New("the maintenance of an earlier shutdown has not ended")

// keeperUpdate is what a keeper has seen.
type keeperUpdate struct {
	phase drainPhase
	err   error
}

// keeper keeps the node in a maintenance which drains it, as long as the shutdown takes.
type keeper struct {
	*drain
	updates chan keeperUpdate
	// done is closed when the keeper has stopped.
	done chan struct{}

	// uid is that of the maintenance of the shutdown, empty before it exists. lastRead is when it
	// was last seen.
	uid      types.UID
	lastRead time.Time
	// hasJoined means that the API server has answered while another maintenance drained the node.
	hasJoined bool
}

func newKeeper(d *drain) *keeper {
	return &keeper{drain: d, updates: make(chan keeperUpdate), done: make(chan struct{})}
}

// run runs until the context is canceled, or another client ends the maintenance.
func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	if k.isResumed {
		_ = k.adopt(ctx) // If that fails, it is found when it is created or joined.
	}
	for {
		update := k.step(ctx)
		select {
		case k.updates <- update:
		case <-ctx.Done():
			return
		}
		if update.phase == calledOff {
			return
		}
		select {
		case <-time.After(drainInterval):
		case <-ctx.Done():
			return
		}
	}
}

// step makes sure that a maintenance drains the node.
func (k *keeper) step(ctx context.Context) keeperUpdate {
	if k.uid == "" && k.isDraining() {
		return k.join(ctx)
	}
	if k.uid == "" {
		if err := k.create(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Could not create the maintenance of the shutdown", "nodeMaintenance", k.maintenanceName())
			if errors.Is(err, errEnding) {
				return keeperUpdate{phase: asked, err: err} // For controllers to end.
			}
			return keeperUpdate{phase: asking, err: err}
		}
	}
	err := k.read(ctx)
	switch {
	case errors.Is(err, errEnded) && k.mayEndLate():
		k.uid = "" // The kubelet has ended it, before this shutdown.
		return keeperUpdate{phase: asked, err: err}
	case errors.Is(err, errEnded):
		return keeperUpdate{phase: calledOff}
	case k.isDraining():
		return keeperUpdate{phase: draining, err: err}
	}
	return keeperUpdate{phase: asked, err: err}
}

// join uses the maintenances that drain the node anyway. The pods leave only if the API server
// answers, which the cache of the node does not show. One of an earlier shutdown that has not ended
// is that of this shutdown, too.
func (k *keeper) join(ctx context.Context) keeperUpdate {
	if !k.hasJoined {
		if err := k.adopt(ctx); err != nil {
			return keeperUpdate{phase: asking, err: err}
		}
		if k.uid != "" {
			return keeperUpdate{phase: draining}
		}
		klog.FromContext(ctx).Info("Another maintenance drains the node already")
		k.hasJoined = true
	}
	return keeperUpdate{phase: draining}
}

// isDraining reports whether the kubelet has seen that a maintenance drains the node.
func (k *keeper) isDraining() bool {
	node, err := k.Node()
	return err == nil && isDraining(node)
}

// isDraining reports whether a maintenance drains the node: that has a message in its status. All
// drain plans include all pods in the end.
func isDraining(node *v1.Node) bool {
	return node.Status.MaintenanceStatus != nil && node.Status.MaintenanceStatus.DrainMessage != ""
}

// create creates the maintenance, or uses the one of the same name. One that is complete must be
// gone before.
func (k *keeper) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	k.noteCreation(time.Now())
	created, err := k.maintenances().Create(ctx, newShutdownMaintenance(k.NodeName, k.BootID(), k.Priorities), metav1.CreateOptions{})
	if err == nil {
		klog.FromContext(ctx).Info("Created the maintenance of the shutdown", "nodeMaintenance", created.Name, "nodeMaintenanceUID", created.UID)
		k.noteCreation(time.Time{})
		k.found(ctx, created)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	k.noteCreation(time.Time{})
	existing, err := k.maintenances().Get(ctx, k.maintenanceName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch {
	case existing.DeletionTimestamp != nil:
		return errEnding
	case existing.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete:
		return errors.Join(errEnding, k.maintenances().Delete(ctx, existing.Name, *metav1.NewPreconditionDeleteOptions(string(existing.UID))))
	case existing.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain:
		return fmt.Errorf("a maintenance of this name exists in the stage %s", existing.Spec.Stage)
	}
	k.found(ctx, existing)
	return nil
}

// found notes that the maintenance exists.
func (k *keeper) found(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) {
	k.uid, k.lastRead = m.UID, time.Now()
	k.update(ctx, func() { k.record.IsOwn = m.Annotations[maintenance.EndedByAnnotation] == maintenance.EndedByKubelet })
}

// adopt looks for the maintenance of this name, such as one that an earlier kubelet has created for
// the same shutdown. It returns an error if the API server does not answer.
func (k *keeper) adopt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	existing, err := k.maintenances().Get(ctx, k.maintenanceName(), metav1.GetOptions{})
	if err == nil && existing.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain && !isEnded(existing) {
		k.found(ctx, existing)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // Forbidden by an API server without our gate, which is an answer, too.
	}
	return err
}

// errEnded means that another client has ended the maintenance.
var errEnded = errors.New("the maintenance has ended")

// read reads the maintenance from time to time.
func (k *keeper) read(ctx context.Context) error {
	if time.Since(k.lastRead) < readInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	existing, err := k.maintenances().Get(ctx, k.maintenanceName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (existing.UID != k.uid || isEnded(existing)) {
		return errEnded
	}
	if err == nil {
		k.lastRead = time.Now()
	}
	return err
}

// isEnded reports whether the maintenance evicts no more pods.
func isEnded(m *coordinationv1alpha1.NodeMaintenance) bool {
	return m.DeletionTimestamp != nil || m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageComplete
}

func (s *Shutdown) noteCreation(sent time.Time) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lastCreation = sent
}

func (s *Shutdown) maintenances() coordinationclient.NodeMaintenanceInterface {
	return s.Client.CoordinationV1alpha1().NodeMaintenances()
}

func (s *Shutdown) maintenanceName() string { return maintenance.ShutdownName(s.NodeName) }
