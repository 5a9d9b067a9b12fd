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

package interceptedeviction

import (
	"errors"
	"slices"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/utils/ptr"
)

// TestUnreadableNodes: the caller may be draining the node of the successor, so it is not told that
// the pod is gone. A successor that is not scheduled yet has no node to read.
func TestUnreadableNodes(t *testing.T) {
	pod := newPod(interceptedBy(first))
	for name, test := range map[string]struct {
		successor *v1.Pod
		want      string
	}{
		"on a node":         {successor: newPod(interceptedBy(first), withUID(successorUID), onNode("elsewhere")), want: "Eviction triggered evacuation"},
		"not scheduled yet": {successor: newPod(interceptedBy(first), withUID(successorUID)), want: "which was to be evicted, has left"},
	} {
		t.Run(name, func(t *testing.T) {
			refusals := newRefusals()
			for _, step := range []struct {
				pod  *v1.Pod
				want string
			}{{pod, "Eviction triggered evacuation"}, {test.successor, test.want}} {
				plugin, client := world{stored: []runtime.Object{step.pod}, cached: []runtime.Object{step.pod}}.newPlugin(t)
				client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("etcd is unavailable")
				})
				plugin.refusals = refusals
				err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil)
				if err == nil || !strings.Contains(err.Error(), step.want) {
					t.Errorf("got error %v, want %q", err, step.want)
				}
			}
		})
	}
}

// TestReplacedPods has calls for a pod that another one replaces under its name.
func TestReplacedPods(t *testing.T) {
	const waits, gone, admitted = "Eviction triggered evacuation", "the pod with the UID " + string(podUID) + ", which was to be evicted, has left", ""
	type step struct {
		pod    *v1.Pod // nil if there is none
		user   string  // kubectl if empty
		uid    types.UID
		dryRun bool
		// node is that of the pod, if there is one.
		node *v1.Node
		// done is set if all interceptors of the pod have acted.
		done bool
		want string
	}
	pod, successor := newPod(interceptedBy(first)), newPod(interceptedBy(first), withUID(successorUID))
	plain, leaving := newPod(withUID(successorUID)), newPod(interceptedBy(first), terminating)
	grouped := newPod(interceptedBy(first), func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{} })
	elsewhere := newPod(interceptedBy(first), withUID(successorUID), onNode("elsewhere"))
	newNode := func(spec v1.NodeSpec) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Spec: spec}
	}
	tainted := func(effect v1.TaintEffect) *v1.Node {
		return newNode(v1.NodeSpec{Taints: []v1.Taint{{Key: "a", Effect: effect}}})
	}
	tolerant := elsewhere.DeepCopy()
	tolerant.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	for name, steps := range map[string][]step{
		"told once":                              {{pod: pod, want: waits}, {pod: pod, want: waits}, {pod: successor, want: gone}, {pod: successor, want: waits}},
		"the successor has no interceptors":      {{pod: pod, want: waits}, {pod: plain, want: gone}, {pod: plain, want: admitted}},
		"on another node":                        {{pod: pod, want: waits}, {pod: elsewhere, node: newNode(v1.NodeSpec{}), want: gone}},
		"on a node that is gone":                 {{pod: pod, want: waits}, {pod: elsewhere, want: gone}},
		"on a node that is drained, too":         {{pod: pod, want: waits}, {pod: elsewhere, node: newNode(v1.NodeSpec{Unschedulable: true}), want: waits}},
		"on a node with a new taint":             {{pod: pod, want: waits}, {pod: elsewhere, node: tainted(v1.TaintEffectNoSchedule), want: waits}},
		"on a node with a taint":                 {{pod: pod, want: waits}, {pod: tolerant, node: tainted(v1.TaintEffectNoSchedule), want: gone}},
		"on a node that is not preferred":        {{pod: pod, want: waits}, {pod: elsewhere, node: tainted(v1.TaintEffectPreferNoSchedule), want: gone}},
		"another caller":                         {{pod: pod, want: waits}, {pod: successor, user: "karpenter", want: waits}, {pod: successor, want: gone}},
		"the pod was seen to leave":              {{pod: pod, want: waits}, {pod: leaving, want: admitted}, {pod: successor, want: waits}},
		"the pod was evicted by the caller":      {{pod: pod, want: waits}, {pod: pod, done: true, want: admitted}, {pod: successor, want: waits}},
		"the pod leaves with its group":          {{pod: pod, want: waits}, {pod: grouped, want: admitted}, {pod: successor, want: waits}},
		"the pod was seen to be gone":            {{pod: pod, want: waits}, {want: admitted}, {pod: successor, want: waits}},
		"the UID of the pod":                     {{pod: pod, uid: podUID, want: waits}, {pod: successor, want: waits}},
		"the UID of the successor":               {{pod: pod, want: waits}, {pod: successor, uid: successorUID, want: waits}, {pod: successor, want: gone}},
		"a dry run is no call":                   {{pod: pod, dryRun: true, want: waits}, {pod: successor, want: waits}},
		"a dry run is not told in place of that": {{pod: pod, want: waits}, {pod: successor, dryRun: true, want: waits}, {pod: successor, want: gone}},
	} {
		t.Run(name, func(t *testing.T) {
			refusals := newRefusals()
			for i, step := range steps {
				var objects []runtime.Object
				if step.pod != nil {
					objects = append(objects, step.pod)
				}
				if step.done {
					objects = append(objects, newRequest(processing(imperative, first, imperative)))
				}
				stored := slices.Clone(objects)
				if step.node != nil {
					stored = append(stored, step.node)
				}
				plugin, _ := world{stored: stored, cached: objects}.newPlugin(t)
				plugin.refusals = refusals
				eviction := newEviction(&metav1.Preconditions{UID: ptr.To(step.uid)})
				eviction.Annotations = map[string]string{coordinationv1alpha1.EvictionRequestAtOnceAnnotation: "true"}
				if step.user == "" {
					step.user = "kubectl"
				}
				err := plugin.Validate(t.Context(), admission.NewAttributesRecord(eviction, nil, policy.Kind("Eviction").WithVersion("v1"), namespace, podName,
					v1.SchemeGroupVersion.WithResource("pods"), "eviction", admission.Create, nil, step.dryRun, &user.DefaultInfo{Name: step.user}), nil)
				switch {
				case step.want == admitted && err != nil, step.want != admitted && (err == nil || !strings.Contains(err.Error(), step.want)):
					t.Errorf("step %d: got error %v, want %q", i, err, step.want)
				case step.want == gone && !apierrors.IsNotFound(err):
					t.Errorf("step %d: got reason %s, want NotFound", i, apierrors.ReasonForError(err))
				}
			}
		})
	}
}
