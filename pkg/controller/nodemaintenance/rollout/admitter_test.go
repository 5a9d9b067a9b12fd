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
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// errWaits has a recordingStore say that the admission is not written, and will be later.
var errWaits = errors.New("waits")

// recordingStore records the calls, of which those of errors fail. It has the budgets that are stored.
type recordingStore struct {
	stored  []coordinationv1alpha1.NodeMaintenanceBudget
	version string
	errors  map[string]error
	// lock is held while a call is recorded: nodes are admitted in parallel.
	lock    sync.Mutex
	calls   []string
	budget  *coordinationv1alpha1.NodeMaintenanceBudget
	rollout *coordinationv1alpha1.NodeMaintenanceRolloutStatus
	// live are the nodes that differ from those of the cache; nil is one that is gone.
	live map[string]*v1.Node
	// took is how long a call takes by the clock.
	took  map[string]time.Duration
	clock *clocktesting.FakePassiveClock
}

func (s *recordingStore) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.calls = append(s.calls, call)
	if took := s.took[call]; took > 0 {
		s.clock.SetTime(s.clock.Now().Add(took))
	}
	return s.errors[call]
}

// count returns how often a call was made.
func (s *recordingStore) count(call string) (n int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, c := range s.calls {
		if c == call {
			n++
		}
	}
	return n
}

// writes returns how many calls were made, but for lists.
func (s *recordingStore) writes() int {
	lists := s.count("list")
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.calls) - lists
}

func (s *recordingStore) ListBudgets(context.Context) ([]coordinationv1alpha1.NodeMaintenanceBudget, error) {
	return s.stored, s.call("list")
}

func (s *recordingStore) WriteBudget(_ context.Context, changed *coordinationv1alpha1.NodeMaintenanceBudget) error {
	s.budget = changed
	return s.call("reserve %s", changed.Name)
}

func (s *recordingStore) WriteMaintenance(_ context.Context, changed *coordinationv1alpha1.NodeMaintenance) error {
	s.rollout = changed.Status.RolloutStatus
	return s.call("reserve %s", changed.Name)
}

func (s *recordingStore) Admit(_ context.Context, node *v1.Node, _ []v1.MaintenanceAdmission, before time.Time) (bool, error) {
	err := s.call("admit %s within %v", node.Name, before.Sub(decidedAt))
	if errors.Is(err, errWaits) {
		return false, nil
	}
	return err == nil, err
}

func (s *recordingStore) NodesVersion() string { return s.version }

func (s *recordingStore) GetNode(_ context.Context, name string) (*v1.Node, error) {
	if err := s.call("get %s", name); err != nil {
		return nil, err
	}
	if s.live[name] == nil {
		return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
	}
	return s.live[name], nil
}

// admitterWorld is one node that waits, of a budget and a maintenance with a rollout, with both of
// their caches.
type admitterWorld struct {
	store       *recordingStore
	node        *v1.Node
	budget      *coordinationv1alpha1.NodeMaintenanceBudget
	maintenance Maintenance
	now         time.Time
}

func newAdmitterWorld() *admitterWorld {
	w := &admitterWorld{store: &recordingStore{version: "50", errors: map[string]error{}}, node: inZone("n", "a"), budget: budgetOfPool(1, 0), maintenance: waitingFor("m", "n"), now: decidedAt}
	w.node.ResourceVersion, w.budget.ResourceVersion = "40", "30"
	w.maintenance.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(1))}
	w.maintenance.Status.RolloutStatus = &coordinationv1alpha1.NodeMaintenanceRolloutStatus{}
	w.store.stored = []coordinationv1alpha1.NodeMaintenanceBudget{*w.budget}
	return w
}

// admitter returns one with the node and the budget.
func (w *admitterWorld) admitter(t *testing.T, clock clock.PassiveClock) *Admitter {
	t.Helper()
	a := NewAdmitter(w.store, clock, func(Admission) {})
	a.SetNodes([]*v1.Node{w.node})
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	return a
}

// sync syncs once, and returns after which time there has to be another sync.
func (w *admitterWorld) sync(t *testing.T) (admitted int, after time.Duration, err error) {
	t.Helper()
	a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) { admitted++ })
	a.SetNodes([]*v1.Node{w.node})
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	_, after, err = a.Sync(t.Context(), []Maintenance{w.maintenance}, w.now)
	return admitted, after, err
}

// TestProtocol checks the order of the calls, which of them are made if others fail or if a cache is
// behind, and until when a node may be admitted: two minutes after its first reservation, but not more than
// five seconds after the list of budgets.
func TestProtocol(t *testing.T) {
	conflict := apierrors.NewConflict(coordinationv1alpha1.Resource("any"), "any", nil)
	gone := apierrors.NewNotFound(coordinationv1alpha1.Resource("any"), "any")
	refused := apierrors.NewForbidden(coordinationv1alpha1.Resource("any"), "any", nil)
	const admit = "admit n within 5s"
	fail := func(call string, err error) func(*admitterWorld) {
		return func(w *admitterWorld) { w.store.errors[call] = err }
	}
	reserve := func(budget, rollout time.Duration) func(*admitterWorld) {
		return func(w *admitterWorld) {
			w.budget.Status.PendingAdmissions = reservedAt(decidedAt.Add(-budget), "m", "n")
			w.maintenance.Status.RolloutStatus.PendingAdmissions = reservedAt(decidedAt.Add(-rollout), "m", "n")
		}
	}
	for name, test := range map[string]struct {
		change   func(*admitterWorld)
		calls    []string
		admitted int
		after    time.Duration
		failed   bool
	}{
		"reserve, then admit":           {func(*admitterWorld) {}, []string{"list", "reserve m", "reserve b", admit}, 1, 0, false},
		"the budget has changed":        {fail("reserve b", conflict), []string{"list", "reserve m", "reserve b"}, 0, staleInterval, false},
		"the budget is gone":            {fail("reserve b", gone), []string{"list", "reserve m", "reserve b"}, 0, staleInterval, false},
		"the budget cannot be written":  {fail("reserve b", refused), []string{"list", "reserve m", "reserve b"}, 0, staleInterval, true},
		"the maintenance has changed":   {fail("reserve m", conflict), []string{"list", "reserve m", "reserve b"}, 0, staleInterval, false},
		"the maintenance is not stored": {fail("reserve m", refused), []string{"list", "reserve m", "reserve b"}, 0, staleInterval, true},
		"the node has changed":          {fail(admit, conflict), []string{"list", "reserve m", "reserve b", admit}, 0, 0, false},
		"the node waits":                {fail(admit, errWaits), []string{"list", "reserve m", "reserve b", admit}, 0, 0, false},
		"the node is gone":              {fail(admit, gone), []string{"list", "reserve m", "reserve b", admit}, 0, 0, false},
		"the node cannot be written":    {fail(admit, refused), []string{"list", "reserve m", "reserve b", admit}, 0, 0, true},
		"budgets cannot be listed":      {fail("list", refused), []string{"list"}, 0, 0, true},
		"a budget is not cached": {func(w *admitterWorld) {
			w.store.stored = append(w.store.stored, *budgetFor("new", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists}))
		}, []string{"list"}, 0, staleInterval, false},
		"a budget is gone from the store": {func(w *admitterWorld) { w.store.stored = nil }, []string{"list"}, 0, staleInterval, false},
		"a budget has a later version":    {func(w *admitterWorld) { w.store.stored[0].ResourceVersion = "31" }, []string{"list"}, 0, staleInterval, false},
		"a budget was created again":      {func(w *admitterWorld) { w.store.stored[0].UID = "other" }, []string{"list"}, 0, staleInterval, false},
		"another budget is stored":        {func(w *admitterWorld) { w.store.stored[0].Name = "other" }, []string{"list"}, 0, staleInterval, false},
		"the cache of nodes is behind the budget": {func(w *admitterWorld) {
			w.budget.Status.AdmissionResourceVersion = "51"
		}, nil, 0, staleInterval, false},
		"the cache of nodes is behind the rollout": {func(w *admitterWorld) {
			w.maintenance.Status.RolloutStatus.AdmissionResourceVersion = "51"
		}, []string{"reserve b"}, 0, staleInterval, false}, // Its counts.
		"the cache of nodes has just what it needs": {func(w *admitterWorld) {
			w.budget.Status.AdmissionResourceVersion, w.maintenance.Status.RolloutStatus.AdmissionResourceVersion = "50", "50"
		}, []string{"list", "reserve m", "reserve b", admit}, 1, 0, false},
		"reserved by both":                {reserve(time.Minute, 30*time.Second), []string{"list", "admit n within 5s", "reserve b"}, 1, 4 * time.Minute, false},
		"reserved for almost two minutes": {reserve(time.Minute, 118*time.Second), []string{"list", "admit n within 2s", "reserve b"}, 1, 182 * time.Second, false},
		"reserved by the maintenance first": {reserve(30*time.Second, time.Minute),
			[]string{"list", "admit n within 5s", "reserve b"}, 1, 4 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			test.change(w)
			admitted, after, err := w.sync(t)
			want := []any{test.calls, test.admitted, test.after, test.failed}
			if diff := cmp.Diff(want, []any{w.store.calls, admitted, after, err != nil}); diff != "" {
				t.Errorf("calls, admitted, after, failed (-want, +got):\n%s\nerror: %v", diff, err)
			}
		})
	}
}

