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
	"fmt"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
)

// syncRequest takes the next step for one request.
func (c *Controller) syncRequest(ctx context.Context, key types.NamespacedName) error {
	if !c.writer.isCurrent(key) {
		return nil // The event that brings our own last write brings the next sync.
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
	if isFinished(&request.Status) {
		c.forget(key)
		return c.collectGarbage(ctx, request)
	}
	pod, err := c.targetPod(ctx, request)
	if err != nil {
		return err
	}
	var labelsErr error
	if pod != nil {
		// First, so that an interceptor that selects requests by label sees this one
		// before, or when, it is activated. Where somebody refuses the labels, the
		// eviction goes on without them.
		var labeled *coordinationv1alpha1.EvictionRequest
		labeled, labelsErr = c.writer.setLabels(ctx, request, missingLabels(request, pod))
		switch {
		case labeled != nil:
			request = labeled
		case labelsErr == nil:
			return nil // The request has changed otherwise meanwhile.
		}
	}
	status, lookAgainAfter := computeStatus(c.clock.Now(), request, pod)
	if err := c.writer.setStatus(ctx, request, status); err != nil {
		return err
	}
	if lookAgainAfter > 0 {
		c.queue.AddAfter(key, lookAgainAfter)
	}
	return labelsErr
}

// forget drops what is remembered of the pod of a request that is over.
func (c *Controller) forget(key types.NamespacedName) {
	c.seen.remove(types.UID(key.Name))
	c.imperative.evicted.remove(types.UID(key.Name))
	c.imperative.retryAfter.remove(types.UID(key.Name))
}

// collectGarbage deletes a finished request when its time has come.
func (c *Controller) collectGarbage(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
	decision, wait := decideGarbage(c.clock.Now(), request, c.ttlAfterFinished)
	switch decision {
	case garbageWait:
		c.queue.AddAfter(types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, wait)
	case garbageDelete:
		return c.writer.remove(ctx, request)
	}
	return nil
}

// targetPod returns the pod of a request, or nil when it is gone. The cache may be
// behind the request: what it lacks is gone only if it was there before, or the API
// server says so.
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

func newPodGetter(client clientset.Interface) podGetter {
	return func(ctx context.Context, namespace, name string) (*v1.Pod, error) {
		return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

// podSet is a set of pods that is safe for concurrent use. What it holds is a hint
// that saves API calls, never the only proof of anything: a restart empties it.
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

// podTimes remembers a time for some pods. Like podSet, it is a hint and no memory.
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

// remaining returns how long it is until the time of the pod; zero or less when it has
// come, or there is none.
func (t *podTimes) remaining(uid types.UID, now time.Time) time.Duration {
	t.lock.Lock()
	defer t.lock.Unlock()
	when, found := t.times[uid]
	if !found {
		return 0
	}
	return when.Sub(now)
}
