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

package rollout

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// countingStore stores nothing, and counts the writes.
type countingStore struct {
	// lock is held while they are changed: writes are made in parallel.
	lock              sync.Mutex
	written, admitted int
}

func (s *countingStore) ListBudgets(context.Context) ([]coordinationv1alpha1.NodeMaintenanceBudget, error) {
	return nil, nil
}

func (s *countingStore) WriteBudget(context.Context, *coordinationv1alpha1.NodeMaintenanceBudget) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.written++
	return nil
}

func (s *countingStore) WriteMaintenance(context.Context, *coordinationv1alpha1.NodeMaintenance) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.written++
	return nil
}

func (s *countingStore) Admit(context.Context, *v1.Node, []v1.MaintenanceAdmission, time.Time) (bool, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.admitted++
	return true, nil
}

func (s *countingStore) NodesVersion() string { return "" }

func (s *countingStore) GetNode(_ context.Context, name string) (*v1.Node, error) {
	return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
}

// rolloutOf returns a maintenance without a limit for which so many nodes wait.
func rolloutOf(f *Fleet, name string, nodes int) Maintenance {
	m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(1000))}
	waiting := Maintenance{NodeMaintenance: m, Rank: name, Selected: nodes}
	for i := range nodes {
		n := readyNode(fmt.Sprintf("%s-%d", name, i), nil)
		f.SetNode(n)
		waiting.Waiting = append(waiting.Waiting, n.Name)
	}
	return waiting
}

// The status of a holder is written once a second, with all nodes that have become free meanwhile. Other
// holders and full batches do not wait, nor does anything after the clock was set back.
func TestPaceOfReservations(t *testing.T) {
	for name, test := range map[string]struct {
		// first and second are the nodes that wait, by the initial of their maintenance, and pause is
		// the time between the two syncs.
		first, second string
		pause         time.Duration
		// want are the writes of holders and nodes by the second sync, and after which time there has to
		// be another one.
		written, admitted int
		after             time.Duration
	}{
		"at once":                        {"a", "aa", 100 * time.Millisecond, 0, 0, 900 * time.Millisecond},
		"a second later":                 {"a", "aa", time.Second, 1, 2, 0},
		"another maintenance":            {"a", "bb", 100 * time.Millisecond, 1, 2, 0},
		"and the same one":               {"a", "abb", 100 * time.Millisecond, 1, 2, 900 * time.Millisecond},
		"a full batch":                   {"a", strings.Repeat("a", maxBatch+1), 100 * time.Millisecond, 1, maxBatch, staleInterval},
		"the clock was set back an hour": {"a", "aa", -time.Hour, 1, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store, now := &countingStore{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			a := NewAdmitter(store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
			sync := func(waiting string) (after time.Duration) {
				var all []Maintenance
				for _, m := range []string{"a", "b"} {
					if nodes := strings.Count(waiting, m); nodes > 0 {
						all = append(all, rolloutOf(a.Fleet, m, nodes))
					}
				}
				_, after, err := a.Sync(t.Context(), all, now)
				if err != nil {
					t.Error(err)
				}
				return after
			}
			sync(test.first)
			if store.written != 1 || store.admitted != 1 {
				t.Fatalf("first: %d written, %d admitted", store.written, store.admitted)
			}
			store.written, store.admitted, now = 0, 0, now.Add(test.pause)
			after := sync(test.second)
			if diff := cmp.Diff([]any{test.written, test.admitted, test.after}, []any{store.written, store.admitted, after}); diff != "" {
				t.Errorf("written, admitted, after (-want, +got):\n%s", diff)
			}
		})
	}
}

// An admission is confirmed with the next reservation, or a second after the last one.
func TestPaceOfConfirmations(t *testing.T) {
	store, now := &countingStore{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := NewAdmitter(store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
	m := rolloutOf(a.Fleet, "a", 1)
	if _, _, err := a.Sync(t.Context(), []Maintenance{m}, now); err != nil {
		t.Fatal(err)
	}
	admitted := readyNode("a-0", nil)
	admitted.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "a"}}}
	a.SetNode(admitted)
	m.Waiting = nil
	m.Status.RolloutStatus = &coordinationv1alpha1.NodeMaintenanceRolloutStatus{
		PendingAdmissions: []coordinationv1alpha1.NodeMaintenancePendingAdmission{{NodeName: "a-0", MaintenanceUID: "a", Time: metav1.NewTime(now)}},
	}
	for _, want := range []int{1, 2} {
		if _, _, err := a.Sync(t.Context(), []Maintenance{m}, now); err != nil || store.written != want {
			t.Errorf("%d writes, not %d, error %v", store.written, want, err)
		}
		now = now.Add(statusInterval)
	}
}

// A budget is looked at when its window opens or closes, and once a minute: the clock may be set.
func TestWindowsAreLookedAt(t *testing.T) {
	now := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		schedule string
		duration int32
		want     time.Duration
	}{
		"opens soon":           {"1 2 * * *", 600, 50 * time.Second},
		"opens later":          {"0 5 * * *", 600, time.Minute},
		"closes soon":          {"0 2 * * *", 60, 50 * time.Second},
		"closes later":         {"0 2 * * *", 600, time.Minute},
		"opens before it ends": {"0 0 * * 1", 31536000, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := budgetFor("b", v1.NodeSelectorRequirement{Key: "a", Operator: v1.NodeSelectorOpExists})
			b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: test.schedule, DurationSeconds: test.duration}}
			a := NewAdmitter(&countingStore{}, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
			if err := a.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			if got := a.nextChange(nil, now.Add(10*time.Second)); got != test.want {
				t.Errorf("it is looked at after %v, want %v", got, test.want)
			}
		})
	}
}