// An admission waits until the statuses of all its holders may be written. A full batch does not wait.
// The counts of the budget, which were never written, wait only for the budget.
func TestPaceOfHolders(t *testing.T) {
	for name, test := range map[string]struct {
		// budget and rollout are how long ago their statuses were written.
		budget, rollout time.Duration
		batch           int
		calls           []string
		after           time.Duration
	}{
		"long ago":         {time.Hour, time.Hour, 1, []string{"list", "reserve m", "reserve b", "admit n within 5s"}, 0},
		"the budget":       {100 * time.Millisecond, time.Hour, 1, nil, 900 * time.Millisecond},
		"the rollout":      {time.Hour, 100 * time.Millisecond, 1, []string{"reserve b"}, 900 * time.Millisecond},
		"both":             {200 * time.Millisecond, 100 * time.Millisecond, 1, nil, 800 * time.Millisecond},
		"both, vice versa": {100 * time.Millisecond, 200 * time.Millisecond, 1, nil, 900 * time.Millisecond},
		"a full batch":     {100 * time.Millisecond, 100 * time.Millisecond, maxBatch, []string{"list", "reserve m", "reserve b"}, staleInterval},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
			a.Parallel = 1
			a.wroteAt = map[types.UID]time.Time{w.budget.UID: decidedAt.Add(-test.budget), w.maintenance.UID: decidedAt.Add(-test.rollout)}
			limit := ptr.To(intstr.FromInt(test.batch))
			w.budget.Spec.MaxUnavailable, w.maintenance.Spec.Rollout.MaxConcurrent = limit, limit
			a.SetNode(w.node)
			for i := 1; i < test.batch; i++ {
				n := inZone(fmt.Sprintf("n-%d", i), "a")
				a.SetNode(n)
				w.maintenance.Waiting = append(w.maintenance.Waiting, n.Name)
			}
			if err := a.SetBudget(w.budget); err != nil {
				t.Fatal(err)
			}
			_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt)
			calls := w.store.calls
			if test.batch > 1 {
				calls = calls[:min(len(calls), 3)]
			}
			if diff := cmp.Diff([]any{test.calls, test.after}, []any{calls, after}); diff != "" || err != nil {
				t.Errorf("calls, after (-want, +got):\n%s\nerror: %v", diff, err)
			}
		})
	}
}

// A holder is not written again at once.
func TestBudgetIsWrittenOnceASecond(t *testing.T) {
	w := newAdmitterWorld()
	a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
	a.SetNode(w.node)
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	w.maintenance.Waiting = nil
	for _, want := range []time.Duration{0, statusInterval} { // The cache of budgets lacks the first write.
		if _, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); err != nil || after != want {
			t.Errorf("after %v, not %v, error %v", after, want, err)
		}
	}
	if diff := cmp.Diff([]string{"reserve b"}, w.store.calls); diff != "" {
		t.Errorf("calls (-want, +got):\n%s", diff)
	}
}

// A pending admission is confirmed by the node that has it, or goes after its timeout. Which version of
// the node a cache has to have, only grows.
func TestPendingAdmissions(t *testing.T) {
	hasAdmissionOf := func(uid types.UID) func(*admitterWorld) {
		return func(w *admitterWorld) {
			w.node.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: uid}}}
		}
	}
	livesWith := func(uid types.UID) func(*admitterWorld) {
		return func(w *admitterWorld) {
			live := w.node.DeepCopy()
			live.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: uid}}}
			w.store.live = map[string]*v1.Node{"n": live, "new": live}
		}
	}
	for name, test := range map[string]struct {
		change  func(*admitterWorld)
		node    string
		age     time.Duration
		version string
		kept    bool
		want    string
	}{
		"not admitted":             {func(*admitterWorld) {}, "n", time.Second, "", true, ""},
		"admitted":                 {hasAdmissionOf("m"), "n", time.Second, "", false, "40"},
		"an earlier node before":   {hasAdmissionOf("m"), "n", time.Second, "9", false, "40"},
		"a later node before":      {hasAdmissionOf("m"), "n", time.Second, "41", false, "41"},
		"for another maintenance":  {hasAdmissionOf("other"), "n", time.Second, "9", true, "9"},
		"the node is gone":         {func(*admitterWorld) {}, "gone", time.Second, "", true, ""},
		"just before the timeout":  {func(*admitterWorld) {}, "n", pendingTimeout - time.Second, "", true, ""},
		"after the timeout":        {func(*admitterWorld) {}, "n", pendingTimeout, "", false, ""},
		"gone, after the timeout":  {func(*admitterWorld) {}, "gone", pendingTimeout, "", false, ""},
		"admitted after that time": {hasAdmissionOf("m"), "n", pendingTimeout, "", false, "40"},
		// The API server knows better than a cache that is behind for so long.
		"admitted, and the cache lacks it":                         {livesWith("m"), "n", time.Hour, "", true, ""},
		"admitted, and the cache lacks the node":                   {livesWith("m"), "new", time.Hour, "", true, ""},
		"admitted for another maintenance, and the cache lacks it": {livesWith("other"), "n", time.Hour, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			test.change(w)
			w.maintenance.Waiting = nil
			pending := reservedAt(decidedAt.Add(-test.age), "m", test.node)
			w.budget.Status.PendingAdmissions, w.budget.Status.AdmissionResourceVersion = pending, test.version
			w.maintenance.Status.RolloutStatus.PendingAdmissions, w.maintenance.Status.RolloutStatus.AdmissionResourceVersion = pending, test.version
			if _, _, err := w.sync(t); err != nil {
				t.Fatal(err)
			}
			rollout := w.maintenance.Status.RolloutStatus
			if w.store.rollout != nil {
				rollout = w.store.rollout
			}
			for what, got := range map[string][]any{
				"budget":  {len(w.store.budget.Status.PendingAdmissions) == 1, w.store.budget.Status.AdmissionResourceVersion},
				"rollout": {len(rollout.PendingAdmissions) == 1, rollout.AdmissionResourceVersion},
			} {
				if diff := cmp.Diff([]any{test.kept, test.want}, got); diff != "" {
					t.Errorf("%s: kept, version (-want, +got):\n%s", what, diff)
				}
			}
		})
	}
}

