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
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// pendingUsable is how long after its reservation an admission may be written, and
	// pendingTimeout how long it counts, if it is not. Between them is more than a Sync may take, and
	// the clocks of two controllers may differ.
	pendingUsable  = 2 * time.Minute
	pendingTimeout = 5 * time.Minute

	// clockCheck is how often it is looked whether a window is open.
	clockCheck = time.Minute

	// readTimeout is how long the reads of a Sync may take: the list of budgets, and the nodes of reservations
	// that are over. writeTimeout is how long a write of a holder may, which delays nobody else: more than any
	// webhook has, so that the API server says which one does not answer.
	readTimeout  = 15 * time.Second
	writeTimeout = 35 * time.Second

	// listTimeout is how old the list of budgets may be when the writes of admissions begin: a freeze
	// that was created since has not reserved them.
	listTimeout = 5 * time.Second

	// statusInterval is the minimum time between two writes of the status of a holder: the nodes that
	// are given back in a second are replaced together. A full batch does not wait.
	statusInterval = time.Second

	// maxPause is the longest time between two attempts to write a holder that cannot be written.
	maxPause = 30 * time.Second

	// staleInterval is when to try again because a cache is behind.
	staleInterval = 20 * time.Millisecond

	// behindTimeout is after which time that is an error, and behindInterval when to try again then.
	behindTimeout  = time.Minute
	behindInterval = 10 * time.Second

	// maxBehindLogged limits how many holders are reported at a time.
	maxBehindLogged = 10

	// parallelWrites is how many nodes or holders are written at a time.
	parallelWrites = 10

	// maxDomains is how many active domains the status of a budget names, which the API limits.
	maxDomains = 10
)

// Store makes the API calls of the protocol. All writes of objects have their resourceVersion as a
// precondition.
type Store interface {
	// ListBudgets reads the budgets from the API server.
	ListBudgets(ctx context.Context) ([]coordinationv1alpha1.NodeMaintenanceBudget, error)
	// WriteBudget and WriteMaintenance write the status of a changed copy.
	WriteBudget(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenanceBudget) error
	WriteMaintenance(ctx context.Context, changed *coordinationv1alpha1.NodeMaintenance) error
	// Admit adds the admissions to the status of the node, if the node has not changed in what the
	// decision was based on, and the clock is before that time. It reports whether they are stored. A
	// write that has failed before may wait: then the Store has Sync called again.
	Admit(ctx context.Context, node *v1.Node, admissions []v1.MaintenanceAdmission, before time.Time) (bool, error)
	// NodesVersion is the resourceVersion that the cache of nodes has reached, or empty.
	NodesVersion() string
	// GetNode reads a node from the API server.
	GetNode(ctx context.Context, name string) (*v1.Node, error)
}

// Admitter admits nodes. Only one goroutine may use it and its fleet.
type Admitter struct {
	*Fleet
	Store Store
	// Admitted is called for each admission that was written.
	Admitted func(Admission)
	// Parallel is how many nodes or holders are written at a time. If it is 1, they follow each other.
	Parallel int
	clock    clock.PassiveClock
	// behindSince has since when the cache of nodes is behind a holder, and behindLogged when that was
	// last reported.
	behindSince  map[types.UID]time.Time
	behindLogged time.Time
	// budgetsBehindSince is since when the budgets could not be listed, or the cache lacks some; zero if not.
	budgetsBehindSince time.Time
	// wroteAt has when the status of a holder was written, by its UID, within the last statusInterval.
	wroteAt map[types.UID]time.Time
	// stale is after which time this Sync has to be called again because a cache is behind, staleBefore
	// that of the one before.
	stale, staleBefore time.Duration
	// failed has the holders whose status could not be written at the last attempt.
	failed map[types.UID]failure
	// writes are those of holders, and admits those of nodes. errs are of the ones that have ended, and that
	// no Sync has returned.
	writes *attempts[types.UID]
	admits *attempts[string]
	errs   []error
	// begun is when the Sync has begun.
	begun time.Time
	// slowNodes are those of which the last attempt to admit them has taken longer than a Sync waits.
	slowNodes sets.Set[string]
	// unseen has the reservations that are over, and count all the same, because the cache of nodes may be
	// behind by more than pendingTimeout: the API server has the admission, or did not answer. The time is
	// that of the question.
	unseen map[reservation]time.Time
}

