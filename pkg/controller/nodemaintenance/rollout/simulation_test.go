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
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	testsimulation "k8s.io/kubernetes/test/utils/simulation"
	"k8s.io/utils/ptr"
)

const (
	// simulations is the number of fixed seeds and of random seeds in a test run: see
	// k8s.io/kubernetes/test/utils/simulation.
	simulations = 300

	simulatedSteps = 150

	// callTimeout is that of the API calls of a controller.
	callTimeout = 35 * time.Second

	// passTimeout is longer than a Sync waits for its calls.
	passTimeout = time.Minute

	// maxSkew is how far the clocks of two controllers are apart.
	maxSkew = time.Minute
)

// world is an API server, in which random things happen, and controllers that all admit at the same
// time: those that have lost their lease and do not know it yet, and those that were just started.
// Their caches lag behind, each for each kind, and other things happen between any two of their
// calls. The invariants are checked at each of their writes.
type world struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	// version is the last resourceVersion, and the histories are all versions of all objects.
	version      int
	nodes        history[*v1.Node]
	budgets      history[*coordinationv1alpha1.NodeMaintenanceBudget]
	maintenances history[*coordinationv1alpha1.NodeMaintenance]
	replicas     []*replica
	created      int
	// reserved has, by the UIDs of budgets, the nodes that were admitted within it, and paid those of
	// them that were not down before. Others were admitted when the budget did not exist yet.
	reserved, paid map[types.UID]sets.Set[string]
	log            []string
	// extra is the source of what happens besides, in every second history: windows, percentages, clocks
	// that are set, and holders whose writes are refused. It is nil in the others, which stay what they
	// were when something was found in them.
	extra    *rand.Rand
	refusing sets.Set[types.UID]
	// most is how many nodes there have been at a time, of each pool, and of all of them under "".
	most map[string]int
}

// The windows of budgets open twice an hour.
const (
	windowSchedule = "*/30 * * * *"
	windowInterval = 30 * time.Minute
	windowDuration = 10 * time.Minute
)

// isWindow reports whether such a window is open.
func isWindow(now time.Time) bool { return now.Sub(now.Truncate(windowInterval)) < windowDuration }

// limitOf returns what a limit allows of the nodes of a selector, of which there may be fewer now.
func (w *world) limitOf(value *intstr.IntOrString, selector *v1.NodeSelector) int {
	pool := ""
	if values := selector.NodeSelectorTerms[0].MatchExpressions[0].Values; len(values) > 0 {
		pool = values[0]
	}
	percent, isPercent := strings.CutSuffix(value.String(), "%")
	number, err := strconv.Atoi(percent)
	switch {
	case err != nil:
		w.t.Fatalf("reading a limit: %v", err)
	case isPercent && number > 0:
		return max(number*w.most[pool]/100, 1)
	}
	return number
}

// randomLimit returns a number below the limit, or also a percentage.
func (w *world) randomLimit(from, limit int32) *intstr.IntOrString {
	number := from + w.random.Int32N(limit-from)
	if w.extra != nil && w.extra.IntN(3) == 0 {
		return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", number*25)))
	}
	return ptr.To(intstr.FromInt32(number))
}

// history has the versions of all objects of one kind, in order. The objects are never changed.
type history[T metav1.Object] []version[T]

type version[T metav1.Object] struct {
	name   string
	object T
	gone   bool
	number int
}

// at returns the objects as they were after so many versions.
func (h history[T]) at(length int) map[string]T {
	objects := map[string]T{}
	for _, v := range h[:length] {
		if v.gone {
			delete(objects, v.name)
		} else {
			objects[v.name] = v.object
		}
	}
	return objects
}

func (h history[T]) stored() map[string]T { return h.at(len(h)) }

// write stores a version of an object.
func write[T metav1.Object](w *world, h *history[T], object T, gone bool) {
	w.version++
	object.SetResourceVersion(strconv.Itoa(w.version))
	*h = append(*h, version[T]{name: object.GetName(), object: object, gone: gone, number: w.version})
}

// replica is a controller.
type replica struct {
	*world
	name     string
	admitter *Admitter
	skew     time.Duration
	// seen is how many versions of each kind the caches have.
	seen struct{ nodes, budgets, maintenances int }
	// stuck is whether its watch of nodes delivers nothing.
	stuck bool
	// decided is how many versions of nodes it had when its Sync has begun.
	decided int
	// listed is the version at which the budgets were last read from the API server.
	listed int
	// The replica is idle, or it waits in a call that begun at that time.
	idle  bool
	call  func() error
	begun time.Time
	// synced is when its Sync has begun, and suspended whether its timeout does not count meanwhile:
	// while a process is suspended, only the clock on the wall goes on.
	synced    time.Time
	suspended bool
	calls     chan func() error
	result    chan error
	done      chan struct{}
	dead      bool
	// undisturbed is whether each of its calls has a response.
	undisturbed bool
}

var (
	errKilled = errors.New("the controller was killed")
	errLate   = errors.New("the reservation is too old")
)

// replicaClock is that of a replica.
type replicaClock struct{ *replica }