// A reservation that is over counts while the API server has its admission, or does not answer. It is asked
// every ten seconds: the node may go without the cache seeing it.
func TestExpiredReservationOfAnOldCache(t *testing.T) {
	w := newAdmitterWorld()
	w.maintenance.Waiting = nil
	w.budget.Status.PendingAdmissions = reservedAt(decidedAt.Add(-pendingTimeout), "m", "n")
	w.maintenance.Status.RolloutStatus.PendingAdmissions = reservedAt(decidedAt.Add(-pendingTimeout), "m", "n")
	clock := clocktesting.NewFakePassiveClock(decidedAt)
	a := w.admitter(t, clock)
	admitted := w.node.DeepCopy()
	admitted.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceUID: "m"}}}
	hangs := map[string]error{"get n": errors.New("no answer")}
	for _, step := range []struct {
		name         string
		live         *v1.Node
		errors       map[string]error
		asked, keeps bool
	}{
		{"no answer", nil, hangs, true, true},
		{"at once", admitted, nil, false, true},
		{"admitted", admitted, nil, true, true},
		{"at once again", nil, nil, false, true},
		{"no answer again", nil, hangs, true, true},
		{"not at once", nil, nil, false, true},
		{"gone", nil, nil, true, false},
	} {
		if step.asked {
			clock.SetTime(clock.Now().Add(behindInterval))
		}
		w.store.calls, w.store.errors, w.store.live = nil, step.errors, map[string]*v1.Node{"n": step.live}
		w.store.budget, w.store.rollout = nil, nil
		_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, clock.Now())
		if (err != nil) != (step.errors != nil) {
			t.Errorf("%s: error %v", step.name, err)
		}
		if asked := slices.Contains(w.store.calls, "get n"); asked != step.asked {
			t.Errorf("%s: calls %v", step.name, w.store.calls)
		}
		if step.keeps && (after <= staleInterval || after > behindInterval) {
			t.Errorf("%s: again after %s", step.name, after)
		}
		keeps := (w.store.budget == nil || len(w.store.budget.Status.PendingAdmissions) == 1) && (w.store.rollout == nil || len(w.store.rollout.PendingAdmissions) == 1)
		if keeps != step.keeps {
			t.Errorf("%s: keeps the reservation: %t", step.name, keeps)
		}
	}
}

// The status of a budget says how many more nodes may be disrupted, of those that there are.
func TestAllowedAdmissions(t *testing.T) {
	for name, test := range map[string]struct {
		change                      func(*admitterWorld)
		allowed, unavailable, nodes int32
	}{
		"more than there are nodes": {func(w *admitterWorld) { w.budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(5)) }, 1, 0, 1},
		"the node is unavailable":   {func(w *admitterWorld) { cordoned(w.node) }, 0, 1, 1},
		"more than are allowed":     {func(w *admitterWorld) { w.budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0)); cordoned(w.node) }, 0, 1, 1},
		"frozen":                    {func(w *admitterWorld) { w.budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0)) }, 0, 0, 1},
		"closed": {func(w *admitterWorld) {
			w.budget.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: "0 3 * * *", DurationSeconds: 60}}
		}, 0, 0, 1},
		"no node":      {func(w *admitterWorld) { delete(w.node.Labels, "pool") }, 0, 0, 0},
		"reserved now": {func(w *admitterWorld) { w.maintenance.Waiting = []string{"n"} }, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			w.maintenance.Waiting = nil
			test.change(w)
			if _, _, err := w.sync(t); err != nil {
				t.Fatal(err)
			}
			status := w.store.budget.Status
			if diff := cmp.Diff([]int32{test.allowed, test.unavailable, test.nodes}, []int32{status.AdmissionsAllowed, status.UnavailableNodes, status.ExpectedNodes}); diff != "" {
				t.Errorf("allowed, unavailable, expected (-want, +got):\n%s", diff)
			}
		})
	}
}

// What happens without an event: a reservation ends, or a window opens or closes.
func TestNextSync(t *testing.T) {
	window := func(schedule string, seconds int32) func(*admitterWorld) {
		return func(w *admitterWorld) {
			w.budget.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: schedule, DurationSeconds: seconds}}
		}
	}
	for name, test := range map[string]struct {
		change func(*admitterWorld)
		want   time.Duration
	}{
		"nothing":              {func(*admitterWorld) {}, 0},
		"reserved by a budget": {func(w *admitterWorld) { w.budget.Status.PendingAdmissions = reservedAt(decidedAt, "m", "n") }, pendingTimeout},
		"reserved by a rollout": {func(w *admitterWorld) {
			w.maintenance.Status.RolloutStatus.PendingAdmissions = reservedAt(decidedAt, "m", "n")
		}, pendingTimeout},
		"reserved longer ago": {func(w *admitterWorld) {
			w.budget.Status.PendingAdmissions = reservedAt(decidedAt.Add(-time.Hour), "m", "n")
		}, staleInterval},
		"a window opens later": {window("0 3 * * *", 60), clockCheck},
		"a window opens soon":  {func(w *admitterWorld) { window("0 3 * * *", 60)(w); w.now = decidedAt.Add(2*time.Hour - 3*time.Second) }, 3 * time.Second},
		"a window closes soon": {func(w *admitterWorld) {
			window("0 3 * * *", 60)(w)
			w.now = decidedAt.Add(2*time.Hour + 58*time.Second)
		}, 2 * time.Second},
		"a window has just closed": {func(w *admitterWorld) {
			window("0 3 * * *", 60)(w)
			w.now = decidedAt.Add(2*time.Hour + 60*time.Second)
		}, clockCheck},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			w.maintenance.Waiting = nil
			test.change(w)
			if _, after, err := w.sync(t); err != nil || after != test.want {
				t.Errorf("after %v, not %v, error %v", after, test.want, err)
			}
		})
	}
}

// TestBehindForLong checks that it is reported if the cache of nodes does not catch up with a holder.
func TestBehindForLong(t *testing.T) {
	for holder, change := range map[string]func(*admitterWorld){
		"NodeMaintenanceBudget b": func(w *admitterWorld) { w.budget.Status.AdmissionResourceVersion = "51" },
		"NodeMaintenance m":       func(w *admitterWorld) { w.maintenance.Status.RolloutStatus.AdmissionResourceVersion = "51" },
	} {
		w := newAdmitterWorld()
		change(w)
		a := w.admitter(t, clocktesting.NewFakePassiveClock(decidedAt))
		sync := func(second int) (string, time.Duration) {
			_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(time.Duration(second)*time.Second))
			if err != nil {
				return err.Error(), after
			}
			return "", after
		}
		for _, second := range []int{100, 0, 59} { // The clock is set back once.
			if message, after := sync(second); message != "" || after != staleInterval {
				t.Errorf("%s: after %d s: %q, again after %v", holder, second, message, after)
			}
		}
		message, after := sync(60)
		for _, part := range []string{"no node of " + holder + " is admitted since " + decidedAt.UTC().Format(time.RFC3339), "at version 50", "admissionResourceVersion 51", "--subresource=status"} {
			if !strings.Contains(message, part) || after != behindInterval {
				t.Errorf("%s: %q is missing in %q, again after %v", holder, part, message, after)
			}
		}
		if message, after := sync(69); message != "" || after != behindInterval {
			t.Errorf("%s: reported too often: %q, again after %v", holder, message, after)
		}
		if message, _ := sync(70); message == "" {
			t.Errorf("%s: not reported any more", holder)
		}
		if calls := strings.Join(w.store.calls, ","); strings.Contains(calls, "admit") || strings.Contains(calls, "reserve "+holder[len(holder)-1:]) {
			t.Errorf("%s: calls while it is behind: %s", holder, calls)
		}
		w.store.version = "51"
		if message, _ := sync(71); message != "" || !strings.Contains(strings.Join(w.store.calls, ","), "admit n") {
			t.Errorf("%s: goes not on when the cache has it: %q, calls %v", holder, message, w.store.calls)
		}
		w.store.version = "50"
		if message, _ := sync(200); message != "" {
			t.Errorf("%s: the time does not begin anew: %q", holder, message)
		}
	}
}

