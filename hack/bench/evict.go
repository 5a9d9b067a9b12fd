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
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// way is a way to evict pods.
type way string

const (
	byRequests   way = "eviction requests"
	byBareClient way = "bare client"
	byDrain      way = "kubectl drain"

	byMaintenance way = "one NodeMaintenance"
	byLabelDrain  way = "kubectl drain -l"
)

// budgetKind says which budgets the pods have.
type budgetKind string

const (
	noBudget budgetKind = "no PDB"
	// oneBudget lets all pods go: what it costs are the conflicts on its one object.
	oneBudget budgetKind = "one PDB"
)

// result is one measurement.
type result struct {
	Run    int        `json:"run"`
	Way    way        `json:"way"`
	Budget budgetKind `json:"budget"`
	Pods   int        `json:"pods"`
	// Seconds is the time until all pods were evicted and those who asked knew.
	Seconds       float64 `json:"seconds"`
	PodsPerSecond float64 `json:"podsPerSecond"`
	// RequestsPerPod are those of the measured alone, AllRequestsPerPod everybody's.
	RequestsPerPod    float64 `json:"requestsPerPod"`
	AllRequestsPerPod float64 `json:"allRequestsPerPod"`
	// Time that an eviction call took in the API server.
	EvictionP50Seconds float64 `json:"evictionP50Seconds"`
	EvictionP99Seconds float64 `json:"evictionP99Seconds"`
	EvictionMaxSeconds float64 `json:"evictionMaxSeconds"`
	tally
}

// method is how pods are evicted one way.
type method struct {
	// pods is how many there are, node says where.
	pods  int
	node  func(int) string
	evict func(context.Context, []v1.Pod) error
	// measured are those whose requests count.
	measured selector
}

func (c *cluster) method(way way) method {
	switch way {
	case byBareClient:
		return method{c.opts.pods, c.spread, c.evictByBareClient, byBare}
	case byDrain:
		return method{c.opts.drainPods, func(int) string { return drainNode }, c.drain, byKubectl}
	case byMaintenance:
		return method{c.opts.pods, c.spread, c.drainByMaintenance, byRequesterAndControllers}
	case byLabelDrain:
		return method{c.opts.pods, c.spread, c.drainByLabel, byKubectl}
	}
	return method{c.opts.pods, c.spread, c.evictByRequests, byRequesterAndControllers}
}

// measureEvictions compares the ways to evict pods.
func (c *cluster) measureEvictions(ctx context.Context) ([]result, error) {
	var results []result
	for n := 1; n <= c.opts.runs; n++ {
		for _, budget := range []budgetKind{noBudget, oneBudget} {
			for _, way := range []way{byRequests, byBareClient, byDrain} {
				r, err := c.measureWay(ctx, n, way, budget)
				if err != nil {
					return nil, err
				}
				results = append(results, r)
			}
		}
	}
	return results, nil
}

// measureWay makes one measurement and says what it has come to.
func (c *cluster) measureWay(ctx context.Context, run int, way way, budget budgetKind) (result, error) {
	fmt.Printf("run %d of %d, %s, %-19s", run, c.opts.runs, budget, way)
	r, err := c.evict(ctx, way, budget)
	if err != nil {
		fmt.Println()
		return r, fmt.Errorf("%s, %s: %w", way, budget, err)
	}
	fmt.Printf("%8.1f pods/s\n", r.PodsPerSecond)
	r.Run = run
	return r, nil
}

// evict makes one measurement, from creating the pods to removing what is left.
func (c *cluster) evict(ctx context.Context, way way, budget budgetKind) (result, error) {
	method := c.method(way)
	pods, err := c.createPods(ctx, method.pods, method.node)
	if err != nil {
		return result{}, err
	}
	if budget == oneBudget {
		if err := c.createBudget(ctx, method.pods, 0); err != nil {
			return result{}, err
		}
	}
	if err := c.audit.skip(); err != nil {
		return result{}, err
	}
	start := time.Now()
	if err := method.evict(ctx, pods); err != nil {
		return result{}, err
	}
	took := time.Since(start)
	events, err := c.audit.untilQuiet(ctx, method.measured)
	if err != nil {
		return result{}, err
	}
	if err := c.expectNoPods(ctx); err != nil {
		return result{}, err
	}
	r, err := newResult(way, budget, method.pods, took, countRequests(events, method.measured))
	if err != nil {
		return result{}, err
	}
	return r, c.clean(ctx)
}

func newResult(way way, budget budgetKind, pods int, took time.Duration, t tally) (result, error) {
	if len(t.evictionSeconds) < pods {
		return result{}, fmt.Errorf("the audit log has %d eviction calls for %d pods: it is incomplete", len(t.evictionSeconds), pods)
	}
	return result{
		Way: way, Budget: budget, Pods: pods,
		Seconds:            took.Seconds(),
		PodsPerSecond:      float64(pods) / took.Seconds(),
		RequestsPerPod:     float64(t.measuredRequests()) / float64(pods),
		AllRequestsPerPod:  float64(t.All) / float64(pods),
		EvictionP50Seconds: percentile(50, t.evictionSeconds),
		EvictionP99Seconds: percentile(99, t.evictionSeconds),
		EvictionMaxSeconds: percentile(100, t.evictionSeconds),
		tally:              t,
	}, nil
}

// expectNoPods makes sure that it was evictions that were measured.
func (c *cluster) expectNoPods(ctx context.Context) error {
	list, err := c.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("%d pods are still there, such as %s", len(list.Items), list.Items[0].Name)
	}
	return nil
}

func (c *cluster) evictByRequests(ctx context.Context, pods []v1.Pod) error {
	return c.request(ctx, pods, "Evicted", isEvicted)
}

// refusedBackoff is the patience of the bare client with a busy API server.
var refusedBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 12, Cap: 5 * time.Second}

// evictByBareClient is what is possible at best: nothing but the eviction calls, as many
// at a time as the controller makes.
func (c *cluster) evictByBareClient(ctx context.Context, pods []v1.Pod) error {
	return c.inParallel(ctx, len(pods), func(ctx context.Context, i int) error {
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
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
		}
		return nil
	})
}

// isTransient is true for answers after which the same call can succeed.
func isTransient(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// drain drains the one node that has all pods.
func (c *cluster) drain(ctx context.Context, _ []v1.Pod) error {
	return c.kubectlDrain(ctx, drainNode)
}

// maxErrorLength is what of the output of a failed command somebody wants to read.
const maxErrorLength = 2000

// shorten takes out the middle of an error of kubectl, which names every pod that it has
// evicted until then.
func shorten(err error) error {
	message := err.Error()
	if len(message) <= maxErrorLength {
		return err
	}
	return errors.New(strings.ToValidUTF8(message[:maxErrorLength/2]+" ... "+message[len(message)-maxErrorLength/2:], ""))
}
