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
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// watchAll records what happens from now on.
func (c *cluster) watchAll() *testcluster.History {
	c.T.Helper()
	return c.Watch(
		testcluster.KindOf(c.Client.AppsV1().Deployments(c.Namespace).List, c.Client.AppsV1().Deployments(c.Namespace).Watch),
		testcluster.KindOf(c.Client.AppsV1().ReplicaSets(c.Namespace).List, c.Client.AppsV1().ReplicaSets(c.Namespace).Watch),
		testcluster.KindOf(c.Client.CoreV1().Pods(c.Namespace).List, c.Client.CoreV1().Pods(c.Namespace).Watch),
		testcluster.KindOf(c.Client.DiscoveryV1().EndpointSlices(c.Namespace).List, c.Client.DiscoveryV1().EndpointSlices(c.Namespace).Watch),
	)
}

// bounds are what must hold at all times.
type bounds struct {
	// most is how many pods may live, and how many replicas all ReplicaSets may have.
	most int
	// least is how many pods must be ready, once there have been as many.
	least int
	// changes: the Deployment is changed on the way, so that it need not remain complete.
	changes bool
}

// world is how things were at one time.
type world struct {
	deployment *apps.Deployment
	sets       map[string]*apps.ReplicaSet
	pods       map[string]*v1.Pod
	slices     map[string]*discoveryv1.EndpointSlice
	// settled tells which lower bounds were reached: they hold from then on.
	settledPods, settledEndpoints, settledDeployment bool
	// surged tells whether the Deployment ever said that it surges.
	surged bool
}

// expectBounds fails if what must hold at all times did not hold once. It returns what was
// seen, for further questions.
func (c *cluster) expectBounds(h *testcluster.History, b bounds) *world {
	c.T.Helper()
	w := &world{sets: map[string]*apps.ReplicaSet{}, pods: map[string]*v1.Pod{}, slices: map[string]*discoveryv1.EndpointSlice{}}
	for _, change := range h.CatchUp(c.Cluster) {
		for _, wrong := range w.apply(change, b) {
			c.T.Errorf("at version %d: %s", change.Version, wrong)
		}
	}
	if b.least > 0 && !(w.settledPods && w.settledEndpoints && (w.settledDeployment || b.changes)) {
		c.T.Error("nothing was seen that must hold: the bounds say nothing")
	}
	return w
}

// expectSurged fails also if the Deployment never said that it surges, or still says so.
func (c *cluster) expectSurged(h *testcluster.History, b bounds) {
	c.T.Helper()
	w := c.expectBounds(h, b)
	if !w.surged {
		c.T.Error("the Deployment never said that it surges")
	}
	if got := describeCondition(w.deployment); got != "none" {
		c.T.Errorf("condition EvictionInProgress at the end: %s, must be none", got)
	}
}

// apply takes over a change and returns what it breaks.
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

// checkDeployment judges a Deployment that nobody changes: once it is complete, its pods
// come and go without that anything of it changes but the condition of the surge.
func (w *world) checkDeployment(before *apps.Deployment) []string {
	if !w.settledDeployment {
		w.settledDeployment = deploymentutil.DeploymentComplete(w.deployment, &w.deployment.Status) &&
			judge(w.deployment) == "Available=True/MinimumReplicasAvailable Progressing=True/NewReplicaSetAvailable"
		return nil
	}
	var wrong []string
	if was, is := judge(before), judge(w.deployment); was != is {
		wrong = append(wrong, fmt.Sprintf("the conditions of the Deployment turned from %s to %s", was, is))
	}
	if !deploymentutil.DeploymentComplete(w.deployment, &w.deployment.Status) {
		wrong = append(wrong, fmt.Sprintf("the Deployment is not complete any more: of %d replicas, %d exist, %d are updated, %d available",
			*w.deployment.Spec.Replicas, w.deployment.Status.Replicas, w.deployment.Status.UpdatedReplicas, w.deployment.Status.AvailableReplicas))
	}
	if was, is := before.Generation, w.deployment.Generation; was != is {
		wrong = append(wrong, fmt.Sprintf("the generation of the Deployment went from %d to %d", was, is))
	}
	if was, is := before.Annotations[deploymentutil.RevisionAnnotation], w.deployment.Annotations[deploymentutil.RevisionAnnotation]; was != is {
		wrong = append(wrong, fmt.Sprintf("the revision of the Deployment went from %s to %s", was, is))
	}
	return wrong
}

// judge sums up the conditions that a surge must not touch.
func judge(d *apps.Deployment) string {
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
		return []string{fmt.Sprintf("all ReplicaSets together are to have %d replicas, at most %d are allowed", sum, b.most)}
	}
	return nil
}

func (w *world) checkPods(b bounds) []string {
	var wrong []string
	living, ready := 0, 0
	for _, pod := range w.pods {
		if !isLiving(pod) {
			continue
		}
		living++
		if podutil.IsPodReady(pod) {
			ready++
		}
	}
	if living > b.most {
		wrong = append(wrong, fmt.Sprintf("%d pods live, at most %d are allowed", living, b.most))
	}
	if w.settledPods && ready < b.least {
		wrong = append(wrong, fmt.Sprintf("%d pods are ready, at least %d are wanted", ready, b.least))
	}
	w.settledPods = w.settledPods || ready >= b.least
	return wrong
}

// checkEndpoints judges what clients of the Service see: it is later than the pods, and
// never less than one.
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