func (c replicaClock) Now() time.Time                  { return c.now.Add(c.skew) }
func (c replicaClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (w *world) start() {
	r := &replica{
		world: w, name: fmt.Sprintf("replica-%d", len(w.replicas)), idle: true,
		skew:  time.Duration(w.random.Int64N(int64(maxSkew))) - maxSkew/2,
		calls: make(chan func() error), result: make(chan error), done: make(chan struct{}),
	}
	r.admitter = NewAdmitter(r, replicaClock{r}, func(Admission) {})
	r.admitter.Parallel = 1
	// A list may be as old as any watch.
	r.seen.nodes, r.seen.budgets, r.seen.maintenances = w.random.IntN(len(w.nodes)+1), w.random.IntN(len(w.budgets)+1), w.random.IntN(len(w.maintenances)+1)
	w.replicas = append(w.replicas, r)
}

// sync lets the replica begin, as far as its first call.
func (r *replica) sync() {
	r.decided = r.seen.nodes
	nodes := r.nodes.at(r.decided)
	r.follow(nodes, r.budgets.at(r.seen.budgets))
	maintenances := r.needAdmissions(r.maintenances.at(r.seen.maintenances), nodes)
	now := r.now.Add(r.skew)
	r.idle, r.synced, r.suspended = false, r.now, r.random.IntN(4) == 0
	go func() {
		_, _, err := r.admitter.Sync(context.Background(), maintenances, now)
		for _, err := range unjoined(err) {
			if !errors.Is(err, errKilled) && !errors.Is(err, errLate) && !errors.Is(err, errBehind) && !errors.Is(err, context.DeadlineExceeded) && !apierrors.IsForbidden(err) {
				r.t.Errorf("unexpected error: %v", err)
			}
		}
		r.done <- struct{}{}
	}()
	r.await()
}

// unjoined returns the errors of which one was made by errors.Join.
func unjoined(err error) []error {
	joined, isJoined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !isJoined:
		return []error{err}
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, unjoined(err)...)
	}
	return all
}

// follow brings the fleet up to date with the caches, as the controller does, and checks that it counts
// what one counts that is built at once.
func (r *replica) follow(nodes map[string]*v1.Node, budgets map[string]*coordinationv1alpha1.NodeMaintenanceBudget) {
	fleet, built := r.admitter.Fleet, NewFleet()
	fleet.SetNodes(slices.Collect(maps.Values(nodes)))
	for _, b := range budgets {
		for _, f := range []*Fleet{fleet, built} {
			if err := f.SetBudget(b); err != nil {
				r.t.Fatalf("setting a budget: %v", err)
			}
		}
	}
	for _, name := range fleet.BudgetNames() {
		if budgets[name] == nil {
			fleet.RemoveBudget(name)
		}
	}
	built.SetNodes(slices.Collect(maps.Values(nodes)))
	if want, got := countsOf(built), countsOf(fleet); !maps.Equal(want, got) {
		r.fail("%s counts something else than is there (-want, +got):\n%s", r.name, cmp.Diff(want, got))
	}
}

// countsOf returns what a fleet has counted, and the order of its nodes, as text.
func countsOf(f *Fleet) map[string]string {
	all := map[string]string{}
	for uid, c := range f.admitted {
		admitted := sets.New[string]()
		for name, n := range f.nodes {
			if c.nodes.has(n.slot) {
				admitted.Insert(name)
			}
		}
		all["maintenance "+string(uid)] = fmt.Sprintf("working %d, failed %d, done %d: %v", c.working, c.failed.Len(), c.done, sets.List(admitted))
	}
	for name, b := range f.budgets {
		all["budget "+name] = fmt.Sprintf("%s, generation %d: nodes %v, unavailable %d, disrupted %d, lost %d, working %d, taken %v, available %v", b.UID, b.Generation, sets.List(b.nodes), b.unavailable, b.disrupted, b.lost, b.working, b.taken, b.available)
	}
	for name, n := range f.nodes {
		var budgets []string
		for _, b := range n.budgets {
			budgets = append(budgets, b.Name)
		}
		all["node "+name] = fmt.Sprintf("%s: unavailable %t, down %t, taken %t, budgets %v", n.UID, n.unavailable, n.down, n.taken, budgets)
	}
	all["all nodes"] = fmt.Sprintf("lost %d, working %d", f.lost, f.working)
	f.rankNodes()
	all["order"] = fmt.Sprint(slices.SortedFunc(maps.Keys(f.nodes), func(a, b string) int { return f.nodes[a].rank - f.nodes[b].rank }))
	return all
}

// needAdmissions returns the maintenances in the stage Drain with the nodes that wait.
func (w *world) needAdmissions(maintenances map[string]*coordinationv1alpha1.NodeMaintenance, nodes map[string]*v1.Node) []Maintenance {
	var found []Maintenance
	for _, name := range slices.Sorted(maps.Keys(maintenances)) {
		m := Maintenance{NodeMaintenance: maintenances[name], Rank: name}
		if m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
			continue
		}
		selector, err := maintenance.NewNodeMatcher(m.Spec.NodeSelector)
		if err != nil {
			w.t.Fatalf("reading a selector: %v", err)
		}
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			if !selector.Matches(nodes[name]) {
				continue
			}
			m.Selected++
			if maintenance.AdmissionOf(nodes[name], m.UID) == nil {
				m.Waiting = append(m.Waiting, name)
			}
		}
		found = append(found, m)
	}
	return found
}

// await waits until the replica makes a call or is done.
func (r *replica) await() {
	select {
	case r.call = <-r.calls:
		r.begun = r.now
	case <-r.done:
		r.call, r.idle = nil, true
	}
}

