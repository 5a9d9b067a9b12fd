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
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/test/utils/steps"
)

// Names of the ways, and which budgets the pods have.
const (
	byRequests    = "eviction requests"
	byBareClient  = "bare client"
	byDrain       = "kubectl drain"
	byMaintenance = "one NodeMaintenance"
	byLabelDrain  = "kubectl drain -l"

	noBudget = ", no PDB"
	// oneBudget lets all pods go: what it costs are the conflicts on its one object.
	oneBudget = ", one PDB"

	// recordedAfter is from the end of a pod until its request says Evicted.
	recordedAfter = "recorded after the end, p99"
)

// way is a way to evict pods.
type way struct {
	name string
	// pods is how many there are, and node says where.
	pods  int
	node  func(index int) string
	evict func(context.Context, []v1.Pod)
	// measured are the clients whose requests count.
	measured selector
	// once is whether only the first run measures it.
	once bool
	// observe begins to watch something and returns what ends that, with further results.
	observe func(context.Context) (finish func(context.Context, requests) []result)
}

// byFork selects the requests of all clients that take part in an eviction by the fork.
var byFork = by(agentRequester, evictionController, maintenanceController)

// measureEvictions compares the ways to evict pods.
func measureEvictions(ctx context.Context, opts options, r *report) {
	onCluster(ctx, opts, r, featureGates, func(c *cluster) {
		t := r.table(rowPerCase, "Evictions, medians of %d runs: %d pods on %d nodes, requester and bare client with %d calls in flight;\n"+
			"kubectl drain: %d pods on one node. Answers with errors are the sums of all runs.",
			opts.runs, opts.pods, opts.nodes, opts.parallel, opts.drainPods)
		c.measureWays(ctx, t, []way{
			{byRequests, opts.pods, c.spread, c.evictByRequests, byFork, false, nil},
			{byBareClient, opts.pods, c.spread, c.evictByBareClient(opts.parallel), by(agentBare), false, nil},
			// It drains the one node that has all pods.
			{byDrain, opts.drainPods, func(int) string { return nodeName(0) }, c.drainBy(nodeName(0)), by("kubectl"), false, nil},
		}, noBudget, oneBudget)
		compareEvictions(t)
	})
}

func compareEvictions(t *table) {
	for _, budget := range []string{noBudget, oneBudget} {
		drain := t.value(byDrain+budget, "evicted")
		for _, name := range []string{byRequests, byBareClient, byDrain} {
			t.derive(name+budget, result{Name: "times kubectl drain", digits: 1, Value: t.value(name+budget, "evicted") / drain})
		}
		// One creates the request, one evicts, and one records the end.
		t.want(byRequests+budget, "requests", atMost, 3)
		t.want(byRequests+budget, recordedAfter, atMost, 1)
	}
	t.want(byRequests+noBudget, "times kubectl drain", atLeast, 20)
	t.want(byRequests+oneBudget, "409", atMost, 0)
	t.want(byRequests+oneBudget, "eviction p99", atMost, 1)
}

// measureDrains compares the drain of all nodes by one NodeMaintenance with kubectl drain of the
// same nodes with as many pods. The latter is measured once: the limits of its client determine
// how long it takes, and they are the same in every run.
func measureDrains(ctx context.Context, opts options, r *report) {
	onCluster(ctx, opts, r, featureGates, func(c *cluster) {
		t := r.table(rowPerFigure, "Drain of %d nodes with %d pods; one NodeMaintenance: median of %d runs, kubectl drain -l of the base: once.\n"+
			"The requests per pod below are those of all clients.", opts.nodes, opts.pods, opts.runs)
		// The label is on every simulated node of a local cluster.
		maintain := func(ctx context.Context, _ []v1.Pod) { c.maintain(ctx, "type", "kwok") }
		c.measureWays(ctx, t, []way{
			{byMaintenance, opts.pods, c.spread, maintain, byFork, false, nil},
			{byLabelDrain, opts.pods, c.spread, c.drainBy("--selector", "type=kwok"), by("kubectl"), true, nil},
		}, noBudget)
		compareDrains(t)
	})
}

func compareDrains(t *table) {
	kubectl := t.value(byLabelDrain+noBudget, "evicted after")
	for _, name := range []string{byMaintenance, byLabelDrain} {
		took := t.value(name+noBudget, "evicted after")
		t.derive(name+noBudget, result{Name: "times as fast as kubectl drain -l", digits: 1, Value: kubectl / took})
		t.derive(name+noBudget, result{Name: "share of the wall time of kubectl drain -l", digits: 3, Value: took / kubectl})
	}
	t.want(byMaintenance+noBudget, "share of the wall time of kubectl drain -l", atMost, 0.05)
}

// measureWays measures all ways with all budgets in every run.
func (c *cluster) measureWays(ctx context.Context, t *table, ways []way, budgets ...string) {
	for n := 1; n <= c.opts.runs; n++ {
		for _, budget := range budgets {
			for _, w := range ways {
				if w.once && n > 1 {
					continue
				}
				name := w.name + budget
				fmt.Printf("run %d of %d, %-29s", n, c.opts.runs, name)
				steps.Check(steps.Attempt(func() {
					results := c.evict(ctx, w, budget)
					fmt.Printf("%8.1f %s\n", results[0].Value, results[0].Unit)
					t.add(name, results...)
				}), name)
			}
		}
	}
}

