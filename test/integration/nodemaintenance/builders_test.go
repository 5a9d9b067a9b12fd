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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	testingclock "k8s.io/utils/clock/testing"
)

// Short names of the stages.
const (
	stageIdle     = coordinationv1alpha1.NodeMaintenanceStageIdle
	stageCordon   = coordinationv1alpha1.NodeMaintenanceStageCordon
	stageDrain    = coordinationv1alpha1.NodeMaintenanceStageDrain
	stageComplete = coordinationv1alpha1.NodeMaintenanceStageComplete
)

// scaler is another requester than the nodemaintenance controller.
const scaler = "scaler.example.com"

// newFakeClock returns a clock with whole seconds, the precision of times in objects.
func newFakeClock() *testingclock.FakeClock {
	return testingclock.NewFakeClock(time.Now().Truncate(time.Second))
}

// planOf returns a drain plan with these entries and the standard ones.
func planOf(entries ...v1.DrainPlanEntry) []v1.DrainPlanEntry {
	return maintenance.CompletePlan(entries)
}

// startQuick starts both controllers. The nodemaintenance controller uses c.clock, so that the
// minimum interval between its writes takes no real time. Only this one is stopped and logged.
func (c *cluster) startQuick() (stop func(), writes *writeLog) {
	c.t.Helper()
	c.startEvictionController()
	return c.startLogged()
}

// startLogged starts the nodemaintenance controller with c.clock, and logs its writes.
func (c *cluster) startLogged() (stop func(), writes *writeLog) {
	c.t.Helper()
	writes = &writeLog{}
	return c.StartMaintenanceController(c.ClientThrough(maintenanceUser, writes.wrap), c.clock), writes
}

// states describes each object in one line, by "kind/name".
type states map[string]string

// await waits until all states are as expected at the same time.
func (c *cluster) await(what string, want states) {
	c.t.Helper()
	c.eventually(what, func(ctx context.Context) (bool, string) {
		got := states{}
		for key := range want {
			got[key] = c.stateOf(ctx, key)
		}
		diff := cmp.Diff(want, got)
		return diff == "", diff
	})
}

// expect fails the test unless all states are as expected now.
func (c *cluster) expect(what string, want states) {
	c.t.Helper()
	got := states{}
	for key := range want {
		got[key] = c.stateOf(c.t.Context(), key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (c *cluster) stateOf(ctx context.Context, key string) string {
	kind, name, _ := strings.Cut(key, "/")
	switch kind {
	case "node":
		node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return describeOr(err, func() string { return describeNode(node) })
	case "maintenance":
		m, err := c.client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
		return describeOr(err, func() string { return describeMaintenance(m) })
	case "pod":
		pod, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, name, metav1.GetOptions{})
		return describeOr(err, func() string {
			if pod.DeletionTimestamp != nil {
				return "terminating"
			}
			return "here"
		})
	case "request":
		return c.describeRequests(ctx, name)
	case "targets":
		node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return describeOr(err, func() string { return describeDrain(node) })
	case "daemonset":
		ds, err := c.client.AppsV1().DaemonSets(c.namespace).Get(ctx, name, metav1.GetOptions{})
		return describeOr(err, func() string { return describeDaemonSet(ds) })
	case "daemon":
		daemonSet, node, _ := strings.Cut(name, "@")
		return c.describeDaemons(ctx, daemonSet, node)
	}
	return fmt.Sprintf("unknown kind %q", kind)
}

func describeOr(err error, describe func() string) string {
	switch {
	case apierrors.IsNotFound(err):
		return "gone"
	case err != nil:
		return err.Error()
	}
	return describe()
}

// describeNode returns whether the node is schedulable, whether it has a maintenanceStatus, and
// which of the four conditions are true.
func describeNode(node *v1.Node) string {
	text := "schedulable"
	if node.Spec.Unschedulable {
		text = "unschedulable"
	}
	if node.Status.MaintenanceStatus != nil {
		text += ", claimed"
	}
	if !slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool { return condition.Type == v1.NodeReady }) {
		text += ", without Ready"
	}
	known, active := 0, []string{}
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case v1.NodeMaintenancePlanned, v1.NodeMaintenanceInProgress,
			v1.NodeDrainInProgress, v1.NodeDrained:
			known++
			if condition.Status == v1.ConditionTrue {
				active = append(active, string(condition.Type))
			}
		}
	}
	switch known {
	case 0:
		return text
	case 4:
		slices.Sort(active)
		return text + ": " + strings.Join(active, ", ")
	}
	return fmt.Sprintf("%s: %d conditions", text, known)
}

