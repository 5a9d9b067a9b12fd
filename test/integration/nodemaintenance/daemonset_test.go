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
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/ptr"
)

// TestDaemonSets uses one API server for all tests. Each test has its own nodes, DaemonSets and
// controllers.
func TestDaemonSets(t *testing.T) {
	setInterception(t, intercepts)
	// The plugin would add a taint to new nodes that no controller removes in these tests.
	config := startAPIServer(t, framework.SharedEtcd(), true, "--disable-admission-plugins=TaintNodesByCondition")
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"in the order of the plan", testDaemonSetsInOrder},
		{"pods outside the targets are created", testDaemonsOutsideTargets},
		{"the maintenance is canceled", testDaemonsCancelled},
		{"a rolling update during a drain", testDaemonsRolledMeanwhile},
		{"the controller is restarted", testDaemonsRestart},
		{"a request without a maintenance", testDaemonsOutsideMaintenance},
		{"the gate is enabled and disabled", testDaemonsGate},
		{"pods whose DaemonSet is deleted", testDaemonsOrphaned},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}

func setInterception(t *testing.T, interception interception) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:            true,
		features.DeclarativeNodeMaintenance:    true,
		features.NodeMaintenanceAwareDaemonSet: bool(interception),
	})
}

// testDaemonSetsInOrder drains a node including the pods of DaemonSets, and releases it.
func testDaemonSetsInOrder(t *testing.T, c *cluster) {
	c.createNode("one", pool)
	first := c.createPod(newPod("first", "one", withInterceptor(stubborn)))
	c.createDaemonSet(newDaemonSet("low", 1000, slowly))
	c.createDaemonSet(newDaemonSet("high", 5000, slowly))
	c.startKubelets()
	history := c.watchAll()
	c.startDaemonSetController(intercepts)
	c.await("the DaemonSets", states{"daemon/low@one": "v1 runs", "daemon/high@one": "v1 runs", "daemonset/low": "1 of 1, 1 updated"})
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf(daemonPods(1000), daemonPods(5000))...))
	c.await("other pods to be evicted first", states{"request/first": asked, "daemon/low@one": "v1 runs", "daemon/high@one": "v1 runs"})

	c.deletePod(first)
	c.await("the pod of the first DaemonSet to terminate", states{"daemon/low@one": "v1 terminating, Intercepting", "daemon/high@one": "v1 runs"})
	c.expectReport(c.daemon("low", "one"), "Terminating the pod of DaemonSet low for node maintenance m (test).")
	c.awaitEvent("DeletedForMaintenance", "low")
	c.endDaemons("low", "one")
	c.await("the pod of the second DaemonSet to terminate", states{
		"daemon/low@one": "none", "daemonset/low": "0 of 0, 0 updated", "daemon/high@one": "v1 terminating, Intercepting", "node/one": draining,
	})
	c.endDaemons("high", "one")
	drained := states{
		"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained", "node/one": empty,
		"daemon/low@one": "none", "daemon/high@one": "none", "daemonset/low": "0 of 0, 0 updated", "daemonset/high": "0 of 0, 0 updated",
	}
	c.await("the end of the drain", drained)
	// Both changes trigger a sync of the DaemonSets.
	c.labelNode("one", "some", "label")
	c.roll("v2", "low")
	c.await("the controller to reconcile again", states{"daemonset/low": "0 of 0, 0 updated"})
	c.expect("no pod to be created again", drained)

	c.setStage("m", stageComplete)
	c.await("the pods of the DaemonSets to be created again", states{
		"node/one": free, "daemon/low@one": "v2 runs", "daemon/high@one": "v1 runs", "daemonset/low": "1 of 1, 1 updated", "daemonset/high": "1 of 1, 1 updated",
	})
	c.expectInvariants(history)
	c.expectNoneCreatedWithinTargets(history)
}

