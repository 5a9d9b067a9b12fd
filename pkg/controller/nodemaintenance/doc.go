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

// Package nodemaintenance cordons nodes, asks their pods to leave, and gives the nodes
// back, as NodeMaintenances say (KEP-4212).
//
// # States
//
// A maintenance is in the stage that its spec names. The administrator moves it, and
// only forward:
//
//	Idle      Announced: its nodes have conditions, and nothing else is touched.
//	Cordon    Its nodes are unschedulable, and kept so.
//	Drain     Besides, their pods are asked to leave, in the order of the drain plan.
//	Complete  Requests are withdrawn, and nodes schedulable that no other one holds.
//
// Any stage but Idle begins with the finalizer. A maintenance that is deleted becomes
// Complete first. When Complete is done with every node, the finalizer goes, and the
// maintenance is over: whoever cordons one of its nodes after that is left alone.
//
// A node is held while a maintenance in the stage Cordon or Drain selects it. It goes
// through these steps, each of which waits for the one before to be stored:
//
//	cordon   spec.unschedulable is set.
//	targets  status.maintenanceStatus says which of its pods have to leave.
//	ask      Each of those pods has an EvictionRequest that names this controller.
//	release  When no maintenance holds the node: schedulable, status cleared, withdrawn.
//
// # Drain targets
//
// In the stage Drain a maintenance has a position: the first entry of its plan for which
// a pod is left on any of its nodes. What it grants on a node is all that the plan takes
// up to there; on a node that joined late, up to the first entry with a pod there. The
// targets of a node are the least that one of its maintenances grants, and at least what
// the node has stored already; where that takes no pod that is left, what the maintenance
// with the least progress grants, so that plans that contradict each other cannot wait for
// each other for ever. A maintenance advances when the pods of its entry have left
// all of its nodes, also those that another maintenance holds back.
//
// The drain of a node does not begin while another maintenance in the stage Drain that selects
// it has yet to get its finalizer, except where that has failed: who goes first follows from the
// objects, not from which finalizer is stored first. It cannot follow from them alone: to wait
// for what may still come would delay every drain. A maintenance that comes when the drain of a
// node has begun finds it as it is.
//
// # Who writes what
//
//	spec                                   administrators; the stage Complete on
//	                                       deletion, and the finalizer, this controller
//	status of a NodeMaintenance            this controller
//	node.spec.unschedulable                this controller, while it holds the node
//	node.status.maintenanceStatus          this controller
//	its four node.status.conditions        this controller
//	evictionrequest.spec.requesters        its own entry: nodemaintenance.k8s.io
//
// Nothing is done to pods.
//
// # Invariants
//
//   - Nothing is touched before the finalizer is there, so that nothing is left behind. A
//     maintenance without it only keeps nodes from being made schedulable, and drains from
//     beginning for as long as its first attempt to get it takes.
//   - A position never goes back. It is kept in status.drainStatus.drainPlanPosition.
//   - Targets of a node never step back while a maintenance drains it. They are kept in
//     the node, and written under its resourceVersion. After a conflict they are only written
//     again if the API server has what they were decided on.
//   - A pod is asked only when the stored targets of its node take it. What is asked because
//     of a maintenance is asked before its finalizer goes.
//   - What an admission webhook of a namespace delays is delayed in this namespace: no sync
//     writes a request.
//   - A request is never left while a maintenance drains the node, and never where its
//     interceptor forbids to call the eviction off.
//   - Drained is True only when no pod is left on any selected node, each is stored as
//     unschedulable, and one is selected. It is about the generation that it names.
//   - What the API server refuses is a blocker in the status, in each stage that waits for it,
//     and tried again within 30 seconds. A completion also names what it waits for on nodes that
//     it does not select any more, or that are gone. A node that cannot be cordoned keeps its
//     targets, and no pod of it is asked.
//   - A node is made schedulable only by the end of the last maintenance that holds it, and once:
//     who cordons it before its status is cleared is left alone, too, unless the controller was
//     restarted in between. That is also so for a node that is not selected any more before its
//     status was written: it is not cordoned before all are counted, and then the status follows.
//   - An event costs the same whatever the number of other nodes, and of maintenances that
//     select none of its nodes by name or by the value of a label. Nothing lists all pods.
//   - The status of an object is written at most once a second, and not if it is the same.
//
// # Memory
//
// The objects are the memory: position, targets and stages stand there. The ledger is
// derived from them and from the caches. It keeps, for every maintenance, what is left on
// its nodes for each entry of its plan, and counts one node at a time; the sums follow by the
// difference. After a restart nothing is decided on a node until all nodes of its
// maintenances were counted. Failed writes are remembered only to space their attempts and
// to tell of them; after a restart they are tried at once. Which maintenance has held a node that
// none selects any more is not kept: after a restart all that are in Complete by then wait for it.
//
// # Reading order
//
//	nodemaintenance_controller.go  the type, its constructors and Run
//	event_handlers.go              which event makes which node or maintenance be looked at
//	node_sync.go                   one node: read, decide, write
//	request_sync.go                one pod: ask it to leave, or withdraw
//	request_queue.go               which of them is next, a share for each namespace
//	node_status.go                 what the status of a node should be; pure functions
//	maintenance_sync.go            one maintenance: finalizer, stage, status
//	maintenance_status.go          what its status should be; pure functions
//	plan.go                        positions, targets and messages; pure functions
//	ledger.go                      the sums over the nodes of a maintenance
//	ledger_index.go                which maintenances have a node, or may select it
//	node_matcher.go                which nodes a maintenance selects
//	budgets.go                     which PodDisruptionBudgets select a pod
//	requests.go                    what the controller reads out of an EvictionRequest
//	writer.go                      the only place that writes
//	pace.go                        how often it writes, and cordons again
//	failures.go                    which writes failed, and when they are tried again
//	events.go, metrics/            what is told and counted
//
// k8s.io/component-helpers/node/maintenance holds what the controller shares with
// others: the standard plan, which entry takes a pod, targets, and blockers.
package nodemaintenance
