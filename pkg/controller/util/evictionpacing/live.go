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

package evictionpacing

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
	clientset "k8s.io/client-go/kubernetes"
)

// readTimeout limits one reading of the requests of a workload.
const readTimeout = 30 * time.Second

// LiveReleases reads from the API server which pods were released. The pods of a workload that are released at the same
// time, of which there may be thousands, share a reading: each begins after the pod was released, and is of all requests
// of the workload.
type LiveReleases struct {
	list       func(context.Context, workload) (*coordinationv1alpha1.EvictionRequestList, error)
	isReleased func(*coordinationv1alpha1.EvictionRequest) bool

	lock sync.Mutex
	// next has the workloads with a reading under way, and for each the reading that follows, nil if none is wanted.
	next map[workload]*reading
}

// workload is whose requests are read. Their labels are those of the pods, which the selector selects.
type workload struct{ namespace, selector string }

// reading is one list of the requests of a workload.
type reading struct {
	// done is closed when the rest is set.
	done     chan struct{}
	released []*coordinationv1alpha1.EvictionRequest
	err      error
}

// NewLiveReleases returns a reader that reads through the client, and for which isReleased says whether a request is for
// a pod that its workload has released.
func NewLiveReleases(client clientset.Interface, isReleased func(*coordinationv1alpha1.EvictionRequest) bool) *LiveReleases {
	list := func(ctx context.Context, of workload) (*coordinationv1alpha1.EvictionRequestList, error) {
		return client.CoordinationV1alpha1().EvictionRequests(of.namespace).List(ctx, metav1.ListOptions{LabelSelector: of.selector})
	}
	return &LiveReleases{list: list, isReleased: isReleased, next: map[workload]*reading{}}
}

// Unknown returns the name of a pod of a workload that was released without that this process knows it,
// or "": by another process, which has the turns now or had them until a moment ago. A process that was suspended goes
// on with an old cache, and does not know yet that it no longer leads. So the requests are read from the API server
// before a pod is released.
func (l *LiveReleases) Unknown(ctx context.Context, namespace string, selector *metav1.LabelSelector, isKnown func(*coordinationv1alpha1.EvictionRequest) bool) (string, error) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("reading the selector: %w", err)
	}
	r := l.join(ctx, workload{namespace, compiled.String()})
	select {
	case <-r.done:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if r.err != nil {
		return "", fmt.Errorf("reading the eviction requests: %w", r.err)
	}
	for _, request := range r.released {
		if !isKnown(request) {
			return request.Spec.Target.Pod.Name, nil
		}
	}
	return "", nil
}

// join returns a reading that has not begun.
func (l *LiveReleases) join(ctx context.Context, of workload) *reading {
	l.lock.Lock()
	defer l.lock.Unlock()
	r, isUnderWay := l.next[of]
	if r == nil {
		r = &reading{done: make(chan struct{})}
		l.next[of] = r
	}
	if !isUnderWay {
		go l.readAll(context.WithoutCancel(ctx), of) // It is for others as well.
	}
	return r
}

// readAll makes one reading after another until none is wanted.
func (l *LiveReleases) readAll(ctx context.Context, of workload) {
	for r := l.begin(of); r != nil; r = l.begin(of) {
		r.released, r.err = l.read(ctx, of)
		close(r.done)
	}
}

// begin returns the reading that begins now, or nil.
func (l *LiveReleases) begin(of workload) *reading {
	l.lock.Lock()
	defer l.lock.Unlock()
	r := l.next[of]
	if r == nil {
		delete(l.next, of)
	} else {
		l.next[of] = nil
	}
	return r
}

func (l *LiveReleases) read(ctx context.Context, of workload) ([]*coordinationv1alpha1.EvictionRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	live, err := l.list(ctx, of)
	if err != nil {
		return nil, err
	}
	var released []*coordinationv1alpha1.EvictionRequest
	for i := range live.Items {
		if request := &live.Items[i]; request.Spec.Target.Pod != nil && l.isReleased(request) {
			released = append(released, request)
		}
	}
	return released, nil
}

// HasChanged reports whether a pod that waits for no other one, because of what a cache shows, is not like that: it may
// have ended long ago. It reads the pod from the API server. isStill reports whether a pod is as in the cache.
func HasChanged(ctx context.Context, client clientset.Interface, name types.NamespacedName, uid types.UID, isStill func(*v1.Pod) bool) (bool, error) {
	pod, err := client.CoreV1().Pods(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading pod %s: %w", name, err)
	}
	return pod.UID == uid && !isStill(pod), nil
}
