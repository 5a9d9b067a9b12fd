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
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"path/filepath"
)

// drain creates a maintenance of the node in the stage Drain.
func (n *staticNode) drain(maintenance string) {
	n.Helper()
	_, err := n.client.CoordinationV1alpha1().NodeMaintenances().Create(n.Context(), &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: maintenance + "-" + n.name},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage: coordinationv1alpha1.NodeMaintenanceStageDrain,
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{n.name}}},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
}

// awaitDrained waits until the drain of a maintenance has ended.
func (n *staticNode) awaitDrained(maintenance string) {
	n.Helper()
	await(n.T, "the drain to end", func() bool { return n.isDrained(maintenance) })
}

func (n *staticNode) isDrained(maintenance string) bool {
	n.Helper()
	m, err := n.client.CoordinationV1alpha1().NodeMaintenances().Get(n.Context(), maintenance+"-"+n.name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// complete moves a maintenance to the stage Complete.
func (n *staticNode) complete(maintenance string) {
	n.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"stage":%q}}`, coordinationv1alpha1.NodeMaintenanceStageComplete)
	_, err := n.client.CoordinationV1alpha1().NodeMaintenances().Patch(n.Context(), maintenance+"-"+n.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		n.Fatal(err)
	}
}

// delete deletes a maintenance.
func (n *staticNode) delete(maintenance string) {
	n.Helper()
	if err := n.client.CoordinationV1alpha1().NodeMaintenances().Delete(n.Context(), maintenance+"-"+n.name, metav1.DeleteOptions{}); err != nil {
		n.Fatal(err)
	}
}

// clear removes the maintenances and static pods of the node.
func (n *staticNode) clear() {
	n.Helper()
	maintenances := n.client.CoordinationV1alpha1().NodeMaintenances()
	list, err := maintenances.List(n.Context(), metav1.ListOptions{})
	if err != nil {
		n.Fatal(err)
	}
	for _, maintenance := range list.Items {
		if name, ok := strings.CutSuffix(maintenance.Name, "-"+n.name); ok {
			n.delete(name)
		}
	}
	manifests, err := filepath.Glob(n.manifestPath("*"))
	if err != nil {
		n.Fatal(err)
	}
	for _, manifest := range manifests {
		n.removeManifest(strings.TrimSuffix(filepath.Base(manifest), ".yaml"))
	}
	n.awaitOnly()
}

// drainMessage returns what the condition Drained of a maintenance says.
func (n *staticNode) drainMessage(maintenance string) string {
	n.Helper()
	m, err := n.client.CoordinationV1alpha1().NodeMaintenances().Get(n.Context(), maintenance+"-"+n.name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	condition := meta.FindStatusCondition(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
	if condition == nil {
		return ""
	}
	return condition.Message
}

// countEvents returns how often the node has had an event with a text in its message and these fields.
func (n *staticNode) countEvents(reason, text string, selectors ...string) (int, error) {
	selectors = append(selectors, "involvedObject.kind=Node", "involvedObject.name="+n.name, "reason="+reason)
	events, err := n.client.CoreV1().Events(metav1.NamespaceDefault).List(n.Context(), metav1.ListOptions{FieldSelector: strings.Join(selectors, ",")})
	if err != nil {
		return 0, err
	}
	count := 0
	for _, event := range events.Items {
		if strings.Contains(event.Message, text) {
			count += int(max(event.Count, 1))
		}
	}
	return count, nil
}

// awaitEvent waits for an event with a text in its message that kubectl describe shows with the node.
func (n *staticNode) awaitEvent(reason, text string) {
	n.Helper()
	await(n.T, reason+" of "+text, func() bool {
		node, err := n.client.CoreV1().Nodes().Get(n.Context(), n.name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		count, err := n.countEvents(reason, text, "involvedObject.uid="+string(node.UID))
		return err == nil && count > 0
	})
}

// awaitEvents waits for more than a number of such events. A kubelet that has just started does not
// know the UID of its node. The API server may be away meanwhile.
func (n *staticNode) awaitEvents(reason, text string, before int) {
	n.Helper()
	await(n.T, reason+" of "+text, func() bool {
		count, err := n.countEvents(reason, text)
		return err == nil && count > before
	})
}

// message returns what the kubelet says about the stop of a pod.
func (n *staticNode) message(pod string) string {
	n.Helper()
	mirror, found := n.mirrorPods()[pod]
	if !found {
		return ""
	}
	request, err := n.client.CoordinationV1alpha1().EvictionRequests(mirror.Namespace).Get(n.Context(), string(mirror.UID), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	index := slices.IndexFunc(request.Status.Interceptors, func(i coordinationv1alpha1.InterceptorStatus) bool {
		return i.Name == coordinationv1alpha1.EvictionInterceptorKubelet
	})
	if index < 0 {
		return ""
	}
	return request.Status.Interceptors[index].Message
}

// awaitMessage waits until the kubelet says something about the stop of a pod.
func (n *staticNode) awaitMessage(pod, want string) {
	n.Helper()
	var got string
	n.awaitf(func() bool {
		got = n.message(pod)
		return strings.Contains(got, want)
	}, func() string { return fmt.Sprintf("the message %q about %s: it is %q", want, pod, got) })
}

// checkpointPath is the path of the checkpoint of the kubelet.
func (n *staticNode) checkpointPath() string {
	return filepath.Join(n.cluster.KubeletDirectory(n.name), "node_maintenance_state")
}

// stored returns the state of a pod in the checkpoint of the kubelet, "" without one.
func (n *staticNode) stored(pod string) string {
	n.Helper()
	data, err := os.ReadFile(n.checkpointPath())
	if os.IsNotExist(err) {
		return ""
	}
	var content struct {
		Pods []struct{ Name, State string }
	}
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	if err != nil {
		n.Fatal(err)
	}
	for _, stored := range content.Pods {
		if stored.Name == pod+"-"+n.name {
			return stored.State
		}
	}
	return ""
}

// awaitHeld waits until pods are held: the drain can end a moment before that.
func (n *staticNode) awaitHeld(pods ...string) {
	n.Helper()
	n.awaitStored("held", pods...)
}

func (n *staticNode) awaitStored(state string, pods ...string) {
	n.Helper()
	for _, pod := range pods {
		await(n.T, pod+" to be "+state, func() bool { return n.stored(pod) == state })
	}
}

// restartKubelet ends the kubelet, and waits until the next one has reached the API server.
func (n *staticNode) restartKubelet(signal unix.Signal) {
	n.Helper()
	n.awaitNextKubelet(func() error { return n.cluster.RestartKubelet(n.Context(), n.name, signal) })
}

// awaitNextKubelet waits until a kubelet that is started has reached the API server.
func (n *staticNode) awaitNextKubelet(start func() error) {
	n.Helper()
	const text = "kubelet" // kube-proxy has such an event without a message.
	before, err := n.countEvents("Starting", text)
	if err == nil {
		err = start()
	}
	if err != nil {
		n.Fatal(err)
	}
	n.awaitEvents("Starting", text, before)
}
