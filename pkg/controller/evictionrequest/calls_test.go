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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
)

// calledAt adds the requester that stands for all callers of pods/eviction, with the time of the
// last call.
func calledAt(offset time.Duration) func(*coordinationv1alpha1.EvictionRequest) {
	return called(at(offset).Format(time.RFC3339))
}

func called(when string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: "eviction.k8s.io"})
		request.Annotations = map[string]string{"coordination.k8s.io/eviction-call-time": when}
	}
}

// repeat is the annotation of requests whose callers call every few seconds.
const repeat = "coordination.k8s.io/eviction-calls-repeat"

// noted is a request with an annotation; "" is one without it.
func noted(name, value string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		if request.Annotations[name] = value; value == "" {
			delete(request.Annotations, name)
		}
	}
}

// repeatedly is a request for which kubectl drain calls every few seconds, as kube-apiserver says.
func repeatedly(request *coordinationv1alpha1.EvictionRequest) {
	noted(repeat, "true")(request)
	noted("coordination.k8s.io/eviction-call-cordon", "node-uid/10")(request)
}

// schedulable is a request whose callers have called while the node was schedulable.
var schedulable = noted("coordination.k8s.io/eviction-call-cordon", "")

func TestCallsExpireAt(t *testing.T) {
	const minute = time.Minute
	tests := map[string]struct {
		now, noTimeoutBefore time.Duration
		request              *coordinationv1alpha1.EvictionRequest
		// seen is when the last call was seen.
		seen time.Duration
		want time.Duration
	}{
		"called at creation":                    {request: newRequest(calledAt(0)), want: 15 * minute},
		"called later":                          {now: 20 * minute, request: newRequest(calledAt(10 * minute)), want: 25 * minute},
		"the time was removed":                  {now: 20 * minute, request: newRequest(called("")), want: 15 * minute},
		"the time is no time":                   {now: 20 * minute, request: newRequest(called("soon")), want: 15 * minute},
		"the clock of the server is ahead":      {now: 20 * minute, request: newRequest(calledAt(20*minute + 11*time.Second)), want: 35*minute + 11*time.Second},
		"it is far ahead":                       {now: 20 * minute, request: newRequest(calledAt(35 * minute)), want: 50 * minute},
		"a time in the future":                  {now: minute, request: newRequest(calledAt(16*minute + time.Second)), want: 15 * minute},
		"after an outage":                       {now: 20 * minute, noTimeoutBefore: 25 * minute, request: newRequest(calledAt(0)), want: 25 * minute},
		"called after an outage":                {now: 20 * minute, noTimeoutBefore: 25 * minute, request: newRequest(calledAt(19 * minute)), want: 34 * minute},
		"the interceptor works for a long time": {now: 90 * minute, request: newRequest(calledAt(0), having(targets(first), active(first, 0))), want: 15 * minute},
		"every few seconds":                     {now: minute, seen: minute, request: newRequest(calledAt(0), repeatedly), want: 4 * minute},
		"by a server whose clock is behind":     {now: minute, seen: minute, request: newRequest(calledAt(-10*minute), repeatedly), want: 4 * minute},
		"by one whose clock is far behind":      {now: minute, seen: minute, request: newRequest(calledAt(-14*minute), repeatedly), want: minute},
		"every few seconds, after an outage":    {now: 20 * minute, seen: minute, noTimeoutBefore: 25 * minute, request: newRequest(calledAt(20*minute), repeatedly), want: 25 * minute},
		"on a node that is not cordoned":        {now: minute, request: newRequest(calledAt(0), repeatedly, schedulable), want: 15 * minute},
		"anything else about repetition":        {now: minute, request: newRequest(calledAt(0), repeatedly, noted(repeat, "soon")), want: 15 * minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expiry := callsExpireAt(start.Add(test.now), start.Add(test.noTimeoutBefore), start.Add(test.seen), test.request)
			if want := start.Add(test.want); !expiry.Equal(want) {
				t.Errorf("got %v, want %v", expiry, want)
			}
		})
	}
}