// reservation identifies a pending admission.
type reservation struct {
	node        string
	maintenance types.UID
}

func reservationOf(p *coordinationv1alpha1.NodeMaintenancePendingAdmission) reservation {
	return reservation{p.NodeName, p.MaintenanceUID}
}

// failure is when an attempt to write a holder has failed, and how long it is not written after that.
type failure struct {
	at    time.Time
	pause time.Duration
	// slow is whether the attempt has taken longer than a Sync waits: no more of these are written at a time than
	// a batch has.
	slow bool
}

// compare orders attempts: those that were slow are made last, because they may take all the time of a batch.
func (f failure) compare(other failure) int {
	return cmp.Or(compareFlags(other.slow, f.slow), f.at.Compare(other.at))
}

// holder is a budget, or a maintenance with a rollout: its status has what is pending for its limits.
type holder struct {
	types.UID
	// change returns a function that writes the status with the added admissions; nil if it is the same.
	change func(added []coordinationv1alpha1.NodeMaintenancePendingAdmission) func(context.Context) error
}

// NewAdmitter returns an admitter with an empty fleet.
func NewAdmitter(store Store, clock clock.PassiveClock, admitted func(Admission)) *Admitter {
	return &Admitter{
		Fleet: NewFleet(), Store: store, Admitted: admitted, Parallel: parallelWrites, clock: clock,
		writes: newAttempts[types.UID](), admits: newAttempts[string](), slowNodes: sets.New[string](),
		wroteAt: map[types.UID]time.Time{}, failed: map[types.UID]failure{}, behindSince: map[types.UID]time.Time{},
	}
}

// Sync makes the next step for all nodes. maintenances are all in the stage Drain that need
// admissions, as the cache has them. It returns what nodes wait for, by the names of maintenances,
// and after which time it has to be called again without an event; zero if it need not. Writes that hang go on
// when it returns, until the context is done.
func (a *Admitter) Sync(ctx context.Context, maintenances []Maintenance, now time.Time) (waits map[string]map[Wait]int, after time.Duration, err error) {
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// By the clock of the day: the other one stands still while the machine is suspended.
	now = now.Round(0)
	a.begun = now
	a.staleBefore, a.stale = a.stale, 0
	a.forget(maintenances, now)
	catchUp, behindErr := a.findBehind(maintenances, now)
	decision := a.Decide(maintenances, now)
	if decision.Full {
		after = staleInterval
	} else {
		decision.Admissions, after = a.due(decision.Admissions, now)
	}
	after = earlier(after, catchUp)
	listed := a.clock.Now().Round(0)
	if len(decision.Admissions) > 0 {
		current, err := a.hasCurrentBudgets(reading)
		// What takes longer than it may be used is of no use.
		current = current && a.clock.Since(listed).Abs() < listTimeout
		if a.noteBudgets(err == nil && current, now) {
			decision.explainRest(maintenances, coordinationv1alpha1.NodeMaintenanceWaitNotCurrent)
		}
		if err != nil {
			return decision.Waits, 0, errors.Join(behindErr, err)
		}
		if !current {
			return decision.Waits, a.waitForCache(), behindErr
		}
	} else {
		a.budgetsBehindSince = time.Time{} // Nobody has asked.
	}
	// Writes of holders may take long, and what they have reserved before does not need them.
	a.admit(ctx, decision.Admissions, nil, now, listed)
	expiredErr := a.checkExpired(reading, maintenances, now)
	reserved, again := a.reserve(ctx, maintenances, decision.Admissions, now)
	if a.clock.Since(listed).Abs() < listTimeout {
		a.admit(ctx, decision.Admissions, reserved, now, listed)
	} else {
		again = staleInterval
	}
	a.explainFailures(&decision, a.writes.running.Union(sets.KeySet(a.failed)))
	after = earlier(earlier(after, again), earlier(a.nextChange(maintenances, now), a.retry(maintenances)))
	errs := append(a.errs, behindErr, expiredErr)
	a.errs = nil
	return decision.Waits, after, errors.Join(errs...)
}

