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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/kubernetes/hack/availability"
)

const (
	surgeGate     = "DeploymentPodSurge"
	surgeOnGates  = featureGates + "," + surgeGate + "=true,NodeMaintenanceAwareDaemonSet=true"
	surgeOffGates = featureGates + "," + surgeGate + "=false,NodeMaintenanceAwareDaemonSet=true"

	// surgeNodes is how many nodes there are, surgeNodeCount how many are drained at a time.
	surgeNodes     = 16
	surgeNodeCount = 4
)

// nodeRange are nodes with numbers that follow one another.
type nodeRange struct{ first, count int }

var (
	oldNodes  = nodeRange{0, surgeNodeCount}
	newNodes  = nodeRange{surgeNodeCount, surgeNodeCount}
	bothNodes = nodeRange{0, 2 * surgeNodeCount}
	allNodes  = nodeRange{0, surgeNodes}
)

func (r nodeRange) names() []string {
	var names []string
	for i := range r.count {
		names = append(names, nodeName(r.first+i))
	}
	return names
}

// surgeKind is one drain of nodes whose pods are those of Deployments.
type surgeKind string

const (
	surgeWithBudgets surgeKind = "surge, every second one with a PDB that lets no pod go"
	surgeNoBudgets   surgeKind = "surge, no PDB"
	surgeOff         surgeKind = "one NodeMaintenance, gate off, no PDB"
	surgeKubectl     surgeKind = "kubectl drain of the base, no PDB"
	surgeLarge       surgeKind = "surge of one large Deployment"
)

// surgeResult is everything about pods of Deployments that have to leave.
type surgeResult struct {
	// Deployments is how many there are with a single replica, LargeReplicas what one has
	// that is measured by itself.
	Deployments   int `json:"deployments"`
	LargeReplicas int `json:"largeReplicas"`
	// IdleOn and IdleOff are the time in which they are at rest, with the gate and without.
	IdleOn  restResult         `json:"idleOn"`
	IdleOff restResult         `json:"idleOff"`
	Drains  []surgeDrainResult `json:"drains"`

	version string
}

// restResult is what controllers do for Deployments that are as they should be.
type restResult struct {
	Seconds    float64 `json:"seconds"`
	Writes     float64 `json:"writesPerMinute"`
	CPUSeconds float64 `json:"cpuSecondsPerMinute"`
	// Counts are the requests of all controllers.
	Counts map[string]int `json:"requests"`
}

// surgeDrainResult is one drain.
type surgeDrainResult struct {
	Kind surgeKind `json:"kind"`
	Pods int       `json:"pods"`
	// Seconds is the time until whoever drains knew that the pods are gone, SettledSeconds
	// until all Deployments were as before.
	Seconds        float64 `json:"seconds"`
	SettledSeconds float64 `json:"settledSeconds"`
	// CPUSeconds are those of the controller manager until then.
	CPUSeconds float64 `json:"cpuSeconds"`
	// EvictionsPerPod are the requests for the eviction alone: those of the
	// evictionrequest-controller and all to requests, whoever sends them.
	EvictionsPerPod float64 `json:"evictionRequestsPerPod"`
	// ReplicaSetsPerPod and DeploymentsPerPod are writes to these and their status.
	ReplicaSetsPerPod float64 `json:"replicaSetWritesPerPod"`
	DeploymentsPerPod float64 `json:"deploymentWritesPerPod"`
	AllRequestsPerPod float64 `json:"allRequestsPerPod"`
	// CreatedPerPod is more than 1 if pods came to a node that they had to leave as well.
	CreatedPerPod float64 `json:"podsCreatedPerPod"`
	// Most and Fewest are of a single Deployment: the highest number of pods that were not
	// on their way out, and the lowest number of those that were ready.
	Most   int `json:"mostPodsOfOneDeployment"`
	Fewest int `json:"fewestReadyPodsOfOneDeployment"`
	// AwaySeconds is for how long a Deployment had fewer ready pods than it should, the
	// mean of all.
	AwaySeconds float64 `json:"secondsBelowReplicas"`
	// Time from the creation of a request until it was Evicted.
	EvictedP50Seconds float64 `json:"evictedP50Seconds,omitempty"`
	EvictedP99Seconds float64 `json:"evictedP99Seconds,omitempty"`
	// Clients are the requests of everybody by who sends them.
	Clients map[string]int `json:"requestsByClient"`
}

// surgeDrain is what has to be known to make one.
type surgeDrain struct {
	kind  surgeKind
	from  nodeRange
	drain func(ctx context.Context, from nodeRange) error
}

