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
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/clock"
)

// TestReplicaSet tests the ReplicaSet controller as an interceptor.
func TestReplicaSet(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"pods of Deployments that surge name their controllers", testInjection},
		{"existing workloads do not change when the gate changes", testInjectionTurnedOnAndOff},
		{"pod is evicted", testReplicaSetEvicts},
		{"pod that names it by hand is evicted", testReplicaSetNamedByHand},
		{"interceptor completes for a pod without a ReplicaSet", testReplicaSetNamedWithoutReplicaSet},
		{"no other interceptor for a terminating pod", testNoOtherInterceptorForTerminatingPod},
		{"refused by a budget, which the message names", testReplicaSetWithinBudget},
		{"refused by two budgets, which the message names", testReplicaSetWithinTwoBudgets},
		{"scale-down deletes the requested pod first", testScaleDownTakesRequestedPod},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}

func testInjection(t *testing.T, c *cluster) {
	c.startWorkloads(true)
	both := []string{deploymentInterceptor, replicaSetInterceptor}
	one := intstr.FromInt32(1)
	c.createDeploymentThat("surges", surging(one))
	c.createDeploymentThat("surges-by-share", surging(intstr.FromString("25%")))
	c.createDeploymentThat("own-list", surging(one), first, second)
	c.createDeploymentThat("own-order", surging(one), replicaSetInterceptor, first)
	c.createDeploymentThat("no-surge", surging(intstr.FromInt32(0)))
	c.createDeploymentThat("recreates", appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})
	c.createReplicaSet("bare", 1)
	c.createReplicationController("replication")
	for app, want := range map[string][]string{
		"surges":          both,
		"surges-by-share": both,
		"own-list":        {first, second, deploymentInterceptor, replicaSetInterceptor},
		"own-order":       {replicaSetInterceptor, first, deploymentInterceptor},
		"no-surge":        {},
		"recreates":       {},
		"bare":            {},
		"replication":     {},
	} {
		pod := c.awaitPods(app, 1)[0]
		if diff := cmp.Diff(want, interceptorNames(&pod.Spec)); diff != "" {
			t.Errorf("interceptors of the pod of %s (-want +got):\n%s", app, diff)
		}
	}
	for app, want := range map[string][]string{"surges": {}, "own-list": {first, second}} {
		if diff := cmp.Diff(want, interceptorNames(&c.onlyReplicaSet(app).Spec.Template.Spec)); diff != "" {
			t.Errorf("interceptors in the ReplicaSet of %s (-want +got):\n%s", app, diff)
		}
	}
}

// onlyReplicaSet returns the ReplicaSet of a Deployment that has only had one rollout.
func (c *cluster) onlyReplicaSet(app string) *appsv1.ReplicaSet {
	c.t.Helper()
	list, err := c.client.AppsV1().ReplicaSets(c.namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		c.t.Fatalf("listing the ReplicaSets of %s: %v", app, err)
	}
	if len(list.Items) != 1 {
		c.t.Fatalf("%s has %d ReplicaSets, want 1: it was rolled out", app, len(list.Items))
	}
	return &list.Items[0]
}

// testInjectionTurnedOnAndOff scales up for each setting of the gate, so that the controllers have
// processed all objects and created a pod with this setting.
func testInjectionTurnedOnAndOff(t *testing.T, c *cluster) {
	stop := c.startWorkloads(false).stop
	c.createDeploymentThat("web", surging(intstr.FromInt32(1)))
	c.ready(c.awaitPods("web", 1))
	before := c.awaitRolledOut("web", 1)
	known := map[types.UID][]string{}
	for i, intercepting := range []bool{false, true, false} {
		stop()
		stop = c.startWorkloads(intercepting).stop
		replicas := i + 2
		c.scaleDeployment("web", int32(replicas))
		pods := c.ready(c.awaitPods("web", replicas))
		after := c.awaitRolledOut("web", replicas)
		after.Spec.Replicas = before.Spec.Replicas
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the ReplicaSet changed while the gate was %v (-before +after):\n%s", intercepting, diff)
		}
		for _, pod := range pods {
			want, old := known[pod.UID]
			if !old && intercepting {
				want = []string{deploymentInterceptor, replicaSetInterceptor}
			}
			known[pod.UID] = want
			if got := interceptorNames(&pod.Spec); !slices.Equal(got, want) {
				t.Errorf("pod %s has the interceptors %v while the gate is %v, want %v", pod.Name, got, intercepting, want)
			}
		}
		if len(known) != replicas {
			t.Errorf("there were %d pods when the gate was %v, want %d: pods were replaced", len(known), intercepting, replicas)
		}
	}
}