// expectReport waits until the interceptor reports the message for a pod that it has just deleted.
// It must report when the grace period ends, and must not complete its turn.
func (c *cluster) expectReport(pod *v1.Pod, message string) {
	c.t.Helper()
	c.eventually("the report on pod "+pod.Name, func(context.Context) (bool, string) {
		entry := c.interceptorEntry(pod)
		if entry.StartTime == nil || entry.HeartbeatTime == nil || entry.ExpectedFinishTime == nil {
			return false, fmt.Sprint(entry)
		}
		if entry.CompletionTime != nil {
			c.t.Fatalf("completed before the pod is gone: %v", entry)
		}
		// The deletionTimestamp is the end of the grace period.
		if early := pod.DeletionTimestamp.Sub(entry.ExpectedFinishTime.Time); early.Abs() > 5*time.Second {
			c.t.Fatalf("the ETA is %v, want %v", entry.ExpectedFinishTime, pod.DeletionTimestamp)
		}
		return entry.Message == message, entry.Message
	})
}

// testDaemonsOutsideTargets deletes a pod and creates a DaemonSet during a drain.
func testDaemonsOutsideTargets(t *testing.T, c *cluster) {
	c.createNode("one", pool)
	c.createNode("two", pool)
	c.createDaemonSet(newDaemonSet("low", 1000, slowly))
	c.createDaemonSet(newDaemonSet("critical", 5000))
	c.startKubelets()
	history := c.watchAll()
	c.startDaemonSetController(intercepts)
	c.await("the DaemonSets", states{"daemonset/low": "2 of 2, 2 updated", "daemonset/critical": "2 of 2, 2 updated"})
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf(daemonPods(1000), daemonPods(5000))...))
	c.await("the drain", states{"daemon/low@one": "v1 terminating, Intercepting", "targets/one": targetsOf(c, "Draining", defaultPods(2147483647), daemonPods(1000))})

	lost := c.daemon("critical", "one")
	c.deletePod(lost)
	c.eventually("the critical pod to be created again", func(ctx context.Context) (bool, string) {
		pods, err := c.daemons(ctx, c.client, "critical", "one")
		return err == nil && len(pods) == 1 && pods[0].UID != lost.UID && pods[0].Status.Phase == v1.PodRunning, fmt.Sprint(err)
	})
	c.createDaemonSet(newDaemonSet("late", 500))
	c.await("a new DaemonSet to create no pod on the node", states{
		"daemonset/late": "1 of 1, 1 updated", "daemon/late@one": "none", "daemon/late@two": "v1 runs",
		"daemon/low@one": "v1 terminating, Intercepting", "daemon/low@two": "v1 runs", "daemonset/low": "1 of 1, 1 updated",
		"daemon/critical@one": "v1 runs", "daemonset/critical": "2 of 2, 2 updated",
	})

	c.endDaemons("low", "one")
	c.await("the critical pod to leave", states{
		"node/one": empty, "daemon/low@one": "none", "daemon/critical@one": "none", "daemon/critical@two": "v1 runs", "daemonset/critical": "1 of 1, 1 updated",
	})
	c.deleteMaintenance("m")
	all := "2 of 2, 2 updated"
	c.await("all pods to be created again", states{"daemonset/low": all, "daemonset/critical": all, "daemonset/late": all})
	c.expectInvariants(history)
	c.expectNoneCreatedWithinTargets(history)
}

// testDaemonsCancelled completes a maintenance while one pod terminates, one waits for another
// interceptor, and the eviction of one is not requested yet.
func testDaemonsCancelled(t *testing.T, c *cluster) {
	c.createNode("one", pool)
	c.createDaemonSet(newDaemonSet("leaving", 1000, slowly))
	c.createDaemonSet(newDaemonSet("waiting", 1000, interceptedBy(stubborn)))
	c.createDaemonSet(newDaemonSet("later", 5000))
	c.startKubelets()
	c.startDaemonSetController(intercepts)
	c.await("the DaemonSets", states{"daemon/leaving@one": "v1 runs", "daemon/waiting@one": "v1 runs", "daemon/later@one": "v1 runs"})
	waiting, later := c.daemon("waiting", "one"), c.daemon("later", "one")
	if diff := cmp.Diff([]v1.EvictionInterceptor{{Name: stubborn}, {Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}}, waiting.Spec.EvictionInterceptors); diff != "" {
		t.Errorf("interceptors of the pod (-want +got):\n%s", diff)
	}
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf(daemonPods(1000), daemonPods(5000))...))
	c.await("the drain", states{"daemon/leaving@one": "v1 terminating, Intercepting", "daemon/waiting@one": "v1 runs, Intercepting", "daemon/later@one": "v1 runs"})

	c.setStage("m", stageComplete)
	// The request of the pod that terminates is not canceled: it would say that the pod stays.
	c.await("the cancellation", states{
		"node/one": free, "daemon/leaving@one": "v1 terminating, Intercepting", "daemon/waiting@one": "v1 runs, Canceled", "daemon/later@one": "v1 runs",
	})
	c.endDaemons("leaving", "one")
	c.await("the terminated pod to be created again", states{"daemon/leaving@one": "v1 runs", "daemonset/leaving": "1 of 1, 1 updated"})
	c.expectUntouched(waiting)
	c.expectUntouched(later)
}

