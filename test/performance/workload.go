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

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/utils/steps"
	"k8s.io/utils/ptr"
)

const (
	namespace       = "bench"
	maintenanceName = "bench"
	requesterName   = "bench.example.com"

	// pollInterval is how often a state is read before or after a measurement.
	pollInterval = 200 * time.Millisecond

	// stepTimeout bounds each wait. The longest is for a drain of the largest number of pods, at 5
	// each second.
	stepTimeout = 10 * time.Minute

	// surgeEndDelay is how long a pod of a Deployment takes to end: reports of its interceptors
	// meanwhile would not show with pods that are gone at once.
	surgeEndDelay = 2 * time.Second
)

// appName is the label app of a pod. Pods without a Deployment share the first one.
func appName(index int) string { return fmt.Sprintf("app-%d", index) }

func appLabels(index int) map[string]string { return map[string]string{"app": appName(index)} }

// createNamespace also waits for the service account without which no pod is admitted.
func (c *cluster) createNamespace(ctx context.Context, name string) {
	steps.Must(c.setup.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	await(ctx, "the default service account of namespace "+name, pollInterval, stepTimeout, func(ctx context.Context) bool {
		_, err := c.setup.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return exists(err)
	})
}

// exists reports whether an object was found.
func exists(err error) bool {
	if !apierrors.IsNotFound(err) {
		steps.Check(err)
	}
	return err == nil
}

func podSpec(gracePeriod int64) v1.PodSpec {
	return v1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(gracePeriod),
		AutomountServiceAccountToken:  ptr.To(false),
		Containers:                    []v1.Container{{Name: "app", Image: "registry.k8s.io/pause"}},
	}
}

// newPod returns a pod that is gone at the moment of its eviction and that is bound to its node:
// the measurement includes neither the end of containers nor the scheduler.
func newPod(index int, node string, interceptors ...string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", index), Labels: appLabels(0)}, Spec: podSpec(0)}
	pod.Spec.NodeName = node
	for _, name := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
	}
	return pod
}

// newDeployment has the default strategy. Its pods become ready at once.
func newDeployment(index int, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: appName(index)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: appLabels(index)},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      appLabels(index),
					Annotations: map[string]string{"pod-delete.stage.kwok.x-k8s.io/delay": surgeEndDelay.String()},
				},
				Spec: podSpec(30),
			},
		},
	}
}

// newRequest asks for the eviction of a pod. It has the pod's labels, so that no controller has to
// add them.
func newRequest(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	return &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Labels: pod.Labels},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: requesterName}},
		},
	}
}

// newMaintenance returns a maintenance of the nodes with one of the values of a label. It has the
// plan that admission would give it.
func newMaintenance(name string, stage coordinationv1alpha1.NodeMaintenanceStage, label string, values ...string) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpIn, Values: values}},
			}}},
			Stage:     stage,
			DrainPlan: maintenance.StandardPlan(),
			Reason:    "benchmark",
		},
	}
}

// createPods creates pods and waits until all are ready: the API server handles evictions of other
// pods with less work.
func (c *cluster) createPods(ctx context.Context, count int, node func(int) string, interceptors ...string) []v1.Pod {
	pods := c.setup.CoreV1().Pods(namespace)
	createAll(ctx, c, count, pods.Create, func(i int) *v1.Pod { return newPod(i, node(i), interceptors...) })
	awaitAll(ctx, stepTimeout, "pods to be ready", pods.List, podutil.IsPodReady)
	return c.podsOn(ctx, nodeRange{0, c.opts.nodes})
}

// createBudget creates a budget over pods without a Deployment, of which so many must stay. The
// number is absolute, because the pods belong to no controller.
func (c *cluster) createBudget(ctx context.Context, pods, minAvailable int) {
	c.createBudgets(ctx, 1, pods, pods-minAvailable, policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt(minAvailable))})
}

