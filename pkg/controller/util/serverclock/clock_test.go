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

package serverclock

import (
	"errors"
	"net/http"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func TestObserve(t *testing.T) {
	local := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		stamp      time.Duration // Offset from the start of the call.
		lasted     time.Duration
		wantOffset time.Duration
	}{
		"in step":                       {stamp: -time.Second},
		"as far ahead as is tolerated":  {stamp: 10 * time.Second},
		"further ahead":                 {stamp: 11 * time.Second, wantOffset: 11 * time.Second},
		"as far behind as is tolerated": {stamp: -10 * time.Second},
		"further behind":                {stamp: -11 * time.Second, wantOffset: -11 * time.Second},
		"a slow call":                   {stamp: 30 * time.Second, lasted: 30 * time.Second},
		"a slow call, stamped early":    {lasted: 30 * time.Second},
		"a slow call, and ahead":        {stamp: 45 * time.Second, lasted: 30 * time.Second, wantOffset: 15 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clock := New(testingclock.NewFakeClock(local))
			clock.Observe(local.Add(time.Hour), local, local)
			clock.Observe(local.Add(test.stamp), local, local.Add(test.lasted))
			if got := clock.Now().Sub(local); got != test.wantOffset {
				t.Errorf("offset %s, want %s", got, test.wantOffset)
			}
			if got := clock.Since(local); got != test.wantOffset {
				t.Errorf("since: %s, want %s", got, test.wantOffset)
			}
		})
	}
}

// A difference at the limit of what is tolerated must not have the clock jump with each answer.
func TestObserveDoesNotFlap(t *testing.T) {
	local := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	clock := New(testingclock.NewFakeClock(local))
	for _, ahead := range []time.Duration{11 * time.Second, 10 * time.Second, 11 * time.Second, 5 * time.Second} {
		clock.Observe(local.Add(ahead), local, local)
		if got := clock.Now().Sub(local); got != 11*time.Second {
			t.Errorf("%s ahead: offset %s", ahead, got)
		}
	}
}

// If the local clock is set, times from before are comparable with those after the next answer: they have no reading
// of the monotonic clock, which the offset would move.
func TestNowHasNoMonotonicReading(t *testing.T) {
	now := New(clock.RealClock{}).Now()
	if now != now.Round(0) {
		t.Errorf("%s has one", now)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransport checks which answers say what time it is.
func TestTransport(t *testing.T) {
	local := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(ahead time.Duration) string { return local.Add(ahead).Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		header http.Header
		err    error
		want   time.Duration
	}{
		"of kube-apiserver":        {header: http.Header{"Date": {at(2 * time.Hour)}, "Audit-Id": {"1"}}, want: 2 * time.Hour},
		"behind":                   {header: http.Header{"Date": {at(-2 * time.Hour)}, "Audit-Id": {"1"}}, want: -2 * time.Hour},
		"of a proxy":               {header: http.Header{"Date": {at(2 * time.Hour)}}},
		"without a time":           {header: http.Header{"Audit-Id": {"1"}}},
		"with an unreadable one":   {header: http.Header{"Date": {"noon"}, "Audit-Id": {"1"}}},
		"the connection is broken": {err: errors.New("broken")},
	} {
		t.Run(name, func(t *testing.T) {
			fake := testingclock.NewFakeClock(local)
			clock := New(fake)
			wrapped := clock.Transport(transport(func(*http.Request) (*http.Response, error) {
				if test.err != nil {
					return nil, test.err
				}
				return &http.Response{Header: test.header}, nil
			}))
			request, err := http.NewRequest(http.MethodGet, "https://localhost", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := wrapped.RoundTrip(request); !errors.Is(err, test.err) {
				t.Errorf("error %v", err)
			}
			if got := clock.Now().Sub(local); got != test.want {
				t.Errorf("offset %s, want %s", got, test.want)
			}
			if _, ok := wrapped.(utilnet.RoundTripperWrapper); !ok {
				t.Error("it hides the transport")
			}
		})
	}
}
