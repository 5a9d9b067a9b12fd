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
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/kubernetes/pkg/controller/deployment"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

func deploymentName(index int) string { return fmt.Sprintf("app-%d", index) }

// surgeEndDelay is how long a pod takes to end. Who reports of it meanwhile would not show
// with pods that are gone at once.
const surgeEndDelay = 2 * time.Second

// newDeployment has the strategy that everybody has who says nothing. Its pods become
// ready at once.
func newDeployment(index int, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": deploymentName(index)}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: deploymentName(index)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      labels,
					Annotations: map[string]string{"pod-delete.stage.kwok.x-k8s.io/delay": surgeEndDelay.String()},
				},
				Spec: v1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](30),
					AutomountServiceAccountToken:  ptr.To(false),
					Containers:                    []v1.Container{{Name: "app", Image: "registry.k8s.io/pause"}},
				},
			},
		},
	}
}

// createDeployments creates Deployments and waits until they are rolled out.
func (c *cluster) createDeployments(ctx context.Context, count int, replicas int32) error {
	err := c.inParallel(ctx, count, func(ctx context.Context, i int) error {
		_, err := c.setup.AppsV1().Deployments(namespace).Create(ctx, newDeployment(i, replicas), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating Deployments: %w", err)
	}
	return c.awaitSettled(ctx)
}

// createStrictBudgets creates a budget for each of the first Deployments, which allows no
// disruption, and waits until they were counted.
func (c *cluster) createStrictBudgets(ctx context.Context, count int) error {
	budgets := c.setup.PolicyV1().PodDisruptionBudgets(namespace)
	err := c.inParallel(ctx, count, func(ctx context.Context, i int) error {
		_, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: deploymentName(i)},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": deploymentName(i)}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating budgets: %w", err)
	}
	return poll(ctx, func(ctx context.Context) (string, error) {
		list, err := budgets.List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, budget := range list.Items {
			if budget.Status.ObservedGeneration < budget.Generation || budget.Status.CurrentHealthy != 1 {
				return fmt.Sprintf("budget %s to count its pod, it has %d", budget.Name, budget.Status.CurrentHealthy), nil
			}
		}
		return "", nil
	})
}

// removeBudgetsAndRequests leaves nothing but the Deployments.
func (c *cluster) removeBudgetsAndRequests(ctx context.Context) error {
	if err := c.endMaintenances(ctx); err != nil {
		return err
	}
	for what, remove := range map[string]func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		"budgets":  c.setup.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection,
		"requests": c.setup.CoordinationV1alpha1().EvictionRequests(namespace).DeleteCollection,
	} {
		if err := remove(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("removing %s: %w", what, err)
		}
	}
	_, err := c.audit.untilQuiet(ctx, byAnyController)
	return err
}

// openNodes makes these nodes schedulable and all others not.
func (c *cluster) openNodes(ctx context.Context, open nodeRange) error {
	names := open.names()
	err := c.inParallel(ctx, c.opts.nodes, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !slices.Contains(names, nodeName(i)))
		_, err := c.setup.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("making nodes schedulable, and others not: %w", err)
	}
	return nil
}

// podsOn returns the pods on some nodes.
func (c *cluster) podsOn(ctx context.Context, nodes nodeRange) ([]v1.Pod, error) {
	list, err := c.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	names := nodes.names()
	return slices.DeleteFunc(list.Items, func(pod v1.Pod) bool { return !slices.Contains(names, pod.Spec.NodeName) }), nil
}

// awaitSettled waits until every Deployment has exactly its replicas, all available, and
// nothing is left of a surge.
func (c *cluster) awaitSettled(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) (string, error) {
		deployments, err := c.setup.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		sets, err := c.setup.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		unsettled := 0
		for i := range deployments.Items {
			if !isDeploymentSettled(&deployments.Items[i]) {
				unsettled++
			}
		}
		for i := range sets.Items {
			if !isReplicaSetSettled(&sets.Items[i]) {
				unsettled++
			}
		}
		if unsettled > 0 {
			return fmt.Sprintf("%d Deployments and ReplicaSets to have all their pods, and no more", unsettled), nil
		}
		return "", nil
	})
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

// requestTimer notes when each request was created and when it was Evicted.
type requestTimer struct {
	cancel context.CancelFunc
	done   chan struct{}

	created, evicted map[types.UID]time.Time
	err              error
}

// timeRequests begins to watch the requests. The clock is that of the benchmark: the times
// in a request are whole seconds.
func (c *cluster) timeRequests(ctx context.Context) (*requestTimer, error) {
	requests := c.setup.CoordinationV1alpha1().EvictionRequests(namespace)
	list, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing requests: %w", err)
	}
	t := &requestTimer{done: make(chan struct{}), created: map[types.UID]time.Time{}, evicted: map[types.UID]time.Time{}}
	ctx, t.cancel = context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return requests.Watch(ctx, options)
		},
	})
	if err != nil {
		t.cancel()
		return nil, fmt.Errorf("watching requests: %w", err)
	}
	go func() {
		defer close(t.done)
		for event := range watcher.ResultChan() {
			t.note(event, time.Now())
		}
	}()
	return t, nil
}

func (t *requestTimer) note(event watch.Event, now time.Time) {
	request, ok := event.Object.(*coordinationv1alpha1.EvictionRequest)
	switch {
	case event.Type == watch.Bookmark:
		return
	case !ok:
		t.err = fmt.Errorf("watching requests: %w", apierrors.FromObject(event.Object))
		return
	case event.Type == watch.Added:
		t.created[request.UID] = now
	}
	if _, known := t.evicted[request.UID]; !known && isEvicted(request) {
		t.evicted[request.UID] = now
	}
}

// stop returns how long each took, in seconds. It can be called again.
func (t *requestTimer) stop() ([]float64, error) {
	t.cancel()
	<-t.done
	var took []float64
	for uid, created := range t.created {
		evicted, ok := t.evicted[uid]
		if !ok {
			return nil, errors.Join(t.err, fmt.Errorf("%d of %d requests were seen to be Evicted", len(t.evicted), len(t.created)))
		}
		took = append(took, evicted.Sub(created).Seconds())
	}
	return took, t.err
}
