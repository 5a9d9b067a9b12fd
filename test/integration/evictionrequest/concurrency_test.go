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
	"fmt"
	"sync"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// testConcurrentWriters has requesters and an interceptor write concurrently with the controller,
// which updates the status for each new requester. No write may be lost.
func testConcurrentWriters(t *testing.T, c *cluster) {
	const pods, writes = 5, 10
	c.startController(clock.RealClock{})
	var writers sync.WaitGroup
	var targets []*v1.Pod
	for i := range pods {
		pod := c.createPod(newPod(fmt.Sprintf("pod-%d", i), withInterceptors(first)))
		targets = append(targets, pod)
		c.join(pod, drainer)
		c.awaitRequest(pod, "the first interceptor to be active", active(first))
		writers.Go(func() { c.joinMany(pod, writes) })
		writers.Go(func() { c.reportMany(pod, writes) })
	}
	testcluster.Join(t, "the writers", &writers)

	wantMessage := fmt.Sprintf("report %d", writes)
	for _, pod := range targets {
		request := c.awaitRequest(pod, "a sync after the last requester", func(request *coordinationv1alpha1.EvictionRequest) bool {
			return request.Status.ObservedGeneration == request.Generation
		})
		if got, want := len(request.Spec.Requesters), writes+1; got != want {
			t.Errorf("pod %s has %d requesters, want %d", pod.Name, got, want)
		}
		if got := request.Status.Interceptors[0].Message; got != wantMessage {
			t.Errorf("the last message of %s on pod %s is %q, want %q", first, pod.Name, got, wantMessage)
		}
		if got, want := describe(request), "active=first processed= first=started"; got != want {
			t.Errorf("the request for pod %s is %q, want %q", pod.Name, got, want)
		}
	}
}

// joinMany adds n requesters, one by one. It may run in a goroutine.
func (c *cluster) joinMany(pod *v1.Pod, n int) {
	for i := range n {
		name := fmt.Sprintf("requester-%d.example.com", i+1)
		if _, err := c.tryApplyRequesters(pod, name, coordinationapply.Requester().WithName(name)); err != nil {
			c.t.Errorf("joining as %s: %v", name, err)
		}
	}
}

// reportMany reports n times as the interceptor. It may run in a goroutine.
func (c *cluster) reportMany(pod *v1.Pod, n int) {
	now := metav1.Now()
	for i := range n {
		if err := c.tryReport(pod, started(first, now).WithMessage(fmt.Sprintf("report %d", i+1))); err != nil {
			c.t.Errorf("reporting as %s: %v", first, err)
		}
	}
}