// grant makes the call of the replica, and lets it go on as far as its next one.
func (r *replica) grant() {
	var err error
	switch {
	case r.now.Sub(r.begun) > callTimeout || r.now.Sub(r.synced) > passTimeout && !r.suspended:
		err = context.DeadlineExceeded
	case r.dead:
		if r.random.IntN(2) == 0 { // The request was sent before.
			_ = r.call()
		}
		err = errKilled
	case !r.undisturbed && r.random.IntN(12) == 0: // No response.
		_ = r.call()
		err = context.DeadlineExceeded
	default:
		err = r.call()
	}
	r.result <- err
	r.await()
}

func (r *replica) do(call func() error) error {
	r.calls <- call
	return <-r.result
}

func (r *replica) NodesVersion() string {
	if r.seen.nodes == 0 {
		return "0"
	}
	return strconv.Itoa(r.nodes[r.seen.nodes-1].number)
}

func (r *replica) GetNode(_ context.Context, name string) (stored *v1.Node, err error) {
	err = r.do(func() error {
		if stored = r.nodes.stored()[name]; stored == nil {
			return apierrors.NewNotFound(v1.Resource("nodes"), name)
		}
		return nil
	})
	return stored, err
}

func (r *replica) ListBudgets(context.Context) (list []coordinationv1alpha1.NodeMaintenanceBudget, err error) {
	err = r.do(func() error {
		for _, b := range r.budgets.stored() {
			list = append(list, *b)
		}
		r.listed = r.version
		return nil
	})
	return list, err
}

func (r *replica) WriteBudget(_ context.Context, changed *coordinationv1alpha1.NodeMaintenanceBudget) error {
	return r.do(func() error {
		stored := r.budgets.stored()[changed.Name]
		if stored == nil || stored.UID != changed.UID || stored.ResourceVersion != changed.ResourceVersion {
			return apierrors.NewConflict(coordinationv1alpha1.Resource("nodemaintenancebudgets"), changed.Name, nil)
		}
		if r.isRefused(stored.UID) {
			return apierrors.NewForbidden(coordinationv1alpha1.Resource("nodemaintenancebudgets"), changed.Name, nil)
		}
		written := changed.DeepCopy()
		write(r.world, &r.world.budgets, written, false)
		r.checkReserved(stored, written)
		return nil
	})
}

// isRefused reports whether a write of the holder is refused, maybe after a while.
func (w *world) isRefused(holder types.UID) bool {
	if !w.refusing.Has(holder) {
		return false
	}
	if w.extra.IntN(2) == 0 {
		w.now = w.now.Add(10 * time.Second)
	}
	return true
}

func (r *replica) WriteMaintenance(_ context.Context, changed *coordinationv1alpha1.NodeMaintenance) error {
	return r.do(func() error {
		stored := r.maintenances.stored()[changed.Name]
		if stored == nil || stored.UID != changed.UID || stored.ResourceVersion != changed.ResourceVersion {
			return apierrors.NewConflict(coordinationv1alpha1.Resource("nodemaintenances"), changed.Name, nil)
		}
		if r.isRefused(stored.UID) {
			return apierrors.NewForbidden(coordinationv1alpha1.Resource("nodemaintenances"), changed.Name, nil)
		}
		written := changed.DeepCopy()
		write(r.world, &r.world.maintenances, written, false)
		r.checkRollout(stored, written)
		return nil
	})
}

