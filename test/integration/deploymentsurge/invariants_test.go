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

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// watchAll records all changes from now on.
func (c *cluster) watchAll() *testcluster.History {
	c.T.Helper()
	return c.Watch(
		testcluster.KindOf(c.Client.AppsV1().Deployments(c.Namespace).List, c.Client.AppsV1().Deployments(c.Namespace).Watch),
		testcluster.KindOf(c.Client.AppsV1().ReplicaSets(c.Namespace).List, c.Client.AppsV1().ReplicaSets(c.Namespace).Watch),
		testcluster.KindOf(c.Client.CoreV1().Pods(c.Namespace).List, c.Client.CoreV1().Pods(c.Namespace).Watch),
		testcluster.KindOf(c.Client.DiscoveryV1().EndpointSlices(c.Namespace).List, c.Client.DiscoveryV1().EndpointSlices(c.Namespace).Watch),
	)
}

// bounds are invariants.
type bounds struct {
	// most is the maximum number of replicas of all ReplicaSets together, and of living pods of
	// each. With two ReplicaSets there may be more pods in total: one creates pods while the other
	// still has to delete some.
	most int
	// least is the minimum number of ready pods, once it was reached.
	least int
	// changes is true if the test changes the Deployment, so that it need not stay complete.
	changes bool
}

// world is the state at one version.
type world struct {
	deployment *apps.Deployment
	sets       map[string]*apps.ReplicaSet
	pods       map[string]*v1.Pod
	slices     map[string]*discoveryv1.EndpointSlice
	// settled... is true once a lower bound was reached. It must hold from then on.
	settledPods, settledEndpoints, settledDeployment bool
	// surged is true if the Deployment ever reported a surge.
	surged bool
}

// expectBounds fails if an invariant was violated at any version. It returns the last state, for
// further checks.
func (c *cluster) expectBounds(h *testcluster.History, b bounds) *world {
	c.T.Helper()
	w := &world{sets: map[string]*apps.ReplicaSet{}, pods: map[string]*v1.Pod{}, slices: map[string]*discoveryv1.EndpointSlice{}}
	for _, change := range h.CatchUp(c.Cluster) {
		for _, wrong := range w.apply(change, b) {
			c.T.Errorf("at version %d: %s", change.Version, wrong)
		}
	}
	if b.least > 0 && !(w.settledPods && w.settledEndpoints && (w.settledDeployment || b.changes)) {
		c.T.Error("no lower bound was ever reached: the test is void")
	}
	return w
}

// expectSurged also fails if the Deployment never reported a surge, or still reports one.
func (c *cluster) expectSurged(h *testcluster.History, b bounds) {
	c.T.Helper()
	w := c.expectBounds(h, b)
	if !w.surged {
		c.T.Error("the Deployment never reported a surge")
	}
	if got := describeCondition(w.deployment); got != "none" {
		c.T.Errorf("condition EvictionInProgress at the end: %s, must be none", got)
	}
}

// apply applies a change and returns the violated invariants.
func (w *world) apply(change testcluster.Change, b bounds) []string {
	switch object := change.Object.(type) {
	case *apps.Deployment:
		before := w.deployment
		w.deployment = object
		w.surged = w.surged || describeCondition(object) == "True Surging: Surging 1/1"
		if !change.Deleted && !b.changes {
			return w.checkDeployment(before)
		}
	case *apps.ReplicaSet:
		store(w.sets, change, string(object.UID), object)
		return w.checkReplicas(b)
	case *v1.Pod:
		store(w.pods, change, string(object.UID), object)
		return w.checkPods(b)
	case *discoveryv1.EndpointSlice:
		store(w.slices, change, string(object.UID), object)
		return w.checkEndpoints(b)
	}
	return nil
}

func store[T any](objects map[string]T, change testcluster.Change, uid string, object T) {
	if change.Deleted {
		delete(objects, uid)
	} else {
		objects[uid] = object
	}
}

