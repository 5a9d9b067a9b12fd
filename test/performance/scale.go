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
	"math"
	"slices"
	"syscall"
	"time"

	"golang.org/x/time/rate"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/steps"
)

const (
	// maintenances is how many there are while nothing happens.
	maintenances = 30

	// racks is how many values the label has by which nodes are selected, and racksPerMaintenance
	// how many of them one maintenance selects: each node is selected by six.
	racks               = 50
	racksPerMaintenance = 10

	rackLabel = "example.com/rack"
	allLabel  = "example.com/bench"

	// podsPerRack is how many pods the maintenance of all nodes has to wait for.
	podsPerRack = 1

	// The controller manager is at rest if it uses no more than calm of one processor for calmTime.
	// After calmTimeout it is measured as it is.
	calm        = 0.05
	calmTime    = 5 * time.Second
	calmTimeout = 2 * time.Minute

	// Names of the cases.
	scaleOff   = "controller off"
	scaleOn    = "30 NodeMaintenances"
	scaleDrain = "one NodeMaintenance"
)

// measureScale measures what maintenances cost on a cluster with many nodes, which are only
// objects: no kubelet, real or simulated, reports for them.
func measureScale(ctx context.Context, opts options, r *report) {
	atRest := r.table(rowPerCase, "%d nodes that exist as objects alone, each of which reports once per measurement.", opts.scaleNodes)
	drain := r.table(rowPerCase, "One NodeMaintenance over all of these nodes.")
	onScaleCluster(ctx, opts, r, featureGates, ",-"+maintenanceController, func(c *cluster) {
		c.measureSteady(ctx, atRest, scaleOff)
	})
	onScaleCluster(ctx, opts, r, featureGates, "", func(c *cluster) {
		c.measureAllNodes(ctx, drain)
		createAll(ctx, c, maintenances, c.requester.CoordinationV1alpha1().NodeMaintenances().Create, steadyMaintenance)
		awaitAll(ctx, stepTimeout, "maintenances to be settled in their stage", c.setup.CoordinationV1alpha1().NodeMaintenances().List, isSettled)
		c.measureSteady(ctx, atRest, scaleOn)
	})
	compareRest(atRest, scaleOn, scaleOff, maintenanceController)
}

// onScaleCluster measures something on a cluster with many nodes, and without kwok and some controllers.
func onScaleCluster(ctx context.Context, opts options, r *report, gates, without string, measure func(*cluster)) {
	opts.nodes = 0
	// These would miss the kubelets.
	controllers := "*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller" + without
	opts.args = append(slices.Clone(opts.args), "kube-controller-manager:controllers="+controllers)
	onCluster(ctx, opts, r, gates, func(c *cluster) {
		// It has no nodes, but watches pods.
		steps.Check(c.local.Signal(controlplane.Kwok, syscall.SIGKILL), "ending kwok")
		fmt.Printf("creating %d nodes\n", opts.scaleNodes)
		createAll(ctx, c, opts.scaleNodes, c.setup.CoreV1().Nodes().Create, newNode)
		measure(c)
	})
}

func rack(index int) string { return fmt.Sprintf("rack-%d", index%racks) }

