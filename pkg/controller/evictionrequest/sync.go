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

package evictionrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/agreement"
)

// safetyInterval is the maximum time between two syncs of a request that waits for an event. It
// covers events that are lost or misinterpreted. The sync reads from caches only: it makes no API
// call if nothing has changed. See sweeper.
const safetyInterval = 5 * time.Minute

// safetyDelay returns the delay to the next sync of a request that is not in the cache as it is or should
// be, so that a sweep may not enqueue it. The jitter spreads the requests of a drain, which are created
// together.
func safetyDelay() time.Duration { return wait.Jitter(safetyInterval, 0.2) }

// agreementInterval is the time between two looks whether a request was compared with those of lifecycle.k8s.io.
const agreementInterval = 200 * time.Millisecond

// lacksAgreement reports whether it is not known yet whether anybody wants the eviction, see LetRespondersAct.
func lacksAgreement(compared *agreement.Requests, request *coordinationv1alpha1.EvictionRequest) bool {
	return compared != nil && compared.Lacks(request)
}

// syncRequest reconciles one request.
func (c *Controller) syncRequest(ctx context.Context, key types.NamespacedName) error {
	if !c.writer.isCurrent(key) {
		// The event for our last write should trigger the next sync.
		c.queue.AddAfter(key, safetyDelay())
		return nil
	}
	request, err := c.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		c.writer.forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if evictionrequesttools.IsFinished(request.Status.Conditions) {
		c.forget(key)
		return c.syncFinished(ctx, request)
	}
	pod, err := c.targetPod(ctx, request)
	if err == nil {
		pod, err = c.asIndividual(ctx, request, pod)
	}
	if err != nil {
		return err
	}
	if pod != nil && !podutil.IsPodPhaseTerminal(pod.Status.Phase) && lacksAgreement(c.compared, request) {
		c.queue.AddAfter(key, agreementInterval)
		return nil // Who wants it, does not matter any more when the pod is gone.
	}
	pod = c.withActing(pod)
	var untilLabels time.Duration
	var labelsErr error
	if pod != nil {
		// Labels are written first, so that an interceptor that selects requests by label sees the
		// request no later than its activation. If a webhook refuses the labels, the eviction
		// continues without them.
		var labeled *coordinationv1alpha1.EvictionRequest
		labeled, untilLabels, labelsErr = c.copyLabels(ctx, key, request, pod)
		switch {
		case labeled != nil:
			request = labeled
		case labelsErr == nil: // The request has changed concurrently.
			c.queue.AddAfter(key, safetyDelay())
			return nil
		}
	}
	now, noTimeoutBefore := c.clock.Now(), c.outages.noTimeoutBefore(key)
	request, untilExpiry, callsErr := c.expireCalls(ctx, now, noTimeoutBefore, request, pod)
	if deadline, limited := evictionrequesttools.ActiveDeadline(request, pod); limited {
		noTimeoutBefore = c.outages.noTurnEndsBefore(key, evictionrequesttools.LastSignOfLife(request), deadline)
	}
	status, nextSync := computeStatus(now, noTimeoutBefore, request, pod)
	if isWithdrawn(status) {
		stays, err := c.confirmStays(ctx, request)
		if err != nil {
			return errors.Join(err, labelsErr, callsErr)
		}
		if !stays {
			status, nextSync = leavingStatus(now, request), leaveInterval
		}
	} else {
		// If it is withdrawn again, that is about another eviction, which may be in flight for as long.
		c.marked.remove(types.UID(request.Name))
	}
	written, err := c.writer.writeStatus(ctx, request, status)
	if err != nil {
		c.outages.noteRefused(key)
		return err
	}
	if written {
		c.outages.noteWritten(key)
	}
	if wait := earliest(untilLabels, earliest(untilExpiry, nextSync)); wait > 0 {
		c.queue.AddAfter(key, wait)
	}
	return errors.Join(labelsErr, callsErr)
}

// withActing returns the pod without responders, if they do not act.
func (c *Controller) withActing(pod *v1.Pod) *v1.Pod {
	if pod == nil || c.respondersAct || len(pod.Spec.EvictionResponders) == 0 {
		return pod
	}
	without := *pod
	without.Spec.EvictionResponders = nil
	return &without
}

