/*
Copyright The Kubernetes Authors.

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
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// kubeletGates are those that a kubelet needs to stop static pods.
const kubeletGates = "DeclarativeNodeMaintenance=true,EvictionRequestAPI=true,NodeMaintenanceAwareKubelet=true"

// upgradedNode is a node whose kubelet is replaced by one of another release of the fork.
type upgradedNode struct {
	*staticNode
	// release is the kubelet with which each test begins, and other the one that replaces it.
	release, other Kubelet
}

// TestForkNodeStaticPods drains nodes under our control plane while one of them has the kubelet of
// the predecessor, the fork on the base before, and the other one ours. Then each kubelet is
// replaced by that of the other release, and back.
func TestForkNodeStaticPods(t *testing.T) {
	c := newNamedTestCluster(t, "test-fork")
	predecessor := Kubelet{Bin: filepath.Join(os.Getenv(outputVariable), "predecessor", "bin"), Gates: kubeletGates}
	nodes := [][2]Kubelet{{predecessor, {}}, {{}, predecessor}}
	c.Local.Nodes = len(nodes)
	c.Kubelets = map[string]Kubelet{nodeName(0): predecessor}
	ensure(t, c)
	for index, releases := range nodes {
		t.Run(nodeName(index), func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				name string
				run  func(*upgradedNode)
			}{
				{"order", func(n *upgradedNode) { stopInOrder(n.staticNode) }},
				{"called off", func(n *upgradedNode) { callOff(n.staticNode) }},
				{"held", replaceWhileHeld},
				{"stopping", replaceDuringStop},
				{"running", replaceWhileRunning},
			} {
				t.Run(test.name, func(t *testing.T) {
					n := &upgradedNode{newStaticNode(t, c, nodeName(index)), releases[0], releases[1]}
					t.Logf("begins with the kubelet %s", n.kubeletVersion())
					test.run(n)
					n.clear()
				})
			}
		})
	}
}

// replaceWhileHeld replaces the kubelet while static pods are held, and in the next maintenance by
// the first one again. Each reads what the other has stored: the pods stay away, and start at the
// end of the maintenance, one with the manifest that it has then.
func replaceWhileHeld(n *upgradedNode) {
	edited := staticPod{name: "edited", ending: 3 * time.Second}
	n.run(edited, staticPod{name: "critical", ending: 3 * time.Second, priorityClass: "system-node-critical"})
	records := map[string][]string{"edited": {started}, "critical": {started}}
	add := func(pod string, more ...string) []string {
		records[pod] = append(records[pod], more...)
		return records[pod]
	}
	for _, upgrade := range []struct {
		maintenance string
		to          Kubelet
	}{{"first", n.other}, {"second", n.release}} {
		n.drain(upgrade.maintenance)
		n.awaitDrained(upgrade.maintenance)
		n.awaitHeld("edited", "critical")
		n.replace(upgrade.to)
		edited.start = upgrade.maintenance
		n.write(edited)
		n.stays("without pods", func() bool { return n.areRunning() && n.isDrained(upgrade.maintenance) })
		for pod := range records {
			n.expectRecords(pod, add(pod, asked, ended)...)
			n.awaitHeld(pod)
		}

		n.complete(upgrade.maintenance)
		n.awaitOnly("edited", "critical")
		n.awaitRecords("critical", add("critical", started)...)
		n.awaitRecords("edited", add("edited", edited.start)...)
		if exists(n.checkpointPath()) && (n.stored("edited") != "" || n.stored("critical") != "") {
			n.Error("pods that run are in the checkpoint")
		}
	}
}

// replaceDuringStop replaces the kubelet while one static pod is held and another one stops. The
// next kubelet does not know about the latter, as after any restart: it runs the pod, and stops it
// again.
func replaceDuringStop(n *upgradedNode) {
	n.run(staticPod{name: "plain", ending: 3 * time.Second}, staticPod{name: "critical", ending: 8 * time.Second, priorityClass: "system-node-critical"})
	n.drain("drain")
	n.awaitRecord("critical", asked)
	n.awaitHeld("plain")
	n.replace(n.other)
	n.awaitHeld("plain", "critical")
	n.awaitDrained("drain")
	n.stays("without pods", func() bool { return n.areRunning() && n.isDrained("drain") })
	n.expectRecords("plain", started, asked, ended)
	stopped := n.recordsOf("critical")
	n.Logf("critical: %q", stopped)
	n.complete("drain")
	n.awaitOnly("plain", "critical")
	n.awaitRecords("plain", started, asked, ended, started)
	n.awaitRecords("critical", append(slices.Clone(stopped), started)...)
	n.clear()
	n.replace(n.release)
}

// replaceWhileRunning replaces the kubelet while a static pod runs. The UID of such a pod is a hash
// of all fields of a pod, and the releases differ in these. So it is another pod for the next
// kubelet, which starts it, and ends the one that it does not know without its grace period.
func replaceWhileRunning(n *upgradedNode) {
	n.run(staticPod{name: "plain", ending: 10 * time.Second})
	want := []string{started}
	for _, release := range []Kubelet{n.other, n.release} {
		before := n.hashOf("plain")
		if !n.hasCgroup(before) {
			n.Fatalf("pod %s has no cgroup", before)
		}
		n.replace(release)
		want = append(want, started)
		await(n.T, "the mirror pod of the next pod", func() bool { return n.areRunning("plain") && n.hashOf("plain") != before })
		await(n.T, "the end of the pod before", func() bool { return !n.hasCgroup(before) })
		// The shell may be killed before or after it has written that it was asked to end.
		records := slices.DeleteFunc(n.recordsOf("plain"), func(record string) bool { return record == asked })
		if !slices.Equal(records, want) {
			n.Fatalf("the records are %q, want %q", records, want)
		}
	}
}

// hasCgroup reports whether there are cgroups of a pod that has no resources. A kubelet removes
// them when its processes have ended.
func (n *upgradedNode) hasCgroup(uid string) bool {
	n.Helper()
	pod := filepath.Join(nodeCgroup(n.cluster.Local.Dir(), n.name), "kubepods", "besteffort", "pod"+uid)
	version1, err := filepath.Glob(filepath.Join(cgroupMount, "*", pod))
	if err != nil {
		n.Fatal(err)
	}
	return len(version1) > 0 || exists(filepath.Join(cgroupMount, pod))
}

// replace replaces the kubelet by one of another release, and waits until the node says so.
func (n *upgradedNode) replace(release Kubelet) {
	n.Helper()
	before := n.kubeletVersion()
	n.awaitNextKubelet(func() error { return n.cluster.ReplaceKubelet(n.Context(), n.name, release) })
	await(n.T, "the version of the next kubelet", func() bool { return n.kubeletVersion() != before })
	n.Logf("the kubelet is %s, was %s", n.kubeletVersion(), before)
}

func (n *upgradedNode) kubeletVersion() string {
	n.Helper()
	node, err := n.client.CoreV1().Nodes().Get(n.Context(), n.name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return node.Status.NodeInfo.KubeletVersion
}

// hashOf returns the UID that the kubelet gives a static pod.
func (n *upgradedNode) hashOf(pod string) string {
	n.Helper()
	return n.mirrorPods()[pod].Annotations[kubetypes.ConfigHashAnnotationKey]
}