// Times are those of the day: the other clock stands still while a machine is suspended.
func TestTimesWithoutMonotonicClock(t *testing.T) {
	w := newAdmitterWorld()
	w.maintenance.Status.RolloutStatus, w.budget.Status.PendingAdmissions = nil, nil
	store := &timesStore{recordingStore: w.store}
	a := NewAdmitter(store, clock.RealClock{}, func(Admission) {})
	a.SetNodes([]*v1.Node{w.node})
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, time.Now()); err != nil || strings.Contains(store.before, "m=") || !strings.Contains(store.before, ":") {
		t.Errorf("may be admitted before %q, error %v", store.before, err)
	}
}

// timesStore keeps until when a node may be admitted.
type timesStore struct {
	*recordingStore
	before string
}

func (s *timesStore) Admit(_ context.Context, _ *v1.Node, _ []v1.MaintenanceAdmission, before time.Time) (bool, error) {
	s.before = before.String()
	return true, nil
}

// A reservation by a process whose clock was ahead, or with a time that somebody has written, is over as soon
// as any other.
func TestReservationInTheFuture(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Time{
		2 * time.Minute: decidedAt.Add(2 * time.Minute), 3 * time.Hour: decidedAt,
	} {
		a := NewAdmitter(&recordingStore{}, clocktesting.NewFakePassiveClock(decidedAt), nil)
		stored := reservedAt(decidedAt.Add(ahead), "m", "n")
		kept, _ := a.keepPending(stored, nil, "", decidedAt)
		if len(kept) != 1 || !kept[0].Time.Time.Equal(want) || !stored[0].Time.Time.Equal(decidedAt.Add(ahead)) {
			t.Errorf("%v ahead: kept %v of %v", ahead, kept, stored)
		}
	}
}

// A reservation that is over, in a holder that cannot be written, causes no decision before the next attempt.
func TestOldReservationOfUnwritableHolder(t *testing.T) {
	for _, holder := range []string{"b", "m"} {
		w := newAdmitterWorld()
		w.maintenance.Waiting = nil
		old := reservedAt(decidedAt.Add(-pendingTimeout-time.Minute), "gone", "gone")
		if holder == "b" {
			w.budget.Status.PendingAdmissions = old
		} else {
			w.maintenance.Status.RolloutStatus.PendingAdmissions = old
		}
		w.store.errors["reserve "+holder] = apierrors.NewForbidden(coordinationv1alpha1.Resource("any"), "any", nil)
		a := w.admitter(t, clocktesting.NewFakePassiveClock(decidedAt))
		if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); !apierrors.IsForbidden(err) {
			t.Errorf("%s: error %v", holder, err)
		}
		if _, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); err != nil || after != statusInterval {
			t.Errorf("%s: again after %v, error %v", holder, after, err)
		}
	}
}

// A cache that does not catch up, because its watch is broken, has the API server be asked once a second.
func TestBrokenWatchOfBudgets(t *testing.T) {
	w := newAdmitterWorld()
	w.store.stored[0].ResourceVersion = "31"
	a := w.admitter(t, clocktesting.NewFakePassiveClock(decidedAt))
	now, first := decidedAt, time.Duration(0)
	for i := range 20 {
		_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, now)
		if err != nil || after <= 0 {
			t.Fatalf("again after %v, error %v", after, err)
		}
		if i == 0 {
			first = after
		}
		now = now.Add(after)
	}
	if waited := now.Sub(decidedAt); first != staleInterval || waited < 10*time.Second || waited > 20*time.Second {
		t.Errorf("first again after %v, asked 20 times in %v", first, waited)
	}
}

// A holder whose confirmed admission the cache of nodes lacks, because somebody has written that, stops
// nobody else. Its nodes say so after a while; before that, what they waited for is not changed.
func TestBehindStopsNobodyElse(t *testing.T) {
	for _, holder := range []string{"the budget", "the maintenance"} {
		w := newAdmitterWorld()
		const far = "99999999999999999999"
		if holder == "the maintenance" {
			w.maintenance.Status.RolloutStatus.AdmissionResourceVersion = far
			// Another process has reserved it. Otherwise it would not have to be written.
			w.maintenance.Status.RolloutStatus.PendingAdmissions = reservedAt(decidedAt, "m", "n")
		} else {
			w.budget.Status.AdmissionResourceVersion = far
		}
		var admitted []string
		a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(admission Admission) { admitted = append(admitted, admission.Node.Name) })
		a.SetNodes([]*v1.Node{w.node, readyNode("other", nil)})
		if err := a.SetBudget(w.budget); err != nil {
			t.Fatal(err)
		}
		young := waitingFor("young", "other")
		young.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
		waits, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance, young}, decidedAt)
		if _, found := waits["m"]; found || err != nil || !slices.Equal(admitted, []string{"other"}) {
			t.Errorf("%s: waits %v, admitted %v, error %v", holder, waits, admitted, err)
		}
		waits, _, err = a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(behindTimeout))
		if diff := cmp.Diff(map[Wait]int{{Reason: coordinationv1alpha1.NodeMaintenanceWaitNotCurrent}: 1}, waits["m"]); diff != "" || err == nil {
			t.Errorf("%s: error %v, waits (-want, +got):\n%s", holder, err, diff)
		}
	}
}

// A node that the API server refuses to admit says so, also while what it waits for is its own
// reservation. One that has only changed does not.
func TestWaitsOfRefusedAdmission(t *testing.T) {
	failed := map[Wait]int{{Reason: coordinationv1alpha1.NodeMaintenanceWaitAdmissionFailed}: 1}
	for name, test := range map[string]struct {
		err  error
		want map[Wait]int
	}{
		"refused": {errWaits, failed},
		"changed": {apierrors.NewConflict(v1.Resource("nodes"), "n", nil), map[Wait]int{}},
	} {
		w := newAdmitterWorld()
		w.store.errors["admit n within 5s"] = test.err
		a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
		a.SetNodes([]*v1.Node{w.node})
		sync := func(after time.Duration) map[Wait]int {
			t.Helper()
			if err := a.SetBudget(w.budget); err != nil {
				t.Fatal(err)
			}
			waits, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(after))
			if err != nil {
				t.Fatal(err)
			}
			return waits["m"]
		}
		if got := sync(0); len(got) > 0 {
			t.Errorf("%s: waits %v before the first attempt", name, got)
		}
		w.maintenance.Status.RolloutStatus, w.budget = w.store.rollout, w.store.budget
		if diff := cmp.Diff(test.want, sync(time.Second)); diff != "" {
			t.Errorf("%s: waits (-want, +got):\n%s", name, diff)
		}
		if test.err != errWaits {
			continue
		}
		for _, after := range []time.Duration{pendingUsable, pendingTimeout - 1} { // The reservation counts, and cannot be used.
			if diff := cmp.Diff(failed, sync(after)); diff != "" {
				t.Errorf("%s, after %v (-want, +got):\n%s", name, after, diff)
			}
		}
		w.maintenance.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(0)) // It is not tried any more.
		if diff := cmp.Diff(map[Wait]int{{Reason: coordinationv1alpha1.NodeMaintenanceWaitBudget, Budget: "b"}: 1}, sync(time.Hour)); diff != "" {
			t.Errorf("%s, long ago (-want, +got):\n%s", name, diff)
		}
	}
}

