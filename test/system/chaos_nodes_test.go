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

package system

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

const (
	// tick is the interval at which the kubelet and the interceptor list objects.
	tick = 200 * time.Millisecond

	// shortTermination and longTermination are the times in which pods terminate: shorter and
	// longer than the restart of a component.
	shortTermination = time.Second
	longTermination  = 10 * time.Second
)

// kubelet deletes pods some time after they start to terminate, and records that start.
type kubelet struct {
	terminating map[types.UID]terminating
}

// terminating is the time at which a pod started to terminate.
type terminating struct {
	seen   time.Time
	server time.Time // By the API server's clock, in whole seconds.
}

func newKubelet() *kubelet { return &kubelet{terminating: map[types.UID]terminating{}} }

// run is the loop of the kubelet. It retries failures: the API server may be down.
func (k *kubelet) run(tCtx ktesting.TContext) {
	pods := tCtx.Client().CoreV1().Pods(tCtx.Namespace())
	wait.UntilWithContext(tCtx, func(ctx context.Context) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range list.Items {
			if pod := &list.Items[i]; pod.DeletionTimestamp != nil && k.isOver(pod) {
				options := metav1.NewDeleteOptions(0)
				options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
				_ = pods.Delete(ctx, pod.Name, *options)
			}
		}
	}, tick)
}

// isOver reports whether a pod has terminated for long enough.
func (k *kubelet) isOver(pod *v1.Pod) bool {
	since, found := k.terminating[pod.UID]
	if !found {
		// deletionTimestamp is when the grace period ends, not when it began.
		grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		since = terminating{seen: time.Now(), server: pod.DeletionTimestamp.Add(-grace)}
		k.terminating[pod.UID] = since
	}
	if pod.Labels[appLabel] == slow {
		return time.Since(since.seen) >= longTermination
	}
	return time.Since(since.seen) >= shortTermination
}

// intercept is the loop of the interceptor: it reports its start in one tick and its completion in
// the next. It retries failures.
func intercept(tCtx ktesting.TContext) {
	wait.UntilWithContext(tCtx, func(ctx context.Context) {
		requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range requests.Items {
			request := &requests.Items[i]
			if entry := interceptorStatus(request, interceptor); isActive.reached(request) && entry.CompletionTime == nil {
				_ = report(tCtx, request, entry.StartTime != nil)
			}
		}
	}, tick)
}