// awaitRolledOut waits until the Deployment has all replicas, and returns the fields of its only
// ReplicaSet that must not change.
func (c *cluster) awaitRolledOut(name string, replicas int) *appsv1.ReplicaSet {
	c.t.Helper()
	c.Eventually("the rollout of "+name, func(ctx context.Context) (bool, string) {
		deployment, err := c.client.AppsV1().Deployments(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if revision := deployment.Annotations["deployment.kubernetes.io/revision"]; revision != "" && revision != "1" {
			c.t.Errorf("Deployment %s has revision %s, want 1", name, revision)
		}
		status := deployment.Status
		done := status.ObservedGeneration == deployment.Generation && status.AvailableReplicas == int32(replicas) && status.UpdatedReplicas == int32(replicas)
		return done, fmt.Sprintf("%+v", status)
	})
	rs := c.onlyReplicaSet(name)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: rs.Name, UID: rs.UID, Labels: rs.Labels, OwnerReferences: rs.OwnerReferences},
		Spec:       rs.Spec,
	}
}

// startReplicaSetTurn requests the eviction of a pod of a Deployment, and completes the interceptor
// of the Deployment.
func (c *cluster) startReplicaSetTurn(prepare func(pod *v1.Pod)) *v1.Pod {
	c.t.Helper()
	c.startWorkloads(true)
	c.createDeploymentThat("web", surging(intstr.FromInt32(1)))
	pod := c.ready(c.awaitPods("web", 1))[0]
	prepare(pod)
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.awaitRequest(pod, "the Deployment to be active", active(deploymentInterceptor))
	c.report(pod, completed(deploymentInterceptor, metav1.Now()))
	return pod
}

func noPreparation(*v1.Pod) {}

// expectReplicaSetSays waits until the interceptor of the ReplicaSet has completed, and compares
// its message.
func (c *cluster) expectReplicaSetSays(pod *v1.Pod, want string) {
	c.t.Helper()
	request := c.awaitRequest(pod, "the completion of the ReplicaSet", completedBy(replicaSetInterceptor))
	for _, entry := range request.Status.Interceptors {
		if entry.Name == replicaSetInterceptor && entry.Message != want {
			c.t.Errorf("the message of the ReplicaSet is %q, want %q", entry.Message, want)
		}
	}
}

// expectEvicted fails unless the pod terminates because of the eviction API.
func (c *cluster) expectEvicted(pod *v1.Pod) {
	c.t.Helper()
	current, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading pod %s: %v", pod.Name, err)
	}
	_, condition := podutil.GetPodCondition(&current.Status, v1.DisruptionTarget)
	if current.DeletionTimestamp == nil || condition == nil || condition.Reason != "EvictionByEvictionAPI" {
		c.t.Errorf("pod %s terminates: %v, DisruptionTarget: %v, want an eviction", pod.Name, current.DeletionTimestamp != nil, condition)
	}
}

func testReplicaSetEvicts(t *testing.T, c *cluster) {
	pod := c.startReplicaSetTurn(noPreparation)
	c.expectReplicaSetSays(pod, "Evicted the pod.")
	c.expectEvicted(pod)
	c.awaitPods("web", 1) // Its replacement.
	c.deletePod(pod)
	c.awaitRequest(pod, "the end of the request", evicted)
}

func testReplicaSetNamedByHand(t *testing.T, c *cluster) {
	c.startWorkloads(true)
	c.createReplicaSet("bare", 1, replicaSetInterceptor)
	pod := c.ready(c.awaitPods("bare", 1))[0]
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.expectReplicaSetSays(pod, "Evicted the pod.")
	c.expectEvicted(pod)
}

func testReplicaSetNamedWithoutReplicaSet(t *testing.T, c *cluster) {
	c.startWorkloads(true)
	pod := c.createRunningPod(newPod("stranger", withInterceptors(replicaSetInterceptor), withGracePeriod(3600)), v1.ConditionTrue)
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.expectReplicaSetSays(pod, "Not evicted: no ReplicaSet controls the pod.")
}

// testNoOtherInterceptorForTerminatingPod completes the Deployment for a terminating pod: the
// ReplicaSet could not do anything for it, and is not activated.
func testNoOtherInterceptorForTerminatingPod(t *testing.T, c *cluster) {
	pod := c.startReplicaSetTurn(func(pod *v1.Pod) {
		if err := c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatalf("deleting pod %s: %v", pod.Name, err)
		}
	})
	c.awaitRequest(pod, "the completion of the Deployment", completedBy(deploymentInterceptor))
	c.deletePod(pod)
	request := c.awaitRequest(pod, "the end of the request", evicted)
	if got := request.Status.ProcessedInterceptors; len(got) != 1 {
		t.Errorf("processed interceptors are %v, want only the Deployment", got)
	}
}

