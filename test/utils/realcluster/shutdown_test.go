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

package realcluster

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster/logind"
)

// TestNodeShutdownRig shows that the logind of a node does for a kubelet what systemd's does: it
// sees the kubelet's lock, gives it the time for which it asks, and survives the end of the bus.
// Nothing of that reaches the machine.
func TestNodeShutdownRig(t *testing.T) {
	c, node := newNamedTestCluster(t, "test-rig"), nodeName(0)
	before := filesBelow(t, systemdConfigDirectory)
	c.InhibitDelayMax = time.Second
	// A critical period of 0 gives all pods the same 4 s, so that the kubelet is soon done.
	c.Kubelets = map[string]Kubelet{node: {Gates: localcluster.DefaultSettings.Gates, Config: "shutdownGracePeriod: 4s"}}
	ensure(t, c)
	awaitKubeletLock(t, c)

	// The other lock is what keeps the node up.
	other := takeLockOf(t, c)
	if err := c.ShutDown(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.ShutDown(t.Context(), node); err == nil {
		t.Error("a second shutdown has begun")
	}
	if err := c.CancelShutdown(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.CancelShutdown(t.Context(), node); err == nil {
		t.Error("a shutdown was cancelled twice")
	}
	if err := c.RestartBus(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	awaitLocksOf(t, c, "test", func(count int) bool { return count == 1 })
	awaitKubeletLock(t, c)

	if err := c.ShutDown(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	outcome, err := c.AwaitDown(t.Context(), node)
	if err != nil || outcome.Reason != logind.DelayOver || outcome.After < 4*time.Second {
		t.Errorf("the node goes down with %+v after %v: %v", outcome, outcome.After, err)
	}
	_ = other.Close()

	if err := c.PowerOn(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	awaitKubeletLock(t, c)
	if err := c.ShutDown(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if outcome, err := c.AwaitDown(t.Context(), node); err != nil || outcome.Reason != logind.LocksReleased {
		t.Errorf("the node goes down with %+v: %v", outcome, err)
	}
	if after := filesBelow(t, systemdConfigDirectory); !maps.Equal(after, before) {
		t.Errorf("%s of the machine has changed: %v, before %v", systemdConfigDirectory, after, before)
	}
}

// awaitKubeletLock waits until the kubelet has a lock.
func awaitKubeletLock(t *testing.T, c *Cluster) {
	t.Helper()
	awaitLocksOf(t, c, kubelet, func(count int) bool { return count > 0 })
}

func awaitLocksOf(t *testing.T, c *Cluster, who string, check func(count int) bool) {
	t.Helper()
	await(t, "the locks of "+who, func() bool {
		locks, err := c.InhibitLocks(t.Context(), nodeName(0))
		return err == nil && check(len(slices.DeleteFunc(locks, func(lock logind.Lock) bool { return lock.Who != who })))
	})
}

// takeLockOf takes a lock as a program of the node does.
func takeLockOf(t *testing.T, c *Cluster) *os.File {
	t.Helper()
	client, err := c.Logind(context.Background(), nodeName(0))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lock, err := client.Inhibit(t.Context(), logind.Lock{Who: "test", Why: "it tests"})
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// filesBelow returns when the files below a directory were changed, by their paths.
func filesBelow(t *testing.T, directory string) map[string]time.Time {
	t.Helper()
	files := map[string]time.Time{}
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			files[strings.TrimPrefix(path, directory)] = info.ModTime()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
