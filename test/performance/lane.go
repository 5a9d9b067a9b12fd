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
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/test/utils/steps"
)

const (
	laneGate          = ",EvictionLane=true"
	interceptGate     = ",EvictionRequestForEvictions=true"
	disruptionAccount = "disruption-controller"
	laneParallel      = 64
	laneSerialPods    = 100
	laneSmallPods     = 500

	withoutLane = "without the lane"
	byLane      = "lane"
	intercepted = "lane, interceptors for evictions"

	ofBareClient = "of the rate of the bare client"
)

// measureLane compares the API server without and with EvictionLane, and with
// EvictionRequestForEvictions as well. The clusters follow each other, as gates are of the process.
func measureLane(ctx context.Context, opts options, r *report) {
	t := r.table(rowPerFigure, "Evictions without and with EvictionLane, medians of %d runs, on %d nodes, by a bare client with 1, 30 or %d calls in flight\n"+
		"(%d, %d and %d pods) and by EvictionRequests (%d pods).",
		opts.runs, opts.nodes, laneParallel, laneSerialPods, laneSmallPods, opts.lanePods, laneSmallPods)
	for _, server := range []struct{ name, gates string }{{withoutLane, ""}, {byLane, laneGate}, {intercepted, laneGate + interceptGate}} {
		onCluster(ctx, opts, r, featureGates+server.gates, func(c *cluster) {
			if server.name == intercepted {
				c.measureWays(ctx, t, []way{c.bareWay(intercepted, opts.lanePods, laneParallel)}, noBudget)
				return
			}
			c.measureWays(ctx, t, []way{
				c.bareWay(server.name, laneSerialPods, 1),
				c.bareWay(server.name, laneSmallPods, 30),
				c.bareWay(server.name, opts.lanePods, laneParallel),
				{server.name + ", " + byRequests, laneSmallPods, c.spread, c.evictByRequests, byFork, false, c.observeBudget},
			}, noBudget, oneBudget)
		})
	}
	compareLane(t)
}

func bareName(server string, parallel int) string {
	return fmt.Sprintf("%s, %d calls", server, parallel)
}

func (c *cluster) bareWay(server string, pods, parallel int) way {
	return way{bareName(server, parallel), pods, c.spread, c.evictByBareClient(parallel), by(agentBare), false, c.observeBudget}
}

func compareLane(t *table) {
	// The rate of one call at a time is the inverse of its mean duration.
	const speedup = "times the rate without the lane"
	for _, parallel := range []int{1, laneParallel} {
		for _, budget := range []string{noBudget, oneBudget} {
			name := bareName(byLane, parallel) + budget
			t.derive(name, result{Name: speedup, digits: 1, Value: t.value(name, "evicted") / t.value(bareName(withoutLane, parallel)+budget, "evicted")})
		}
	}
	for _, budget := range []string{noBudget, oneBudget} {
		t.want(bareName(byLane, 1)+budget, speedup, atLeast, 15)
	}
	wide := bareName(byLane, laneParallel)
	t.derive(wide+oneBudget, result{Name: "of the rate without a budget", digits: 2, Value: t.value(wide+oneBudget, "evicted") / t.value(wide+noBudget, "evicted")})
	t.want(wide+oneBudget, "of the rate without a budget", atLeast, 0.85)
	t.want(wide+oneBudget, speedup, atLeast, 10)
	t.want(wide+oneBudget, "409", atMost, 0)
	t.want(wide+oneBudget, "eviction p99", atMost, 0.3)
	t.want(wide+oneBudget, "writes of the budget by evictions", atMost, 0.25)
	t.want(wide+oneBudget, "disrupted pods, at most", atMost, 700)

	// EvictionRequests on the API server with the lane.
	requested := byLane + ", " + byRequests
	t.derive(requested+noBudget, result{Name: ofBareClient, digits: 2, Value: t.value(requested+noBudget, "evicted") / t.value(bareName(byLane, 30)+noBudget, "evicted")})
	t.derive(requested+oneBudget, result{Name: "of the rate without a budget", digits: 2, Value: t.value(requested+oneBudget, "evicted") / t.value(requested+noBudget, "evicted")})
	t.want(requested+noBudget, ofBareClient, atLeast, 0.6)
	t.want(requested+oneBudget, "of the rate without a budget", atLeast, 0.85)

	// No pod has interceptors.
	checked := bareName(intercepted, laneParallel) + noBudget
	t.derive(checked, result{Name: "of the rate without the check", digits: 2, Value: t.value(checked, "evicted") / t.value(wide+noBudget, "evicted")})
	t.derive(checked, result{Name: "more requests of all clients", Unit: "per pod", digits: 2, Value: t.value(checked, "of all clients") - t.value(wide+noBudget, "of all clients")})
	t.want(checked, "of the rate without the check", atLeast, 0.99)
	t.want(checked, "more requests of all clients", atMost, 0.1)
}

// budgetWatch counts the versions of the budget.
type budgetWatch struct {
	lock     sync.Mutex
	last     string
	versions int
	// disrupted is the largest number of evicted pods that the disruption controller had yet to see.
	disrupted int
}

func (w *budgetWatch) add(budget *policyv1.PodDisruptionBudget) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.last != "" { // The first one is that before the measurement.
		w.versions++
	}
	w.last = budget.ResourceVersion
	w.disrupted = max(w.disrupted, len(budget.Status.DisruptedPods))
}

// observeBudget counts who writes the one budget during a measurement.
func (c *cluster) observeBudget(ctx context.Context) (finish func(context.Context, requests) []result) {
	budgets := c.setup.PolicyV1().PodDisruptionBudgets(namespace)
	list := steps.Must(budgets.List(ctx, metav1.ListOptions{}))
	if len(list.Items) == 0 {
		return func(context.Context, requests) []result { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	watched := &budgetWatch{}
	watchAll(ctx, c, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Policy().V1().PodDisruptionBudgets().Informer()
	}, watched.add)
	return func(ctx context.Context, all requests) []result {
		defer cancel()
		await(ctx, "the disruption controller to account for all pods", pollInterval, stepTimeout, func(ctx context.Context) bool {
			budget := steps.Must(budgets.Get(ctx, list.Items[0].Name, metav1.GetOptions{}))
			watched.lock.Lock()
			defer watched.lock.Unlock()
			// The watch has its last version.
			return watched.last == budget.ResourceVersion && len(budget.Status.DisruptedPods) == 0
		})
		watched.lock.Lock()
		defer watched.lock.Unlock()
		return watched.results(all)
	}
}

// results are per eviction. What the disruption controller does not write, evictions do.
func (w *budgetWatch) results(all requests) []result {
	byController := all.of(by(disruptionAccount), to("poddisruptionbudgets"), isWrite)
	conflicts := byController.count(answered(409))
	evictions := all.count(isEviction, answered(201))
	return []result{
		{Name: "writes of the budget by evictions", Unit: "per pod", digits: 2, Value: (float64(w.versions) - byController.count(answered(200))) / evictions},
		{Name: "conflicts of the disruption controller", sum: true, Value: conflicts},
		{Name: "disrupted pods, at most", Value: float64(w.disrupted)},
	}
}