func testReplicaSetWithinBudget(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.startReplicaSetTurn(func(pod *v1.Pod) { c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget) })
	c.expectReplicaSetSays(pod, "Not evicted: "+budgetMessage)
	request := c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.expectCondition(request, metav1.Condition{
		Type: "Blocked", Status: metav1.ConditionTrue, ObservedGeneration: 1, Reason: "DisruptionBudget", Message: budgetMessage,
	})
	c.expectUntouched(pod)
	c.deleteBudget("guard")
	c.awaitPods("web", 1)
	c.Eventually("the eviction", func(ctx context.Context) (bool, string) {
		current, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && current.DeletionTimestamp != nil, fmt.Sprint(err)
	})
	c.expectEvicted(pod)
}

func testReplicaSetWithinTwoBudgets(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.startReplicaSetTurn(func(pod *v1.Pod) {
		c.createBudget("guard", pod, 0, policyv1.IfHealthyBudget)
		c.createBudget("spare", pod, 0, policyv1.IfHealthyBudget)
	})
	c.expectReplicaSetSays(pod, "Not evicted: PodDisruptionBudgets guard, spare select this pod, and the API server does not evict a pod "+
		"with more than one PodDisruptionBudget: change their selectors so that only one selects the pod.")
	c.expectUntouched(pod)
}

// testScaleDownTakesRequestedPod requests the eviction of the pod that would be deleted last.
func testScaleDownTakesRequestedPod(t *testing.T, c *cluster) {
	for name, test := range map[string]struct {
		intercepting, canceled bool
		interceptor            string
		wantGone               bool
	}{
		"intercepting":     {intercepting: true, interceptor: coordinationv1alpha1.EvictionInterceptorDaemonSet, wantGone: true},
		"not-intercepting": {interceptor: coordinationv1alpha1.EvictionInterceptorDaemonSet},
		"canceled":         {intercepting: true, interceptor: coordinationv1alpha1.EvictionInterceptorDaemonSet, canceled: true},
		"being-saved":      {intercepting: true, interceptor: first},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, c.config)
			controllers := c.startWorkloads(test.intercepting)
			c.createReplicaSet("web", 3, test.interceptor)
			pods := c.ready(c.awaitPods("web", 3))
			requested := c.annotatePod(pods[0], v1.PodDeletionCost, "100")
			c.startController(clock.RealClock{})
			c.join(requested, drainer)
			request := c.awaitRequest(requested, "the first interceptor to be active", active(test.interceptor))
			if test.canceled {
				c.leave(requested, drainer)
				request = c.awaitRequest(requested, "the cancellation", canceled)
			}
			c.awaitInCaches(controllers, requested, request, test.intercepting)

			c.scaleReplicaSet("web", 2)
			var left []types.UID
			for _, pod := range c.awaitPods("web", 2) {
				left = append(left, pod.UID)
			}
			if gone := !slices.Contains(left, requested.UID); gone != test.wantGone {
				t.Errorf("the requested pod is gone: %v, want %v", gone, test.wantGone)
			}
		})
	}
}

func (c *cluster) annotatePod(pod *v1.Pod, key, value string) *v1.Pod {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	annotated, err := c.client.CoreV1().Pods(c.namespace).Patch(c.t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		c.t.Fatalf("annotating pod %s: %v", pod.Name, err)
	}
	return annotated
}

// awaitInCaches waits until the caches of the controllers have the pod, and the request if they
// watch requests.
func (c *cluster) awaitInCaches(controllers workloads, pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest, requests bool) {
	c.t.Helper()
	c.Eventually("the caches", func(context.Context) (bool, string) {
		cached, err := controllers.informers.Core().V1().Pods().Lister().Pods(c.namespace).Get(pod.Name)
		if err != nil || cached.ResourceVersion != pod.ResourceVersion {
			return false, fmt.Sprintf("pod: %v", err)
		}
		if !requests {
			return true, ""
		}
		known, err := controllers.informers.Coordination().V1alpha1().EvictionRequests().Lister().EvictionRequests(c.namespace).Get(request.Name)
		if err != nil {
			return false, fmt.Sprintf("request: %v", err)
		}
		return known.ResourceVersion == request.ResourceVersion, describe(known)
	})
}
