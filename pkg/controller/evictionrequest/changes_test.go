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

package evictionrequest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// eventLines formats the recorded events, one per line.
func eventLines(f *fixture) []string {
	var lines []string
	for _, event := range f.events {
		kind, _, _ := strings.Cut(event.Regarding, " ")
		lines = append(lines, fmt.Sprintf("%s: %s %s: %s", kind, event.Type, event.Reason, event.Note))
	}
	return lines
}

func TestChangesAndEvents(t *testing.T) {
	const deleted = "Target Pod web-0 was deleted."
	both := func(text string) []string { return []string{"EvictionRequest: " + text, "Pod: " + text} }
	requestOnly := func(text string) []string { return []string{"EvictionRequest: " + text} }
	blockedBecause := func(reason string) func(*coordinationv1alpha1.EvictionRequestStatus) {
		return condition(blocked, metav1.ConditionTrue, reason, "PodDisruptionBudget web: no disruptions allowed", 0)
	}
	tests := map[string]struct {
		old, updated *coordinationv1alpha1.EvictionRequestStatus
		want         []change
		events       []string
	}{
		"nothing": {old: newStatus(targets(first), active(first, 0)), updated: newStatus(targets(first), active(first, 0))},
		"a pod without interceptors is initialised": {
			old: newStatus(), updated: newStatus(targets(), active(builtIn, 0)),
			want: []change{{kind: changeInitialized}, {kind: changeActivated, interceptor: builtIn}},
		},
		"the first of some interceptors is activated": {
			old: newStatus(), updated: newStatus(targets(first), active(first, 0)),
			want:   []change{{kind: changeInitialized}, {kind: changeActivated, interceptor: first}},
			events: requestOnly("Normal InterceptorActivated: Activated interceptor first.example.com."),
		},
		"an interceptor has completed": {
			old:     newStatus(targets(first), active(first, 0), reporting(done(first, 0))),
			updated: newStatus(targets(first), processed(first), active(builtIn, 0), reporting(done(first, 0))),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "completed"},
				{kind: changeActivated, interceptor: builtIn}},
			events: append(requestOnly("Normal InterceptorCompleted: Interceptor first.example.com completed."),
				requestOnly("Normal InterceptorActivated: Activated interceptor imperative-eviction.k8s.io.")...),
		},
		"an interceptor was silent": {
			old:     newStatus(targets(first, second), active(first, 0)),
			updated: newStatus(targets(first, second), processed(first), active(second, time.Hour)),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "timed_out"},
				{kind: changeActivated, interceptor: second}},
			events: append(both("Warning InterceptorTimedOut: Deactivated interceptor first.example.com: it sent no heartbeat before its deadline."),
				requestOnly("Normal InterceptorActivated: Activated interceptor second.example.com.")...),
		},
		"an interceptor is unresponsive": {
			old: newStatus(targets(first), active(first, 0)),
			updated: newStatus(targets(first), active(first, 0),
				condition(unresponsive, metav1.ConditionTrue, "HeartbeatOverdue", "Silence.", 0)),
			want:   []change{{kind: changeUnresponsive, interceptor: first, reason: "HeartbeatOverdue", message: "Silence."}},
			events: both("Warning InterceptorUnresponsive: Silence."),
		},
		"a budget blocks": {
			old: newStatus(targets(), active(builtIn, 0)), updated: newStatus(targets(), active(builtIn, 0), blockedBecause("DisruptionBudget")),
			want:   []change{{kind: changeBlocked, reason: "DisruptionBudget", message: "PodDisruptionBudget web: no disruptions allowed"}},
			events: both("Warning EvictionBlocked: PodDisruptionBudget web: no disruptions allowed"),
		},
		"a budget still blocks": {
			old: newStatus(targets(), blockedBecause("DisruptionBudget")), updated: newStatus(targets(), blockedBecause("DisruptionBudget")),
		},
		"something else blocks now": {
			old: newStatus(targets(), blockedBecause("DisruptionBudget")), updated: newStatus(targets(), blockedBecause("EvictionRefused")),
			want:   []change{{kind: changeBlocked, reason: "EvictionRefused", message: "PodDisruptionBudget web: no disruptions allowed"}},
			events: both("Warning EvictionBlocked: PodDisruptionBudget web: no disruptions allowed"),
		},
		"nothing blocks any more": {
			old:     newStatus(targets(), blockedBecause("DisruptionBudget")),
			updated: newStatus(targets(), condition(blocked, metav1.ConditionFalse, "NotBlocked", "", 0)),
		},
		"a pod without interceptors is gone": {
			old:     newStatus(targets(), active(builtIn, 0)),
			updated: newStatus(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", deleted, 0)),
			want: []change{{kind: changeProcessed, interceptor: builtIn, outcome: "evicted"},
				{kind: changeEvicted, reason: "PodDeleted", message: deleted}},
		},
		"a pod without interceptors is gone that was blocked": {
			old: newStatus(targets(), active(builtIn, 0), blockedBecause("DisruptionBudget")),
			updated: newStatus(targets(), processed(builtIn), condition(blocked, metav1.ConditionFalse, "NotBlocked", "", 0),
				condition(evicted, metav1.ConditionTrue, "PodDeleted", deleted, 0)),
			want: []change{{kind: changeProcessed, interceptor: builtIn, outcome: "evicted"},
				{kind: changeEvicted, reason: "PodDeleted", message: deleted}},
			events: requestOnly("Normal Evicted: " + deleted),
		},
		"the pod is gone": {
			old:     newStatus(targets(first), active(first, 0)),
			updated: newStatus(targets(first), processed(first), condition(evicted, metav1.ConditionTrue, "PodDeleted", deleted, 0)),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "evicted"},
				{kind: changeEvicted, reason: "PodDeleted", message: deleted}},
			events: []string{"EvictionRequest: Normal Evicted: " + deleted},
		},
		"the pod is gone and its interceptor has completed": {
			old:     newStatus(targets(first), active(first, 0), reporting(done(first, 0))),
			updated: newStatus(targets(first), processed(first), reporting(done(first, 0)), condition(evicted, metav1.ConditionTrue, "PodDeleted", deleted, 0)),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "completed"},
				{kind: changeEvicted, reason: "PodDeleted", message: deleted}},
			events: append(requestOnly("Normal InterceptorCompleted: Interceptor first.example.com completed."),
				"EvictionRequest: Normal Evicted: "+deleted),
		},
		"the last requester has left": {
			old:     newStatus(targets(first), active(first, 0)),
			updated: newStatus(targets(first), processed(first), condition(canceled, metav1.ConditionTrue, "NoRequesters", "The last one has left.", 0)),
			want: []change{{kind: changeProcessed, interceptor: first, outcome: "canceled"},
				{kind: changeCanceled, reason: "NoRequesters", message: "The last one has left."}},
			events: both("Normal EvictionCanceled: The last one has left."),
		},
		"there is no such pod": {
			old:     newStatus(),
			updated: newStatus(condition(canceled, metav1.ConditionTrue, "ValidationFailed", "Target Pod web-0 was not found.", 0)),
			want:    []change{{kind: changeCanceled, reason: "ValidationFailed", message: "Target Pod web-0 was not found."}},
			events:  []string{"EvictionRequest: Normal EvictionCanceled: Target Pod web-0 was not found."},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := computeChanges(test.old, test.updated)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(change{})); diff != "" {
				t.Errorf("unexpected changes (-want, +got):\n%s", diff)
			}
			f := newFixture(t)
			request := newRequest()
			request.Status = *test.updated
			recordEvents(f, request, got)
			if diff := cmp.Diff(test.events, eventLines(f)); diff != "" {
				t.Errorf("unexpected events (-want, +got):\n%s", diff)
			}
		})
	}
}

