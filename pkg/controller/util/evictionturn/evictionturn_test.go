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

package evictionturn

import (
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const own = "own.example.com"

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(minutes float64) *metav1.Time {
	return &metav1.Time{Time: now.Add(time.Duration(minutes * float64(time.Minute)))}
}

// newRequest returns a request with a report of another interceptor, and this entry.
func newRequest(activated *metav1.Time, entry coordinationv1alpha1.InterceptorStatus) *coordinationv1alpha1.EvictionRequest {
	entry.Name = own
	other := coordinationv1alpha1.InterceptorStatus{Name: "other.example.com", StartTime: at(-90), HeartbeatTime: at(-80), ExpectedFinishTime: at(70)}
	return &coordinationv1alpha1.EvictionRequest{Status: coordinationv1alpha1.EvictionRequestStatus{
		ActivationTime: activated, Interceptors: []coordinationv1alpha1.InterceptorStatus{other, entry},
	}}
}

func TestReading(t *testing.T) {
	type entry = coordinationv1alpha1.InterceptorStatus
	tests := map[string]struct {
		activated              *metav1.Time
		entry                  entry
		began, heartbeat, etas *metav1.Time
	}{
		"nothing yet":                 {began: at(0)},
		"activated":                   {activated: at(-5), began: at(-5)},
		"activated in the future":     {activated: at(1), began: at(0)},
		"reported":                    {activated: at(-5), entry: entry{StartTime: at(-4), HeartbeatTime: at(-1)}, began: at(-4), heartbeat: at(-1)},
		"reported once":               {activated: at(-5), entry: entry{StartTime: at(-4)}, began: at(-4), heartbeat: at(-4)},
		"with an ETA":                 {activated: at(-5), entry: entry{StartTime: at(-4), HeartbeatTime: at(-1), ExpectedFinishTime: at(60)}, began: at(-4), heartbeat: at(-1), etas: at(60)},
		"with an ETA that has passed": {activated: at(-5), entry: entry{StartTime: at(-4), HeartbeatTime: at(-1), ExpectedFinishTime: at(-2)}, began: at(-4), heartbeat: at(-1), etas: at(-2)},
		"reported now":                {activated: at(-5), entry: entry{StartTime: at(0)}, began: at(0), heartbeat: at(0)},
		"a heartbeat in the future":   {activated: at(-5), entry: entry{StartTime: at(-4), HeartbeatTime: at(1)}, began: at(-4), heartbeat: at(0)},
		"all reports in the future":   {activated: at(-5), entry: entry{StartTime: at(1), HeartbeatTime: at(1)}, began: at(-5), heartbeat: at(0)},
		"all times are in the future": {activated: at(1), entry: entry{StartTime: at(1), HeartbeatTime: at(1)}, began: at(0), heartbeat: at(0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := newRequest(tc.activated, tc.entry)
			if got := Began(request, own, now); !got.Equal(tc.began.Time) {
				t.Errorf("began at %v, want %v", got, tc.began)
			}
			want := History{Taken: now}
			if tc.heartbeat != nil {
				want.Heartbeat = tc.heartbeat.Time
			}
			if tc.etas != nil {
				want.ETA = tc.etas.Time
			}
			if got := HistoryOf(request, own, now); got != want {
				t.Errorf("got history %v, want %v", got, want)
			}
		})
	}
	if got, want := HistoryOf(&coordinationv1alpha1.EvictionRequest{}, own, now), (History{Taken: now}); got != want {
		t.Errorf("got history %v without an entry, want %v", got, want)
	}
}

// The timeout is 10 minutes, and the last progress was an hour ago.
func TestWaitsSince(t *testing.T) {
	const timeout = 10 * time.Minute
	base := *at(-60)
	tests := map[string]struct {
		heartbeat, etas *metav1.Time
		taken           *metav1.Time
		want            *metav1.Time
		wantETA         *metav1.Time
	}{
		"taken before the progress":       {taken: at(-60), heartbeat: at(-70), want: at(-60)},
		"no earlier process":              {taken: at(-59.5), want: at(-59.5)},
		"no outage":                       {taken: at(-20), heartbeat: at(-20), want: at(-60)},
		"between two heartbeats":          {taken: at(-20), heartbeat: at(-21), want: at(-60)},
		"an outage":                       {taken: at(-20), heartbeat: at(-55), want: at(-60 + 34), wantETA: at(-60 + 34 + 10)},
		"an outage before":                {taken: at(-20), heartbeat: at(-20), etas: at(-15), want: at(-25), wantETA: at(-15)},
		"two outages":                     {taken: at(0), heartbeat: at(-20), etas: at(-15), want: at(-25 + 19), wantETA: at(-25 + 19 + 10)},
		"progress after the last ETA":     {taken: at(-20), heartbeat: at(-20), etas: at(-55), want: at(-60)},
		"progress during the outage":      {taken: at(-20), heartbeat: at(-80), want: at(-20), wantETA: at(-10)},
		"the ETA of a longer timeout":     {taken: at(-10), heartbeat: at(-20), etas: at(30), want: at(-10), wantETA: at(0)},
		"a report that is long out of it": {taken: at(-60), heartbeat: at(-20), etas: at(30), want: at(-60)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			history := History{Taken: tc.taken.Time}
			if tc.heartbeat != nil {
				history.Heartbeat = tc.heartbeat.Time
			}
			if tc.etas != nil {
				history.ETA = tc.etas.Time
			}
			wantETA := time.Time{}
			if tc.wantETA != nil {
				wantETA = tc.wantETA.Time
			}
			since, eta := history.WaitsSince(base.Time, timeout)
			if !since.Equal(tc.want.Time) || !eta.Equal(wantETA) {
				t.Errorf("got %v and the ETA %v, want %v and %v", since, eta, tc.want, wantETA)
			}
		})
	}
}
