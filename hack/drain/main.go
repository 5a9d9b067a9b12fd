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

// Drain runs drain, cordon and uncordon of the fork's kubectl.
//
// On servers without our APIs, which are the pristine base and the fork with its gates
// off, they must do what those of the base's kubectl do: same output, same exit code,
// same requests in the servers' audit logs, apart from one question for what is served
// for each drain. On the fork with its gates on, they must leave alone the pods that
// have interceptors, and the nodes that are under maintenance.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/kubernetes/hack/controlplane"
)

// timeout bounds the whole test. It takes half a minute.
const timeout = 10 * time.Minute

func main() {
	base := flag.String("base", "_output/base/bin", "directory with kube-apiserver and kubectl of the pristine base")
	bin := flag.String("bin", "_output/bin", "directory with etcd, and with kube-apiserver and kubectl of the fork")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := run(ctx, *base, *bin); err != nil {
		fmt.Fprintln(os.Stderr, "drain:", err)
		os.Exit(1)
	}
}

// run goes through the servers in a new state directory, which it keeps when something
// is wrong.
func run(ctx context.Context, base, bin string) error {
	dir, err := os.MkdirTemp("", "drain-*")
	if err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	plane, err := controlplane.New(ctx, dir, bin+"/etcd")
	if err != nil {
		return err
	}
	defer plane.Close()
	if err := plane.AuditAll(); err != nil {
		return err
	}
	t, err := newDrainTest(plane, dir)
	if err != nil {
		return err
	}
	ours, pristine := filepath.Join(bin, "kubectl"), filepath.Join(base, "kubectl")
	for _, old := range []controlplane.Release{
		{Name: "the pristine base", Bin: base},
		{Name: "the fork, gates off", Bin: bin},
	} {
		if err := t.compare(ctx, old, pristine, ours); err != nil {
			return fmt.Errorf("on %s: %w (state and logs are in %s)", old.Name, err, dir)
		}
		fmt.Printf("%s: %d scenarios, both kubectls do the same.\n", old.Name, len(oldScenarios()))
	}
	fork := controlplane.Release{
		Name: "the fork, gates on", Bin: bin,
		FeatureGates:  "EvictionRequestAPI=true,DeclarativeNodeMaintenance=true",
		RuntimeConfig: "coordination.k8s.io/v1alpha1=true",
	}
	if err := t.expect(ctx, fork, ours); err != nil {
		return fmt.Errorf("on %s: %w (state and logs are in %s)", fork.Name, err, dir)
	}
	fmt.Printf("%s: %d scenarios, all as it must be.\n", fork.Name, len(newScenarios()))
	return os.RemoveAll(dir)
}
