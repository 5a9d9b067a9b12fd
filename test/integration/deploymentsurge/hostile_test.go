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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// hostileTests are annotations that another client writes to a ReplicaSet with two replicas. PODS
// stands for the UIDs of its pods.
var hostileTests = []struct{ name, value string }{
	{"garbage", "garbage"},
	{"another type", `{"surge":"1","of":2}`},
	{"huge", `{"surge":2147483647,"of":2147483647,"desired":2}`},
	{"huge, and of the right size", `{"surge":2147483647,"of":2,"desired":2}`},
	{"negative", `{"surge":-1,"of":2,"desired":2}`},
	{"all replicas are extra", `{"surge":2,"of":2,"desired":2}`},
	{"one replica is extra", `{"surge":1,"of":2,"desired":2}`},
	{"all pods are leaving", `{"surge":0,"of":2,"desired":2,"leaving":[PODS]}`},
	{"all replicas are extra and all pods leaving", `{"surge":2,"of":2,"desired":2,"leaving":[PODS]}`},
	{"all replicas are extra, and the Deployment wants none", `{"surge":2,"of":2,"desired":0}`},
	{"in the future", `{"surge":1,"of":2,"desired":2,"since":"2999-01-01T00:00:00Z"}`},
}

// annotation is a patch that sets the annotation.
func annotation(value string, pods []*v1.Pod) string {
	var uids []string
	for _, pod := range pods {
		uids = append(uids, fmt.Sprintf("%q", pod.UID))
	}
	quoted, _ := json.Marshal(strings.ReplaceAll(value, "PODS", strings.Join(uids, ",")))
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, deploymentutil.EvictionSurgeAnnotation, quoted)
}

// testHostile writes the annotation as another client, first without a surge, and then in
// mid-surge.
func testHostile(value string) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		c.startControllers()
		pods := c.createDeployment(newDeployment(2))
		history := c.watchAll()
		c.annotate(annotation(value, pods))
		c.await("the annotation to be gone", states{"replicaSets": "2", "pods": "2 ready", "deployment": "2 of 2: complete", "condition": "none"})
		c.expectLiving(pods...)

		c.surge(pods)
		c.annotate(annotation(strings.ReplaceAll(value, `"of":2`, `"of":3`), c.livingPods()))
		c.await("the surge to continue", states{"replicaSets": "3 (1 extra, 0 leaving)", "pods": "2 ready, 1 not"})
		c.expectLiving(pods...)
		c.setUnready(none)
		c.awaitMoved(2, pods[0])
		c.expectLiving(pods[1])
		// A forged surge adds one more replica for a moment.
		c.expectBounds(history, bounds{most: 4, least: 2, changes: true})
	}
}

// testHostileDeployment writes the annotation to the Deployment, where it has no effect.
func testHostileDeployment(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.createDeployment(newDeployment(2))
	history := c.watchAll()
	c.patch(annotation(`{"surge":1,"of":2,"desired":2}`, pods))
	c.request(pods[0])
	c.awaitMoved(2, pods[0])
	c.expectLiving(pods[1])
	for _, rs := range c.replicaSets() {
		if value, ok := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; ok {
			t.Errorf("annotation %s of replicaset %s: %q, must not come from the Deployment", deploymentutil.EvictionSurgeAnnotation, rs.Name, value)
		}
	}
	// The annotation changes the Deployment.
	c.expectBounds(history, bounds{most: 3, least: 2, changes: true})
}

// testRecordRemoved removes the annotation again and again in mid-surge: it is restored ever more slowly, and the
// replacement that starts stays.
func testRecordRemoved(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.createDeployment(newDeployment(2))
	c.surge(pods)
	before, restored := c.livingPods(), 0
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, rs := range c.replicaSets() {
			if *rs.Spec.Replicas != 3 {
				t.Fatalf("replicaset %s has %d replicas, want 3", rs.Name, *rs.Spec.Replicas)
			}
			if _, ok := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; ok {
				restored++
				c.annotate(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, deploymentutil.EvictionSurgeAnnotation))
			}
		}
	}
	// Once in the beginning, three times at once, and then after five seconds.
	if restored < 4 || restored > 5 {
		t.Errorf("the annotation was there %d times in 5 seconds", restored)
	}
	c.expectLiving(before...)
	c.awaitRequest(pods[0], "the contest", func(request *coordinationv1alpha1.EvictionRequest) bool {
		report := reportOf(request, coordinationv1alpha1.EvictionInterceptorDeployment)
		return report != nil && strings.Contains(report.Message, "another client keeps removing the annotation")
	})
	c.setUnready(none)
	c.awaitMoved(2, pods[0])
	c.expectLiving(pods[1])
}
