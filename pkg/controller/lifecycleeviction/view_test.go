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

package lifecycleeviction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

const (
	early, late = "example.com/early", "example.com/late"
	between     = "between.example.com"
	last        = coordinationv1alpha1.EvictionInterceptorImperative
)

var epoch = time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)

func newPod() *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "pod"}, Spec: v1.PodSpec{EvictionResponders: []v1.EvictionResponder{
		{Name: late, Priority: ptr.To[int32](5000)}, {Name: early, Priority: ptr.To[int32](20000)},
	}}}
}

// requestAt returns the request of a pod with these interceptors, of which so many are processed, and the next one is active.
func requestAt(processed int, names ...string) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod"}}
	for i, name := range names {
		request.Status.TargetInterceptors = append(request.Status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name})
		request.Status.Interceptors = append(request.Status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
		switch {
		case i < processed:
			request.Status.ProcessedInterceptors = append(request.Status.ProcessedInterceptors, name)
		case i == processed:
			request.Status.ActiveInterceptors = []string{name}
		}
	}
	request.Status.ActivationTime = &metav1.Time{Time: epoch.Add(-time.Hour)}
	return request
}

func ended(request *coordinationv1alpha1.EvictionRequest, conditionType coordinationv1alpha1.EvictionRequestConditionType, reason string, at time.Time) *coordinationv1alpha1.EvictionRequest {
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{Type: string(conditionType), Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(at)})
	return request
}

func stateOf(status *lifecyclev1alpha1.EvictionStatus) string {
	var texts []string
	for _, target := range status.TargetResponders {
		texts = append(texts, fmt.Sprintf("%s=%s", target.Name, target.State))
	}
	for _, conditionType := range []string{"TargetEvicted", "Failed"} {
		if found := meta.FindStatusCondition(status.Conditions, conditionType); found != nil {
			texts = append(texts, string(found.Status)+"/"+found.Reason)
		}
	}
	return strings.Join(texts, " ")
}

// step is what the request says, and what the Eviction becomes by the next write.
type step struct {
	after   time.Duration
	request *coordinationv1alpha1.EvictionRequest
	report  func(*lifecyclev1alpha1.EvictionStatus)
	want    string
	wait    time.Duration
}

func completes(name string, at time.Duration) func(*lifecyclev1alpha1.EvictionStatus) {
	return func(status *lifecyclev1alpha1.EvictionStatus) {
		reportOf(status, name).CompletionTime = &metav1.Time{Time: epoch.Add(at)}
	}
}

