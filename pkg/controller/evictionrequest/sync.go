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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// syncRequest brings the status of one request up to date.
func (c *Controller) syncRequest(ctx context.Context, key types.NamespacedName) error {
	request, err := c.requestLister.EvictionRequests(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if isFinished(&request.Status) {
		return nil
	}
	pod, err := c.targetPod(ctx, request)
	if err != nil {
		return err
	}
	status, lookAgainAfter := computeStatus(c.clock.Now(), request, pod)
	if err := c.writer.apply(ctx, request, status); err != nil {
		return err
	}
	if lookAgainAfter > 0 {
		c.queue.AddAfter(key, lookAgainAfter)
	}
	return nil
}

// targetPod returns the pod of a request, or nil when it is gone. The cache may be
// behind the request: what it lacks is gone only if its deletion was seen, or the
// API server says so.
func (c *Controller) targetPod(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) (*v1.Pod, error) {
	name, uid := targetName(request), types.UID(request.Name)
	pod, err := c.podLister.Pods(request.Namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	if err == nil && pod.UID == uid {
		return pod, nil
	}
	if c.deleted.has(uid) {
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

// statusWriter is the only one in this package that writes to requests.
type statusWriter struct {
	update func(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error
}

func newStatusWriter(client clientset.Interface) *statusWriter {
	return &statusWriter{update: func(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
		_, err := client.CoordinationV1alpha1().EvictionRequests(request.Namespace).UpdateStatus(ctx, request, metav1.UpdateOptions{})
		return err
	}}
}

// apply writes the status if it differs from what the request has. It is an update of
// what was read: when somebody else was faster, the write fails, and the next sync
// decides anew.
func (w *statusWriter) apply(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, status *coordinationv1alpha1.EvictionRequestStatus) error {
	if apiequality.Semantic.DeepEqual(&request.Status, status) {
		return nil
	}
	updated := request.DeepCopy()
	updated.Status = *status
	err := w.update(ctx, updated)
	switch {
	case apierrors.IsNotFound(err):
		return nil // Deleted meanwhile: nobody asks any more.
	case apierrors.IsConflict(err):
		// The cache is behind; the event that brings the newer object brings the next
		// sync too. Nothing is lost, so this is no error.
		klog.FromContext(ctx).V(4).Info("The request changed meanwhile", "evictionRequest", klog.KObj(request))
		return nil
	case err != nil:
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
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
