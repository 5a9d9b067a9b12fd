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

const silent5m = "kube-controller-manager has not renewed its lease for 5m, so it may not run, and nothing goes on; see renewTime of its lease: kubectl get lease -n kube-system kube-controller-manager -o yaml"

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
			if got := strings.Contains(strings.Join(strings.Fields(out), " "), silent5m); got != tc.want || s.leaseReads() != tc.reads {
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