func TestNextStatus(t *testing.T) {
	const evictor = lifecyclev1alpha1.EvictionResponderImperativeEviction
	const goesOn, pods, canceled = " False/AwaitingEviction False/AwaitingEviction", " True/PodDeleted False/Succeeded", " False/EvictionFailed True/CanceledDueToNoRequesters"
	all := []string{early, between, late, last}
	evicted, cancel := coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestConditionCanceled
	first := step{request: requestAt(0, all...), want: early + "=Active " + late + "=Inactive " + evictor + "=Inactive" + goesOn}
	for name, steps := range map[string][]step{
		"one after the other": {
			first,
			{after: time.Minute, request: requestAt(1, all...), report: completes(early, time.Minute), want: early + "=Active " + late + "=Inactive " + evictor + "=Inactive" + goesOn},
			{after: 2 * time.Minute, request: requestAt(2, all...), want: early + "=Completed " + late + "=Active " + evictor + "=Inactive" + goesOn},
			{after: 3 * time.Minute, request: requestAt(3, all...), report: completes(late, 3*time.Minute), want: early + "=Completed " + late + "=Completed " + evictor + "=Active" + goesOn},
			{after: 4 * time.Minute, request: ended(requestAt(3, all...), evicted, "PodDeleted", epoch.Add(4*time.Minute)), want: early + "=Completed " + late + "=Completed " + evictor + "=Active" + goesOn},
			{after: 4 * time.Minute, request: ended(requestAt(3, all...), evicted, "PodDeleted", epoch.Add(4*time.Minute)), want: early + "=Completed " + late + "=Completed " + evictor + "=Completed" + pods},
		},
		"the view is behind": {
			first,
			{after: time.Minute, request: requestAt(3, all...), report: completes(early, time.Minute), want: early + "=Completed " + late + "=Active " + evictor + "=Inactive" + goesOn},
			{after: time.Minute, request: ended(requestAt(4, all...), evicted, "PodDeleted", epoch.Add(time.Minute)), report: completes(late, time.Minute), want: early + "=Completed " + late + "=Completed " + evictor + "=Active" + goesOn},
			{after: time.Minute, request: ended(requestAt(4, all...), evicted, "PodDeleted", epoch.Add(time.Minute)), want: early + "=Completed " + late + "=Completed " + evictor + "=Active" + goesOn},
			{after: time.Minute, request: ended(requestAt(4, all...), evicted, "PodDeleted", epoch.Add(time.Minute)), want: early + "=Completed " + late + "=Completed " + evictor + "=Completed" + pods},
		},
		"canceled, and the view is behind": {
			first,
			{after: time.Minute, request: ended(requestAt(2, all...), cancel, coordinationv1alpha1.EvictionRequestReasonNoRequesters, epoch.Add(time.Minute)), report: completes(early, time.Minute), want: early + "=Completed " + late + "=Inactive " + evictor + "=Inactive" + canceled},
		},
		"a silent one is not interrupted early": {
			first,
			{after: 10 * time.Minute, request: requestAt(2, all...), want: early + "=Active " + late + "=Inactive " + evictor + "=Inactive" + goesOn, wait: 9*time.Minute + 30*time.Second},
			{after: 20 * time.Minute, request: requestAt(2, all...), want: early + "=Interrupted " + late + "=Active " + evictor + "=Inactive" + goesOn},
		},
		"canceled": {
			first,
			{after: time.Minute, request: ended(requestAt(0, all...), cancel, "NoRequesters", epoch), want: early + "=Canceled " + late + "=Inactive " + evictor + "=Inactive" + canceled},
		},
		"the pod goes before the responder says that it has completed": {
			first,
			{after: time.Minute, request: ended(requestAt(0, all...), evicted, "PodDeleted", epoch.Add(time.Minute)), want: early + "=Active " + late + "=Inactive " + evictor + "=Inactive" + goesOn, wait: 5 * time.Second},
			{after: time.Minute + 5*time.Second, request: ended(requestAt(0, all...), evicted, "PodDeleted", epoch.Add(time.Minute)), want: early + "=Interrupted " + late + "=Inactive " + evictor + "=Inactive" + pods},
		},
		"none before the first turn": {
			{request: requestAt(0, between, late, last), want: "False/AwaitingEviction False/AwaitingEviction"},
			{after: time.Minute, request: ended(requestAt(0, between, late, last), evicted, "PodTerminal", epoch), want: "True/PodTerminal False/Succeeded"},
		},
		"without those that have acted": {
			{request: requestAt(2, all...), want: late + "=Active " + evictor + "=Inactive" + goesOn},
		},
		"nothing is left to act": {
			{request: requestAt(3, early, late, last), want: "False/EvictionFailed True/NoFurtherResponder"},
		},
		"never valid": {
			{request: ended(requestAt(0), cancel, "ValidationFailed", epoch), want: "False/EvictionFailed True/EvictionInvalid"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			eviction := newEviction()
			for i, s := range steps {
				if s.report != nil {
					s.report(&eviction.Status)
				}
				status, wait := nextStatus(eviction, s.request, newPod(), epoch.Add(s.after))
				if got := stateOf(status); got != s.want || wait != s.wait {
					t.Fatalf("step %d: got %q, again after %v\nwant %q, %v", i, got, wait, s.want, s.wait)
				}
				eviction.Status = *status
			}
		})
	}
}

func newEviction() *lifecyclev1alpha1.Eviction {
	return &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Generation: 1},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "web"}}},
	}
}

