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
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// TestLeaderChange has two controllers with leader election like kube-controller-manager. The
// result must be the same as with one controller.
func TestLeaderChange(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	flow := flows[0]
	uninterrupted, _ := flow.run(t, config, testcluster.KillFirst(0, testcluster.AfterWrite))
	t.Run("leader cut off", func(t *testing.T) {
		flow.runKilledAtEveryWrite(t, testcluster.AfterWrite, uninterrupted, func(t *testing.T, n int) (*end, bool) {
			return flow.runWithLeaderCutOff(t, config, n)
		})
	})
	t.Run("two leaders, one flow", func(t *testing.T) {
		c := newCluster(t, config)
		c.StartDisruptionController(c.namespace)
		expectSameEnd(t, uninterrupted, flow.playAndCheck(c, c.startTwoLeaders()))
	})
	t.Run("two leaders, many pods", func(t *testing.T) { testTwoLeaders(t, newCluster(t, config)) })
}

// runWithLeaderCutOff cuts the leader off at its n-th write, including its lease. The other
// candidate waits until the lease expires.
func (f flow) runWithLeaderCutOff(t *testing.T, config *rest.Config, n int) (*end, bool) {
	c := newCluster(t, config)
	c.StartDisruptionController(c.namespace)
	evictions := newEvictionCounter()
	leader := newCandidate("leader", testcluster.NewLifeline(n, testcluster.AfterWrite), evictions)
	leader.start(c)
	leader.awaitLeading(c)
	newCandidate("successor", testcluster.NewLifeline(0, testcluster.AfterWrite), evictions).start(c)
	go func() {
		select {
		case <-leader.work.Cut():
			leader.lease.Sever()
		case <-t.Context().Done():
		}
	}()
	return f.playAndCheck(c, evictions), leader.work.WasCut()
}

// testTwoLeaders has both controllers process the same pods concurrently. The cache of each does
// not have the latest writes of the other.
func testTwoLeaders(t *testing.T, c *cluster) {
	const pods = 30
	evictions := c.startTwoLeaders()
	var targets []*v1.Pod
	for i := range pods {
		pod := c.createRunningPod(newPod(fmt.Sprintf("pod-%d", i), withGracePeriod(3600)), v1.ConditionTrue)
		c.join(pod, drainer)
		targets = append(targets, pod)
	}
	for _, pod := range targets {
		c.Eventually("pod "+pod.Name+" to terminate", func(ctx context.Context) (bool, string) {
			current, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return current.DeletionTimestamp != nil, "not terminating"
		})
	}
	for _, pod := range targets {
		c.deletePod(pod)
		request := c.awaitRequest(pod, "the end of the request", evicted)
		if got, want := describe(request), "active= processed=imperative imperative=completed Evicted=PodDeleted"; got != want {
			t.Errorf("the request for pod %s ended as %q, want %q", pod.Name, got, want)
		}
		if got := evictions.of(pod.Name); got != 1 {
			t.Errorf("the API server accepted %d evictions of pod %s, want 1", got, pod.Name)
		}
	}
}

// startTwoLeaders creates a situation that leader election cannot exclude: a leader that does not
// notice that it has lost the lease, and continues concurrently with its successor.
func (c *cluster) startTwoLeaders() *evictionCounter {
	c.t.Helper()
	evictions := newEvictionCounter()
	former := newCandidate("former", testcluster.NewLifeline(0, testcluster.AfterWrite), evictions)
	former.oblivious = true
	former.start(c)
	former.awaitLeading(c)
	former.lease.Sever()
	successor := newCandidate("successor", testcluster.NewLifeline(0, testcluster.AfterWrite), evictions)
	successor.start(c)
	successor.awaitLeading(c)
	return evictions
}

// candidate is a controller that runs while it is the leader.
type candidate struct {
	name string
	// work and lease are its connections to the API server.
	work, lease *testcluster.Lifeline
	evictions   *evictionCounter
	// oblivious is whether it continues after it has lost the lease.
	oblivious bool
	leading   chan struct{} // Closed when it is the leader.
}

func newCandidate(name string, work *testcluster.Lifeline, evictions *evictionCounter) *candidate {
	return &candidate{name: name, work: work, lease: testcluster.NewLifeline(0, testcluster.AfterWrite), evictions: evictions, leading: make(chan struct{})}
}

// start runs the candidate until the end of the test.
func (l *candidate) start(c *cluster) {
	c.t.Helper()
	var working sync.Mutex
	announce := sync.OnceFunc(func() { close(l.leading) })
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: "kube-controller-manager"},
			Client:     c.ClientThrough("", l.lease.Wrap).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.name},
		},
		// The shortest durations in whole seconds.
		LeaseDuration: 2 * time.Second,
		RenewDeadline: 1500 * time.Millisecond,
		RetryPeriod:   250 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				working.Lock()
				defer working.Unlock()
				stop := c.startControllerWith(c.ClientThrough(controllerUser, l.evictions.behind(l.work)), clock.RealClock{})
				announce()
				if l.oblivious {
					<-c.t.Context().Done()
				} else {
					<-leading.Done()
				}
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		c.t.Fatalf("creating the leader elector of %s: %v", l.name, err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		// On a busy machine, a leader may lose the lease during the test.
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	})
	c.t.Cleanup(func() {
		cancel()
		testcluster.Join(c.t, "candidate "+l.name, &running)
	})
}

func (l *candidate) awaitLeading(c *cluster) {
	c.t.Helper()
	testcluster.Receive(c.t, "candidate "+l.name+" to become the leader", l.leading)
}
