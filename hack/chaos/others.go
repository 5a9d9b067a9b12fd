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

package main

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/hack/controlplane"
)

const (
	// tick is how often the kubelet and the interceptor look around.
	tick = 200 * time.Millisecond

	// shortTermination and longTermination are how long pods take to end: less and more
	// than a component takes to come back.
	shortTermination = time.Second
	longTermination  = 10 * time.Second
)

// kubelet ends pods that terminate, and remembers since when each did.
type kubelet struct {
	lock          sync.Mutex
	terminatingAt map[types.UID]time.Time // By the API server's clock, in whole seconds.
	seenAt        map[types.UID]time.Time
}

func newKubelet() *kubelet {
	return &kubelet{terminatingAt: map[types.UID]time.Time{}, seenAt: map[types.UID]time.Time{}}
}

// see notes that a pod terminates, and tells whether it has done so for long enough.
func (k *kubelet) see(pod *v1.Pod) (over bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if _, seen := k.seenAt[pod.UID]; !seen {
		k.seenAt[pod.UID] = time.Now()
		// deletionTimestamp is when the grace period ends, not when it began.
		grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		k.terminatingAt[pod.UID] = pod.DeletionTimestamp.Add(-grace)
	}
	termination := shortTermination
	if pod.Labels[kindLabel] == slow {
		termination = longTermination
	}
	return time.Since(k.seenAt[pod.UID]) >= termination
}

// termination returns since when a pod has terminated, and whether it ever did.
func (k *kubelet) termination(uid types.UID) (time.Time, bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	since, ok := k.terminatingAt[uid]
	return since, ok
}

// terminatePods is the kubelet's loop. What fails is tried again with the next tick:
// the API server may be dead.
func (t *chaosTest) terminatePods(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		pods, err := t.Client.CoreV1().Pods(t.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp != nil && t.kubelet.see(pod) {
				options := metav1.NewDeleteOptions(0)
				options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
				_ = t.Client.CoreV1().Pods(t.Name).Delete(ctx, pod.Name, *options)
			}
		}
	}, tick)
}

// intercept is the interceptor's loop: it starts with one tick and completes with the
// next. What fails is tried again.
func (t *chaosTest) intercept(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		requests, err := t.Client.CoordinationV1alpha1().EvictionRequests(t.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range requests.Items {
			request := &requests.Items[i]
			if !controlplane.IsActive(controlplane.Interceptor)(request) {
				continue
			}
			entry := controlplane.InterceptorStatus(request, controlplane.Interceptor)
			if entry.CompletionTime == nil {
				target := request.Spec.Target.Pod
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: target.Name, UID: types.UID(target.UID)}}
				_ = t.Report(ctx, pod, entry.StartTime != nil)
			}
		}
	}, tick)
}