// measureSurge measures what it costs that Deployments replace their pods before these
// leave. Each cluster is a new one, with all gates or without the one for that.
func measureSurge(ctx context.Context, opts options) (*surgeResult, error) {
	opts.nodes = surgeNodes
	r := &surgeResult{Deployments: opts.surge, LargeReplicas: opts.surgeReplicas}
	err := onCluster(ctx, opts, surgeOnGates, func(c *cluster) (err error) {
		r.version = c.version
		r.IdleOn, err = c.measureSurgePair(ctx, r,
			surgeDrain{surgeWithBudgets, oldNodes, c.drainNodesByMaintenance},
			surgeDrain{surgeNoBudgets, newNodes, c.drainNodesByMaintenance})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = onCluster(ctx, opts, surgeOffGates, func(c *cluster) (err error) {
		r.IdleOff, err = c.measureSurgePair(ctx, r,
			surgeDrain{surgeOff, oldNodes, c.drainNodesByMaintenance},
			surgeDrain{surgeKubectl, newNodes, c.drainNodesByKubectl})
		return err
	})
	if err != nil || opts.surgeReplicas == 0 {
		return r, err
	}
	return r, onCluster(ctx, opts, surgeOnGates, func(c *cluster) error {
		return c.measureLargeSurge(ctx, r)
	})
}

// onCluster does something on a cluster of its own.
func onCluster(ctx context.Context, opts options, gates string, do func(*cluster) error) (err error) {
	c, err := startCluster(ctx, opts, gates)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop(ctx)) }()
	return do(c)
}

// measureSurgePair measures Deployments with one replica: at rest, then how their pods
// leave their nodes for others, and these for the first ones.
func (c *cluster) measureSurgePair(ctx context.Context, r *surgeResult, there, back surgeDrain) (restResult, error) {
	fmt.Printf("surge: creating %d Deployments\n", c.opts.surge)
	if err := c.openNodes(ctx, oldNodes); err != nil {
		return restResult{}, err
	}
	if err := c.createDeployments(ctx, c.opts.surge, 1); err != nil {
		return restResult{}, err
	}
	if there.kind == surgeWithBudgets {
		if err := c.createStrictBudgets(ctx, c.opts.surge/2); err != nil {
			return restResult{}, err
		}
	}
	fmt.Printf("surge: %s at rest\n", c.opts.idleTime)
	rest, err := c.measureRest(ctx)
	if err != nil {
		return rest, err
	}
	for _, d := range []surgeDrain{there, back} {
		if err := c.openNodes(ctx, bothNodes); err != nil {
			return rest, err
		}
		drained, err := c.measureSurgeDrain(ctx, d)
		if err != nil {
			return rest, fmt.Errorf("%s: %w", d.kind, err)
		}
		r.Drains = append(r.Drains, drained)
		if err := c.removeBudgetsAndRequests(ctx); err != nil {
			return rest, err
		}
	}
	return rest, nil
}

// measureLargeSurge measures a Deployment that has pods on all nodes, some of which are
// drained.
func (c *cluster) measureLargeSurge(ctx context.Context, r *surgeResult) error {
	fmt.Printf("surge: creating a Deployment with %d replicas\n", c.opts.surgeReplicas)
	if err := c.openNodes(ctx, allNodes); err != nil {
		return err
	}
	if err := c.createDeployments(ctx, 1, int32(c.opts.surgeReplicas)); err != nil {
		return err
	}
	if _, err := c.audit.untilQuiet(ctx, byAnyController); err != nil {
		return err
	}
	drained, err := c.measureSurgeDrain(ctx, surgeDrain{surgeLarge, oldNodes, c.drainNodesByMaintenance})
	if err != nil {
		return fmt.Errorf("%s: %w", surgeLarge, err)
	}
	r.Drains = append(r.Drains, drained)
	return nil
}

// measureRest measures what the controllers do while nobody wants anything.
func (c *cluster) measureRest(ctx context.Context) (restResult, error) {
	if _, err := c.audit.untilQuiet(ctx, byAnyController); err != nil {
		return restResult{}, err
	}
	before, err := c.managerCPUSeconds()
	if err != nil {
		return restResult{}, err
	}
	events, err := c.audit.during(ctx, c.opts.idleTime)
	if err != nil {
		return restResult{}, err
	}
	after, err := c.managerCPUSeconds()
	if err != nil {
		return restResult{}, err
	}
	return newRestResult(c.opts.idleTime, after-before, countRequests(events, byAnyController)), nil
}

func newRestResult(took time.Duration, cpuSeconds float64, t tally) restResult {
	return restResult{
		Seconds: took.Seconds(), Writes: float64(t.writes()) / took.Minutes(),
		CPUSeconds: cpuSeconds / took.Minutes(), Counts: t.Requests,
	}
}

