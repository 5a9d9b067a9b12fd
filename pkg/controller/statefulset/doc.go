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

// Package statefulset runs StatefulSets. With the gate StatefulSetEvictionPacing, it also takes part in evictions
// (KEP-4563), which this file describes: it is the interceptor statefulset.apps.k8s.io of pods of sets with
// several replicas and rolling updates, and lets as many of them leave at a time as their owner permits.
//
// # A turn
//
// A turn only waits. When the controller completes it, the pod may leave, and the next interceptor evicts it
// within its budgets. The controller deletes no pod for it, and changes neither replicas, partition nor claims.
//
// # Invariants
//
//   - Decided from current state: at most as many pods of the set are unavailable as the limit says. Pods that are
//     not available go first, then those with the highest ordinal. Pods beyond the replicas wait like others, and
//     go first.
//   - The limit (evictionpacing.LimitOf) is what the only budget of all pods permits: expectedPods less
//     desiredHealthy, at least 1. Otherwise it is maxUnavailable: as in upstream's rolling updates, only with the
//     gate MaxUnavailableStatefulSet, and 1 without it.
//   - A pod that was passed on counts as unavailable until it is gone and its replacement is available, whatever
//     the speed of the eviction. This follows from the requests; decisions that the cache does not have yet are in
//     memory.
//   - A pod that has not been ready for 30 seconds, as this process has seen it (the clock of its node may be wrong),
//     is broken: it leaves at once, and no other pod waits for it or for its replacement. Before a pod that is not
//     available is released, it is read from the API server.
//     That it was broken is in memory: a new process waits for its replacement, ten minutes
//     at most. The replacement of a pod that was not broken counts until it was ready once.
//   - A pod does not wait for one that is not bound and can only run on its node, or others, which are all cordoned
//     (eviction_places.go): the cordon ends when the drain has ended, which waits for the pod. Pods of other nodes
//     wait. A zone is no such place, because a node may be added.
//   - Before a pod is released, the requests with the labels of the set are read from the API server. If the cache
//     lacks a release, the pod waits (isBehind). So a process that was suspended, and no longer leads, releases no
//     pod too many, unless it is suspended again between that read and its report.
//   - A request that says that its pod is evicted takes precedence over a cache of pods that still has it.
//   - After ten minutes in which no pod of the set was passed on or has left, the next one is passed on anyway.
//     The time survives restarts, and does not count outages (pkg/controller/util/evictionturn). A pod that
//     becomes ready and unready again and again is no progress.
//   - Passed on at once: pods that no StatefulSet controls, terminating pods, and pods of a set that is being
//     deleted, updates OnDelete, or has the annotation statefulset.kubernetes.io/eviction-pacing, which is read at
//     each decision.
//   - Rollouts do not know about turns. A rollout may delete a pod between the end of a turn and the eviction; the
//     next turns wait for what it has made unavailable until that counts as broken.
//
// # Reading order
//
//	eviction_plan.go       which pods of a set may leave; pure
//	eviction_places.go     where a replacement may run
//	eviction_pacer.go      the turns
//	eviction.go            how the controller becomes an interceptor, and its event handlers
//	eviction_injection.go  its name on new pods
package statefulset