// noteBudgets records whether the cache has the budgets of the API server, and reports whether it has not had
// them for behindTimeout.
func (a *Admitter) noteBudgets(current bool, now time.Time) (lasting bool) {
	switch {
	case current:
		a.budgetsBehindSince = time.Time{}
		return false
	case a.budgetsBehindSince.IsZero() || now.Before(a.budgetsBehindSince): // Or the clock was set back.
		a.budgetsBehindSince = now
	}
	return now.Sub(a.budgetsBehindSince) >= behindTimeout
}

// waitForCache returns when to try again because a cache is behind: longer each time, because its watch may
// be broken. The event that it waits for does not wait for that.
func (a *Admitter) waitForCache() time.Duration {
	a.stale = min(max(2*a.staleBefore, staleInterval), statusInterval)
	return a.stale
}

// forget removes what is over, and what is about holders that do not matter any more, and notes which
// ones are not to be written now.
func (a *Admitter) forget(maintenances []Maintenance, now time.Time) {
	maps.DeleteFunc(a.wroteAt, func(_ types.UID, at time.Time) bool { return now.Sub(at).Abs() >= statusInterval })
	known := sets.New[types.UID]()
	for _, b := range a.budgets {
		known.Insert(b.UID)
	}
	for i := range maintenances {
		known.Insert(maintenances[i].UID)
	}
	maps.DeleteFunc(a.failed, func(uid types.UID, f failure) bool { return !known.Has(uid) || now.Before(f.at.Add(-maxPause)) })
	// Also those of which the write ends now: the caches may be older.
	a.unwritable = a.writes.running.Clone()
	a.writes.collect()
	a.admits.collect()
	maps.DeleteFunc(a.admitting, func(node string, write admitting) bool {
		return write.isSeen(a.nodes[node]) || !write.ended.IsZero() && now.Sub(write.ended).Abs() >= pendingTimeout
	})
	a.failing = a.unwritable.Union(sets.KeySet(a.failed))
	for uid := range a.failed {
		if a.pause(uid, now) > 0 {
			a.unwritable.Insert(uid)
		}
	}
	for i := range maintenances {
		if maintenances[i].Unwritable {
			a.unwritable.Insert(maintenances[i].UID)
		}
	}
}

// retry returns when holders are to be written again that cannot be written now.
func (a *Admitter) retry(maintenances []Maintenance) (after time.Duration) {
	now := a.clock.Now()
	waits := a.writes.running.Clone() // For something else than the next attempt.
	for i := range maintenances {
		if maintenances[i].Unwritable {
			waits.Insert(maintenances[i].UID)
		}
	}
	for uid := range a.failed {
		if _, behind := a.behind[uid]; behind || waits.Has(uid) {
			continue
		}
		wait := a.pause(uid, now)
		if a.unwritable.Has(uid) {
			wait = max(wait, staleInterval) // It has become due since nodes were decided on.
		}
		if a.writes.running.Len() > 0 {
			wait = max(wait, statusInterval) // There may be no room for it.
		}
		after = earlier(after, wait)
	}
	if waits.Len() > 0 || a.admits.running.Len() > 0 {
		after = earlier(after, statusInterval)
	}
	return after
}

// due returns the admissions whose holders may be written now, and when the first of the others may.
func (a *Admitter) due(admissions []Admission, now time.Time) (due []Admission, after time.Duration) {
	for _, admission := range admissions {
		wait := time.Duration(0)
		if admission.ReserveMaintenance {
			wait = a.pause(admission.Maintenance.UID, now)
		}
		for _, b := range admission.Budgets {
			wait = max(wait, a.pause(b.UID, now))
		}
		if wait > 0 {
			after = earlier(after, wait)
			continue
		}
		due = append(due, admission)
	}
	return due, after
}

// pause returns the time until the status of a holder may be written again.
func (a *Admitter) pause(holder types.UID, now time.Time) (wait time.Duration) {
	if at, found := a.wroteAt[holder]; found {
		wait = max(wait, at.Add(statusInterval).Sub(now))
	}
	if failed, found := a.failed[holder]; found {
		wait = max(wait, failed.at.Add(failed.pause).Sub(now))
	}
	return wait
}

var errBehind = errors.New("the cache of nodes is behind")