// measureSurgeDrain makes one drain and waits until everything is as it was, on other
// nodes.
func (c *cluster) measureSurgeDrain(ctx context.Context, d surgeDrain) (surgeDrainResult, error) {
	fmt.Printf("surge: %s", d.kind)
	pods, err := c.podsOn(ctx, d.from)
	if err != nil {
		return surgeDrainResult{}, err
	}
	times, err := c.timeRequests(ctx)
	if err != nil {
		return surgeDrainResult{}, err
	}
	defer times.stop()
	recorder, err := availability.Start(ctx, c.setup, namespace)
	if err != nil {
		return surgeDrainResult{}, err
	}
	r, events, start, err := c.timeSurgeDrain(ctx, d)
	// It has to end in any case.
	record, incomplete := recorder.Stop(ctx)
	if err := errors.Join(err, incomplete); err != nil {
		fmt.Println()
		return r, err
	}
	fmt.Printf(", %d pods: %.1f s\n", len(pods), r.Seconds)
	left, err := c.podsOn(ctx, d.from)
	if err != nil {
		return r, err
	}
	if len(left) > 0 {
		return r, fmt.Errorf("%d pods are on the drained nodes, such as %s", len(left), left[0].Name)
	}
	r.count(len(pods), events)
	r.judge(record, start, c.opts.replicasOf(d.kind))
	took, err := times.stop()
	if err != nil {
		return r, err
	}
	if len(took) > 0 {
		r.EvictedP50Seconds, r.EvictedP99Seconds = percentile(50, took), percentile(99, took)
	}
	return r, nil
}

// replicasOf is how many replicas each Deployment has.
func (o *options) replicasOf(kind surgeKind) int {
	if kind == surgeLarge {
		return o.surgeReplicas
	}
	return 1
}

// timeSurgeDrain makes one drain, and returns what was logged until the end.
func (c *cluster) timeSurgeDrain(ctx context.Context, d surgeDrain) (surgeDrainResult, []auditv1.Event, time.Time, error) {
	r := surgeDrainResult{Kind: d.kind}
	if err := c.audit.skip(); err != nil {
		return r, nil, time.Time{}, err
	}
	before, err := c.managerCPUSeconds()
	if err != nil {
		return r, nil, time.Time{}, err
	}
	start := time.Now()
	if err := d.drain(ctx, d.from); err != nil {
		return r, nil, start, err
	}
	r.Seconds = time.Since(start).Seconds()
	if err := c.awaitSettled(ctx); err != nil {
		return r, nil, start, err
	}
	r.SettledSeconds = time.Since(start).Seconds()
	events, err := c.audit.untilQuiet(ctx, byAnyController)
	if err != nil {
		return r, nil, start, err
	}
	after, err := c.managerCPUSeconds()
	r.CPUSeconds = after - before
	return r, events, start, err
}

// count counts what an audit log has of a drain.
func (r *surgeDrainResult) count(pods int, events []auditv1.Event) {
	r.Pods = pods
	perPod := func(selected selector, writesOnly bool) float64 {
		t := countRequests(events, selected)
		if writesOnly {
			return float64(t.writes()) / float64(pods)
		}
		return float64(t.measuredRequests()) / float64(pods)
	}
	r.EvictionsPerPod = perPod(ofEvictionRequests, false)
	r.ReplicaSetsPerPod = perPod(ofResource("replicasets"), true)
	r.DeploymentsPerPod = perPod(ofResource("deployments"), true)
	all := countRequests(events, byAnybody)
	r.AllRequestsPerPod = float64(all.All) / float64(pods)
	r.CreatedPerPod = float64(all.Requests["create pods"]) / float64(pods)
	r.Clients = all.Clients
}

// judge says how available the Deployments were. Each should have so many pods.
func (r *surgeDrainResult) judge(record *availability.Record, start time.Time, replicas int) {
	end := time.Now()
	r.Fewest = replicas
	var away time.Duration
	for _, app := range record.Apps {
		r.Most = max(r.Most, app.Active.Max(start, end))
		for app.Ready.Below(r.Fewest, start, end) != nil {
			r.Fewest--
		}
		away += availability.Total(app.Ready.Below(replicas, start, end))
	}
	r.AwaySeconds = away.Seconds() / float64(max(len(record.Apps), 1))
}

// drainNodesByMaintenance is how the fork drains.
func (c *cluster) drainNodesByMaintenance(ctx context.Context, from nodeRange) error {
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, v1.LabelHostname, from.names()...)
	created, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	return c.awaitDrained(ctx, created)
}

// drainNodesByKubectl is how the base does.
func (c *cluster) drainNodesByKubectl(ctx context.Context, from nodeRange) error {
	return c.kubectlDrain(ctx, from.names()...)
}

// managerCPUSeconds is what the controller manager has used since it was started.
func (c *cluster) managerCPUSeconds() (float64, error) {
	file := filepath.Join(c.opts.output, "clusters", clusterName, "pids", "kube-controller-manager.pid")
	pid, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("looking for the process of the controller manager: %w", err)
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of the controller manager: %w", err)
	}
	return statCPUSeconds(string(stat))
}

// ticksPerSecond is the unit of CPU times in /proc on every platform that Go runs on.
const ticksPerSecond = 100

// statCPUSeconds reads the time in user and in kernel mode from the stat file of a
// process: they are the 12th and 13th field after the name of the program, which may have
// any character.
func statCPUSeconds(stat string) (float64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("the state of a process has %d fields after its name, want 13: %q", len(fields), stat)
	}
	var ticks float64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of a process: %w", err)
		}
		ticks += n
	}
	return ticks / ticksPerSecond, nil
}
