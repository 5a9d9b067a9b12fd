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
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/kubernetes/hack/controlplane"
)

const (
	// maintenances is how many there are while nothing happens.
	maintenances = 30

	// racks is how many values the label has by which nodes are selected, and
	// racksPerMaintenance how many of them one maintenance selects: each node is selected
	// by six.
	racks               = 50
	racksPerMaintenance = 10

	rackLabel = "example.com/rack"
	allLabel  = "example.com/bench"

	// podsPerRack is how many pods the maintenance of all nodes has to wait for.
	podsPerRack = 1

	// calm is what of one processor the controller manager may use when what it does by
	// itself begins to be measured; calmTime is for how long, and calmTimeout how long it
	// is waited for: who does not come to rest is measured as it is.
	calm        = 0.05
	calmTime    = 5 * time.Second
	calmTimeout = 2 * time.Minute
)

// scaleResult is what a cluster with many nodes costs.
type scaleResult struct {
	Nodes        int `json:"nodes"`
	Maintenances int `json:"maintenances"`
	// Without is the time in which the nodemaintenance-controller is off, With that with
	// all maintenances.
	Without steadyResult `json:"without"`
	With    steadyResult `json:"with"`
	// Drain is one maintenance over all nodes.
	Drain allNodesResult `json:"drain"`

	version string
}

// steadyResult is what happens while nobody wants anything: only kubelets report.
type steadyResult struct {
	Seconds    float64 `json:"seconds"`
	Heartbeats int     `json:"heartbeats"`
	// CPUSeconds are those of the whole controller manager.
	CPUSeconds float64 `json:"cpuSecondsPerMinute"`
	// Writes are those of the nodemaintenance-controller, Counts all its requests.
	Writes float64        `json:"writesPerMinute"`
	Counts map[string]int `json:"requests"`
}

// allNodesResult is one maintenance over all nodes, on which there are few pods.
type allNodesResult struct {
	Pods int `json:"pods"`
	// DrainedSeconds is the time from its creation until it says that it is drained,
	// SettledSeconds until the last write to a node or to the maintenance itself.
	DrainedSeconds float64 `json:"drainedSeconds"`
	SettledSeconds float64 `json:"settledSeconds"`
	// EndedSeconds is the time from its deletion until it has given all nodes back.
	EndedSeconds    float64 `json:"endedSeconds"`
	RequestsPerNode float64 `json:"requestsPerNode"`
	// Counts are the requests of the nodemaintenance-controller until it is drained.
	Counts map[string]int `json:"requests"`
}

// scaleCluster is a control plane whose nodes are only objects: nobody stands behind
// them. Its controller manager can be started anew with other flags.
type scaleCluster struct {
	*cluster
	plane *controlplane.ControlPlane
}

// measureScale measures what maintenances cost on a cluster with many nodes.
func measureScale(ctx context.Context, opts options) (result *scaleResult, err error) {
	dir := filepath.Join(opts.resultsDir(), "scale")
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("removing the state of an earlier run: %w", err)
	}
	plane, err := controlplane.New(ctx, dir, filepath.Join(opts.bin, "etcd"))
	if err != nil {
		return nil, err
	}
	c := &scaleCluster{cluster: &cluster{opts: opts}, plane: plane}
	defer func() { err = errors.Join(err, c.close(err == nil, dir)) }()
	if result, err = c.measure(ctx); err != nil {
		return nil, fmt.Errorf("%d nodes: %w (logs are in %s)", opts.scaleNodes, err, dir)
	}
	return result, nil
}