// What repeats for a request that changes meanwhile is one event about it and one about its pod, each
// in a series. Another reason, another interceptor, or another request has events of its own. The recorder is
// the real one.
func TestRepeatedChangesAreOneEvent(t *testing.T) {
	client := fake.NewClientset()
	_, ctx := ktesting.NewTestContext(t)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, fieldManager)
	record := func(version int, name string, conditionType coordinationv1alpha1.EvictionRequestConditionType, changes ...func(*coordinationv1alpha1.EvictionRequest)) {
		request := newRequest(changes...)
		request.ResourceVersion, request.Generation = strconv.Itoa(version), int64(version)
		before := newStatus(targets(first, second), active(name, 0))
		after := newStatus(targets(first, second), active(name, 0),
			condition(conditionType, metav1.ConditionTrue, "Reason", fmt.Sprintf("It is the %dth time.", version), 0))
		recordEvents(recorder, request, computeChanges(before, after))
	}
	for version := range 2 { // The recorder does not write the third time at once.
		record(version, builtIn, blocked)
		record(version, first, unresponsive)
		record(version, second, unresponsive)
	}
	record(2, builtIn, blocked, func(request *coordinationv1alpha1.EvictionRequest) {
		request.Name, request.UID = "pod-1-uid", "request-1-uid"
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: "web-1", UID: "pod-1-uid"}
	})

	var recorded []eventsv1.Event
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, wait.ForeverTestTimeout, true, func(context.Context) (bool, error) {
		list, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		recorded = list.Items
		times := 0 // The recorder does not keep the order.
		for _, e := range recorded {
			if times++; e.Series != nil {
				times += int(e.Series.Count) - 1
			}
		}
		return times == 3*2*2+2, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range recorded {
		got = append(got, fmt.Sprintf("%s: %s %s %s, %s %s, about %q", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Regarding.UID, e.Related.Kind, e.Related.UID, e.Regarding.FieldPath+e.Related.FieldPath))
	}
	slices.Sort(got)
	var want []string
	for _, series := range []struct{ reason, part string }{
		{eventEvictionBlocked, ""},
		{eventInterceptorUnresponsive, "status.interceptors{" + first + "}"},
		{eventInterceptorUnresponsive, "status.interceptors{" + second + "}"},
	} {
		want = append(want,
			fmt.Sprintf("%s: EvictionRequest %s %s, Pod %s, about %q", series.reason, podUID, requestUID, podUID, series.part),
			fmt.Sprintf("%s: Pod %s %s, EvictionRequest %s, about %q", series.reason, podName, podUID, requestUID, series.part))
	}
	want = append(want, `EvictionBlocked: EvictionRequest pod-1-uid request-1-uid, Pod pod-1-uid, about ""`, `EvictionBlocked: Pod web-1 pod-1-uid, EvictionRequest request-1-uid, about ""`)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected events (-want, +got):\n%s", diff)
	}
}

// The API server rejects an event with a longer note.
func TestEventNotesAreTruncated(t *testing.T) {
	f := newFixture(t)
	recordEvents(f, newRequest(), []change{{kind: changeEvicted, message: strings.Repeat("x", 1025)}})
	if len(f.events) != 1 || len(f.events[0].Note) != 1024 {
		t.Errorf("got %v, want one event with a note of 1024 bytes", f.events)
	}
}
