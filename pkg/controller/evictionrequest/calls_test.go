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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
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

func TestCallsExpireAt(t *testing.T) {
	const minute = time.Minute
	tests := map[string]struct {
		now, noTimeoutBefore time.Duration
		request              *coordinationv1alpha1.EvictionRequest
		want                 time.Duration
		never                bool
	}{
		"other requesters":                      {now: 60 * minute, request: newRequest(), never: true},
		"a time without calls":                  {now: 60 * minute, request: newRequest(calledAt(0), withoutRequesters), never: true},
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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expiry, expires := callsExpireAt(start.Add(test.now), start.Add(test.noTimeoutBefore), test.request)
			if expires == test.never {
				t.Fatalf("got expires %t, want %t", expires, !test.never)
			}
			if want := start.Add(test.want); expires && !expiry.Equal(want) {
				t.Errorf("got %v, want %v", expiry, want)
			}
		})
	}
}

// One sync withdraws the callers, cancels the request and says so. The patch must not apply to a
// request that has been called for since.
func TestSyncExpiresCalls(t *testing.T) {
	for name, test := range map[string]struct {
		request      *coordinationv1alpha1.EvictionRequest
		after        time.Duration
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
			wantPatch:    `{"metadata":{"annotations":{"coordination.k8s.io/eviction-call-time":null},"resourceVersion":"17","uid":"` + string(requestUID) + `"},"spec":{"requesters":[]}}`,
			wantCanceled: true, wantWait: safetyInterval, wantEvents: []string{"EvictionCallsExpired", "EvictionCanceled", "EvictionCanceled"},
		},
		"others are left": {
			request: newRequest(version("17"), calledAt(0), having(targets(), active(builtIn, 0))), after: 15 * time.Minute,
			wantPatch: `{"metadata":{"annotations":{"coordination.k8s.io/eviction-call-time":null},"resourceVersion":"17","uid":"` + string(requestUID) + `"},"spec":{"requesters":[{"name":"drain.example.com"}]}}`,
			wantWait:  safetyInterval, wantEvents: []string{"EvictionCallsExpired"},
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
