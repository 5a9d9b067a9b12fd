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

package nodemaintenance

import (
	"slices"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// Each relevant change of a pod is enough for a sync.
func TestPodNeedsSync(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{"app": "a"}}, Spec: v1.PodSpec{NodeName: "n"}}
	for name, tc := range map[string]struct {
		change func(*v1.Pod)
		want   bool
	}{
		"nothing":                      {func(*v1.Pod) {}, false},
		"a condition":                  {func(p *v1.Pod) { p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady}} }, false},
		"another pod of the same name": {func(p *v1.Pod) { p.UID = "v" }, true},
		"bound":                        {func(p *v1.Pod) { p.Spec.NodeName = "other" }, true},
		"ended":                        {func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, true},
		"adopted by a DaemonSet":       {daemon, true},
		"terminating":                  {func(p *v1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }, true},
		"another label":                {func(p *v1.Pod) { p.Labels = map[string]string{"app": "b"} }, true},
		"labels removed":               {func(p *v1.Pod) { p.Labels = nil }, true},
		"a phase that is not final":    {func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }, false},
		"an annotation":                {func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
	} {
		changed := pod.DeepCopy()
		tc.change(changed)
		if got := podNeedsSync(pod, changed); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A pod of a foreign DaemonSet no longer stays once an interceptor registers for it.
func TestRegistrationNeedsSync(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Spec: v1.PodSpec{NodeName: "n"}}
	daemon(pod)
	pod.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
	annotated, registered := pod.DeepCopy(), pod.DeepCopy()
	annotated.Annotations = map[string]string{"a": "b"}
	registered.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + "move.example.com": "100"}
	if podNeedsSync(pod, annotated) || !podNeedsSync(pod, registered) {
		t.Errorf("an annotation: %t, a registration: %t", podNeedsSync(pod, annotated), podNeedsSync(pod, registered))
	}
}

// Each relevant change of a node is enough for a sync.
func TestNodeNeedsSync(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"a": ""}}, Status: v1.NodeStatus{
		Conditions:        []v1.NodeCondition{{Type: v1.NodeReady}, {Type: v1.NodeDrained, Status: v1.ConditionFalse}},
		MaintenanceStatus: &v1.MaintenanceStatus{},
	}}
	for name, tc := range map[string]struct {
		change func(*v1.Node)
		want   bool
	}{
		"nothing":                       {func(*v1.Node) {}, false},
		"a heartbeat":                   {func(n *v1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(start) }, false},
		"another node of the same name": {func(n *v1.Node) { n.UID = "v" }, true},
		"cordoned":                      {func(n *v1.Node) { n.Spec.Unschedulable = true }, true},
		"another label":                 {func(n *v1.Node) { n.Labels = map[string]string{"b": ""} }, true},
		"our condition":                 {func(n *v1.Node) { n.Status.Conditions[1].Status = v1.ConditionTrue }, true},
		"our status":                    {func(n *v1.Node) { n.Status.MaintenanceStatus = nil }, true},
	} {
		changed := node.DeepCopy()
		tc.change(changed)
		if got := nodeNeedsSync(node, changed); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A request enqueues the node of its pod if that is drained, or this controller is a requester.
func TestRequestsOfPods(t *testing.T) {
	f := newFixture(t)
	f.createNode("idle", nil)
	f.createNode("draining", map[string]string{"a": ""})
	idle, draining := f.createPods(1, "idle", 0)[0], f.createPods(1, "draining", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	requestOf := func(pod *v1.Pod, name string, requesters ...string) *coordinationv1alpha1.EvictionRequest {
		request := &coordinationv1alpha1.EvictionRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       coordinationv1alpha1.EvictionRequestSpec{Target: coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: name}}},
		}
		for _, requester := range requesters {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: requester})
		}
		return request
	}
	const other = "other.example.com"
	for _, tc := range []struct {
		name    string
		request *coordinationv1alpha1.EvictionRequest
		want    []string
	}{
		{"of others on an idle node", requestOf(idle, string(idle.UID), other), nil},
		{"ours on an idle node", requestOf(idle, string(idle.UID), other, coordinationv1alpha1.NodeMaintenanceRequester), []string{"idle"}},
		{"of another pod of the same name", requestOf(idle, "another", coordinationv1alpha1.NodeMaintenanceRequester), nil},
		{"of others on a node that is drained", requestOf(draining, string(draining.UID), other), []string{"draining"}},
		{"of another pod of the same name there", requestOf(draining, "another", other), nil},
	} {
		for _, event := range []struct {
			name string
			send func()
		}{
			{"added", func() { f.requestInformer.handler.OnAdd(tc.request, false) }},
			{"updated", func() { f.requestInformer.handler.OnUpdate(tc.request, tc.request) }},
			{"deleted", func() { f.requestInformer.handler.OnDelete(tc.request) }},
			{"deleted while the watch was interrupted", func() { f.requestInformer.handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: tc.request}) }},
		} {
			f.nodeQueue.keys = nil
			event.send()
			if !slices.Equal(f.nodeQueue.keys, tc.want) {
				t.Errorf("%s, %s: %q", tc.name, event.name, f.nodeQueue.keys)
			}
		}
	}
	f.nodeQueue.keys = nil
	f.requestInformer.handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: nil})
	if len(f.nodeQueue.keys) > 0 {
		t.Errorf("a tombstone without an object enqueues %q", f.nodeQueue.keys)
	}
}
