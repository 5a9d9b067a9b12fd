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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/steps"
	"k8s.io/utils/ptr"
)

const (
	surgeGate     = "DeploymentPodSurge"
	surgeOnGates  = featureGates + "," + surgeGate + "=true,NodeMaintenanceAwareDaemonSet=true"
	surgeOffGates = featureGates + "," + surgeGate + "=false,NodeMaintenanceAwareDaemonSet=true"

	// surgeNodes is how many nodes there are, surgeNodeCount how many are drained at a time.
	surgeNodes     = 16
	surgeNodeCount = 4

	// An eviction may cost three requests, and two more for each interceptor of the pod: those of
	// Deployments have two with the gate.
	evictionBudget = 3
	surgeBudget    = evictionBudget + 2*2
)

var (
	oldNodes  = nodeRange{0, surgeNodeCount}
	newNodes  = nodeRange{surgeNodeCount, surgeNodeCount}
	bothNodes = nodeRange{0, 2 * surgeNodeCount}
	allNodes  = nodeRange{0, surgeNodes}
)

// Names of the drains of nodes with pods of Deployments, and of the times at rest.
const (
	surgeWithBudgets = "surge, every second one with a PDB that lets no pod go"
	surgeNoBudgets   = "surge, no PDB"
	surgeOff         = "one NodeMaintenance, gate off, no PDB"
	surgeKubectl     = "kubectl drain of the base, no PDB"
	surgeLarge       = "surge of one large Deployment"

	surgeRestOn  = "Deployments at rest"
	surgeRestOff = "gate " + surgeGate + " off"
)

// surge has the tables of the Deployments at rest and of the drains.
type surge struct {
	*cluster
	atRest, drains *table
}

// surgeStep is what is measured on one cluster.
type surgeStep struct {
	gates                 string
	deployments, replicas int
	// first are the nodes on which the Deployments are rolled out, open those on which their pods
	// can be later.
	first, open nodeRange
	// budgets is how many Deployments have a PDB.
	budgets int
	// rest is the name of the case at rest. Without it that is not measured.
	rest   string
	drains []surgeDrain
}

// surgeDrain is one drain.
type surgeDrain struct {
	name string
	from nodeRange
	// byKubectl is how the base drains. The fork does it by a NodeMaintenance.
	byKubectl bool
}

// measureSurge measures what it costs that Deployments replace their pods before these leave. Each
// cluster is a new one, with all gates or without the one for that.
func measureSurge(ctx context.Context, opts options, r *report) {
	opts.nodes = surgeNodes
	s := surge{
		atRest: r.table(rowPerCase, "%d Deployments with one replica at rest, all controllers.", opts.surge),
		drains: r.table(rowPerFigure, "Pods of %d Deployments with one replica on %d nodes, and %d replicas of one on %d nodes, of which %d are drained.\n"+
			"A pod is ready at once, and takes %s to end. Once each.", opts.surge, surgeNodeCount, opts.surgeReplicas, surgeNodes, surgeNodeCount, surgeEndDelay),
	}
	for _, step := range []surgeStep{
		// Pods leave their nodes for others, and these for the first ones.
		{surgeOnGates, opts.surge, 1, oldNodes, bothNodes, opts.surge / 2, surgeRestOn,
			[]surgeDrain{{surgeWithBudgets, oldNodes, false}, {surgeNoBudgets, newNodes, false}}},
		{surgeOffGates, opts.surge, 1, oldNodes, bothNodes, 0, surgeRestOff,
			[]surgeDrain{{surgeOff, oldNodes, false}, {surgeKubectl, newNodes, true}}},
		// The large one has pods on all nodes, some of which are drained.
		{surgeOnGates, min(opts.surgeReplicas, 1), opts.surgeReplicas, allNodes, allNodes, 0, "",
			[]surgeDrain{{surgeLarge, oldNodes, false}}},
	} {
		if step.deployments > 0 {
			onCluster(ctx, opts, r, step.gates, func(c *cluster) {
				s.cluster = c
				s.run(ctx, step)
			})
		}
	}
	compareSurge(s.atRest, s.drains, opts.surgeReplicas)
}

// compareSurge sets the targets. Drains by kubectl have none.
func compareSurge(atRest, drains *table, largeReplicas int) {
	compareRest(atRest, surgeRestOn, surgeRestOff, "controllers")
	for _, name := range []string{surgeWithBudgets, surgeNoBudgets, surgeOff, surgeKubectl} {
		drains.derive(name, result{Name: "times as long as with the gate off", digits: 2, Value: drains.value(name, "drained after") / drains.value(surgeOff, "drained after")})
	}
	for _, name := range []string{surgeWithBudgets, surgeNoBudgets} {
		drains.want(name, "most pods of a Deployment", atMost, 2)
		drains.want(name, "fewest ready pods", atLeast, 1)
		drains.want(name, "requests for its eviction", atMost, surgeBudget)
	}
	drains.want(surgeOff, "requests for its eviction", atMost, evictionBudget)
	if largeReplicas == 0 {
		return
	}
	// The strategy allows a quarter more pods, rounded up.
	drains.want(surgeLarge, "most pods of a Deployment", atMost, float64(largeReplicas+(largeReplicas+3)/4))
	drains.want(surgeLarge, "fewest ready pods", atLeast, float64(largeReplicas))
	drains.want(surgeLarge, "requests for its eviction", atMost, surgeBudget)
}

