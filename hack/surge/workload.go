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
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

const (
	namespace = "surge"

	// drainedNode has all pods at first. The others take them.
	drainedNode = "node-0"
	nodes       = 3

	// startDelay is how long a new pod takes until it is ready, endDelay how long an old one
	// takes until it is gone.
	startDelay = 2500 * time.Millisecond
	endDelay   = 1500 * time.Millisecond

	// The StatefulSet may miss one pod.
	statefulSet         = "db"
	statefulSetReplicas = 3
	statefulSetBudget   = 2

	daemonSet = "agent"

	// pollInterval is how often a state is looked at that comes before or after a drain;
	// what happens meanwhile is watched.
	pollInterval = 100 * time.Millisecond
	stepTimeout  = 2 * time.Minute
)

// workload is one Deployment with a single replica.
type workload struct {
	name string
	// budget is the rule of its PodDisruptionBudget, empty if it has none.
	budget string
	// held is whether the budget lets its only pod never go.
	held bool
}

// maxPods is what the strategy allows, which is the default: 25 percent of 1, rounded up,
// may be surplus.
const maxPods = 2

func deployments() []workload {
	var all []workload
	add := func(count int, budget string, held bool) {
		for range count {
			all = append(all, workload{name: fmt.Sprintf("app-%d", len(all)), budget: budget, held: held})
		}
	}
	add(4, "", false)
	add(2, "minAvailable: 1", true)
	add(2, "maxUnavailable: 0", true)
	add(2, "maxUnavailable: 1", false)
	return all
}

// podTemplate is that of all pods, with the app as the argument.
var podTemplate = fmt.Sprintf(`
  template:
    metadata:
      labels: {app: %%[1]s}
      annotations:
        pod-ready.stage.kwok.x-k8s.io/delay: %s
        pod-delete.stage.kwok.x-k8s.io/delay: %s
    spec:
      containers: [{name: app, image: registry.k8s.io/pause}]
`, startDelay, endDelay)

const serviceManifest = `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 80}]
`

const budgetManifest = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s}
spec:
  %[2]s
  selector: {matchLabels: {app: %[1]s}}
`

var deploymentManifest = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}` + podTemplate

var statefulSetManifest = `---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  serviceName: %[1]s
  replicas: %[2]d
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: %[1]s}}` + podTemplate

var daemonSetManifest = `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}` + podTemplate

func manifests() string {
	var all strings.Builder
	for _, d := range deployments() {
		fmt.Fprintf(&all, deploymentManifest, d.name)
		fmt.Fprintf(&all, serviceManifest, d.name)
		if d.budget != "" {
			fmt.Fprintf(&all, budgetManifest, d.name, d.budget)
		}
	}
	fmt.Fprintf(&all, statefulSetManifest, statefulSet, statefulSetReplicas)
	fmt.Fprintf(&all, serviceManifest, statefulSet)
	fmt.Fprintf(&all, budgetManifest, statefulSet, fmt.Sprintf("minAvailable: %d", statefulSetBudget))
	fmt.Fprintf(&all, daemonSetManifest, daemonSet)
	return all.String()
}

// fillNode brings all pods to one node, by closing the others meanwhile, and returns when
// all are ready, and their Services and budgets have counted them.
func (w *way) fillNode(ctx context.Context) error {
	if err := w.closeOthers(ctx, true); err != nil {
		return err
	}
	if err := w.kubectl(ctx, "", "create", "namespace", namespace); err != nil {
		return err
	}
	if err := w.await(ctx, "the default service account", func(ctx context.Context) error {
		_, err := w.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	if err := w.kubectl(ctx, manifests(), "create", "--namespace", namespace, "-f", "-"); err != nil {
		return err
	}
	for _, step := range []struct {
		what  string
		unmet func(ctx context.Context) error
	}{
		{"the pods to be ready on " + drainedNode, w.podsUnready},
		{"the Services to have their endpoints", w.endpointsMissing},
		{"the budgets to have counted their pods", w.budgetsUncounted},
		{"the Deployments to be rolled out", w.rollingOut},
	} {
		if err := w.await(ctx, step.what, step.unmet); err != nil {
			return err
		}
	}
	return w.closeOthers(ctx, false)
}

// closeOthers says whether other nodes than the one that is drained take pods.
func (w *way) closeOthers(ctx context.Context, closed bool) error {
	for i := range nodes {
		node := fmt.Sprintf("node-%d", i)
		if node == drainedNode {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed)
		if _, err := w.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("making %s unschedulable (%t): %w", node, closed, err)
		}
	}
	return nil
}

func (w *way) podsUnready(ctx context.Context) error {
	pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case !podutil.IsPodReady(pod):
			return fmt.Errorf("pod %s is not ready", pod.Name)
		case pod.Spec.NodeName == drainedNode:
			ready++
		case pod.Labels["app"] != daemonSet:
			return fmt.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	if want := len(deployments()) + statefulSetReplicas + 1; ready != want {
		return fmt.Errorf("%d pods are ready, want %d", ready, want)
	}
	return nil
}

func (w *way) endpointsMissing(ctx context.Context) error {
	slices, err := w.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := 0
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if want := len(deployments()) + statefulSetReplicas; ready != want {
		return fmt.Errorf("%d endpoints are ready, want %d", ready, want)
	}
	return nil
}

func (w *way) budgetsUncounted(ctx context.Context) error {
	budgets, err := w.client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, budget := range budgets.Items {
		if budget.Status.ObservedGeneration < budget.Generation || budget.Status.CurrentHealthy != budget.Status.ExpectedPods || budget.Status.ExpectedPods == 0 {
			return fmt.Errorf("budget %s has counted %d of %d pods", budget.Name, budget.Status.CurrentHealthy, budget.Status.ExpectedPods)
		}
	}
	return nil
}

// rollingOut is about the conditions, which are written after all else.
func (w *way) rollingOut(ctx context.Context) error {
	all, err := w.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		d := &all.Items[i]
		progressing := deploymentutil.GetDeploymentCondition(d.Status, appsv1.DeploymentProgressing)
		if progressing == nil || progressing.Reason != deploymentutil.NewRSAvailableReason {
			return fmt.Errorf("%s: condition %s is %v", d.Name, appsv1.DeploymentProgressing, progressing)
		}
	}
	return nil
}

// await returns when there is nothing unmet any more.
func (w *way) await(ctx context.Context, what string, unmet func(ctx context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
		if err := unmet(ctx); err == nil || ctx.Err() == nil {
			last = err
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w: %w", what, err, last)
	}
	return nil
}