// createBudgets creates a budget for each of the first apps and waits until the disruption
// controller has counted the pods of each.
func (c *cluster) createBudgets(ctx context.Context, count, pods, allowed int, spec policyv1.PodDisruptionBudgetSpec) {
	budgets := c.setup.PolicyV1().PodDisruptionBudgets(namespace)
	createAll(ctx, c, count, budgets.Create, func(i int) *policyv1.PodDisruptionBudget {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: appName(i)}, Spec: spec}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: appLabels(i)}
		return budget
	})
	awaitAll(ctx, stepTimeout, "budgets to count their pods", budgets.List, func(budget *policyv1.PodDisruptionBudget) bool {
		status := budget.Status
		return status.ObservedGeneration >= budget.Generation && int(status.CurrentHealthy) == pods && int(status.DisruptionsAllowed) == allowed
	})
}

// awaitSettled waits until every Deployment has exactly its replicas, all available, and nothing
// is left of a surge.
func (c *cluster) awaitSettled(ctx context.Context, timeout time.Duration) {
	// The status of a Deployment follows that of its ReplicaSet.
	awaitAll(ctx, timeout, "ReplicaSets to have all their pods, and no more", c.setup.AppsV1().ReplicaSets(namespace).List, isReplicaSetSettled)
	awaitAll(ctx, timeout, "Deployments to have all their pods, and no more", c.setup.AppsV1().Deployments(namespace).List, isDeploymentSettled)
}

func isDeploymentSettled(d *appsv1.Deployment) bool {
	return deploymentutil.DeploymentComplete(d, &d.Status) &&
		deploymentutil.GetDeploymentCondition(d.Status, deployment.DeploymentEvictionInProgress) == nil
}

func isReplicaSetSettled(rs *appsv1.ReplicaSet) bool {
	_, surges := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]
	return !surges && rs.Status.ObservedGeneration >= rs.Generation &&
		rs.Status.Replicas == *rs.Spec.Replicas && rs.Status.AvailableReplicas == *rs.Spec.Replicas
}

// request creates a request for each pod and returns when all have reached a state.
func (c *cluster) request(ctx context.Context, pods []v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) {
	// The watch begins before the first request exists, and has its own client: the requester
	// itself does not wait.
	list := steps.Must(c.setup.CoordinationV1alpha1().EvictionRequests(namespace).List(ctx, metav1.ListOptions{}))
	atOnce(ctx, func(ctx context.Context) {
		c.awaitRequests(ctx, list.ResourceVersion, len(pods), what, reached)
	}, func(ctx context.Context) {
		createAll(ctx, c, len(pods), c.requester.CoordinationV1alpha1().EvictionRequests(namespace).Create,
			func(i int) *coordinationv1alpha1.EvictionRequest { return newRequest(&pods[i]) })
	})
}

// awaitRequests watches until so many requests have reached a state.
func (c *cluster) awaitRequests(ctx context.Context, resourceVersion string, count int, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) {
	there := sets.New[types.UID]()
	err := follow(ctx, resourceVersion, c.setup.CoordinationV1alpha1().EvictionRequests(namespace).Watch, func(request *coordinationv1alpha1.EvictionRequest) bool {
		if isTrue(request, coordinationv1alpha1.EvictionRequestConditionCanceled) {
			steps.Check(fmt.Errorf("request %s was canceled: %v", request.Name, request.Status.Conditions))
		}
		if reached(request) {
			there.Insert(request.UID)
		}
		return len(there) == count
	})
	steps.Check(err, fmt.Sprintf("waiting for %d requests to be %s, %d are", count, what, len(there)))
}

func isTrue(request *coordinationv1alpha1.EvictionRequest, condition coordinationv1alpha1.EvictionRequestConditionType) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
}

func isEvicted(request *coordinationv1alpha1.EvictionRequest) bool {
	return isTrue(request, coordinationv1alpha1.EvictionRequestConditionEvicted)
}

// createMaintenance creates a drain of the nodes with one of the values of a label, after changes.
func (c *cluster) createMaintenance(ctx context.Context, name, label string, values []string, changes ...func(*coordinationv1alpha1.NodeMaintenance)) *coordinationv1alpha1.NodeMaintenance {
	wanted := newMaintenance(name, coordinationv1alpha1.NodeMaintenanceStageDrain, label, values...)
	for _, change := range changes {
		change(wanted)
	}
	created, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{})
	steps.Check(err, "creating a maintenance")
	return created
}

