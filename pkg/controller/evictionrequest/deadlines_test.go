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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

func TestTurnDeadline(t *testing.T) {
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    time.Duration
		never   bool

		noTimeoutBefore time.Duration
	}{
		"counts from the activation": {
			request: newRequest(deadlineOf(120), having(targets(first), active(first, 10*time.Second))),
			want:    130 * time.Second,
		},
		"counts from a heartbeat after the activation": {
			request: newRequest(deadlineOf(120), having(targets(first), active(first, 10*time.Second), reporting(alive(first, 11*time.Second, 11*time.Second)))),
			want:    131 * time.Second,
		},
		"counts from the activation when the heartbeat is older": {
			request: newRequest(deadlineOf(120), having(targets(first), active(first, 10*time.Second), reporting(alive(first, 9*time.Second, 9*time.Second)))),
			want:    130 * time.Second,
		},
		"the heartbeat of another interceptor does not count": {
			request: newRequest(deadlineOf(120), having(targets(first, second), active(first, 10*time.Second), reporting(alive(second, 11*time.Second, 11*time.Second)))),
			want:    130 * time.Second,
		},
		"counts from the creation when no activation was recorded": {
			request: newRequest(deadlineOf(120), having(targets(first), active(first, 0), func(status *coordinationv1alpha1.EvictionRequestStatus) {
				status.ActivationTime = nil
			})),
			want: 120 * time.Second,
		},
		"is 20 minutes by default": {
			request: newRequest(having(targets(first), active(first, 0))),
			want:    20 * time.Minute,
		},
		"is postponed after an outage": {
			request:         newRequest(deadlineOf(600), having(targets(first), active(first, 10*time.Second))),
			noTimeoutBefore: 611 * time.Second,
			want:            611 * time.Second,
		},
		"is not postponed by an earlier outage": {
			request:         newRequest(deadlineOf(600), having(targets(first), active(first, 10*time.Second))),
			noTimeoutBefore: 609 * time.Second,
			want:            610 * time.Second,
		},
		"is not postponed for an interceptor that was activated after the outage": {
			request:         newRequest(deadlineOf(120), having(targets(first), active(first, 10*time.Second))),
			noTimeoutBefore: 10*time.Second + timeoutGracePeriod,
			want:            130 * time.Second,
		},
		"is postponed for an interceptor that was activated just before it": {
			request:         newRequest(deadlineOf(120), having(targets(first), active(first, 10*time.Second))),
			noTimeoutBefore: 11*time.Second + timeoutGracePeriod,
			want:            11*time.Second + timeoutGracePeriod,
		},
		"does not exist for the built-in interceptor": {
			request: newRequest(deadlineOf(120), having(targets(), active(builtIn, 0))),
			never:   true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			deadline, limited := turnDeadline(start.Add(test.noTimeoutBefore), test.request, &test.request.Status, newPod())
			if limited == test.never {
				t.Fatalf("limited is %t, want %t", limited, !test.never)
			}
			if limited && !deadline.Equal(start.Add(test.want)) {
				t.Errorf("the deadline is %s after the creation, want %s", deadline.Sub(start), test.want)
			}
		})
	}
}

// TestReportOverdue: a responder, which has 20 minutes, is not expected to report more often than others because the deadline
// of the request is short.
func TestReportOverdue(t *testing.T) {
	request := newRequest(deadlineOf(120), having(targets(first), active(first, 0), reporting(alive(first, time.Second, 60*time.Second))))
	pod := newPod()
	for _, want := range []time.Duration{150 * time.Second, 360 * time.Second} {
		if overdue, expected := reportOverdue(request, &request.Status, pod); !expected || !overdue.Equal(start.Add(want)) {
			t.Errorf("with the responders %v it is overdue after %s (%t), want %s", pod.Spec.EvictionResponders, overdue.Sub(start), expected, want)
		}
		pod.Spec.EvictionResponders = []v1.EvictionResponder{{Name: first}}
	}
}