// newNode is a node whose kubelet has reported.
func newNode(index int) *v1.Node {
	now := metav1.Now()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(index), Labels: map[string]string{
		v1.LabelHostname: nodeName(index), rackLabel: rack(index), allLabel: "true",
	}}}
	node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("32"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("110")}
	node.Status.Capacity = node.Status.Allocatable
	for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure, v1.NodeReady} {
		condition := v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == v1.NodeReady {
			condition.Status = v1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	return node
}

// measureSteady measures what the controller manager does at rest. Each kubelet reports once,
// evenly over the time: a real one does so every five minutes.
func (c *cluster) measureSteady(ctx context.Context, t *table, name string) {
	c.awaitCalm(ctx)
	c.measureRest(ctx, t, quiet{name, maintenanceController, by(maintenanceController), c.heartbeats})
}

// heartbeats writes the status of each node once, as its kubelet does, evenly within the time of
// the measurement. It returns when that is over, later if the API server is too slow.
func (c *cluster) heartbeats(ctx context.Context) {
	limiter := rate.NewLimiter(rate.Every(c.opts.idleTime/time.Duration(c.opts.scaleNodes)), 1)
	c.patchNodes(ctx, 0, c.opts.scaleNodes, types.StrategicMergePatchType, func(string) []byte {
		steps.Check(limiter.Wait(ctx))
		return fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"lastHeartbeatTime":%q}]}}`, v1.NodeReady, time.Now().UTC().Format(time.RFC3339))
	}, "status")
}

// awaitCalm waits until the controller manager is silent and uses next to no processor.
func (c *cluster) awaitCalm(ctx context.Context) {
	c.audit.untilQuiet(ctx, byAnyController)
	last := math.Inf(-1)
	awaitOr(ctx, calmTime, calmTimeout, func(context.Context) bool {
		now := c.managerCPUSeconds()
		used := now - last
		last = now
		return used <= calm*calmTime.Seconds()
	})
}

// measureAllNodes drains all nodes by one maintenance, and ends it. The pods exist as objects
// alone: what is measured are the nodes.
func (c *cluster) measureAllNodes(ctx context.Context, t *table) {
	pods := podsPerRack * min(racks, c.opts.scaleNodes)
	createAll(ctx, c, pods, c.setup.CoreV1().Pods(namespace).Create, func(i int) *v1.Pod { return newPod(i, nodeName(i)) })
	c.awaitCalm(ctx)
	m := c.measure(ctx, by(maintenanceController), func() { c.maintain(ctx, allLabel, "true") })
	fmt.Printf("%s over %d nodes: drained after %.1f s\n", scaleDrain, c.opts.scaleNodes, m.took.Seconds())
	c.expectSelected(ctx)
	ended := time.Now()
	c.endMaintenances(ctx)
	t.add(scaleDrain, append(c.allNodesResults(m.start, m.all),
		result{Name: "pods", Value: float64(pods)},
		result{Name: "drained after", Unit: "s", digits: 1, Value: m.took.Seconds()},
		result{Name: "all nodes uncordoned after its deletion", Unit: "s", digits: 1, Value: time.Since(ended).Seconds()})...)
	c.clean(ctx)
}

// allNodesResults has what the audit log has of a maintenance of all nodes.
func (c *cluster) allNodesResults(start time.Time, all requests) []result {
	nodes := float64(c.opts.scaleNodes)
	measured := all.of(by(maintenanceController))
	settled := 0.0
	for _, write := range append(measured.of(isWrite, to("nodes")), measured.of(isWrite, to("nodemaintenances"))...) {
		settled = max(settled, write.StageTimestamp.Sub(start).Seconds())
	}
	return append([]result{
		{Name: "last status written after", Unit: "s", digits: 1, Value: settled},
		{Name: "requests", Unit: "per node", digits: 2, Value: float64(len(measured)) / nodes},
	}, measured.byClient(nodes, "per node")...)
}

// expectSelected fails if it was not all nodes that were drained.
func (c *cluster) expectSelected(ctx context.Context) {
	m := steps.Must(c.setup.CoordinationV1alpha1().NodeMaintenances().Get(ctx, maintenanceName, metav1.GetOptions{}))
	if selected, drained := int(m.Status.SelectedNodes), int(m.Status.DrainStatus.DrainedNodes); selected != c.opts.scaleNodes || drained != c.opts.scaleNodes {
		steps.Check(fmt.Errorf("maintenance %s has drained %d of %d nodes, there are %d", m.Name, drained, selected, c.opts.scaleNodes))
	}
}

// stages are those of the maintenances, in turn.
var stages = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
}

// steadyMaintenance is one of many, each of which shares nodes with others of every stage.
func steadyMaintenance(index int) *coordinationv1alpha1.NodeMaintenance {
	var values []string
	first := index * racks / maintenances
	for i := range racksPerMaintenance {
		values = append(values, rack(first+i))
	}
	return newMaintenance(fmt.Sprintf("%s-%d", maintenanceName, index), stages[index%len(stages)], rackLabel, values...)
}

// isSettled reports whether a maintenance has nothing left to do.
func isSettled(m *coordinationv1alpha1.NodeMaintenance) bool {
	if m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		return isDrained(m)
	}
	return m.Status.ObservedGeneration == m.Generation && m.Status.SelectedNodes > 0
}
