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

	"k8s.io/client-go/tools/evictionrequest"
)

// errFailed is returned when the cluster did something else than it should have.
var errFailed = errors.New("not every scenario ended as it must: see the table above")

// demoEvictionRequest shows three pods that are asked to leave.
func demoEvictionRequest(ctx context.Context, c *cluster) error {
	requester, err := evictionrequest.NewRequester(c.client, requesterName, evictionrequest.RequesterOptions{})
	if err != nil {
		return err
	}
	if err := c.createNamespace(ctx, "evictionrequest"); err != nil {
		return err
	}
	interceptor, err := startInterceptor(c, interceptorName, interceptorWork)
	if err != nil {
		return err
	}
	defer interceptor.stop()

	fmt.Printf("Three pods in namespace %s are asked to leave by EvictionRequests.\n\n", c.namespace)
	scenarios := newScenarios(c, requester)
	view := newView(os.Stdout, scenarios)
	lifetime, cancel := interceptor.lifetime(ctx)
	defer cancel()
	results := play(lifetime, scenarios, view)
	view.close()
	if err := interceptor.alive(); err != nil && ctx.Err() == nil {
		return err
	}
	if err := report(os.Stdout, scenarios, results); err != nil {
		return err
	}
	fmt.Printf("\nTo look around while the cluster is up:\n  %s --kubeconfig %s --namespace %s get er -o wide\n",
		c.kubectl, c.kubeconfig, c.namespace)
	return nil
}

// play runs the scenarios side by side and returns the error of each, if any.
func play(ctx context.Context, scenarios []*scenario, view *view) []error {
	type result struct {
		index int
		err   error
	}
	done := make(chan result)
	for i, s := range scenarios {
		go func() { done <- result{i, s.play(ctx, view)} }()
	}
	results := make([]error, len(scenarios))
	for range scenarios {
		r := <-done
		results[r.index] = r.err
	}
	return results
}