// The Eviction of a pod that nobody but the last responder has to do with gets its first status when it is gone, or after
// two seconds.
func TestPatience(t *testing.T) {
	request := requestAt(0, last)
	request.Status.ActivationTime = &metav1.Time{Time: epoch}
	eviction, pod := newEviction(), &v1.Pod{}
	if status, wait := nextStatus(eviction, request, pod, epoch.Add(time.Second)); len(status.Conditions) > 0 || wait != time.Second {
		t.Errorf("a second later: %s, again after %v", stateOf(status), wait)
	}
	if status, _ := nextStatus(eviction, request, pod, epoch.Add(2*time.Second)); !strings.HasPrefix(stateOf(status), "imperative-eviction.k8s.io/evictor=Active") {
		t.Errorf("two seconds later: %s", stateOf(status))
	}
	// With the end, the last one is processed.
	request = ended(requestAt(1, last), coordinationv1alpha1.EvictionRequestConditionEvicted, "PodDeleted", epoch)
	status, _ := nextStatus(eviction, request, pod, epoch.Add(time.Second))
	if report := reportOf(status, lifecyclev1alpha1.EvictionResponderImperativeEviction); report == nil || report.CompletionTime == nil {
		t.Errorf("gone: %s", stateOf(status))
	}
}

func TestNextReport(t *testing.T) {
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: epoch.Add(time.Duration(seconds) * time.Second)}
	}
	for name, test := range map[string]struct {
		report  lifecyclev1alpha1.ResponderStatus
		entry   coordinationv1alpha1.InterceptorStatus
		active  string
		want    *coordinationv1alpha1.InterceptorStatus
		nothing bool
		wait    time.Duration
	}{
		"says nothing":           {report: lifecyclev1alpha1.ResponderStatus{StartTime: at(0)}, nothing: true},
		"the first heartbeat":    {report: lifecyclev1alpha1.ResponderStatus{HeartbeatTime: at(59), Message: ptr.To("saving")}, want: &coordinationv1alpha1.InterceptorStatus{StartTime: at(60), HeartbeatTime: at(60), Message: "saving"}},
		"too early for another":  {report: lifecyclev1alpha1.ResponderStatus{HeartbeatTime: at(50)}, entry: coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(30)}, nothing: true, wait: 30 * time.Second},
		"an old heartbeat":       {report: lifecyclev1alpha1.ResponderStatus{HeartbeatTime: at(-61)}, entry: coordinationv1alpha1.InterceptorStatus{StartTime: at(-300), HeartbeatTime: at(-300)}, nothing: true},
		"the next heartbeat":     {report: lifecyclev1alpha1.ResponderStatus{HeartbeatTime: at(50)}, entry: coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(0)}, want: &coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(60)}},
		"an estimate":            {report: lifecyclev1alpha1.ResponderStatus{ExpectedCompletionTime: at(100)}, entry: coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(30)}, want: &coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(30), ExpectedFinishTime: at(100)}},
		"an estimate that is by": {report: lifecyclev1alpha1.ResponderStatus{HeartbeatTime: at(30), ExpectedCompletionTime: at(40)}, entry: coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(30)}, nothing: true},
		"completes":              {report: lifecyclev1alpha1.ResponderStatus{CompletionTime: at(50)}, want: &coordinationv1alpha1.InterceptorStatus{StartTime: at(60), HeartbeatTime: at(60), CompletionTime: at(60)}},
		"has completed":          {report: lifecyclev1alpha1.ResponderStatus{CompletionTime: at(50), Message: ptr.To("more")}, entry: coordinationv1alpha1.InterceptorStatus{StartTime: at(0), HeartbeatTime: at(0), CompletionTime: at(50)}, nothing: true},
		"another one is active":  {report: lifecyclev1alpha1.ResponderStatus{CompletionTime: at(50)}, active: between, nothing: true},
	} {
		t.Run(name, func(t *testing.T) {
			names := []string{early, last}
			if test.active != "" {
				names = []string{test.active, early, last}
			}
			request := requestAt(0, names...)
			test.entry.Name = request.Status.Interceptors[0].Name
			request.Status.Interceptors[0] = test.entry
			test.report.Name = early
			eviction := &lifecyclev1alpha1.Eviction{Status: lifecyclev1alpha1.EvictionStatus{
				TargetResponders: []lifecyclev1alpha1.TargetResponder{{Name: early, State: lifecyclev1alpha1.ResponderStateActive}}, Responders: []lifecyclev1alpha1.ResponderStatus{test.report},
			}}
			got, wait := nextReport(eviction, request, epoch.Add(time.Minute))
			if wait != test.wait {
				t.Errorf("again after %v, want %v", wait, test.wait)
			}
			if got == nil != test.nothing {
				t.Fatalf("got %+v", got)
			}
			if got != nil && !sameReport(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// Requesters that have withdrawn stay, as long as there is room.
func TestRequestersOf(t *testing.T) {
	requests := []*lifecyclev1alpha1.EvictionRequest{}
	for i := range 131 {
		r := &lifecyclev1alpha1.EvictionRequest{Spec: lifecyclev1alpha1.EvictionRequestSpec{Requester: fmt.Sprintf("example.com/r%03d", i), Intent: lifecyclev1alpha1.EvictionRequestIntentEviction}}
		if i%2 == 0 {
			r.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
		}
		requests = append(requests, r)
	}
	over := &lifecyclev1alpha1.EvictionRequest{Spec: lifecyclev1alpha1.EvictionRequestSpec{Requester: "example.com/a-over", Intent: lifecyclev1alpha1.EvictionRequestIntentEviction}}
	setOutcome(&over.Status.Conditions, failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, ""), 1, epoch)
	if many, none := wantedBy(requests), wantedBy([]*lifecyclev1alpha1.EvictionRequest{over}); len(many) != maxWanted || len(none) > 0 {
		t.Errorf("wanted by %d, and by %d that are over", len(many), len(none))
	}
	known := []lifecyclev1alpha1.Requester{{Name: "example.com/r000", Intent: lifecyclev1alpha1.RequesterIntentEviction}}
	for i := range 80 {
		known = append(known, lifecyclev1alpha1.Requester{Name: fmt.Sprintf("example.com/old%02d", i), Intent: lifecyclev1alpha1.RequesterIntentWithdrawn})
	}
	request := requestAt(0, last)
	request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "nodemaintenance.k8s.io"}}
	got := requestersOf(known, wantedBy(requests), request)
	intents := map[lifecyclev1alpha1.RequesterIntent]int{}
	for _, requester := range got {
		intents[requester.Intent]++
	}
	if len(got) != maxRequesters || intents[lifecyclev1alpha1.RequesterIntentEviction] != 51 {
		t.Errorf("%d requesters: %v", len(got), intents)
	}
	if got[len(got)-1].Intent != lifecyclev1alpha1.RequesterIntentWithdrawn || requestersOf(known[:1], wantedBy(nil), request)[1] != (lifecyclev1alpha1.Requester{Name: "k8s.io/nodemaintenance", Intent: lifecyclev1alpha1.RequesterIntentEviction}) {
		t.Errorf("requesters %v", got)
	}
}

// An Eviction stays as long as anybody wants it.
func TestOwnersOf(t *testing.T) {
	request := requestAt(0, last)
	request.UID = "own"
	ours := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{UID: "ours"}}
	for name, test := range map[string]struct {
		requests   []*lifecyclev1alpha1.EvictionRequest
		requesters []string
		want       string
	}{
		"of the group":       {[]*lifecyclev1alpha1.EvictionRequest{ours}, []string{"example.com/a"}, "ours"},
		"of the other group": {nil, []string{"nodemaintenance.k8s.io"}, "own"},
		"of both":            {[]*lifecyclev1alpha1.EvictionRequest{ours}, []string{"example.com/a", "nodemaintenance.k8s.io"}, "ours own"},
	} {
		request.Spec.Requesters = nil
		for _, requester := range test.requesters {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: requester})
		}
		var uids []string
		for _, owner := range ownersOf(test.requests, sets.New("example.com/a"), request) {
			uids = append(uids, string(owner.UID))
		}
		if got := strings.Join(uids, " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The end of a request is final if its pod is gone, or if it was never valid; not if it was canceled.
func TestEndsAreFinal(t *testing.T) {
	for name, test := range map[string]struct {
		end   outcome
		final bool
	}{
		"the pod is gone": {evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, ""), true},
		"never valid":     {failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, ""), true},
		"canceled":        {failedAs(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, ""), false},
	} {
		request := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		setOutcome(&request.Status.Conditions, test.end, 1, epoch)
		var conditions []metav1.Condition
		setOutcome(&conditions, awaiting, 1, epoch)
		status := nextRequestStatus(request, conditions, epoch)
		changed := meta.FindStatusCondition(status.Conditions, "Failed").Reason == string(lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction)
		if changed == test.final || ptr.Deref(status.ObservedGeneration, 0) != 2 {
			t.Errorf("%s: changed: %t, generation %v", name, changed, status.ObservedGeneration)
		}
	}
}

