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

// Package evictionrequest implements the controller that takes each EvictionRequest through its interceptors until
// the pod is gone or the request is canceled (KEP-4563).
//
// # States
//
// A request is in one of these states. They are derived from its status alone; kubectl prints them as STATE:
//
//	Pending       not processed yet, or all interceptors are processed and the pod still runs.
//	Intercepting  an interceptor of the pod is active.
//	Evicting      imperative-eviction.k8s.io, the last interceptor, is active.
//	Blocked       condition Blocked is True: the API server refuses the eviction.
//	Evicted       condition Evicted is True: the pod is gone. Final.
//	Canceled      condition Canceled is True: no interceptor acts any more. Final.
//
// One write takes a request from Pending to Intercepting, or to Evicting if the pod has no interceptor of its own;
// then kube-apiserver has usually done so on creation. This write records all interceptors and activates the first
// one. The next interceptor becomes active when the active one completes or sends no heartbeat for
// spec.heartbeatDeadlineSeconds. The last one is always imperative-eviction.k8s.io, which this package implements:
// it evicts the pod through the pods/eviction subresource, within its PodDisruptionBudgets, and retries without a
// limit; for pods of DaemonSets and static pods, it completes at once. Any request that is not final becomes
// Evicted when the pod is gone, whatever removed it, and Canceled when the last requester leaves or the request is
// deleted, when there is no such pod, or when the pod leaves with its scheduling group only.
//
// When the active interceptor has completed and the pod is terminating, the request waits for its end. An
// interceptor that is the only way to stop a pod has no deadline (client-go/tools/evictionrequest has the rule).
//
// etcd removes finished requests, with a lease that the last write sets
// (pkg/registry/coordination/evictionrequest). This controller deletes those without a lease, after a TTL of its
// own flag; and at once those that are in the way of another request: canceled ones to which a requester was
// added, those whose target is not the pod with this UID, and those that are Evicted although the pod runs, as
// after a restore of etcd.
//
// # What this controller writes
//
// ARCHITECTURE.md has the writers of the other fields.
//
//	spec.requesters                      withdraws eviction.k8s.io, and removes the annotations about calls
//	metadata.labels                      those of the pod; kube-apiserver sets them on creation
//	status.targetInterceptors            once, from the pod
//	status.activeInterceptors            at most one
//	status.processedInterceptors         in the order of targetInterceptors
//	status.interceptors                  creates the entries; writes that of imperative-eviction.k8s.io
//	status.conditions                    Evicted, Canceled, Blocked, InterceptorUnresponsive
//	status.observedGeneration
//
// # Invariants
//
// Decisions:
//   - sync.go reads one request and its pod from caches, computeStatus computes the status from (now, request,
//     pod), and one writer updates it if it differs. The clock is read once per sync.
//   - The object holds the state from which deadlines are computed: activationTime, heartbeatTime, retries. A
//     restart shortens no deadline and extends one by at most five minutes.
//   - A pod is identified by its UID, which is the name of its request. A pod of the same name with another UID is
//     another pod. Every eviction has the UID as a precondition.
//   - A pod that is missing from the cache counts as gone only if the cache had it before, or if the API server
//     confirms it: the cache can be stale.
//   - No decision uses a request that is older than this controller's last write. Of two writes of one version of
//     a request, it tries only one: both queues write the same requests (pending_writes.go).
//   - A pod is evicted only if its stored request wants that: the API server reads it before (package
//     evictionfence). Canceled is written only for a pod that stays, as the API server says.
//   - Events and metrics follow from the difference between two statuses (changes.go), so they cannot contradict
//     the object.
//   - Requests that wait for an event are also synced from the caches every five minutes, by one timer for all
//     (sweep.go).
//
// Timeouts:
//   - For five minutes after the controller has started, after a watch was interrupted and after a read has
//     failed, no interceptor times out: it may have been unable to report. While one is active and no write has
//     succeeded for 30 seconds, a read tests whether the API server serves, because informers are silent while
//     connections are refused.
//   - If the status of a request cannot be written, its interceptor does not time out for ten minutes, or five
//     after an attempt that succeeds. This applies to that request only: a tenant's webhooks can refuse any write
//     in its namespace.
//   - Outages extend a turn by the time that they have taken and half an hour at most, so that a load balancer
//     that resets all watches every few minutes does not keep a silent interceptor for ever. They are in memory; a
//     new process begins at zero (outages.go).
//   - A timeout is written over the version of the request that was read, so a report that the cache lacks makes
//     the write fail with a conflict.
//
// Budgets:
//   - A pod with one PodDisruptionBudget waits in the queue of that budget. Those that are not ready are evicted
//     first, then the oldest: two at a time, or up to 32 while the API server answers quickly (pace.go), as with
//     the gate EvictionLane. Without it, each eviction writes the status of the budget, and the loser of two
//     writes waits half a second. Pods without a budget, or with several, which the API server never evicts, are
//     evicted independently.
//   - However many pods wait for a budget that allows nothing, the API server is asked about one of them. The
//     other requests record the first answer only; later answers are written to the request of that pod. The next
//     question follows after 1, 2, 4, 8, then every 15 minutes (budget_verdicts.go); these delays begin again when the budget
//     has let a pod go, or its spec has changed. If something else refuses the attempt, such as a webhook, another
//     pod is tried ten seconds later. A pod leaves when the cached budget allows it. While a budget lets pods go one
//     after the other, nothing is recorded about those that wait, until none was evicted for ten seconds.
//   - If the API server contradicts the cached budget, its queue rests until the cache has a newer version, for
//     one second, doubling to ten if that happens repeatedly.
//   - Other refusals are about one pod. They follow the same schedule, and are retried when the pod changes, after
//     5 seconds, doubling to a minute. A conflict is retried within two seconds: whoever keeps
//     writing to a pod must not be able to prevent its eviction. After half a minute of answers that say nothing about the pod, such as conflicts and timeouts of
//     webhooks, the condition Blocked says so.
//   - If an eviction gets no response, the pod is read from the API server before the next attempt.
//   - The budgets of a pod are looked up by its labels in one index for all controllers of a process (index.go in
//     component-helpers/apps/poddisruptionbudget). An index function of the cache records what has changed while
//     the cache stores it: an event handler would be too late, because other handlers may know of a budget before
//     it.
//
// Fairness and cost:
//   - An idle request causes no API calls. A pod without interceptors costs three: create, evict, record the end.
//     Requests share the memory of labels, names and reasons (ShareMemory in client-go/tools/evictionrequest).
//   - Status writes, evictions and events have a client each. Evictions have a queue of their own, because they
//     wait in the API server.
//   - Failures delay only their own request, from one second to 15 minutes for evictions and 5 minutes for status
//     writes, or 10 seconds if something changes. Those of status writes are in statusfailures, where the
//     nodemaintenance-controller finds them for its blockers, and after three an event says so.
//   - In both queues, each node drain has the same share of the workers, and so have all other requests together
//     (owners.go); in each, namespaces take turns, then requesters. Which drain it is, the admissions in the
//     status of the node say, which kubelets cannot write. Where none are stored, all node drains have one share,
//     in which the nodes take turns.
//   - One namespace uses at most three quarters of the workers (client-go/util/fairshare), and every call has a
//     timeout: 35 seconds, and 45 for an eviction. That is more than a slow webhook takes, and less than the
//     minute of the API server.
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
//	calls.go                       when callers of pods/eviction have given up, and the withdrawal of their requester
//	deadlines.go, outages.go       when an interceptor times out, and when it must not
//	server_clock.go                from which responses the clock is derived, which deadlines use
//	garbage.go                     when a finished request is deleted; pure functions
//	sweep.go                       one timer for all requests for which no event comes
//	writer.go, pending_writes.go   the writer of requests, of which all writes are methods (one is in calls.go)
//	changes.go, events.go          the changes and events of a write; metrics/ counts them (metrics.go), and the
//	                               unfinished requests (collector.go) for up to 50 names (names.go)
//	imperative_controller.go       the built-in last interceptor: read, decide, evict, write
//	imperative.go                  whether and when it evicts; pure functions
//	budget_queues.go               which pods wait for which budget, and which one is next
//	budget_tasks.go                what is done for the pods that wait for a budget
//	budget_verdicts.go             when the API server is asked about a budget that allows nothing
//	pace.go                        how many evictions under one budget are in flight
//	owners.go                      for whom a request is processed: the queues are shared between them
//	statusfailures                 which statuses cannot be written; shared with other controllers
//	podeviction                    the eviction call and the classification of its response
//	cachestate                     state that belongs to a cache, shared by the controllers of a process: that of
//	                               statusfailures and of lifecycleeviction/agreement
//	config                         the configuration of the controller; config/v1alpha1 has its defaults, and
//	                               converts the type of k8s.io/kube-controller-manager
//	simulation_test.go             random histories, and the invariants of each
package evictionrequest