// A holder that cannot be written keeps nodes of others from nothing, although it has enough for a full
// batch, and however long an attempt takes. It is tried after one second, then less often, whatever
// happens, and its nodes say what they wait for.
func TestHolderThatCannotBeWritten(t *testing.T) {
	refused := apierrors.NewForbidden(coordinationv1alpha1.Resource("any"), "any", nil)
	for holder, wait := range map[string]Wait{
		"reserve old": {Reason: coordinationv1alpha1.NodeMaintenanceWaitStatusFailed},
		"reserve b":   {Reason: coordinationv1alpha1.NodeMaintenanceWaitStatusFailed, Budget: "b"},
	} {
		for _, took := range []time.Duration{0, 10 * time.Second} {
			w, clock := newAdmitterWorld(), clocktesting.NewFakePassiveClock(decidedAt)
			w.store.errors[holder] = refused
			var admitted []string
			a := NewAdmitter(w.store, clock, func(admission Admission) { admitted = append(admitted, admission.Node.Name) })
			old, young := waitingFor("old"), waitingFor("young", "other")
			old.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
			for _, n := range pool("n", maxBatch+1) {
				a.SetNode(n)
				old.Waiting = append(old.Waiting, n.Name)
			}
			a.SetNode(readyNode("other", nil))
			w.budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(2 * maxBatch))
			if err := a.SetBudget(w.budget); err != nil {
				t.Fatal(err)
			}
			now := decidedAt
			for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, maxPause, maxPause} {
				attempts := func() int { return strings.Count(strings.Join(w.store.calls, ","), holder) }
				clock.SetTime(now.Add(took))
				if waits, after, err := a.Sync(t.Context(), []Maintenance{old, young}, now); !apierrors.IsForbidden(err) || after != staleInterval || attempts() != i+1 || waits["old"][wait] != maxBatch {
					t.Errorf("%s, attempt %d: again after %v, error %v, %d attempts, waits %v", holder, i, after, err, attempts(), waits)
				}
				now = now.Add(took)
				for quarter := range time.Duration(4) {
					admitted = nil
					elapsed := quarter * pause / 4
					clock.SetTime(now.Add(elapsed))
					waits, after, err := a.Sync(t.Context(), []Maintenance{old, young}, now.Add(elapsed))
					want := []any{[]string{"other"}, i + 1, map[Wait]int{wait: maxBatch + 1}, true}
					if diff := cmp.Diff(want, []any{admitted, attempts(), waits["old"], after > 0 && after <= pause-elapsed}); diff != "" || err != nil {
						t.Errorf("%s, after attempt %d: admitted, attempts, waits, in time (-want, +got):\n%s\nerror: %v", holder, i, diff, err)
					}
				}
				now = now.Add(pause)
			}
			delete(w.store.errors, holder)
			a.Sync(t.Context(), []Maintenance{old, young}, now)
			if len(a.failed) > 0 {
				t.Errorf("%s: not forgotten after it was written", holder)
			}
		}
	}
}

// hangingStore has the calls of errors that are errHangs not answered before their context is done.
type hangingStore struct{ *recordingStore }

var errHangs = errors.New("hangs")

func (s hangingStore) answer(ctx context.Context, err error) error {
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s hangingStore) WriteBudget(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenanceBudget) error {
	return s.answer(ctx, s.call("reserve %s", changed.Name))
}

func (s hangingStore) WriteMaintenance(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenance) error {
	return s.answer(ctx, s.call("reserve %s", changed.Name))
}

func (s hangingStore) Admit(ctx context.Context, node *v1.Node, _ []v1.MaintenanceAdmission, _ time.Time) (bool, error) {
	err := s.answer(ctx, s.call("admit %s", node.Name))
	return err == nil, err
}

// Writes of holders or nodes that hang delay other nodes by no more than the patience with each batch, however
// many they are, and are not repeated meanwhile.
func TestWritesThatHang(t *testing.T) {
	const hanging = 2*parallelWrites + 1
	for _, kind := range []string{"budgets", "maintenances", "nodes"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel() // Of the calls that hang.
				store, admitted := hangingStore{&recordingStore{errors: map[string]error{}}}, map[string]time.Duration{}
				start := time.Now()
				a := NewAdmitter(store, clock.RealClock{}, func(admission Admission) { admitted[admission.Node.Name] = time.Since(start) })
				var all []Maintenance
				for i := range hanging + 1 {
					name := fmt.Sprintf("n-%02d", i)
					a.SetNode(readyNode(name, map[string]string{"pool": name}))
					m := waitingFor("m-"+name, name)
					m.Rank = name
					if kind != "budgets" {
						m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
					} else {
						b := budgetFor("b-"+name, v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpIn, Values: []string{name}})
						b.UID, b.Spec.MaxUnavailable = types.UID(b.Name), ptr.To(intstr.FromInt32(1))
						store.stored = append(store.stored, *b)
						if err := a.SetBudget(b); err != nil {
							t.Fatal(err)
						}
					}
					all = append(all, m)
					if i < hanging {
						call := map[string]string{"budgets": "reserve b-", "maintenances": "reserve m-", "nodes": "admit "}[kind] + name
						store.errors[call] = errHangs
					}
				}
				for time.Since(start) < writeTimeout-time.Second {
					_, after, err := a.Sync(ctx, all, time.Now())
					if err != nil || after <= 0 || after > statusInterval {
						t.Fatalf("again after %v, error %v", after, err)
					}
					time.Sleep(after)
					all = slices.DeleteFunc(all, func(m Maintenance) bool { return admitted[m.Waiting[0]] > 0 })
				}
				for call := range store.errors {
					if calls := store.count(call); calls != 1 {
						t.Errorf("%s: %d calls", call, calls)
					}
				}
				if at := admitted[fmt.Sprintf("n-%02d", hanging)]; len(admitted) != 1 || at > 10*time.Second {
					t.Errorf("admitted %v", admitted)
				}
			})
		})
	}
}

// An admission that is being written, or of which the answer was lost, counts for a budget that comes to select its node
// meanwhile, and one that was refused does not.
func TestAdmissionThatHangsCounts(t *testing.T) {
	refused := apierrors.NewForbidden(v1.Resource("nodes"), "a", nil)
	for name, test := range map[string]struct {
		hangs time.Duration
		err   error
		// The next node is admitted in this time.
		earliest, latest time.Duration
	}{
		"stored later, and the cache lacks it": {hangs: 7 * time.Second, earliest: pendingTimeout, latest: pendingTimeout + time.Minute},
		"refused later":                        {hangs: 7 * time.Second, err: refused, earliest: 7 * time.Second, latest: 12 * time.Second},
		"never answered":                       {hangs: 15 * time.Second, err: context.DeadlineExceeded, earliest: pendingTimeout, latest: pendingTimeout + time.Minute},
		"refused at once":                      {err: refused, latest: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel() // Of a call that hangs.
				store, admitted := &slowStore{recordingStore: &recordingStore{errors: map[string]error{}}, slow: "a", takes: test.hangs, err: test.err}, map[string]time.Duration{}
				start := time.Now()
				a := NewAdmitter(store, clock.RealClock{}, func(admission Admission) { admitted[admission.Node.Name] = time.Since(start) })
				a.SetNode(readyNode("a", map[string]string{"pool": "a"}))
				a.SetNode(readyNode("b", map[string]string{"pool": "b"}))
				of := func(pools ...string) {
					b := budgetFor("budget", v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpIn, Values: pools})
					b.UID, b.Spec.MaxUnavailable, b.Generation = "budget", ptr.To(intstr.FromInt32(1)), int64(len(pools))
					store.stored = []coordinationv1alpha1.NodeMaintenanceBudget{*b}
					if err := a.SetBudget(b); err != nil {
						t.Fatal(err)
					}
				}
				of("b")
				first, second := waitingFor("first", "a"), waitingFor("second", "b")
				for all := []Maintenance{first}; time.Since(start) < 10*time.Minute; {
					_, after, err := a.Sync(ctx, all, time.Now())
					if err != nil && !apierrors.IsForbidden(err) && !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
					if len(all) == 1 { // The budget selects the node now, and an older maintenance wants another one.
						of("a", "b")
						second.Rank = "0"
						all = []Maintenance{second, first}
					}
					if admitted["b"] > 0 {
						break
					}
					time.Sleep(max(min(after, time.Second), 10*time.Millisecond))
				}
				if at, is := admitted["b"]; !is || at < test.earliest || at > test.latest {
					t.Errorf("the next node is admitted after %v, %t", at, is)
				}
			})
		})
	}
}

