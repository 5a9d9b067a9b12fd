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

package deployment

import (
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/revertpace"
)

// eventSurgeContested: another client reverts the surge of the Deployment again and again.
const eventSurgeContested = "EvictionSurgeContested"

// writtenSurge is the surge of a Deployment that this process has last written, and how often it has restored it because
// another client had reverted it, such as a tool that has spec.replicas of the ReplicaSet in git. It outlasts the
// surge: a restart empties it.
type writtenSurge struct {
	// replicaSet is the UID of the ReplicaSet. It is empty if there is no surge.
	replicaSet types.UID
	// replicas and record are spec.replicas and the annotation.
	replicas int32
	record   string
	// since is that of the record. A surge that is restored has made no progress.
	since    metav1.Time
	restored revertpace.Attempts
	// recordOnly is whether only the record had to be restored the last time.
	recordOnly bool
}

// isReverted reports whether another client has changed the ReplicaSet so that the surge is gone or smaller. If it has
// more replicas, no pods are lost, and upstream's sync removes them as well.
func (w *writtenSurge) isReverted(stored *apps.ReplicaSet) bool {
	return w.replicaSet == stored.UID && *stored.Spec.Replicas < w.replicas
}

// isUnrecorded reports whether another client has removed or changed the annotation alone.
func (w *writtenSurge) isUnrecorded(stored *apps.ReplicaSet) bool {
	return w.replicaSet == stored.UID && w.record != "" && *stored.Spec.Replicas == w.replicas && stored.Annotations[deploymentutil.EvictionSurgeAnnotation] != w.record
}

// withRecord returns a ReplicaSet as this process has written it, if another client has removed the annotation alone, and
// whether that is so. Without it, the extra replicas would be too many, and the pods that start would be lost.
func (s *surger) withRecord(d types.UID, stored *apps.ReplicaSet) (*apps.ReplicaSet, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	written := s.written[d]
	if written == nil || !written.isUnrecorded(stored) {
		return stored, false
	}
	recorded := stored.DeepCopy()
	metav1.SetMetaDataAnnotation(&recorded.ObjectMeta, deploymentutil.EvictionSurgeAnnotation, written.record)
	return recorded, true
}

// observeReverts looks for surges that other clients have reverted.
func (s *surger) observeReverts(w *workload) {
	s.lock.Lock()
	defer s.lock.Unlock()
	written := s.written[w.deployment.UID]
	if written == nil {
		return
	}
	for _, set := range w.sets {
		switch {
		case w.rolling, set.stored.UID == written.replicaSet && set.toLeave() == 0:
			written.replicaSet = "" // The surge ends.
		case set.unrecorded, written.isReverted(set.stored):
			set.reverted = !set.unrecorded
			if set.recorded.Since.IsZero() {
				set.recorded.Since = written.since
			}
			if wait := written.restored.Wait(w.now); wait > 0 {
				set.pausing = true
				w.recheck(w.now.Add(wait))
			}
		}
		if over := written.restored.ContestOver(w.now); !over.IsZero() && set.toLeave() > 0 {
			set.contested, set.recordOnly = true, written.recordOnly
			w.recheck(over)
		}
	}
}

// noteSurge records that the surge of a ReplicaSet was written.
func (s *surger) noteSurge(now time.Time, w *workload, set *replicaSet, sent *apps.ReplicaSet, next deploymentutil.EvictionSurge) {
	if next.Surge == 0 && set.reverted {
		return // It is still reverted.
	}
	restored := set.reverted && next.Surge > set.recorded.Surge || set.unrecorded && next.Surge > 0
	s.lock.Lock()
	written := s.written[w.deployment.UID]
	if written == nil {
		written = &writtenSurge{}
		s.written[w.deployment.UID] = written
	}
	written.replicaSet, written.replicas, written.record, written.since = sent.UID, *sent.Spec.Replicas, sent.Annotations[deploymentutil.EvictionSurgeAnnotation], next.Since
	if next.Surge == 0 {
		written.replicaSet = ""
	}
	contested := false
	if restored {
		written.recordOnly = set.unrecorded
		contested = revertpace.IsContest(written.restored.Made(now))
	}
	s.lock.Unlock()
	switch {
	case !contested:
		return
	case set.unrecorded:
		s.dc.eventRecorder.Eventf(w.deployment, v1.EventTypeWarning, eventSurgeContested, "Another client keeps removing the annotation %s of replica set %s. It is restored ever more slowly, at most once a minute", deploymentutil.EvictionSurgeAnnotation, set.stored.Name)
	default:
		s.dc.eventRecorder.Eventf(w.deployment, v1.EventTypeWarning, eventSurgeContested, "Another client keeps reverting the eviction surge of replica set %s. It is restored ever more slowly, at most once a minute", set.stored.Name)
	}
	set.contested, set.recordOnly = true, set.unrecorded
}

// noteScaled records that the rest of the sync has written a ReplicaSet with its surge.
func (s *surger) noteScaled(d types.UID, sent *apps.ReplicaSet) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if written, record := s.written[d], sent.Annotations[deploymentutil.EvictionSurgeAnnotation]; written != nil && written.replicaSet == sent.UID && record != "" {
		written.replicas, written.record = *sent.Spec.Replicas, record
	}
}

// noteUnanswered records that a write of a surge may or may not have taken effect: nobody has reverted what the cache
// shows next.
func (s *surger) noteUnanswered(d types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if written := s.written[d]; written != nil {
		written.replicaSet = ""
	}
}

// contest returns the message about a surge that another client reverts. If that removes only the record, the pods wait for
// something else.
func (set *replicaSet) contest() string {
	what := "reverting spec.replicas"
	if set.recordOnly {
		what = "removing the annotation " + deploymentutil.EvictionSurgeAnnotation
	}
	return fmt.Sprintf("another client keeps %s of ReplicaSet %s, which is restored at most once a minute: see its metadata.managedFields.", what, set.stored.Name)
}