// Attempts are those that the engine has counted.
func TestShowImperative(t *testing.T) {
	for name, test := range map[string]struct {
		retries int32
		want    string
	}{
		"not yet": {0, ""},
		"blocked": {3, `"web" pod deletion via the /eviction subresource failed (attempts=3): A budget.`},
	} {
		request, status := requestAt(0, last), &lifecyclev1alpha1.EvictionStatus{}
		request.Status.Interceptors[0].Retries = test.retries
		meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{Type: string(coordinationv1alpha1.EvictionRequestConditionBlocked), Status: metav1.ConditionTrue, Message: "A budget."})
		begin(status, respondersOf(nil), progressOf(&request.Status), epoch)
		showImperative(status, request, newPod(), epoch)
		if got := ptr.Deref(status.Responders[0].Message, ""); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestLastSign(t *testing.T) {
	start, heartbeat := metav1.NewTime(epoch), metav1.NewTime(epoch.Add(time.Minute))
	for _, test := range []struct {
		report lifecyclev1alpha1.ResponderStatus
		want   time.Time
	}{
		{lifecyclev1alpha1.ResponderStatus{}, time.Time{}},
		{lifecyclev1alpha1.ResponderStatus{StartTime: &start}, start.Time},
		{lifecyclev1alpha1.ResponderStatus{StartTime: &start, HeartbeatTime: &heartbeat}, heartbeat.Time},
	} {
		if got := lastSign(&test.report); !got.Equal(test.want) {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// Only a request that stays wants something.
func TestWantedBy(t *testing.T) {
	deleted := func(request *lifecyclev1alpha1.EvictionRequest) { request.DeletionTimestamp = ptr.To(metav1.Now()) }
	got := wantedBy([]*lifecyclev1alpha1.EvictionRequest{asks("a", "a/stays"), asks("b", "b/withdrawn", withdrawn), asks("c", "c/deleted", deleted)})
	if !got.Equal(sets.New("a/stays")) {
		t.Errorf("wanted by %v", sets.List(got))
	}
}

// Labels have no more names than the status.
func TestPresentOf(t *testing.T) {
	var requests []*lifecyclev1alpha1.EvictionRequest
	for i := range maxRequesters + 20 {
		requests = append(requests, asks(fmt.Sprint(i), fmt.Sprintf("example.com/r%d", i)))
	}
	if got := presentOf([]lifecyclev1alpha1.Requester{{Name: "example.com/r119"}, {Name: "example.com/gone"}}, requests, nil); len(got) != maxRequesters || got[0].Name != "example.com/r119" {
		t.Errorf("%d names, the first is %s, want %d", len(got), got[0].Name, maxRequesters)
	}
}

func TestParticipantOf(t *testing.T) {
	for name, want := range map[string]string{"example.com/drainer": "example.com/drainer", "drain.example.com": "example.com/drain"} {
		if got := participantOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
