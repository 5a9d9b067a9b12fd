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
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// requestCounts counts what a client sends, besides what it reads, by method and resource.
type requestCounts struct {
	lock   sync.Mutex
	counts map[string]int
}

func (n *requestCounts) through(next http.RoundTripper) http.RoundTripper {
	return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			parts := strings.Split(request.URL.Path, "/")
			name := parts[len(parts)-1]
			if name != "status" && name != "eviction" && request.Method != http.MethodPost {
				name = parts[len(parts)-2]
			}
			n.lock.Lock()
			n.counts[request.Method+" "+name]++
			n.lock.Unlock()
		}
		return next.RoundTrip(request)
	})
}

func (n *requestCounts) now() map[string]int {
	n.lock.Lock()
	defer n.lock.Unlock()
	return maps.Clone(n.counts)
}

// testCost counts what the evictions of pods without interceptors cost: with the creation of the request,
// three calls each, and nothing else, not even an event.
func testCost(t *testing.T, c *cluster) {
	const pods = 20
	counts := &requestCounts{counts: map[string]int{}}
	c.SetServerTime(clock.RealClock{})
	c.startControllerWith(c.ClientThrough(controllerUser, counts.through), clock.RealClock{})
	for i := range pods {
		pod := c.createPod(newPod(fmt.Sprint("plain-", i)))
		c.join(pod, drainer)
	}
	c.Eventually("the ends of all requests", func(ctx context.Context) (bool, string) {
		requests, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		ended := 0
		for i := range requests.Items {
			if evicted(&requests.Items[i]) {
				ended++
			}
		}
		return ended == pods, fmt.Sprintf("%d have ended", ended)
	})
	// Events are sent in their order: one that is due comes after all that must not be.
	guarded := c.createRunningPod(newPod("intercepted", withInterceptors(first)), v1.ConditionTrue)
	c.join(guarded, drainer)
	c.expectEvents("EvictionRequest", string(guarded.UID), "InterceptorActivated")
	want := map[string]int{"POST eviction": pods, "PUT status": pods + 1, "POST events": 1}
	if diff := cmp.Diff(want, counts.now()); diff != "" {
		t.Errorf("calls of the controller, for %d pods and one with an interceptor (-want +got):\n%s", pods, diff)
	}
}