// findBehind notes the holders with a confirmed admission that the cache of nodes lacks: nothing is decided
// on their nodes, and they are not written. That lasts for moments. If it does not, somebody has to know:
// the cluster was restored into an etcd whose versions are lower, or another client has written the
// version. It returns when to look again, and what to report.
func (a *Admitter) findBehind(maintenances []Maintenance, now time.Time) (after time.Duration, err error) {
	cached, errs := a.Store.NodesVersion(), []error(nil)
	a.behind = map[types.UID]bool{}
	note := func(holder types.UID, version, name string) {
		if version == "" || cached == "" {
			return
		}
		if order, err := resourceversion.CompareResourceVersion(version, cached); err != nil || order <= 0 {
			return
		}
		since, found := a.behindSince[holder]
		if !found || now.Before(since) { // The clock was set back.
			since = now
			a.behindSince[holder] = now
		}
		a.behind[holder] = now.Sub(since) >= behindTimeout
		a.unwritable.Insert(holder)
		if !a.behind[holder] {
			after = earlier(after, staleInterval)
			return
		}
		after = earlier(after, behindInterval)
		if len(errs) < maxBehindLogged {
			errs = append(errs, fmt.Errorf("no node of %s is admitted since %s: %w, at version %s, of admissionResourceVersion %s in its status. "+
				"If the versions of the cluster have begun anew, remove that field with kubectl edit --subresource=status",
				name, since.UTC().Format(time.RFC3339), errBehind, cached, version))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.budgets)) {
		b := a.budgets[name]
		note(b.UID, b.Status.AdmissionResourceVersion, "NodeMaintenanceBudget "+name)
	}
	for _, m := range maintenances {
		if m.Status.RolloutStatus != nil {
			note(m.UID, m.Status.RolloutStatus.AdmissionResourceVersion, "NodeMaintenance "+m.Name)
		}
	}
	maps.DeleteFunc(a.behindSince, func(holder types.UID, _ time.Time) bool { _, behind := a.behind[holder]; return !behind })
	if len(errs) == 0 || now.Sub(a.behindLogged).Abs() < behindInterval {
		return after, nil
	}
	a.behindLogged = now
	return after, errors.Join(errs...)
}

// hasCurrentBudgets reports whether the cache of budgets is the same as that of the API server: a
// freeze that was just created holds, and so does a budget that this process has not seen yet.
func (a *Admitter) hasCurrentBudgets(ctx context.Context) (bool, error) {
	stored, err := a.Store.ListBudgets(ctx)
	if err != nil {
		return false, fmt.Errorf("listing node maintenance budgets: %w", err)
	}
	if len(stored) != len(a.budgets) {
		return false, nil
	}
	for i := range stored {
		if b := a.budgets[stored[i].Name]; b == nil || b.UID != stored[i].UID || b.ResourceVersion != stored[i].ResourceVersion {
			return false, nil
		}
	}
	return true, nil
}

// checkExpired reads the nodes of reservations that are over and whose admissions the cache lacks, and notes
// those that count all the same.
func (a *Admitter) checkExpired(ctx context.Context, maintenances []Maintenance, now time.Time) error {
	before, errs := a.unseen, []error(nil)
	a.unseen = map[reservation]time.Time{}
	missing := sets.New[reservation]()
	check := func(holder types.UID, p *coordinationv1alpha1.NodeMaintenancePendingAdmission) {
		key := reservationOf(p)
		if _, found := a.unseen[key]; found || missing.Has(key) || now.Sub(p.Time.Time) < pendingTimeout || a.confirms(p) != nil {
			return
		}
		if at, found := before[key]; found && now.Sub(at).Abs() < behindInterval {
			a.unseen[key] = at
			return
		}
		if a.pause(holder, now) > 0 {
			a.unseen[key] = time.Time{} // It is asked when the holder may be written.
			return
		}
		node, err := a.Store.GetNode(ctx, p.NodeName)
		switch {
		case apierrors.IsNotFound(err), err == nil && maintenance.AdmissionOf(node, p.MaintenanceUID) == nil:
			missing.Insert(key)
			return
		case err != nil:
			errs = append(errs, fmt.Errorf("reading node %s, whose reservation is over: %w", p.NodeName, err))
		}
		a.unseen[key] = now
	}
	for _, b := range a.budgets {
		if !a.unwritable.Has(b.UID) {
			for i := range b.Status.PendingAdmissions {
				check(b.UID, &b.Status.PendingAdmissions[i])
			}
		}
	}
	for i := range maintenances {
		if status := maintenances[i].Status.RolloutStatus; status != nil && !a.unwritable.Has(maintenances[i].UID) {
			for j := range status.PendingAdmissions {
				check(maintenances[i].UID, &status.PendingAdmissions[j])
			}
		}
	}
	return errors.Join(errs...)
}

