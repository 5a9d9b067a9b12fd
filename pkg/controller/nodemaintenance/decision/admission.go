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

package decision

import (
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	daemonset "k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

const (
	// RebootSettled is how long a rebooted node has to be Ready before the work on it counts as done.
	RebootSettled = 30 * time.Second

	// ReturnGrace is how much time a rebooted node has at least to get its pods of DaemonSets back.
	ReturnGrace = 2 * time.Minute

	// HealthInterval is how often a node that returns is looked at: what it waits for may be a
	// DaemonSet, whose changes cause no event here.
	HealthInterval = 5 * time.Second

	// DefaultReturnTimeout is the default of the API, should an object lack the field.
	DefaultReturnTimeout = 30 * time.Minute
)

// nextAdmissions returns how far the maintenances are that were admitted to the node. Each step is
// stored before the next one follows from it.
func (d *Decision) nextAdmissions() []v1.MaintenanceAdmission {
	var admissions []v1.MaintenanceAdmission
	for _, stored := range maintenance.Admissions(d.Node) {
		at := slices.IndexFunc(d.Specs, func(o progress.Spec) bool { return o.UID == stored.MaintenanceUID })
		switch {
		case at >= 0 && d.Specs[at].Waits():
			// It has ended: see progress.Limits.
		case at >= 0 && d.Specs[at].Stage == coordinationv1alpha1.NodeMaintenanceStageDrain:
			admissions = append(admissions, d.nextAdmission(&d.Specs[at], stored))
		case at < 0 && d.mayComeBack(&stored):
			admissions = append(admissions, stored)
			// No event follows if it does not.
			d.recheck(stored.AdmittedTime.Add(progress.UnknownAdmission).Sub(d.Now))
		}
	}
	return append(append(admissions, d.doneBefore()...), d.begunNow()...)
}

// maxUnneeded is how many admissions a node has before one is recorded that is not needed: half of what the API
// allows.
const maxUnneeded = 50

// begunNow returns admissions of maintenances that need none, because they have no rollout, and no budget has
// selected the node when they began with it. They are stored with the drain targets: budgets that come later
// decide on what comes after they have ended.
func (d *Decision) begunNow() []v1.MaintenanceAdmission {
	if !d.RecordsClaims {
		return nil
	}
	var admissions []v1.MaintenanceAdmission
	for i := range d.Specs {
		o := &d.Specs[i]
		if o.Rollout != nil || !o.Drains() || o.IsShutdownOf(d.Node.Name) || maintenance.AdmissionOf(d.Node, o.UID) != nil ||
			len(maintenance.Admissions(d.Node))+len(admissions) >= maxUnneeded {
			continue
		}
		begun := v1.MaintenanceAdmission{MaintenanceName: o.Name, MaintenanceUID: o.UID, AdmittedTime: metav1.NewTime(d.Now.Truncate(time.Second))}
		d.recordDrained(o, &begun)
		admissions = append(admissions, begun)
	}
	return admissions
}

// recordDrained adds to an admission that the node is drained for its maintenance.
func (d *Decision) recordDrained(o *progress.Spec, admission *v1.MaintenanceAdmission) {
	if admission.DrainedTime == nil && o.Drains() && d.View.Drains() && d.View.IsDrainedFor(o.Name, d.isLeftFor(o.Name)) {
		admission.DrainedTime, admission.BootID = ptr.To(metav1.NewTime(d.Now.Truncate(time.Second))), d.Node.Status.NodeInfo.BootID
	}
}

// doneBefore returns admissions of maintenances whose work on the node was done before they could begin
// with it. They are stored, because the annotation may go.
func (d *Decision) doneBefore() []v1.MaintenanceAdmission {
	var admissions []v1.MaintenanceAdmission
	now := metav1.NewTime(d.Now.Truncate(time.Second))
	for i := range d.Specs {
		if o := &d.Specs[i]; o.Phase == progress.PhaseDone && maintenance.AdmissionOf(d.Node, o.UID) == nil {
			admissions = append(admissions, v1.MaintenanceAdmission{
				MaintenanceName: o.Name, MaintenanceUID: o.UID, AdmittedTime: now, ReturningTime: &now, DoneTime: &now,
			})
		}
	}
	return admissions
}

// mayComeBack reports whether the cache may lack the maintenance because it is behind.
func (d *Decision) mayComeBack(admission *v1.MaintenanceAdmission) bool {
	return d.Lookups.IsUnknown(admission) && d.Now.Sub(admission.AdmittedTime.Time) < progress.UnknownAdmission
}

// nextAdmission returns how far a maintenance is with the node now.
func (d *Decision) nextAdmission(o *progress.Spec, stored v1.MaintenanceAdmission) v1.MaintenanceAdmission {
	next := stored
	if next.DoneTime != nil {
		return next
	}
	d.recordEscalation(o, &next)
	now := ptr.To(metav1.NewTime(d.Now.Truncate(time.Second)))
	d.recordDrained(o, &next)
	done, soon := d.isWorkDone(o, &stored)
	switch {
	case next.ReturningTime == nil && done:
		next.ReturningTime = now
		if d.canReturnAtOnce(o, &next) {
			next.DoneTime, next.FailedTime = now, nil
			return next
		}
	case stored.ReturningTime != nil && d.isHealthy(o):
		next.DoneTime, next.FailedTime = now, nil
		return next
	case stored.ReturningTime != nil:
		d.recheck(HealthInterval)
	}
	deadline, found := returnDeadline(o, &next)
	switch {
	case !found || next.FailedTime != nil:
	case d.Now.Before(deadline):
		d.recheck(deadline.Sub(d.Now))
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
func (d *Decision) canReturnAtOnce(o *progress.Spec, admission *v1.MaintenanceAdmission) bool {
	return admission.DrainedTime != nil && len(d.Pods) == 0 && len(d.View.Claiming) == 1 && !d.View.Waits && d.isHealthy(o)
}

// returnDeadline returns when the node has to be given back at the latest, and false if its time has
// not begun.
func returnDeadline(o *progress.Spec, admission *v1.MaintenanceAdmission) (time.Time, bool) {
	if o.Rollout == nil {
		return time.Time{}, false
	}
	timeout := DefaultReturnTimeout
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
		return slices.MaxFunc([]time.Time{deadline, admission.ReturningTime.Add(min(timeout, ReturnGrace))}, time.Time.Compare), true
	case admission.ReturningTime != nil:
		return admission.ReturningTime.Add(timeout), true
	}
	return time.Time{}, false
}

// isWorkDone reports whether the node can be given back: somebody has said so, or it was rebooted
// after its drain. If it can be soon, it was rebooted a moment ago, and has not been Ready for long
// enough yet: one that boots again and again cannot.
func (d *Decision) isWorkDone(o *progress.Spec, stored *v1.MaintenanceAdmission) (done, soon bool) {
	if progress.IsMarkedDone(d.Node, o.UID) {
		return true, false
	}
	bootID := d.Node.Status.NodeInfo.BootID
	if o.Rollout == nil || o.Rollout.CompleteNodes != coordinationv1alpha1.NodeCompletionRebooted ||
		stored.DrainedTime == nil || stored.BootID == "" || bootID == "" {
		return false, false
	}
	since, first := d.Lookups.ReadySince(d.Node, stored.BootID, d.Now)
	if since.IsZero() {
		return false, false
	}
	if wait := RebootSettled - d.Now.Sub(since); wait > 0 {
		d.recheck(wait)
		return false, d.Now.Sub(first) < ReturnGrace
	}
	return true, false
}

// isHealthy reports whether the node can be made schedulable. If another maintenance claims it, and
// does not give it back as well, that one sees to it.
func (d *Decision) isHealthy(o *progress.Spec) bool {
	stays := func(other progress.Spec) bool {
		return other.Name != o.Name && other.Claims() && other.Phase != progress.PhaseReturning
	}
	if slices.ContainsFunc(d.Specs, stays) {
		return true
	}
	return maintenance.IsReady(d.Node) && !slices.ContainsFunc(d.Node.Spec.Taints, maintenance.IsStartupTaint) && len(d.missingDaemonSets()) == 0
}

// missingDaemonSets names the DaemonSets that should have a pod on this node and have none that is ready,
// sorted.
func (d *Decision) missingDaemonSets() []string {
	all := d.Lookups.DaemonSets()
	if len(all) == 0 {
		return nil
	}
	// By their namespaces as well: in another one, anybody may create a pod that names such an owner.
	type owner struct {
		namespace string
		uid       types.UID
	}
	running := sets.New[owner]()
	for _, pod := range d.Pods {
		if by := metav1.GetControllerOf(pod.Pod); by != nil && pod.DeletionTimestamp == nil && podutil.IsPodReady(pod.Pod) {
			running.Insert(owner{pod.Namespace, by.UID})
		}
	}
	var missing []string
	for _, ds := range all {
		should, _ := daemonset.NodeShouldRunDaemonPod(klog.Background(), d.Node, ds)
		if should && ds.DeletionTimestamp == nil && !running.Has(owner{ds.Namespace, ds.UID}) {
			missing = append(missing, ds.Namespace+"/"+ds.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// NotBackReason says why a node has not come back from a maintenance.
func (d *Decision) NotBackReason(admission *v1.MaintenanceAdmission) string {
	if !maintenance.IsReady(d.Node) {
		return "it is not Ready"
	}
	if admission.ReturningTime == nil {
		return "it was not rebooted, or not Ready for long enough since"
	}
	if at := slices.IndexFunc(d.Node.Spec.Taints, maintenance.IsStartupTaint); at >= 0 {
		return "it has the taint " + d.Node.Spec.Taints[at].Key
	}
	if missing := d.missingDaemonSets(); len(missing) > 0 {
		return "it has no ready pods of " + status.JoinNames(missing) + " (DaemonSet)"
	}
	return "it was not given back"
}

// HasFailed reports whether the maintenance waits for the node longer than it should.
func HasFailed(admissions []v1.MaintenanceAdmission, uid types.UID) bool {
	return slices.ContainsFunc(admissions, func(a v1.MaintenanceAdmission) bool {
		return a.MaintenanceUID == uid && a.FailedTime != nil && a.DoneTime == nil
	})
}
