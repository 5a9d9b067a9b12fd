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

// Package progress says how far NodeMaintenances are, and which pods may leave their nodes: for every maintenance, how many
// pods are left on its nodes for each entry of its plan. It follows from the caches and from what the objects store. A node
// that changes is counted again, and the sums change by the difference. It makes no API call, and has no queue.
//
// # Drain targets
//
// In the stage Drain a maintenance has a position: the first entry of its plan of which a pod is left on any of
// its nodes. On a node it allows all that the plan includes up to there; on a node that joined late or that had to
// be admitted, up to the first entry with a pod there. The targets of a node are, per pod type and selector, the
// least that one of its maintenances allows, and at least those that the node has stored. If these include no pod
// that is left, they are raised to what the maintenance with the least progress allows, so that plans that
// contradict each other do not wait for each other forever (NodeTargets has the proof). The plan of a shutdown limits no
// other maintenance, because whoever has the machine can write it. A maintenance advances when the pods of its entry have
// left all of its nodes, including those that another maintenance limits.
//
// # Invariants
//
//   - A position never decreases. It is stored in status.drainStatus.drainPlanPosition.
//   - The targets of a node never step back while a maintenance drains it: those that the node has stored are the floor
//     of the next ones.
//   - After a restart nothing is decided on a node until all nodes of its maintenances are counted.
//   - An event costs the same with any number of other nodes, and of maintenances that select none of its nodes by
//     name or by the value of a label (index.go).
//   - Nothing waits for a clock but the memory of maintenances that are gone (UnknownAdmission) and of failures that a
//     process before has found (ResumeTime).
//
// # Reading order
//
//	spec.go      what a maintenance asks for, and how far its object says that it has come
//	limits.go    which maintenances may not begin with nodes by themselves
//	plan.go      positions and targets; pure functions
//	verdict.go   what the maintenances of a node do with one of its pods
//	progress.go  how far one maintenance is
//	summary.go   the sums of its status, and those of the metrics
//	resume.go    what a process takes over that another one has found about writes that fail
//	index.go     which maintenances have a node, or may select it
//	store.go     the progress of all maintenances, under a lock
//	inspect.go   what tests of the controller ask
package progress
