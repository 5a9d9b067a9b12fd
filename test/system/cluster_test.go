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

package system

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// outputVariable names the directory with the programs of the fork in bin, those of the
	// pristine base in base/bin, and those of the fork on the base before in predecessor/bin.
	outputVariable = "SYSTEM_TEST_OUTPUT"

	// pollInterval is the pause between two checks of a condition, and pollTimeout is far longer
	// than any of them takes. A refusal while an API server starts delays the next attempt to
	// evict a pod by a minute.
	pollInterval = 100 * time.Millisecond
	pollTimeout  = 2 * time.Minute

	// The flags of the fork.
	gatesOfRequests  = "EvictionRequestAPI=true"
	gatesOfDrains    = gatesOfRequests + ",DeclarativeNodeMaintenance=true"
	gatesOfWorkloads = gatesOfDrains + ",DeploymentPodSurge=true,NodeMaintenanceAwareDaemonSet=true"
	runtimeConfig    = "coordination.k8s.io/v1alpha1=true"
)

// programs contains the directories of the programs.
type programs struct {
	output, fork, base, predecessor string
}

// findPrograms skips the test if it was not started by make.
func findPrograms(tCtx ktesting.TContext) programs {
	tCtx.Helper()
	output := os.Getenv(outputVariable)
	if output == "" {
		tCtx.Skipf("%s is not set: run them with make, see `make help`", outputVariable)
	}
	return programs{
		output: output, fork: filepath.Join(output, "bin"),
		base: filepath.Join(output, "base", "bin"), predecessor: filepath.Join(output, "predecessor", "bin"),
	}
}

// TestMain converts SIGTERM to SIGINT, which ktesting handles: a canceled job cleans up, too.
func TestMain(m *testing.M) {
	terminateWithParent()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		for range terminated {
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT) // This process exists.
		}
	}()
	os.Exit(m.Run())
}

// terminateWithParent makes the kernel send SIGTERM to this process when its parent ends: a go
// command that is terminated does not stop the test.
func terminateWithParent() {
	parent := os.Getppid()
	go func() {
		// The setting is lost when the thread ends.
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
		if os.Getppid() != parent { // It has already ended.
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}
		select {}
	}()
}

// run runs a subtest, unless the test was interrupted.
func run(tCtx ktesting.TContext, name string, subtest func(tCtx ktesting.TContext)) {
	tCtx.Helper()
	tCtx.ExpectNoError(context.Cause(tCtx), "not running %q", name)
	tCtx.Run(name, subtest)
}

// newControlPlane starts an etcd, and returns a context with a client of the API servers that the
// test starts on it. The state is kept if the test fails.
func newControlPlane(tCtx ktesting.TContext, p programs, namespace string) (ktesting.TContext, *controlplane.ControlPlane) {
	tCtx.Helper()
	return newControlPlaneWith(tCtx, p, namespace, controlplane.Options{})
}

// newControlPlaneWith is newControlPlane with options.
func newControlPlaneWith(tCtx ktesting.TContext, p programs, namespace string, options controlplane.Options) (ktesting.TContext, *controlplane.ControlPlane) {
	tCtx.Helper()
	dir, err := os.MkdirTemp("", namespace+"-*")
	tCtx.ExpectNoError(err, "creating the state directory")
	tCtx.Cleanup(func() {
		if tCtx.Failed() {
			tCtx.Logf("State and logs are in %s.", dir)
			return
		}
		tCtx.AssertNoError(os.RemoveAll(dir), "removing the state directory")
	})
	plane, err := controlplane.NewWith(tCtx, dir, filepath.Join(p.fork, "etcd"), options)
	tCtx.ExpectNoError(err, "starting etcd")
	tCtx.Cleanup(plane.Close)
	return tCtx.WithRESTConfig(plane.Config()).WithNamespace(namespace).WithValue(endedKey{}, plane.Ended), plane
}

// start starts both components, the API server first.
func start(tCtx ktesting.TContext, plane *controlplane.ControlPlane, release controlplane.Release) {
	tCtx.Helper()
	tCtx.ExpectNoError(plane.StartAPIServer(tCtx, release), "starting %s", release.Name)
	tCtx.ExpectNoError(plane.StartControllerManager(tCtx, release), "starting %s", release.Name)
}

// startCluster starts a new local cluster, which is stopped after the test. It returns a context
// with a client, and the version of the API server.
func startCluster(tCtx ktesting.TContext, c *localcluster.Cluster) (ktesting.TContext, string) {
	tCtx.Helper()
	tCtx.ExpectNoError(c.Up(tCtx))
	tCtx.CleanupCtx(func(tCtx ktesting.TContext) {
		if !tCtx.Failed() {
			tCtx.AssertNoError(c.Down(tCtx), "removing the cluster")
			return
		}
		tCtx.AssertNoError(c.Stop(tCtx), "stopping the cluster")
		tCtx.Logf("Logs are in %s.", c.Logs())
	})
	return connect(tCtx, c)
}

// connect returns a context with a client of a local cluster, and the version of the API server.
func connect(tCtx ktesting.TContext, c *localcluster.Cluster) (ktesting.TContext, string) {
	tCtx.Helper()
	client, version, err := c.Client()
	tCtx.ExpectNoError(err)
	return tCtx.WithClients(nil, nil, client, nil, nil).WithValue(endedKey{}, c.Ended), version
}

// await polls until a check passes. The check fails through its own context.
func await(tCtx ktesting.TContext, what string, check func(tCtx ktesting.TContext)) {
	tCtx.Helper()
	awaitWithin(tCtx, pollTimeout, what, check)
}

// awaitWithin is await with a timeout that is part of the test.
func awaitWithin(tCtx ktesting.TContext, timeout time.Duration, what string, check func(tCtx ktesting.TContext)) {
	tCtx.Helper()
	tCtx = tCtx.WithStep("waiting for " + what)
	tCtx.Eventually(whileRunning(check)).WithTimeout(timeout).WithPolling(pollInterval).Should(gomega.Succeed())
}

// endedKey is the context key of a func() error that names a component that has ended unexpectedly.
type endedKey struct{}

// whileRunning wraps a check for Eventually: polling stops when a component has ended, because the
// check can no longer pass.
func whileRunning(check func(tCtx ktesting.TContext)) func(tCtx ktesting.TContext) {
	return func(tCtx ktesting.TContext) {
		if ended, found := tCtx.Value(endedKey{}).(func() error); found {
			if err := ended(); err != nil {
				gomega.StopTrying("given up").Wrap(err).Now()
			}
		}
		check(tCtx)
	}
}

// awaitNotFound polls until an object does not exist.
func awaitNotFound[T any](tCtx ktesting.TContext, what string, name string, get getter[T]) {
	tCtx.Helper()
	await(tCtx, what+" to be gone", func(tCtx ktesting.TContext) {
		_, err := get.Get(tCtx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			tCtx.Fatalf("reading %s: %v, must be not found", name, err)
		}
	})
}
