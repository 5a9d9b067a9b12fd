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

// Package rollout decides with which nodes NodeMaintenances may begin, within the NodeMaintenanceBudgets and the
// limits of their own rollouts.
//
// # Protocol
//
// A limit belongs to a holder: a NodeMaintenanceBudget, or a NodeMaintenance with a rollout. An admission is
// decided from caches, and takes three writes, each of which begins when the one before is stored:
//
//	reserve  The node is added to status.pendingAdmissions of each of its holders, with their resourceVersion
//	         as a precondition: whoever changes a limit, or decides at the same time, makes this fail. From here
//	         on the node counts.
//	admit    The admission is added to status.maintenanceStatus of the node. From here on, the maintenance may
//	         cordon and drain it.
//	confirm  When the cache has the node with its admission, it is removed from the pending ones, and
//	         status.admissionResourceVersion of the holder becomes the version of the node.
//
// So no limit is exceeded, whoever else decides: a controller that has lost its lease and wakes up, or one that
// was just started. Either it has the last version of the holder, or it cannot reserve. If it has, it knows all
// pending admissions, and it decides only if its cache of nodes has all that were confirmed.
//
//   - An admission is never revoked. One that was given because the node was down ends if the node is Ready again
//     before any drain target is stored for it: then the node waits again.
//   - An admission counts when the answer of the API server has it. One whose gate is off drops the field without
//     an error. That, ten conflicts in a row, and a refusal are failures of this node: an event, and the next
//     attempt after 1 to 30 seconds.
//   - A reservation may be written by whoever finds it, for pendingUsable (2 minutes) by the clock at each
//     attempt, because the process may have been suspended since the decision. After pendingTimeout (5 minutes) it
//     does not count any more, unless the API server has the node with its admission. Between the two is more time
//     than any call takes, and more than the clocks of controllers differ. So a controller that dies between two
//     writes costs at most five minutes of one place.
//   - If a node was reserved because it was down or cordoned, and is not any more, it waits until there is room
//     for it, or until that timeout.
//   - A reserved node that the cache does not have counts as well: it may have been created again, and a process
//     whose cache has it may be admitting it.
//
// # Pace
//
//   - The status of a holder is written at most once a second, unless a batch is full: what has become free
//     meanwhile is reserved together, with the confirmations of what was reserved before.
//   - What was reserved before is written to the nodes first, and what is reserved now only if the list of budgets
//     is not older than listTimeout (5 seconds) by then. It is read from the API server, so a budget that was just
//     created counts.
//   - Holders are written ten at a time, and so are nodes. A Sync waits a second for each batch. A write that
//     takes longer, usually because of a webhook, goes on for up to 35 seconds; its outcome is handled by a later
//     Sync, and until then its holder or node is not written again.
//   - All budgets that select a node count it while its admission is written, also those that select it since, and for
//     five minutes after that if the API server did not answer.
//   - A holder that cannot be written is tried after a second, then less often, at least every 30 seconds.
//     Meanwhile, and while its write hangs, no node is decided on that it would have to reserve; these nodes wait
//     for StatusFailed. Nodes of other holders go on.
//   - A holder with a confirmed admission that the cache of nodes lacks is left out of decisions until the cache
//     has it.
//
// # Counting
//
// A node is unavailable if it is not Ready, unschedulable, removed by others, out of service, admitted and not
// given back, or pending. It is disrupted if it is so for another reason than that it is unschedulable. What a
// budget allows depends on the node:
//
//	available  fewer than maxUnavailable nodes are unavailable
//	cordoned   fewer than maxUnavailable nodes are disrupted: it is unavailable already, but it still runs its
//	           pods, and a pool that was cordoned at once must not be drained at once
//	down       at any number after deadAfter (5 minutes), because that changes no count: nodes that are broken
//	           can be repaired although they use up the budget. Before that, and in an outage of most nodes
//	           (55 percent, and three or more: see Fleet.isOutage), it is like an available one, but has its
//	           own place already
//	removed    never: it is being deleted, or has a taint by which others announce that. It is disrupted, as is
//	           one that is out of service, which has its own place while it is Ready
//
// Domains, freezes and windows are the same for all of them. A domain is active if a node in it is admitted and
// not given back, or pending: a node that is down or cordoned must not keep all other zones from being maintained.
// A node needs its domain to be active, or room for another active one. If more are active than allowed, none gets
// another node. A node of several budgets waits until all of them are open at the same time (meetings.go).
//
// # Cost
//
// Hundreds of maintenances may wait for thousands of nodes in dozens of budgets, and there are ten decisions a
// second. Nodes that only their names tell apart are a class: a decision asks budgets about each class, once as
// long as nothing is decided that changes their answer, and only counts the nodes of each maintenance by their
// classes. Nodes that are reserved or refused are decided on one by one. While nothing can begin, nothing is
// written.
//
// # Order
//
// The maintenance that has been in the stage Drain for the longest is first, which is called the oldest here. If
// only the number of domains of a budget keeps it from beginning with a node, younger ones begin with no other
// node of that budget: they could keep the domain active forever. A node of two budgets may wait while younger
// maintenances use up one of them in turn.
//
// Within a maintenance, the order is:
//
//	reserved nodes
//	nodes in domains where nodes are admitted already, then those of other domains
//	in each domain by name; in a cluster of more than 100 nodes by a hash of the name, because of which pods
//	    move once: see maintenance.NodeOrder, which kubectl maintenance plan uses as well
//	nodes that are younger than the maintenance, the oldest first: a machine may have been replaced by it and
//	    come back under its name. They begin in no domain while another node waits only for a further one
//
// Nodes whose last admission could not be written come after those of all maintenances, unless they are reserved:
// a kubelet that writes its node all the time would otherwise keep a place forever.
//
// Holders that could not be written at their last attempt are the first batches, and no more than ten of them are
// being written; then come maintenances, then budgets. What one of them could not reserve, those of later batches do
// not: otherwise, somebody whose webhook refuses the status of one maintenance could hold places in every budget.
//
// # The copy in kubectl
//
// kubectl maintenance plan foretells the batches by rules of its own, because it cannot import this package:
// budgetForecast and nodeForecast in view_rollout_plan.go of k8s.io/kubectl/pkg/cmd/maintenance. They must agree with
// fleet.go and decide.go: a limit that only the controller knows makes plans wrong. No test compares the two, so a new rule
// needs a case in TestBatches there, and one in the tests here.
//
// # Files
//
//	fleet.go     nodes and budgets, counted as they change
//	decide.go    which nodes are next, and what the others wait for; pure
//	classes.go   the same for nodes that are alike
//	meetings.go  when budgets are open together
//	slots.go     sets of nodes
//	admitter.go  the protocol, and the statuses of budgets (budgetStatus)
//	attempts.go  writes that may hang
package rollout
