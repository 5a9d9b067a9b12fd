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

// Package evictionrequest implements the controller that takes each EvictionRequest through its
// interceptors until the pod is gone or the request is canceled (KEP-4563).
//
// # States
//
// A request is in one of these states. They are derived from its status alone:
//
//	Pending       not processed yet, or all interceptors are processed and the pod still runs.
//	Intercepting  an interceptor of the pod is active.
//	Evicting      imperative-eviction.k8s.io, the last interceptor, is active.
//	Blocked       condition Blocked is True: the API server refuses the eviction.
//	Evicted       condition Evicted is True: the pod is gone. Final.
//	Canceled      condition Canceled is True: no interceptor acts any more. Final.
//
// One write takes a request from Pending to Intercepting, or to Evicting if the pod has no
// interceptor of its own. This write records all interceptors and activates the first one. The next
// interceptor becomes active when the active one completes or sends no heartbeat for
// spec.heartbeatDeadlineSeconds. The last one is always imperative-eviction.k8s.io, which this
// package implements: it evicts the pod through the pods/eviction subresource, within its
// PodDisruptionBudgets, and retries without a limit. Any request that is not final becomes Evicted
// when the pod is gone, whatever removed it, and Canceled when the last requester leaves. A
// finished request is deleted after a TTL. A canceled one is deleted immediately when a requester
// is added to it.
//
// # Writers of each field
//
//	spec                                 requesters; this controller withdraws eviction.k8s.io
//	status.interceptors[own entry]       the active interceptor
//	status.evictionRequestCancellationPolicy  the active interceptor
//	status.conditions of their own names  interceptors
//	everything else in the status        this controller
//	metadata.labels, those of the pod    this controller
//
// # Invariants
//
//   - The object holds the state from which deadlines are computed. A restart shortens no deadline
//     and extends one by at most five minutes.
//   - A pod is identified by its UID, which is the name of its request. A pod of the same name with
//     another UID is another pod. Every eviction has the UID as a precondition.
//   - A pod is evicted only if its stored request wants that: the API server asks it. Canceled is
//     written only for a pod that stays, as the API server says.
//   - A pod that is missing from the cache counts as gone only if the cache had it before, or if
//     the API server confirms it: the cache can be stale.
//   - An idle request causes no API calls.
//   - No decision uses a request that is older than this controller's last write.
//   - Requests that wait for an event are also synced from the caches every few minutes.
//   - Of the pods that a budget allows, those that are not ready are evicted first, then the oldest:
//     two at a time, or up to 32 while the API server answers quickly.
//   - However many pods wait for a budget that allows nothing, the API server is asked about one of
//     them, and what a request says about that is written once.
//   - Of two writes of one version of a request, this controller tries only one.
//   - No interceptor times out right after this controller lost contact with the API server, or
//     while it cannot write the request.
//   - One namespace uses at most three quarters of the workers, and every call has a timeout.
//
// # Reading order
//
//	evictionrequest_controller.go  the type, its constructor and Run
//	event_handlers.go              which event enqueues which request
//	sync.go                        one request: read, decide, write
//	status.go                      the desired status; pure functions
//	deletions.go                   whether a deletion may be under way, so that nothing is canceled
//	pod_groups.go                  which pods of PodGroups are evicted one by one
//	label_pace.go                  when labels of the pod that others change are copied again
//	calls.go                       when callers of pods/eviction have given up
//	deadlines.go, outages.go       when an interceptor times out, and when it must not
//	server_clock.go                from which responses the clock is derived, which deadlines use
//	garbage.go                     when a finished request is deleted; pure functions
//	sweep.go                       one timer for all requests for which no event comes
//	writer.go, pending_writes.go   the only code that writes requests
//	changes.go, events.go          the changes and events of a write; metrics/ counts them
//	imperative_controller.go       the built-in last interceptor: read, decide, evict, write
//	imperative.go                  whether and when it evicts; pure functions
//	budget_queues.go               which pods wait for which budget, and which one is next
//	budget_tasks.go                what is done for the pods that wait for a budget
//	budget_verdicts.go             when the API server is asked about a budget that allows nothing
//	pace.go                        how many evictions under one budget are in flight
//	owners.go                      for whom a request is processed: the queues are shared between them
//	podeviction                    the eviction call and the classification of its response
//	simulation_test.go             random histories, and the invariants of each
package evictionrequest
