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

package maintenance

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// leaseRenewed is the lease of kube-controller-manager.
func leaseRenewed(before time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager"},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: testNow.Add(-before)}},
	}
}

// leaseReads counts the reads of the lease.
func (s *server) leaseReads() int {
	reads := 0
	for _, action := range s.Actions() {
		if action.GetResource().Resource == "leases" {
			reads++
		}
	}
	return reads
}

const (
	silent5m       = "kube-controller-manager has not renewed its lease for 5m, so it may not run, and nothing goes on; see renewTime of its lease: kubectl get lease -n kube-system kube-controller-manager -o yaml"
	silent5mUnsure = "kube-controller-manager has not renewed its lease for 5m, if its clock and that of this command agree, so it may not run, and nothing goes on; see renewTime of its lease: kubectl get lease -n kube-system kube-controller-manager -o yaml"
)

// TestSilentController verifies that status says when kube-controller-manager does not run in the middle of a
// drain: all that it has published looks as before.
func TestSilentController(t *testing.T) {
	draining := newMaintenance("rack", drain, "node-1").started(time.Hour)
	limit := 15*time.Second + controllerPatience
	bare := leaseRenewed(5 * time.Minute)
	bare.Spec.RenewTime = nil
	for _, tc := range []struct {
		name  string
		story maintenanceStory
		lease *coordinationv1.Lease
		want  bool
		reads int
	}{
		{"dead", draining, leaseRenewed(5 * time.Minute), true, 1},
		{"dead while nodes are released", newMaintenance("rack", complete, "node-1").started(time.Hour), leaseRenewed(5 * time.Minute), true, 1},
		{"renewed in time", draining, leaseRenewed(limit - time.Second), false, 1},
		{"its clock is ahead", draining, leaseRenewed(-time.Hour), false, 1},
		{"never renewed", draining, bare, false, 1},
		{"no such lease", draining, nil, false, 1},
		{"drained", newMaintenance("rack", drain, "node-1").started(time.Hour).drained(), leaseRenewed(5 * time.Minute), false, 0},
		{"only announced", newMaintenance("rack", idle, "node-1").started(time.Hour), leaseRenewed(5 * time.Minute), false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stories := []any{tc.story, drainingNode("node-1", 0, 1, "Draining")}
			if tc.lease != nil {
				stories = append(stories, tc.lease)
			}
			s := newServer(t, stories...)
			out := s.mustRun(t, "status")
			if got := strings.Contains(strings.Join(strings.Fields(out), " "), silent5mUnsure); got != tc.want || s.leaseReads() != tc.reads {
				t.Errorf("%d reads:\n%s", s.leaseReads(), out)
			}
			if got := strings.Contains(s.mustRun(t, "status", "-o", "json"), `"controllerSilentSince": "2026-11-21T12:57:25Z"`); got != tc.want {
				t.Errorf("for scripts: %t", got)
			}
		})
	}
}

// TestSilentControllerWithoutRights verifies that a lease that cannot be read is no error, and is not read again.
func TestSilentControllerWithoutRights(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Hour), drainingNode("node-1", 0, 1, "Draining"), leaseRenewed(5*time.Minute))
	s.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "kube-controller-manager", nil)
	})
	if out := s.mustRun(t, "status"); strings.Contains(out, "lease") || s.errOut.Len() > 0 {
		t.Errorf("printed %q and %q", out, s.errOut)
	}
	s.ClearActions()
	looks := 0
	s.clock.looked = func() {
		s.clock.Step(probeInterval)
		if looks++; looks == 20 {
			s.end(nil)
		}
	}
	if out := s.run(t, "watch"); strings.Contains(out, "lease") || s.leaseReads() != 1 {
		t.Errorf("%d reads, printed %q", s.leaseReads(), out)
	}
}

