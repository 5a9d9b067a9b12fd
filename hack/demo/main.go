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
// Demo shows EvictionRequests at work on a running cluster: a pod that is intercepted
// before it is evicted, a pod that a PodDisruptionBudget holds back until the budget
// goes, and a request that is called off. It prints what happens while it happens, and
// exits with 0 only if all three ended as they must.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/evictionrequest"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "_output/kubeconfig", "path of the kubeconfig file of the cluster")
	bin := flag.String("bin", "_output/bin", "directory with kubectl and eviction-interceptor")
	// A cluster that does not work shows as a failure and not as a hang.
	timeout := flag.Duration("timeout", 80*time.Second, "time in which everything must have ended as it should")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, *kubeconfig, *bin); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, bin string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig (is the cluster up? run \"make up\"): %w", err)
	}
	config.WarningHandler = rest.NoWarnings{} // kubectl prints them where they matter.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	requester, err := evictionrequest.NewRequester(client, requesterName, evictionrequest.RequesterOptions{})
	if err != nil {
		return err
	}
	cluster := &cluster{client: client, requester: requester, kubectl: bin + "/kubectl", kubeconfig: kubeconfig}
	if err := cluster.createNamespace(ctx); err != nil {
		return err
	}
	interceptor, err := startInterceptor(ctx, bin+"/eviction-interceptor", kubeconfig)
	if err != nil {
		return err
	}
	defer interceptor.stop()

	fmt.Printf("Three pods in namespace %s are asked to leave by EvictionRequests.\n\n", cluster.namespace)
	scenarios := newScenarios(cluster)
	view := newView(os.Stdout, scenarios)
	results := play(ctx, scenarios, view)
	view.close()
	if err := interceptor.alive(); err != nil {
		return err
	}
	if err := report(os.Stdout, scenarios, results); err != nil {
		return err
	}
	fmt.Printf("\nTo look around while the cluster is up:\n  %s --kubeconfig %s --namespace %s get er -o wide\n",
		cluster.kubectl, kubeconfig, cluster.namespace)
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

// errFailed is returned when the cluster did something else than it should have.
var errFailed = errors.New("not every scenario ended as it must: see the table above")