func (r *replica) Admit(_ context.Context, node *v1.Node, admissions []v1.MaintenanceAdmission, before time.Time) (bool, error) {
	if !r.now.Add(r.skew).Before(before) {
		return false, errLate
	}
	err := r.do(func() error {
		stored := r.nodes.stored()[node.Name]
		if stored == nil || stored.UID != node.UID || stored.ResourceVersion != node.ResourceVersion {
			return apierrors.NewConflict(v1.Resource("nodes"), node.Name, nil)
		}
		written := stored.DeepCopy()
		if written.Status.MaintenanceStatus == nil {
			written.Status.MaintenanceStatus = &v1.MaintenanceStatus{}
		}
		for _, admission := range admissions {
			if r.isDrain(admission.MaintenanceUID) { // Otherwise it has no effect, and goes with the next sync of the node.
				r.checkAdmitted(stored, admission.MaintenanceUID)
			}
			r.note("%s admits %s for %s", r.name, node.Name, admission.MaintenanceName)
		}
		written.Status.MaintenanceStatus.Admissions = append(written.Status.MaintenanceStatus.Admissions, admissions...)
		write(r.world, &r.world.nodes, written, false)
		return nil
	})
	return err == nil, err
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// checkReserved checks that no budget reserves nodes while it is frozen.
func (r *replica) checkReserved(before, b *coordinationv1alpha1.NodeMaintenanceBudget) {
	cached := r.nodes.at(r.seen.nodes)
	for _, p := range b.Status.PendingAdmissions {
		if slices.Contains(before.Status.PendingAdmissions, p) {
			continue
		}
		r.note("%s reserves %s of %s for %s, %s", r.name, p.NodeName, b.Name, p.MaintenanceUID, describe(cached[p.NodeName]))
		switch {
		case r.limitOf(b.Spec.MaxUnavailable, b.Spec.NodeSelector) == 0:
			r.fail("%s reserves nodes of %s, which is frozen", r.name, b.Name)
		case len(b.Spec.Windows) > 0 && !isWindow(p.Time.Time):
			r.fail("%s reserves nodes of %s at %s, when no window is open", r.name, b.Name, p.Time)
		}
	}
}

// checkRollout checks the limits of a maintenance when nodes were reserved.
func (r *replica) checkRollout(before, m *coordinationv1alpha1.NodeMaintenance) {
	old, now := ptr.Deref(before.Status.RolloutStatus, coordinationv1alpha1.NodeMaintenanceRolloutStatus{}), m.Status.RolloutStatus
	pending := sets.New[string]()
	added := false
	for _, p := range now.PendingAdmissions {
		pending.Insert(p.NodeName)
		added = added || !slices.Contains(old.PendingAdmissions, p)
	}
	if !added {
		return
	}
	working, failed := 0, 0
	for name, n := range r.nodes.stored() {
		switch admission := maintenance.AdmissionOf(n, m.UID); {
		case admission == nil:
			if pending.Has(name) {
				working++
			}
		case admission.DoneTime == nil && admission.FailedTime == nil:
			working++
		}
	}
	// Of those that it knew.
	for _, n := range r.nodes.at(r.decided) {
		if admission := maintenance.AdmissionOf(n, m.UID); admission != nil && admission.FailedTime != nil && admission.DoneTime == nil {
			failed++
		}
	}
	switch {
	case m.Spec.Rollout.Paused:
		r.fail("%s reserves nodes of %s, which is paused", r.name, m.Name)
	case working > r.limitOf(m.Spec.Rollout.MaxConcurrent, m.Spec.NodeSelector):
		r.fail("%s: %d nodes are maintained, of %d", m.Name, working, r.limitOf(m.Spec.Rollout.MaxConcurrent, m.Spec.NodeSelector))
	case failed > int(*m.Spec.Rollout.MaxFailedNodes):
		r.fail("%s reserves nodes of %s, which is halted: %d have failed", r.name, m.Name, failed)
	}
}

// checkAdmitted checks the limits of all budgets that were there when the replica has read them, and that a
// rollout has reserved the node.
func (r *replica) checkAdmitted(n *v1.Node, uid types.UID) {
	isReserved := func(p coordinationv1alpha1.NodeMaintenancePendingAdmission) bool {
		return p.NodeName == n.Name && p.MaintenanceUID == uid
	}
	for _, m := range r.maintenances.stored() {
		if m.UID == uid && m.Spec.Rollout != nil && (m.Status.RolloutStatus == nil || !slices.ContainsFunc(m.Status.RolloutStatus.PendingAdmissions, isReserved)) {
			r.fail("%s admits %s for %s, which has not reserved it: %+v", r.name, n.Name, m.Name, m.Status.RolloutStatus)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.budgets.stored())) {
		b := r.budgets.stored()[name]
		var listed *coordinationv1alpha1.NodeMaintenanceBudget
		for _, v := range r.budgets {
			if v.object.UID == b.UID && v.number <= r.listed {
				listed = v.object
			}
		}
		selector, err := maintenance.NewNodeMatcher(b.Spec.NodeSelector)
		if err != nil {
			r.t.Fatalf("reading a selector: %v", err)
		}
		if listed == nil || !selector.Matches(n) {
			continue
		}
		if !slices.ContainsFunc(b.Status.PendingAdmissions, isReserved) {
			r.fail("%s admits %s for %s, which %s has not reserved: %+v, listed %d, now %s", r.name, n.Name, uid, name, b, r.listed, r.now.Add(r.skew))
		}
		r.checkLimits(b, listed, n)
	}
}

// isDead reports whether a node is not Ready, and is so for long enough, or has always been.
func (w *world) isDead(n *v1.Node) bool {
	since := n.Status.Conditions[0].LastTransitionTime
	return !maintenance.IsReady(n) && (since.IsZero() || w.now.Sub(since.Time) >= deadAfter-maxSkew)
}

// knowsOutage reports whether most of the nodes that the replica knew when it has decided are down, and no maintenance
// has to do with that: those of the selector, and if these are few, of all.
func (r *replica) knowsOutage(selector *maintenance.NodeMatcher) bool {
	var selected, all struct{ down, nodes int }
	for _, n := range r.nodes.at(r.decided) {
		if maintenance.IsTaken(n) && !isLost(n) {
			continue
		}
		all.nodes++
		all.down += flag(isLost(n))
		if selector.Matches(n) {
			selected.nodes++
			selected.down += flag(isLost(n))
		}
	}
	return selected.down > 0 && areMost(selected.down, selected.nodes) && (selected.down >= outageNodes || all.down >= outageNodes && areMost(all.down, all.nodes))
}

// checkLimits checks the limits of one budget. Those count that it had when the replica has read it:
// a change that comes later holds for the next nodes.
func (r *replica) checkLimits(b, listed *coordinationv1alpha1.NodeMaintenanceBudget, n *v1.Node) {
	if r.paid[b.UID] == nil {
		r.paid[b.UID], r.reserved[b.UID] = sets.New[string](), sets.New[string]()
	}
	paid, reserved := r.paid[b.UID], r.reserved[b.UID]
	taken, domains, active := sets.New[string](), sets.New[string](), sets.New[string]()
	selector, err := maintenance.NewNodeMatcher(b.Spec.NodeSelector)
	if err != nil {
		r.t.Fatalf("reading a selector: %v", err)
	}
	for name, other := range r.nodes.stored() {
		if !maintenance.IsTaken(other) {
			paid.Delete(name)
			reserved.Delete(name)
			continue
		}
		if selector.Matches(other) {
			active.Insert(other.Labels["zone"])
		}
		if paid.Has(name) {
			taken.Insert(name)
		}
		if reserved.Has(name) {
			domains.Insert(other.Labels["zone"])
		}
	}
	isFree := maintenance.IsTaken(n) || r.isDead(n) && !r.knowsOutage(selector)
	maxUnavailable := max(r.limitOf(b.Spec.MaxUnavailable, b.Spec.NodeSelector), r.limitOf(listed.Spec.MaxUnavailable, b.Spec.NodeSelector))
	switch {
	case maxUnavailable == 0:
		r.fail("%s admits %s of %s, which is frozen", r.name, n.Name, b.Name)
	case !isFree && taken.Len() >= maxUnavailable:
		r.fail("%s: %v are disrupted, of %d, when %s admits %s, available %t, %v", b.Name, sets.List(taken), maxUnavailable, r.name, n.Name, maintenance.IsAvailable(n), b.Status.PendingAdmissions)
	case b.Spec.Topology != nil && !active.Has(n.Labels["zone"]) &&
		domains.Len() >= int(max(b.Spec.Topology.MaxDomains, listed.Spec.Topology.MaxDomains)):
		r.fail("%s: nodes of %v are maintained, of %d domains, when %s admits %s", b.Name, sets.List(domains), b.Spec.Topology.MaxDomains, r.name, n.Name)
	}
	if !maintenance.IsTaken(n) {
		reserved.Insert(n.Name)
	}
	if !isFree {
		paid.Insert(n.Name)
	}
}

// TestSimulation checks that no limit is exceeded, that a freeze and a pause hold from the moment in
// which they are stored, and that every node is admitted in the end where nothing forbids it.
func TestSimulation(t *testing.T) {
	testsimulation.Run(t, simulations, func(t *testing.T, seed uint64) {
		w := &world{
			t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC), version: 1,
			paid: map[types.UID]sets.Set[string]{}, reserved: map[types.UID]sets.Set[string]{}, refusing: sets.New[types.UID](), most: map[string]int{},
		}
		if seed%2 == 1 {
			w.extra = rand.New(rand.NewPCG(seed, 8))
		}
		for range 3 + w.random.IntN(6) {
			w.createNode()
		}
		w.createBudget()
		for range 1 + w.random.IntN(3) {
			w.start()
		}
		for range simulatedSteps {
			w.happen()
		}
		w.finish()
	}, 2613408939819783192)
}

