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
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
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
func (c *cluster) createNamespace(ctx context.Context, name string) error {
	if _, err := c.setup.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := c.setup.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the default service account of namespace %s: %w", name, err)
	}
	return nil
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

// newBudget returns a budget over the pods of an app.
func newBudget(index int, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
	spec.Selector = &metav1.LabelSelector{MatchLabels: appLabels(index)}
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: appName(index)}, Spec: spec}
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

// createAll creates objects, as many at a time as are asked for.
func createAll[T runtime.Object](ctx context.Context, c *cluster, count int, create func(context.Context, T, metav1.CreateOptions) (T, error), object func(index int) T) error {
	return c.inParallel(ctx, count, func(ctx context.Context, i int) error {
		wanted := object(i)
		if _, err := create(ctx, wanted, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating %T: %w", wanted, err)
		}
		return nil
	})
}

// createPods creates pods and waits until all are ready: the API server handles evictions of other
// pods with less work.
func (c *cluster) createPods(ctx context.Context, count int, node func(int) string, interceptors ...string) ([]v1.Pod, error) {
	pods := c.setup.CoreV1().Pods(namespace)
	err := createAll(ctx, c, count, pods.Create, func(i int) *v1.Pod { return newPod(i, node(i), interceptors...) })
	if err != nil {
		return nil, err
	}
	if err := awaitAll(ctx, "pods to be ready", pods.List, podutil.IsPodReady); err != nil {
		return nil, err
	}
	return c.podsOn(ctx, nodeRange{0, c.opts.nodes})
}

// createBudget creates a budget over pods without a Deployment, of which so many must stay. The
// number is absolute, because the pods belong to no controller.
func (c *cluster) createBudget(ctx context.Context, pods, minAvailable int) error {
	return c.createBudgets(ctx, 1, pods, pods-minAvailable, policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt(minAvailable))})
}

// createBudgets creates a budget for each of the first apps and waits until the disruption
// controller has counted the pods of each.
func (c *cluster) createBudgets(ctx context.Context, count, pods, allowed int, spec policyv1.PodDisruptionBudgetSpec) error {
	budgets := c.setup.PolicyV1().PodDisruptionBudgets(namespace)
	err := createAll(ctx, c, count, budgets.Create, func(i int) *policyv1.PodDisruptionBudget { return newBudget(i, spec) })
	if err != nil {
		return err
	}
	return awaitAll(ctx, "budgets to count their pods", budgets.List, func(budget *policyv1.PodDisruptionBudget) bool {
		status := budget.Status
		return status.ObservedGeneration >= budget.Generation && int(status.CurrentHealthy) == pods && int(status.DisruptionsAllowed) == allowed
	})
}

// awaitSettled waits until every Deployment has exactly its replicas, all available, and nothing
// is left of a surge.
func (c *cluster) awaitSettled(ctx context.Context) error {
	// The status of a Deployment follows that of its ReplicaSet.
	err := awaitAll(ctx, "ReplicaSets to have all their pods, and no more", c.setup.AppsV1().ReplicaSets(namespace).List, isReplicaSetSettled)
	if err != nil {
		return err
	}
	return awaitAll(ctx, "Deployments to have all their pods, and no more", c.setup.AppsV1().Deployments(namespace).List, isDeploymentSettled)
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
func (c *cluster) request(ctx context.Context, pods []v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) error {
	// The watch begins before the first request exists, and has its own client: the requester
	// itself does not wait.
	list, err := c.setup.CoordinationV1alpha1().EvictionRequests(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing requests: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.awaitRequests(ctx, list.ResourceVersion, len(pods), what, reached) })
	group.Go(func() error {
		return createAll(ctx, c, len(pods), c.requester.CoordinationV1alpha1().EvictionRequests(namespace).Create,
			func(i int) *coordinationv1alpha1.EvictionRequest { return newRequest(&pods[i]) })
	})
	return group.Wait()
}

// awaitRequests watches until so many requests have reached a state.
func (c *cluster) awaitRequests(ctx context.Context, resourceVersion string, count int, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) error {
	there := map[types.UID]bool{}
	err := follow(ctx, resourceVersion, c.setup.CoordinationV1alpha1().EvictionRequests(namespace).Watch,
		func(request *coordinationv1alpha1.EvictionRequest) (bool, error) {
			if isTrue(request, coordinationv1alpha1.EvictionRequestConditionCanceled) {
				return false, fmt.Errorf("request %s was canceled: %v", request.Name, request.Status.Conditions)
			}
			if reached(request) {
				there[request.UID] = true
			}
			return len(there) == count, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for %d requests to be %s, %d are: %w", count, what, len(there), err)
	}
	return nil
}

func isTrue(request *coordinationv1alpha1.EvictionRequest, condition coordinationv1alpha1.EvictionRequestConditionType) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
}

