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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/steps"
)

// quiet is a time in which no client wants anything.
type quiet struct {
	name string
	// who are the measured clients.
	who      string
	measured selector
	// meanwhile returns when the time is over.
	meanwhile func(context.Context)
}

// measureRest measures what controllers do while no client wants anything. They must be silent
// when it begins.
func (c *cluster) measureRest(ctx context.Context, t *table, q quiet) {
	fmt.Printf("%s: %s\n", q.name, c.opts.idleTime)
	m := c.measure(ctx, nil, func() { q.meanwhile(ctx) })
	t.add(q.name, q.results(m.took, m.cpu, m.all.of(q.measured))...)
}

const restCPU = "CPU of kube-controller-manager"

func (q *quiet) results(took time.Duration, cpuSeconds float64, measured requests) []result {
	return append([]result{
		{Name: "writes by " + q.who, Unit: "per minute", digits: 2, Value: measured.count(isWrite) / took.Minutes()},
		{Name: restCPU, Unit: "s per minute", digits: 2, Value: cpuSeconds / took.Minutes()},
	}, measured.byClient(took.Minutes(), "per minute")...)
}

// idleCPUSeconds is what a feature may cost per minute at rest: one percent of a processor.
const idleCPUSeconds = 0.6

// compareRest sets the targets of a feature at rest, against the same cluster without it.
func compareRest(t *table, with, without, who string) {
	t.want(with, "writes by "+who, atMost, 0)
	t.derive(with, result{Name: "CPU more than " + without, Unit: "s per minute", digits: 2, Value: t.value(with, restCPU) - t.value(without, restCPU)})
	t.want(with, "CPU more than "+without, atMost, idleCPUSeconds)
}

// sleepIdle returns after the time in which nothing happens.
func (c *cluster) sleepIdle(ctx context.Context) {
	select {
	case <-ctx.Done():
		steps.Check(context.Cause(ctx))
	case <-time.After(c.opts.idleTime):
	}
}

// idleInterceptor takes its time.
const idleInterceptor = "patient.example.com"

// measureIdle measures what the controller does for requests that wait.
func measureIdle(ctx context.Context, opts options, r *report) {
	onCluster(ctx, opts, r, featureGates, func(c *cluster) {
		t := r.table(rowPerCase, "%d requests that wait, for %s.", opts.idle, opts.idleTime)
		controller := by(evictionController)
		for _, state := range []struct {
			name    string
			prepare func(context.Context)
			end     func(context.Context, *table)
		}{
			{stateIntercepting, c.prepareIntercepting, func(context.Context, *table) {}},
			{stateBlocked, c.prepareBlocked, c.measureRelease},
		} {
			fmt.Printf("creating %d %s\n", opts.idle, state.name)
			steps.Check(steps.Attempt(func() {
				begun := c.measure(ctx, controller, func() { state.prepare(ctx) })
				t.derive(state.name, result{Name: "writes at first", Unit: "per request", digits: 2, Value: begun.all.count(controller, isWrite) / float64(opts.idle)})
				c.measureRest(ctx, t, quiet{state.name, "the controller", controller, c.sleepIdle})
				state.end(ctx, t)
				c.clean(ctx)
			}), state.name)
		}
		compareIdle(t)
	})
}

const (
	stateIntercepting = "idle requests, an interceptor is active and has reported"
	stateBlocked      = "idle requests, a PDB allows no eviction"
)

// Figures of the release of blocked requests.
const (
	firstAfter     = "first pod gone after the budget allows it"
	ownConflicts   = "conflicts of writes of statuses"
	evictedAtOnce  = "evicted when the budget allows all"
	blockedAtFirst = 1.01
	blockedAtRest  = 20
)

// compareIdle sets the targets. Of the requests that a budget blocks, each is written once, in which
// the attempts that all share are hardly seen; then ten eviction calls and ten writes may remain per
// minute.
func compareIdle(t *table) {
	t.want(stateIntercepting, "writes by the controller", atMost, 0)
	t.want(stateBlocked, "writes at first", atMost, blockedAtFirst)
	t.want(stateBlocked, "writes by the controller", atMost, blockedAtRest)
	t.want(stateBlocked, firstAfter, atMost, 2)
	t.want(stateBlocked, ownConflicts, atMost, 0)
}

// measureRelease lets the budget allow all evictions, and measures how long the blocked requests
// take.
func (c *cluster) measureRelease(ctx context.Context, t *table) {
	m := c.measure(ctx, by(evictionController), func() {
		patch := []byte(`{"spec":{"minAvailable":0}}`)
		steps.Must(c.setup.PolicyV1().PodDisruptionBudgets(namespace).Patch(ctx, appName(0), types.MergePatchType, patch, metav1.PatchOptions{}))
		await(ctx, "the end of the pods", pollInterval, stepTimeout, func(ctx context.Context) bool {
			return len(c.podsOn(ctx, nodeRange{0, c.opts.nodes})) == 0
		})
	})
	for _, r := range releaseResults(m.all, c.opts.idle, m.took) {
		t.derive(stateBlocked, r)
	}
}

// releaseResults are the figures of a release. The budget allows evictions once the disruption
// controller has written its status.
func releaseResults(all requests, pods int, took time.Duration) []result {
	waited := math.NaN()
	allowed := all.of(by(disruptionAccount), to("poddisruptionbudgets"), isWrite, answered(200))
	evicted := all.of(isEviction, answered(201))
	if len(allowed) > 0 && len(evicted) > 0 {
		waited = evicted[0].StageTimestamp.Sub(allowed[0].StageTimestamp.Time).Seconds()
	}
	return []result{
		{Name: firstAfter, Unit: "s", digits: 2, Value: waited},
		{Name: evictedAtOnce, Unit: "pods/s", digits: 1, Value: float64(pods) / took.Seconds()},
		{Name: ownConflicts, Value: all.count(by(evictionController), to("evictionrequests"), answered(409))},
	}
}

// prepareIntercepting makes requests whose interceptor is active and has reported.
func (c *cluster) prepareIntercepting(ctx context.Context) {
	pods := c.createPods(ctx, c.opts.idle, c.spread, idleInterceptor)
	c.request(ctx, pods, "intercepted", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) == 1 && request.Status.ActiveInterceptors[0] == idleInterceptor
	})
	requests := c.interceptor.CoordinationV1alpha1().EvictionRequests(namespace)
	c.inParallel(ctx, len(pods), func(ctx context.Context, i int) {
		request := steps.Must(requests.Get(ctx, string(pods[i].UID), metav1.GetOptions{}))
		now := metav1.Now()
		for j := range request.Status.Interceptors {
			if entry := &request.Status.Interceptors[j]; entry.Name == idleInterceptor {
				entry.StartTime, entry.HeartbeatTime = &now, &now
				entry.Message = "This takes a while."
			}
		}
		steps.Must(requests.UpdateStatus(ctx, request, metav1.UpdateOptions{}))
	})
}

// prepareBlocked makes requests whose eviction a budget refuses.
func (c *cluster) prepareBlocked(ctx context.Context) {
	pods := c.createPods(ctx, c.opts.idle, c.spread)
	c.createBudget(ctx, len(pods), len(pods))
	c.request(ctx, pods, "blocked", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return isTrue(request, coordinationv1alpha1.EvictionRequestConditionBlocked)
	})
}
