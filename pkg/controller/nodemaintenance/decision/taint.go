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
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// WantsTaint reports whether the node should get no new pods because it comes next. One that is
// claimed gets none anyway.
func (d *Decision) WantsTaint() bool {
	return d.View.Waits && !d.View.Claimed() && !d.View.KeepsCordon
}

// NeedsTaint reports whether the taint has to be added, removed, or corrected.
func (d *Decision) NeedsTaint() bool {
	if !d.WantsTaint() {
		return write.HasTaint(d.Node)
	}
	return !slices.ContainsFunc(d.Node.Spec.Taints, func(t v1.Taint) bool {
		return write.IsPlannedTaint(t) && t.Effect == v1.TaintEffectPreferNoSchedule && t.Value == ""
	})
}

// TaintWait returns the delay before the next attempt to write the taint. If another client keeps removing,
// changing or adding it, it has the pace of contested cordons.
func (d *Decision) TaintWait() time.Duration {
	return max(d.Failures[write.Taint.Of(d.Node.UID)].Wait(d.Now), d.Reverts.Wait(d.RevertedTaint()))
}

// RevertedTaint is what others do if the taint is not as it has to be now.
func (d *Decision) RevertedTaint() pace.Kind {
	if d.WantsTaint() {
		return pace.RevertedTaint
	}
	return pace.RevertedUntaint
}

// taintContested is what the blocker says if other clients add the taint again and again.
const taintContested = "another client adds the taint " + coordinationv1alpha1.NodePlannedTaint + " again and again, and it is removed at most once a minute: the audit log has by whom"

// taintBlocker returns what keeps the taint of a node that is to be released, or nil.
func (d *Decision) taintBlocker() *maintenance.Blocker {
	if d.WantsTaint() || !write.HasTaint(d.Node) {
		return nil
	}
	if failed := d.Failures[write.Taint.Of(d.Node.UID)]; failed.Blocks() {
		return ptr.To(maintenance.FailedCordon(d.Node.Name, failed.Message, failed.Since))
	}
	if undone, is := d.Reverts.Contested(pace.RevertedUntaint, true); is {
		return ptr.To(maintenance.FailedCordon(d.Node.Name, taintContested, undone.Since))
	}
	return nil
}
