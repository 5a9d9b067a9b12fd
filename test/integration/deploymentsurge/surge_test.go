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
	"fmt"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// startSurge creates a Deployment and requests its first pod. The replacement stays unready until
// the test changes that.
func (c *cluster) startSurge(replicas int32) []*v1.Pod {
	c.T.Helper()
	pods := c.createDeployment(newDeployment(replicas))
	c.surge(pods)
	return pods
}

// surge requests the first of these pods, which are all pods.
func (c *cluster) surge(pods []*v1.Pod) {
	c.T.Helper()
	c.setUnready(except(pods...))
	c.request(pods[0])
	c.await("the surge", states{
		string(pods[0].UID): "Intercepting by deployment: Surging 0/1", "condition": "True Surging: Surging 0/1",
		"replicaSets": fmt.Sprintf("%d (1 extra, 0 leaving)", len(pods)+1), "pods": fmt.Sprintf("%d ready, 1 not", len(pods)),
	})
}

// newScalingBarrier prevents controllers from writing ReplicaSets while it is closed.
func newScalingBarrier() *testcluster.Barrier {
	return testcluster.NewBarrier(func(request *http.Request) bool {
		return testcluster.IsWrite(request) && strings.Contains(request.URL.Path, "/replicasets/") && !strings.HasSuffix(request.URL.Path, "/status")
	})
}

// replaceBehind requests a single pod, and makes its replacement available behind a closed barrier,
// so that the controllers cannot react.
func (c *cluster) replaceBehind(scaling *testcluster.Barrier, old *v1.Pod) {
	c.T.Helper()
	c.surge([]*v1.Pod{old})
	scaling.Close()
	c.setUnready(none)
	c.await("the replacement", states{"pods": "2 ready", "replicaSets": "2 (1 extra, 0 leaving)"})
}
