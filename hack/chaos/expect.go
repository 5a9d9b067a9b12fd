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
	"errors"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/hack/controlplane"
)

// settleTimeout is how long evictions may take after the last kill. A refusal during
// the start of an API server delays the next attempt by a minute.
const settleTimeout = 100 * time.Second

// expectUnprotectedEvicted waits until all pods are gone but the protected ones, of
// which none may have been touched.
func (t *chaosTest) expectUnprotectedEvicted(ctx context.Context) error {
	if err := t.awaitAllEvicted(ctx, func(pod *v1.Pod) bool { return pod.Labels[kindLabel] != protected }); err != nil {
		return err
	}
	attempts, err := readAttempts(t.plane.AuditLogs())
	if err != nil {
		return err
	}
	for _, pod := range t.pods {
		if pod.Labels[kindLabel] != protected {
			continue
		}
		if err := t.ExpectStays(ctx, pod, 0); err != nil {
			return fmt.Errorf("a protected pod: %w", err)
		}
		if a := attempts[pod.UID]; a != nil && len(a.accepted) > 0 {
			return fmt.Errorf("the eviction of the protected pod %s was accepted", pod.Name)
		}
		if _, err := t.AwaitRequest(ctx, pod, "the request to be blocked", controlplane.IsTrue(coordinationv1alpha1.EvictionRequestConditionBlocked)); err != nil {
			return err
		}
	}
	t.say("all unprotected pods are evicted, and no protected one")
	return nil
}

// expectProtectedEvicted deletes the budget, so that the rest must go as well: no
// request may be stuck. Then it looks at how often each pod was evicted.
func (t *chaosTest) expectProtectedEvicted(ctx context.Context) error {
	if err := t.DeleteBudget(ctx, protected); err != nil {
		return err
	}
	if err := t.awaitAllEvicted(ctx, func(*v1.Pod) bool { return true }); err != nil {
		return err
	}
	attempts, err := readAttempts(t.plane.AuditLogs())
	if err != nil {
		return err
	}
	var errs []error
	unanswered := 0
	for _, pod := range t.pods {
		errs = append(errs, t.expectEvictedOnce(pod, attempts))
		if a := attempts[types.UID(pod.Name)]; a != nil {
			unanswered += a.unanswered
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.say("after their budget was deleted, the protected pods are evicted too")
	t.say("ok: %d pods, each evicted exactly once; %d calls were cut off by a kill", len(t.pods), unanswered)
	return nil
}

// expectEvictedOnce counts the evictions of a pod. One that was cut off by a kill may
// have been the one; then none must have been accepted while the pod terminated.
func (t *chaosTest) expectEvictedOnce(pod *v1.Pod, all map[types.UID]*attempts) error {
	answered, cutOff := all[pod.UID], all[types.UID(pod.Name)]
	if answered == nil {
		answered = &attempts{}
	}
	if cutOff == nil {
		cutOff = &attempts{}
	}
	switch n := len(answered.accepted); {
	case n > 1:
		return fmt.Errorf("the eviction of pod %s was accepted %d times: %v", pod.Name, n, answered.accepted)
	case n == 0 && cutOff.unanswered == 0:
		return fmt.Errorf("pod %s is gone, but was never evicted", pod.Name)
	}
	since, seen := t.kubelet.termination(pod.UID)
	if !seen {
		return fmt.Errorf("pod %s is gone, but never terminated", pod.Name)
	}
	for _, at := range answered.accepted {
		// The beginning is known to the second.
		if at.After(since.Add(time.Second)) {
			return fmt.Errorf("pod %s terminated since %v, and was evicted again at %v", pod.Name, since, at)
		}
	}
	return nil
}

// awaitAllEvicted waits until the pods are gone and their requests have ended so.
func (t *chaosTest) awaitAllEvicted(ctx context.Context, wanted func(*v1.Pod) bool) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, tick, settleTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = t.notEvicted(ctx, wanted)
		return err == nil && len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("%d pods are not evicted, among them %v: %w", len(left), left[:min(len(left), 3)], err)
	}
	return nil
}

// notEvicted says of which wanted pods the eviction has not ended, and how far it is.
func (t *chaosTest) notEvicted(ctx context.Context, wanted func(*v1.Pod) bool) ([]string, error) {
	pods, err := t.Client.CoreV1().Pods(t.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the pods: %w", err)
	}
	there := map[types.UID]bool{}
	for _, pod := range pods.Items {
		there[pod.UID] = true
	}
	requests, err := t.Client.CoordinationV1alpha1().EvictionRequests(t.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the requests: %w", err)
	}
	status := map[types.UID]*coordinationv1alpha1.EvictionRequestStatus{}
	ended := map[types.UID]bool{}
	for i := range requests.Items {
		request := &requests.Items[i]
		uid := types.UID(request.Name)
		status[uid] = &request.Status
		ended[uid] = controlplane.IsTrue(coordinationv1alpha1.EvictionRequestConditionEvicted)(request)
	}
	var left []string
	for _, pod := range t.pods {
		if wanted(pod) && (there[pod.UID] || !ended[pod.UID]) {
			left = append(left, fmt.Sprintf("%s (exists: %t, status of the request: %+v)", pod.Name, there[pod.UID], status[pod.UID]))
		}
	}
	return left, nil
}
