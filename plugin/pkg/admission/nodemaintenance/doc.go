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

// Package nodemaintenance is the admission plugin that decides which users may maintain which
// nodes, and that completes their drain plans.
//
// # Permissions
//
// A NodeMaintenance cordons, drains and uncordons nodes with the permissions of a controller. A
// user who creates one, changes its spec, or deletes it therefore needs the verb "delete" on each
// of its nodes, in every stage: on all nodes that the selector matches, before and after the
// change, and on all nodes that it selects by name, whether they exist or not. The authorizer is
// first asked once for all nodes, and for each node only if that is denied.
//
// A term may match nodes that do not exist yet. This requires the permission on all nodes, unless
// the stage is Complete, so that a user without any permission on nodes cannot maintain any,
// neither now nor later. A term matches known nodes only if it names one, or if it requires labels
// with the operator In, and each combination of their values is found on a node that it matches
// now. Additional requirements with other operators can only exclude nodes; without an In, they
// match arbitrary nodes. More than ten thousand combinations are not checked: they require the
// permission on all nodes, too. So do more than a hundred terms that name no node, and terms with so
// many requirements or values that matching them with all nodes would keep the server busy: here in
// each stage, and for a deletion as well, because nothing says which nodes they select.
//
// These changes need no such permission, because they do not change what happens to any node:
//   - labels and annotations, and the removal of owners. Exceptions are the annotations by which a kubelet knows
//     the maintenance of its shutdowns: without them, it would not end it. The addition of an owner is different:
//     if the owner does not exist, the garbage collector deletes the maintenance with its own permissions;
//   - the finalizer of the controller, added in any stage but Idle, and removed in the stage
//     Complete, or in the stage Idle while the maintenance is being deleted;
//   - the stage Complete on a maintenance that is being deleted;
//   - the status. Its subresource has a separate permission.
//
// These are the writes of the controller, which may not delete nodes. Another client that may
// update NodeMaintenances can make them too. If one removes the finalizer before the stage Complete is done,
// the controller adds it again. If the object is being deleted, it is gone then, and the controller releases
// its nodes without reporting it.
//
// A kubelet may create, change and delete only the NodeMaintenance of the shutdowns of its node,
// which has a fixed name and selects this node by name and nothing else, before and after the
// change. Everything else is forbidden to it, whatever permissions it has on nodes. An escalation
// needs the verb "escalate", which kubelets lack.
//
// With the gate NodeMaintenanceBudgets, nobody else may create a maintenance with such a name: the
// controller does not let it wait for budgets, because a node that shuts down cannot wait.
//
// # Maintenance status of nodes
//
// The controller trusts status.maintenanceStatus of a Node: eventually it makes a node with this
// status schedulable, however the node was cordoned, and it removes none of its drain targets. A
// write of a node that sets or changes the field, including the creation of a node with it,
// therefore needs the verb "control" on nodes/status. The authorizer is asked only if the field
// changes, so that heartbeats cost nothing. A write of the status without the field does not fail:
// it may come from a client that does not know the field, such as the node lifecycle controller of
// an older release. The stored value is restored. Only a patch by a user with the verb removes it: what
// replaces the status lacks the field because the client does not know it, also if that is an administrator.
//
// With the gate off, the same applies to stored values: one server with its gate off must not
// bypass the checks of the others.
//
// The conditions of a node that the controller writes are not protected. It reads none of them, and
// corrects them: they are as trustworthy as other conditions that several clients may write.
//
// # The annotation of a node whose work is done
//
// With the gate NodeMaintenanceBudgets, the annotation nodemaintenance.k8s.io/done makes the controller
// give a node back: it becomes schedulable, whoever works on it. Setting or changing it therefore needs
// the verb "delete" on the node, on every endpoint that writes annotations. Kubelets lack it. Removing
// it has no effect that would need a permission. It is checked with the gate off as well, as long as
// NodeMaintenances are served: a controller acts on the admissions that are stored.
//
// # What is not checked
//
// Permissions are checked when a maintenance is written. Nodes that match only later, because they
// join the cluster or get a label, are then maintained although the author had the permission on
// the other nodes only: users who may create nodes or change their labels decide about that. Select
// nodes by name where this matters. The nodes come from a cache, so this also applies to the last
// moments before a request.
//
// # Drain plans
//
// On creation, the standard entries that a drain plan lacks are added. The plan is immutable. An
// update with the plan as the user wrote it, or without a plan if the user gave none, is completed
// in the same way, so that the original manifest can be applied again. An invalid plan is not
// changed, so that the errors of the validation refer to the entries of the user.
package nodemaintenance
