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
	"os/exec"
	"path/filepath"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/component-helpers/node/maintenance"
)

const (
	maintenanceName = "bench"

	// nodeLabel and its value are on every simulated node of a local cluster.
	nodeLabel, nodeLabelValue = "type", "kwok"
)

// measureDrains compares the drain of all nodes by one NodeMaintenance with kubectl
// drain of the same nodes with as many pods. The latter is measured once: the limits of
// its client are what it takes its time for, and they are the same in every run.
func (c *cluster) measureDrains(ctx context.Context) ([]result, error) {
	var results []result
	for n := 1; n <= c.opts.runs; n++ {
		ways := []way{byMaintenance}
		if n == 1 {
			ways = append(ways, byLabelDrain)
		}
		for _, way := range ways {
			// Whoever drains the nodes has to cordon them.
			if err := c.uncordon(ctx); err != nil {
				return nil, err
			}
			r, err := c.measureWay(ctx, n, way, noBudget)
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// newMaintenance drains the nodes that have one of the values of a label. It has the
// plan that admission gives to one without.
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

// drainByMaintenance creates a NodeMaintenance and returns when it says that all nodes
// are drained.
func (c *cluster) drainByMaintenance(ctx context.Context, _ []v1.Pod) error {
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, nodeLabel, nodeLabelValue)
	created, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	return c.awaitDrained(ctx, created)
}

// awaitDrained watches until the condition Drained is True. The watch has its own
// client: it is we who wait.
func (c *cluster) awaitDrained(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	maintenances := c.setup.CoordinationV1alpha1().NodeMaintenances()
	last := "no status"
	_, err := watchtools.Until(ctx, m.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", m.Name).String()
			return maintenances.Watch(ctx, options)
		},
	}, func(event watch.Event) (bool, error) {
		m, ok := event.Object.(*coordinationv1alpha1.NodeMaintenance)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		if drained := meta.FindStatusCondition(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)); drained != nil {
			last = drained.Message
		}
		return isDrained(m), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for maintenance %s to be drained, it says %q: %w", m.Name, last, err)
	}
	return nil
}

// isDrained is true when a maintenance says so of its current selector and stage.
func isDrained(m *coordinationv1alpha1.NodeMaintenance) bool {
	return m.Status.ObservedGeneration == m.Generation &&
		meta.IsStatusConditionTrue(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// drainByLabel runs kubectl drain of the pristine base on all nodes at once.
func (c *cluster) drainByLabel(ctx context.Context, _ []v1.Pod) error {
	return c.kubectlDrain(ctx, "--selector", nodeLabel+"="+nodeLabelValue)
}

// kubectlDrain runs kubectl drain of the pristine base as a user would; --force, because
// the pods belong to no controller. It returns when kubectl has seen all pods gone.
func (c *cluster) kubectlDrain(ctx context.Context, nodes ...string) error {
	args := append([]string{"drain", "--force", "--timeout", stepTimeout.String(),
		"--kubeconfig", c.kubeconfig, "--cache-dir", filepath.Join(c.opts.resultsDir(), "kubectl-cache")}, nodes...)
	command := exec.CommandContext(ctx, filepath.Join(c.opts.base, "kubectl"), args...)
	command.WaitDelay = time.Second
	if err := runCommand(command); err != nil {
		return shorten(err)
	}
	return nil
}

// uncordon makes all nodes schedulable.
func (c *cluster) uncordon(ctx context.Context) error {
	nodes := c.setup.CoreV1().Nodes()
	list, err := nodes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range list.Items {
		if !list.Items[i].Spec.Unschedulable {
			continue
		}
		if _, err := nodes.Patch(ctx, list.Items[i].Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("making node %s schedulable: %w", list.Items[i].Name, err)
		}
	}
	return nil
}

// endMaintenances deletes all maintenances and waits until they have given their nodes
// back.
func (c *cluster) endMaintenances(ctx context.Context) error {
	maintenances := c.setup.CoordinationV1alpha1().NodeMaintenances()
	if err := maintenances.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("removing maintenances: %w", err)
	}
	return poll(ctx, func(ctx context.Context) (string, error) {
		list, err := maintenances.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return "", err
		}
		return fmt.Sprintf("the end of %d maintenances", len(list.Items)), nil
	})
}
