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

// Package nodemaintenance cordons nodes, requests the eviction of their pods, and releases the
// nodes, as NodeMaintenances specify (KEP-4212).
//
// # States
//
// A maintenance is in the stage of its spec, which administrators only move forward:
//
//	Idle      Announced: its nodes get conditions. Nothing else is changed.
//	Cordon    Its nodes are unschedulable, and are kept so.
//	Drain     In addition, the eviction of their pods is requested, in the order of the plan.
//	Complete  Requests are withdrawn, and nodes that no other maintenance claims are schedulable.
//
// Any stage but Idle begins with the finalizer. A maintenance that is deleted becomes Complete
// first. When all nodes are released in Complete, the finalizer is removed, and the maintenance is
// over: whoever cordons one of its nodes after that is another client.
//
// A maintenance in the stage Cordon or Drain claims the nodes that it selects. A node goes through
// these steps, each of which waits until the one before is stored:
//
//	cordon   spec.unschedulable is set.
//	targets  status.maintenanceStatus says which of its pods have to leave.
//	request  Each of those pods has an EvictionRequest with this controller as a requester.
//	release  When no maintenance claims the node: schedulable, status cleared, requests withdrawn.
//
// # Drain targets
//
// In the stage Drain a maintenance has a position: the first entry of its plan of which a pod is
// left on any of its nodes. On a node it allows all that the plan includes up to there; on a node
// that joined late, up to the first entry with a pod there. The targets of a node are the least
// that one of its maintenances allows, and at least those that the node has stored. If these
// include no pod that is left, they are raised to what the maintenance with the least progress
// allows, so that plans that contradict each other do not wait for each other forever. A
// maintenance advances when the pods of its entry have left all of its nodes, including those that
// another maintenance limits.
//
// The drain of a node does not start while another maintenance in the stage Drain that selects it
// awaits its finalizer, unless an attempt to store that has failed. So which maintenance goes first
// follows from the objects, and not from which finalizer is stored first. The controller does not
// wait for maintenances that may be created later, because that would delay every drain: they find
// the drain of a node as it is.
//
// # Who writes what
//
//	spec                                   administrators; the stage Complete on
//	                                       deletion, and the finalizer, this controller
//	status of a NodeMaintenance            this controller
//	node.spec.unschedulable                this controller, while the node is claimed
//	node.spec.taints                       its own, nodemaintenance.k8s.io/planned
//	node.status.maintenanceStatus          this controller
//	its four node.status.conditions        this controller
//	status of a NodeMaintenanceBudget      this controller
//	evictionrequest.spec.requesters        its own entry: nodemaintenance.k8s.io
//	evictionrequest.status.conditions      InterceptorsSkipped, for an escalation
//	pod.status.conditions, its deletion    DisruptionTarget, and only for an escalation
//
// # Invariants
//
//   - Nothing is changed before the finalizer is stored, so nothing stays behind. A maintenance
//     without it only keeps nodes from being uncordoned, and delays drains until its first attempt
//     to store it has ended.
//   - A position never decreases. It is stored in status.drainStatus.drainPlanPosition.
//   - The targets of a node never step back while a maintenance drains it. They are stored in the
//     node, and written with its resourceVersion as a precondition. After a conflict they are only
//     written again if the API server has what the decision was based on.
//   - The eviction of a pod is requested only if the stored targets of its node include it, and
//     never because of a maintenance whose finalizer is removed.
//   - A slow admission webhook of a namespace delays only requests in this namespace: no sync
//     writes a request.
//   - Progress is current: the sync of a node makes no API call, so that neither the status of a
//     maintenance nor the metrics wait for the writes that thousands of nodes need.
//   - A maintenance of few nodes does not wait for one of thousands: in each queue of nodes and of
//     requests, maintenances have equal shares.
//   - A request is never withdrawn while a maintenance drains the node, or if its interceptor
//     forbids cancellation.
//   - Drained is True only if no pod is left on any selected node, all of them are stored as
//     unschedulable, and at least one is selected, which kube-apiserver is asked before, because
//     caches may be minutes behind. It is about the generation that it names.
//   - What the API server rejects is a blocker in the status, in each stage that waits for it, and
//     retried within 30 seconds. A completion also names what it waits for on nodes that it does
//     not select any more, or that are gone. A node that cannot be cordoned keeps its targets, and
//     no further eviction of its pods is requested.
//   - A node is uncordoned only when the last maintenance that claims it ends, and only if this
//     controller has cordoned it, which the managed fields of the node say. A claimed node that someone has uncordoned is cordoned again only as it
//     was read: a controller that knows more may have released it.
//   - A node that is deselected before its status was written is not overruled either: it is not
//     cordoned before all nodes are counted, and its status follows the cordon.
//   - An event costs the same with any number of other nodes, and of maintenances that select none
//     of its nodes by name or by the value of a label. Nothing lists all pods.
//   - The status of an object is written at most once a second, and only if it has changed.
//
// # Memory
//
// The objects are the memory: they store position, targets and stages. The progress of maintenances
// is derived from them and from the caches: for every maintenance, how many pods are left on its
// nodes for each entry of its plan. A node that changes is counted again, and the sums change by
// the difference. After a restart nothing is decided on a node until all nodes of its maintenances
// are counted. Failed writes are kept to delay the next attempts and to publish them; after a
// restart they are retried at once, and since when they fail, the statuses say. Which maintenance has claimed a node that none selects any more
// is not stored: after a restart all that are in Complete wait for it.
//
// # Reading order
//
//	nodemaintenance_controller.go  the type, its constructors and Run
//	event_handlers.go              which event enqueues which node or maintenance
//	node_sync.go                   one node: its phases, in order, and the writes to it
//	node_facts.go                  what the caches say about it and its pods
//	node_view.go, node_status.go   what is decided, and the status that says so
//	node_admission.go              when a maintenance has begun with it, drained it, and is done
//	cordon.go, taint.go            when it is cordoned and uncordoned, and has the taint planned
//	request_sync.go                one pod: request its eviction, or withdraw
//	live_claims.go                 whether the API server agrees that the node is released
//	live_drains.go                 whether the API server agrees that it is to leave
//	live_drained.go                whether the API server agrees that all have left
//	contests.go, returns.go        when to ask again for pods whose requests others withdraw, or that
//	                               come back
//	owners.go                      whether the template of a pod's owner brings the next one back
//	request_queue.go               which of these writes is next, with shares for maintenances and
//	                               namespaces
//	maintenance_sync.go            one maintenance: finalizer, stage, status
//	maintenance_status.go          its desired status; pure functions
//	policies.go, absences.go       which pods stay: policies skip them, or nobody stops them
//	conditions.go                  Reconciling, Stalled and Completed, for tools that know no maintenances
//	rollout_status.go              the part of its status about a rollout
//	plan.go                        positions, targets and messages; pure functions
//	order.go                       what a maintenance asks for
//	limits.go, current_limits.go   which maintenances may not begin with nodes by themselves, and whether
//	                               the cache has all budgets that say so
//	admissions.go, admission/      with which nodes the others begin next
//	progress.go, summary.go        how far it is, and the sums of its status; without clients
//	progress_store.go              the progress of all maintenances, under a lock
//	progress_index.go              which maintenances have a node, or may select it
//	requests.go                    what the controller reads from an EvictionRequest
//	writer.go                      all writes
//	pace.go                        the minimum time between writes
//	failures.go                    which writes have failed, and when they are retried
//	resume.go                      what a process takes over that another one has found about them
//	escalation.go                  when the drain of a node stops waiting, and for which pods
//	escalation_holdups.go          which maintenances hold that up, and notice when they have ended
//	escalation_writer.go           what it does then
//	events.go, metrics/            events and metrics
//	event_notes.go                 which events with the same reason are not the same
//
// k8s.io/component-helpers/node/maintenance has what the controller shares with others: the
// standard plan, which entry includes a pod, node selectors, targets, and blockers.
package nodemaintenance
