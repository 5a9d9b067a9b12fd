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

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

const (
	// Names of the cases.
	fleetRollout = "one NodeMaintenance with a rollout"
	fleetDrains  = "kubectl drain in a loop"
	fleetFrozen  = "all nodes wait for a freeze"

	// Names of figures with a target.
	movesPerPod    = "pods created per pod"
	writesPerNode  = "writes of nodes and maintenances"
	fleetWritesMax = 12
	fleetMovesMax  = 1.2

	// podsPerDeployment is how many pods of a fleet belong to one Deployment.
	podsPerDeployment = 1000

	replicaSetController = "replicaset-controller"
)

// measureFleet measures a rollout over all nodes, so many at a time, each of which is given back as soon
// as it is drained, against kubectl drain and uncordon of the same batches; and what it costs that all
// nodes wait.
func measureFleet(ctx context.Context, opts options, r *report) error {
	if opts.fleetNodes == 0 {
		return nil
	}
	rollout := r.table(rowPerCase, "%d nodes with %d pods each, of which %d at a time are drained and given back.", opts.fleetNodes, opts.fleetPods, opts.fleetAtOnce)
	frozen := r.table(rowPerCase, "A NodeMaintenance over these nodes, and a NodeMaintenanceBudget with maxUnavailable 0.")
	opts.nodes = opts.fleetNodes
	opts.args = append(slices.Clone(opts.args), "kube-controller-manager:authorization-always-allow-paths=/debug/pprof/*")
	return onCluster(ctx, opts, r, featureGates+",NodeMaintenanceBudgets=true", func(c *cluster) error {
		if err := c.prepareFleet(ctx); err != nil {
			return err
		}
		for _, way := range []struct {
			name  string
			drain func(context.Context) error
		}{{fleetRollout, c.rollOut}, {fleetDrains, c.drainInBatches}} {
			if err := c.measureFleetWay(ctx, rollout, way.name, way.drain); err != nil {
				return err
			}
		}
		rollout.want(fleetRollout, writesPerNode, atMost, fleetWritesMax)
		rollout.want(fleetRollout, movesPerPod, atMost, fleetMovesMax)
		if err := c.freeze(ctx); err != nil {
			return err
		}
		if err := c.measureRest(ctx, frozen, quiet{fleetFrozen, maintenanceController, by(maintenanceController), c.sleepIdle}); err != nil {
			return err
		}
		frozen.want(fleetFrozen, "writes by "+maintenanceController, atMost, 0)
		return nil
	})
}

// prepareFleet labels the nodes and creates the pods.
func (c *cluster) prepareFleet(ctx context.Context) error {
	err := c.inParallel(ctx, c.opts.nodes, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, allLabel)
		_, err := c.setup.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("labeling nodes: %w", err)
	}
	pods := c.opts.fleetNodes * c.opts.fleetPods
	fmt.Printf("creating %d pods on %d nodes\n", pods, c.opts.fleetNodes)
	deployments := c.setup.AppsV1().Deployments(namespace)
	count := (pods + podsPerDeployment - 1) / podsPerDeployment
	err = createAll(ctx, c, count, deployments.Create, func(i int) *appsv1.Deployment {
		return newDeployment(i, int32(min(podsPerDeployment, pods-i*podsPerDeployment)))
	})
	if err != nil {
		return err
	}
	return c.awaitReplicas(ctx)
}

// awaitReplicas waits until all pods of the Deployments are ready.
func (c *cluster) awaitReplicas(ctx context.Context) error {
	return awaitAll(ctx, "Deployments to be complete", c.setup.AppsV1().Deployments(namespace).List, func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
	})
}