// withdrawal is the patch that leaves these requesters.
func withdrawal(requesters string, request *coordinationv1alpha1.EvictionRequest) string {
	patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":"/metadata/generation","value":%d},{"op":"replace","path":"/spec/requesters","value":%s}`,
		request.UID, request.Generation, requesters)
	for _, name := range []string{"eviction-call-cordon", "eviction-call-time", "eviction-calls-repeat"} {
		if value, has := request.Annotations["coordination.k8s.io/"+name]; has {
			path := "/metadata/annotations/coordination.k8s.io~1" + name
			patch += fmt.Sprintf(`,{"op":"test","path":%q,"value":%q},{"op":"remove","path":%q}`, path, value, path)
		}
	}
	return patch + "]"
}

// One sync withdraws the callers, cancels the request and says so. The patch must not apply to a
// request that has been called for since.
func TestSyncExpiresCalls(t *testing.T) {
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		after   time.Duration
		// wantPatch are the requesters that the patch leaves, if there is one.
		wantPatch    string
		wantCanceled bool
		wantWait     time.Duration
		wantEvents   []string
	}{
		"calls that count": {
			request: newRequest(version("17"), withoutRequesters, calledAt(0), having(targets(), active(builtIn, 0))), after: 14 * time.Minute,
			wantWait: time.Minute,
		},
		"calls that have expired": {
			request: newRequest(version("17"), withoutRequesters, calledAt(0), having(targets(), active(builtIn, 0))), after: 15 * time.Minute,
			wantPatch:    `[]`,
			wantCanceled: true, wantEvents: []string{"EvictionCallsExpired", "EvictionCanceled", "EvictionCanceled"},
		},
		"others are left": {
			request: newRequest(version("17"), calledAt(0), having(targets(), active(builtIn, 0))), after: 15 * time.Minute,
			wantPatch:  `[{"name":"drain.example.com"}]`,
			wantEvents: []string{"EvictionCallsExpired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The labels of the pod are not copied, which would be another patch.
			f := newFixture(t, test.request, newPod(func(pod *v1.Pod) { pod.Labels = nil }))
			f.clock.SetTime(start.Add(test.after))
			_, ctx := ktesting.NewTestContext(t)
			if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
				t.Fatalf("syncing: %v", err)
			}
			var patch string
			for _, action := range f.client.Actions() {
				if action, patches := action.(clienttesting.PatchAction); patches {
					patch += string(action.GetPatch())
				}
			}
			if test.wantPatch != "" {
				test.wantPatch = withdrawal(test.wantPatch, test.request)
			}
			if diff := cmp.Diff(test.wantPatch, patch); diff != "" {
				t.Errorf("unexpected patch (-want, +got):\n%s", diff)
			}
			canceled := false
			for _, status := range f.writes(t) {
				canceled = len(status.Conditions) > 0 && status.Conditions[0].Type == "Canceled"
			}
			if canceled != test.wantCanceled {
				t.Errorf("canceled is %t, want %t", canceled, test.wantCanceled)
			}
			var events []string
			for _, event := range f.events {
				events = append(events, event.Reason)
				if event.Reason == "EvictionCallsExpired" && !strings.HasSuffix(event.Note, " for 15m0s.") {
					t.Errorf("got the event %q", event.Note)
				}
			}
			if diff := cmp.Diff(test.wantEvents, events); diff != "" {
				t.Errorf("unexpected events (-want, +got):\n%s", diff)
			}
			if got := f.decisions.waits(requestKeyOfPod); got != test.wantWait {
				t.Errorf("the next sync is after %v, want %v", got, test.wantWait)
			}
		})
	}
}

// A webhook that refuses to withdraw the callers must not keep the request from advancing.
func TestSyncContinuesIfCallsCannotBeWithdrawn(t *testing.T) {
	f := newFixture(t, newRequest(withoutRequesters, calledAt(0)), newPod(func(pod *v1.Pod) { pod.Labels = nil }))
	f.client.PrependReactor("patch", "evictionrequests", answering(errUnreachable))
	f.clock.SetTime(start.Add(callTTL))
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err == nil {
		t.Error("got no error, so that nothing tries again")
	}
	if writes := f.writes(t); len(writes) != 1 || len(writes[0].ActiveInterceptors) != 1 {
		t.Errorf("got the writes %v, want that an interceptor is activated", writes)
	}
}

// calledOnCordoned adds the requester that stands for all callers of pods/eviction, who called while the
// node with this UID was unschedulable, in this version.
func calledOnCordoned(node string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		calledAt(0)(request)
		request.Annotations["coordination.k8s.io/eviction-call-cordon"] = node
	}
}