// close keeps the logs if something is wrong.
func (c *scaleCluster) close(ok bool, dir string) error {
	c.plane.Close()
	if c.audit != nil {
		c.audit.close()
	}
	err := c.removeAuditLog()
	if ok {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

func (c *scaleCluster) measure(ctx context.Context) (*scaleResult, error) {
	r := &scaleResult{Nodes: c.opts.scaleNodes, Maintenances: maintenances}
	if err := c.start(ctx, "controllers=-nodemaintenance-controller"); err != nil {
		return nil, err
	}
	r.version = c.version
	fmt.Printf("%d nodes: creating them\n", r.Nodes)
	if err := c.createNodes(ctx); err != nil {
		return nil, err
	}
	var err error
	fmt.Printf("%d nodes: %s, the nodemaintenance-controller is off\n", r.Nodes, c.opts.idleTime)
	if r.Without, err = c.measureSteady(ctx); err != nil {
		return nil, err
	}
	if err := c.restartManager(ctx); err != nil {
		return nil, err
	}
	fmt.Printf("%d nodes: one NodeMaintenance over all of them", r.Nodes)
	if r.Drain, err = c.measureAllNodes(ctx); err != nil {
		fmt.Println()
		return nil, err
	}
	fmt.Printf(", drained after %.1f s\n", r.Drain.DrainedSeconds)
	if err := c.createMaintenances(ctx); err != nil {
		return nil, err
	}
	fmt.Printf("%d nodes: %s, %d NodeMaintenances\n", r.Nodes, c.opts.idleTime, maintenances)
	r.With, err = c.measureSteady(ctx)
	return r, err
}

// release is what is measured, with further flags of the controller manager.
func (c *scaleCluster) release(manager ...string) controlplane.Release {
	r := controlplane.Release{Name: "fork", Bin: c.opts.bin, FeatureGates: featureGates, RuntimeConfig: runtimeConfig}
	for _, arg := range append(managerArgs(), manager...) {
		r.ControllerManagerArgs = append(r.ControllerManagerArgs, "--"+arg)
	}
	for _, arg := range c.opts.args {
		if arg, ok := strings.CutPrefix(arg, "kube-controller-manager:"); ok {
			r.ControllerManagerArgs = append(r.ControllerManagerArgs, "--"+arg)
		}
	}
	return r
}

func (c *scaleCluster) start(ctx context.Context, manager ...string) error {
	auditArgs, err := c.auditArgs()
	if err != nil {
		return err
	}
	release := c.release(manager...)
	for _, arg := range auditArgs {
		release.APIServerArgs = append(release.APIServerArgs, "--"+arg)
	}
	if err := c.plane.StartAPIServer(ctx, release); err != nil {
		return err
	}
	if err := c.plane.StartControllerManager(ctx, release); err != nil {
		return err
	}
	if err := c.connect(c.plane.Config()); err != nil {
		return err
	}
	if c.audit, err = openAuditLog(c.auditFile()); err != nil {
		return err
	}
	return c.createNamespace(ctx)
}

// restartManager starts the controller manager anew, with the controller that was off.
func (c *scaleCluster) restartManager(ctx context.Context) error {
	if err := c.plane.StopControllerManager(); err != nil {
		return err
	}
	return c.plane.StartControllerManager(ctx, c.release())
}

func (c *scaleCluster) createNodes(ctx context.Context) error {
	err := c.inParallel(ctx, c.opts.scaleNodes, func(ctx context.Context, i int) error {
		_, err := c.setup.CoreV1().Nodes().Create(ctx, newNode(i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	return nil
}

func nodeName(index int) string { return fmt.Sprintf("node-%d", index) }

func rack(index int) string { return fmt.Sprintf("rack-%d", index%racks) }

// newNode is a node whose kubelet has reported.
func newNode(index int) *v1.Node {
	now := metav1.Now()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(index), Labels: map[string]string{
		v1.LabelHostname: nodeName(index), rackLabel: rack(index), allLabel: "true",
	}}}
	for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure, v1.NodeReady} {
		condition := v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == v1.NodeReady {
			condition.Status = v1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, condition)
	}
	return node
}

// measureSteady measures what the controller manager does while nobody wants anything.
// Each kubelet reports once, evenly over the time: a real one does so every five minutes.
func (c *scaleCluster) measureSteady(ctx context.Context) (steadyResult, error) {
	if err := c.awaitCalm(ctx); err != nil {
		return steadyResult{}, err
	}
	if err := c.audit.skip(); err != nil {
		return steadyResult{}, err
	}
	start := time.Now()
	before, err := c.cpuSeconds(ctx)
	if err != nil {
		return steadyResult{}, err
	}
	if err := c.heartbeats(ctx, c.opts.idleTime); err != nil {
		return steadyResult{}, err
	}
	after, err := c.cpuSeconds(ctx)
	if err != nil {
		return steadyResult{}, err
	}
	took := time.Since(start)
	events, err := c.audit.next()
	if err != nil {
		return steadyResult{}, err
	}
	return newSteadyResult(took, c.opts.scaleNodes, after-before, countRequests(events, byMaintenanceController)), nil
}

func newSteadyResult(took time.Duration, heartbeats int, cpuSeconds float64, t tally) steadyResult {
	return steadyResult{
		Seconds: took.Seconds(), Heartbeats: heartbeats, CPUSeconds: cpuSeconds / took.Minutes(),
		Writes: float64(t.writes()) / took.Minutes(), Counts: t.Requests,
	}
}

// heartbeats writes the status of each node once, as its kubelet does, evenly within
// that time. It returns when the time is over, later if the API server is too slow.
func (c *scaleCluster) heartbeats(ctx context.Context, duration time.Duration) error {
	ticker := time.NewTicker(duration / time.Duration(c.opts.scaleNodes))
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.opts.parallel)
	for i := range c.opts.scaleNodes {
		select {
		case <-ctx.Done():
			return errors.Join(group.Wait(), context.Cause(ctx))
		case <-ticker.C:
		}
		group.Go(func() error { return c.heartbeatNode(ctx, i) })
	}
	return group.Wait()
}

func (c *scaleCluster) heartbeatNode(ctx context.Context, index int) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"lastHeartbeatTime":%q}]}}`, v1.NodeReady, time.Now().UTC().Format(time.RFC3339))
	_, err := c.setup.CoreV1().Nodes().Patch(ctx, nodeName(index), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("reporting as the kubelet of %s: %w", nodeName(index), err)
	}
	return nil
}

// awaitCalm waits until the controller manager is silent and uses next to no processor.
func (c *scaleCluster) awaitCalm(ctx context.Context) error {
	if _, err := c.audit.untilQuiet(ctx, byAnyController); err != nil {
		return err
	}
	deadline := time.Now().Add(calmTimeout)
	for time.Now().Before(deadline) {
		before, err := c.cpuSeconds(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(calmTime):
		}
		after, err := c.cpuSeconds(ctx)
		if err != nil || (after-before)/calmTime.Seconds() <= calm {
			return err
		}
	}
	return nil
}

// cpuSeconds is what the controller manager has used since it was started.
func (c *scaleCluster) cpuSeconds(ctx context.Context) (float64, error) {
	text, err := c.plane.Metrics(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of the controller manager: %w", err)
	}
	return metricValue(text, "process_cpu_seconds_total")
}

// metricValue returns the value of a metric without labels.
func metricValue(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, name+" ")
		if !ok {
			continue
		}
		parsed, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the metric %s: %w", name, err)
		}
		return parsed, nil
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// measureAllNodes drains all nodes by one maintenance, and ends it.
func (c *scaleCluster) measureAllNodes(ctx context.Context) (allNodesResult, error) {
	pods := podsPerRack * min(racks, c.opts.scaleNodes)
	if err := c.createBoundPods(ctx, pods); err != nil {
		return allNodesResult{}, err
	}
	if err := c.awaitCalm(ctx); err != nil {
		return allNodesResult{}, err
	}
	if err := c.audit.skip(); err != nil {
		return allNodesResult{}, err
	}
	start := time.Now()
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, allLabel, "true")
	created, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return allNodesResult{}, fmt.Errorf("creating a maintenance: %w", err)
	}
	if err := c.awaitDrained(ctx, created); err != nil {
		return allNodesResult{}, err
	}
	drained := time.Since(start)
	events, err := c.audit.untilQuiet(ctx, byMaintenanceController)
	if err != nil {
		return allNodesResult{}, err
	}
	if err := c.expectSelected(ctx); err != nil {
		return allNodesResult{}, err
	}
	ended := time.Now()
	if err := c.endMaintenances(ctx); err != nil {
		return allNodesResult{}, err
	}
	r := newAllNodesResult(c.opts.scaleNodes, pods, start, events)
	r.DrainedSeconds, r.EndedSeconds = drained.Seconds(), time.Since(ended).Seconds()
	return r, c.clean(ctx)
}

func newAllNodesResult(nodes, pods int, start time.Time, events []auditv1.Event) allNodesResult {
	t := countRequests(events, byMaintenanceController)
	return allNodesResult{
		Pods:            pods,
		SettledSeconds:  max(lastStatusWrite(events, start).Sub(start).Seconds(), 0),
		RequestsPerNode: float64(t.measuredRequests()) / float64(nodes),
		Counts:          t.Requests,
	}
}

// lastStatusWrite returns when the nodemaintenance-controller wrote a node or a
// maintenance last; start if it did not.
func lastStatusWrite(events []auditv1.Event, start time.Time) time.Time {
	last := start
	for i := range events {
		event := &events[i]
		if !byMaintenanceController(event) || !isAnswered(event) || !isWrite(event.Verb) || event.ObjectRef == nil {
			continue
		}
		if resource := event.ObjectRef.Resource; (resource == "nodes" || resource == "nodemaintenances") && event.StageTimestamp.After(last) {
			last = event.StageTimestamp.Time
		}
	}
	return last
}

// createBoundPods creates pods on as many nodes. Nobody runs them: what is measured are
// the nodes.
func (c *scaleCluster) createBoundPods(ctx context.Context, count int) error {
	err := c.inParallel(ctx, count, func(ctx context.Context, i int) error {
		_, err := c.setup.CoreV1().Pods(namespace).Create(ctx, newPod(i, nodeName(i)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	return nil
}

// expectSelected makes sure that it was all nodes that were drained.
func (c *scaleCluster) expectSelected(ctx context.Context) error {
	m, err := c.setup.CoordinationV1alpha1().NodeMaintenances().Get(ctx, maintenanceName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading maintenance %s: %w", maintenanceName, err)
	}
	if selected, drained := int(m.Status.SelectedNodes), int(m.Status.DrainStatus.DrainedNodes); selected != c.opts.scaleNodes || drained != c.opts.scaleNodes {
		return fmt.Errorf("maintenance %s has drained %d of %d nodes, there are %d", m.Name, drained, selected, c.opts.scaleNodes)
	}
	return nil
}

// stages are those of the maintenances, in turn.
var stages = []coordinationv1alpha1.NodeMaintenanceStage{
	coordinationv1alpha1.NodeMaintenanceStageIdle,
	coordinationv1alpha1.NodeMaintenanceStageCordon,
	coordinationv1alpha1.NodeMaintenanceStageDrain,
}

// steadyMaintenance is one of many, each of which shares nodes with others of every
// stage.
func steadyMaintenance(index int) *coordinationv1alpha1.NodeMaintenance {
	var values []string
	first := index * racks / maintenances
	for i := range racksPerMaintenance {
		values = append(values, rack(first+i))
	}
	return newMaintenance(fmt.Sprintf("%s-%d", maintenanceName, index), stages[index%len(stages)], rackLabel, values...)
}

// createMaintenances creates many and waits until each says that it has come as far as
// it should.
func (c *scaleCluster) createMaintenances(ctx context.Context) error {
	client := c.requester.CoordinationV1alpha1().NodeMaintenances()
	if err := c.inParallel(ctx, maintenances, func(ctx context.Context, i int) error {
		_, err := client.Create(ctx, steadyMaintenance(i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("creating maintenances: %w", err)
	}
	return poll(ctx, func(ctx context.Context) (string, error) {
		list, err := c.setup.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if m := &list.Items[i]; !isSettled(m) {
				return fmt.Sprintf("maintenance %s to be settled in stage %s", m.Name, m.Spec.Stage), nil
			}
		}
		return "", nil
	})
}

// isSettled is true when a maintenance has nothing left to do.
func isSettled(m *coordinationv1alpha1.NodeMaintenance) bool {
	if m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		return isDrained(m)
	}
	return m.Status.ObservedGeneration == m.Generation && m.Status.SelectedNodes > 0
}
