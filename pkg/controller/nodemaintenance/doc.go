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

// Package nodemaintenance cordons nodes, requests the eviction of their pods, and releases the nodes, as
// NodeMaintenances specify (KEP-4212).
//
// # Stages
//
// A maintenance is in the stage of its spec, which administrators only move forward:
//
//	Idle      Announced: its nodes get conditions. Nothing else is changed.
//	Cordon    Its nodes are unschedulable, and are kept so.
//	Drain     In addition, the eviction of their pods is requested, in the order of the plan.
//	Complete  Requests are withdrawn, and nodes that no other maintenance claims are schedulable.
//
// Any stage but Idle begins with the finalizer. A maintenance that is deleted becomes Complete first. When all
// nodes are released in Complete, and all requests are withdrawn that may be canceled and that no other
// maintenance wants, the finalizer is removed, and the maintenance is over: whoever cordons one of its nodes after
// that is another client.
//
// A maintenance in the stage Cordon or Drain claims the nodes that it selects. A node goes through these steps,
// each of which waits until the one before is stored, so that a crash in between leaves nothing that a new process
// does not find:
//
//	cordon   spec.unschedulable is set.
//	targets  status.maintenanceStatus says which of its pods have to leave.
//	request  Each of those pods has an EvictionRequest with this controller as a requester.
//	release  When no maintenance claims the node: schedulable, status cleared, requests withdrawn.
//
// With the gate NodeMaintenanceBudgets, a maintenance in the stage Drain may have to wait before it begins with a
// node. The phases of a node follow from its status.maintenanceStatus.admissions (progress/limits.go). For cordons,
// targets, requests and releases, each phase is like a stage:
//
//	waiting    is like the stage Idle. It ends when package rollout has admitted the node. A node that is
//	           marked as done by then, and that nobody claims, is done at once.
//	admitted   is like the stage of the maintenance. It ends when the node is marked as done by an annotation,
//	           or was rebooted after its drain: its bootID has changed, and it has been Ready for 30 seconds.
//	returning  is like the stage Cordon. It ends when the node is Ready without startup taints and its pods of
//	           DaemonSets are ready, or when another maintenance claims it and does not give it back as well. It
//	           is skipped where no pod is on the node and it is healthy.
//	done       is like a node that is not selected, until the maintenance ends. A node that cannot be made
//	           schedulable keeps its place in the rollout.
//
// A maintenance without a rollout begins at once with nodes that no budget selects. That is recorded as an
// admission as well (begunNow), so a budget that is created later undoes nothing. Its stage Drain has no effect
// before the cache has the budgets that the API server has (current_limits.go). Maintenances of kubelets that shut
// down never wait. From its announcement until it is free, a node of a rollout is written nine times, and once
// more when the maintenance ends: TestWritesToANodeOfARollout lists the writes.
//
// # Drain targets
//
// Package progress has how far the maintenances are, and the targets of a node.
//
// The drain of a node does not start while another maintenance in the stage Drain that selects it awaits its
// finalizer, unless an attempt to store that has failed. So which maintenance goes first follows from the objects,
// and not from which finalizer is stored first. Maintenances that are created later find the drain of a node as it
// is.
//
// # What this controller writes
//
//	NodeMaintenance        status; the stage Complete on deletion; its finalizer
//	NodeMaintenanceBudget  status
//	Node                   spec.unschedulable, while the node is claimed
//	                       spec.taints: nodemaintenance.k8s.io/planned, while it waits
//	                       status.maintenanceStatus
//	                       status.conditions: MaintenancePlanned, MaintenanceInProgress, DrainInProgress, Drained
//	EvictionRequest        spec.requesters: its own entry, nodemaintenance.k8s.io
//	                       status.conditions: InterceptorsSkipped, for an escalation
//	Pod                    for an escalation: the condition DisruptionTarget, and the deletion
//
// # Workers
//
//	syncNode         counts the pods of one node and decides on it, without any API call; ten workers
//	writeNode        cordons it and writes its taint and status; decides again before; 40 workers
//	refreshNode      writes its status where only counts of pods are outdated: one node each 100 ms
//	writeRequests    requests, withdrawals and what escalations do: 80 workers
//	syncMaintenance  writes finalizer, stage and status of one maintenance, from sums; 40 workers
//	syncAdmissions   decides which nodes are next, and writes the statuses of budgets and rollouts; one worker,
//	                 which does not wait for writes that hang
//
// A webhook that hangs for some must not hold up the others: nodes and maintenances of which the last write was slow
// have no more than 20 of the workers.
//
// # Invariants
//
// Order of writes:
//   - Nothing is changed before the finalizer is stored, so a maintenance that is deleted leaves nothing behind.
//     Until a maintenance has its finalizer, it only keeps nodes cordoned, and delays drains until its first attempt
//     to store the finalizer has ended.
//   - The eviction of a pod is requested only if the stored targets of its node include it, and never because of a
//     maintenance whose finalizer is removed.
//   - A request is never withdrawn while a maintenance that drains the node wants the pod to leave, or if its
//     interceptor forbids cancellation.
//   - A node is released, and its targets are cleared, when no request for its pods is waiting or in flight and
//     the cache has all writes. A write whose answer was lost is found by its watch event, and withdrawn.
//
// Result:
//   - A node is uncordoned only when the last maintenance that claims it ends, and only if this controller has
//     cordoned it. A claimed node that someone has uncordoned is cordoned again only as it was read: a controller
//     that knows more may have released it.
//   - A node that is deselected before its status was written is not cordoned before all nodes are counted, and
//     its status follows the cordon.
//   - What the API server rejects is a blocker in the status, in each stage that waits for it, and retried within
//     30 seconds. A completion also names what it waits for on nodes that it does not select any more, or that are
//     gone. A node that cannot be cordoned keeps its targets, and no further eviction of its pods is requested. A
//     taint delays only the end of its maintenance.
//
// Cost:
//   - Progress is current: neither the status of a maintenance nor the metrics wait for the writes that thousands
//     of nodes need.
//   - A maintenance of few nodes does not wait for one of thousands: in each queue of nodes and of requests,
//     maintenances have equal shares. A node of several is in the share of the one with the fewest nodes.
//   - A slow admission webhook of a namespace delays only requests in this namespace. Withdrawals of a namespace
//     go before its new requests. A request that takes longer than 12 seconds is given up and retried, a deletion
//     after 35; if that repeats, it is the blocker RequestFailed.
//   - Nothing lists all pods.
//   - The status of an object is written at most once a second, and only if it has changed; the start of a stage
//     and the condition Completed do not wait. Where only counts of pods change on a node that was admitted, and
//     none is blocked, it is every ten seconds. While nodes wait, syncMaintenance writes every two seconds,
//     because syncAdmissions writes the same status (BeginStatus lets one go after the other).
//
// # What the API server is asked before
//
// A process that was suspended goes on with old caches before it knows that it no longer leads.
//
//	a request         whether the maintenances still drain the node and its targets take the pod; what was
//	                  read serves all pods of the node for a second (package confirm)
//	a withdrawal, an uncordon, or the end of a claim, of targets or of an admission
//	                  whether the cache has the maintenances that claim the node; once a second for all
//	                  nodes (package confirm)
//	a cordon          whether it serves maintenances at all: their gate may have been turned off
//	a cordon, or the beginning of a claim or of an admission
//	                  whether the maintenances still claim the node (confirm/claims.go)
//	an uncordon       which field manager has set spec.unschedulable: cordons of others stay (write/writer.go)
//	Drained           whether the cache has the pods and nodes, because machines are switched off then
//	                  (package confirm)
//	an escalation     whether node and maintenances are as decided, and what time it is (escalation.go)
//
// # Changes that others revert
//
// If other clients keep reverting what the controller writes, it acts at once a few times, then less often, with a
// blocker and an event:
//
//	requests that others withdraw         two at once, then after 5 s, doubling up to a minute, for as long as
//	                                      requests of the last ten minutes count. The blocker says who withdraws
//	requests that it has withdrawn itself ten at once: a label that flaps is such a contest
//	                                      (package requests)
//	pods that come back to the node       all at once, then after 10 s, doubling up to 5 minutes, per owner and
//	                                      node, ten owners per namespace, from when they come if that is later.
//	                                      The node is drained when it was empty for 5 s, or 30 s if pods have
//	                                      come back or are likely to, or when a Job is over whose pods come back
//	                                      and can only run there (package returns)
//	cordons, taints, conditions,          three in ten minutes at once, then one a minute (package pace)
//	status.maintenanceStatus, finalizers,
//	and labels that select
//
// # Pods that stay
//
// A policy is looked up for each pod when its node is counted (decision/verdicts.go).
//   - Of the policies of several maintenances, the most cautious decides: Skip, then WaitCompleted, then Drain,
//     because a pod that is evicted for one is gone for all. A pod that a maintenance skips does not count as left
//     for it. For the others it counts as left, and is a blocker that names that maintenance, but it holds up no
//     entry of their plans.
//   - Where a pod is skipped, the pods of DaemonSets and the static pods stay as well.
//   - A policy that selects namespaces applies also where the labels of a namespace are not known, unless its action
//     is Drain.
//   - The maintenance of a shutdown skips nothing, holds up nobody, and does not wait for what others skip:
//     whoever has the machine can write it, and the machine goes down with these pods.
//   - Pods that nobody stops are like skipped ones to each maintenance, as with kubectl drain --ignore-daemonsets
//     (absences.go). Kubelets declare in status.declaredFeatures that they stop static pods; those of the fork on
//     an older base cannot declare it, and are assumed to.
//   - spec.drainedWhen waits for VolumeAttachments but those of pods that stay, since EmptiedTime in the status of
//     the node. The condition Drained of a node is True when it is drained for all of its maintenances.
//
// # Escalation
//
// spec.escalation says when the drain of a node stops waiting: interceptors are passed over, pods are deleted
// whatever their budgets allow, or pods of a node that is out of service are removed from the API.
//   - The clock of a node begins with its admission, so an escalation needs a rollout, which may be empty. It
//     stands still while no pod may leave because of other maintenances (waitingTime, waitedSeconds of the
//     admission).
//   - A pod is acted on when all maintenances that drain its node have come to this or a stronger action for it.
//     One that never escalates holds up the others, and so does one that skips the pod; WaitCompleted does not.
//     Blockers and an event name it.
//   - Before an action begins, there are five minutes, or as long as its step says if that is less, after the
//     start of a controller (nobody evicted before), after the end of a maintenance that has held it up, and after
//     the end of a policy that has skipped the pod.
//   - The time is that of kube-apiserver (pkg/controller/util/serverclock), which does not depend on the leader's
//     clock.
//   - The admission says which action has begun before the first pod is acted on. It never gets weaker.
//   - IgnoreBudgets deletes a pod one grace period before the time of the step. Such a pod is within the drain
//     targets, wherever the plan has it, so its DaemonSet does not replace it. It gets the condition
//     DisruptionTarget first.
//   - ForceDelete needs the taint node.kubernetes.io/out-of-service and a node that is not Ready, as for the
//     garbage collector of pods: otherwise the pod may still run.
//   - InterceptorsSkipped is a condition and no field of the spec, which any requester could set. Interceptors
//     that alone can stop a pod stay active.
//
// # Memory
//
// The objects are the memory: they store position, targets and stages. The progress of maintenances is derived
// from them and from the caches.
//
// What is only in memory delays writes: failures, contests, pods that come back. After a restart they are retried
// at once. The statuses say since when writes have been failing: a new process leaves a status as it is until they
// have failed again, for half a minute at most (resume.go). A node whose drain had begun has to be empty for as long
// again. It is not stored which maintenance claimed a node that none selects any more, so all maintenances in
// Complete wait for nodes whose status or pods show that one did.
//
// # Reading order
//
//	nodemaintenance_controller.go  the type, and its configuration
//	start.go                       its constructor and Run
//	event_handlers.go              which event enqueues which node or maintenance
//	queues.go                      the queues
//	node_sync.go                   one node: its phases, in order, and the writes to it
//	node_decide.go                 from its facts to a decision, and what is recorded of that
//	node_facts.go                  what the caches and the memories say about it and its pods
//	decision/                      what is decided; pure functions
//	cordon.go, taint.go            the writes of its cordon and its taint
//	node_status.go                 the writes of its status
//	node_memories.go               what this process remembers of it
//	reboots.go                     since when it is Ready in another boot
//	policies.go, absences.go       what decides which pods stay: the labels of their namespaces, for podPolicies, and
//	                               who stops them
//	request_sync.go                one pod: request its eviction, or withdraw
//	requests/                      which of these writes is next, and when to ask again for pods whose
//	                               requests others withdraw
//	returns/                       the same for pods that come back
//	escalation.go                  what is done to pods for which the drain of a node stops waiting
//	escalation_holdups.go          which maintenances hold that up, and notice when they have ended
//	confirm/                       whether the API server agrees with what follows from the caches
//	maintenance_sync.go            one maintenance: finalizer, stage, status
//	status/                        what the statuses of maintenances and nodes say; pure functions
//	progress/                      how far it is, and which pods of a node may leave
//	current_limits.go              whether the cache has all budgets that keep it from beginning with nodes
//	admissions.go, rollout/        with which nodes those begin next that may have to wait
//	settling.go                    until when they wait for pods that replace those of the last nodes
//	write/                         all writes, which of them have failed, and events
//	pace/                          the minimum time between writes, and the pace of what others revert
//	resume.go                      what a process takes over that another one has found about writes that fail
//	metrics/                       counters (metrics.go), and gauges that are counted when they are read
//	                               (collector.go), by Count of progress/summary.go and by count of start.go
//
// k8s.io/component-helpers/node/maintenance has what the controller shares with others: the standard plan, which
// entry includes a pod, node selectors, targets, and blockers.
package nodemaintenance
