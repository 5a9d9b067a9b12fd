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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// endedRequest returns a request with a final condition since then, for a pod with these interceptors.
func endedRequest(since time.Time, conditionType, reason string, interceptors ...string) *coordination.EvictionRequest {
	request := newRequest()
	request.Status.Conditions = []metav1.Condition{{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Time{Time: since}}}
	for _, name := range append(interceptors, "imperative-eviction.k8s.io") {
		request.Status.TargetInterceptors = append(request.Status.TargetInterceptors, coordination.Interceptor{Name: name})
	}
	return request
}

// TestMaxFinished: however many requests finish, a bounded number is kept, and each at least for a minute.
func TestMaxFinished(t *testing.T) {
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		// One request finishes in each interval.
		interval time.Duration
		number   int
		max      int
		// The last one is kept for that long, and that many are kept at a time at most.
		want  time.Duration
		peak  int
		other *coordination.EvictionRequest
	}{
		"few":                        {interval: 10 * time.Second, number: 100, max: 100, want: 10 * time.Minute, peak: 60},
		"as many as allowed":         {interval: time.Second, number: 600, max: 600, want: 10 * time.Minute, peak: 600},
		"twice as many":              {interval: time.Second, number: 2000, max: 300, want: 5 * time.Minute, peak: 600},
		"a burst":                    {interval: time.Millisecond, number: 2000, max: 300, want: time.Minute, peak: 2000},
		"a burst that goes on":       {interval: 50 * time.Millisecond, number: 4000, max: 300, want: time.Minute, peak: 300 + 1200},
		"no limit":                   {interval: time.Millisecond, number: 2000, want: 10 * time.Minute, peak: 2000},
		"others do not count":        {interval: time.Millisecond, number: 2000, max: 300, want: 10 * time.Minute, peak: 2000, other: endedRequest(start, "Evicted", "PodDeleted", "statefulset.apps.k8s.io")},
		"what cannot be carried out": {interval: time.Millisecond, number: 2000, max: 300, want: 10 * time.Minute, peak: 2000, other: endedRequest(start, "Canceled", "ValidationFailed")},
		"of Deployments":             {interval: time.Millisecond, number: 2000, max: 300, want: time.Minute, peak: 2000, other: endedRequest(start, "Evicted", "PodDeleted", "deployment.apps.k8s.io", "replicaset.apps.k8s.io")},
		"canceled ones":              {interval: time.Millisecond, number: 2000, max: 300, want: time.Minute, peak: 2000, other: endedRequest(start, "Canceled", "NoRequesters")},
	} {
		t.Run(name, func(t *testing.T) {
			clock := atTime(t, start)
			expiry := NewExpiry(Retention{TTL: 10 * time.Minute, MaxFinished: test.max})
			var kept []time.Time
			last, peak := time.Duration(0), 0
			for range test.number {
				now := clock.Now()
				request := endedRequest(now, "Evicted", "PodDeleted")
				if test.other != nil {
					request = test.other.DeepCopy()
					request.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: now}
				}
				seconds, err := expiry.TTL(request, 0, true)
				if err != nil {
					t.Fatal(err)
				}
				expiry.Finished(request)
				last = time.Duration(seconds) * time.Second
				left := kept[:0]
				for _, until := range kept {
					if until.After(now) {
						left = append(left, until)
					}
				}
				kept = append(left, now.Add(last))
				peak = max(peak, len(kept))
				clock.SetTime(now.Add(test.interval))
			}
			if last != test.want {
				t.Errorf("the last one is kept for %s, want %s", last, test.want)
			}
			if peak > test.peak {
				t.Errorf("%d are kept at a time, want at most %d", peak, test.peak)
			}
		})
	}
}

// TestRequestsThatAreDeleted: a request that goes at once takes no place.
func TestRequestsThatAreDeleted(t *testing.T) {
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	atTime(t, start)
	expiry := NewExpiry(Retention{TTL: 10 * time.Minute, MaxFinished: 1})
	deleted := endedRequest(start, "Canceled", "NoRequesters")
	deleted.DeletionTimestamp = &metav1.Time{Time: start}
	expiry.Finished(deleted)
	expiry.Finished(newRequest())
	if got, err := expiry.TTL(endedRequest(start, "Evicted", "PodDeleted"), 0, true); got != 600 || err != nil {
		t.Errorf("got %d seconds, %v, want 600", got, err)
	}
}