func (w *world) happen() {
	if w.extra != nil {
		w.happenBesides()
	}
	switch w.random.IntN(30) {
	case 0:
		w.createMaintenance()
	case 1:
		w.changeMaintenance()
	case 2:
		w.createBudget()
	case 3:
		w.changeBudget()
	case 4:
		w.changeNode()
	case 5:
		switch w.random.IntN(6) {
		case 0, 1:
			w.createNode()
		case 2:
			w.cordonNodes(w.randomSelector())
		}
	case 6:
		w.now = w.now.Add(time.Duration(w.random.IntN(600)) * time.Second)
	case 7:
		if w.random.IntN(4) == 0 {
			w.restart()
		}
	case 8, 9, 10, 11:
		w.advanceNode()
	case 12, 13, 14, 15, 16, 17, 18:
		r := w.replicas[w.random.IntN(len(w.replicas))]
		if more := w.random.IntN(len(w.nodes) - r.seen.nodes + 1); !r.stuck {
			r.seen.nodes += more
		}
		if w.random.IntN(2) == 0 {
			r.seen.budgets += w.random.IntN(len(w.budgets) - r.seen.budgets + 1)
		}
		if w.random.IntN(2) == 0 {
			r.seen.maintenances += w.random.IntN(len(w.maintenances) - r.seen.maintenances + 1)
		}
	default:
		r := w.replicas[w.random.IntN(len(w.replicas))]
		if r.idle {
			r.current()
			r.sync()
		} else {
			r.grant()
		}
	}
}

// happenBesides sets a clock, has the writes of a holder refused or accepted again, or the watch of a
// replica stuck.
func (w *world) happenBesides() {
	switch w.extra.IntN(30) {
	case 0:
		w.replicas[w.extra.IntN(len(w.replicas))].skew = time.Duration(w.extra.Int64N(int64(maxSkew))) - maxSkew/2
	case 1:
		var holders []types.UID
		for _, name := range slices.Sorted(maps.Keys(w.budgets.stored())) {
			holders = append(holders, w.budgets.stored()[name].UID)
		}
		for _, name := range slices.Sorted(maps.Keys(w.maintenances.stored())) {
			holders = append(holders, w.maintenances.stored()[name].UID)
		}
		if len(holders) > 0 {
			w.refuse(holders[w.extra.IntN(len(holders))])
		}
	case 2:
		w.refusing = sets.New[types.UID]()
	case 3:
		r := w.replicas[w.extra.IntN(len(w.replicas))]
		r.stuck = !r.stuck
		w.note("the watch of nodes of %s is stuck: %t", r.name, r.stuck)
	case 4:
		w.disconnect(w.extra.IntN(3) > 0)
	case 5:
		w.drainNode()
	}
}

// disconnect has some of the nodes of a pool not be Ready, in the same moment, or be back: a network is interrupted.
func (w *world) disconnect(down bool) {
	pool, status := string(rune('x'+w.extra.IntN(2))), v1.ConditionTrue
	if down {
		status = v1.ConditionUnknown
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes.stored())) {
		n := w.nodes.stored()[name].DeepCopy()
		ready := &n.Status.Conditions[0]
		if n.Labels["pool"] != pool || ready.Status == status || w.extra.IntN(4) == 0 {
			continue
		}
		ready.Status, ready.LastTransitionTime = status, metav1.NewTime(w.now)
		w.note("%s, with others of pool %s: ready %s", name, pool, status)
		write(w, &w.nodes, n, false)
	}
}

