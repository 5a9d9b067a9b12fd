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
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	testingclock "k8s.io/utils/clock/testing"
)

// callCounts counts what a controller sends.
type callCounts struct {
	evictions, evicted, statuses, conflicts atomic.Int32
}

// through returns a transport that counts.
func (n *callCounts) through(next http.RoundTripper) http.RoundTripper {
	return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		path := request.URL.Path
		switch {
		case err != nil:
		case request.Method == http.MethodPost && strings.HasSuffix(path, "/eviction"):
			n.evictions.Add(1)
			if response.StatusCode == http.StatusCreated {
				n.evicted.Add(1)
			}
		case testcluster.IsWrite(request) && strings.Contains(path, "/evictionrequests/") && strings.HasSuffix(path, "/status"):
			n.statuses.Add(1)
			if response.StatusCode == http.StatusConflict {
				n.conflicts.Add(1)
			}
		}
		return response, err
	})
}

func (n *callCounts) String() string {
	return fmt.Sprintf("%d evictions, %d of which succeeded, and %d writes of statuses, %d of which had a conflict",
		n.evictions.Load(), n.evicted.Load(), n.statuses.Load(), n.conflicts.Load())
}

// expect fails if there were more calls.
func (n *callCounts) expect(t *testing.T, when string, evictions, statuses int) {
	t.Helper()
	t.Logf("%s: %s", when, n)
	if n.evictions.Load() > int32(evictions) || n.statuses.Load() > int32(statuses) {
		t.Errorf("%s: %s; want at most %d and %d", when, n, evictions, statuses)
	}
	if n.conflicts.Load() > 0 {
		t.Errorf("%s: %d conflicts of the controller with itself", when, n.conflicts.Load())
	}
}

// testExhaustedBudget has many pods under one budget that allows no eviction. The clock of the controller
// stands still unless the test moves it, so whatever happens follows from an event.
func testExhaustedBudget(t *testing.T, c *cluster) {
	const pods, leaving = 300, 100
	c.StartDisruptionController(c.namespace)
	targets := make([]*v1.Pod, pods)
	create := func(i int) {
		targets[i] = c.createRunningPod(newPod("guarded", func(pod *v1.Pod) { pod.Name = fmt.Sprintf("guarded-%d", i) }), v1.ConditionTrue)
	}
	create(0)
	c.createBudget("guard", targets[0], pods, policyv1.IfHealthyBudget)
	c.forEach(pods-1, func(i int) { create(i + 1) })
	now := testingclock.NewFakeClock(time.Now())
	c.SetServerTime(now)
	start := func() (*callCounts, func()) {
		counts := &callCounts{}
		return counts, c.startControllerWith(c.ClientThrough(controllerUser, counts.through), now)
	}

	counts, stop := start()
	c.forEach(pods, func(i int) { c.join(targets[i], drainer) })
	c.awaitBlocked(pods)
	counts.expect(t, "all are blocked", 1, 2*pods) // One write at the start of a request, and one for the refusal.

	now.Step(time.Minute)
	c.Eventually("the next probe", func(context.Context) (bool, string) { return counts.evictions.Load() == 2, counts.String() })
	c.evictSentinel("sentinel")
	counts.expect(t, "a minute later", 3, 2*pods+3)
	stop()

	counts, _ = start()
	c.evictSentinel("another-sentinel")
	counts.expect(t, "after a restart", 1, 2)

	before := counts.evictions.Load()
	c.patchBudget("guard", fmt.Sprintf(`{"minAvailable":%d}`, pods-leaving))
	c.Eventually("the pods that the budget allows to leave", func(ctx context.Context) (bool, string) {
		left, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=guarded"})
		if err != nil {
			return false, err.Error()
		}
		return len(left.Items) == pods-leaving, fmt.Sprintf("%d are left", len(left.Items))
	})
	c.Eventually("the ends of their requests", func(ctx context.Context) (bool, string) {
		ended := c.countRequests(ctx, "Evicted")
		return ended == leaving+2, fmt.Sprintf("%d have ended", ended)
	})
	// One that is refused because the cached budget is old is not tried again before that changes.
	counts.expect(t, "the budget has let some go", int(before)+3*leaving, 2+2*leaving)
	if got := counts.evicted.Load(); got != leaving+1 {
		t.Errorf("%d evictions have succeeded, want %d", got, leaving+1)
	}
}

// forEach calls a function for many objects, some at a time.
func (c *cluster) forEach(n int, do func(i int)) {
	c.t.Helper()
	var running sync.WaitGroup
	next := atomic.Int32{}
	for range 8 {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	running.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// countRequests returns for how many requests a condition is True.
func (c *cluster) countRequests(ctx context.Context, conditionType string) (n int) {
	requests, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	for _, request := range requests.Items {
		if meta.IsStatusConditionTrue(request.Status.Conditions, conditionType) {
			n++
		}
	}
	return n
}

func (c *cluster) awaitBlocked(n int) {
	c.t.Helper()
	c.Eventually("the budget to block all", func(ctx context.Context) (bool, string) {
		blocked := c.countRequests(ctx, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
		return blocked == n, fmt.Sprintf("%d are blocked", blocked)
	})
}

// evictSentinel evicts a pod that no budget protects, so that what the controller had to do before is
// done.
func (c *cluster) evictSentinel(name string) {
	c.t.Helper()
	pod := c.createRunningPod(newPod(name), v1.ConditionTrue)
	c.join(pod, drainer)
	c.awaitRequest(pod, "the end of "+name, evicted)
}