func isEvicted(request *coordinationv1alpha1.EvictionRequest) bool {
	return isTrue(request, coordinationv1alpha1.EvictionRequestConditionEvicted)
}

// awaitDrained watches until the condition Drained is True. The watch has its own client: the
// requester itself does not wait.
func (c *cluster) awaitDrained(ctx context.Context, wanted *coordinationv1alpha1.NodeMaintenance) error {
	last := "no status"
	err := follow(ctx, wanted.ResourceVersion, c.setup.CoordinationV1alpha1().NodeMaintenances().Watch,
		func(m *coordinationv1alpha1.NodeMaintenance) (bool, error) {
			if m.UID != wanted.UID {
				return false, nil
			}
			if drained := meta.FindStatusCondition(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)); drained != nil {
				last = drained.Message
			}
			return isDrained(m), nil
		})
	if err != nil {
		return fmt.Errorf("waiting for maintenance %s to be drained, it says %q: %w", wanted.Name, last, err)
	}
	return nil
}

// isDrained reports whether a maintenance is drained with its current selector and stage.
func isDrained(m *coordinationv1alpha1.NodeMaintenance) bool {
	return m.Status.ObservedGeneration == m.Generation &&
		meta.IsStatusConditionTrue(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// follow watches objects until one of them is the last that is waited for.
func follow[T runtime.Object](ctx context.Context, resourceVersion string, open func(context.Context, metav1.ListOptions) (watch.Interface, error), isLast func(T) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := watchtools.Until(ctx, resourceVersion, &cache.ListWatch{WatchFuncWithContext: open}, func(event watch.Event) (bool, error) {
		if event.Type == watch.Bookmark {
			return false, nil
		}
		object, ok := event.Object.(T)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		return isLast(object)
	})
	return err
}

// clean removes what a measurement has left: maintenances first, which have requests, then these,
// which would have to be finished without their pods.
func (c *cluster) clean(ctx context.Context) error {
	if err := c.cleanRequests(ctx); err != nil {
		return err
	}
	return removeAll(ctx, "pods", c.setup.CoreV1().Pods(namespace))
}

// cleanRequests removes all but the pods and their Deployments.
func (c *cluster) cleanRequests(ctx context.Context) error {
	if err := c.endMaintenances(ctx); err != nil {
		return err
	}
	if err := removeAll(ctx, "requests", c.setup.CoordinationV1alpha1().EvictionRequests(namespace)); err != nil {
		return err
	}
	return removeAll(ctx, "budgets", c.setup.PolicyV1().PodDisruptionBudgets(namespace))
}

// endMaintenances returns when all maintenances have uncordoned their nodes and are gone.
func (c *cluster) endMaintenances(ctx context.Context) error {
	return removeAll(ctx, "maintenances", c.setup.CoordinationV1alpha1().NodeMaintenances())
}

// removeAll deletes all objects of a kind and waits until they are gone.
func removeAll[L runtime.Object](ctx context.Context, kind string, client interface {
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	List(context.Context, metav1.ListOptions) (L, error)
}) error {
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("removing %s: %w", kind, err)
	}
	return awaitAll(ctx, kind+" to be gone", client.List, func(runtime.Object) bool { return false })
}

// awaitAll waits until a condition is true for each object of a list.
func awaitAll[L, T runtime.Object](ctx context.Context, what string, list func(context.Context, metav1.ListOptions) (L, error), is func(T) bool) error {
	return awaitAllFor(ctx, stepTimeout, what, list, is)
}

// awaitAllFor is awaitAll with another timeout.
func awaitAllFor[L, T runtime.Object](ctx context.Context, timeout time.Duration, what string, list func(context.Context, metav1.ListOptions) (L, error), is func(T) bool) error {
	var state string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		objects, err := list(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		missing := 0
		err = meta.EachListItem(objects, func(object runtime.Object) error {
			if !is(object.(T)) {
				missing++
			}
			return nil
		})
		state = fmt.Sprintf("%d of %d %s", missing, meta.LenList(objects), what)
		return missing == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", cmp.Or(state, what), err)
	}
	return nil
}

// inParallel calls do for each index, with so many calls in flight as are asked for.
func (c *cluster) inParallel(ctx context.Context, count int, do func(ctx context.Context, index int) error) error {
	return inParallel(ctx, c.opts.parallel, count, do)
}

func inParallel(ctx context.Context, parallel, count int, do func(ctx context.Context, index int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