// drainNode has no pod be left on a node.
func (w *world) drainNode() {
	nodes := w.nodes.stored()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name].DeepCopy()
		for i := range maintenance.Admissions(n) {
			if a := &n.Status.MaintenanceStatus.Admissions[i]; a.DoneTime == nil && a.DrainedTime == nil {
				a.DrainedTime = ptr.To(metav1.NewTime(w.now))
				w.note("%s is drained", name)
				write(w, &w.nodes, n, false)
				return
			}
		}
	}
}

func (w *world) refuse(holder types.UID) {
	w.note("writes of %s are refused", holder)
	w.refusing.Insert(holder)
}

// current brings the caches up to date, mostly.
func (r *replica) current() {
	if r.random.IntN(3) == 0 {
		return
	}
	if !r.stuck {
		r.seen.nodes = len(r.nodes)
	}
	r.seen.budgets, r.seen.maintenances = len(r.budgets), len(r.maintenances)
}

// restart kills a replica in the middle of whatever it does, and starts another one.
func (w *world) restart() {
	i := w.random.IntN(len(w.replicas))
	r := w.replicas[i]
	r.dead = true
	for !r.idle {
		r.grant()
	}
	w.replicas = slices.Delete(w.replicas, i, i+1)
	w.start()
}

func (w *world) createNode() {
	w.created++
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("n%d", w.created), UID: types.UID(fmt.Sprintf("node-%d", w.created)),
		Labels: map[string]string{"zone": string(rune('a' + w.random.IntN(3))), "pool": string(rune('x' + w.random.IntN(2)))},
	}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	write(w, &w.nodes, n, false)
	count := map[string]int{}
	for _, stored := range w.nodes.stored() {
		count[""]++
		count[stored.Labels["pool"]]++
	}
	for pool := range count {
		w.most[pool] = max(w.most[pool], count[pool])
	}
}

// randomSelector selects all nodes, or those of a pool.
func (w *world) randomSelector() *v1.NodeSelector {
	requirement := v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpExists}
	if w.random.IntN(2) == 0 {
		requirement = v1.NodeSelectorRequirement{Key: "pool", Operator: v1.NodeSelectorOpIn, Values: []string{string(rune('x' + w.random.IntN(2)))}}
	}
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}}}
}

func (w *world) createBudget() {
	w.created++
	b := &coordinationv1alpha1.NodeMaintenanceBudget{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("b%d", w.created), UID: types.UID(fmt.Sprintf("budget-%d", w.created)), Generation: 1,
	}}
	b.Spec.NodeSelector = w.randomSelector()
	b.Spec.MaxUnavailable = w.randomLimit(0, 4)
	if w.extra != nil && w.extra.IntN(3) == 0 {
		b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: windowSchedule, TimeZone: "UTC", DurationSeconds: int32(windowDuration / time.Second)}}
	}
	if w.random.IntN(2) == 0 {
		b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: 1 + w.random.Int32N(2)}
	}
	w.note("%s: %v %v %v", b.Name, b.Spec.MaxUnavailable, b.Spec.Topology, b.Spec.Windows)
	write(w, &w.budgets, b, false)
}

// pick returns a random one of the objects, or nil.
func pick[T metav1.Object](w *world, objects map[string]T) (picked T) {
	if len(objects) == 0 {
		return picked
	}
	names := slices.Sorted(maps.Keys(objects))
	return objects[names[w.random.IntN(len(names))]]
}

func (w *world) changeBudget() {
	b := pick(w, w.budgets.stored()).DeepCopy()
	if b == nil {
		return
	}
	switch w.random.IntN(6) {
	case 0:
		w.note("%s goes", b.Name)
		write(w, &w.budgets, b, true)
		return
	case 1:
		b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	case 2:
		if b.Spec.Topology != nil {
			b.Spec.Topology.MaxDomains = 1 + w.random.Int32N(2)
		}
	default:
		b.Spec.MaxUnavailable = w.randomLimit(0, 4)
	}
	b.Generation++
	w.note("%s: %v %v", b.Name, b.Spec.MaxUnavailable, b.Spec.Topology)
	write(w, &w.budgets, b, false)
}

func (w *world) createMaintenance() {
	w.created++
	m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("m%d", w.created), UID: types.UID(fmt.Sprintf("maintenance-%d", w.created)), Generation: 1,
	}}
	m.Spec.NodeSelector, m.Spec.Stage = w.randomSelector(), coordinationv1alpha1.NodeMaintenanceStageDrain
	if w.random.IntN(3) == 0 {
		m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
		defer w.cordonNodes(m.Spec.NodeSelector)
	}
	if w.random.IntN(2) == 0 {
		m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{
			MaxConcurrent: w.randomLimit(1, 4), Paused: w.random.IntN(6) == 0, MaxFailedNodes: ptr.To(w.random.Int32N(2)),
		}
	}
	w.note("%s: %+v", m.Name, m.Spec.Rollout)
	write(w, &w.maintenances, m, false)
}

