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
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// staticNode is a node with static pods, and a test.
type staticNode struct {
	*testing.T
	cluster *Cluster
	client  kubernetes.Interface
	name    string
	// records is a directory that the pods see. Each writes a file when it starts, when it is asked
	// to end, and when it has ended without being killed.
	records string
}

// The records of a pod.
const (
	started = "started"
	asked   = "asked"
	ended   = "ended"
)

// staticPod is a static pod.
type staticPod struct {
	// name is that of the manifest. The pod's has that of the node as its suffix.
	name, priorityClass string
	// ending is how long the pod takes to end, grace the time that it has for that.
	ending, grace time.Duration
	// start is what the pod records at its start, if not started.
	start string
}

func newStaticNode(t *testing.T, c *Cluster, name string) *staticNode {
	t.Helper()
	config, err := c.Local.Config()
	if err != nil {
		t.Fatal(err)
	}
	n := &staticNode{T: t, cluster: c, name: name, records: filepath.Join(c.Local.Dir(), "records", name, filepath.Base(t.Name()))}
	if n.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(n.records, 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// pod returns what is in the manifest of a static pod. The shell in its container ends at once when it
// is asked to while it waits for a child, and later while it runs one.
func (n *staticNode) pod(pod staticPod) *v1.Pod {
	grace := cmp.Or(pod.grace, pod.ending+20*time.Second)
	script := fmt.Sprintf(`record() { echo $1 >> /records/%s; }
trap 'record %s; sleep %d; record %s; exit 0' TERM
record %s
sleep 1000000 &
wait`, pod.name, asked, int(pod.ending.Seconds()), ended, cmp.Or(pod.start, started))
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.name, Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			PriorityClassName: pod.priorityClass, TerminationGracePeriodSeconds: ptr.To(int64(grace.Seconds())),
			Containers: []v1.Container{{
				Name: "main", Image: WorkloadImage, ImagePullPolicy: v1.PullNever, Command: []string{"/bin/sh", "-c", script},
				VolumeMounts: []v1.VolumeMount{{Name: "records", MountPath: "/records"}},
			}},
			Volumes: []v1.Volume{{Name: "records", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: n.records}}}},
		},
	}
}

// run starts static pods, or changes them, and waits until they run.
func (n *staticNode) run(pods ...staticPod) {
	n.Helper()
	for _, pod := range pods {
		n.write(pod)
	}
	for _, pod := range pods {
		n.awaitRunning(pod.name)
	}
}

// write writes the manifest of a static pod.
func (n *staticNode) write(pod staticPod) {
	n.Helper()
	n.writeManifest(n.pod(pod))
}

// writeManifest writes a manifest in one step.
func (n *staticNode) writeManifest(pod *v1.Pod) {
	n.Helper()
	data, err := json.Marshal(pod)
	if err != nil {
		n.Fatal(err)
	}
	part := filepath.Join(n.records, pod.Name+".part")
	if err := errors.Join(os.WriteFile(part, data, 0o600), os.Rename(part, n.manifestPath(pod.Name))); err != nil {
		n.Fatal(err)
	}
}

func (n *staticNode) manifestPath(name string) string {
	return filepath.Join(n.cluster.Manifests(n.name), name+".yaml")
}

// removeManifest removes the manifest of a static pod.
func (n *staticNode) removeManifest(name string) {
	n.Helper()
	if err := os.Remove(n.manifestPath(name)); err != nil {
		n.Fatal(err)
	}
}

// recordsOf returns the records of a pod.
func (n *staticNode) recordsOf(pod string) []string {
	n.Helper()
	data, err := os.ReadFile(filepath.Join(n.records, pod))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.Fatal(err)
	}
	return strings.Fields(string(data))
}

// awaitRecords waits until a pod has these records.
func (n *staticNode) awaitRecords(pod string, want ...string) {
	n.Helper()
	var got []string
	n.awaitf(func() bool {
		got = n.recordsOf(pod)
		return slices.Equal(got, want)
	}, func() string { return fmt.Sprintf("the records %q of %s: they are %q", want, pod, got) })
}

// awaitRecord waits until the last record of a pod is this one.
func (n *staticNode) awaitRecord(pod, want string) {
	n.Helper()
	await(n.T, want+" of "+pod, func() bool {
		got := n.recordsOf(pod)
		return len(got) > 0 && got[len(got)-1] == want
	})
}

// expectRecords fails if a pod has other records.
func (n *staticNode) expectRecords(pod string, want ...string) {
	n.Helper()
	if got := n.recordsOf(pod); !slices.Equal(got, want) {
		n.Fatalf("the records of %s are %q, want %q", pod, got, want)
	}
}

// expectGrace fails if a pod was killed before it had ended.
func (n *staticNode) expectGrace(pods ...string) {
	n.Helper()
	for _, pod := range pods {
		records := n.recordsOf(pod)
		for i, record := range records[:max(0, len(records)-1)] {
			next, isStart := records[i+1], record != asked && record != ended
			if record == asked && next != ended || isStart && next != asked {
				n.Errorf("%s was killed: its records are %q", pod, records)
			}
		}
	}
}

// awaitf is await with a description that is made at the end.
func (n *staticNode) awaitf(check func() bool, what func() string) {
	n.Helper()
	for start := time.Now(); !check(); time.Sleep(pollInterval) {
		if time.Since(start) > settleTimeout {
			n.Fatalf("waited in vain for %s", what())
		}
	}
}

// stays fails if a check does not succeed all the time until a kubelet would have started a pod.
func (n *staticNode) stays(what string, check func() bool) {
	n.Helper()
	n.staysUntil(time.Now().Add(3*time.Second), what, check)
}

func (n *staticNode) staysUntil(end time.Time, what string, check func() bool) {
	n.Helper()
	for time.Now().Before(end) {
		if !check() {
			n.Fatalf("not any more: %s", what)
		}
		time.Sleep(pollInterval)
	}
}

// mirrorPods returns the mirror pods of the node, by the names of their manifests.
func (n *staticNode) mirrorPods() map[string]v1.Pod {
	n.Helper()
	pods, err := n.client.CoreV1().Pods(metav1.NamespaceDefault).List(n.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err != nil {
		n.Fatal(err)
	}
	mirrors := map[string]v1.Pod{}
	for _, pod := range pods.Items {
		if _, isMirror := pod.Annotations[v1.MirrorPodAnnotationKey]; !isMirror {
			continue
		}
		mirrors[strings.TrimSuffix(pod.Name, "-"+n.name)] = pod
	}
	return mirrors
}

// areRunning reports whether these static pods run, and no others.
func (n *staticNode) areRunning(names ...string) bool {
	n.Helper()
	mirrors := n.mirrorPods()
	for _, name := range names {
		if mirrors[name].Status.Phase != v1.PodRunning {
			return false
		}
	}
	return len(mirrors) == len(names)
}

// awaitOnly waits until these static pods run, and no others.
func (n *staticNode) awaitOnly(names ...string) {
	n.Helper()
	await(n.T, fmt.Sprintf("the static pods %q of %s, and no others", names, n.name), func() bool { return n.areRunning(names...) })
}

func (n *staticNode) awaitRunning(name string) {
	n.Helper()
	await(n.T, name+" to run", func() bool { return n.mirrorPods()[name].Status.Phase == v1.PodRunning })
}