// confirms returns the node that has the admission, if the cache has it.
func (a *Admitter) confirms(p *coordinationv1alpha1.NodeMaintenancePendingAdmission) *node {
	if n := a.nodes[p.NodeName]; n != nil && maintenance.AdmissionOf(n.Node, p.MaintenanceUID) != nil {
		return n
	}
	return nil
}

// reserve writes the status of the holders: it reserves the admissions, and confirms those that the
// cache has. It returns the UIDs of the holders that were written. What one could not reserve, those of later
// batches do not: it would keep a place of theirs from others until its reservation is over.
func (a *Admitter) reserve(ctx context.Context, maintenances []Maintenance, admissions []Admission, now time.Time) (reserved sets.Set[types.UID], after time.Duration) {
	reserved = sets.New[types.UID]()
	for _, holders := range a.holders(maintenances, now) {
		batch, begun := a.writes.newBatch(a.Parallel), sets.New[types.UID]()
		for _, h := range holders {
			if a.unwritable.Has(h.UID) {
				admissions = without(admissions, h.UID)
				continue
			}
			added := newPendings(admissions, h.UID, now)
			write, wait := h.change(added), a.pause(h.UID, now)
			switch {
			case write == nil:
				continue
			case wait > 0 && len(added) == 0:
				after = earlier(after, wait)
				continue
			}
			if !batch.begin(ctx, h.UID, a.failed[h.UID].slow, func() func() {
				limited, cancel := context.WithTimeout(ctx, writeTimeout)
				defer cancel()
				begun := a.clock.Now()
				err := write(limited)
				slow := a.clock.Since(begun) >= patience
				return func() {
					if a.wrote(ctx, h.UID, err, slow, now) {
						reserved.Insert(h.UID)
					}
				}
			}) {
				a.unwritable.Insert(h.UID)
				admissions, after = without(admissions, h.UID), earlier(after, statusInterval)
				continue
			}
			begun.Insert(h.UID)
		}
		batch.wait(ctx)
		for uid := range begun.Difference(reserved) {
			admissions = without(admissions, uid)
			if !a.writes.running.Has(uid) {
				// The others do not wait for it: the next decision is made without it, if it could not be written.
				after = earlier(after, a.waitForCache())
			}
		}
	}
	return reserved, after
}

// without returns the admissions that the holder does not have to reserve.
func without(admissions []Admission, holder types.UID) []Admission {
	return slices.DeleteFunc(slices.Clone(admissions), func(admission Admission) bool { return admission.needs(holder) })
}

// holders returns all holders, in the batches in which they are written: first those that could not be
// written before, of which the last attempts were quick, and are longest ago. Maintenances precede budgets, because what is
// pending there takes a place only from themselves.
func (a *Admitter) holders(maintenances []Maintenance, now time.Time) [][]holder {
	var failedRollouts, failedBudgets, rollouts, budgets []holder
	add := func(list, failed *[]holder, h holder) {
		if _, found := a.failed[h.UID]; found {
			list = failed
		}
		*list = append(*list, h)
	}
	for i := range maintenances {
		m := &maintenances[i]
		if m.Spec.Rollout == nil {
			continue
		}
		add(&rollouts, &failedRollouts, holder{m.UID, func(added []coordinationv1alpha1.NodeMaintenancePendingAdmission) func(context.Context) error {
			if len(added) == 0 && (m.Status.RolloutStatus == nil || len(m.Status.RolloutStatus.PendingAdmissions) == 0) {
				return nil // A maintenance may name thousands of nodes, and is not copied for nothing.
			}
			changed := m.DeepCopy()
			if !a.updatePending(changed, added, now) {
				return nil
			}
			return func(ctx context.Context) error { return a.Store.WriteMaintenance(ctx, changed) }
		}})
	}
	r := a.newRound(now)
	for _, name := range slices.Sorted(maps.Keys(a.budgets)) {
		b := a.budgets[name]
		add(&budgets, &failedBudgets, holder{b.UID, func(added []coordinationv1alpha1.NodeMaintenancePendingAdmission) func(context.Context) error {
			status := a.budgetStatus(r, b, added)
			if apiequality.Semantic.DeepEqual(&b.Status, status) {
				return nil
			}
			changed := b.NodeMaintenanceBudget.DeepCopy()
			changed.Status = *status
			return func(ctx context.Context) error { return a.Store.WriteBudget(ctx, changed) }
		}})
	}
	for _, failed := range [][]holder{failedRollouts, failedBudgets} {
		slices.SortStableFunc(failed, func(x, y holder) int { return a.failed[x.UID].compare(a.failed[y.UID]) })
	}
	return [][]holder{failedRollouts, failedBudgets, rollouts, budgets}
}

