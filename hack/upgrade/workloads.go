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
	"strings"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/hack/controlplane"
	"k8s.io/utils/ptr"
)

// floor is the node of the DaemonSet.
const floor = "floor"

// replicas is what there is of a Deployment.
type replicas struct {
	// wanted is the sum of spec.replicas of its ReplicaSets.
	wanted int
	// living are the pods that nobody has told to go; serving those of them that are ready.
	living, serving int
}

func (r replicas) String() string {
	return fmt.Sprintf("%d wanted, %d living, %d serving", r.wanted, r.living, r.serving)
}

// newDeployment returns a Deployment that surges, and never goes below its replicas.
func newDeployment(name string, count, maxSurge int) *apps.Deployment {
	template := controlplane.NewPod(name)
	return &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apps.DeploymentSpec{
			Replicas: ptr.To(int32(count)),
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
			Strategy: apps.DeploymentStrategy{
				Type: apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{
					MaxSurge:       ptr.To(intstr.FromInt(maxSurge)),
					MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				},
			},
		},
	}
}

// createDeployment creates a Deployment and waits until all of its pods serve. From then
// on they must, and there must not be more than its strategy allows.
func (t *upgradeTest) createDeployment(ctx context.Context, deployment *apps.Deployment) error {
	if _, err := t.Client.AppsV1().Deployments(t.Name).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Deployment %s: %w", deployment.Name, err)
	}
	count := int(*deployment.Spec.Replicas)
	return t.awaitServing(ctx, deployment.Name, bounds{count, count + deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntValue()})
}

// awaitServing makes the pods of a Deployment ready until it has the least of them that
// must serve, and no others. From then on the bounds hold.
func (t *upgradeTest) awaitServing(ctx context.Context, name string, want bounds) error {
	if err := t.awaitReplicas(ctx, name, replicas{want.least, want.least, want.least}, t.makeReady); err != nil {
		return err
	}
	t.availability.require(name, want)
	return nil
}

// awaitReplicas waits until a Deployment has what it should have. Meanwhile a kubelet does
// its work.
func (t *upgradeTest) awaitReplicas(ctx context.Context, name string, want replicas, kubelets ...func(context.Context, string) error) error {
	var got replicas
	err := controlplane.Poll(ctx, fmt.Sprintf("Deployment %s to have %s", name, want), func(ctx context.Context) (bool, error) {
		for _, work := range kubelets {
			if err := work(ctx, name); err != nil {
				return false, err
			}
		}
		var err error
		got, err = t.replicasOf(ctx, name)
		return got == want, err
	})
	if err != nil {
		return fmt.Errorf("%w: it has %s", err, got)
	}
	return nil
}

func (t *upgradeTest) replicasOf(ctx context.Context, name string) (replicas, error) {
	var r replicas
	sets, err := t.replicaSets(ctx, name)
	if err != nil {
		return r, err
	}
	for _, set := range sets {
		r.wanted += int(*set.Spec.Replicas)
	}
	pods, err := t.podsOf(ctx, name)
	if err != nil {
		return r, err
	}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			r.living++
		}
		if serves(&pods[i]) {
			r.serving++
		}
	}
	return r, nil
}

func (t *upgradeTest) replicaSets(ctx context.Context, name string) ([]apps.ReplicaSet, error) {
	list, err := t.Client.AppsV1().ReplicaSets(t.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, fmt.Errorf("listing the ReplicaSets of Deployment %s: %w", name, err)
	}
	return list.Items, nil
}

// podsOf returns the pods of a workload, sorted by name.
func (t *upgradeTest) podsOf(ctx context.Context, name string) ([]v1.Pod, error) {
	list, err := t.Client.CoreV1().Pods(t.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// makeReady does what a kubelet does for pods that start.
func (t *upgradeTest) makeReady(ctx context.Context, name string) error {
	pods, err := t.podsOf(ctx, name)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil || serves(&pods[i]) {
			continue
		}
		patch := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		if _, err := t.Client.CoreV1().Pods(t.Name).Patch(ctx, pods[i].Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("writing the status of pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

// patchDeployment writes a part of a Deployment.
func (t *upgradeTest) patchDeployment(ctx context.Context, name, patch string) error {
	if _, err := t.Client.AppsV1().Deployments(t.Name).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patching Deployment %s with %s: %w", name, patch, err)
	}
	return nil
}

// createDaemonSet creates a DaemonSet with one pod, on a node of its own.
func (t *upgradeTest) createDaemonSet(ctx context.Context, name string) error {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: floor, Labels: map[string]string{"of": name}}}
	if _, err := t.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the node of the DaemonSet: %w", err)
	}
	template := controlplane.NewPod(name)
	template.Spec.NodeName = "" // Its controller says which. There is no scheduler; the pod stays Pending.
	template.Spec.NodeSelector = node.Labels
	template.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} // Nobody reports that the node is ready.
	set := &apps.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apps.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
	if _, err := t.Client.AppsV1().DaemonSets(t.Name).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating DaemonSet %s: %w", name, err)
	}
	return controlplane.Poll(ctx, "the pod of DaemonSet "+name, func(ctx context.Context) (bool, error) {
		set, err := t.Client.AppsV1().DaemonSets(t.Name).Get(ctx, name, metav1.GetOptions{})
		return err == nil && set.Status.CurrentNumberScheduled == 1 && set.Status.ObservedGeneration == set.Generation, err
	})
}

// revisions returns a line for each object that a rollout of a Deployment or DaemonSet
// would change or add: ReplicaSets and ControllerRevisions with their revision and the
// hash of the template, and pods.
func (t *upgradeTest) revisions(ctx context.Context, name string) ([]string, error) {
	var lines []string
	sets, err := t.replicaSets(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		lines = append(lines, fmt.Sprintf("ReplicaSet %s %s: generation %d, revision %s, hash %s", set.Name, set.UID, set.Generation,
			set.Annotations["deployment.kubernetes.io/revision"], set.Labels[apps.DefaultDeploymentUniqueLabelKey]))
	}
	history, err := t.Client.AppsV1().ControllerRevisions(t.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, fmt.Errorf("listing the ControllerRevisions of %s: %w", name, err)
	}
	for _, revision := range history.Items {
		lines = append(lines, fmt.Sprintf("ControllerRevision %s %s: revision %d", revision.Name, revision.UID, revision.Revision))
	}
	pods, err := t.podsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		lines = append(lines, fmt.Sprintf("Pod %s %s: hash %s%s", pod.Name, pod.UID,
			pod.Labels[apps.DefaultDeploymentUniqueLabelKey], pod.Labels[apps.ControllerRevisionHashLabelKey]))
	}
	return lines, nil
}
