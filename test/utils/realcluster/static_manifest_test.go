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
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// changeManifests changes manifests while their pods stop and while they are held. The changes have
// their effects after the maintenance. New pods are stopped, too.
func changeManifests(n *staticNode) {
	names := []string{"edited", "edited-early", "removed", "removed-early", "renamed"}
	for _, name := range names {
		n.write(staticPod{name: name, ending: 3 * time.Second})
	}
	n.awaitOnly(names...)
	n.drain("drain")
	for _, early := range []string{"edited-early", "removed-early"} {
		n.awaitRecord(early, asked)
		if early == "edited-early" {
			n.write(staticPod{name: early, start: "edited"})
		} else {
			n.removeManifest(early)
		}
	}
	n.awaitRecord("renamed", ended)
	n.write(staticPod{name: "edited", start: "edited"})
	n.removeManifest("removed")
	n.removeManifest("renamed")
	n.write(staticPod{name: "new-name"})
	n.write(staticPod{name: "added", ending: 3 * time.Second})
	n.awaitHeld(append(names, "new-name", "added")...)
	n.awaitOnly()
	n.awaitDrained("drain")
	n.stays("without pods", func() bool { return n.areRunning() })
	// A container that starts may be asked to end before it listens to that.
	added := map[string][]string{"new-name": n.recordsOf("new-name"), "added": n.recordsOf("added")}
	n.complete("drain")
	n.awaitOnly("edited", "edited-early", "new-name", "added")
	for _, pod := range []string{"edited", "edited-early"} {
		n.awaitRecords(pod, started, asked, ended, "edited")
	}
	for _, pod := range []string{"removed", "removed-early", "renamed"} {
		n.expectRecords(pod, started, asked, ended)
	}
	for pod, before := range added {
		n.awaitRecords(pod, append(before, started)...)
	}
	for _, pod := range append(names, "new-name", "added") {
		if n.stored(pod) != "" {
			n.Errorf("%s is in the checkpoint", pod)
		}
	}
}

// manifestURL is where the kubelet of a node asks for static pods, in the network of the node.
const manifestURL = "http://" + manifestAddress

const manifestAddress = "127.0.0.1:10999"

// stopPodFromURL stops a pod whose manifest has a URL, which does not answer meanwhile.
func stopPodFromURL(n *staticNode) {
	pod := n.pod(staticPod{name: "from-url", ending: 3 * time.Second})
	server := servePod(n, pod)
	n.run(staticPod{name: "from-file"})
	n.awaitOnly("from-file", "from-url")
	n.drain("drain")
	n.awaitRecord("from-url", asked)
	if err := server.Close(); err != nil {
		n.Fatal(err)
	}
	n.awaitDrained("drain")
	n.expectRecords("from-url", started, asked, ended)
	n.stays("without pods", func() bool { return n.areRunning() })
	n.complete("drain")
	n.awaitOnly("from-file", "from-url")
	n.awaitRecords("from-url", started, asked, ended, started)

	n.drain("again")
	n.awaitDrained("again")
	n.awaitHeld("from-url")
	n.restartKubelet(unix.SIGKILL)
	n.complete("again")
	n.awaitOnly("from-file")
	n.stays("the other pod is unknown", func() bool { return n.areRunning("from-file") })
	servePod(n, pod)
	n.awaitOnly("from-file", "from-url")
	n.expectGrace("from-file", "from-url")
}

// servePod serves the manifest of a pod in the network of the node.
func servePod(n *staticNode, pod *v1.Pod) *http.Server {
	n.Helper()
	manifest, err := json.Marshal(pod)
	if err != nil {
		n.Fatal(err)
	}
	pid, err := n.cluster.Process(n.name)
	if err != nil {
		n.Fatal(err)
	}
	var listener net.Listener
	listened := make(chan error)
	go func() {
		listened <- inNetwork(pid, func() (err error) {
			listener, err = (&net.ListenConfig{}).Listen(n.Context(), "tcp", manifestAddress)
			return err
		})
	}()
	if err := <-listened; err != nil {
		n.Fatal(err)
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(manifest) }),
		ReadHeaderTimeout: time.Minute,
	}
	n.Cleanup(func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			n.Error(err)
		}
	}()
	return server
}