// copyLabels writes the labels of the pod to the request, in which others may have overwritten them. It returns the
// request as it is then, or nil if it has changed concurrently, and for how long the labels wait: see labelWrites. Those
// that could not be written are tried again as the error says, or later.
func (c *Controller) copyLabels(ctx context.Context, key types.NamespacedName, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (*coordinationv1alpha1.EvictionRequest, time.Duration, error) {
	missing := evictioninterceptor.MissingLabels(request.Labels, pod.Labels)
	if len(missing) == 0 {
		return request, 0, nil
	}
	if wait, err := c.labelWrites.wait(key, c.clock.Now()); wait > 0 {
		return request, wait, err
	}
	labeled, err := c.writer.setLabels(ctx, request, missing)
	if labeled == nil && err == nil {
		return nil, 0, nil
	}
	if c.labelWrites.tried(key, c.clock.Now(), err) {
		recordEvents(c.writer.recorder, labeled, []change{{kind: changeLabelsContested}})
	}
	return labeled, 0, err
}

const (
	// leaveInterval is the time between two readings of a pod that is about to be evicted or deleted, or
	// not, although its request is not wanted any more.
	leaveInterval = 5 * time.Second

	// markTTL is how long the mark of an eviction or deletion counts. The disruption controller clears it after
	// two minutes if the pod does not terminate; this is for clusters in which it does not run.
	markTTL = 10 * time.Minute

	// maxMarkSkew is how far ahead the clock of the API server may be that has marked a pod.
	maxMarkSkew = time.Minute
)

// isWithdrawn reports whether the request is canceled because nobody wants it, so that the pod stays.
func isWithdrawn(status *coordinationv1alpha1.EvictionRequestStatus) bool {
	canceled := meta.FindStatusCondition(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
	return canceled != nil && canceled.Status == metav1.ConditionTrue && canceled.Reason == coordinationv1alpha1.EvictionRequestReasonNoRequesters
}

// confirmStays reports whether the pod of a request that nobody wants any more stays, as Canceled says.
// An eviction that has read the request before has marked the pod before that, so the mark is read
// after the request, and not from a cache (see package evictionfence). Of other deletions, there are records
// elsewhere (see mayBeDeleted), but not of those that another process has sent, which led before this one.
func (c *Controller) confirmStays(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) (bool, error) {
	if c.mayHaveInherited(request, c.clock.Now()) {
		return false, nil // First, because it costs no call.
	}
	pod, err := c.pods(ctx, request.Namespace, targetName(request))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // The cache will say so.
	case err != nil:
		return false, fmt.Errorf("reading pod %s, whose eviction is canceled: %w", targetName(request), err)
	case string(pod.UID) != request.Name || pod.DeletionTimestamp != nil:
		return false, nil
	}
	now := c.clock.Now()
	if mark := deletionMark(pod); mark != nil {
		// Who writes the status of the pod must not be able to renew the mark for ever.
		age := now.Sub(mark.LastTransitionTime.Time)
		if max(age, c.leavesFor(request, now)) <= markTTL && age >= -maxMarkSkew {
			return false, nil
		}
	}
	inFlight, err := c.mayBeDeleted(ctx, request, pod)
	if err != nil {
		return false, err
	}
	return inFlight == 0 || c.leavesFor(request, now) > inFlight, nil
}

// leavesFor returns how long the pod of a request that nobody wants any more has seemed to be about to leave.
func (c *Controller) leavesFor(request *coordinationv1alpha1.EvictionRequest, now time.Time) time.Duration {
	return now.Sub(c.marked.since(types.UID(request.Name), now))
}

// forget drops the state of this process about a finished request and its pod.
func (c *Controller) forget(key types.NamespacedName) {
	c.seen.remove(types.UID(key.Name))
	c.calls.forget(types.UID(key.Name))
	c.labelWrites.forget(key)
	c.outages.forget(key)
	c.marked.remove(types.UID(key.Name))
	c.inherited.remove(types.UID(key.Name))
	c.imperative.forget(key)
}

// syncFinished deletes a finished request when its TTL has passed. Until then it only updates
// status.observedGeneration.
func (c *Controller) syncFinished(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	now := c.clock.Now()
	contradicted, err := c.isContradicted(ctx, request)
	if err != nil {
		return err
	}
	if isGarbage(now, request, c.ttlAfterFinished, contradicted || c.isMisnamed(request)) {
		c.queue.AddAfter(key, safetyDelay()) // Another client may have changed it first.
		if contradicted {
			klog.FromContext(ctx).Info("Deleting a request that says that its pod was evicted, because the pod runs", "evictionRequest", klog.KObj(request), "pod", targetName(request))
		}
		return c.writer.remove(ctx, request)
	}
	status, _ := computeStatus(now, time.Time{}, request, nil)
	return c.writer.setStatus(ctx, request, status)
}

// isContradicted reports whether the request says that its pod was evicted, although the pod runs, as after the
// restoration of a backup of etcd. The request would keep everybody from requesting the eviction. The cache may be
// old, so it only says when to ask the API server.
func (c *Controller) isContradicted(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) (bool, error) {
	if !meta.IsStatusConditionTrue(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)) {
		return false, nil
	}
	runs := func(pod *v1.Pod, err error) bool {
		return err == nil && string(pod.UID) == request.Name && pod.DeletionTimestamp == nil && !podutil.IsPodPhaseTerminal(pod.Status.Phase)
	}
	if !runs(c.podLister.Pods(request.Namespace).Get(targetName(request))) {
		return false, nil
	}
	pod, err := c.pods(ctx, request.Namespace, targetName(request))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading pod %s, which was evicted according to its request: %w", targetName(request), err)
	}
	return runs(pod, err), nil
}

