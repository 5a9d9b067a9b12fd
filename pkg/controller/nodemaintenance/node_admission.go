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

package nodemaintenance

import (
	"errors"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	daemonset "k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

const (
	// rebootSettled is how long a rebooted node has to be Ready before the work on it counts as done.
	rebootSettled = 30 * time.Second

	// returnGrace is how much time a rebooted node has at least to get its pods of DaemonSets back.
	returnGrace = 2 * time.Minute

	// healthInterval is how often a node that returns is looked at: what it waits for may be a
	// DaemonSet, whose changes cause no event here.
	healthInterval = 5 * time.Second

	// unrecordedInterval is for how long nothing is recorded of a maintenance that needs no admission, after
	// an API server has dropped it.
	unrecordedInterval = 5 * time.Minute

	// defaultReturnTimeout is the default of the API, for objects that were stored without it.
	defaultReturnTimeout = 30 * time.Minute
)

// computeAdmissions returns how far the maintenances are that were admitted to the node. Each step is
// stored before the next one follows from it.
func (c *Controller) computeAdmissions(s *nodeSync, view *status.View) []v1.MaintenanceAdmission {
	var admissions []v1.MaintenanceAdmission
	if len(maintenance.Admissions(s.node)) == 0 {
		c.boots.forget(s.node.Name)
	}
	for _, stored := range maintenance.Admissions(s.node) {
		at := slices.IndexFunc(s.specs, func(o progress.Spec) bool { return o.UID == stored.MaintenanceUID })
		switch {
		case at >= 0 && s.specs[at].Waits():
			// It has ended: see progress.Limits.
		case at >= 0 && s.specs[at].Stage == coordinationv1alpha1.NodeMaintenanceStageDrain:
			admissions = append(admissions, c.nextAdmission(s, view, &s.specs[at], stored))
		case at < 0 && c.mayComeBack(&stored, s.now):
			admissions = append(admissions, stored)
			// No event follows if it does not.
			c.nodes.AddAfter(s.node.Name, stored.AdmittedTime.Add(progress.UnknownAdmission).Sub(s.now))
		}
	}
	return append(append(admissions, doneBefore(s)...), c.begunNow(s, view)...)
}

// maxUnneeded is how many admissions a node has before one is recorded that is not needed: half of what the API
// allows.
const maxUnneeded = 50

// begunNow returns admissions of maintenances that need none, because they have no rollout, and no budget has
// selected the node when they began with it. They are stored with the drain targets: budgets that come later
// decide on what comes after they have ended.
func (c *Controller) begunNow(s *nodeSync, view *status.View) []v1.MaintenanceAdmission {
	if !c.recordsClaims(s) {
		return nil
	}
	var admissions []v1.MaintenanceAdmission
	for i := range s.specs {
		o := &s.specs[i]
		if o.Rollout != nil || !o.Drains() || o.IsShutdownOf(s.node.Name) || maintenance.AdmissionOf(s.node, o.UID) != nil ||
			len(maintenance.Admissions(s.node))+len(admissions) >= maxUnneeded {
			continue
		}
		begun := v1.MaintenanceAdmission{MaintenanceName: o.Name, MaintenanceUID: o.UID, AdmittedTime: metav1.NewTime(s.now.Truncate(time.Second))}
		s.noteDrained(view, o, &begun)
		admissions = append(admissions, begun)
	}
	return admissions
}

// noteDrained records in an admission that the node is drained for its maintenance.
func (s *nodeSync) noteDrained(view *status.View, o *progress.Spec, admission *v1.MaintenanceAdmission) {
	if admission.DrainedTime == nil && o.Drains() && view.Drains() && view.IsDrainedFor(o.Name, s.facts.isLeftFor(o.Name)) {
		admission.DrainedTime, admission.BootID = ptr.To(metav1.NewTime(s.now.Truncate(time.Second))), s.node.Status.NodeInfo.BootID
	}
}

// recordsClaims reports whether the status of a node can say which maintenances have begun with it.
func (c *Controller) recordsClaims(s *nodeSync) bool {
	if c.fleet == nil {
		return false
	}
	until, found := c.unrecorded.Load(s.node.Name)
	if !found {
		return true
	}
	return !s.now.Before(until.(time.Time))
}

// forgiveUnrecorded returns the error of a write of the status of a node, but nil if an API server has only
// dropped admissions that were not needed: its gate is off, and it knows no budgets.
func (c *Controller) forgiveUnrecorded(s *nodeSync, err error) error {
	var dropped *write.UnrecordedError
	if !errors.As(err, &dropped) {
		return err
	}
	unneeded := func(uid types.UID) bool {
		return slices.ContainsFunc(s.specs, func(o progress.Spec) bool {
			return o.UID == uid && o.Rollout == nil && maintenance.AdmissionOf(s.node, o.UID) == nil && !c.progress.Limits.Selects(s.node)
		})
	}
	for uid := range dropped.UIDs {
		if !unneeded(uid) {
			return err
		}
	}
	c.unrecorded.Store(s.node.Name, s.now.Add(unrecordedInterval))
	return nil
}

// doneBefore returns admissions of maintenances whose work on the node was done before they could begin
// with it. They are stored, because the annotation may go.
func doneBefore(s *nodeSync) []v1.MaintenanceAdmission {
	var admissions []v1.MaintenanceAdmission
	now := metav1.NewTime(s.now.Truncate(time.Second))
	for i := range s.specs {
		if o := &s.specs[i]; o.Phase == progress.PhaseDone && maintenance.AdmissionOf(s.node, o.UID) == nil {
			admissions = append(admissions, v1.MaintenanceAdmission{
				MaintenanceName: o.Name, MaintenanceUID: o.UID, AdmittedTime: now, ReturningTime: &now, DoneTime: &now,
			})
		}
	}
	return admissions
}

// mayComeBack reports whether the cache may lack the maintenance because it is behind.
func (c *Controller) mayComeBack(admission *v1.MaintenanceAdmission, now time.Time) bool {
	return !c.progress.Knows(admission.MaintenanceName, admission.MaintenanceUID) && !c.progress.IsGone(admission.MaintenanceUID) && now.Sub(admission.AdmittedTime.Time) < progress.UnknownAdmission
}

// nextAdmission returns how far a maintenance is with the node now.
func (c *Controller) nextAdmission(s *nodeSync, view *status.View, o *progress.Spec, stored v1.MaintenanceAdmission) v1.MaintenanceAdmission {
	next := stored
	if next.DoneTime != nil {
		return next
	}
	s.escalate(view, o, &next)
	now := ptr.To(metav1.NewTime(s.now.Truncate(time.Second)))
	s.noteDrained(view, o, &next)
	done, soon := c.isWorkDone(s, o, &stored)
	switch {
	case next.ReturningTime == nil && done:
		next.ReturningTime = now
		if c.canReturnAtOnce(s, view, &next, o) {
			next.DoneTime, next.FailedTime = now, nil
			return next
		}
	case stored.ReturningTime != nil && c.isHealthy(s, o):
		next.DoneTime, next.FailedTime = now, nil
		return next
	case stored.ReturningTime != nil:
		c.nodes.AddAfter(s.node.Name, healthInterval)
	}
	deadline, found := returnDeadline(o, &next)
	switch {
	case !found || next.FailedTime != nil:
	case s.now.Before(deadline):
		c.nodes.AddAfter(s.node.Name, deadline.Sub(s.now))
	case soon:
		// It was rebooted in time, maybe, while no controller has seen it.
	default:
		next.FailedTime = now
	}
	return next
}

// canReturnAtOnce reports whether a node whose work is done can be given back in the same write: it is
// healthy, no request has to be withdrawn, because no pod is left, no other maintenance decides at the
// same time who of them sees to its health, and none waits: the drain targets go before the admission is
// over, so that nobody takes them for those of another maintenance.
func (c *Controller) canReturnAtOnce(s *nodeSync, view *status.View, admission *v1.MaintenanceAdmission, o *progress.Spec) bool {
	return admission.DrainedTime != nil && len(s.facts.pods) == 0 && len(view.Claiming) == 1 && !view.Waits && c.isHealthy(s, o)
}

// returnDeadline returns when the node has to be given back at the latest, and false if its time has
// not begun.
func returnDeadline(o *progress.Spec, admission *v1.MaintenanceAdmission) (time.Time, bool) {
	if o.Rollout == nil {
		return time.Time{}, false
	}
	timeout := defaultReturnTimeout
	if seconds := o.Rollout.ReturnTimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	switch {
	case o.Rollout.CompleteNodes == coordinationv1alpha1.NodeCompletionRebooted && admission.DrainedTime != nil:
		deadline := admission.DrainedTime.Add(timeout)
		if admission.ReturningTime == nil {
			return deadline, true
		}
		// Its DaemonSets need a moment: maybe nobody has seen that it was rebooted long ago.
		return slices.MaxFunc([]time.Time{deadline, admission.ReturningTime.Add(min(timeout, returnGrace))}, time.Time.Compare), true
	case admission.ReturningTime != nil:
		return admission.ReturningTime.Add(timeout), true
	}
	return time.Time{}, false
}

// isWorkDone reports whether the node can be given back: somebody has said so, or it was rebooted
// after its drain. If it can be soon, it was rebooted a moment ago, and has not been Ready for long
// enough yet: one that boots again and again cannot.
func (c *Controller) isWorkDone(s *nodeSync, o *progress.Spec, stored *v1.MaintenanceAdmission) (done, soon bool) {
	if progress.IsMarkedDone(s.node, o.UID) {
		return true, false
	}
	bootID := s.node.Status.NodeInfo.BootID
	if o.Rollout == nil || o.Rollout.CompleteNodes != coordinationv1alpha1.NodeCompletionRebooted ||
		stored.DrainedTime == nil || stored.BootID == "" || bootID == "" {
		return false, false
	}
	since, first := c.boots.readySince(s.node, stored.BootID, s.now)
	if since.IsZero() {
		return false, false
	}
	if wait := rebootSettled - s.now.Sub(since); wait > 0 {
		c.nodes.AddAfter(s.node.Name, wait)
		return false, s.now.Sub(first) < returnGrace
	}
	return true, false
}

// isHealthy reports whether the node can be made schedulable. If another maintenance claims it, and
// does not give it back as well, that one sees to it.
func (c *Controller) isHealthy(s *nodeSync, o *progress.Spec) bool {
	stays := func(other progress.Spec) bool {
		return other.Name != o.Name && other.Claims() && other.Phase != progress.PhaseReturning
	}
	if slices.ContainsFunc(s.specs, stays) {
		return true
	}
	return maintenance.IsReady(s.node) && !slices.ContainsFunc(s.node.Spec.Taints, maintenance.IsStartupTaint) && len(c.missingDaemonSets(s)) == 0
}

// missingDaemonSets names the DaemonSets that should have a pod on this node and have none that is ready,
// sorted.
func (c *Controller) missingDaemonSets(s *nodeSync) []string {
	if c.fleet == nil {
		return nil
	}
	all, err := c.fleet.DaemonSets.Lister().List(labels.Everything())
	if err != nil {
		return nil // The lister of a cache returns no error.
	}
	// By their namespaces as well: in another one, anybody may create a pod that names such an owner.
	type owner struct {
		namespace string
		uid       types.UID
	}
	running := sets.New[owner]()
	for _, pod := range s.facts.pods {
		if by := metav1.GetControllerOf(pod.Pod); by != nil && pod.DeletionTimestamp == nil && isPodReady(pod.Pod) {
			running.Insert(owner{pod.Namespace, by.UID})
		}
	}
	var missing []string
	for _, ds := range all {
		should, _ := daemonset.NodeShouldRunDaemonPod(klog.Background(), s.node, ds)
		if should && ds.DeletionTimestamp == nil && !running.Has(owner{ds.Namespace, ds.UID}) {
			missing = append(missing, ds.Namespace+"/"+ds.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// notBackReason says why a node has not come back from a maintenance.
func (c *Controller) notBackReason(s *nodeSync, admission *v1.MaintenanceAdmission) string {
	if !maintenance.IsReady(s.node) {
		return "it is not Ready"
	}
	if admission.ReturningTime == nil {
		return "it was not rebooted, or not Ready for long enough since"
	}
	if at := slices.IndexFunc(s.node.Spec.Taints, maintenance.IsStartupTaint); at >= 0 {
		return "it has the taint " + s.node.Spec.Taints[at].Key
	}
	if missing := c.missingDaemonSets(s); len(missing) > 0 {
		return "it has no ready pods of " + status.JoinNames(missing) + " (DaemonSet)"
	}
	return "it was not given back"
}

func isPodReady(pod *v1.Pod) bool { return podutil.IsPodReady(pod) }

// hasFailed reports whether the maintenance waits for the node longer than it should.
func hasFailed(admissions []v1.MaintenanceAdmission, uid types.UID) bool {
	return slices.ContainsFunc(admissions, func(a v1.MaintenanceAdmission) bool {
		return a.MaintenanceUID == uid && a.FailedTime != nil && a.DoneTime == nil
	})
}

// boots has since when nodes are Ready in another boot than at their drain, as far as this process has
// seen it: the clock of a node may be wrong. After a restart, they have to be Ready for a while again.
type boots struct {
	lock sync.Mutex
	// nodes has them by the name of the node, and by the boot at the drain.
	nodes map[string]map[string]boot
}

// boot is the other boot, and since when the node is Ready in it; zero while it is not. first is when it
// was Ready in another boot for the first time, whatever happened since.
type boot struct {
	id           string
	since, first time.Time
}

func newBoots() *boots { return &boots{nodes: map[string]map[string]boot{}} }

// readySince returns since when the node is Ready in another boot than at its drain, and when it was for
// the first time; zero if it is not.
func (b *boots) readySince(node *v1.Node, drained string, now time.Time) (since, first time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	current := node.Status.NodeInfo.BootID
	if current == drained {
		// Somebody else than its kubelet has reported another one.
		delete(b.nodes[node.Name], drained)
		return time.Time{}, time.Time{}
	}
	known := b.nodes[node.Name][drained]
	switch {
	case !maintenance.IsReady(node):
		known.since = time.Time{}
	case known.since.IsZero() || known.id != current:
		known.id, known.since = current, now
	}
	if known.first.IsZero() {
		known.first = known.since
	}
	if b.nodes[node.Name] == nil {
		b.nodes[node.Name] = map[string]boot{}
	}
	b.nodes[node.Name][drained] = known
	return known.since, known.first
}

func (b *boots) forget(node string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.nodes, node)
}
