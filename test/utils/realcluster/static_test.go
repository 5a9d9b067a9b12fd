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
	"testing"
	"time"

	"golang.org/x/sys/unix"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// staticPodCase is what happens to the static pods of a node with a real kubelet.
type staticPodCase struct {
	name string
	run  func(*staticNode)
}

// staticPodCases are the cases of each node, one after the other. Nodes are few, because kubelets and
// containerd use up the instances of inotify that a user may have.
var staticPodCases = [][]staticPodCase{
	{{"pod from a URL", stopPodFromURL}}, // This kubelet waits for the URL.
	{
		{"order", stopInOrder},
		{"kubelet terminated", func(n *staticNode) { restartKubelet(n, unix.SIGTERM) }},
		{"no end", waitForPodWithoutEnd}, // Its pod stays.
	},
	{
		{"kubelet killed", func(n *staticNode) { restartKubelet(n, unix.SIGKILL) }},
		{"gate disabled", disableGate},
	},
	{{"called off", callOff}, {"manifests changed", changeManifests}},
	{{"two maintenances", overlapMaintenances}, {"bad checkpoint", spoilCheckpoint}},
}

// TestNodeStaticPods drains nodes with static pods, all at the same time. -parallel must allow it.
func TestNodeStaticPods(t *testing.T) {
	c := newNamedTestCluster(t, "test-static")
	c.Local.Nodes = len(staticPodCases)
	c.Kubelets = map[string]Kubelet{
		nodeName(0): {Bin: c.Local.Bin, Gates: localcluster.DefaultSettings.Gates, ManifestURL: manifestURL},
	}
	ensure(t, c)
	for index, cases := range staticPodCases {
		t.Run(nodeName(index), func(t *testing.T) {
			t.Parallel()
			for i, test := range cases {
				t.Run(test.name, func(t *testing.T) {
					n := newStaticNode(t, c, nodeName(index))
					test.run(n)
					if i < len(cases)-1 {
						n.clear()
					}
				})
			}
		})
	}
}

// stopInOrder stops pods in the order of their priorities, each with its grace period, and starts them
// after the maintenance. The kubelet orders those that the drain plan takes at the same time.
func stopInOrder(n *staticNode) {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "higher"}, Value: 1000}
	if _, err := n.client.SchedulingV1().PriorityClasses().Create(n.Context(), class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		n.Fatal(err)
	}
	n.run(
		staticPod{name: "plain", ending: 5 * time.Second},
		staticPod{name: "higher", ending: 2 * time.Second, priorityClass: class.Name},
		staticPod{name: "critical", ending: 3 * time.Second, priorityClass: "system-node-critical"},
	)
	n.drain("drain")
	order := []string{"plain", "higher", "critical"}
	for i, pod := range order {
		n.awaitRecord(pod, asked)
		for _, before := range order[:i] {
			n.expectRecords(before, started, asked, ended)
		}
		for _, after := range order[i+1:] {
			n.expectRecords(after, started)
		}
	}
	n.awaitRecord("critical", ended)
	n.awaitDrained("drain")
	n.stays("without pods", func() bool { return n.areRunning() })
	n.complete("drain")
	n.awaitOnly(order...)
	for _, pod := range order {
		n.awaitRecords(pod, started, asked, ended, started)
	}
}

// restartKubelet ends the kubelet before, during and after the stop of pods. None is killed.
func restartKubelet(n *staticNode, signal unix.Signal) {
	plain := staticPod{name: "plain", ending: 6 * time.Second}
	critical := staticPod{name: "critical", ending: 6 * time.Second, priorityClass: "system-node-critical"}
	n.run(plain, critical)
	if err := n.cluster.StopKubelet(n.Context(), n.name, signal); err != nil {
		n.Fatal(err)
	}
	n.drain("drain")
	n.stays("no pod is stopped without a kubelet", func() bool { return n.areRunning("plain", "critical") })
	n.awaitNextKubelet(func() error { return n.cluster.StartKubelet(n.Context(), n.name) })
	n.awaitRecord("plain", asked)
	n.restartKubelet(signal)
	n.awaitRecord("critical", asked)
	n.restartKubelet(signal)
	n.awaitDrained("drain")
	n.awaitHeld("critical")
	n.restartKubelet(signal)
	n.stays("without pods", func() bool { return n.areRunning() })
	for _, pod := range []string{"plain", "critical"} {
		if records := n.recordsOf(pod); records[len(records)-1] != ended {
			n.Errorf("%s runs, or was killed: its records are %q", pod, records)
		}
	}
	n.complete("drain")
	n.awaitOnly("plain", "critical")
	n.expectGrace("plain", "critical")
}
