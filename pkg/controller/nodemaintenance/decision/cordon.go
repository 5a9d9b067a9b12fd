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
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// CordonWrite is a write of spec.unschedulable that a node needs.
type CordonWrite struct {
	write.Key
	// Again is whether another client has uncordoned the node.
	Again bool
}

// NeededCordon returns the write that the node needs, and after which delay: it is unschedulable
// while a maintenance claims it, and schedulable once when the last claim ends. A node that was never
// claimed stays as it is: nil.
func (d *Decision) NeededCordon() (needed *CordonWrite, wait time.Duration) {
	switch {
	case d.View.Claimed() && !d.Node.Spec.Unschedulable:
		// A node that could not be cordoned yet was not uncordoned by another client.
		needed = &CordonWrite{write.Cordon.Of(d.Node.UID), maintenance.IsClaimed(d.Node) && !d.hasUncordoned() && !d.View.CordonRefused}
	case d.mustUncordon():
		needed = &CordonWrite{Key: write.Uncordon.Of(d.Node.UID)}
	default:
		return nil, 0
	}
	wait = d.Failures[needed.Key].Wait(d.Now)
	if needed.Again {
		wait = max(wait, d.Reverts.Wait(pace.RevertedCordon))
	}
	return needed, max(wait, d.reclaimWait())
}

// reclaimWait returns the delay before a node may be claimed again that others select and deselect again and again; 0
// if it is claimed already, or not to be.
func (d *Decision) reclaimWait() time.Duration {
	if !d.View.Claimed() || d.Node.Spec.Unschedulable || maintenance.IsClaimed(d.Node) && !d.hasUncordoned() {
		return 0
	}
	return d.Reverts.Wait(pace.RevertedSelection)
}

// isCordonRefused reports whether the node could not be cordoned.
func (f *Facts) isCordonRefused() bool {
	_, failed := f.Failures[write.Cordon.Of(f.Node.UID)]
	return failed && !f.Node.Spec.Unschedulable
}

// mustUncordon reports whether the node has to be made schedulable.
func (d *Decision) mustUncordon() bool {
	return !d.View.Claimed() && !d.View.KeepsCordon && IsOwnCordon(d.Node, d.own, d.CompletionCordoned)
}

// IsOwnCordon reports whether the node may be unschedulable because of this controller: the status of
// the node says that it is or was claimed, or a maintenance that completes may have cordoned it.
// After this controller has uncordoned it, or has left it cordoned, only another client can have done
// that. Who has, the API server says when the node is released: see Uncordon of the writer. own is nil if nothing was
// written that the status does not say.
func IsOwnCordon(node *v1.Node, own *OwnCordon, completionCordoned bool) bool {
	if own != nil {
		return node.Spec.Unschedulable && own.Unschedulable
	}
	return node.Spec.Unschedulable && (maintenance.IsClaimed(node) || completionCordoned)
}

// hasUncordoned reports whether the node was made schedulable, and its status is not cleared yet.
func (d *Decision) hasUncordoned() bool { return d.own != nil && !d.own.Unschedulable }

// IsReleased reports whether the node is schedulable, and nothing says that it is not.
func (d *Decision) IsReleased() bool {
	return !d.Node.Spec.Unschedulable && (d.hasUncordoned() || !maintenance.IsClaimed(d.Node))
}

// ForgetOwnCordon forgets what was last written to spec.unschedulable, and reports whether it did: the status of the node says
// the same, another client has uncordoned the node, or a maintenance claims a node again that was uncordoned.
func (d *Decision) ForgetOwnCordon() (forgotten bool) {
	if d.own == nil {
		return false
	}
	published := d.own.Unschedulable == maintenance.IsClaimed(d.Node)
	reverted := d.own.Unschedulable && !d.Node.Spec.Unschedulable
	claimedAgain := !d.own.Unschedulable && d.View.Claimed() && d.reclaimWait() == 0
	if !published && !reverted && !claimedAgain {
		return false
	}
	d.own = nil
	return true
}