func (w *world) changeMaintenance() {
	m := pick(w, w.maintenances.stored()).DeepCopy()
	if m == nil {
		return
	}
	m.Generation++
	switch {
	case m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon:
		m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageDrain
	case w.random.IntN(3) == 0:
		m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageComplete
	case m.Spec.Rollout != nil && w.random.IntN(2) == 0:
		m.Spec.Rollout.Paused = !m.Spec.Rollout.Paused
	case m.Spec.Rollout != nil:
		m.Spec.Rollout.MaxConcurrent = w.randomLimit(1, 4)
	}
	w.note("%s: %s %+v", m.Name, m.Spec.Stage, m.Spec.Rollout)
	write(w, &w.maintenances, m, false)
}

// cordonNodes cordons all nodes of a selector, as the stage Cordon does, and administrators do.
func (w *world) cordonNodes(selector *v1.NodeSelector) {
	matcher, err := maintenance.NewNodeMatcher(selector)
	if err != nil {
		w.t.Fatalf("reading a selector: %v", err)
	}
	nodes := w.nodes.stored()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[name].DeepCopy(); matcher.Matches(n) {
			n.Spec.Unschedulable = true
			w.note("%s is cordoned", name)
			write(w, &w.nodes, n, false)
		}
	}
}

// changeNode has a node die, come back, or go, or cordons it.
func (w *world) changeNode() {
	n := pick(w, w.nodes.stored()).DeepCopy()
	if n == nil {
		return
	}
	switch w.random.IntN(8) {
	case 0:
		if len(w.nodes.stored()) > 2 {
			w.note("%s goes", n.Name)
			write(w, &w.nodes, n, true)
		}
		return
	case 1, 2:
		n.Spec.Unschedulable = !n.Spec.Unschedulable
	default:
		ready := &n.Status.Conditions[0]
		ready.Status = map[v1.ConditionStatus]v1.ConditionStatus{v1.ConditionTrue: v1.ConditionUnknown, v1.ConditionUnknown: v1.ConditionTrue}[ready.Status]
		if w.extra != nil {
			ready.LastTransitionTime = metav1.NewTime(w.now)
		}
	}
	w.note("%s: unschedulable %t, ready %s", n.Name, n.Spec.Unschedulable, n.Status.Conditions[0].Status)
	write(w, &w.nodes, n, false)
}

// advanceNode does what the sync of a node does after an admission, and reports whether there was
// anything to do.
func (w *world) advanceNode() bool {
	nodes := w.nodes.stored()
	maps.DeleteFunc(nodes, func(_ string, n *v1.Node) bool {
		return !slices.ContainsFunc(maintenance.Admissions(n), func(a v1.MaintenanceAdmission) bool { return a.DoneTime == nil || !w.isDrain(a.MaintenanceUID) })
	})
	n := pick(w, nodes).DeepCopy()
	if n == nil {
		return false
	}
	admissions := n.Status.MaintenanceStatus.Admissions
	if i := slices.IndexFunc(admissions, func(a v1.MaintenanceAdmission) bool { return !w.isDrain(a.MaintenanceUID) }); i >= 0 {
		n.Status.MaintenanceStatus.Admissions = slices.Delete(admissions, i, i+1)
	} else {
		i := slices.IndexFunc(admissions, func(a v1.MaintenanceAdmission) bool { return a.DoneTime == nil })
		if admissions[i].FailedTime == nil && w.random.IntN(4) == 0 {
			admissions[i].FailedTime = ptr.To(metav1.NewTime(w.now))
		} else {
			admissions[i].DoneTime, admissions[i].FailedTime = ptr.To(metav1.NewTime(w.now)), nil
		}
	}
	if !maintenance.IsTaken(n) {
		n.Spec.Unschedulable = false
	}
	w.note("%s: %s", n.Name, describe(n))
	write(w, &w.nodes, n, false)
	return true
}

// describe lists the admissions of a node.
func describe(n *v1.Node) string {
	if n == nil {
		return "gone"
	}
	text := "zone " + n.Labels["zone"]
	for _, a := range maintenance.Admissions(n) {
		text += fmt.Sprintf(", %s done %t failed %t", a.MaintenanceName, a.DoneTime != nil, a.FailedTime != nil)
	}
	return text
}

// isDrain reports whether the maintenance is in the stage Drain.
func (w *world) isDrain(uid types.UID) bool {
	for _, m := range w.maintenances.stored() {
		if m.UID == uid {
			return m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain
		}
	}
	return false
}

