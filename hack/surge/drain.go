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
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/hack/availability"
	"k8s.io/kubernetes/hack/localcluster"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

const (
	maintenanceName = "surge"

	// surging is the condition of a Deployment while it replaces pods that have to go.
	surging = deployment.DeploymentEvictionInProgress

	// settleTimeout is in what time everything must have come to rest after a drain, and
	// quietTime how long it is watched then.
	settleTimeout = 30 * time.Second
	quietTime     = time.Second
)

// way is a way to drain a node, on a cluster of its own.
type way struct {
	name    string
	cluster *localcluster.Cluster
	// drain returns what was said if the node was not drained.
	drain func(ctx context.Context, w *way) (complaint string, err error)
	// after is what is done when all has been recorded.
	after func(ctx context.Context, w *way, r *result) error

	client kubernetes.Interface
}

// result is what was seen of a drain.
type result struct {
	way, version string
	// complaint is what was said if the node was not drained.
	complaint string
	// from and to are the first and the last moment, took is the time of the command.
	from, to time.Time
	took     time.Duration
	record   *availability.Record
	// restless is what had not come to rest at the end.
	restless error
	// At the end:
	replicaSets []appsv1.ReplicaSet
	deployments []appsv1.Deployment
	// back is why the DaemonSet has no pod on the node after the maintenance.
	back error
}

// measure starts a cluster, drains its node, and takes the cluster down again.
func measure(ctx context.Context, w *way) (r *result, err error) {
	fmt.Printf("==> %s: starting a cluster, with %d Deployments, a StatefulSet and a DaemonSet on %s\n", w.name, len(deployments()), drainedNode)
	if err := w.cluster.Up(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.cluster.Down(ctx)) }()
	r = &result{way: w.name}
	if w.client, r.version, err = w.cluster.Client(); err != nil {
		return nil, err
	}
	if err := w.fillNode(ctx); err != nil {
		return nil, err
	}
	if err := w.recordDrain(ctx, r); err != nil {
		return nil, err
	}
	if w.after == nil {
		return r, nil
	}
	return r, w.after(ctx, w, r)
}

// recordDrain watches from before the drain until all has come to rest after it.
func (w *way) recordDrain(ctx context.Context, r *result) error {
	recorder, err := availability.Start(ctx, w.client, namespace)
	if err != nil {
		return err
	}
	r.from = time.Now()
	r.complaint, err = w.drain(ctx, w)
	r.took = time.Since(r.from)
	if err == nil {
		err = w.settle(ctx, r)
	}
	r.to = time.Now()
	var incomplete error
	r.record, incomplete = recorder.Stop(ctx)
	if err := errors.Join(err, incomplete); err != nil {
		return err
	}
	if r.complaint == "" {
		fmt.Printf("    drained in %.1f s\n", r.took.Seconds())
	} else {
		fmt.Printf("    gave up after %.1f s, left on %s: %s\n", r.took.Seconds(), drainedNode, strings.Join(stillThere(r), ", "))
	}
	return nil
}

// settle returns when everything has come to rest, or should have.
func (w *way) settle(ctx context.Context, r *result) error {
	settling, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	r.restless = w.await(settling, "everything to come to rest", func(ctx context.Context) error { return w.unrest(ctx, r) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(quietTime):
		return nil
	}
}

// unrest reads what is there, and says what is not as it was before the drain.
func (w *way) unrest(ctx context.Context, r *result) error {
	all, err := w.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Deployments: %w", err)
	}
	replicaSets, err := w.client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the ReplicaSets: %w", err)
	}
	set, err := w.client.AppsV1().StatefulSets(namespace).Get(ctx, statefulSet, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the StatefulSet: %w", err)
	}
	r.deployments, r.replicaSets = all.Items, replicaSets.Items
	problems := scaledUp(r.replicaSets)
	for i := range r.deployments {
		d := &r.deployments[i]
		if d.Status.AvailableReplicas != 1 || d.Status.Replicas != 1 {
			problems = append(problems, fmt.Sprintf("%s has %d pods, %d of them available", d.Name, d.Status.Replicas, d.Status.AvailableReplicas))
		}
		if deploymentutil.GetDeploymentCondition(d.Status, surging) != nil {
			problems = append(problems, fmt.Sprintf("%s has condition %s", d.Name, surging))
		}
	}
	if set.Status.ReadyReplicas != statefulSetReplicas {
		problems = append(problems, fmt.Sprintf("%s has %d ready pods", statefulSet, set.Status.ReadyReplicas))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// scaledUp names the ReplicaSets that are not as their Deployment wants them.
func scaledUp(replicaSets []appsv1.ReplicaSet) []string {
	var problems []string
	for i := range replicaSets {
		rs := &replicaSets[i]
		if *rs.Spec.Replicas != 1 || rs.Status.Replicas != 1 {
			problems = append(problems, fmt.Sprintf("ReplicaSet %s has %d pods, wants %d", rs.Name, rs.Status.Replicas, *rs.Spec.Replicas))
		}
		if value, found := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; found {
			problems = append(problems, fmt.Sprintf("ReplicaSet %s has the annotation %s: %s", rs.Name, deploymentutil.EvictionSurgeAnnotation, value))
		}
	}
	return problems
}

// byMaintenance drains with a NodeMaintenance.
func byMaintenance(timeout time.Duration) func(context.Context, *way) (string, error) {
	return func(ctx context.Context, w *way) (string, error) {
		return w.try(ctx, "maintenance", "start", "--name="+maintenanceName, drainedNode, "--reason=to see how pods leave", "--wait", "--timeout="+timeout.String())
	}
}

// completeMaintenance gives the node back, to which the DaemonSet has to return.
func completeMaintenance(ctx context.Context, w *way, r *result) error {
	if r.complaint != "" {
		return nil
	}
	if err := w.kubectl(ctx, "", "maintenance", "complete", maintenanceName, "--wait"); err != nil {
		return err
	}
	settling, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	r.back = w.await(settling, "the DaemonSet to be back", func(ctx context.Context) error {
		pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + drainedNode, LabelSelector: "app=" + daemonSet})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || !podutil.IsPodReady(&pods.Items[0]) || pods.Items[0].DeletionTimestamp != nil {
			return fmt.Errorf("%d pods of it are on %s, ready: %v", len(pods.Items), drainedNode, podNames(pods.Items))
		}
		return nil
	})
	return nil
}

func podNames(pods []v1.Pod) []string {
	var names []string
	for i := range pods {
		if podutil.IsPodReady(&pods[i]) {
			names = append(names, pods[i].Name)
		}
	}
	return names
}

// byKubectlDrain drains with kubectl drain, which gives up some time.
func byKubectlDrain(timeout time.Duration) func(context.Context, *way) (string, error) {
	return func(ctx context.Context, w *way) (string, error) {
		return w.try(ctx, "drain", drainedNode, "--ignore-daemonsets", "--timeout="+timeout.String())
	}
}

// try runs a command that may fail, and returns what it said at its end then.
func (w *way) try(ctx context.Context, args ...string) (string, error) {
	command := w.cluster.Command(ctx, args...)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return strings.Join(lines[max(0, len(lines)-lastLines):], "\n      "), nil
	default:
		return "", fmt.Errorf("running kubectl %s: %w", strings.Join(args, " "), err)
	}
}

// lastLines is how much is shown of what a drain said that has failed.
const lastLines = 12

// kubectl runs a command that must succeed.
func (w *way) kubectl(ctx context.Context, manifest string, args ...string) error {
	command := w.cluster.Command(ctx, args...)
	command.Stdin = strings.NewReader(manifest)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
