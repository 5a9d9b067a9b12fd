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

package deploymentsurge

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// testCanceledBeforeAvailable cancels the eviction before the replacement is available.
func testCanceledBeforeAvailable(t *testing.T, c *cluster) {
	c.startControllers()
	history := c.watchAll()
	old := c.startSurge(1)[0]
	c.withdraw(old)
	c.await("the surge to be reverted", states{
		string(old.UID): "Canceled", "replicaSets": "1", "pods": "1 ready", "condition": "none", "deployment": "1 of 1: complete",
	})
	c.expectLiving(old)
	c.expectBounds(history, bounds{most: 2, least: 1})
}

// testCanceledWhenAvailable cancels the eviction when the replacement is available, but before the
// controller can react.
func testCanceledWhenAvailable(t *testing.T, c *cluster) {
	scaling := newScalingBarrier()
	c.startControllersThrough(true, scaling.Wrap)
	old := c.createDeployment(newDeployment(1))[0]
	history := c.watchAll()
	c.replaceBehind(scaling, old)
	c.withdraw(old)
	c.await("the cancellation", states{string(old.UID): "Canceled"})
	scaling.Open()
	c.await("the surge to be reverted", states{"replicaSets": "1", "pods": "1 ready", "condition": "none", "deployment": "1 of 1: complete"})
	c.expectBounds(history, bounds{most: 2, least: 1})
}

// testCanceledWhileLeaving cancels the eviction after the ReplicaSet was scaled down, but before it
// has deleted the pod: the pod stays, and the younger replacement is deleted.
func testCanceledWhileLeaving(t *testing.T, c *cluster) {
	deletion := testcluster.NewBarrier(func(request *http.Request) bool {
		return request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/pods/")
	})
	c.startControllersThrough(true, deletion.Wrap)
	old := c.createDeployment(newDeployment(1))[0]
	history := c.watchAll()
	deletion.Close()
	c.request(old)
	c.await("the pod to be leaving", states{"replicaSets": "1 (0 extra, 1 leaving)", "pods": "2 ready", "condition": "True Surging: Surging 1/1"})
	c.withdraw(old)
	c.await("the cancellation", states{string(old.UID): "Canceled"})
	deletion.Open()
	c.await("the surge to be reverted", states{"replicaSets": "1", "pods": "1 ready", "condition": "none", "deployment": "1 of 1: complete"})
	c.expectLiving(old)
	c.expectBounds(history, bounds{most: 2, least: 1, changes: true})
}

// testWithdrawnDuringDeletion withdraws the request while the deletion of the pod is in flight, as if a webhook took its
// time: the request does not say that the pod stays.
func testWithdrawnDuringDeletion(t *testing.T, c *cluster) {
	arrived, proceed := make(chan string, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	defer release()
	c.startControllersThrough(true, func(next http.RoundTripper) http.RoundTripper {
		return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/pods/") {
				arrived <- request.URL.Path
				<-proceed
			}
			return next.RoundTrip(request)
		})
	})
	old := c.createDeployment(newDeployment(1))[0]
	history := c.watchAll()
	c.request(old)
	if path := testcluster.Receive(t, "the deletion", arrived); !strings.HasSuffix(path, "/"+old.Name) {
		t.Fatalf("%s is deleted, not pod %s", path, old.Name)
	}
	c.withdraw(old)
	generation := c.requestFor(old).Generation
	c.awaitRequest(old, "the withdrawal to be seen", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.ObservedGeneration == generation
	})
	// The extra replica comes back, and its controller cannot have seen that before the answer.
	c.await("the pod not to be leaving", states{"replicaSets": "2 (1 extra, 0 leaving)", "pods": "2 ready"})
	if state := c.stateOf(t.Context(), string(old.UID)); strings.HasPrefix(state, "Canceled") {
		t.Errorf("the request is %s while the deletion of its pod is in flight", state)
	}
	release()
	c.await("the pod to be replaced", states{string(old.UID): "Evicted", "replicaSets": "1", "pods": "1 ready", "condition": "none", "deployment": "1 of 1: complete"})
	c.expectBounds(history, bounds{most: 2, least: 1, changes: true})
}

// testOneOfTwoCanceled cancels one of two evictions.
func testOneOfTwoCanceled(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.createDeployment(newDeployment(3, withMaxSurge(intstr.FromInt32(2))))
	history := c.watchAll()
	c.setUnready(except(pods...))
	c.request(pods[0], pods[1])
	c.await("the surge", states{"replicaSets": "5 (2 extra, 0 leaving)", "pods": "3 ready, 2 not"})
	c.withdraw(pods[0])
	c.await("half of the surge to be reverted", states{
		string(pods[0].UID): "Canceled", "replicaSets": "4 (1 extra, 0 leaving)", "pods": "3 ready, 1 not", "condition": "True Surging: Surging 0/1",
	})
	c.setUnready(none)
	c.awaitMoved(3, pods[1])
	c.expectLiving(pods[0], pods[2])
	c.expectBounds(history, bounds{most: 5, least: 3})
}
