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

// Package status has what the statuses of NodeMaintenances and nodes say, computed from sums (progress.Summary) and from
// what was decided on a node (View). It is pure: it reads no cache, makes no API call, and is given the time.
//
// # Invariants
//
//   - Drained is True only if no pod is left on any selected node, all of them are stored as unschedulable, and at
//     least one is selected. It is about the generation that it names: while a drain has not counted all nodes of
//     a new selector, the stored status stays, with its generation.
//   - Messages change only when something happens: names are sorted and truncated, times are absolute. They name
//     the maintenances that keep a node below what its oldest one allows.
//   - The times of conditions change only with their values, unless another client has written them.
//
// # Files
//
//	maintenance.go  the status of a maintenance, and the condition Drained
//	conditions.go   Reconciling, Stalled and Completed, for tools that know no maintenances; what conditions say
//	rollout.go      the part of the status about a rollout, and the condition Halted
//	view.go         what the status of a node is computed from
//	node.go         status.maintenanceStatus and the conditions of a node
//	text.go         messages and sentences, which events use as well
package status
