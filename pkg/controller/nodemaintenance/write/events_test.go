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

package write

import (
	"context"
	"errors"
	"fmt"
	"github.com/google/go-cmp/cmp"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// The event StageStarted has the number of nodes only if the status is of this generation. A drain
// starts before its nodes are counted: the status then has 0, or the number of an older selector.
func TestStageStartedCounts(t *testing.T) {
	for observed, want := range map[int64]string{
		1: "Normal StageStarted Started the stage Drain", 2: "Normal StageStarted Started the stage Drain on 3 nodes",
	} {
		recorder := events.NewFakeRecorder(1)
		m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 2}}
		NewEvents(recorder, clock.RealClock{}).MaintenanceChanged(m, &coordinationv1alpha1.NodeMaintenanceStatus{
			ObservedGeneration: observed, SelectedNodes: 3,
			StageStatuses: []coordinationv1alpha1.StageStatus{{Name: coordinationv1alpha1.NodeMaintenanceStageDrain}},
		})
		if got := <-recorder.Events; got != want {
			t.Errorf("observed %d: %q, want %q", observed, got, want)
		}
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
	w := NewEvents(&got, clock.RealClock{})
	done, failed := metav1.Now(), metav1.Now()
	node := &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{
		{MaintenanceName: "a", MaintenanceUID: "1"}, {MaintenanceName: "b", MaintenanceUID: "2"},
	}}}}
	status := node.Status.MaintenanceStatus.DeepCopy()
	status.Admissions[0].DoneTime, status.Admissions[1].FailedTime = &done, &failed
	w.Cordoned(node, []string{"n", "m"})
	w.Contested(node, []string{"m"})
	w.AdmissionsChanged(node, status, func(*v1.MaintenanceAdmission) string { return "late" })
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
	w := NewEvents(&got, clock.RealClock{})
	node, m, pod := &v1.Node{}, &coordinationv1alpha1.NodeMaintenance{}, &v1.Pod{}
	w.Cordoned(node, []string{"m"})
	w.Uncordoned(node)
	w.Contested(node, []string{"m"})
	w.CordonFailed(node, errors.New("no"))
	w.RequestFailed(pod, errors.New("no"))
	w.Completed(m)
	w.Invalid(m, errors.New("no"))
	w.FastForwarded(m, node, maintenance.Targets{})
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
	w := NewEvents(&got, clock.RealClock{})
	m := &coordinationv1alpha1.NodeMaintenance{}
	write := func(reason string, drained metav1.ConditionStatus, selected int32) {
		status := m.Status.DeepCopy()
		status.SelectedNodes = selected
		status.StageStatuses = []coordinationv1alpha1.StageStatus{{Name: stageCordon}}
		status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.NodeMaintenanceConditionDrained), Status: drained, Reason: reason}}
		w.MaintenanceChanged(m, status)
		m.Status = *status
	}
	for selected := range int32(2) {
		write(coordinationv1alpha1.NodeMaintenanceReasonBlocked, metav1.ConditionFalse, selected)
	}
	// 500 pods that a budget blocks are one event, and so are those that another cause blocks.
	block := func(cause maintenance.BlockerCause, pods int32) {
		status := m.Status.DeepCopy()
		status.DrainStatus.Blockers = append(status.DrainStatus.Blockers, coordinationv1alpha1.DrainBlocker{Cause: coordinationv1alpha1.DrainBlockerCause(cause), PodCount: pods})
		w.MaintenanceChanged(m, status)
		m.Status = *status
	}
	block(maintenance.BlockerDisruptionBudget, 1)
	for pods := range int32(3) {
		block(maintenance.BlockerDisruptionBudget, 500+pods)
	}
	block(maintenance.BlockerInterceptor, 1)
	block(maintenance.BlockerStuckTerminating, 1)
	for selected := range int32(2) {
		write(coordinationv1alpha1.NodeMaintenanceReasonDrained, metav1.ConditionTrue, selected)
	}
	drained := []v1.NodeCondition{{Type: v1.NodeDrained, Status: v1.ConditionTrue}}
	w.NodeChanged(&v1.Node{}, drained)
	w.NodeChanged(&v1.Node{Status: v1.NodeStatus{Conditions: drained}}, drained)
	want := typedEvents{"Normal StageStarted", "Warning DrainBlocked", "Warning DrainBlocked", "Warning DrainBlocked", "Normal Drained", "Normal NodeDrained"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// A failure that repeats while its node changes is one event, in a series; one with another text is another event, about
// the same object. The recorder is the real one.
func TestRepeatedFailuresAreOneEvent(t *testing.T) {
	client := fake.NewClientset()
	_, ctx := ktesting.NewTestContext(t)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	w := NewEvents(broadcaster.NewRecorder(scheme.Scheme, FieldManager), clock.RealClock{})
	for i := range 2 { // The recorder does not write the third time at once.
		w.CordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: strconv.Itoa(i)}}, fmt.Errorf("no (%d)", i))
	}
	w.CordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "v"}}, errors.New("no"))
	w.CordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}, errors.New("a webhook"))
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
		return times == 4, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range recorded {
		got = append(got, fmt.Sprintf("%s %s%s: %s", e.Regarding.Kind, e.Regarding.UID, e.Regarding.FieldPath, e.Note))
	}
	slices.Sort(got)
	first := "Node u: no (0)"
	if slices.Contains(got, "Node u: no (1)") {
		first = "Node u: no (1)" // The recorder does not keep the order.
	}
	if diff := cmp.Diff([]string{"Node u: a webhook", first, "Node v: no"}, got); diff != "" {
		t.Errorf("events (-want, +got):\n%s", diff)
	}
}

