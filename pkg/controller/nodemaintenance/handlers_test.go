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
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/ktesting"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
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

// relatedEvents records the reasons of events and the names of the related objects.
type relatedEvents []string

func (e *relatedEvents) Eventf(_, related runtime.Object, _, reason, _, _ string, _ ...any) {
	*e = append(*e, reason+" "+related.(*v1.ObjectReference).Kind+" "+related.(*v1.ObjectReference).Name)
}

// The recorder counts events that differ in their texts only, so the maintenance is a part of them.
func TestEventsNameTheMaintenance(t *testing.T) {
	var got relatedEvents
	w := newEventWriter(&got, clock.RealClock{})
	done, failed := metav1.Now(), metav1.Now()
	node := &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{
		{MaintenanceName: "a", MaintenanceUID: "1"}, {MaintenanceName: "b", MaintenanceUID: "2"},
	}}}}
	status := node.Status.MaintenanceStatus.DeepCopy()
	status.Admissions[0].DoneTime, status.Admissions[1].FailedTime = &done, &failed
	w.cordoned(node, []string{"n", "m"})
	w.contested(node, []string{"m"})
	w.admissionsChanged(node, status, func(*v1.MaintenanceAdmission) string { return "late" })
	want := relatedEvents{"NodeCordoned NodeMaintenance m", "CordonContested NodeMaintenance m", "NodeGivenBack NodeMaintenance a", "NodeNotBack NodeMaintenance b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// typedEvents records the types and reasons of events.
type typedEvents []string

func (e *typedEvents) Eventf(_, _ runtime.Object, eventType, reason, _, _ string, _ ...any) {
	*e = append(*e, eventType+" "+reason)
}

// Events that need an intervention are warnings.
func TestTypesOfEvents(t *testing.T) {
	var got typedEvents
	w := newEventWriter(&got, clock.RealClock{})
	node, m, pod := &v1.Node{}, &coordinationv1alpha1.NodeMaintenance{}, &v1.Pod{}
	w.cordoned(node, []string{"m"})
	w.uncordoned(node)
	w.contested(node, []string{"m"})
	w.cordonFailed(node, errors.New("no"))
	w.requestFailed(pod, errors.New("no"))
	w.completed(m)
	w.invalid(m, errors.New("no"))
	w.fastForwarded(m, node, maintenance.Targets{})
	want := typedEvents{
		"Normal NodeCordoned", "Normal NodeUncordoned", "Warning CordonContested", "Warning CordonFailed", "Warning EvictionRequestFailed",
		"Normal MaintenanceCompleted", "Warning InvalidMaintenance", "Warning DrainFastForwarded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// An event is emitted when a condition changes, and not with each write of the status.
func TestEventsOfChangesAreEmittedOnce(t *testing.T) {
	var got typedEvents
	w := newEventWriter(&got, clock.RealClock{})
	m := &coordinationv1alpha1.NodeMaintenance{}
	write := func(reason string, drained metav1.ConditionStatus, selected int32) {
		status := m.Status.DeepCopy()
		status.SelectedNodes = selected
		status.StageStatuses = []coordinationv1alpha1.StageStatus{{Name: stageCordon}}
		status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.NodeMaintenanceConditionDrained), Status: drained, Reason: reason}}
		w.maintenanceChanged(m, status)
		m.Status = *status
	}
	for selected := range int32(2) {
		write(coordinationv1alpha1.NodeMaintenanceReasonBlocked, metav1.ConditionFalse, selected)
	}
	// 500 pods that a budget blocks are one event, and so are those that another cause blocks.
	block := func(cause maintenance.HoldCause, pods int32) {
		status := m.Status.DeepCopy()
		status.DrainStatus.Blockers = append(status.DrainStatus.Blockers, coordinationv1alpha1.DrainBlocker{Cause: coordinationv1alpha1.DrainBlockerCause(cause), PodCount: pods})
		w.maintenanceChanged(m, status)
		m.Status = *status
	}
	block(maintenance.HoldDisruptionBudget, 1)
	for pods := range int32(3) {
		block(maintenance.HoldDisruptionBudget, 500+pods)
	}
	block(maintenance.HoldInterceptor, 1)
	block(maintenance.HoldStuckTerminating, 1)
	for selected := range int32(2) {
		write(coordinationv1alpha1.NodeMaintenanceReasonDrained, metav1.ConditionTrue, selected)
	}
	drained := []v1.NodeCondition{{Type: v1.NodeDrained, Status: v1.ConditionTrue}}
	w.nodeChanged(&v1.Node{}, drained)
	w.nodeChanged(&v1.Node{Status: v1.NodeStatus{Conditions: drained}}, drained)
	want := typedEvents{"Normal StageStarted", "Warning DrainBlocked", "Warning DrainBlocked", "Warning DrainBlocked", "Normal Drained", "Normal NodeDrained"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// A failure that repeats while its node changes is one event, in a series. The recorder is the real
// one.
func TestRepeatedFailuresAreOneEvent(t *testing.T) {
	client := fake.NewClientset()
	_, ctx := ktesting.NewTestContext(t)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	w := newEventWriter(broadcaster.NewRecorder(scheme.Scheme, fieldManager), clock.RealClock{})
	for i := range 2 { // The recorder does not write the third time at once.
		w.cordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: strconv.Itoa(i)}}, fmt.Errorf("no (%d)", i))
	}
	w.cordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "v"}}, errors.New("no"))
	var recorded []eventsv1.Event
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, wait.ForeverTestTimeout, true, func(context.Context) (bool, error) {
		list, err := client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
		recorded = list.Items
		times := 0 // The recorder does not keep the order.
		for _, e := range recorded {
			if times++; e.Series != nil {
				times += int(e.Series.Count) - 1
			}
		}
		return times == 3, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) != 2 {
		t.Errorf("%d events about two nodes: %v", len(recorded), recorded)
	}
	if e := recorded[slices.IndexFunc(recorded, func(e eventsv1.Event) bool { return e.Regarding.Name == "n" })]; e.Regarding.UID != "u" || e.Regarding.Kind != "Node" {
		t.Errorf("it is about %v", e.Regarding)
	}
}