// measureFleetWay measures one way to drain all nodes and to give them back.
func (c *cluster) measureFleetWay(ctx context.Context, t *table, name string, drain func(context.Context) error) error {
	if err := c.awaitCalm(ctx); err != nil {
		return err
	}
	if err := c.audit.skip(); err != nil {
		return err
	}
	before, err := c.managerCPUSeconds()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := drain(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	fmt.Printf("%s: %.1f s\n", name, took.Seconds())
	heap, err := c.managerHeap(ctx)
	if err != nil {
		return err
	}
	if err := c.awaitReplicas(ctx); err != nil {
		return err
	}
	all, err := c.audit.untilQuiet(ctx, byAnyController)
	if err != nil {
		return err
	}
	after, err := c.managerCPUSeconds()
	if err != nil {
		return err
	}
	t.add(name, c.fleetResults(took, after-before, heap, all)...)
	return c.endMaintenances(ctx)
}

// fleetResults has what the audit log has of a way to drain all nodes.
func (c *cluster) fleetResults(took time.Duration, cpuSeconds, heap float64, all requests) []result {
	nodes, pods := float64(c.opts.fleetNodes), float64(c.opts.fleetNodes*c.opts.fleetPods)
	written := all.of(by(maintenanceController), isWrite)
	ofObjects := written.count(to("nodes")) + written.count(to("nodemaintenances")) + written.count(to("nodemaintenancebudgets"))
	return append([]result{
		{Name: "time", Unit: "s", digits: 1, Value: took.Seconds()},
		{Name: movesPerPod, digits: 2, Value: all.count(by(replicaSetController), isCreatedPod) / pods},
		{Name: writesPerNode, Unit: "per node", digits: 2, Value: ofObjects / nodes},
		{Name: "requests for evictions", Unit: "per pod", digits: 2, Value: written.count(to("evictionrequests")) / pods},
		{Name: restCPU, Unit: "ms per node", digits: 0, Value: 1000 * cpuSeconds / nodes},
		{Name: "heap of kube-controller-manager", Unit: "MB", digits: 0, Value: heap / 1e6},
	}, all.byClient(nodes, "per node")...)
}

func isCreatedPod(event *auditv1.Event) bool {
	return describe(event) == "create pods" && code(event) == 201
}

// rollOut drains all nodes by one maintenance, and gives each back when it is drained.
func (c *cluster) rollOut(ctx context.Context) error {
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, allLabel, "true")
	wanted.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(c.opts.fleetAtOnce))}
	m, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	done := 0
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		drained, given, err := c.progressOf(ctx, m.UID)
		if err != nil {
			return false, err
		}
		done = given
		return given == c.opts.fleetNodes, c.giveBack(ctx, m.UID, drained)
	})
	if err != nil {
		return fmt.Errorf("waiting until all nodes are given back, %d of %d are: %w", done, c.opts.fleetNodes, err)
	}
	return nil
}

// progressOf returns the nodes on which the work has to be done, and how many were given back.
func (c *cluster) progressOf(ctx context.Context, uid types.UID) (drained []string, given int, err error) {
	// From the cache of the API server, since this is asked often.
	list, err := c.setup.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, 0, fmt.Errorf("listing nodes: %w", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		switch a := maintenance.AdmissionOf(node, uid); {
		case a == nil:
		case a.DoneTime != nil && !node.Spec.Unschedulable:
			given++
		case a.DrainedTime != nil && a.ReturningTime == nil && node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] != string(uid):
			drained = append(drained, node.Name)
		}
	}
	return drained, given, nil
}

func (c *cluster) giveBack(ctx context.Context, uid types.UID, names []string) error {
	return c.inParallel(ctx, len(names), func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, coordinationv1alpha1.NodeDoneAnnotation, uid)
		if _, err := c.setup.CoreV1().Nodes().Patch(ctx, names[i], types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("giving %s back: %w", names[i], err)
		}
		return nil
	})
}

// drainInBatches drains as many nodes at a time by kubectl drain of the base, a process each, and
// uncordons them.
func (c *cluster) drainInBatches(ctx context.Context) error {
	for first := 0; first < c.opts.fleetNodes; first += c.opts.fleetAtOnce {
		batch := nodeRange{first, min(c.opts.fleetAtOnce, c.opts.fleetNodes-first)}.names()
		group, drainCtx := errgroup.WithContext(ctx)
		for _, name := range batch {
			group.Go(func() error { return c.kubectlDrain(drainCtx, name) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		err := c.inParallel(ctx, len(batch), func(ctx context.Context, i int) error {
			_, err := c.setup.CoreV1().Nodes().Patch(ctx, batch[i], types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("uncordoning nodes: %w", err)
		}
	}
	return nil
}

// freeze creates a budget that allows none of the nodes, and a maintenance of all of them, and waits
// until these wait.
func (c *cluster) freeze(ctx context.Context) error {
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, allLabel, "true")
	budget := &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: maintenanceName},
		Spec:       coordinationv1alpha1.NodeMaintenanceBudgetSpec{NodeSelector: wanted.Spec.NodeSelector, MaxUnavailable: ptr.To(intstr.FromInt(0))},
	}
	if _, err := c.setup.CoordinationV1alpha1().NodeMaintenanceBudgets().Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a budget: %w", err)
	}
	if _, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	err := awaitAll(ctx, "nodes to wait", c.setup.CoreV1().Nodes().List, func(node *v1.Node) bool {
		for _, taint := range node.Spec.Taints {
			if taint.Key == coordinationv1alpha1.NodePlannedTaint {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	return c.awaitCalm(ctx)
}