// testDaemonsRolledMeanwhile updates DaemonSets while a node is drained. Their pods on the node are
// gone, terminating, or waiting for another interceptor; two of them have a surge.
func testDaemonsRolledMeanwhile(_ *testing.T, c *cluster) {
	for _, node := range []string{"one", "two", "three"} {
		c.createNode(node, pool)
	}
	c.createDaemonSet(newDaemonSet("gone", 1000))
	c.createDaemonSet(newDaemonSet("waiting", 1000, interceptedBy(stubborn)))
	c.createDaemonSet(newDaemonSet("leaving", 1000, slowly))
	c.createDaemonSet(newDaemonSet("surging", 1000, surging))
	c.createDaemonSet(newDaemonSet("surging-waiting", 1000, surging, interceptedBy(stubborn)))
	names := []string{"gone", "waiting", "leaving", "surging", "surging-waiting"}
	c.startKubelets()
	history := c.watchAll()
	c.startDaemonSetController(intercepts)
	for _, name := range names {
		c.await("DaemonSet "+name, states{"daemonset/" + name: "3 of 3, 3 updated"})
	}
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf(daemonPods(1000))...))
	onOne := states{
		"daemon/gone@one": "none", "daemon/waiting@one": "v1 runs, Intercepting", "daemon/leaving@one": "v1 terminating, Intercepting",
		"daemon/surging@one": "none", "daemon/surging-waiting@one": "v1 runs, Intercepting", "node/one": draining,
	}
	c.await("the drain", onOne)
	waiting := []*v1.Pod{c.daemon("waiting", "one"), c.daemon("surging-waiting", "one")}

	// maxUnavailable is 1: the drained node must not count, or the rollout would stop.
	c.roll("v2", "gone", "waiting", "surging", "surging-waiting")
	for _, name := range []string{"gone", "waiting", "surging", "surging-waiting"} {
		c.await("the rollout of "+name, states{"daemon/" + name + "@two": "v2 runs", "daemon/" + name + "@three": "v2 runs"})
	}
	c.await("the status", states{
		"daemonset/gone": "2 of 2, 2 updated", "daemonset/surging": "2 of 2, 2 updated",
		"daemonset/waiting": "3 of 3, 2 updated", "daemonset/surging-waiting": "3 of 3, 2 updated",
	})
	c.roll("v2", "leaving")
	c.endRolled("leaving", "two", "three")
	c.await("the rollout despite a terminating pod", states{"daemon/leaving@two": "v2 runs", "daemon/leaving@three": "v2 runs", "daemonset/leaving": "2 of 2, 2 updated"})
	c.expect("no change on the drained node", onOne)
	for _, pod := range waiting {
		c.expectUntouched(pod)
	}

	c.endDaemons("leaving", "one")
	c.setStage("m", stageComplete)
	for _, name := range names {
		c.await("the new pod of "+name, states{"daemon/" + name + "@one": "v2 runs", "daemonset/" + name: "3 of 3, 3 updated"})
	}
	c.expectInvariants(history)
	c.expectNoneCreatedWithinTargets(history)
}

// endRolled removes the pods of a DaemonSet that a rolling update deletes, in any order.
func (c *cluster) endRolled(daemonSet string, nodes ...string) {
	c.t.Helper()
	c.eventually("the old pods of "+daemonSet+" to be replaced", func(ctx context.Context) (bool, string) {
		state := ""
		for _, node := range nodes {
			text := c.describeDaemons(ctx, daemonSet, node)
			if text == "v1 terminating" {
				c.endDaemons(daemonSet, node)
			}
			state += node + ": " + text + "; "
		}
		return !slices.ContainsFunc(nodes, func(node string) bool { return c.describeDaemons(ctx, daemonSet, node) != "v2 runs" }), state
	})
}