// slowStore needs some time to admit a node.
type slowStore struct {
	*recordingStore
	slow  string
	takes time.Duration
	err   error
	// isStored is whether the node is admitted, which the cache does not learn.
	isStored bool
}

func (s *slowStore) Admit(ctx context.Context, node *v1.Node, _ []v1.MaintenanceAdmission, _ time.Time) (bool, error) {
	if node.Name != s.slow {
		return true, nil
	}
	select {
	case <-time.After(s.takes):
		if s.isStored {
			return false, apierrors.NewConflict(v1.Resource("nodes"), node.Name, errors.New("the cache is behind"))
		}
		s.isStored = s.err == nil
		return s.isStored, s.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Holders that have failed before are retried together, but not so many that others find no room. Their errors
// are reported when they have ended, and they wait longer each time.
func TestRetriesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store := hangingStore{&recordingStore{errors: map[string]error{}}}
		a := NewAdmitter(store, clock.RealClock{}, func(Admission) {})
		start := time.Now()
		var all []Maintenance
		for i := range 2 * parallelWrites {
			name := fmt.Sprintf("n-%02d", i)
			a.SetNode(readyNode(name, nil))
			m := waitingFor("m-"+name, name)
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
			all = append(all, m)
			store.errors["reserve m-"+name] = errHangs
			a.failed[m.UID] = failure{start.Add(-maxPause), maxPause, true}
		}
		failed := 0
		for time.Since(start) < writeTimeout+5*patience {
			_, after, err := a.Sync(ctx, all, time.Now())
			if err != nil {
				failed += strings.Count(err.Error(), context.DeadlineExceeded.Error())
			}
			if running := a.writes.running.Len(); running > parallelWrites || after <= 0 || after > statusInterval {
				t.Fatalf("%d are running, again after %v", running, after)
			}
			time.Sleep(after)
		}
		synctest.Wait() // Calls are recorded by other goroutines.
		if calls := store.writes(); failed != parallelWrites || calls != 2*parallelWrites {
			t.Errorf("%d have failed of %d", failed, calls)
		}
	})
}

// A holder or node whose write was refused once, and quickly, is tried again soon, however many others hang.
func TestQuickRetryBesideWritesThatHang(t *testing.T) {
	for _, call := range []string{"reserve ", "admit "} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store, admitted := hangingStore{&recordingStore{errors: map[string]error{}}}, map[string]bool{}
				a := NewAdmitter(store, clock.RealClock{}, func(admission Admission) { admitted[admission.Node.Name] = true })
				var all []Maintenance
				add := func(name string, err error) {
					a.SetNode(readyNode(name, nil))
					m := waitingFor(name, name)
					m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{}
					all = append(all, m)
					store.errors[call+name] = err
				}
				for i := range 4 * parallelWrites {
					name := fmt.Sprintf("n-%02d", i)
					add(name, errHangs)
					if call == "admit " {
						a.refused[name] = time.Now()
						a.slowNodes.Insert(name)
					} else {
						a.failed[types.UID(name)] = failure{time.Now().Add(-maxPause), maxPause, true}
					}
				}
				add("good", apierrors.NewInternalError(errors.New("a moment")))
				for start := time.Now(); time.Since(start) < 10*time.Second && !admitted["good"]; {
					_, after, _ := a.Sync(ctx, all, time.Now())
					if store.count(call+"good") == 1 {
						store.lock.Lock()
						delete(store.errors, call+"good")
						store.lock.Unlock()
					}
					time.Sleep(after)
				}
				if !admitted["good"] {
					t.Errorf("not admitted; calls %d", store.count(call+"good"))
				}
			})
		})
	}
}

// A node that waits for its own reservation, because another holder could not be written, names that one.
func TestOwnReservationNamesWhoFailed(t *testing.T) {
	for failed, want := range map[types.UID]map[Wait]int{
		"b":     {{Reason: coordinationv1alpha1.NodeMaintenanceWaitStatusFailed, Budget: "b"}: 1},
		"other": {{Reason: coordinationv1alpha1.NodeMaintenanceWaitConcurrency}: 1},
	} {
		w := newAdmitterWorld()
		now := decidedAt.Add(pendingUsable + time.Second)
		w.budget.UID = "b"
		w.maintenance.Status.RolloutStatus.PendingAdmissions = []coordinationv1alpha1.NodeMaintenancePendingAdmission{
			{NodeName: "n", MaintenanceUID: "m", Time: metav1.NewTime(decidedAt)},
		}
		a := w.admitter(t, clocktesting.NewFakePassiveClock(now))
		// Its pause is over, and nothing has to be written there.
		a.failed[failed] = failure{at: now.Add(-time.Minute), pause: maxPause}
		waits, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, waits["m"]); diff != "" {
			t.Errorf("%s has failed: waits (-want, +got):\n%s", failed, diff)
		}
	}
}

// An error of a time-out names what may be its cause, as the API server would. Another one stays what it is.
func TestUnanswered(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := Unanswered(over, "nodes/status", context.DeadlineExceeded)
	const want = "the API server did not answer in time, maybe because of a webhook for nodes/status: context deadline exceeded"
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
		t.Errorf("it says %v", err)
	}
	if err := Unanswered(t.Context(), "nodes/status", errHangs); err != errHangs || Unanswered(over, "nodes/status", nil) != nil {
		t.Errorf("in time: %v", err)
	}
}

// Nobody wakes up for a holder that has failed and is not needed now.
func TestFailedHolderThatIsNotNeeded(t *testing.T) {
	w, clock := newAdmitterWorld(), clocktesting.NewFakePassiveClock(decidedAt)
	w.store.errors["reserve m"] = apierrors.NewForbidden(coordinationv1alpha1.Resource("any"), "any", nil)
	w.store.stored = nil
	a := NewAdmitter(w.store, clock, func(Admission) {})
	a.SetNode(w.node)
	if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); !apierrors.IsForbidden(err) || len(a.failed) != 1 {
		t.Errorf("%d have failed, error %v", len(a.failed), err)
	}
	w.maintenance.Waiting = nil
	now := decidedAt.Add(2 * time.Second)
	clock.SetTime(now)
	if _, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, now); err != nil || after != 0 || len(a.failed) != 1 {
		t.Errorf("again after %v, %d have failed, error %v", after, len(a.failed), err)
	}
}

