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

// Package deployment runs Deployments. With the gate DeploymentPodSurge, it also takes part in evictions
// (KEP-4563, "Pod Surge Example"), which this file describes: it is the interceptor deployment.apps.k8s.io of pods
// of Deployments.
//
// # A surge
//
//  1. The eviction of a pod is requested, and the Deployment is the active interceptor.
//  2. The ReplicaSet gets an extra replica, within maxSurge.
//  3. When the replacement is available, spec.replicas falls by one, and the record names the pod as leaving.
//  4. The ReplicaSet controller deletes exactly this pod (pkg/controller/replicaset).
//  5. The Deployment completes its turn.
//
// # Who writes what
//
// Only the sync of its Deployment writes spec.replicas of a ReplicaSet, the annotation
// deployment.kubernetes.io/eviction-surge (package util), in one update, and its downscalePodPicker. Turns
// (takeTurn) only wait: the sync tells each what to report and when it is over; the library reports.
//
// # Invariants
//
//   - The rest of the sync is upstream's. It sees copies of the ReplicaSets without the surge: spec.replicas and
//     the counters of the status are smaller by it. Whatever that code writes, the surge is added again. So
//     scaling, pausing, conditions, kubectl rollout status and autoscalers do not notice a surge. One that cannot
//     be written stops nothing else.
//   - The ReplicaSet is the memory. The record is void if spec.replicas or the size of the Deployment is not what
//     it was written with: then another client has scaled, such as an older controller manager.
//   - A surge is at most what all ReplicaSets have together beyond the size of the Deployment, wherever it is
//     read. So no client can stop pods by writing the annotation. After a restart a surge only shrinks until the
//     requests are known.
//   - nextSurge is pure: a second sync, or one after a restart, changes nothing. A pod leaves when more pods are
//     available than are wanted, and one that is not available when a replacement is.
//   - A pod whose request was withdrawn keeps its extra replica until status.observedGeneration says that the
//     deletions are over that were sent before it was taken out of the record. Only then is the request canceled.
//   - A rollout comes first, and takes over the extra replicas, which upstream counts within maxSurge. While a
//     Deployment is paused in a rollout, pods are passed on as far as it has its replicas without them.
//   - A pod that was bound to a node after a maintenance had claimed the node does not count as a replacement
//     (isMisplaced). When its eviction is requested, it makes room for another one, which is no progress.
//   - A turn ends at once for each replacement that cannot be scheduled before the old pod has left
//     (cannotBeScheduled).
//   - Without progress until the progress deadline, the pod is passed on. The extra replica stays while the pod
//     should leave; if it becomes available after all, the pod leaves, unless an interceptor of its own is working
//     on it. The deadline survives restarts, and does not count outages (pkg/controller/util/evictionturn). Only
//     the ten minutes after which a pod is passed on because its Deployment cannot be reconciled begin again with
//     the process.
//   - A surge that another client reverts is restored at most as often as pkg/controller/util/revertpace says, and
//     the deadline goes on. So is a record that alone is removed; meanwhile, what was written counts, and pods leave.
//   - A ReplicaSet that is orphaned during a surge, before the Deployment has seen its own deletion, keeps the
//     extra replica until a Deployment adopts it.
//
// # Without a surge
//
// With maxSurge 0, pods leave one after another by the rule of StatefulSets (pkg/controller/util/evictionpacing).
// Which pod replaces which is not known: as many pods that were never ready count as replacements as have left,
// the youngest first. The requests say how many have left, by the labels of the pods; what the cache of requests
// lacks is in memory.
//
// # Pod pickers
//
// spec.downscalePodPicker is no part of the template, so there is no rollout. A ReplicaSet that cannot be written,
// or whose field kube-apiserver drops, gets an event and is tried again a minute later; the Deployment goes on.
//
// # Reading order
//
//	util/eviction_surge.go         the record of a surge, its bound, and the view without it
//	eviction_plan.go               the desired surge; pure
//	eviction_workload.go           what the caches say about the Deployment, its ReplicaSets and pods
//	eviction_unschedulable.go      replacements that cannot be scheduled before the old pods have left
//	eviction_contest.go            surges that other clients revert
//	eviction_turn_result.go        what the turns report
//	eviction_surger.go             the hook in the sync, and the turns. The patches that call it:
//	                               deployment_controller.go.patch (prepareReplicaSets), sync.go.patch
//	                               (writeReplicaSet, noteRollout, setCondition), progress.go.patch (setCondition)
//	eviction_watch.go              which event enqueues which Deployment
//	eviction_condition.go          the condition EvictionInProgress
//	eviction_pacing.go             Deployments without a surge; util/eviction_pacing.go says which they are
//	downscale_pod_picker.go        how ReplicaSets get their picker
//	metrics/                       the metrics of turns and surges
package deployment