// evict makes one measurement, from creating the pods to removing what is left.
func (c *cluster) evict(ctx context.Context, w way, budget string) []result {
	all := nodeRange{0, c.opts.nodes}
	// An earlier drain has cordoned its nodes, and cordoning is part of this one.
	c.openNodes(ctx, all)
	pods := c.createPods(ctx, w.pods, w.node)
	if budget == oneBudget {
		c.createBudget(ctx, w.pods, 0)
	}
	finish := func(context.Context, requests) []result { return nil }
	if w.observe != nil {
		finish = w.observe(ctx)
	}
	m := c.measure(ctx, w.measured, func() { w.evict(ctx, pods) })
	observed := finish(ctx, m.all)
	c.expectNoPods(ctx, all)
	results := w.results(m.took, m.all)
	if recorded := m.all.untilRecorded(pods); len(recorded) > 0 {
		results = append(results, result{Name: recordedAfter, Unit: "s", digits: 3, Value: percentile(99, recorded)})
	}
	c.clean(ctx)
	return append(results, observed...)
}

func (w *way) results(took time.Duration, all requests) []result {
	pods := float64(w.pods)
	measured := all.of(w.measured)
	evictions := measured.of(isEviction)
	if len(evictions) < w.pods {
		steps.Check(fmt.Errorf("the audit log has %d eviction calls for %d pods: it is incomplete", len(evictions), w.pods))
	}
	seconds := evictions.seconds()
	return append([]result{
		{Name: "evicted", Unit: "pods/s", digits: 1, Value: pods / took.Seconds()},
		{Name: "evicted after", Unit: "s", digits: 1, Value: took.Seconds()},
		{Name: "requests", Unit: "per pod", digits: 2, Value: float64(len(measured)) / pods},
		{Name: "of all clients", Unit: "per pod", digits: 2, Value: float64(len(all)) / pods},
		{Name: "eviction p50", Unit: "s", digits: 3, Value: percentile(50, seconds)},
		{Name: "eviction p99", Unit: "s", digits: 3, Value: percentile(99, seconds)},
		{Name: "eviction max", Unit: "s", digits: 3, Value: percentile(100, seconds)},
		{Name: "409", sum: true, Value: evictions.count(answered(409))},
		{Name: "429", sum: true, Value: evictions.count(answered(429))},
		{Name: "other errors", sum: true, Value: evictions.count(otherError)},
	}, all.byClient(pods, "per pod")...)
}

func (c *cluster) evictByRequests(ctx context.Context, pods []v1.Pod) {
	c.request(ctx, pods, "Evicted", isEvicted)
}

// refusedBackoff is how often the bare client repeats a call that a busy API server refuses.
var refusedBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 12, Cap: 5 * time.Second}

// evictByBareClient is the best that is possible: nothing but the eviction calls, so many in flight.
func (c *cluster) evictByBareClient(parallel int) func(context.Context, []v1.Pod) {
	return func(ctx context.Context, pods []v1.Pod) {
		inParallel(ctx, parallel, len(pods), func(ctx context.Context, i int) {
			pod := &pods[i]
			err := retry.OnError(refusedBackoff, isTransient, func() error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return c.bare.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{
					ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: pod.Name},
					DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
				})
			})
			if !apierrors.IsNotFound(err) {
				steps.Check(err, "evicting pod ", pod.Name)
			}
		})
	}
}

// isTransient reports whether the same call can succeed after this answer.
func isTransient(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// drainBy evicts by kubectl drain of nodes.
func (c *cluster) drainBy(nodes ...string) func(context.Context, []v1.Pod) {
	return func(ctx context.Context, _ []v1.Pod) { c.kubectlDrain(ctx, nodes...) }
}

// kubectlDrain runs kubectl drain of the pristine base as a user would; --force, because the pods
// belong to no controller. It returns when kubectl has seen all pods gone.
func (c *cluster) kubectlDrain(ctx context.Context, nodes ...string) {
	args := append([]string{"drain", "--force", "--timeout", stepTimeout.String(),
		"--kubeconfig", c.local.Kubeconfig(), "--cache-dir", filepath.Join(c.opts.resultsDir(), "kubectl-cache")}, nodes...)
	command := exec.CommandContext(ctx, filepath.Join(c.opts.base, "kubectl"), args...)
	command.WaitDelay = time.Second
	if err := runCommand(command); err != nil {
		steps.Check(shorten(err))
	}
}

// shorten takes out the middle of a long error of kubectl, which names every pod that it has evicted
// until then.
func shorten(err error) error {
	const part = 1000
	message := err.Error()
	if len(message) <= 2*part {
		return err
	}
	return errors.New(strings.ToValidUTF8(message[:part]+" ... "+message[len(message)-part:], ""))
}
