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
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// watchAll records all changes to nodes, maintenances, pods and requests from now on.
func (c *cluster) watchAll() *testcluster.History {
	c.t.Helper()
	nodes, pods := c.client.CoreV1().Nodes(), c.client.CoreV1().Pods(c.namespace)
	maintenances, requests := c.client.CoordinationV1alpha1().NodeMaintenances(), c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	return c.Watch(
		testcluster.KindOf(nodes.List, nodes.Watch),
		testcluster.KindOf(pods.List, pods.Watch),
		testcluster.KindOf(maintenances.List, maintenances.Watch),
		testcluster.KindOf(requests.List, requests.Watch),
	)
}

// world contains all objects at one resourceVersion.
type world struct {
	nodes        map[string]*v1.Node
	pods         map[string]*v1.Pod // By UID.
	maintenances map[string]*coordinationv1alpha1.NodeMaintenance
	requests     map[string]*coordinationv1alpha1.EvictionRequest
}

// expectInvariants fails the test if a recorded change violates an invariant.
func (c *cluster) expectInvariants(h *testcluster.History) {
	c.t.Helper()
	w := &world{
		nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{},
		maintenances: map[string]*coordinationv1alpha1.NodeMaintenance{}, requests: map[string]*coordinationv1alpha1.EvictionRequest{},
	}
	checked := 0
	for _, change := range h.CatchUp(c.Cluster) {
		for _, wrong := range w.apply(change) {
			c.t.Errorf("at version %d: %s", change.Version, wrong)
		}
		checked++
	}
	if checked == 0 {
		c.t.Error("no change was recorded: no invariant was checked")
	}
}

// apply applies a change and returns the invariants that it violates.
func (w *world) apply(c testcluster.Change) []string {
	switch object := c.Object.(type) {
	case *v1.Node:
		before := w.nodes[object.Name]
		w.nodes[object.Name] = object
		if c.Deleted {
			delete(w.nodes, object.Name)
		} else if before != nil && before.UID == object.UID {
			return w.checkNode(before, object)
		}
	case *v1.Pod:
		w.pods[string(object.UID)] = object
		if c.Deleted {
			delete(w.pods, string(object.UID))
		}
	case *coordinationv1alpha1.NodeMaintenance:
		w.maintenances[object.Name] = object
		if c.Deleted {
			delete(w.maintenances, object.Name)
		}
		return w.checkMaintenance(object, c.Deleted)
	case *coordinationv1alpha1.EvictionRequest:
		before := w.requests[object.Name]
		w.requests[object.Name] = object
		if c.Deleted {
			delete(w.requests, object.Name)
		} else if !isRequested(before) && isRequested(object) {
			return w.checkRequest(object)
		}
	}
	return nil
}

// checkNode checks a change to a node: its targets never step back while it is drained, the
// controller cordons it only while a maintenance claims it, and it is not uncordoned while one does.
// No test that checks invariants uncordons by hand: managedFields do not tell who removed a field.
func (w *world) checkNode(before, node *v1.Node) []string {
	var wrong []string
	was, is := before.Status.MaintenanceStatus, node.Status.MaintenanceStatus
	if was != nil && is != nil && len(is.DrainTargets) > 0 {
		old, _ := maintenance.NewTargets(was.DrainTargets)
		now, err := maintenance.NewTargets(is.DrainTargets)
		if err != nil || !now.Reaches(old) {
			wrong = append(wrong, fmt.Sprintf("the targets of node %s stepped back from %s to %s", node.Name, old, now))
		}
	}
	claims := w.claimsOf(node)
	if !before.Spec.Unschedulable && node.Spec.Unschedulable && len(claims) == 0 && isController(node) {
		wrong = append(wrong, fmt.Sprintf("node %s was cordoned, and no maintenance claims it", node.Name))
	}
	claims = slices.DeleteFunc(claims, func(name string) bool { return w.maintenances[name].DeletionTimestamp != nil })
	if before.Spec.Unschedulable && !node.Spec.Unschedulable && len(claims) > 0 {
		wrong = append(wrong, fmt.Sprintf("node %s was uncordoned, and %v claim it", node.Name, claims))
	}
	return wrong
}

// isController reports whether the controller was the last to set spec.unschedulable: it owns no
// other field outside of the status.
func isController(node *v1.Node) bool {
	return slices.ContainsFunc(node.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "nodemaintenance-controller" && entry.Subresource == ""
	})
}

// claimsOf returns the maintenances that may claim a node: those with a finalizer.
func (w *world) claimsOf(node *v1.Node) []string {
	var names []string
	for name, m := range w.maintenances {
		claims := m.Spec.Stage == stageCordon || m.Spec.Stage == stageDrain
		if claims && slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) && selects(m, node) {
			names = append(names, name)
		}
	}
	return names
}

func selects(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	selector, err := nodeaffinity.NewNodeSelector(m.Spec.NodeSelector)
	return err == nil && selector.Match(node)
}

// checkMaintenance checks a maintenance: it is Drained only if no pod is left, and is finished or
// deleted only if its nodes are released.
func (w *world) checkMaintenance(m *coordinationv1alpha1.NodeMaintenance, gone bool) []string {
	var wrong []string
	drained := m.Spec.Stage == stageDrain && drainedCondition(m) != nil && drainedCondition(m).Status == metav1.ConditionTrue
	finished := m.Spec.Stage == stageComplete && !slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) && hasStage(m, stageComplete)
	for _, node := range w.nodes {
		if !selects(m, node) {
			continue
		}
		for _, pod := range w.pods {
			if drained && pod.Spec.NodeName == node.Name && maintenance.IsLeft(pod) {
				wrong = append(wrong, fmt.Sprintf("maintenance %s is Drained, and pod %s is left on node %s", m.Name, pod.Name, node.Name))
			}
		}
		if (finished || gone) && len(w.claimsOf(node)) == 0 && node.Status.MaintenanceStatus != nil {
			wrong = append(wrong, fmt.Sprintf("maintenance %s is finished, and node %s was not released", m.Name, node.Name))
		}
	}
	return wrong
}

func hasStage(m *coordinationv1alpha1.NodeMaintenance, name coordinationv1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(m.Status.StageStatuses, func(stage coordinationv1alpha1.StageStatus) bool { return stage.Name == name })
}

// isRequested reports whether the controller is one of the requesters.
func isRequested(request *coordinationv1alpha1.EvictionRequest) bool {
	return request != nil && slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool {
		return r.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}

// checkRequest checks a pod whose eviction the controller requests: its node's targets include it.
func (w *world) checkRequest(request *coordinationv1alpha1.EvictionRequest) []string {
	pod := w.pods[request.Name]
	if pod == nil {
		return nil // The pod was deleted at the same time.
	}
	node := w.nodes[pod.Spec.NodeName]
	if node == nil || node.Status.MaintenanceStatus == nil {
		return []string{fmt.Sprintf("the eviction of pod %s was requested on node %s, which is not drained", pod.Name, pod.Spec.NodeName)}
	}
	targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
	if err != nil || !targets.Take(pod) {
		return []string{fmt.Sprintf("the eviction of pod %s was requested on node %s, whose targets are %s", pod.Name, node.Name, targets)}
	}
	return nil
}