// isMisnamed reports whether the request blocks the name of the request for another pod: it was
// canceled because its target was not found, and a pod with another name has the UID that is the
// name of the request. It reads the cache only: if that is stale, the event of the pod triggers the
// next sync.
func (c *Controller) isMisnamed(request *coordinationv1alpha1.EvictionRequest) bool {
	finished := evictionrequesttools.FinalCondition(request.Status.Conditions)
	if isInitialized(&request.Status) || finished.Reason != coordinationv1alpha1.EvictionRequestReasonValidationFailed {
		return false
	}
	pods, err := c.podLister.Pods(request.Namespace).List(labels.Everything())
	if err != nil {
		return false // A lister that reads from a cache returns no errors.
	}
	return slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
		return string(pod.UID) == request.Name && pod.Name != targetName(request)
	})
}

// targetPod returns the pod of a request, or nil if it is gone. The pod cache may be older than the
// request: a pod that it lacks is gone only if it was in the cache before, or if the API server
// confirms it.
func (c *Controller) targetPod(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) (*v1.Pod, error) {
	name, uid := targetName(request), types.UID(request.Name)
	pod, err := c.podLister.Pods(request.Namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	if err == nil && pod.UID == uid {
		c.seen.add(uid)
		return pod, nil
	}
	if c.seen.has(uid) {
		return nil, nil
	}
	pod, err = c.pods(ctx, request.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("confirming that pod %s is gone: %w", name, err)
	}
	if pod.UID != uid {
		return nil, nil
	}
	return pod, nil
}

// podSet is a set of pods that is safe for concurrent use. It is only a hint that saves API calls:
// a restart empties it.
type podSet struct {
	lock sync.Mutex
	uids sets.Set[types.UID]
}

func newPodSet() *podSet { return &podSet{uids: sets.New[types.UID]()} }

func (s *podSet) add(uid types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.uids.Insert(uid)
}

func (s *podSet) remove(uid types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.uids.Delete(uid)
}

func (s *podSet) has(uid types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.uids.Has(uid)
}

// podTimes stores a time for some pods. Like podSet, it is only a hint.
type podTimes struct {
	lock  sync.Mutex
	times map[types.UID]time.Time
}

func newPodTimes() *podTimes { return &podTimes{times: map[types.UID]time.Time{}} }

func (t *podTimes) set(uid types.UID, when time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.times[uid] = when
}

func (t *podTimes) remove(uid types.UID) {
	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.times, uid)
}

// get returns the time of the pod, and false if it has none.
func (t *podTimes) get(uid types.UID) (time.Time, bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	when, found := t.times[uid]
	return when, found
}

// since returns the time of the pod, which is now if it has none.
func (t *podTimes) since(uid types.UID, now time.Time) time.Time {
	t.lock.Lock()
	defer t.lock.Unlock()
	if when, found := t.times[uid]; found {
		return when
	}
	t.times[uid] = now
	return now
}

// remaining returns how long it is until the time of the pod. The result is zero or less if the
// time has passed or there is none.
func (t *podTimes) remaining(uid types.UID, now time.Time) time.Duration {
	t.lock.Lock()
	defer t.lock.Unlock()
	when, found := t.times[uid]
	if !found {
		return 0
	}
	return when.Sub(now)
}