// A node that needs two holders that have failed is not kept waiting by their turns.
func TestTwoFailedHolders(t *testing.T) {
	w, clock := newAdmitterWorld(), clocktesting.NewFakePassiveClock(decidedAt)
	admitted := 0
	a := NewAdmitter(w.store, clock, func(Admission) { admitted++ })
	a.SetNode(w.node)
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	a.failed[w.budget.UID], a.failed[w.maintenance.UID] = failure{at: decidedAt.Add(-maxPause), pause: maxPause}, failure{at: decidedAt.Add(-maxPause), pause: maxPause}
	if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); err != nil || admitted != 1 || len(a.failed) > 0 {
		t.Errorf("admitted %d, %d have failed, error %v", admitted, len(a.failed), err)
	}
}

// A freeze that was created while a write of a holder took long has not reserved the node: it is not
// admitted before the budgets are read again.
func TestOldListOfBudgets(t *testing.T) {
	for took, want := range map[time.Duration]int{listTimeout - time.Second: 1, listTimeout: 0} {
		w, clock := newAdmitterWorld(), clocktesting.NewFakePassiveClock(decidedAt)
		w.store.clock, w.store.took = clock, map[string]time.Duration{"reserve m": took}
		admitted := 0
		a := NewAdmitter(w.store, clock, func(Admission) { admitted++ })
		a.SetNode(w.node)
		if err := a.SetBudget(w.budget); err != nil {
			t.Fatal(err)
		}
		_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt)
		if err != nil || admitted != want || want == 0 && after != staleInterval {
			t.Errorf("after %v: %d admitted, again after %v, error %v", took, admitted, after, err)
		}
	}
}

// What a budget allows depends on the domains in which maintenances are.
func TestAllowedByDomains(t *testing.T) {
	for name, test := range map[string]struct {
		domains int32
		change  func(f *Fleet, b *coordinationv1alpha1.NodeMaintenanceBudget)
		want    int
	}{
		"none is active": {1, func(*Fleet, *coordinationv1alpha1.NodeMaintenanceBudget) {}, 4},
		"there is room":  {2, func(f *Fleet, _ *coordinationv1alpha1.NodeMaintenanceBudget) { f.SetNode(inZone("a00", "a", admitted)) }, 3},
		"there is none":  {1, func(f *Fleet, _ *coordinationv1alpha1.NodeMaintenanceBudget) { f.SetNode(inZone("a00", "a", admitted)) }, 2},
		"a cordoned node": {1, func(f *Fleet, _ *coordinationv1alpha1.NodeMaintenanceBudget) {
			f.SetNode(inZone("a00", "a", admitted))
			f.SetNode(inZone("a01", "a", cordoned))
		}, 1},
		"one is pending": {1, func(_ *Fleet, b *coordinationv1alpha1.NodeMaintenanceBudget) {
			b.Status.PendingAdmissions = reservedAt(decidedAt, "m", "a00")
		}, 2},
		"pending and gone": {1, func(_ *Fleet, b *coordinationv1alpha1.NodeMaintenanceBudget) {
			b.Status.PendingAdmissions = reservedAt(decidedAt, "m", "gone")
		}, 0},
		"too many domains": {1, func(f *Fleet, _ *coordinationv1alpha1.NodeMaintenanceBudget) {
			f.SetNode(inZone("a00", "a", admitted))
			f.SetNode(inZone("b00", "b", admitted))
		}, 0},
		"the node came back": {1, func(f *Fleet, _ *coordinationv1alpha1.NodeMaintenanceBudget) {
			f.SetNode(inZone("a00", "a", admitted))
			f.SetNode(inZone("a00", "a"))
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := NewFleet(), budgetOfPool(4, test.domains)
			f.SetNodes(append(pool("a", 3), pool("b", 3)...))
			test.change(f, b)
			if err := f.SetBudget(b); err != nil {
				t.Fatal(err)
			}
			r := f.newRound(decidedAt)
			if got := r.allowed(f.budgets["b"]); got != test.want {
				t.Errorf("allows %d, not %d", got, test.want)
			}
		})
	}
}

// A holder that has failed before is written before all others: if it fails again, they reserve nothing.
func TestFailedHolderIsWrittenFirst(t *testing.T) {
	w, clock := newAdmitterWorld(), clocktesting.NewFakePassiveClock(decidedAt)
	w.store.errors["reserve b"] = apierrors.NewForbidden(coordinationv1alpha1.Resource("any"), "any", nil)
	a := NewAdmitter(w.store, clock, func(Admission) { t.Error("admitted") })
	a.SetNode(w.node)
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	a.failed[w.budget.UID] = failure{at: decidedAt.Add(-maxPause), pause: maxPause}
	if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"list", "reserve b"}, w.store.calls); diff != "" {
		t.Errorf("calls (-want, +got):\n%s", diff)
	}
}

// If the cache of budgets stays behind, or they cannot be listed, nodes say so after a minute that would be
// admitted, and those that were not looked at.
func TestWaitsWithoutCurrentBudgets(t *testing.T) {
	for name, spoil := range map[string]func(*admitterWorld){
		"no answer": func(w *admitterWorld) { w.store.errors["list"] = errors.New("no answer") },
		"behind":    func(w *admitterWorld) { w.store.stored[0].ResourceVersion = "31" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			spoil(w)
			a := w.admitter(t, clocktesting.NewFakePassiveClock(decidedAt))
			for _, step := range []struct {
				second int
				want   int
			}{{0, 0}, {59, 0}, {60, 1}, {30, 1}, {-10, 0}, {50, 1}} {
				waits, _, _ := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(time.Duration(step.second)*time.Second))
				if got := waits["m"][Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitNotCurrent}]; step.second != 30 && got != step.want {
					t.Errorf("after %d s: %d nodes wait for it", step.second, got)
				}
			}
			w.store.errors, w.store.stored = map[string]error{}, []coordinationv1alpha1.NodeMaintenanceBudget{*w.budget}
			if waits, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(time.Hour)); err != nil || len(waits["m"]) > 0 {
				t.Errorf("current again: waits %v, error %v", waits, err)
			}
			spoil(w)
			if waits, _, _ := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(2*time.Hour)); len(waits["m"]) > 0 {
				t.Errorf("the minute does not begin anew: waits %v", waits)
			}
			// Nor is it a minute if nobody has asked in between.
			nothing := w.maintenance
			nothing.Waiting = nil
			for hour, m := range []Maintenance{nothing, w.maintenance} {
				if waits, _, _ := a.Sync(t.Context(), []Maintenance{m}, decidedAt.Add(time.Duration(3+hour)*time.Hour)); len(waits["m"]) > 0 {
					t.Errorf("a single list that was not current: waits %v", waits)
				}
			}
		})
	}
}

// A holder that has failed, and becomes due while nodes are decided on, is tried again.
func TestFailedHolderBecomesDue(t *testing.T) {
	w := newAdmitterWorld()
	w.store.clock = clocktesting.NewFakePassiveClock(decidedAt)
	a := w.admitter(t, w.store.clock)
	a.failed["m"] = failure{at: decidedAt, pause: statusInterval}
	w.store.took = map[string]time.Duration{"reserve b": 10 * time.Millisecond}
	w.store.clock.SetTime(decidedAt.Add(statusInterval - time.Millisecond))
	_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, w.store.clock.Now())
	if err != nil || after <= 0 || after > staleInterval {
		t.Errorf("again after %s, error %v", after, err)
	}
}