// describeDrain returns the drain targets and the drain message of the node.
func describeDrain(node *v1.Node) string {
	status := node.Status.MaintenanceStatus
	if status == nil {
		return "none"
	}
	targets, err := maintenance.NewTargets(status.DrainTargets)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s; %s", targets, status.DrainMessage)
}

// describeMaintenance returns which stages were started, how many nodes are selected, whether the
// finalizer is present, and the condition Drained.
func describeMaintenance(m *coordinationv1alpha1.NodeMaintenance) string {
	var stages []string
	for _, stage := range m.Status.StageStatuses {
		stages = append(stages, string(stage.Name))
		if stage.StartTimestamp == nil {
			stages = append(stages, "without a time")
		}
	}
	text := fmt.Sprintf("%s of %d", strings.Join(stages, ", "), m.Status.SelectedNodes)
	if slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) {
		text += ", finalizer"
	}
	if condition := drainedCondition(m); condition != nil {
		text += fmt.Sprintf(", %s: %s", condition.Status, condition.Reason)
	}
	return text
}

func drainedCondition(m *coordinationv1alpha1.NodeMaintenance) *metav1.Condition {
	return meta.FindStatusCondition(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
}

// describeRequests returns the state and the requesters of each request for a pod with this name,
// or "none".
func (c *cluster) describeRequests(ctx context.Context, pod string) string {
	requests, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var found []string
	for i := range requests.Items {
		request := &requests.Items[i]
		if request.Spec.Target.Pod == nil || request.Spec.Target.Pod.Name != pod {
			continue
		}
		var requesters []string
		for _, requester := range request.Spec.Requesters {
			requesters = append(requesters, requester.Name)
		}
		slices.Sort(requesters)
		found = append(found, fmt.Sprintf("%s by [%s]", evictionrequest.StateOf(request), strings.Join(requesters, " ")))
	}
	if len(found) == 0 {
		return "none"
	}
	slices.Sort(found)
	return strings.Join(found, "; ")
}

func (c *cluster) maintenance(name string) *coordinationv1alpha1.NodeMaintenance {
	c.t.Helper()
	m, err := c.client.CoordinationV1alpha1().NodeMaintenances().Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading maintenance %s: %v", name, err)
	}
	return m
}

func (c *cluster) request(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(c.t.Context(), string(pod.UID), metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading the request for pod %s: %v", pod.Name, err)
	}
	return request
}

// awaitDrained waits for the condition Drained and the number of blocked pods of the maintenance.
func (c *cluster) awaitDrained(name string, want metav1.Condition, blockedPods int32) {
	c.t.Helper()
	want.Type = string(coordinationv1alpha1.NodeMaintenanceConditionDrained)
	c.eventually("the condition Drained of maintenance "+name, func(ctx context.Context) (bool, string) {
		m, err := c.client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		got := drainedCondition(m)
		if got == nil {
			return false, "none"
		}
		got.LastTransitionTime, got.ObservedGeneration = metav1.Time{}, 0
		diff := cmp.Diff(&want, got) + cmp.Diff(blockedPods, m.Status.DrainStatus.BlockedPods)
		return diff == "", diff
	})
}

// awaitEvent waits for an event with the reason about an object with the name.
func (c *cluster) awaitEvent(reason, name string) {
	c.t.Helper()
	c.eventually("the event "+reason, func(ctx context.Context) (bool, string) {
		n, err := c.countEvents(ctx, reason, name)
		if err != nil {
			return false, err.Error()
		}
		return n > 0, "none"
	})
}

