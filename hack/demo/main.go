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

// Demo shows this fork at work on a running cluster. The demo "maintenance" drains three
// nodes with kubectl maintenance: it shows what holds the drain up, helps, gives the
// nodes back, and compares how long an application with a single pod was away with what
// kubectl drain does on a cluster of the pristine base. The demo "evictionrequest" shows what a drain is made of: a pod that is
// intercepted before it is evicted, a pod that a PodDisruptionBudget holds back until the
// budget goes, and a request that is called off. Both print what happens while it happens,
// and exit with 0 only if everything came as it must.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// demos are what can be shown, by the argument that selects it.
var demos = map[string]func(ctx context.Context, c *cluster) error{
	"maintenance":     demoMaintenance,
	"evictionrequest": demoEvictionRequest,
}

func main() {
	kubeconfig := flag.String("kubeconfig", "_output/kubeconfig", "path of the kubeconfig file of the cluster")
	bin := flag.String("bin", "_output/bin", "directory with kubectl, eviction-interceptor and cluster")
	base := flag.String("base", "_output/base/bin", "directory with the programs of the pristine base, which the demo maintenance compares with")
	baseName := flag.String("base-name", "demo-base", "name of the cluster of the base, which is there only while the demo runs")
	output := flag.String("output", "_output", "directory for the state of the cluster of the base")
	// A cluster that does not work shows as a failure and not as a hang.
	timeout := flag.Duration("timeout", 2*time.Minute, "time in which everything must have come as it should")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: demo [flags] maintenance|evictionrequest\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	demo, known := demos[flag.Arg(0)]
	if !known || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	c := &cluster{kubectl: *bin + "/kubectl", bin: *bin, kubeconfig: *kubeconfig, base: *base, baseName: *baseName, output: *output}
	if err := run(ctx, demo, c); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, demo func(context.Context, *cluster) error, c *cluster) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig (is the cluster up? run \"make up\"): %w", err)
	}
	config.WarningHandler = rest.NoWarnings{} // kubectl prints them where they matter.
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return demo(ctx, c)
}