// The condition Open names nodes without the label of the zones, and what is not understood.
func TestRemarksOnABudget(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*coordinationv1alpha1.NodeMaintenanceBudget)
		labeled bool
		want    string
		invalid bool
	}{
		"no zones":         {func(*coordinationv1alpha1.NodeMaintenanceBudget) {}, false, "", false},
		"with the label":   {func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Spec.Topology = zoneTopology() }, true, "", false},
		"none has a label": {func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Spec.Topology = zoneTopology() }, false, " 1 of 1 nodes have no label zone (spec.topology.key): each of them is a domain of its own.", false},
		"an unknown time zone": {func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
			b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: "* * * * *", TimeZone: "Mars/Olympus", DurationSeconds: 60}}
		}, false, "Mars/Olympus", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAdmitterWorld()
			test.change(w.budget)
			w.maintenance.Waiting = nil
			if !test.labeled {
				delete(w.node.Labels, "zone")
			}
			a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
			a.SetNodes([]*v1.Node{w.node})
			if err := a.SetBudget(w.budget); (err != nil) != test.invalid {
				t.Fatal(err)
			}
			if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt); err != nil {
				t.Fatal(err)
			}
			message := w.store.budget.Status.Conditions[0].Message
			if test.invalid && strings.Contains(message, test.want) {
				return
			}
			if strings.Contains(test.want, "label") {
				labeled := w.node.DeepCopy()
				labeled.Labels["zone"] = "a"
				a.SetNode(labeled)
				if got := a.remarks(a.budgets["b"]); got != "" {
					t.Errorf("with the label, it says %q", got)
				}
			}
			if _, remarks, _ := strings.Cut(message, "."); !strings.HasSuffix(message, test.want) || test.want == "" && remarks != "" && !strings.HasPrefix(remarks, "admissionsAllowed") {
				t.Errorf("the condition says %q", message)
			}
		})
	}
}

// The condition Open says why nodes that are down wait, if most of them are, and no longer when others are back.
func TestRemarkOnAnOutage(t *testing.T) {
	w := newAdmitterWorld()
	a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt), func(Admission) {})
	nodes := []*v1.Node{w.node}
	for i := range outageNodes {
		other := w.node.DeepCopy()
		other.Name, other.UID = fmt.Sprintf("down-%d", i), types.UID(fmt.Sprintf("down-%d", i))
		down(other)
		nodes = append(nodes, other)
	}
	a.SetNodes(nodes)
	if err := a.SetBudget(w.budget); err != nil {
		t.Fatal(err)
	}
	const want = " At least 55% of the nodes are not Ready: nobody can tell which of them have failed"
	if got := a.remarks(a.budgets["b"]); !strings.HasPrefix(got, want) {
		t.Errorf("it says %q", got)
	}
	for _, n := range []*v1.Node{nodes[0], nodes[3]} {
		other := n.DeepCopy()
		other.Labels = nil // The budget keeps two nodes, and most of the cluster is down.
		a.SetNode(other)
	}
	const few = " At least 55% of the nodes are not Ready, and of all nodes of the cluster: nobody can tell which of them have failed"
	if got := a.remarks(a.budgets["b"]); !strings.HasPrefix(got, few) {
		t.Errorf("of two nodes, it says %q", got)
	}
	empty := budgetFor("empty", v1.NodeSelectorRequirement{Key: "no-node-has-it", Operator: v1.NodeSelectorOpExists})
	if err := a.SetBudget(empty); err != nil {
		t.Fatal(err)
	}
	if got := a.remarks(a.budgets["empty"]); got != "" {
		t.Errorf("without nodes, it says %q", got)
	}
	back := nodes[1].DeepCopy()
	back.Status.Conditions[0].Status = v1.ConditionTrue
	a.SetNode(back)
	if got := a.remarks(a.budgets["b"]); got != "" {
		t.Errorf("when it is over, it says %q", got)
	}
}

func zoneTopology() *coordinationv1alpha1.NodeMaintenanceTopology {
	return &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: 1}
}

// A holder that has failed, and that something else keeps from being written, is not tried all the time.
func TestFailedHolderThatWaitsForSomethingElse(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *admitterWorld)
		want   time.Duration
	}{
		"the cache is behind": {func(w *admitterWorld) {
			w.maintenance.Status.RolloutStatus.AdmissionResourceVersion = "99999999999999999999"
		}, behindInterval},
		"its status is being written": {func(w *admitterWorld) { w.maintenance.Unwritable = true }, statusInterval},
	} {
		w := newAdmitterWorld()
		test.change(w)
		w.store.stored, w.budget.Status.ObservedGeneration = nil, 0
		a := NewAdmitter(w.store, clocktesting.NewFakePassiveClock(decidedAt.Add(time.Hour)), func(Admission) {})
		a.SetNodes([]*v1.Node{w.node})
		a.failed["m"] = failure{at: decidedAt, pause: statusInterval}
		a.behindSince["m"] = decidedAt
		if _, after, _ := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt.Add(time.Hour)); after != test.want {
			t.Errorf("%s: again after %s", name, after)
		}
	}
}

// A list of budgets that takes longer than it may be used is of no use, and nodes say so after a while.
func TestSlowListOfBudgets(t *testing.T) {
	w := newAdmitterWorld()
	w.store.clock = clocktesting.NewFakePassiveClock(decidedAt)
	w.store.took = map[string]time.Duration{"list": listTimeout}
	a := w.admitter(t, w.store.clock)
	var waits map[string]map[Wait]int
	for range 14 {
		waits, _, _ = a.Sync(t.Context(), []Maintenance{w.maintenance}, w.store.clock.Now())
	}
	if waits["m"][Wait{Reason: coordinationv1alpha1.NodeMaintenanceWaitNotCurrent}] != 1 || slices.ContainsFunc(w.store.calls, func(call string) bool { return call != "list" }) {
		t.Errorf("waits %v, calls %v", waits, w.store.calls)
	}
	w.store.took = nil
	if waits, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, w.store.clock.Now()); err != nil || len(waits["m"]) > 0 {
		t.Errorf("quick again: waits %v, error %v", waits, err)
	}
}

// The node of a reservation that is over is not read while its holder may not be written, and once for all
// holders.
func TestExpiredReservationsAreReadOnce(t *testing.T) {
	w := newAdmitterWorld()
	w.maintenance.Waiting = nil
	w.budget.Status.PendingAdmissions = reservedAt(decidedAt.Add(-pendingTimeout), "m", "n")
	w.maintenance.Status.RolloutStatus.PendingAdmissions = reservedAt(decidedAt.Add(-pendingTimeout), "m", "n")
	clock := clocktesting.NewFakePassiveClock(decidedAt)
	a := w.admitter(t, clock)
	a.wroteAt["m"], a.wroteAt[w.budget.UID] = decidedAt.Add(-statusInterval/2), decidedAt.Add(-statusInterval/2)
	_, after, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, decidedAt)
	if len(w.store.calls) > 0 || err != nil || after <= 0 || after > statusInterval {
		t.Errorf("calls %v, error %v, again after %s", w.store.calls, err, after)
	}
	clock.SetTime(decidedAt.Add(after))
	if _, _, err := a.Sync(t.Context(), []Maintenance{w.maintenance}, clock.Now()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"get n", "reserve m", "reserve b"}, w.store.calls); diff != "" {
		t.Errorf("calls (-want, +got):\n%s", diff)
	}
}

// Nodes that are gone, or were created again, are noted.
func TestDeparted(t *testing.T) {
	var departed []types.UID
	f := NewFleet()
	f.Departed = func(n *v1.Node) { departed = append(departed, n.UID) }
	node := func(name string, uid types.UID) *v1.Node {
		n := readyNode(name, nil)
		n.UID = uid
		return n
	}
	f.SetNodes([]*v1.Node{node("a", "1"), node("b", "2"), node("c", "3")})
	f.SetNodes([]*v1.Node{node("a", "1"), node("b", "4")})
	slices.Sort(departed)
	if want := []types.UID{"2", "3"}; !slices.Equal(departed, want) {
		t.Errorf("departed: %v, not %v", departed, want)
	}
}
