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
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/steps"
)

func TestQuietResults(t *testing.T) {
	q := quiet{who: "the controller"}
	results := q.results(30*time.Second, 0.4, evictionEvents.of(by(evictionController)))
	want := map[string]float64{"writes by the controller": 8, restCPU: 0.8}
	if diff := cmp.Diff(want, values(results), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for _, r := range results {
		if r.Name == evictionController && r.Value != 10 {
			t.Errorf("requests of the controller per minute = %v, want 10", r.Value)
		}
	}
}

func TestReleaseResults(t *testing.T) {
	var all requests
	at := func(seconds int, user, resource, subresource string, code int32) {
		verb := map[bool]string{true: "create", false: "update"}[subresource == "eviction"]
		all = append(all, event(user, manager, verb, resource, subresource, code, time.Duration(seconds)*time.Second))
	}
	at(1, evictionUser, "pods", "eviction", 429)
	at(2, "system:apiserver", "poddisruptionbudgets", "status", 200)
	at(3, controllerUsers+disruptionAccount, "poddisruptionbudgets", "status", 409)
	at(4, controllerUsers+disruptionAccount, "poddisruptionbudgets", "status", 200)
	at(5, evictionUser, "pods", "eviction", 201)
	at(6, evictionUser, "evictionrequests", "status", 409)
	at(7, maintenanceUser, "evictionrequests", "status", 409)
	at(8, evictionUser, "pods", "eviction", 201)
	want := map[string]float64{firstAfter: 1, evictedAtOnce: 4, ownConflicts: 1}
	if diff := cmp.Diff(want, values(releaseResults(all, 8, 2*time.Second)), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if got := releaseResults(all[:4], 8, time.Second)[0].Value; !math.IsNaN(got) {
		t.Errorf("%s = %v although no pod was evicted", firstAfter, got)
	}
}

func TestSleepEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &cluster{opts: options{idleTime: time.Hour}}
	if err := steps.Attempt(func() { c.sleepIdle(ctx) }); !errors.Is(err, context.Canceled) {
		t.Errorf("sleepIdle = %v, want %v", err, context.Canceled)
	}
}

// TestManagerBehindLink: the output directory may be a link, or below one.
func TestManagerBehindLink(t *testing.T) {
	output, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	c := &cluster{opts: options{output: link}, local: &localcluster.Cluster{Name: clusterName, Output: link}}
	shell, err := exec.LookPath("sh")
	if err := errors.Join(err, os.Symlink(output, link), c.local.Down(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := steps.Attempt(func() { c.managerCPUSeconds() }); err == nil {
		t.Error("a controller manager that does not run has used CPU time")
	}
	dir, err := filepath.EvalSymlinks(output)
	program := filepath.Join(dir, "clusters", clusterName, "bin", controlplane.ControllerManager)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(program), 0o755), os.Symlink(shell, program)); err != nil {
		t.Fatal(err)
	}
	manager := exec.Command(program, "-c", "while :; do :; done")
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = manager.Process.Kill()
		_ = manager.Wait()
	})
	// Start returns before the kernel shows the arguments of the new program in /proc.
	var used float64
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = steps.Attempt(func() { used = c.managerCPUSeconds() })
		return used > 0, nil
	}); err != nil || used > 10 {
		t.Errorf("the controller manager has used %v s: %v", used, last)
	}
	if err := steps.Attempt(func() { c.serverMemory() }); err == nil {
		t.Error("an API server that does not run has memory")
	}
}