func onNode(pod *v1.Pod) { pod.Labels, pod.Spec.NodeName = nil, "node-1" }

func newNode(unschedulable bool, version string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "node-uid", ResourceVersion: version},
		Spec:       v1.NodeSpec{Unschedulable: unschedulable},
	}
}

// A drain is given up when its node is uncordoned. Evictions from schedulable nodes are not, and no stale
// cache withdraws a drain that has just begun.
func TestSyncWithdrawsCallsOfUncordonedNode(t *testing.T) {
	const cordoned = "node-uid/20"
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		node    *v1.Node
		want    bool
	}{
		"still cordoned":              {request: newRequest(calledOnCordoned(cordoned)), node: newNode(true, "30")},
		"uncordoned":                  {request: newRequest(calledOnCordoned(cordoned)), node: newNode(false, "30"), want: true},
		"not cordoned yet":            {request: newRequest(calledOnCordoned(cordoned)), node: newNode(false, "10")},
		"the version itself":          {request: newRequest(calledOnCordoned(cordoned)), node: newNode(false, "20")},
		"more digits":                 {request: newRequest(calledOnCordoned("node-uid/9")), node: newNode(false, "10"), want: true},
		"never cordoned":              {request: newRequest(calledAt(0)), node: newNode(false, "30")},
		"another node of that name":   {request: newRequest(calledOnCordoned("another/20")), node: newNode(false, "30")},
		"no node":                     {request: newRequest(calledOnCordoned(cordoned))},
		"no version":                  {request: newRequest(calledOnCordoned("node-uid")), node: newNode(false, "30")},
		"no number":                   {request: newRequest(calledOnCordoned("node-uid/x")), node: newNode(false, "30")},
		"not requested by any caller": {request: newRequest(calledOnCordoned(cordoned), withoutRequesters), node: newNode(false, "30")},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{test.request, newPod(onNode)}
			if test.node != nil {
				objects = append(objects, test.node)
			}
			f := newFixture(t, objects...)
			_, ctx := ktesting.NewTestContext(t)
			if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
				t.Fatalf("syncing: %v", err)
			}
			var patches, events []string
			for _, action := range f.client.Actions() {
				if action, isPatch := action.(clienttesting.PatchAction); isPatch {
					patches = append(patches, string(action.GetPatch()))
				}
			}
			for _, event := range f.events {
				if event.Reason == "NodeUncordoned" || event.Reason == "EvictionCallsExpired" {
					events = append(events, event.Reason+": "+event.Note)
				}
			}
			var wantPatches, wantEvents []string
			if test.want {
				wantPatches = []string{withdrawal(`[{"name":"drain.example.com"}]`, test.request)}
				wantEvents = []string{"NodeUncordoned: Withdrew requester eviction.k8s.io: node node-1 was cordoned when pods/eviction was called, and is schedulable again."}
			}
			if diff := cmp.Diff(wantPatches, patches); diff != "" {
				t.Errorf("unexpected patches (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantEvents, events); diff != "" {
				t.Errorf("unexpected events (-want, +got):\n%s", diff)
			}
		})
	}
}

// Only an uncordon enqueues requests, and only those whose pods were evicted from that node while it was
// cordoned.
func TestUncordonEnqueuesRequests(t *testing.T) {
	other := newRequest(calledOnCordoned("another/20"))
	other.Name = "other"
	uncalled := newRequest()
	uncalled.Name = "uncalled"
	for name, test := range map[string]struct {
		before, after *v1.Node
		want          []types.NamespacedName
	}{
		"uncordoned":                       {before: newNode(true, "20"), after: newNode(false, "30"), want: []types.NamespacedName{requestKeyOfPod}},
		"cordoned":                         {before: newNode(false, "10"), after: newNode(true, "20")},
		"a heartbeat":                      {before: newNode(false, "30"), after: newNode(false, "40")},
		"a heartbeat while it is cordoned": {before: newNode(true, "20"), after: newNode(true, "30")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(calledOnCordoned("node-uid/20")), other, uncalled, newPod(onNode), test.before)
			f.sendUpdate(t, test.after)
			if diff := cmp.Diff(test.want, f.decisions.taken()); diff != "" {
				t.Errorf("unexpected requests (-want, +got):\n%s", diff)
			}
		})
	}
}