// mendNodes brings all nodes back. Those that a maintenance waits for may stay cordoned: they are made
// schedulable when they are given back.
func (w *world) mendNodes() {
	waiting := sets.New[string]()
	for _, m := range w.needAdmissions(w.maintenances.stored(), w.nodes.stored()) {
		if !w.refusing.Has(m.UID) {
			waiting.Insert(m.Waiting...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes.stored())) {
		n := w.nodes.stored()[name].DeepCopy()
		n.Spec.Unschedulable = n.Spec.Unschedulable && waiting.Has(name)
		n.Status.Conditions[0].Status = v1.ConditionTrue
		write(w, &w.nodes, n, false)
	}
}

// untilQuiet syncs until nothing happens for as long as a window is open, and reports whether there was
// anything to do.
func (r *replica) untilQuiet() (progress bool) {
	const step = 15 * statusInterval
	for quiet := time.Duration(0); quiet < windowDuration; quiet += step {
		r.seen.nodes, r.seen.budgets, r.seen.maintenances = len(r.nodes), len(r.budgets), len(r.maintenances)
		before := len(r.nodes)
		r.now = r.now.Add(step)
		r.sync()
		for !r.idle {
			r.grant()
		}
		if r.advanceNode() || len(r.nodes) > before {
			quiet, progress = 0, true
		}
	}
	return progress
}

// finish ends freezes and pauses, and checks that one controller without disturbances then admits
// every node.
func (w *world) finish() {
	w.note("finish")
	for len(w.replicas) > 0 {
		r := w.replicas[0]
		r.dead = true
		for !r.idle {
			r.grant()
		}
		w.replicas = w.replicas[1:]
	}
	for _, name := range slices.Sorted(maps.Keys(w.budgets.stored())) {
		b := w.budgets.stored()[name].DeepCopy()
		if b.Generation++; w.limitOf(b.Spec.MaxUnavailable, b.Spec.NodeSelector) == 0 {
			b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		}
		write(w, &w.budgets, b, false)
	}
	for _, name := range slices.Sorted(maps.Keys(w.maintenances.stored())) {
		m := w.maintenances.stored()[name].DeepCopy()
		if m.Spec.Rollout != nil {
			m.Spec.Rollout.Paused, m.Generation = false, m.Generation+1
			write(w, &w.maintenances, m, false)
		}
	}
	if w.extra != nil {
		// The others do not wait for a maintenance that cannot be written.
		w.refusing = sets.New[types.UID]()
		if m := pick(w, w.maintenances.stored()); m != nil && m.Spec.Rollout != nil && w.extra.IntN(2) == 0 {
			w.refuse(m.UID)
		}
	}
	w.mendNodes()
	w.now = w.now.Add(2 * pendingTimeout)
	w.start()
	r := w.replicas[0]
	r.untilQuiet()
	// Lost responses and the reservations of a maintenance that is refused may use up a window.
	for windows := 0; w.extra != nil && windows < 4; windows++ {
		w.now = w.now.Truncate(windowInterval).Add(windowInterval)
		if r.untilQuiet() {
			windows = -1
		}
	}
	// A budget gives up what no maintenance uses, and counts it until the next one.
	r.undisturbed = true
	for range 2 {
		r.seen.nodes, r.seen.budgets, r.seen.maintenances = len(r.nodes), len(r.budgets), len(r.maintenances)
		r.now = r.now.Add(maxPause)
		r.sync()
		for !r.idle {
			r.grant()
		}
	}
	for _, m := range w.needAdmissions(w.maintenances.stored(), w.nodes.stored()) {
		if len(m.Waiting) > 0 && !w.refusing.Has(m.UID) {
			waits := r.admitter.Decide(w.needAdmissions(w.maintenances.stored(), w.nodes.stored()), w.now).Waits
			for name, b := range w.budgets.stored() {
				w.note("%s: %+v", name, b.Status)
			}
			w.fail("%s: %v wait for ever: %v", m.Name, m.Waiting, waits)
		}
	}
	for name, b := range w.budgets.stored() {
		// A budget whose last response was lost is written before a maintenance that is refused, and keeps a
		// place for it until the reservation is over.
		refused := slices.ContainsFunc(b.Status.PendingAdmissions, func(p coordinationv1alpha1.NodeMaintenancePendingAdmission) bool {
			return w.refusing.Has(p.MaintenanceUID)
		})
		if !refused && (len(b.Status.PendingAdmissions) > 0 || len(b.Status.ActiveDomains) > 0 || b.Status.UnavailableNodes > 0) {
			w.fail("%s: %+v", name, b.Status)
		}
	}
}

// What a holder cannot reserve keeps no place of other holders, but for the first reservation: neither if
// the status of a maintenance cannot be written, nor that of another budget.
func TestUnwritableHolderKeepsNoPlace(t *testing.T) {
	for _, refused := range []types.UID{"old", "second"} {
		w := &world{
			t: t, random: rand.New(rand.NewPCG(1, 7)), extra: rand.New(rand.NewPCG(1, 8)), now: decidedAt, version: 1,
			paid: map[types.UID]sets.Set[string]{}, reserved: map[types.UID]sets.Set[string]{}, refusing: sets.New(refused),
		}
		for _, name := range []string{"n1", "n2"} {
			write(w, &w.nodes, readyNode(name, map[string]string{"name": name}), false)
		}
		selecting := func(names ...string) *v1.NodeSelector {
			return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "name", Operator: v1.NodeSelectorOpIn, Values: names}}}}}
		}
		for name, nodes := range map[string][]string{"first": {"n1", "n2"}, "second": {"n1"}} {
			b := &coordinationv1alpha1.NodeMaintenanceBudget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
			b.Spec.NodeSelector, b.Spec.MaxUnavailable = selecting(nodes...), ptr.To(intstr.FromInt32(1))
			write(w, &w.budgets, b, false)
		}
		for name, node := range map[string]string{"old": "n1", "young": "n2"} {
			m := waitingFor(name).NodeMaintenance
			m.Spec.NodeSelector, m.Spec.Stage = selecting(node), coordinationv1alpha1.NodeMaintenanceStageDrain
			m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt32(1)), MaxFailedNodes: ptr.To[int32](0)}
			write(w, &w.maintenances, m, false)
		}
		w.start()
		for r, end := w.replicas[0], w.now.Add(pendingTimeout+2*maxPause); len(maintenance.Admissions(w.nodes.stored()["n2"])) == 0; w.now = w.now.Add(statusInterval) {
			r.seen.nodes, r.seen.budgets, r.seen.maintenances = len(w.nodes), len(w.budgets), len(w.maintenances)
			r.sync()
			for !r.idle {
				r.grant()
			}
			if w.now.After(end) {
				w.fail("%s: n2 still waits", refused)
			}
		}
	}
}
