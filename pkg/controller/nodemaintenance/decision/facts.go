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

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// Facts are what a decision about a node is based on: what the caches, the progress of the maintenances, and the memories
// of this process say about it.
type Facts struct {
	// Now is the time of the decision.
	Now time.Time
	// Node is what the API server had when it was read, or when it was last written.
	Node *v1.Node
	// Specs are those of the maintenances that select the node, and Counts is what is left for them.
	Specs []progress.Spec
	progress.Counts
	// Revision is that of the progress.Store when the specs were read.
	Revision int
	// Quiet is whether all requests for the pods are known, so that withdrawals are decided on all of them.
	Quiet bool
	// AwaitsFinalizers is whether the drain may not start yet: see progress.AwaitsFinalizers.
	AwaitsFinalizers bool
	// Pods are those that are left.
	Pods []Pod
	// Staying are pods that stay, because policies skip them or nobody stops them, and Skipped counts them by the
	// names of the maintenances for which they do. Those that another maintenance does not skip are among Pods as well.
	Staying []*v1.Pod
	Skipped map[string]int
	// Unstopped counts those of them whose own controllers take no part in maintenances.
	Unstopped map[progress.Unstopped]int
	// Unneeded are pods whose eviction is requested for a maintenance that has ended: all that drain the node skip
	// them.
	Unneeded []*v1.Pod
	// NextEscalation is after which time a further action may be due for a pod, 0 if never.
	NextEscalation time.Duration
	// Limited is whether a budget selects the node.
	Limited bool
	Memories
	Lookups Lookups
}

// Memories are what this process remembers of a node.
type Memories struct {
	// Own is the value that was last written to spec.unschedulable; nil if the status of the node says the same.
	Own *OwnCordon
	// CompletionCordoned is whether a maintenance that completes may have cordoned the node.
	CompletionCordoned bool
	// Failures are the failed writes to the node, and about its pods.
	Failures map[write.Key]write.Failure
	// Reverts is what other clients keep undoing.
	Reverts pace.Reverts
	// StatusUndone is whether another client has changed status.maintenanceStatus since the last write.
	StatusUndone bool
	// OwnConditions are those that were last written; nil if that is not known.
	OwnConditions *WrittenConditions
	// Settles is for how long a node without pods is not drained yet, and Unsettled are pods that keep coming back.
	Settles   time.Duration
	Unsettled []maintenance.Blocker
	// RecordsClaims is whether the status of the node can say which maintenances have begun with it.
	RecordsClaims bool
}

// OwnCordon is the value that was last written to spec.unschedulable of a node.
type OwnCordon struct {
	UID           types.UID
	Unschedulable bool
}

// WrittenConditions are the conditions that were last written to a node.
type WrittenConditions struct {
	UID        types.UID
	Conditions []v1.NodeCondition
}

// Lookups are the facts that only few decisions need.
type Lookups interface {
	// WaitingOn names the maintenances that have to advance before these go on.
	WaitingOn(names []string) []string
	// AttachedVolumes names the volumes that are attached to the node but those of the pods that stay, sorted.
	AttachedVolumes(node *v1.Node, staying []*v1.Pod) []string
	// DaemonSets are all DaemonSets; nil while they are not watched.
	DaemonSets() []*appsv1.DaemonSet
	// ReadySince returns since when the node is Ready in another boot than at its drain, and when it was for the first time;
	// zero if it is not.
	ReadySince(node *v1.Node, drained string, now time.Time) (since, first time.Time)
	// IsUnknown reports whether the maintenance of an admission is neither known, nor known to be gone.
	IsUnknown(admission *v1.MaintenanceAdmission) bool
}

// Counted returns the pods that are left, for the progress of the maintenances.
func (f *Facts) Counted() []progress.Pod {
	pods := make([]progress.Pod, len(f.Pods))
	for i := range f.Pods {
		pods[i] = progress.Pod{Pod: f.Pods[i].Pod, Verdict: f.Pods[i].Verdict}
	}
	return pods
}

// anyTaken reports whether the targets include one of the pods that no policy keeps.
func (f *Facts) anyTaken(targets maintenance.Targets) bool {
	return slices.ContainsFunc(f.Pods, func(pod Pod) bool { return !pod.IsKeptByNeighbors() && targets.Take(pod.Pod) })
}

// isLeftFor reports whether a pod is left that has to leave for the maintenance.
func (f *Facts) isLeftFor(maintenance string) bool {
	return slices.ContainsFunc(f.Pods, func(pod Pod) bool { return !pod.IsKeptBy(maintenance) })
}

// requests returns the pods whose eviction has to be requested.
func (f *Facts) requests(targets maintenance.Targets) []*v1.Pod {
	return f.podsThat(func(pod *Pod) bool { return pod.NeedsRequest(targets) })
}

// Withdrawals returns the pods from whose requests this controller has to withdraw.
func (f *Facts) Withdrawals() []*v1.Pod { return f.podsThat((*Pod).NeedsWithdrawal) }

func (f *Facts) podsThat(match func(*Pod) bool) []*v1.Pod {
	var pods []*v1.Pod
	for i := range f.Pods {
		if match(&f.Pods[i]) {
			pods = append(pods, f.Pods[i].Pod)
		}
	}
	return pods
}

// countRequests counts the pods without an unfinished request, and those with one.
func (f *Facts) countRequests() (pending, active int) {
	for i := range f.Pods {
		if f.Pods[i].Request != nil {
			active++
		} else {
			pending++
		}
	}
	return pending, active
}

// podBlockers returns what delays the eviction of pods, and counts those that need an intervention.
func (f *Facts) podBlockers(targets maintenance.Targets) (blockers []maintenance.Blocker, blocked int) {
	for i := range f.Pods {
		pod := &f.Pods[i]
		// A request that failed does not matter for a pod that is no longer a target.
		unwanted := pod.Blocker.Cause == maintenance.BlockerRequestFailed && !targets.Take(pod.Pod)
		if !pod.Blocked || unwanted {
			continue
		}
		blockers = append(blockers, pod.Blocker)
		if pod.Blocker.Cause.Blocked() {
			blocked++
		}
	}
	return blockers, blocked
}

// leftFor returns the facts without the pods that the maintenance itself keeps.
func (f *Facts) leftFor(maintenance string) *Facts {
	if f.Skipped[maintenance] == 0 {
		return f
	}
	left := *f
	left.Pods = slices.DeleteFunc(slices.Clone(f.Pods), func(pod Pod) bool { return pod.IsKeptBy(maintenance) })
	return &left
}