// testDaemonsRestart stops the DaemonSet controller before the eviction is requested, before the
// pod is gone, and before the node is released, and starts another one after each.
func testDaemonsRestart(_ *testing.T, c *cluster) {
	c.createNode("one", pool)
	c.createDaemonSet(newDaemonSet("agent", 1000, slowly))
	c.startKubelets()
	history := c.watchAll()
	stop := c.startDaemonSetController(intercepts)
	c.await("the DaemonSet", states{"daemonset/agent": "1 of 1, 1 updated"})
	stop()
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the request", states{"daemon/agent@one": "v1 runs, Intercepting"})

	stop = c.startDaemonSetController(intercepts)
	c.await("the pod to be deleted", states{"daemon/agent@one": "v1 terminating, Intercepting", "daemonset/agent": "0 of 0, 0 updated"})
	pod := c.daemon("agent", "one")
	c.expectReport(pod, "Terminating the pod of DaemonSet agent for node maintenance m (test).")
	started := c.interceptorEntry(pod).StartTime
	stop()

	// The pod is removed while no controller runs.
	c.endDaemons("agent", "one")
	c.await("the drain to finish", states{"node/one": empty, "request/agent": "none"})
	stop = c.startDaemonSetController(intercepts)
	c.roll("v2", "agent")
	c.await("the next controller to reconcile", states{"daemonset/agent": "0 of 0, 0 updated", "daemon/agent@one": "none"})
	if entry := c.interceptorEntry(pod); !entry.StartTime.Equal(started) {
		c.t.Errorf("the startTime is %v, and %v after a restart", started, entry.StartTime)
	}
	stop()

	// The node is released while no controller runs.
	c.deleteMaintenance("m")
	c.await("the node to be released", states{"node/one": free})
	c.startDaemonSetController(intercepts)
	c.await("the pod to be created again", states{"daemon/agent@one": "v2 runs", "daemonset/agent": "1 of 1, 1 updated"})
	c.expectInvariants(history)
	c.expectNoneCreatedWithinTargets(history)
}

// testDaemonsOutsideMaintenance requests the eviction of a pod whose node is not drained yet: the
// interceptor must not act until the drain reaches the pod.
func testDaemonsOutsideMaintenance(t *testing.T, c *cluster) {
	c.createNode("one", pool)
	c.createDaemonSet(newDaemonSet("agent", 1000))
	c.createDaemonSet(newDaemonSet("witness", 1000))
	c.startKubelets()
	c.startDaemonSetController(intercepts)
	c.await("the DaemonSets", states{"daemonset/agent": "1 of 1, 1 updated", "daemonset/witness": "1 of 1, 1 updated"})
	c.startQuick()
	pod := c.daemon("agent", "one")
	c.ApplyRequesters(pod, scaler, scaler)
	c.await("the request", states{"daemon/agent@one": "v1 runs, Intercepting"})
	c.createPod(newPod("first", "one", withInterceptor(stubborn)))
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the drain of other pods", states{"request/first": asked, "node/one": draining})
	if diff := cmp.Diff(&coordinationv1alpha1.InterceptorStatus{Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}, c.interceptorEntry(pod)); diff != "" {
		t.Errorf("the interceptor must report nothing (-want +got):\n%s", diff)
	}
	c.expectUntouched(pod)

	c.deletePod(newPod("first", "one"))
	c.await("the drain", states{"daemon/agent@one": "none", "daemon/witness@one": "none", "node/one": empty})
	c.eventually("the condition Evicted of the request", func(context.Context) (bool, string) {
		request := c.request(pod)
		return slices.ContainsFunc(request.Status.Conditions, func(condition metav1.Condition) bool {
			return condition.Type == string(coordinationv1alpha1.EvictionRequestConditionEvicted) && condition.Status == metav1.ConditionTrue
		}), fmt.Sprint(request.Status)
	})
}