// Callers that call every few seconds have given up when they have not called for some of them, counted from when this
// process has seen their last call.
func TestSyncExpiresRepeatedCalls(t *testing.T) {
	request := newRequest(version("17"), withoutRequesters, calledAt(0), repeatedly, having(targets(), active(builtIn, 0)))
	f := newFixture(t, request, newPod(func(pod *v1.Pod) { pod.Labels = nil }))
	_, ctx := ktesting.NewTestContext(t)
	var got []string
	sync := func(after time.Duration) {
		t.Helper()
		f.clock.SetTime(start.Add(after))
		if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
			t.Fatal(err)
		}
		withdrawn := false
		for _, action := range f.client.Actions() {
			withdrawn = withdrawn || action.GetVerb() == "patch"
		}
		got = append(got, fmt.Sprintf("%v: %t", after, withdrawn))
	}
	sync(time.Minute)
	sync(3 * time.Minute)
	again := newRequest(version("18"), withoutRequesters, calledAt(3*time.Minute), repeatedly, having(targets(), active(builtIn, 0)))
	f.addToCache(t, again)
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(again.Namespace).Update(ctx, again, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	sync(3*time.Minute + 10*time.Second)
	sync(6*time.Minute + 9*time.Second)
	sync(6*time.Minute + 10*time.Second)
	want := []string{"1m0s: false", "3m0s: false", "3m10s: false", "6m9s: false", "6m10s: true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected withdrawals (-want, +got):\n%s", diff)
	}
	if len(f.calls.last) > 0 {
		t.Errorf("calls are kept of %v", f.calls.last)
	}
	if note := "Withdrew requester eviction.k8s.io: pods/eviction was not called for 3m0s."; f.events[0].Note != note {
		t.Errorf("got the event %q, want %q", f.events[0].Note, note)
	}
}

// When a call was seen is no time ahead: a clock that was set back would keep callers that have given up.
func TestCallsSeen(t *testing.T) {
	seen, request := newCallsSeen(), newRequest(calledAt(0))
	for _, test := range []struct {
		name      string
		request   *coordinationv1alpha1.EvictionRequest
		now, want time.Duration
	}{
		{name: "for the first time", request: request, now: time.Minute, want: time.Minute},
		{name: "again", request: request, now: 2 * time.Minute, want: time.Minute},
		{name: "the clock was set back", request: request, now: 30 * time.Second, want: 30 * time.Second},
		{name: "another call", request: newRequest(calledAt(time.Minute)), now: 3 * time.Minute, want: 3 * time.Minute},
	} {
		if got := seen.see(test.request, start.Add(test.now)).Sub(start); got != test.want {
			t.Errorf("%s: seen at %v, want %v", test.name, got, test.want)
		}
	}
}

// Callers that have given up are withdrawn as soon as that is possible. It does not take another three minutes.
func TestRepeatedCallsThatCannotBeWithdrawn(t *testing.T) {
	f := newFixture(t, newRequest(version("17"), withoutRequesters, calledAt(0), repeatedly, having(targets(), active(builtIn, 0))), newPod(func(pod *v1.Pod) { pod.Labels = nil }))
	f.client.PrependReactor("patch", "evictionrequests", answering(errUnreachable))
	_, ctx := ktesting.NewTestContext(t)
	for _, after := range []time.Duration{0, 3 * time.Minute, 3*time.Minute + time.Second} {
		f.clock.SetTime(start.Add(after))
		if err := f.syncRequest(ctx, requestKeyOfPod); (err != nil) != (after > 0) {
			t.Errorf("%v after the call: got error %v, want one: %t", after, err, after > 0)
		}
	}
}

// Nothing is kept of the calls for a pod that others still request to leave, when somebody has withdrawn the
// callers.
func TestWithdrawnCallsAreForgotten(t *testing.T) {
	f := newFixture(t, newRequest(calledAt(0)), newPod(onNode))
	_, ctx := ktesting.NewTestContext(t)
	sync := func(want int) {
		t.Helper()
		if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
			t.Fatal(err)
		}
		if got := len(f.calls.last); got != want {
			t.Errorf("calls are kept for %d requests, want %d", got, want)
		}
	}
	sync(1)
	f.addToCache(t, newRequest())
	sync(0)
}
