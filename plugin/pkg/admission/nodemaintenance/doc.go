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

// Package nodemaintenance is the admission plugin that says who may take which nodes
// into maintenance, and that completes their drain plans.
//
// # Who may do what
//
// A NodeMaintenance cordons, drains and uncordons nodes with the rights of a controller.
// So whoever creates one, changes its spec, or deletes it needs the verb "delete" on
// each of its nodes, in every stage: on all that the selector matches, before and after
// the change, and on all that it selects by name, whether they exist or not. The
// authorizer is asked once for all nodes, and for one after the other only if that is
// denied.
//
// A term may stand for nodes that nobody knows. That takes the right on all nodes, unless
// the stage is Complete, so that a user without any right on nodes can move none, neither
// now nor later. A term stands for known nodes if it names one, or if it requires labels
// with the operator In, and each combination of their values is on a node that it matches
// now. What it requires besides, with other operators, only leaves nodes out; alone, it
// takes whatever comes. More than ten thousand combinations are not checked: they take
// the right on all nodes, too.
//
// These changes need no such right, for they move no node, or none that does not move
// anyway:
//   - labels and annotations, and owners that are removed. An owner that is added is
//     different: if it does not exist, the garbage collector deletes the maintenance,
//     with all its rights;
//   - the finalizer of the controller, added in any stage but Idle, and removed in the
//     stage Complete, or in the stage Idle while the maintenance is being deleted;
//   - the stage Complete on a maintenance that is being deleted;
//   - the status. Its subresource has a right of its own.
//
// They are what the controller writes, which may not delete nodes. Somebody else who may
// update NodeMaintenances can use them too, but only to take the finalizer off before
// the stage Complete is done: nodes then stay cordoned, and evictions stay requested,
// until somebody calls that off.
//
// A kubelet may create, change and delete a NodeMaintenance that selects its own node by
// name and nothing else, before and after the change. Everything else is forbidden to it,
// whatever rights it has on nodes.
//
// # What nodes say of their maintenance
//
// The controller believes status.maintenanceStatus of a Node: it makes a node that has one
// schedulable in the end, however it was cordoned, and takes back none of its drain targets.
// So a write of a node that sets or changes it, also the creation of a node that brings it,
// needs the verb "control" on nodes/status. The authorizer is asked only if the field
// changes, so that heartbeats cost nothing. A write of the status that leaves it out does
// not fail: it may come from a client that does not know the field, such as the node
// lifecycle controller of an older release. What is stored is put back.
//
// All of this is the same with the gate off, as far as something is stored: a server of
// several whose gate is off is no way around the others.
//
// The conditions of a node that the controller writes are not protected. It reads none of
// them, and puts them right: they are as true as other conditions are where others may
// write the status, too.
//
// # What is not checked
//
// Rights are asked for when a maintenance is written. Nodes that begin to match later,
// because they join the cluster or get a label, come under a maintenance whose author
// had the right on the others only: who may create nodes or change their labels decides
// about that. Select nodes by name where this matters. The nodes come from a cache, so
// that this is true of the last moments before a request, too.
//
// # Drain plans
//
// The standard entries that a drain plan lacks are added on creation. The plan is
// immutable; an update that brings the plan as the user once wrote it, or none where the
// user gave none, is completed in the same way, so that the original manifest can be
// written again. A plan that is not valid is left as it is: validation then speaks of
// the entries that the user knows.
package nodemaintenance