// maintain creates a maintenance and returns when it reports that all its nodes are drained. The watch
// has its own client: the requester itself does not wait.
func (c *cluster) maintain(ctx context.Context, label string, values ...string) {
	wanted, last := c.createMaintenance(ctx, maintenanceName, label, values), "no status"
	err := follow(ctx, wanted.ResourceVersion, c.setup.CoordinationV1alpha1().NodeMaintenances().Watch, func(m *coordinationv1alpha1.NodeMaintenance) bool {
		if m.UID != wanted.UID {
			return false
		}
		if drained := drainedCondition(m); drained != nil {
			last = drained.Message
		}
		return isDrained(m)
	})
	steps.Check(err, fmt.Sprintf("waiting for maintenance %s to be drained, it says %q", wanted.Name, last))
}

func drainedCondition(m *coordinationv1alpha1.NodeMaintenance) *metav1.Condition {
	return meta.FindStatusCondition(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// isDrained reports whether a maintenance is drained with its current selector and stage.
func isDrained(m *coordinationv1alpha1.NodeMaintenance) bool {
	drained := drainedCondition(m)
	return m.Status.ObservedGeneration == m.Generation && drained != nil && drained.Status == metav1.ConditionTrue
}

// clean removes what a measurement has left: maintenances first, which have requests, then these,
// which would have to be finished without their pods.
func (c *cluster) clean(ctx context.Context) {
	c.cleanRequests(ctx)
	removeAll(ctx, "pods", c.setup.CoreV1().Pods(namespace))
}

// cleanRequests removes all but the pods and their Deployments.
func (c *cluster) cleanRequests(ctx context.Context) {
	c.endMaintenances(ctx)
	removeAll(ctx, "requests", c.setup.CoordinationV1alpha1().EvictionRequests(namespace))
	removeAll(ctx, "budgets", c.setup.PolicyV1().PodDisruptionBudgets(namespace))
}

// endMaintenances returns when all maintenances have uncordoned their nodes and are gone.
func (c *cluster) endMaintenances(ctx context.Context) {
	removeAll(ctx, "maintenances", c.setup.CoordinationV1alpha1().NodeMaintenances())
}

// nodeRange are nodes with consecutive numbers.
type nodeRange struct{ first, count int }

func nodeName(index int) string { return fmt.Sprintf("node-%d", index) }

func (c *cluster) spread(index int) string { return nodeName(index % c.opts.nodes) }

func (r nodeRange) names() []string {
	var names []string
	for i := range r.count {
		names = append(names, nodeName(r.first+i))
	}
	return names
}

// has reports whether a node is one of these.
func (r nodeRange) has(name string) bool { return slices.Contains(r.names(), name) }

// patchNodes patches so many nodes from the first one on, or a subresource of them.
func (c *cluster) patchNodes(ctx context.Context, first, count int, kind types.PatchType, patch func(name string) []byte, subresources ...string) {
	c.inParallel(ctx, count, func(ctx context.Context, i int) {
		name := nodeName(first + i)
		_, err := c.setup.CoreV1().Nodes().Patch(ctx, name, kind, patch(name), metav1.PatchOptions{}, subresources...)
		steps.Check(err, "patching ", name)
	})
}

// openNodes makes these nodes schedulable and all others not.
func (c *cluster) openNodes(ctx context.Context, open nodeRange) {
	c.patchNodes(ctx, 0, c.opts.nodes, types.MergePatchType, func(name string) []byte {
		return fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !open.has(name))
	})
}

// podsOn returns the pods on some nodes.
func (c *cluster) podsOn(ctx context.Context, nodes nodeRange) []v1.Pod {
	list := steps.Must(c.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}))
	return slices.DeleteFunc(list.Items, func(pod v1.Pod) bool { return !nodes.has(pod.Spec.NodeName) })
}

// expectNoPods fails if pods are left on nodes that were drained.
func (c *cluster) expectNoPods(ctx context.Context, nodes nodeRange) {
	if pods := c.podsOn(ctx, nodes); len(pods) > 0 {
		steps.Check(fmt.Errorf("%d pods are still on their nodes, such as %s", len(pods), pods[0].Name))
	}
}
