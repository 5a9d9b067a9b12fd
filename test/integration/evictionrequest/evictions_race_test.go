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
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// The storage reads the pod after admission has, and waits about 100 ms for budgets in between.
// These tests change what it finds. They begin the change at different times, so that they hit the
// moments that matter.

// raceStep is by how much a change begins later in each attempt.
const raceStep = 5 * time.Millisecond

// evictAsync calls pods/eviction, and returns a function that waits for the answer.
func (c *cluster) evictAsync(pod *v1.Pod, change func(*policyv1.Eviction)) (answer func() error) {
	answers := make(chan error, 1)
	go func() { answers <- c.evictWith(c.ClientOf(evictor), pod, change) }()
	return func() error { return <-answers }
}

// expectRuns fails the test unless this pod still runs.
func (c *cluster) expectRuns(what string, pod *v1.Pod) {
	c.t.Helper()
	current, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || current.UID != pod.UID || current.DeletionTimestamp != nil {
		c.t.Fatalf("%s: pod %s, which has interceptors, was evicted: %v", what, pod.Name, err)
	}
}

// testEvictionOfGuessedVersion has an evictor that names versions which the pod does not have yet.
func testEvictionOfGuessedVersion(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("changing", withInterceptors(first)), v1.ConditionTrue)
	for i := range 20 {
		pod = c.setAnnotation(pod, "touched", fmt.Sprint(i))
		version, err := strconv.Atoi(pod.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		var answers []func() error
		for guess := version + 1; guess <= version+4; guess++ {
			answers = append(answers, c.evictAsync(pod, func(eviction *policyv1.Eviction) {
				version := strconv.Itoa(guess)
				eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}
			}))
		}
		time.Sleep(time.Duration(i) * raceStep)
		c.setAnnotation(pod, "touched", "again")
		for _, answer := range answers {
			if err := answer(); err == nil {
				t.Errorf("an eviction with a guessed resourceVersion was allowed")
			}
		}
		c.expectRuns("a guessed resourceVersion", pod)
	}
}

// setAnnotation returns the pod with the annotation.
func (c *cluster) setAnnotation(pod *v1.Pod, key, value string) *v1.Pod {
	c.t.Helper()
	annotated, err := c.client.CoreV1().Pods(c.namespace).Patch(c.t.Context(), pod.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatalf("annotating pod %s: %v", pod.Name, err)
	}
	return annotated
}

// testEvictionWhileReplaced evicts a pod by name, which another pod gets before it is evicted.
func testEvictionWhileReplaced(t *testing.T, c *cluster) {
	for i := range 20 {
		plain := c.createRunningPod(newPod("swapped"), v1.ConditionTrue)
		c.awaitInAdmission(plain)
		answer := c.evictAsync(plain, nil)
		time.Sleep(time.Duration(i) * raceStep)
		if err := c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), plain.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("deleting a pod: %v", err)
		}
		successor := c.createPod(newPod("swapped", withInterceptors(first)))
		err := answer()
		c.expectRuns(fmt.Sprintf("its predecessor was evicted with the answer %v", err), successor)
		c.deletePod(successor)
	}
}

// testEvictionDuringRegistration registers an interceptor while the pod is evicted.
func testEvictionDuringRegistration(t *testing.T, c *cluster) {
	for i := range 20 {
		pod := c.createRunningPod(newPod(fmt.Sprintf("registered-%d", i)), v1.ConditionTrue)
		c.awaitInAdmission(pod)
		answer := c.evictAsync(pod, nil)
		time.Sleep(time.Duration(i) * raceStep)
		registered, err := c.client.CoreV1().Pods(c.namespace).Patch(t.Context(), pod.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"10"}}}`, coordinationv1alpha1.EvictionInterceptorAnnotationPrefix+first), metav1.PatchOptions{})
		answered := answer()
		if err != nil {
			continue // It was evicted before.
		}
		if _, evicting := podutil.GetPodCondition(&registered.Status, v1.DisruptionTarget); evicting != nil || registered.DeletionTimestamp != nil {
			continue
		}
		c.expectRuns(fmt.Sprintf("it had registered before the answer %v", answered), pod)
		if !apierrors.IsTooManyRequests(answered) {
			t.Errorf("evicting a pod with a new interceptor: %v, want 429", answered)
		}
	}
}

// testEvictionOfNewPod has callers who evict a name all the time, also when no pod has it.
func testEvictionOfNewPod(t *testing.T, c *cluster) {
	ctx, cancel := context.WithCancel(t.Context())
	var waits atomic.Int64
	var callers sync.WaitGroup
	name := newPod("fresh")
	for range 8 {
		client := c.ClientOf(evictor)
		callers.Go(func() {
			for ctx.Err() == nil {
				if apierrors.IsTooManyRequests(c.evictWith(client, name, nil)) {
					waits.Add(1)
				}
			}
		})
	}
	defer callers.Wait()
	defer cancel()
	for range 100 {
		before := waits.Load()
		pod := c.createPod(newPod("fresh", withInterceptors(first)))
		c.Eventually("the callers to see the pod", func(context.Context) (bool, string) {
			c.expectRuns("it was just created", pod)
			return waits.Load() > before+8, "none waits"
		})
		c.deletePod(pod)
	}
}