// checkDeployment checks a Deployment that the test does not change: once it is complete, nothing
// in it may change except the condition of the surge.
func (w *world) checkDeployment(before *apps.Deployment) []string {
	if !w.settledDeployment {
		w.settledDeployment = deploymentutil.DeploymentComplete(w.deployment, &w.deployment.Status) &&
			summarize(w.deployment) == "Available=True/MinimumReplicasAvailable Progressing=True/NewReplicaSetAvailable"
		return nil
	}
	var wrong []string
	if was, is := summarize(before), summarize(w.deployment); was != is {
		wrong = append(wrong, fmt.Sprintf("the conditions of the Deployment changed from %s to %s", was, is))
	}
	if !deploymentutil.DeploymentComplete(w.deployment, &w.deployment.Status) {
		wrong = append(wrong, fmt.Sprintf("the Deployment is no longer complete: of %d replicas, %d exist, %d are updated, %d available",
			*w.deployment.Spec.Replicas, w.deployment.Status.Replicas, w.deployment.Status.UpdatedReplicas, w.deployment.Status.AvailableReplicas))
	}
	if was, is := before.Generation, w.deployment.Generation; was != is {
		wrong = append(wrong, fmt.Sprintf("the generation of the Deployment changed from %d to %d", was, is))
	}
	if was, is := before.Annotations[deploymentutil.RevisionAnnotation], w.deployment.Annotations[deploymentutil.RevisionAnnotation]; was != is {
		wrong = append(wrong, fmt.Sprintf("the revision of the Deployment changed from %s to %s", was, is))
	}
	return wrong
}

// summarize returns the conditions that a surge must not change.
func summarize(d *apps.Deployment) string {
	text := ""
	for _, conditionType := range []apps.DeploymentConditionType{apps.DeploymentAvailable, apps.DeploymentProgressing, apps.DeploymentReplicaFailure} {
		if condition := deploymentutil.GetDeploymentCondition(d.Status, conditionType); condition != nil {
			text += fmt.Sprintf(" %s=%s/%s", condition.Type, condition.Status, condition.Reason)
		}
	}
	if text == "" {
		return "none"
	}
	return text[1:]
}

func (w *world) checkReplicas(b bounds) []string {
	sum := 0
	for _, rs := range w.sets {
		sum += int(*rs.Spec.Replicas)
	}
	if sum > b.most {
		return []string{fmt.Sprintf("all ReplicaSets together have %d replicas, at most %d are allowed", sum, b.most)}
	}
	return nil
}

func (w *world) checkPods(b bounds) []string {
	var wrong []string
	living, ready := map[string]int{}, 0
	for _, pod := range w.pods {
		if !isLiving(pod) {
			continue
		}
		owner := ""
		if rs := metav1.GetControllerOf(pod); rs != nil {
			owner = rs.Name
		}
		living[owner]++
		if podutil.IsPodReady(pod) {
			ready++
		}
	}
	for owner, pods := range living {
		if pods > b.most {
			wrong = append(wrong, fmt.Sprintf("%d pods of ReplicaSet %q live, at most %d are allowed", pods, owner, b.most))
		}
	}
	if w.settledPods && ready < b.least {
		wrong = append(wrong, fmt.Sprintf("%d pods are ready, at least %d are wanted", ready, b.least))
	}
	w.settledPods = w.settledPods || ready >= b.least
	return wrong
}

// checkEndpoints checks the endpoints of the Service, which follow the pods: there must always be
// one.
func (w *world) checkEndpoints(b bounds) []string {
	ready := 0
	for _, slice := range w.slices {
		ready += readyEndpoints(slice)
	}
	if w.settledEndpoints && ready == 0 && b.least > 0 {
		return []string{"the Service has no ready endpoint"}
	}
	w.settledEndpoints = w.settledEndpoints || ready > 0
	return nil
}

func readyEndpoints(slice *discoveryv1.EndpointSlice) int {
	ready := 0
	for _, endpoint := range slice.Endpoints {
		if ptr.Deref(endpoint.Conditions.Ready, true) {
			ready++
		}
	}
	return ready
}
