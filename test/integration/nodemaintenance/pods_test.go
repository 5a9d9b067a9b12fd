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

package nodemaintenance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
)

// blocked returns the condition Drained of a drain that needs an intervention.
func blocked(format string, args ...any) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: coordinationv1alpha1.NodeMaintenanceReasonBlocked, Message: fmt.Sprintf(format, args...)}
}

// testPodTypes drains pods of all types, in order. The interceptors of DaemonSet and static pods
// complete without stopping them, and the condition reports these pods as blocked.
func testPodTypes(t *testing.T, c *cluster) {
	c.createNode("one")
	pod := c.createPod(newPod("default", "one", withInterceptor(stubborn)))
	daemon := c.createPod(newPod("daemon", "one", ofDaemonSet("agent")))
	mirror := c.createPod(newPod("mirror", "one", static))
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the eviction of the pod of type Default", states{"request/default": asked, "request/daemon": "none", "request/mirror": "none"})

	c.deletePod(pod)
	c.await("the eviction of the DaemonSet pod", states{"request/daemon": asked, "request/mirror": "none"})
	c.report(daemon, coordinationapply.EvictionRequestStatus().WithInterceptors(
		startedBy(coordinationv1alpha1.EvictionInterceptorDaemonSet).WithCompletionTime(metav1.Now())))
	c.awaitDrained("m", blocked("2 pods left on 1 of 1 node. 1 DaemonSet pod is still running after all interceptors have acted: %s/daemon.", c.namespace), 1)
	c.expect("the drain not to continue", states{"node/one": draining, "pod/daemon": "here", "request/mirror": "none"})

	c.deletePod(daemon)
	c.await("the eviction of the static pod", states{"request/mirror": asked})
	c.report(mirror, coordinationapply.EvictionRequestStatus().WithInterceptors(
		startedBy(coordinationv1alpha1.EvictionInterceptorKubelet).WithCompletionTime(metav1.Now())))
	c.awaitDrained("m", blocked("1 pod left on 1 of 1 node. 1 static pod is still running after all interceptors have acted: %s/mirror.", c.namespace), 1)

	c.deletePod(mirror)
	c.await("the drain to finish", states{"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained", "node/one": empty})
	c.expectInvariants(history)
}

// testSilentDaemonSet waits until an interceptor that never reports is a blocker.
func testSilentDaemonSet(t *testing.T, c *cluster) {
	c.createNode("one")
	daemon := c.createPod(newPod("daemon", "one", ofDaemonSet("agent")))
	c.SetServerTime(c.clock)
	c.startEvictionControllerAt(c.clock)
	c.startLogged()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the request", states{"request/daemon": asked})
	since := c.request(daemon).Status.ActivationTime.UTC().Format(time.RFC3339)
	c.awaitDrained("m", blocked("1 pod left on 1 of 1 node. 1 pod waits for interceptor daemonset.apps.k8s.io, which has never reported (active since %s): %s/daemon.", since, c.namespace), 1)
}

// testTerminalPods drains terminal pods, and one that becomes terminal during the drain.
func testTerminalPods(_ *testing.T, c *cluster) {
	c.createNode("one")
	for _, phase := range []v1.PodPhase{v1.PodSucceeded, v1.PodFailed} {
		c.setPhase(c.createPod(newPod("done-"+strings.ToLower(string(phase)), "one")), phase)
	}
	pod := c.createPod(newPod("running", "one", withInterceptor(stubborn)))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the request", states{"request/running": asked, "node/one": draining})
	c.awaitDrains("only the running pod to count", map[string]drain{
		"m": {pending: 0, active: 1, message: "Draining", targets: []v1.DrainPlanEntry{defaultPods(1000000000)}},
	})
	c.setPhase(pod, v1.PodSucceeded)
	c.await("the drain to finish", states{
		"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained", "node/one": empty,
		"request/done-succeeded": "none", "request/done-failed": "none", "pod/running": "here",
	})
}

// testLatePods creates pods on a node during its drain: one of an earlier entry of the plan, and
// one with the name of a pod that is gone.
func testLatePods(t *testing.T, c *cluster) {
	c.createNode("one")
	pod := c.createPod(newPod("high", "one", atPriority(5000), withInterceptor(stubborn)))
	history := c.watchAll()
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf(defaultPods(1000), defaultPods(5000))...))
	c.await("the second entry", states{"request/high": asked, "targets/one": targetsOf(c, "Draining", defaultPods(5000))})

	c.createPod(newPod("low", "one", atPriority(500), withInterceptor(stubborn)))
	c.await("the late pod", states{"request/low": asked, "targets/one": targetsOf(c, "Draining", defaultPods(5000))})

	c.deletePod(pod)
	c.createPod(newPod("high", "one", atPriority(5000), withInterceptor(stubborn)))
	c.await("the pod with the same name", states{"request/high": "Evicted by [nodemaintenance.k8s.io]; " + asked})
	c.expectInvariants(history)
}

// testSchedulingGroup drains a pod that an EvictionRequest cannot evict.
func testSchedulingGroup(t *testing.T, c *cluster) {
	c.createNode("one")
	group := "group"
	c.createPod(newPod("grouped", "one", func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} }))
	c.createPod(newPod("single", "one"))
	_, writes := c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the other pod to be evicted", states{
		"pod/single": "gone", "pod/grouped": "here", "request/grouped": "Canceled by [nodemaintenance.k8s.io]",
		"maintenance/m": "Cordon, Drain of 1, finalizer, False: Blocked", "node/one": draining,
	})
	c.awaitDrained("m", blocked("1 pod left on 1 of 1 node. 1 pod cannot be evicted by an EvictionRequest: %s/grouped.", c.namespace), 1)
	c.settle()
	before := len(writes.all())
	c.settle()
	if after := writes.all(); len(after) != before {
		t.Errorf("the controller keeps writing: %v", after[before:])
	}
}