// wrote handles the outcome of the write of a holder, and reports whether it is stored. If it has failed, and not
// because the holder has changed or is gone, that is not written for a while, and nothing is decided that it would
// have to reserve.
func (a *Admitter) wrote(ctx context.Context, uid types.UID, err error, slow bool, now time.Time) bool {
	if err == nil {
		a.wroteAt[uid] = now
		delete(a.failed, uid)
		return true
	}
	err = ignoreOutdated(err)
	if ctx.Err() == nil && err != nil {
		// By the clock, because the attempt may have taken long.
		a.failed[uid] = failure{a.clock.Now(), min(max(2*a.failed[uid].pause, statusInterval), maxPause), slow}
	}
	a.errs = append(a.errs, err)
	return false
}

// ignoreOutdated returns nil for an error that says that the object has changed or is gone: the event
// of the change causes the next decision.
func ignoreOutdated(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// newPendings returns the pending admissions to add to a holder.
func newPendings(admissions []Admission, holder types.UID, now time.Time) (added []coordinationv1alpha1.NodeMaintenancePendingAdmission) {
	for i := range admissions {
		if admission := &admissions[i]; admission.needs(holder) {
			added = append(added, coordinationv1alpha1.NodeMaintenancePendingAdmission{
				NodeName: admission.Node.Name, MaintenanceUID: admission.Maintenance.UID, Time: metav1.NewTime(now),
			})
		}
	}
	return added
}

// keepPending returns the pending admissions that stay, with the added ones, and the version of the
// latest node of those that are confirmed.
func (a *Admitter) keepPending(stored, added []coordinationv1alpha1.NodeMaintenancePendingAdmission, version string, now time.Time) ([]coordinationv1alpha1.NodeMaintenancePendingAdmission, string) {
	var kept []coordinationv1alpha1.NodeMaintenancePendingAdmission
	for i := range stored {
		p := &stored[i]
		if n := a.confirms(p); n != nil {
			version = later(version, n.ResourceVersion)
			delete(a.refused, n.Name) // The answer may have been lost, or another process has written it.
			continue
		}
		age := now.Sub(p.Time.Time)
		if _, unseen := a.unseen[reservationOf(p)]; unseen || age < pendingTimeout {
			kept = append(kept, *p)
		}
		if age < pendingUsable-pendingTimeout {
			// The clock of another process was ahead, or somebody has written it: it would not be over for
			// long. It was made before now.
			kept[len(kept)-1].Time = metav1.NewTime(now)
		}
	}
	return append(kept, added...), version
}

// updatePending changes what is pending for the rollout of a maintenance, and reports whether that
// differs.
func (a *Admitter) updatePending(m *coordinationv1alpha1.NodeMaintenance, added []coordinationv1alpha1.NodeMaintenancePendingAdmission, now time.Time) bool {
	status := ptr.Deref(m.Status.RolloutStatus, coordinationv1alpha1.NodeMaintenanceRolloutStatus{})
	if len(status.PendingAdmissions)+len(added) == 0 {
		return false
	}
	before := status.DeepCopy()
	status.PendingAdmissions, status.AdmissionResourceVersion = a.keepPending(status.PendingAdmissions, added, status.AdmissionResourceVersion, now)
	m.Status.RolloutStatus = &status
	return !apiequality.Semantic.DeepEqual(before, &status)
}

// budgetStatus returns the desired status of a budget, with the admissions to reserve. It changes the
// counts of that budget in the round.
func (a *Admitter) budgetStatus(r *round, b *budget, added []coordinationv1alpha1.NodeMaintenancePendingAdmission) *coordinationv1alpha1.NodeMaintenanceBudgetStatus {
	now, counts := r.now, r.states[b]
	status := b.Status.DeepCopy()
	status.PendingAdmissions, status.AdmissionResourceVersion = a.keepPending(b.Status.PendingAdmissions, added, status.AdmissionResourceVersion, now)
	for _, p := range added {
		if n := a.nodes[p.NodeName]; n != nil {
			counts.add(b, n)
		}
	}
	status.ObservedGeneration = b.Generation
	status.ExpectedNodes, status.UnavailableNodes = int32(len(b.nodes)), int32(counts.unavailable)
	status.AdmissionsAllowed = 0
	if counts.open && !counts.frozen {
		status.AdmissionsAllowed = int32(r.allowed(b))
	}
	status.ActiveDomains = nil
	if b.Spec.Topology != nil {
		domains := slices.Sorted(maps.Keys(counts.taken))
		status.ActiveDomains = domains[:min(len(domains), maxDomains)]
	}
	status.NextWindowTime = nil
	if next := b.nextWindow(now); !next.IsZero() {
		status.NextWindowTime = ptr.To(metav1.NewTime(next.UTC()))
	}
	condition := openCondition(counts, status.NextWindowTime)
	condition.Message += a.remarks(b)
	condition.ObservedGeneration, condition.LastTransitionTime = b.Generation, metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// remarks returns what an administrator has to know besides the spec, and why nodes wait that are down.
func (f *Fleet) remarks(b *budget) (text string) {
	if f.isOutage(b) {
		cluster := ""
		if b.lost < outageNodes {
			cluster = ", and of all nodes of the cluster"
		}
		text = fmt.Sprintf(" At least %d%% of the nodes are not Ready%s: nobody can tell which of them have failed, so that none is admitted beyond spec.maxUnavailable before others are Ready.", outageShare, cluster)
	}
	if b.unlabeled > 0 {
		text += fmt.Sprintf(" %d of %d nodes have no label %s (spec.topology.key): each of them is a domain of its own.", b.unlabeled, len(b.nodes), b.Spec.Topology.Key)
	}
	if b.invalid != nil {
		text += fmt.Sprintf(" kube-controller-manager does not understand all of the spec, and ignores the rest: %v.", b.invalid)
	}
	return text
}

// openCondition returns the condition Open.
func openCondition(counts *budgetState, next *metav1.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: string(coordinationv1alpha1.NodeMaintenanceBudgetConditionOpen), Status: metav1.ConditionFalse,
	}
	switch {
	case counts.frozen:
		condition.Reason = coordinationv1alpha1.NodeMaintenanceBudgetReasonFrozen
		condition.Message = "spec.maxUnavailable is 0: no maintenance begins with any of these nodes."
	case !counts.open && next == nil:
		condition.Reason = coordinationv1alpha1.NodeMaintenanceBudgetReasonOutsideWindows
		condition.Message = "No window opens: see spec.windows."
	case !counts.open:
		condition.Reason = coordinationv1alpha1.NodeMaintenanceBudgetReasonOutsideWindows
		condition.Message = "No window is open: see status.nextWindowTime."
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason = coordinationv1alpha1.NodeMaintenanceBudgetReasonOpen
		condition.Message = "Maintenances may begin with nodes, as many as status.admissionsAllowed."
	}
	return condition
}

// admit writes the admissions whose holders have all reserved them: before, if none is given, and now
// otherwise. Those of a node are written together, and only until the list of budgets is too old, because
// of a freeze that was created since.
func (a *Admitter) admit(ctx context.Context, admissions []Admission, reserved sets.Set[types.UID], now, listed time.Time) {
	due, nodes := map[string][]Admission{}, []string(nil)
	for _, admission := range admissions {
		if holders := admission.holders(); len(holders) == 0 != (reserved == nil) || !reserved.HasAll(holders...) {
			continue
		}
		node := admission.Node.Name
		if due[node] == nil {
			nodes = append(nodes, node)
		}
		due[node] = append(due[node], admission)
	}
	batch := a.admits.newBatch(a.Parallel)
	for _, name := range nodes {
		admitted := due[name]
		node, added, reserved := admitted[0].Node, make([]v1.MaintenanceAdmission, 0, len(admitted)), now
		for _, admission := range admitted {
			if !admission.reserved.IsZero() && admission.reserved.Before(reserved) {
				reserved = admission.reserved
			}
			added = append(added, v1.MaintenanceAdmission{
				MaintenanceName: admission.Maintenance.Name, MaintenanceUID: admission.Maintenance.UID, AdmittedTime: metav1.NewTime(now),
			})
		}
		before := reserved.Add(pendingUsable)
		if current := listed.Add(listTimeout); current.Before(before) {
			before = current
		}
		earlier, tried := a.admitting[name]
		if batch.begin(ctx, name, a.slowNodes.Has(name), func() func() {
			begun := a.clock.Now()
			stored, err := a.Store.Admit(ctx, node, added, before)
			slow := a.clock.Since(begun) >= patience
			return func() {
				if a.answered(name, admitted, stored, err, slow, now); a.admitting[name].ended.IsZero() && tried {
					a.admitting[name] = earlier // This attempt has changed nothing.
				}
			}
		}) {
			write := admitting{node: node.UID}
			for i := range added {
				write.of = append(write.of, added[i].MaintenanceUID)
			}
			a.admitting[name] = write
		}
	}
	batch.wait(ctx)
}

// answered handles the outcome of an attempt to admit a node.
func (a *Admitter) answered(node string, admitted []Admission, stored bool, err error, slow bool, now time.Time) {
	if a.slowNodes.Delete(node); slow && a.nodes[node] != nil {
		a.slowNodes.Insert(node)
	}
	if write := a.admitting[node]; err == nil && stored || isUnknown(err) {
		write.ended, write.unknown = a.begun, err != nil
		a.admitting[node] = write
	} else {
		delete(a.admitting, node)
	}
	if err == nil && stored {
		delete(a.refused, node)
		for _, admission := range admitted {
			a.Admitted(admission)
		}
		return
	}
	a.errs = append(a.errs, ignoreOutdated(err))
	if a.nodes[node] == nil {
		return // It is gone since.
	}
	at := a.refused[node]
	if err == nil {
		at = now
	}
	a.refused[node] = at
}

// isUnknown reports whether a write may have been stored in spite of its error: the API server has not answered.
func isUnknown(err error) bool {
	return err != nil && (apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err))
}

