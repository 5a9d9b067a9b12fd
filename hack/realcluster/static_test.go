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
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// staticPodTest is a cluster with a node whose static pods are stopped.
type staticPodTest struct {
	*testing.T
	cluster *Cluster
	client  kubernetes.Interface
}

// TestNodeStopsStaticPods drains a node with two static pods. They stop in the order of their
// priorities, each with its grace period, also if the kubelet is killed meanwhile, stay away over
// a restart of the kubelet, and start after the maintenance.
func TestNodeStopsStaticPods(t *testing.T) {
	const maintenance = "static"
	test := &staticPodTest{T: t, cluster: newTestCluster(t)}
	if output, err := test.cluster.program("up-real").CombinedOutput(); err != nil {
		t.Fatalf("up-real: %v: %s", err, output)
	}
	var err error
	if test.client, _, err = test.cluster.Local.Client(); err != nil {
		t.Fatal(err)
	}
	test.writeManifest("plain", "", 5*time.Second)
	test.writeManifest("critical", "priorityClassName: system-node-critical", 3*time.Second)
	test.awaitPods("plain", "critical")

	maintenances := test.client.CoordinationV1alpha1().NodeMaintenances()
	_, err = maintenances.Create(t.Context(), &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: maintenance},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage: coordinationv1alpha1.NodeMaintenanceStageDrain,
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{nodeName(0)}}},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	test.awaitEvent("StoppingStaticPod", "plain")
	stopping := time.Now()
	test.awaitPods("critical")
	if took := time.Since(stopping); took < 4*time.Second {
		t.Errorf("the pod was stopped after %v: it needs 5 s", took)
	}
	test.awaitEvent("StoppingStaticPod", "critical")
	test.killKubelet()
	test.awaitEvent("StaticPodHeld", "critical")
	test.awaitPods()
	await(t, "the drain to end", func() bool {
		m, err := maintenances.Get(t.Context(), maintenance, metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
	})

	test.killKubelet()
	for range 20 {
		test.expectNoPods()
		time.Sleep(pollInterval)
	}

	patch := fmt.Appendf(nil, `{"spec":{"stage":%q}}`, coordinationv1alpha1.NodeMaintenanceStageComplete)
	if _, err := maintenances.Patch(t.Context(), maintenance, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	test.awaitPods("plain", "critical")
}

// writeManifest writes the manifest of a pod that takes this long to end.
func (t *staticPodTest) writeManifest(name, priority string, duration time.Duration) {
	t.Helper()
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  %s
  terminationGracePeriodSeconds: 20
  containers:
  - name: main
    image: %q
    imagePullPolicy: Never
    command: [/bin/sh, -c, "trap 'sleep %d; exit 0' TERM; while :; do sleep 0.1; done"]
`, name, priority, WorkloadImage, int(duration.Seconds()))
	path := filepath.Join(t.cluster.Manifests(nodeName(0)), name+".yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mirrorPods returns the phases of the mirror pods, by the names of their manifests.
func (t *staticPodTest) mirrorPods() map[string]v1.PodPhase {
	t.Helper()
	pods, err := t.client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]v1.PodPhase{}
	for _, pod := range pods.Items {
		phases[pod.Name[:len(pod.Name)-len("-"+nodeName(0))]] = pod.Status.Phase
	}
	return phases
}

// awaitPods waits until these static pods run, and no others.
func (t *staticPodTest) awaitPods(names ...string) {
	t.Helper()
	await(t.T, fmt.Sprintf("the static pods %q, and no others", names), func() bool {
		phases := t.mirrorPods()
		for _, name := range names {
			if phases[name] != v1.PodRunning {
				return false
			}
		}
		return len(phases) == len(names)
	})
}

func (t *staticPodTest) expectNoPods() {
	t.Helper()
	if phases := t.mirrorPods(); len(phases) > 0 {
		t.Fatalf("static pods are back: %v", phases)
	}
}

// awaitEvent waits for an event of the node about a pod.
func (t *staticPodTest) awaitEvent(reason, pod string) {
	t.Helper()
	await(t.T, reason+" of "+pod, func() bool {
		events, err := t.client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if strings.Contains(event.Message, pod+"-"+nodeName(0)) {
				return true
			}
		}
		return false
	})
}

// killKubelet kills the kubelet, and waits until the next one has reached the API server.
func (t *staticPodTest) killKubelet() {
	t.Helper()
	starts := t.countStarts()
	if err := t.cluster.RestartKubelet(t.Context(), nodeName(0), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t.T, "the next kubelet", func() bool { return t.countStarts() > starts })
}

// countStarts returns how often a kubelet has reported its start.
func (t *staticPodTest) countStarts() int32 {
	t.Helper()
	events, err := t.client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Starting"})
	if err != nil {
		t.Fatal(err)
	}
	var count int32
	for _, event := range events.Items {
		if event.Source.Component == "kubelet" || event.ReportingController == "kubelet" {
			count += max(event.Count, 1)
		}
	}
	return count
}
