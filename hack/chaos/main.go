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

// Chaos kills kube-controller-manager and kube-apiserver with SIGKILL again and again
// while 200 pods are evicted through EvictionRequests, some of which a budget protects.
// At the end every pod must have been evicted exactly once, as the audit logs tell,
// the protected ones only after their budget is deleted, and nothing may be stuck.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/hack/controlplane"
)

const (
	// podsPerKind is how many pods there are of each kind, of which there are five.
	podsPerKind = 40

	// killsPerComponent is how often each component is killed.
	killsPerComponent = 12

	// maxLifetime is how long a component works before it is killed. Evictions last
	// through all of the kills, because each is followed by some requests.
	maxLifetime = 1500 * time.Millisecond

	// timeout bounds the whole test. It takes about a minute and a half.
	timeout = 5 * time.Minute
)

func main() {
	bin := flag.String("bin", "_output/bin", "directory with etcd, kube-apiserver and kube-controller-manager")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "makes the order and the moments of the kills the same again, as far as the machine allows")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fmt.Printf("seed %d\n", *seed)
	if err := run(ctx, *bin, rand.New(rand.NewPCG(*seed, 0))); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// run works in a new state directory, which it keeps when something is wrong.
func run(ctx context.Context, bin string, random *rand.Rand) error {
	dir, err := os.MkdirTemp("", "chaos-*")
	if err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	plane, err := controlplane.New(ctx, dir, bin+"/etcd")
	if err != nil {
		return err
	}
	defer plane.Close()
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	t := &chaosTest{
		Namespace: &controlplane.Namespace{Client: client, Name: "chaos"},
		plane:     plane,
		release: controlplane.Release{
			Bin:           bin,
			FeatureGates:  "EvictionRequestAPI=true",
			RuntimeConfig: "coordination.k8s.io/v1alpha1=true",
		},
		random:  random,
		begin:   time.Now(),
		kubelet: newKubelet(),
	}
	if err := t.run(ctx); err != nil {
		return fmt.Errorf("%w (state and logs are in %s)", err, dir)
	}
	return os.RemoveAll(dir)
}

// chaosTest is one control plane with the pods that are evicted on it.
type chaosTest struct {
	*controlplane.Namespace
	plane   *controlplane.ControlPlane
	release controlplane.Release
	random  *rand.Rand
	begin   time.Time

	pods    []*v1.Pod // In the order in which they are evicted.
	kubelet *kubelet
}

func (t *chaosTest) run(ctx context.Context) error {
	if err := t.plane.StartAPIServer(ctx, t.release); err != nil {
		return err
	}
	if err := t.plane.StartControllerManager(ctx, t.release); err != nil {
		return err
	}
	if err := t.createPods(ctx); err != nil {
		return err
	}
	// The others go on with their work while components come and go.
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	others.Go(func() { t.terminatePods(ctx) })
	others.Go(func() { t.intercept(ctx) })

	if err := t.killWhileEvicting(ctx); err != nil {
		return err
	}
	if err := t.expectUnprotectedEvicted(ctx); err != nil {
		return err
	}
	return t.expectProtectedEvicted(ctx)
}

// say prints what happens, and when.
func (t *chaosTest) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(t.begin).Seconds(), fmt.Sprintf(format, args...))
}