// nextChange returns the time until something changes without an event: a window opens or closes, or
// a pending admission does not count any more. It is zero if nothing does.
func (a *Admitter) nextChange(maintenances []Maintenance, now time.Time) (after time.Duration) {
	expire := func(pending []coordinationv1alpha1.NodeMaintenancePendingAdmission) {
		for i := range pending {
			wait := max(pending[i].Time.Add(pendingTimeout).Sub(now), staleInterval)
			if at, unseen := a.unseen[reservationOf(&pending[i])]; unseen && at.IsZero() {
				wait = statusInterval
			} else if unseen {
				wait = behindInterval
			}
			after = earlier(after, wait)
		}
	}
	for _, write := range a.admitting {
		if write.unknown {
			after = earlier(after, max(write.ended.Add(pendingTimeout).Sub(now), staleInterval))
		}
	}
	for _, b := range a.budgets {
		if !a.unwritable.Has(b.UID) {
			expire(b.Status.PendingAdmissions)
		}
		if next := b.nextWindow(now); !next.IsZero() {
			// Not only then: the clock may be set while the queue waits.
			after = earlier(after, min(next.Sub(now), clockCheck))
		}
		for _, w := range b.windows {
			switch {
			case !w.IsOpen(now):
			case w.IsOpen(now.Add(clockCheck)):
				// To find the end of a window that opens again and again takes long.
				after = earlier(after, clockCheck)
			default:
				after = earlier(after, w.Closes(now).Sub(now))
			}
		}
	}
	for i := range maintenances {
		if status := maintenances[i].Status.RolloutStatus; status != nil && !a.unwritable.Has(maintenances[i].UID) {
			expire(status.PendingAdmissions)
		}
	}
	for _, n := range a.order {
		if wait := n.untilDead(now); wait > 0 && len(n.budgets) > 0 && slices.ContainsFunc(maintenances, func(m Maintenance) bool { return a.waitingSlots(&m).has(n.slot) }) {
			after = earlier(after, wait)
		}
	}
	return after
}

// earlier returns the shorter of two times, of which zero is none.
func earlier(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// later returns the newer of two resourceVersions, of which the empty one is the oldest.
func later(a, b string) string {
	if a == "" {
		return b
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order < 0 {
		return b
	}
	return a
}
