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
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// disableGate runs a held pod while the gate is disabled. The next kubelet stops it with its grace
// period, also if it finds the checkpoint: a kubelet that does not know it leaves it.
func disableGate(n *staticNode) {
	disabled := Kubelet{
		Bin:   n.cluster.Local.Bin,
		Gates: strings.ReplaceAll(localcluster.DefaultSettings.Gates, "NodeMaintenanceAwareKubelet=true", "NodeMaintenanceAwareKubelet=false"),
	}
	n.run(staticPod{name: "plain", ending: 4 * time.Second})
	n.drain("drain")
	want := []string{started}
	for _, leaves := range []bool{false, true} {
		want = append(want, asked, ended)
		n.awaitRecords("plain", want...)
		n.awaitHeld("plain")
		checkpoint, err := os.ReadFile(n.checkpointPath())
		if err != nil {
			n.Fatal(err)
		}
		n.awaitNextKubelet(func() error { return n.cluster.ReplaceKubelet(n.Context(), n.name, disabled) })
		want = append(want, started)
		n.awaitRecords("plain", want...)
		n.awaitOnly("plain")
		if exists(n.checkpointPath()) {
			n.Error("a kubelet without the gate leaves the checkpoint")
		}
		n.stays("the pod runs", func() bool { return n.areRunning("plain") })
		if leaves {
			n.expectRecords("plain", want...)
			if err := os.WriteFile(n.checkpointPath(), checkpoint, 0o600); err != nil {
				n.Fatal(err)
			}
		}
		n.awaitNextKubelet(func() error { return n.cluster.ReplaceKubelet(n.Context(), n.name, Kubelet{}) })
	}
	want = append(want, asked, ended)
	n.awaitRecords("plain", want...)
	n.complete("drain")
	n.awaitRecords("plain", append(want, started)...)
	n.awaitOnly("plain")
}

// spoilCheckpoint replaces the checkpoint of a held pod by one that the kubelet cannot read. It runs
// the pod, says why, and stops it again with its grace period. If it cannot write the checkpoint, it
// does not stop the pod.
func spoilCheckpoint(n *staticNode) {
	n.run(staticPod{name: "plain", ending: 4 * time.Second})
	n.drain("drain")
	n.awaitDrained("drain")
	want := []string{started, asked, ended}
	text := "Could not read which static pods were stopped"
	path := n.checkpointPath()
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(path, []byte("{\"version\":1,\"pods\":[{\"na"), 0o600) },
		func() error { return os.WriteFile(path, nil, 0o600) },
		func() error { return os.WriteFile(path, []byte(`{"version":2,"pods":[]}`), 0o600) },
		func() error {
			return os.WriteFile(path, []byte(`{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`), 0o600)
		},
		func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		n.awaitHeld("plain")
		before, err := n.countEvents("FailedStaticPodMaintenance", text)
		if err == nil {
			err = errors.Join(n.cluster.StopKubelet(n.Context(), n.name, unix.SIGKILL), spoil(), n.cluster.StartKubelet(n.Context(), n.name))
		}
		if err != nil {
			n.Fatal(err)
		}
		want = append(want, started)
		n.awaitf(func() bool { r := n.recordsOf("plain"); return slices.Equal(r[:min(len(r), len(want))], want) }, func() string { return "the pod to start" })
		n.awaitEvents("FailedStaticPodMaintenance", text, before)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			break
		}
		want = append(want, asked, ended)
		n.awaitRecords("plain", want...)
		n.awaitOnly()
	}
	n.awaitMessage("plain", "could not store that it must stay away")
	n.awaitEvent("FailedStaticPodMaintenance", "Could not stop static pod")
	n.awaitOnly("plain")
	n.stays("the pod runs", func() bool { return n.areRunning("plain") })
	n.expectRecords("plain", want...)
	if err := os.Remove(path); err != nil {
		n.Fatal(err)
	}
	n.complete("drain")
	n.drain("again")
	n.awaitDrained("again")
	n.expectRecords("plain", append(want, asked, ended)...)
	n.complete("again")
	n.awaitOnly("plain")
	n.awaitRecords("plain", append(want, asked, ended, started)...)
}