// partsOfEvents records what the recorder compares, and the texts.
type partsOfEvents []string

func (e *partsOfEvents) Eventf(regarding, related runtime.Object, _, reason, _, _ string, args ...any) {
	part := ""
	if reference := asReference(related); reference != nil {
		part = reference.FieldPath
	}
	// kubectl describe prints the field path of the regarding object as the beginning of the text.
	*e = append(*e, fmt.Sprintf("%s%s%s: %s", regarding.(*v1.ObjectReference).FieldPath, reason, part, args[0]))
}

// The recorder takes an event with another text for a repetition: it is another event, unless only numbers differ. There
// are four at most, and none is known for ever.
func TestEventsWithOtherTexts(t *testing.T) {
	var got partsOfEvents
	now := testingclock.NewFakeClock(start)
	w := NewEvents(&got, now)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	for _, text := range []string{"quota of 3", "a webhook", "quota of 4", "a webhook", "c", "d", "e", "f", "quota of 5"} {
		w.CordonFailed(node, errors.New(text))
	}
	w.CordonFailed(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "v"}}, errors.New("a webhook"))
	w.TaintFailed(node, errors.New("a webhook"))
	m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m"}}
	w.AdmissionFailed(node, m, "a webhook")
	w.AdmissionFailed(node, m, "another one")
	now.Step(noteMemory + time.Second)
	w.CordonFailed(node, errors.New("a webhook"))
	w.CordonFailed(node, errors.New("quota of 6"))
	want := partsOfEvents{
		"CordonFailed: quota of 3", "CordonFailednote{2}: a webhook", "CordonFailed: quota of 4", "CordonFailednote{2}: a webhook",
		"CordonFailednote{3}: c", "CordonFailednote{4}: d", "CordonFailednote{4}: e", "CordonFailednote{4}: f", "CordonFailed: quota of 5",
		"CordonFailed: a webhook", "TaintFailed: a webhook",
		"NodeAdmissionFailed: NodeMaintenance m cannot begin with the node: a webhook", "NodeAdmissionFailed: Cannot begin with a node: a webhook",
		"NodeAdmissionFailednote{2}: NodeMaintenance m cannot begin with the node: another one", "NodeAdmissionFailednote{2}: Cannot begin with a node: another one",
		"CordonFailednote{2}: a webhook", "CordonFailed: quota of 6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}
