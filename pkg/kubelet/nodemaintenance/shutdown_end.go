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
	"encoding/json"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
)

// endInterval is the time between two attempts to end a maintenance.
const endInterval = 5 * time.Second

// Run ends the maintenances of shutdowns that are over, until the context is canceled.
func (s *Shutdown) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), "node-shutdown"))
	s.findForgotten(ctx)
	for ctx.Err() == nil {
		var retry <-chan time.Time
		if !s.end(ctx) {
			retry = time.After(endInterval)
		}
		select {
		case <-s.wake:
		case <-retry:
		case <-ctx.Done():
		}
	}
}

// findForgotten looks for a maintenance of an earlier boot when the record of it is lost, for
// example because the disk was replaced. The API server is asked only if a maintenance drains the
// node.
func (s *Shutdown) findForgotten(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		node, err := s.Node()
		s.lock.Lock()
		defer s.lock.Unlock()
		if s.record.BootID != "" {
			return true, nil // Also that of a shutdown since.
		}
		if err == nil && isDraining(node) {
			s.mustEnd = true
		}
		return err == nil, nil
	})
}

// end makes an attempt to end the maintenance, if it has to be ended, and reports whether it has
// not to be any more.
func (s *Shutdown) end(ctx context.Context) bool {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	s.lock.Lock()
	mustEnd := s.mustEnd
	if mustEnd {
		s.stopEnding = func() {
			cancel()
			<-done
		}
	}
	s.lock.Unlock()
	if !mustEnd {
		return true
	}
	hasEnded, err := s.tryToEnd(request)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not end the maintenance of the last shutdown", "nodeMaintenance", s.maintenanceName())
	}
	s.update(ctx, func() {
		s.stopEnding = nil
		if hasEnded && s.mustEnd {
			s.mustEnd, s.record.BootID, s.record.IsOwn = false, "", false
		}
	})
	return hasEnded
}

// tryToEnd reports whether the maintenance has ended, or is not for the kubelet to end.
func (s *Shutdown) tryToEnd(ctx context.Context) (bool, error) {
	existing, err := s.maintenances().Get(ctx, s.maintenanceName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return !s.mayBeCreated(), nil
	case apierrors.IsForbidden(err) && !s.isRecorded():
		return true, nil // By an API server without our gate: then there is none.
	case err != nil:
		return false, err
	}
	if isEnded(existing) || !s.isOwn(existing) {
		return true, nil
	}
	patch, err := completePatch(existing.UID)
	if err != nil {
		return false, err
	}
	s.noteEnd(time.Now())
	_, err = s.maintenances().Patch(ctx, existing.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return false, err
	}
	s.noteEnd(time.Time{})
	klog.FromContext(ctx).Info("Ended the maintenance of the last shutdown", "nodeMaintenance", existing.Name, "nodeMaintenanceUID", existing.UID)
	s.event(v1.EventTypeNormal, ShutdownMaintenanceEndedReason, "Ended NodeMaintenance %s of the last shutdown", existing.Name)
	return true, nil
}

// isOwn reports whether the kubelet has to end the maintenance.
func (s *Shutdown) isOwn(m *coordinationv1alpha1.NodeMaintenance) bool {
	if m.Annotations[maintenance.EndedByAnnotation] != maintenance.EndedByKubelet {
		return false
	}
	// Without a record, a maintenance of this boot can be that of a shutdown in progress.
	return s.isRecorded() || m.Annotations[maintenance.BootIDAnnotation] != s.BootID()
}

// isRecorded reports whether a shutdown may have a maintenance that has not ended.
func (s *Shutdown) isRecorded() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.record.BootID != ""
}

// mayBeCreated reports whether a creation can still take effect.
func (s *Shutdown) mayBeCreated() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return !s.lastCreation.IsZero() && time.Since(s.lastCreation) < creationTimeout
}

// mayEndLate reports whether the end of a maintenance can still take effect.
func (s *Shutdown) mayEndLate() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return !s.lastEnd.IsZero() && time.Since(s.lastEnd) < creationTimeout
}

func (s *Shutdown) noteEnd(sent time.Time) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lastEnd = sent
}

// completePatch returns a patch for the maintenance with this UID only.
func completePatch(uid types.UID) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"spec":     map[string]any{"stage": coordinationv1alpha1.NodeMaintenanceStageComplete},
	})
}