// TestWatchOfSilentController verifies that a watch says it once, until the lease is renewed.
func TestWatchOfSilentController(t *testing.T) {
	s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Hour), drainingNode("node-1", 0, 1, "Draining"), leaseRenewed(0))
	looks := 0
	s.clock.looked = func() {
		s.clock.Step(probeInterval)
		if looks++; strings.Contains(s.out.String(), "has not renewed") || looks == 100 {
			s.end(nil)
		}
	}
	if out := s.run(t, "watch"); strings.Count(out, "  kube-controller-manager has not renewed its lease for ") != 1 || looks < 9 {
		t.Errorf("after %d looks:\n%s", looks, out)
	}
}

// TestSilenceOfOtherClocks verifies that status needs neither the clock of the workstation nor that of the controller if
// the API server says what its own one shows, and how the lease was renewed by it.
func TestSilenceOfOtherClocks(t *testing.T) {
	for _, tc := range []struct {
		name string
		// server and controller are how far these clocks are ahead of the one of the workstation.
		server, controller time.Duration
		// renewed is how long ago it was; written is whether the server has noted it.
		renewed time.Duration
		written bool
		want    string
	}{
		{"it runs, and the workstation is ahead", -time.Hour, -time.Hour, time.Second, true, ""},
		{"it runs, and the workstation is behind", time.Hour, time.Hour, time.Second, true, ""},
		{"it runs, and its clock is behind", 0, -time.Hour, time.Second, true, ""},
		{"it runs, and its clock is ahead", 0, time.Hour, time.Second, true, ""},
		{"dead, and the workstation is ahead", -time.Hour, -time.Hour, 5 * time.Minute, true, silent5m},
		{"dead, and the workstation is behind", time.Hour, time.Hour, 5 * time.Minute, true, silent5m},
		{"dead, and its clock is behind", 0, -time.Hour, 5 * time.Minute, true, silent5m},
		{"dead, and its clock is ahead", 0, time.Hour, 5 * time.Minute, true, silent5m},
		{"nobody has noted it, and the workstation is ahead", -time.Hour, -time.Hour, time.Second, false, ""},
		{"nobody has noted it, and the workstation is behind", time.Hour, time.Hour, 5 * time.Minute, false, silent5mUnsure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lease := leaseRenewed(tc.renewed - tc.controller)
			written := ago(tc.renewed - tc.server)
			lease.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "kubectl-label", Time: ptr.To(ago(-2 * time.Hour)), FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:a":{}}}}`)}},
				{Manager: "kube-controller-manager", Time: &written, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`)}},
			}
			if !tc.written {
				lease.ManagedFields = nil
			}
			s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Hour), drainingNode("node-1", 0, 1, "Draining"), lease)
			s.environment.server = &serverTime{clock: s.clock}
			s.environment.server.ahead.Store(&tc.server)
			out := strings.Join(strings.Fields(s.mustRun(t, "status")), " ")
			if got := strings.Contains(out, "has not renewed"); got != (tc.want != "") || !strings.Contains(out, tc.want) {
				t.Errorf("want %q in:\n%s", tc.want, out)
			}
		})
	}
}

// transportFunc answers requests.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestServerTime(t *testing.T) {
	own := testNow
	server := &serverTime{clock: newServer(t).clock}
	answer := func(date string, err error) {
		t.Helper()
		transport := server.observe(transportFunc(func(*http.Request) (*http.Response, error) {
			if err != nil {
				return nil, err
			}
			return &http.Response{Header: http.Header{"Date": []string{date}}}, nil
		}))
		if _, got := transport.RoundTrip(&http.Request{}); !errors.Is(got, err) {
			t.Errorf("got error %v, want %v", got, err)
		}
	}
	check := func(want time.Time, wantKnown bool) {
		t.Helper()
		if got, known := server.now(own); !got.Equal(want) || known != wantKnown {
			t.Errorf("got %s, %t, want %s, %t", got, known, want, wantKnown)
		}
	}
	check(own, false)
	answer("", nil)
	answer("", errors.New("connection refused"))
	check(own, false)
	answer("Sat, 21 Nov 2026 12:02:25 GMT", nil)
	check(own.Add(-time.Hour), true)
	own = own.Add(time.Minute)
	check(own.Add(-time.Hour), true)
	answer("", nil)
	check(own.Add(-time.Hour), true)
	answer("Sat, 21 Nov 2026 14:02:25 GMT", nil)
	check(own.Add(time.Hour), true)
	if now, known := (*serverTime)(nil).now(own); known || now != own {
		t.Errorf("without a server: %s, %t", now, known)
	}
}

// TestWatchByOtherClocks verifies that a watch takes a lease that changes for renewed, and one that does not for
// silence, whatever the clock of kube-controller-manager shows.
func TestWatchByOtherClocks(t *testing.T) {
	for name, behind := range map[string]time.Duration{"the workstation is ahead": time.Hour, "the workstation is behind": -time.Hour, "they agree": 0} {
		t.Run(name, func(t *testing.T) {
			for _, runs := range []bool{true, false} {
				s := newServer(t, newMaintenance("rack", drain, "node-1").started(time.Hour), drainingNode("node-1", 0, 1, "Draining"), leaseRenewed(behind))
				if runs {
					s.renewLease(behind)
				}
				looks := 0
				s.clock.looked = func() {
					s.clock.Step(probeInterval)
					if looks++; looks == 1000 || s.leaseReads() == 30 || !runs && strings.Contains(s.out.String(), "has not renewed") {
						s.end(context.DeadlineExceeded)
					}
				}
				out, wantCode := s.run(t, "watch", "rack"), exitTimedOut
				if !runs {
					wantCode = exitBlocked
				}
				if got := strings.Contains(out, "has not renewed"); got == runs || s.code != wantCode || s.leaseReads() < 6 {
					t.Errorf("it runs: %t: exit code %d after %d reads:\n%s", runs, s.code, s.leaseReads(), out)
				}
			}
		})
	}
}

// renewLease renews the lease before each read.
func (s *server) renewLease(behind time.Duration) {
	s.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		lease := leaseRenewed(behind)
		lease.Spec.RenewTime.Time = s.clock.Now().Add(-behind)
		return true, lease, nil
	})
}

// TestLeaseWatch verifies that the time counts in which nothing of the lease has changed, and that what nobody has
// seen does not.
func TestLeaseWatch(t *testing.T) {
	w, now := leaseWatch{}, testNow
	look := func(after time.Duration, lease *coordinationv1.Lease, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		got := time.Duration(0)
		if silent := w.see(lease, now); silent != nil {
			got = now.Sub(silent.since)
		}
		if got != want {
			t.Errorf("silent for %s, want %s", got, want)
		}
	}
	lease, other, taken, bare := leaseRenewed(time.Hour), leaseRenewed(2*time.Hour), leaseRenewed(2*time.Hour), leaseRenewed(0)
	taken.Spec.HolderIdentity = ptr.To("another")
	bare.Spec.RenewTime = nil
	limit := silencePatience(lease)
	look(0, lease, 0)
	for range 8 {
		look(probeInterval, lease.DeepCopy(), 0)
	}
	look(probeInterval, lease, limit)
	look(probeInterval, lease, limit+probeInterval)
	// The API server did not answer, or the computer slept.
	look(time.Hour, lease, limit+probeInterval+maxLeaseGap)
	look(probeInterval, other, 0)
	look(time.Hour, other, 0)
	look(maxLeaseGap, other, 0)
	look(maxLeaseGap, other, 0)
	look(maxLeaseGap, taken, 0)
	for range 4 {
		look(maxLeaseGap, taken, 0)
	}
	look(probeInterval, bare, 0)
	look(probeInterval, taken, 0)
	look(maxLeaseGap, taken, 0)
}