// testDaemonsGate drains a pod that was created while the gate was off. Enabling and disabling the
// gate must not start a rollout.
func testDaemonsGate(t *testing.T, c *cluster) {
	c.createNode("one", pool)
	c.createNode("two", pool)
	c.createDaemonSet(newDaemonSet("agent", 1000))
	c.startKubelets()
	all := states{"daemonset/agent": "2 of 2, 2 updated", "daemon/agent@one": "v1 runs", "daemon/agent@two": "v1 runs"}
	var before []*v1.Pod
	var revisions []appsv1.ControllerRevision
	t.Run("off", func(t *testing.T) {
		setInterception(t, doesNotIntercept)
		stop := c.startDaemonSetController(doesNotIntercept)
		c.await("the DaemonSet", all)
		stop()
		before = []*v1.Pod{c.daemon("agent", "one"), c.daemon("agent", "two")}
		revisions = c.revisions()
	})
	if names := before[0].Spec.EvictionInterceptors; len(names) > 0 {
		t.Fatalf("with the gate off, the pod has the interceptors %v", names)
	}

	stop := c.startDaemonSetController(intercepts)
	c.nudge("agent")
	c.await("the controller with the gate on", all)
	c.expectUntouched(before[0])
	c.expectUntouched(before[1])
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the old pod to leave", states{"node/one": empty, "daemon/agent@one": "none", "daemonset/agent": "1 of 1, 1 updated"})
	c.deleteMaintenance("m")
	c.await("a new pod", all)
	renewed := c.daemon("agent", "one")
	if diff := cmp.Diff([]v1.EvictionInterceptor{{Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}}, renewed.Spec.EvictionInterceptors); diff != "" {
		t.Errorf("interceptors of the new pod (-want +got):\n%s", diff)
	}
	stop()

	t.Run("off again", func(t *testing.T) {
		setInterception(t, doesNotIntercept)
		stop := c.startDaemonSetController(doesNotIntercept)
		defer stop()
		c.nudge("agent")
		c.await("the controller with the gate off", all)
	})
	c.expectUntouched(before[1])
	c.expectUntouched(renewed)
	if diff := cmp.Diff(revisions, c.revisions()); diff != "" {
		t.Errorf("revisions before and after (-before +after):\n%s", diff)
	}
}

func (c *cluster) revisions() []appsv1.ControllerRevision {
	c.t.Helper()
	revisions, err := c.client.AppsV1().ControllerRevisions(c.namespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatalf("listing revisions: %v", err)
	}
	return revisions.Items
}

// nudge waits until the controller has reconciled the latest version of the DaemonSet.
func (c *cluster) nudge(name string) {
	c.t.Helper()
	ctx, sets := c.t.Context(), c.client.AppsV1().DaemonSets(c.namespace)
	c.eventually("the controller to reconcile "+name, func(context.Context) (bool, string) {
		ds, err := sets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if limit := ptr.Deref(ds.Spec.RevisionHistoryLimit, 0); limit < 100 {
			// This changes the generation and does not start a rollout.
			ds.Spec.RevisionHistoryLimit = ptr.To(limit + 100)
			_, err = sets.Update(ctx, ds, metav1.UpdateOptions{})
			return false, fmt.Sprint(err)
		}
		return ds.Status.ObservedGeneration == ds.Generation, describeDaemonSet(ds)
	})
	c.eventually("the limit to be restored", func(context.Context) (bool, string) {
		ds, err := sets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if limit := *ds.Spec.RevisionHistoryLimit; limit >= 100 {
			ds.Spec.RevisionHistoryLimit = ptr.To(limit - 100)
			_, err = sets.Update(ctx, ds, metav1.UpdateOptions{})
			return false, fmt.Sprint(err)
		}
		return ds.Status.ObservedGeneration == ds.Generation, describeDaemonSet(ds)
	})
}

// testDaemonsOrphaned deletes a DaemonSet and keeps its pod. The pod is then drained like pods
// without a controller, although it lists the interceptor.
func testDaemonsOrphaned(_ *testing.T, c *cluster) {
	c.createNode("one", pool)
	c.createDaemonSet(newDaemonSet("agent", 1000))
	c.startKubelets()
	c.startDaemonSetController(intercepts)
	c.await("the DaemonSet", states{"daemonset/agent": "1 of 1, 1 updated"})
	pod := c.daemon("agent", "one")
	// The garbage collector does the same when a DaemonSet is deleted with the policy Orphan.
	c.deleteDaemonSet("agent")
	c.orphan(pod)
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the pod to be evicted", states{"daemon/agent@one": "none", "node/one": empty})
	if entry := c.interceptorEntry(pod); entry.CompletionTime == nil || entry.Message != "Skipped: no DaemonSet controls the pod." {
		c.t.Errorf("the interceptor has reported %v", entry)
	}
}
