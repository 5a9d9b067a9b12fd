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

// Package write makes the writes of the controller of NodeMaintenances, records which of them have failed, and emits events
// about them. What is written, and when, is not decided here.
//
// # Invariants
//
//   - The targets of a node are stored in it, and written with its resourceVersion as a precondition. After a
//     conflict they are only written again if the API server has what the decision was based on. The same is true
//     of cordons and uncordons, unless ten attempts in a row end with a conflict: a process that has lost its lease
//     does not cordon a node that was released since.
//   - A failed write delays its next attempt, and no other write. It is a blocker when the API server has rejected it, or
//     when it has failed three times for a temporary reason.
//   - A pod is only deleted when it has the condition DisruptionTarget, and the act was confirmed after that.
//   - A repeated event is one event with a count; up to four different texts are events of their own.
//
// # Files
//
//	writer.go       nodes, maintenances, and requests for evictions
//	admission.go    what package rollout has decided: admissions of nodes, and the statuses of its budgets and maintenances
//	escalation.go   what escalations do to pods and their requests
//	failures.go     which writes have failed, and when they are retried
//	events.go       one method for each kind of event
//	event_notes.go  which events with the same reason are not the same
//	inspect.go      what is remembered of writes that the caches do not have yet
package write
