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

// Upgrade runs the test of KEP-4563's section "Were upgrade and rollback tested?" by
// machine: the pristine base and the fork take turns on one etcd, as kube-apiserver
// first and kube-controller-manager last on the way up and the other way round on the
// way down. To the KEP's steps it adds pods that name interceptors, a NodeMaintenance, and
// Deployments in the middle of a surge. It prints each step with what was observed, and
// exits with 0 only if all was as it must be.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/kubernetes/hack/controlplane"
)

// timeout bounds the whole test. It takes about a minute.
const timeout = 10 * time.Minute

const (
	// gatesBefore are those that the workloads need, without their own.
	gatesBefore = "EvictionRequestAPI=true,DeclarativeNodeMaintenance=true"
	gates       = gatesBefore + ",DeploymentPodSurge=true,NodeMaintenanceAwareDaemonSet=true"
)

func main() {
	base := flag.String("base", "_output/base/bin", "directory with kube-apiserver and kube-controller-manager of the pristine base")
	bin := flag.String("bin", "_output/bin", "directory with etcd, and with kube-apiserver and kube-controller-manager of the fork")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := run(ctx, *base, *bin); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

// run goes through the steps in a new state directory, which it keeps when one fails.
func run(ctx context.Context, base, bin string) error {
	dir, err := os.MkdirTemp("", "upgrade-*")
	if err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	plane, err := controlplane.New(ctx, dir, bin+"/etcd")
	if err != nil {
		return err
	}
	defer plane.Close()
	t, err := newUpgradeTest(plane, controlplane.Release{Name: "the pristine base", Bin: base}, controlplane.Release{
		Name: "the fork", Bin: bin,
		FeatureGates:  gates,
		RuntimeConfig: "coordination.k8s.io/v1alpha1=true",
	})
	if err != nil {
		return err
	}
	begin := time.Now()
	for _, step := range t.steps() {
		fmt.Printf("%-4s%s\n", step.number, step.what)
		observed, err := step.run(ctx)
		if err != nil {
			return fmt.Errorf("step %s: %w (state and logs are in %s)", step.number, err, dir)
		}
		fmt.Printf("    observed after %.1f s: %s\n", time.Since(begin).Seconds(), observed)
	}
	fmt.Println("Upgrade, rollback and upgrade again: all as it must be.")
	return os.RemoveAll(dir)
}
