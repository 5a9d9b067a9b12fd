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

package lifecycleeviction

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// testReserved asks with reserved names: they must not keep others from asking.
func testReserved(c *cluster) {
	pod := c.createPod("web")
	for i, name := range []string{"k8s.io/evil", "nodemaintenance.k8s.io/evil", "kubernetes.io/evil"} {
		_, err := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).Create(c.T.Context(), newRequest(fmt.Sprintf("evil-%d", i), name, pod), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			c.T.Errorf("%s: %v", name, err)
		}
	}
	c.ask("long", strings.Repeat("a.", 120)+"example.com/"+strings.Repeat("b", 63), pod)
	c.ask("one", drainer, pod)
	c.expectGone(pod)
	c.expectRequest("one", deleted)
}

// testFull fills the request of a pod with names that have not come by the group, so that no other name can be added. The
// controllers that begin then must act for those that are there.
func testFull(c *cluster) {
	pod := c.createPod("web")
	shared, stopEngine := c.startEngine(true)
	_ = shared
	stopEngine()
	for i := range 100 {
		name := fmt.Sprintf("example.com/many-%d", i)
		c.ApplyRequesters(pod, name, name)
	}
	c.ask("one", drainer, pod)
	c.start()
	c.expectGone(pod)
	c.expectRequest("one", deleted)
}

// testSuspended suspends the controller that leads in the middle of its request for an eviction, until after another one has
// led, and told everybody that the eviction is canceled. Nothing may be evicted when it goes on.
func testSuspended(c *cluster) {
	pod := c.createPod("web")
	suspended, resume, resumed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	suspend, goOn := sync.OnceFunc(func() { close(suspended) }), sync.OnceFunc(func() { close(resumed) })
	ctx, cancel := context.WithCancel(c.T.Context())
	former := c.ClientThrough(controllerUser, func(next http.RoundTripper) http.RoundTripper {
		return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodPatch {
				return next.RoundTrip(request)
			}
			suspend()
			<-resume
			defer goOn()
			return next.RoundTrip(request)
		})
	})
	stop := c.startDoorThrough(ctx, cancel, former, nil)
	c.ask("one", drainer, pod)
	<-suspended

	shared, _ := c.startEngine(true)
	slow := c.ClientThrough(controllerUser, func(next http.RoundTripper) http.RoundTripper {
		return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch {
				time.Sleep(3 * time.Second)
			}
			return next.RoundTrip(request)
		})
	})
	ctx, cancel = context.WithCancel(c.T.Context())
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	other := c.createPod("other")
	c.ask("other", drainer, other)
	c.startDoorThrough(ctx, cancel, slow, shared)
	c.expectGone(other)
	close(resume)
	<-resumed
	stop()
	c.expectState(pod, evictionrequesttools.StateCanceled)
	c.expectStays(pod)
}