func (s *surge) run(ctx context.Context, step surgeStep) {
	fmt.Printf("surge: creating %d Deployments with %d replicas\n", step.deployments, step.replicas)
	s.openNodes(ctx, step.first)
	createAll(ctx, s.cluster, step.deployments, s.setup.AppsV1().Deployments(namespace).Create,
		func(i int) *appsv1.Deployment { return newDeployment(i, int32(step.replicas)) })
	s.awaitSettled(ctx, stepTimeout)
	s.createBudgets(ctx, step.budgets, 1, 0, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))})
	s.audit.untilQuiet(ctx, byAnyController)
	if step.rest != "" {
		s.measureRest(ctx, s.atRest, quiet{step.rest, "controllers", byAnyController, s.sleepIdle})
	}
	for _, d := range step.drains {
		s.openNodes(ctx, step.open)
		steps.Check(steps.Attempt(func() { s.measureDrain(ctx, d, step.replicas) }), d.name)
		s.cleanRequests(ctx)
		s.audit.untilQuiet(ctx, byAnyController)
	}
}

// measureDrain makes one drain and waits until everything is as it was, on other nodes.
func (s *surge) measureDrain(ctx context.Context, d surgeDrain, replicas int) {
	fmt.Printf("surge: %s\n", d.name)
	pods := len(s.podsOn(ctx, d.from))
	recorder := steps.Must(availability.Start(ctx, s.setup, namespace))
	start := time.Now()
	var results []result
	err := steps.Attempt(func() { results = s.timeDrain(ctx, d, pods) })
	// It has to end in any case.
	record, incomplete := recorder.Stop(ctx)
	steps.Check(errors.Join(err, incomplete))
	s.expectNoPods(ctx, d.from)
	s.drains.add(d.name, append(results, availabilityResults(record, start, time.Now(), replicas)...)...)
}

// timeDrain makes one drain of nodes with so many pods.
func (s *surge) timeDrain(ctx context.Context, d surgeDrain, pods int) []result {
	var drained time.Duration
	m := s.measure(ctx, byAnyController, func() {
		start := time.Now()
		if d.byKubectl {
			s.kubectlDrain(ctx, d.from.names()...)
		} else {
			s.maintain(ctx, v1.LabelHostname, d.from.names()...)
		}
		drained = time.Since(start)
		fmt.Printf("  %d pods: %.1f s\n", pods, drained.Seconds())
		s.awaitSettled(ctx, stepTimeout)
	})
	awaitAll(ctx, stepTimeout, "requests to be Evicted", s.setup.CoordinationV1alpha1().EvictionRequests(namespace).List, isEvicted)
	return append([]result{
		{Name: "pods that leave", Value: float64(pods)},
		{Name: "drained after", Unit: "s", digits: 1, Value: drained.Seconds()},
		{Name: "all Deployments settled after", Unit: "s", digits: 1, Value: m.took.Seconds()},
		{Name: restCPU, Unit: "s", digits: 2, Value: m.cpu},
	}, surgeRequests(m.all, pods)...)
}

// surgeRequests has what the audit log has of a drain.
func surgeRequests(all requests, pods int) []result {
	perPod := func(name string, count float64) result {
		return result{Name: name, Unit: "per pod", digits: 2, Value: count / float64(pods)}
	}
	created := func(event *auditv1.Event) bool { return describe(event) == "create pods" }
	results := []result{
		// More than 1 if pods came to a node that they had to leave as well.
		perPod("pods created", all.count(created)),
		perPod("requests for its eviction", all.count(forEvictions)),
		perPod("writes to ReplicaSets", all.count(isWrite, to("replicasets"))),
		perPod("writes to Deployments", all.count(isWrite, to("deployments"))),
		perPod("requests of all clients", float64(len(all))),
	}
	if took := all.untilEvicted(); len(took) > 0 {
		results = append(results,
			result{Name: "request to Evicted, p50", Unit: "s", digits: 2, Value: percentile(50, took)},
			result{Name: "request to Evicted, p99", Unit: "s", digits: 2, Value: percentile(99, took)})
	}
	return append(results, all.byClient(float64(pods), "per pod")...)
}

// availabilityResults says how available the Deployments were, each of which should have so many
// pods.
func availabilityResults(record *availability.Record, start, end time.Time, replicas int) []result {
	most, fewest, below := 0, replicas, time.Duration(0)
	for _, app := range record.Apps {
		most = max(most, app.Active.Max(start, end))
		for app.Ready.Below(fewest, start, end) != nil {
			fewest--
		}
		below += availability.Total(app.Ready.Below(replicas, start, end))
	}
	return []result{
		{Name: "most pods of a Deployment", Value: float64(most)},
		{Name: "fewest ready pods", Value: float64(fewest)},
		{Name: "with fewer than its replicas, mean", Unit: "s", digits: 2, Value: below.Seconds() / float64(max(len(record.Apps), 1))},
	}
}