// partsOfEvents records what the recorder compares, and the texts.
type partsOfEvents []string

func (e *partsOfEvents) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, args ...any) {
	*e = append(*e, fmt.Sprintf("%s%s: %s", reason, regarding.(*v1.ObjectReference).FieldPath, args[0]))
}

// The recorder takes an event with another text for a repetition: it is another event, unless only numbers differ. There
// are four at most, and none is known for ever.
func TestEventsWithOtherTexts(t *testing.T) {
	var got partsOfEvents
	now := testingclock.NewFakeClock(start)
	w := newEventWriter(&got, now)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	for _, text := range []string{"quota of 3", "a webhook", "quota of 4", "a webhook", "c", "d", "e", "f", "quota of 5"} {
		w.cordonFailed(node, errors.New(text))
	}
	w.cordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "v"}}, errors.New("a webhook"))
	w.taintFailed(node, errors.New("a webhook"))
	now.Step(noteMemory + time.Second)
	w.cordonFailed(node, errors.New("a webhook"))
	w.cordonFailed(node, errors.New("quota of 6"))
	want := partsOfEvents{
		"CordonFailed: quota of 3", "CordonFailednote{2}: a webhook", "CordonFailed: quota of 4", "CordonFailednote{2}: a webhook",
		"CordonFailednote{3}: c", "CordonFailednote{4}: d", "CordonFailednote{4}: e", "CordonFailednote{4}: f", "CordonFailed: quota of 5",
		"CordonFailed: a webhook", "TaintFailed: a webhook",
		"CordonFailednote{2}: a webhook", "CordonFailed: quota of 6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// A write that fails for transient reasons is a blocker from the third time on.
func TestTransientFailuresBlock(t *testing.T) {
	f := newFailures()
	for attempt := range transientFailures + 1 {
		if failed, _ := f.get("n", writeKey{writeRequest, "u"}); failed.blocks() != (attempt >= transientFailures) {
			t.Errorf("after %d failures: %+v", attempt, failed)
		}
		f.failed("n", writeKey{writeRequest, "u"}, errors.New("no answer"), time.Time{}, start.Add(time.Duration(attempt)*time.Second))
	}
}