// countEvents returns how often events with the reason were emitted for the object.
func (c *cluster) countEvents(ctx context.Context, reason, name string) (int, error) {
	events, err := c.client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, event := range events.Items {
		if event.Reason != reason || event.Regarding.Name != name {
			continue
		}
		n++
		if event.Series != nil {
			n += int(event.Series.Count) - 1
		}
	}
	return n, nil
}

// report applies the status of an interceptor to the request for a pod.
func (c *cluster) report(pod *v1.Pod, status *coordinationapply.EvictionRequestStatusApplyConfiguration) {
	c.t.Helper()
	patch := coordinationapply.EvictionRequest(string(pod.UID), c.namespace).WithStatus(status)
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).
		ApplyStatus(c.t.Context(), patch, metav1.ApplyOptions{FieldManager: "interceptor", Force: true}); err != nil {
		c.t.Fatalf("reporting on pod %s: %v", pod.Name, err)
	}
}

// startedBy returns the first report of an interceptor.
func startedBy(name string) *coordinationapply.InterceptorStatusApplyConfiguration {
	now := metav1.Now()
	return coordinationapply.InterceptorStatus().WithName(name).WithStartTime(now).WithHeartbeatTime(now).WithMessage("at work")
}

func (c *cluster) deletePod(pod *v1.Pod) {
	c.t.Helper()
	c.deletePods([]*v1.Pod{pod})
}

// setPhase writes the status of the pod, as the kubelet does.
func (c *cluster) setPhase(pod *v1.Pod, phase v1.PodPhase, conditions ...v1.PodCondition) *v1.Pod {
	c.t.Helper()
	pod = pod.DeepCopy()
	pod.Status = v1.PodStatus{Phase: phase, Conditions: conditions}
	updated, err := c.client.CoreV1().Pods(c.namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		c.t.Fatalf("writing the status of pod %s: %v", pod.Name, err)
	}
	return updated
}

// expectUntouched fails the test if any field of the pod has changed.
func (c *cluster) expectUntouched(pod *v1.Pod) {
	c.t.Helper()
	current, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		c.t.Errorf("reading pod %s: %v", pod.Name, err)
	} else if diff := cmp.Diff(pod, current); diff != "" {
		c.t.Errorf("pod %s was changed (-before +now):\n%s", pod.Name, diff)
	}
}

func (c *cluster) labelNode(name, key, value string) {
	c.t.Helper()
	c.patchNode(name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value))
}

func (c *cluster) setSchedulable(name string, schedulable bool) {
	c.t.Helper()
	c.patchNode(name, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, !schedulable))
}

func (c *cluster) deleteNode(name string) {
	c.t.Helper()
	if err := c.client.CoreV1().Nodes().Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatalf("deleting node %s: %v", name, err)
	}
}

// settle waits until the controller has processed all earlier changes, and the work that it has
// delayed.
func (c *cluster) settle() {
	c.t.Helper()
	for range 2 {
		c.clock.Step(2 * time.Second)
		c.awaitMarker()
	}
}

// awaitMarker waits until the controller has announced a maintenance of a new node. By then, it has
// seen all earlier changes.
func (c *cluster) awaitMarker() {
	c.t.Helper()
	name := nextMarker()
	c.createNode(name)
	c.createMaintenance(newMaintenance(name, stageIdle, nodesNamed(name), planOf()...))
	want := states{"node/" + name: planned}
	if !c.frozen {
		// The first status may be from before the controller has seen the node, and the clock decides
		// when there is another.
		want["maintenance/"+name] = "Idle of 1"
	}
	c.await("the marker", want)
	c.deleteMaintenance(name)
	c.deleteNode(name)
	c.await("the marker to be deleted", states{"node/" + name: "gone", "maintenance/" + name: "gone"})
}

// markers counts the markers of all tests, so that no name is used twice.
var markers int

func nextMarker() string {
	markers++
	return fmt.Sprintf("marker-%d", markers)
}
