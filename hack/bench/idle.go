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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// idleInterceptor takes its time.
const idleInterceptor = "patient.example.com"

// idleResult is what the controller does for requests that wait, per minute.
type idleResult struct {
	// State is what they wait in.
	State   string  `json:"state"`
	Waiting int     `json:"waiting"`
	Seconds float64 `json:"seconds"`
	Writes  float64 `json:"writesPerMinute"`
	// Counts are the requests of the controller, in the whole time.
	Counts map[string]int `json:"requests"`
}

const (
	stateIntercepting = "an interceptor is active and has reported"
	stateBlocked      = "a PDB allows no eviction"
)

// measureIdle counts the controller's requests while nothing happens.
func (c *cluster) measureIdle(ctx context.Context) ([]idleResult, error) {
	if c.opts.idle == 0 {
		return nil, nil
	}
	var results []idleResult
	for _, part := range []struct {
		state   string
		prepare func(context.Context) error
	}{
		{stateIntercepting, c.prepareIntercepting},
		{stateBlocked, c.prepareBlocked},
	} {
		fmt.Printf("idle: %d requests, %s\n", c.opts.idle, part.state)
		if err := part.prepare(ctx); err != nil {
			return nil, fmt.Errorf("idle requests, %s: %w", part.state, err)
		}
		if _, err := c.audit.untilQuiet(ctx, byController); err != nil {
			return nil, err
		}
		events, err := c.audit.during(ctx, c.opts.idleTime)
		if err != nil {
			return nil, err
		}
		results = append(results, newIdleResult(part.state, c.opts.idle, c.opts.idleTime, countRequests(events, byController)))
		if err := c.clean(ctx); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func newIdleResult(state string, waiting int, duration time.Duration, t tally) idleResult {
	return idleResult{
		State: state, Waiting: waiting, Seconds: duration.Seconds(),
		Writes: float64(t.writes()) / duration.Minutes(),
		Counts: t.Requests,
	}
}

// prepareIntercepting makes requests whose interceptor is active and has reported.
func (c *cluster) prepareIntercepting(ctx context.Context) error {
	pods, err := c.createPods(ctx, c.opts.idle, c.spread, idleInterceptor)
	if err != nil {
		return err
	}
	if err := c.request(ctx, pods, "intercepted", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) == 1 && request.Status.ActiveInterceptors[0] == idleInterceptor
	}); err != nil {
		return err
	}
	return c.heartbeat(ctx, pods)
}

// heartbeat reports for the interceptor of each pod.
func (c *cluster) heartbeat(ctx context.Context, pods []v1.Pod) error {
	requests := c.interceptor.CoordinationV1alpha1().EvictionRequests(namespace)
	err := c.inParallel(ctx, len(pods), func(ctx context.Context, i int) error {
		request, err := requests.Get(ctx, string(pods[i].UID), metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now()
		for j := range request.Status.Interceptors {
			if entry := &request.Status.Interceptors[j]; entry.Name == idleInterceptor {
				entry.StartTime, entry.HeartbeatTime = &now, &now
				entry.Message = "This takes a while."
			}
		}
		_, err = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("reporting as the interceptor: %w", err)
	}
	return nil
}

// prepareBlocked makes requests that the controller was refused to carry out.
func (c *cluster) prepareBlocked(ctx context.Context) error {
	pods, err := c.createPods(ctx, c.opts.idle, c.spread)
	if err != nil {
		return err
	}
	if err := c.createBudget(ctx, len(pods), len(pods)); err != nil {
		return err
	}
	return c.request(ctx, pods, "blocked", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return findCondition(request, coordinationv1alpha1.EvictionRequestConditionBlocked) != nil
	})
}
