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

package statefulset

import (
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// anywhere is the onlyOn of pods that any node may run.
func anywhere(*v1.Pod) []string { return nil }

func on(node string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.NodeName = node }
}

// pending makes it the replacement of a pod that has left, of which kube-scheduler says this.
func pending(why string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		slow(pod)
		next(pod)
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: "0/3 nodes are available: " + why + ". preemption: not helpful."})
	}
}

func selecting(label, value string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{label: value} }
}

func claiming(pod *v1.Pod) {
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-2"}}}}
}

// nodesNamed requires a node of this name.
func nodesNamed(names ...string) *v1.NodeSelector {
	selector := &v1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, v1.NodeSelectorTerm{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
		})
	}
	return selector
}

func requiring(selector *v1.NodeSelector) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
}

// volumeAt returns the claim of web-2 and its volume, which is on the nodes with this label.
func volumeAt(label, value string) []runtime.Object {
	return []runtime.Object{
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data-web-2"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pv"}},
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpIn, Values: []string{value}}}}},
		}}}},
	}
}

// TestReplacementOfDrainedNode has a set whose pod web-2 has left node a, which is cordoned, and whose pods web-1 and web-0
// are to leave. A pod of its node does not wait if the replacement can only come to its node, when the drain is over.
func TestReplacementOfDrainedNode(t *testing.T) {
	const cordoned = "1 node(s) were unschedulable, "
	const selector, volume = cordoned + "2 node(s) didn't match Pod's node affinity/selector", cordoned + "2 node(s) didn't match PersistentVolume's node affinity"
	const plain, ofNodeA = "Waiting for pod web-2 to become available: ", "Waiting for pod web-0 to be evicted, pod web-2 to become available on node a, which is cordoned: "
	tests := map[string]struct {
		replacement []func(*v1.Pod)
		objects     []runtime.Object
		// at is the node of web-1, and schedulable is true if node a is.
		at          string
		schedulable bool
		// waits is what web-1 waits for; empty if it leaves.
		waits string
	}{
		"a hostname":                       {replacement: []func(*v1.Pod){pending(selector), selecting(v1.LabelHostname, "host-a")}},
		"the name of a node":               {replacement: []func(*v1.Pod){pending(cordoned + "2 node(s) didn't satisfy plugin(s) [NodeAffinity]"), requiring(nodesNamed("a"))}},
		"a volume of the node":             {replacement: []func(*v1.Pod){pending(volume), claiming}, objects: volumeAt(v1.LabelHostname, "host-a")},
		"a volume, and preselected nodes":  {replacement: []func(*v1.Pod){pending(cordoned + "2 node(s) didn't satisfy plugin(s) [VolumeBinding]"), claiming}, objects: volumeAt(v1.LabelHostname, "host-a")},
		"a pod on another node":            {replacement: []func(*v1.Pod){pending(volume), claiming}, objects: volumeAt(v1.LabelHostname, "host-a"), at: "b", waits: ofNodeA},
		"the node is schedulable again":    {replacement: []func(*v1.Pod){pending(selector), selecting(v1.LabelHostname, "host-a")}, schedulable: true, waits: plain},
		"a zone, which may get a node":     {replacement: []func(*v1.Pod){pending(selector), selecting("zone", "a")}, waits: plain},
		"a volume of a zone":               {replacement: []func(*v1.Pod){pending(volume), claiming}, objects: volumeAt("zone", "a"), waits: plain},
		"resources, which may become free": {replacement: []func(*v1.Pod){pending("1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector"), selecting(v1.LabelHostname, "host-a")}, waits: plain},
		"not scheduled yet":                {replacement: []func(*v1.Pod){slow, next, selecting(v1.LabelHostname, "host-a")}, waits: plain},
		"it has come to its node":          {replacement: []func(*v1.Pod){pending(selector), selecting(v1.LabelHostname, "host-a"), on("a")}, waits: plain},
		"its claim is in use":              {replacement: []func(*v1.Pod){pending("3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"), claiming}, objects: volumeAt(v1.LabelHostname, "host-a")},
		"it has to be spread":              {replacement: []func(*v1.Pod){pending(cordoned + "2 node(s) didn't match pod topology spread constraints"), selecting(v1.LabelHostname, "host-a")}, waits: plain},
		"it terminates":                    {replacement: []func(*v1.Pod){pending(selector), selecting(v1.LabelHostname, "host-a"), terminating}, waits: "Waiting for pod web-2 to terminate: "},
		"one of two nodes": {
			replacement: []func(*v1.Pod){pending(cordoned + "2 node(s) didn't satisfy plugin(s) [NodeAffinity]"), requiring(nodesNamed("a", "b"))},
			waits:       "Waiting for pod web-2 to become available on one of 2 nodes, which are cordoned: ",
		},
		"the hostname of no node": {replacement: []func(*v1.Pod){pending(selector), selecting(v1.LabelHostname, "host-x")}, waits: plain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			if test.at == "" {
				test.at = "a"
			}
			old, second, first := pacedPod(2), pacedPod(1, on(test.at)), pacedPod(0, on("a"))
			evicted := pacedRequest(old, completedAt(pacingEpoch), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, pacingEpoch))
			objects := append([]runtime.Object{pacedSet(3), evicted, pacedPod(2, test.replacement...), second, first, pacedRequest(second), pacedRequest(first)}, test.objects...)
			for _, node := range []string{"a", "b", "c"} {
				objects = append(objects, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{v1.LabelHostname: "host-" + node, "zone": node}}, Spec: v1.NodeSpec{Unschedulable: node != "c" && !test.schedulable}})
			}
			p := newPacing(t, objects...)
			turn, other := p.begin(pacedRequest(second)), p.begin(pacedRequest(first))
			p.sync()
			got := overWith(turn)
			if test.waits != "" {
				if got != "" || !strings.HasPrefix(p.said[second.UID], test.waits) {
					t.Errorf("the turn is over with %q, or says %q, want %q", got, p.said[second.UID], test.waits)
				}
				return
			}
			if want := "Released: pod web-2 of StatefulSet web cannot be scheduled before node a, which the pod has to leave, is no longer cordoned."; got != want {
				t.Errorf("the turn is over with %q, want %q", got, want)
			}
			if got := overWith(other); got != "" || !strings.HasPrefix(p.said[first.UID], "Waiting for pod web-1 to be evicted: at most 1 of ") {
				t.Errorf("another turn is over with %q, and says %q", got, p.said[first.UID])
			}
		})
	}
}
