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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/hack/localcluster"
)

// replaceKubelet runs a node's static pods while the kubelet takes no part in maintenances: with the
// gate disabled, which removes the checkpoint, and without the gate, which leaves it. The next
// kubelet stops them with their grace periods.
func replaceKubelet(n *staticNode) {
	bin := n.cluster.Local.Bin
	n.run(staticPod{name: "plain", ending: 4 * time.Second})
	n.drain("drain")
	want := []string{started}
	held := func() {
		want = append(want, asked, ended)
		n.awaitRecords("plain", want...)
		n.awaitOnly()
		await(n.T, "an entry in the checkpoint", func() bool { return strings.Contains(n.checkpoint(), "held") })
	}
	held()
	others := []Kubelet{{Bin: bin, Gates: strings.ReplaceAll(localcluster.DefaultSettings.Gates, "AwareKubelet=true", "AwareKubelet=false")}}
	if base := filepath.Join(os.Getenv(outputVariable), "base", "bin"); exists(filepath.Join(base, kubelet)) {
		others = append(others, Kubelet{Bin: base})
	}
	for _, other := range others {
		n.awaitNextKubelet(func() error { return n.cluster.ReplaceKubelet(n.Context(), n.name, other) })
		want = append(want, started)
		n.awaitRecords("plain", want...)
		n.awaitOnly("plain")
		if other.Bin == bin && exists(n.checkpointPath()) {
			n.Error("a kubelet without the gate leaves the checkpoint")
		}
		n.stays("the pod runs", func() bool { return n.areRunning("plain") })
		n.awaitNextKubelet(func() error { return n.cluster.ReplaceKubelet(n.Context(), n.name, Kubelet{}) })
		held()
	}
	n.complete("drain")
	n.awaitOnly("plain")
	n.awaitRecords("plain", append(want, started)...)
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
		n.awaitEvents("StaticPodHeld", "plain", 0)
		await(n.T, "the checkpoint", func() bool { return strings.Contains(n.checkpoint(), "held") })
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
